/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold run and once, in the guardian: has the keys taken, starts the command, keeps the front
 * informed of the time by which everything must be dead, ends the command when the lock is lost,
 * and has the keys given back when nothing of the command is left.
 */
#include "face/cli/run.h"

#include "io/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- time ---- */

/* The holder's deadline is at two thirds of the TTL; half of the rest is left when all is dead. */
static void keep_time(struct work *work)
{
    const struct settings *settings = &work->visit->settings;
    int64_t now_ms = host_boot_ms(), left_ms = lh_remaining_ms(work->lease);
    int64_t rest_ms = settings->ttl_ms - 2 * settings->ttl_ms / 3;
    int64_t grace_ms =
        settings->kill_grace_ms < rest_ms / 2 ? settings->kill_grace_ms : rest_ms / 2;
    /* Once the deadline has passed, what was promised stays. */
    if (left_ms == 0 || settings->on_lost == LOST_WARN)
        return;
    work->kill_at_ms = now_ms + left_ms + grace_ms;
    guardian_promise(work->guardian, work->kill_at_ms + rest_ms / 4, now_ms + left_ms + rest_ms);
}

void work_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct work *work = user;
    (void)lease;
    work->lost = true;
    work->loss = *report;
}

static void act_on_loss(struct work *work)
{
    const struct visit *visit = work->visit;
    struct job *job = &work->guardian->job;
    int64_t now_ms = host_boot_ms(), kill_at_ms = now_ms + visit->settings.kill_grace_ms;
    work->acted = true;
    work->lost_running = !job->collected;
    (void)close(work->told_by);
    work->told_by = -1;
    if (!visit->settings.json)
        fprintf(stderr, "%s%s\n", work->loss.text,
                visit->settings.on_lost == LOST_WARN ? "; the command goes on"
                                                     : "; the command is ended");
    if (visit->settings.on_lost == LOST_TERM)
        job_end(job, kill_at_ms < work->kill_at_ms ? kill_at_ms : work->kill_at_ms);
    else if (visit->settings.on_lost == LOST_KILL)
        job_kill(job, now_ms);
}

/* ---- the command ---- */

static void list_keys(struct work *work)
{
    struct text keys, tokens;
    text_init(&keys, work->keys, sizeof work->keys);
    text_init(&tokens, work->tokens, sizeof work->tokens);
    for (size_t i = 0; lh_key_at(work->lease, i) != NULL; i++) {
        uint64_t token = lh_token_at(work->lease, i);
        text_add(&keys, i > 0 ? " " : "");
        text_add(&keys, lh_key_at(work->lease, i));
        text_add(&tokens, i > 0 ? " " : "");
        text_add_u64(&tokens, token);
        atomic_store(&work->guardian->link.page->tokens[i], token);
    }
}

static bool set_environment(const struct work *work, int deadline)
{
    char number[16];
    const struct visit *visit = work->visit;
    (void)snprintf(number, sizeof number, "%d", deadline);
    return nested_tell(visit, work->lease) && setenv("LEASEHOLD_KEY", work->keys, 1) == 0 &&
           setenv("LEASEHOLD_TOKEN", work->tokens, 1) == 0 &&
           setenv("LEASEHOLD_HOLDER", visit->settings.holder, 1) == 0 &&
           setenv("LEASEHOLD_STORE", visit->url, 1) == 0 &&
           setenv("LEASEHOLD_DEADLINE_FD", number, 1) == 0;
}

/* EXIT_DONE, or what to end with. */
static int start(struct work *work, const char *path, bool taps)
{
    const struct visit *visit = work->visit;
    int pipes[2], alive = lh_liveness(visit->client), error = 0;
    if (taps && tap_open(&work->tap) == 0)
        work->guardian->tap = &work->tap;
    if ((taps && work->guardian->tap == NULL) || pipe2(pipes, O_CLOEXEC) != 0)
        return say_trouble(visit, LH_FAILED, "no descriptor or no thread is left");
    work->told_by = pipes[1];
    keep_time(work);
    if (fcntl(pipes[0], F_SETFD, 0) != 0 || !set_environment(work, pipes[0]))
        error = -ENOMEM;
    else
        error = guardian_start(work->guardian, path, visit->program, environ, alive);
    (void)close(pipes[0]);
    if (alive >= 0)
        (void)close(alive);
    if (error == 0)
        return EXIT_DONE;
    if (error == -EAGAIN || error == -ENOMEM || error == -EOWNERDEAD)
        return say_trouble(visit, LH_FAILED, "no process can be made: %s", strerror(-error));
    (void)say_trouble(visit, LH_USAGE, "%s: %s", visit->program[0], strerror(-error));
    return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void step(struct work *work)
{
    if (guardian_wait(work->guardian, lh_fd(work->visit->client)))
        (void)lh_step(work->visit->client);
    keep_time(work);
    if (work->lost && work->guardian->started && !work->acted)
        act_on_loss(work);
}

/* ---- the end ---- */

static int finish(struct work *work, const struct way *way)
{
    bool stopped = work->lost_running && work->visit->settings.on_lost != LOST_WARN;
    return way->finish(work, stopped ? EXIT_LOST : job_exit_status(&work->guardian->job));
}

int run_guarded(struct visit *visit, struct guardian *guardian, const char *path,
                const struct way *way)
{
    static struct work work;
    int status = visit_open(visit);
    if (status == EXIT_DONE)
        status = nested_refuse(visit);
    if (status != EXIT_DONE)
        return status;
    work = (struct work){.visit = visit, .guardian = guardian, .told_by = -1};
    status = way->take(&work);
    if (work.lease == NULL)
        return status;
    work.began_ms = host_boot_ms();
    list_keys(&work);
    while (guardian_is_wanted(guardian) && guardian_is_on_hold(guardian) && !work.lost)
        step(&work);
    if (guardian->end_signal != 0 || guardian->front_is_gone)
        status = EXIT_SIGNAL + guardian->end_signal;
    else if (work.lost)
        status = say_report(visit, NULL, &work.loss);
    else
        status = start(&work, path, way->taps);
    if (status != EXIT_DONE) {
        (void)lh_abandon(&work.lease, NULL); /* nothing was done */
        return status;
    }
    while (!guardian_is_over(guardian))
        step(&work);
    return finish(&work, way);
}

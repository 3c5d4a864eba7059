/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold run and once, in the supervisor: acquires through the mode, starts the command, sends
 * the foreground process the time by which everything must be dead, ends the command if the lock is
 * lost, and releases through the mode when no process of the command is left.
 */
#include "face/cli/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- deadline and loss ---- */

/* The holder's deadline is at 2/3 of the TTL. All processes are killed within half of the rest. */
static void update_deadline(struct run_state *run)
{
    const struct settings *settings = &run->context->settings;
    int64_t now_ms = supervisor_now_ms(), left_ms = lh_remaining_ms(run->lease);
    int64_t ttl_ms = lh_ttl_ms(run->lease), rest_ms = ttl_ms - 2 * ttl_ms / 3;
    int64_t grace_ms =
        settings->kill_grace_ms < rest_ms / 2 ? settings->kill_grace_ms : rest_ms / 2;
    /* After the deadline the kill time must not move. */
    if (left_ms == 0 || settings->on_lost == LOST_WARN)
        return;
    run->kill_at_ms = now_ms + left_ms + grace_ms;
    supervisor_set_deadline(run->supervisor, run->kill_at_ms + rest_ms / 4,
                            now_ms + left_ms + rest_ms);
}

void run_on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct run_state *run = user;
    (void)lease;
    run->lost = true;
    run->loss = *report;
}

static void handle_loss(struct run_state *run)
{
    const struct context *context = run->context;
    struct child *child = &run->supervisor->child;
    int64_t now_ms = supervisor_now_ms(), kill_at_ms = now_ms + context->settings.kill_grace_ms;
    run->loss_handled = true;
    run->lost_running = !child->reaped;
    (void)close(run->lost_pipe);
    run->lost_pipe = -1;
    if (!context->settings.json)
        fprintf(stderr, "%s%s\n", run->loss.text,
                context->settings.on_lost == LOST_WARN ? "; the command continues"
                                                       : "; ending the command");
    if (context->settings.on_lost == LOST_TERM)
        child_terminate(child, kill_at_ms < run->kill_at_ms ? kill_at_ms : run->kill_at_ms);
    else if (context->settings.on_lost == LOST_KILL)
        child_kill(child, now_ms);
}

/* The lock is still held, and is renewed until the command has ended. */
static void check_max_hold(struct run_state *run)
{
    const struct settings *settings = &run->context->settings;
    struct supervisor *supervisor = run->supervisor;
    int64_t now_ms = supervisor_now_ms();
    if (now_ms < supervisor->wake_at_ms)
        return;
    supervisor->wake_at_ms = CHILD_NEVER;
    if (supervisor->child.reaped || run->loss_handled)
        return;
    run->timed_out = true;
    if (!settings->json)
        fprintf(stderr, "timeout: %.120s: the command took longer than --max-hold; ending it\n",
                run->keys);
    child_terminate(&supervisor->child, now_ms + settings->kill_grace_ms);
}

/* ---- the command ---- */

static void list_keys(struct run_state *run)
{
    struct text keys, tokens;
    text_init(&keys, run->keys, sizeof run->keys);
    text_init(&tokens, run->tokens, sizeof run->tokens);
    for (size_t i = 0; lh_key_at(run->lease, i) != NULL; i++) {
        uint64_t token = lh_token_at(run->lease, i);
        text_add(&keys, i > 0 ? " " : "");
        text_add(&keys, lh_key_at(run->lease, i));
        text_add(&tokens, i > 0 ? " " : "");
        text_add_u64(&tokens, token);
        if (run->context->arg_count == 0) /* the foreground process does not know it */
            text_copy(run->supervisor->channel.page->key, CHANNEL_KEY_SIZE,
                      lh_key_at(run->lease, i));
        atomic_store(&run->supervisor->channel.page->tokens[i], token);
    }
}

static bool set_environment(const struct run_state *run, int deadline)
{
    char number[16];
    const struct context *context = run->context;
    (void)snprintf(number, sizeof number, "%d", deadline);
    return nested_export(context, run->lease) && setenv("LEASEHOLD_KEY", run->keys, 1) == 0 &&
           setenv("LEASEHOLD_TOKEN", run->tokens, 1) == 0 &&
           setenv("LEASEHOLD_HOLDER", context->settings.holder, 1) == 0 &&
           setenv("LEASEHOLD_STORE", context->url, 1) == 0 &&
           setenv("LEASEHOLD_DEADLINE_FD", number, 1) == 0;
}

/* EXIT_DONE, or the exit status after printing the error. */
static int supervised_start(struct run_state *run, const char *path, bool tees_output)
{
    const struct context *context = run->context;
    int pipes[2], alive = lh_liveness_fd(context->client), error = 0;
    if (tees_output && tee_open(&run->tee) == 0)
        run->supervisor->tee = &run->tee;
    if ((tees_output && run->supervisor->tee == NULL) || pipe2(pipes, O_CLOEXEC) != 0)
        return output_error(context, LH_FAILED, "cannot create a pipe or a thread for the command");
    run->lost_pipe = pipes[1];
    update_deadline(run);
    if (fcntl(pipes[0], F_SETFD, 0) != 0 || !set_environment(run, pipes[0]))
        error = -ENOMEM;
    else
        error = supervisor_start(run->supervisor, path, context->program, environ, alive);
    (void)close(pipes[0]);
    if (alive >= 0)
        (void)close(alive);
    if (error == 0)
        return EXIT_DONE;
    if (error == -EAGAIN || error == -ENOMEM || error == -EOWNERDEAD)
        return output_error(context, LH_FAILED, "cannot fork: %s", strerror(-error));
    (void)output_error(context, LH_USAGE, "%s: %s", context->program[0], strerror(-error));
    return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void supervised_step(struct run_state *run)
{
    if (supervisor_wait(run->supervisor, lh_fd(run->context->client)))
        (void)lh_step(run->context->client);
    update_deadline(run);
    if (run->lost && run->supervisor->started && !run->loss_handled)
        handle_loss(run);
    check_max_hold(run);
}

/* ---- the end ---- */

static int supervised_finish(struct run_state *run, const struct run_mode *mode)
{
    bool stopped = run->lost_running && run->context->settings.on_lost != LOST_WARN;
    int status = run->timed_out ? EXIT_TIMEOUT : child_exit_status(&run->supervisor->child);
    /* No process is left to kill, however long the store takes. */
    supervisor_set_deadline(run->supervisor, CHANNEL_NEVER, CHANNEL_NEVER);
    return mode->finish(run, stopped ? EXIT_LOST : status);
}

/* One command. */
static int supervised_run(struct run_state *run, const char *path, const struct run_mode *mode)
{
    struct context *context = run->context;
    struct supervisor *supervisor = run->supervisor;
    int status = mode->acquire(run);
    if (run->lease == NULL)
        return status;
    run->began_ms = supervisor_now_ms();
    list_keys(run);
    while (supervisor_is_wanted(supervisor) && supervisor_is_paused(supervisor) && !run->lost)
        supervised_step(run);
    if (supervisor->end_signal != 0 || supervisor->foreground_is_gone)
        status = EXIT_SIGNAL + supervisor->end_signal;
    else if (run->lost)
        status = output_report(context, NULL, &run->loss);
    else
        status = supervised_start(run, path, mode->tees_output);
    if (status != EXIT_DONE) {
        (void)lh_abandon(&run->lease, NULL); /* no cooldown: the command did not start */
        return status;
    }
    if (context->settings.max_hold_ms > 0)
        supervisor->wake_at_ms = run->began_ms + context->settings.max_hold_ms;
    while (!supervisor_is_done(supervisor))
        supervised_step(run);
    return supervised_finish(run, mode);
}

int run_supervised(struct context *context, struct supervisor *supervisor, const char *path,
                   const struct run_mode *mode)
{
    static struct run_state run;
    int status = context_open_store_to_acquire(context);
    if (status == EXIT_DONE)
        status = nested_check(context);
    if (status != EXIT_DONE)
        return status;
    do {
        run = (struct run_state){.context = context, .supervisor = supervisor, .lost_pipe = -1};
        supervisor_reset(supervisor);
        status = supervised_run(&run, path, mode);
        if (run.lost_pipe >= 0)
            (void)close(run.lost_pipe);
    } while (mode->repeats != NULL && supervisor->end_signal == 0 &&
             !supervisor->foreground_is_gone && mode->repeats(&run, status));
    return status;
}

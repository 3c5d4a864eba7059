/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold run: holds keys while a command works. Finds out whether that can be done at all, makes
 * the guardian, and stays: the shell's job, and the last resort when the guardian dies. What `run`
 * holds and tells in the guardian is here too.
 */
#include "face/cli/run.h"

#include "io/host.h"
#include "runtime/front.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TTL_LEAST_MS = 2000 };

/* The pid that the user knows, and can send signals to, is ours and not the guardian's. */
static void name_holder(struct visit *visit, char *words, size_t size)
{
    char host[HOST_NAME_MAX + 1] = "";
    const char *known = visit_holder(visit);
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "host");
    (void)snprintf(words, size, "%.100s:%ld", host, (long)getpid());
    visit->settings.holder = known != NULL ? known : words;
}

/* The guardian was killed: nothing of the command is left, and what it held is given back. */
static int bury(struct visit *visit, const struct front *front)
{
    const struct link_page *page = front->link.page;
    int status = say_trouble(visit, LH_FAILED, "the guardian process was killed; %s",
                             atomic_load(&page->tokens[0]) != 0
                                 ? "the command was killed and the lock is given back"
                                 : "nothing was started");
    if (atomic_load(&page->tokens[0]) == 0 || visit_open(visit) != EXIT_DONE)
        return status;
    for (size_t i = 0; i < visit->word_count; i++) {
        uint64_t token = atomic_load(&page->tokens[i]);
        if (token != 0)
            (void)lh_give_back(visit->client, visit->words[i], token, /* cooldown_ms= */ 0, NULL);
    }
    return status;
}

/* The guardian hangs; or both of us were stopped, perhaps until the lease was over. */
static int say_late(struct visit *visit, const struct front *front)
{
    int64_t over_ms = front->killed_ms - atomic_load(&front->link.page->lease_ends_ms);
    char ago[DURATION_SHOWN];
    if (over_ms < 0)
        return say_trouble(visit, LH_LOST,
                           "lost: the guardian did not end the command in time; it was killed "
                           "before the lease ended");
    return say_trouble(visit, LH_LOST,
                       "lost: the lease ended %s ago, before the command was killed; somebody else "
                       "may have held it since, and writes in between are refused only where "
                       "tokens are checked",
                       duration_show(over_ms, ago));
}

static int stay(struct visit *visit, struct front *front)
{
    int status = EXIT_INTERNAL;
    switch (front_attend(front, &status)) {
    case FRONT_ENDED:
        break;
    case FRONT_ALONE:
        status = bury(visit, front);
        break;
    case FRONT_LATE:
        status = say_late(visit, front);
        break;
    }
    front_done(front);
    return status;
}

static int by_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int run_command(struct visit *visit, const struct way *way)
{
    char path[PATH_MAX], holder[LH_HOLDER_SIZE];
    struct front front;
    struct guardian guardian;
    if (visit->settings.ttl_ms < TTL_LEAST_MS)
        return say_usage(visit,
                         "--ttl: %s needs at least 2s, so that the command can be ended "
                         "before the lease is",
                         visit->command->name);
    int status = visit_find_program(visit, path, sizeof path, "no lock was taken");
    if (status == EXIT_DONE)
        status = visit_url(visit);
    if (status != EXIT_DONE)
        return status;
    visit_warn_of_defaults(visit);
    name_holder(visit, holder, sizeof holder);
    int role = front_fork(&front, &guardian);
    if (role < 0)
        return say_trouble(visit, LH_FAILED, "no second process can be made: %s", strerror(-role));
    return role == 0 ? stay(visit, &front) : run_guarded(visit, &guardian, path, way);
}

/* ---- in the guardian ---- */

static int take(struct work *work)
{
    struct visit *visit = work->visit;
    struct lh_acquire_options options;
    take_options(visit, &options);
    options.on_lost = work_lost;
    options.user = work;
    return take_keys(visit, visit->words, visit->word_count, &options, &work->lease);
}

static void tell(const struct work *work, const struct lh_report *released, int status)
{
    static char line[LIST_SIZE + LINE_SIZE];
    const struct visit *visit = work->visit;
    struct text text;
    bool lost = work->lost_running;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", lh_outcome_name(lost ? LH_LOST : LH_OK));
    if (lost)
        json_add_words(&text, "refusal", say_refusal_word(&work->loss));
    json_add_words(&text, "key", work->keys);
    json_add_words(&text, "token", work->tokens);
    json_add_number(&text, "exit_status", status);
    json_add_length(&text, "held_ms", host_boot_ms() - work->began_ms);
    json_add_words(&text, "released", lh_outcome_name(released->outcome));
    json_add_words(&text, "text", lost ? work->loss.text : released->text);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    text_add(&text, "\n");
    (void)say_to_status_file(visit, line);
    if (visit->settings.json)
        (void)fputs(line, stderr);
}

static int finish(struct work *work, int status)
{
    struct lh_report report;
    const struct visit *visit = work->visit;
    if (status == 0 || visit->settings.cooldown_on == COOLDOWN_ON_ANY)
        (void)lh_release(&work->lease, &report);
    else
        (void)lh_abandon(&work->lease, &report);
    if (report.outcome != LH_OK && !work->lost && !visit->settings.json)
        fprintf(stderr, "%s\n", report.text);
    if (visit->settings.json || visit->settings.status_file != NULL)
        tell(work, &report, status);
    return status;
}

static int run_run(struct visit *visit)
{
    static const struct way way = {.take = take, .finish = finish};
    if (visit->program == NULL || visit->program[0] == NULL)
        return say_usage(visit, "say what to run: leasehold run KEY... -- CMD...");
    int status = take_check_keys(visit, visit->words, visit->word_count);
    if (status != EXIT_DONE)
        return status;
    /* As they are taken, and as both of us number the tokens. */
    qsort((void *)visit->words, visit->word_count, sizeof visit->words[0], by_words);
    return run_command(visit, &way);
}

static const char *const lost_words[] = {
    [LOST_TERM] = "term", [LOST_KILL] = "kill", [LOST_WARN] = "warn", NULL};
static const struct option option_on_lost = {
    .name = "on-lost",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, on_lost),
    .value = "HOW",
    .choices = lost_words,
    .usual = "term",
    .does = "when the lock is lost: term, and kill after the grace; kill at once; or only warn"};
static const struct option option_kill_grace = {
    .name = "kill-grace",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, kill_grace_ms),
    .value = "DUR",
    .most = (int64_t)24 * 3600 * 1000,
    .usual = "5s",
    .does = "how long a command may take to end once the lock is lost; at most a sixth of the TTL"};

static const char *const cooldown_words[] = {
    [COOLDOWN_ON_SUCCESS] = "success", [COOLDOWN_ON_ANY] = "any", NULL};
static const struct option option_cooldown_on = {
    .name = "cooldown-on",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, cooldown_on),
    .value = "WHEN",
    .choices = cooldown_words,
    .usual = "success",
    .does = "the cooldown begins after a success only, or after any end of the command"};

static const struct option *const run_options[] = {TAKING_OPTIONS, &option_cooldown_on,
                                                   &option_on_lost, &option_kill_grace, NULL};

const struct command command_run = {
    .name = "run",
    .words = "KEY... -- CMD...",
    .summary = "hold the key(s) while CMD runs; its exit status becomes ours",
    .about =
        "Takes KEY, runs CMD without a shell in between, and gives KEY back when CMD and its "
        "process group have ended. CMD works as under a shell: it has the terminal, stdin and "
        "signals; Ctrl-C and Ctrl-Z do what they always do. A job that is stopped keeps its lock, "
        "which is renewed all the time.\n\n"
        "CMD gets LEASEHOLD_KEY, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER, LEASEHOLD_STORE and "
        "LEASEHOLD_DEADLINE_FD, a pipe that closes when the lock is lost. With several keys, "
        "which are taken in sorted order, all or none, the first two are lists parted by "
        "spaces.\n\n"
        "When the lock is lost, all that CMD started is ended before anybody else can get it: "
        "TERM, and KILL after the grace; the exit status is 76. If leasehold itself is killed, "
        "all of it is killed. What still runs in CMD's process group when CMD has ended gets "
        "TERM, and KILL a quarter of a second later. A process in a session of its own (a "
        "daemon) may stay when CMD ends by itself, but not when the lock is lost.\n\n"
        "With --cooldown the key cools after CMD has succeeded. A CMD that fails, or is ended by a "
        "signal, starts no cooldown, so that it can be tried again, unless --cooldown-on any says "
        "that it does. A CMD that could not be started never starts one.\n\n"
        "A run of the same key within CMD is refused: it would wait for itself. The "
        "TTL is at least 2s, so that there is time to end CMD in.",
    .example = "  leasehold run nightly -- ./backup.sh\n"
               "  leasehold run -n deploy/api --cooldown 5m -- make deploy",
    .options = run_options,
    .least_words = 1,
    .most_words = LH_KEYS_MAX,
    .takes_program = true,
    .run = run_run,
};

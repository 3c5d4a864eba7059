/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold run: holds keys while a command runs. Checks the arguments, forks the supervisor, and
 * stays the foreground process: the shell's job, which kills the command if the supervisor dies or
 * hangs. The acquire and finish steps of `run`, which run in the supervisor, are here too.
 */
#include "face/cli/metrics_file.h"
#include "face/cli/run_command.h"

#include "run/foreground.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MIN_MS = 2000 };

void run_set_holder(struct context *context, pid_t pid, char *buffer, size_t size)
{
    char host[HOST_NAME_MAX + 1] = "";
    const char *known = context_holder(context);
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "host");
    (void)snprintf(buffer, size, "%.100s:%ld", host, (long)pid);
    context->settings.holder = known != NULL ? known : buffer;
}

/* The supervisor was killed. The command is dead already; releases the keys by their tokens. */
static int handle_supervisor_death(struct context *context, const struct foreground *foreground)
{
    const struct channel_page *page = foreground->channel.page;
    int status = output_error(context, LH_FAILED, "the supervisor process was killed; %s",
                              atomic_load(&page->tokens[0]) != 0
                                  ? "the command was killed and the lock is released"
                                  : "nothing was started");
    if (atomic_load(&page->tokens[0]) == 0)
        return status;
    metrics_file_count(/* granted= */ true, LH_FAILED);
    if (context_open_store(context) != EXIT_DONE)
        return status;
    if (context->arg_count == 0)
        (void)lh_release_token(context->client, page->key, atomic_load(&page->tokens[0]),
                               /* cooldown_ms= */ 0, NULL);
    for (size_t i = 0; i < context->arg_count; i++) {
        uint64_t token = atomic_load(&page->tokens[i]);
        if (token != 0)
            (void)lh_release_token(context->client, context->args[i], token, /* cooldown_ms= */ 0,
                                   NULL);
    }
    return status;
}

/* The supervisor hangs, or both processes were stopped, possibly past the end of the lease. */
static int report_late(struct context *context, const struct foreground *foreground)
{
    int64_t over_ms = foreground->killed_ms - atomic_load(&foreground->channel.page->lease_ends_ms);
    char ago[DURATION_SHOWN];
    metrics_file_count(/* granted= */ true, LH_LOST);
    metrics_file_update(context);
    if (over_ms < 0)
        return output_error(context, LH_LOST,
                            "lost: the supervisor did not end the command in time; the command was "
                            "killed before the lease ended");
    return output_error(
        context, LH_LOST,
        "lost: the lease ended %s ago, before the command was killed; another process "
        "may have held it since, and writes in between are refused only where "
        "tokens are checked",
        duration_show(over_ms, ago));
}

static int run_foreground(struct context *context, struct foreground *foreground)
{
    int status = EXIT_INTERNAL;
    switch (foreground_wait(foreground, &status)) {
    case FOREGROUND_ENDED:
        break;
    case FOREGROUND_ORPHANED:
        status = handle_supervisor_death(context, foreground);
        break;
    case FOREGROUND_LATE:
        status = report_late(context, foreground);
        break;
    }
    foreground_done(foreground);
    return status;
}

int run_use_shell(struct context *context)
{
    static char path[] = "/bin/sh", flag[] = "-c";
    static char *program[] = {path, flag, NULL, NULL};
    if (context->settings.shell == NULL)
        return EXIT_DONE;
    if (context->program != NULL)
        return usage_error(context, "give -c STRING or -- CMD, not both");
    program[2] = strdup(context->settings.shell);
    if (program[2] == NULL)
        return output_error(context, LH_FAILED, "out of memory");
    context->program = program;
    return EXIT_DONE;
}

static int compare_args(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int run_command(struct context *context, const struct run_mode *mode)
{
    char path[PATH_MAX], holder[LH_HOLDER_SIZE];
    struct foreground foreground;
    struct supervisor supervisor;
    int64_t ttl_ms = context->settings.ttl_ms; /* 0: the store's default, which is longer */
    if (ttl_ms != 0 && ttl_ms < TTL_MIN_MS)
        return usage_error(context,
                           "--ttl: %s needs at least 2s, so that the command can be ended "
                           "before the lease ends",
                           context->command->name);
    int status = context_find_program(context, path, sizeof path, "no lock was acquired");
    if (status == EXIT_DONE)
        status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
    context_warn_other_stores(context);
    /* The process that users see and can signal. */
    run_set_holder(context, getpid(), holder, sizeof holder);
    int role = foreground_fork(&foreground, &supervisor);
    if (role < 0)
        return output_error(context, LH_FAILED, "cannot fork the supervisor process: %s",
                            strerror(-role));
    return role == 0 ? run_foreground(context, &foreground)
                     : run_supervised(context, &supervisor, path, mode);
}

/* ---- in the supervisor ---- */

static int run_acquire_keys(struct run_state *run)
{
    struct context *context = run->context;
    struct lh_acquire_options options;
    acquire_fill_options(context, &options);
    options.on_lost = run_on_lost;
    options.user = run;
    return acquire_keys(context, context->args, context->arg_count, &options, &run->lease);
}

static void run_report(const struct run_state *run, const struct lh_report *released, int status)
{
    static char line[LIST_SIZE + LINE_SIZE];
    const struct context *context = run->context;
    struct text text;
    bool lost = run->lost_running;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(lost ? LH_LOST : LH_OK));
    if (lost)
        json_add_string(&text, "refusal", report_refusal_word(&run->loss));
    json_add_string(&text, "key", run->keys);
    json_add_string(&text, "token", run->tokens);
    json_add_number(&text, "exit_status", status);
    json_add_length(&text, "held_ms", supervisor_now_ms() - run->began_ms);
    json_add_string(&text, "released", lh_outcome_name(released->outcome));
    json_add_string(&text, "text", lost ? run->loss.text : released->text);
    json_add_bool(&text, "timed_out", run->timed_out);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    text_add(&text, "\n");
    (void)write_status_file(context, line);
    if (context->settings.json)
        (void)fputs(line, stderr);
}

static int run_finish(struct run_state *run, int status)
{
    struct lh_report report = LH_REPORT_INIT;
    struct context *context = run->context;
    if (status == 0 || context->settings.cooldown_on == COOLDOWN_ON_ANY)
        (void)lh_release(&run->lease, &report);
    else
        (void)lh_abandon(&run->lease, &report);
    if (report.outcome == LH_OK)
        output_released(context, run->keys, supervisor_now_ms() - run->began_ms);
    if (report.outcome != LH_OK && !run->lost && !context->settings.json)
        fprintf(stderr, "%s\n", report.text);
    metrics_file_update(context); /* the object is the last line on stderr */
    if (context->settings.json || context->settings.status_file != NULL)
        run_report(run, &report, status);
    return status;
}

static int cmd_run(struct context *context)
{
    static const struct run_mode mode = {.acquire = run_acquire_keys, .finish = run_finish};
    int status = run_use_shell(context);
    if (status != EXIT_DONE)
        return status;
    if (context->program == NULL || context->program[0] == NULL)
        return usage_error(context, "no command to run; usage: leasehold run KEY... -- CMD...");
    status = check_keys(context, context->args, context->arg_count);
    if (status != EXIT_DONE)
        return status;
    /* The order of acquisition, and of channel_page.tokens in both processes. */
    qsort((void *)context->args, context->arg_count, sizeof context->args[0], compare_args);
    return run_command(context, &mode);
}

const char *const run_lost_names[] = {
    [LOST_TERM] = "term", [LOST_KILL] = "kill", [LOST_WARN] = "warn", NULL};
const struct option option_on_lost = {
    .name = "on-lost",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, on_lost),
    .value = "HOW",
    .choices = run_lost_names,
    .default_value = "term",
    .help = "if the lock is lost: term, and kill after the grace; kill at once; or only warn"};
const struct option option_kill_grace = {
    .name = "kill-grace",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, kill_grace_ms),
    .value = "DUR",
    .max = (int64_t)24 * 3600 * 1000,
    .default_value = "5s",
    .help = "time between TERM and KILL, if the lock is lost at most a sixth of the TTL"};

static const char *const cooldown_names[] = {
    [COOLDOWN_ON_SUCCESS] = "success", [COOLDOWN_ON_ANY] = "any", NULL};
static const struct option option_cooldown_on = {
    .name = "cooldown-on",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, cooldown_on),
    .value = "WHEN",
    .choices = cooldown_names,
    .default_value = "success",
    .help = "start the cooldown after success only, or after any end of the command"};

static const struct option *const run_options[] = {ACQUIRE_OPTIONS,
                                                   &option_command,
                                                   &option_max_hold,
                                                   &option_cooldown_on,
                                                   &option_on_lost,
                                                   &option_kill_grace,
                                                   NULL};

const struct command command_run = {
    .name = "run",
    .args = "KEY... -- CMD...",
    .summary = "hold keys while CMD runs, and exit with its status",
    .about =
        "Acquires KEY, runs CMD without a shell, and releases KEY when CMD and its process group "
        "have ended. CMD has the terminal, stdin and signals as under a shell; Ctrl-C and Ctrl-Z "
        "work as usual. A stopped job keeps its lock, which leasehold continues to renew.\n\n"
        "The environment of CMD has LEASEHOLD_KEY, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER, "
        "LEASEHOLD_STORE and LEASEHOLD_DEADLINE_FD, a pipe that closes when the lock is lost. "
        "Several keys are acquired in sorted order, all or none; LEASEHOLD_KEY and "
        "LEASEHOLD_TOKEN are then lists separated by spaces.\n\n"
        "If the lock is lost, all processes that CMD started are ended before another holder can "
        "acquire it: by TERM, and by KILL after the grace period. The exit status is then 76. If "
        "leasehold itself is killed, they are killed too. Processes that remain in the process "
        "group of CMD when CMD ends get TERM, and KILL 250 ms later. A process in its own session "
        "(a daemon) may outlive CMD, but not a lost lock.\n\n"
        "With --cooldown the key cools down after CMD has succeeded. A CMD that fails, or is ended "
        "by a signal, starts no cooldown, so that it can be retried, unless --cooldown-on is any. "
        "A CMD that could not be started never starts one.\n\n"
        "With --max-hold CMD is ended in the same way if it takes longer: by TERM, and by KILL "
        "after "
        "--kill-grace. The exit status is then 124, and the run has failed.\n\n"
        "A nested run of the same key within CMD is refused, since it would wait for itself. The "
        "TTL must be at least 2s, which leaves time to end CMD before the lease ends.",
    .example = "  leasehold run nightly -- ./backup.sh\n"
               "  leasehold run -n nightly --max-hold 1h -c 'dump | gzip >backup.gz'\n"
               "  leasehold run -n deploy/api --cooldown 5m -- make deploy",
    .options = run_options,
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .takes_program = true,
    .run = cmd_run,
};

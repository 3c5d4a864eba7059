/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold once ID -- CMD: claims ID, runs CMD as `run` does, and stores its exit status and last
 * line; or prints what was stored before. All but once_run() runs in the supervisor.
 */
#include "face/cli/ids.h"

#include "face/cli/metrics_file.h"
#include "face/cli/run_command.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { KILL_GRACE_MS = 5000 };

static const char prefix[] = "once:"; /* of the key of an id */

static const char *once_run_id(const struct context *context)
{
    return context->args[0] + sizeof prefix - 1;
}

/* ---- done before ---- */

static void output_stored(const struct context *context, const struct lh_once *once,
                          const struct lh_report *report)
{
    char ago[DURATION_SHOWN] = "a while", rest[DURATION_SHOWN] = "an unknown time";
    if (report->since_ms >= 0)
        (void)duration_show(report->since_ms, ago);
    if (report->ends_in_ms >= 0)
        (void)duration_show(report->ends_in_ms, rest);
    fprintf(stderr, "%s: %s was done by %s %s ago, with exit status %d; kept for %s\n",
            ids_state_name(once, report), once_run_id(context),
            report->holder[0] != '\0' ? report->holder : "an unknown holder", ago, once->status,
            rest);
}

static void output_stored_json(const struct context *context, const struct lh_once *once,
                               const struct lh_report *report)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(report->outcome));
    json_add_string(&text, "refusal", report_refusal_word(report));
    json_add_bool(&text, "ran", false);
    ids_to_json(&text, once_run_id(context), once, report);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    fprintf(stderr, "%s\n", line);
}

/* Prints the same line and returns the same status as the CMD that ran. */
static int report_stored(const struct context *context, const struct lh_once *once,
                         const struct lh_report *report)
{
    if (once->result[0] != '\0')
        puts(once->result);
    if (context->settings.json)
        output_stored_json(context, once, report);
    else if (!context->settings.quiet)
        output_stored(context, once, report);
    return once->status;
}

/* ---- done now ---- */

static int once_run_acquire(struct run_state *run)
{
    struct context *context = run->context;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    options.payload = context->settings.payload_hash;
    options.ttl_ms = context->settings.ttl_ms;
    options.wait_ms = context->settings.wait_ms;
    options.on_lost = run_on_lost;
    options.user = run;
    int status =
        acquire_claim(context, once_run_id(context), &options, &run->lease, &once, &report);
    if (status != EXIT_DONE || run->lease != NULL)
        return status;
    metrics_file_update(context); /* before the report */
    if (report.outcome == LH_DONE)
        return report_stored(context, &once, &report);
    return output_report(context, once_run_id(context), &report);
}

/* True if a signal from outside ended CMD. That is not a failure of CMD. */
static bool was_interrupted(const struct child *child)
{
    int number = WIFSIGNALED(child->wait_status) ? WTERMSIG(child->wait_status) : 0;
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM ||
           number == SIGKILL;
}

static void once_run_report(const struct run_state *run, const struct lh_report *report,
                            const char *state, const struct lh_completion *done)
{
    char line[LINE_SIZE];
    struct text text;
    bool lost = run->lost_running;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(lost ? LH_LOST : report->outcome));
    if (lost || report->outcome != LH_OK)
        json_add_string(&text, "refusal", report_refusal_word(lost ? &run->loss : report));
    json_add_bool(&text, "ran", true);
    json_add_string(&text, "id", once_run_id(run->context));
    json_add_string(&text, "state", state);
    json_add_string(&text, "token", run->tokens);
    json_add_number(&text, "exit_status", done->status);
    json_add_string(&text, "result", done->result);
    json_add_length(&text, "held_ms", supervisor_now_ms() - run->began_ms);
    json_add_string(&text, "text", lost ? run->loss.text : report->text);
    json_add_bool(&text, "timed_out", run->timed_out);
    json_add_string(&text, "store", run->context->shown);
    json_end(&text);
    fprintf(stderr, "%s\n", line);
}

/* Reports an error of the output, which CMD, writing to a pipe, did not see. */
static void check_output(const struct tee *tee, struct lh_report *report)
{
    if (tee->trouble == 0)
        return;
    report->outcome = LH_FAILED;
    (void)snprintf(report->text, sizeof report->text,
                   "failed: the command succeeded, but its output could not be written: %s",
                   strerror(tee->trouble));
}

static int once_run_finish(struct run_state *run, int status)
{
    struct context *context = run->context;
    bool failed = status != 0, over = tee_is_done(&run->tee);
    bool kept = !failed || (context->settings.keep_failures &&
                            (run->timed_out || !was_interrupted(&run->supervisor->child)));
    bool keeps = kept && !run->lost_running;
    char result[LAST_LINE_MOST + 1] = "";
    struct lh_completion done;
    struct lh_report report = LH_REPORT_INIT;
    (void)ids_read_done(context, &done);
    if (over)
        last_line_read(&run->tee.line, result);
    done.status = status;
    done.result = result;
    if (keeps)
        (void)lh_finish(&run->lease, &done, &report);
    else
        (void)lh_release(&run->lease, &report);
    const char *state = report.outcome != LH_OK ? NULL
                        : !keeps                ? "new"
                        : failed                ? "failed"
                                                : "done";
    if (report.outcome == LH_OK && !failed && over)
        check_output(&run->tee, &report);
    if (report.outcome == LH_OK)
        output_released(context, run->keys, supervisor_now_ms() - run->began_ms);
    metrics_file_update(context); /* the object is the last line on stderr */
    if (context->settings.json)
        once_run_report(run, &report, state, &done);
    else if (report.outcome != LH_OK && !run->lost_running)
        fprintf(stderr, "%s\n", report.text);
    /* A result that is not stored means CMD will run again: this outranks its exit status. */
    return keeps && report.outcome != LH_OK ? outcome_exit_status(report.outcome) : status;
}

int once_run(struct context *context)
{
    static const struct run_mode mode = {
        .acquire = once_run_acquire, .finish = once_run_finish, .tees_output = true};
    static char key[LH_KEY_SIZE + sizeof prefix];
    struct lh_completion done;
    if (context->arg_count != 1 || context->program[0] == NULL)
        return usage_error(context, "no command to run; usage: leasehold once ID -- CMD...");
    if (context->settings.token != 0 || context->settings.result != NULL)
        return usage_error(context, "--token and --result are for the steps, not for CMD");
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE) {
        static char hash[IDS_HASH_SIZE];
        status = ids_read_payload(context, hash, &context->settings.payload_hash);
    }
    if (status == EXIT_DONE)
        status = ids_read_done(context, &done);
    if (status != EXIT_DONE)
        return status;
    (void)snprintf(key, sizeof key, "%s%s", prefix, context->args[0]);
    context->args[0] = key; /* the key to hold, and to release if the supervisor dies */
    context->settings.kill_grace_ms = KILL_GRACE_MS;
    return run_command(context, &mode);
}

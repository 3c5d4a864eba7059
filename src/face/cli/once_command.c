/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold once ID -- CMD: claims ID, works CMD as `run` does, and remembers how it ended and its
 * last line; or tells what is remembered of it. In the guardian, but for the checks.
 */
#include "face/cli/ids.h"

#include "face/cli/run.h"
#include "io/host.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { KILL_GRACE_MS = 5000 };

static const char prefix[] = "once:"; /* how the key of an id begins */

static const char *id_of(const struct visit *visit)
{
    return visit->words[0] + sizeof prefix - 1;
}

/* ---- done before ---- */

static void say_stored(const struct visit *visit, const struct lh_once *once,
                       const struct lh_report *report)
{
    char ago[DURATION_SHOWN] = "a while", rest[DURATION_SHOWN] = "an unknown time";
    if (report->since_ms >= 0)
        (void)duration_show(report->since_ms, ago);
    if (report->ends_in_ms >= 0)
        (void)duration_show(report->ends_in_ms, rest);
    fprintf(stderr, "%s: %s was done by %s %s ago, with exit status %d; remembered for %s\n",
            ids_state(once, report), id_of(visit),
            report->holder[0] != '\0' ? report->holder : "somebody", ago, once->status, rest);
}

static void say_stored_json(const struct visit *visit, const struct lh_once *once,
                            const struct lh_report *report)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", lh_outcome_name(report->outcome));
    json_add_words(&text, "refusal", say_refusal_word(report));
    json_add_bool(&text, "ran", false);
    ids_add(&text, id_of(visit), once, report);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    fprintf(stderr, "%s\n", line);
}

/* The line on stdout and the status are what CMD itself would have given. */
static int tell_stored(const struct visit *visit, const struct lh_once *once,
                       const struct lh_report *report)
{
    if (once->result[0] != '\0')
        puts(once->result);
    if (visit->settings.json)
        say_stored_json(visit, once, report);
    else if (!visit->settings.quiet)
        say_stored(visit, once, report);
    return once->status;
}

/* ---- done now ---- */

static int take(struct work *work)
{
    struct visit *visit = work->visit;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_once once;
    struct lh_report report;
    options.payload = visit->settings.payload_hash;
    options.ttl_ms = visit->settings.ttl_ms;
    options.wait_ms = visit->settings.wait_ms;
    options.on_lost = work_lost;
    options.user = work;
    int status = take_claim(visit, id_of(visit), &options, &work->lease, &once, &report);
    if (status != EXIT_DONE || work->lease != NULL)
        return status;
    if (report.outcome == LH_COOLING)
        return tell_stored(visit, &once, &report);
    return say_report(visit, id_of(visit), &report);
}

/* By somebody who did not want it to come to its own end; that is no failure of the thing. */
static bool was_ended(const struct job *job)
{
    int number = WIFSIGNALED(job->wait_status) ? WTERMSIG(job->wait_status) : 0;
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM ||
           number == SIGKILL;
}

static void tell(const struct work *work, const struct lh_report *report, const char *state,
                 const struct lh_done *done)
{
    char line[LINE_SIZE];
    struct text text;
    bool lost = work->lost_running;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", lh_outcome_name(lost ? LH_LOST : report->outcome));
    if (lost || report->outcome != LH_OK)
        json_add_words(&text, "refusal", say_refusal_word(lost ? &work->loss : report));
    json_add_bool(&text, "ran", true);
    json_add_words(&text, "id", id_of(work->visit));
    json_add_words(&text, "state", state);
    json_add_words(&text, "token", work->tokens);
    json_add_number(&text, "exit_status", done->status);
    json_add_words(&text, "result", done->result);
    json_add_length(&text, "held_ms", host_boot_ms() - work->began_ms);
    json_add_words(&text, "text", lost ? work->loss.text : report->text);
    json_add_words(&text, "store", work->visit->shown);
    json_end(&text);
    fprintf(stderr, "%s\n", line);
}

/* CMD could not see it, so we must say it. */
static void check_output(const struct tap *tap, struct lh_report *report)
{
    if (tap->trouble == 0)
        return;
    report->outcome = LH_FAILED;
    (void)snprintf(report->text, sizeof report->text,
                   "failed: it was done, but its output could not be written: %s",
                   strerror(tap->trouble));
}

static int finish(struct work *work, int status)
{
    const struct visit *visit = work->visit;
    bool failed = status != 0, over = tap_is_over(&work->tap);
    bool kept = !failed || (visit->settings.keep_failures && !was_ended(&work->guardian->job));
    bool keeps = kept && !work->lost_running;
    char result[LAST_LINE_MOST + 1] = "";
    struct lh_done done;
    struct lh_report report;
    (void)ids_done(visit, &done);
    if (over)
        last_line_read(&work->tap.line, result);
    done.status = status;
    done.result = result;
    if (keeps)
        (void)lh_finish(&work->lease, &done, &report);
    else
        (void)lh_release(&work->lease, &report);
    const char *state = report.outcome != LH_OK ? NULL
                        : !keeps                ? "new"
                        : failed                ? "failed"
                                                : "done";
    if (report.outcome == LH_OK && !failed && over)
        check_output(&work->tap, &report);
    if (visit->settings.json)
        tell(work, &report, state, &done);
    else if (report.outcome != LH_OK && !work->lost_running)
        fprintf(stderr, "%s\n", report.text);
    /* What is not remembered will be done again: that counts more than how it went. */
    return keeps && report.outcome != LH_OK ? say_status(report.outcome) : status;
}

int once_command(struct visit *visit)
{
    static const struct way way = {.take = take, .finish = finish, .taps = true};
    static char key[LH_KEY_SIZE + sizeof prefix];
    struct lh_done done;
    if (visit->word_count != 1 || visit->program[0] == NULL)
        return say_usage(visit, "say what to run: leasehold once ID -- CMD...");
    if (visit->settings.token != 0 || visit->settings.result != NULL)
        return say_usage(visit, "--token and --result are for the steps: CMD gives its own");
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE) {
        static char hash[IDS_HASH_SIZE];
        status = ids_payload(visit, hash, &visit->settings.payload_hash);
    }
    if (status == EXIT_DONE)
        status = ids_done(visit, &done);
    if (status != EXIT_DONE)
        return status;
    (void)snprintf(key, sizeof key, "%s%s", prefix, visit->words[0]);
    visit->words[0] = key; /* what is held, also for whoever buries the guardian */
    visit->settings.kill_grace_ms = KILL_GRACE_MS;
    return run_command(visit, &way);
}

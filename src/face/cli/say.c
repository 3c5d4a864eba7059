/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes, refusals and keys, in words for people and in JSON for programs. --json changes the
 * form and not the place: answers go to stdout, refusals and errors to stderr. Exit statuses come
 * from one table.
 */
#include "face/cli/cli.h"

#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int say_status(enum lh_outcome outcome)
{
    static const enum exit_status statuses[] = {
        [LH_OK] = EXIT_DONE,         [LH_BUSY] = EXIT_BUSY,
        [LH_COOLING] = EXIT_COOLING, [LH_LOST] = EXIT_LOST,
        [LH_STALE] = EXIT_STALE,     [LH_UNAVAILABLE] = EXIT_UNAVAILABLE,
        [LH_DENIED] = EXIT_DENIED,   [LH_MISMATCH] = EXIT_MISMATCH,
        [LH_USAGE] = EXIT_USAGE,     [LH_FAILED] = EXIT_INTERNAL,
    };
    return (int)statuses[outcome];
}

static const char *show_time(int64_t at_ms, char out[32])
{
    struct tm parts;
    time_t seconds = (time_t)(at_ms / 1000);
    out[0] = '\0';
    if (at_ms < 0 || gmtime_r(&seconds, &parts) == NULL)
        return out;
    size_t length = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(out + length, 32 - length, ".%03dZ", (int)(at_ms % 1000));
    return out;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *say_time(int64_t ago_ms, char out[32])
{
    int64_t now_ms = wall_ms();
    return show_time(ago_ms < 0 || now_ms < 0 ? -1 : now_ms - ago_ms, out);
}

/* Now, on the clock by which the view's times are shown: the store's own where it is known. By the
 * wall clock they would differ from call to call. */
static int64_t now_of(const struct lh_view *view)
{
    bool known = view->written_at_ms >= 0 && view->written_ago_ms >= 0;
    return known ? view->written_at_ms + view->written_ago_ms : wall_ms();
}

const char *say_written(const struct lh_view *view, char out[32])
{
    return show_time(view->written_ago_ms < 0 ? -1 : now_of(view) - view->written_ago_ms, out);
}

void say_line(struct text *line, FILE *to)
{
    text_clean(line->bytes, line->length);
    (void)fprintf(to, "%s\n", line->bytes);
}

/* ---- refusals ---- */

/* The library's, or, of a report that the program made itself, the outcome's. */
const char *say_refusal_word(const struct lh_report *report)
{
    return report->refusal != NULL ? report->refusal
                                   : lh_refusal_word(LH_VERB_ANY, report->outcome);
}

/* A retry makes sense once what is in the way has ended, for others too. */
void say_report_json(const struct visit *visit, const char *key, const struct lh_report *report,
                     struct text *out)
{
    if (key == NULL && report->key[0] != '\0')
        key = report->key;
    json_begin(out);
    json_add_words(out, "outcome", lh_outcome_name(report->outcome));
    json_add_words(out, "refusal", say_refusal_word(report));
    json_add_words(out, "key", key);
    json_add_words(out, "text", report->text);
    bool later = report->ends_in_ms >= 0 && report->takeover_in_ms > report->ends_in_ms;
    int64_t free_in_ms = later ? report->takeover_in_ms : report->ends_in_ms;
    json_add_length(out, "retry_after_ms",
                    report->retry_after_ms > 0 ? report->retry_after_ms : free_in_ms);
    if (report->holder[0] != '\0')
        json_add_words(out, "holder", report->holder);
    if (visit->shown[0] != '\0')
        json_add_words(out, "store", visit->shown);
    json_end(out);
}

static void print_refusal(const struct visit *visit, const char *key,
                          const struct lh_report *report, const char *before)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (visit->settings.json) {
        say_report_json(visit, key, report, &text);
    } else {
        bool trouble = report->outcome == LH_UNAVAILABLE || report->outcome == LH_DENIED ||
                       report->outcome == LH_FAILED;
        text_add(&text, before);
        text_add(&text, report->text);
        if (trouble && visit->shown[0] != '\0' && strstr(report->text, visit->shown) == NULL) {
            text_add(&text, " (store ");
            text_add(&text, visit->shown);
            text_add(&text, ")");
        }
    }
    say_line(&text, stderr);
}

/* The last call's outcome must not look like this one's: it is written whatever went wrong. */
static void say_refusal(const struct visit *visit, const char *key, const struct lh_report *report,
                        const char *before)
{
    if (visit->settings.status_file != NULL) {
        char line[LINE_SIZE];
        struct text text;
        text_init(&text, line, sizeof line);
        say_report_json(visit, key, report, &text);
        text_add(&text, "\n");
        (void)say_to_status_file(visit, line);
    }
    print_refusal(visit, key, report, before);
}

int say_report(const struct visit *visit, const char *key, const struct lh_report *report)
{
    say_refusal(visit, key, report, "");
    if (report->outcome == LH_BUSY)
        return (int)visit->settings.conflict_status;
    return say_status(report->outcome);
}

static int say_words(const struct visit *visit, enum lh_outcome outcome, const char *format,
                     va_list arguments) __attribute__((format(printf, 3, 0)));

static int say_words(const struct visit *visit, enum lh_outcome outcome, const char *format,
                     va_list arguments)
{
    struct lh_report report = {.outcome = outcome, .since_ms = -1, .ends_in_ms = -1};
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): both callers begin it */
    (void)vsnprintf(report.text, sizeof report.text, format, arguments);
    say_refusal(visit, NULL, &report, "leasehold: ");
    return say_status(outcome);
}

int say_usage(const struct visit *visit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = say_words(visit, LH_USAGE, format, arguments);
    va_end(arguments);
    return status;
}

int say_trouble(const struct visit *visit, enum lh_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = say_words(visit, outcome, format, arguments);
    va_end(arguments);
    return status;
}

void say_detail(const struct visit *visit, const char *format, ...)
{
    char words[LH_TEXT_SIZE + URL_SIZE], line[LINE_SIZE];
    struct text text;
    va_list arguments;
    if (!visit->settings.verbose)
        return;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun one line above */
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    text_init(&text, line, sizeof line);
    if (visit->settings.json) {
        json_begin(&text);
        json_add_words(&text, "detail", words);
        json_end(&text);
    } else {
        text_add(&text, "leasehold: ");
        text_add(&text, words);
    }
    say_line(&text, stderr);
}

/* ---- keys ---- */

static const char *const state_words[] = {
    [LH_FREE] = "free",       [LH_HELD] = "held",
    [LH_OFFERED] = "offered", [LH_COOLING_DOWN] = "cooling",
    [LH_DELAYED] = "delayed", [LH_UNREADABLE] = "unreadable",
};

/* Of an id: running, done or failed; otherwise the state. */
static const char *state_word(const struct lh_view *view)
{
    if (view->kind == LH_WATERMARK)
        return "watermark";
    if (view->kind == LH_ONCE && view->state == LH_HELD)
        return "running";
    if (view->kind == LH_ONCE && view->state == LH_COOLING_DOWN)
        return view->status == 0 ? "done" : "failed";
    return state_words[view->state];
}

static void add_time(struct text *out, const char *name, int64_t now_ms, int64_t ago_ms)
{
    char words[32];
    (void)show_time(ago_ms < 0 || now_ms < 0 ? -1 : now_ms - ago_ms, words);
    json_add_words(out, name, words[0] != '\0' ? words : NULL);
}

/* What an id or a watermark has beside the fields of a lock; a lock has none of these. */
static void add_kind(const struct lh_view *view, int64_t then_ms, struct text *out)
{
    const char *result = view->result != NULL ? view->result : "";
    if (view->kind == LH_WATERMARK) {
        json_add_words(out, "kind", "watermark");
        json_add_words(out, "value", result);
        json_add_words(out, "moved_by", view->holder[0] != '\0' ? view->holder : NULL);
        add_time(out, "moved_at", now_of(view),
                 view->since_ms >= 0 ? view->since_ms + then_ms : -1);
    }
    if (view->kind != LH_ONCE)
        return;
    json_add_words(out, "kind", "once");
    if (view->state == LH_HELD || view->state == LH_COOLING_DOWN)
        json_add_words(out, "once", state_word(view));
    if (view->state == LH_COOLING_DOWN) {
        json_add_number(out, "exit_status", view->status);
        json_add_words(out, "result", result);
    }
}

void say_view_json(const struct visit *visit, const struct lh_view *view, const char *outcome,
                   bool past, struct text *out)
{
    int64_t then_ms = past && view->written_ago_ms > 0 ? view->written_ago_ms : 0;
    bool held = view->state == LH_HELD;
    bool blocked = view->state == LH_COOLING_DOWN || view->state == LH_DELAYED;
    json_begin(out);
    if (outcome != NULL)
        json_add_words(out, "outcome", outcome);
    if (outcome != NULL && visit->effect != NULL)
        json_add_words(out, "effect", visit->effect);
    json_add_words(out, "key", view->key);
    json_add_words(out, "state", state_words[view->state]);
    bool has_holder = view->holder[0] != '\0' && view->kind != LH_WATERMARK;
    json_add_words(out, "holder", has_holder ? view->holder : NULL);
    json_add_token(out, "token", view->token);
    int64_t now_ms = now_of(view);
    add_time(out, "acquired_at", now_ms,
             held && view->since_ms >= 0 ? view->since_ms + then_ms : -1);
    add_time(out, "renewed_at", now_ms,
             held && view->renewed_ago_ms >= 0 ? view->renewed_ago_ms + then_ms : -1);
    json_add_length(out, "expires_in_ms", held ? view->ends_in_ms : -1);
    json_add_length(out, "takeover_in_ms", held ? view->takeover_in_ms : -1);
    json_add_length(out, "cooling_for_ms", blocked ? view->ends_in_ms : -1);
    json_add_number(out, "waiters", view->waiters);
    json_add_object(out, "meta");
    for (size_t i = 0; i < view->meta_count; i++)
        json_add_words(out, view->meta[i].name, view->meta[i].value);
    json_end(out);
    json_add_words(out, "store", visit->shown);
    if (view->holders > 1 || view->limit > 0)
        json_add_number(out, "holders", view->holders);
    if (view->limit > 0)
        json_add_number(out, "limit", view->limit);
    if (view->reason != NULL && view->reason[0] != '\0')
        json_add_words(out, "reason", view->reason);
    if (view->written_ago_ms >= 0)
        add_time(out, "written_at", now_ms, view->written_ago_ms);
    if (view->text != NULL)
        json_add_words(out, "text", view->text);
    add_kind(view, then_ms, out);
    json_end(out);
}

static void add_span(struct text *out, const char *before, int64_t length_ms, const char *after)
{
    char words[DURATION_SHOWN];
    if (length_ms < 0)
        return;
    text_add(out, before);
    text_add(out, duration_show(length_ms, words));
    text_add(out, after);
}

static void add_holder(const struct lh_view *view, struct text *out)
{
    text_add(out, " by ");
    text_add(out, view->holder[0] != '\0' ? view->holder : "somebody");
    if (view->holders > 1) {
        text_add(out, " and ");
        text_add_u64(out, view->holders - 1);
        text_add(out, view->holders > 2 ? " others" : " other");
    }
}

static void add_watermark(const struct lh_view *view, struct text *out)
{
    text_add(out, " stands at ");
    text_add(out, view->result != NULL ? view->result : "?");
    text_add(out, ", moved");
    add_holder(view, out);
    add_span(out, " ", view->since_ms, " ago");
}

/* Others may take it over some time after its end: clocks may be apart. */
static void add_end(const struct lh_view *view, struct text *out)
{
    int64_t later_ms = view->takeover_in_ms - view->ends_in_ms;
    text_add(out, view->ends_in_ms >= 0 ? (view->kind == LH_ONCE ? " (claim" : " (lease") : "");
    if (view->ends_in_ms == 0 && later_ms > 0) {
        add_span(out, " ended; free in ", view->takeover_in_ms, "");
    } else {
        add_span(out, " ends in ", view->ends_in_ms, "");
        add_span(out, "; free ", later_ms > 0 ? later_ms : -1, " later");
    }
    text_add(out, view->ends_in_ms >= 0 ? ")" : "");
}

/* Done, failed, or held until it crashed. */
static void add_past(const struct lh_view *view, struct text *out)
{
    bool id = view->kind == LH_ONCE && view->state == LH_COOLING_DOWN;
    text_add(out, view->state == LH_DELAYED ? " was held" : " was done");
    add_holder(view, out);
    add_span(out, " ", view->since_ms, " ago");
    if (view->status != 0) {
        text_add(out, " with status ");
        text_add_i64(out, view->status);
    }
    add_span(out, id ? "; kept for " : "; free in ", view->ends_in_ms, "");
    if (id && view->result != NULL && view->result[0] != '\0') {
        text_add(out, ": ");
        text_add(out, view->result);
    }
}

void say_view_line(const struct lh_view *view, struct text *out)
{
    text_add(out, state_word(view));
    text_add(out, ": ");
    text_add(out, view->key);
    if (view->kind == LH_WATERMARK) {
        add_watermark(view, out);
    } else if (view->state == LH_HELD) {
        add_holder(view, out);
        add_span(out, " for ", view->since_ms, "");
        add_end(view, out);
        text_add(out, ", token ");
        text_add_u64(out, view->token);
    } else if (view->state == LH_COOLING_DOWN || view->state == LH_DELAYED) {
        add_past(view, out);
    } else if (view->state == LH_OFFERED) {
        text_add(out, " is next for ");
        text_add(out, view->holder);
    } else if (view->state == LH_UNREADABLE) {
        text_add(out, ": ");
        text_add(out, view->text != NULL ? view->text : "?");
    }
    if (view->broken) {
        text_add(out, "; broken");
        if (view->reason != NULL && view->reason[0] != '\0') {
            text_add(out, ": ");
            text_add(out, view->reason);
        }
    }
    if (view->waiters > 0) {
        text_add(out, ", ");
        text_add_u64(out, view->waiters);
        text_add(out, " waiting");
    }
}

void say_view(const struct visit *visit, const struct lh_view *view)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (visit->settings.json)
        say_view_json(visit, view, NULL, /* past= */ false, &text);
    else
        say_view_line(view, &text);
    say_line(&text, stdout);
}

static bool show_done(void *user, const struct lh_view *view)
{
    const struct visit *visit = user;
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    say_view_json(visit, view, "ok", /* past= */ false, &text);
    say_line(&text, stdout);
    return false;
}

int say_done(struct visit *visit, const char *what, const char *key)
{
    struct lh_report report;
    if (!visit->settings.json) {
        if (!visit->settings.quiet)
            printf("%s: %s\n", what, key);
        return EXIT_DONE;
    }
    if (lh_look(visit->client, key, show_done, visit, &report) != LH_OK)
        return say_report(visit, key, &report);
    return EXIT_DONE;
}

int say_effect(struct visit *visit, const char *key, const struct lh_report *report,
               const char *hint)
{
    static const char *const effects[] = {
        [LH_EFFECT_NONE] = "none",         [LH_EFFECT_ASKED] = "asked", [LH_EFFECT_FREED] = "freed",
        [LH_EFFECT_RELEASED] = "released", [LH_EFFECT_GONE] = "gone",   [LH_EFFECT_TAKEN] = "taken",
    };
    const char *behind = strchr(report->text, ':'); /* the outcome, which is ok */
    visit->effect = effects[report->effect];
    if (visit->settings.json)
        return say_done(visit, visit->effect, key);
    if (!visit->settings.quiet)
        printf("%s%s%s\n", state_words[report->state], behind != NULL ? behind : "", hint);
    return EXIT_DONE;
}

/* ---- the status file ---- */

/* Only a file can be replaced: a pipe, or what a link such as /dev/stdout leads to, is written to.
 */
static bool is_replaceable(const char *path)
{
    struct stat status;
    return lstat(path, &status) != 0 || S_ISREG(status.st_mode);
}

static bool write_lines(const char *path, const char *how, const char *lines)
{
    FILE *file = fopen(path, how);
    bool written = file != NULL && fputs(lines, file) >= 0;
    return file != NULL && fclose(file) == 0 && written;
}

static bool replace_lines(const char *path, const char *lines)
{
    char beside[URL_SIZE];
    int length = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if ((size_t)length >= sizeof beside) {
        errno = ENAMETOOLONG;
        return false;
    }
    (void)unlink(beside); /* of a process that had our number, and was killed */
    if (write_lines(beside, "wxe", lines) && rename(beside, path) == 0)
        return true;
    int error = errno;
    (void)unlink(beside);
    errno = error;
    return false;
}

int say_to_status_file(const struct visit *visit, const char *lines)
{
    const char *path = visit->settings.status_file;
    struct lh_report report = {.outcome = LH_FAILED, .since_ms = -1, .ends_in_ms = -1};
    if (path == NULL ||
        (is_replaceable(path) ? replace_lines(path, lines) : write_lines(path, "we", lines)))
        return EXIT_DONE;
    (void)snprintf(report.text, sizeof report.text, "the status file %.120s cannot be written: %s",
                   path, strerror(errno));
    print_refusal(visit, NULL, &report, "leasehold: ");
    return say_status(report.outcome);
}

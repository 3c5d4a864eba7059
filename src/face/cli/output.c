/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats outcomes, refusals and keys as text or JSON. --json changes the format, not the stream:
 * results go to stdout, refusals and errors to stderr. The only table of exit statuses is here.
 */
#include "face/cli/cli.h"

#include "face/cli/columns.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEY_LEAST = 16 }; /* columns of a shortened key */

int outcome_exit_status(enum lh_outcome outcome)
{
    static const enum exit_status statuses[] = {
        [LH_OK] = EXIT_DONE,         [LH_BUSY] = EXIT_BUSY,
        [LH_COOLING] = EXIT_COOLING, [LH_LOST] = EXIT_LOST,
        [LH_STALE] = EXIT_STALE,     [LH_UNAVAILABLE] = EXIT_UNAVAILABLE,
        [LH_DENIED] = EXIT_DENIED,   [LH_MISMATCH] = EXIT_MISMATCH,
        [LH_USAGE] = EXIT_USAGE,     [LH_FAILED] = EXIT_INTERNAL,
        [LH_DONE] = EXIT_COOLING,
    };
    return (int)statuses[outcome];
}

const char *format_time(int64_t at_ms, char out[32])
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

int64_t wall_clock_ms(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *format_time_ago(int64_t ago_ms, char out[32])
{
    int64_t now_ms = wall_clock_ms();
    return format_time(ago_ms < 0 || now_ms < 0 ? -1 : now_ms - ago_ms, out);
}

/* The current time, by the clock of the store if it is known. With the wall clock the printed times
 * would differ from call to call. A store may know the times of writes only: then that of the
 * write, as of which the entries of a history are shown. */
static int64_t view_now_ms(const struct lh_view *view)
{
    int64_t ago_ms = view->written_ago_ms > 0 ? view->written_ago_ms : 0;
    return view->written_at_ms >= 0 ? view->written_at_ms + ago_ms : wall_clock_ms();
}

static bool view_is_dated(const struct lh_view *view)
{
    return view->written_at_ms >= 0 || view->written_ago_ms >= 0;
}

int64_t view_written_ms(const struct lh_view *view)
{
    int64_t ago_ms = view->written_ago_ms > 0 ? view->written_ago_ms : 0;
    return view_now_ms(view) - ago_ms;
}

const char *format_written_time(const struct lh_view *view, char out[32])
{
    return format_time(view_is_dated(view) ? view_written_ms(view) : -1, out);
}

void output_line(struct text *line, FILE *to)
{
    text_clean(line->bytes, line->length);
    (void)fprintf(to, "%s\n", line->bytes);
}

/* ---- refusals ---- */

/* The word of the library; for a report made by the program, the word of the outcome. */
const char *report_refusal_word(const struct lh_report *report)
{
    return report->refusal != NULL ? report->refusal
                                   : lh_refusal_word(LH_VERB_ANY, report->outcome);
}

/* retry_after_ms falls back to the time at which the key is free for other clients. */
void report_to_json(const struct context *context, const char *key, const struct lh_report *report,
                    struct text *out)
{
    if (key == NULL && report->key[0] != '\0')
        key = report->key;
    json_begin(out);
    json_add_string(out, "outcome", lh_outcome_name(report->outcome));
    json_add_string(out, "refusal", report_refusal_word(report));
    json_add_string(out, "key", key);
    json_add_string(out, "text", report->text);
    bool later = report->ends_in_ms >= 0 && report->takeover_in_ms > report->ends_in_ms;
    int64_t free_in_ms = later ? report->takeover_in_ms : report->ends_in_ms;
    json_add_length(out, "retry_after_ms",
                    report->retry_after_ms > 0 ? report->retry_after_ms : free_in_ms);
    if (report->holder[0] != '\0')
        json_add_string(out, "holder", report->holder);
    if (context->shown[0] != '\0')
        json_add_string(out, "store", context->shown);
    if (context_store_hint(context, report) != NULL)
        json_add_string(out, "hint", context_store_hint(context, report));
    json_end(out);
}

static void print_refusal(const struct context *context, const char *key,
                          const struct lh_report *report, const char *before)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        report_to_json(context, key, report, &text);
    } else {
        bool trouble = report->outcome == LH_UNAVAILABLE || report->outcome == LH_DENIED ||
                       report->outcome == LH_FAILED;
        text_add(&text, before);
        text_add(&text, report->text);
        const char *hint = context_store_hint(context, report);
        text_add(&text, hint != NULL ? "; " : "");
        text_add(&text, hint != NULL ? hint : "");
        if (trouble && context->shown[0] != '\0' && strstr(report->text, context->shown) == NULL) {
            text_add(&text, " (store ");
            text_add(&text, context->shown);
            text_add(&text, ")");
        }
    }
    output_line(&text, stderr);
}

/* With --quiet the exit status of a busy or cooling key is enough, so that cron sends no mail. */
static bool is_expected(const struct context *context, const struct lh_report *report)
{
    return context->settings.quiet && !context->settings.json &&
           (report->outcome == LH_BUSY || report->outcome == LH_COOLING);
}

/* Writes the status file on any error, so that it never keeps the outcome of an earlier call. */
static void output_refusal(const struct context *context, const char *key,
                           const struct lh_report *report, const char *before)
{
    if (context->settings.status_file != NULL) {
        char line[LINE_SIZE];
        struct text text;
        text_init(&text, line, sizeof line);
        report_to_json(context, key, report, &text);
        text_add(&text, "\n");
        (void)write_status_file(context, line);
    }
    if (!is_expected(context, report))
        print_refusal(context, key, report, before);
}

int output_report(const struct context *context, const char *key, const struct lh_report *report)
{
    output_refusal(context, key, report, "");
    if (report->outcome == LH_BUSY)
        return (int)context->settings.conflict_status;
    return outcome_exit_status(report->outcome);
}

static int output_formatted(const struct context *context, enum lh_outcome outcome,
                            const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static int output_formatted(const struct context *context, enum lh_outcome outcome,
                            const char *format, va_list arguments)
{
    struct lh_report report = {
        .size = sizeof report, .outcome = outcome, .since_ms = -1, .ends_in_ms = -1};
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): both callers begin it */
    (void)vsnprintf(report.text, sizeof report.text, format, arguments);
    output_refusal(context, NULL, &report, "leasehold: ");
    return outcome_exit_status(outcome);
}

int usage_error(const struct context *context, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = output_formatted(context, LH_USAGE, format, arguments);
    va_end(arguments);
    return status;
}

int output_error(const struct context *context, enum lh_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = output_formatted(context, outcome, format, arguments);
    va_end(arguments);
    return status;
}

int output_plain_report(const struct context *context, const struct lh_report *report)
{
    const char *name = lh_outcome_name(report->outcome), *text = report->text;
    size_t length = strlen(name);
    if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return output_error(context, report->outcome, "%s", text);
}

void output_detail(const struct context *context, const char *format, ...)
{
    char buffer[LH_TEXT_SIZE + URL_SIZE], line[LINE_SIZE];
    struct text text;
    va_list arguments;
    if (!context->settings.verbose)
        return;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun one line above */
    (void)vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "detail", buffer);
        json_end(&text);
    } else {
        text_add(&text, "leasehold: ");
        text_add(&text, buffer);
    }
    output_line(&text, stderr);
}

void output_warning(const struct context *context, const char *message)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "warning", message);
        json_end(&text);
    } else {
        text_add(&text, "leasehold: warning: ");
        text_add(&text, message);
    }
    output_line(&text, stderr);
}

void output_released(const struct context *context, const char *keys, int64_t held_ms)
{
    output_detail(context, "released %s after %lld ms", keys, (long long)held_ms);
}

/* ---- keys ---- */

static const char *const state_names[] = {
    [LH_FREE] = "free",       [LH_HELD] = "held",
    [LH_OFFERED] = "offered", [LH_COOLING_DOWN] = "cooling",
    [LH_DELAYED] = "delayed", [LH_UNREADABLE] = "unreadable",
};

const char *view_state_name(const struct lh_view *view)
{
    if (view->kind == LH_WATERMARK)
        return "watermark";
    if (view->kind == LH_ONCE && view->state == LH_HELD)
        return "running";
    if (view->kind == LH_ONCE && view->state == LH_COOLING_DOWN)
        return view->status == 0 ? "done" : "failed";
    return state_names[view->state];
}

static void output_add_time(struct text *out, const char *name, int64_t now_ms, int64_t ago_ms)
{
    char buffer[32];
    (void)format_time(ago_ms < 0 || now_ms < 0 ? -1 : now_ms - ago_ms, buffer);
    json_add_string(out, name, buffer[0] != '\0' ? buffer : NULL);
}

/* The members that only an id or a watermark has. */
static void add_kind(const struct lh_view *view, int64_t then_ms, struct text *out)
{
    const char *result = view->result != NULL ? view->result : "";
    if (view->kind == LH_WATERMARK) {
        json_add_string(out, "kind", "watermark");
        json_add_string(out, "value", result);
        json_add_string(out, "moved_by", view->holder[0] != '\0' ? view->holder : NULL);
        output_add_time(out, "moved_at", view_now_ms(view),
                        view->since_ms >= 0 ? view->since_ms + then_ms : -1);
    }
    if (view->kind != LH_ONCE)
        return;
    json_add_string(out, "kind", "once");
    if (view->state == LH_HELD || view->state == LH_COOLING_DOWN)
        json_add_string(out, "once", view_state_name(view));
    if (view->state == LH_COOLING_DOWN) {
        json_add_number(out, "exit_status", view->status);
        json_add_string(out, "result", result);
    }
}

void view_to_open_json(const struct context *context, const struct lh_view *view,
                       const char *outcome, bool past, struct text *out)
{
    int64_t then_ms = past && view->written_ago_ms > 0 ? view->written_ago_ms : 0;
    bool held = view->state == LH_HELD;
    bool blocked = view->state == LH_COOLING_DOWN || view->state == LH_DELAYED;
    json_begin(out);
    if (outcome != NULL)
        json_add_string(out, "outcome", outcome);
    if (outcome != NULL && context->effect != NULL)
        json_add_string(out, "effect", context->effect);
    json_add_string(out, "key", view->key);
    json_add_string(out, "state", state_names[view->state]);
    bool has_holder = view->holder[0] != '\0' && view->kind != LH_WATERMARK;
    json_add_string(out, "holder", has_holder ? view->holder : NULL);
    json_add_token(out, "token", view->token);
    int64_t now_ms = view_now_ms(view);
    output_add_time(out, "acquired_at", now_ms,
                    held && view->since_ms >= 0 ? view->since_ms + then_ms : -1);
    output_add_time(out, "renewed_at", now_ms,
                    held && view->renewed_ago_ms >= 0 ? view->renewed_ago_ms + then_ms : -1);
    json_add_length(out, "expires_in_ms", held ? view->ends_in_ms : -1);
    json_add_length(out, "takeover_in_ms", held ? view->takeover_in_ms : -1);
    json_add_length(out, "cooling_for_ms", blocked ? view->ends_in_ms : -1);
    json_add_number(out, "waiters", view->waiters);
    json_add_object(out, "meta");
    for (size_t i = 0; i < view->meta_count; i++)
        json_add_string(out, view->meta[i].name, view->meta[i].value);
    json_end(out);
    json_add_string(out, "store", context->shown);
    if (view->holders > 1 || view->limit > 0)
        json_add_number(out, "holders", view->holders);
    if (view->limit > 0)
        json_add_number(out, "limit", view->limit);
    if (view->reason != NULL && view->reason[0] != '\0')
        json_add_string(out, "reason", view->reason);
    if (view_is_dated(view))
        output_add_time(out, "written_at", view_written_ms(view), /* ago_ms= */ 0);
    if (view->text != NULL)
        json_add_string(out, "text", view->text);
    add_kind(view, then_ms, out);
}

void view_to_json(const struct context *context, const struct lh_view *view, const char *outcome,
                  bool past, struct text *out)
{
    view_to_open_json(context, view, outcome, past, out);
    json_end(out);
}

void output_add_duration(struct text *out, const char *before, int64_t length_ms, const char *after)
{
    char buffer[DURATION_SHOWN];
    if (length_ms < 0)
        return;
    text_add(out, before);
    text_add(out, duration_show(length_ms, buffer));
    text_add(out, after);
}

static void add_holder(const struct lh_view *view, struct text *out)
{
    text_add(out, " by ");
    text_add(out, view->holder[0] != '\0' ? view->holder : "an unknown holder");
    if (view->holders > 1) {
        text_add(out, " and ");
        text_add_u64(out, view->holders - 1);
        text_add(out, view->holders > 2 ? " others" : " other");
    }
}

static void output_add_watermark(const struct lh_view *view, struct text *out)
{
    text_add(out, " is at ");
    text_add(out, view->result != NULL ? view->result : "?");
    text_add(out, ", moved");
    add_holder(view, out);
    output_add_duration(out, " ", view->since_ms, " ago");
}

/* Other clients may take over some time after the end, since clocks may differ. */
static void add_end(const struct lh_view *view, struct text *out)
{
    int64_t later_ms = view->takeover_in_ms - view->ends_in_ms;
    text_add(out, view->ends_in_ms >= 0 ? (view->kind == LH_ONCE ? " (claim" : " (lease") : "");
    if (view->ends_in_ms == 0 && later_ms > 0) {
        output_add_duration(out, " ended; free in ", view->takeover_in_ms, "");
    } else {
        output_add_duration(out, " ends in ", view->ends_in_ms, "");
        output_add_duration(out, "; free ", later_ms > 0 ? later_ms : -1, " later");
    }
    text_add(out, view->ends_in_ms >= 0 ? ")" : "");
}

/* The past of a key that is cooling (done or failed) or delayed (its holder crashed). */
static void add_past(const struct lh_view *view, struct text *out)
{
    bool id = view->kind == LH_ONCE && view->state == LH_COOLING_DOWN;
    text_add(out, view->state == LH_DELAYED ? " was held" : " was done");
    add_holder(view, out);
    output_add_duration(out, " ", view->since_ms, " ago");
    if (view->status != 0) {
        text_add(out, " with status ");
        text_add_i64(out, view->status);
    }
    output_add_duration(out, id ? "; kept for " : "; free in ", view->ends_in_ms, "");
    if (id && view->result != NULL && view->result[0] != '\0') {
        text_add(out, ": ");
        text_add(out, view->result);
    }
}

void view_to_line(const struct lh_view *view, struct text *out)
{
    text_add(out, view_state_name(view));
    text_add(out, ": ");
    text_add(out, view->key);
    if (view->kind == LH_WATERMARK) {
        output_add_watermark(view, out);
    } else if (view->state == LH_HELD) {
        add_holder(view, out);
        output_add_duration(out, " for ", view->since_ms, "");
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

void view_to_line_within(const struct lh_view *view, size_t columns, struct text *out)
{
    struct lh_view copy = *view;
    size_t before = out->length;
    view_to_line(view, out);
    text_clean(out->bytes + before, out->length - before);
    size_t width = columns_of(out->bytes + before), key = columns_of(view->key);
    if (width <= columns)
        return;
    struct text text;
    size_t least = key < KEY_LEAST ? key : KEY_LEAST;
    size_t spare = key - least, excess = width - columns;
    text_init(&text, copy.key, sizeof copy.key);
    columns_add_short(&text, view->key, key - (spare < excess ? spare : excess));
    out->length = before;
    view_to_line(&copy, out);
}

void output_view(const struct context *context, const struct lh_view *view)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json)
        view_to_json(context, view, NULL, /* past= */ false, &text);
    else
        view_to_line(view, &text);
    output_line(&text, stdout);
}

static bool output_done_view(void *user, const struct lh_view *view)
{
    const struct context *context = user;
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    view_to_json(context, view, "ok", /* past= */ false, &text);
    output_line(&text, stdout);
    return false;
}

int output_done(struct context *context, const char *what, const char *key)
{
    struct lh_report report = LH_REPORT_INIT;
    if (!context->settings.json) {
        if (!context->settings.quiet)
            printf("%s: %s\n", what, key);
        return EXIT_DONE;
    }
    if (lh_status_details(context->client, key, output_done_view, context, &report) != LH_OK)
        return output_report(context, key, &report);
    return EXIT_DONE;
}

int output_effect(struct context *context, const char *key, const struct lh_report *report,
                  const char *hint)
{
    static const char *const effects[] = {
        [LH_EFFECT_NONE] = "none",         [LH_EFFECT_ASKED] = "asked", [LH_EFFECT_FREED] = "freed",
        [LH_EFFECT_RELEASED] = "released", [LH_EFFECT_GONE] = "gone",   [LH_EFFECT_TAKEN] = "taken",
    };
    const char *behind = strchr(report->text, ':'); /* skips the outcome, "ok" */
    context->effect = effects[report->effect];
    if (context->settings.json)
        return output_done(context, context->effect, key);
    if (!context->settings.quiet)
        printf("%s%s%s\n", state_names[report->state], behind != NULL ? behind : "", hint);
    return EXIT_DONE;
}

/* ---- the status file ---- */

/* Only a regular file is replaced. A pipe or a symlink, such as /dev/stdout, is written to. */
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
    char temporary[URL_SIZE];
    int length = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if ((size_t)length >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    (void)unlink(temporary); /* left by a killed process with the same pid */
    if (write_lines(temporary, "wxe", lines) && rename(temporary, path) == 0)
        return true;
    int error = errno;
    (void)unlink(temporary);
    errno = error;
    return false;
}

int write_status_file(const struct context *context, const char *lines)
{
    const char *path = context->settings.status_file;
    struct lh_report report = {
        .size = sizeof report, .outcome = LH_FAILED, .since_ms = -1, .ends_in_ms = -1};
    if (path == NULL ||
        (is_replaceable(path) ? replace_lines(path, lines) : write_lines(path, "we", lines)))
        return EXIT_DONE;
    (void)snprintf(report.text, sizeof report.text, "cannot write the status file %.120s: %s", path,
                   strerror(errno));
    print_refusal(context, NULL, &report, "leasehold: ");
    return outcome_exit_status(report.outcome);
}

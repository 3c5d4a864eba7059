/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold watch: prints changes, and the ends of leases and cooldowns, with their times, until a
 * signal or an error of the store ends it.
 */
#include "face/cli/cli.h"

#include "face/cli/columns.h"
#include "face/cli/signals.h"
#include "face/cli/watch_ends.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { KEY_LEAST = 16 }; /* columns of a shortened key */

struct watch_output {
    const struct context *context;
    bool terminal;
    bool ended;
    struct lh_report report; /* why it ended */
    struct watch_ends ends;
};

/* ---- lines ---- */

/* "12:04:31 ", the local time, on a terminal; otherwise as in leasehold history. */
static void add_timestamp(const struct watch_output *watch, int64_t at_ms, struct text *out)
{
    char time[32];
    struct tm parts;
    time_t seconds = (time_t)(at_ms / 1000);
    if (!watch->terminal)
        (void)format_time(at_ms, time);
    else if (localtime_r(&seconds, &parts) == NULL ||
             strftime(time, sizeof time, "%H:%M:%S", &parts) == 0)
        time[0] = '\0';
    text_add(out, time[0] != '\0' ? time : "-");
    text_add(out, " ");
}

static void watch_output_line(struct text *line)
{
    output_line(line, stdout);
    (void)fflush(stdout);
}

static void watch_to_json(const struct watch_output *watch, const struct lh_view *view,
                          const char *event, int64_t at_ms, struct text *out)
{
    char time[32];
    view_to_open_json(watch->context, view, NULL, /* past= */ false, out);
    json_add_string(out, "event", event);
    json_add_string(out, "at", format_time(at_ms, time)[0] != '\0' ? time : NULL);
}

static void output_change(const struct watch_output *watch, const struct lh_view *view)
{
    char line[LINE_SIZE];
    struct text text;
    int64_t at_ms = view_written_ms(view);
    text_init(&text, line, sizeof line);
    if (watch->context->settings.json) {
        watch_to_json(watch, view, "changed", at_ms, &text);
        json_end(&text);
    } else {
        size_t columns = watch->terminal ? columns_of_terminal(STDOUT_FILENO) : SIZE_MAX;
        add_timestamp(watch, at_ms, &text);
        view_to_line_within(view, columns > text.length ? columns - text.length : 0, &text);
    }
    watch_output_line(&text);
}

static void end_to_text(const struct watch_end *end, struct text *out)
{
    if (end->state != LH_HELD) {
        text_add(out, end->state == LH_DELAYED ? ": the lock-delay ended" : ": the cooldown ended");
        return;
    }
    text_add(out, ": the lease of ");
    text_add(out, end->holder);
    text_add(out, " ended, token ");
    text_add_u64(out, end->token);
    text_clean(out->bytes, out->length);
}

/* On a terminal the key is shortened so that it fits beside `used` columns. */
static void watch_add_key(const struct watch_output *watch, const char *key, size_t used,
                          struct text *out)
{
    char clean[LH_KEY_SIZE];
    size_t columns = watch->terminal ? columns_of_terminal(STDOUT_FILENO) : SIZE_MAX;
    text_copy(clean, sizeof clean, key);
    text_clean(clean, strlen(clean));
    columns_add_short(out, clean, columns > used + KEY_LEAST ? columns - used : KEY_LEAST);
}

/* "expired: KEY: the lease of HOLDER ended, token 1024" */
static void output_end(void *user, const struct watch_end *end, const struct lh_view *view)
{
    const struct watch_output *watch = user;
    bool held = end->state == LH_HELD;
    char line[LINE_SIZE], reason[LH_TEXT_SIZE + LH_HOLDER_SIZE];
    struct text text, cause;
    int64_t at_ms = end->at_ms >= 0 ? end->at_ms : wall_clock_ms();
    text_init(&text, line, sizeof line);
    text_init(&cause, reason, sizeof reason);
    if (watch->context->settings.json) {
        watch_to_json(watch, view, held ? "expired" : "cooled", at_ms, &text);
        json_add_string(&text, "ended_holder", end->holder);
        json_add_token(&text, "ended_token", end->token);
        json_end(&text);
        watch_output_line(&text);
        return;
    }
    add_timestamp(watch, at_ms, &text);
    text_add(&text, held ? "expired: " : "free: ");
    end_to_text(end, &cause);
    watch_add_key(watch, end->key, columns_of(line) + columns_of(reason), &text);
    text_add(&text, reason);
    watch_output_line(&text);
}

/* ---- the command ---- */

static void watch_on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct watch_output *watch = user;
    if (view == NULL) {
        watch->report = *report;
        watch->ended = true;
        return;
    }
    watch_ends_change(&watch->ends, view);
    output_change(watch, view);
}

static void watch_warn_full(const struct context *context)
{
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message, "more than %d leases: the end of some is not shown",
                   WATCH_ENDS_MAX);
    output_warning(context, message);
}

static void watch_until_signal(struct context *context, struct watch_output *watch)
{
    struct signals signals;
    bool told = false;
    signals_begin(&signals);
    while (!watch->ended && signals_caught() == 0 && !ferror(stdout)) {
        if (watch->ends.full && !told)
            watch_warn_full(context);
        told = watch->ends.full;
        signals_wait(&signals, context->client, watch_ends_pause_ms(&watch->ends));
        (void)lh_step(context->client);
        watch_ends_check(&watch->ends, context->client);
    }
    signals_end(&signals);
}

static int cmd_watch(struct context *context)
{
    struct watch_output watch = {.context = context,
                                 .terminal = isatty(STDOUT_FILENO) == 1,
                                 .report = LH_REPORT_INIT,
                                 .ends = {.fn = output_end}};
    struct lh_watcher *watcher = NULL;
    struct lh_report report = LH_REPORT_INIT;
    const char *prefix = context->arg_count > 0 ? context->args[0] : "";
    watch.ends.user = &watch;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_watch(context->client, prefix, watch_on_change, &watch, &watcher, &report) != LH_OK)
        return output_report(context, NULL, &report);
    output_detail(context, "%s", report.text);
    if (lh_poll_ms(context->client) > 0 && !context->settings.quiet)
        output_warning(context, "watch polls this store: changes are printed up to a poll interval "
                                "late, and only the last one of each key in it");
    if (!watch_ends_list(&watch.ends, context->client, prefix, &report))
        output_detail(context, "ends of earlier leases are not shown: %s", report.text);
    watch_until_signal(context, &watch);
    (void)lh_unwatch(&watcher, NULL);
    if (watch.ended)
        status = output_report(context, NULL, &watch.report);
    else if (signals_caught() != 0)
        status = EXIT_SIGNAL + signals_caught();
    watch_ends_done(&watch.ends);
    return status;
}

const struct command command_watch = {
    .name = "watch",
    .args = "[PREFIX]",
    .summary = "print changes as they happen",
    .about =
        "Prints one line for each change of a key that begins with PREFIX, from now on, until it "
        "is interrupted: the time of the change and the new state of the key. A record that cannot "
        "be read is printed as unreadable, with the cause. An unavailable store ends it with "
        "status 69.\n\n"
        "A store reports writes, and the end of a lease is not a write. When a lease, a cooldown "
        "or a lock-delay ends, watch queries the key and prints that it expired, or that the key "
        "is free, with the time of the end. With --json \"event\" is changed, expired or "
        "cooled.\n\n"
        "GitHub reports nothing: watch polls the refs, and says so on stderr.",
    .example = "  leasehold watch production/ --json",
    .max_args = 1,
    .run = cmd_watch,
};

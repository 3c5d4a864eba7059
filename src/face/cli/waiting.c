/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See waiting.h. For a terminal it queries the key, watches it once the store has replied, and
 * queries it again for what changed in between; durations are updated here without further queries.
 * The line is rewritten in place and cleared at the end. For a log it queries the key before each
 * line. It never waits for a reply, since the caller must see signals and the end of --wait.
 */
#include "face/cli/waiting.h"

#include "face/cli/columns.h"
#include "wire/duration.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_FIRST_MS = 300, LINE_EVERY_MS = 1000, LOG_FIRST_MS = 1000, LOG_EVERY_MS = 60000 };
enum { REPLY_MS = 1000, SLOW_REPLY_MS = 15000 }; /* after this it is said not to reply */
/* A name is not shortened below this, as long as something else can give way. */
enum { KEY_COLUMNS_FULL = 16, KEY_COLUMNS = 12, NAME_COLUMNS = 4, TEXT_SIZE = 1024 };

static int64_t waiting_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void waiting_begin(struct waiting *waiting, struct context *context)
{
    bool silent = context->settings.quiet || context->settings.json;
    *waiting = (struct waiting){.context = context,
                                .mode = context->interactive ? WAITING_LINE
                                        : silent             ? WAITING_SILENT
                                                             : WAITING_LOG};
}

int64_t waiting_pause_ms(struct waiting *waiting)
{
    int64_t now_ms = waiting_now_ms();
    if (waiting->mode == WAITING_SILENT)
        return -1;
    if (waiting->next_at_ms == 0)
        waiting->next_at_ms =
            now_ms + (waiting->mode == WAITING_LINE ? LINE_FIRST_MS : LOG_FIRST_MS);
    return waiting->next_at_ms > now_ms ? waiting->next_at_ms - now_ms : 0;
}

static void waiting_set_view(struct waiting *waiting, const struct lh_view *view)
{
    if (strcmp(view->key, waiting->key) != 0)
        return;
    waiting->view = *view;
    waiting->view.reason = waiting->view.result = waiting->view.text = NULL;
    waiting->view.source = NULL;
    waiting->view.meta = NULL;
    waiting->view.meta_count = 0;
    waiting->received_at_ms = waiting_now_ms();
}

static void waiting_on_change(void *user, const struct lh_view *view,
                              const struct lh_report *report)
{
    (void)report; /* after the end of the watch the line keeps the last view */
    if (view != NULL)
        waiting_set_view(user, view);
}

/* ---- the query ---- */

static void show_log(struct waiting *waiting);

/* There is no way to cancel a query: its reply may come after the end of the wait. */
static struct query {
    struct waiting *waiting; /* NULL: nobody waits for the reply any more */
    int64_t began_ms;        /* 0: none is in flight */
} query;

static bool query_on_view(void *user, const struct lh_view *view)
{
    (void)user;
    if (query.waiting != NULL)
        waiting_set_view(query.waiting, view);
    return true;
}

static void query_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct waiting *waiting = query.waiting;
    (void)user;
    (void)lease;
    query = (struct query){.waiting = NULL};
    if (waiting == NULL)
        return;
    waiting->does_not_reply = report->outcome != LH_OK;
    waiting->next_at_ms = waiting_now_ms(); /* a line on a terminal is rewritten at once */
    if (waiting->mode == WAITING_LOG)
        show_log(waiting);
}

static void waiting_query(struct waiting *waiting)
{
    bool in_flight = query.began_ms != 0;
    query.waiting = waiting;
    if (in_flight)
        return;
    query.began_ms = waiting_now_ms();
    if (lh_status_details_start(waiting->context->client, waiting->key, query_on_view,
                                query_on_done, NULL, NULL) != LH_OK)
        query = (struct query){.waiting = NULL};
}

/* A store that is polled is slow: its requests wait for each other. */
static int64_t waiting_reply_ms(const struct waiting *waiting)
{
    return lh_poll_ms(waiting->context->client) > REPLY_MS ? SLOW_REPLY_MS : REPLY_MS;
}

static bool query_is_late(const struct waiting *waiting)
{
    return query.began_ms != 0 && waiting_now_ms() - query.began_ms >= waiting_reply_ms(waiting);
}

/* Switches to the next of several keys. */
static void waiting_set_key(struct waiting *waiting, const char *key)
{
    if (waiting->watcher != NULL)
        (void)lh_unwatch(&waiting->watcher, NULL);
    (void)snprintf(waiting->key, sizeof waiting->key, "%s", key);
    waiting->received_at_ms = 0;
    waiting->does_not_reply = false;
    waiting_query(waiting);
}

static void waiting_watch_key(struct waiting *waiting)
{
    if (lh_watch(waiting->context->client, waiting->key, waiting_on_change, waiting,
                 &waiting->watcher, NULL) != LH_OK)
        waiting->watcher = NULL;
    if (waiting->watcher != NULL)
        waiting_query(waiting);
}

/* ---- text ---- */

/* The view as of `at_ms`, with key and holder for the terminal. */
struct waiting_text {
    struct lh_view view;
    int64_t passed_ms;
    bool does_not_reply;
    char key[TEXT_SIZE], holder[TEXT_SIZE];
};

/* The holder, since when and until when. */
static void add_held(const struct waiting_text *shown, bool compact, struct text *out)
{
    int64_t ends_in_ms = shown->view.ends_in_ms - shown->passed_ms;
    int64_t takeover_in_ms = shown->view.takeover_in_ms - shown->passed_ms;
    char duration[DURATION_SHOWN];
    text_add(out, shown->holder[0] != '\0' ? shown->holder : "an unknown holder");
    if (shown->view.since_ms >= 0) {
        text_add(out, " for ");
        text_add(out, duration_show(shown->view.since_ms + shown->passed_ms, duration));
    }
    if (shown->view.ends_in_ms < 0 || (ends_in_ms < 0 && takeover_in_ms < 0))
        return;
    text_add(out, compact ? ", " : " (lease ");
    text_add(out, ends_in_ms >= 0 ? "ends in " : "ended; free in ");
    text_add(out, duration_show(ends_in_ms >= 0 ? ends_in_ms : takeover_in_ms, duration));
    text_add(out, compact ? "" : ")");
}

static void add_position(const struct lh_view *view, bool compact, struct text *out)
{
    if (view->position == 0)
        return;
    text_add(out, compact ? ", position " : "; position ");
    text_add_u64(out, view->position);
    text_add(out, compact ? "/" : " of ");
    text_add_u64(out, view->waiters);
}

/* "waiting for KEY: held by HOLDER for 12s (lease ends in 18s); position 1 of 3", or
 * "waiting for KEY: HOLDER for 12s, ends in 18s, position 1/3" */
static void describe_line(const struct waiting_text *shown, bool compact, struct text *out)
{
    const struct lh_view *view = &shown->view;
    text_add(out, "waiting for ");
    text_add(out, shown->key);
    if (view->state == LH_HELD) {
        text_add(out, compact ? ": " : ": held by ");
        add_held(shown, compact, out);
    }
    add_position(view, compact, out);
    text_add(out, shown->does_not_reply ? ": the store does not reply" : "");
}

/* Shortens a name by at most `excess` columns, but not below `least`. The rest of the excess. */
static size_t shorten_name(char name[TEXT_SIZE], size_t least, size_t excess)
{
    char copy[TEXT_SIZE];
    struct text text;
    size_t width = columns_of(name);
    size_t give = width <= least ? 0 : width - least < excess ? width - least : excess;
    (void)snprintf(copy, sizeof copy, "%s", name);
    text_init(&text, name, TEXT_SIZE);
    columns_add_short(&text, copy, width - give);
    return excess - give;
}

static size_t line_excess(const struct waiting_text *shown, bool compact, size_t columns,
                          struct text *out)
{
    text_clear(out);
    describe_line(shown, compact, out);
    size_t width = columns_of(out->bytes);
    return width > columns ? width - columns : 0;
}

/* Position and end of the lease are never cut: the key gives way first, then the wording, then the
 * holder. */
static void fit_line(struct waiting_text *shown, size_t columns, struct text *out)
{
    size_t excess = line_excess(shown, /* compact= */ false, columns, out);
    bool compact = excess + KEY_COLUMNS_FULL > columns_of(shown->key) && excess > 0;
    if (compact)
        excess = line_excess(shown, compact, columns, out);
    excess = shorten_name(shown->key, compact ? KEY_COLUMNS : KEY_COLUMNS_FULL, excess);
    excess = shorten_name(shown->holder, NAME_COLUMNS, excess);
    (void)shorten_name(shown->key, NAME_COLUMNS, excess);
    (void)line_excess(shown, compact, columns, out);
}

static void waiting_copy(const struct waiting *waiting, int64_t at_ms, struct waiting_text *out)
{
    out->view = waiting->view;
    out->passed_ms = at_ms - waiting->received_at_ms;
    (void)snprintf(out->key, sizeof out->key, "%s", waiting->key);
    (void)snprintf(out->holder, sizeof out->holder, "%s", waiting->view.holder);
    text_clean(out->key, strlen(out->key));
    text_clean(out->holder, strlen(out->holder));
    out->does_not_reply = waiting->does_not_reply || query_is_late(waiting);
    /* Only the key is known, or what is known may be old. */
    if (waiting->received_at_ms == 0 || out->does_not_reply)
        out->view = (struct lh_view)LH_VIEW_INIT;
}

/* ---- the terminal and the log ---- */

void waiting_write_line(const char *line)
{
    size_t columns = columns_of_terminal(STDERR_FILENO) - 1;
    fprintf(stderr, "\r\033[K%.*s", (int)columns_prefix(line, columns), line);
    (void)fflush(stderr);
}

static void show_line(struct waiting *waiting, const char *key, int64_t at_ms)
{
    static struct waiting_text shown;
    char line[4 * TEXT_SIZE];
    struct text text;
    if (strcmp(waiting->key, key) != 0)
        waiting_set_key(waiting, key);
    else if (waiting->received_at_ms != 0 && waiting->watcher == NULL && query.began_ms == 0)
        waiting_watch_key(waiting);
    text_init(&text, line, sizeof line);
    waiting_copy(waiting, at_ms, &shown);
    fit_line(&shown, columns_of_terminal(STDERR_FILENO) - 1, &text);
    waiting_write_line(line);
    waiting->shown = true;
}

/* "waiting: KEY is held by HOLDER for 12s (lease ends in 18s); position 1 of 3" */
static void show_log(struct waiting *waiting)
{
    static struct waiting_text shown;
    char line[4 * TEXT_SIZE];
    struct text text;
    waiting->next_at_ms = waiting_now_ms() + LOG_EVERY_MS;
    if (waiting->received_at_ms != 0 && waiting->view.position == 0)
        return; /* it was granted or refused meanwhile */
    waiting_copy(waiting, waiting->received_at_ms, &shown);
    text_init(&text, line, sizeof line);
    text_add(&text, "waiting: ");
    text_add(&text, shown.key);
    if (shown.view.state == LH_HELD) {
        text_add(&text, " is held by ");
        add_held(&shown, /* compact= */ false, &text);
    }
    add_position(&shown.view, /* compact= */ false, &text);
    text_add(&text, shown.does_not_reply ? ": the store does not reply" : "");
    output_line(&text, stderr);
}

/* The reply to the query writes the line; without one the next call does. */
static void advance_log(struct waiting *waiting, const char *key)
{
    if (query.began_ms != 0 && query.waiting == waiting) {
        query.waiting = NULL;
        waiting->does_not_reply = true;
        show_log(waiting);
        return;
    }
    (void)snprintf(waiting->key, sizeof waiting->key, "%s", key);
    waiting->received_at_ms = 0;
    waiting->does_not_reply = false;
    waiting->next_at_ms = waiting_now_ms() + waiting_reply_ms(waiting);
    waiting_query(waiting);
}

void waiting_show(struct waiting *waiting, const char *key, int64_t at_ms)
{
    if (waiting->mode == WAITING_LOG)
        advance_log(waiting, key);
    if (waiting->mode != WAITING_LINE)
        return;
    waiting->next_at_ms = waiting_now_ms() + LINE_EVERY_MS;
    show_line(waiting, key, at_ms);
}

void waiting_end(struct waiting *waiting)
{
    query.waiting = NULL;
    if (waiting->watcher != NULL)
        (void)lh_unwatch(&waiting->watcher, NULL);
    if (waiting->shown)
        waiting_write_line("");
    waiting->shown = false;
    waiting->next_at_ms = 0;
}

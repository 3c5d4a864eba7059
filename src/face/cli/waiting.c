/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See waiting.h. Queries the key once, then watches it; durations are updated here without further
 * queries. The line is rewritten in place and cleared at the end.
 */
#include "face/cli/waiting.h"

#include "wire/duration.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 300, REFRESH_MS = 1000, COLUMNS = 80 };

static int64_t waiting_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void waiting_begin(struct waiting *waiting, struct context *context)
{
    *waiting = (struct waiting){.context = context, .wanted = context->interactive};
}

int64_t waiting_pause_ms(const struct waiting *waiting)
{
    if (!waiting->wanted)
        return -1;
    return waiting->shown ? REFRESH_MS : FIRST_MS;
}

static void waiting_set_view(struct waiting *waiting, const struct lh_view *view)
{
    if (strcmp(view->key, waiting->key) != 0)
        return;
    waiting->view = *view;
    waiting->view.reason = waiting->view.result = NULL;
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

/* Switches to the next of several keys. */
static void waiting_watch_key(struct waiting *waiting, const char *key)
{
    struct lh_view view = LH_VIEW_INIT;
    if (waiting->watcher != NULL)
        (void)lh_unwatch(&waiting->watcher, NULL);
    (void)snprintf(waiting->key, sizeof waiting->key, "%s", key);
    waiting->received_at_ms = 0;
    if (lh_watch(waiting->context->client, key, waiting_on_change, waiting, &waiting->watcher,
                 NULL) != LH_OK)
        waiting->watcher = NULL;
    if (lh_status(waiting->context->client, key, &view, NULL) == LH_OK)
        waiting_set_view(waiting, &view);
}

static size_t columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return COLUMNS;
    return size.ws_col;
}

/* The length of the longest prefix that fits, in whole characters. */
static size_t fitting(const char *line, size_t room)
{
    size_t at = 0, step;
    while (line[at] != '\0' && (step = text_utf8_length(line + at, strlen(line + at))) > 0 &&
           room-- > 0)
        at += step;
    return at;
}

static void waiting_describe(const struct waiting *waiting, int64_t at_ms, struct text *out)
{
    struct lh_view view = waiting->view;
    int64_t passed_ms = at_ms - waiting->received_at_ms;
    char duration[DURATION_SHOWN];
    text_add(out, "waiting for ");
    text_add(out, waiting->key);
    if (waiting->received_at_ms == 0)
        return;
    if (view.state == LH_HELD && view.since_ms >= 0) {
        text_add(out, ": held by ");
        text_add(out, view.holder);
        text_add(out, " for ");
        text_add(out, duration_show(view.since_ms + passed_ms, duration));
    }
    if (view.state == LH_HELD && view.ends_in_ms >= passed_ms) {
        text_add(out, " (lease ends in ");
        text_add(out, duration_show(view.ends_in_ms - passed_ms, duration));
        text_add(out, ")");
    } else if (view.state == LH_HELD && view.takeover_in_ms >= passed_ms) {
        text_add(out, " (lease ended; free in ");
        text_add(out, duration_show(view.takeover_in_ms - passed_ms, duration));
        text_add(out, ")");
    }
    if (view.position > 0) {
        text_add(out, "; position ");
        text_add_u64(out, view.position);
        text_add(out, " of ");
        text_add_u64(out, view.waiters);
    }
}

void waiting_write_line(const char *line)
{
    fprintf(stderr, "\r\033[K%.*s", (int)fitting(line, columns() - 1), line);
    (void)fflush(stderr);
}

void waiting_show(struct waiting *waiting, const char *key, int64_t at_ms)
{
    char line[1024];
    struct text text;
    if (!waiting->wanted)
        return;
    if (strcmp(waiting->key, key) != 0)
        waiting_watch_key(waiting, key);
    text_init(&text, line, sizeof line);
    waiting_describe(waiting, at_ms, &text);
    text_clean(line, text.length);
    waiting_write_line(line);
    waiting->shown = true;
}

void waiting_end(struct waiting *waiting)
{
    if (waiting->watcher != NULL)
        (void)lh_unwatch(&waiting->watcher, NULL);
    if (waiting->shown)
        waiting_write_line("");
    waiting->shown = false;
}

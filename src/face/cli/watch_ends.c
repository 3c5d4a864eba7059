/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See watch_ends.h. An end is certain if the record is still the one that was read, or if a later
 * write came after it by the clock of the store. A record that is gone may have been deleted by a
 * release whose event is still to come: it must stay gone for a while first.
 */
#include "face/cli/watch_ends.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LATER_MS = 20, SETTLE_MS = 500, RETRY_MS = 1000 };

static int64_t ends_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the set ---- */

static void ends_remove_at(struct watch_ends *ends, size_t index)
{
    free(ends->ends[index].key);
    free(ends->ends[index].holder);
    ends->ends[index] = ends->ends[--ends->count];
}

static void ends_remove_key(struct watch_ends *ends, const char *key)
{
    for (size_t i = ends->count; i-- > 0;) {
        if (strcmp(ends->ends[i].key, key) == 0)
            ends_remove_at(ends, i);
    }
}

static struct watch_end *ends_find(const struct watch_ends *ends, const char *key,
                                   const uint64_t *token)
{
    for (size_t i = 0; i < ends->count; i++) {
        struct watch_end *end = &ends->ends[i];
        if (strcmp(end->key, key) == 0 && (token == NULL || end->token == *token))
            return end;
    }
    return NULL;
}

static bool ends_make_room(struct watch_ends *ends)
{
    if (ends->count < ends->room)
        return true;
    size_t room = ends->room > 0 ? 2 * ends->room : 64;
    struct watch_end *grown =
        room <= WATCH_ENDS_MAX ? realloc(ends->ends, room * sizeof *grown) : NULL;
    if (grown == NULL)
        return false;
    ends->ends = grown;
    ends->room = room;
    return true;
}

/* `in_ms` is the time until others may acquire the key. */
static void ends_add(struct watch_ends *ends, const struct lh_view *view, enum lh_state state,
                     uint64_t token, const char *holder, int64_t in_ms)
{
    struct watch_end end = {
        .state = state, .token = token, .revision = view->revision, .at_ms = -1};
    if (state != LH_FREE && in_ms < 0)
        return; /* the store does not know it */
    if (view->written_at_ms >= 0 && view->written_ago_ms >= 0)
        end.at_ms = view->written_at_ms + view->written_ago_ms + in_ms;
    end.check_at_ms = state == LH_FREE ? INT64_MAX : ends_now_ms() + in_ms + LATER_MS;
    end.key = strdup(view->key);
    end.holder = strdup(holder);
    if (end.key == NULL || end.holder == NULL || !ends_make_room(ends)) {
        free(end.key);
        free(end.holder);
        ends->full = true;
        return;
    }
    ends->ends[ends->count++] = end;
}

static void ends_add_view(struct watch_ends *ends, const struct lh_view *view)
{
    struct lh_holder holder = LH_HOLDER_INIT;
    if (view->kind == LH_WATERMARK)
        return;
    for (size_t i = 0; lh_view_holder(view, i, &holder); i++)
        ends_add(ends, view, LH_HELD, holder.token, holder.name, holder.takeover_in_ms);
    if (view->state == LH_COOLING_DOWN || view->state == LH_DELAYED)
        ends_add(ends, view, view->state, 0, view->holder, view->takeover_in_ms);
    if (ends->listing && ends_find(ends, view->key, NULL) == NULL)
        ends_add(ends, view, LH_FREE, 0, "", 0); /* the list may show the key as it was before */
}

static bool is_held_by(const struct lh_view *view, uint64_t token)
{
    struct lh_holder holder = LH_HOLDER_INIT;
    for (size_t i = 0; lh_view_holder(view, i, &holder); i++) {
        if (holder.token == token)
            return true;
    }
    return false;
}

/* ---- changes ---- */

static bool ends_on_listed(void *user, const struct lh_view *view)
{
    struct watch_ends *ends = user;
    bool changed = ends_find(ends, view->key, NULL) != NULL;
    if (!changed) {
        ends->listing = false;
        ends_add_view(ends, view);
        ends->listing = true;
    }
    return true;
}

bool watch_ends_list(struct watch_ends *ends, struct lh_client *client, const char *prefix,
                     struct lh_report *report)
{
    ends->listing = true;
    bool listed = lh_list(client, prefix, ends_on_listed, ends, report) == LH_OK;
    ends->listing = false;
    for (size_t i = ends->count; i-- > 0;) {
        if (ends->ends[i].state == LH_FREE)
            ends_remove_at(ends, i);
    }
    return listed;
}

/* A lease that was over when the record was written has ended by itself, whatever was written. */
void watch_ends_change(struct watch_ends *ends, const struct lh_view *view)
{
    for (size_t i = 0; i < ends->count; i++) {
        const struct watch_end *end = &ends->ends[i];
        if (end->state == LH_HELD && strcmp(end->key, view->key) == 0 && end->at_ms >= 0 &&
            view->written_at_ms >= end->at_ms && !is_held_by(view, end->token))
            ends->fn(ends->user, end, view);
    }
    ends_remove_key(ends, view->key);
    ends_add_view(ends, view);
}

/* ---- checks ---- */

int64_t watch_ends_pause_ms(const struct watch_ends *ends)
{
    int64_t next_ms = INT64_MAX, now_ms = ends_now_ms();
    for (size_t i = 0; i < ends->count; i++)
        next_ms = ends->ends[i].check_at_ms < next_ms ? ends->ends[i].check_at_ms : next_ms;
    if (next_ms == INT64_MAX)
        return -1;
    return next_ms > now_ms ? next_ms - now_ms : 0;
}

struct ends_query {
    struct watch_ends *ends;
    char key[LH_KEY_SIZE];
    uint64_t token;
};

/* While the query was in flight, a change may have removed the end. */
static bool ends_on_queried(void *user, const struct lh_view *view)
{
    struct ends_query *query = user;
    struct watch_ends *ends = query->ends;
    struct watch_end *end = ends_find(ends, query->key, &query->token);
    if (end == NULL)
        return false;
    bool lasts = end->state == LH_HELD ? is_held_by(view, end->token) : view->state == end->state;
    bool unchanged = view->revision == end->revision;
    if (lasts) {
        int64_t in_ms = view->takeover_in_ms > 0 ? view->takeover_in_ms : RETRY_MS;
        end->check_at_ms = ends_now_ms() + in_ms + LATER_MS;
    } else if (unchanged || (end->settles && view->revision == 0)) {
        ends->fn(ends->user, end, view);
        ends_remove_at(ends, (size_t)(end - ends->ends));
    } else if (end->settles) {
        ends_remove_at(ends, (size_t)(end - ends->ends)); /* another write: its event shows it */
    } else {
        end->settles = true;
        end->check_at_ms = ends_now_ms() + SETTLE_MS;
    }
    return false;
}

static struct watch_end *ends_due(const struct watch_ends *ends, int64_t now_ms)
{
    for (size_t i = 0; i < ends->count; i++) {
        if (ends->ends[i].check_at_ms <= now_ms)
            return &ends->ends[i];
    }
    return NULL;
}

void watch_ends_check(struct watch_ends *ends, struct lh_client *client)
{
    int64_t now_ms = ends_now_ms();
    for (struct watch_end *due; (due = ends_due(ends, now_ms)) != NULL;) {
        struct ends_query query = {.ends = ends, .token = due->token};
        text_copy(query.key, sizeof query.key, due->key);
        due->check_at_ms = now_ms + RETRY_MS; /* if the store does not answer */
        (void)lh_status_details(client, query.key, ends_on_queried, &query, NULL);
    }
}

void watch_ends_done(struct watch_ends *ends)
{
    while (ends->count > 0)
        ends_remove_at(ends, ends->count - 1);
    free(ends->ends);
    ends->ends = NULL;
}

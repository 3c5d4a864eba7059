/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: a record as callers see it, as of the time of the reply. Lists every holder and waiter,
 * and the record itself, while the callback that received the view runs. Decides nothing.
 */
#include "face/lib/lib_internal.h"

#include "disk/session.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)LH_RECORD_SIZE > (int)RECORD_MAX, "every record fits");

struct view view_of(const struct lh_client *client, const struct stamp *at)
{
    return (struct view){.at = *at, .facts = &client->facts};
}

/* The pairs point into the record. */
static size_t list_meta(const struct meta *meta, struct lh_meta *pairs)
{
    const char *at = meta->text;
    for (size_t pair = 0; pair < meta->count; pair++) {
        pairs[pair].name = at;
        pairs[pair].value = at + strlen(at) + 1;
        at = pairs[pair].value + strlen(pairs[pair].value) + 1;
    }
    return meta->count;
}

/* The number of waiters that are served before this one. */
static uint32_t waiters_before(const struct record *record, const struct waiter *own)
{
    uint32_t before = 0;
    for (const struct waiter *waiter = record->waiters;
         waiter < record->waiters + record->waiter_count; waiter++) {
        int64_t ahead = (int64_t)waiter->priority + waiter->passed - own->priority - own->passed;
        bool earlier = ahead > 0 || (ahead == 0 && waiter < own);
        before += waiter->offered != own->offered ? waiter->offered : earlier;
    }
    return before;
}

/* 1 is next, as is every waiter with an offer. */
static uint32_t waiter_position(const struct record *record, const struct waiter *waiter)
{
    return waiter->offered ? 1 : waiters_before(record, waiter) + 1;
}

/* 0: this session does not wait. */
static uint32_t queue_position(const struct record *record, uint64_t session)
{
    for (size_t i = 0; i < record->waiter_count; i++) {
        if (record->waiters[i].session == session)
            return waiter_position(record, &record->waiters[i]);
    }
    return 0;
}

static void fill_grants(const struct record *record, const struct view *view, struct lh_meta *meta,
                        struct lh_view *out)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant_ended(grant, view))
            continue;
        out->holders++;
        out->shared = out->shared || grant->mode == MODE_SHARED;
        if (grant_token(grant) != out->token || out->token == 0)
            continue;
        out->broken = grant->broken;
        out->renewed_ago_ms = age_of(grant->renewed.time_ms, view->at.time_ms);
        out->meta = meta;
        out->meta_count = meta != NULL ? list_meta(&grant->meta, meta) : 0;
    }
}

/* The members of ids and watermarks. */
static void fill_kind(const struct record *record, const struct stamp *at, bool text,
                      struct lh_view *out)
{
    const struct watermark *watermark = &record->watermark;
    out->result = text ? "" : NULL;
    if (record->kind == KIND_ONCE) {
        bool done = out->state == LH_COOLING_DOWN;
        out->kind = LH_ONCE;
        out->status = done ? record->once.done.status : 0;
        if (done && text)
            out->result = record->once.done.result;
    } else if (record->kind == KIND_WATERMARK) {
        out->kind = LH_WATERMARK;
        out->since_ms = age_of(watermark->moved.time_ms, at->time_ms);
        (void)snprintf(out->holder, sizeof out->holder, "%s", watermark->by);
        if (text)
            out->result = watermark->value;
    }
}

void status_fill(const struct lh_client *client, const struct record *record,
                 const struct stamp *at, const char *key, struct lh_view_source *source,
                 struct lh_view *out)
{
    static const enum lh_state states[] = {[KEY_FREE] = LH_FREE,
                                           [KEY_HELD] = LH_HELD,
                                           [KEY_OFFERED] = LH_OFFERED,
                                           [KEY_COOLING] = LH_COOLING_DOWN,
                                           [KEY_DELAYED] = LH_DELAYED};
    struct view view = view_of(client, at);
    struct key_info key_info = record_key_info(record, &view);
    *out = (struct lh_view)LH_VIEW_INIT;
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    out->state = states[key_info.state];
    out->revision = at->revision;
    out->limit = record->limit;
    out->waiters = record->waiter_count;
    out->source = source;
    if (source != NULL) {
        source->record = record;
        source->view = view;
        source->detects_processes = (client->driver->capabilities & STORE_SESSIONS) != 0 &&
                                    !client->facts.renews_by_session;
    }
    out->position = queue_position(record, client->session);
    out->reason = source != NULL ? record->reason : NULL;
    fill_kind(record, at, /* text= */ source != NULL, out);
    if (key_info.state == KEY_FREE)
        return;
    (void)snprintf(out->holder, sizeof out->holder, "%s",
                   key_info.holder != NULL ? key_info.holder : "");
    out->token = key_info.token;
    out->since_ms = age_of(key_info.since_ms, at->time_ms);
    out->ends_in_ms = key_info.ends_in_ms;
    out->takeover_in_ms = key_info.takeover_in_ms;
    fill_grants(record, &view, source != NULL ? source->meta : NULL, out);
}

void status_fill_unreadable(const char *key, const char *why, struct lh_view *out)
{
    *out = (struct lh_view)LH_VIEW_INIT;
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    out->state = LH_UNREADABLE;
    out->reason = out->result = "";
    out->text = why;
}

/* ---- holders and waiters ---- */

/* NULL for a view of lh_status(), of an unreadable record, or of an older program. */
static struct lh_view_source *view_source(const struct lh_view *view)
{
    bool known = view != NULL && view->size >= sizeof *view;
    return known ? view->source : NULL;
}

static const struct grant *holder_at(const struct lh_view_source *source, size_t index)
{
    const struct record *record = source->record;
    for (size_t i = 0; i < record->grant_count; i++) {
        if (!grant_ended(&record->grants[i], &source->view) && index-- == 0)
            return &record->grants[i];
    }
    return NULL;
}

bool lh_view_holder(const struct lh_view *view, size_t index, struct lh_holder *out)
{
    struct lh_holder holder = LH_HOLDER_INIT;
    struct lh_view_source *source = view_source(view);
    const struct grant *grant = source != NULL ? holder_at(source, index) : NULL;
    if (grant == NULL || out == NULL || !sized_is_valid(out))
        return false;
    struct key_info key_info = grant_key_info(grant, &source->view);
    int64_t now_ms = source->view.at.time_ms;
    holder.token = key_info.token;
    holder.since_ms = age_of(key_info.since_ms, now_ms);
    holder.ends_in_ms = key_info.ends_in_ms;
    holder.takeover_in_ms = key_info.takeover_in_ms;
    holder.renewed_ago_ms = age_of(grant->renewed.time_ms, now_ms);
    holder.ttl_ms = grant->ttl_ms;
    holder.shared = grant->mode == MODE_SHARED;
    holder.bound = grant->bound;
    holder.broken = grant->broken;
    holder.foreign = is_foreign_grant(grant);
    holder.by_heartbeat = grant->bound && source->view.facts->renews_by_session;
    holder.meta = source->holder_meta;
    holder.meta_count = list_meta(&grant->meta, source->holder_meta);
    (void)snprintf(holder.name, sizeof holder.name, "%s", grant->holder);
    sized_write(out, &holder, sizeof holder);
    return true;
}

static const struct waiter *waiter_at(const struct record *record, size_t index)
{
    for (size_t i = 0; i < record->waiter_count; i++) {
        if (waiters_before(record, &record->waiters[i]) == index)
            return &record->waiters[i];
    }
    return NULL;
}

bool lh_view_waiter(const struct lh_view *view, size_t index, struct lh_waiter *out)
{
    struct lh_waiter found = LH_WAITER_INIT;
    const struct lh_view_source *source = view_source(view);
    const struct waiter *waiter = source != NULL ? waiter_at(source->record, index) : NULL;
    if (waiter == NULL || out == NULL || !sized_is_valid(out))
        return false;
    found.since_ms = age_of(waiter_since_ms(waiter), source->view.at.time_ms);
    found.position = waiter_position(source->record, waiter);
    found.priority = waiter->priority;
    found.shared = waiter->mode == MODE_SHARED;
    found.offered = waiter->offered;
    (void)snprintf(found.name, sizeof found.name, "%s", waiter->holder);
    sized_write(out, &found, sizeof found);
    return true;
}

size_t lh_view_record(const struct lh_view *view, char *out, size_t size)
{
    const struct lh_view_source *source = view_source(view);
    if (source == NULL || out == NULL || source->view.at.revision == 0)
        return 0;
    return record_encode(source->record, out, size);
}

int lh_view_processes(const struct lh_view *view, size_t index, int *out_pids, size_t size)
{
    const struct lh_view_source *source = view_source(view);
    const struct grant *grant = source != NULL ? holder_at(source, index) : NULL;
    if (grant == NULL || out_pids == NULL || !grant->bound || !source->detects_processes)
        return -1;
    return (int)session_processes(grant->session, out_pids, size < INT_MAX ? size : INT_MAX);
}

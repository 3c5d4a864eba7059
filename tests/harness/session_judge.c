/* SPDX-License-Identifier: Apache-2.0 */
/* See session_judge.h. Judges by its own numbers, without core/rules.h. */
#include "session_judge.h"

#include "store/condition.h"
#include "wire/record_codec.h"

#include <stdlib.h>

enum { WRITES_FIRST = 1024 };

void session_judge_note(struct session_judge *judge, const struct store_reply *reply)
{
    struct session_write write = {stamp_order(&reply->written), reply->written.time_ms};
    if (!reply->present)
        return;
    while (judge->count > 0 && judge->writes[judge->count - 1].order >= write.order)
        judge->count--; /* of an earlier store */
    if (judge->count == judge->size) {
        judge->size = judge->size > 0 ? judge->size * 2 : WRITES_FIRST;
        judge->writes = realloc(judge->writes, judge->size * sizeof judge->writes[0]);
        if (judge->writes == NULL)
            abort();
    }
    judge->writes[judge->count++] = write;
}

/* A test's own record may have a stamp that no write made: it began with time itself. */
static int64_t session_judge_time(const struct session_judge *judge, const struct stamp *stamp)
{
    uint64_t order = stamp_order(stamp);
    size_t from = 0, to = judge->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (judge->writes[middle].order < order)
            from = middle + 1;
        else
            to = middle;
    }
    return from < judge->count && judge->writes[from].order == order ? judge->writes[from].time_ms
                                                                     : 0;
}

static void restore_stamp(const struct session_judge *judge, struct stamp *stamp)
{
    if (stamp->revision != THIS_WRITE && stamp->time_ms == TIME_UNKNOWN)
        stamp->time_ms = session_judge_time(judge, stamp);
}

void session_judge_restore(const struct session_judge *judge, struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        restore_stamp(judge, &record->grants[i].granted);
        restore_stamp(judge, &record->grants[i].renewed);
    }
    for (size_t i = 0; i < record->waiter_count; i++)
        restore_stamp(judge, &record->waiters[i].offer);
    restore_stamp(judge, &record->cooling.since);
    restore_stamp(judge, &record->delay.since);
    if (record->kind == KIND_WATERMARK)
        restore_stamp(judge, &record->watermark.moved);
}

static bool session_judge_load(struct session_judge *judge, const struct store_reply *reply)
{
    struct codec_error error;
    struct record *record = &judge->record;
    if (!reply->present || record_decode(reply->bytes, reply->length, record, &error) != DECODE_OK)
        return false;
    record_resolve(record, &reply->written);
    return true;
}

void session_judge_beat(struct session_judge *judge, uint64_t session, int64_t now_ms)
{
    struct session_life *life = &judge->sessions[session];
    if (now_ms >= life->last_ms + judge->session_ttl_ms)
        life->since_ms = now_ms;
    life->last_ms = now_ms;
}

/* A grant that ended before the present series of heartbeats began stays ended. */
int64_t session_judge_end(const struct session_judge *judge, const struct grant *grant)
{
    int64_t end_ms = session_judge_time(judge, &grant->renewed) + grant->ttl_ms;
    if (judge->sessions == NULL || !grant->bound)
        return end_ms;
    const struct session_life *life = &judge->sessions[grant->session];
    int64_t session_end_ms = life->last_ms + judge->session_ttl_ms;
    return end_ms > life->since_ms && session_end_ms > end_ms ? session_end_ms : end_ms;
}

static bool grant_is_over(const struct session_judge *judge, const struct grant *grant,
                          int64_t now_ms)
{
    return session_judge_end(judge, grant) + judge->late_ms <= now_ms;
}

static bool has_ended(const struct session_judge *judge, const struct stamp *since,
                      int64_t length_ms, int64_t now_ms)
{
    return session_judge_time(judge, since) + length_ms + judge->late_ms <= now_ms;
}

static bool span_is_over(const struct session_judge *judge, const struct span *span, int64_t now_ms)
{
    return span->length_ms > 0 && has_ended(judge, &span->since, span->length_ms, now_ms);
}

void session_judge_reply(struct session_judge *judge, struct store_reply *reply)
{
    const struct record *record = &judge->record;
    int64_t now_ms = reply->now_ms;
    reply->ended_tokens = judge->ended;
    reply->ended_count = 0;
    bool known = session_judge_load(judge, reply);
    for (size_t i = 0; known && i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant_is_over(judge, grant, now_ms))
            judge->ended[reply->ended_count++] = grant_token(grant);
    }
    reply->cooling_over = known && span_is_over(judge, &record->cooling, now_ms);
    reply->delay_over = known && span_is_over(judge, &record->delay, now_ms);
    reply->now_ms = TIME_UNKNOWN;
    if (judge->sessions == NULL)
        reply->written.time_ms = TIME_UNKNOWN;
}

/* True if the token's grant has ended by its length; its other conditions are those of any store.
 */
static bool token_has_ended(struct session_judge *judge, const struct store_reply *current,
                            uint64_t token)
{
    if (!session_judge_load(judge, current))
        return true;
    const struct grant *grant = record_grant_by_token(&judge->record, token);
    return grant == NULL || grant_is_over(judge, grant, current->now_ms);
}

void session_judge_request(struct session_judge *judge, const struct store_reply *current,
                           struct store_request *request)
{
    bool writes = request->verb == VERB_STORE_SWAP || request->verb == VERB_STORE_DELETE;
    if (!writes || request->condition.token == 0)
        return;
    struct condition met = {.kind = IF_REVISION, .revision = stamp_order(&current->written)};
    struct stored_record stored = {.bytes = current->present ? current->bytes : NULL,
                                   .length = current->length,
                                   .written = current->written,
                                   .now_ms = TIME_UNKNOWN};
    stored.written.time_ms = TIME_UNKNOWN;
    if (token_has_ended(judge, current, request->condition.token) ||
        !condition_holds(request, &stored, &judge->record)) {
        met.revision = REVISION_MAX; /* never: the driver replies with the current record */
    } else if (request->verb == VERB_STORE_SWAP && request->condition.kind == IF_GRANT) {
        request->length =
            condition_renewal(request, &stored, &judge->record, judge->bytes, sizeof judge->bytes);
        request->bytes = judge->bytes;
        request->retention_ms = record_retention_ms(&judge->record);
    }
    request->condition = met;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See translate.h. */
#include "store/translate.h"

#include "base/check.h"
#include "base/text.h"
#include "core/mutant.h"
#include "wire/record_codec.h"

#include <string.h>

/* A request id of a user may begin likewise, so the session must match, too. */
bool is_foreign_grant(const struct grant *grant)
{
    char request[REQUEST_MAX + 1];
    struct text text;
    if (strncmp(grant->request, FOREIGN_LEASE, sizeof FOREIGN_LEASE - 1) == 0)
        return grant->session == FOREIGN_LEASE_SESSION;
    text_init(&text, request, sizeof request);
    text_add(&text, FOREIGN_REQUEST);
    text_add_hex(&text, grant->session + grant->n);
    return strcmp(grant->request, request) == 0;
}

static void summarize_hold(struct store_summary *out, const struct stamp *since, int64_t length_ms,
                           const char *by)
{
    bool is_new = since->revision == THIS_WRITE;
    int64_t *to = is_new ? &out->held_ms : &out->held_until_ms;
    int64_t end_ms = is_new ? length_ms : since->time_ms + length_ms;
    if (end_ms > *to)
        *to = end_ms;
    if (out->holder[0] == '\0')
        out->holder = by;
}

static void summarize_grants(const struct record *record, uint64_t session,
                             struct store_summary *out)
{
    out->grants = record->grant_count;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        bool is_new = grant->granted.revision == THIS_WRITE;
        out->new_grants += is_new ? 1 : 0;
        bool is_renewed = is_new || grant->renewed.revision == THIS_WRITE;
        out->renewed_grants += is_renewed ? 1 : 0;
        out->binds = out->binds || (is_renewed && grant->bound && grant->session == session);
        summarize_hold(out, &grant->renewed, grant->ttl_ms + grant->lock_delay_ms, grant->holder);
    }
    if (record->grant_count == 0)
        return;
    const struct grant *first = &record->grants[0];
    out->renewed = first->renewed.revision == THIS_WRITE;
    out->broken = first->broken;
    out->token = grant_token(first);
    out->ttl_ms = first->ttl_ms;
    out->request = first->request;
}

void summarize_record(const struct record *record, uint64_t session, struct store_summary *out)
{
    const struct span *delay = &record->delay, *cooling = &record->cooling;
    *out = (struct store_summary){.kind = record->kind,
                                  .waiters = record->waiter_count,
                                  .permanent = record_awaits_watermark(record) ||
                                               record->kind == KIND_WATERMARK,
                                  .holder = "",
                                  .request = "",
                                  .spans_ms = delay->length_ms + cooling->length_ms};
    summarize_grants(record, session, out);
    for (size_t i = 0; i < record->waiter_count; i++) {
        out->offers += record->waiters[i].offered ? 1 : 0;
        out->queued = out->queued || record->waiters[i].session == session;
    }
    if (delay->length_ms > 0)
        summarize_hold(out, &delay->since, delay->length_ms, delay->by);
    if (record->kind == KIND_ONCE && cooling->length_ms > 0)
        summarize_hold(out, &cooling->since, cooling->length_ms, cooling->by);
}

void translate_request(const struct lease *lease, const struct lease_output *output,
                       const struct record *record, char *bytes, size_t size,
                       struct store_request *out)
{
    const struct request *request = &lease->options->request;
    static const enum store_verb verbs[] = {[ACTION_READ] = VERB_STORE_READ,
                                            [ACTION_SWAP] = VERB_STORE_SWAP,
                                            [ACTION_DELETE] = VERB_STORE_DELETE};
    ASSERT(output->action != ACTION_NONE);
    *out = (struct store_request){.verb = verbs[output->action],
                                  .key = request->key,
                                  .condition = output->condition,
                                  .ttl_ms = request->ttl_ms,
                                  .session = request->session,
                                  .bound = request->bound,
                                  .wake = output->wake,
                                  .wake_count = output->wake_count,
                                  .given_count = output->given_count,
                                  .spare_count = output->spare_count};
    if (output->action == ACTION_SWAP && output->condition.kind != IF_GRANT) {
        out->bytes = bytes;
        out->length = record_encode(record, bytes, size);
        ASSERT(out->length > 0);
        summarize_record(record, request->session, &out->summary);
        out->retention_ms = record_retention_ms(record);
    }
}

static bool is_time(int64_t time_ms)
{
    return time_ms == TIME_UNKNOWN || (time_ms >= 0 && time_ms <= TIME_MAX_MS);
}

/* Tokens and deadlines are computed from these: out of bounds they are rejected, not clamped. */
static bool is_sane(const struct store_reply *reply)
{
    const struct stamp *written = &reply->written;
    bool is_stamp = written->revision > 0 && written->revision <= REVISION_MAX &&
                    written->epoch <= EPOCH_MAX && is_time(written->time_ms);
    return is_time(reply->now_ms) && (!reply->present || is_stamp);
}

static bool is_among(uint64_t number, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static void apply_liveness(const struct store_reply *reply, struct record *record)
{
    const uint64_t *dead = reply->dead_sessions, *ended = reply->ended_tokens;
    size_t dead_count = MUTANT(DEAD_SESSION_IGNORED) ? 0 : reply->dead_count;
    size_t ended_count = MUTANT(ENDED_TOKEN_IGNORED) ? 0 : reply->ended_count;
    for (size_t i = 0; i < record->grant_count; i++) {
        struct grant *grant = &record->grants[i];
        grant->dead = is_among(grant->session, dead, dead_count);
        grant->over = is_among(grant_token(grant), ended, ended_count) ||
                      (MUTANT(ENDED_TOKEN_ENDS_ALL) && ended_count > 0);
    }
    for (size_t i = 0; i < record->waiter_count; i++)
        record->waiters[i].dead = is_among(record->waiters[i].session, dead, dead_count);
    record->cooling.over = reply->cooling_over && !MUTANT(COOLING_END_IGNORED);
    record->delay.over = reply->delay_over && !MUTANT(DELAY_END_IGNORED);
}

void translate_reply(const struct store_reply *reply, const char *key, struct record *record,
                     struct event *out, const char **why)
{
    struct codec_error error;
    out->reply = reply->result;
    out->refused = reply->refused;
    out->alive_ms = reply->alive_ms;
    out->known = false;
    out->at = (struct stamp){.time_ms = reply->now_ms, .epoch = reply->written.epoch};
    if (reply->result != REPLY_OK && reply->result != REPLY_CONFLICT)
        return;
    if (!is_sane(reply)) {
        out->reply = REPLY_TROUBLE;
        *why = "the store's revision or time is out of bounds";
        return;
    }
    if (!reply->present) {
        out->known = true;
        record_init(record, key);
        return;
    }
    enum decode_result result = record_decode(reply->bytes, reply->length, record, &error);
    if (result != DECODE_OK) {
        out->reply = REPLY_TROUBLE;
        *why = decode_result_text(result);
        return;
    }
    record_resolve(record, &reply->written);
    if (record->grant_count > 1 && record_broken(record) != NULL) {
        out->reply = REPLY_TROUBLE; /* a mark became another grant's token */
        *why = decode_result_text(DECODE_BROKEN);
        return;
    }
    out->known = true;
    apply_liveness(reply, record);
    out->at.revision = reply->written.revision;
}

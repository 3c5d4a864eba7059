/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records to bytes; see record_codec.h. Writes the fields in their order; record_decode.c is its
 * mirror: change both together. Records are our own: a wrong one fails an assertion.
 */
#include "wire/record_codec_internal.h"

#include "base/check.h"

#include <string.h>

static const char *const mode_names[] = {
    [MODE_EXCLUSIVE] = "\"exclusive\"",
    [MODE_SHARED] = "\"shared\"",
    [MODE_SLOT] = "\"slot\"",
};

const char *const codec_order_names[] = {
    [ORDER_NONE] = "\"\"",
    [ORDER_NUMBER] = "\"number\"",
    [ORDER_TIME] = "\"time\"",
    [ORDER_TEXT] = "\"text\"",
};

bool codec_same_stamp(const struct stamp *a, const struct stamp *b)
{
    if (a->revision != b->revision)
        return false;
    return a->revision == THIS_WRITE || (a->epoch == b->epoch && a->time_ms == b->time_ms);
}

/* The text between its quotes, which the caller writes with the names around it. */
static void encode_text(struct text *text, const char *string)
{
    size_t length = strlen(string);
    if (text_is_plain(string, length)) {
        text_add_bytes(text, string, length);
        return;
    }
    ASSERT(text_is_clean(string, length));
    while (*string != '\0') {
        size_t run = strcspn(string, "\"\\");
        text_add_bytes(text, string, run);
        string += run;
        if (*string != '\0') {
            text_add(text, "\\");
            text_add_bytes(text, string++, 1);
        }
    }
}

/* A field that is omitted if it is 0. */
static inline void encode_count(struct text *text, const char *name, uint64_t count)
{
    if (count == 0)
        return;
    text_add(text, name);
    text_add_u64(text, count);
}

/* A text that is omitted if it is empty; the name ends with the opening quote. */
static inline void encode_optional(struct text *text, const char *name, const char *string)
{
    if (string[0] == '\0')
        return;
    text_add(text, name);
    encode_text(text, string);
    text_add(text, "\"");
}

static inline void encode_stamp(struct text *text, const char *name, const struct stamp *stamp)
{
    text_add(text, name);
    if (stamp->revision == THIS_WRITE) {
        text_add(text, "\"this\"");
        return;
    }
    bool timed = stamp->time_ms != TIME_UNKNOWN;
    ASSERT(stamp->epoch <= EPOCH_MAX && stamp->revision <= REVISION_MAX);
    ASSERT(!timed || (stamp->time_ms >= 0 && (uint64_t)stamp->time_ms <= RECORD_NUMBER_MAX));
    text_add(text, "[");
    text_add_u64(text, stamp->epoch);
    text_add(text, ",");
    text_add_u64(text, stamp->revision);
    text_add(text, ",");
    if (timed)
        text_add_u64(text, (uint64_t)stamp->time_ms);
    else
        text_add(text, "null");
    text_add(text, "]");
}

/* The common start of a grant and a waiter. */
static void encode_who(struct text *text, const char *holder, const char *request, uint64_t session,
                       enum mode mode, bool bound)
{
    ASSERT(holder[0] != '\0' && request[0] != '\0');
    text_add(text, "{\"holder\":\"");
    encode_text(text, holder);
    text_add(text, "\",\"request\":\"");
    encode_text(text, request);
    text_add(text, "\",\"session\":\"");
    text_add_hex(text, session);
    text_add(text, "\",\"mode\":");
    text_add(text, mode_names[mode]);
    if (bound)
        text_add(text, ",\"bound\":true");
}

static void encode_terms(struct text *text, int64_t ttl_ms, int64_t lock_delay_ms)
{
    ASSERT(ttl_ms >= 1 && ttl_ms <= TTL_MAX_MS);
    ASSERT(lock_delay_ms >= 0 && lock_delay_ms <= TTL_MAX_MS);
    encode_count(text, ",\"ttl_ms\":", (uint64_t)ttl_ms);
    encode_count(text, ",\"lock_delay_ms\":", (uint64_t)lock_delay_ms);
}

static void encode_meta(struct text *text, const struct meta *meta)
{
    const char *opening = ",\"meta\":{\"";
    for (size_t at = 0; at < meta->used;) {
        const char *name = meta->text + at;
        const char *value = name + strlen(name) + 1;
        text_add(text, opening);
        encode_text(text, name);
        text_add(text, "\":\"");
        encode_text(text, value);
        at = (size_t)(value - meta->text) + strlen(value) + 1;
        opening = "\",\"";
    }
    if (meta->used > 0)
        text_add(text, "\"}");
}

static void encode_grant(struct text *text, const struct grant *grant)
{
    ASSERT(grant->n <= N_MAX);
    encode_who(text, grant->holder, grant->request, grant->session, grant->mode, grant->bound);
    if (grant->broken)
        text_add(text, ",\"broken\":true");
    encode_count(text, ",\"n\":", grant->n);
    encode_stamp(text, ",\"granted\":", &grant->granted);
    if (!codec_same_stamp(&grant->granted, &grant->renewed))
        encode_stamp(text, ",\"renewed\":", &grant->renewed);
    encode_terms(text, grant->ttl_ms, grant->lock_delay_ms);
    encode_meta(text, &grant->meta);
    text_add(text, "}");
}

static void encode_waiter(struct text *text, const struct waiter *waiter)
{
    ASSERT(waiter->ticket >= 1);
    ASSERT(waiter->priority >= -PRIORITY_MAX && waiter->priority <= PRIORITY_MAX);
    ASSERT(waiter->passed <= PASSED_MAX);
    encode_who(text, waiter->holder, waiter->request, waiter->session, waiter->mode, waiter->bound);
    encode_count(text, ",\"ticket\":", waiter->ticket);
    if (waiter->priority != 0) {
        text_add(text, ",\"priority\":");
        text_add_i64(text, waiter->priority);
    }
    encode_count(text, ",\"passed\":", waiter->passed);
    if (waiter->offered)
        encode_stamp(text, ",\"offered\":", &waiter->offer);
    encode_terms(text, waiter->ttl_ms, waiter->lock_delay_ms);
    text_add(text, "}");
}

static void encode_span(struct text *text, const char *name, const struct span *span)
{
    ASSERT(span->length_ms >= 0 && span->length_ms <= SPAN_MAX_MS);
    if (span->length_ms == 0)
        return;
    text_add(text, name);
    encode_stamp(text, "{\"since\":", &span->since);
    encode_count(text, ",\"length_ms\":", (uint64_t)span->length_ms);
    encode_optional(text, ",\"by\":\"", span->by);
    text_add(text, "}");
}

static void encode_once(struct text *text, const struct once *once)
{
    const struct done *done = &once->done;
    text_add(text, ",\"once\":{\"payload\":\"");
    encode_text(text, once->payload);
    text_add(text, "\"");
    encode_optional(text, ",\"request\":\"", done->request);
    if (done->token != 0) {
        text_add(text, ",\"token\":\"");
        text_add_hex(text, done->token);
        text_add(text, "\"");
    }
    encode_count(text, ",\"status\":", done->status);
    encode_optional(text, ",\"result\":\"", done->result);
    encode_optional(text, ",\"watermark\":\"", done->watermark);
    encode_optional(text, ",\"until\":\"", done->until);
    text_add(text, "}");
}

static void encode_watermark(struct text *text, const struct watermark *watermark)
{
    text_add(text, ",\"watermark\":{\"order\":");
    text_add(text, codec_order_names[watermark->order]);
    text_add(text, ",\"value\":\"");
    encode_text(text, watermark->value);
    encode_stamp(text, "\",\"moved\":", &watermark->moved);
    encode_optional(text, ",\"by\":\"", watermark->by);
    ASSERT(watermark->request[0] != '\0' || watermark->from[0] == '\0');
    encode_optional(text, ",\"request\":\"", watermark->request);
    encode_optional(text, ",\"from\":\"", watermark->from);
    text_add(text, "}");
}

/* The lowest version that can express the record, so that older programs can read it. */
static uint64_t version_of(const struct record *record)
{
    if (record->kind == KIND_LOCK)
        return RECORD_VERSION_LOCKS;
    bool moved = record->kind == KIND_WATERMARK && record->watermark.request[0] != '\0';
    return moved ? RECORD_VERSION : RECORD_VERSION_KINDS;
}

static void encode_fields(struct text *text, const struct record *record)
{
    ASSERT(record->key[0] != '\0' && record->next_ticket >= 1);
    ASSERT(record->grant_count <= GRANTS_MAX && record->waiter_count <= WAITERS_MAX);
    encode_count(text, "{\"leasehold\":", version_of(record));
    text_add(text, ",\"key\":\"");
    encode_text(text, record->key);
    text_add(text, "\"");
    encode_count(text, ",\"limit\":", record->limit);
    if (record->next_ticket != 1)
        encode_count(text, ",\"next\":", record->next_ticket);
    for (size_t i = 0; i < record->grant_count; i++) {
        text_add(text, i == 0 ? ",\"grants\":[" : ",");
        encode_grant(text, &record->grants[i]);
    }
    text_add(text, record->grant_count > 0 ? "]" : "");
    for (size_t i = 0; i < record->waiter_count; i++) {
        text_add(text, i == 0 ? ",\"places\":[" : ",");
        encode_waiter(text, &record->waiters[i]);
    }
    text_add(text, record->waiter_count > 0 ? "]" : "");
    encode_span(text, ",\"cooling\":", &record->cooling);
    encode_span(text, ",\"delay\":", &record->delay);
    encode_optional(text, ",\"reason\":\"", record->reason);
    if (record->kind == KIND_ONCE)
        encode_once(text, &record->once);
    if (record->kind == KIND_WATERMARK)
        encode_watermark(text, &record->watermark);
    text_add(text, "}");
}

size_t record_encode(const struct record *record, char *bytes, size_t size)
{
    /* A forged record can exhaust the tickets, so this is no assertion. */
    if (size == 0 || record->next_ticket > RECORD_NUMBER_MAX)
        return 0;
    struct text text;
    text_init(&text, bytes, size <= RECORD_MAX ? size : RECORD_MAX + 1);
    encode_fields(&text, record);
    return text.cut ? 0 : text.length;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records to bytes; see record_codec.h. Goes through the fields in their order; record_decode.c is
 * its mirror: who changes one changes the other. Records are ours and get asserts.
 */
#include "wire/record_codec_inside.h"

#include "base/check.h"

#include <string.h>

const char *const codec_mode_words[] = {
    [MODE_EXCLUSIVE] = "\"exclusive\"",
    [MODE_SHARED] = "\"shared\"",
    [MODE_SLOT] = "\"slot\"",
};

const char *const codec_order_words[] = {
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

static void add_words(struct text *text, const char *words)
{
    ASSERT(text_is_clean(words, strlen(words)));
    text_add_bytes(text, "\"", 1);
    while (*words != '\0') {
        size_t run = strcspn(words, "\"\\");
        text_add_bytes(text, words, run);
        words += run;
        if (*words != '\0') {
            text_add_bytes(text, "\\", 1);
            text_add_bytes(text, words++, 1);
        }
    }
    text_add_bytes(text, "\"", 1);
}

/* A field that is left out when it says nothing. */
static void add_count(struct text *text, const char *name, uint64_t count)
{
    if (count == 0)
        return;
    text_add(text, name);
    text_add_u64(text, count);
}

static void add_some(struct text *text, const char *name, const char *words)
{
    if (words[0] == '\0')
        return;
    text_add(text, name);
    add_words(text, words);
}

static void add_stamp(struct text *text, const char *name, const struct stamp *stamp)
{
    text_add(text, name);
    if (stamp->revision == THIS_WRITE) {
        text_add(text, "\"this\"");
        return;
    }
    bool timed = stamp->time_ms != TIME_UNKNOWN;
    ASSERT(stamp->epoch <= EPOCH_MAX && stamp->revision <= REVISION_MAX);
    ASSERT(!timed || (stamp->time_ms >= 0 && (uint64_t)stamp->time_ms <= RECORD_NUMBER_MAX));
    text_add_bytes(text, "[", 1);
    text_add_u64(text, stamp->epoch);
    text_add_bytes(text, ",", 1);
    text_add_u64(text, stamp->revision);
    text_add_bytes(text, ",", 1);
    if (timed)
        text_add_u64(text, (uint64_t)stamp->time_ms);
    else
        text_add(text, "null");
    text_add_bytes(text, "]", 1);
}

/* How a grant and a place begin. */
static void add_who(struct text *text, const char *holder, const char *request, uint64_t session,
                    enum mode mode, bool bound)
{
    ASSERT(holder[0] != '\0' && request[0] != '\0');
    text_add(text, "{\"holder\":");
    add_words(text, holder);
    text_add(text, ",\"request\":");
    add_words(text, request);
    text_add(text, ",\"session\":\"");
    text_add_hex(text, session);
    text_add(text, "\",\"mode\":");
    text_add(text, codec_mode_words[mode]);
    if (bound)
        text_add(text, ",\"bound\":true");
}

static void add_terms(struct text *text, int64_t ttl_ms, int64_t lock_delay_ms)
{
    ASSERT(ttl_ms >= 1 && ttl_ms <= TTL_MAX_MS);
    ASSERT(lock_delay_ms >= 0 && lock_delay_ms <= TTL_MAX_MS);
    add_count(text, ",\"ttl_ms\":", (uint64_t)ttl_ms);
    add_count(text, ",\"lock_delay_ms\":", (uint64_t)lock_delay_ms);
}

static void add_meta(struct text *text, const struct meta *meta)
{
    const char *opening = ",\"meta\":{";
    for (size_t at = 0; at < meta->used;) {
        const char *name = meta->text + at;
        const char *value = name + strlen(name) + 1;
        text_add(text, opening);
        add_words(text, name);
        text_add_bytes(text, ":", 1);
        add_words(text, value);
        at = (size_t)(value - meta->text) + strlen(value) + 1;
        opening = ",";
    }
    if (meta->used > 0)
        text_add_bytes(text, "}", 1);
}

static void add_grant(struct text *text, const struct grant *grant)
{
    ASSERT(grant->n <= N_MAX);
    add_who(text, grant->holder, grant->request, grant->session, grant->mode, grant->bound);
    if (grant->broken)
        text_add(text, ",\"broken\":true");
    add_count(text, ",\"n\":", grant->n);
    add_stamp(text, ",\"granted\":", &grant->granted);
    if (!codec_same_stamp(&grant->granted, &grant->renewed))
        add_stamp(text, ",\"renewed\":", &grant->renewed);
    add_terms(text, grant->ttl_ms, grant->lock_delay_ms);
    add_meta(text, &grant->meta);
    text_add_bytes(text, "}", 1);
}

static void add_place(struct text *text, const struct place *place)
{
    ASSERT(place->ticket >= 1);
    ASSERT(place->priority >= -PRIORITY_MAX && place->priority <= PRIORITY_MAX);
    ASSERT(place->passed <= PASSED_MAX);
    add_who(text, place->holder, place->request, place->session, place->mode, place->bound);
    add_count(text, ",\"ticket\":", place->ticket);
    if (place->priority != 0) {
        text_add(text, ",\"priority\":");
        text_add_i64(text, place->priority);
    }
    add_count(text, ",\"passed\":", place->passed);
    if (place->offered)
        add_stamp(text, ",\"offered\":", &place->offer);
    add_terms(text, place->ttl_ms, place->lock_delay_ms);
    text_add_bytes(text, "}", 1);
}

static void add_span(struct text *text, const char *name, const struct span *span)
{
    ASSERT(span->length_ms >= 0 && span->length_ms <= SPAN_MAX_MS);
    if (span->length_ms == 0)
        return;
    text_add(text, name);
    add_stamp(text, "{\"since\":", &span->since);
    add_count(text, ",\"length_ms\":", (uint64_t)span->length_ms);
    add_some(text, ",\"by\":", span->by);
    text_add_bytes(text, "}", 1);
}

static void add_once(struct text *text, const struct once *once)
{
    const struct done *done = &once->done;
    text_add(text, ",\"once\":{\"payload\":");
    add_words(text, once->payload);
    add_some(text, ",\"request\":", done->request);
    if (done->token != 0) {
        text_add(text, ",\"token\":\"");
        text_add_hex(text, done->token);
        text_add_bytes(text, "\"", 1);
    }
    add_count(text, ",\"status\":", done->status);
    add_some(text, ",\"result\":", done->result);
    add_some(text, ",\"watermark\":", done->watermark);
    add_some(text, ",\"until\":", done->until);
    text_add_bytes(text, "}", 1);
}

static void add_watermark(struct text *text, const struct watermark *watermark)
{
    text_add(text, ",\"watermark\":{\"order\":");
    text_add(text, codec_order_words[watermark->order]);
    text_add(text, ",\"value\":");
    add_words(text, watermark->value);
    add_stamp(text, ",\"moved\":", &watermark->moved);
    add_some(text, ",\"by\":", watermark->by);
    ASSERT(watermark->request[0] != '\0' || watermark->from[0] == '\0');
    add_some(text, ",\"request\":", watermark->request);
    add_some(text, ",\"from\":", watermark->from);
    text_add_bytes(text, "}", 1);
}

/* The lowest version that has all of it: a program that knows no other reads the rest. */
static uint64_t version_of(const struct record *record)
{
    if (record->kind == KIND_LOCK)
        return RECORD_VERSION_LOCKS;
    bool moved = record->kind == KIND_WATERMARK && record->watermark.request[0] != '\0';
    return moved ? RECORD_VERSION : RECORD_VERSION_KINDS;
}

static void add_record(struct text *text, const struct record *record)
{
    ASSERT(record->key[0] != '\0' && record->next_ticket >= 1);
    ASSERT(record->grant_count <= GRANTS_MAX && record->place_count <= PLACES_MAX);
    add_count(text, "{\"leasehold\":", version_of(record));
    text_add(text, ",\"key\":");
    add_words(text, record->key);
    add_count(text, ",\"limit\":", record->limit);
    if (record->next_ticket != 1)
        add_count(text, ",\"next\":", record->next_ticket);
    for (size_t i = 0; i < record->grant_count; i++) {
        text_add(text, i == 0 ? ",\"grants\":[" : ",");
        add_grant(text, &record->grants[i]);
    }
    text_add(text, record->grant_count > 0 ? "]" : "");
    for (size_t i = 0; i < record->place_count; i++) {
        text_add(text, i == 0 ? ",\"places\":[" : ",");
        add_place(text, &record->places[i]);
    }
    text_add(text, record->place_count > 0 ? "]" : "");
    add_span(text, ",\"cooling\":", &record->cooling);
    add_span(text, ",\"delay\":", &record->delay);
    add_some(text, ",\"reason\":", record->reason);
    if (record->kind == KIND_ONCE)
        add_once(text, &record->once);
    if (record->kind == KIND_WATERMARK)
        add_watermark(text, &record->watermark);
    text_add_bytes(text, "}", 1);
}

size_t record_encode(const struct record *record, char *bytes, size_t size)
{
    /* Tickets are the one number that a hostile record can bring to its end: no assert. */
    if (size == 0 || record->next_ticket > RECORD_NUMBER_MAX)
        return 0;
    struct text text;
    text_init(&text, bytes, size <= RECORD_MAX ? size : RECORD_MAX + 1);
    add_record(&text, record);
    if (text.cut)
        return 0;
    ASSERT(text.length <= record_weight(record));
    return text.length;
}

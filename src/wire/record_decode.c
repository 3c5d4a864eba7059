/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to records; see record_codec.h. Expects exactly the order in which record_encode.c writes:
 * change both together. Bytes are outside input: they cause errors, never assertions.
 */
#include "wire/record_codec_internal.h"

#include "base/check.h"
#include "wire/cursor.h"

#include <string.h>

/* The mirror of encode_count: absent is 0, and a written 0 is not canonical. */
static inline bool decode_count(struct cursor *cursor, const char *name, uint64_t most,
                                const char *what, uint64_t *out)
{
    *out = 0;
    return !cursor_take(cursor, name) || cursor_number(cursor, /* least= */ 1, most, what, out);
}

static inline bool decode_holder(struct cursor *cursor, char *out)
{
    return cursor_string(cursor, /* least= */ 1, HOLDER_MAX, "a holder's name", out);
}

static inline bool decode_ms(struct cursor *cursor, uint64_t least, int64_t most, const char *what,
                             int64_t *out)
{
    uint64_t number;
    if (!cursor_number(cursor, least, (uint64_t)most, what, &number))
        return false;
    *out = (int64_t)number;
    return true;
}

static bool decode_stamp(struct cursor *cursor, struct stamp *out)
{
    uint64_t epoch;
    memset(out, 0, sizeof *out); /* THIS_WRITE has no other fields */
    if (cursor_take(cursor, "\"this\""))
        return true;
    if (!cursor_take(cursor, "["))
        return cursor_refuse(cursor, "\"this\" or [epoch,revision,time]");
    if (!cursor_number(cursor, /* least= */ 0, EPOCH_MAX, "an epoch", &epoch) ||
        !cursor_expect(cursor, ",") ||
        !cursor_number(cursor, /* least= */ 1, REVISION_MAX, "a revision", &out->revision) ||
        !cursor_expect(cursor, ","))
        return false;
    out->epoch = (uint16_t)epoch;
    out->time_ms = TIME_UNKNOWN;
    if (!cursor_take(cursor, "null") &&
        !decode_ms(cursor, /* least= */ 0, (int64_t)RECORD_NUMBER_MAX,
                   "a time in milliseconds, or null", &out->time_ms))
        return false;
    return cursor_expect(cursor, "]");
}

static bool decode_renewed(struct cursor *cursor, struct grant *grant)
{
    grant->renewed = grant->granted;
    if (!cursor_take(cursor, ",\"renewed\":"))
        return true;
    size_t start = cursor->at;
    if (!decode_stamp(cursor, &grant->renewed))
        return false;
    return !codec_same_stamp(&grant->granted, &grant->renewed) ||
           cursor_refuse_at(cursor, start, "a renewal other than the grant");
}

static bool decode_mode(struct cursor *cursor, enum mode *out)
{
    if (cursor_take(cursor, "\"exclusive\""))
        *out = MODE_EXCLUSIVE;
    else if (cursor_take(cursor, "\"shared\""))
        *out = MODE_SHARED;
    else if (cursor_take(cursor, "\"slot\""))
        *out = MODE_SLOT;
    else
        return cursor_refuse(cursor, "\"exclusive\", \"shared\" or \"slot\"");
    return true;
}

static bool decode_who(struct cursor *cursor, char *holder, char *request, uint64_t *session,
                       enum mode *mode, bool *bound)
{
    if (!cursor_expect(cursor, "{\"holder\":") || !decode_holder(cursor, holder) ||
        !cursor_expect(cursor, ",\"request\":") ||
        !cursor_string(cursor, /* least= */ 1, REQUEST_MAX, "a request's id", request) ||
        !cursor_expect(cursor, ",\"session\":") ||
        !cursor_hex(cursor, "a session: 1 to 16 hex digits in quotes", session) ||
        !cursor_expect(cursor, ",\"mode\":") || !decode_mode(cursor, mode))
        return false;
    *bound = cursor_take(cursor, ",\"bound\":true");
    return true;
}

static bool decode_terms(struct cursor *cursor, int64_t *ttl_ms, int64_t *lock_delay_ms)
{
    if (!cursor_expect(cursor, ",\"ttl_ms\":") ||
        !decode_ms(cursor, /* least= */ 1, TTL_MAX_MS, "a TTL of 1 ms to 24 h", ttl_ms))
        return false;
    return !cursor_take(cursor, ",\"lock_delay_ms\":") ||
           decode_ms(cursor, /* least= */ 1, TTL_MAX_MS, "a lock delay of 1 ms to 24 h",
                     lock_delay_ms);
}

static bool decode_meta(struct cursor *cursor, struct meta *meta)
{
    if (!cursor_take(cursor, ",\"meta\":{"))
        return true;
    char name[META_MAX + 1], value[META_MAX + 1];
    do {
        size_t start = cursor->at;
        if (!cursor_string(cursor, /* least= */ 1, META_MAX, "a name of meta", name) ||
            !cursor_expect(cursor, ":") ||
            !cursor_string(cursor, /* least= */ 0, META_MAX, "a value of meta", value))
            return false;
        if (!meta_add(meta, name, value))
            return cursor_refuse_at(cursor, start, "meta within its limits, each name once");
    } while (cursor_take(cursor, ","));
    return cursor_expect(cursor, "}");
}

static bool decode_grant(struct cursor *cursor, struct record *record)
{
    if (record->grant_count == GRANTS_MAX)
        return cursor_refuse(cursor, "no more grants");
    size_t start = cursor->at;
    uint64_t n;
    struct grant *grant = record_add_grant(record);
    if (!decode_who(cursor, grant->holder, grant->request, &grant->session, &grant->mode,
                    &grant->bound))
        return false;
    if (record->grant_count > 1 && record_grant_by_request(record, grant->request) != grant)
        return cursor_refuse_at(cursor, start, "a grant whose request no other grant has");
    grant->broken = cursor_take(cursor, ",\"broken\":true");
    if (!decode_count(cursor, ",\"n\":", N_MAX, "an n of 1 to 1023", &n))
        return false;
    grant->n = (uint16_t)n;
    return cursor_expect(cursor, ",\"granted\":") && decode_stamp(cursor, &grant->granted) &&
           decode_renewed(cursor, grant) &&
           decode_terms(cursor, &grant->ttl_ms, &grant->lock_delay_ms) &&
           decode_meta(cursor, &grant->meta) && cursor_expect(cursor, "}");
}

static bool decode_priority(struct cursor *cursor, int32_t *out)
{
    uint64_t steps;
    if (!cursor_take(cursor, ",\"priority\":"))
        return true;
    bool negative = cursor_take(cursor, "-");
    if (!cursor_number(cursor, /* least= */ 1, PRIORITY_MAX, "a priority of -100 to 100", &steps))
        return false;
    *out = negative ? -(int32_t)steps : (int32_t)steps;
    return true;
}

static bool decode_waiter(struct cursor *cursor, uint64_t next_ticket, struct record *record)
{
    if (record->waiter_count == WAITERS_MAX)
        return cursor_refuse(cursor, "no more places");
    size_t start = cursor->at;
    uint64_t before =
        record->waiter_count > 0 ? record->waiters[record->waiter_count - 1].ticket : 0;
    uint64_t passed;
    struct waiter *waiter = record_add_waiter(record);
    if (!decode_who(cursor, waiter->holder, waiter->request, &waiter->session, &waiter->mode,
                    &waiter->bound))
        return false;
    if (record_waiter_by_session(record, waiter->session) != waiter)
        return cursor_refuse_at(cursor, start, "a place whose session no other place has");
    if (!cursor_expect(cursor, ",\"ticket\":") ||
        !cursor_number(cursor, before + 1, next_ticket - 1,
                       "a ticket above the one before and below \"next\"", &waiter->ticket) ||
        !decode_priority(cursor, &waiter->priority) ||
        !decode_count(cursor, ",\"passed\":", PASSED_MAX, "a count of 1 to 1000000", &passed))
        return false;
    waiter->passed = (uint32_t)passed;
    waiter->offered = cursor_take(cursor, ",\"offered\":");
    if (waiter->offered && !decode_stamp(cursor, &waiter->offer))
        return false;
    return decode_terms(cursor, &waiter->ttl_ms, &waiter->lock_delay_ms) &&
           cursor_expect(cursor, "}");
}

static bool decode_grants(struct cursor *cursor, struct record *record)
{
    if (!cursor_take(cursor, ",\"grants\":["))
        return true;
    do {
        if (!decode_grant(cursor, record))
            return false;
    } while (cursor_take(cursor, ","));
    return cursor_expect(cursor, "]");
}

static bool decode_waiters(struct cursor *cursor, uint64_t next_ticket, struct record *record)
{
    if (!cursor_take(cursor, ",\"places\":["))
        return true;
    do {
        if (!decode_waiter(cursor, next_ticket, record))
            return false;
    } while (cursor_take(cursor, ","));
    return cursor_expect(cursor, "]");
}

static inline bool decode_span(struct cursor *cursor, const char *name, struct span *span)
{
    if (!cursor_take(cursor, name))
        return true;
    if (!cursor_expect(cursor, "{\"since\":") || !decode_stamp(cursor, &span->since) ||
        !cursor_expect(cursor, ",\"length_ms\":") ||
        !decode_ms(cursor, /* least= */ 1, SPAN_MAX_MS, "a length of 1 ms to 366 days",
                   &span->length_ms))
        return false;
    if (cursor_take(cursor, ",\"by\":") && !decode_holder(cursor, span->by))
        return false;
    return cursor_expect(cursor, "}");
}

/* The mirror of encode_optional: absent is empty, and a written text has at least one byte. */
static inline bool decode_optional(struct cursor *cursor, const char *name, size_t most,
                                   const char *what, char *out)
{
    return !cursor_take(cursor, name) || cursor_string(cursor, /* least= */ 1, most, what, out);
}

static bool decode_token(struct cursor *cursor, uint64_t *out)
{
    size_t start = cursor->at;
    if (!cursor_take(cursor, ",\"token\":"))
        return true;
    if (!cursor_hex(cursor, "a token: 1 to 16 hex digits in quotes", out))
        return false;
    return *out != 0 || cursor_refuse_at(cursor, start, "a token above 0, or none");
}

static bool decode_once(struct cursor *cursor, struct record *record)
{
    uint64_t status;
    record_set_kind(record, KIND_ONCE);
    struct done *done = &record->once.done;
    if (!cursor_string(cursor, /* least= */ 0, PAYLOAD_MAX, "a fingerprint",
                       record->once.payload) ||
        !decode_optional(cursor, ",\"request\":", REQUEST_MAX, "a request's id", done->request) ||
        !decode_token(cursor, &done->token) ||
        !decode_count(cursor, ",\"status\":", STATUS_MAX, "a status of 1 to 255", &status))
        return false;
    done->status = (uint8_t)status;
    return decode_optional(cursor, ",\"result\":", RESULT_MAX, "a result", done->result) &&
           decode_optional(cursor, ",\"watermark\":", KEY_MAX, "a key", done->watermark) &&
           decode_optional(cursor, ",\"until\":", POSITION_MAX, "a position", done->until) &&
           cursor_expect(cursor, "}");
}

static bool decode_order(struct cursor *cursor, enum order *out)
{
    for (enum order order = ORDER_NUMBER; order <= ORDER_TEXT; order++) {
        if (!cursor_take(cursor, codec_order_names[order]))
            continue;
        *out = order;
        return true;
    }
    return cursor_refuse(cursor, "\"number\", \"time\" or \"text\"");
}

/* The identity of the last advance: always in version 3, in no other. */
static bool decode_move(struct cursor *cursor, uint64_t version, struct watermark *watermark)
{
    if (version == RECORD_VERSION_KINDS)
        return true;
    return cursor_expect(cursor, ",\"request\":") &&
           cursor_string(cursor, /* least= */ 1, REQUEST_MAX, "a request's id",
                         watermark->request) &&
           decode_optional(cursor, ",\"from\":", POSITION_MAX, "a position", watermark->from);
}

static bool decode_watermark(struct cursor *cursor, uint64_t version, struct record *record)
{
    struct watermark *watermark = &record->watermark;
    record_set_kind(record, KIND_WATERMARK);
    return decode_order(cursor, &watermark->order) && cursor_expect(cursor, ",\"value\":") &&
           cursor_string(cursor, /* least= */ 1, POSITION_MAX, "a position", watermark->value) &&
           cursor_expect(cursor, ",\"moved\":") && decode_stamp(cursor, &watermark->moved) &&
           decode_optional(cursor, ",\"by\":", HOLDER_MAX, "a holder's name", watermark->by) &&
           decode_move(cursor, version, watermark) && cursor_expect(cursor, "}");
}

/* The kind of the key; the version must be the lowest that can express it. */
static bool decode_kind(struct cursor *cursor, uint64_t version, struct record *record)
{
    if (version == RECORD_VERSION_LOCKS)
        return true;
    if (version == RECORD_VERSION_KINDS && cursor_take(cursor, ",\"once\":{\"payload\":"))
        return decode_once(cursor, record);
    if (cursor_take(cursor, ",\"watermark\":{\"order\":"))
        return decode_watermark(cursor, version, record);
    return cursor_refuse(cursor, "an id or a watermark, in this version");
}

/* Absent from most records. */
static bool decode_rest(struct cursor *cursor, uint64_t version, struct record *record)
{
    return decode_span(cursor, ",\"cooling\":", &record->cooling) &&
           decode_span(cursor, ",\"delay\":", &record->delay) &&
           decode_optional(cursor, ",\"reason\":", REASON_MAX, "a reason", record->reason) &&
           decode_kind(cursor, version, record);
}

static bool decode_fields(struct cursor *cursor, uint64_t version, struct record *record)
{
    uint64_t limit, next_ticket = 1;
    record_clear(record);
    if (!cursor_expect(cursor, ",\"key\":") ||
        !cursor_string(cursor, /* least= */ 1, KEY_MAX, "a key", record->key) ||
        !decode_count(cursor, ",\"limit\":", UINT32_MAX, "a limit of slots", &limit))
        return false;
    if (cursor_take(cursor, ",\"next\":") &&
        !cursor_number(cursor, /* least= */ 2, RECORD_NUMBER_MAX, "a ticket above 1", &next_ticket))
        return false;
    record->limit = (uint32_t)limit;
    if (!decode_grants(cursor, record) || !decode_waiters(cursor, next_ticket, record))
        return false;
    record->next_ticket = next_ticket; /* only now: record_add_waiter() increments it */
    bool ends = version == RECORD_VERSION_LOCKS && cursor_take(cursor, "}");
    if (!ends && (!decode_rest(cursor, version, record) || !cursor_expect(cursor, "}")))
        return false;
    if (cursor->at < cursor->length)
        return cursor_refuse(cursor, "nothing after the record");
    return record_broken(record) == NULL;
}

/* Checks the version first: a newer form may be longer, or not JSON. */
static enum decode_result decode_all(struct cursor *cursor, uint64_t *version,
                                     struct record *record)
{
    if (!cursor_expect(cursor, "{\"leasehold\":"))
        return DECODE_NOT_OURS;
    size_t start = cursor->at;
    if (!cursor_number(cursor, /* least= */ 1, UINT32_MAX, "a version", version))
        return DECODE_BROKEN;
    if (*version > RECORD_VERSION) {
        cursor_refuse_at(cursor, start, "a version that is known here");
        return DECODE_NEWER_VERSION;
    }
    if (cursor->length > RECORD_MAX) {
        cursor_refuse_at(cursor, RECORD_MAX, "nothing after the record's limit");
        return DECODE_TOO_LONG;
    }
    return decode_fields(cursor, *version, record) ? DECODE_OK : DECODE_BROKEN;
}

enum decode_result record_decode(const char *bytes, size_t length, struct record *out,
                                 struct codec_error *error)
{
    struct cursor cursor = {.bytes = bytes, .length = length};
    uint64_t version = 0;
    enum decode_result result = decode_all(&cursor, &version, out);
    if (result == DECODE_OK)
        return result;
    error->offset = cursor.at;
    error->expected = cursor.expected;
    error->broken = cursor.expected == NULL ? record_broken(out) : NULL;
    error->version = (uint32_t)version;
    record_init(out, "?");
    return result;
}

const char *decode_result_text(enum decode_result result)
{
    switch (result) {
#define DECODE_RESULT_TEXT(name, text) \
    case name:                         \
        return text;
        DECODE_RESULTS(DECODE_RESULT_TEXT)
#undef DECODE_RESULT_TEXT
    }
    UNREACHABLE("a result outside its list");
}

void decode_describe(enum decode_result result, const struct codec_error *error, struct text *out)
{
    text_add(out, decode_result_text(result));
    if (result == DECODE_OK)
        return;
    if (result == DECODE_NEWER_VERSION) {
        text_add(out, ": version ");
        text_add_u64(out, error->version);
        text_add(out, ", known up to ");
        text_add_u64(out, RECORD_VERSION);
        return;
    }
    if (error->broken != NULL) {
        text_add(out, ": ");
        text_add(out, error->broken);
        return;
    }
    text_add(out, ": at byte ");
    text_add_u64(out, error->offset);
    text_add(out, ", expected ");
    text_add(out, error->expected);
}

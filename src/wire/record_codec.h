/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as stores keep them: one line of JSON, readable with every store's own tools. The form is
 * canonical: the decoder accepts only bytes that the encoder would write. Therefore a store must
 * keep the bytes unchanged (no jsonb). Pure: no clock, no allocation, no interpretation of records.
 */
#ifndef LEASEHOLD_WIRE_RECORD_CODEC_H
#define LEASEHOLD_WIRE_RECORD_CODEC_H

#include "base/text.h"
#include "core/record.h"

#include <stddef.h>
#include <stdint.h>

/*
 * record {"leasehold":1,"key":W,"limit":N,"next":N,"grants":[G,…],"places":[P,…],"cooling":S,
 *         "delay":S,"reason":W,"once":O}  or "watermark":V in its place, or neither
 * G      {"holder":W,"request":W,"session":"hex","mode":M,"bound":true,"broken":true,"n":N,
 *         "granted":T,"renewed":T,"ttl_ms":N,"lock_delay_ms":N,"meta":{W:W,…}}
 * P      {"holder":W,"request":W,"session":"hex","mode":M,"bound":true,"ticket":N,"priority":N,
 *         "passed":N,"offered":T,"ttl_ms":N,"lock_delay_ms":N}
 * S      {"since":T,"length_ms":N,"by":W}
 * O      {"payload":W,"request":W,"token":"hex","status":N,"result":W,"watermark":W,"until":W}
 * V      {"order":"number", "time" or "text","value":W,"moved":T,"by":W,"request":W,"from":W}
 * T      "this" (this write) or [epoch,revision,time_ms]; the time is null when it is unknown
 * M      "exclusive", "shared" or "slot"
 *
 * Members are in this order, without white space; only " and \ are escaped. Omitted are 0, false,
 * empty lists and texts (except a payload), "next" 1, and "renewed" if it equals "granted". Each
 * record is written in the lowest version that can express it: 1 has locks only, 2 also ids and
 * watermarks, 3 also a watermark's "request" and "from". A reader refuses a member that its version
 * does not list, so the time at which a waiter was queued is in its ticket: waiter_since_ms().
 */
enum { RECORD_VERSION_LOCKS = 1, RECORD_VERSION_KINDS = 2, RECORD_VERSION = 3 };

/* The largest number that every JSON reader keeps; the limit of tickets and of a store's time. */
#define RECORD_NUMBER_MAX (((uint64_t)1 << 53) - 1)

#define DECODE_RESULTS(X)                                                  \
    X(DECODE_OK, "a record")                                               \
    X(DECODE_NOT_OURS, "the value was not written by leasehold")           \
    X(DECODE_NEWER_VERSION, "the record was written by a newer leasehold") \
    X(DECODE_TOO_LONG, "the record is too long")                           \
    X(DECODE_BROKEN, "the record is broken")

enum decode_result {
#define DECODE_RESULT_NAME(name, text) name,
    DECODE_RESULTS(DECODE_RESULT_NAME)
#undef DECODE_RESULT_NAME
};

struct codec_error {
    size_t offset;        /* start of the refused value; the length if all was read */
    const char *expected; /* at that offset; NULL if the record contradicts itself */
    const char *broken;   /* then: the text of record_broken(); otherwise NULL */
    uint32_t version;     /* found, 0 if none was; compare with RECORD_VERSION */
};

/*
 * Returns the length, at most record_size_bound(), or 0 if the record does not fit into size − 1 or
 * RECORD_MAX bytes or has run out of tickets. A NUL follows the last byte. Asserts the limits and
 * invariants of the record.
 */
size_t record_encode(const struct record *record, char *bytes, size_t size);

/*
 * Checks every limit of record.h, and record_broken(). To save a second record of this size, a
 * failure resets `out` to the empty record "?"; `error` is set only then.
 */
enum decode_result record_decode(const char *bytes, size_t length, struct record *out,
                                 struct codec_error *error);

const char *decode_result_text(enum decode_result result);
/* One line for people: the error, its offset and the expected value; or both versions. */
void decode_describe(enum decode_result result, const struct codec_error *error, struct text *out);

#endif

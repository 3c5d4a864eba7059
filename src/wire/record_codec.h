/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as stores keep them: one line of JSON, so that every store's own tools can show it.
 * There is exactly one way to write a record and the decoder accepts no other: what it accepts
 * encodes to the same bytes again. Therefore a store must keep the bytes as they are (no jsonb).
 * Pure: no clock, no memory of its own, and no opinion about what a record means.
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
 * In this order and without white space; only " and \ are escaped. What says nothing is left out:
 * 0, false, nothing in a list or text (but a payload), "next" 1, and "renewed" when it is the same
 * as "granted". Each record is written in the lowest version that has all of it: 1 has locks only,
 * 2 also ids and watermarks, 3 also a watermark's "request" and "from".
 */
enum { RECORD_VERSION_LOCKS = 1, RECORD_VERSION_KINDS = 2, RECORD_VERSION = 3 };

/* The largest number that every JSON reader keeps; the end of tickets and of a store's time. */
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
    size_t offset;        /* where the refused value begins; the length, if all was read */
    const char *expected; /* there; NULL when the record as a whole contradicts itself */
    const char *broken;   /* and then, what record_broken() said of it; otherwise NULL */
    uint32_t version;     /* found, 0 when none was; to be held against RECORD_VERSION */
};

/*
 * Returns the length, never above record_size_bound(), or 0 when the record does not fit into size
 * − 1 or RECORD_MAX bytes, or has run out of tickets. A NUL follows the last byte. The record must
 * keep its limits and invariants: what breaks them is our own mistake and asserted.
 */
size_t record_encode(const struct record *record, char *bytes, size_t size);

/*
 * Every limit of record.h is checked, and record_broken(). To save a second record of this size,
 * `out` is not left untouched on failure but made the empty record "?"; `error` is set only then.
 */
enum decode_result record_decode(const char *bytes, size_t length, struct record *out,
                                 struct codec_error *error);

const char *decode_result_text(enum decode_result result);
/* One line for people: what is wrong, where, and what was expected; or both versions. */
void decode_describe(enum decode_result result, const struct codec_error *error, struct text *out);

#endif

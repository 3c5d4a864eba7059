/* SPDX-License-Identifier: Apache-2.0 */
/* See expiry.h. core/rules.h defines whether a record is needed. */
#include "store/expiry.h"

#include "base/text.h"
#include "wire/record_codec.h"

static bool decode(const struct stored_record *stored, struct record *scratch)
{
    struct codec_error error;
    return stored->bytes != NULL &&
           record_decode(stored->bytes, stored->length, scratch, &error) == DECODE_OK;
}

/* The record is in the scratch, which is overwritten. */
static bool awaits_watermark(expiry_find *find, void *owner, struct record *scratch)
{
    char watermark[KEY_MAX + 1], until[POSITION_MAX + 1];
    if (!record_awaits_watermark(scratch))
        return false;
    text_copy(watermark, sizeof watermark, scratch->once.done.watermark);
    text_copy(until, sizeof until, scratch->once.done.until);
    struct stored_record stored = find(owner, watermark);
    return !decode(&stored, scratch) || !watermark_has_passed(scratch, until);
}

bool expiry_awaits_watermark(const struct stored_record *stored, expiry_find *find, void *owner,
                             struct record *scratch)
{
    return !decode(stored, scratch) || awaits_watermark(find, owner, scratch);
}

/* False if the store's clock is unknown or was set back. */
static bool is_older(const struct stored_record *stored, int64_t length_ms)
{
    int64_t written_ms = stored->written.time_ms;
    return written_ms != TIME_UNKNOWN && stored->now_ms >= written_ms &&
           stored->now_ms - written_ms >= length_ms;
}

bool expiry_is_due(const struct stored_record *stored, expiry_find *find, void *owner,
                   struct record *scratch)
{
    if (!decode(stored, scratch))
        return false;
    int64_t retention_ms = record_retention_ms(scratch);
    return retention_ms > 0 && is_older(stored, retention_ms) &&
           !awaits_watermark(find, owner, scratch);
}

bool expiry_is_leftover(const struct stored_record *stored, int64_t margin_ms, expiry_find *find,
                        void *owner, struct record *scratch)
{
    if (!decode(stored, scratch) || scratch->kind == KIND_WATERMARK)
        return false;
    return is_older(stored, record_blocks_ms(scratch) + margin_ms) &&
           !awaits_watermark(find, owner, scratch);
}

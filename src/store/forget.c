/* SPDX-License-Identifier: Apache-2.0 */
/* See forget.h. What a record needs, core/rules.h says. */
#include "store/forget.h"

#include "base/text.h"
#include "wire/record_codec.h"

static bool decode(const struct standing *standing, struct record *scratch)
{
    struct codec_error error;
    return standing->bytes != NULL &&
           record_decode(standing->bytes, standing->length, scratch, &error) == DECODE_OK;
}

/* The record is in the scratch, which is used up. */
static bool awaits(forget_find *find, void *owner, struct record *scratch)
{
    char watermark[KEY_MAX + 1], until[POSITION_MAX + 1];
    if (!record_awaits(scratch))
        return false;
    text_copy(watermark, sizeof watermark, scratch->once.done.watermark);
    text_copy(until, sizeof until, scratch->once.done.until);
    struct standing standing = find(owner, watermark);
    return !decode(&standing, scratch) || !watermark_has_passed(scratch, until);
}

bool forget_awaits(const struct standing *standing, forget_find *find, void *owner,
                   struct record *scratch)
{
    return !decode(standing, scratch) || awaits(find, owner, scratch);
}

/* Never where the store's clock cannot say, or was set back. */
static bool is_older(const struct standing *standing, int64_t length_ms)
{
    int64_t written_ms = standing->written.time_ms;
    return written_ms != TIME_UNKNOWN && standing->now_ms >= written_ms &&
           standing->now_ms - written_ms >= length_ms;
}

bool forget_may(const struct standing *standing, forget_find *find, void *owner,
                struct record *scratch)
{
    if (!decode(standing, scratch))
        return false;
    int64_t lives_ms = record_lives_ms(scratch);
    return lives_ms > 0 && is_older(standing, lives_ms) && !awaits(find, owner, scratch);
}

bool forget_leftover(const struct standing *standing, int64_t margin_ms, forget_find *find,
                     void *owner, struct record *scratch)
{
    if (!decode(standing, scratch) || scratch->kind == KIND_WATERMARK)
        return false;
    return is_older(standing, record_blocks_ms(scratch) + margin_ms) &&
           !awaits(find, owner, scratch);
}

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

bool forget_may(const struct standing *standing, forget_find *find, void *owner,
                struct record *scratch)
{
    const struct stamp *written = &standing->written;
    if (!decode(standing, scratch))
        return false;
    int64_t lives_ms = record_lives_ms(scratch);
    if (lives_ms == 0 || written->time_ms == TIME_UNKNOWN || standing->now_ms < written->time_ms ||
        standing->now_ms - written->time_ms < lives_ms)
        return false;
    return !awaits(find, owner, scratch);
}

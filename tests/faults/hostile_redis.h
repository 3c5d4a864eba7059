/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile Redis server does to its nth reply; the table is in hostile_redis_table.c. */
#ifndef LEASEHOLD_TESTS_HOSTILE_REDIS_H
#define LEASEHOLD_TESTS_HOSTILE_REDIS_H

#include "hostile.h"

enum redis_action {
    HOSTILE_SAY,     /* the text instead */
    HOSTILE_BEFORE,  /* the text, then the reply; `number` times, if it is above 0 */
    HOSTILE_AFTER,   /* the reply, then the text */
    HOSTILE_CUT,     /* the first `number` bytes of the reply; below 0: all but so many */
    HOSTILE_DRIP,    /* the reply, or the text, byte by byte */
    HOSTILE_ENDLESS, /* the text, then `more` for ever */
    HOSTILE_ITEM,    /* part `number`, counted through all depths, becomes the text; only of a reply
                      that begins with `more` */
    HOSTILE_BULK,    /* … becomes a bulk string of the text */
    HOSTILE_SWAP,    /* in all texts of the reply: text becomes `more` */
    HOSTILE_DOUBLE,  /* the reply twice */
    HOSTILE_DROP,    /* no reply */
    HOSTILE_REPLAY,  /* the reply before it again */
    HOSTILE_FLIP,    /* the byte at `number` is another one */
    HOSTILE_LONG,    /* a text of `number` bytes: `text` again and again */
    HOSTILE_NEST,    /* `text` so often that it is nested `number` deep, around the reply */
};

extern const struct variant redis_variants[];
extern const size_t redis_variant_count;

#endif

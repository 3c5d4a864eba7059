/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile Redis server does to its nth reply; the table is in hostile_redis_table.c. */
#ifndef LEASEHOLD_TESTS_HOSTILE_REDIS_H
#define LEASEHOLD_TESTS_HOSTILE_REDIS_H

#include "hostile.h"

enum redis_deed {
    DEED_SAY,     /* the text instead */
    DEED_BEFORE,  /* the text, then the reply; `number` times, if it is above 0 */
    DEED_AFTER,   /* the reply, then the text */
    DEED_CUT,     /* the first `number` bytes of the reply; below 0: all but so many */
    DEED_DRIP,    /* the reply, or the text, byte by byte */
    DEED_ENDLESS, /* the text, then `more` for ever */
    DEED_ITEM,    /* part `number`, counted through all depths, becomes the text; only of a reply
                      that begins with `more` */
    DEED_BULK,    /* … becomes a bulk string of the text */
    DEED_SWAP,    /* in all texts of the reply: text becomes `more` */
    DEED_DOUBLE,  /* the reply twice */
    DEED_DROP,    /* no reply */
    DEED_REPLAY,  /* the reply before it again */
    DEED_FLIP,    /* the byte at `number` is another one */
    DEED_LONG,    /* a text of `number` bytes: `text` again and again */
    DEED_NEST,    /* `text` so often that it is nested `number` deep, around the reply */
};

extern const struct variant redis_variants[];
extern const size_t redis_variant_count;

#endif

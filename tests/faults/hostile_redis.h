/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of a hostile Redis server on its nth reply; hostile_redis_table.c has the table. */
#ifndef LEASEHOLD_TESTS_HOSTILE_REDIS_H
#define LEASEHOLD_TESTS_HOSTILE_REDIS_H

#include "hostile.h"

enum redis_action {
    HOSTILE_SAY,     /* the text instead */
    HOSTILE_BEFORE,  /* the text, then the reply; `number` times, if it is above 0 */
    HOSTILE_AFTER,   /* the reply, then the text */
    HOSTILE_CUT,     /* the first `number` bytes of the reply; below 0: all but that many */
    HOSTILE_DRIP,    /* the reply, or the text, byte by byte */
    HOSTILE_ENDLESS, /* the text, then `more` forever */
    HOSTILE_ITEM,    /* part `number`, counted through all depths, becomes the text; only of a reply
                      that begins with `more` */
    HOSTILE_BULK,    /* … becomes a bulk string of the text */
    HOSTILE_SWAP,    /* in all texts of the reply: text becomes `more` */
    HOSTILE_DOUBLE,  /* the reply twice */
    HOSTILE_DROP,    /* no reply */
    HOSTILE_REPLAY,  /* the previous reply again */
    HOSTILE_FLIP,    /* changes the byte at `number` */
    HOSTILE_LONG,    /* a text of `number` bytes: `text` repeated */
    HOSTILE_NEST,    /* `text` repeated to nest `number` levels, around the reply */
};

extern const struct variant redis_variants[];
extern const size_t redis_variant_count;

#endif

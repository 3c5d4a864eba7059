/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver in front of another one that lies now and then, to show that the checker would notice.
 */
#ifndef LEASEHOLD_TESTS_LIAR_H
#define LEASEHOLD_TESTS_LIAR_H

#include "store/store.h"

enum lie {
    LIE_SWAPPED,  /* a swap that came too late is answered with OK */
    LIE_OLD_READ, /* a read is answered with what stood before */
    LIES,
};

/* The driver, before it is opened: which lie, in front of whom. */
const struct store_driver *liar_prepare(enum lie lie, const struct store_driver *honest);

#endif

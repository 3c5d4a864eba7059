/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that is stepped in the client's loop, like network stores: the next step sends submitted
 * requests, and replies arrive in a step after its descriptor became readable. The records are in a
 * memory store. It notes the calling threads and the batch sizes.
 */
#ifndef LEASEHOLD_TESTS_STEPPED_STORE_H
#define LEASEHOLD_TESTS_STEPPED_STORE_H

#include "store/store.h"

#include <stdatomic.h>

extern const struct store_driver stepped_driver; /* "stepped:" */

struct stepped_notes {
    atomic_uint requests, round_trips; /* round_trips: steps that sent requests */
    atomic_uint most_together;
    atomic_uint other_threads; /* calls from another thread than the first step's */
    atomic_uint collisions;    /* calls during another call */
    atomic_bool silent;        /* sends no replies from now on */
};

extern struct stepped_notes stepped_notes;
void stepped_forget(void); /* all notes */
/* Writes bytes, which need not be a record, to the key in the store that was opened last; only
 * while no other thread steps it. */
void stepped_write(const char *key, const char *bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that is stepped in the client's own loop, as those of the network are: what is submitted
 * travels in the next step, and the answers come in one that its descriptor asks for. The records
 * are those of a memory store. It notes who steps it, and how much travelled together.
 */
#ifndef LEASEHOLD_TESTS_STEPPED_STORE_H
#define LEASEHOLD_TESTS_STEPPED_STORE_H

#include "store/store.h"

#include <stdatomic.h>

extern const struct store_driver stepped_driver; /* "stepped:" */

struct stepped_notes {
    atomic_uint requests, round_trips; /* steps that something travelled in */
    atomic_uint most_together;
    atomic_uint other_threads; /* calls from another thread than the first step's */
    atomic_uint collisions;    /* calls while another one was on its way */
    atomic_bool silent;        /* answers nothing from now on */
};

extern struct stepped_notes stepped_notes;
void stepped_forget(void); /* all notes */
/* Writes bytes that need not be a record under the key, in the store that was opened last; only
 * while no other thread steps it. */
void stepped_write(const char *key, const char *bytes);

#endif

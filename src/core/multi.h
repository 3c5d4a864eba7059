/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several keys, all or nothing (rule 8): taken one after the other in sorted order, so that two
 * callers never wait for each other; given back in reverse. Each key is an ordinary lease; this
 * only says which one starts, which one is given back, and what the caller is told. Pure.
 */
#ifndef LEASEHOLD_CORE_MULTI_H
#define LEASEHOLD_CORE_MULTI_H

#include "core/lease.h"

enum { MULTI_MAX = 16 };

enum multi_state { MULTI_ACQUIRING, MULTI_HELD, MULTI_LOST, MULTI_RELEASING, MULTI_ENDED };

enum multi_action { DO_NOTHING, DO_START, DO_CANCEL /* give it back or give it up */ };

struct multi {
    enum multi_state state;
    size_t count;
    size_t at; /* the key being taken or given back */
    enum outcome outcome;
};

struct multi_output {
    enum multi_action act;
    size_t key;
    enum lease_notify notify; /* HELD once all are; LOST once any is; ENDED with the outcome */
    enum outcome outcome;
};

/* Sorts the keys in place; false when there are none, too many, or the same one twice. */
bool multi_sort(const char **keys, size_t count);
void multi_init(struct multi *multi, size_t count);
struct multi_output multi_start(struct multi *multi);
/* A lease told its caller something: HELD, LOST or ENDED with an outcome. */
struct multi_output multi_notify(struct multi *multi, size_t key, enum lease_notify notify,
                                 enum outcome outcome);
/* The caller is done, its work has stopped after LOST, or it gives up while taking. */
struct multi_output multi_release(struct multi *multi);

#endif

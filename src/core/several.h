/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several keys, all or nothing (rule 8): taken one after the other in sorted order, so that two
 * callers never wait for each other; given back in reverse. Each key is an ordinary lease; this
 * only says which one starts, which one is given back, and what the caller is told. Pure.
 */
#ifndef LEASEHOLD_CORE_SEVERAL_H
#define LEASEHOLD_CORE_SEVERAL_H

#include "core/lease.h"

enum { SEVERAL_MAX = 16 };

enum several_state { SEVERAL_TAKING, SEVERAL_HELD, SEVERAL_LOST, SEVERAL_RETURNING, SEVERAL_ENDED };

enum several_do { DO_NOTHING, DO_START, DO_CANCEL /* give it back or give it up */ };

struct several {
    enum several_state state;
    size_t count;
    size_t at; /* the key being taken or given back */
    enum outcome outcome;
};

struct several_output {
    enum several_do act;
    size_t key;
    enum told told; /* HELD once all are; LOST once any is; ENDED with the outcome */
    enum outcome outcome;
};

/* Sorts the keys in place; false when there are none, too many, or the same one twice. */
bool several_sort(const char **keys, size_t count);
void several_init(struct several *several, size_t count);
struct several_output several_start(struct several *several);
/* A lease told its caller something: HELD, LOST or ENDED with an outcome. */
struct several_output several_told(struct several *several, size_t key, enum told told,
                                   enum outcome outcome);
/* The caller is done, its work has stopped after LOST, or it gives up while taking. */
struct several_output several_release(struct several *several);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the operations and results of every caller, with call and return times, for the
 * linearizability checker. An operation without a reply stays unknown, never failed. Effects
 * without a reply (an abandoned attempt, a release by a waiter that gave up) are added as unknown
 * operations of their own.
 */
#ifndef LEASEHOLD_TESTS_HISTORY_H
#define LEASEHOLD_TESTS_HISTORY_H

#include "linear.h"
#include "world.h"

enum { HISTORY_MAX = 2048, NO_OPERATION = -1 };

struct history {
    size_t count;
    bool spoiled; /* the checker's model cannot express an event */
    struct linear_op ops[HISTORY_MAX];
    int open[ACTORS_MAX];         /* acquire, release or other operation in flight */
    int renewing[ACTORS_MAX];     /* renewal in flight */
    unsigned unheard[ACTORS_MAX]; /* acquire attempts that may have renewed their own grant */
};

void history_init(struct history *history);
/* After every step of an actor. */
void history_step(struct world *world, const struct actor *actor, const struct lease *before,
                  const struct event *event);
void history_crash(struct world *world, const struct actor *actor);
/* Fails the world if no order of the operations explains the results. */
void history_check(struct world *world);

#endif

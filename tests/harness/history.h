/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes down what every caller asked and was answered, with call and return time, for the
 * linearizability checker. An operation without an answer stays unknown, never failed, and what
 * may have happened unheard (an abandoned attempt, a grant given back by who gave up) is added as
 * an unknown operation of its own.
 */
#ifndef LEASEHOLD_TESTS_HISTORY_H
#define LEASEHOLD_TESTS_HISTORY_H

#include "linear.h"
#include "world.h"

enum { HISTORY_MAX = 2048, NO_OPERATION = -1 };

struct history {
    size_t count;
    bool spoiled; /* something happened that the checker has no word for */
    struct linear_op ops[HISTORY_MAX];
    int open[ACTORS_MAX];         /* acquire, release or errand on its way */
    int renewing[ACTORS_MAX];     /* renewal on its way */
    unsigned unheard[ACTORS_MAX]; /* attempts to enter that may have renewed an own grant */
};

void history_init(struct history *history);
/* After every step of an actor. */
void history_step(struct world *world, const struct actor *actor, const struct lease *before,
                  const struct event *event);
void history_crash(struct world *world, const struct actor *actor);
/* Fails the world when no order of the operations explains the answers. */
void history_check(struct world *world);

#endif

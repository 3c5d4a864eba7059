/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seed's life: how the world is made, what its actors want, what happens to them. All of it
 * follows from the seed. Two kinds of worlds: tame ones, whose clocks differ by at most 1.15, where
 * nobody may ever be inside together; and wild ones, up to 4 apart, where only fencing helps.
 */
#ifndef LEASEHOLD_TESTS_SCRIPT_H
#define LEASEHOLD_TESTS_SCRIPT_H

#include "world.h"

#include <stdbool.h>

enum { OPERATIONS_PER_SEED = 200, ACTORS_LEAST = 3 };

bool script_is_wild(uint64_t seed);

/* Actors run on the shipped executor, with its copies, its windows and its breaker. */
extern bool script_on_executor;
/* … and several of them share a process and its front desk. No history is kept then: a hand-over is
 * no grant of the store, and its lease began before it. */
extern bool script_with_local_queue;

/* Plays the whole seed; world->violation says what went wrong, if anything did. */
void script_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace);

#endif

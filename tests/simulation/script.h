/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One seed: how the world is made, what its actors request, and what happens to them. All of it
 * follows from the seed. Two kinds of worlds: in tame ones the clocks differ by at most 1.15, and
 * holders never overlap; in wild ones they differ by up to 4, and only fencing helps.
 */
#ifndef LEASEHOLD_TESTS_SCRIPT_H
#define LEASEHOLD_TESTS_SCRIPT_H

#include "world.h"

#include <stdbool.h>

enum { OPERATIONS_PER_SEED = 200, ACTORS_LEAST = 3 };

bool script_is_wild(uint64_t seed);

/* Actors run on the shipped executor, with its caches, its windows and its breaker. */
extern bool script_on_executor;
/* … and several of them share a process and its local queue. No history is kept then: a hand-off is
 * no grant of the store, and its lease began before it. */
extern bool script_with_local_queue;
/* A planted mistake: the offer grace of a slow store is that of a fast one. */
extern bool script_short_grace;

/* Every store judges by sessions: it has no clock that its clients can read. */
extern bool script_by_session;
/* … and renews by session: heartbeats keep all bound grants of a process alive. */
extern bool script_with_heartbeats;

/* Plays the whole seed; world->violation has the first violation, if there is one. */
void script_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace);

/* script_end.c: every actor has finished, every key can be had, and no record is left. */
void script_check_end(struct world *world, int64_t pace, int64_t ttl_ms,
                      const uint32_t limit[KEYS_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts: runs of `leasehold run key`, one after the other, whose commands meet on a board. A command
 * has children: a plain one, one that is deaf to polite signals, one in a session of its own. At
 * its first step it looks whether any process of the act before is still at work.
 */
#ifndef LEASEHOLD_TESTS_RUN_ACT_H
#define LEASEHOLD_TESTS_RUN_ACT_H

#include "run_kit.h"

enum {
    ACTS_MAX = 3008,
    ACT_PROCESSES = 4,
    ACT_PATIENCE_MS = 30000,
};

/* One run, and what its command says of itself. */
struct act {
    struct known processes[ACT_PROCESSES];
    _Atomic int64_t began_us;
    _Atomic unsigned beside; /* of the act before, still at work when this began */
    _Atomic bool ready;
    _Atomic uint64_t token;
};

struct board {
    _Atomic bool closes; /* the command drops what it inherits */
    struct act acts[ACTS_MAX];
};

/* As the command of this act: never comes back, unless something is wrong. */
int act_play(size_t number);
/* Starts the run of an act; its pid. `own` is this program, which must call act_play(). */
pid_t act_start(const char *program, const char *own, size_t number, const char *ttl);
/* Is its command at work within the time? */
bool act_begins_within(struct act *act, int64_t limit_ms);
/* Has the run a place in line by now, or soon? */
bool act_is_in_line(pid_t front);
bool act_is_gone(const struct act *act);
/* Kills what is left of it, from this process on. */
void act_end(const struct act *act, size_t first);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts: runs of `leasehold run key`, one after the other, whose commands meet on a board. A command
 * has children: a plain one, one that is deaf to polite signals, one in a session of its own. At
 * its first step it looks whether any process of the act before is still at work.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_RUN_INSTANCE_H
#define LEASEHOLD_TESTS_FAULTS_RUN_INSTANCE_H

#include "run_kit.h"

enum {
    INSTANCES_MAX = 3008,
    INSTANCE_PROCESSES = 4,
    INSTANCE_TIMEOUT_MS = 30000,
};

/* One run, and what its command says of itself. */
struct instance {
    struct process_ref processes[INSTANCE_PROCESSES];
    _Atomic int64_t began_us;
    _Atomic unsigned overlapping; /* of the act before, still at work when this began */
    _Atomic bool ready;
    _Atomic uint64_t token;
};

struct board {
    _Atomic bool closes; /* the command drops what it inherits */
    struct instance instances[INSTANCES_MAX];
};

/* As the command of this act: never comes back, unless something is wrong. */
int instance_main(size_t number);
/* Starts the run of an act; its pid. `own` is this program, which must call instance_main(). */
pid_t instance_start(const char *program, const char *own, size_t number, const char *ttl);
/* Is its command at work within the time? */
bool instance_starts_within(struct instance *instance, int64_t limit_ms);
/* Has the run a place in line by now, or soon? */
bool instance_is_queued(pid_t foreground);
bool instance_is_gone(const struct instance *instance);
/* Kills what is left of it, from this process on. */
void instance_kill(const struct instance *instance, size_t first);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances: runs of `leasehold run key`, one after the other, whose commands share a board. A
 * command has children: a plain one, one that ignores SIGTERM and SIGHUP, one in a session of its
 * own. At its start it checks whether any process of the previous instance is still running.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_RUN_INSTANCE_H
#define LEASEHOLD_TESTS_FAULTS_RUN_INSTANCE_H

#include "run_kit.h"

enum {
    INSTANCES_MAX = 3008,
    INSTANCE_PROCESSES = 4,
    INSTANCE_TIMEOUT_MS = 30000,
};

/* One run, and what its command records about itself. */
struct instance {
    struct process_ref processes[INSTANCE_PROCESSES];
    _Atomic int64_t began_us;
    _Atomic unsigned overlapping; /* of the previous instance, still running at the start */
    _Atomic bool ready;
    _Atomic uint64_t token;
};

struct board {
    _Atomic bool closes; /* the command closes its inherited descriptors */
    struct instance instances[INSTANCES_MAX];
};

/* As the command of this instance: never returns, except on errors. */
int instance_main(size_t number);
/* Starts the run of an instance; its pid. `own` is this program, which calls instance_main(). */
pid_t instance_start(const char *program, const char *own, size_t number, const char *ttl);
/* True if its command runs within the timeout. */
bool instance_starts_within(struct instance *instance, int64_t limit_ms);
/* True if the run has a queue entry now, or soon. */
bool instance_is_queued(pid_t foreground);
bool instance_is_gone(const struct instance *instance);
/* Kills its remaining processes, starting from this one. */
void instance_kill(const struct instance *instance, size_t first);

#endif

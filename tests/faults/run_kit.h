/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of `leasehold run` with real processes: starting it, finding its supervisor, and
 * reading /proc. A process is identified by pid and start time, since pids are reused. The commands
 * that are run are this same test program, in another role; they share a board, which is a file
 * that all of them map.
 */
#ifndef LEASEHOLD_TESTS_RUN_KIT_H
#define LEASEHOLD_TESTS_RUN_KIT_H

#include "fixture.h"

#include <stdatomic.h>

struct process_ref {
    _Atomic pid_t pid; /* 0: none */
    _Atomic uint64_t start_time;
};

void process_ref_set(struct process_ref *process_ref, pid_t pid);
/* Running or stopped: zombies do not count. */
bool process_ref_alive(const struct process_ref *process_ref);
bool process_ref_ends_within(const struct process_ref *process_ref, int64_t limit_ms);

/* The program under test, which is built beside this one. */
const char *kit_program(const char *own_name);
/* Makes a board of this size in the fixture's folder; or maps that of the environment. */
void *kit_board(const struct fixture *fixture, size_t size);
void *kit_find_board(size_t size);

/* Starts the program with these arguments, which end with NULL; its output is discarded. */
pid_t kit_start(const char *program, const char *const *args);
/* The process that holds the lease; 0: none yet. */
pid_t kit_supervisor(pid_t foreground);
/* True if it has a queue entry. It has a wake-up FIFO open then; a store of the network is queried
 * for the number of waiters of this key. */
bool kit_is_queued(pid_t supervisor, const char *key);
/* True if this tracer (strace) is attached to every thread of the process. */
bool kit_is_traced(pid_t pid, pid_t tracer);
/* 128 and the signal, as a shell; −1 when it does not end in time. */
int kit_join(pid_t pid, int64_t limit_ms);
/* Reaps all orphans that were left to this process. */
void kit_collect(void);

#endif

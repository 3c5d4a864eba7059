/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of `leasehold run` with real processes: starting it, finding its guardian, and what
 * /proc says of a process. A process is known by its number and its start, for numbers come again.
 * The commands that are run are this very test program, in another role; a board, which is a file
 * that all of them map, is where they meet.
 */
#ifndef LEASEHOLD_TESTS_RUN_KIT_H
#define LEASEHOLD_TESTS_RUN_KIT_H

#include "fixture.h"

#include <stdatomic.h>

struct process_ref {
    _Atomic pid_t pid; /* 0: nobody */
    _Atomic uint64_t start_time;
};

void process_ref_set(struct process_ref *process_ref, pid_t pid);
/* At work, or stopped: dead ones that nobody collected do not count. */
bool process_ref_alive(const struct process_ref *process_ref);
bool process_ref_ends_within(const struct process_ref *process_ref, int64_t limit_ms);

/* The program under test, which is built beside this one. */
const char *kit_program(const char *own_name);
/* Makes a board of this size in the rig's folder; or maps that of the environment. */
void *kit_board(const struct fixture *fixture, size_t size);
void *kit_find_board(size_t size);

/* Starts the program with these words, which end with NULL; its output is lost. */
pid_t kit_start(const char *program, const char *const *args);
/* The process that holds the lease; 0: there is none (yet). */
pid_t kit_supervisor(pid_t foreground);
/* Has it a place in line? It has a wake-up open then; a store of the network is asked how many have
 * one for this key. */
bool kit_is_queued(pid_t supervisor, const char *key);
/* Does strace, or whoever this is, have every thread of the process by now? */
bool kit_is_traced(pid_t pid, pid_t tracer);
/* 128 and the signal, as a shell; −1 when it does not end in time. */
int kit_join(pid_t pid, int64_t limit_ms);
/* Collects whatever ended and was left to us. */
void kit_collect(void);

#endif

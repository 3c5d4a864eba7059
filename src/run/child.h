/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that works under a lease, as its parent sees it: it runs, is asked to end, is killed,
 * and is over when nothing of it is at work any more. Its parent must have called
 * process_tree_adopt() and have no other children. Knows nothing about leases; times are
 * host_boot_ms()'s.
 *
 *     running ──(it ends)──► tidying ──(its group is gone)──► over
 *        │                      │
 *        └───────(end)──────────┴──► ending ──(kill time, or its group is gone)──► killed ──► over
 */
#ifndef LEASEHOLD_RUN_CHILD_H
#define LEASEHOLD_RUN_CHILD_H

#include "process/program.h"

#include <stdbool.h>
#include <stdint.h>

#define CHILD_NEVER INT64_MAX

enum child_state {
    CHILD_RUNNING,
    CHILD_DRAINING,    /* it ended by itself, others of its group have not */
    CHILD_TERMINATING, /* asked to end, with all that it started */
    CHILD_KILLED,      /* not asked any more */
    CHILD_DONE,
};

struct child {
    enum child_state state;
    pid_t group;
    bool reaped;
    int wait_status; /* once it is collected */
    int stopped_by;  /* 0: it is not stopped */
    int64_t due_ms;  /* when child_tick() wants to be called */
};

/* 0 or −errno; then there is nothing to end. */
int child_spawn(struct child *child, const struct program *program);
void child_signal(const struct child *child, int signal);
/* Asks everything to end; what is there at the kill time is killed. */
void child_terminate(struct child *child, int64_t kill_at_ms);
void child_kill(struct child *child, int64_t now_ms);
/* A child has changed: collects, and looks who is left. */
void child_reap(struct child *child, int64_t now_ms);
void child_tick(struct child *child, int64_t now_ms);
/* As a shell gives it: 128 and the signal for one that was killed. */
int child_exit_status(const struct child *child);

#endif

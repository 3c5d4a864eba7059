/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that works under a lease, as its parent sees it: it runs, is asked to end, is killed,
 * and is over when nothing of it is at work any more. Its parent must have called family_adopt()
 * and have no other children. Knows nothing about leases; times are host_boot_ms()'s.
 *
 *     running ──(it ends)──► tidying ──(its group is gone)──► over
 *        │                      │
 *        └───────(end)──────────┴──► ending ──(kill time, or its group is gone)──► killed ──► over
 */
#ifndef LEASEHOLD_RUNTIME_JOB_H
#define LEASEHOLD_RUNTIME_JOB_H

#include "io/program.h"

#include <stdbool.h>
#include <stdint.h>

#define JOB_NEVER INT64_MAX

enum job_state {
    JOB_RUNNING,
    JOB_TIDYING, /* it ended by itself, others of its group have not */
    JOB_ENDING,  /* asked to end, with all that it started */
    JOB_KILLED,  /* not asked any more */
    JOB_OVER,
};

struct job {
    enum job_state state;
    pid_t group;
    bool collected;
    int wait_status; /* once it is collected */
    int stopped_by;  /* 0: it is not stopped */
    int64_t due_ms;  /* when job_tick() wants to be called */
};

/* 0 or −errno; then there is nothing to end. */
int job_start(struct job *job, const struct program *program);
void job_pass(const struct job *job, int signal);
/* Asks everything to end; what is there at the kill time is killed. */
void job_end(struct job *job, int64_t kill_at_ms);
void job_kill(struct job *job, int64_t now_ms);
/* A child has changed: collects, and looks who is left. */
void job_look(struct job *job, int64_t now_ms);
void job_tick(struct job *job, int64_t now_ms);
/* As a shell gives it: 128 and the signal for one that was killed. */
int job_exit_status(const struct job *job);

#endif

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
#ifndef LEASEHOLD_RUNTIME_COMMAND_H
#define LEASEHOLD_RUNTIME_COMMAND_H

#include "io/program.h"

#include <stdbool.h>
#include <stdint.h>

#define COMMAND_NEVER INT64_MAX

enum command_state {
    COMMAND_RUNNING,
    COMMAND_TIDYING, /* it ended by itself, others of its group have not */
    COMMAND_ENDING,  /* asked to end, with all that it started */
    COMMAND_KILLED,  /* not asked any more */
    COMMAND_OVER,
};

struct command {
    enum command_state state;
    pid_t group;
    bool collected;
    int wait_status; /* once it is collected */
    int stopped_by;  /* 0: it is not stopped */
    int64_t due_ms;  /* when command_tick() wants to be called */
};

/* 0 or −errno; then there is nothing to end. */
int command_start(struct command *command, const struct program *program);
void command_pass(const struct command *command, int signal);
/* Asks everything to end; what is there at the kill time is killed. */
void command_end(struct command *command, int64_t kill_at_ms);
void command_kill(struct command *command, int64_t now_ms);
/* A child has changed: collects, and looks who is left. */
void command_look(struct command *command, int64_t now_ms);
void command_tick(struct command *command, int64_t now_ms);
/* As a shell gives it: 128 and the signal for one that was killed. */
int command_exit_status(const struct command *command);

#endif

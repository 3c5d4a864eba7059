/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a `run` that the user started: what the shell sees. It passes signals on, stops
 * and goes on with the command, hands the terminal over and takes it back. It also guards the
 * guardian: when that is killed, or does not act in time, it kills the command and all that it
 * started by itself. Never touches a store.
 */
#ifndef LEASEHOLD_RUN_FOREGROUND_H
#define LEASEHOLD_RUN_FOREGROUND_H

#include "run/supervisor.h"

struct foreground {
    struct channel channel;
    pid_t supervisor, group; /* group: our own */
    pid_t command;           /* its group, once it was started */
    int terminal;
    bool shares_terminal; /* with others of our job: the command gets it only when it asks */
    bool has_children;    /* that are not ours to kill: this process was another program before */
    bool had_terminal;    /* the command was in front */
    int signals, timer;
    int64_t killed_ms; /* FOREGROUND_LATE: when the guardian was killed */
    int alive;         /* keeps the lease alive until all that works under it is gone; −1: none */
};

enum foreground_end {
    FOREGROUND_ENDED,    /* the guardian ended, with this exit status */
    FOREGROUND_ORPHANED, /* it was killed; all that it had started is dead now */
    FOREGROUND_LATE,     /* it did not end the command in time; all of that is dead now */
};

/* Makes the guardian. 0 in the front, 1 in the guardian, or −errno. */
int foreground_fork(struct foreground *foreground, struct supervisor *supervisor);
/* Until the guardian has ended. What it held is in `link.page`; `alive` is still open. */
enum foreground_end foreground_wait(struct foreground *foreground, int *out_status);
/* Gives the terminal back, and tells our job what Ctrl-C did to the command. */
void foreground_done(struct foreground *foreground);

#endif

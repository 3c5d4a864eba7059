/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The foreground process of a `run`, which the user started and the shell waits for. It forwards
 * signals, stops and continues with the command, and passes it the terminal. It also watches the
 * supervisor: if that is killed or misses the kill deadline, it kills the command and all its
 * descendants. Must not touch a store.
 */
#ifndef LEASEHOLD_RUN_FOREGROUND_H
#define LEASEHOLD_RUN_FOREGROUND_H

#include "run/supervisor.h"

struct foreground {
    struct channel channel;
    pid_t supervisor, group; /* group: our own */
    pid_t command;           /* its group, once it was started */
    int terminal;
    bool shares_terminal; /* with the rest of our job: the command gets it only on demand */
    bool has_children;    /* from before an exec, by another program: not ours to kill */
    bool had_terminal;    /* the command was in the foreground */
    int signals, timer;
    int64_t killed_ms; /* FOREGROUND_LATE: when the supervisor was killed */
    int alive;         /* keeps the lease alive until all its processes are gone; −1: none */
};

enum foreground_end {
    FOREGROUND_ENDED,    /* the supervisor exited with this status */
    FOREGROUND_ORPHANED, /* it was killed; all its descendants are dead now */
    FOREGROUND_LATE,     /* it missed the kill deadline; all its descendants are dead now */
};

/* Forks the supervisor. 0 in the foreground process, 1 in the supervisor, or −errno. */
int foreground_fork(struct foreground *foreground, struct supervisor *supervisor);
/* Waits until the supervisor has ended. Its tokens are in `channel.page`; `alive` is still open. */
enum foreground_end foreground_wait(struct foreground *foreground, int *out_status);
/* Takes the terminal back, and passes a Ctrl-C that killed the command on to our job. */
void foreground_done(struct foreground *foreground);

#endif

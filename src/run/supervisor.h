/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a `run` that holds the lease and is the command's parent. It waits for the
 * command's end, for signals from the foreground process, for the end of that process (then it
 * kills everything), and for the kill time. The caller decides which leases to hold and when the
 * command must end; it passes in the store's descriptor to wait for.
 */
#ifndef LEASEHOLD_RUN_SUPERVISOR_H
#define LEASEHOLD_RUN_SUPERVISOR_H

#include "process/tee.h"
#include "run/child.h"
#include "run/channel.h"

struct supervisor {
    struct channel channel;
    pid_t foreground, foreground_group;
    int terminal; /* where the command becomes the foreground group; −1: none */
    int signals, timer;
    int64_t timer_ms;   /* the time that the timer is set to */
    int64_t wake_at_ms; /* when supervisor_wait() must return, for its caller; CHILD_NEVER */
    sigset_t mask;      /* the command's initial signal mask */
    bool started, foreground_is_gone, continued;
    int end_signal;  /* arrived before the command or after it: skip the remaining work */
    struct tee *tee; /* copies the command's output, open; NULL: it writes to ours */
    struct child child;
};

/* The clock of all deadlines of a run: milliseconds since boot, suspend included. */
int64_t supervisor_now_ms(void);
/* 0 or −errno; then there is nothing to undo. */
int supervisor_init(struct supervisor *supervisor);
/* True if the command should still start. Blocks all signals of this process from here on. */
bool supervisor_is_wanted(struct supervisor *supervisor);
/* 0 or −errno. `alive` keeps the lease alive as long as any process has it open; −1: none. */
int supervisor_start(struct supervisor *supervisor, const char *path, char *const *argv,
                     char *const *environment, int alive);
/* Prepares for the next command, after one has ended or before the first. */
void supervisor_reset(struct supervisor *supervisor);
/* True while the user has stopped us: the command must not start. */
bool supervisor_is_paused(const struct supervisor *supervisor);
/* Waits for an event, and handles it if it is the supervisor's. True: `also` is readable. */
bool supervisor_wait(struct supervisor *supervisor, int also);
/* Sets when the foreground process kills everything; CHANNEL_NEVER: never. */
void supervisor_set_deadline(const struct supervisor *supervisor, int64_t kill_deadline_ms,
                             int64_t lease_ends_ms);
/* True if no process of the command is left. */
bool supervisor_command_ended(const struct supervisor *supervisor);
/* Likewise, and its output is copied; a lost foreground or an end signal skips the output. */
bool supervisor_is_done(const struct supervisor *supervisor);

#endif

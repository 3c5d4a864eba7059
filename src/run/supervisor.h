/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a `run` that holds the lease and is the command's parent. It waits for all that
 * concerns the command: its end, signals that the front passes on, the front's own end (then
 * everything is killed), the kill time. What to hold, and when the command must end, its caller
 * decides; the caller also waits for the store, with the descriptor that it brings.
 */
#ifndef LEASEHOLD_RUN_SUPERVISOR_H
#define LEASEHOLD_RUN_SUPERVISOR_H

#include "process/tee.h"
#include "run/child.h"
#include "run/channel.h"

struct supervisor {
    struct channel channel;
    pid_t foreground, foreground_group;
    int terminal; /* where the command's group comes to the front; −1: nowhere */
    int signals, timer;
    int64_t timer_ms; /* what the timer is set to */
    sigset_t mask;    /* what the command begins with */
    bool started, foreground_is_gone, continued;
    int end_signal;  /* came before the command, or after it: what is left is not wanted any more */
    struct tee *tee; /* in the command's output, open; NULL: the output is our own */
    struct child child;
};

/* 0 or −errno; then there is nothing to undo. */
int supervisor_init(struct supervisor *supervisor);
/* Does the user still want the command? From here on no signal reaches this process. */
bool supervisor_is_wanted(struct supervisor *supervisor);
/* 0 or −errno. `alive` keeps the lease alive as long as anybody has it open; −1: there is none. */
int supervisor_start(struct supervisor *supervisor, const char *path, char *const *argv,
                     char *const *environment, int alive);
/* May the command be started? Not while the user has stopped us. */
bool supervisor_is_paused(const struct supervisor *supervisor);
/* Sleeps until something has happened; deals with its own part of it. True: `also` is readable. */
bool supervisor_wait(struct supervisor *supervisor, int also);
/* From now on the front kills everything by itself at that time; CHANNEL_NEVER: at none. */
void supervisor_set_deadline(const struct supervisor *supervisor, int64_t kill_deadline_ms,
                             int64_t lease_ends_ms);
/* Nothing of the command is at work any more. */
bool supervisor_command_ended(const struct supervisor *supervisor);
/* The same, and its output has gone on, unless nobody waits for that any more. */
bool supervisor_is_done(const struct supervisor *supervisor);

#endif

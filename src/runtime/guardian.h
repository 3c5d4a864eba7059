/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a `run` that holds the lease and is the command's parent. It waits for all that
 * concerns the command: its end, signals that the front passes on, the front's own end (then
 * everything is killed), the kill time. What to hold, and when the command must end, its caller
 * decides; the caller also waits for the store, with the descriptor that it brings.
 */
#ifndef LEASEHOLD_RUNTIME_GUARDIAN_H
#define LEASEHOLD_RUNTIME_GUARDIAN_H

#include "io/tap.h"
#include "runtime/job.h"
#include "runtime/link.h"

struct guardian {
    struct link link;
    pid_t front, front_group;
    int terminal; /* where the command's group comes to the front; −1: nowhere */
    int signals, timer;
    int64_t timer_ms; /* what the timer is set to */
    sigset_t mask;    /* what the command begins with */
    bool started, front_is_gone, continued;
    int end_signal;  /* came before the command, or after it: what is left is not wanted any more */
    struct tap *tap; /* in the command's output, open; NULL: the output is our own */
    struct job job;
};

/* 0 or −errno; then there is nothing to undo. */
int guardian_init(struct guardian *guardian);
/* Does the user still want the command? From here on no signal reaches this process. */
bool guardian_is_wanted(struct guardian *guardian);
/* 0 or −errno. `alive` keeps the lease alive as long as anybody has it open; −1: there is none. */
int guardian_start(struct guardian *guardian, const char *path, char *const *argv,
                   char *const *environment, int alive);
/* May the command be started? Not while the user has stopped us. */
bool guardian_is_on_hold(const struct guardian *guardian);
/* Sleeps until something has happened; deals with its own part of it. True: `also` is readable. */
bool guardian_wait(struct guardian *guardian, int also);
/* From now on the front kills everything by itself at that time; LINK_NEVER: at none. */
void guardian_promise(const struct guardian *guardian, int64_t last_moment_ms,
                      int64_t lease_ends_ms);
/* Nothing of the command is at work any more. */
bool guardian_has_ended(const struct guardian *guardian);
/* The same, and its output has gone on, unless nobody waits for that any more. */
bool guardian_is_over(const struct guardian *guardian);

#endif

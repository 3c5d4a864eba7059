/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in the background that lives as long as another one, the target: that of
 * `leasehold acquire --pid`. The foreground process, which the user started, forks it before any
 * store is opened and waits until it is granted. Must not touch a store.
 */
#ifndef LEASEHOLD_RUN_BACKGROUND_H
#define LEASEHOLD_RUN_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The exit status of a process that background_limit() ended before background_detach(). */
enum { BACKGROUND_LATE = 254 };

struct background {
    int target;              /* pidfd, readable once the target has ended */
    int channel;             /* foreground: read end of the pipe; background: write end */
    pid_t process;           /* of the background process */
    pid_t foreground;        /* the process that the user started */
    atomic_int limit_status; /* exit status if background_limit() ends the process */
    int *inherited;          /* descriptors above stderr that the user's program passed on; … */
    size_t inherited_count;  /* … never freed */
};

/* Opens the target, and notes which descriptors are open. 0 or −errno: −ESRCH if there is no such
 * process or it has ended. */
int background_open(struct background *background, pid_t target);
/* 0 in the foreground process, 1 in the background, in a session of its own, or −errno. If the
 * foreground process dies before background_detach(), the background process receives SIGTERM. */
int background_fork(struct background *background);
/* From here on the process exits within a second of the target's end, even if it is blocked. 0 or
 * −errno. */
int background_limit(struct background *background);
/* Reports success to the foreground process, and gives up its streams and descriptors, so that no
 * reader waits for us. False if the foreground process is gone. */
bool background_detach(struct background *background);
/* In the foreground, when the channel is readable: true if the background process continues.
 * Otherwise *out_status is its wait status. */
bool background_succeeded(const struct background *background, int *out_status);
void background_signal_target(const struct background *background, int signal);

#endif

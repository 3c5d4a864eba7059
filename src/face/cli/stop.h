/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that ask us to end (HUP, INT, TERM) while we wait: between stop_begin() and stop_end() a
 * signal only ends a sleep, so that our place can be given up before we go. One ignored from
 * outside stays ignored.
 */
#ifndef LEASEHOLD_FACE_CLI_STOP_H
#define LEASEHOLD_FACE_CLI_STOP_H

#include "leasehold.h"

#include <signal.h>

enum { STOP_SIGNALS = 3 };

struct stop {
    struct sigaction before[STOP_SIGNALS];
    sigset_t outside; /* what was let through before, and while we sleep */
};

void stop_begin(struct stop *stop);
void stop_end(const struct stop *stop);

/* The signal that came, or 0; and forgetting it. */
int stop_caught(void);
int stop_take(void);

/* Until the client has something to do, a signal comes, or the time is over; −1: no time. The
 * client may be NULL. */
void stop_sleep(const struct stop *stop, struct lh_client *client, int64_t length_ms);

#endif

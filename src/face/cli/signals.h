/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that ask us to end (HUP, INT, TERM) while we wait: between signals_begin() and
 * signals_end() a signal only ends a sleep, so that our place can be given up before we go. One
 * ignored from outside stays ignored.
 */
#ifndef LEASEHOLD_FACE_CLI_SIGNALS_H
#define LEASEHOLD_FACE_CLI_SIGNALS_H

#include "leasehold.h"

#include <signal.h>

enum { SIGNALS_COUNT = 3 };

struct signals {
    struct sigaction before[SIGNALS_COUNT];
    sigset_t outside; /* what was let through before, and while we sleep */
};

void signals_begin(struct signals *signals);
void signals_end(const struct signals *signals);

/* The signal that came, or 0; and forgetting it. */
int signals_caught(void);
int signals_consume(void);

/* Until the client has something to do, a signal comes, or the time is over; −1: no time. The
 * client may be NULL. */
void signals_wait(const struct signals *signals, struct lh_client *client, int64_t length_ms);

#endif

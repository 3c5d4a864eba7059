/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that end the program (HUP, INT, TERM) while it waits: between signals_begin() and
 * signals_end() a signal only interrupts a sleep, so that the caller can leave the queue first. An
 * ignored signal stays ignored. The pairs can be nested.
 */
#ifndef LEASEHOLD_FACE_CLI_SIGNALS_H
#define LEASEHOLD_FACE_CLI_SIGNALS_H

#include "leasehold.h"

#include <signal.h>

enum { SIGNALS_COUNT = 3 };

struct signals {
    struct sigaction before[SIGNALS_COUNT];
    sigset_t mask;    /* before signals_begin() … */
    sigset_t outside; /* … and before the outermost one: the mask during a sleep */
};

void signals_begin(struct signals *signals);
void signals_end(const struct signals *signals);

/* The last signal caught, or 0; signals_consume() also clears it. */
int signals_caught(void);
int signals_consume(void);

/* Sleeps until the client is ready, a signal arrives, or `length_ms` have passed; −1: no timeout.
 * The client may be NULL. */
void signals_wait(const struct signals *signals, struct lh_client *client, int64_t length_ms);
/* Likewise, or until `also` is readable or closed: then true. −1: none. */
bool signals_wait_also(const struct signals *signals, struct lh_client *client, int also,
                       int64_t length_ms);

#endif

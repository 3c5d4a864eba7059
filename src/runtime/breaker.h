/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The circuit breaker: a store that failed five times in a row is left alone for a second, then for
 * two, up to 30 s; after each pause one request may try. It never stands between a holder and its
 * lock: renewals and releases are sent without asking it, and what they hear is its probe. Pure.
 */
#ifndef LEASEHOLD_RUNTIME_BREAKER_H
#define LEASEHOLD_RUNTIME_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BREAKER_FAILURES = 5,
    BREAKER_FIRST_PAUSE_MS = 1000,
    BREAKER_LONGEST_PAUSE_MS = 30000,
};

struct breaker {
    unsigned failures;
    int64_t pause_ms; /* 0: closed */
    int64_t open_until_ms;
    bool probing; /* somebody was let through after the pause */
};

/* A zeroed one is closed. */

/* May somebody who holds nothing send now? After a pause the first one to ask may. */
bool breaker_admits(struct breaker *breaker, int64_t now_ms);
/* The store answered, whatever it said. */
void breaker_success(struct breaker *breaker);
/* The store was in trouble, or said nothing in time. */
void breaker_failure(struct breaker *breaker, int64_t now_ms);
bool breaker_is_open(const struct breaker *breaker);
/* For how long nobody is let through; -1: the next one is. */
int64_t breaker_retry_after(const struct breaker *breaker, int64_t now_ms);

#endif

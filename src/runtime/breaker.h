/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The circuit breaker: after five failures in a row it blocks requests to the store for one second,
 * then two, up to 30; after each pause it admits one request. It never blocks a holder: renewals
 * and releases bypass it, and their replies count as its probe. Pure.
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
    bool probing; /* a request was admitted after the pause */
};

/* A zeroed one is closed. */

/* True if a request of a non-holder may be sent now. After a pause, only the first caller may. */
bool breaker_admits(struct breaker *breaker, int64_t now_ms);
/* The store replied, with any result. */
void breaker_success(struct breaker *breaker);
/* The store reported an error, or did not reply in time. */
void breaker_failure(struct breaker *breaker, int64_t now_ms);
bool breaker_is_open(const struct breaker *breaker);
/* The time until a request is admitted; -1: at once. */
int64_t breaker_retry_after(const struct breaker *breaker, int64_t now_ms);

#endif

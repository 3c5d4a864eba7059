/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponential backoff with jitter: the pause before a retry doubles up to a limit, and differs
 * between clients. Must not read a clock; the same seed gives the same pauses.
 */
#ifndef LEASEHOLD_NET_BACKOFF_H
#define LEASEHOLD_NET_BACKOFF_H

#include "base/random.h"

struct backoff {
    struct random random;
    int64_t first_ms, most_ms;
    int64_t next_ms; /* upper bound of the next pause */
};

/* first_ms from 1 to most_ms. */
void backoff_init(struct backoff *backoff, uint64_t seed, int64_t first_ms, int64_t most_ms);
/* The next pause, between half of next_ms and all of it. Doubles next_ms. */
int64_t backoff_pause_ms(struct backoff *backoff);
/* After a success: the next pause is the first again. */
void backoff_reset(struct backoff *backoff);

#endif

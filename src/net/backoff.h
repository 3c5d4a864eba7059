/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next try: twice as long each time up to a limit, and never two of us
 * at the same moment. Reads no clock; the same seed gives the same pauses.
 */
#ifndef LEASEHOLD_NET_BACKOFF_H
#define LEASEHOLD_NET_BACKOFF_H

#include "base/random.h"

struct backoff {
    struct random random;
    int64_t first_ms, most_ms;
    int64_t next_ms; /* the longest that the next pause can be */
};

/* first_ms from 1 to most_ms. */
void backoff_init(struct backoff *backoff, uint64_t seed, int64_t first_ms, int64_t most_ms);
/* The next pause, between half of what it has come to and all of it. */
int64_t backoff_pause_ms(struct backoff *backoff);
/* It worked: begins anew with the first. */
void backoff_reset(struct backoff *backoff);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See backoff.h. */
#include "net/backoff.h"

#include "base/check.h"

void backoff_init(struct backoff *backoff, uint64_t seed, int64_t first_ms, int64_t most_ms)
{
    ASSERT(first_ms > 0 && first_ms <= most_ms);
    *backoff = (struct backoff){
        .random = {seed}, .first_ms = first_ms, .most_ms = most_ms, .next_ms = first_ms};
}

int64_t backoff_pause_ms(struct backoff *backoff)
{
    int64_t longest_ms = backoff->next_ms, half_ms = longest_ms / 2;
    backoff->next_ms = longest_ms > backoff->most_ms / 2 ? backoff->most_ms : longest_ms * 2;
    return longest_ms - (int64_t)random_below(&backoff->random, (uint64_t)half_ms + 1);
}

void backoff_reset(struct backoff *backoff)
{
    backoff->next_ms = backoff->first_ms;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See breaker.h. */
#include "runtime/breaker.h"

bool breaker_is_open(const struct breaker *breaker)
{
    return breaker->pause_ms > 0;
}

int64_t breaker_retry_after(const struct breaker *breaker, int64_t now_ms)
{
    bool open = breaker_is_open(breaker) && now_ms < breaker->open_until_ms;
    return open ? breaker->open_until_ms - now_ms : -1;
}

/* A request admitted after a pause has the same time to succeed; then the next may try. */
bool breaker_admits(struct breaker *breaker, int64_t now_ms)
{
    if (breaker->pause_ms == 0)
        return true;
    if (now_ms < breaker->open_until_ms)
        return false;
    breaker->open_until_ms = now_ms + breaker->pause_ms;
    breaker->probing = true;
    return true;
}

void breaker_success(struct breaker *breaker)
{
    *breaker = (struct breaker){0};
}

/* A failure within a pause, as of a renewal, does not extend it; a failed probe does. */
void breaker_failure(struct breaker *breaker, int64_t now_ms)
{
    if (breaker->failures < BREAKER_FAILURES)
        breaker->failures++;
    if (breaker->failures < BREAKER_FAILURES)
        return;
    bool probed = breaker->probing || now_ms >= breaker->open_until_ms;
    if (breaker->pause_ms > 0 && !probed)
        return;
    int64_t longer_ms = breaker->pause_ms > 0 ? breaker->pause_ms * 2 : BREAKER_FIRST_PAUSE_MS;
    breaker->pause_ms = longer_ms < BREAKER_LONGEST_PAUSE_MS ? longer_ms : BREAKER_LONGEST_PAUSE_MS;
    breaker->open_until_ms = now_ms + breaker->pause_ms;
    breaker->probing = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a key as shown to people (rules.h). Decides nothing: rules.c does. */
#include "core/rules.h"

/* The rest of that length; -1 if the time is unknown. */
static int64_t rest_ms(const struct stamp *since, int64_t length_ms, const struct view *view)
{
    if (!time_is_known(since, view))
        return -1;
    int64_t left_ms = since->time_ms + length_ms - view->at.time_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* Until others may act on the end of that length. */
static int64_t takeover_ms(const struct stamp *since, int64_t length_ms, const struct view *view)
{
    return rest_ms(since, length_ms + view->facts->margin_ms, view);
}

/* Of a state that ends when the key is free again: both times are the same. */
static struct key_info passing_key_info(enum key_state state, const char *holder,
                                        const struct stamp *since, int64_t length_ms,
                                        const struct view *view)
{
    int64_t left_ms = takeover_ms(since, length_ms, view);
    return (struct key_info){.state = state,
                             .holder = holder,
                             .since_ms = since->time_ms,
                             .ends_in_ms = left_ms,
                             .takeover_in_ms = left_ms};
}

static struct key_info span_key_info(enum key_state state, const struct span *span,
                                     const struct view *view)
{
    return passing_key_info(state, span->by, &span->since, span->length_ms, view);
}

struct key_info grant_key_info(const struct grant *grant, const struct view *view)
{
    return (struct key_info){.state = KEY_HELD,
                             .holder = grant->holder,
                             .token = grant_token(grant),
                             .since_ms = grant->granted.time_ms,
                             .ends_in_ms = rest_ms(&grant->renewed, grant->ttl_ms, view),
                             .takeover_in_ms = takeover_ms(&grant->renewed, grant->ttl_ms, view)};
}

struct key_info record_key_info(const struct record *record, const struct view *view)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        if (!grant_ended(&record->grants[i], view))
            return grant_key_info(&record->grants[i], view);
    }
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        if (waiter->offered)
            return passing_key_info(KEY_OFFERED, waiter->holder, &waiter->offer,
                                    queue_offer_lasts_ms(waiter, view->facts), view);
    }
    if (record_is_cooling(record, view))
        return span_key_info(KEY_COOLING, &record->cooling, view);
    if (span_blocks(&record->delay, view))
        return span_key_info(KEY_DELAYED, &record->delay, view);
    return (struct key_info){.state = KEY_FREE};
}

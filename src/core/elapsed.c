/* SPDX-License-Identifier: Apache-2.0 */
/* Which grants and spans of a record have ended, by the store's clock or by observation. Pure. */
#include "core/mutant.h"
#include "core/rules_internal.h"

bool time_is_known(const struct stamp *since, const struct view *view)
{
    return view->facts->judge == JUDGE_STORE_TIME && since->time_ms != TIME_UNKNOWN &&
           view->at.time_ms != TIME_UNKNOWN;
}

bool span_has_passed(const struct stamp *since, int64_t length_ms, int64_t observed_ms,
                     const struct view *view)
{
    bool judged = view->facts->judge == JUDGE_SESSION && !MUTANT(JUDGED_BY_TIME);
    if (since->revision == THIS_WRITE || judged)
        return false;
    int64_t wait_ms = length_ms + view->facts->margin_ms;
    if (time_is_known(since, view) && view->at.time_ms >= since->time_ms)
        return since->time_ms + wait_ms <= view->at.time_ms;
    return observed_ms >= wait_ms;
}

bool grant_ended(const struct grant *grant, const struct view *view)
{
    if (grant->over || (grant->dead && (grant->bound || MUTANT(UNBOUND_ENDS_WITH_SESSION))))
        return true;
    return span_has_passed(&grant->renewed, grant->ttl_ms, grant->observed_ms, view);
}

bool span_blocks(const struct span *span, const struct view *view)
{
    return span->length_ms > 0 && !span->over &&
           !span_has_passed(&span->since, span->length_ms, span->observed_ms, view);
}

bool record_is_cooling(const struct record *record, const struct view *view)
{
    return span_blocks(&record->cooling, view) || record_awaits_watermark(record);
}

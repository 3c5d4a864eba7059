/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is next. First come, first served within a priority; a place rises one step each time a
 * later ticket goes before it, and that count is in the record, so every releaser computes the
 * same order (rule 4). Bounded by WAITERS_MAX; nothing here looks at time but through the view.
 */
#include "core/rules.h"

#include "base/check.h"
#include "base/text.h"
#include "core/mutant.h"

static int64_t queue_rank(const struct waiter *waiter)
{
    return (int64_t)waiter->priority + (MUTANT(PRIORITY_NEVER_AGES) ? 0 : (int64_t)waiter->passed);
}

/* The first in line that has no offer yet; NULL when there is none. */
struct waiter *queue_next(struct record *record)
{
    struct waiter *next = NULL;
    for (size_t i = 0; i < record->waiter_count; i++) {
        struct waiter *waiter = &record->waiters[i];
        if (!waiter->offered && (next == NULL || queue_rank(waiter) > queue_rank(next)))
            next = waiter;
    }
    return next;
}

/* Offers count as taken: nobody slips in between offer and acceptance. */
bool queue_admits(const struct record *record, enum mode mode, const struct view *view)
{
    if (record_is_cooling(record, view) || span_blocks(&record->delay, view))
        return false;
    size_t taken = record->grant_count + record_offers(record);
    if (taken == 0)
        return true;
    if (mode == MODE_SLOT)
        return taken < record->limit && taken < GRANTS_MAX;
    if (mode == MODE_EXCLUSIVE || taken >= GRANTS_MAX)
        return false;
    if (record->grant_count > 0)
        return record->grants[0].mode == MODE_SHARED || MUTANT(READER_BESIDE_WRITER);
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].offered && record->waiters[i].mode == MODE_EXCLUSIVE)
            return false;
    return true;
}

/* Everybody who came before `chosen` and still waits was passed over once more. */
static void queue_age(struct record *record, const struct waiter *chosen)
{
    for (struct waiter *waiter = record->waiters; waiter < chosen; waiter++)
        if (!waiter->offered && waiter->passed < PASSED_MAX)
            waiter->passed++;
}

/* The n of the next grant of this write: apart from each other by room for local hand-overs. */
static uint16_t next_n(const struct record *record)
{
    uint16_t n = 0;
    for (size_t i = 0; i < record->grant_count; i++)
        if (record->grants[i].granted.revision == THIS_WRITE)
            n = (uint16_t)(n + GRANT_STEP);
    return n;
}

/* The place becomes a grant of this write. */
struct grant *queue_grant(struct record *record, struct waiter *waiter)
{
    if (!waiter->offered)
        queue_age(record, waiter);
    uint16_t n = next_n(record);
    struct grant *grant = record_add_grant(record);
    text_copy(grant->holder, sizeof grant->holder, waiter->holder);
    text_copy(grant->request, sizeof grant->request, waiter->request);
    grant->session = waiter->session;
    grant->mode = waiter->mode;
    grant->bound = waiter->bound;
    grant->n = n;
    grant->granted = (struct stamp){.revision = THIS_WRITE};
    grant->renewed = grant->granted;
    grant->ttl_ms = waiter->ttl_ms;
    grant->lock_delay_ms = waiter->lock_delay_ms;
    record_remove_waiter(record, waiter);
    return grant;
}

/*
 * Names the next in line, as far as there is room and at most OFFERS_MAX at once. An offer is not
 * a grant: the one named must accept by a write of its own. Only where all processes read one
 * clock may the lease begin with somebody else's write.
 */
uint16_t queue_offer_next(struct record *record, const struct view *view)
{
    uint16_t named = 0;
    size_t open = record_offers(record);
    for (;;) {
        struct waiter *next = queue_next(record);
        if (next == NULL || open + named >= OFFERS_MAX || !queue_admits(record, next->mode, view))
            return named;
        if (view->one_clock || MUTANT(OFFER_IS_GRANT)) {
            (void)queue_grant(record, next);
        } else {
            queue_age(record, next);
            next->offered = true;
            next->offer = (struct stamp){.revision = THIS_WRITE};
        }
        named++;
    }
}

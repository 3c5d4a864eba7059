/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the queue (rule 4): first come, first served within a priority. A waiter rises one
 * step each time a later ticket is preferred. The record has that count, so every client computes
 * the same order. Bounded by the store's waiters_max; time comes only from the view.
 */
#include "core/rules.h"

#include "base/check.h"
#include "base/text.h"
#include "core/mutant.h"

static int64_t queue_rank(const struct waiter *waiter)
{
    return (int64_t)waiter->priority + (MUTANT(PRIORITY_NEVER_AGES) ? 0 : (int64_t)waiter->passed);
}

/* The first waiter without an offer; NULL if there is none. */
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

/* An offer counts as a grant: no client can enter between offer and acceptance. */
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

/* Every waiter that came before `chosen` was passed over once more. */
static void queue_age(struct record *record, const struct waiter *chosen)
{
    for (struct waiter *waiter = record->waiters; waiter < chosen; waiter++)
        if (!waiter->offered && waiter->passed < PASSED_MAX)
            waiter->passed++;
}

/* The n of the next grant of this write; GRANT_STEP leaves room for local hand-offs. */
static uint16_t next_n(const struct record *record)
{
    uint16_t n = 0;
    for (size_t i = 0; i < record->grant_count; i++)
        if (record->grants[i].granted.revision == THIS_WRITE)
            n = (uint16_t)(n + GRANT_STEP);
    return n;
}

/* Turns the waiter into a grant of this write. */
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
 * A waiter that was passed over has the whole grace from then on: otherwise one whose messages are
 * slower than those of all others would be passed over each time.
 */
int64_t queue_offer_lasts_ms(const struct waiter *waiter, const struct store_facts *facts)
{
    if (MUTANT(TAKEOVER_AT_ONCE))
        return 0;
    bool first = waiter->passed == 0 || MUTANT(PASSED_OVER_AGAIN);
    return facts->takeover_ms > 0 && first ? facts->takeover_ms : facts->offer_grace_ms;
}

/*
 * Offers the key to the next waiters, as far as there is room, at most OFFERS_MAX at once. An offer
 * is not a grant: the waiter must accept it by a write of its own. Only where all processes read
 * one clock may another client's write begin its lease.
 */
uint16_t queue_offer_next(struct record *record, const struct view *view)
{
    uint16_t named = 0;
    size_t open = record_offers(record);
    for (;;) {
        struct waiter *next = queue_next(record);
        if (next == NULL || open + named >= OFFERS_MAX || !queue_admits(record, next->mode, view))
            return named;
        if (view->facts->one_clock || MUTANT(OFFER_IS_GRANT)) {
            (void)queue_grant(record, next);
        } else {
            queue_age(record, next);
            next->offered = true;
            next->offer = (struct stamp){.revision = THIS_WRITE};
        }
        named++;
    }
}

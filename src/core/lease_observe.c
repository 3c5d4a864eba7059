/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer's view of time on its own clock: how long it has seen grants and offers unchanged,
 * and when to poll next. It never compares another host's clock with its own.
 */
#include "core/lease_internal.h"

#include "core/mutant.h"

#include <string.h>

enum { COOLING = 1, DELAY = 2 }; /* in place of a token, which spans lack; no grant has these */

/* How long this has been unchanged; a change or the first observation starts now. */
static int64_t observed_ms(const struct lease *lease, uint64_t token, uint64_t revision)
{
    const struct observations *before = lease->observations;
    for (size_t i = 0; i < before->count; i++)
        if (before->observed[i].token == token && before->observed[i].revision == revision)
            return lease->now_ms - before->observed[i].since_ms;
    return 0;
}

static void observe_span(const struct lease *lease, struct span *span, uint64_t token)
{
    if (span->length_ms > 0)
        span->observed_ms = observed_ms(lease, token, stamp_order(&span->since));
}

/* Observes every grant and both spans: a renewal of one says nothing about another. */
static void observe_each(const struct lease *lease, struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        struct grant *grant = &record->grants[i];
        grant->observed_ms = observed_ms(lease, grant_token(grant), stamp_order(&grant->renewed));
    }
    observe_span(lease, &record->cooling, COOLING);
    observe_span(lease, &record->delay, DELAY);
}

static void remember(struct lease *lease, uint64_t token, uint64_t revision, int64_t for_ms)
{
    struct observations *observations = lease->observations;
    observations->observed[observations->count++] = (struct observation){
        .token = token, .revision = revision, .since_ms = lease->now_ms - for_ms};
}

/* Replaces the observations by those of this record. */
static void remember_each(struct lease *lease, const struct record *record)
{
    const struct span *cooling = &record->cooling, *delay = &record->delay;
    lease->observations->count = 0;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        remember(lease, grant_token(grant), stamp_order(&grant->renewed), grant->observed_ms);
    }
    if (cooling->length_ms > 0)
        remember(lease, COOLING, stamp_order(&cooling->since), cooling->observed_ms);
    if (delay->length_ms > 0)
        remember(lease, DELAY, stamp_order(&delay->since), delay->observed_ms);
}

static uint64_t oldest_offer(const struct record *record)
{
    uint64_t oldest = 0;
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        if (waiter->offered && (oldest == 0 || stamp_order(&waiter->offer) < oldest))
            oldest = stamp_order(&waiter->offer);
    }
    return oldest;
}

static int64_t record_age(const struct lease *lease, bool seen)
{
    if (seen)
        return 0;
    return lease->read_ms > 0 ? lease->now_ms - lease->read_ms : -1;
}

struct view lease_observe(struct lease *lease, struct record *record, const struct stamp *at,
                          bool seen)
{
    struct observations *observations = lease->observations;
    uint64_t offer = oldest_offer(record);
    observe_each(lease, record);
    if (seen)
        remember_each(lease, record);
    if (seen && offer != observations->offer) {
        observations->offer = offer;
        observations->offer_since_ms = lease->now_ms;
    }
    bool same_offer = offer != 0 && offer == observations->offer;
    return (struct view){.at = *at,
                         .facts = lease->options->facts,
                         .age_ms = record_age(lease, seen),
                         .offer_revision = offer,
                         .offer_observed_ms =
                             same_offer ? lease->now_ms - observations->offer_since_ms : 0};
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * When the length will have passed, on our clock. Where only the store can tell, this is a guess:
 * if the store has not reported the end by then, the next guesses are at growing intervals.
 */
static int64_t ends_at(const struct lease *lease, const struct stamp *since, int64_t length_ms,
                       int64_t observed_ms, const struct view *view)
{
    length_ms += view->facts->margin_ms;
    int64_t left_ms = length_ms - observed_ms;
    if (view->facts->judge == JUDGE_SESSION)
        return lease->now_ms + (left_ms > 0 ? left_ms : -left_ms);
    if (time_is_known(since, view) && view->at.time_ms >= since->time_ms)
        return lease->now_ms + (since->time_ms + length_ms - view->at.time_ms);
    return lease->now_ms + left_ms;
}

/* The first end of a grant or lock-delay that blocks us; not after now if the store reported it. */
static int64_t first_end(const struct lease *lease, const struct record *record,
                         const struct view *view)
{
    const struct span *delay = &record->delay;
    int64_t at = NEVER;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        /* Heartbeats do not change the record, so there is nothing to guess from. */
        if (!(grant->bound && view->facts->renews_by_session))
            at = min_ms(at,
                        ends_at(lease, &grant->renewed, grant->ttl_ms, grant->observed_ms, view));
        at = grant_ended(grant, view) ? min_ms(at, lease->now_ms) : at;
    }
    if (delay->length_ms > 0)
        at = min_ms(at, ends_at(lease, &delay->since, delay->length_ms, delay->observed_ms, view));
    return delay->over ? min_ms(at, lease->now_ms) : at;
}

/* The shortest time that one of the oldest offers is left to its waiter. */
static int64_t offer_lasts_ms(const struct lease *lease, const struct record *record)
{
    const struct store_facts *facts = lease->options->facts;
    int64_t lasts_ms = facts->offer_grace_ms;
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        if (waiter->offered && stamp_order(&waiter->offer) == lease->observations->offer)
            lasts_ms = min_ms(lasts_ms, queue_offer_lasts_ms(waiter, facts));
    }
    return lasts_ms;
}

/* The waiter's rank: those behind poll later, so that a lapsed offer causes no thundering herd. */
static int64_t turn_of(const struct lease *lease, struct record *record)
{
    const struct waiter *own = record_waiter_by_session(record, lease->options->request.session);
    int64_t ahead = 0;
    if (own == NULL || own == queue_next(record))
        return 0;
    for (const struct waiter *waiter = record->waiters; waiter < own; waiter++)
        ahead += waiter->offered ? 0 : 1;
    return ahead > 0 ? ahead : 1; /* the one ahead came later, with a higher priority */
}

bool lease_is_overdue(const struct lease *lease, struct record *record, const struct view *view)
{
    return turn_of(lease, record) == 0 && first_end(lease, record, view) <= lease->now_ms;
}

/*
 * The fallback for lost notifications, dead holders and lapsed offers; normally a notification
 * wakes the waiter. Jitter spreads the waiters. It is always added, never subtracted, so that a
 * waiter does not poll earlier than configured.
 */
int64_t lease_next_poll(struct lease *lease, struct record *record, const struct view *view)
{
    enum { TURN_MS = 100, TURNS_PER_OFFER = 4, TURNS_MAX = 30, LEAST_MS = 10 };
    if (MUTANT(NO_FALLBACK_LOOK))
        return NEVER;
    const struct store_facts *facts = lease->options->facts;
    int64_t poll_ms = facts->poll_ms, turn = turn_of(lease, record);
    int64_t jitter = (int64_t)random_below(&lease->random, (uint64_t)poll_ms / 4 + 1);
    int64_t at = lease->now_ms + poll_ms + poll_ms / 50 + jitter;
    if (lease->observations->offer != 0) { /* those far behind leave it to those that were woken */
        int64_t lasts_ms =
            turn < SPARES_MAX ? offer_lasts_ms(lease, record) : facts->offer_grace_ms;
        int64_t turn_ms = facts->answer_ms > TURN_MS / 2 ? 2 * facts->answer_ms : TURN_MS;
        turn_ms = min_ms(turn_ms, lasts_ms / TURNS_PER_OFFER);
        at = min_ms(at, lease->observations->offer_since_ms + lasts_ms +
                            turn_ms * min_ms(turn, TURNS_MAX) + jitter % LEAST_MS);
    }
    if (turn == 0)
        at = min_ms(at, first_end(lease, record, view));
    return at > lease->now_ms + LEAST_MS ? at : lease->now_ms + LEAST_MS;
}

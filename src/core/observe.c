/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an observer knows of time on its own clock: how long it has seen the grants unchanged, how
 * long it has seen an offer open, and when it is worth looking again. It never compares another
 * host's clock with its own.
 */
#include "core/lease_inside.h"

#include "core/mutant.h"

static uint64_t mix(uint64_t digest, uint64_t number)
{
    return (digest ^ number) * 0x100000001b3U + (number >> 32);
}

/* Changes whenever a grant, a renewal, a cooldown or a lock-delay begins or ends. */
static uint64_t digest_of(const struct record *record)
{
    uint64_t digest = 0xcbf29ce484222325U;
    for (size_t i = 0; i < record->grant_count; i++) {
        digest = mix(digest, grant_token(&record->grants[i]));
        digest = mix(digest, record->grants[i].renewed.revision);
    }
    digest = mix(digest, record->cooling.length_ms > 0 ? record->cooling.since.revision : 0);
    return mix(digest, record->delay.length_ms > 0 ? record->delay.since.revision : 0);
}

static uint64_t oldest_offer(const struct record *record)
{
    uint64_t oldest = 0;
    for (size_t i = 0; i < record->place_count; i++) {
        const struct place *place = &record->places[i];
        if (place->offered && (oldest == 0 || place->offer.revision < oldest))
            oldest = place->offer.revision;
    }
    return oldest;
}

struct view lease_observe(struct lease *lease, const struct record *record, const struct stamp *at,
                          bool seen)
{
    const struct store_facts *store = &lease->options->store;
    uint64_t digest = digest_of(record), offer = oldest_offer(record);
    struct sighting *sighting = lease->sighting;
    if (seen && digest != sighting->digest) {
        sighting->digest = digest;
        sighting->since_ms = lease->now_ms;
    }
    if (seen && offer != sighting->offer) {
        sighting->offer = offer;
        sighting->offer_since_ms = lease->now_ms;
    }
    return (struct view){
        .at = *at,
        .judge = store->judge,
        .one_clock = store->one_clock,
        .margin_ms = store->margin_ms,
        .observed_ms = digest == sighting->digest ? lease->now_ms - sighting->since_ms : 0,
        .offer_revision = offer,
        .offer_seen_ms =
            offer != 0 && offer == sighting->offer ? lease->now_ms - sighting->offer_since_ms : 0};
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When the length will have passed, on our clock; NEVER when only the store can say. */
static int64_t end_of(const struct lease *lease, const struct stamp *since, int64_t length_ms,
                      const struct view *view)
{
    length_ms += view->margin_ms;
    if (time_is_known(since, view))
        return lease->now_ms + (since->time_ms + length_ms - view->at.time_ms);
    return view->judge == JUDGE_OBSERVED ? lease->sighting->since_ms + length_ms : NEVER;
}

/* The first thing that blocks us and will end by itself. */
static int64_t first_end(const struct lease *lease, const struct record *record,
                         const struct view *view)
{
    int64_t at = NEVER;
    for (size_t i = 0; i < record->grant_count; i++)
        at = sooner(at, end_of(lease, &record->grants[i].renewed, record->grants[i].ttl_ms, view));
    if (record->delay.length_ms > 0)
        at = sooner(at, end_of(lease, &record->delay.since, record->delay.length_ms, view));
    return at;
}

/* How many go before us: those behind look later, so that a lapsed offer is no herd. */
static int64_t turn_of(const struct lease *lease, struct record *record)
{
    const struct place *own = record_place_by_session(record, lease->options->request.session);
    return own == NULL || own == queue_next(record) ? 0 : 1 + (own - record->places);
}

/*
 * A notice wakes the waiter; this is for the day it gets lost, for holders that died and for
 * offers that nobody accepts. Jitter keeps waiters apart.
 */
int64_t lease_next_look(struct lease *lease, struct record *record, const struct view *view)
{
    enum { TURN_MS = 100, TURNS_MAX = 30, LEAST_MS = 10 };
    if (MUTANT(NO_FALLBACK_LOOK))
        return NEVER;
    int64_t look_ms = lease->options->look_ms, turn = turn_of(lease, record);
    int64_t jitter = (int64_t)random_below(&lease->random, (uint64_t)look_ms / 2 + 1);
    int64_t at = lease->now_ms + look_ms - look_ms / 4 + jitter;
    if (lease->sighting->offer != 0)
        at = sooner(at, lease->sighting->offer_since_ms + OFFER_GRACE_MS +
                            TURN_MS * sooner(turn, TURNS_MAX) + jitter % LEAST_MS);
    if (turn == 0)
        at = sooner(at, first_end(lease, record, view));
    return at > lease->now_ms + LEAST_MS ? at : lease->now_ms + LEAST_MS;
}

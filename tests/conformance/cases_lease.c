/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole leases in real time, through the core and the driver. The rules are those of
 * docs/guarantees.md. The core's own tests cover every corner of them; here each is tested once on
 * the real store.
 */
#include "parties.h"

#include <stdio.h>
#include <string.h>

/* The current record, read by this client. */
static struct record *standing(unsigned client, const char *key)
{
    return record_in(ask(client, reading(key)), key);
}

static void a_free_key_is_granted_in_one_write(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key);
    expect_held(a);
    EXPECT(a->lease.serial == 1);
    const struct record *record = standing(1, key);
    EXPECT(record->grant_count == 1 && record->waiter_count == 0);
    EXPECT(grant_token(&record->grants[0]) == a->token);
    EXPECT(strcmp(record->grants[0].holder, a->holder) == 0);
}

static void a_held_key_is_busy(void)
{
    const char *key = key_named("k");
    expect_held(party_new(0, key));
    expect_outcome(party_new(1, key), OUTCOME_BUSY);
    expect_outcome(party_new(2, key), OUTCOME_BUSY);
    EXPECT(standing(0, key)->waiter_count == 0);
}

static void a_released_key_costs_nothing(void)
{
    const char *key = key_named("k");
    uint64_t token = 0;
    for (unsigned i = 0; i < 5; i++) {
        struct party *party = party_new(i, key);
        expect_held(party);
        EXPECT(party->token > token);
        token = party->token;
        party_release(party);
        expect_outcome(party, OUTCOME_OK);
        expect_absent(key);
    }
}

static void a_release_hands_over_to_a_waiter(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_waiting(1, key);
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    parties_run(30);
    EXPECT(b->held == 0);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_held(b);
    EXPECT(b->token > a->token);
    expect_outcome(party_new(2, key), OUTCOME_BUSY);
    party_release(b);
    expect_outcome(b, OUTCOME_OK);
}

static void first_come_is_first_served(void)
{
    const char *key = key_named("k");
    struct party *turns[4] = {party_waiting(0, key), party_waiting(1, key), party_waiting(2, key),
                              party_waiting(3, key)};
    expect_held(turns[0]);
    for (unsigned i = 1; i < 4; i++)
        expect_state(turns[i], LEASE_WAITING);
    for (unsigned i = 0; i < 3; i++) {
        party_release(turns[i]);
        expect_outcome(turns[i], OUTCOME_OK);
        expect_held(turns[i + 1]);
        EXPECT(turns[i + 1]->token > turns[i]->token);
        for (unsigned j = i + 2; j < 4; j++)
            EXPECT(turns[j]->held == 0);
    }
}

static void a_cancelled_waiter_leaves_the_queue(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_waiting(1, key), *c = party_waiting(2, key);
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    EXPECT(standing(3, key)->waiter_count == 1);
    party_release(b);
    expect_outcome(b, OUTCOME_BUSY);
    c->options.wait_ms = 40;
    expect_outcome(c, OUTCOME_BUSY);
    const struct record *record = standing(3, key);
    EXPECT(record->waiter_count == 0 && record->grant_count == 1);
    EXPECT(grant_token(&record->grants[0]) == a->token);
}

/* False if the machine was slower than the lease. */
static bool stays_held(const char *key, int64_t ttl_ms)
{
    parties_forget();
    parties_run(1); /* from here on stalls are noticed */
    struct party *a = party_new(0, key), *b = party_waiting(1, key);
    a->options.request.ttl_ms = ttl_ms;
    party_start(a);
    party_start(b);
    parties_run(ttl_ms + ttl_ms / 4);
    if (parties_stalled(ttl_ms / 6) || a->held == 0)
        return false;
    EXPECT(lease_held(&a->lease, suite_now_ms()) && a->lost == 0 && b->held == 0);
    EXPECT(a->lease.token == a->token && a->held == 1);
    const struct record *record = standing(1, key);
    EXPECT(grant_token(&record->grants[0]) == a->token && record->waiter_count == 1);
    EXPECT(record->grants[0].renewed.revision > record->grants[0].granted.revision);
    return true;
}

static void a_held_lease_is_renewed(void)
{
    static const char *const names[] = {"a", "b", "c"};
    int64_t ttl_ms = 10 * suite_short_ms();
    for (unsigned i = 0; i < 3; i++, ttl_ms *= 3)
        if (stays_held(key_named(names[i]), ttl_ms))
            return;
    suite_fail("the machine is too slow to judge");
}

/* A grant whose holder has vanished; returns its token. */
static uint64_t grant_to_the_lost(unsigned client, const char *key, int64_t ttl_ms)
{
    struct request request = request_by(client, key, "lost", VERB_ACQUIRE);
    request.ttl_ms = ttl_ms;
    EXPECT(act(client, request).kind == VERDICT_GRANTED);
    return grant_token(&standing(client, key)->grants[0]);
}

static void an_expired_lease_is_taken_over(void)
{
    const char *key = key_named("k");
    uint64_t token = grant_to_the_lost(0, key, suite_short_ms());
    suite_outlive(suite_short_ms());
    struct party *b = party_new(1, key);
    expect_held(b);
    EXPECT(b->token > token);
    expect_outcome(party_operation(0, key, VERB_RENEW, token), OUTCOME_STALE);
    expect_outcome(party_operation(0, key, VERB_RELEASE, token), OUTCOME_STALE);
    EXPECT(grant_token(&standing(2, key)->grants[0]) == b->token);
}

static void a_waiter_takes_over_an_expired_lease(void)
{
    const char *key = key_named("k");
    uint64_t token = grant_to_the_lost(0, key, 5 * suite_short_ms());
    struct party *b = party_waiting(1, key), *c = party_waiting(2, key);
    party_start(b);
    party_start(c);
    expect_held(b);
    EXPECT(b->token > token && c->held == 0);
}

static void a_stale_token_changes_nothing(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_new(1, key);
    expect_held(a);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_held(b);
    const struct store_reply *before = ask(2, reading(key));
    expect_outcome(party_operation(0, key, VERB_RELEASE, a->token), OUTCOME_STALE);
    expect_outcome(party_operation(2, key, VERB_RENEW, a->token), OUTCOME_STALE);
    expect_outcome(party_operation(2, key, VERB_RELEASE, b->token + 1), OUTCOME_STALE);
    struct value value = {.bytes = before->bytes, .length = before->length};
    expect_stands(key, value, before->written.revision);
    expect_outcome(party_operation(2, key, VERB_RELEASE, b->token), OUTCOME_OK);
    expect_outcome(party_operation(2, key, VERB_RELEASE, b->token), OUTCOME_STALE);
    expect_held(party_new(3, key));
}

/* By its token, from another client, without a TTL. */
static void a_renewal_without_a_ttl_keeps_its_own(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key);
    expect_held(a);
    struct party *renewal = party_operation(1, key, VERB_RENEW, a->token);
    renewal->options.request.ttl_ms = 0;
    expect_outcome(renewal, OUTCOME_OK);
    EXPECT(standing(0, key)->grants[0].ttl_ms == a->options.request.ttl_ms);
    EXPECT(grant_token(&standing(0, key)->grants[0]) == a->token);
}

static void a_repeated_request_gets_the_same_grant(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *again = party_new(0, key);
    again->options.request.request = a->request;
    again->options.request.session = a->options.request.session;
    again->options.request.holder = a->options.request.holder;
    expect_held(a);
    party_vanish(a); /* it never received its grant */
    expect_held(again);
    EXPECT(again->token == a->token);
    EXPECT(standing(1, key)->grant_count == 1);
    party_release(again);
    expect_outcome(again, OUTCOME_OK);
}

static void another_holders_repeated_request_is_refused(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *thief = party_new(1, key), *again = party_new(1, key);
    thief->options.request.request = again->options.request.request = a->request;
    a->options.request.bound = again->options.request.bound = false;
    thief->options.request.holder = "thief";
    again->options.request.holder = a->options.request.holder;
    expect_held(a);
    party_vanish(a);
    expect_outcome(thief, OUTCOME_MISMATCH);
    expect_held(again); /* in another process */
    EXPECT(again->token == a->token);
    party_release(again);
    expect_outcome(again, OUTCOME_OK);
}

static void a_released_key_cools_until_cleared(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_waiting(1, key);
    a->options.cooldown_ms = 60000;
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_outcome(b, OUTCOME_COOLING);
    expect_outcome(party_new(2, key), OUTCOME_COOLING);
    expect_outcome(party_operation(3, key, VERB_CLEAR, 0), OUTCOME_OK);
    struct party *c = party_new(2, key);
    expect_held(c);
    EXPECT(c->token > a->token);
}

static void a_cooldown_ends_by_itself(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_new(1, key);
    int64_t cooldown_ms = 4 * suite_short_ms();
    a->options.cooldown_ms = cooldown_ms;
    expect_held(a);
    int64_t since_ms = suite_now_ms();
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    party_start(b);
    bool too_late = suite_now_ms() >= since_ms + cooldown_ms;
    EXPECT(too_late || (b->ended && b->outcome == OUTCOME_COOLING));
    suite_outlive(cooldown_ms);
    struct party *c = party_new(1, key);
    if (b->held == 0) {
        expect_held(c);
        EXPECT(c->token > a->token);
    }
}

static struct party *party_for_slot(unsigned client, const char *key, uint32_t limit)
{
    struct party *party = party_new(client, key);
    party->options.request.mode = MODE_SLOT;
    party->options.request.limit = limit;
    return party;
}

static void a_semaphore_keeps_its_limit(void)
{
    const char *key = key_named("k");
    struct party *three[3];
    for (unsigned i = 0; i < 3; i++) {
        three[i] = party_for_slot(i, key, 3);
        expect_held(three[i]);
        EXPECT(i == 0 || three[i]->token > three[i - 1]->token);
    }
    expect_outcome(party_for_slot(3, key, 3), OUTCOME_BUSY);
    expect_outcome(party_for_slot(3, key, 4), OUTCOME_MISMATCH);
    expect_outcome(party_new(3, key), OUTCOME_MISMATCH);
    struct party *fourth = party_for_slot(3, key, 3);
    fourth->options.request.waits = true;
    fourth->options.wait_ms = WAIT_WITHOUT_LIMIT;
    expect_state(fourth, LEASE_WAITING);
    party_release(three[1]);
    expect_outcome(three[1], OUTCOME_OK);
    expect_held(fourth);
    EXPECT(standing(0, key)->grant_count == 3);
}

static struct party *party_reading(unsigned client, const char *key)
{
    struct party *party = party_new(client, key);
    party->options.request.mode = MODE_SHARED;
    return party;
}

static void readers_together_and_writers_alone(void)
{
    const char *key = key_named("k");
    struct party *a = party_reading(0, key), *b = party_reading(1, key);
    struct party *writer = party_waiting(2, key);
    expect_held(a);
    expect_held(b);
    EXPECT(b->token > a->token);
    expect_outcome(party_new(3, key), OUTCOME_BUSY);
    expect_state(writer, LEASE_WAITING);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    parties_run(20);
    EXPECT(writer->held == 0);
    party_release(b);
    expect_outcome(b, OUTCOME_OK);
    expect_held(writer);
    EXPECT(writer->token > b->token);
    expect_outcome(party_reading(3, key), OUTCOME_BUSY);
}

static void a_break_notifies_the_holder_first(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_waiting(1, key);
    a->options.request.ttl_ms = 30 * suite_short_ms();
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    struct party *operator= party_operation(2, key, VERB_BREAK, 0);
    operator->options.request.reason = "by hand";
    expect_outcome(operator, OUTCOME_OK);
    EXPECT(standing(3, key)->grants[0].broken && b->held == 0);
    EXPECT(strcmp(standing(3, key)->reason, "by hand") == 0);
    expect_state(a, LEASE_LOST);
    EXPECT(a->lost == 1 && b->held == 0);
    party_release(a);
    expect_outcome(a, OUTCOME_LOST);
    expect_held(b);
    EXPECT(b->token > a->token);
}

static void a_break_now_frees_at_once(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_new(1, key);
    expect_held(a);
    struct party *operator= party_operation(2, key, VERB_BREAK, 0);
    operator->options.request.now = true;
    expect_outcome(operator, OUTCOME_OK);
    expect_held(b);
    EXPECT(b->token > a->token);
    party_release(a);
    expect_outcome(a, OUTCOME_LOST);
    EXPECT(grant_token(&standing(3, key)->grants[0]) == b->token);
}

/* All parties compete repeatedly; two holders never overlap. */
static void a_crowd_goes_one_by_one(void)
{
    enum { TURNS = 5 };
    const char *key = key_named("k");
    uint64_t top = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct party *crowd[4];
        for (unsigned i = 0; i < 4; i++) {
            crowd[i] = party_waiting(i, key);
            party_start(crowd[i]);
        }
        for (unsigned left = 4; left > 0; left--) {
            struct party *inside = NULL;
            for (int64_t until_ms = suite_now_ms() + suite_soon_ms(); inside == NULL;
                 parties_run(1)) {
                EXPECT(suite_now_ms() < until_ms);
                for (unsigned i = 0; i < 4; i++)
                    if (lease_held(&crowd[i]->lease, suite_now_ms()))
                        inside = crowd[i];
            }
            EXPECT(inside->token > top);
            top = inside->token;
            EXPECT(standing(turn, key)->grant_count == 1);
            party_release(inside);
            expect_outcome(inside, OUTCOME_OK);
        }
    }
}

/* The killed holder's TTL is hours; the store detects its death. */
static void a_dead_holders_bound_grant_is_taken_at_once(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(1, key), *b = party_waiting(2, key);
    a->options.request.ttl_ms = (int64_t)3600 * 1000;
    a->options.request.bound = true;
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    client_kill(1);
    party_vanish(a);
    client_replace(1);
    expect_held(b);
    EXPECT(b->token > a->token);
}

static void a_dead_waiter_is_passed_over(void)
{
    const char *key = key_named("k");
    struct party *a = party_new(0, key), *b = party_waiting(1, key), *c = party_waiting(2, key);
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    expect_state(c, LEASE_WAITING);
    client_kill(1);
    party_vanish(b);
    client_replace(1);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_held(c);
    EXPECT(standing(3, key)->waiter_count == 0);
}

static const struct test_case test_cases[] = {
    {"lease: a free key is granted in one write", a_free_key_is_granted_in_one_write, 0, false},
    {"lease: a held key is busy", a_held_key_is_busy, 0, false},
    {"lease: a released key costs nothing", a_released_key_costs_nothing, STORE_DELETES, false},
    {"lease: a release hands over to a waiter", a_release_hands_over_to_a_waiter, 0, false},
    {"lease: first come is first served (rule 4)", first_come_is_first_served, 0, false},
    {"lease: a cancelled waiter leaves the queue", a_cancelled_waiter_leaves_the_queue, 0, false},
    {"lease: it is renewed while it is held", a_held_lease_is_renewed, 0, false},
    {"lease: a renewal without a TTL keeps its own", a_renewal_without_a_ttl_keeps_its_own, 0,
     false},
    {"lease: an expired one is taken over", an_expired_lease_is_taken_over, 0, false},
    {"lease: a waiter takes over an expired one", a_waiter_takes_over_an_expired_lease, 0, false},
    {"lease: a stale token changes nothing (rule 2)", a_stale_token_changes_nothing, 0, false},
    {"lease: a repeated request gets the same grant (rule 9)",
     a_repeated_request_gets_the_same_grant, 0, false},
    {"lease: another holder's repeated request is refused (rule 9)",
     another_holders_repeated_request_is_refused, 0, false},
    {"lease: a released key cools until cleared (rule 5)", a_released_key_cools_until_cleared, 0,
     false},
    {"lease: a cooldown ends by itself (rule 5)", a_cooldown_ends_by_itself, 0, false},
    {"lease: a semaphore keeps its limit (rule 1)", a_semaphore_keeps_its_limit, 0, false},
    {"lease: readers together and writers alone (rule 1)", readers_together_and_writers_alone, 0,
     false},
    {"lease: a break notifies the holder first", a_break_notifies_the_holder_first, 0, false},
    {"lease: a break now frees at once", a_break_now_frees_at_once, 0, false},
    {"lease: a crowd goes one by one (rule 1)", a_crowd_goes_one_by_one, 0, false},
    {"lease: a dead holder's bound grant is taken at once (rule 11)",
     a_dead_holders_bound_grant_is_taken_at_once, STORE_SESSIONS, true},
    {"lease: a dead waiter is passed over", a_dead_waiter_is_passed_over, STORE_SESSIONS, true},
};

const struct test_group lease_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

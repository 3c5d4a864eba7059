/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks and tokens: a mark for "this write" keeps its meaning across later writes. Where the store
 * tests the token, a grant is renewed or released by its token alone, without the revision that a
 * waiter's write has changed.
 */
#include "parties.h"

#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

/* Writes a grant under the key, and returns the reply. */
static const struct store_reply *grant(unsigned client, const char *key, int64_t ttl_ms)
{
    struct record *record = value_record(key, "holder");
    record->grants[0].ttl_ms = ttl_ms;
    const struct store_reply *reply = ask(client, swapping(key, if_absent, value_encode(record)));
    EXPECT(reply->result == REPLY_OK);
    return reply;
}

/* The key is unchanged since that reply. */
static void expect_unchanged(const struct store_reply *since, const char *key)
{
    struct value value = {.bytes = since->bytes, .length = since->length};
    expect_stands(key, value, since->written.revision);
}

static void expect_refused(const struct store_reply *reply, const struct store_reply *standing,
                           const char *key)
{
    struct value value = {.bytes = standing->bytes, .length = standing->length};
    expect_conflict(reply, value, standing->written.revision);
    expect_unchanged(standing, key);
}

/* A waiter's write must not make the holder's grant new, nor change its token. */
static void a_waiter_moves_neither_token_nor_expiry(void)
{
    const char *key = key_named("k");
    EXPECT(act(0, request_by(0, key, "holder", VERB_ACQUIRE)).kind == VERDICT_GRANTED);
    const struct store_reply *reply = ask(0, reading(key));
    struct grant before = record_in(reply, key)->grants[0];
    suite_sleep(5);
    for (unsigned client = 1; client < 4; client++) {
        static const char *const who[] = {"", "first", "second", "third"};
        EXPECT(act(client, request_by(client, key, who[client], VERB_ACQUIRE)).kind ==
               VERDICT_WAITING);
    }
    const struct record *record = record_in(ask(3, reading(key)), key);
    EXPECT(record->grant_count == 1 && record->waiter_count == 3);
    EXPECT(grant_token(&record->grants[0]) == grant_token(&before));
    EXPECT(record->grants[0].granted.time_ms == before.granted.time_ms);
    EXPECT(record->grants[0].renewed.time_ms == before.renewed.time_ms);
    struct request renewal = request_by(0, key, "holder", VERB_RENEW);
    renewal.token = grant_token(&before);
    EXPECT(act(0, renewal).kind == VERDICT_DONE);
    record = record_in(ask(2, reading(key)), key);
    EXPECT(grant_token(&record->grants[0]) == grant_token(&before));
    EXPECT(record->grants[0].granted.time_ms == before.granted.time_ms);
    EXPECT(record->grants[0].renewed.revision > before.renewed.revision);
    EXPECT(record->waiter_count == 3);
}

static void a_waiter_does_not_disturb_a_renewal_by_token(void)
{
    const char *key = key_named("k");
    EXPECT(act(0, request_by(0, key, "holder", VERB_ACQUIRE)).kind == VERDICT_GRANTED);
    struct grant before = record_in(ask(0, reading(key)), key)->grants[0];
    uint64_t token = grant_token(&before);
    EXPECT(act(1, request_by(1, key, "waiter", VERB_ACQUIRE)).kind == VERDICT_WAITING);
    suite_sleep(5);
    const struct store_reply *reply = ask(0, renewing(key, token, HOUR_MS));
    EXPECT(reply->result == REPLY_OK);
    const struct record *record = record_in(reply, key);
    EXPECT(record->waiter_count == 1 && record->grant_count == 1);
    EXPECT(grant_token(&record->grants[0]) == token);
    EXPECT(record->grants[0].granted.time_ms == before.granted.time_ms);
    EXPECT(record->grants[0].ttl_ms == HOUR_MS);
    EXPECT(record->grants[0].renewed.revision == reply->written.revision);
    expect_unchanged(reply, key);
}

/* Renews for longer than the TTL in total. False if the machine was slower than the lease. */
static bool renews_in_time(const char *key, int64_t ttl_ms)
{
    int64_t since_ms = suite_now_ms();
    const struct store_reply *first = grant(0, key, ttl_ms);
    uint64_t token = token_in(first, key);
    for (unsigned i = 1; i <= 3; i++) {
        suite_sleep(ttl_ms / 2);
        int64_t sent_ms = suite_now_ms();
        const struct store_reply *reply = ask(i, renewing(key, token, ttl_ms));
        if (suite_now_ms() >= since_ms + ttl_ms)
            return false;
        since_ms = sent_ms;
        EXPECT(reply->result == REPLY_OK);
        const struct grant *renewed = &record_in(reply, key)->grants[0];
        EXPECT(renewed->renewed.revision == reply->written.revision);
        EXPECT(renewed->renewed.time_ms == reply->written.time_ms);
        EXPECT(renewed->granted.revision == first->written.revision);
        EXPECT(grant_token(renewed) == token);
    }
    return true;
}

static void a_renewal_is_counted_from_its_write(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    int64_t ttl_ms = 2 * suite_short_ms();
    for (unsigned i = 0; i < 4; i++, ttl_ms *= 3)
        if (renews_in_time(key_named(names[i]), ttl_ms))
            return;
    suite_fail("the machine is too slow to judge");
}

static void another_token_renews_nothing(void)
{
    const char *key = key_named("k"), *other = key_named("other"), *none = key_named("none");
    struct value nothing = {0};
    const struct store_reply *mine = grant(0, key, HOUR_MS), *theirs = grant(1, other, HOUR_MS);
    uint64_t token = token_in(mine, key);
    if (token_in(theirs, other) != token) /* tokens of two keys may be equal */
        expect_refused(ask(1, renewing(key, token_in(theirs, other), HOUR_MS)), mine, key);
    expect_refused(ask(1, renewing(key, token + 1, HOUR_MS)), mine, key);
    expect_refused(ask(1, renewing(key, token - 1, HOUR_MS)), mine, key);
    expect_conflict(ask(1, renewing(none, token, HOUR_MS)), nothing, 0);
    expect_absent(none);
}

static void a_stale_token_renews_nothing(void)
{
    const char *key = key_named("k");
    const struct store_reply *first = grant(0, key, HOUR_MS);
    uint64_t token = token_in(first, key);
    EXPECT(ask(1, deleting(key, if_revision(first->written.revision)))->result == REPLY_OK);
    const struct store_reply *second = grant(1, key, HOUR_MS);
    EXPECT(token_in(second, key) > token);
    expect_refused(ask(0, renewing(key, token, HOUR_MS)), second, key);
    expect_refused(ask(0, deleting(key, if_grant(token))), second, key);
}

static void a_renewal_does_not_raise_the_dead(void)
{
    const char *key = key_named("k");
    const struct store_reply *reply = grant(0, key, suite_short_ms());
    uint64_t token = token_in(reply, key);
    suite_outlive(suite_short_ms());
    expect_refused(ask(0, renewing(key, token, HOUR_MS)), reply, key);
    expect_refused(ask(1, deleting(key, if_grant(token))), reply, key);
}

static void a_broken_grant_is_not_renewed(void)
{
    const char *key = key_named("k");
    struct record *record = value_record(key, "holder");
    record->grants[0].broken = true;
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_encode(record)));
    uint64_t token = token_in(reply, key);
    expect_refused(ask(0, renewing(key, token, HOUR_MS)), reply, key);
    EXPECT(ask(0, deleting(key, if_grant(token)))->result == REPLY_OK);
    expect_absent(key);
}

static void one_reader_renews_and_the_other_does_not(void)
{
    const char *key = key_named("k");
    struct record *record = value_record(key, "holder");
    record->grants[0].mode = MODE_SHARED;
    struct grant *second = record_add_grant(record);
    *second = record->grants[0];
    (void)strcpy(second->request, "another");
    second->n = GRANT_STEP;
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_encode(record)));
    uint64_t first = token_in(reply, key), token = first + GRANT_STEP;
    reply = ask(1, renewing(key, token, 2 * HOUR_MS));
    EXPECT(reply->result == REPLY_OK);
    record = record_in(reply, key);
    EXPECT(record->grant_count == 2 && grant_token(&record->grants[0]) == first);
    EXPECT(grant_token(&record->grants[1]) == token);
    EXPECT(record->grants[0].ttl_ms == HOUR_MS && record->grants[1].ttl_ms == 2 * HOUR_MS);
    EXPECT(record->grants[0].renewed.revision < record->grants[1].renewed.revision);
    expect_refused(ask(0, deleting(key, if_grant(first))), reply, key);
}

static void a_renewal_from_elsewhere_re_homes(void)
{
    const char *key = key_named("k");
    uint64_t token = token_in(grant(0, key, HOUR_MS), key);
    struct store_request request = renewing(key, token, HOUR_MS);
    request.session = client_session(1) + 2;
    request.bound = true;
    EXPECT(ask(1, request)->result == REPLY_OK);
    const struct grant *re_homed = &record_in(ask(0, reading(key)), key)->grants[0];
    EXPECT(re_homed->session == request.session && re_homed->bound);
    EXPECT(grant_token(re_homed) == token);
}

static void a_grant_that_is_all_is_deleted_by_its_token(void)
{
    const char *key = key_named("k");
    const struct store_reply *reply = grant(0, key, HOUR_MS);
    uint64_t token = token_in(reply, key);
    expect_refused(ask(1, deleting(key, if_grant(token + 1))), reply, key);
    EXPECT(ask(1, deleting(key, if_grant(token)))->result == REPLY_OK);
    expect_absent(key);
    EXPECT(ask(0, deleting(key, if_grant(token)))->result == REPLY_CONFLICT);
}

static void add_waiter(struct record *record)
{
    struct waiter *waiter = record_add_waiter(record);
    (void)strcpy(waiter->holder, "waiter");
    (void)strcpy(waiter->request, "waiting");
    waiter->session = client_session(1);
    waiter->ttl_ms = HOUR_MS;
}

/* With a waiter or a cooldown the delete would remove more than this grant. */
static void a_grant_that_is_not_all_is_not_deleted(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    struct record *record = value_record(key, "holder");
    add_waiter(record);
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_encode(record)));
    expect_refused(ask(1, deleting(key, if_grant(token_in(reply, key)))), reply, key);
    record = value_record(other, "holder");
    record->cooling.length_ms = HOUR_MS;
    reply = ask(0, swapping(other, if_absent, value_encode(record)));
    expect_refused(ask(1, deleting(other, if_grant(token_in(reply, other)))), reply, other);
}

static void a_token_beside_a_revision_must_stand_too(void)
{
    const char *key = key_named("k");
    struct value more = value_of(key, "more");
    const struct store_reply *reply = grant(0, key, HOUR_MS);
    struct condition condition = if_revision(reply->written.revision);
    uint64_t token = token_in(reply, key);
    condition.token = token + 1;
    expect_refused(ask(1, swapping(key, condition, more)), reply, key);
    expect_refused(ask(1, deleting(key, condition)), reply, key);
    condition.token = token;
    condition.revision++;
    expect_refused(ask(1, swapping(key, condition, more)), reply, key);
    condition.revision--;
    struct record *record = value_record(key, "holder");
    record->grants[0].ttl_ms = suite_short_ms();
    add_waiter(record); /* so that the record stays */
    reply = ask(1, swapping(key, condition, value_encode(record)));
    EXPECT(reply->result == REPLY_OK);
    condition = if_revision(reply->written.revision);
    condition.token = token_in(reply, key);
    suite_outlive(suite_short_ms());
    expect_refused(ask(0, swapping(key, condition, more)), reply, key);
    expect_refused(ask(0, deleting(key, condition)), reply, key);
    condition.token = 0;
    EXPECT(ask(0, swapping(key, condition, more))->result == REPLY_OK);
}

/* The store may have removed the record of a sole grant that ended: still nothing is written. */
static void an_ended_sole_grant_is_gone_for_its_token(void)
{
    const char *key = key_named("k");
    const struct store_reply *reply = grant(0, key, suite_short_ms());
    struct condition condition = if_revision(reply->written.revision);
    struct value more = value_of(key, "more");
    condition.token = token_in(reply, key);
    suite_outlive(suite_short_ms());
    EXPECT(ask(0, swapping(key, condition, more))->result == REPLY_CONFLICT);
    EXPECT(ask(1, deleting(key, condition))->result == REPLY_CONFLICT);
    reply = ask(1, reading(key));
    EXPECT(reply->result == REPLY_OK && !has_value(reply, more));
    condition.kind = reply->present ? IF_REVISION : IF_ABSENT;
    condition.token = 0;
    EXPECT(ask(1, swapping(key, condition, more))->result == REPLY_OK);
}

static const struct test_case test_cases[] = {
    {"mark: a waiter moves neither token nor expiry", a_waiter_moves_neither_token_nor_expiry, 0,
     false},
    {"renew: a waiter does not disturb it", a_waiter_does_not_disturb_a_renewal_by_token,
     STORE_RENEWS_GRANT, false},
    {"renew: it is counted from its write", a_renewal_is_counted_from_its_write,
     STORE_RENEWS_GRANT | STORE_TIME, false},
    {"renew: another token renews nothing", another_token_renews_nothing, STORE_RENEWS_GRANT,
     false},
    {"renew: a stale token renews nothing", a_stale_token_renews_nothing,
     STORE_RENEWS_GRANT | STORE_DELETES, false},
    {"renew: it does not raise the dead", a_renewal_does_not_raise_the_dead, STORE_RENEWS_GRANT,
     false},
    {"renew: a broken grant is refused", a_broken_grant_is_not_renewed,
     STORE_RENEWS_GRANT | STORE_DELETES, false},
    {"renew: one reader does, the other does not", one_reader_renews_and_the_other_does_not,
     STORE_RENEWS_GRANT, false},
    {"renew: from elsewhere it re-homes", a_renewal_from_elsewhere_re_homes, STORE_RENEWS_GRANT,
     false},
    {"release: a grant that is all is deleted by its token",
     a_grant_that_is_all_is_deleted_by_its_token, STORE_TESTS_GRANT | STORE_DELETES, false},
    {"release: a grant that is not all is not", a_grant_that_is_not_all_is_not_deleted,
     STORE_TESTS_GRANT, false},
    {"swap: a sole grant that ended is gone for its token",
     an_ended_sole_grant_is_gone_for_its_token, STORE_TESTS_GRANT, false},
    {"swap: a token beside a revision must stand too", a_token_beside_a_revision_must_stand_too,
     STORE_TESTS_GRANT, false},
};

const struct test_group grant_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

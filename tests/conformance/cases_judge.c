/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that judges by sessions has no clock that its clients can read. Its replies carry no
 * time, and name what has ended: leases by their tokens, the cooldown, the lock-delay. No other
 * process can find that out, so each is checked in every kind of reply.
 */
#include "parties.h"

#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

static void needs_judge(void)
{
    if (suite_facts().judge != JUDGE_SESSION)
        suite_skip("sessions in place of a clock");
}

static bool is_named(const struct store_reply *reply, uint64_t token)
{
    for (size_t i = 0; i < reply->ended_count; i++)
        if (reply->ended_tokens[i] == token)
            return true;
    return false;
}

/* The record of the key in a read, in a conflict, and in a list. */
enum { KINDS = 3 };

static const struct store_reply *reply_of_kind(unsigned kind, const char *key)
{
    if (kind == 0)
        return ask(kind, reading(key));
    if (kind == 1)
        return ask(kind, swapping(key, if_absent, value_of(key, "x")));
    struct client_replies listed = list_keys(kind, key);
    EXPECT(listed.count == 1);
    return &listed.list[0].reply;
}

static const struct store_reply *write_record(const struct record *record)
{
    const char *key = suite_keep(record->key, strlen(record->key));
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_encode(record)));
    EXPECT(reply->result == REPLY_OK);
    return reply;
}

static void expect_no_time(const struct store_reply *reply)
{
    EXPECT(reply->now_ms == TIME_UNKNOWN);
    EXPECT(!reply->present || reply->written.time_ms == TIME_UNKNOWN);
}

/* A store whose sessions are kept alive by heartbeats has dates, for people and its own driver. */
static void no_reply_carries_a_time(void)
{
    const char *key = key_named("k");
    needs_judge();
    if ((suite_bits() & STORE_RENEWS_SESSION) != 0)
        suite_skip("replies without dates");
    expect_no_time(ask(0, reading(key)));
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_of(key, "holder")));
    expect_no_time(reply);
    for (unsigned kind = 0; kind < KINDS; kind++)
        expect_no_time(reply_of_kind(kind, key));
    EXPECT(record_in(reply, key)->grants[0].renewed.time_ms == TIME_UNKNOWN);
}

/* Two readers: one of them expires, and the renewal of the other does not concern it. */
static void an_expired_lease_is_named(void)
{
    const char *key = key_named("k");
    needs_judge();
    struct record *record = value_record(key, "holder");
    record->grants[0].mode = MODE_SHARED;
    struct grant *second = record_add_grant(record);
    *second = record->grants[0];
    (void)strcpy(second->request, "another");
    second->n = GRANT_STEP;
    second->ttl_ms = suite_short_ms();
    const struct store_reply *reply = write_record(record);
    uint64_t first = token_in(reply, key), token = first + GRANT_STEP;
    EXPECT(!is_named(reply, first) && !is_named(reply, token));
    suite_outlive(suite_short_ms());
    for (unsigned kind = 0; kind < KINDS; kind++) {
        reply = reply_of_kind(kind, key);
        EXPECT(!is_named(reply, first) && is_named(reply, token));
    }
    struct request renewal = request_by(1, key, "holder", VERB_RENEW);
    renewal.token = first;
    EXPECT(act(1, renewal).kind == VERDICT_DONE);
    renewal.token = token;
    EXPECT(act(2, renewal).kind == VERDICT_STALE);
    EXPECT(is_named(ask(3, reading(key)), token));
}

/* A lease that is renewed again and again lives longer than its length. */
static void a_renewed_lease_is_not_named(void)
{
    enum { RENEWALS = 4 };
    const char *key = key_named("k");
    needs_judge();
    int64_t ttl_ms = 8 * suite_short_ms(), since_ms = suite_now_ms();
    struct record *record = value_record(key, "holder");
    record->grants[0].ttl_ms = ttl_ms;
    uint64_t token = token_in(write_record(record), key);
    for (unsigned i = 0; i < RENEWALS; i++) {
        suite_sleep(ttl_ms / 3);
        int64_t sent_ms = suite_now_ms();
        struct request renewal = request_by(i, key, "holder", VERB_RENEW);
        renewal.token = token;
        renewal.ttl_ms = ttl_ms;
        struct verdict verdict = act(i, renewal);
        if (suite_now_ms() >= since_ms + ttl_ms)
            return; /* the machine was slower than the lease */
        EXPECT(verdict.kind == VERDICT_DONE);
        EXPECT(!is_named(ask(3, reading(key)), token));
        since_ms = sent_ms;
    }
}

static void expect_spans(const char *key, bool cooling_over, bool delay_over)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const struct store_reply *reply = reply_of_kind(kind, key);
        EXPECT(reply->cooling_over == cooling_over && reply->delay_over == delay_over);
    }
}

/* A holder keeps the record; both spans end without a write. */
static void cooldown_and_delay_end_each_by_itself(void)
{
    const char *keys[2] = {key_named("cooling"), key_named("delayed")};
    needs_judge();
    for (unsigned i = 0; i < 2; i++) {
        struct record *record = value_record(keys[i], "holder");
        record->cooling.length_ms = i == 0 ? suite_short_ms() : HOUR_MS;
        record->delay.length_ms = i == 1 ? suite_short_ms() : HOUR_MS;
        const struct store_reply *reply = write_record(record);
        EXPECT(!reply->cooling_over && !reply->delay_over);
    }
    suite_outlive(suite_short_ms());
    expect_spans(keys[0], /* cooling_over= */ true, /* delay_over= */ false);
    expect_spans(keys[1], /* cooling_over= */ false, /* delay_over= */ true);
}

/* Rule 11, by the reply: the lease of an unbound grant outlives the session. */
static void the_end_of_a_session_ends_no_lease(void)
{
    const char *key = key_named("k");
    needs_judge();
    struct record *record = value_record(key, "holder");
    record->grants[0].session = client_session(1);
    uint64_t token = token_in(write_record(record), key);
    client_close(1);
    client_open(1);
    for (unsigned kind = 0; kind < KINDS; kind++)
        EXPECT(!is_named(reply_of_kind(kind, key), token));
    struct verdict verdict = act(2, request_by(2, key, "next", VERB_ACQUIRE));
    EXPECT(verdict.kind == VERDICT_WAITING && verdict.expired == 0);
}

/* The holder's process has ended; its lock-delay begins when the next client notices that. */
static void a_lock_delay_is_waited_for(void)
{
    const char *key = key_named("k");
    int64_t delay_ms = 4 * suite_short_ms();
    struct request lost = request_by(1, key, "lost", VERB_ACQUIRE);
    lost.bound = true;
    lost.lock_delay_ms = delay_ms;
    EXPECT(act(1, lost).kind == VERDICT_GRANTED);
    client_close(1);
    client_open(1);
    if (suite_facts().renews_by_session)
        suite_outlive(
            /* ttl_ms= */ 0); /* dates are coarse: the end of a session is reported late */
    int64_t since_ms = suite_now_ms();
    struct party *first = party_new(2, key), *waiting = party_waiting(3, key);
    waiting->facts.poll_ms = HOUR_MS; /* it must know by itself when to read */
    party_start(first);
    party_start(waiting);
    EXPECT(first->ended && first->outcome == OUTCOME_BUSY);
    expect_held(waiting);
    EXPECT(suite_now_ms() >= since_ms + delay_ms);
}

static const struct test_case test_cases[] = {
    {"judge: no reply carries a time", no_reply_carries_a_time, STORE_SESSIONS, false},
    {"judge: an expired lease is named in every reply", an_expired_lease_is_named, STORE_SESSIONS,
     false},
    {"judge: a renewed lease is not", a_renewed_lease_is_not_named, STORE_SESSIONS, false},
    {"judge: cooldown and lock-delay end each by itself", cooldown_and_delay_end_each_by_itself,
     STORE_SESSIONS, false},
    {"judge: the end of a session ends no lease (rule 11)", the_end_of_a_session_ends_no_lease,
     STORE_SESSIONS, false},
    {"judge: a lock-delay is waited for", a_lock_delay_is_waited_for, STORE_SESSIONS, false},
};

const struct test_group judge_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

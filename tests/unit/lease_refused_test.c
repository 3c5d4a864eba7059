/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that were never sent, because every address refused the connection or the breaker is
 * open: which give up at once, and which retry.
 */
#include "lease_kit.h"

static const char no_answer[] = "the store does not answer";

static void hold(void)
{
    begin();
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

/* Carries out requests until the lease sends no more. */
static void carry_on(void)
{
    while (lease.in_flight)
        carry_out();
}

static void an_ask_without_a_wait_ends_when_it_is_refused(void **state)
{
    (void)state;
    options.request.waits = false;
    begin();
    answer_refused(now_ms);
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS);
}

/* An earlier attempt may be in the store: it is queried until the timeout. */
static void an_unsure_ask_outlasts_a_refusal(void **state)
{
    (void)state;
    options.request.waits = false;
    begin();
    reply(REPLY_TROUBLE);
    wake();
    answer_refused(now_ms);
    assert_int_equal(lease.state, LEASE_ACQUIRING);
    assert_true(lease.unsure);
}

static void a_wait_outlasts_refusals_until_the_timeout(void **state)
{
    (void)state;
    begin();
    while (lease.state != LEASE_ENDED) {
        assert_false(lease.unsure); /* nothing was ever sent */
        if (lease.in_flight)
            answer_refused(now_ms);
        else
            wake();
    }
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_in_range(now_ms, START_MS + 9000, START_MS + 10000);
}

static void a_wait_ends_when_no_retry_is_in_time(void **state)
{
    (void)state;
    begin();
    answer_refused(START_MS + 9999);
    assert_int_equal(lease.state, LEASE_ACQUIRING);
    wake();
    answer_refused(START_MS + 10000);
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
}

static void a_place_in_line_outlasts_a_refusal(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_on();
    assert_int_equal(lease.state, LEASE_WAITING);
    wake();
    answer_refused(now_ms + 60000);
    assert_int_equal(lease.state, LEASE_WAITING);
}

static void a_refused_errand_ends_unless_it_renews_or_gives_back(void **state)
{
    static const enum verb all[] = {VERB_QUERY, VERB_BREAK, VERB_RENEW, VERB_RELEASE};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool holders = all[i] == VERB_RENEW || all[i] == VERB_RELEASE;
        use_verb(all[i], holders ? 1024 : 0);
        begin();
        answer_refused(now_ms + 60000);
        if (holders)
            assert_int_equal(lease.state, LEASE_OPERATION);
        else
            assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    }
}

static void a_holder_outlasts_refusals_until_its_deadline(void **state)
{
    (void)state;
    hold();
    while (lease.state != LEASE_LOST) {
        if (lease.in_flight)
            answer_refused(now_ms + 60000);
        else
            wake();
    }
    assert_int_equal(now_ms, START_MS + 6000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_ask_without_a_wait_ends_when_it_is_refused),
        LEASE_TEST(an_unsure_ask_outlasts_a_refusal),
        LEASE_TEST(a_wait_outlasts_refusals_until_the_timeout),
        LEASE_TEST(a_wait_ends_when_no_retry_is_in_time),
        LEASE_TEST(a_place_in_line_outlasts_a_refusal),
        LEASE_TEST(a_refused_errand_ends_unless_it_renews_or_gives_back),
        LEASE_TEST(a_holder_outlasts_refusals_until_its_deadline),
    };
    return cmocka_run_group_tests_name("lease_refused", tests, NULL, NULL);
}

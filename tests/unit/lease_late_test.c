/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants that arrive when their lease is over, or almost: they are released, and a store that is
 * slower than the lease is not queried without pause.
 */
#include "lease_kit.h"

/* Carries out requests until the lease sends no more. */
static void carry_on(void)
{
    while (lease.in_flight)
        carry_out();
}

/* Its lease was over by then: others may be granted, so it is released, and requested later. */
static void a_grant_that_is_over_is_given_back(void **state)
{
    (void)state;
    options.timeout_ms = 100000;
    begin();
    carry_out_unanswered();
    now_ms += 9000;
    deliver_kept();
    assert_line("acquiring + answer ok -> leaving");
    happens_knowing(EVENT_TIMER);
    carry_on();
    assert_int_equal(lease.state, LEASE_ACQUIRING);
    assert_true(token_in_store("a") == 0);
    assert_false(lease.in_flight);
    wake_between(now_ms + 50, now_ms + 75);
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD);
}

/* A store that is always slower than the lease is queried less and less often, up to a limit. */
static void grants_that_are_always_late_do_not_spin(void **state)
{
    enum { TIMEOUT_MS = 300000 };
    (void)state;
    unsigned writes = 0;
    options.request.waits = false;
    options.timeout_ms = TIMEOUT_MS;
    facts.reply_timeout_ms = 20000;
    begin();
    while (lease.state != LEASE_ENDED && writes < 1000) {
        if (!lease.in_flight) {
            now_ms = out.wake_at_ms;
            happens_knowing(EVENT_TIMER);
        } else if (lease.sent == ACTION_READ || lease.state == LEASE_LEAVING) {
            carry_out();
        } else {
            carry_out_unanswered();
            now_ms += options.request.ttl_ms;
            deliver_kept();
            writes++;
        }
    }
    assert_ended(OUTCOME_UNAVAILABLE, "grants arrive after the lease has ended; use a longer TTL");
    assert_true(token_in_store("a") == 0);
    assert_true(writes > 10 && writes <= TIMEOUT_MS / options.request.ttl_ms + 1);
}

/* The grant is in the store, and a failing store cannot remove it. */
static void a_late_grant_in_a_silent_store_is_not_called_late(void **state)
{
    (void)state;
    options.request.waits = false;
    options.timeout_ms = 20000;
    begin();
    carry_out_unanswered();
    now_ms += 6000;
    deliver_kept();
    while (lease.state != LEASE_ENDED) {
        if (lease.in_flight)
            reply(REPLY_TROUBLE);
        else
            wake();
    }
    assert_ended(OUTCOME_UNAVAILABLE, "the store does not answer");
}

/* The wait is over before it is released. */
static void a_late_grant_is_not_asked_for_again_after_the_wait(void **state)
{
    (void)state;
    options.request.waits = false;
    options.timeout_ms = 20000;
    begin();
    carry_out_unanswered();
    now_ms += options.request.ttl_ms;
    deliver_kept();
    assert_int_equal(lease.state, LEASE_LEAVING);
    happens_knowing(EVENT_TIMER);
    now_ms += options.timeout_ms;
    carry_on();
    assert_ended(OUTCOME_UNAVAILABLE, "grants arrive after the lease has ended; use a longer TTL");
    assert_true(token_in_store("a") == 0);
}

static void grants_of_an_instant_do_not_spin(void **state)
{
    (void)state;
    unsigned writes = 0;
    options.request.waits = false;
    options.timeout_ms = 10000;
    options.request.ttl_ms = 1;
    begin();
    while (lease.state != LEASE_ENDED && writes < 1000) {
        writes += lease.in_flight && lease.sent != ACTION_READ;
        if (lease.in_flight) {
            now_ms++;
            carry_out();
        } else {
            now_ms = out.wake_at_ms;
            happens_knowing(EVENT_TIMER);
        }
    }
    assert_int_equal(lease.state, LEASE_ENDED);
    assert_true(writes < 60);
}

static void a_cancel_during_a_release_does_not_ask_again(void **state)
{
    (void)state;
    options.timeout_ms = 100000;
    begin();
    carry_out_unanswered();
    now_ms += 9000;
    deliver_kept();
    assert_int_equal(lease.state, LEASE_LEAVING);
    happens_knowing(EVENT_RELEASE);
    happens_knowing(EVENT_TIMER);
    carry_on();
    assert_ended(OUTCOME_BUSY, "cancelled");
    assert_true(token_in_store("a") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_grant_that_is_over_is_given_back),
        LEASE_TEST(grants_that_are_always_late_do_not_spin),
        LEASE_TEST(a_late_grant_in_a_silent_store_is_not_called_late),
        LEASE_TEST(a_late_grant_is_not_asked_for_again_after_the_wait),
        LEASE_TEST(grants_of_an_instant_do_not_spin),
        LEASE_TEST(a_cancel_during_a_release_does_not_ask_again),
    };
    return cmocka_run_group_tests_name("lease_late", tests, NULL, NULL);
}

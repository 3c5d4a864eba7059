/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trouble (rule 10): replies lost, late, denied; timeouts; possible effects of an attempt without a
 * reply.
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

static void an_ask_without_a_wait_ends_with_patience(void **state)
{
    (void)state;
    options.request.waits = false;
    begin();
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS + 10000);
}

static void an_unlimited_wait_on_a_dead_store_ends_with_patience(void **state)
{
    (void)state;
    begin();
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS + 10000);
}

/* The reply that exhausts the timeout comes before the timer does. */
static void patience_ends_at_an_answer_too(void **state)
{
    (void)state;
    begin();
    now_ms += 10000;
    reply(REPLY_TROUBLE);
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
}

static void a_wait_that_ends_in_trouble_is_not_busy(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    begin();
    now_ms += 600;
    reply(REPLY_TROUBLE);
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS + 1000 + 2 * 250); /* one more try to leave the queue */
}

/* Where replies take that long, one more attempt uses the whole timeout. */
static void on_a_slow_store_the_last_try_takes_all_patience(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    facts.reply_timeout_ms = 6000;
    begin();
    now_ms += 900;
    reply(REPLY_TROUBLE);
    now_ms = START_MS + 1000;
    happens(EVENT_TIMER);
    assert_int_equal(lease.state, LEASE_LEAVING);
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS + 11000);
}

/* A full disk, for one: it can be read, and writes fail. */
static void a_store_that_only_reads_exhausts_patience(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 1000 && lease.state != LEASE_ENDED; i++) {
        if (!lease.in_flight)
            wake();
        else if (lease.sent == ACTION_READ)
            carry_out();
        else
            reply(REPLY_TROUBLE);
    }
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_in_range(now_ms, START_MS + 8000, START_MS + 10000);
}

static void one_answer_restores_patience(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    now_ms += 5000;
    reply(REPLY_TROUBLE);
    wake();
    carry_on();
    assert_int_equal(lease.state, LEASE_WAITING);
    int64_t again_ms = now_ms;
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_true(now_ms >= again_ms + 10000);
}

static void retries_grow_and_end_at_two_seconds(void **state)
{
    (void)state;
    options.timeout_ms = 100000;
    begin();
    int64_t first_ms = 0, last_ms = 0;
    for (int i = 0; i < 14; i++) {
        reply(REPLY_TROUBLE);
        last_ms = out.wake_at_ms - now_ms;
        first_ms = i == 0 ? last_ms : first_ms;
        wake();
        assert_int_equal(out.action, ACTION_READ);
    }
    assert_in_range(first_ms, 50, 75);
    assert_in_range(last_ms, 2000, 3000);
}

/* A third is left between renewal and deadline: there must be time for several attempts. */
static void a_holder_retries_within_its_ttl(void **state)
{
    (void)state;
    hold();
    wake();
    int tries = 0;
    for (; lease.state != LEASE_LOST; tries++)
        wake();
    assert_string_equal(out.why, "deadline");
    assert_int_equal(now_ms, START_MS + 6000);
    assert_true(tries >= 3);
}

static void a_short_lease_is_retried_more_often(void **state)
{
    (void)state;
    options.request.ttl_ms = 600;
    hold();
    wake();
    for (int i = 0; lease.state != LEASE_LOST; i++) {
        assert_true(out.wake_at_ms - now_ms <= 151);
        wake();
    }
}

/* After a successful renewal, or with another operation, the full timeout applies again. */
static void retries_begin_anew(void **state)
{
    (void)state;
    options.request.ttl_ms = 600000;
    hold();
    wake();
    for (int i = 0; i < 8; i++) {
        reply(REPLY_TROUBLE);
        wake();
    }
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD);
    wake();
    reply(REPLY_TROUBLE);
    assert_in_range(out.wake_at_ms - now_ms, 50, 75);
    for (int i = 0; i < 8; i++) {
        wake();
        reply(REPLY_TROUBLE);
    }
    happens(EVENT_RELEASE);
    int64_t reply_timeout_ms = facts.reply_timeout_ms;
    assert_in_range(out.wake_at_ms - now_ms, reply_timeout_ms, reply_timeout_ms * 3 / 2);
}

static void a_long_lease_is_not_retried_more_often_than_needed(void **state)
{
    (void)state;
    options.request.ttl_ms = 600000;
    hold();
    wake();
    for (int i = 0; i < 8; i++) {
        reply(REPLY_TROUBLE);
        wake();
    }
    reply(REPLY_TROUBLE);
    assert_in_range(out.wake_at_ms - now_ms, 2000, 3000);
}

static void a_lost_answer_is_found_by_the_request(void **state)
{
    (void)state;
    begin();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_out();
    assert_line("acquiring + answer ok -> acquiring; verdict granted; swap if revision 1");
    carry_out();
    assert_int_equal(out.notify, NOTIFY_HELD);
    assert_true(lease.token == 1024);
}

static void an_answer_to_an_earlier_attempt_is_not_believed(void **state)
{
    (void)state;
    begin();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    deliver_kept();
    assert_line("acquiring + answer ok -> acquiring");
    wake();
    deliver_kept();
    assert_line("acquiring + answer ok -> acquiring");
    assert_true(lease.in_flight);
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void a_grant_heard_too_late_is_asked_for_again(void **state)
{
    (void)state;
    options.timeout_ms = 100000;
    begin();
    carry_out_unanswered();
    now_ms += 6000;
    deliver_kept();
    assert_line("acquiring + answer ok -> acquiring; read");
    assert_true(lease.unsure); /* it is in the store: a refused connection must not end it */
    assert_int_equal(out.notify, NOTIFY_NONE);
    carry_out();
    assert_line("acquiring + answer ok -> acquiring; verdict granted; swap if revision 1");
    carry_out();
    assert_line("acquiring + answer ok -> held; told held, token 1024; deadline 22000, kill 23500");
}

static void an_acceptance_heard_too_late_is_asked_for_again(void **state)
{
    (void)state;
    options.timeout_ms = 100000;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens_knowing(EVENT_NOTICE);
    assert_int_equal(lease.state, LEASE_OFFERED);
    carry_out_unanswered();
    now_ms += 6000;
    deliver_kept();
    assert_line("offered + answer ok -> acquiring; read");
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD);
    assert_int_equal(lease.start_ms, START_MS + 6000);
}

/* Its deadline came first, whatever the reply is. */
static void a_renewal_heard_too_late_is_lost(void **state)
{
    (void)state;
    hold();
    now_ms = out.wake_at_ms;
    happens_knowing(EVENT_TIMER);
    carry_out_unanswered();
    now_ms = START_MS + 6000;
    deliver_kept();
    assert_line("renewing + answer ok -> lost; told lost (deadline), kill 17500");
}

static void a_denied_ask_ends_at_once(void **state)
{
    (void)state;
    begin();
    reply(REPLY_DENIED);
    assert_line("acquiring + answer denied -> ended; told denied (the store does not permit it)");
}

static void a_denied_waiter_ends_at_once(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_on();
    wake();
    reply(REPLY_DENIED);
    assert_ended(OUTCOME_DENIED, "the store does not permit it");
}

static void an_invalid_key_ends_at_once(void **state)
{
    (void)state;
    begin();
    reply(REPLY_INVALID);
    assert_ended(OUTCOME_USAGE, "the store does not lock this key");
}

static void a_holder_of_an_invalid_key_tries_again(void **state)
{
    (void)state;
    hold();
    wake();
    reply(REPLY_INVALID);
    assert_line("renewing + answer invalid -> renewing");
    wake();
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void a_denied_holder_tries_until_its_deadline(void **state)
{
    (void)state;
    hold();
    wake();
    reply(REPLY_DENIED);
    assert_line("renewing + answer denied -> renewing");
    wake();
    carry_on();
    assert_int_equal(lease.state, LEASE_HELD); /* permission was restored in time */
    int64_t deadline_ms = lease.deadline_ms;
    while (lease.state != LEASE_LOST) {
        wake();
        if (lease.in_flight)
            reply(REPLY_DENIED);
    }
    assert_int_equal(now_ms, deadline_ms);
}

static void a_denied_release_says_so(void **state)
{
    (void)state;
    hold();
    happens(EVENT_RELEASE);
    reply(REPLY_DENIED);
    assert_ended(OUTCOME_DENIED, "the store does not permit it");
}

static void an_unheard_release_was_ours(void **state)
{
    (void)state;
    hold();
    happens_knowing(EVENT_RELEASE);
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_out();
    assert_line("releasing + answer ok -> ended; verdict stale; told ok");
}

static void an_unheard_release_with_cooldown_shows_in_the_record(void **state)
{
    (void)state;
    options.cooldown_ms = 5000;
    hold();
    happens_knowing(EVENT_RELEASE);
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

/* It is gone, but not by us: no cooldown. */
static void a_release_that_began_no_cooldown_was_not_ours(void **state)
{
    (void)state;
    options.cooldown_ms = 5000;
    hold();
    happens_knowing(EVENT_RELEASE);
    reply(REPLY_TROUBLE);
    struct request request = neighbours_request(VERB_BREAK, "op");
    request.now = true;
    (void)neighbour_does(request);
    wake();
    carry_out();
    assert_ended(OUTCOME_LOST, "the grant is gone");
}

static void a_release_on_a_dead_store_is_unavailable(void **state)
{
    (void)state;
    hold();
    happens(EVENT_RELEASE);
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
    assert_int_equal(now_ms, START_MS + 10000);
}

static void a_renewal_on_its_way_does_not_hold_up_the_release(void **state)
{
    (void)state;
    hold();
    wake();
    carry_out_unanswered();
    happens(EVENT_RELEASE);
    assert_line("renewing + let go -> releasing; read");
    deliver_kept(); /* the renewal's read */
    assert_line("releasing + answer ok -> releasing");
    carry_on();
    assert_ended(OUTCOME_OK, NULL);
}

/* Granted without a reply, and broken by an operator before we knew. */
static void a_grant_broken_before_it_was_heard_is_given_back(void **state)
{
    (void)state;
    begin();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    (void)neighbour(VERB_BREAK, "op");
    wake();
    carry_out();
    assert_line("acquiring + answer ok -> leaving; verdict broken");
    wake();
    carry_on();
    assert_ended(OUTCOME_BUSY, "broken by an operator");
    assert_true(token_in_store("a") == 0);
}

/* Other clients are always faster: that ends as well. */
static void conflicts_without_end_end_with_patience(void **state)
{
    (void)state;
    options.request.waits = false;
    begin();
    for (int i = 0; i < 3; i++) {
        (void)neighbour(VERB_ACQUIRE, "b");
        struct request request = neighbours_request(VERB_RELEASE, "b");
        request.cooldown_ms = 1;
        (void)neighbour_does(request);
        now_ms += 1;
        carry_out();
    }
    assert_line("acquiring + answer conflict -> acquiring");
    now_ms = START_MS + 10000;
    happens(EVENT_TIMER);
    assert_ended(OUTCOME_UNAVAILABLE, no_answer);
}

/* A copy does not show the effect of the write without a reply. */
static void an_unsure_waiter_reads_before_it_leaves(void **state)
{
    (void)state;
    begin();
    reply(REPLY_TROUBLE);
    happens_knowing(EVENT_RELEASE);
    assert_line("acquiring + let go -> leaving; read");
}

static void a_lost_lease_whose_grant_is_gone_is_lost(void **state)
{
    (void)state;
    hold();
    struct request request = neighbours_request(VERB_BREAK, "op");
    request.now = true;
    (void)neighbour_does(request);
    now_ms = START_MS + 6000;
    happens(EVENT_TIMER);
    happens(EVENT_RELEASE);
    carry_out();
    assert_line("releasing + answer ok -> ended; verdict stale; told lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_ask_without_a_wait_ends_with_patience),
        LEASE_TEST(an_unlimited_wait_on_a_dead_store_ends_with_patience),
        LEASE_TEST(patience_ends_at_an_answer_too),
        LEASE_TEST(a_store_that_only_reads_exhausts_patience),
        LEASE_TEST(a_wait_that_ends_in_trouble_is_not_busy),
        LEASE_TEST(on_a_slow_store_the_last_try_takes_all_patience),
        LEASE_TEST(one_answer_restores_patience),
        LEASE_TEST(retries_grow_and_end_at_two_seconds),
        LEASE_TEST(a_holder_retries_within_its_ttl),
        LEASE_TEST(a_short_lease_is_retried_more_often),
        LEASE_TEST(retries_begin_anew),
        LEASE_TEST(a_long_lease_is_not_retried_more_often_than_needed),
        LEASE_TEST(a_lost_answer_is_found_by_the_request),
        LEASE_TEST(an_answer_to_an_earlier_attempt_is_not_believed),
        LEASE_TEST(a_grant_heard_too_late_is_asked_for_again),
        LEASE_TEST(an_acceptance_heard_too_late_is_asked_for_again),
        LEASE_TEST(a_renewal_heard_too_late_is_lost),
        LEASE_TEST(a_denied_ask_ends_at_once),
        LEASE_TEST(a_denied_waiter_ends_at_once),
        LEASE_TEST(an_invalid_key_ends_at_once),
        LEASE_TEST(a_holder_of_an_invalid_key_tries_again),
        LEASE_TEST(a_denied_holder_tries_until_its_deadline),
        LEASE_TEST(a_denied_release_says_so),
        LEASE_TEST(an_unheard_release_was_ours),
        LEASE_TEST(an_unheard_release_with_cooldown_shows_in_the_record),
        LEASE_TEST(a_release_that_began_no_cooldown_was_not_ours),
        LEASE_TEST(a_release_on_a_dead_store_is_unavailable),
        LEASE_TEST(a_renewal_on_its_way_does_not_hold_up_the_release),
        LEASE_TEST(a_grant_broken_before_it_was_heard_is_given_back),
        LEASE_TEST(conflicts_without_end_end_with_patience),
        LEASE_TEST(an_unsure_waiter_reads_before_it_leaves),
        LEASE_TEST(a_lost_lease_whose_grant_is_gone_is_lost),
    };
    return cmocka_run_group_tests_name("lease_trouble", tests, NULL, NULL);
}

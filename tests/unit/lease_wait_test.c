/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting: what wakes a waiter, acceptance of offers, the end of the wait, giving up at every
 * point, and backing off when others write too. Its own polls: lease_observe_test.c.
 */
#include "lease_kit.h"

#include <stdio.h>

/* "b" holds, the lease waits behind it. */
static void wait_behind_b(void)
{
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    assert_line("acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1");
    carry_out();
    assert_line("acquiring + answer ok -> waiting; told waiting");
}

static void an_offer_is_accepted_at_once(void **state)
{
    (void)state;
    wait_behind_b();
    (void)neighbour(VERB_RELEASE, "b");
    now_ms += 300;
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> offered; verdict granted (accepts); swap if revision 3");
    now_ms += 100;
    carry_out();
    assert_line("offered + answer ok -> held; told held, token 4096; deadline 16300, kill 17800");
}

/* Where a notification carries the record, the release need not query for waiters. */
static void a_queued_waiter_wakes_the_holder(void **state)
{
    (void)state;
    facts.wakes_with_record = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    assert_line(
        "acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1, wakes 1");
    assert_wakes("b");
}

static void a_long_line_is_not_told(void **state)
{
    (void)state;
    facts.wakes_with_record = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    for (int i = 0; i < 32; i++)
        (void)neighbour(VERB_ACQUIRE, (char[]){(char)('A' + i), '\0'});
    begin();
    carry_out();
    assert_int_equal(out.action, ACTION_SWAP);
    assert_int_equal(out.wake_count, 0);
}

static void several_holders_are_not_told(void **state)
{
    (void)state;
    struct request b = neighbours_request(VERB_ACQUIRE, "b"),
                   c = neighbours_request(VERB_ACQUIRE, "c");
    facts.wakes_with_record = true;
    b.mode = c.mode = MODE_SHARED;
    (void)neighbour_does(b);
    (void)neighbour_does(c);
    begin();
    carry_out();
    assert_int_equal(out.action, ACTION_SWAP);
    assert_int_equal(out.wake_count, 0);
}

static void a_notice_without_a_record_is_read(void **state)
{
    (void)state;
    wait_behind_b();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
    carry_out();
    assert_line("waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3");
}

static void a_notice_that_misses_us_is_read(void **state)
{
    (void)state;
    wait_behind_b();
    (void)neighbour(VERB_LEAVE, "a"); /* as if a delayed copy of ours arrived */
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
    carry_out();
    assert_line("waiting + answer ok -> acquiring; verdict waiting; swap if revision 3");
    carry_out();
    assert_line("acquiring + answer ok -> waiting"); /* one notification is enough */
}

static void a_notice_of_a_record_that_nobody_holds_is_read(void **state)
{
    (void)state;
    struct request request = neighbours_request(VERB_ACQUIRE, "b");
    request.lock_delay_ms = 3000;
    (void)neighbour_does(request);
    begin();
    carry_out();
    carry_out();
    now_ms += 9000;
    (void)neighbour(VERB_ACQUIRE, "c");
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
}

static void a_notice_never_puts_the_look_off(void **state)
{
    (void)state;
    wait_behind_b();
    int64_t poll_ms = out.wake_at_ms;
    now_ms += 1000;
    happens_knowing(EVENT_NOTICE);
    assert_int_equal(out.action, ACTION_NONE);
    assert_true(out.wake_at_ms <= poll_ms);
}

static void a_notice_during_a_request_is_not_forgotten(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    carry_out_unanswered();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    assert_line("acquiring + notice -> acquiring");
    deliver_kept();
    assert_line("acquiring + answer ok -> waiting; read; told waiting");
    carry_out();
    assert_int_equal(lease.state, LEASE_OFFERED);
}

static void one_notice_is_one_look(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    happens(EVENT_NOTICE);
    carry_out();
    assert_line("acquiring + answer ok -> waiting; read; told waiting");
    carry_out();
    assert_line("waiting + answer ok -> waiting; verdict waiting");
}

static void the_end_of_the_wait_writes_itself_out(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    wait_behind_b();
    wake_between(START_MS + 1000, START_MS + 1000);
    assert_line("waiting + timer -> leaving; read");
    carry_out();
    assert_line("leaving + answer ok -> leaving; verdict done; swap if revision 2");
    carry_out();
    assert_ended(OUTCOME_BUSY, "not granted within the wait");
    assert_int_equal(record.waiter_count, 0);
}

static void the_end_of_the_wait_takes_one_write_when_it_knows(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    wait_behind_b();
    now_ms += 1000;
    happens_knowing(EVENT_TIMER);
    assert_line("waiting + timer -> leaving; verdict done; swap if revision 2");
}

static void a_grant_on_its_way_is_heard_out(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    wait_behind_b();
    (void)neighbour(VERB_RELEASE, "b");
    now_ms += 900;
    happens_knowing(EVENT_NOTICE);
    assert_int_equal(lease.state, LEASE_OFFERED);
    carry_out_unanswered();
    now_ms += 100;
    happens(EVENT_TIMER);
    assert_line("offered + timer -> offered");
    assert_true(out.wake_at_ms > now_ms);
    now_ms += 50;
    deliver_kept();
    assert_int_equal(out.notify, NOTIFY_HELD);
}

static void a_cancelled_wait_writes_itself_out(void **state)
{
    (void)state;
    wait_behind_b();
    happens_knowing(EVENT_RELEASE);
    assert_line("waiting + let go -> leaving; verdict done; swap if revision 2");
    carry_out();
    assert_ended(OUTCOME_BUSY, "cancelled");
}

static void a_cancelled_ask_gives_an_unheard_grant_back(void **state)
{
    (void)state;
    begin();
    carry_out_unanswered();
    happens(EVENT_RELEASE);
    assert_line("acquiring + let go -> leaving");
    deliver_kept();
    assert_line("leaving + answer ok -> leaving; verdict done; delete if revision 1");
    carry_out();
    assert_ended(OUTCOME_BUSY, "cancelled");
    assert_true(token_in_store("a") == 0);
}

static void a_leaving_waiter_passes_its_offer_on(void **state)
{
    (void)state;
    wait_behind_b();
    (void)neighbour(VERB_ACQUIRE, "c");
    (void)neighbour(VERB_RELEASE, "b");
    happens_knowing(EVENT_RELEASE);
    assert_line("waiting + let go -> leaving; verdict done, named 1; swap if revision 4, wakes 1");
    assert_wakes("c");
    assert_int_equal(out.given_count, 1);
}

/* "b" holds and "c" is first; the lease waits behind both. */
static void wait_behind_c(void)
{
    facts.takeover_ms = 150;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    begin();
    carry_out();
    carry_out();
    assert_line("acquiring + answer ok -> waiting; told waiting");
}

static void the_next_in_line_takes_an_offer_over(void **state)
{
    (void)state;
    wait_behind_c();
    (void)neighbour(VERB_RELEASE, "b");
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting");
    wake_between(START_MS + 150, START_MS + 160);
    assert_line("waiting + timer -> waiting; read");
    carry_out();
    assert_line(
        "waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 4");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
    assert_int_equal(lease.ticket, 0);
}

static void an_offer_that_was_accepted_is_not_polled_for(void **state)
{
    (void)state;
    wait_behind_c();
    (void)neighbour(VERB_RELEASE, "b");
    happens_knowing(EVENT_NOTICE);
    now_ms += 20;
    (void)neighbour(VERB_ACQUIRE, "c");
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting");
    wake_between(START_MS + 20 + 5000, START_MS + 20 + 6500);
}

static void a_waiter_that_was_passed_over_returns(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    wait_behind_b();
    uint64_t ticket = lease.ticket;
    assert_int_not_equal(ticket, 0);
    (void)neighbour(VERB_ACQUIRE, "c");
    (void)neighbour(VERB_LEAVE, "a"); /* as if "c" took its offer over */
    happens_knowing(EVENT_NOTICE);
    carry_out();
    carry_out();
    assert_line("acquiring + answer ok -> waiting");
    assert_int_equal(record.waiters[0].ticket, ticket);
    assert_int_equal(record.waiters[0].passed, 1);
    assert_int_equal(lease.ticket, 0); /* the next time it is put at the end */
}

static void a_reply_without_our_entry_gives_no_ticket(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    struct event event = {.kind = EVENT_REPLY,
                          .now_ms = now_ms,
                          .serial = lease.serial,
                          .reply = REPLY_OK,
                          .known = true};
    record_init(&record, options.request.key);
    lease_step(&lease, &event, &record, &out, NULL);
    assert_int_equal(lease.state, LEASE_WAITING);
    assert_int_equal(lease.ticket, 0);
}

static void a_release_wakes_the_next_in_line_too(void **state)
{
    (void)state;
    char who[] = "b";
    facts.takeover_ms = 150;
    begin();
    carry_out();
    for (; who[0] <= 'h'; who[0]++) {
        struct request request = neighbours_request(VERB_ACQUIRE, who);
        request.priority = who[0] == 'g' ? 1 : who[0] == 'h' ? 2 : 0;
        (void)neighbour_does(request);
    }
    happens_knowing(EVENT_RELEASE);
    assert_wakes("hgbcd");
    assert_int_equal(out.given_count, 1);
    assert_int_equal(out.spare_count, SPARES_MAX);
}

static void the_last_in_line_has_no_spare(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    begin();
    carry_out();
    (void)neighbour(VERB_ACQUIRE, "b");
    happens_knowing(EVENT_RELEASE);
    assert_wakes("b");
    assert_int_equal(out.spare_count, 0);
}

static void most_offers_need_no_spare(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    begin();
    carry_out();
    for (char who[] = "b"; who[0] <= 'k'; who[0]++) {
        struct request reader = neighbours_request(VERB_ACQUIRE, who);
        reader.mode = MODE_SHARED;
        (void)neighbour_does(reader);
    }
    happens_knowing(EVENT_RELEASE);
    assert_wakes("bcdefghi");
    assert_int_equal(out.spare_count, 0);
}

static void a_waiter_never_stored_just_leaves(void **state)
{
    (void)state;
    begin();
    happens(EVENT_RELEASE);
    reply(REPLY_TROUBLE);
    wake();
    assert_line("leaving + timer -> leaving; read");
    carry_out();
    assert_line("leaving + answer ok -> ended; verdict done; told busy (cancelled)");
}

static void a_waiter_that_cannot_leave_says_so(void **state)
{
    (void)state;
    wait_behind_b();
    happens(EVENT_RELEASE);
    while (lease.state == LEASE_LEAVING)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, "the store does not answer");
    assert_int_equal(now_ms, START_MS + 10000);
}

/* Twice at once, then a little later each time, by the store's latency, and not without end. */
static void step_back(int64_t round_trip_ms, int64_t first_ms)
{
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    char who[] = "c";
    for (int i = 0; i < 2; i++, who[0]++) {
        carry_out();
        assert_int_equal(out.action, ACTION_SWAP);
        (void)neighbour(VERB_ACQUIRE, who);
    }
    int64_t most_ms = 0;
    for (int i = 0; i < 12; i++, who[0]++) {
        now_ms += round_trip_ms;
        carry_out();
        assert_line("acquiring + answer conflict -> acquiring");
        assert_true(i > 0 || out.wake_at_ms - now_ms <= 2 * first_ms);
        most_ms = out.wake_at_ms - now_ms > most_ms ? out.wake_at_ms - now_ms : most_ms;
        assert_in_range(out.wake_at_ms - now_ms, 1, first_ms << 5);
        wake();
        carry_out();
        (void)neighbour(VERB_ACQUIRE, who);
    }
    assert_true(most_ms > first_ms << 3);
    carry_out();
    wake();
    carry_out();
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    (void)neighbour(VERB_LEAVE, "a");
    happens(EVENT_NOTICE);
    carry_out();
    (void)neighbour(VERB_ACQUIRE, who);
    carry_out();
    assert_int_equal(out.action, ACTION_SWAP); /* that was another wait */
}

static void conflicts_make_an_asker_step_back(void **state)
{
    (void)state;
    step_back(/* round_trip_ms= */ 0, /* first_ms= */ 2);
}

static void a_distant_client_backs_off_further(void **state)
{
    (void)state;
    step_back(/* round_trip_ms= */ 30, /* first_ms= */ 20);
}

static void conflicts_do_not_make_a_holder_step_back(void **state)
{
    (void)state;
    begin();
    carry_out();
    wake();
    carry_out();
    char who[] = "c";
    for (int i = 0; i < 10; i++, who[0]++) {
        (void)neighbour(VERB_ACQUIRE, who);
        carry_out();
        assert_int_equal(out.action, ACTION_SWAP);
        assert_int_equal(lease.state, LEASE_RENEWING);
    }
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void a_full_queue_is_told(void **state)
{
    (void)state;
    char who[8];
    struct request request = neighbours_request(VERB_ACQUIRE, "b");
    (void)neighbour_does(request);
    request.request = who;
    for (unsigned i = 0; i < WAITERS_MAX; i++) {
        request.session = 1000 + i;
        (void)snprintf(who, sizeof who, "w%u", i);
        (void)neighbour_does(request);
    }
    begin();
    carry_out();
    assert_ended(OUTCOME_BUSY, "queue full");
}

static void a_refusal_after_a_write_names_its_reason(void **state)
{
    (void)state;
    char who[8];
    struct request request = neighbours_request(VERB_ACQUIRE, "b");
    (void)neighbour_does(request);
    request.request = who;
    for (unsigned i = 0; i < WAITERS_MAX; i++) {
        request.session = 1000 + i;
        (void)snprintf(who, sizeof who, "w%u", i);
        (void)neighbour_does(request);
    }
    now_ms += 9000;
    begin();
    carry_out();
    assert_line(
        "acquiring + answer conflict -> acquiring; verdict busy, expired 1, named 1; swap if "
        "revision 257, wakes 1");
    carry_out();
    assert_ended(OUTCOME_BUSY, "queue full");
}

static void a_try_names_the_next_in_passing(void **state)
{
    (void)state;
    options.request.waits = false;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    now_ms += 9000;
    begin();
    carry_out();
    assert_line(
        "acquiring + answer conflict -> acquiring; verdict busy, expired 1, named 1; swap if "
        "revision 2, wakes 1");
    assert_wakes("c");
    carry_out();
    assert_ended(OUTCOME_BUSY, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_offer_is_accepted_at_once),
        LEASE_TEST(a_queued_waiter_wakes_the_holder),
        LEASE_TEST(a_long_line_is_not_told),
        LEASE_TEST(several_holders_are_not_told),
        LEASE_TEST(a_notice_without_a_record_is_read),
        LEASE_TEST(a_notice_that_misses_us_is_read),
        LEASE_TEST(a_notice_of_a_record_that_nobody_holds_is_read),
        LEASE_TEST(a_notice_never_puts_the_look_off),
        LEASE_TEST(a_notice_during_a_request_is_not_forgotten),
        LEASE_TEST(one_notice_is_one_look),
        LEASE_TEST(the_end_of_the_wait_writes_itself_out),
        LEASE_TEST(the_end_of_the_wait_takes_one_write_when_it_knows),
        LEASE_TEST(a_grant_on_its_way_is_heard_out),
        LEASE_TEST(a_cancelled_wait_writes_itself_out),
        LEASE_TEST(a_cancelled_ask_gives_an_unheard_grant_back),
        LEASE_TEST(a_leaving_waiter_passes_its_offer_on),
        LEASE_TEST(the_next_in_line_takes_an_offer_over),
        LEASE_TEST(an_offer_that_was_accepted_is_not_polled_for),
        LEASE_TEST(a_waiter_that_was_passed_over_returns),
        LEASE_TEST(a_reply_without_our_entry_gives_no_ticket),
        LEASE_TEST(a_release_wakes_the_next_in_line_too),
        LEASE_TEST(the_last_in_line_has_no_spare),
        LEASE_TEST(most_offers_need_no_spare),
        LEASE_TEST(a_waiter_never_stored_just_leaves),
        LEASE_TEST(a_waiter_that_cannot_leave_says_so),
        LEASE_TEST(conflicts_make_an_asker_step_back),
        LEASE_TEST(a_distant_client_backs_off_further),
        LEASE_TEST(conflicts_do_not_make_a_holder_step_back),
        LEASE_TEST(a_full_queue_is_told),
        LEASE_TEST(a_refusal_after_a_write_names_its_reason),
        LEASE_TEST(a_try_names_the_next_in_passing),
    };
    return cmocka_run_group_tests_name("lease_wait", tests, NULL, NULL);
}

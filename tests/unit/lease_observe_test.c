/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observations of a waiter on its own clock: when it polls again, how long it has observed a grant,
 * a cooldown or an offer unchanged, and that an unobserved time counts for nothing.
 */
#include "lease_kit.h"

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

static struct request slot_of(const char *who, int32_t priority)
{
    struct request request = neighbours_request(VERB_ACQUIRE, who);
    request.mode = MODE_SLOT;
    request.limit = 2;
    request.priority = priority;
    return request;
}

static void the_next_in_line_looks_when_the_lease_ends(void **state)
{
    (void)state;
    facts.poll_ms = 100000;
    wait_behind_b();
    wake_between(START_MS + 9000, START_MS + 9000);
    assert_line("waiting + timer -> waiting; read");
    carry_out();
    assert_line("waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void the_next_in_line_looks_when_the_delay_ends(void **state)
{
    (void)state;
    facts.poll_ms = 100000;
    struct request request = neighbours_request(VERB_ACQUIRE, "b");
    request.lock_delay_ms = 3000;
    (void)neighbour_does(request);
    begin();
    carry_out();
    carry_out();
    wake();
    carry_out();
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    wake_between(START_MS + 12000, START_MS + 12000);
}

static void a_later_waiter_polls_now_and_then(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    begin();
    carry_out();
    carry_out();
    wake_between(START_MS + 5100, START_MS + 6350);
}

/* Only the store can report the end: it is polled when that is due, and then ever less often. */
static void by_session_it_polls_when_the_end_is_due(void **state)
{
    static const int64_t polls_ms[] = {9000, 9010, 9020, 9040, 9080, 9160};
    (void)state;
    facts.judge = JUDGE_SESSION;
    facts.poll_ms = 100000;
    wait_behind_b();
    for (size_t i = 0; i < sizeof polls_ms / sizeof polls_ms[0]; i++) {
        wake_between(START_MS + polls_ms[i], START_MS + polls_ms[i]);
        carry_out();
        assert_line("waiting + answer ok -> waiting; verdict waiting");
    }
}

/* The reply that queues it reports an end: that may be its turn. */
static void an_end_reported_while_queueing_is_read_at_once(void **state)
{
    (void)state;
    facts.judge = JUDGE_SESSION;
    for (int i = 0; i < 4; i++) {
        (void)neighbour(VERB_ACQUIRE, "b");
        begin();
        carry_out();
        record.grants[0].over = i == 1;
        record.grants[0].dead = record.grants[0].bound = i == 2;
        record.delay.length_ms = i == 3 ? 60000 : 0;
        record.delay.over = i == 3;
        struct event event = {.kind = EVENT_REPLY, .now_ms = now_ms, .serial = lease.serial};
        event.known = true;
        event.at = (struct stamp){.revision = 2, .time_ms = TIME_UNKNOWN};
        lease_step(&lease, &event, &record, &out, NULL);
        assert_int_equal(lease.state, LEASE_WAITING);
        assert_int_equal(out.action, i == 0 ? ACTION_NONE : ACTION_READ);
    }
}

static void without_a_clock_it_looks_when_it_has_seen_enough(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    facts.poll_ms = 100000;
    now_ms += 5000;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    now_ms += 200;
    carry_out();
    wake_between(START_MS + 5000 + 9000, START_MS + 5000 + 9000);
}

/* The record was written where there is no clock: no overflow, and a poll all the same. */
static void a_lease_of_unknown_age_is_looked_at_now_and_then(void **state)
{
    (void)state;
    wait_behind_b();
    happens_knowing(EVENT_NOTICE);
    struct event event = {.kind = EVENT_NOTICE, .now_ms = now_ms, .known = true};
    event.at.revision = 2;
    event.at.time_ms = TIME_UNKNOWN;
    lease_step(&lease, &event, &record, &out, NULL);
    assert_true(out.wake_at_ms <= START_MS + 6250);
    event.at.time_ms = now_ms;
    record.grants[0].renewed.time_ms = TIME_UNKNOWN;
    lease_step(&lease, &event, &record, &out, NULL);
    assert_true(out.wake_at_ms > now_ms && out.wake_at_ms <= START_MS + 6250);
}

static void a_lapsed_offer_is_passed_on_to_us(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    wake_between(START_MS + 1000, START_MS + 1000 + 10); /* "c" is offered, we are next */
    carry_out();
    assert_line(
        "waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 4");
}

static void a_later_waiter_leaves_a_lapsed_offer_to_others(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    (void)neighbour(VERB_ACQUIRE, "d");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    wake_between(START_MS + 1000 + 100, START_MS + 1000 + 110);
}

/* Two offers of different age, the older one to a later ticket: only that one has lapsed. */
static void the_oldest_offer_lapses_first(void **state)
{
    (void)state;
    facts.judge = JUDGE_SESSION;
    options.request.mode = MODE_SLOT;
    options.request.limit = 2;
    (void)neighbour_does(slot_of("b", 0));
    (void)neighbour_does(slot_of("e", 0));
    (void)neighbour_does(slot_of("c", 0));
    (void)neighbour_does(slot_of("d", 5));
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    now_ms += 600;
    (void)neighbour(VERB_RELEASE, "e");
    happens(EVENT_NOTICE);
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    now_ms = START_MS + 1000;
    happens(EVENT_NOTICE);
    carry_out();
    assert_line(
        "waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 7");
    assert_wakes(""); /* "c" was named before, and is notified */
    assert_true(record_waiter_by_request(&record, "c")->offered);
}

/* The observed age of another offer does not apply to this one. */
static void an_offer_that_was_never_seen_has_not_lapsed(void **state)
{
    (void)state;
    facts.judge = JUDGE_SESSION;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    (void)neighbour(VERB_ACQUIRE, "d");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out(); /* reads the offer to "c" */
    now_ms += 1000;
    (void)neighbour(VERB_ACQUIRE, "c");
    (void)neighbour(VERB_RELEASE, "c");
    happens_knowing(EVENT_RELEASE);
    assert_line("waiting + let go -> leaving; verdict done; swap if revision 7");
    assert_true(record_waiter_by_request(&record, "d")->offered);
}

static void offers_of_one_write_lapse_together(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    for (char who[] = "c"; who[0] <= 'd'; who[0]++) {
        struct request reader = neighbours_request(VERB_ACQUIRE, who);
        reader.mode = MODE_SHARED;
        (void)neighbour_does(reader);
    }
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    wake_between(START_MS + 1000, START_MS + 1000 + 10);
    carry_out();
    assert_line(
        "waiting + answer ok -> acquiring; verdict granted, passed on 2; swap if revision 5");
}

/* Our request was repeated by another process, which now waits under it. */
static void a_waiter_replaced_by_a_twin_still_polls(void **state)
{
    (void)state;
    facts.poll_ms = 100000;
    wait_behind_b();
    struct request twin = neighbours_request(VERB_ACQUIRE, "a");
    twin.session = 'z';
    (void)neighbour_does(twin);
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting");
    assert_int_equal(out.wake_at_ms, START_MS + 9000);
}

/* The lease that blocks us has expired already, by the copy: no reason to poll early. */
static void a_look_is_never_at_once(void **state)
{
    (void)state;
    wait_behind_b();
    now_ms += 1000;
    struct event event = {.kind = EVENT_NOTICE, .now_ms = now_ms, .known = true};
    event.at.revision = 2;
    event.at.time_ms = now_ms + 60000;
    lease_step(&lease, &event, &record, &out, NULL);
    assert_int_equal(out.wake_at_ms, now_ms + 10);
}

/* By the clock the lease begins in the future: its own observation counts. */
static void a_clock_set_back_is_not_waited_for(void **state)
{
    (void)state;
    facts.poll_ms = 100000;
    wait_behind_b();
    now_ms += 1000;
    happens_knowing(EVENT_NOTICE);
    struct event event = {.kind = EVENT_NOTICE, .now_ms = now_ms, .known = true};
    event.at.revision = 2;
    event.at.time_ms = 1;
    lease.next_at_ms = NEVER;
    lease_step(&lease, &event, &record, &out, NULL);
    assert_int_equal(out.wake_at_ms, START_MS + 9000);
}

static void an_observer_takes_over_what_it_saw_unchanged(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    facts.poll_ms = 100000;
    wait_behind_b();
    wake();
    carry_out();
    assert_line("waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2");
}

static void an_observer_sees_renewals(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    facts.poll_ms = 100000;
    wait_behind_b();
    now_ms += 5000;
    (void)neighbour(VERB_RENEW, "b");
    wake_between(START_MS + 9000, START_MS + 9000);
    carry_out();
    assert_line("waiting + answer ok -> waiting; verdict waiting");
    wake_between(START_MS + 18000, START_MS + 18000); /* nine seconds from when it was observed */
}

/* A copy that came with a notification was not read from the store: its age is unknown. */
static void a_renewal_that_was_never_seen_has_not_run_out(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    wait_behind_b();
    now_ms += 8900;
    (void)neighbour(VERB_RENEW, "b");
    now_ms += 1000;
    happens_knowing(EVENT_RELEASE);
    assert_line("waiting + let go -> leaving; verdict done; swap if revision 3");
    assert_int_equal(record.grant_count, 1);
}

static void waiters_look_at_different_times(void **state)
{
    (void)state;
    struct observations sightings[2] = {0};
    int64_t looks_ms[2];
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    for (uint64_t i = 0; i < 2; i++) {
        options.request.request = options.request.holder = i == 0 ? "x" : "y";
        options.request.session = 'x' + i;
        lease_init(&lease, &options, &sightings[i], /* seed= */ i);
        happens(EVENT_START);
        carry_out();
        carry_out();
        looks_ms[i] = out.wake_at_ms;
    }
    assert_true(looks_ms[0] != looks_ms[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(the_next_in_line_looks_when_the_lease_ends),
        LEASE_TEST(the_next_in_line_looks_when_the_delay_ends),
        LEASE_TEST(a_later_waiter_polls_now_and_then),
        LEASE_TEST(by_session_it_polls_when_the_end_is_due),
        LEASE_TEST(an_end_reported_while_queueing_is_read_at_once),
        LEASE_TEST(without_a_clock_it_looks_when_it_has_seen_enough),
        LEASE_TEST(a_lease_of_unknown_age_is_looked_at_now_and_then),
        LEASE_TEST(a_lapsed_offer_is_passed_on_to_us),
        LEASE_TEST(a_later_waiter_leaves_a_lapsed_offer_to_others),
        LEASE_TEST(the_oldest_offer_lapses_first),
        LEASE_TEST(an_offer_that_was_never_seen_has_not_lapsed),
        LEASE_TEST(offers_of_one_write_lapse_together),
        LEASE_TEST(a_waiter_replaced_by_a_twin_still_polls),
        LEASE_TEST(a_look_is_never_at_once),
        LEASE_TEST(a_clock_set_back_is_not_waited_for),
        LEASE_TEST(an_observer_takes_over_what_it_saw_unchanged),
        LEASE_TEST(an_observer_sees_renewals),
        LEASE_TEST(a_renewal_that_was_never_seen_has_not_run_out),
        LEASE_TEST(waiters_look_at_different_times),
    };
    return cmocka_run_group_tests_name("lease_observe", tests, NULL, NULL);
}

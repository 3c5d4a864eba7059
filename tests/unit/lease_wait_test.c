/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting: what wakes a waiter and when it looks by itself, offers accepted, the end of the wait,
 * giving up at every point on the way, and stepping back when others write too.
 */
#include "lease_kit.h"

#include <stdio.h>

/* "b" holds, the lease waits behind it. */
static void wait_behind_b(void)
{
    (void)neighbour(VERB_ASK, "b");
    begin();
    carry_out();
    assert_line("asking + answer conflict -> asking; verdict waiting; swap if revision 1");
    carry_out();
    assert_line("asking + answer ok -> waiting; told waiting");
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
    (void)neighbour(VERB_LEAVE, "a"); /* as if a slow copy of ours came through */
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
    carry_out();
    assert_line("waiting + answer ok -> asking; verdict waiting; swap if revision 3");
    carry_out();
    assert_line("asking + answer ok -> waiting"); /* told once is enough */
}

static void a_notice_of_a_record_that_nobody_holds_is_read(void **state)
{
    (void)state;
    struct request request = neighbours_request(VERB_ASK, "b");
    request.lock_delay_ms = 3000;
    (void)neighbour_does(request);
    begin();
    carry_out();
    carry_out();
    now_ms += 9000;
    (void)neighbour(VERB_ASK, "c");
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
}

static void a_notice_never_puts_the_look_off(void **state)
{
    (void)state;
    wait_behind_b();
    int64_t look_ms = out.wake_at_ms;
    now_ms += 1000;
    happens_knowing(EVENT_NOTICE);
    assert_int_equal(out.action, ACTION_NONE);
    assert_true(out.wake_at_ms <= look_ms);
}

static void a_notice_during_a_request_is_not_forgotten(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    begin();
    carry_out();
    carry_out_unheard();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    assert_line("asking + notice -> asking");
    hear_kept();
    assert_line("asking + answer ok -> waiting; read; told waiting");
    carry_out();
    assert_int_equal(lease.state, LEASE_OFFERED);
}

static void one_notice_is_one_look(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    begin();
    carry_out();
    happens(EVENT_NOTICE);
    carry_out();
    assert_line("asking + answer ok -> waiting; read; told waiting");
    carry_out();
    assert_line("waiting + answer ok -> waiting; verdict waiting");
}

static void the_next_in_line_looks_when_the_lease_ends(void **state)
{
    (void)state;
    options.look_ms = 100000;
    wait_behind_b();
    wake_between(START_MS + 9000, START_MS + 9000);
    assert_line("waiting + timer -> waiting; read");
    carry_out();
    assert_line("waiting + answer ok -> asking; verdict granted, expired 1; swap if revision 2");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void the_next_in_line_looks_when_the_delay_ends(void **state)
{
    (void)state;
    options.look_ms = 100000;
    struct request request = neighbours_request(VERB_ASK, "b");
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

static void who_is_further_back_looks_now_and_then(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    (void)neighbour(VERB_ASK, "c");
    begin();
    carry_out();
    carry_out();
    wake_between(START_MS + 3750, START_MS + 6250);
}

/* The store says when a lease ends, or nobody can. */
static void without_a_time_it_looks_now_and_then(void **state)
{
    (void)state;
    options.store.judge = JUDGE_SESSION;
    options.look_ms = 20000;
    wait_behind_b();
    wake_between(START_MS + 15000, START_MS + 25000);
}

static void without_a_clock_it_looks_when_it_has_seen_enough(void **state)
{
    (void)state;
    options.store.judge = JUDGE_OBSERVED;
    options.look_ms = 100000;
    now_ms += 5000;
    (void)neighbour(VERB_ASK, "b");
    begin();
    carry_out();
    now_ms += 200;
    carry_out();
    wake_between(START_MS + 5000 + 9000, START_MS + 5000 + 9000);
}

/* The record was written where there is no clock: no overflow, and a look all the same. */
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
    (void)neighbour(VERB_ASK, "b");
    (void)neighbour(VERB_ASK, "c");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    wake_between(START_MS + 1000, START_MS + 1000 + 10); /* "c" is offered, we are next */
    carry_out();
    assert_line("waiting + answer ok -> asking; verdict granted, passed on 1; swap if revision 4");
}

static void who_is_further_back_leaves_a_lapsed_offer_to_others(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    (void)neighbour(VERB_ASK, "c");
    (void)neighbour(VERB_ASK, "d");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out();
    wake_between(START_MS + 1000 + 300, START_MS + 1000 + 310);
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
    assert_int_equal(record.place_count, 0);
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
    carry_out_unheard();
    now_ms += 100;
    happens(EVENT_TIMER);
    assert_line("offered + timer -> offered");
    assert_true(out.wake_at_ms > now_ms);
    now_ms += 50;
    hear_kept();
    assert_int_equal(out.told, TOLD_HELD);
}

static void a_cancelled_wait_writes_itself_out(void **state)
{
    (void)state;
    wait_behind_b();
    happens_knowing(EVENT_LET_GO);
    assert_line("waiting + let go -> leaving; verdict done; swap if revision 2");
    carry_out();
    assert_ended(OUTCOME_BUSY, "cancelled");
}

static void a_cancelled_ask_gives_an_unheard_grant_back(void **state)
{
    (void)state;
    begin();
    carry_out_unheard();
    happens(EVENT_LET_GO);
    assert_line("asking + let go -> leaving");
    hear_kept();
    assert_line("leaving + answer ok -> leaving; verdict done; delete if revision 1");
    carry_out();
    assert_ended(OUTCOME_BUSY, "cancelled");
    assert_true(token_in_store("a") == 0);
}

static void who_leaves_with_an_offer_passes_it_on(void **state)
{
    (void)state;
    wait_behind_b();
    (void)neighbour(VERB_ASK, "c");
    (void)neighbour(VERB_RELEASE, "b");
    happens_knowing(EVENT_LET_GO);
    assert_line("waiting + let go -> leaving; verdict done, named 1; swap if revision 4, wakes 1");
    assert_pokes("c");
}

static void who_was_never_in_the_store_just_leaves(void **state)
{
    (void)state;
    begin();
    happens(EVENT_LET_GO);
    answer(ANSWER_TROUBLE);
    wake();
    assert_line("leaving + timer -> leaving; read");
    carry_out();
    assert_line("leaving + answer ok -> ended; verdict done; told busy (cancelled)");
}

static void who_cannot_reach_the_store_to_leave_says_so(void **state)
{
    (void)state;
    wait_behind_b();
    happens(EVENT_LET_GO);
    while (lease.state == LEASE_LEAVING)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, "the store does not answer");
    assert_int_equal(now_ms, START_MS + 10000);
}

/* Twice at once, then a little later each time, and not without end. */
static void conflicts_make_an_asker_step_back(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    begin();
    char who[] = "c";
    for (int i = 0; i < 2; i++, who[0]++) {
        carry_out();
        assert_int_equal(out.action, ACTION_SWAP);
        (void)neighbour(VERB_ASK, who);
    }
    int64_t most_ms = 0;
    for (int i = 0; i < 12; i++, who[0]++) {
        carry_out();
        assert_line("asking + answer conflict -> asking");
        assert_true(i > 0 || out.wake_at_ms - now_ms <= 40);
        most_ms = out.wake_at_ms - now_ms > most_ms ? out.wake_at_ms - now_ms : most_ms;
        assert_in_range(out.wake_at_ms - now_ms, 1, 20 << 5);
        wake();
        carry_out();
        (void)neighbour(VERB_ASK, who);
    }
    assert_true(most_ms > 40);
    carry_out();
    wake();
    carry_out();
    carry_out();
    assert_int_equal(lease.state, LEASE_WAITING);
    (void)neighbour(VERB_LEAVE, "a");
    happens(EVENT_NOTICE);
    carry_out();
    (void)neighbour(VERB_ASK, who);
    carry_out();
    assert_int_equal(out.action, ACTION_SWAP); /* that was another time */
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
        (void)neighbour(VERB_ASK, who);
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
    struct request request = neighbours_request(VERB_ASK, "b");
    (void)neighbour_does(request);
    request.request = who;
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        request.session = 1000 + i;
        (void)snprintf(who, sizeof who, "w%u", i);
        (void)neighbour_does(request);
    }
    begin();
    carry_out();
    assert_ended(OUTCOME_BUSY, "queue full");
}

static void who_is_refused_hears_why_though_it_wrote(void **state)
{
    (void)state;
    char who[8];
    struct request request = neighbours_request(VERB_ASK, "b");
    (void)neighbour_does(request);
    request.request = who;
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        request.session = 1000 + i;
        (void)snprintf(who, sizeof who, "w%u", i);
        (void)neighbour_does(request);
    }
    now_ms += 9000;
    begin();
    carry_out();
    assert_line("asking + answer conflict -> asking; verdict busy, expired 1, named 1; swap if "
                "revision 257, wakes 1");
    carry_out();
    assert_ended(OUTCOME_BUSY, "queue full");
}

static void who_does_not_wait_names_the_next_in_passing(void **state)
{
    (void)state;
    options.request.waits = false;
    (void)neighbour(VERB_ASK, "b");
    (void)neighbour(VERB_ASK, "c");
    now_ms += 9000;
    begin();
    carry_out();
    assert_line("asking + answer conflict -> asking; verdict busy, expired 1, named 1; swap if "
                "revision 2, wakes 1");
    assert_pokes("c");
    carry_out();
    assert_ended(OUTCOME_BUSY, NULL);
}

static struct request slot_of(const char *who, int32_t priority)
{
    struct request request = neighbours_request(VERB_ASK, who);
    request.mode = MODE_SLOT;
    request.limit = 2;
    request.priority = priority;
    return request;
}

/* Two offers of different age, the older one to a later ticket: only that one has lapsed. */
static void the_oldest_offer_lapses_first(void **state)
{
    (void)state;
    options.store.judge = JUDGE_SESSION;
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
    assert_line("waiting + answer ok -> asking; verdict granted, passed on 1; swap if revision 7");
    assert_pokes(""); /* "c" was named before, and knows */
    assert_true(record_place_by_request(&record, "c")->offered);
}

/* How long it has watched another offer says nothing about this one. */
static void an_offer_that_was_never_seen_has_not_lapsed(void **state)
{
    (void)state;
    options.store.judge = JUDGE_SESSION;
    (void)neighbour(VERB_ASK, "b");
    (void)neighbour(VERB_ASK, "c");
    (void)neighbour(VERB_ASK, "d");
    begin();
    carry_out();
    carry_out();
    (void)neighbour(VERB_RELEASE, "b");
    happens(EVENT_NOTICE);
    carry_out(); /* sees the offer to "c" */
    now_ms += 1000;
    (void)neighbour(VERB_ASK, "c");
    (void)neighbour(VERB_RELEASE, "c");
    happens_knowing(EVENT_LET_GO);
    assert_line("waiting + let go -> leaving; verdict done; swap if revision 7");
    assert_true(record_place_by_request(&record, "d")->offered);
}

static void offers_of_one_write_lapse_together(void **state)
{
    (void)state;
    (void)neighbour(VERB_ASK, "b");
    for (char who[] = "c"; who[0] <= 'd'; who[0]++) {
        struct request reader = neighbours_request(VERB_ASK, who);
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
    assert_line("waiting + answer ok -> asking; verdict granted, passed on 2; swap if revision 5");
}

/* Our request was repeated by another process, which now waits under it. */
static void who_has_lost_its_place_to_a_twin_still_looks(void **state)
{
    (void)state;
    options.look_ms = 100000;
    wait_behind_b();
    struct request twin = neighbours_request(VERB_ASK, "a");
    twin.session = 'z';
    (void)neighbour_does(twin);
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting");
    assert_int_equal(out.wake_at_ms, START_MS + 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_offer_is_accepted_at_once),
        LEASE_TEST(a_notice_without_a_record_is_read),
        LEASE_TEST(a_notice_that_misses_us_is_read),
        LEASE_TEST(a_notice_of_a_record_that_nobody_holds_is_read),
        LEASE_TEST(a_notice_never_puts_the_look_off),
        LEASE_TEST(a_notice_during_a_request_is_not_forgotten),
        LEASE_TEST(one_notice_is_one_look),
        LEASE_TEST(the_next_in_line_looks_when_the_lease_ends),
        LEASE_TEST(the_next_in_line_looks_when_the_delay_ends),
        LEASE_TEST(who_is_further_back_looks_now_and_then),
        LEASE_TEST(without_a_time_it_looks_now_and_then),
        LEASE_TEST(without_a_clock_it_looks_when_it_has_seen_enough),
        LEASE_TEST(a_lease_of_unknown_age_is_looked_at_now_and_then),
        LEASE_TEST(a_lapsed_offer_is_passed_on_to_us),
        LEASE_TEST(who_is_further_back_leaves_a_lapsed_offer_to_others),
        LEASE_TEST(the_end_of_the_wait_writes_itself_out),
        LEASE_TEST(the_end_of_the_wait_takes_one_write_when_it_knows),
        LEASE_TEST(a_grant_on_its_way_is_heard_out),
        LEASE_TEST(a_cancelled_wait_writes_itself_out),
        LEASE_TEST(a_cancelled_ask_gives_an_unheard_grant_back),
        LEASE_TEST(who_leaves_with_an_offer_passes_it_on),
        LEASE_TEST(who_was_never_in_the_store_just_leaves),
        LEASE_TEST(who_cannot_reach_the_store_to_leave_says_so),
        LEASE_TEST(conflicts_make_an_asker_step_back),
        LEASE_TEST(conflicts_do_not_make_a_holder_step_back),
        LEASE_TEST(a_full_queue_is_told),
        LEASE_TEST(who_is_refused_hears_why_though_it_wrote),
        LEASE_TEST(who_does_not_wait_names_the_next_in_passing),
        LEASE_TEST(the_oldest_offer_lapses_first),
        LEASE_TEST(an_offer_that_was_never_seen_has_not_lapsed),
        LEASE_TEST(offers_of_one_write_lapse_together),
        LEASE_TEST(who_has_lost_its_place_to_a_twin_still_looks),
    };
    return cmocka_run_group_tests_name("lease_wait", tests, NULL, NULL);
}

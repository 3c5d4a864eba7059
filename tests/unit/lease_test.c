/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a lease, in details that stories and simulation do not check: round trips, wake-up
 * times, wake-ups of others, notifications. Trouble and operations are in other files.
 */
#include "lease_kit.h"

#include <string.h>

/* Granted at START_MS by one write; its token is that of revision 1. */
static void hold(void)
{
    begin();
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void a_free_key_takes_one_write(void **state)
{
    (void)state;
    begin();
    assert_line("idle + start -> acquiring; verdict granted; swap if absent");
    now_ms += 200;
    carry_out();
    assert_line("acquiring + answer ok -> held; told held, token 1024; deadline 16000, kill 17500");
    assert_true(lease.token == token_in_store("a"));
}

static void a_known_record_saves_a_round_trip(void **state)
{
    (void)state;
    struct request cooling = neighbours_request(VERB_RELEASE, "b");
    (void)neighbour(VERB_ACQUIRE, "b");
    cooling.token = token_in_store("b");
    cooling.cooldown_ms = 100;
    (void)neighbour_does(cooling);
    now_ms += 100;
    begin_knowing();
    assert_line("idle + start -> acquiring; verdict granted; swap if revision 2");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void an_old_copy_tells_nobody_anything(void **state)
{
    (void)state;
    options.request.waits = false;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin_knowing();
    assert_line("idle + start -> acquiring; verdict busy; read");
    carry_out();
    assert_line("acquiring + answer ok -> ended; verdict busy; told busy");
}

static void a_wrong_bet_is_answered_by_the_conflict(void **state)
{
    (void)state;
    options.request.waits = false;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    assert_line("acquiring + answer conflict -> ended; verdict busy; told busy");
    assert_ended(OUTCOME_BUSY, NULL);
}

static void a_cooling_key_ends_the_ask(void **state)
{
    (void)state;
    struct request request = neighbours_request(VERB_RELEASE, "b");
    (void)neighbour(VERB_ACQUIRE, "b");
    request.token = token_in_store("b");
    request.cooldown_ms = 5000;
    (void)neighbour_does(request);
    begin();
    carry_out();
    assert_ended(OUTCOME_COOLING, NULL);
}

static void another_limit_ends_the_ask(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    options.request.mode = MODE_SLOT;
    options.request.limit = 2;
    begin();
    carry_out();
    assert_ended(OUTCOME_MISMATCH, "the key is in use with another limit");
}

static void held_ends_at_the_deadline_without_being_told(void **state)
{
    (void)state;
    begin();
    assert_false(lease_held(&lease, now_ms));
    carry_out();
    assert_true(lease_held(&lease, START_MS + 5999));
    assert_false(lease_held(&lease, START_MS + 6000));
    happens(EVENT_RELEASE);
    assert_false(lease_held(&lease, now_ms));
}

static void the_wait_has_no_say_over_a_held_lease(void **state)
{
    (void)state;
    options.wait_ms = 1000;
    hold();
    now_ms += 1000;
    happens(EVENT_TIMER);
    assert_line("held + timer -> held; deadline 16000");
}

static void a_short_lease_shortens_the_kill_grace(void **state)
{
    (void)state;
    hold();
    assert_int_equal(lease.kill_at_ms - lease.deadline_ms, 1500);
    close_lease(NULL);
    open_lease(NULL);
    options.kill_grace_ms = 400;
    hold();
    assert_int_equal(lease.kill_at_ms - lease.deadline_ms, 400);
}

static void it_renews_at_a_third(void **state)
{
    (void)state;
    hold();
    wake_between(START_MS + 3000 - 300, START_MS + 3000);
    assert_line("held + timer -> renewing; read");
    carry_out();
    assert_line("renewing + answer ok -> renewing; verdict done; swap if revision 1");
    int64_t sent_ms = now_ms;
    now_ms += 50;
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
    assert_int_equal(lease.deadline_ms, sent_ms + 6000);
    assert_true(lease.token == 1024);
}

static void it_renews_in_one_write_when_it_knows(void **state)
{
    (void)state;
    hold();
    now_ms = out.wake_at_ms;
    happens_knowing(EVENT_TIMER);
    assert_line("held + timer -> renewing; verdict done; swap if revision 1");
}

static void it_renews_by_token_where_the_store_can(void **state)
{
    (void)state;
    facts.tests_grant = true;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b"); /* moves the revision, not the token */
    wake();
    assert_line("held + timer -> renewing; swap if token stands 1024");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
    assert_true(lease.token == token_in_store("a"));
}

static void a_notice_of_others_is_no_reason_to_renew(void **state)
{
    (void)state;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b");
    happens_knowing(EVENT_NOTICE);
    assert_int_equal(lease.state, LEASE_HELD);
    assert_int_equal(out.action, ACTION_NONE);
}

static void a_notice_without_a_record_is_looked_into(void **state)
{
    (void)state;
    hold();
    happens(EVENT_NOTICE);
    assert_line("held + notice -> renewing; read");
}

static void a_break_is_noticed_and_told(void **state)
{
    (void)state;
    hold();
    (void)neighbour(VERB_BREAK, "op");
    now_ms += 1000;
    happens_knowing(EVENT_NOTICE);
    assert_line("held + notice -> renewing; verdict broken; read");
    carry_out();
    assert_line("renewing + answer ok -> lost; verdict broken; told lost (broken by an operator), "
                "kill 12500");
    happens(EVENT_RELEASE);
    carry_out();
    carry_out();
    assert_ended(OUTCOME_LOST, NULL);
    assert_true(token_in_store("a") == 0);
}

static void a_grant_that_is_gone_is_lost(void **state)
{
    (void)state;
    hold();
    struct request request = neighbours_request(VERB_BREAK, "op");
    request.now = true;
    (void)neighbour_does(request);
    wake();
    carry_out();
    assert_int_equal(out.notify, NOTIFY_LOST);
    assert_string_equal(out.why, "the grant is gone");
}

/* The caller releases only once: at the deadline the release must not be dropped. */
static void letting_go_at_the_deadline_is_heard(void **state)
{
    (void)state;
    hold();
    now_ms = START_MS + 6000;
    happens(EVENT_RELEASE);
    assert_int_equal(lease.state, LEASE_RELEASING);
    assert_int_equal(out.notify, NOTIFY_LOST);
    carry_out();
    while (lease.state != LEASE_ENDED)
        carry_out();
    assert_ended(OUTCOME_LOST, "deadline");
}

static void the_deadline_comes_before_every_event(void **state)
{
    (void)state;
    static const enum event_kind kinds[] = {EVENT_TIMER, EVENT_NOTICE};
    for (size_t i = 0; i < 2; i++) {
        hold();
        now_ms = START_MS + 6000;
        happens(kinds[i]);
        assert_int_equal(lease.state, LEASE_LOST);
        assert_int_equal(out.notify, NOTIFY_LOST);
        assert_string_equal(out.why, "deadline");
        assert_int_equal(lease.kill_at_ms, START_MS + 7500);
        assert_true(out.wake_at_ms == NEVER);
        close_lease(NULL);
        open_lease(NULL);
    }
}

static void a_lost_lease_is_given_back_once_its_work_stopped(void **state)
{
    (void)state;
    options.cooldown_ms = 5000;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b");
    now_ms = START_MS + 6000;
    happens(EVENT_TIMER);
    happens_knowing(EVENT_RELEASE);
    assert_line("lost + let go -> releasing; verdict done, named 1; swap if revision 2, wakes 1");
    assert_wakes("b");
    carry_out();
    assert_ended(OUTCOME_LOST, NULL); /* no cooldown: the work was not done */
    assert_int_equal(record.cooling.length_ms, 0);
}

static void a_lost_lease_that_cannot_be_given_back_is_lost(void **state)
{
    (void)state;
    hold();
    now_ms = START_MS + 6000;
    happens(EVENT_TIMER);
    happens(EVENT_RELEASE);
    while (lease.state == LEASE_RELEASING)
        wake();
    assert_ended(OUTCOME_LOST, NULL);
    assert_int_equal(now_ms, START_MS + 16000);
}

/* A timer may fire for an action that is no longer due. */
static void an_early_timer_changes_nothing(void **state)
{
    (void)state;
    hold();
    happens(EVENT_TIMER);
    assert_line("held + timer -> held; deadline 16000");
    wake();
    happens(EVENT_TIMER);
    assert_line("renewing + timer -> renewing");
    carry_out();
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
}

static void a_release_takes_one_write_when_it_knows(void **state)
{
    (void)state;
    hold();
    happens_knowing(EVENT_RELEASE);
    assert_line("held + let go -> releasing; verdict done; delete if revision 1");
    assert_int_equal(out.condition.token, 1024);
    carry_out();
    assert_line("releasing + answer ok -> ended; told ok");
}

static void a_release_reads_when_it_does_not_know(void **state)
{
    (void)state;
    hold();
    happens(EVENT_RELEASE);
    assert_line("held + let go -> releasing; read");
    carry_out();
    assert_line("releasing + answer ok -> releasing; verdict done; delete if revision 1");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_release_goes_by_token_where_the_store_can(void **state)
{
    (void)state;
    facts.tests_grant = true;
    hold();
    happens(EVENT_RELEASE);
    assert_line("held + let go -> releasing; delete if token stands 1024");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_release_by_token_finds_somebody_behind_it(void **state)
{
    (void)state;
    facts.tests_grant = true;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b");
    happens(EVENT_RELEASE);
    carry_out();
    assert_line("releasing + answer conflict -> releasing; verdict done, named 1; swap if revision "
                "2, wakes 1");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_cooldown_cannot_go_by_token(void **state)
{
    (void)state;
    facts.tests_grant = true;
    options.cooldown_ms = 5000;
    hold();
    happens(EVENT_RELEASE);
    assert_line("held + let go -> releasing; read");
}

static void a_cooldown_wakes_all_whom_it_sends_home(void **state)
{
    (void)state;
    options.cooldown_ms = 5000;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    happens_knowing(EVENT_RELEASE);
    assert_line("held + let go -> releasing; verdict done; swap if revision 3, wakes 2");
    assert_wakes("bc");
    assert_int_equal(out.given_count, 0);
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    assert_int_equal(record.cooling.length_ms, 5000);
}

/* The rest of the other lease is counted by the store's time, which a copy does not have. */
static void a_cooldown_beside_another_is_begun_by_fresh_time(void **state)
{
    (void)state;
    options.request.mode = MODE_SLOT;
    options.request.limit = 2;
    options.cooldown_ms = 5000;
    hold();
    struct request slot = neighbours_request(VERB_ACQUIRE, "b");
    slot.mode = MODE_SLOT;
    slot.limit = 2;
    (void)neighbour_does(slot);
    struct request cooling = neighbours_request(VERB_RELEASE, "b");
    cooling.cooldown_ms = 8000;
    (void)neighbour_does(cooling);
    now_ms += 1000;
    happens_knowing(EVENT_RELEASE);
    assert_line("held + let go -> releasing; read");
    carry_out();
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    assert_int_equal(record.cooling.length_ms, 7000);
}

static void a_release_that_finds_its_grant_gone_has_lost_it(void **state)
{
    (void)state;
    hold();
    struct request request = neighbours_request(VERB_BREAK, "op");
    request.now = true;
    (void)neighbour_does(request);
    happens(EVENT_RELEASE);
    carry_out();
    assert_ended(OUTCOME_LOST, "the grant is gone");
}

static void a_request_without_a_write_wakes_nobody(void **state)
{
    (void)state;
    options.cooldown_ms = 5000;
    hold();
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    struct request request = neighbours_request(VERB_BREAK, "op");
    request.now = true;
    (void)neighbour_does(request);
    happens(EVENT_RELEASE);
    carry_out();
    assert_ended(OUTCOME_LOST, "the grant is gone");
    assert_wakes("");
}

static void nothing_moves_after_the_end(void **state)
{
    (void)state;
    hold();
    happens_knowing(EVENT_RELEASE);
    carry_out();
    static const enum event_kind kinds[] = {EVENT_TIMER, EVENT_NOTICE, EVENT_RELEASE, EVENT_REPLY};
    for (size_t i = 0; i < 4; i++) {
        now_ms += 1000000;
        happens(kinds[i]);
        assert_int_equal(lease.state, LEASE_ENDED);
        assert_int_equal(out.action, ACTION_NONE);
        assert_int_equal(out.notify, NOTIFY_NONE);
    }
}

static void a_second_let_go_changes_nothing(void **state)
{
    (void)state;
    hold();
    happens_knowing(EVENT_RELEASE);
    happens(EVENT_RELEASE);
    assert_line("releasing + let go -> releasing");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void on_one_clock_the_release_granted_already(void **state)
{
    (void)state;
    facts.one_clock = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    begin();
    carry_out();
    carry_out();
    assert_int_equal(out.notify, NOTIFY_WAITING);
    now_ms += 700;
    (void)neighbour(VERB_RELEASE, "b");
    now_ms += 200;
    happens_knowing(EVENT_NOTICE);
    assert_line("waiting + notice -> waiting; read");
    carry_out();
    assert_int_equal(lease.state, LEASE_HELD);
    assert_int_equal(lease.start_ms, now_ms - 200); /* since the write, on our own clock */
}

/* No waiter accepts there, so none would name the rest: the next waiter requests for itself. */
static void on_one_clock_a_release_wakes_one_more_than_it_grants(void **state)
{
    (void)state;
    for (int last = 'i'; last <= 'k'; last++) {
        close_lease(NULL);
        open_lease(NULL);
        facts.one_clock = true;
        hold();
        for (char who[] = "b"; who[0] <= last; who[0]++) {
            struct request reader = neighbours_request(VERB_ACQUIRE, who);
            reader.mode = MODE_SHARED;
            (void)neighbour_does(reader);
        }
        happens_knowing(EVENT_RELEASE);
        assert_int_equal(out.verdict.offered, OFFERS_MAX);
        assert_wakes(last == 'i' ? "bcdefghi" : "bcdefghij");
        assert_int_equal(out.given_count, OFFERS_MAX);
    }
}

/* The store watches the processes ahead of a waiter: the next one reads who they are now. */
static void on_one_clock_the_new_first_waiter_is_woken(void **state)
{
    (void)state;
    facts.one_clock = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    options.request.waits = true;
    options.wait_ms = WAIT_WITHOUT_LIMIT;
    begin();
    while (lease.in_flight)
        carry_out();
    (void)neighbour(VERB_ACQUIRE, "c");
    happens_knowing(EVENT_RELEASE);
    assert_int_equal(lease.state, LEASE_LEAVING);
    assert_wakes("c");
    assert_int_equal(out.given_count, 0);
}

static void names_of_all_states_and_outcomes_are_words(void **state)
{
    (void)state;
    for (enum lease_state at = LEASE_IDLE; at <= LEASE_ENDED; at++)
        assert_true(strlen(lease_state_name(at)) > 3);
    for (enum outcome outcome = OUTCOME_OK; outcome <= OUTCOME_MISMATCH; outcome++)
        assert_true(strlen(outcome_name(outcome)) > 1);
    assert_string_equal(outcome_name(OUTCOME_UNAVAILABLE), "unavailable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_free_key_takes_one_write),
        LEASE_TEST(a_known_record_saves_a_round_trip),
        LEASE_TEST(an_old_copy_tells_nobody_anything),
        LEASE_TEST(a_wrong_bet_is_answered_by_the_conflict),
        LEASE_TEST(a_cooling_key_ends_the_ask),
        LEASE_TEST(another_limit_ends_the_ask),
        LEASE_TEST(held_ends_at_the_deadline_without_being_told),
        LEASE_TEST(the_wait_has_no_say_over_a_held_lease),
        LEASE_TEST(a_short_lease_shortens_the_kill_grace),
        LEASE_TEST(it_renews_at_a_third),
        LEASE_TEST(it_renews_in_one_write_when_it_knows),
        LEASE_TEST(it_renews_by_token_where_the_store_can),
        LEASE_TEST(a_notice_of_others_is_no_reason_to_renew),
        LEASE_TEST(a_notice_without_a_record_is_looked_into),
        LEASE_TEST(a_break_is_noticed_and_told),
        LEASE_TEST(a_grant_that_is_gone_is_lost),
        LEASE_TEST(letting_go_at_the_deadline_is_heard),
        LEASE_TEST(the_deadline_comes_before_every_event),
        LEASE_TEST(a_lost_lease_is_given_back_once_its_work_stopped),
        LEASE_TEST(a_lost_lease_that_cannot_be_given_back_is_lost),
        LEASE_TEST(an_early_timer_changes_nothing),
        LEASE_TEST(a_release_takes_one_write_when_it_knows),
        LEASE_TEST(a_release_reads_when_it_does_not_know),
        LEASE_TEST(a_release_goes_by_token_where_the_store_can),
        LEASE_TEST(a_release_by_token_finds_somebody_behind_it),
        LEASE_TEST(a_cooldown_cannot_go_by_token),
        LEASE_TEST(a_cooldown_wakes_all_whom_it_sends_home),
        LEASE_TEST(a_cooldown_beside_another_is_begun_by_fresh_time),
        LEASE_TEST(a_release_that_finds_its_grant_gone_has_lost_it),
        LEASE_TEST(a_request_without_a_write_wakes_nobody),
        LEASE_TEST(nothing_moves_after_the_end),
        LEASE_TEST(a_second_let_go_changes_nothing),
        LEASE_TEST(on_one_clock_the_release_granted_already),
        LEASE_TEST(on_one_clock_a_release_wakes_one_more_than_it_grants),
        LEASE_TEST(on_one_clock_the_new_first_waiter_is_woken),
        LEASE_TEST(names_of_all_states_and_outcomes_are_words),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next waiter (rule 4): first come, first served within a priority that ages; offers, how many
 * at once, how they are accepted, lapse and are passed on; grants by the release on one clock.
 */
#include "rules_kit.h"

#include <string.h>

static struct verdict ask_with_priority(const char *who, int32_t priority)
{
    struct request request = asking(who);
    request.priority = priority;
    return act(request);
}

/* "a" holds; the letters wait, lower case as readers. */
static void queue_up(const char *letters)
{
    assert_granted(ask("a"));
    for (; *letters != '\0'; letters++) {
        char who[] = {*letters, '\0'};
        bool reader = *letters >= 'a' && *letters <= 'z';
        assert_kind(act(reader ? asking_shared(who) : asking(who)), VERDICT_WAITING,
                    /* write= */ true);
    }
}

static void a_release_names_the_next_in_line(void **state)
{
    (void)state;
    queue_up("BC");
    struct verdict verdict = release("a");
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | B! C");
    assert_int_equal(waiter_of("B")->offer.time_ms, view.at.time_ms);
}

static void a_waiter_knows_since_when_it_waits(void **state)
{
    (void)state;
    queue_up("B");
    assert_int_equal(record.waiters[0].ticket, TICKET_TIMED + 1000000 * TICKET_STEP);
    pass(700);
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ true);
    assert_kind(ask("B"), VERDICT_WAITING, /* write= */ false);
    assert_int_equal(waiter_since_ms(waiter_of("B")), 1000000);
    assert_int_equal(waiter_since_ms(waiter_of("C")), 1000700);
    struct request again = asking("B2"); /* of the same process: it resumes its position */
    again.priority = 1;
    assert_kind(act(again), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_since_ms(waiter_of("B2")), 1000000);
    assert_granted((release("a"), ask("B2")));
    assert_int_equal(waiter_since_ms(waiter_of("C")), 1000700);
}

/* Whoever enters at once takes the next ticket: its record stays as short as it was. */
static void a_holder_needs_no_timed_ticket(void **state)
{
    (void)state;
    assert_granted(ask("a"));
    assert_int_equal(record.next_ticket, 2);
}

static void tickets_grow_when_the_clock_does_not(void **state)
{
    (void)state;
    queue_up("BC");
    assert_int_equal(waiter_since_ms(waiter_of("B")), 1000000);
    assert_int_equal(waiter_since_ms(waiter_of("C")), 1000001);
    view.at.time_ms -= 5000;
    assert_kind(ask("D"), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_since_ms(waiter_of("D")), 1000002);
}

/* A cached record has the store's time of its reply: its age is added. */
static void a_ticket_on_a_cached_record_has_the_time_of_now(void **state)
{
    (void)state;
    queue_up("B");
    view.age_ms = 700;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_since_ms(waiter_of("C")), 1000700);
}

/* As a version does that knows no times. */
static void add_without_time(const char *who)
{
    view.age_ms = -1;
    assert_kind(ask(who), VERDICT_WAITING, /* write= */ true);
    view.age_ms = 0;
}

static void some_waiters_have_no_time(void **state)
{
    (void)state;
    queue_up("B");
    uint64_t last = waiter_of("B")->ticket;
    add_without_time("C");
    add_without_time("D");
    assert_int_equal(waiter_of("D")->ticket, last + 2);
    assert_true(waiter_since_ms(waiter_of("C")) == TIME_UNKNOWN);
    assert_true(waiter_since_ms(waiter_of("D")) == TIME_UNKNOWN);
    assert_kind(ask("E"), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_since_ms(waiter_of("E")), 1000001);
    view.at.time_ms = TIME_UNKNOWN;
    assert_kind(ask("F"), VERDICT_WAITING, /* write= */ true);
    view.at.time_ms = TIME_MAX_MS;
    assert_kind(ask("G"), VERDICT_WAITING, /* write= */ true);
    assert_true(waiter_since_ms(waiter_of("F")) == TIME_UNKNOWN);
    assert_true(waiter_since_ms(waiter_of("G")) == TIME_UNKNOWN);
    record.waiters[0].ticket = 2 * TICKET_STEP; /* a count, of an older version */
    assert_true(waiter_since_ms(&record.waiters[0]) == TIME_UNKNOWN);
}

static void only_the_one_named_enters(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    pass(500);
    struct verdict verdict = ask("B");
    assert_granted(verdict);
    assert_true(verdict.accepts);
    assert_standing("B | C");
    assert_int_equal(grant_of("B")->granted.time_ms, view.at.time_ms);
}

static void all_in_line_come_one_after_the_other(void **state)
{
    (void)state;
    queue_up("BCD");
    (void)release("a");
    assert_granted(ask("B"));
    (void)release("B");
    assert_standing("- | C! D");
    assert_granted(ask("C"));
    (void)release("C");
    assert_granted(ask("D"));
    (void)release("D");
    assert_false(record_needed(&record));
}

static void a_higher_priority_goes_first(void **state)
{
    (void)state;
    queue_up("B");
    (void)ask_with_priority("C", -1);
    (void)ask_with_priority("D", 1);
    (void)ask_with_priority("E", 1);
    (void)release("a");
    assert_standing("- | B C D! E");
}

static void being_passed_over_counts_one_step(void **state)
{
    (void)state;
    queue_up("B");
    (void)ask_with_priority("C", 2);
    (void)ask_with_priority("D", 2);
    (void)ask_with_priority("E", 2);
    (void)ask_with_priority("F", 2);
    (void)release("a");
    assert_standing("- | B C! D E F");
    assert_int_equal(waiter_of("B")->passed, 1);
    assert_int_equal(waiter_of("D")->passed, 0);
    (void)ask("C");
    assert_int_equal(waiter_of("B")->passed, 1); /* the offer counted, its acceptance does not */
    (void)release("C");
    assert_standing("- | B D! E F");
    assert_int_equal(waiter_of("B")->passed, 2);
    (void)ask("D");
    (void)release("D");
    assert_standing("- | B! E F"); /* the same priority as the others, and the first of them */
}

static void age_has_an_end(void **state)
{
    (void)state;
    queue_up("B");
    (void)ask_with_priority("C", 1);
    waiter_of("B")->passed = PASSED_MAX;
    waiter_of("B")->priority = -PRIORITY_MAX;
    waiter_of("C")->passed = PASSED_MAX;
    (void)release("a");
    assert_standing("- | B C!");
    assert_int_equal(waiter_of("B")->passed, PASSED_MAX);
}

static void an_immediate_entry_passes_others_over_too(void **state)
{
    (void)state;
    queue_up("B");
    pass(TTL_MS);
    assert_granted(ask_with_priority("C", 5));
    assert_standing("C | B");
    assert_int_equal(waiter_of("B")->passed, 1);
}

static void an_offered_waiter_is_not_passed_over(void **state)
{
    (void)state;
    queue_up("bc");
    (void)release("a");
    assert_standing("- | b! c!");
    assert_granted(act(asking_shared("c")));
    assert_int_equal(waiter_of("b")->passed, 0);
}

static void offers_come_in_steps_of_eight(void **state)
{
    (void)state;
    queue_up("bcdefghijkl");
    assert_int_equal(release("a").offered, OFFERS_MAX);
    assert_standing("- | b! c! d! e! f! g! h! i! j k l");
    struct verdict verdict = act(asking_shared("b"));
    assert_granted(verdict);
    assert_int_equal(verdict.offered, 1);
    assert_standing("b | c! d! e! f! g! h! i! j! k l");
    verdict = act(doing(VERB_LEAVE, "c"));
    assert_int_equal(verdict.offered, 1);
    assert_standing("b | d! e! f! g! h! i! j! k! l");
}

static void a_writer_in_line_ends_the_readers_offers(void **state)
{
    (void)state;
    queue_up("bcDe");
    assert_int_equal(release("a").offered, 2);
    assert_standing("- | b! c! D e");
    (void)act(asking_shared("b"));
    (void)act(asking_shared("c"));
    (void)release("b");
    assert_standing("c | D e");
    (void)release("c");
    assert_standing("- | D! e");
}

static void readers_wait_for_a_writers_offer(void **state)
{
    (void)state;
    queue_up("B");
    (void)release("a");
    assert_kind(act(asking_shared("c")), VERDICT_WAITING, /* write= */ true);
    assert_standing("- | B! c");
}

static void readers_fill_up_beside_offered_readers(void **state)
{
    (void)state;
    queue_up("bc");
    (void)release("a");
    assert_granted(act(asking_shared("d")));
    assert_standing("d | b! c!");
}

static void slots_are_offered_up_to_the_limit(void **state)
{
    (void)state;
    static const char *const all[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++)
        (void)act(asking_slot(all[i], 2));
    assert_standing("a+b | c d e");
    (void)release("a");
    assert_standing("b | c! d e");
    (void)release("b");
    assert_standing("- | c! d! e");
    assert_granted(act(asking_slot("d", 2)));
    assert_standing("d | c! e");
}

static void readers_and_offers_end_at_the_limit_of_grants(void **state)
{
    (void)state;
    char who[] = {'0', '\0'};
    for (size_t i = 0; i < GRANTS_MAX; i++, who[0]++)
        (void)act(asking_shared(who));
    (void)act(asking_shared("x"));
    (void)act(asking_shared("y"));
    assert_int_equal(release("0").offered, 1);
    assert_int_equal(record_offers(&record), 1);
    assert_true(waiter_of("x")->offered);
    assert_kind(act(asking_shared("z")), VERDICT_WAITING, /* write= */ true);
}

/* Only the store's clock advances: no process has observed the offer. */
static void an_offer_lapses_by_the_stores_clock(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    view.at.time_ms += OFFER_GRACE_MS - 1;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    view.at.time_ms += 1;
    struct verdict verdict = ask("C");
    assert_granted(verdict);
    assert_int_equal(verdict.passed_on, 1);
    assert_false(verdict.accepts);
    assert_standing("C | -");
}

static void an_offer_lapses_later_by_the_clocks_error(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    facts.margin_ms = 2000;
    view.at.time_ms += OFFER_GRACE_MS + 1999;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    view.at.time_ms += 1;
    assert_granted(ask("C"));
}

static void an_offer_lapses_by_observation(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    facts.judge = JUDGE_SESSION;
    view.at.time_ms = TIME_UNKNOWN;
    view.offer_revision = waiter_of("B")->offer.revision;
    view.offer_observed_ms = OFFER_GRACE_MS - 1;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    view.offer_observed_ms = OFFER_GRACE_MS;
    assert_granted(ask("C"));
    assert_standing("C | -");
}

static void a_slow_store_has_a_longer_grace(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    facts.offer_grace_ms = 150000;
    pass(149999);
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    pass(1);
    assert_granted(ask("C"));
}

static void a_younger_offer_was_not_observed(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    facts.judge = JUDGE_OBSERVED;
    view.offer_revision = waiter_of("B")->offer.revision - 1;
    view.offer_observed_ms = 10 * OFFER_GRACE_MS;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    assert_standing("- | B! C");
}

static void any_newcomer_passes_a_lapsed_offer_on(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    pass(OFFER_GRACE_MS);
    struct request request = asking("Z");
    request.waits = false;
    struct verdict verdict = act(request);
    assert_kind(verdict, VERDICT_BUSY, /* write= */ true);
    assert_int_equal(verdict.passed_on, 1);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | C!");
}

static void ones_own_offer_does_not_lapse(void **state)
{
    (void)state;
    queue_up("BC");
    (void)release("a");
    pass(10 * OFFER_GRACE_MS);
    struct verdict verdict = ask("B");
    assert_granted(verdict);
    assert_true(verdict.accepts);
    assert_int_equal(verdict.passed_on, 0);
}

static void a_dead_waiter_is_passed_over(void **state)
{
    (void)state;
    queue_up("BCD");
    waiter_of("B")->dead = true;
    struct verdict verdict = release("a");
    assert_int_equal(verdict.passed_on, 0); /* it had no offer */
    assert_standing("- | C! D");
    waiter_of("C")->dead = true;
    verdict = ask("D");
    assert_granted(verdict);
    assert_int_equal(verdict.passed_on, 1);
}

static void the_asker_is_not_dead(void **state)
{
    (void)state;
    queue_up("B");
    waiter_of("B")->dead = true;
    assert_kind(ask("B"), VERDICT_WAITING, /* write= */ false);
    assert_standing("a | B");
}

static void a_dead_waiter_is_cleared_away_by_any_asker(void **state)
{
    (void)state;
    queue_up("BC");
    waiter_of("B")->dead = true;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | C");
}

static void on_one_clock_a_release_grants(void **state)
{
    (void)state;
    queue_up("BC");
    facts.one_clock = true;
    pass(3000);
    struct verdict verdict = release("a");
    assert_int_equal(verdict.offered, 1);
    assert_standing("B | C");
    assert_int_equal(grant_of("B")->granted.time_ms, view.at.time_ms);
    assert_int_equal(waiter_of("C")->passed, 0);
}

/* It reads the clock that its lease is counted on, so it need not write. */
static void on_one_clock_the_granted_only_looks(void **state)
{
    (void)state;
    queue_up("BC");
    facts.one_clock = true;
    (void)release("a");
    int64_t granted_ms = view.at.time_ms;
    pass(500);
    struct verdict verdict = ask("B");
    assert_kind(verdict, VERDICT_GRANTED, /* write= */ false);
    assert_int_equal(verdict.since_ms, granted_ms);
    assert_int_equal(verdict.n, 0);
}

/* Too old to rely on: it is renewed, so that its holder has a whole lease. */
static void on_one_clock_an_old_grant_is_renewed(void **state)
{
    (void)state;
    queue_up("BC");
    facts.one_clock = true;
    (void)release("a");
    uint64_t token = token_of_holder("B");
    pass(TTL_MS / 3);
    assert_granted(ask("B"));
    assert_true(token_of_holder("B") == token);
    assert_int_equal(grant_of("B")->renewed.time_ms, view.at.time_ms);
}

/* Its queue entry has no meta, so a request with meta writes once. */
static void on_one_clock_meta_is_written_by_its_owner(void **state)
{
    (void)state;
    struct meta none = {0}, meta = {0};
    assert_true(meta_add(&meta, "pid", "17"));
    queue_up("BC");
    facts.one_clock = true;
    (void)release("a");
    struct request request = asking("B");
    request.meta = &none;
    assert_kind(act(request), VERDICT_GRANTED, /* write= */ false);
    request.meta = &meta;
    uint64_t token = token_of_holder("B");
    assert_granted(act(request));
    assert_true(token_of_holder("B") == token);
    assert_int_equal(grant_of("B")->meta.count, 1);
    assert_memory_equal(grant_of("B")->meta.text, "pid\00017", 7);
    assert_kind(act(request), VERDICT_GRANTED, /* write= */ false);
}

static void grants_of_one_write_are_a_step_apart(void **state)
{
    (void)state;
    queue_up("bcdefghijkl");
    facts.one_clock = true;
    assert_int_equal(release("a").offered, OFFERS_MAX);
    assert_standing("b+c+d+e+f+g+h+i | j k l");
    for (size_t i = 0; i < OFFERS_MAX; i++) {
        assert_int_equal(record.grants[i].n, i * GRANT_STEP);
        assert_int_equal(record.grants[i].granted.revision, view.at.revision);
    }
    struct verdict verdict = act(asking_shared("d"));
    assert_kind(verdict, VERDICT_GRANTED, /* write= */ false);
    assert_int_equal(verdict.n, 2 * GRANT_STEP);
}

static void an_entrant_comes_before_those_behind_it(void **state)
{
    (void)state;
    queue_up("bcd");
    facts.one_clock = true;
    pass(TTL_MS);
    struct verdict verdict = act(asking_shared("b"));
    assert_granted(verdict);
    assert_int_equal(verdict.n, 0);
    assert_int_equal(verdict.offered, 2);
    assert_standing("b+c+d | -");
    assert_int_equal(grant_of("c")->n, GRANT_STEP);
    assert_int_equal(grant_of("d")->n, 2 * GRANT_STEP);
}

/* It is not the first waiter, but granting the first also grants it, right behind. */
static void an_admitting_request_may_enter_too(void **state)
{
    (void)state;
    queue_up("bc");
    facts.one_clock = true;
    pass(TTL_MS);
    struct verdict verdict = act(asking_shared("c"));
    assert_granted(verdict);
    assert_int_equal(verdict.n, GRANT_STEP);
    assert_standing("b+c | -");
}

static void a_later_write_counts_n_anew(void **state)
{
    (void)state;
    queue_up("bc");
    facts.one_clock = true;
    (void)release("a");
    assert_granted(act(asking_shared("d")));
    assert_int_equal(grant_of("c")->n, GRANT_STEP);
    assert_int_equal(grant_of("d")->n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_release_names_the_next_in_line, fresh),
        cmocka_unit_test_setup(a_waiter_knows_since_when_it_waits, fresh),
        cmocka_unit_test_setup(a_holder_needs_no_timed_ticket, fresh),
        cmocka_unit_test_setup(tickets_grow_when_the_clock_does_not, fresh),
        cmocka_unit_test_setup(a_ticket_on_a_cached_record_has_the_time_of_now, fresh),
        cmocka_unit_test_setup(some_waiters_have_no_time, fresh),
        cmocka_unit_test_setup(only_the_one_named_enters, fresh),
        cmocka_unit_test_setup(all_in_line_come_one_after_the_other, fresh),
        cmocka_unit_test_setup(a_higher_priority_goes_first, fresh),
        cmocka_unit_test_setup(being_passed_over_counts_one_step, fresh),
        cmocka_unit_test_setup(age_has_an_end, fresh),
        cmocka_unit_test_setup(an_immediate_entry_passes_others_over_too, fresh),
        cmocka_unit_test_setup(an_offered_waiter_is_not_passed_over, fresh),
        cmocka_unit_test_setup(offers_come_in_steps_of_eight, fresh),
        cmocka_unit_test_setup(a_writer_in_line_ends_the_readers_offers, fresh),
        cmocka_unit_test_setup(readers_wait_for_a_writers_offer, fresh),
        cmocka_unit_test_setup(readers_fill_up_beside_offered_readers, fresh),
        cmocka_unit_test_setup(slots_are_offered_up_to_the_limit, fresh),
        cmocka_unit_test_setup(readers_and_offers_end_at_the_limit_of_grants, fresh),
        cmocka_unit_test_setup(an_offer_lapses_by_the_stores_clock, fresh),
        cmocka_unit_test_setup(an_offer_lapses_later_by_the_clocks_error, fresh),
        cmocka_unit_test_setup(an_offer_lapses_by_observation, fresh),
        cmocka_unit_test_setup(a_slow_store_has_a_longer_grace, fresh),
        cmocka_unit_test_setup(a_younger_offer_was_not_observed, fresh),
        cmocka_unit_test_setup(any_newcomer_passes_a_lapsed_offer_on, fresh),
        cmocka_unit_test_setup(ones_own_offer_does_not_lapse, fresh),
        cmocka_unit_test_setup(a_dead_waiter_is_passed_over, fresh),
        cmocka_unit_test_setup(the_asker_is_not_dead, fresh),
        cmocka_unit_test_setup(a_dead_waiter_is_cleared_away_by_any_asker, fresh),
        cmocka_unit_test_setup(on_one_clock_a_release_grants, fresh),
        cmocka_unit_test_setup(on_one_clock_the_granted_only_looks, fresh),
        cmocka_unit_test_setup(on_one_clock_an_old_grant_is_renewed, fresh),
        cmocka_unit_test_setup(on_one_clock_meta_is_written_by_its_owner, fresh),
        cmocka_unit_test_setup(grants_of_one_write_are_a_step_apart, fresh),
        cmocka_unit_test_setup(an_entrant_comes_before_those_behind_it, fresh),
        cmocka_unit_test_setup(an_admitting_request_may_enter_too, fresh),
        cmocka_unit_test_setup(a_later_write_counts_n_anew, fresh),
    };
    return cmocka_run_group_tests_name("rules_queue", tests, NULL, NULL);
}

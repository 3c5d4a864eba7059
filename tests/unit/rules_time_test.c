/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of time: leases by each of the three judges and with the clock's error, bound and unbound
 * grants (rule 11), lock-delay after a crash. Cooldowns are in rules_cooldown_test.c.
 */
#include "rules_kit.h"

static struct request asking_with_delay(const char *who, int64_t lock_delay_ms)
{
    struct request request = asking_shared(who);
    request.lock_delay_ms = lock_delay_ms;
    return request;
}

static struct verdict try_once(const char *who)
{
    struct request request = asking(who);
    request.waits = false;
    return act(request);
}

static void by_store_time_a_lease_ends_at_its_length(void **state)
{
    (void)state;
    (void)ask("a");
    pass(TTL_MS - 1);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    struct verdict verdict = try_once("b");
    assert_granted(verdict);
    assert_int_equal(verdict.expired, 1);
    assert_standing("b | -");
}

static void by_store_time_the_margin_is_added(void **state)
{
    (void)state;
    (void)ask("a");
    facts.margin_ms = 2000;
    pass(TTL_MS + 1999);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("b"));
}

static void by_store_time_nothing_else_counts(void **state)
{
    (void)state;
    (void)ask("a");
    seen_for(10 * TTL_MS);
    grant_of("a")->dead = true;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
}

static void an_unknown_time_never_passes(void **state)
{
    (void)state;
    (void)ask("a");
    grant_of("a")->renewed.time_ms = TIME_UNKNOWN;
    pass(1000 * TTL_MS);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    view.at.time_ms = TIME_UNKNOWN;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
}

static void a_renewal_counts_from_itself(void **state)
{
    (void)state;
    (void)ask("a");
    pass(9000);
    (void)act(doing(VERB_RENEW, "a"));
    pass(TTL_MS - 1);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("b"));
}

static void by_observation_a_lease_ends_unchanged_for_its_length(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    facts.margin_ms = 100;
    (void)ask("a");
    view.at.time_ms += 1000 * TTL_MS;
    seen_for(TTL_MS + 99);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    seen_for(TTL_MS + 100);
    assert_granted(try_once("b"));
}

static void by_session_only_the_store_ends_a_lease(void **state)
{
    (void)state;
    facts.judge = JUDGE_SESSION;
    (void)ask("a");
    pass(1000 * TTL_MS);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    grant_of("a")->over = true;
    assert_granted(try_once("b"));
}

static void a_bound_grant_ends_with_its_session(void **state)
{
    (void)state;
    struct request request = asking("a");
    request.bound = true;
    (void)act(request);
    grant_of("a")->dead = true;
    struct verdict verdict = try_once("b");
    assert_granted(verdict);
    assert_int_equal(verdict.expired, 1);
}

static void an_unbound_grant_outlives_its_session(void **state)
{
    (void)state;
    (void)ask("a");
    grant_of("a")->dead = true;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    pass(TTL_MS);
    assert_granted(try_once("b"));
}

static void the_next_in_line_takes_over_before_a_newcomer(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    pass(TTL_MS);
    struct verdict verdict = try_once("c");
    assert_kind(verdict, VERDICT_BUSY, /* write= */ true);
    assert_int_equal(verdict.expired, 1);
    assert_standing("- | b!");
}

static void only_ended_readers_go(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    pass(5000);
    (void)act(asking_shared("b"));
    pass(5000);
    assert_kind(ask("c"), VERDICT_WAITING, /* write= */ true);
    assert_standing("b | c");
}

static void a_crash_starts_the_delay_when_the_lease_ended(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    pass(TTL_MS + 1000);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ true);
    assert_standing("- | - delayed");
    assert_string_equal(record.delay.by, "a");
    assert_int_equal(record.delay.length_ms, 3000);
    assert_int_equal(record.delay.since.time_ms, 1000000 + TTL_MS);
    pass(1999);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("b"));
    assert_standing("b | -");
}

static void a_death_that_the_store_saw_starts_the_delay_now(void **state)
{
    (void)state;
    struct request request = asking_with_delay("a", 3000);
    request.bound = true;
    (void)act(request);
    grant_of("a")->dead = true;
    pass(2000);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ true);
    assert_int_equal(record.delay.since.time_ms, 1002000);
    assert_int_equal(record.delay.since.revision, view.at.revision);
}

static void without_a_clock_the_delay_starts_now(void **state)
{
    (void)state;
    facts.judge = JUDGE_SESSION;
    (void)act(asking_with_delay("a", 3000));
    grant_of("a")->over = true;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ true);
    assert_standing("- | - delayed");
    pass(100000);
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ false);
    record.delay.over = true;
    assert_granted(try_once("b"));
}

/* The store reports that the lease is over; the record does not contain when. */
static void after_a_lease_of_unknown_age_the_delay_starts_now(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    grant_of("a")->over = true;
    grant_of("a")->renewed.time_ms = TIME_UNKNOWN;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ true);
    assert_int_equal(record.delay.since.time_ms, view.at.time_ms);
    pass(3000);
    assert_granted(try_once("b"));
}

/* No clock reported it: a record of another program. */
static void a_delay_of_the_last_moment_can_be_written(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    grant_of("a")->renewed.time_ms = TIME_MAX_MS;
    grant_of("a")->observed_ms = TTL_MS;
    assert_kind(try_once("b"), VERDICT_BUSY, /* write= */ true);
    assert_true(record.delay.since.time_ms == TIME_MAX_MS);
}

static void a_delay_that_is_over_already_does_not_start(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    pass(TTL_MS + 3000);
    assert_granted(try_once("b"));
    assert_standing("b | -");
}

static void a_clean_release_starts_no_delay(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)ask("b");
    (void)release("a");
    assert_standing("- | b!");
}

static void a_waiter_is_named_only_after_the_delay(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)ask("b");
    pass(TTL_MS);
    assert_kind(ask("b"), VERDICT_WAITING, /* write= */ true);
    assert_standing("- | b delayed");
    pass(3000);
    assert_granted(ask("b"));
    assert_standing("b | -");
}

static void after_the_delay_anybody_names_the_first(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)ask("b");
    (void)ask("c");
    pass(TTL_MS);
    (void)ask("c");
    assert_standing("- | b c delayed");
    pass(3000);
    struct verdict verdict = ask("c");
    assert_kind(verdict, VERDICT_WAITING, /* write= */ true);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | b! c");
}

static void a_crash_withdraws_open_offers(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)ask("b");
    (void)act(asking_shared("c"));
    (void)act(doing(VERB_LEAVE, "b"));
    assert_standing("a | c!");
    grant_of("a")->over = true;
    assert_kind(ask("d"), VERDICT_WAITING, /* write= */ true);
    assert_standing("- | c d delayed");
    view.offer_revision = UINT64_MAX;
    pass(TTL_MS + 3000);
    assert_kind(ask("d"), VERDICT_WAITING, /* write= */ true);
    assert_standing("- | c! d");
    assert_int_equal(waiter_of("c")->offer.time_ms, view.at.time_ms); /* an offer like any other */
    assert_granted(act(asking_shared("c"))); /* it waited all the time and lost nothing */
}

static void of_two_delays_the_one_that_ends_later_stays(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)act(asking_with_delay("b", 5000));
    (void)act(asking_with_delay("c", 4000));
    pass(TTL_MS + 1000);
    assert_kind(try_once("d"), VERDICT_BUSY, /* write= */ true);
    pass(3999);
    assert_kind(try_once("d"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("d"));
}

static void a_second_crash_does_not_cut_the_first_ones_delay(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 60000));
    pass(5000);
    (void)act(asking_with_delay("b", 1000));
    pass(5000);
    assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ true);
    assert_standing("b | - delayed");
    pass(5000);
    assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ true);
    assert_standing("- | - delayed");
    pass(54999);
    assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("c"));
}

/* Of both delays only the clock's error is left, and that still counts. */
static void two_delays_meet_within_the_clocks_error(void **state)
{
    (void)state;
    for (int64_t longer_ms = 1000; longer_ms <= 2000; longer_ms += 1000) {
        fresh(NULL);
        (void)act(asking_with_delay("a", 500));
        (void)act(asking_with_delay("b", longer_ms));
        facts.margin_ms = 2000;
        pass(TTL_MS + 2000);
        assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ true);
        assert_standing("- | - delayed");
        pass(longer_ms - 1);
        assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ false);
        pass(2002 - longer_ms); /* the error, again, from the write that joined them */
        assert_granted(try_once("c"));
    }
}

static void a_second_crash_makes_the_delay_longer(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 6000));
    pass(5000);
    (void)act(asking_with_delay("b", 5000));
    pass(5000);
    (void)try_once("c");
    pass(5000);
    (void)try_once("c");
    assert_standing("- | - delayed");
    pass(4999);
    assert_kind(try_once("c"), VERDICT_BUSY, /* write= */ false);
    pass(1);
    assert_granted(try_once("c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(by_store_time_a_lease_ends_at_its_length, fresh),
        cmocka_unit_test_setup(by_store_time_the_margin_is_added, fresh),
        cmocka_unit_test_setup(by_store_time_nothing_else_counts, fresh),
        cmocka_unit_test_setup(an_unknown_time_never_passes, fresh),
        cmocka_unit_test_setup(a_renewal_counts_from_itself, fresh),
        cmocka_unit_test_setup(by_observation_a_lease_ends_unchanged_for_its_length, fresh),
        cmocka_unit_test_setup(by_session_only_the_store_ends_a_lease, fresh),
        cmocka_unit_test_setup(a_bound_grant_ends_with_its_session, fresh),
        cmocka_unit_test_setup(an_unbound_grant_outlives_its_session, fresh),
        cmocka_unit_test_setup(the_next_in_line_takes_over_before_a_newcomer, fresh),
        cmocka_unit_test_setup(only_ended_readers_go, fresh),
        cmocka_unit_test_setup(a_crash_starts_the_delay_when_the_lease_ended, fresh),
        cmocka_unit_test_setup(a_death_that_the_store_saw_starts_the_delay_now, fresh),
        cmocka_unit_test_setup(without_a_clock_the_delay_starts_now, fresh),
        cmocka_unit_test_setup(after_a_lease_of_unknown_age_the_delay_starts_now, fresh),
        cmocka_unit_test_setup(a_delay_of_the_last_moment_can_be_written, fresh),
        cmocka_unit_test_setup(a_delay_that_is_over_already_does_not_start, fresh),
        cmocka_unit_test_setup(a_clean_release_starts_no_delay, fresh),
        cmocka_unit_test_setup(a_waiter_is_named_only_after_the_delay, fresh),
        cmocka_unit_test_setup(after_the_delay_anybody_names_the_first, fresh),
        cmocka_unit_test_setup(a_crash_withdraws_open_offers, fresh),
        cmocka_unit_test_setup(of_two_delays_the_one_that_ends_later_stays, fresh),
        cmocka_unit_test_setup(a_second_crash_does_not_cut_the_first_ones_delay, fresh),
        cmocka_unit_test_setup(two_delays_meet_within_the_clocks_error, fresh),
        cmocka_unit_test_setup(a_second_crash_makes_the_delay_longer, fresh),
    };
    return cmocka_run_group_tests_name("rules_time", tests, NULL, NULL);
}

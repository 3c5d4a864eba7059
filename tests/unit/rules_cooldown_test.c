/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooldowns (rule 5): how long a key cools by each judge, which of two cooldowns survives, which
 * requests a cooldown refuses, and how an operator clears it.
 */
#include "rules_kit.h"

static struct request asking_with_delay(const char *who, int64_t lock_delay_ms)
{
    struct request request = asking_shared(who);
    request.lock_delay_ms = lock_delay_ms;
    return request;
}

static struct request releasing_with_cooldown(const char *who, int64_t cooldown_ms)
{
    struct request request = doing(VERB_RELEASE, who);
    request.cooldown_ms = cooldown_ms;
    return request;
}

static struct verdict try_once(const char *who)
{
    struct request request = asking(who);
    request.waits = false;
    return act(request);
}

static void a_cooldown_blocks_until_its_stored_end(void **state)
{
    (void)state;
    (void)ask("a");
    assert_kind(act(releasing_with_cooldown("a", 5000)), VERDICT_DONE, /* write= */ true);
    assert_standing("- | - cooling");
    assert_string_equal(record.cooling.by, "a");
    pass(4999);
    assert_kind(ask("b"), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(ask("b"));
    assert_standing("b | -");
}

static void a_cooldown_sends_all_who_wait_home(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    struct verdict verdict = act(releasing_with_cooldown("a", 5000));
    assert_int_equal(verdict.offered, 0);
    assert_standing("- | - cooling");
}

/* We write no such record, but may read one: a waiter in a cooldown is not named. */
static void nobody_is_named_in_a_cooldown(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    record.cooling.length_ms = 5000;
    record.cooling.since = view.at;
    assert_kind(release("a"), VERDICT_DONE, /* write= */ true);
    assert_standing("- | b cooling");
    pass(5000);
    assert_granted(ask("b"));
}

static void a_cooldown_is_observed_where_there_is_no_clock(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    (void)ask("a");
    (void)act(releasing_with_cooldown("a", 5000));
    seen_for(4999);
    assert_kind(ask("b"), VERDICT_COOLING, /* write= */ false);
    seen_for(5000);
    assert_granted(ask("b"));
}

static void a_cooldown_outlives_other_holders_writes(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    assert_kind(act(doing(VERB_RENEW, "b")), VERDICT_DONE, /* write= */ true);
    (void)release("b");
    assert_standing("- | - cooling");
    assert_int_equal(record.cooling.length_ms, 5000);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
}

static void a_second_cooldown_does_not_cut_the_first_short(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    pass(1000);
    (void)act(releasing_with_cooldown("b", 2000));
    pass(3999);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(act(asking_slot("c", 2)));
}

static void a_second_cooldown_makes_the_first_longer(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    pass(4000);
    (void)act(releasing_with_cooldown("b", 2000));
    pass(1999);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(act(asking_slot("c", 2)));
}

static void without_a_clock_the_longer_cooldown_stays(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    seen_for(1000);
    (void)act(releasing_with_cooldown("b", 2000));
    assert_int_equal(record.cooling.length_ms, 5000);
    seen_for(4999);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
    seen_for(5000);
    assert_granted(act(asking_slot("c", 2)));
}

static void a_clock_set_back_makes_no_endless_cooldown(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    pass(-900000);
    (void)act(releasing_with_cooldown("b", 2000));
    assert_int_equal(record.cooling.length_ms, 5000);
    pass(4999);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(act(asking_slot("c", 2)));
}

/* The remaining time of the first one is unknown: its whole length counts. */
static void a_cooldown_of_unknown_age_is_not_cut_short(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 5000));
    record.cooling.since.time_ms = TIME_UNKNOWN;
    (void)act(releasing_with_cooldown("b", 2000));
    pass(4999);
    assert_kind(act(asking_slot("c", 2)), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(act(asking_slot("c", 2)));
}

/* Its reply was lost, another cooldown has begun since: the operator did not mean that one. */
static void a_repeated_clear_spares_a_later_cooldown(void **state)
{
    (void)state;
    (void)ask("a");
    (void)act(releasing_with_cooldown("a", 5000));
    struct request request = doing(VERB_CLEAR, "op");
    request.up_to = view.at.revision;
    (void)act(request);
    (void)ask("b");
    (void)act(releasing_with_cooldown("b", 5000));
    struct verdict verdict = act(request);
    assert_kind(verdict, VERDICT_DONE, /* write= */ false);
    assert_string_equal(verdict.why, "it is not cooling");
    assert_standing("- | - cooling");
}

/* An expired holder is removed in passing. */
static void an_asker_in_a_cooldown_clears_the_dead_away(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(releasing_with_cooldown("a", 100000));
    pass(TTL_MS);
    struct verdict verdict = act(asking_slot("c", 2));
    assert_kind(verdict, VERDICT_COOLING, /* write= */ true);
    assert_int_equal(verdict.expired, 1);
    assert_standing("- | - cooling");
}

static void clearing_ends_a_cooldown(void **state)
{
    (void)state;
    (void)ask("a");
    (void)act(releasing_with_cooldown("a", 5000));
    struct verdict verdict = act(doing(VERB_CLEAR, "op"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_null(verdict.why);
    assert_false(record_needed(&record));
    assert_granted(ask("b"));
}

static void clearing_what_is_not_cooling_changes_nothing(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    struct verdict verdict = act(doing(VERB_CLEAR, "op"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ false);
    assert_string_equal(verdict.why, "it is not cooling");
    assert_standing("a | b");
}

static void clearing_names_who_is_next_behind_the_dead(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    pass(TTL_MS);
    struct verdict verdict = act(doing(VERB_CLEAR, "op"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | b!");
}

/* A cooldown that is over is not written for its own sake; the next waiter is named. */
static void clearing_names_who_is_next_behind_a_delay(void **state)
{
    (void)state;
    (void)act(asking_with_delay("a", 3000));
    (void)ask("b");
    pass(TTL_MS);
    (void)try_once("c");
    assert_standing("- | b delayed");
    pass(3000);
    struct verdict verdict = act(doing(VERB_CLEAR, "op"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_standing("- | b!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_cooldown_blocks_until_its_stored_end, fresh),
        cmocka_unit_test_setup(a_cooldown_sends_all_who_wait_home, fresh),
        cmocka_unit_test_setup(nobody_is_named_in_a_cooldown, fresh),
        cmocka_unit_test_setup(a_cooldown_is_observed_where_there_is_no_clock, fresh),
        cmocka_unit_test_setup(a_cooldown_outlives_other_holders_writes, fresh),
        cmocka_unit_test_setup(a_second_cooldown_does_not_cut_the_first_short, fresh),
        cmocka_unit_test_setup(a_second_cooldown_makes_the_first_longer, fresh),
        cmocka_unit_test_setup(without_a_clock_the_longer_cooldown_stays, fresh),
        cmocka_unit_test_setup(a_clock_set_back_makes_no_endless_cooldown, fresh),
        cmocka_unit_test_setup(a_cooldown_of_unknown_age_is_not_cut_short, fresh),
        cmocka_unit_test_setup(a_repeated_clear_spares_a_later_cooldown, fresh),
        cmocka_unit_test_setup(an_asker_in_a_cooldown_clears_the_dead_away, fresh),
        cmocka_unit_test_setup(clearing_ends_a_cooldown, fresh),
        cmocka_unit_test_setup(clearing_what_is_not_cooling_changes_nothing, fresh),
        cmocka_unit_test_setup(clearing_names_who_is_next_behind_the_dead, fresh),
        cmocka_unit_test_setup(clearing_names_who_is_next_behind_a_delay, fresh),
    };
    return cmocka_run_group_tests_name("rules_cooldown", tests, NULL, NULL);
}

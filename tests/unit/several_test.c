/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several keys, all or nothing (rule 8): sorted, taken in that order, given back in reverse, and
 * what the caller is told when one of them is refused, lost, or given up.
 */
#include "core/several.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct several several;

static void assert_acts(struct several_output output, enum several_do act, size_t key)
{
    assert_int_equal(output.act, act);
    if (act != DO_NOTHING)
        assert_int_equal(output.key, key);
    assert_int_equal(output.told, TOLD_NOTHING);
}

static void assert_told(struct several_output output, enum told told)
{
    assert_int_equal(output.act, DO_NOTHING);
    assert_int_equal(output.told, told);
}

static void assert_ended(struct several_output output, enum outcome outcome)
{
    assert_told(output, TOLD_ENDED);
    assert_int_equal(output.outcome, outcome);
    assert_int_equal(several.state, SEVERAL_ENDED);
}

static struct several_output held(size_t key)
{
    return several_told(&several, key, TOLD_HELD, OUTCOME_OK);
}

static struct several_output ended(size_t key, enum outcome outcome)
{
    return several_told(&several, key, TOLD_ENDED, outcome);
}

static struct several_output lost(size_t key)
{
    return several_told(&several, key, TOLD_LOST, OUTCOME_LOST);
}

/* Three keys, the first `count` of them held. */
static void take(size_t count)
{
    several_init(&several, 3);
    assert_acts(several_start(&several), DO_START, 0);
    for (size_t key = 0; key < count; key++) {
        struct several_output output = held(key);
        if (key < 2)
            assert_acts(output, DO_START, key + 1);
        else
            assert_told(output, TOLD_HELD);
    }
}

static void keys_are_sorted_by_their_bytes(void **state)
{
    (void)state;
    const char *keys[] = {"b", "a/b", "\xc3\xa9", "a", "Z"};
    assert_true(several_sort(keys, 5));
    static const char *const sorted[] = {"Z", "a", "a/b", "b", "\xc3\xa9"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(keys[i], sorted[i]);
}

static void the_same_key_twice_is_refused(void **state)
{
    (void)state;
    const char *keys[] = {"b", "a", "b"};
    assert_false(several_sort(keys, 3));
}

static void none_and_too_many_are_refused(void **state)
{
    (void)state;
    const char *keys[SEVERAL_MAX + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                         "j", "k", "l", "m", "n", "o", "p", "q"};
    assert_false(several_sort(keys, 0));
    assert_false(several_sort(keys, SEVERAL_MAX + 1));
    assert_true(several_sort(keys, SEVERAL_MAX));
    assert_true(several_sort(keys, 1));
}

static void they_are_taken_in_order_and_given_back_in_reverse(void **state)
{
    (void)state;
    take(3);
    assert_int_equal(several.state, SEVERAL_HELD);
    assert_acts(several_release(&several), DO_CANCEL, 2);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_OK);
}

static void one_key_is_a_case_like_others(void **state)
{
    (void)state;
    several_init(&several, 1);
    assert_acts(several_start(&several), DO_START, 0);
    assert_told(held(0), TOLD_HELD);
    assert_acts(several_release(&several), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_OK);
}

static void the_first_refused_ends_it(void **state)
{
    (void)state;
    take(0);
    assert_ended(ended(0, OUTCOME_COOLING), OUTCOME_COOLING);
}

static void one_refused_gives_the_others_back(void **state)
{
    (void)state;
    take(2);
    assert_acts(ended(2, OUTCOME_BUSY), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_UNAVAILABLE), OUTCOME_BUSY); /* the first reason counts */
}

static void one_lost_is_all_lost(void **state)
{
    (void)state;
    take(3);
    assert_told(lost(1), TOLD_LOST);
    assert_acts(lost(0), DO_NOTHING, 0); /* told once */
    assert_acts(several_release(&several), DO_CANCEL, 2);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_LOST), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_LOST);
}

static void one_lost_while_taking_gives_up_the_rest(void **state)
{
    (void)state;
    take(2);
    assert_acts(lost(0), DO_CANCEL, 2);
    assert_acts(held(2), DO_NOTHING, 0); /* granted all the same: it is on its way back */
    assert_acts(ended(2, OUTCOME_BUSY), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_LOST), OUTCOME_LOST);
}

static void giving_up_while_taking_gives_all_back(void **state)
{
    (void)state;
    take(1);
    assert_acts(several_release(&several), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_BUSY), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_BUSY);
}

static void a_key_lost_on_the_way_back_is_reported(void **state)
{
    (void)state;
    take(3);
    assert_acts(several_release(&several), DO_CANCEL, 2);
    assert_acts(lost(0), DO_NOTHING, 0);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_LOST), OUTCOME_LOST);
}

static void what_is_out_of_turn_is_not_heard(void **state)
{
    (void)state;
    take(1);
    assert_acts(held(0), DO_NOTHING, 0);
    assert_acts(held(2), DO_NOTHING, 0);
    assert_acts(ended(2, OUTCOME_BUSY), DO_NOTHING, 0);
    assert_acts(several_told(&several, 1, TOLD_WAITING, OUTCOME_OK), DO_NOTHING, 0);
    assert_acts(held(1), DO_START, 2);
    (void)held(2);
    assert_acts(ended(2, OUTCOME_OK), DO_NOTHING, 0);
    assert_acts(held(2), DO_NOTHING, 0);
    assert_int_equal(several.state, SEVERAL_HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_sorted_by_their_bytes),
        cmocka_unit_test(the_same_key_twice_is_refused),
        cmocka_unit_test(none_and_too_many_are_refused),
        cmocka_unit_test(they_are_taken_in_order_and_given_back_in_reverse),
        cmocka_unit_test(one_key_is_a_case_like_others),
        cmocka_unit_test(the_first_refused_ends_it),
        cmocka_unit_test(one_refused_gives_the_others_back),
        cmocka_unit_test(one_lost_is_all_lost),
        cmocka_unit_test(one_lost_while_taking_gives_up_the_rest),
        cmocka_unit_test(giving_up_while_taking_gives_all_back),
        cmocka_unit_test(a_key_lost_on_the_way_back_is_reported),
        cmocka_unit_test(what_is_out_of_turn_is_not_heard),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}

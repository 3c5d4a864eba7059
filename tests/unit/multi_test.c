/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several keys, all or nothing (rule 8): sorted, acquired in that order, released in reverse, and
 * the caller's result when one of them is refused, lost, or cancelled.
 */
#include "core/multi.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct multi multi;

static void assert_acts(struct multi_output output, enum multi_action act, size_t key)
{
    assert_int_equal(output.act, act);
    if (act != DO_NOTHING)
        assert_int_equal(output.key, key);
    assert_int_equal(output.notify, NOTIFY_NONE);
}

static void assert_told(struct multi_output output, enum lease_notify notify)
{
    assert_int_equal(output.act, DO_NOTHING);
    assert_int_equal(output.notify, notify);
}

static void assert_ended(struct multi_output output, enum outcome outcome)
{
    assert_told(output, NOTIFY_ENDED);
    assert_int_equal(output.outcome, outcome);
    assert_int_equal(multi.state, MULTI_ENDED);
}

static struct multi_output held(size_t key)
{
    return multi_notify(&multi, key, NOTIFY_HELD, OUTCOME_OK);
}

static struct multi_output ended(size_t key, enum outcome outcome)
{
    return multi_notify(&multi, key, NOTIFY_ENDED, outcome);
}

static struct multi_output lost(size_t key)
{
    return multi_notify(&multi, key, NOTIFY_LOST, OUTCOME_LOST);
}

/* Three keys, the first `count` of them held. */
static void take(size_t count)
{
    multi_init(&multi, 3);
    assert_acts(multi_start(&multi), DO_START, 0);
    for (size_t key = 0; key < count; key++) {
        struct multi_output output = held(key);
        if (key < 2)
            assert_acts(output, DO_START, key + 1);
        else
            assert_told(output, NOTIFY_HELD);
    }
}

static void keys_are_sorted_by_their_bytes(void **state)
{
    (void)state;
    const char *keys[] = {"b", "a/b", "\xc3\xa9", "a", "Z"};
    assert_true(multi_sort(keys, 5));
    static const char *const sorted[] = {"Z", "a", "a/b", "b", "\xc3\xa9"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(keys[i], sorted[i]);
}

static void the_same_key_twice_is_refused(void **state)
{
    (void)state;
    const char *keys[] = {"b", "a", "b"};
    assert_false(multi_sort(keys, 3));
}

static void none_and_too_many_are_refused(void **state)
{
    (void)state;
    const char *keys[MULTI_MAX + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                       "j", "k", "l", "m", "n", "o", "p", "q"};
    assert_false(multi_sort(keys, 0));
    assert_false(multi_sort(keys, MULTI_MAX + 1));
    assert_true(multi_sort(keys, MULTI_MAX));
    assert_true(multi_sort(keys, 1));
}

static void they_are_taken_in_order_and_given_back_in_reverse(void **state)
{
    (void)state;
    take(3);
    assert_int_equal(multi.state, MULTI_HELD);
    assert_acts(multi_release(&multi), DO_CANCEL, 2);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_OK);
}

static void one_key_is_a_case_like_others(void **state)
{
    (void)state;
    multi_init(&multi, 1);
    assert_acts(multi_start(&multi), DO_START, 0);
    assert_told(held(0), NOTIFY_HELD);
    assert_acts(multi_release(&multi), DO_CANCEL, 0);
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
    assert_told(lost(1), NOTIFY_LOST);
    assert_acts(lost(0), DO_NOTHING, 0); /* reported once */
    assert_acts(multi_release(&multi), DO_CANCEL, 2);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_LOST), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_LOST);
}

static void one_lost_while_taking_gives_up_the_rest(void **state)
{
    (void)state;
    take(2);
    assert_acts(lost(0), DO_CANCEL, 2);
    assert_acts(held(2), DO_NOTHING, 0); /* granted all the same: its release is in flight */
    assert_acts(ended(2, OUTCOME_BUSY), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_LOST), OUTCOME_LOST);
}

static void giving_up_while_taking_gives_all_back(void **state)
{
    (void)state;
    take(1);
    assert_acts(multi_release(&multi), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_BUSY), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_BUSY);
}

static void a_key_lost_on_the_way_back_is_reported(void **state)
{
    (void)state;
    take(3);
    assert_acts(multi_release(&multi), DO_CANCEL, 2);
    assert_acts(lost(0), DO_NOTHING, 0);
    assert_acts(ended(2, OUTCOME_OK), DO_CANCEL, 1);
    assert_acts(ended(1, OUTCOME_OK), DO_CANCEL, 0);
    assert_ended(ended(0, OUTCOME_LOST), OUTCOME_LOST);
}

/* A store that is gone must not cost a timeout for each key. */
static void a_failed_release_shortens_the_next(void **state)
{
    (void)state;
    take(3);
    assert_int_equal(multi_release(&multi).quarterings, 0);
    assert_int_equal(ended(2, OUTCOME_UNAVAILABLE).quarterings, 1);
    assert_int_equal(ended(1, OUTCOME_LOST).quarterings, 2);
    assert_ended(ended(0, OUTCOME_UNAVAILABLE), OUTCOME_UNAVAILABLE);
}

static void a_successful_release_restores_the_timeout(void **state)
{
    (void)state;
    take(2);
    assert_int_equal(ended(2, OUTCOME_UNAVAILABLE).quarterings, 1);
    assert_int_equal(ended(1, OUTCOME_OK).quarterings, 0);
    assert_ended(ended(0, OUTCOME_OK), OUTCOME_UNAVAILABLE);
}

static void an_event_out_of_turn_is_ignored(void **state)
{
    (void)state;
    take(1);
    assert_acts(held(0), DO_NOTHING, 0);
    assert_acts(held(2), DO_NOTHING, 0);
    assert_acts(ended(2, OUTCOME_BUSY), DO_NOTHING, 0);
    assert_acts(multi_notify(&multi, 1, NOTIFY_WAITING, OUTCOME_OK), DO_NOTHING, 0);
    assert_acts(held(1), DO_START, 2);
    (void)held(2);
    assert_acts(ended(2, OUTCOME_OK), DO_NOTHING, 0);
    assert_acts(held(2), DO_NOTHING, 0);
    assert_int_equal(multi.state, MULTI_HELD);
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
        cmocka_unit_test(a_failed_release_shortens_the_next),
        cmocka_unit_test(a_successful_release_restores_the_timeout),
        cmocka_unit_test(an_event_out_of_turn_is_ignored),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watermarks (rule 7): moved only forward, only from the expected position, in their own order; set
 * by an operator with a reason; and where a poll by the store's clock begins.
 */
#include "rules_kit.h"

#include <stdio.h>
#include <string.h>

static struct request advancing(const char *expected, const char *value)
{
    struct request request = doing(VERB_ADVANCE, "p");
    request.expected = expected;
    request.value = value;
    return request;
}

static struct verdict advance(const char *expected, const char *value)
{
    return act(advancing(expected, value));
}

static struct request setting(const char *value, const char *reason)
{
    struct request request = doing(VERB_SET, "o");
    request.value = value;
    request.reason = reason;
    return request;
}

static void it_begins_with_its_first_value(void **state)
{
    (void)state;
    assert_kind(advance("7", "8"), VERDICT_STALE, /* write= */ false);
    assert_kind(advance("", "8"), VERDICT_DONE, /* write= */ true);
    assert_int_equal(record.kind, KIND_WATERMARK);
    assert_string_equal(record.watermark.value, "8");
    assert_string_equal(record.watermark.by, "p");
    assert_int_equal(record.watermark.order, ORDER_NUMBER);
    assert_int_equal(record.watermark.moved.time_ms, view.at.time_ms);
    assert_true(record_needed(&record));
}

static void it_moves_from_what_was_expected_and_forward(void **state)
{
    (void)state;
    (void)advance("", "8");
    assert_kind(advance("7", "9"), VERDICT_STALE, /* write= */ false);
    assert_kind(advance("8", "7"), VERDICT_STALE, /* write= */ false);
    assert_kind(advance("8", "10"), VERDICT_DONE, /* write= */ true);
    assert_string_equal(record.watermark.value, "10");
}

static struct request moving_as(const char *id, const char *expected, const char *value)
{
    struct request request = advancing(expected, value);
    request.request = id;
    return request;
}

/* The reply to the first attempt was lost: the same request finds its own move (rule 9). */
static void a_repeated_move_is_the_same_move(void **state)
{
    (void)state;
    (void)act(moving_as("r1", "", "8"));
    assert_kind(act(moving_as("r1", "", "8")), VERDICT_DONE, /* write= */ false);
    (void)act(moving_as("r2", "8", "9"));
    assert_kind(act(moving_as("r2", "8.0", "9.0")), VERDICT_DONE, /* write= */ false);
}

static void a_move_that_another_made_is_stale(void **state)
{
    (void)state;
    (void)act(moving_as("r1", "", "8"));
    assert_kind(act(moving_as("r2", "", "8")), VERDICT_STALE, /* write= */ false);
    assert_kind(act(moving_as("r2", "7", "8")), VERDICT_STALE, /* write= */ false);
    assert_string_equal(record.watermark.value, "8");
}

static void another_move_with_the_same_id_is_stale(void **state)
{
    (void)state;
    (void)act(moving_as("r1", "", "8"));
    assert_kind(act(moving_as("r1", "7", "8")), VERDICT_STALE, /* write= */ false);
    assert_kind(act(moving_as("r1", "", "9")), VERDICT_STALE, /* write= */ false);
    (void)act(moving_as("r2", "8", "9"));
    assert_kind(act(moving_as("r1", "", "8")), VERDICT_STALE, /* write= */ false);
    assert_string_equal(record.watermark.value, "9");
}

/* A set is no advance: nothing of the previous move is left. */
/* A record may contain anything. */
static void a_move_from_another_order_is_nobodys(void **state)
{
    (void)state;
    (void)act(moving_as("r", "", "8"));
    (void)snprintf(record.watermark.from, sizeof record.watermark.from, "x");
    assert_kind(act(moving_as("r", "7", "8")), VERDICT_STALE, /* write= */ false);
}

static void a_move_is_not_found_again_after_a_set(void **state)
{
    (void)state;
    (void)act(moving_as("r1", "", "8"));
    (void)act(setting("8", "checked"));
    assert_kind(act(moving_as("r1", "", "8")), VERDICT_STALE, /* write= */ false);
}

static void the_expected_value_compares_by_order(void **state)
{
    (void)state;
    (void)advance("", "8");
    assert_kind(act(moving_as("r2", "eight", "9")), VERDICT_STALE, /* write= */ false);
    assert_kind(act(moving_as("r2", "08.0", "9")), VERDICT_DONE, /* write= */ true);
    (void)act(setting("2026-01-01T00:00:00Z", "new source"));
    assert_kind(act(moving_as("r3", "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00Z")),
                VERDICT_DONE, /* write= */ true);
}

/* Nothing moves, so nothing is written, and the mover is still recorded. */
static void a_move_to_the_same_place_writes_nothing(void **state)
{
    (void)state;
    (void)act(moving_as("r1", "", "8"));
    assert_kind(act(moving_as("r2", "8", "8.0")), VERDICT_DONE, /* write= */ false);
    assert_kind(act(moving_as("r1", "", "8")), VERDICT_DONE, /* write= */ false);
}

static void its_order_stays(void **state)
{
    (void)state;
    struct request request = advancing("8", "9");
    (void)advance("", "8");
    assert_kind(advance("8", "abc"), VERDICT_MISMATCH, /* write= */ false);
    request.order = ORDER_TEXT;
    assert_kind(act(request), VERDICT_MISMATCH, /* write= */ false);
    request.order = ORDER_NUMBER;
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
}

static void its_order_can_be_said(void **state)
{
    (void)state;
    struct request request = advancing("", "9");
    request.order = ORDER_TEXT;
    (void)act(request);
    assert_int_equal(record.watermark.order, ORDER_TEXT);
    assert_kind(advance("9", "10"), VERDICT_STALE, /* write= */ false);
    assert_kind(advance("9", "90"), VERDICT_DONE, /* write= */ true);
}

static void an_operator_sets_it_anywhere_and_says_why(void **state)
{
    (void)state;
    (void)advance("", "8");
    assert_kind(act(setting("2026-01-01T00:00:00Z", "new source")), VERDICT_DONE,
                /* write= */ true);
    assert_string_equal(record.reason, "new source");
    assert_string_equal(record.watermark.by, "o");
    assert_int_equal(record.watermark.order, ORDER_TIME);
    assert_kind(advance("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), VERDICT_DONE,
                /* write= */ true);
    assert_string_equal(record.reason, "");
}

static void a_repeated_set_does_not_undo_what_came_after(void **state)
{
    (void)state;
    struct request request = setting("5", "again");
    (void)advance("", "8");
    request.up_to = view.at.revision;
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    (void)advance("5", "6");
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
    assert_string_equal(record.watermark.value, "6");
}

static void other_keys_are_no_watermarks(void **state)
{
    (void)state;
    (void)ask("a");
    assert_kind(advance("", "8"), VERDICT_MISMATCH, /* write= */ false);
    assert_kind(act(setting("8", "")), VERDICT_MISMATCH, /* write= */ false);
    pass(TTL_MS);
    assert_kind(act(setting("8", "")), VERDICT_DONE, /* write= */ true);
    assert_kind(ask("a"), VERDICT_MISMATCH, /* write= */ false);
    assert_kind(act(doing(VERB_CLEAR, "o")), VERDICT_DONE, /* write= */ false);
    assert_string_equal(record.watermark.value, "8");
}

static void a_poll_begins_at_the_stored_value(void **state)
{
    (void)state;
    struct poll poll = watermark_begin(&record, /* now_ms= */ 5000, /* overlap_ms= */ 1000);
    assert_string_equal(poll.from, "");
    assert_int_equal(poll.start_ms, 4000);
    (void)advance("", "8");
    assert_string_equal(watermark_begin(&record, 5000, 1000).from, "8");
    assert_int_equal(record_retention_ms(&record), 0);
    assert_int_equal(record_key_info(&record, &view).state, KEY_FREE);
}

/* A reply of Kubernetes may have no Date. */
static void without_a_clock_a_poll_has_no_start(void **state)
{
    (void)state;
    assert_true(watermark_begin(&record, TIME_UNKNOWN, /* overlap_ms= */ 1000).start_ms ==
                TIME_UNKNOWN);
}

static void it_has_passed_what_is_below_it(void **state)
{
    (void)state;
    assert_false(watermark_has_passed(&record, "7"));
    (void)advance("", "8");
    assert_true(watermark_has_passed(&record, "7"));
    assert_false(watermark_has_passed(&record, "8"));
    assert_false(watermark_has_passed(&record, "10"));
    assert_false(watermark_has_passed(&record, "not a number"));
}

#define CASE(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_begins_with_its_first_value),
        CASE(it_moves_from_what_was_expected_and_forward),
        CASE(a_repeated_move_is_the_same_move),
        CASE(a_move_that_another_made_is_stale),
        CASE(another_move_with_the_same_id_is_stale),
        CASE(a_move_from_another_order_is_nobodys),
        CASE(a_move_is_not_found_again_after_a_set),
        CASE(the_expected_value_compares_by_order),
        CASE(a_move_to_the_same_place_writes_nothing),
        CASE(its_order_stays),
        CASE(its_order_can_be_said),
        CASE(an_operator_sets_it_anywhere_and_says_why),
        CASE(a_repeated_set_does_not_undo_what_came_after),
        CASE(other_keys_are_no_watermarks),
        CASE(a_poll_begins_at_the_stored_value),
        CASE(without_a_clock_a_poll_has_no_start),
        CASE(it_has_passed_what_is_below_it),
    };
    return cmocka_run_group_tests_name("rules_watermark", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the checker: good histories written by hand, each small enough to be checked by eye,
 * must be accepted, and the checker's other verdicts must fit. Bad histories are in
 * linear_refuse_test.c, random ones in linear_random_test.c. No lock runs here. The tests must not
 * depend on how the checker searches.
 */
#include "linear_story.h"

static void accepts_nothing_at_all(void **unused)
{
    (void)unused;
    accept_with(NULL, 0, NULL);
}

static void accepts_one_after_the_other(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        LOOK(3, FREE, 0, 1),        GRANTED(1, 4, 10, 12),        SEEN(3, 4, 15, 16),
        TRIED(2, BUSY, 20, 22),     RENEW(1, 4, OK, 30, 31),      RELEASE(1, 4, OK, 40, 41),
        LOOK(3, FREE, 45, 46),      RELEASE(1, 4, STALE, 50, 51), GRANTED(2, 5, 60, 61),
        RENEW(1, 4, STALE, 70, 71), SEEN(1, 5, 72, 73),
    };
    ACCEPT(ops);
}

static void accepts_overlapping_calls(void **unused)
{
    (void)unused;
    /* The answers only fit in an order other than that of the calls. */
    const struct linear_op ops[] = {
        GRANTED(1, 9, 0, 50),      GRANTED(2, 7, 5, 40), RELEASE(2, 7, OK, 41, 49),
        TRIED(3, BUSY, 1, 30),     LOOK(4, FREE, 2, 45), SEEN(5, 7, 3, 48),
        RELEASE(1, 9, OK, 51, 52),
    };
    ACCEPT(ops);
}

static void accepts_takeover_after_expiry(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        GRANTED(1, 4, 0, 5),          TRIED(2, BUSY, 90, 99),         GRANTED(2, 5, 100, 110),
        RENEW(1, 4, STALE, 120, 121), RELEASE(1, 4, STALE, 122, 123),
    };
    ACCEPT(ops);
}

static void accepts_expiry_at_both_ends_of_its_window(void **unused)
{
    (void)unused;
    /* Granted between 0 and 20, so ended between 100 and 120. */
    const struct linear_op early[] = {GRANTED(1, 4, 0, 20), LOOK(2, FREE, 100, 100)};
    const struct linear_op late[] = {GRANTED(1, 4, 0, 20), SEEN(2, 4, 120, 125)};
    ACCEPT(early);
    ACCEPT(late);
}

static void accepts_expiry_within_the_slack(void **unused)
{
    (void)unused;
    const struct linear_options slack = {.slack_ms = 10, .max_states = 1000};
    const struct linear_op early[] = {GRANTED(1, 4, 0, 0), GRANTED(2, 5, 90, 91)};
    const struct linear_op late[] = {GRANTED(1, 4, 0, 0), SEEN(2, 4, 110, 111)};
    accept_with(early, COUNT(early), &slack);
    accept_with(late, COUNT(late), &slack);
    REFUSE(early, "held by token 4");
    REFUSE(late, "token 4 does not stand");
}

static void accepts_unknown_acquire_that_held_and_expired(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        GRANTED(1, 4, 0, 1),     RELEASE(1, 4, OK, 2, 3), TRIED(2, UNKNOWN, 10, 0),
        TRIED(3, BUSY, 20, 21),  SEEN(3, 5, 30, 31),      TRIED(3, BUSY, 40, 41),
        LOOK(3, FREE, 140, 141), GRANTED(3, 6, 150, 151),
    };
    ACCEPT(ops);
}

static void accepts_unknown_acquire_that_never_happened(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {TRIED(2, UNKNOWN, 0, 0), LOOK(3, FREE, 10, 11),
                                    GRANTED(1, 4, 20, 21), LOOK(3, FREE, 500, 501)};
    ACCEPT(ops);
}

static void accepts_unknown_acquire_that_happened_late(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {TRIED(2, UNKNOWN, 0, 0), LOOK(3, FREE, 500, 501),
                                    TRIED(1, BUSY, 600, 601), LOOK(3, FREE, 710, 711)};
    ACCEPT(ops);
}

static void accepts_unknown_acquire_noticed_late(void **unused)
{
    (void)unused;
    /* Granted soon after 4, though first noticed at 50; so it may be gone again at 105. */
    const struct linear_op ops[] = {TRIED(2, UNKNOWN, 4, 0), RENEW(1, 2, STALE, 40, 41),
                                    TRIED(3, BUSY, 50, 51), LOOK(3, FREE, 105, 106)};
    ACCEPT(ops);
}

static void accepts_two_unknown_acquires(void **unused)
{
    (void)unused;
    /* The one that made client 1 hear busy cannot be the one that is renewed at 190. */
    const struct linear_op ops[] = {TRIED(2, UNKNOWN, 0, 0),   TRIED(1, BUSY, 0, 5),
                                    TRIED(3, UNKNOWN, 90, 0),  SEEN(1, 7, 95, 110),
                                    RENEW(3, 7, OK, 206, 208), SEEN(1, 7, 300, 301)};
    ACCEPT(ops);
}

static void accepts_unknown_reader_older_than_a_cooldown(void **unused)
{
    (void)unused;
    struct linear_op ops[] = {READER(1, 4, 0, 1), TRIED(2, UNKNOWN, 2, 0),
                              COOL_50(1, 4, OK, 10, 11), SEEN(3, 7, 30, 31)};
    ops[1].mode = LINEAR_SHARED;
    ACCEPT(ops);
    ops[1].call_ms = 12;
    ops[1].mode = LINEAR_EXCLUSIVE;
    REFUSE(ops, "status → held token 7");
}

static void accepts_unknown_token_learnt_from_a_look(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {TRIED(2, UNKNOWN, 0, 0),     SEEN(3, 7, 10, 11),
                                    RENEW(2, 7, OK, 90, 91),     SEEN(3, 7, 150, 151),
                                    RELEASE(2, 7, OK, 160, 161), GRANTED(3, 8, 170, 171)};
    ACCEPT(ops);
}

static void accepts_unknown_release_both_ways(void **unused)
{
    (void)unused;
    const struct linear_op done[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, UNKNOWN, 10, 0),
                                     GRANTED(2, 5, 20, 21)};
    const struct linear_op lost[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, UNKNOWN, 10, 0),
                                     TRIED(2, BUSY, 20, 21), SEEN(2, 4, 30, 31)};
    const struct linear_op late[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, UNKNOWN, 10, 0),
                                     SEEN(2, 4, 30, 31), LOOK(2, FREE, 40, 41)};
    ACCEPT(done);
    ACCEPT(lost);
    ACCEPT(late);
}

static void accepts_unknown_renew_that_prolonged(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), RENEW(1, 4, UNKNOWN, 50, 0),
                                    SEEN(2, 4, 140, 141), LOOK(2, FREE, 160, 161)};
    ACCEPT(ops);
}

static void accepts_readers_together(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        READER(1, 4, 0, 1),     READER(2, 5, 2, 3),        TRIED(3, BUSY, 5, 6),
        SEEN(3, 4, 7, 8),       SEEN(3, 5, 9, 10),         RELEASE(1, 4, OK, 11, 12),
        TRIED(3, BUSY, 13, 14), RELEASE(2, 5, OK, 15, 16), GRANTED(3, 6, 17, 18),
    };
    ACCEPT(ops);
}

static void accepts_semaphore_up_to_its_limit(void **unused)
{
    (void)unused;
    const struct linear_op busy = {OP(3, ACQUIRE, BUSY, 5, 6), .mode = LINEAR_SEMAPHORE,
                                   .limit = 2};
    /* The third slot is free by expiry; only later answers tell that it was token 5's. */
    const struct linear_op ops[] = {
        SLOT_OF_2(1, 4, 0, 1),          SLOT_OF_2(2, 5, 2, 3),    busy,
        SLOT_OF_2(3, 6, 99, 110),       RENEW(1, 4, OK, 98, 101), SEEN(1, 4, 120, 121),
        RELEASE(2, 5, STALE, 122, 123),
    };
    ACCEPT(ops);
}

static void accepts_cooldown(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        GRANTED(1, 4, 0, 1),      COOL_50(1, 4, OK, 10, 12), TRIED(2, COOLING, 20, 21),
        LOOK(2, COOLING, 61, 62), GRANTED(2, 5, 58, 63),     RELEASE(2, 5, OK, 70, 71),
        LOOK(2, FREE, 72, 73),
    };
    ACCEPT(ops);
}

static void accepts_cleared_cooldown(void **unused)
{
    (void)unused;
    const struct linear_op clear = {OP(3, CLEAR, OK, 20, 21)};
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), COOL_50(1, 4, OK, 10, 12), clear,
                                    GRANTED(2, 5, 22, 23)};
    ACCEPT(ops);
}

static void accepts_break(void **unused)
{
    (void)unused;
    const struct linear_op maybe_broken = {OP(9, BREAK_NOW, UNKNOWN, 40, 0)};
    const struct linear_op ops[] = {
        READER(1, 4, 0, 1),    READER(2, 5, 2, 3),
        BREAK(9, 10, 11),      RENEW(1, 4, STALE, 12, 13),
        GRANTED(3, 6, 14, 15), RELEASE(2, 5, STALE, 16, 17),
        maybe_broken,          GRANTED(4, 7, 50, 51),
    };
    ACCEPT(ops);
}

static void accepts_busy_while_somebody_is_in_line(void **unused)
{
    (void)unused;
    /* Freed at 11; the one in line accepts at 30, and the newcomer at 20 hears busy. */
    const struct linear_op granted[] = {
        GRANTED(1, 4, 0, 1),      WAITED(2, OK, 5, 5, 31), RELEASE(1, 4, OK, 10, 11),
        LOOK(3, OFFERED, 15, 16), TRIED(3, BUSY, 20, 21),  RELEASE(2, 5, OK, 40, 41),
    };
    /* The one in line gives up instead; its place counts from where it found the key taken. */
    const struct linear_op gave_up[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 31),
                                        RELEASE(1, 4, OK, 10, 11), TRIED(3, BUSY, 20, 21)};
    ACCEPT(granted);
    ACCEPT(gave_up);
}

/* The release at 10 lets in who waits; that is seen, and over before the waiter has heard of it. */
static void accepts_a_grant_nobody_was_told_of(void **unused)
{
    (void)unused;
    const struct linear_op broken[] = {
        GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60), RELEASE(1, 4, OK, 10, 11),
        SEEN(3, 7, 12, 13),  BREAK(9, 20, 21),          LOOK(3, FREE, 30, 31),
    };
    const struct linear_op ran_out[] = {
        GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 200), RELEASE(1, 4, OK, 10, 11),
        SEEN(3, 7, 12, 13),  GRANTED(3, 8, 111, 112),
    };
    const struct linear_op granted_again[] = {
        GRANTED(1, 4, 0, 1), WAITED(2, OK, 9, 5, 60), RELEASE(1, 4, OK, 10, 11),
        SEEN(3, 7, 12, 13),  BREAK(9, 20, 21),        RELEASE(2, 9, OK, 61, 62),
    };
    const struct linear_op two_waiters[] = {
        GRANTED(1, 4, 0, 1),       WAITED(2, BUSY, 0, 5, 60), WAITED(3, BUSY, 0, 6, 61),
        RELEASE(1, 4, OK, 10, 11), SEEN(4, 7, 12, 13),        BREAK(9, 20, 21),
        SEEN(4, 8, 25, 26),        BREAK(9, 30, 31),          LOOK(4, FREE, 35, 36),
    };
    ACCEPT(broken);
    ACCEPT(ran_out);
    ACCEPT(granted_again);
    ACCEPT(two_waiters);
}

static void accepts_revival_only_when_asked(void **unused)
{
    (void)unused;
    const struct linear_options revive = {.revive = true, .max_states = 1000};
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), LOOK(2, FREE, 110, 111),
                                    RENEW(1, 4, OK, 120, 121), SEEN(2, 4, 130, 131)};
    const struct linear_op taken[] = {GRANTED(1, 4, 0, 1), GRANTED(2, 5, 110, 111),
                                      RELEASE(2, 5, OK, 115, 116), RENEW(1, 4, OK, 120, 121)};
    accept_with(ops, COUNT(ops), &revive);
    REFUSE(ops, "renew token 4");
    refuse_with(taken, COUNT(taken), &revive, "renew token 4");
}

static void skips_cached_looks(void **unused)
{
    (void)unused;
    struct linear_op ops[] = {GRANTED(1, 4, 0, 1), LOOK(2, FREE, 10, 11)};
    REFUSE(ops, "status");
    ops[1].cached = true;
    ACCEPT(ops);
}

/* The door. */

static void judges_keys_apart(void **unused)
{
    (void)unused;
    struct linear_op ops[] = {GRANTED(1, 4, 0, 10), GRANTED(2, 4, 0, 10), GRANTED(3, 5, 20, 30)};
    ops[1].key = "a";
    ops[2].key = "a";
    REFUSE(ops, "a: op 2 (client 3");
    ops[2].key = "b";
    ACCEPT(ops);
}

static void says_undecided_at_the_bound(void **unused)
{
    (void)unused;
    const struct linear_options tight = {.max_states = 2};
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, OK, 2, 3),
                                    GRANTED(2, 5, 4, 5)};
    struct linear_report report;
    assert_int_equal(judge(ops, COUNT(ops), &tight, &report), LINEAR_UNDECIDED);
    assert_string_equal(report.key, "db");
    assert_int_equal(report.states, 2);
    ACCEPT(ops);
}

static void says_undecided_when_too_long(void **unused)
{
    (void)unused;
    static struct linear_op ops[LINEAR_KEY_OPS_MAX + 1];
    struct linear_report report;
    for (size_t i = 0; i < COUNT(ops); i++) {
        ops[i] = (struct linear_op)LOOK(1, FREE, (int64_t)i, (int64_t)i + 5);
    }
    accept_with(ops, LINEAR_KEY_OPS_MAX, NULL);
    assert_int_equal(judge(ops, COUNT(ops), NULL, &report), LINEAR_UNDECIDED);
}

static void says_malformed(void **unused)
{
    (void)unused;
    const struct linear_op bad[] = {
        {OP(1, RENEW, FREE, 0, 1), .token = 4},
        {OP(1, ACQUIRE, BUSY, 5, 4)},
        {OP(1, ACQUIRE, OK, 0, 1), .token = 0},
        {OP(1, CLEAR, STALE, 0, 1)},
        {OP(1, ACQUIRE, BUSY, 0, 1), .limit = 0, .mode = LINEAR_SEMAPHORE},
    };
    struct linear_report report;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(judge(&bad[i], 1, NULL, &report), LINEAR_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_nothing_at_all),
        cmocka_unit_test(accepts_one_after_the_other),
        cmocka_unit_test(accepts_overlapping_calls),
        cmocka_unit_test(accepts_takeover_after_expiry),
        cmocka_unit_test(accepts_expiry_at_both_ends_of_its_window),
        cmocka_unit_test(accepts_expiry_within_the_slack),
        cmocka_unit_test(accepts_unknown_acquire_that_held_and_expired),
        cmocka_unit_test(accepts_unknown_acquire_that_never_happened),
        cmocka_unit_test(accepts_unknown_acquire_that_happened_late),
        cmocka_unit_test(accepts_unknown_acquire_noticed_late),
        cmocka_unit_test(accepts_two_unknown_acquires),
        cmocka_unit_test(accepts_unknown_reader_older_than_a_cooldown),
        cmocka_unit_test(accepts_unknown_token_learnt_from_a_look),
        cmocka_unit_test(accepts_unknown_release_both_ways),
        cmocka_unit_test(accepts_unknown_renew_that_prolonged),
        cmocka_unit_test(accepts_readers_together),
        cmocka_unit_test(accepts_semaphore_up_to_its_limit),
        cmocka_unit_test(accepts_cooldown),
        cmocka_unit_test(accepts_cleared_cooldown),
        cmocka_unit_test(accepts_break),
        cmocka_unit_test(accepts_busy_while_somebody_is_in_line),
        cmocka_unit_test(accepts_a_grant_nobody_was_told_of),
        cmocka_unit_test(accepts_revival_only_when_asked),
        cmocka_unit_test(skips_cached_looks),
        cmocka_unit_test(judges_keys_apart),
        cmocka_unit_test(says_undecided_at_the_bound),
        cmocka_unit_test(says_undecided_when_too_long),
        cmocka_unit_test(says_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

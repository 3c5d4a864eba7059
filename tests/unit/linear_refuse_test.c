/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on bad histories: each breaks a single guarantee of the lock and must be refused,
 * with a text that names the operation. No lock runs here, and nothing here may depend on how the
 * checker searches.
 */
#include "linear_story.h"

static void refuses_two_holders(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 10), GRANTED(2, 5, 20, 30),
                                    RELEASE(1, 4, OK, 40, 50)};
    REFUSE(ops, "db: op 1 (client 2, acquire exclusive → ok token 5, 20..30 ms) cannot be placed: "
                "held by token 4, which cannot end before 100 ms");
}

static void refuses_token_that_does_not_grow(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 5, 0, 1), RELEASE(1, 5, OK, 2, 3),
                                    GRANTED(2, 4, 10, 11)};
    REFUSE(ops, "op 0 (client 1, acquire exclusive → ok token 5, 0..1 ms) cannot be placed: "
                "token 4, which is smaller, is granted after it");
}

static void refuses_token_used_again(void **unused)
{
    (void)unused;
    const struct linear_op released[] = {GRANTED(1, 5, 0, 1), RELEASE(1, 5, OK, 2, 3),
                                         GRANTED(2, 5, 10, 11)};
    const struct linear_op expired[] = {GRANTED(1, 5, 0, 1), GRANTED(2, 5, 200, 201)};
    REFUSE(released, "tokens up to 5 were granted before");
    REFUSE(expired, "tokens up to 5 were granted before");
}

static void refuses_grant_before_expiry_was_possible(void **unused)
{
    (void)unused;
    const struct linear_op first[] = {GRANTED(1, 4, 0, 5), GRANTED(2, 5, 80, 99)};
    const struct linear_op renewed[] = {GRANTED(1, 4, 0, 5), RENEW(1, 4, OK, 50, 51),
                                        GRANTED(2, 5, 140, 149)};
    REFUSE(first, "cannot end before 100 ms");
    REFUSE(renewed, "cannot end before 150 ms");
}

static void refuses_free_while_held(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 5), LOOK(2, FREE, 10, 11),
                                    RELEASE(1, 4, OK, 20, 21)};
    const struct linear_op offered[] = {GRANTED(1, 4, 0, 5), LOOK(2, OFFERED, 10, 11)};
    REFUSE(ops, "op 1 (client 2, status → free");
    REFUSE(offered, "held by token 4");
}

static void refuses_held_long_after_expiry(void **unused)
{
    (void)unused;
    const struct linear_op seen[] = {GRANTED(1, 4, 0, 5), SEEN(2, 4, 106, 107)};
    const struct linear_op busy[] = {GRANTED(1, 4, 0, 5), TRIED(2, BUSY, 106, 107)};
    const struct linear_op renewed[] = {GRANTED(1, 4, 0, 5), RENEW(1, 4, OK, 106, 107)};
    REFUSE(seen, "token 4 does not stand");
    REFUSE(busy, "nobody is in line");
    REFUSE(renewed, "token 4 does not stand");
}

static void refuses_renew_after_takeover(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 20), GRANTED(2, 5, 100, 105),
                                    RENEW(1, 4, OK, 110, 111)};
    REFUSE(ops, "op 2 (client 1, renew token 4 → ok");
}

static void refuses_release_with_stale_token(void **unused)
{
    (void)unused;
    const struct linear_op twice[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, OK, 2, 3),
                                      RELEASE(1, 4, OK, 4, 5)};
    const struct linear_op foreign[] = {GRANTED(1, 4, 0, 1), RELEASE(2, 3, OK, 2, 3)};
    REFUSE(twice, "op 2 (client 1, release token 4 → ok");
    REFUSE(foreign, "token 3 does not stand");
}

static void refuses_stale_while_standing(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), RENEW(1, 4, STALE, 2, 3)};
    REFUSE(ops, "held by token 4");
}

static void refuses_busy_on_a_free_key(void **unused)
{
    (void)unused;
    const struct linear_op never[] = {TRIED(1, BUSY, 0, 1)};
    const struct linear_op again[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, OK, 2, 3),
                                      TRIED(2, BUSY, 4, 5), GRANTED(3, 5, 6, 7)};
    REFUSE(never, "nothing stands in its way and nobody is in line");
    REFUSE(again, "op 2 (client 2, acquire exclusive → busy");
}

static void refuses_two_waiters_that_excuse_each_other(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {WAITED(1, BUSY, 0, 0, 50), WAITED(2, BUSY, 0, 0, 50)};
    REFUSE(ops, "nobody is in line");
}

static void refuses_busy_after_the_line_is_empty(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {
        GRANTED(1, 4, 0, 1),
        WAITED(2, BUSY, 0, 5, 31),
        RELEASE(1, 4, OK, 10, 11),
        TRIED(3, BUSY, 40, 41),
    };
    REFUSE(ops, "op 3 (client 3");
}

static void refuses_reader_with_writer(void **unused)
{
    (void)unused;
    const struct linear_op reader[] = {GRANTED(1, 4, 0, 1), READER(2, 5, 2, 3)};
    const struct linear_op writer[] = {READER(1, 4, 0, 1), READER(2, 5, 2, 3),
                                       RELEASE(1, 4, OK, 4, 5), GRANTED(3, 6, 6, 7)};
    REFUSE(reader, "acquire shared → ok token 5");
    REFUSE(writer, "held by token 5");
}

static void refuses_semaphore_above_its_limit(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {SLOT_OF_2(1, 4, 0, 1), SLOT_OF_2(2, 5, 2, 3),
                                    SLOT_OF_2(3, 6, 4, 5)};
    /* One slot may be taken from the expired one, but not two. */
    const struct linear_op taken_twice[] = {
        SLOT_OF_2(1, 4, 0, 1),        SLOT_OF_2(2, 5, 2, 3),     SLOT_OF_2(3, 6, 102, 103),
        RENEW(1, 4, STALE, 110, 111), RENEW(2, 5, OK, 101, 103), SLOT_OF_2(1, 7, 112, 113),
    };
    REFUSE(ops, "acquire one of 2 → ok token 6");
    REFUSE(taken_twice, "op 5 (client 1");
}

static void refuses_grant_in_a_cooldown(void **unused)
{
    (void)unused;
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), COOL_50(1, 4, OK, 10, 12),
                                    GRANTED(2, 5, 40, 59)};
    const struct linear_op free_key[] = {GRANTED(1, 4, 0, 1), COOL_50(1, 4, OK, 10, 12),
                                         LOOK(2, FREE, 40, 59)};
    REFUSE(ops, "cooling, which cannot end before 60 ms");
    REFUSE(free_key, "cooling, which cannot end before 60 ms");
}

static void refuses_cooling_after_its_end(void **unused)
{
    (void)unused;
    const struct linear_op tried[] = {GRANTED(1, 4, 0, 1), COOL_50(1, 4, OK, 10, 12),
                                      TRIED(2, COOLING, 63, 64)};
    const struct linear_op looked[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, OK, 10, 12),
                                       LOOK(2, COOLING, 13, 14)};
    REFUSE(tried, "no cooldown runs");
    REFUSE(looked, "no cooldown runs");
}

static void refuses_unknown_acquire_granted_twice(void **unused)
{
    (void)unused;
    const struct linear_op seen[] = {TRIED(2, UNKNOWN, 0, 0), SEEN(3, 7, 10, 11),
                                     GRANTED(3, 8, 150, 151), RELEASE(3, 8, OK, 160, 161),
                                     SEEN(1, 9, 170, 171)};
    const struct linear_op busy[] = {TRIED(2, UNKNOWN, 0, 0), TRIED(3, BUSY, 10, 11),
                                     LOOK(3, FREE, 150, 151), TRIED(3, BUSY, 160, 161)};
    REFUSE(seen, "op 4 (client 1, status → held token 9");
    REFUSE(busy, "op 3 (client 3");
}

static void refuses_unknown_acquire_that_expired_too_early(void **unused)
{
    (void)unused;
    /* It cannot have been granted before 50, so it lasts till 150. */
    const struct linear_op ops[] = {GRANTED(1, 4, 0, 1), TRIED(2, UNKNOWN, 10, 0),
                                    RELEASE(1, 4, OK, 50, 51), TRIED(3, BUSY, 60, 61),
                                    LOOK(3, FREE, 140, 141)};
    REFUSE(ops, "held by an acquire without an answer, which cannot end before 150 ms");
}

static void refuses_unknown_token_out_of_order(void **unused)
{
    (void)unused;
    /* The holder between 4 and 6 must have had token 5. */
    struct linear_op ops[] = {GRANTED(1, 4, 0, 1),     RELEASE(1, 4, OK, 2, 3),
                              TRIED(2, UNKNOWN, 4, 0), SEEN(3, 5, 10, 11),
                              LOOK(3, FREE, 150, 151), GRANTED(3, 6, 160, 161)};
    ACCEPT(ops);
    ops[3].token = 3;
    REFUSE(ops, "token 3 does not stand");
    ops[3].token = 7;
    REFUSE(ops, "tokens up to 7 were granted before");
}

/* A token that was never granted: each time the explaining event is missing. */
static void refuses_a_token_nobody_in_line_can_have_had(void **unused)
{
    (void)unused;
    const struct linear_op did_not_wait[] = {GRANTED(1, 4, 0, 1), TRIED(2, BUSY, 5, 60),
                                             RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                             BREAK(9, 20, 21)};
    const struct linear_op had_left[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 9),
                                         RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                         BREAK(9, 20, 21)};
    const struct linear_op not_yet_there[] = {GRANTED(1, 4, 0, 1), RELEASE(1, 4, OK, 10, 11),
                                              SEEN(3, 7, 12, 13), BREAK(9, 20, 21),
                                              WAITED(2, BUSY, 0, 25, 60)};
    const struct linear_op still_held[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60),
                                           SEEN(3, 7, 12, 13), RELEASE(1, 4, OK, 20, 21)};
    const struct linear_op too_small[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60),
                                          RELEASE(1, 4, OK, 10, 11), SEEN(3, 3, 12, 13),
                                          BREAK(9, 20, 21)};
    REFUSE(did_not_wait, "token 7 does not stand");
    REFUSE(had_left, "token 7 does not stand");
    REFUSE(not_yet_there, "token 7 does not stand");
    REFUSE(still_held, "token 7 does not stand");
    REFUSE(too_small, "token 3 does not stand");
}

static void refuses_a_grant_nobody_was_told_of_that_vanishes(void **unused)
{
    (void)unused;
    const struct linear_op not_broken[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60),
                                           RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                           LOOK(3, FREE, 30, 31)};
    const struct linear_op granted_beside[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60),
                                               RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                               GRANTED(3, 8, 30, 31)};
    const struct linear_op outlives_the_wait[] = {GRANTED(1, 4, 0, 1), WAITED(2, BUSY, 0, 5, 60),
                                                  RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                                  SEEN(3, 7, 62, 63)};
    const struct linear_op twice[] = {GRANTED(1, 4, 0, 1),       WAITED(2, BUSY, 0, 5, 60),
                                      RELEASE(1, 4, OK, 10, 11), SEEN(3, 7, 12, 13),
                                      BREAK(9, 20, 21),          SEEN(3, 8, 25, 26)};
    REFUSE(not_broken, "held by token 7");
    REFUSE(granted_beside, "held by token 7");
    REFUSE(outlives_the_wait, "token 7 does not stand");
    REFUSE(twice, "token 8 does not stand");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_two_holders),
        cmocka_unit_test(refuses_token_that_does_not_grow),
        cmocka_unit_test(refuses_token_used_again),
        cmocka_unit_test(refuses_grant_before_expiry_was_possible),
        cmocka_unit_test(refuses_free_while_held),
        cmocka_unit_test(refuses_held_long_after_expiry),
        cmocka_unit_test(refuses_renew_after_takeover),
        cmocka_unit_test(refuses_release_with_stale_token),
        cmocka_unit_test(refuses_stale_while_standing),
        cmocka_unit_test(refuses_busy_on_a_free_key),
        cmocka_unit_test(refuses_two_waiters_that_excuse_each_other),
        cmocka_unit_test(refuses_busy_after_the_line_is_empty),
        cmocka_unit_test(refuses_reader_with_writer),
        cmocka_unit_test(refuses_semaphore_above_its_limit),
        cmocka_unit_test(refuses_grant_in_a_cooldown),
        cmocka_unit_test(refuses_cooling_after_its_end),
        cmocka_unit_test(refuses_unknown_acquire_granted_twice),
        cmocka_unit_test(refuses_unknown_acquire_that_expired_too_early),
        cmocka_unit_test(refuses_unknown_token_out_of_order),
        cmocka_unit_test(refuses_a_token_nobody_in_line_can_have_had),
        cmocka_unit_test(refuses_a_grant_nobody_was_told_of_that_vanishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

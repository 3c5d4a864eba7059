/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seeded generator: the published numbers of splitmix64, the same on every machine, and a range
 * whose both ends are reached and not exceeded.
 */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_published_numbers_come_out(void **state)
{
    (void)state;
    static const uint64_t published[] = {6457827717110365317U, 3203168211198807973U,
                                         9817491932198370423U, 4593380528125082431U,
                                         16408922859458223821U};
    struct random random = {.state = 1234567};
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        assert_true(random_next(&random) == published[i]);
}

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct random one = {.state = 42}, same = {.state = 42}, other = {.state = 43};
    unsigned equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t number = random_next(&one);
        assert_true(number == random_next(&same));
        equal += number == random_next(&other) ? 1 : 0;
    }
    assert_int_equal(equal, 0);
}

static void a_range_is_kept_and_used(void **state)
{
    (void)state;
    struct random random = {.state = 7};
    unsigned seen[6] = {0};
    for (int i = 0; i < 6000; i++) {
        uint64_t number = random_below(&random, 6);
        assert_in_range(number, 0, 5);
        seen[number]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 800, 1200);
    assert_int_equal(random_below(&random, 1), 0);
    assert_int_equal(random_below(&random, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_numbers_come_out),
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(a_range_is_kept_and_used),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}

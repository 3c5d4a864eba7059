/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guess behind "unknown command": every kind of typing error, ties, and words beyond the limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/nearest.h"

static void each_kind_of_slip_counts_once(void **state)
{
    (void)state;
    assert_int_equal(nearest_distance("renew", "renew"), 0);
    assert_int_equal(nearest_distance("renw", "renew"), 1);
    assert_int_equal(nearest_distance("rennew", "renew"), 1);
    assert_int_equal(nearest_distance("remew", "renew"), 1);
    assert_int_equal(nearest_distance("renwe", "renew"), 1);
    assert_int_equal(nearest_distance("", "renew"), 5);
    assert_int_equal(nearest_distance("verison", "version"), 1);
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
}

static void the_closest_word_wins_and_the_first_on_a_tie(void **state)
{
    (void)state;
    static const char *const words[] = {"help", "version", "helm"};
    assert_string_equal(nearest_word("vresion", words, 3), "version");
    assert_string_equal(nearest_word("hel", words, 3), "help");
    assert_null(nearest_word("help", words, 0));
}

static void a_word_that_nothing_resembles_has_no_match(void **state)
{
    (void)state;
    static const char *const words[] = {"release", "status", "list", "ttl"};
    assert_string_equal(nearest_match("relaese", words, 4), "release");
    assert_string_equal(nearest_match("tll", words, 4), "ttl");
    assert_string_equal(nearest_match("stat", words, 4), "status"); /* its beginning */
    assert_string_equal(nearest_match("li", words, 4), "list");
    assert_null(nearest_match("l", words, 4));
    assert_null(nearest_match("", words, 4));
    assert_null(nearest_match("frobnicate", words, 4));
    assert_null(nearest_match("rest", words, 4));
    assert_null(nearest_match("list", words, 0));
}

static void letters_beyond_the_limit_are_not_looked_at(void **state)
{
    (void)state;
    char long_word[NEAREST_WORD_MAX + 10] = {0};
    for (size_t i = 0; i + 1 < sizeof(long_word); i++) {
        long_word[i] = 'a';
    }
    assert_int_equal(nearest_distance(long_word, ""), NEAREST_WORD_MAX);
    assert_int_equal(nearest_distance(long_word, long_word), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_slip_counts_once),
        cmocka_unit_test(the_closest_word_wins_and_the_first_on_a_tie),
        cmocka_unit_test(a_word_that_nothing_resembles_has_no_match),
        cmocka_unit_test(letters_beyond_the_limit_are_not_looked_at),
    };
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Durations: valid texts, invalid ones, and those out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/duration.h"

#include <string.h>

static enum duration_result read_words(const char *words, int64_t *out_ms)
{
    return duration_read(words, strlen(words), out_ms);
}

static void every_unit_and_fractions_are_read(void **state)
{
    static const struct {
        const char *words;
        int64_t length_ms;
    } good[] = {
        {"500ms", 500},
        {"1.5s", 1500},
        {"30s", 30000},
        {"5m", 300000},
        {"24h", 86400000},
        {"30", 30000},
        {"0", 0},
        {"0ms", 0},
        {"0.5", 500},
        {"4m19s", 259000},
        {"1h30m", 5400000},
        {"1h2m3s4ms", 3723004},
        {"1h4ms", 3600004},
        {"0.1ms", 1},
        {"0.0000000001s", 1},
        {"1.0000000000s", 1000},
        {"1.25h", 4500000},
        {"0.999999999h", 3600000},
        {"007s", 7000},
        {"1.5m0.5s", 90500},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t length_ms = -1;
        if (read_words(good[i].words, &length_ms) != DURATION_OK || length_ms != good[i].length_ms)
            fail_msg("%s is %lld ms", good[i].words, (long long)length_ms);
    }
}

static void everything_else_is_refused_and_changes_nothing(void **state)
{
    static const char *const broken[] = {
        "",     "s",    "ms",   "-",     "--5", "+5",   " 5",    "5 ",    "5 s",    "1.",
        ".5",   "1.s",  "1e3",  "0x10",  "5d",  "5sec", "5S",    "1s1",   "11s5",   "s5",
        "1s1h", "1s1s", "1m1m", "1ms1s", "nan", "inf",  "5m,3s", "1..5s", "1.5.5s", "-x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        int64_t length_ms = 42;
        if (read_words(broken[i], &length_ms) != DURATION_BROKEN || length_ms != 42)
            fail_msg("'%s' is %lld ms", broken[i], (long long)length_ms);
    }
}

static void below_zero_is_told_apart(void **state)
{
    int64_t length_ms = 42;
    (void)state;
    assert_int_equal(read_words("-5s", &length_ms), DURATION_NEGATIVE);
    assert_int_equal(read_words("-0", &length_ms), DURATION_NEGATIVE);
    assert_int_equal(length_ms, 42);
}

static void too_long_is_told_apart_and_never_wraps(void **state)
{
    static const char *const words[] = {
        "8784001h",
        "31622400001s",
        "99999999999999999999999999999h",
        "9223372036854775808ms",
        "8784000h1ms",
        "18446744073709551616",
    };
    int64_t length_ms = 42;
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(read_words(words[i], &length_ms), DURATION_TOO_LONG);
    assert_int_equal(length_ms, 42);
    assert_int_equal(read_words("8784000h", &length_ms), DURATION_OK);
    assert_true(length_ms == DURATION_MAX_MS);
}

static void bytes_behind_the_end_are_not_looked_at(void **state)
{
    int64_t length_ms = 0;
    (void)state;
    assert_int_equal(duration_read("15sX", 3, &length_ms), DURATION_OK);
    assert_int_equal(length_ms, 15000);
}

static void lengths_are_shown_in_whole_seconds(void **state)
{
    char words[DURATION_SHOWN];
    (void)state;
    assert_string_equal(duration_show(0, words), "0s");
    assert_string_equal(duration_show(-7, words), "0s");
    assert_string_equal(duration_show(1, words), "1s");
    assert_string_equal(duration_show(12000, words), "12s");
    assert_string_equal(duration_show(259000, words), "4m19s");
    assert_string_equal(duration_show(60000, words), "1m0s");
    assert_string_equal(duration_show(12000000, words), "3h20m");
    assert_string_equal(duration_show(DURATION_MAX_MS, words), "8784000h0m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_and_fractions_are_read),
        cmocka_unit_test(everything_else_is_refused_and_changes_nothing),
        cmocka_unit_test(below_zero_is_told_apart),
        cmocka_unit_test(too_long_is_told_apart_and_never_wraps),
        cmocka_unit_test(bytes_behind_the_end_are_not_looked_at),
        cmocka_unit_test(lengths_are_shown_in_whole_seconds),
    };
    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}

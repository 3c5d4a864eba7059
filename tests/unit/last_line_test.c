/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of an output, for all chunk boundaries and all bytes. */
#include "base/last_line.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Chunks of every length must give the same result. */
static void check(const char *output, size_t length, const char *expected)
{
    for (size_t piece = 1; piece <= length + 1; piece++) {
        struct last_line line = {0};
        char out[LAST_LINE_MOST + 1];
        for (size_t at = 0; at < length; at += piece)
            last_line_add(&line, output + at, length - at < piece ? length - at : piece);
        last_line_read(&line, out);
        assert_string_equal(out, expected);
        assert_true(text_is_clean(out, strlen(out)));
    }
}

#define CHECK(output, expected) check(output, sizeof(output) - 1, expected)

static void the_last_line_with_anything_in_it(void **state)
{
    (void)state;
    CHECK("", "");
    CHECK("\n", "");
    CHECK("\n\n\r\n", "");
    CHECK("one", "one");
    CHECK("one\n", "one");
    CHECK("one\ntwo", "two");
    CHECK("one\ntwo\n", "two");
    CHECK("one\ntwo\n\n\n", "two");
    CHECK("one\r\ntwo\r\n", "two");
    CHECK("one\n \n", " ");
    CHECK("10 %\r50 %\r100 %", "100 %");
    CHECK("10 %\r50 %\r100 %\r\n", "100 %");
    CHECK("\n\none\n", "one");
}

static void whatever_bytes_become_clean_text(void **state)
{
    (void)state;
    CHECK("a\tb", "a b");
    CHECK("\033[1mred\033[0m", "?[1mred?[0m");
    CHECK("a\0b\n", "a?b");
    CHECK("\xff\xfe!\n", "?"
                         "?!");
    CHECK("gr\xc3\xb6\xc3\x9f\n", "gr\xc3\xb6\xc3\x9f");
    CHECK("half \xc3", "half ?");
    CHECK("\xc2\x80next", "?"
                          "?next");
    CHECK("\xed\xa0\x80", "?"
                          "?"
                          "?");
}

static void a_long_line_is_cut_between_characters(void **state)
{
    (void)state;
    static char output[3 * LAST_LINE_MOST];
    char expected[LAST_LINE_MOST + 1];
    memset(output, 'x', sizeof output);
    memset(expected, 'x', LAST_LINE_MOST);
    expected[LAST_LINE_MOST] = '\0';
    check(output, sizeof output, expected);
    output[sizeof output - 1] = '\n';
    check(output, sizeof output, expected);
    output[LAST_LINE_MOST - 1] = '\xc3'; /* half of it would be left */
    output[LAST_LINE_MOST] = '\xb6';
    expected[LAST_LINE_MOST - 1] = '\0';
    check(output, sizeof output, expected);
    output[sizeof output - 5] = '\n';
    check(output, sizeof output, "xxx");
}

/* The result never exceeds its limit, and contains only bytes that were kept. */
static void noise_is_survived(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        struct last_line line = {0};
        char bytes[97], out[LAST_LINE_MOST + 1];
        for (int piece = 0; piece < 40; piece++) {
            for (size_t i = 0; i < sizeof bytes; i++) {
                seed = seed * 1664525 + 1013904223;
                bytes[i] = (char)(seed >> 24);
            }
            last_line_add(&line, bytes, seed % sizeof bytes);
        }
        last_line_read(&line, out);
        assert_true(text_is_clean(out, strlen(out)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_with_anything_in_it),
        cmocka_unit_test(whatever_bytes_become_clean_text),
        cmocka_unit_test(a_long_line_is_cut_between_characters),
        cmocka_unit_test(noise_is_survived),
    };
    return cmocka_run_group_tests_name("last_line", tests, NULL, NULL);
}

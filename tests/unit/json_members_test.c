/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects and lists: every escape, surrogates, white space, every cut, every limit, every kind
 * of value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json_members.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS_MOST = 3, MEMORY_SIZE = 64 };

/* Parses a copy without room behind it, so that a read beyond the end is found. */
static bool parse_exactly(const char *json, size_t length, size_t memory_size,
                          struct json_member *out, char *memory, size_t *out_count)
{
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, json, length);
    copy[length] = '\0';
    bool good = json_members_parse(copy, out, PAIRS_MOST, memory, memory_size, out_count) &&
                json_members_are_strings(out, *out_count);
    free(copy);
    return good;
}

static void strings_are_decoded(void **state)
{
    static const struct {
        const char *json, *name, *value;
    } rows[] = {
        {"{\"a\":\"b\"}", "a", "b"},
        {" \t\r\n{ \"a\" : \"b\" } ", "a", "b"},
        {"{\"\":\"\"}", "", ""},
        {"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "a", "\"\\/\b\f\n\r\t"},
        {"{\"a\":\"\\u0041\\u00e4\\u00E4\\u20ac\"}", "a", "A\xc3\xa4\xc3\xa4\xe2\x82\xac"},
        {"{\"a\":\"\\ud83d\\ude00\"}", "a", "\xf0\x9f\x98\x80"},
        {"{\"a\":\"\\uDBFF\\uDFFF\"}", "a", "\xf4\x8f\xbf\xbf"},
        {"{\"a\":\"\\ud800\\udc00\"}", "a", "\xf0\x90\x80\x80"},
        {"{\"a\":\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"}", "a",
         "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"},
        {"{\"\xc3\xa4\":\"{},:[]\"}", "\xc3\xa4", "{},:[]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_member pairs[PAIRS_MOST];
        char memory[MEMORY_SIZE];
        size_t count = 0, length = strlen(rows[i].json);
        assert_true(parse_exactly(rows[i].json, length, sizeof memory, pairs, memory, &count));
        assert_int_equal(count, 1);
        assert_string_equal(pairs[0].name, rows[i].name);
        assert_string_equal(pairs[0].value, rows[i].value);
        size_t end = strlen(rows[i].json);
        while (rows[i].json[end - 1] == ' ')
            end--;
        for (size_t cut = 0; cut < end; cut++)
            assert_false(parse_exactly(rows[i].json, cut, sizeof memory, pairs, memory, &count));
    }
}

static void everything_else_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "{",
        "null",
        "[]",
        "{}x",
        "{}{}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":[\"b\"]}",
        "{a:\"b\"}",
        "{'a':'b'}",
        "{\"a\":\"b\",}",
        "{\"a\":\"b\" \"c\":\"d\"}",
        "{\"a\" \"b\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u00g0\"}",
        "{\"a\":\"\\u 041\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\\ud83d\"}",
        "{\"a\":\"\\ud83dx\"}",
        "{\"a\":\"\\ud83d\\n\"}",
        "{\"a\":\"\\ud83d\\u0041\"}",
        "{\"a\":\"\\ud83d\\ud83d\"}",
        "{\"a\":\"\\ude00\"}",
        "{\"a\":\"\\ude00\\ud83d\"}",
        "{\"a\":\"b\nc\"}",
        "{\"a\":\"b\tc\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_member pairs[PAIRS_MOST];
        char memory[MEMORY_SIZE];
        size_t count = 0;
        if (parse_exactly(rows[i], strlen(rows[i]), sizeof memory, pairs, memory, &count))
            fail_msg("accepted: %s", rows[i]);
    }
}

static void limits_are_exact(void **state)
{
    static const char three[] = "{\"a\":\"b\",\"c\":\"d\",\"e\":\"f\"}";
    static const char four[] = "{\"a\":\"b\",\"c\":\"d\",\"e\":\"f\",\"g\":\"h\"}";
    static const char wide[] = "{\"a\":\"\\ud83d\\ude00\"}";
    struct json_member pairs[PAIRS_MOST];
    size_t count = 9;
    (void)state;
    for (size_t size = 0; size <= 12; size++) {
        char *memory = malloc(size > 0 ? size : 1); /* the sanitizer knows its end */
        assert_non_null(memory);
        assert_int_equal(parse_exactly(three, strlen(three), size, pairs, memory, &count),
                         size == 12);
        if (size <= 7)
            assert_int_equal(parse_exactly(wide, strlen(wide), size, pairs, memory, &count),
                             size == 7);
        free(memory);
    }
    char memory[MEMORY_SIZE];
    assert_true(parse_exactly("{}", 2, 0, pairs, memory, &count));
    assert_int_equal(count, 0);
    assert_true(parse_exactly(three, strlen(three), sizeof memory, pairs, memory, &count));
    assert_int_equal(count, 3);
    assert_string_equal(pairs[2].value, "f");
    assert_false(parse_exactly(four, strlen(four), sizeof memory, pairs, memory, &count));
}

static void other_values_keep_their_text(void **state)
{
    static const struct {
        const char *json;
        enum json_kind kind;
        const char *value;
    } rows[] = {
        {"[0]", JSON_NUMBER, "0"},
        {"[-12.5e+3]", JSON_NUMBER, "-12.5e+3"},
        {"[ true ]", JSON_BOOL, "true"},
        {"[false]", JSON_BOOL, "false"},
        {"[null]", JSON_NULL, "null"},
        {"[{}]", JSON_OBJECT, "{}"},
        {"[ { \"a\" : [1, \"\\u0041\"] } ]", JSON_OBJECT, "{ \"a\" : [1, \"\\u0041\"] }"},
        {"[[[[[[[[]]]]]]]]", JSON_LIST, "[[[[[[[]]]]]]]"},
        {"[\"b\"]", JSON_STRING, "b"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_member items[PAIRS_MOST];
        char memory[MEMORY_SIZE];
        size_t count = 0;
        assert_true(
            json_items_parse(rows[i].json, items, PAIRS_MOST, memory, sizeof memory, &count));
        assert_int_equal(count, 1);
        assert_null(items[0].name);
        assert_int_equal(items[0].kind, rows[i].kind);
        assert_string_equal(items[0].value, rows[i].value);
    }
}

static void other_values_are_checked(void **state)
{
    static const char *const rows[] = {
        "[01]",
        "[+1]",
        "[1.]",
        "[.5]",
        "[1e]",
        "[-]",
        "[0x1]",
        "[NaN]",
        "[tru]",
        "[nul]",
        "[True]",
        "[1 2]",
        "[{\"a\"}]",
        "[[1,]]",
        "[{,}]",
        "[\"\\ud83d\"]",
        "[[\"\\u0000\"]]",
        "[[[[[[[[[[]]]]]]]]]]",
        "{}",
        "[] x",
        "[",
        "[[]",
        "[{\"a\":]}]",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_member items[PAIRS_MOST];
        char memory[MEMORY_SIZE];
        size_t count = 0;
        if (json_items_parse(rows[i], items, PAIRS_MOST, memory, sizeof memory, &count))
            fail_msg("accepted: %s", rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_decoded),      cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(limits_are_exact),         cmocka_unit_test(other_values_keep_their_text),
        cmocka_unit_test(other_values_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

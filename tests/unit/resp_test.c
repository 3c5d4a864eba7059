/* SPDX-License-Identifier: Apache-2.0 */
/* RESP: message boundaries for every chunking, and refusal of anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *bytes;
    const char *walk; /* the items, one letter each, with their number, text or count */
} messages[] = {
    {"+OK\r\n", "t(OK)"},
    {"-ERR no\r\n", "e(ERR no)"},
    {":-12\r\n", "n(-12)"},
    {"$5\r\nhe\r\no\r\n", "t(he\r\no)"},
    {"$0\r\n\r\n", "t()"},
    {"$-1\r\n", "0"},
    {"*-1\r\n", "0"},
    {"_\r\n", "0"},
    {"#t\r\n", "n(1)"},
    {"#f\r\n", "n(0)"},
    {",1.5\r\n", "t(1.5)"},
    {"(123456789012345678901234567890\r\n", "t(123456789012345678901234567890)"},
    {"!3\r\nERR\r\n", "e(ERR)"},
    {"=7\r\ntxt:abc\r\n", "t(abc)"},
    {"*0\r\n", "l0"},
    {"*2\r\n:1\r\n*1\r\n+a\r\n", "l2n(1)l1t(a)"},
    {"~1\r\n:1\r\n", "l1n(1)"},
    {"%1\r\n+a\r\n:1\r\n", "m2t(a)n(1)"},
    {">2\r\n+message\r\n*0\r\n", "p2t(message)l0"},
    {"|1\r\n+ttl\r\n:9\r\n*1\r\n:1\r\n", "a2t(ttl)n(9)l1n(1)"},
    {"*1\r\n|1\r\n+ttl\r\n:9\r\n:1\r\n", "l1a2t(ttl)n(9)n(1)"},
    {":9223372036854775807\r\n", "n(9223372036854775807)"},
    {":-9223372036854775808\r\n", "n(-9223372036854775808)"},
};

static const char *const broken[] = {
    "OK\r\n",
    "+OK\n",
    "\r\n",
    "*\r\n",
    "*a\r\n",
    "$3\r\nabcde",
    "$-2\r\n",
    ":1x\r\n",
    ":\r\n",
    ":9223372036854775808\r\n",
    "#x\r\n",
    "_x\r\n",
    "=3\r\nabc\r\n",
    "%-1\r\n",
    "$99\r\n",
    "*99\r\n",
    "?1\r\n",
    "$3\r\nab\r\n\r\n",
    ">-1\r\n",
    "*4294967296\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
};

enum { ITEMS_MAX = 20, BULK_MAX = 50 };

static void describe(const char *bytes, size_t length, char *out)
{
    static const char letters[] = {
        [RESP_TEXT] = 't', [RESP_ERROR] = 'e', [RESP_NUMBER] = 'n', [RESP_NULL] = '0',
        [RESP_LIST] = 'l', [RESP_MAP] = 'm',   [RESP_PUSH] = 'p',   [RESP_ATTRIBUTE] = 'a'};
    struct resp_walk walk = {.bytes = bytes, .length = length};
    struct resp_item item;
    while (resp_next(&walk, &item)) {
        *out++ = letters[item.kind];
        if (item.kind == RESP_TEXT || item.kind == RESP_ERROR)
            out += sprintf(out, "(%.*s)", (int)item.length, item.text);
        else if (item.kind == RESP_NUMBER)
            out += sprintf(out, "(%lld)", (long long)item.number);
        else if (item.kind != RESP_NULL)
            out += sprintf(out, "%zu", item.count);
    }
    *out = '\0';
}

/* On the heap and of its exact size, so that the sanitizer detects reads beyond it. */
static enum resp_result feed(struct resp *resp, const char *bytes, size_t length, size_t *out)
{
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    if (length > 0)
        memcpy(copy, bytes, length);
    enum resp_result result = resp_feed(resp, copy, length, out);
    free(copy);
    return result;
}

static void messages_are_found_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        char walked[256];
        size_t length = strlen(messages[i].bytes), found = 0;
        struct resp resp = {.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(feed(&resp, messages[i].bytes, cut, &found), RESP_MORE);
        assert_int_equal(feed(&resp, messages[i].bytes, length, &found), RESP_WHOLE);
        assert_int_equal(found, length);
        describe(messages[i].bytes, length, walked);
        assert_string_equal(walked, messages[i].walk);
    }
}

static void bytes_after_a_message_stay(void **state)
{
    (void)state;
    struct resp resp = {.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
    const char *both = "*1\r\n:1\r\n+next\r\n";
    size_t length = 0;
    assert_int_equal(resp_feed(&resp, both, strlen(both), &length), RESP_WHOLE);
    assert_int_equal(length, 8);
    assert_int_equal(resp_feed(&resp, both + 8, strlen(both) - 8, &length), RESP_WHOLE);
    assert_int_equal(length, 7);
}

static void a_malformed_message_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct resp resp = {.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
        size_t length = 0;
        assert_int_equal(feed(&resp, broken[i], strlen(broken[i]), &length), RESP_BROKEN);
        assert_non_null(resp.wrong);
    }
}

static void a_line_without_an_end_is_refused(void **state)
{
    (void)state;
    static char endless[RESP_LINE_MAX + 1];
    struct resp resp = {.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
    size_t length = 0;
    memset(endless, '+', sizeof endless);
    assert_int_equal(resp_feed(&resp, endless, RESP_LINE_MAX - 1, &length), RESP_MORE);
    assert_int_equal(resp_feed(&resp, endless, sizeof endless, &length), RESP_BROKEN);
}

static void a_value_is_skipped_with_all_that_is_inside(void **state)
{
    (void)state;
    const char *bytes = "*2\r\n%1\r\n+a\r\n*2\r\n:1\r\n|1\r\n+x\r\n+y\r\n:2\r\n+last\r\n";
    struct resp_walk walk = {.bytes = bytes, .length = strlen(bytes)};
    struct resp_item item;
    assert_true(resp_next(&walk, &item) && item.kind == RESP_LIST);
    assert_true(resp_next(&walk, &item) && item.kind == RESP_MAP);
    resp_skip(&walk, &item);
    assert_true(resp_next(&walk, &item));
    assert_memory_equal(item.text, "last", 4);
    assert_false(resp_next(&walk, &item));
}

static void heads_are_written(void **state)
{
    (void)state;
    char head[RESP_HEAD_MAX];
    assert_int_equal(resp_head('$', 0, head), 4);
    assert_memory_equal(head, "$0\r\n", 4);
    assert_int_equal(resp_head('*', 120, head), 6);
    assert_memory_equal(head, "*120\r\n", 6);
    assert_int_equal(resp_head(':', UINT64_MAX, head), 23);
}

static void words_are_compared(void **state)
{
    (void)state;
    const struct resp_item text = {.kind = RESP_TEXT, .text = "master", .length = 6};
    const struct resp_item error = {.kind = RESP_ERROR, .text = "MOVED 1 a:2", .length = 11};
    const struct resp_item none = {.kind = RESP_NULL};
    assert_true(resp_is(&text, "master"));
    assert_false(resp_is(&text, "mast"));
    assert_false(resp_is(&text, "masters"));
    assert_false(resp_is(&error, "MOVED 1 a:2"));
    assert_true(resp_begins(&error, "MOVED "));
    assert_false(resp_begins(&error, "ASK "));
    assert_false(resp_begins(&none, "M"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_found_byte_by_byte),
        cmocka_unit_test(bytes_after_a_message_stay),
        cmocka_unit_test(a_malformed_message_is_refused),
        cmocka_unit_test(a_line_without_an_end_is_refused),
        cmocka_unit_test(a_value_is_skipped_with_all_that_is_inside),
        cmocka_unit_test(heads_are_written),
        cmocka_unit_test(words_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of JSON lines: commas, escapes, invalid UTF-8, numbers that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json_text.h"

static char bytes[1024];
static struct text text;

static int begin(void **state)
{
    (void)state;
    text_init(&text, bytes, sizeof bytes);
    json_begin(&text);
    return 0;
}

static void members_are_parted_by_commas(void **state)
{
    (void)state;
    json_add_string(&text, "a", "b");
    json_add_object(&text, "in");
    json_add_number(&text, "n", -5);
    json_add_bool(&text, "yes", true);
    json_end(&text);
    json_add_list(&text, "l");
    json_item_string(&text, "x");
    json_item_string(&text, "y");
    json_end_list(&text);
    json_add_object(&text, "none");
    json_end(&text);
    json_add_bool(&text, "no", false);
    json_end(&text);
    assert_string_equal(bytes, "{\"a\":\"b\",\"in\":{\"n\":-5,\"yes\":true},\"l\":[\"x\",\"y\"],"
                               "\"none\":{},\"no\":false}");
}

static void an_unknown_value_is_null(void **state)
{
    (void)state;
    json_add_string(&text, "w", NULL);
    json_add_length(&text, "l", -1);
    json_add_token(&text, "t", 0);
    json_add_length(&text, "z", 0);
    json_end(&text);
    assert_string_equal(bytes, "{\"w\":null,\"l\":null,\"t\":null,\"z\":0}");
}

static void a_token_is_text_and_keeps_its_digits(void **state)
{
    (void)state;
    json_add_token(&text, "t", UINT64_MAX);
    json_end(&text);
    assert_string_equal(bytes, "{\"t\":\"18446744073709551615\"}");
}

static void reserved_characters_are_escaped(void **state)
{
    (void)state;
    json_add_string(&text, "\"n\\",
                    "q\"b\\t\tn\nr\r1\x01"
                    "e\x1f"
                    "d\x7f\b\f");
    json_end(&text);
    assert_string_equal(bytes, "{\"\\\"n\\\\\":\"q\\\"b\\\\t\\tn\\nr\\r1\\u0001e\\u001f"
                               "d\\u007f\\b\\f\"}");
}

static void invalid_utf8_becomes_the_replacement_mark(void **state)
{
    (void)state;
    json_add_string(&text, "k", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    json_add_string(&text, "b", "a\xffz\xc3");
    json_add_string(&text, "cut", "\xe2\x82");
    json_end(&text);
    assert_string_equal(bytes, "{\"k\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\","
                               "\"b\":\"a\\ufffdz\\ufffd\",\"cut\":\"\\ufffd\\ufffd\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(members_are_parted_by_commas, begin),
        cmocka_unit_test_setup(an_unknown_value_is_null, begin),
        cmocka_unit_test_setup(a_token_is_text_and_keeps_its_digits, begin),
        cmocka_unit_test_setup(reserved_characters_are_escaped, begin),
        cmocka_unit_test_setup(invalid_utf8_becomes_the_replacement_mark, begin),
    };
    return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of RESP3 as JSON: every kind of value, errors by their code, no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/resp_json.h"
#include "wire/resp_reply.h"

#include <string.h>

enum { JSON_SIZE = 512 };

static struct resp_json_summary translate(const struct resp_reply *reply, char json[JSON_SIZE])
{
    struct resp_json_summary summary;
    struct text text;
    text_init(&text, json, JSON_SIZE);
    assert_false(reply->overflow);
    assert_true(resp_json(reply->bytes, reply->length, &text, &summary));
    assert_false(text.cut);
    return summary;
}

static void every_kind_of_value_is_translated(void **state)
{
    char bytes[512], json[JSON_SIZE];
    struct resp_reply reply;
    (void)state;
    resp_reply_init(&reply, bytes, sizeof bytes, /* protocol= */ 3);
    resp_reply_map(&reply, 6);
    resp_reply_text(&reply, "outcome");
    resp_reply_text(&reply, "busy");
    resp_reply_text(&reply, "n");
    resp_reply_number(&reply, -5);
    resp_reply_text(&reply, "yes");
    resp_reply_bool(&reply, true);
    resp_reply_text(&reply, "none");
    resp_reply_null(&reply);
    resp_reply_text(&reply, "list");
    resp_reply_array(&reply, 2);
    resp_reply_bytes(&reply, "a\"\n\0\xff", 5);
    resp_reply_map(&reply, 1);
    resp_reply_text(&reply, "outcome"); /* not that of the reply */
    resp_reply_text(&reply, "ok");
    resp_reply_text(&reply, "retry_after_ms");
    resp_reply_number(&reply, 1500);
    struct resp_json_summary summary = translate(&reply, json);
    assert_string_equal(json, "{\"outcome\":\"busy\",\"n\":-5,\"yes\":true,\"none\":null,\"list\":"
                              "[\"a\\\"\\n\\u0000\\ufffd\",{\"outcome\":\"ok\"}],"
                              "\"retry_after_ms\":1500}");
    assert_string_equal(summary.outcome, "busy");
    assert_string_equal(summary.error, "");
    assert_int_equal(summary.retry_after_ms, 1500);
}

static void an_error_has_an_outcome(void **state)
{
    static const struct {
        const char *code, *text, *outcome, *json;
    } rows[] = {
        {"ERR", "wrong \"key\"", "usage",
         "{\"outcome\":\"usage\",\"text\":\"usage: wrong \\\"key\\\"\"}"},
        {"ERR", "failed: out of memory", "failed",
         "{\"outcome\":\"failed\",\"text\":\"failed: out of memory\"}"},
        {"ERR", "failed", "usage", "{\"outcome\":\"usage\",\"text\":\"usage: failed\"}"},
        {"NOPERM", "not you", "denied", "{\"outcome\":\"denied\",\"text\":\"denied: not you\"}"},
        {"NOAUTH", "not you", "denied", "{\"outcome\":\"denied\",\"text\":\"denied: not you\"}"},
        {"WRONGPASS", "not you", "denied", "{\"outcome\":\"denied\",\"text\":\"denied: not you\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[128], json[JSON_SIZE];
        struct resp_reply reply;
        resp_reply_init(&reply, bytes, sizeof bytes, /* protocol= */ 3);
        resp_reply_error(&reply, rows[i].code, rows[i].text);
        struct resp_json_summary summary = translate(&reply, json);
        assert_string_equal(json, rows[i].json);
        assert_string_equal(summary.outcome, rows[i].outcome);
        assert_string_equal(summary.error, rows[i].code);
        assert_int_equal(summary.retry_after_ms, -1);
    }
}

static void a_reply_without_room_is_cut(void **state)
{
    char json[8];
    struct text text;
    struct resp_json_summary summary;
    (void)state;
    text_init(&text, json, sizeof json);
    assert_true(resp_json("$9\r\n123456789\r\n", 15, &text, &summary));
    assert_true(text.cut);
}

static void only_one_whole_reply_is_accepted(void **state)
{
    char json[JSON_SIZE];
    struct text text;
    struct resp_json_summary summary;
    (void)state;
    text_init(&text, json, sizeof json);
    assert_false(resp_json(":1\r\n:2\r\n", 8, &text, &summary));
    assert_false(resp_json("", 0, &text, &summary));
    assert_false(resp_json("%1\r\n:1\r\n:2\r\n", 12, &text, &summary)); /* a name is a text */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_translated),
        cmocka_unit_test(an_error_has_an_outcome),
        cmocka_unit_test(a_reply_without_room_is_cut),
        cmocka_unit_test(only_one_whole_reply_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP as arguments of verbs, and fields that are wrong, unknown or missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"

#include <stdio.h>
#include <string.h>

static struct daemon *served;
static struct peer *peer;
static char arguments[512]; /* of the last command, "" if there was none */

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_dispatch_args(struct daemon_connection *connection, struct daemon_args *args);

/* Replies with an error, so that each request has a response.
 * NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_dispatch_args(struct daemon_connection *connection, struct daemon_args *args)
{
    struct text text;
    text_init(&text, arguments, sizeof arguments);
    for (size_t i = 0; i < args->count; i++)
        TEXT_JOIN(&text, i == 0 ? "" : i == args->positional + 1 ? " : " : " ", args->text[i]);
    assert_true(args->has_positional);
    slot_reply_error(connection_slot(connection), "ERR", "(called)");
    return true;
}

static int open_web(void **state)
{
    (void)state;
    served = kit_daemon_new();
    peer = peer_new_web(served);
    return 0;
}

static int close_web(void **state)
{
    (void)state;
    peer_free(peer);
    daemon_free(served);
    return 0;
}

/* The response to a request with this body; NULL: without one. */
static const char *ask(const char *line, const char *body)
{
    char text[4096];
    arguments[0] = '\0';
    if (body == NULL)
        (void)snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", line);
    else
        (void)snprintf(text, sizeof text,
                       "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       line, strlen(body), body);
    return peer_ask_web(peer, text);
}

struct row {
    const char *line, *body;
    const char *expected; /* the arguments, words behind ':'; or a part of the refusal */
};

static void fields_become_arguments(void **state)
{
    static const struct row rows[] = {
        {"POST /v1/locks/a%2Fb/acquire", "{\"ttl_ms\":5000,\"holder\":\"me\"}",
         "LOCK.ACQUIRE a/b me 5000"},
        {"POST /v1/locks/WAIT/acquire",
         "{\"wait_ms\":0,\"holder\":\"ID\",\"ttl_ms\":5,\"shared\":true,\"cached\":false,"
         "\"limit\":null,\"meta\":{ \"a\" :\"b\"},\"request_id\":\"r\",\"priority\":-3}",
         "LOCK.ACQUIRE WAIT ID 5 : WAIT 0 SHARED META { \"a\" :\"b\"} ID r PRIORITY -3"},
        {"POST /v1/locks/k/acquire",
         "{\"holder\":\"me\",\"ttl_ms\":1,\"wait_ms\":60000,\"cooldown_ms\":2,\"lock_delay_ms\":3}",
         "LOCK.ACQUIRE k me 1 : WAIT 60000 COOLDOWN 2 LOCKDELAY 3"},
        {"POST /v1/acquire", "{\"holder\":\"me\",\"ttl_ms\":5,\"keys\":[\"a\",\"b\\u0020c\"]}",
         "LOCK.ACQUIRE_ALL 2 a b c me 5"},
        {"POST /v1/locks/k/renew", "{\"token\":\"7\"}", "LOCK.RENEW k 7"},
        {"POST /v1/locks/k/renew", "{\"token\":\"7\",\"ttl_ms\":null}", "LOCK.RENEW k 7"},
        {"POST /v1/locks/k/renew", "{\"ttl_ms\":9,\"token\":\"7\"}", "LOCK.RENEW k 7 9"},
        {"POST /v1/locks/k/release", "{\"token\":\"7\",\"cooldown_ms\":9}",
         "LOCK.RELEASE k 7 : COOLDOWN 9"},
        {"GET /v1/locks/k?raw=1", NULL, "LOCK.STATUS k : RAW"},
        {"GET /v1/locks/k?raw=false", NULL, "LOCK.STATUS k"},
        {"GET /v1/locks", NULL, "LOCK.LIST"},
        {"GET /v1/locks?", NULL, "LOCK.LIST"},
        {"GET /v1/locks?prefix=COUNT&count=5&after=a%26%3Db+c", NULL,
         "LOCK.LIST COUNT : COUNT 5 AFTER a&=b c"},
        {"GET /v1/locks?count=7", NULL, "LOCK.LIST : COUNT 7"},
        {"GET /v1/locks/a+b/history?count=2", NULL, "LOCK.HISTORY a+b : COUNT 2"},
        {"DELETE /v1/locks/k?reason=a+b&now=true", NULL, "LOCK.BREAK k a b : NOW"},
        {"DELETE /v1/locks/k", "{\"reason\":\"x\",\"now\":true}", "LOCK.BREAK k x : NOW"},
        {"POST /v1/locks/k/break", "{\"reason\":\"x\",\"now\":false}", "LOCK.BREAK k x"},
        {"POST /v1/locks/k/clear", "", "LOCK.CLEAR k"},
        {"POST /v1/locks/k/clear", " { } ", "LOCK.CLEAR k"},
        {"POST /v1/once/i/begin", "{\"holder\":\"me\",\"ttl_ms\":5,\"payload\":\"p\"}",
         "ONCE.BEGIN i me 5 : PAYLOAD p"},
        {"POST /v1/once/i/finish", "{\"token\":\"7\",\"status\":3,\"result\":\"\",\"keep_ms\":4}",
         "ONCE.FINISH i 7 : STATUS 3 RESULT  KEEP 4"},
        {"PUT /v1/watermarks/w", "{\"expected\":\"1\",\"value\":\"2\",\"reason\":null}",
         "WATERMARK.ADVANCE w 1 2"},
        {"PUT /v1/watermarks/w", "{\"value\":\"2\",\"reason\":\"r\",\"expected\":null}",
         "WATERMARK.SET w 2 r"},
        {"POST /v1/watermarks/w/begin", "{\"overlap_ms\":5}", "WATERMARK.BEGIN w : OVERLAP 5"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *response = ask(rows[i].line, rows[i].body);
        if (strcmp(arguments, rows[i].expected) != 0)
            print_error("%s %s\n", rows[i].line, response);
        assert_string_equal(arguments, rows[i].expected);
    }
}

static void wrong_fields_are_named(void **state)
{
    static const struct row rows[] = {
        {"POST /v1/locks/k/acquire", "{\"ttl_ms\":5}", "holder is missing"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\"}", "ttl_ms is missing"},
        {"POST /v1/locks/k/acquire", "{\"holder\":{},\"ttl_ms\":5}", "holder must be a string"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":[]}", "ttl_ms must be a number"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":5,\"meta\":[]}",
         "meta must be an object"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":5,\"cached\":\"yes\"}",
         "cached must be true or false"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":5,\"wait_ms\":1.5}",
         "wait_ms must be a number from 0 to 60000; to wait longer, repeat"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":5,\"prioritty\":1}",
         "unknown field 'prioritty'; did you mean priority?"},
        {"POST /v1/locks/k/acquire", "{\"holder\":\"h\",\"ttl_ms\":5,\"WAIT\":1}",
         "unknown field 'WAIT'\""},
        {"POST /v1/locks/k/release", "{\"token\":\"1\",\"ttl_ms\":5}", "unknown field 'ttl_ms'"},
        {"POST /v1/acquire", "{\"holder\":\"h\",\"ttl_ms\":5}", "keys is missing"},
        {"POST /v1/acquire", "{\"keys\":{},\"holder\":\"h\",\"ttl_ms\":5}",
         "keys must be a list of strings"},
        {"POST /v1/acquire", "{\"keys\":[null],\"holder\":\"h\",\"ttl_ms\":5}",
         "keys must be a list of 1 to 16 strings"},
        {"GET /v1/locks/k?row=1", NULL, "unknown field 'row'; did you mean raw?"},
        {"GET /v1/watch?perfix=x", NULL, "unknown field 'perfix'; did you mean prefix?"},
        {"GET /healthz?x", NULL, "unknown field 'x'\""},
        {"DELETE /v1/locks/k?now=1", NULL, "reason is missing"},
        {"POST /v1/locks/k/clear", "{\"a\":1,\"a\":2}", "a is given twice"},
        {"POST /v1/locks/k/clear", "{\"a\":\"\xff\"}", "the body must be one JSON object"},
        {"POST /v1/locks/k/clear?x", "{}", "in the body, not in the query"},

        {"GET /v1/locks/k", "{}", "a GET request has no body"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *response = ask(rows[i].line, rows[i].body);
        if (strstr(response, rows[i].expected) == NULL)
            print_error("%s %s\n", rows[i].line, response);
        assert_non_null(strstr(response, rows[i].expected));
        assert_string_equal(arguments, "");
        assert_ptr_equal(strstr(response, "400 {\"outcome\":\"usage\",\"text\":\"usage: "),
                         response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_become_arguments, open_web, close_web),
        cmocka_unit_test_setup_teardown(wrong_fields_are_named, open_web, close_web),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

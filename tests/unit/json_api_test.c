/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of JSON APIs against a small real server with scripted replies: credentials that are
 * refused, pauses for all requests, changes that may have happened, redirects, errors.
 */
#include "json_api_kit.h"
#include "process/host.h"
#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- requests ---- */

static void a_call_has_address_credential_and_body(void **state)
{
    static const char *const answers[] = {"200 OK\n{\"a\":\"b\"}", "201 Created\n{}", NULL};
    static struct asker read, write;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&read, "GET", "/x?y=1");
    assert_int_equal(read.status, 200);
    assert_string_equal(read.text, "b");
    assert_string_equal(read.why, "");
    assert_int_equal(read.now_ms, 1767225600000);
    answers_expect(0, "GET /base/x?y=1 HTTP/1.1\r\n");
    answers_expect(0, "\r\nAuthorization: Bearer s3cret-0\r\n");
    asker_ask(&write, "PUT", "/x");
    assert_int_equal(write.status, 201);
    answers_expect(1, "\r\nContent-Type: application/json\r\n");
    answers_expect(1, "\r\n\r\n{\"x\":0.1}");
}

static void a_credential_may_stand_alone(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", NULL};
    static struct asker asker;
    (void)state;
    json_kit_open(/* scheme= */ NULL, answers);
    asker_ask(&asker, "GET", "/x");
    answers_expect(0, "\r\nAuthorization: s3cret-0\r\n");
}

static void a_refused_credential_is_renewed_once(void **state)
{
    static const char *const answers[] = {"401 Unauthorized\n{}", "200 OK\n{}",
                                          "401 Unauthorized\n{}",
                                          "401 Unauthorized\n{\"message\":\"who?\"}", NULL};
    static struct asker good, bad;
    (void)state;
    json_kit_open("token", answers);
    asker_ask(&good, "POST", "/x");
    assert_int_equal(good.status, 200);
    answers_expect(0, "Authorization: token s3cret-0\r\n");
    answers_expect(1, "Authorization: token s3cret-1\r\n");
    answers_expect(1, "\r\n\r\n{\"x\":0.1}"); /* the body comes again, too */
    asker_ask(&bad, "GET", "/x");
    assert_int_equal(bad.status, 401);
    assert_string_equal(bad.why, "the server answers 401: who?");
    assert_int_equal(answers_heard(), 4);
}

static void a_request_waits_for_the_credential(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", NULL};
    static struct asker asker, late, never;
    (void)state;
    json_kit_open("Bearer", answers);
    json_kit_ready = false;
    asker_start(&asker, "GET", "/x");
    struct json_call call = json_kit_call("GET", "/x");
    call.give_up_at_ms = host_boot_ms() + 50;
    asker_start_call(&late, &call);
    assert_true(kit_until(&late.done));
    assert_non_null(strstr(late.why, "deadline"));
    assert_int_equal(answers_heard(), 0);
    json_kit_ready = true;
    json_api_wake(json_kit_api);
    assert_true(kit_until(&asker.done));
    assert_int_equal(asker.status, 200);
    json_kit_missing = true;
    asker_ask(&never, "GET", "/x");
    assert_int_equal(never.status, 0);
    assert_string_equal(never.why, "there is no credential");
    assert_int_equal(answers_heard(), 1);
}

static void a_pause_is_for_all(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 1\n{}",
                                          "200 OK\n{}", "200 OK\n{}", NULL};
    static struct asker first, second;
    (void)state;
    json_kit_open("Bearer", answers);
    int64_t began_ms = host_boot_ms();
    asker_start(&first, "POST", "/x");
    while (answers_heard() == 0)
        kit_turn(/* ms= */ 10);
    kit_turn(/* ms= */ 50);
    asker_start(&second, "GET", "/y");
    kit_turn(/* ms= */ 200);
    assert_int_equal(answers_heard(), 1);
    assert_true(kit_until(&first.done) && kit_until(&second.done));
    assert_true(host_boot_ms() - began_ms >= 1000);
    assert_true(first.status == 200 && second.status == 200);
}

/* A 503 may come from a proxy behind which the change was made. */
static void a_change_that_may_have_happened_is_not_repeated(void **state)
{
    static const char *const answers[] = {"503 Unavailable\r\nRetry-After: 1\n{}",
                                          "200 OK\n{}",
                                          "",
                                          "500 Oops\n{}",
                                          "",
                                          "200 OK\n{}",
                                          NULL};
    static struct asker change, read, cut, oops, repeated;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&change, "PUT", "/x");
    assert_int_equal(change.status, 503);
    asker_ask(&read, "GET", "/x"); /* after the pause */
    assert_int_equal(read.status, 200);
    asker_ask(&cut, "PUT", "/x");
    assert_int_equal(cut.status, 0);
    asker_ask(&oops, "GET", "/x");
    assert_int_equal(oops.status, 500);
    assert_int_equal(answers_heard(), 4);
    struct json_call call = json_kit_call("GET", "/x");
    call.repeatable = true;
    asker_start_call(&repeated, &call);
    assert_true(kit_until(&repeated.done));
    assert_int_equal(repeated.status, 200);
}

static void a_read_is_repeated_after_a_503(void **state)
{
    static const char *const answers[] = {"503 Unavailable\r\nRetry-After: 0\n{}", "200 OK\n{}",
                                          NULL};
    static struct asker asker;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&asker, "GET", "/x");
    assert_int_equal(asker.status, 200);
}

static void a_pause_beyond_the_deadline_is_an_error(void **state)
{
    static const char *const answers[] = {
        "429 Too Many Requests\r\nRetry-After: 86400\n{\"message\":\"slow down\"}", NULL};
    static struct asker asker, other;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&asker, "GET", "/x");
    assert_string_equal(asker.why, "the server answers 429: slow down");
    struct json_call call = json_kit_call("GET", "/x");
    call.give_up_at_ms = host_boot_ms() + 500;
    asker_start_call(&other, &call);
    assert_true(kit_until(&other.done));
    assert_non_null(strstr(other.why, "the server asks for a pause of 3 s")); /* not of a day */
    assert_int_equal(answers_heard(), 1);
}

static void a_forbidden_call_is_retried_only_after_a_permitted_one(void **state)
{
    static const char *const answers[] = {"403 Forbidden\n{}", "200 OK\n{}", "403 Forbidden\n{}",
                                          "403 Forbidden\n{}", "200 OK\n{}", NULL};
    static struct asker askers[4];
    (void)state;
    json_kit_open("Bearer", answers);
    for (size_t i = 0; i < 4; i++) {
        struct json_call call = json_kit_call("GET", "/x");
        call.forbidden_later = i != 2;
        asker_start_call(&askers[i], &call);
        assert_true(kit_until(&askers[i].done));
        assert_int_equal(askers[i].status, i % 2 == 0 ? 403 : 200);
    }
    assert_int_equal(answers_heard(), 5);
}

static void a_deletion_without_its_conditions_is_not_sent(void **state)
{
    static const char *const answers[] = {NULL};
    static struct asker asker;
    (void)state;
    json_kit_open("Bearer", answers);
    struct json_call call = json_kit_call("DELETE", "/x");
    asker_start_call(&asker, &call);
    assert_true(kit_until(&asker.done));
    assert_string_equal(asker.why, "out of memory");
    assert_int_equal(answers_heard(), 0);
}

static void callbacks_may_start_and_cancel(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", "200 OK\n{}", NULL};
    static struct asker first, second, third, silent;
    (void)state;
    json_kit_open("Bearer", answers);
    first.next = &second;
    asker_start(&first, "GET", "/x");
    assert_true(kit_until(&second.done));
    assert_int_equal(second.status, 200);
    json_kit_missing = true; /* both fail in the same turn: the first one cancels the second */
    third.next = &silent;
    third.stops = true;
    asker_start(&third, "GET", "/x");
    asker_start(&silent, "GET", "/x");
    assert_true(kit_until(&third.done));
    kit_turn(/* ms= */ 20);
    assert_int_equal(silent.done, 0);
}

static void a_blocking_call_returns_the_reply(void **state)
{
    static const char *const answers[] = {"404 Not Found\n{\"message\":\"no\\u001b such\"}", NULL};
    struct json_result result;
    (void)state;
    json_kit_open("Bearer", answers);
    struct json_call call = json_kit_call("GET", "/x");
    json_api_call(json_kit_api, &call, &result);
    assert_int_equal(result.status, 404);
    assert_non_null(result.json);
    assert_non_null(strstr(result.why, "the server answers 404: no"));
    assert_null(strchr(result.why, '\x1b'));
    json_result_done(&result);
}

/* ---- errors ---- */

static void a_redirect_is_not_followed(void **state)
{
    char first[256];
    const char *answers[] = {first, "200 OK\n{}", NULL};
    static struct asker asker;
    (void)state;
    (void)snprintf(first, sizeof first, "302 Found\r\nLocation: http://127.0.0.1:%u/other\n<html>",
                   answers_port());
    json_kit_open("Bearer", answers);
    asker_ask(&asker, "GET", "/x");
    assert_int_equal(asker.status, 302);
    assert_non_null(strstr(asker.why, "redirects"));
    assert_int_equal(answers_heard(), 1); /* so the credential stays here */
}

static void an_error_without_a_reason_is_explained(void **state)
{
    static const char *const answers[] = {"418 Teapot\n{}", "502 Bad Gateway\n<html>", NULL};
    static struct asker teapot, gateway;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&teapot, "GET", "/x");
    assert_string_equal(teapot.why, "the server answers 418: it gives no reason");
    asker_ask(&gateway, "GET", "/x");
    assert_non_null(strstr(gateway.why, "502: the body is not JSON"));
}

static void warnings_are_passed_on(void **state)
{
    static const char *const answers[] = {"200 OK\r\nWarning: 299 - \"old\x1b\\\"er\"\r\nWarning: "
                                          "nonsense\r\nWarning: 299 - \"\"\n{}",
                                          NULL};
    static struct asker asker;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&asker, "GET", "/x");
    assert_int_equal(json_kit_warnings, 1);
    assert_non_null(strstr(json_kit_warning, "\"er"));
    assert_null(strchr(json_kit_warning, '\x1b'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_call_has_address_credential_and_body),
        STORY(a_credential_may_stand_alone),
        STORY(a_refused_credential_is_renewed_once),
        STORY(a_request_waits_for_the_credential),
        STORY(a_pause_is_for_all),
        STORY(a_change_that_may_have_happened_is_not_repeated),
        STORY(a_read_is_repeated_after_a_503),
        STORY(a_pause_beyond_the_deadline_is_an_error),
        STORY(a_forbidden_call_is_retried_only_after_a_permitted_one),
        STORY(a_deletion_without_its_conditions_is_not_sent),
        STORY(callbacks_may_start_and_cancel),
        STORY(a_blocking_call_returns_the_reply),
        STORY(a_redirect_is_not_followed),
        STORY(an_error_without_a_reason_is_explained),
        STORY(warnings_are_passed_on),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of GitHub: refusals with each combination of headers, pauses for all clients, and the
 * parts of an hour that each kind of request may use. The server's Date is 2026-01-01 00:00:00.
 */
#include "github_kit.h"
#include "process/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RESET_1S   "\r\nx-ratelimit-reset: 1767225601"
#define RESET_34M  "\r\nx-ratelimit-reset: 1767227639" /* and one second */
#define SECONDARY  "{\"message\":\"You have exceeded a secondary rate limit.\"}"
#define LEFT(left) "x-ratelimit-limit: 60\r\nx-ratelimit-remaining: " left

static int64_t paused_ms(void)
{
    struct github_usage usage;
    github_api_usage(github_kit_api, &usage);
    return usage.paused_ms;
}

/* ---- pauses ---- */

/* Each with the pause that must follow, in seconds; 0: a real refusal. */
static void every_refusal_by_a_limit_pauses(void **state)
{
    static const struct {
        const char *answer;
        int64_t pause_s;
    } cases[] = {
        {"403 Forbidden\n{\"message\":\"Must have admin rights\"}", 0},
        {"403 Forbidden\r\n" LEFT("5") "\n{\"message\":\"no\"}", 0},
        {"403 Forbidden\r\n" LEFT("0") RESET_34M "\n{}", 2040},
        {"403 Forbidden\r\nx-ratelimit-remaining: 0" RESET_34M "\n{}", 2040},
        {"403 Forbidden\r\n" LEFT("7") RESET_34M "\n" SECONDARY, 60},
        {"403 Forbidden\n" SECONDARY, 60},
        {"403 Forbidden\n{\"message\":\"API Rate Limit exceeded\"}", 60},
        {"403 Forbidden\r\nRetry-After: 90\n{}", 90},
        {"403 Forbidden\r\nRetry-After: 90\n" SECONDARY, 90},
        {"403 Forbidden\r\nRetry-After: 90\r\n" LEFT("0") RESET_34M "\n{}", 2040},
        {"403 Forbidden\r\nRetry-After: 3000\r\n" LEFT("0") RESET_34M "\n{}", 3000},
        {"403 Forbidden\r\nRetry-After: Thu, 01 Jan 2026 00:01:40 GMT\n{}", 100},
        {"429 Too Many Requests\n{}", 60},
        {"429 Too Many Requests\n<html>", 60},
        {"429 Too Many Requests\r\nRetry-After: 90\n{}", 90},
        {"429 Too Many Requests\r\n" LEFT("0") RESET_34M "\n{}", 2040},
        {"429 Too Many Requests\r\n" LEFT("9") RESET_34M "\n{}", 60},
        {"429 Too Many Requests\r\n" LEFT("0") "\r\nx-ratelimit-reset: junk\n{}", 60},
        {"429 Too Many Requests\r\n" LEFT("0") "\r\nx-ratelimit-reset: 99999999999\n{}", 86400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct caller caller, next;
        const char *answers[] = {cases[i].answer, NULL};
        char token[32];
        (void)snprintf(token, sizeof token, "s3cret-%zu", i); /* another account */
        (void)setenv("GITHUB_TOKEN", token, 1);
        github_kit_open(answers);
        caller_call(&caller, "POST", "x", GITHUB_HEARTBEAT);
        int64_t pause_s = (paused_ms() + 999) / 1000;
        if (pause_s != cases[i].pause_s)
            fail_msg("%s: %lld s", cases[i].answer, (long long)pause_s);
        assert_int_equal(caller.status, pause_s == 0 ? 403 : 0);
        if (pause_s > 0) {
            assert_true(caller.refused && caller.retry_at_ms > host_boot_ms());
            caller_call(&next, "GET", "x", GITHUB_HEARTBEAT); /* ends at once */
            assert_true(next.status == 0 && next.refused && next.sent_ms == 0);
            assert_true(next.retry_at_ms == caller.retry_at_ms);
            assert_int_equal(answers_heard(), 1);
        }
        github_api_close(&github_kit_api);
    }
}

static void the_error_tells_the_time_of_return(void **state)
{
    static const char *const answers[] = {"403 Forbidden\r\n" LEFT("0") RESET_34M "\n{}", NULL};
    struct github_result result;
    (void)state;
    github_kit_open(answers);
    struct github_call call = github_kit_call("GET", "x", GITHUB_READ);
    github_api_call(github_kit_api, &call, &result);
    assert_int_equal(result.status, 0);
    assert_int_equal((result.retry_in_ms + 999) / 1000, 2040);
    assert_non_null(
        strstr(result.why, "GitHub's limit is reached; requests are possible again at "));
    assert_non_null(strstr(result.why, " UTC, in 34m"));
    github_result_done(&result);
    struct github_usage usage;
    github_api_usage(github_kit_api, &usage);
    assert_int_equal(usage.limit, 60);
    assert_int_equal(usage.left, 0);
    assert_int_equal(usage.reset_s, 1767227639);
}

static void a_refused_request_is_sent_again(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 1\n{}",
                                          "200 OK\n{}", "200 OK\n{}", NULL};
    static struct caller first, second;
    struct github_api *other = NULL;
    (void)state;
    github_kit_open(answers);
    assert_true(github_kit_try_open(&other)); /* the same account */
    int64_t began_ms = host_boot_ms();
    caller_start(&first, "POST", "x", GITHUB_GRANT);
    while (paused_ms() == 0)
        github_kit_run(github_kit_api, /* ms= */ 5);
    struct github_call call = github_kit_call("GET", "y", GITHUB_READ);
    caller_start_call(&second, other, &call);
    github_kit_run(other, /* ms= */ 200);
    assert_int_equal(answers_heard(), 1);
    caller_finish(&first);
    caller_finish(&second);
    assert_true(first.status == 200 && second.status == 200);
    assert_true(first.sent_ms >= began_ms + 1000 && second.sent_ms >= began_ms + 1000);
    github_api_close(&other);
}

/* So the server need not refuse anything. */
static void the_last_request_pauses(void **state)
{
    static const char *const answers[] = {"200 OK\r\n" LEFT("0") RESET_1S "\n{}", "200 OK\n{}",
                                          NULL};
    static struct caller last, next;
    (void)state;
    github_kit_open(answers);
    caller_call(&last, "GET", "x", GITHUB_READ);
    assert_int_equal(last.status, 200);
    assert_true(paused_ms() > 0);
    caller_call(&next, "GET", "x", GITHUB_READ);
    assert_int_equal(next.status, 200);
    assert_true(next.sent_ms - last.done_ms >= 1000);
}

static void other_limits_of_the_server_are_ignored(void **state)
{
    static const char *const answers[] = {
        "200 OK\r\nx-ratelimit-resource: search\r\n" LEFT("0") RESET_34M "\n{}",
        "200 OK\r\nx-ratelimit-resource: core\r\nx-poll-interval: 90\r\n" LEFT("9") RESET_34M
        "\n{}",
        "200 OK\n{}", NULL};
    static struct caller caller;
    struct github_usage usage;
    (void)state;
    github_kit_open(answers);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_int_equal(paused_ms(), 0);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    github_api_usage(github_kit_api, &usage);
    assert_int_equal(usage.left, 9);
    assert_int_equal(usage.poll_interval_ms, 90000);
}

/* ---- the requests of an hour ---- */

static bool every_request_is_fine(int file, const char *request)
{
    (void)request;
    http_kit_say(file, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    return true;
}

/* The number of requests until one has to wait. */
static unsigned send_until_short(const char *method, enum github_kind kind)
{
    static struct caller caller;
    for (unsigned count = 0;; count++) {
        struct github_call call = github_kit_call(method, "x", kind);
        struct github_usage usage;
        github_api_usage(github_kit_api, &usage);
        call.give_up_at_ms = host_boot_ms() + 100;
        caller_start_call(&caller, github_kit_api, &call);
        caller_finish(&caller);
        if (caller.status == 200)
            continue;
        assert_true(caller.refused && caller.sent_ms == 0);
        assert_true(caller.retry_at_ms > host_boot_ms());
        assert_non_null(strstr(caller.why, "this process has used up its requests of an hour; "
                                           "requests are possible again at "));
        return count;
    }
}

static void expect_ladder(const char *method)
{
    static struct caller caller;
    assert_int_equal(send_until_short(method, GITHUB_SHOW), 11); /* less than half is left */
    assert_int_equal(send_until_short(method, GITHUB_READ), 5);
    assert_int_equal(send_until_short(method, GITHUB_GRANT), 3);
    assert_int_equal(send_until_short(method, GITHUB_RELEASE), 1);
    caller_call(&caller, method, "x", GITHUB_HEARTBEAT);
    assert_int_equal(caller.status, 200);
}

static void the_rest_of_the_budget_is_for_urgent_requests(void **state)
{
    static const char *const none[] = {NULL};
    (void)state;
    github_kit_url.budget = 20;
    github_kit_open(none);
    answers_say_by(every_request_is_fine);
    expect_ladder("GET");
}

static void the_rest_of_the_writes_too(void **state)
{
    static const char *const none[] = {NULL};
    static struct caller caller;
    (void)state;
    github_kit_url.writes = 400;
    github_kit_open(none);
    answers_say_by(every_request_is_fine);
    github_api_limit_writes(github_kit_api, 20);
    expect_ladder("POST");
    caller_call(&caller, "GET", "x", GITHUB_SHOW);
    assert_int_equal(caller.status, 200);
    caller_start(&caller, "POST", "x", GITHUB_GRANT); /* waits until there are more */
    github_kit_run(github_kit_api, /* ms= */ 50);
    assert_int_equal(caller.done, 0);
    github_api_limit_writes(github_kit_api, 40);
    caller_finish(&caller);
    assert_int_equal(caller.status, 200);
    github_api_limit_writes(github_kit_api, 0);
    struct github_call call = github_kit_call("POST", "x", GITHUB_RELEASE);
    call.give_up_at_ms = host_boot_ms() + 50;
    caller_start_call(&caller, github_kit_api, &call);
    caller_finish(&caller);
    assert_true(caller.refused && caller.retry_at_ms == 0);
}

static bool forty_an_hour(int file, const char *request)
{
    (void)request;
    http_kit_say(file, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-ratelimit-limit: 40\r\n"
                       "x-ratelimit-remaining: 39\r\n\r\n{}");
    return true;
}

static void the_usual_budget_is_half_of_the_limit(void **state)
{
    static const char *const none[] = {NULL};
    (void)state;
    github_kit_open(none);
    answers_say_by(forty_an_hour);
    expect_ladder("GET");
}

static bool nothing_changes(int file, const char *request)
{
    (void)request;
    http_kit_say(file, "HTTP/1.1 304 Not Modified\r\n\r\n");
    return true;
}

static void an_unchanged_copy_costs_nothing(void **state)
{
    static const char *const none[] = {NULL};
    static struct caller caller;
    struct github_usage usage;
    (void)state;
    github_kit_url.budget = 2;
    github_kit_open(none);
    answers_say_by(nothing_changes);
    for (size_t i = 0; i < 10; i++) {
        struct github_call call = github_kit_call("GET", "x", GITHUB_READ);
        call.etag = "\"e\"";
        caller_start_call(&caller, github_kit_api, &call);
        caller_finish(&caller);
        assert_int_equal(caller.status, 304);
    }
    github_api_usage(github_kit_api, &usage);
    assert_int_equal(usage.sent[GITHUB_READ], 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(every_refusal_by_a_limit_pauses),
        STORY(the_error_tells_the_time_of_return),
        STORY(a_refused_request_is_sent_again),
        STORY(the_last_request_pauses),
        STORY(other_limits_of_the_server_are_ignored),
        STORY(the_rest_of_the_budget_is_for_urgent_requests),
        STORY(the_rest_of_the_writes_too),
        STORY(the_usual_budget_is_half_of_the_limit),
        STORY(an_unchanged_copy_costs_nothing),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of GitHub against a small real server with scripted replies: headers, order and pace,
 * pages, errors, addresses.
 */
#include "github_kit.h"
#include "process/host.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- requests and replies ---- */

static void a_request_has_the_headers_of_github(void **state)
{
    static const char *const answers[] = {"200 OK\r\nETag: W/\"e1\"\n{\"a\":\"b\"}",
                                          "201 Created\n{}",
                                          "204 No Content\n",
                                          "200 OK\n{}",
                                          "200 OK\n{}",
                                          NULL};
    static struct caller read, write, deletion, all, repo;
    (void)state;
    github_kit_open(answers);
    caller_call(&read, "GET", "git/ref/leasehold/k/42?x=1", GITHUB_READ);
    assert_int_equal(read.status, 200);
    assert_string_equal(read.text, "b");
    assert_string_equal(read.etag, "W/\"e1\"");
    assert_int_equal(read.now_ms, 1767225600000);
    assert_true(read.sent_ms > 0 && read.sent_ms <= read.done_ms);
    answers_expect(0, "GET /api/v3/repos/octo/cat/git/ref/leasehold/k/42?x=1 HTTP/1.1\r\n");
    answers_expect(0, "\r\nAccept: application/vnd.github+json\r\n");
    answers_expect(0, "\r\nX-GitHub-Api-Version: 2022-11-28\r\n");
    answers_expect(0, "\r\nUser-Agent: leasehold\r\n");
    answers_expect(0, "\r\nAuthorization: Bearer s3cret\r\n");
    assert_null(strstr(answers_request(0), "application/json"));
    struct github_call call = github_kit_call("POST", "git/refs", GITHUB_GRANT);
    call.body = json_pack("{s:s}", "ref", "x");
    caller_start_call(&write, github_kit_api, &call);
    caller_finish(&write);
    assert_int_equal(write.status, 201);
    assert_false(write.has_etag);
    answers_expect(1, "\r\nContent-Type: application/json\r\n");
    answers_expect(1, "\r\n\r\n{\"ref\":\"x\"}");
    caller_call(&deletion, "DELETE", "git/refs/x", GITHUB_RELEASE);
    assert_int_equal(deletion.status, 204);
    answers_expect(2, "DELETE /api/v3/repos/octo/cat/git/refs/x ");
    caller_call(&all, "GET", "/rate_limit", GITHUB_READ);
    answers_expect(3, "GET /api/v3/rate_limit ");
    caller_call(&repo, "GET", "", GITHUB_READ);
    answers_expect(4, "GET /api/v3/repos/octo/cat ");
}

static void a_copy_may_be_current(void **state)
{
    static const char *const answers[] = {"304 Not Modified\r\nETag: \"e1\"\n", NULL};
    static struct caller caller;
    (void)state;
    github_kit_open(answers);
    struct github_call call = github_kit_call("GET", "git/ref/x", GITHUB_READ);
    call.etag = "\"e1\"";
    caller_start_call(&caller, github_kit_api, &call);
    caller_finish(&caller);
    assert_int_equal(caller.status, 304);
    assert_string_equal(caller.etag, "\"e1\"");
    answers_expect(0, "\r\nIf-None-Match: \"e1\"\r\n");
}

static void a_list_has_a_next_page(void **state)
{
    char first[256], foreign[256], last[256], outside[256];
    const char *answers[] = {first, "200 OK\n[]", foreign, last, outside, NULL};
    static struct caller caller;
    (void)state;
    (void)snprintf(first, sizeof first,
                   "200 OK\r\nLink: <http://127.0.0.1:%u/api/v3/r/1?page=1>; rel=\"prev\", "
                   "<http://127.0.0.1:%u/api/v3/r/1?page=3>; rel=\"next\"\n[]",
                   answers_port(), answers_port());
    (void)snprintf(foreign, sizeof foreign,
                   "200 OK\r\nLink: <http://127.0.0.2:%u/api/v3/x>; rel=\"next\"\n[]",
                   answers_port());
    (void)snprintf(last, sizeof last,
                   "200 OK\r\nLink: <http://127.0.0.1:%u/api/v3/x>; rel=\"prev\"\n[]",
                   answers_port());
    (void)snprintf(outside, sizeof outside,
                   "200 OK\r\nLink: <http://127.0.0.1:%u/api/v3@evil/x>; rel=\"next\"\n[]",
                   answers_port());
    github_kit_open(answers);
    caller_call(&caller, "GET", "issues", GITHUB_READ);
    assert_string_equal(caller.next, "/r/1?page=3");
    caller_call(&caller, "GET", "/r/1?page=3", GITHUB_READ);
    answers_expect(1, "GET /api/v3/r/1?page=3 ");
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(i == 0 ? "" : caller.next, "");
        if (i < 3)
            caller_call(&caller, "GET", "issues", GITHUB_READ);
    }
}

static void an_error_has_the_words_of_github(void **state)
{
    static const char *const answers[] = {
        "403 Forbidden\r\nx-ratelimit-remaining: 7\n{\"message\":\"Resource\\u001b not "
        "accessible\"}",
        "422 Unprocessable\n{\"message\":\"your token is s3cret, s3cret\"}", NULL};
    static struct caller refused, echo;
    (void)state;
    github_kit_open(answers);
    caller_call(&refused, "POST", "git/refs", GITHUB_GRANT);
    assert_int_equal(refused.status, 403);
    assert_string_equal(refused.why, "GitHub answers 403: Resource? not accessible");
    caller_call(&echo, "POST", "git/refs", GITHUB_GRANT);
    assert_string_equal(echo.why, "GitHub answers 422: your token is ******, ******");
    assert_int_equal(answers_heard(), 2);
}

static void a_refused_token_is_tried_once_more(void **state)
{
    static const char *const answers[] = {
        "401 Unauthorized\n{}", "200 OK\n{}", "401 Unauthorized\n{}",
        "401 Unauthorized\n{\"message\":\"Bad credentials\"}", NULL};
    static struct caller good, bad;
    (void)state;
    github_kit_open(answers);
    caller_call(&good, "POST", "x", GITHUB_GRANT);
    assert_int_equal(good.status, 200);
    caller_call(&bad, "GET", "x", GITHUB_READ);
    assert_int_equal(bad.status, 401);
    assert_string_equal(bad.why, "GitHub answers 401: Bad credentials");
    assert_int_equal(answers_heard(), 4);
}

static void a_request_without_a_reply_is_not_sent_again(void **state)
{
    static const char *const answers[] = {"", "500 Oops\n{}", "503 Oops\r\nRetry-After: 0\n{}",
                                          NULL};
    static struct caller cut, oops, busy, late, none;
    (void)state;
    github_kit_open(answers);
    caller_call(&cut, "POST", "x", GITHUB_GRANT);
    assert_true(cut.status == 0 && !cut.refused && cut.sent_ms > 0);
    caller_call(&oops, "POST", "x", GITHUB_GRANT);
    assert_int_equal(oops.status, 500);
    caller_call(&busy, "GET", "x", GITHUB_READ);
    assert_int_equal(busy.status, 503);
    struct github_call call = github_kit_call("POST", "x", GITHUB_GRANT);
    call.give_up_at_ms = host_boot_ms() + 100;
    caller_start_call(&late, github_kit_api, &call); /* no reply */
    caller_finish(&late);
    assert_true(late.status == 0 && !late.refused);
    assert_int_equal(answers_heard(), 4);
    call.give_up_at_ms = host_boot_ms() - 1;
    caller_start_call(&none, github_kit_api, &call);
    caller_finish(&none);
    assert_true(none.status == 0 && none.refused && none.sent_ms == 0);
    assert_non_null(strstr(none.why, "deadline"));
    assert_int_equal(answers_heard(), 4);
}

static void a_blocking_call_returns_the_reply(void **state)
{
    char answer[256];
    const char *answers[] = {answer, NULL};
    struct github_result result;
    (void)state;
    (void)snprintf(answer, sizeof answer,
                   "200 OK\r\nLink: <http://127.0.0.1:%u/api/v3/n>; rel=\"next\"\n{\"a\":\"b\"}",
                   answers_port());
    github_kit_open(answers);
    struct github_call call = github_kit_call("GET", "x", GITHUB_READ);
    github_api_call(github_kit_api, &call, &result);
    assert_int_equal(result.status, 200);
    assert_string_equal(github_string(result.json, "a"), "b");
    assert_string_equal(result.next, "/n");
    assert_string_equal(result.why, "");
    github_result_done(&result);
}

static void times_are_read(void **state)
{
    (void)state;
    assert_int_equal(github_time_ms("2026-01-01T00:00:01Z"), 1767225601000);
    assert_int_equal(github_time_ms("2026-01-01T00:00:01.5Z"), 1767225601000);
    assert_int_equal(github_time_ms("2026-01-01"), -1);
    assert_int_equal(github_time_ms(""), -1);
}

/* ---- order and pace ---- */

static void urgent_requests_are_first(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", "200 OK\n{}", "200 OK\n{}",
                                          "200 OK\n{}", "200 OK\n{}", NULL};
    static struct caller callers[5];
    static const enum github_kind kinds[] = {GITHUB_SHOW, GITHUB_GRANT, GITHUB_RELEASE,
                                             GITHUB_GRANT, GITHUB_HEARTBEAT};
    static const unsigned orders[] = {4, 2, 1, 3, 0};
    (void)state;
    github_kit_open(answers);
    for (size_t i = 0; i < 5; i++)
        caller_start(&callers[i], "POST", "x", kinds[i]);
    caller_finish(&callers[0]);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(callers[i].order, orders[i]);
}

static atomic_int writing, most_writing, reading, most_reading;

static void raise_most(atomic_int *most, int value)
{
    int seen = atomic_load(most);
    while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
        ;
}

static bool slow_server(int file, const char *request)
{
    bool read = strncmp(request, "GET ", 4) == 0;
    atomic_int *now = read ? &reading : &writing;
    raise_most(read ? &most_reading : &most_writing, atomic_fetch_add(now, 1) + 1);
    (void)poll(NULL, 0, /* timeout= */ 20);
    (void)atomic_fetch_sub(now, 1);
    http_kit_say(file, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    return true;
}

static void reads_are_parallel_and_writes_are_not(void **state)
{
    enum { READS = 20, WRITES = 6 };
    static const char *const none[] = {NULL};
    static struct caller reads[READS], writes[WRITES];
    (void)state;
    atomic_store(&most_writing, 0);
    atomic_store(&most_reading, 0);
    github_kit_url.pace_ms = 60;
    github_kit_open(none);
    answers_say_by(slow_server);
    for (size_t i = 0; i < WRITES; i++)
        caller_start(&writes[i], "PATCH", "x", GITHUB_GRANT);
    for (size_t i = 0; i < READS; i++)
        caller_start(&reads[i], "GET", "x", GITHUB_READ);
    for (size_t i = 0; i < READS; i++)
        caller_finish(&reads[i]);
    for (size_t i = 0; i < WRITES; i++)
        caller_finish(&writes[i]);
    for (size_t i = 1; i < WRITES; i++)
        assert_true(writes[i].sent_ms - writes[i - 1].sent_ms >= 60);
    assert_int_equal(atomic_load(&most_writing), 1);
    assert_true(atomic_load(&most_reading) > 1 && atomic_load(&most_reading) <= 8);
    struct github_usage usage;
    github_api_usage(github_kit_api, &usage);
    assert_int_equal(usage.sent[GITHUB_READ], READS);
    assert_int_equal(usage.sent[GITHUB_GRANT], WRITES);
    assert_int_equal(usage.writes, WRITES);
    assert_int_equal(usage.limit, -1);
}

enum { CLIENTS = 3, EACH = 8 };
static int64_t written[CLIENTS][EACH];

static void *write_alone(void *argument)
{
    int64_t *times = argument;
    struct github_api *api = NULL;
    if (!github_api_open(&api, &github_kit_url, GITHUB_KIT_TIMEOUT_MS, NULL))
        return NULL;
    for (size_t i = 0; i < EACH; i++) {
        struct caller caller;
        struct github_call call = github_kit_call("POST", "x", GITHUB_GRANT);
        caller_start_call(&caller, api, &call);
        while (caller.done == 0)
            github_kit_run(api, /* ms= */ 1);
        times[i] = caller.status == 200 ? caller.sent_ms : 0;
    }
    github_api_close(&api);
    return NULL;
}

static void clients_of_all_threads_take_turns(void **state)
{
    static const char *const none[] = {NULL};
    pthread_t threads[CLIENTS];
    int64_t first_ends_ms = INT64_MAX, last_begins_ms = 0;
    (void)state;
    atomic_store(&most_writing, 0);
    github_kit_open(none);
    answers_say_by(slow_server);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_alone, written[i]), 0);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&most_writing), 1);
    for (size_t i = 0; i < CLIENTS; i++) {
        for (size_t j = 0; j < EACH; j++)
            assert_true(written[i][j] > 0);
        if (written[i][EACH - 1] < first_ends_ms)
            first_ends_ms = written[i][EACH - 1];
        if (written[i][0] > last_begins_ms)
            last_begins_ms = written[i][0];
    }
    assert_true(last_begins_ms < first_ends_ms); /* nobody waits for all writes of another one */
}

static void a_cancelled_write_makes_room(void **state)
{
    static const char *const answers[] = {NULL};
    static struct caller first, second, third;
    (void)state;
    github_kit_open(answers);
    caller_start(&first, "POST", "x", GITHUB_GRANT);
    caller_start(&second, "POST", "x", GITHUB_GRANT);
    while (answers_heard() == 0)
        github_kit_run(github_kit_api, /* ms= */ 5);
    caller_start(&third, "POST", "x", GITHUB_GRANT);
    github_request_cancel(&third.request);
    github_request_cancel(&third.request); /* idle */
    github_request_cancel(&first.request);
    while (answers_heard() == 1)
        github_kit_run(github_kit_api, /* ms= */ 5);
    assert_true(first.done == 0 && second.done == 0); /* the second one ends with the client */
}

/* ---- addresses ---- */

static void the_token_is_sent_over_tls_or_to_this_host(void **state)
{
    static const struct {
        const char *address;
        bool good, loopback;
    } cases[] = {
        {"https://github.example/api/v3", true, false},
        {"https://127.0.0.1:1", true, true},
        {"http://127.9.8.7:1/", true, true},
        {"http://localhost", true, true},
        {"http://[::1]:80/x", true, true},
        {"", true, false},
        {"http://github.example", false, false},
        {"http://127.0.0.1.example", false, false},
        {"http://127.0.0.1@github.example", false, false},
        {"http://localhost.example:80", false, false},
        {"ftp://127.0.0.1", false, false},
        {"https://user:pw@github.example", false, false},
        {"https://github.example?x", false, false},
        {"https://", false, false},
        {"github.example", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct github_api *api = NULL;
        (void)setenv("GITHUB_API_URL", cases[i].address, 1);
        if (github_kit_try_open(&api) != cases[i].good)
            fail_msg("%s: %s", cases[i].address, github_kit_why);
        assert_true(cases[i].good || strstr(github_kit_why, "GITHUB_API_URL") != NULL);
        assert_int_equal(github_api_is_loopback(), cases[i].loopback);
        github_api_close(&api);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_request_has_the_headers_of_github),
        STORY(a_copy_may_be_current),
        STORY(a_list_has_a_next_page),
        STORY(an_error_has_the_words_of_github),
        STORY(a_refused_token_is_tried_once_more),
        STORY(a_request_without_a_reply_is_not_sent_again),
        STORY(a_blocking_call_returns_the_reply),
        STORY(times_are_read),
        STORY(urgent_requests_are_first),
        STORY(reads_are_parallel_and_writes_are_not),
        STORY(clients_of_all_threads_take_turns),
        STORY(a_cancelled_write_makes_room),
        STORY(the_token_is_sent_over_tls_or_to_this_host),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

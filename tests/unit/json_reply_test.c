/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replies of a JSON API, also of a server that misbehaves: headers by name, conditional
 * requests, streams of JSON lines, pages.
 */
#include "json_api_kit.h"
#include "core/record.h"
#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- headers ---- */

static void a_condition_gives_304(void **state)
{
    static const char *const answers[] = {"304 Not Modified\r\nETag: \"v1\"\n", NULL};
    static const char *const headers[] = {"If-None-Match: \"v1\"", NULL};
    static struct asker asker;
    (void)state;
    json_kit_open("Bearer", answers);
    struct json_call call = json_kit_call("GET", "/x");
    call.headers = headers;
    asker_start_call(&asker, &call);
    assert_true(kit_until(&asker.done));
    assert_int_equal(asker.status, 304);
    assert_false(asker.has_json);
    assert_string_equal(asker.why, "");
    assert_string_equal(asker.value[0], "\"v1\"");
    answers_expect(0, "\r\nIf-None-Match: \"v1\"\r\n");
    answers_expect(0, "\r\nAccept: application/json\r\n");
}

static size_t link_length, header_count;

static bool say_headers(int file, const char *request)
{
    (void)request;
    char *link = malloc(link_length + 1);
    assert_non_null(link);
    memset(link, 'l', link_length);
    link[link_length] = '\0';
    http_kit_say(file, "HTTP/1.1 103 Early Hints\r\nETag: early\r\n\r\n"
                       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n: no name\r\n"
                       "x-ratelimit-remaining:17\r\nTwice: first\r\nTwice: second\r\nLink: ");
    http_kit_say(file, link);
    http_kit_say(file, "\r\netag:   W/\"v2\"  \r\n");
    for (size_t i = 0; i < header_count; i++)
        http_kit_say(file, "X-Filler: 0123456789012345678901234567890123456789\r\n");
    http_kit_say(file, "\r\n{}");
    free(link);
    return true;
}

static void headers_are_found_by_name(void **state)
{
    static const char *const none[] = {NULL};
    static struct asker fits, long_one, many;
    (void)state;
    json_kit_open("Bearer", none);
    answers_say_by(say_headers);
    link_length = HTTP_HEADER_MAX;
    asker_ask(&fits, "GET", "/x");
    assert_int_equal(fits.status, 200);
    assert_string_equal(fits.value[0], "W/\"v2\"");
    assert_int_equal(strlen(fits.value[1]), HTTP_HEADER_MAX);
    assert_string_equal(fits.value[2], "17");
    assert_string_equal(fits.value[3], "first");
    assert_true(fits.now_ms == TIME_UNKNOWN);
    link_length = HTTP_HEADER_MAX + 1;
    asker_ask(&long_one, "GET", "/x");
    assert_false(long_one.found[1]);
    assert_string_equal(long_one.value[0], "W/\"v2\"");
    header_count = 2000; /* 100 KB */
    asker_ask(&many, "GET", "/x");
    assert_int_equal(many.status, 0);
    assert_non_null(strstr(many.why, "too long"));
    header_count = 0;
}

static const char *odd_reply;

static bool say_odd(int file, const char *request)
{
    (void)request;
    http_kit_say(file, odd_reply);
    return false;
}

static void odd_headers_do_no_harm(void **state)
{
    static const char *const none[] = {NULL};
    static const char *const odd[] = {
        "HTTP/1.1 200 OK\r\nDate: never\r\nRetry-After: \xff\xfe\r\nETag:\r\nContent-Length: "
        "2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nRetry-After: 99999999999999999999\r\nDate: Fri, 31 Dec 9999 23:59:59 "
        "GMT\r\nETag: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nDate: Sun, 06 Nov "
        "1994 08:49:37 GMT\r\nETag: trailer\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\n{}"};
    static struct asker askers[4];
    (void)state;
    json_kit_open("Bearer", none);
    answers_say_by(say_odd);
    for (size_t i = 0; i < 4; i++) {
        odd_reply = odd[i];
        asker_ask(&askers[i], "GET", "/x");
        assert_int_equal(askers[i].status, i < 3 ? 200 : 0);
        assert_true(askers[i].has_json || i == 3);
    }
    assert_true(askers[0].now_ms == TIME_UNKNOWN);
    assert_string_equal(askers[0].value[0], "");
    assert_true(askers[2].now_ms == TIME_UNKNOWN);
    assert_false(askers[2].found[0]);
}

/* ---- streams ---- */

static void a_stream_comes_line_by_line(void **state)
{
    static const char *const answers[] = {
        "watch\n{\"a\":\"1\"}\r\n\n\r\n{\"a\":\"2\"}\nnot json\n{\"a\":\"3\"}\n{\"a\":\"cut", NULL};
    static struct asker asker = {.most_lines = 100};
    (void)state;
    json_kit_open("Bearer", answers);
    asker_ask(&asker, "GET", "/x");
    assert_int_equal(asker.lines, 4);
    assert_int_equal(asker.bad_lines, 1);
    assert_string_equal(asker.last, "3");
    assert_int_equal(asker.status, 200); /* its end */
}

static void a_stream_is_dropped_on_request(void **state)
{
    static const char *const answers[] = {"watch\n{\"a\":\"1\"}\n{\"a\":\"2\"}\n{\"a\":\"3\"}\n",
                                          "200 OK\n{}", NULL};
    static struct asker asker = {.most_lines = 2}, next;
    (void)state;
    json_kit_open("Bearer", answers);
    asker_start(&asker, "GET", "/x");
    assert_true(kit_until(&asker.lines));
    kit_turn(/* ms= */ 20);
    assert_int_equal(asker.lines, 2);
    assert_int_equal(asker.done, 0);
    asker_ask(&next, "GET", "/x"); /* the API goes on */
}

static bool say_long_line(int file, const char *request)
{
    char chunk[1025];
    (void)request;
    memset(chunk, ' ', sizeof chunk - 1);
    chunk[sizeof chunk - 1] = '\0';
    http_kit_say(file, "HTTP/1.1 200 OK\r\n\r\n{\"a\":\"1\"}\n");
    for (size_t i = 0; i < 4096; i++)
        http_kit_say(file, chunk);
    return false;
}

static void an_endless_line_is_an_error(void **state)
{
    static const char *const none[] = {NULL};
    static struct asker asker = {.most_lines = 100};
    (void)state;
    json_kit_open("Bearer", none);
    answers_say_by(say_long_line);
    asker_ask(&asker, "GET", "/x");
    assert_int_equal(asker.lines, 1);
    assert_int_equal(asker.status, 0);
    assert_non_null(strstr(asker.why, "too long"));
}

/* Its text is short, but it would take a hundred times as much memory. */
static void a_value_that_needs_much_memory_is_refused(void **state)
{
    static char text[600001];
    size_t size;
    (void)state;
    text[0] = '[';
    for (size_t i = 1; i < sizeof text - 1; i++)
        text[i] = "{},"[(i - 1) % 3];
    text[sizeof text - 2] = ']'; /* in place of the last comma */
    assert_null(json_parse(text, sizeof text - 1, &size));
    json_t *fine = json_parse("[\"[[{{,,\\\"[\"]", 13, &size);
    assert_non_null(fine);
    assert_int_equal(size, 13 + 320);
    json_decref(fine);
}

/* ---- pages ---- */

static void pages_must_go_on(void **state)
{
    struct json_pages pages = {0};
    char token[32];
    const char *wrong = NULL;
    (void)state;
    assert_null(json_pages_turn(&pages, "a-1", 10));
    assert_string_equal(pages.next, "a-1");
    assert_non_null(json_pages_turn(&pages, "a-1", 10)); /* repeated */
    assert_non_null(json_pages_turn(&pages, "b&c=d", 10));
    assert_null(json_pages_turn(&pages, "", 10));
    assert_null(pages.next);
    for (unsigned i = 0; wrong == NULL && i < 5000; i++) {
        (void)snprintf(token, sizeof token, "t%u", i);
        wrong = json_pages_turn(&pages, token, 10);
    }
    assert_string_equal(wrong, "the list is too long");
    json_pages_done(&pages);
    assert_null(json_pages_turn(&pages, "x", 200 << 20));
    assert_non_null(json_pages_turn(&pages, "y", 200 << 20));
    json_pages_done(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_condition_gives_304),
        STORY(headers_are_found_by_name),
        STORY(odd_headers_do_no_harm),
        STORY(a_stream_comes_line_by_line),
        STORY(a_stream_is_dropped_on_request),
        STORY(an_endless_line_is_an_error),
        cmocka_unit_test(a_value_that_needs_much_memory_is_refused),
        cmocka_unit_test(pages_must_go_on),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

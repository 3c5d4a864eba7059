/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of HTTP clients: each is fed whole, byte by byte and in two pieces of every size, in
 * memory that moves between the calls, with equal results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "httpd_cases.h"
#include "wire/httpd_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUMMARY_SIZE = 1024 };

static const struct httpd_limits limits = {.head_max = CASE_HEAD_MAX, .body_max = CASE_BODY_MAX};

/* ---- feeding ---- */

struct outcome {
    enum httpd_result result;
    int status;
    const char *why;
    size_t size, continues;
    char summary[SUMMARY_SIZE];
};

static void add_slice(struct text *out, const char *name, struct httpd_slice slice)
{
    if (slice.bytes == NULL)
        return;
    text_add(out, name);
    text_add_bytes(out, slice.bytes, slice.length);
}

/* A request in one line. NUL bytes of the body become question marks. */
static void summarise(const struct httpd_request *request, char *bytes, size_t size)
{
    struct text out;
    char *body = malloc(request->body_length + 1); /* the sanitizer finds a write behind it */
    assert_non_null(body);
    assert_int_equal(httpd_request_body(request, body), request->body_length);
    for (size_t i = 0; i < request->body_length; i++)
        if (body[i] == '\0')
            body[i] = '?';
    text_init(&out, bytes, size);
    add_slice(&out, "", request->method);
    add_slice(&out, " ", request->path);
    add_slice(&out, " ?", request->query);
    text_add(&out, request->keep_alive ? " keep" : " close");
    add_slice(&out, " host=", request->host);
    add_slice(&out, " origin=", request->origin);
    add_slice(&out, " authorization=", request->authorization);
    add_slice(&out, " content_type=", request->content_type);
    add_slice(&out, " last_event_id=", request->last_event_id);
    text_add(&out, request->chunked ? " chunked" : "");
    if (request->body_length > 0)
        add_slice(&out, " body=", (struct httpd_slice){body, request->body_length});
    assert_false(out.cut);
    free(body);
}

/* Feeds a copy of exactly that length, so that the sanitizer finds reads behind it. */
static void feed_copy(struct httpd_scan *scan, const char *bytes, size_t length,
                      struct outcome *out)
{
    static const struct httpd_request nothing;
    struct httpd_request request;
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    out->result = httpd_request_feed(scan, copy, length, &limits, &request);
    out->continues += request.wants_continue;
    out->status = request.status;
    out->why = request.why;
    out->size = request.size;
    out->summary[0] = '\0';
    if (out->result == HTTPD_COMPLETE) {
        assert_true(!request.wants_continue && request.size <= length);
        assert_ptr_equal(request.body.bytes + request.body.length, copy + request.size);
        summarise(&request, out->summary, sizeof out->summary);
    } else {
        assert_true(request.method.bytes == nothing.method.bytes && request.size == 0);
        assert_int_equal(out->result == HTTPD_BROKEN, out->why != NULL);
        assert_int_equal(out->result == HTTPD_BROKEN, out->status != 0);
    }
    free(copy);
}

/* Feeds the first `cut` bytes, then `step` more each time. */
static struct outcome feed_pieces(const char *bytes, size_t length, size_t cut, size_t step)
{
    struct httpd_scan scan = {0};
    struct outcome outcome = {0};
    feed_copy(&scan, bytes, cut, &outcome);
    while (outcome.result == HTTPD_MORE && cut < length) {
        cut = length - cut < step ? length : cut + step;
        feed_copy(&scan, bytes, cut, &outcome);
    }
    struct outcome again = outcome; /* nothing changes when the same bytes are fed again */
    feed_copy(&scan, bytes, cut, &again);
    assert_int_equal(again.result, outcome.result);
    assert_string_equal(again.summary, outcome.summary);
    assert_int_equal(again.status, outcome.status);
    assert_int_equal(again.continues, outcome.continues);
    return outcome;
}

static void assert_same(const struct outcome *one, const struct outcome *other)
{
    assert_int_equal(one->result, other->result);
    assert_int_equal(one->status, other->status);
    assert_int_equal(one->size, other->size);
    assert_ptr_equal(one->why, other->why);
    assert_string_equal(one->summary, other->summary);
}

/* The outcome, equal for all pieces. */
static struct outcome feed_all_ways(const char *bytes, size_t length)
{
    struct outcome whole = feed_pieces(bytes, length, length, 1);
    struct outcome single = feed_pieces(bytes, length, 0, 1);
    assert_same(&single, &whole);
    for (size_t cut = 0; cut < length; cut++) {
        struct outcome two = feed_pieces(bytes, length, cut, length);
        assert_same(&two, &whole);
    }
    whole.continues = single.continues;
    return whole;
}

/* ---- tests ---- */

static void requests_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < httpd_accepted_count; i++) {
        const char *bytes = httpd_accepted[i].bytes;
        size_t length = httpd_accepted[i].length;
        struct outcome outcome = feed_all_ways(bytes, length);
        if (outcome.result != HTTPD_COMPLETE)
            fail_msg("case %zu: %s: %d %s", i, bytes, outcome.status, outcome.why);
        assert_int_equal(outcome.size, length);
        assert_string_equal(outcome.summary, httpd_accepted[i].summary);
        assert_int_equal(outcome.continues, httpd_accepted[i].continues);
        /* Each is incomplete without its last byte. */
        outcome = feed_pieces(bytes, length - 1, length - 1, 1);
        assert_int_equal(outcome.result, HTTPD_MORE);
    }
}

static void bytes_behind_a_request_are_not_read(void **state)
{
    static const char behind[] = {'\n', '\0', '\r'};
    char longer[SUMMARY_SIZE];
    (void)state;
    for (size_t i = 0; i < httpd_accepted_count; i++) {
        size_t length = httpd_accepted[i].length;
        struct outcome alone = feed_pieces(httpd_accepted[i].bytes, length, length, 1);
        assert_true(length + sizeof behind < sizeof longer);
        memcpy(longer, httpd_accepted[i].bytes, length);
        memcpy(longer + length, behind, sizeof behind);
        struct outcome outcome =
            feed_pieces(longer, length + sizeof behind, length + sizeof behind, 1);
        assert_same(&outcome, &alone);
    }
}

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < httpd_refused_count; i++) {
        struct outcome outcome = feed_all_ways(httpd_refused[i].bytes, httpd_refused[i].length);
        if (outcome.result != HTTPD_BROKEN || outcome.status != httpd_refused[i].status ||
            strstr(outcome.why, httpd_refused[i].why) == NULL)
            fail_msg("case %zu: %s: result %d, %d %s", i, httpd_refused[i].bytes,
                     (int)outcome.result, outcome.status, outcome.why != NULL ? outcome.why : "");
        size_t length = strlen(outcome.why);
        assert_true(outcome.why[0] >= 'A' && outcome.why[0] <= 'Z' &&
                    outcome.why[length - 1] == '.');
    }
}

static void pipelined_requests_are_separated(void **state)
{
    static const char bytes[] = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nGET"
                                "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "3\r\nabc\r\n0\r\nT: 1\r\n\r\n"
                                "\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n"
                                "GET /4 HTTP/1.0\r\n\r\n";
    static const char *const expected[] = {
        "POST /1 keep host=h body=GET",
        "POST /2 keep host=h chunked body=abc",
        "GET /3 keep host=h",
        "GET /4 close",
    };
    size_t at = 0;
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct outcome outcome = feed_all_ways(bytes + at, sizeof bytes - 1 - at);
        assert_int_equal(outcome.result, HTTPD_COMPLETE);
        assert_string_equal(outcome.summary, expected[i]);
        at += outcome.size;
    }
    assert_int_equal(at, sizeof bytes - 1);
}

/* Every byte at every place of two requests: no read outside, and the same result in any pieces. */
static void every_byte_everywhere(void **state)
{
    static const char *const requests[] = {
        "GET /?a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "P / HTTP/1.1\r\nHost:h\r\nTransfer-Encoding:chunked\r\n\r\n2;x\r\nab\r\n0\r\nA:\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        size_t length = strlen(requests[i]);
        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                char changed[128];
                memcpy(changed, requests[i], length);
                changed[at] = (char)byte;
                struct outcome whole = feed_pieces(changed, length, length, 1);
                struct outcome single = feed_pieces(changed, length, 0, 1);
                struct outcome two = feed_pieces(changed, length, at, length);
                assert_same(&single, &whole);
                assert_same(&two, &whole);
                /* A line end is never anything else. */
                if (requests[i][at] == '\r' || requests[i][at] == '\n')
                    assert_int_equal(whole.result == HTTPD_COMPLETE,
                                     changed[at] == requests[i][at]);
            }
        }
    }
}

/* Exactly the limit passes. */
static void the_limit_of_the_head(void **state)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
    const size_t length = sizeof head - 1;
    (void)state;
    for (size_t limit = 0; limit <= length; limit++) {
        struct httpd_limits tight = {.head_max = limit};
        struct httpd_scan scan = {0};
        struct httpd_request request;
        enum httpd_result result = httpd_request_feed(&scan, head, length, &tight, &request);
        assert_int_equal(result, limit < length ? HTTPD_BROKEN : HTTPD_COMPLETE);
        assert_int_equal(request.status, limit < 16 ? 414 : limit < length ? 431 : 0);
        assert_true(result == HTTPD_BROKEN || request.size <= httpd_request_max(&tight));
    }
}

/* ---- cost ---- */

/* Byte by byte: the seconds of CPU time, and the last result. */
static double feed_slowly(const char *bytes, size_t length, const struct httpd_limits *wide,
                          struct httpd_request *request, enum httpd_result *out)
{
    struct httpd_scan scan = {0};
    clock_t start = clock();
    *out = HTTPD_MORE;
    for (size_t i = 1; i <= length && *out == HTTPD_MORE; i++)
        *out = httpd_request_feed(&scan, bytes, i, wide, request);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

enum { MANY = 100000, SMALL_CHUNK = 6, LINEAR_S = 5 };

static void many_small_chunks_take_linear_time(void **state)
{
    static const char head[] = "P / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    const size_t length = sizeof head - 1 + (size_t)MANY * SMALL_CHUNK + 5;
    const struct httpd_limits usual = {.head_max = 16384, .body_max = 65536};
    const struct httpd_limits wide = {.head_max = 1000000, .body_max = MANY};
    char *bytes = malloc(length + 1), *at = bytes, *body = malloc(MANY);
    struct httpd_request request;
    enum httpd_result result;
    (void)state;
    assert_true(bytes != NULL && body != NULL);
    at += sprintf(at, "%s", head);
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "1\r\n%c\r\n", 'a' + i % 26);
    at += sprintf(at, "0\r\n\r\n");
    size_t whole = (size_t)(at - bytes);

    (void)feed_slowly(bytes, whole, &usual, &request, &result);
    assert_int_equal(result, HTTPD_BROKEN);
    assert_int_equal(request.status, 400);
    double seconds = feed_slowly(bytes, whole, &wide, &request, &result);
    assert_int_equal(result, HTTPD_COMPLETE);
    assert_int_equal(request.body_length, MANY);
    assert_int_equal(httpd_request_body(&request, body), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(body[i], 'a' + i % 26);
    /* 600,000 calls; if each began at the first byte, they would read 180 GB. */
    assert_true(seconds < LINEAR_S);
    free(bytes);
    free(body);
}

static void a_slow_body_takes_linear_time(void **state)
{
    const struct httpd_limits wide = {.head_max = 100, .body_max = 1000000};
    const size_t length = 1000000;
    char *bytes = malloc(length + 100);
    struct httpd_request request;
    enum httpd_result result;
    (void)state;
    assert_non_null(bytes);
    int head = sprintf(bytes, "P / HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n", length);
    memset(bytes + head, 'x', length);
    assert_true(feed_slowly(bytes, (size_t)head + length, &wide, &request, &result) < LINEAR_S);
    assert_int_equal(result, HTTPD_COMPLETE);
    assert_int_equal(request.body_length, length);
    free(bytes);
}

/* ---- slices ---- */

static struct httpd_slice slice_of(const char *text)
{
    return (struct httpd_slice){text, strlen(text)};
}

static void escapes_are_decoded(void **state)
{
    static const struct {
        const char *from, *path, *query; /* NULL: refused */
    } cases[] = {
        {"", "", ""},
        {"abc", "abc", "abc"},
        {"a+b", "a+b", "a b"},
        {"a%2Fb%2fc", "a/b/c", "a/b/c"},
        {"%09%40%0a", "\t@\n", "\t@\n"},
        {"%2B%25%c3%A9", "+%\xc3\xa9", "+%\xc3\xa9"},
        {"%41%42%43%44%45%46%47", "ABCDEFG", "ABCDEFG"},
        {"1234567", "1234567", "1234567"},
        {"12345678", NULL, NULL},
        {"%41%42%43%44%45%46%47%48", NULL, NULL},
        {"%00", NULL, NULL},
        {"a%00b", NULL, NULL},
        {"%", NULL, NULL},
        {"%4", NULL, NULL},
        {"%4g", NULL, NULL},
        {"%g4", NULL, NULL},
        {"%%41", NULL, NULL},
    };
    char out[8];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct httpd_slice from = slice_of(cases[i].from);
        assert_int_equal(httpd_decode_path(from, out, sizeof out), cases[i].path != NULL);
        if (cases[i].path != NULL)
            assert_string_equal(out, cases[i].path);
        assert_int_equal(httpd_decode_query(from, out, sizeof out), cases[i].query != NULL);
        if (cases[i].query != NULL)
            assert_string_equal(out, cases[i].query);
    }
    assert_false(httpd_decode_path(slice_of(""), out, 0));
    assert_false(httpd_decode_path((struct httpd_slice){"%41", 2}, out, sizeof out));
    assert_false(httpd_decode_path((struct httpd_slice){"a\0b", 3}, out, sizeof out));
    assert_true(httpd_decode_query((struct httpd_slice){0}, out, sizeof out));
    assert_string_equal(out, "");
}

static void parts_are_separated(void **state)
{
    static const struct {
        const char *from, *parts;
    } cases[] = {
        {"a/b", "<a><b>"}, {"/", "<><>"}, {"", "<>"}, {"a//", "<a><><>"}, {"ab", "<ab>"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct httpd_slice rest = slice_of(cases[i].from), part;
        char parts[64];
        struct text out;
        text_init(&out, parts, sizeof parts);
        while (httpd_next_part(&rest, '/', &part)) {
            add_slice(&out, "<", part);
            text_add(&out, ">");
        }
        assert_string_equal(parts, cases[i].parts);
    }
    struct httpd_slice absent = {0}, part;
    assert_false(httpd_next_part(&absent, '&', &part));
    assert_true(httpd_is(slice_of("GET"), "GET") && httpd_is(absent, ""));
    assert_false(httpd_is(slice_of("GET"), "GE") || httpd_is(slice_of("GET"), "get") ||
                 httpd_is(absent, "G"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(bytes_behind_a_request_are_not_read),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(pipelined_requests_are_separated),
        cmocka_unit_test(every_byte_everywhere),
        cmocka_unit_test(the_limit_of_the_head),
        cmocka_unit_test(many_small_chunks_take_linear_time),
        cmocka_unit_test(a_slow_body_takes_linear_time),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(parts_are_separated),
    };
    return cmocka_run_group_tests_name("httpd_request", tests, NULL, NULL);
}

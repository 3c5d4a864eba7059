/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of JSON APIs against a small real server with scripted replies: credentials that are
 * refused, pauses for all, redirects, headers and streams of a server that misbehaves.
 */
#include "answers_kit.h"
#include "core/record.h"
#include "http/json_api.h"
#include "process/host.h"
#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 * 1024, TIMEOUT_MS = 3000 };

/* ---- the credential ---- */

static unsigned number; /* of the credential */
static bool ready, missing;

static bool login_ready(void *owner)
{
    (void)owner;
    return ready;
}

static bool login_credential(void *owner, const char **out, struct text *why)
{
    static char credential[32];
    (void)owner;
    (void)snprintf(credential, sizeof credential, "s3cret-%u", number);
    *out = credential;
    text_add(why, missing ? "there is no credential" : "");
    return !missing;
}

static void login_refused(void *owner)
{
    (void)owner;
    number++;
}

/* ---- the client ---- */

static struct json_api *api;
static char server[64];
static unsigned warnings;
static char warning[256];

static void on_warning(void *user, const char *text)
{
    (void)user;
    warnings++;
    (void)snprintf(warning, sizeof warning, "%s", text);
}

static void open_api(const char *scheme, const char *const *answers)
{
    static const struct stream_tls plain;
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u/base", answers_port());
    struct json_api_options options = {
        .name = "the server",
        .server = server,
        .tls = &plain,
        .scheme = scheme,
        .login = {.ready = login_ready, .credential = login_credential, .refused = login_refused},
        .pause_max_ms = TIMEOUT_MS,
        .warning = on_warning};
    answers_say(answers);
    api = json_api_new(kit_net, &options);
    assert_non_null(api);
}

static int begin(void **state)
{
    number = warnings = 0;
    ready = true;
    missing = false;
    return !answers_open() || kit_open(state) != 0;
}

static int end(void **state)
{
    json_api_free(&api);
    answers_close();
    return kit_close(state);
}

enum { SHOWN = 4 };

struct asker {
    struct json_request request;
    unsigned done, lines, bad_lines, most_lines;
    int status;
    bool has_json, found[SHOWN];
    int64_t now_ms;
    char why[JSON_WHY], text[64], last[64], value[SHOWN][HTTP_HEADER_MAX + 1];
    struct asker *next; /* started from the callback; with `stops`, cancelled there */
    bool stops;
};

static const char *const shown[SHOWN] = {"ETag", "link", "X-RateLimit-Remaining", "Twice"};

static void start(struct asker *asker, const char *method, const char *path);

static void on_done(void *owner, const struct json_reply *reply)
{
    struct asker *asker = owner;
    asker->done++;
    asker->status = reply->status;
    asker->has_json = reply->json != NULL;
    asker->now_ms = reply->now_ms;
    (void)snprintf(asker->why, sizeof asker->why, "%s", reply->why);
    assert_null(strstr(reply->why, "s3cret"));
    assert_null(asker->request.api);
    const char *text = json_string_value(json_object_get(reply->json, "a"));
    (void)snprintf(asker->text, sizeof asker->text, "%s", text != NULL ? text : "");
    for (size_t i = 0; i < SHOWN && reply->response != NULL; i++) {
        const char *value = http_header(reply->response, shown[i], /* index= */ 0);
        asker->found[i] = value != NULL;
        (void)snprintf(asker->value[i], sizeof asker->value[i], "%s", value != NULL ? value : "");
    }
    if (asker->next != NULL && asker->stops)
        json_request_cancel(&asker->next->request);
    else if (asker->next != NULL)
        start(asker->next, "GET", "/next");
}

static bool on_line(void *owner, json_t *value, size_t size)
{
    struct asker *asker = owner;
    const char *text = json_string_value(json_object_get(value, "a"));
    assert_true(value == NULL || size > 0);
    asker->lines++;
    asker->bad_lines += value == NULL ? 1 : 0;
    (void)snprintf(asker->last, sizeof asker->last, "%s", text != NULL ? text : "");
    if (asker->lines < asker->most_lines)
        return true;
    json_request_cancel(&asker->request);
    return false;
}

static struct json_call call_of(const char *method, const char *path)
{
    return (struct json_call){
        .method = method, .path = path, .most = MOST, .give_up_at_ms = host_boot_ms() + TIMEOUT_MS};
}

static void start_call(struct asker *asker, const struct json_call *call)
{
    struct json_callbacks callbacks = {.done = on_done, .owner = asker};
    callbacks.line = asker->most_lines > 0 ? on_line : NULL;
    json_request_start(&asker->request, api, call, &callbacks);
    assert_int_equal(asker->done, 0); /* never before it returns */
}

static void start(struct asker *asker, const char *method, const char *path)
{
    json_t *body = strcmp(method, "GET") != 0 ? json_pack("{s:f}", "x", 0.1) : NULL;
    struct json_call call = call_of(method, path);
    call.body = body;
    start_call(asker, &call);
    json_decref(body);
}

static void ask(struct asker *asker, const char *method, const char *path)
{
    start(asker, method, path);
    assert_true(kit_until(&asker->done));
    assert_int_equal(asker->done, 1);
}

/* ---- requests ---- */

static void a_call_has_address_credential_and_body(void **state)
{
    static const char *const answers[] = {"200 OK\n{\"a\":\"b\"}", "201 Created\n{}", NULL};
    static struct asker read, write;
    (void)state;
    open_api("Bearer", answers);
    ask(&read, "GET", "/x?y=1");
    assert_int_equal(read.status, 200);
    assert_string_equal(read.text, "b");
    assert_string_equal(read.why, "");
    assert_int_equal(read.now_ms, 1767225600000);
    answers_expect(0, "GET /base/x?y=1 HTTP/1.1\r\n");
    answers_expect(0, "\r\nAuthorization: Bearer s3cret-0\r\n");
    ask(&write, "PUT", "/x");
    assert_int_equal(write.status, 201);
    answers_expect(1, "\r\nContent-Type: application/json\r\n");
    answers_expect(1, "\r\n\r\n{\"x\":0.1}");
}

static void a_credential_may_stand_alone(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", NULL};
    static struct asker asker;
    (void)state;
    open_api(/* scheme= */ NULL, answers);
    ask(&asker, "GET", "/x");
    answers_expect(0, "\r\nAuthorization: s3cret-0\r\n");
}

static void a_refused_credential_is_renewed_once(void **state)
{
    static const char *const answers[] = {"401 Unauthorized\n{}", "200 OK\n{}",
                                          "401 Unauthorized\n{}",
                                          "401 Unauthorized\n{\"message\":\"who?\"}", NULL};
    static struct asker good, bad;
    (void)state;
    open_api("token", answers);
    ask(&good, "POST", "/x");
    assert_int_equal(good.status, 200);
    answers_expect(0, "Authorization: token s3cret-0\r\n");
    answers_expect(1, "Authorization: token s3cret-1\r\n");
    answers_expect(1, "\r\n\r\n{\"x\":0.1}"); /* the body comes again, too */
    ask(&bad, "GET", "/x");
    assert_int_equal(bad.status, 401);
    assert_string_equal(bad.why, "the server answers 401: who?");
    assert_int_equal(answers_heard(), 4);
}

static void a_request_waits_for_the_credential(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", NULL};
    static struct asker asker, late, never;
    (void)state;
    open_api("Bearer", answers);
    ready = false;
    start(&asker, "GET", "/x");
    struct json_call call = call_of("GET", "/x");
    call.give_up_at_ms = host_boot_ms() + 50;
    start_call(&late, &call);
    assert_true(kit_until(&late.done));
    assert_non_null(strstr(late.why, "deadline"));
    assert_int_equal(answers_heard(), 0);
    ready = true;
    json_api_wake(api);
    assert_true(kit_until(&asker.done));
    assert_int_equal(asker.status, 200);
    missing = true;
    ask(&never, "GET", "/x");
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
    open_api("Bearer", answers);
    int64_t began_ms = host_boot_ms();
    start(&first, "POST", "/x");
    while (answers_heard() == 0)
        kit_turn(/* ms= */ 10);
    kit_turn(/* ms= */ 50);
    start(&second, "GET", "/y");
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
    open_api("Bearer", answers);
    ask(&change, "PUT", "/x");
    assert_int_equal(change.status, 503);
    ask(&read, "GET", "/x"); /* after the pause */
    assert_int_equal(read.status, 200);
    ask(&cut, "PUT", "/x");
    assert_int_equal(cut.status, 0);
    ask(&oops, "GET", "/x");
    assert_int_equal(oops.status, 500);
    assert_int_equal(answers_heard(), 4);
    struct json_call call = call_of("GET", "/x");
    call.repeatable = true;
    start_call(&repeated, &call);
    assert_true(kit_until(&repeated.done));
    assert_int_equal(repeated.status, 200);
}

static void a_read_is_repeated_after_a_503(void **state)
{
    static const char *const answers[] = {"503 Unavailable\r\nRetry-After: 0\n{}", "200 OK\n{}",
                                          NULL};
    static struct asker asker;
    (void)state;
    open_api("Bearer", answers);
    ask(&asker, "GET", "/x");
    assert_int_equal(asker.status, 200);
}

static void a_pause_beyond_the_deadline_is_an_error(void **state)
{
    static const char *const answers[] = {
        "429 Too Many Requests\r\nRetry-After: 86400\n{\"message\":\"slow down\"}", NULL};
    static struct asker asker, other;
    (void)state;
    open_api("Bearer", answers);
    ask(&asker, "GET", "/x");
    assert_string_equal(asker.why, "the server answers 429: slow down");
    struct json_call call = call_of("GET", "/x");
    call.give_up_at_ms = host_boot_ms() + 500;
    start_call(&other, &call);
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
    open_api("Bearer", answers);
    for (size_t i = 0; i < 4; i++) {
        struct json_call call = call_of("GET", "/x");
        call.forbidden_later = i != 2;
        start_call(&askers[i], &call);
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
    open_api("Bearer", answers);
    struct json_call call = call_of("DELETE", "/x");
    start_call(&asker, &call);
    assert_true(kit_until(&asker.done));
    assert_string_equal(asker.why, "out of memory");
    assert_int_equal(answers_heard(), 0);
}

static void callbacks_may_start_and_cancel(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", "200 OK\n{}", NULL};
    static struct asker first, second, third, silent;
    (void)state;
    open_api("Bearer", answers);
    first.next = &second;
    start(&first, "GET", "/x");
    assert_true(kit_until(&second.done));
    assert_int_equal(second.status, 200);
    missing = true; /* both fail in the same turn: the first one cancels the second */
    third.next = &silent;
    third.stops = true;
    start(&third, "GET", "/x");
    start(&silent, "GET", "/x");
    assert_true(kit_until(&third.done));
    kit_turn(/* ms= */ 20);
    assert_int_equal(silent.done, 0);
}

static void a_blocking_call_returns_the_reply(void **state)
{
    static const char *const answers[] = {"404 Not Found\n{\"message\":\"no\\u001b such\"}", NULL};
    struct json_result result;
    (void)state;
    open_api("Bearer", answers);
    struct json_call call = call_of("GET", "/x");
    json_api_call(api, &call, &result);
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
    open_api("Bearer", answers);
    ask(&asker, "GET", "/x");
    assert_int_equal(asker.status, 302);
    assert_non_null(strstr(asker.why, "redirects"));
    assert_int_equal(answers_heard(), 1); /* so the credential stays here */
}

static void an_error_without_a_reason_is_explained(void **state)
{
    static const char *const answers[] = {"418 Teapot\n{}", "502 Bad Gateway\n<html>", NULL};
    static struct asker teapot, gateway;
    (void)state;
    open_api("Bearer", answers);
    ask(&teapot, "GET", "/x");
    assert_string_equal(teapot.why, "the server answers 418: it gives no reason");
    ask(&gateway, "GET", "/x");
    assert_non_null(strstr(gateway.why, "502: the body is not JSON"));
}

static void warnings_are_passed_on(void **state)
{
    static const char *const answers[] = {"200 OK\r\nWarning: 299 - \"old\x1b\\\"er\"\r\nWarning: "
                                          "nonsense\r\nWarning: 299 - \"\"\n{}",
                                          NULL};
    static struct asker asker;
    (void)state;
    open_api("Bearer", answers);
    ask(&asker, "GET", "/x");
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "\"er"));
    assert_null(strchr(warning, '\x1b'));
}

/* ---- headers ---- */

static void a_condition_gives_304(void **state)
{
    static const char *const answers[] = {"304 Not Modified\r\nETag: \"v1\"\n", NULL};
    static const char *const headers[] = {"If-None-Match: \"v1\"", NULL};
    static struct asker asker;
    (void)state;
    open_api("Bearer", answers);
    struct json_call call = call_of("GET", "/x");
    call.headers = headers;
    start_call(&asker, &call);
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
    open_api("Bearer", none);
    answers_say_by(say_headers);
    link_length = HTTP_HEADER_MAX;
    ask(&fits, "GET", "/x");
    assert_int_equal(fits.status, 200);
    assert_string_equal(fits.value[0], "W/\"v2\"");
    assert_int_equal(strlen(fits.value[1]), HTTP_HEADER_MAX);
    assert_string_equal(fits.value[2], "17");
    assert_string_equal(fits.value[3], "first");
    assert_true(fits.now_ms == TIME_UNKNOWN);
    link_length = HTTP_HEADER_MAX + 1;
    ask(&long_one, "GET", "/x");
    assert_false(long_one.found[1]);
    assert_string_equal(long_one.value[0], "W/\"v2\"");
    header_count = 2000; /* 100 KB */
    ask(&many, "GET", "/x");
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
    open_api("Bearer", none);
    answers_say_by(say_odd);
    for (size_t i = 0; i < 4; i++) {
        odd_reply = odd[i];
        ask(&askers[i], "GET", "/x");
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
    open_api("Bearer", answers);
    ask(&asker, "GET", "/x");
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
    open_api("Bearer", answers);
    start(&asker, "GET", "/x");
    assert_true(kit_until(&asker.lines));
    kit_turn(/* ms= */ 20);
    assert_int_equal(asker.lines, 2);
    assert_int_equal(asker.done, 0);
    ask(&next, "GET", "/x"); /* the API goes on */
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
    open_api("Bearer", none);
    answers_say_by(say_long_line);
    ask(&asker, "GET", "/x");
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

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

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

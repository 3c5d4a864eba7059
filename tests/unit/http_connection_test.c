/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of HTTP and event streams over time, on a clock that the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon_kit.h"
#include "face/daemon/http_face.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HOST   " HTTP/1.1\r\nHost: localhost\r\n"
#define HEALTH "GET /healthz" HOST "\r\n"
#define WATCH  "GET /v1/watch?prefix=w/" HOST "\r\n"

static struct daemon *served;
static struct peer *web, *resp;
static int64_t ahead_ms; /* of the host's clock */
static bool watch_fails;

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __real_host_boot_ms(void);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void)
{
    return __real_host_boot_ms() + ahead_ms;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __real_lh_watch_start(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                                      lh_done_fn *done, void *user, struct lh_watcher **out,
                                      struct lh_report *report);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_watch_start(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                                      lh_done_fn *done, void *user, struct lh_watcher **out,
                                      struct lh_report *report);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_watch_start(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                                      lh_done_fn *done, void *user, struct lh_watcher **out,
                                      struct lh_report *report)
{
    if (!watch_fails)
        return __real_lh_watch_start(client, prefix, fn, done, user, out, report);
    report->outcome = LH_UNAVAILABLE;
    (void)snprintf(report->text, sizeof report->text, "unavailable: no watch");
    return report->outcome;
}

static int open_all(void **state)
{
    (void)state;
    ahead_ms = 0;
    watch_fails = false;
    served = kit_daemon_new();
    web = peer_new_web(served);
    resp = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    peer_leave(&web);
    peer_leave(&resp);
    assert_int_equal(served->watches, 0);
    assert_int_equal(served->buffered, 0);
    daemon_free(served);
    return 0;
}

static void later(int64_t ms)
{
    ahead_ms += ms;
    for (int i = 0; i < 5; i++)
        kit_daemon_turn(served, 0);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void assert_begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with)) != 0)
        print_error("%s\n", text);
    assert_memory_equal(text, with, strlen(with));
}

/* ---- requests ---- */

static void a_request_has_10_s(void **state)
{
    (void)state;
    later(HTTP_READ_MS - 500);
    assert_begins(peer_ask_web(web, HEALTH), "200 ");
    peer_send_bytes(web, "HEAD /healthz" HOST "\r\n", strlen("HEAD /healthz" HOST "\r\n"));
    assert_begins(peer_take_all(web), "HTTP/1.1 200 OK\r\n");
    later(HTTP_IDLE_MS - 500); /* between requests it has more */
    peer_send_bytes(web, "GET /hea", 8);
    later(HTTP_READ_MS - 500);
    peer_send_bytes(web, "lthz", 4);
    assert_string_equal(peer_take_all(web), "");
    later(600);
    assert_begins(peer_response(web), "408 {\"outcome\":\"usage\",\"text\":\"usage: the request");
    assert_string_equal(peer_take_all(web), "");
    assert_true(web->ended);
}

static void an_idle_connection_ends(void **state)
{
    (void)state;
    assert_begins(peer_ask_web(web, HEALTH), "200 ");
    later(HTTP_IDLE_MS - 500);
    assert_string_equal(peer_take_all(web), "");
    assert_false(web->ended);
    later(600);
    assert_string_equal(peer_take_all(web), "");
    assert_true(web->ended);
}

/* Waits for the key k. */
static void send_acquire(void)
{
    static const char body[] = "{\"holder\":\"me\",\"ttl_ms\":600000,\"wait_ms\":60000}";
    char text[512];
    (void)snprintf(text, sizeof text,
                   "POST /v1/locks/k/acquire" HOST "Content-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   sizeof body - 1, body);
    peer_send_bytes(web, text, strlen(text));
}

static void a_waiting_request_has_no_timeout(void **state)
{
    char text[128], token[32];
    (void)state;
    (void)snprintf(token, sizeof token, "%s",
                   reply_value(peer_ask(resp, "LOCK.ACQUIRE k you 900000"), "token"));
    send_acquire();
    later(HTTP_READ_MS + 1000);
    assert_string_equal(peer_take_all(web), "");
    (void)snprintf(text, sizeof text, "LOCK.RELEASE k %s", token);
    assert_string_equal(reply_value(peer_ask(resp, text), "outcome"), "ok");
    assert_begins(peer_response(web), "200 {\"outcome\":\"ok\"");
    assert_begins(peer_ask_web(web, HEALTH), "200 ");
}

/* The client sends no further request, but reads. */
static void a_half_open_client_gets_its_responses(void **state)
{
    static const char requests[] = "GET /v1/locks/k" HOST "\r\n" HEALTH "GET /v1/locks" HOST "\r\n";
    (void)state;
    peer_send_bytes(web, requests, sizeof requests - 1);
    assert_int_equal(shutdown(web->file, SHUT_WR), 0);
    assert_begins(peer_response(web), "200 {\"outcome\":\"ok\",\"key\":\"k\"");
    assert_begins(peer_response(web), "200 {\"outcome\":\"ok\",\"text\":\"ok: running\"");
    assert_begins(peer_response(web), "200 {\"outcome\":\"ok\",\"next\":null");
    assert_string_equal(peer_take_all(web), "");
    assert_true(web->ended);
}

/* A client that has closed looks the same: the wait ends. */
static void a_half_open_client_does_not_wait(void **state)
{
    (void)state;
    assert_string_equal(reply_value(peer_ask(resp, "LOCK.ACQUIRE k you 900000"), "outcome"), "ok");
    send_acquire();
    assert_string_equal(peer_take_all(web), "");
    assert_int_equal(served->waiters, 1);
    assert_int_equal(shutdown(web->file, SHUT_WR), 0);
    assert_string_equal(peer_take_all(web), "");
    assert_true(web->ended);
    assert_int_equal(served->waiters, 0);
}

/* The responses of a pipeline wait for the client, which is cut if it never reads. */
static void a_client_that_does_not_read_is_cut(void **state)
{
    static const char openapi[] = "GET /openapi.json" HOST "\r\n";
    char requests[64 * sizeof openapi] = "";
    (void)state;
    for (size_t i = 0; i < 64; i++)
        memcpy(requests + i * (sizeof openapi - 1), openapi, sizeof openapi);
    for (int i = 0; i < 4; i++) {
        (void)send(web->file, requests, strlen(requests), MSG_NOSIGNAL | MSG_DONTWAIT);
        later(0);
    }
    assert_int_equal(served->connection_count, 2);
    assert_true(web->connection->buffered < CONNECTION_OUT_MAX);
    later(HTTP_READ_MS - 500);
    assert_int_equal(served->connection_count, 2);
    later(600);
    assert_int_equal(served->connection_count, 1);
    assert_int_equal(served->counters.cut, 1);
}

/* ---- events ---- */

static void comments_come_every_15_s(void **state)
{
    (void)state;
    peer_send_bytes(web, WATCH, strlen(WATCH));
    assert_int_equal(count_of(peer_take_all(web), "event: ready\n"), 1);
    for (int i = 0; i < 4; i++) { /* other subscribers do not delay them */
        later(9000);
        struct peer *other = peer_new_web(served);
        peer_send_bytes(other, WATCH, strlen(WATCH));
        assert_int_equal(count_of(peer_take_all(other), "event: ready\n"), 1);
        peer_free(other);
    }
    const char *all = peer_take_all(web);
    assert_int_equal(count_of(all, ":\n\n"), 2);
    assert_int_equal(strlen(all), 2 * strlen(":\n\n"));
}

/* A new subscriber with this id; what it gets. */
static const char *resume(const char *id)
{
    static char all[4096];
    char text[512];
    struct peer *peer = peer_new_web(served);
    (void)snprintf(text, sizeof text, "GET /v1/watch" HOST "Last-Event-ID: %s\r\n\r\n", id);
    peer_send_bytes(peer, text, strlen(text));
    (void)snprintf(all, sizeof all, "%s", peer_take_all(peer));
    peer_free(peer);
    return all;
}

static void the_ring_is_kept_for_60_s(void **state)
{
    char id[64];
    (void)state;
    peer_send_bytes(web, WATCH, strlen(WATCH));
    const char *all = peer_take_all(web);
    assert_int_equal(sscanf(strstr(all, "id: "), "id: %63s", id), 1);
    peer_leave(&web);
    assert_string_equal(reply_value(peer_ask(resp, "LOCK.ACQUIRE w/k me 900000"), "outcome"), "ok");
    later(50000);
    all = resume(id);
    assert_int_equal(count_of(all, "event: change\n"), 1);
    assert_int_equal(count_of(all, "event: missed\n"), 0);
    for (int i = 0; i < 6; i++)
        later(15000); /* nobody subscribes */
    all = resume(id);
    assert_int_equal(count_of(all, "event: change\n"), 0);
    assert_int_equal(count_of(all, "event: missed\n"), 1);
}

static void a_refused_watch_leaves_nothing(void **state)
{
    static const char again[] = "GET /v1/watch?prefix=w/a" HOST "Last-Event-ID: x-1\r\n\r\n";
    (void)state;
    watch_fails = true;
    for (int i = 0; i < 3; i++) {
        assert_begins(peer_ask_web(web, again), "503 {\"outcome\":\"unavailable\"");
        assert_int_equal(served->watches, 0);
    }
    watch_fails = false;
    peer_send_bytes(web, WATCH, strlen(WATCH));
    const char *all = peer_take_all(web);
    assert_int_equal(count_of(all, "event: ready\n"), 1);
    assert_int_equal(count_of(all, "event: missed\n"), 0);
    assert_string_equal(reply_value(peer_ask(resp, "LOCK.ACQUIRE w/b me 900000"), "outcome"), "ok");
    assert_int_equal(count_of(peer_take_all(web), "\"key\":\"w/b\""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_has_10_s, open_all, close_all),
        cmocka_unit_test_setup_teardown(an_idle_connection_ends, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_waiting_request_has_no_timeout, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_half_open_client_gets_its_responses, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_half_open_client_does_not_wait, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_client_that_does_not_read_is_cut, open_all, close_all),
        cmocka_unit_test_setup_teardown(comments_come_every_15_s, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_ring_is_kept_for_60_s, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_refused_watch_leaves_nothing, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests against a small real server in a thread of its own, which replies by the path: in
 * order, cut, slowly, endlessly. And against a TLS server of OpenSSL's.
 */
#include "http/http.h"

#include "http_kit.h"
#include "process/host.h"
#include "stream_kit.h"
#include "tls_kit.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "swordfish-9"

enum { MOST = 64 * 1024, TIMEOUT_MS = 5000 };

static struct http *http;
static uint16_t port;
static atomic_uint posts_seen;
static char last_request[HTTP_REQUEST_SIZE];
static pthread_mutex_t request_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the server ---- */

static void nap(long ms)
{
    struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

static void say_endlessly(int file)
{
    http_kit_say(file, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    char chunk[1100];
    (void)snprintf(chunk, sizeof chunk, "400\r\n%01024d\r\n", 7);
    for (unsigned i = 0; i < 5000; i++)
        http_kit_say(file, chunk);
}

static atomic_int line_gap_ms = 30;

static void say_lines(int file)
{
    http_kit_say(file, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\none\nt\r\n");
    nap(atomic_load(&line_gap_ms));
    http_kit_say(file, "8\r\nwo\nthree\r\n");
    nap(atomic_load(&line_gap_ms));
    http_kit_say(file, "1\r\n\n\r\n0\r\n\r\n");
}

/* False when the connection is to be closed. */
static bool reply(int file, const char *request)
{
    const char *path = strchr(request, ' ') + 1;
    (void)pthread_mutex_lock(&request_lock);
    (void)snprintf(last_request, sizeof last_request, "%s", request);
    (void)pthread_mutex_unlock(&request_lock);
    if (strncmp(request, "POST", 4) == 0)
        atomic_fetch_add(&posts_seen, 1);
    if (strncmp(path, "/ok", 3) == 0)
        http_kit_say(file, "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                           "Content-Length: 5\r\n\r\nhello");
    else if (strncmp(path, "/busy", 5) == 0)
        http_kit_say(
            file,
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno");
    else if (strncmp(path, "/later", 6) == 0)
        http_kit_say(file,
                     "HTTP/1.1 503 Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                     "Retry-After: Sun, 06 Nov 1994 08:49:44 GMT\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(path, "/cut", 4) == 0)
        http_kit_say(file, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf");
    else if (strncmp(path, "/lines", 6) == 0)
        say_lines(file);
    else if (strncmp(path, "/endless", 8) == 0)
        say_endlessly(file);
    else if (strncmp(path, "/slow", 5) == 0)
        nap(1500);
    bool stays = strncmp(path, "/ok", 3) == 0 || strncmp(path, "/busy", 5) == 0;
    return stays;
}

/* ---- names ---- */

static atomic_uint lookups;

/* libcurl finds this one first. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *req,
                struct addrinfo **pai)
{
    (void)service;
    (void)req;
    (void)pai;
    atomic_fetch_add(&lookups, 1);
    if (strcmp(name, "hangs.example") == 0)
        nap(3000);
    return EAI_NONAME;
}

/* ---- the client ---- */

struct caller {
    unsigned done, pieces;
    struct http_response reply;
    char body[MOST + 1], why[512], got[256];
    struct http_request *request;
    bool cancels_in_piece;
    const char *then; /* sent from within `done` */
    struct caller *next;
};

static void start(struct caller *caller, const char *method, const char *path, const char *body);

static void on_done(void *owner, const struct http_response *reply)
{
    struct caller *caller = owner;
    caller->done++;
    caller->reply = *reply;
    assert_true(reply->body_length <= MOST);
    memcpy(caller->body, reply->body, reply->body_length + 1);
    assert_int_equal(caller->body[reply->body_length], '\0');
    (void)snprintf(caller->why, sizeof caller->why, "%s", reply->why != NULL ? reply->why : "");
    assert_null(strstr(caller->why, SECRET));
    if (caller->then != NULL)
        start(caller->next, "GET", caller->then, NULL);
}

/* Consumes whole lines only. */
static size_t on_piece(void *owner, const char *bytes, size_t length)
{
    struct caller *caller = owner;
    const char *end = memrchr(bytes, '\n', length);
    size_t used = end != NULL ? (size_t)(end + 1 - bytes) : 0;
    caller->pieces++;
    if (caller->cancels_in_piece) {
        http_cancel(caller->request);
        caller->done++;
        return 0;
    }
    assert_int_equal(caller->done, 0);
    size_t before = strlen(caller->got);
    assert_true(before + used < sizeof caller->got);
    memcpy(caller->got + before, bytes, used);
    caller->got[before + used] = '\0';
    return used;
}

static struct http_options ask_for(char *url, size_t size, const char *method, const char *path)
{
    (void)snprintf(url, size, "http://user:%s@127.0.0.1:%u%s", SECRET, port, path);
    return (struct http_options){.method = method,
                                 .url = url,
                                 .credential = SECRET,
                                 .scheme = "Bearer",
                                 .timeout_ms = TIMEOUT_MS,
                                 .most = MOST};
}

static void start(struct caller *caller, const char *method, const char *path, const char *body)
{
    char url[256];
    struct http_options ask = ask_for(url, sizeof url, method, path);
    ask.body = body;
    ask.body_length = body != NULL ? strlen(body) : 0;
    caller->request =
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = caller});
    assert_non_null(caller->request);
}

static void start_pieces(struct caller *caller, const char *path, int64_t timeout_ms)
{
    char url[256];
    struct http_options ask = ask_for(url, sizeof url, "GET", path);
    ask.timeout_ms = timeout_ms;
    caller->request = http_start(
        http, &ask, &(struct http_callbacks){.piece = on_piece, .done = on_done, .owner = caller});
    assert_non_null(caller->request);
}

static int open_all(void **state)
{
    http = NULL;
    port = http_kit_start(reply);
    if (kit_open(state) != 0 || port == 0)
        return -1;
    http = http_new(kit_net);
    atomic_store(&posts_seen, 0);
    return http != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    http_free(&http);
    http_kit_stop();
    return kit_close(state);
}

/* ---- cases ---- */

static void an_answer_comes_whole(void **state)
{
    static struct caller caller;
    (void)state;
    start(&caller, "GET", "/ok", NULL);
    assert_int_equal(caller.done, 0); /* only from a step */
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 200);
    assert_string_equal(caller.body, "hello");
    assert_int_equal(caller.reply.date_s, 784111777);
    assert_int_equal(caller.reply.retry_after_ms, -1);
}

static void what_was_asked_arrives(void **state)
{
    static struct caller caller;
    char url[256];
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    (void)state;
    struct http_options ask = ask_for(url, sizeof url, "PUT", "/ok?x=1");
    ask.headers = headers;
    ask.body = "{\"a\":1}";
    ask.body_length = 7;
    assert_non_null(
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = &caller}));
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 200);
    (void)pthread_mutex_lock(&request_lock);
    assert_non_null(strstr(last_request, "PUT /ok?x=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(last_request, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(last_request, "\r\nAuthorization: Bearer " SECRET "\r\n"));
    assert_non_null(strstr(last_request, "\r\n\r\n{\"a\":1}"));
    assert_null(strstr(last_request, "Expect"));
    (void)pthread_mutex_unlock(&request_lock);
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    static struct caller busy, later;
    (void)state;
    start(&busy, "GET", "/busy", NULL);
    start(&later, "GET", "/later", NULL);
    assert_true(kit_until(&busy.done) && kit_until(&later.done));
    assert_int_equal(busy.reply.status, 429);
    assert_int_equal(busy.reply.retry_after_ms, 3000);
    assert_string_equal(busy.body, "no");
    assert_int_equal(later.reply.status, 503);
    assert_int_equal(later.reply.retry_after_ms, 7000);
}

static void a_cut_answer_is_none(void **state)
{
    static struct caller caller;
    (void)state;
    start(&caller, "GET", "/cut", NULL);
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_non_null(strstr(caller.why, "127.0.0.1"));
}

static void a_slow_answer_ends_with_the_timeout(void **state)
{
    static struct caller caller;
    char url[256];
    (void)state;
    struct http_options ask = ask_for(url, sizeof url, "POST", "/slow");
    ask.body = "x";
    ask.body_length = 1;
    ask.timeout_ms = 200;
    assert_non_null(
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = &caller}));
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_non_null(strstr(caller.why, "200 ms"));
}

/* Requests do not block on the resolver: another one's deadline may come next. */
static void a_name_that_is_not_found_ends_with_the_timeout(void **state)
{
    static struct caller caller;
    (void)state;
    struct http_options ask = {
        .method = "GET", .url = "http://hangs.example/", .timeout_ms = 200, .most = MOST};
    int64_t began_ms = host_boot_ms();
    assert_non_null(
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = &caller}));
    assert_true(kit_until(&caller.done));
    assert_int_equal(atomic_load(&lookups), 1);
    assert_true(host_boot_ms() - began_ms < 2500);
}

static void a_refused_connection_is_reported(void **state)
{
    static struct caller caller;
    (void)state;
    uint16_t right = port;
    int closed = kit_listen(AF_INET, &port);
    (void)close(closed);
    start(&caller, "POST", "/ok", "x");
    port = right;
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_true(caller.reply.refused);
}

static void a_huge_answer_is_refused(void **state)
{
    static struct caller caller;
    (void)state;
    start(&caller, "GET", "/endless", NULL);
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_non_null(strstr(caller.why, "too long"));
}

static void a_piece_that_nobody_uses_is_refused(void **state)
{
    static struct caller caller;
    (void)state;
    start_pieces(&caller, "/endless", TIMEOUT_MS); /* it has no line end */
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_non_null(strstr(caller.why, "too long"));
}

/* The timeout, shorter than the whole reply takes, is for the first byte only. On a busy machine
 * even the first byte may be late: then the next attempt has a longer one, and the rest comes still
 * later. */
static void pieces_come_as_they_arrive(void **state)
{
    static struct caller caller;
    int64_t timeout_ms = 50;
    (void)state;
    do {
        caller = (struct caller){0};
        atomic_store(&line_gap_ms, (int)(timeout_ms * 3 / 5));
        start_pieces(&caller, "/lines", timeout_ms);
        assert_true(kit_until(&caller.done));
        timeout_ms *= 4;
    } while (caller.reply.status == 0 && timeout_ms < 5000);
    assert_string_equal(caller.got, "one\ntwo\nthree\n");
    assert_true(caller.pieces >= 2);
    assert_int_equal(caller.reply.status, 200);
    assert_int_equal(caller.reply.body_length, 0);
}

static void an_answer_that_is_no_200_has_no_pieces(void **state)
{
    static struct caller caller;
    (void)state;
    start_pieces(&caller, "/busy", TIMEOUT_MS);
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 429);
    assert_int_equal(caller.pieces, 0);
    assert_string_equal(caller.body, "no");
}

static void a_callback_may_ask_and_cancel(void **state)
{
    static struct caller first, second, third;
    (void)state;
    first.then = "/ok";
    first.next = &second;
    third.cancels_in_piece = true;
    start(&first, "GET", "/ok", NULL);
    start_pieces(&third, "/lines", TIMEOUT_MS);
    assert_true(kit_until(&second.done) && kit_until(&third.done));
    assert_int_equal(second.reply.status, 200);
    kit_turn(100);
    assert_int_equal(third.pieces, 1);
    assert_int_equal(third.done, 1); /* its own count: nothing more was sent */
}

static void many_share_few_connections(void **state)
{
    enum { MANY = 100 };
    static struct caller callers[MANY];
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        start(&callers[i], "GET", "/ok", NULL);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(kit_until(&callers[i].done));
        assert_int_equal(callers[i].reply.status, 200);
    }
    assert_true(http_kit_connections() <= 32);
}

/* The connection is known to be good, the server reads the change and closes. */
static void a_change_is_never_sent_twice(void **state)
{
    static struct caller first, second;
    (void)state;
    start(&first, "GET", "/ok", NULL);
    assert_true(kit_until(&first.done));
    start(&second, "POST", "/drop", "{}");
    assert_true(kit_until(&second.done));
    assert_int_equal(second.reply.status, 0);
    assert_int_equal(atomic_load(&posts_seen), 1);
}

/* As after a connection that took long to establish. */
static void a_body_is_not_sent_too_late(void **state)
{
    static struct caller caller;
    char url[256];
    (void)state;
    struct http_options ask = ask_for(url, sizeof url, "POST", "/ok?late");
    ask.body = "x";
    ask.body_length = 1;
    ask.send_by_ms = 1;
    assert_non_null(
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = &caller}));
    assert_true(kit_until(&caller.done));
    assert_int_equal(caller.reply.status, 0);
    assert_non_null(strstr(caller.why, "too late to send"));
    (void)pthread_mutex_lock(&request_lock);
    assert_null(strstr(last_request, "/ok?late"));
    (void)pthread_mutex_unlock(&request_lock);
}

static void free_ends_what_is_on_its_way(void **state)
{
    static struct caller caller;
    (void)state;
    start(&caller, "GET", "/slow", NULL);
    kit_turn(50);
    http_free(&http);
    kit_turn(50);
    assert_int_equal(caller.done, 0);
}

/* ---- TLS ---- */

static char folder[64];

static pid_t start_tls_server(uint16_t tls_port)
{
    char accept[32];
    (void)snprintf(accept, sizeof accept, "127.0.0.1:%u", tls_port);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) == 0 && freopen("server.log", "w", stdout) != NULL &&
            dup2(STDOUT_FILENO, STDERR_FILENO) >= 0)
            (void)execlp("openssl", "openssl", "s_server", "-accept", accept, "-cert", "srv.pem",
                         "-key", "srv.pem", "-CAfile", "ca.pem", "-Verify", "1",
                         "-verify_return_error", "-quiet", "-www", (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

static void try_tls(struct caller *caller, const char *url, struct stream_tls tls)
{
    struct http_options ask = {
        .method = "GET", .url = url, .tls = tls, .timeout_ms = TIMEOUT_MS, .most = MOST};
    memset(caller, 0, sizeof *caller);
    assert_non_null(
        http_start(http, &ask, &(struct http_callbacks){.done = on_done, .owner = caller}));
    assert_true(kit_until(&caller->done));
}

/* Until it listens; its certificate and ours are valid. */
static void wait_for_tls(struct caller *caller, const char *url, struct stream_tls good)
{
    for (unsigned tries = 0; tries < 50; tries++) {
        try_tls(caller, url, good);
        if (caller->reply.status != 0)
            break;
        nap(100);
    }
    assert_int_equal(caller->reply.status, 200);
}

static void expect_refused(struct caller *caller, const char *url, struct stream_tls tls,
                           const char *why)
{
    try_tls(caller, url, tls);
    assert_int_equal(caller->reply.status, 0);
    assert_non_null(strstr(caller->why, why));
}

static void certificates_are_checked(void **state)
{
    static const char names[] = "DNS:api.example,IP:127.0.0.1";
    static struct caller caller;
    struct test_cert ca, other, srv, me;
    char url[64], log[128];
    uint16_t tls_port = 0;
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-http-XXXXXX");
    assert_non_null(mkdtemp(folder));
    test_cert_make(&ca, folder, "ca.pem", NULL, CERT_CA, NULL);
    test_cert_make(&other, folder, "other.pem", NULL, CERT_CA, NULL);
    test_cert_make(&srv, folder, "srv.pem", names, CERT_FINE, &ca);
    test_cert_make(&me, folder, "me.pem", "DNS:me", CERT_FINE, &ca);
    (void)close(kit_listen(AF_INET, &tls_port));
    pid_t child = start_tls_server(tls_port);
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u/", tls_port);
    struct stream_tls good = {.on = true, .ca_file = ca.path, .cert_file = me.path}, changed = good;
    wait_for_tls(&caller, url, good);

    changed.name = "api.example";
    try_tls(&caller, url, changed);
    assert_int_equal(caller.reply.status, 200);
    changed.name = "other.example";
    expect_refused(&caller, url, changed, "certificate subject");
    changed = good;
    changed.ca_file = other.path;
    expect_refused(&caller, url, changed, "self-signed certificate");
    changed.ca_file = "/no/such/file";
    expect_refused(&caller, url, changed, "certificate file");
    changed = good;
    changed.key_file = "/no/such/file";
    expect_refused(&caller, url, changed, "private key file");

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)snprintf(log, sizeof log, "%s/server.log", folder);
    assert_int_equal(unlink(log), 0);
    struct test_cert *const papers[] = {&ca, &other, &srv, &me};
    for (size_t i = 0; i < 4; i++) {
        (void)unlink(papers[i]->path);
        test_cert_done(papers[i]);
    }
    assert_int_equal(rmdir(folder), 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(an_answer_comes_whole),
        STORY(what_was_asked_arrives),
        STORY(retry_after_is_seconds_or_a_date),
        STORY(a_cut_answer_is_none),
        STORY(a_slow_answer_ends_with_the_timeout),
        STORY(a_name_that_is_not_found_ends_with_the_timeout),
        STORY(a_refused_connection_is_reported),
        STORY(a_huge_answer_is_refused),
        STORY(a_piece_that_nobody_uses_is_refused),
        STORY(pieces_come_as_they_arrive),
        STORY(an_answer_that_is_no_200_has_no_pieces),
        STORY(a_callback_may_ask_and_cancel),
        STORY(many_share_few_connections),
        STORY(a_change_is_never_sent_twice),
        STORY(a_body_is_not_sent_too_late),
        STORY(free_ends_what_is_on_its_way),
        STORY(certificates_are_checked),
    };
    (void)unsetenv("http_proxy");
    (void)unsetenv("https_proxy");
    (void)unsetenv("HTTPS_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GitHub driver with a small server of its own, for what the emulator never does: replies that
 * get lost or have no date, refs that somebody moved, and heartbeats without a reply.
 */
#include "github_kit.h"

#include "core/record.h"
#include "process/host.h"
#include "store/store.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SESSION = 7, REPLIES_MS = 10000, KEYS = 1500, SMALL_STACK = 256 * 1024 };

#define DATE "2026-01-01T00:00:00Z"

/* The behaviour of the server. */
static struct {
    bool has_date, keeps_silent; /* silent: to a commit of a heartbeat */
    bool forbids;                /* 404 to everything, as without the right to read */
    bool loses_write;            /* cuts the connection when a ref is moved */
    char head;                   /* the ref of "k" points to a commit of 40 such digits; 0: none */
    unsigned revision;           /* of that commit */
    unsigned keys;               /* of a list */
    unsigned writes, starts;     /* requests: of commits, of lists of workers */
} server;

static void *store;
static struct {
    unsigned replies;
    bool done;
    struct store_reply last;
    char why[512];
} heard;

/* ---- the server ---- */

static bool reply_json(int file, const char *status, const char *json)
{
    static _Thread_local char whole[KEYS * 128 + 256];
    (void)snprintf(whole, sizeof whole, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
                   server.has_date ? "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n" : "", strlen(json),
                   json);
    http_kit_say(file, whole); /* at once: two pieces would wait for each other */
    return true;
}

static bool reply_commit(int file, unsigned revision)
{
    char json[256];
    (void)snprintf(json, sizeof json,
                   "{\"message\": \"k: x\\n\\nno record\\n\\nLeasehold-Revision: %u\\n\","
                   "\"committer\": {\"date\": \"" DATE "\"}}",
                   revision);
    return reply_json(file, "200 OK", json);
}

static bool reply_list(int file)
{
    static char json[KEYS * 128];
    size_t length = 0;
    for (unsigned i = 0; i < server.keys; i++)
        length += (size_t)snprintf(json + length, sizeof json - length,
                                   "%c{\"ref\": \"refs/leasehold/k/%u\","
                                   "\"object\": {\"sha\": \"%040u\"}}",
                                   i == 0 ? '[' : ',', i, i);
    (void)snprintf(json + length, sizeof json - length, "%s", length == 0 ? "[]" : "]");
    return reply_json(file, "200 OK", json);
}

static bool reply_ref(int file)
{
    char json[128], sha[41];
    memset(sha, server.head, 40);
    sha[40] = '\0';
    (void)snprintf(json, sizeof json, "{\"object\": {\"sha\": \"%s\"}}", sha);
    return server.head != 0 ? reply_json(file, "200 OK", json)
                            : reply_json(file, "404 Not Found", "{}");
}

#define SHA "\"sha\": \"cccccccccccccccccccccccccccccccccccccccc\""

/* A commit, a tree and a ref in one. */
static bool serve(int file, const char *request)
{
    static const char made[] = "{" SHA ", \"object\": {" SHA "},"
                               "\"committer\": {\"date\": \"" DATE "\"}}";
    bool posts = strncmp(request, "POST", 4) == 0;
    if (server.forbids)
        return reply_json(file, "404 Not Found", "{}");
    if (strstr(request, "/git/commits ") != NULL) {
        server.writes++;
        if (server.keeps_silent)
            http_kit_be_silent(file);
        return !server.keeps_silent && reply_json(file, "201 Created", made);
    }
    if (strncmp(request, "PATCH", 5) == 0 && server.loses_write)
        return false;
    if (posts || strncmp(request, "PATCH", 5) == 0)
        return reply_json(file, "201 Created", made);
    if (strstr(request, "/git/commits/") != NULL)
        return reply_commit(file, server.revision);
    if (strstr(request, "/git/ref/") != NULL)
        return reply_ref(file);
    if (strstr(request, "/matching-refs/leasehold/k/") != NULL)
        return reply_list(file);
    server.starts += strstr(request, "/matching-refs/leasehold/w/") != NULL ? 1 : 0;
    return reply_json(file, "200 OK", strstr(request, "/matching-refs/") != NULL ? "[]" : "{}");
}

/* ---- the client ---- */

static int store_begin(void **state)
{
    if (github_kit_begin(state) != 0)
        return 1;
    answers_say_by(serve);
    memset(&server, 0, sizeof server);
    server.has_date = true;
    return 0;
}

static void store_open(const char *url)
{
    struct store_callbacks callbacks = {.session = SESSION, .timeout_ms = 3000};
    char bytes[256];
    struct text why;
    text_init(&why, bytes, sizeof bytes);
    store = calloc(1, github_driver.state_size);
    assert_non_null(store);
    assert_true(github_driver.open(store, url, &callbacks, &why));
}

static int store_end(void **state)
{
    if (store != NULL)
        github_driver.close(store);
    free(store);
    store = NULL;
    return github_kit_end(state);
}

static void on_reply(void *caller, const struct store_reply *reply)
{
    (void)caller;
    assert_false(heard.done);
    heard.replies++;
    heard.done = !reply->more;
    heard.last = *reply;
    (void)snprintf(heard.why, sizeof heard.why, "%s", reply->why != NULL ? reply->why : "");
}

static enum reply_status store_ask(const struct store_request *request)
{
    int64_t until_ms = host_boot_ms() + REPLIES_MS;
    memset(&heard, 0, sizeof heard);
    github_driver.submit(store, request, on_reply, NULL);
    while (!heard.done && host_boot_ms() < until_ms) {
        struct pollfd file = {.fd = github_driver.fd(store), .events = POLLIN};
        github_driver.step(store);
        if (!heard.done)
            (void)poll(&file, 1, 100);
    }
    assert_true(heard.done);
    return heard.last.result;
}

static enum reply_status store_read(void)
{
    return store_ask(&(struct store_request){.verb = VERB_STORE_READ, .key = "k"});
}

static enum reply_status store_swap(enum condition_kind kind, uint64_t revision, bool binds)
{
    static struct record record;
    char bytes[1024];
    record_init(&record, "k");
    *record_add_grant(&record) = (struct grant){.holder = "h",
                                                .request = "r",
                                                .session = SESSION,
                                                .bound = binds,
                                                .granted = {.revision = THIS_WRITE},
                                                .renewed = {.revision = THIS_WRITE},
                                                .ttl_ms = 3000};
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = kind, .revision = revision},
                                    .bytes = bytes,
                                    .length = record_encode(&record, bytes, sizeof bytes),
                                    .summary = {.holder = "h", .binds = binds}};
    return store_ask(&request);
}

/* ---- stories ---- */

/* A chain that was deleted has had greater tokens than 1. */
static void a_key_is_not_created_without_a_date(void **state)
{
    (void)state;
    store_open("github://octo/cat?pace=0s");
    server.has_date = false;
    assert_int_equal(store_swap(IF_ABSENT, 0, /* binds= */ false), REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "no valid date"));
    assert_int_equal(server.writes, 0);
    server.has_date = true;
    assert_int_equal(store_swap(IF_ABSENT, 0, /* binds= */ false), REPLY_OK);
    assert_true(heard.last.written.revision > UINT64_C(1) << 32);
}

static void a_chain_that_went_back_is_refused(void **state)
{
    (void)state;
    store_open("github://octo/cat?pace=0s");
    server.head = 'a';
    server.revision = 9;
    assert_int_equal(store_read(), REPLY_OK);
    server.loses_write = true;
    assert_int_equal(store_swap(IF_REVISION, 9, /* binds= */ false), REPLY_TROUBLE);
    server.head = 'b';
    for (server.revision = 8; server.revision <= 9; server.revision++) {
        assert_int_equal(store_read(), REPLY_TROUBLE);
        assert_non_null(strstr(heard.why, "was moved back"));
    }
    assert_int_equal(store_read(), REPLY_OK);
}

static void a_key_that_may_not_be_read_is_not_free(void **state)
{
    (void)state;
    store_open("github://octo/cat?pace=0s");
    server.head = 'a';
    server.revision = 9;
    assert_int_equal(store_read(), REPLY_OK);
    assert_true(heard.last.present);
    server.forbids = true;
    assert_int_equal(store_read(), REPLY_DENIED);
    server.forbids = false;
    server.head = 0; /* somebody deleted the ref */
    assert_int_equal(store_read(), REPLY_OK);
    assert_false(heard.last.present);
}

/* A heartbeat without a reply: the deadline passes while it is in flight. */
static void an_ended_worker_is_not_revived(void **state)
{
    (void)state;
    store_open("github://octo/cat?pace=0s&stale=3s&heartbeat=1s&writes=1000000&show=off");
    assert_int_equal(store_swap(IF_ABSENT, 0, /* binds= */ true), REPLY_OK);
    assert_int_equal(server.starts, 1);
    server.head = 'c';
    server.keeps_silent = true;
    for (int64_t until_ms = host_boot_ms() + 1500; host_boot_ms() < until_ms;) {
        (void)poll(NULL, 0, 20);
        github_driver.step(store);
    }
    (void)poll(NULL, 0, 1000); /* the process does not run */
    uint64_t revision = heard.last.written.revision;
    assert_int_equal(store_swap(IF_REVISION, revision, /* binds= */ true), REPLY_TROUBLE);
    github_driver.step(store); /* the heartbeat fails now */
    server.keeps_silent = false;
    assert_int_equal(store_swap(IF_REVISION, revision, /* binds= */ true), REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "no heartbeat of this worker arrived in time"));
    assert_int_equal(server.starts, 1);
}

static void *list_all(void *unused)
{
    (void)store_ask(&(struct store_request){.verb = VERB_STORE_LIST, .key = ""});
    return unused;
}

static void a_long_list_needs_a_small_stack(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    store_open("github://octo/cat?pace=0s&budget=1000000");
    server.keys = KEYS;
    server.revision = 1;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_attr_init(&attributes), 0);
        assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
        assert_int_equal(pthread_create(&thread, &attributes, list_all, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)pthread_attr_destroy(&attributes);
        assert_int_equal(heard.last.result, REPLY_OK);
        assert_int_equal(heard.replies, KEYS + 1); /* and the last one */
    }
}

#define STORE_STORY(name) cmocka_unit_test_setup_teardown(name, store_begin, store_end)

int main(void)
{
    const struct CMUnitTest stories[] = {
        STORE_STORY(a_key_is_not_created_without_a_date),
        STORE_STORY(a_chain_that_went_back_is_refused),
        STORE_STORY(a_key_that_may_not_be_read_is_not_free),
        STORE_STORY(an_ended_worker_is_not_revived),
        STORE_STORY(a_long_list_needs_a_small_stack),
    };
    return cmocka_run_group_tests(stories, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes driver before an API server that misbehaves as told: too busy, forgetful about
 * tokens and watches, cut in the middle. What a good one does is seen on the real one
 * (scripts/on-k8s.sh); here every request is counted and looked at.
 */
#include "io/host.h"
#include "store/k8s/k8s_inside.h"
#include "stream_kit.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEARD_MAX = 64, REQUEST_SIZE = 8192 };

/* ---- the server: one answer after the other, whatever is asked ---- */

static int listening;
static uint16_t port;
static pthread_t server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heard[HEARD_MAX][REQUEST_SIZE];
static size_t heard_count;
static const char *const *script; /* NULL behind the last; "" cuts the connection */

static bool hear(int file, char *request)
{
    size_t length = 0, wanted = 0;
    while (length + 1 < REQUEST_SIZE && (wanted == 0 || length < wanted)) {
        ssize_t got = recv(file, request + length, REQUEST_SIZE - length - 1, 0);
        if (got <= 0)
            return false;
        length += (size_t)got;
        request[length] = '\0';
        const char *end = strstr(request, "\r\n\r\n"), *body = strstr(request, "Content-Length: ");
        if (end != NULL)
            wanted =
                (size_t)(end + 4 - request) + (body != NULL ? strtoul(body + 16, NULL, 10) : 0);
    }
    return true;
}

/* The body stands behind the status and its headers, "200 OK\n…"; a watch's goes on to the end,
 * that of one that stalls until it is given up. */
static bool answer(int file, const char *words)
{
    char head[256];
    bool stalls = strncmp(words, "stall", 5) == 0;
    bool watch = stalls || strncmp(words, "watch", 5) == 0;
    const char *body = 1 + (watch ? strchr(words, '\n') : strrchr(words, '\n'));
    int length = snprintf(head, sizeof head, "HTTP/1.1 %.*s\r\nDate: %s\r\n",
                          watch ? 6 : (int)(body - words - 1), watch ? "200 OK" : words,
                          "Thu, 01 Jan 2026 00:00:00 GMT");
    if (!watch)
        length += snprintf(head + length, sizeof head - (size_t)length, "Content-Length: %zu\r\n",
                           strlen(body));
    (void)snprintf(head + length, sizeof head - (size_t)length, "\r\n");
    (void)send(file, head, strlen(head), MSG_NOSIGNAL);
    (void)send(file, body, strlen(body), MSG_NOSIGNAL);
    if (stalls)
        (void)recv(file, head, sizeof head, 0);
    return !watch;
}

static void *serve_one(void *argument)
{
    int file = *(int *)argument;
    free(argument);
    static __thread char request[REQUEST_SIZE];
    bool stays = true;
    while (stays && hear(file, request)) {
        (void)pthread_mutex_lock(&lock);
        const char *words = *script;
        if (words != NULL)
            script++;
        if (heard_count < HEARD_MAX)
            memcpy(heard[heard_count++], request, sizeof request);
        (void)pthread_mutex_unlock(&lock);
        stays = words != NULL && *words != '\0' && answer(file, words);
        if (words == NULL)
            (void)recv(file, request, 1, 0); /* silence until it is given up */
    }
    (void)close(file);
    return NULL;
}

static void *serve(void *argument)
{
    (void)argument;
    for (;;) {
        int file = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (file < 0)
            return NULL;
        int *own = malloc(sizeof *own);
        assert_non_null(own);
        *own = file;
        if (pthread_create(&thread, NULL, serve_one, own) == 0)
            (void)pthread_detach(thread);
    }
}

static size_t heard_so_far(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = heard_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static void expect_heard(size_t number, const char *words)
{
    assert_true(number < heard_so_far());
    if (strstr(heard[number], words) == NULL)
        fail_msg("request %zu has no \"%s\": %s", number, words, heard[number]);
}

/* ---- the driver ---- */

static char folder[64];
static void *store;

struct asked {
    unsigned done;
    struct store_answer last;
    char why[512], key[64];
};

static void on_answer(void *caller, const struct store_answer *answer)
{
    struct asked *asked = caller;
    asked->done++;
    asked->last = *answer;
    (void)snprintf(asked->why, sizeof asked->why, "%s", answer->why != NULL ? answer->why : "");
    (void)snprintf(asked->key, sizeof asked->key, "%s", answer->key != NULL ? answer->key : "");
    assert_null(strstr(asked->why, "t-secret"));
}

static void turn(int64_t ms)
{
    struct pollfd wait = {.fd = k8s_driver.fd(store), .events = POLLIN};
    (void)poll(&wait, 1, (int)ms);
    k8s_driver.step(store);
}

static bool until(const unsigned *count, unsigned wanted)
{
    for (int64_t end_ms = host_boot_ms() + 10000; *count < wanted && host_boot_ms() < end_ms;)
        turn(/* ms= */ 50);
    return *count >= wanted;
}

static void write_file(const char *name, const char *words)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(words, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

static const char *by_proxy = ""; /* what the cluster says beside its server */

static void begin_at(const char *url, const char *const *answers)
{
    char path[128], words[256], config[512];
    struct text why;
    struct store_site site = {.clock = {.now_ms = no_time}, .session = 7, .patience_ms = 3000};
    (void)pthread_mutex_lock(&lock);
    script = answers;
    heard_count = 0;
    (void)pthread_mutex_unlock(&lock);
    write_file("token", "t-secret-1\n");
    (void)snprintf(config, sizeof config,
                   "current-context: x\nclusters: [{name: x, cluster: {%s: "
                   "'http://127.0.0.1:%u'}}]\nusers: [{name: x, user: {tokenFile: token}}]\n"
                   "contexts: [{name: x, context: {cluster: x, user: x}}]\n",
                   *by_proxy != '\0' ? by_proxy : "server", port);
    write_file("config", config);
    (void)snprintf(path, sizeof path, "%s/config", folder);
    (void)setenv("KUBECONFIG", path, 1);
    text_init(&why, words, sizeof words);
    store = malloc(k8s_driver.state_size);
    assert_non_null(store);
    assert_true(k8s_driver.open(store, url, &site, &why));
}

static void begin(const char *const *answers)
{
    begin_at("k8s://blue", answers);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-k8s-XXXXXX");
    listening = kit_listen(AF_INET, &port);
    return mkdtemp(folder) == NULL || pthread_create(&server, NULL, serve, NULL) != 0;
}

static int tear_down(void **state)
{
    char path[128];
    (void)state;
    if (store != NULL)
        k8s_driver.close(store);
    free(store);
    store = NULL;
    (void)shutdown(listening, SHUT_RDWR);
    (void)pthread_join(server, NULL);
    (void)close(listening);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "token" : "config");
        (void)unlink(path);
    }
    return rmdir(folder);
}

static void read_key(struct asked *asked)
{
    struct store_request request = {.verb = VERB_STORE_READ, .key = "k"};
    k8s_driver.submit(store, &request, on_answer, asked);
}

static void create_key(struct asked *asked)
{
    static struct record record;
    static char bytes[1024];
    record_init(&record, "k");
    record.cooling.length_ms = 5;
    size_t length = record_encode(&record, bytes, sizeof bytes);
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_ABSENT},
                                    .bytes = bytes,
                                    .length = length};
    k8s_driver.submit(store, &request, on_answer, asked);
}

#define NOT_FOUND "404 Not Found\n{\"details\":{\"kind\":\"leases\"}}"
#define LEASE(revision)                                                                 \
    "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"" revision "\"," \
    "\"annotations\":{\"leasehold/key\":\"k\",\"leasehold/record\":\"r\","              \
    "\"leasehold/shown\":\"\"}},\"spec\":{}}"

/* ---- stories ---- */

static void too_many_requests_are_repeated_when_the_server_says(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 1\n{}", NOT_FOUND,
                                          NOT_FOUND, NULL};
    struct asked first = {0}, second = {0};
    (void)state;
    begin(answers);
    int64_t began_ms = host_boot_ms();
    read_key(&first);
    turn(/* ms= */ 50);
    while (heard_so_far() == 0)
        turn(/* ms= */ 50);
    turn(/* ms= */ 200);
    read_key(&second); /* waits, too: nobody is asked before the time */
    turn(/* ms= */ 200);
    assert_int_equal(heard_so_far(), 1);
    assert_true(until(&first.done, 1) && until(&second.done, 1));
    assert_true(host_boot_ms() - began_ms >= 1000);
    assert_int_equal(first.last.result, ANSWER_OK);
    assert_false(first.last.present);
    assert_int_equal(first.last.now_ms, 1767225600000);
    assert_int_equal(heard_so_far(), 3);
}

static void who_must_wait_too_long_is_told(void **state)
{
    static const char *const answers[] = {
        "429 Too Many Requests\r\nRetry-After: 60\n{\"message\":\"slow down\"}", NULL};
    struct asked asked = {0};
    (void)state;
    begin(answers);
    read_key(&asked);
    assert_true(until(&asked.done, 1));
    assert_int_equal(asked.last.result, ANSWER_TROUBLE);
    assert_non_null(strstr(asked.why, "slow down"));
}

static void a_refused_token_is_read_anew_once(void **state)
{
    static const char *const answers[] = {"401 Unauthorized\n{}", NOT_FOUND, "401 Unauthorized\n{}",
                                          "401 Unauthorized\n{}", NULL};
    struct asked asked = {0}, again = {0};
    (void)state;
    begin(answers);
    read_key(&asked);
    turn(/* ms= */ 0);
    write_file("token", "t-secret-2\n");
    assert_true(until(&asked.done, 1));
    assert_int_equal(asked.last.result, ANSWER_OK);
    expect_heard(1, "Bearer t-secret-2\r\n");
    read_key(&again);
    assert_true(until(&again.done, 1));
    assert_int_equal(again.last.result, ANSWER_DENIED);
    assert_int_equal(heard_so_far(), 4);
}

static void a_forbidden_request_is_told_at_once(void **state)
{
    static const char *const answers[] = {"403 Forbidden\n{\"message\":\"no rights\"}", NULL};
    struct asked asked = {0};
    (void)state;
    begin(answers);
    read_key(&asked);
    assert_true(until(&asked.done, 1));
    assert_int_equal(asked.last.result, ANSWER_DENIED);
    assert_non_null(strstr(asked.why, "no rights"));
}

/* It may have happened: nobody knows, and it is not sent again. */
static void what_got_no_answer_is_trouble(void **state)
{
    static const char *const cut[] = {"", NULL}, *const silent[] = {NULL};
    static const char *const broken[] = {"500 Oops\n{}", "200 OK\nnot json", "200 OK\n{}", NULL};
    static const char *const *const scripts[] = {cut, silent, broken, broken + 1, broken + 2};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct asked asked = {0};
        begin(scripts[i]);
        create_key(&asked);
        assert_true(until(&asked.done, 1));
        assert_int_equal(asked.last.result, ANSWER_TROUBLE);
        assert_true(asked.why[0] != '\0');
        assert_int_equal(heard_so_far(), 1);
        k8s_driver.close(store);
        free(store);
        store = NULL;
    }
}

static void what_is_no_list_is_no_empty_one(void **state)
{
    static const char *const answers[] = {"200 OK\n{\"items\":null}", "200 OK\n{}",
                                          "200 OK\n<html>", NULL};
    struct store_request request = {.verb = VERB_STORE_LIST, .key = ""};
    (void)state;
    begin(answers);
    for (unsigned i = 0; i < 3; i++) {
        struct asked asked = {0};
        k8s_driver.submit(store, &request, on_answer, &asked);
        assert_true(until(&asked.done, 1));
        assert_int_equal(asked.last.result, i == 0 ? ANSWER_OK : ANSWER_TROUBLE);
    }
}

static void a_replacement_names_what_it_replaces(void **state)
{
    static const char *const answers[] = {"409 Conflict\n{}", "200 OK\n" LEASE("5"),
                                          "200 OK\n" LEASE("6"), "200 OK\n{}", NULL};
    struct asked asked = {0}, swapped = {0}, gone = {0};
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_REVISION, .revision = 5},
                                    .bytes = "x",
                                    .length = 1};
    (void)state;
    begin(answers);
    create_key(&asked);
    assert_true(until(&asked.done, 1));
    assert_int_equal(asked.last.result, ANSWER_CONFLICT);
    assert_int_equal(asked.last.written.revision, 5);
    k8s_driver.submit(store, &request, on_answer, &swapped);
    assert_true(until(&swapped.done, 1));
    expect_heard(2, "PUT /apis/coordination.k8s.io/v1/namespaces/blue/leases/k?");
    expect_heard(2, "\"uid\":\"u\"");
    expect_heard(2, "\"resourceVersion\":\"5\"");
    request.verb = VERB_STORE_DELETE;
    request.condition.revision = 6;
    k8s_driver.submit(store, &request, on_answer, &gone);
    assert_true(until(&gone.done, 1));
    expect_heard(3, "PUT "); /* it has no label of ours: emptied, not deleted */
}

#define EVENT(type, revision) "{\"type\":\"" type "\",\"object\":" LEASE(revision) "}\n"

static void a_cut_watch_goes_on_where_it_was(void **state)
{
    static const char *const answers[] = {
        "200 OK\n{\"metadata\":{\"resourceVersion\":\"5\"}}",
        "watch\n" EVENT("ADDED", "6") "{\"type\":\"MOD",
        "watch\n" EVENT("MODIFIED", "8") "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                         "\"resourceVersion\":\"11\"}}}\n",
        "watch\n" EVENT("DELETED", "12"),
        "watch\n{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n",
        NULL};
    struct asked asked = {0};
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = ""};
    (void)state;
    begin(answers);
    k8s_driver.submit(store, &request, on_answer, &asked);
    assert_true(until(&asked.done, 2));
    assert_string_equal(asked.key, "k");
    assert_true(asked.last.present && asked.last.more);
    assert_int_equal(asked.last.written.revision, 6);
    assert_true(until(&asked.done, 3));
    assert_int_equal(asked.last.written.revision, 8);
    assert_true(until(&asked.done, 4));
    assert_false(asked.last.present);
    assert_true(until(&asked.done, 5));
    assert_int_equal(asked.last.result, ANSWER_TROUBLE);
    expect_heard(1, "resourceVersion=5 ");
    expect_heard(2, "resourceVersion=6 ");
    expect_heard(3, "resourceVersion=11 ");
    expect_heard(4, "resourceVersion=12 ");
}

/* A Lease whose record says nothing any more, a day before the server's time. */
#define LEFT(name)                                                                               \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"5\","     \
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"leasehold\"},"                               \
    "\"annotations\":{\"leasehold/key\":\"" name "\",\"leasehold/shown\":\"\","                  \
    "\"leasehold/beat-a\":\"leasehold-waiter\","                                                 \
    "\"leasehold/record\":\"{\\\"leasehold\\\":1,\\\"key\\\":\\\"" name "\\\"}\"},"              \
    "\"managedFields\":[{\"manager\":\"leasehold-waiter\",\"time\":\"2025-12-31T00:00:00Z\"}]}," \
    "\"spec\":{}}"

static bool until_heard(size_t wanted)
{
    for (int64_t end_ms = host_boot_ms() + 10000; heard_so_far() < wanted;) {
        if (host_boot_ms() >= end_ms)
            return false;
        turn(/* ms= */ 20);
    }
    return true;
}

static void what_nobody_needs_is_removed_page_by_page(void **state)
{
    static const char *const answers[] = {
        "200 OK\n{\"metadata\":{\"continue\":\"next\"},\"items\":[" LEFT("a") "," LEASE("6") "]}",
        "200 OK\n{}",
        "410 Gone\n{\"metadata\":{\"continue\":\"later\"}}",
        "200 OK\n{\"metadata\":{},\"items\":[" LEFT("b") "," LEFT("c") "]}",
        "409 Conflict\n{}",
        "404 Not Found\n{}",
        NULL};
    (void)state;
    begin_at("k8s://blue?collect=60000", answers);
    assert_true(until_heard(6));
    expect_heard(0, "GET /apis/coordination.k8s.io/v1/namespaces/blue/leases?limit=100&label");
    expect_heard(1, "DELETE /apis/coordination.k8s.io/v1/namespaces/blue/leases/a ");
    expect_heard(1, "\"uid\":\"u-a\"");
    expect_heard(1, "\"resourceVersion\":\"5\"");
    expect_heard(2, "&continue=next ");
    expect_heard(3, "&continue=later ");
    expect_heard(4, "leases/b ");
    expect_heard(5, "leases/c ");
}

static void a_collector_obeys_the_server(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 2\n{}", NULL};
    (void)state;
    begin_at("k8s://blue?collect=60000", answers);
    assert_true(until_heard(1));
    int64_t heard_ms = host_boot_ms();
    assert_true(until_heard(2));
    assert_true(host_boot_ms() - heard_ms >= 1900); /* heard of a little before we looked */
    expect_heard(1, "GET ");
}

static void nobody_collects_who_should_not(void **state)
{
    static const char *const answers[] = {NULL};
    (void)state;
    begin_at("k8s://blue?collect=off", answers);
    for (unsigned i = 0; i < 20; i++)
        turn(/* ms= */ 20);
    assert_int_equal(heard_so_far(), 0);
}

static void a_watch_that_goes_silent_or_mad_is_begun_anew(void **state)
{
    static const char *const answers[] = {"200 OK\n{\"metadata\":{\"resourceVersion\":\"5\"}}",
                                          "stall\n" EVENT("ADDED", "6"),
                                          "stall\n{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{"
                                          "\"name\":\"x\\u0000\",\"resourceVersion\":\"7\"}}}\n"
                                          "gibberish\n",
                                          "200 OK\n{\"metadata\":{\"resourceVersion\":\"9\"}}",
                                          "watch\n" EVENT("MODIFIED", "10"),
                                          NULL};
    struct asked asked = {0};
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = ""};
    (void)state;
    begin(answers);
    ((struct k8s *)store)->watch.length_s = 1;
    k8s_driver.submit(store, &request, on_answer, &asked);
    assert_true(until(&asked.done, 3)); /* it stands, a change, and what nobody understands */
    assert_int_equal(asked.last.result, ANSWER_TROUBLE);
    expect_heard(2, "resourceVersion=6 ");
    k8s_driver.submit(store, &request, on_answer, &asked);
    assert_true(until(&asked.done, 5));
    assert_int_equal(asked.last.written.revision, 10);
    expect_heard(4, "resourceVersion=9 ");
}

static void a_proxy_of_the_kubeconfig_is_gone_through(void **state)
{
    static const char *const answers[] = {NOT_FOUND, NULL};
    struct asked asked = {0};
    (void)state;
    by_proxy = "server: 'http://api.example', proxy-url";
    (void)setenv("no_proxy", "*", 1);
    begin(answers);
    by_proxy = "";
    read_key(&asked);
    assert_true(until(&asked.done, 1));
    assert_int_equal(asked.last.result, ANSWER_OK);
    expect_heard(0, "GET http://api.example/apis/coordination.k8s.io/v1/namespaces/blue/leases/k ");
    (void)unsetenv("no_proxy");
}

static void what_is_on_its_way_ends_with_the_store(void **state)
{
    static const char *const answers[] = {NULL};
    struct asked asked = {0};
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = ""};
    (void)state;
    begin(answers);
    read_key(&asked);
    k8s_driver.submit(store, &request, on_answer, &asked);
    turn(/* ms= */ 50);
    turn(/* ms= */ 50);
    k8s_driver.close(store);
    free(store);
    store = NULL;
    assert_int_equal(asked.done, 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(too_many_requests_are_repeated_when_the_server_says),
        STORY(who_must_wait_too_long_is_told),
        STORY(a_refused_token_is_read_anew_once),
        STORY(a_forbidden_request_is_told_at_once),
        STORY(what_got_no_answer_is_trouble),
        STORY(what_is_no_list_is_no_empty_one),
        STORY(a_replacement_names_what_it_replaces),
        STORY(a_cut_watch_goes_on_where_it_was),
        STORY(what_nobody_needs_is_removed_page_by_page),
        STORY(a_collector_obeys_the_server),
        STORY(nobody_collects_who_should_not),
        STORY(a_watch_that_goes_silent_or_mad_is_begun_anew),
        STORY(a_proxy_of_the_kubeconfig_is_gone_through),
        STORY(what_is_on_its_way_ends_with_the_store),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

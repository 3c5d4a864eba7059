/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes driver with an API server that misbehaves on demand: too busy, without its old
 * tokens and watches, cut in the middle. A good server is the real one (scripts/on-k8s.sh); here
 * every request is counted and checked.
 */
#include "k8s_kit.h"

#include "process/host.h"
#include "store/admin.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- cases ---- */

static void too_many_requests_are_repeated_when_the_server_says(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 1\n{}", NOT_FOUND,
                                          NOT_FOUND, NULL};
    struct asked first = {0}, second = {0};
    (void)state;
    k8s_kit_begin(answers);
    int64_t began_ms = host_boot_ms();
    k8s_kit_read_key(&first);
    k8s_kit_turn(/* ms= */ 50);
    while (answers_heard() == 0)
        k8s_kit_turn(/* ms= */ 50);
    k8s_kit_turn(/* ms= */ 200);
    k8s_kit_read_key(&second); /* waits, too: no request is sent before that time */
    k8s_kit_turn(/* ms= */ 200);
    assert_int_equal(answers_heard(), 1);
    assert_true(k8s_kit_until(&first.done, 1) && k8s_kit_until(&second.done, 1));
    assert_true(host_boot_ms() - began_ms >= 1000);
    assert_int_equal(first.last.result, REPLY_OK);
    assert_false(first.last.present);
    assert_int_equal(first.last.now_ms, 1767225600000);
    assert_int_equal(answers_heard(), 3);
}

static void a_wait_beyond_the_timeout_is_reported(void **state)
{
    static const char *const answers[] = {
        "429 Too Many Requests\r\nRetry-After: 60\n{\"message\":\"slow down\"}", NULL};
    struct asked asked = {0};
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_read_key(&asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_non_null(strstr(asked.why, "slow down"));
}

/* A raise waits only for grants that are sent soon after their epoch was read. */
static void a_grant_is_not_sent_with_an_epoch_read_long_ago(void **state)
{
    static const char *const first[] = {
        NOT_FOUND, "429 Too Many Requests\r\nRetry-After: 8\n{\"message\":\"slow down\"}", NULL};
    static const char *const later[] = {"429 Too Many Requests\r\nRetry-After: 3\n{}", NULL};
    struct asked asked = {0};
    (void)state;
    k8s_kit_begin(first);
    struct k8s *k8s = k8s_kit_store;
    k8s->pending.timeout_ms = 20000;
    k8s_kit_grant_key(&asked, /* revision= */ 0);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_non_null(strstr(asked.why, "slow down"));
    assert_int_equal(answers_heard(), 2);
    /* Another request caused the pause. */
    k8s_kit_grant_key(&asked, /* revision= */ 0);
    k8s->epoch.read_ms = host_boot_ms() - EPOCH_REREAD_MS + 1000;
    assert_true(k8s_kit_until(&asked.done, 2));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_non_null(strstr(asked.why, "longer than the request may take"));
    assert_int_equal(answers_heard(), 2);
    k8s_kit_end();
    /* A short pause is too long for an epoch that is almost outdated. */
    k8s_kit_begin(later);
    k8s = k8s_kit_store;
    k8s->pending.timeout_ms = 20000;
    k8s->epoch.read_ms = host_boot_ms() - EPOCH_REREAD_MS + 1000;
    k8s_kit_grant_key(&asked, /* revision= */ 0);
    assert_true(k8s_kit_until(&asked.done, 3));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_int_equal(answers_heard(), 1);
}

/* The epoch would be gone with the release of the lock. */
static void a_lock_with_the_name_of_the_epoch_is_not_raised(void **state)
{
    static const char *const answers[] = {
        "200 OK\n{\"metadata\":{\"name\":\"leasehold-epoch\",\"labels\":"
        "{\"app.kubernetes.io/managed-by\":\"leasehold\"}}}",
        NULL};
    const struct epoch_options options = {.least = 1, .timeout_ms = 3000};
    struct epoch_state found;
    char words[256];
    struct text why;
    (void)state;
    text_init(&why, words, sizeof words);
    k8s_kit_begin(answers);
    assert_int_equal(k8s_driver.epoch("k8s://blue", &options, &found, &why), REPLY_TROUBLE);
    assert_non_null(strstr(words, "the Lease leasehold-epoch is a lock"));
    assert_int_equal(answers_heard(), 1);
}

static void a_refused_token_is_read_anew_once(void **state)
{
    static const char *const answers[] = {"401 Unauthorized\n{}", NOT_FOUND, "401 Unauthorized\n{}",
                                          "401 Unauthorized\n{}", NULL};
    struct asked asked = {0}, again = {0};
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_read_key(&asked);
    k8s_kit_turn(/* ms= */ 0);
    k8s_kit_write_file("token", "t-secret-2\n");
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_OK);
    answers_expect(1, "Bearer t-secret-2\r\n");
    k8s_kit_read_key(&again);
    assert_true(k8s_kit_until(&again.done, 1));
    assert_int_equal(again.last.result, REPLY_DENIED);
    assert_int_equal(answers_heard(), 4);
}

static void a_forbidden_request_is_told_at_once(void **state)
{
    static const char *const answers[] = {"403 Forbidden\n{\"message\":\"no rights\"}", NULL};
    struct asked asked = {0};
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_read_key(&asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_DENIED);
    assert_non_null(strstr(asked.why, "no rights"));
}

/* It may have taken effect: the outcome is unknown, and it is not sent again. */
static void a_request_without_a_reply_is_trouble(void **state)
{
    static const char *const cut[] = {"", NULL}, *const silent[] = {NULL};
    static const char *const broken[] = {"500 Oops\n{}", "200 OK\nnot json", "200 OK\n{}", NULL};
    static const char *const *const scripts[] = {cut, silent, broken, broken + 1, broken + 2};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct asked asked = {0};
        k8s_kit_begin(scripts[i]);
        k8s_kit_create_key(&asked);
        assert_true(k8s_kit_until(&asked.done, 1));
        assert_int_equal(asked.last.result, REPLY_TROUBLE);
        assert_true(asked.why[0] != '\0');
        assert_int_equal(answers_heard(), 1);
        k8s_kit_end();
    }
}

/* A key has one request in flight; other keys do not wait for it. */
static void a_key_has_one_request_on_its_way(void **state)
{
    static const char *const silent[] = {NULL};
    struct store_request other = {.verb = VERB_STORE_READ, .key = "other"};
    struct asked write = {0}, read = {0}, beside = {0};
    (void)state;
    k8s_kit_begin(silent);
    k8s_kit_create_key(&write);
    k8s_kit_read_key(&read);
    k8s_driver.submit(k8s_kit_store, &other, k8s_kit_answered, &beside);
    for (int64_t end_ms = host_boot_ms() + 500; host_boot_ms() < end_ms;)
        k8s_kit_turn(/* ms= */ 50);
    assert_int_equal(answers_heard(), 2);
    assert_true(k8s_kit_until(&write.done, 1) && k8s_kit_until(&beside.done, 1) &&
                k8s_kit_until(&read.done, 1));
}

static void a_bad_list_is_not_an_empty_one(void **state)
{
    static const char *const answers[] = {"200 OK\n{\"items\":null}", "200 OK\n{}",
                                          "200 OK\n<html>", NULL};
    struct store_request request = {.verb = VERB_STORE_LIST, .key = ""};
    (void)state;
    k8s_kit_begin(answers);
    for (unsigned i = 0; i < 3; i++) {
        struct asked asked = {0};
        k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
        assert_true(k8s_kit_until(&asked.done, 1));
        assert_int_equal(asked.last.result, i == 0 ? REPLY_OK : REPLY_TROUBLE);
    }
}

static void a_replacement_names_what_it_replaces(void **state)
{
    static const char *const answers[] = {"409 Conflict\n{}", "200 OK\n" LEASE("5"), "echo 6\n{}",
                                          "200 OK\n{}", NULL};
    struct asked asked = {0}, swapped = {0}, gone = {0};
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_REVISION, .revision = 5},
                                    .bytes = "x",
                                    .length = 1};
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_create_key(&asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_CONFLICT);
    assert_int_equal(asked.last.written.revision, 5);
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &swapped);
    assert_true(k8s_kit_until(&swapped.done, 1));
    answers_expect(2, "PUT /apis/coordination.k8s.io/v1/namespaces/blue/leases/k?");
    answers_expect(2, "\"uid\":\"u\"");
    answers_expect(2, "\"resourceVersion\":\"5\"");
    request.verb = VERB_STORE_DELETE;
    request.condition.revision = 6;
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &gone);
    assert_true(k8s_kit_until(&gone.done, 1));
    answers_expect(3, "PUT "); /* it has no label of ours: emptied, not deleted */
}

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
    k8s_kit_begin(answers);
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(k8s_kit_until(&asked.done, 2));
    assert_string_equal(asked.key, "k");
    assert_true(asked.last.present && asked.last.more);
    assert_int_equal(asked.last.written.revision, 6);
    assert_true(k8s_kit_until(&asked.done, 3));
    assert_int_equal(asked.last.written.revision, 8);
    assert_true(k8s_kit_until(&asked.done, 4));
    assert_false(asked.last.present);
    assert_true(k8s_kit_until(&asked.done, 5));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    answers_expect(1, "resourceVersion=5 ");
    answers_expect(2, "resourceVersion=6 ");
    answers_expect(3, "resourceVersion=11 ");
    answers_expect(4, "resourceVersion=12 ");
}

#define THEIRS(revision)                                                          \
    "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"" revision \
    "\"},\"spec\":{\"holderIdentity\":\"stranger\",\"leaseDurationSeconds\":9}}"

/* A waiter for another program's lock receives each of its renewals, and requests none; it queries
 * once where events may be missing. */
static void a_strangers_renewal_is_told_to_who_waits(void **state)
{
    static const char *const answers[] = {
        "200 OK\n" THEIRS("5"), "200 OK\n{\"metadata\":{\"resourceVersion\":\"5\"}}",
        "watch\n{\"type\":\"MODIFIED\",\"object\":" THEIRS("7") "}\n{\"type\":\"ERROR\"}\n",
        "200 OK\n{\"metadata\":{\"resourceVersion\":\"9\"}}", NULL};
    static struct record record;
    struct asked asked = {0};
    struct codec_error error;
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_read_key(&asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(record_decode(asked.bytes, strlen(asked.bytes), &record, &error), DECODE_OK);
    struct waiter *waiter = record_add_waiter(&record);
    text_copy(waiter->holder, sizeof waiter->holder, "waiter");
    text_copy(waiter->request, sizeof waiter->request, "wish");
    waiter->session = 7;
    waiter->ttl_ms = 1000;
    char bytes[1024];
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_REVISION, .revision = 5},
                                    .bytes = bytes,
                                    .length = record_encode(&record, bytes, sizeof bytes)};
    summarize_record(&record, waiter->session, &request.summary);
    k8s_kit_notices = 0;
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    /* Where the watch begins, by the renewal, and where it resumes. */
    assert_true(k8s_kit_until(&asked.done, 2) && k8s_kit_until(&k8s_kit_notices, 3));
    assert_int_equal(record_decode(k8s_kit_noticed, strlen(k8s_kit_noticed), &record, &error),
                     DECODE_OK);
    assert_int_equal(record.grants[0].renewed.revision, 7);
    assert_non_null(record_waiter_by_session(&record, 7));
}

/* A Lease whose record is void, a day before the server's time. */
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
    for (int64_t end_ms = host_boot_ms() + 10000; answers_heard() < wanted;) {
        if (host_boot_ms() >= end_ms)
            return false;
        k8s_kit_turn(/* ms= */ 20);
    }
    return true;
}

static void unused_leases_are_removed_page_by_page(void **state)
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
    k8s_kit_begin_at("k8s://blue?collect=60000", answers);
    assert_true(until_heard(6));
    answers_expect(0, "GET /apis/coordination.k8s.io/v1/namespaces/blue/leases?limit=50&label");
    answers_expect(1, "DELETE /apis/coordination.k8s.io/v1/namespaces/blue/leases/a ");
    answers_expect(1, "\"uid\":\"u-a\"");
    answers_expect(1, "\"resourceVersion\":\"5\"");
    answers_expect(2, "&continue=next ");
    answers_expect(3, "&continue=later ");
    answers_expect(4, "leases/b ");
    answers_expect(5, "leases/c ");
}

static void a_collector_obeys_the_server(void **state)
{
    static const char *const answers[] = {"429 Too Many Requests\r\nRetry-After: 2\n{}", NULL};
    (void)state;
    k8s_kit_begin_at("k8s://blue?collect=60000", answers);
    assert_true(until_heard(1));
    int64_t heard_ms = host_boot_ms();
    assert_true(until_heard(2));
    assert_true(host_boot_ms() - heard_ms >= 1900); /* received a little before our query */
    answers_expect(1, "GET ");
}

static void nobody_collects_who_should_not(void **state)
{
    static const char *const answers[] = {NULL};
    (void)state;
    k8s_kit_begin_at("k8s://blue?collect=off", answers);
    for (unsigned i = 0; i < 20; i++)
        k8s_kit_turn(/* ms= */ 20);
    assert_int_equal(answers_heard(), 0);
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
    k8s_kit_begin(answers);
    ((struct k8s *)k8s_kit_store)->watch.length_s = 1;
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(
        k8s_kit_until(&asked.done, 3)); /* the object, a change, and an event that is malformed */
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    answers_expect(2, "resourceVersion=6 ");
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(k8s_kit_until(&asked.done, 5));
    assert_int_equal(asked.last.written.revision, 10);
    answers_expect(4, "resourceVersion=9 ");
}

static void a_proxy_of_the_kubeconfig_is_gone_through(void **state)
{
    static const char *const answers[] = {NOT_FOUND, NULL};
    struct asked asked = {0};
    (void)state;
    k8s_kit_by_proxy = "server: 'http://api.example', proxy-url";
    (void)setenv("no_proxy", "*", 1);
    k8s_kit_begin(answers);
    k8s_kit_by_proxy = "";
    k8s_kit_read_key(&asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_OK);
    answers_expect(0,
                   "GET http://api.example/apis/coordination.k8s.io/v1/namespaces/blue/leases/k ");
    (void)unsetenv("no_proxy");
}

static void a_request_in_flight_ends_with_the_store(void **state)
{
    static const char *const answers[] = {NULL};
    struct asked asked = {0};
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = ""};
    (void)state;
    k8s_kit_begin(answers);
    k8s_kit_read_key(&asked);
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    k8s_kit_turn(/* ms= */ 50);
    k8s_kit_turn(/* ms= */ 50);
    k8s_kit_end();
    assert_int_equal(asked.done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(too_many_requests_are_repeated_when_the_server_says),
        STORY(a_wait_beyond_the_timeout_is_reported),
        STORY(a_grant_is_not_sent_with_an_epoch_read_long_ago),
        STORY(a_lock_with_the_name_of_the_epoch_is_not_raised),
        STORY(a_refused_token_is_read_anew_once),
        STORY(a_forbidden_request_is_told_at_once),
        STORY(a_request_without_a_reply_is_trouble),
        STORY(a_key_has_one_request_on_its_way),
        STORY(a_bad_list_is_not_an_empty_one),
        STORY(a_replacement_names_what_it_replaces),
        STORY(a_cut_watch_goes_on_where_it_was),
        STORY(a_strangers_renewal_is_told_to_who_waits),
        STORY(unused_leases_are_removed_page_by_page),
        STORY(a_collector_obeys_the_server),
        STORY(nobody_collects_who_should_not),
        STORY(a_watch_that_goes_silent_or_mad_is_begun_anew),
        STORY(a_proxy_of_the_kubeconfig_is_gone_through),
        STORY(a_request_in_flight_ends_with_the_store),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

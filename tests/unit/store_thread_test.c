/* SPDX-License-Identifier: Apache-2.0 */
/* A store that runs in a thread: submitters never block, and every request gets one reply. */
#include "process/host.h"
#include "store/store_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { APPEND_BYTE = 1, THREADS = 8, EACH = 50 };

static struct {
    unsigned answers, ok, conflicts, trouble, notices;
    uint64_t last_revision;
    char last_why[256], last_key[64];
} heard;

static char folder[] = "/tmp/beside-XXXXXX";
static char url[64];

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

static void count(void *caller, const struct store_reply *reply)
{
    (void)caller;
    heard.answers++;
    heard.last_revision = reply->written.revision;
    heard.ok += reply->result == REPLY_OK;
    heard.conflicts += reply->result == REPLY_CONFLICT;
    heard.trouble += reply->result == REPLY_TROUBLE;
    if (reply->why != NULL)
        (void)snprintf(heard.last_why, sizeof heard.last_why, "%s", reply->why);
    if (reply->key != NULL)
        (void)snprintf(heard.last_key, sizeof heard.last_key, "%s", reply->key);
}

static void notice(void *owner, const char *key, const struct store_reply *stands)
{
    (void)owner;
    (void)stands;
    heard.notices++;
    (void)snprintf(heard.last_key, sizeof heard.last_key, "%s", key);
}

static struct store_thread *open_beside(const char *store, uint64_t session, int64_t timeout_ms)
{
    char words[512];
    struct text why;
    struct store_callbacks site = {.clock = {.now_ms = no_time},
                                   .session = session,
                                   .timeout_ms = timeout_ms,
                                   .notice = notice};
    text_init(&why, words, sizeof words);
    memset(&heard, 0, sizeof heard);
    struct store_thread *store_thread = store_thread_new(store_find(store), store, &site, &why);
    if (store_thread == NULL)
        print_message("%s\n", words);
    return store_thread;
}

static void hear(struct store_thread *store_thread, unsigned answers)
{
    for (int64_t end_ms = host_boot_ms() + 10000;
         heard.answers < answers && host_boot_ms() < end_ms;) {
        struct pollfd wait = {.fd = store_thread_fd(store_thread), .events = POLLIN};
        (void)poll(&wait, 1, /* timeout= */ 50);
        store_thread_step(store_thread);
    }
}

static struct store_request create(const char *key)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = {.kind = IF_ABSENT},
                                  .bytes = "bytes",
                                  .length = 5};
}

static void an_answer_comes_in_a_step_and_not_before(void **state)
{
    (void)state;
    struct store_thread *store_thread =
        open_beside("memory:", /* session= */ 1, /* timeout_ms= */ 10000);
    struct store_request request = create("k");
    store_thread_submit(store_thread, &request, count, NULL);
    struct timespec moment = {.tv_nsec = 20000000};
    (void)nanosleep(&moment, NULL);
    assert_int_equal(heard.answers, 0);
    hear(store_thread, 1);
    assert_int_equal(heard.ok, 1);
    store_thread_submit(store_thread, &request, count, NULL);
    hear(store_thread, 2);
    assert_int_equal(heard.conflicts, 1);
    store_thread_free(&store_thread);
    assert_null(store_thread);
}

static void queued_requests_wait_for_the_wake_up(void **state)
{
    (void)state;
    struct store_thread *store_thread =
        open_beside("memory:", /* session= */ 1, /* timeout_ms= */ 10000);
    struct pollfd wait = {.fd = store_thread_fd(store_thread), .events = POLLIN};
    struct store_request first = create("a"), second = create("b");
    store_thread_wake(store_thread); /* nothing is queued */
    store_thread_queue(store_thread, &first, count, NULL);
    store_thread_queue(store_thread, &second, count, NULL);
    assert_int_equal(poll(&wait, 1, /* timeout= */ 20), 0);
    store_thread_wake(store_thread);
    store_thread_wake(store_thread);
    hear(store_thread, 2);
    assert_int_equal(heard.ok, 2);
    store_thread_free(&store_thread);
}

static void *submit_many(void *argument)
{
    static char keys[THREADS * EACH][16];
    static _Atomic unsigned next;
    for (int i = 0; i < EACH; i++) {
        unsigned number = next++;
        (void)snprintf(keys[number], sizeof keys[number], "k%u", number);
        struct store_request request = create(keys[number]);
        store_thread_submit(argument, &request, count, NULL);
    }
    return NULL;
}

static void threads_submit_at_once_and_each_is_answered(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct store_thread *store_thread = open_beside(url, /* session= */ 2, /* timeout_ms= */ 10000);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, store_thread), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    hear(store_thread, THREADS * EACH);
    assert_int_equal(heard.ok, THREADS * EACH);
    assert_int_equal(heard.answers, THREADS * EACH);
    store_thread_free(&store_thread);
}

static void too_many_are_told_so_at_once(void **state)
{
    (void)state;
    struct store_thread *store_thread = open_beside(url, /* session= */ 3, /* timeout_ms= */ 10000);
    struct store_request request = {.verb = VERB_STORE_READ, .key = "k"};
    /* More than can be queued, in flight and undelivered together, however fast the store is. */
    enum { MANY = 8000 };
    for (int i = 0; i < MANY; i++)
        store_thread_submit(store_thread, &request, count, NULL);
    assert_true(heard.trouble > 0);
    assert_non_null(strstr(heard.last_why, "too many requests"));
    hear(store_thread, MANY);
    assert_int_equal(heard.answers, MANY);
    store_thread_free(&store_thread);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The log's lock is ours: the store waits, the caller does not. */
static void a_caller_never_waits_for_the_disk(void **state)
{
    (void)state;
    char path[96];
    struct store_thread *store_thread = open_beside(url, /* session= */ 4, /* timeout_ms= */ 300);
    (void)snprintf(path, sizeof path, "%s/store.log.lock", folder);
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_start = APPEND_BYTE, .l_len = 1};
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    struct store_request request = create("behind-a-lock");
    int64_t began = now_ms();
    store_thread_submit(store_thread, &request, count, NULL);
    store_thread_step(store_thread);
    assert_true(now_ms() - began < 100);
    hear(store_thread, 1);
    assert_int_equal(heard.trouble, 1);
    assert_non_null(strstr(heard.last_why, "another process holds the log's lock"));
    assert_in_range(now_ms() - began, 250, 900);
    assert_int_equal(close(file), 0);
    store_thread_submit(store_thread, &request, count, NULL);
    hear(store_thread, 2);
    assert_int_equal(heard.ok, 1);
    store_thread_free(&store_thread);
}

static void a_notice_comes_through(void **state)
{
    (void)state;
    struct store_thread *waiter = open_beside(url, /* session= */ 5, /* timeout_ms= */ 10000);
    struct store_thread *other = open_beside(url, /* session= */ 6, /* timeout_ms= */ 10000);
    uint64_t named = 5;
    struct store_request place = create("offered");
    store_thread_submit(waiter, &place, count, NULL);
    hear(waiter, 1);
    place.condition = (struct condition){.kind = IF_REVISION, .revision = heard.last_revision};
    store_thread_submit(waiter, &place, count, NULL);
    hear(waiter, 2);
    struct store_request request = place;
    request.condition.revision = heard.last_revision;
    request.wake = &named;
    request.wake_count = 1;
    store_thread_submit(other, &request, count, NULL);
    hear(other, 3);
    assert_int_equal(heard.ok, 3);
    for (int i = 0; i < 100 && heard.notices == 0; i++) {
        struct pollfd wait = {.fd = store_thread_fd(waiter), .events = POLLIN};
        (void)poll(&wait, 1, /* timeout= */ 50);
        store_thread_step(waiter);
    }
    assert_int_equal(heard.notices, 1);
    assert_string_equal(heard.last_key, "offered");
    store_thread_free(&other);
    store_thread_free(&waiter);
}

static void an_unanswered_request_is_dropped_at_the_end(void **state)
{
    (void)state;
    struct store_thread *store_thread = open_beside(url, /* session= */ 7, /* timeout_ms= */ 10000);
    struct store_request watch = {.verb = VERB_STORE_WATCH, .key = ""};
    struct store_request request = create("last");
    store_thread_submit(store_thread, &watch, count, NULL);
    hear(store_thread, 1);
    for (int i = 0; i < 100; i++)
        store_thread_submit(store_thread, &request, count, NULL);
    store_thread_free(&store_thread); /* the sanitizer finds leaks */
}

static void a_store_that_cannot_be_opened_says_why(void **state)
{
    (void)state;
    char words[512];
    struct text why;
    struct store_callbacks site = {.session = 8};
    text_init(&why, words, sizeof words);
    assert_null(store_thread_new(&file_driver, "file:/nowhere/at/all.log", &site, &why));
    assert_non_null(strstr(words, "/nowhere: "));
}

static int make_folder(void **state)
{
    (void)state;
    bool made = mkdtemp(folder) != NULL;
    (void)snprintf(url, sizeof url, "file:%s/store.log", folder);
    return made ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"", ".lock", ".index"};
    char path[96];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/store.log%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_in_a_step_and_not_before),
        cmocka_unit_test(queued_requests_wait_for_the_wake_up),
        cmocka_unit_test(threads_submit_at_once_and_each_is_answered),
        cmocka_unit_test(too_many_are_told_so_at_once),
        cmocka_unit_test(a_caller_never_waits_for_the_disk),
        cmocka_unit_test(a_notice_comes_through),
        cmocka_unit_test(an_unanswered_request_is_dropped_at_the_end),
        cmocka_unit_test(a_store_that_cannot_be_opened_says_why),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

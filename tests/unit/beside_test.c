/* SPDX-License-Identifier: Apache-2.0 */
/* A store carried on in a thread: who submits never waits, and everything is answered once. */
#include "io/host.h"
#include "store/beside.h"

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

static void count(void *caller, const struct store_answer *answer)
{
    (void)caller;
    heard.answers++;
    heard.last_revision = answer->written.revision;
    heard.ok += answer->result == ANSWER_OK;
    heard.conflicts += answer->result == ANSWER_CONFLICT;
    heard.trouble += answer->result == ANSWER_TROUBLE;
    if (answer->why != NULL)
        (void)snprintf(heard.last_why, sizeof heard.last_why, "%s", answer->why);
    if (answer->key != NULL)
        (void)snprintf(heard.last_key, sizeof heard.last_key, "%s", answer->key);
}

static void notice(void *owner, const char *key, const struct store_answer *stands)
{
    (void)owner;
    (void)stands;
    heard.notices++;
    (void)snprintf(heard.last_key, sizeof heard.last_key, "%s", key);
}

static struct beside *open_beside(const char *store, uint64_t session, int64_t patience_ms)
{
    char words[512];
    struct text why;
    struct store_site site = {.clock = {.now_ms = no_time},
                              .session = session,
                              .patience_ms = patience_ms,
                              .notice = notice};
    text_init(&why, words, sizeof words);
    memset(&heard, 0, sizeof heard);
    struct beside *beside = beside_new(store_find(store), store, &site, &why);
    if (beside == NULL)
        print_message("%s\n", words);
    return beside;
}

static void hear(struct beside *beside, unsigned answers)
{
    for (int64_t end_ms = host_boot_ms() + 10000;
         heard.answers < answers && host_boot_ms() < end_ms;) {
        struct pollfd wait = {.fd = beside_fd(beside), .events = POLLIN};
        (void)poll(&wait, 1, /* timeout= */ 50);
        beside_step(beside);
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
    struct beside *beside = open_beside("memory:", /* session= */ 1, /* patience_ms= */ 10000);
    struct store_request request = create("k");
    beside_submit(beside, &request, count, NULL);
    struct timespec moment = {.tv_nsec = 20000000};
    (void)nanosleep(&moment, NULL);
    assert_int_equal(heard.answers, 0);
    hear(beside, 1);
    assert_int_equal(heard.ok, 1);
    beside_submit(beside, &request, count, NULL);
    hear(beside, 2);
    assert_int_equal(heard.conflicts, 1);
    beside_free(&beside);
    assert_null(beside);
}

static void *submit_many(void *argument)
{
    static char keys[THREADS * EACH][16];
    static _Atomic unsigned next;
    for (int i = 0; i < EACH; i++) {
        unsigned number = next++;
        (void)snprintf(keys[number], sizeof keys[number], "k%u", number);
        struct store_request request = create(keys[number]);
        beside_submit(argument, &request, count, NULL);
    }
    return NULL;
}

static void threads_submit_at_once_and_each_is_answered(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct beside *beside = open_beside(url, /* session= */ 2, /* patience_ms= */ 10000);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, beside), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    hear(beside, THREADS * EACH);
    assert_int_equal(heard.ok, THREADS * EACH);
    assert_int_equal(heard.answers, THREADS * EACH);
    beside_free(&beside);
}

static void too_many_are_told_so_at_once(void **state)
{
    (void)state;
    struct beside *beside = open_beside(url, /* session= */ 3, /* patience_ms= */ 10000);
    struct store_request request = {.verb = VERB_STORE_READ, .key = "k"};
    /* More than can be waiting, under way and unheard together, however fast the store is. */
    enum { MANY = 8000 };
    for (int i = 0; i < MANY; i++)
        beside_submit(beside, &request, count, NULL);
    assert_true(heard.trouble > 0);
    assert_non_null(strstr(heard.last_why, "too many requests"));
    hear(beside, MANY);
    assert_int_equal(heard.answers, MANY);
    beside_free(&beside);
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
    struct beside *beside = open_beside(url, /* session= */ 4, /* patience_ms= */ 300);
    (void)snprintf(path, sizeof path, "%s/store.log.lock", folder);
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_start = APPEND_BYTE, .l_len = 1};
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    struct store_request request = create("behind-a-lock");
    int64_t began = now_ms();
    beside_submit(beside, &request, count, NULL);
    beside_step(beside);
    assert_true(now_ms() - began < 100);
    hear(beside, 1);
    assert_int_equal(heard.trouble, 1);
    assert_non_null(strstr(heard.last_why, "another process keeps the log's lock"));
    assert_in_range(now_ms() - began, 250, 900);
    assert_int_equal(close(file), 0);
    beside_submit(beside, &request, count, NULL);
    hear(beside, 2);
    assert_int_equal(heard.ok, 1);
    beside_free(&beside);
}

static void a_notice_comes_through(void **state)
{
    (void)state;
    struct beside *waiter = open_beside(url, /* session= */ 5, /* patience_ms= */ 10000);
    struct beside *other = open_beside(url, /* session= */ 6, /* patience_ms= */ 10000);
    uint64_t named = 5;
    struct store_request place = create("offered");
    beside_submit(waiter, &place, count, NULL);
    hear(waiter, 1);
    place.condition = (struct condition){.kind = IF_REVISION, .revision = heard.last_revision};
    beside_submit(waiter, &place, count, NULL);
    hear(waiter, 2);
    struct store_request request = place;
    request.condition.revision = heard.last_revision;
    request.poke = &named;
    request.poke_count = 1;
    beside_submit(other, &request, count, NULL);
    hear(other, 3);
    assert_int_equal(heard.ok, 3);
    for (int i = 0; i < 100 && heard.notices == 0; i++) {
        struct pollfd wait = {.fd = beside_fd(waiter), .events = POLLIN};
        (void)poll(&wait, 1, /* timeout= */ 50);
        beside_step(waiter);
    }
    assert_int_equal(heard.notices, 1);
    assert_string_equal(heard.last_key, "offered");
    beside_free(&other);
    beside_free(&waiter);
}

static void what_is_unanswered_at_the_end_is_forgotten(void **state)
{
    (void)state;
    struct beside *beside = open_beside(url, /* session= */ 7, /* patience_ms= */ 10000);
    struct store_request watch = {.verb = VERB_STORE_WATCH, .key = ""};
    struct store_request request = create("last");
    beside_submit(beside, &watch, count, NULL);
    hear(beside, 1);
    for (int i = 0; i < 100; i++)
        beside_submit(beside, &request, count, NULL);
    beside_free(&beside); /* the sanitizer finds what is left */
}

static void a_store_that_cannot_be_opened_says_why(void **state)
{
    (void)state;
    char words[512];
    struct text why;
    struct store_site site = {.session = 8};
    text_init(&why, words, sizeof words);
    assert_null(beside_new(&file_driver, "file:/nowhere/at/all.log", &site, &why));
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
        cmocka_unit_test(threads_submit_at_once_and_each_is_answered),
        cmocka_unit_test(too_many_are_told_so_at_once),
        cmocka_unit_test(a_caller_never_waits_for_the_disk),
        cmocka_unit_test(a_notice_comes_through),
        cmocka_unit_test(what_is_unanswered_at_the_end_is_forgotten),
        cmocka_unit_test(a_store_that_cannot_be_opened_says_why),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_peek() from the watch cache: it sends no request, follows changes by other clients, detects
 * expiry by itself, and grants nothing.
 */
#include "lib_kit.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 500, SOON_MS = 20000, SHORT_MS = 1500 };

static atomic_int requests; /* with a reply of the store */

static void count(void *user, const struct lh_event *event)
{
    (void)user;
    if (event->kind == LH_EVENT_STORE)
        (void)atomic_fetch_add(&requests, 1);
}

static struct lh_client *open_counted(void)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.on_event = count;
    return kit_open(&options);
}

/* Peeks until the result is cached: the first peeks query the store and start the watch. */
static enum lh_outcome peek_cached(struct lh_client *client, const char *key,
                                   struct lh_report *report)
{
    int64_t cached_ms = -1, end_ms = kit_now_ms() + SOON_MS;
    enum lh_outcome outcome = LH_FAILED;
    while (cached_ms < 0 && kit_now_ms() < end_ms)
        outcome = lh_peek(client, key, &cached_ms, report);
    assert_true(cached_ms >= 0);
    return outcome;
}

/* Peeks, without a request to the store, until the outcome is this one. */
static void await_cached(struct lh_client *client, const char *key, enum lh_outcome expected,
                         struct lh_report *report)
{
    int64_t cached_ms = -1, end_ms = kit_now_ms() + SOON_MS;
    int before = atomic_load(&requests);
    enum lh_outcome outcome = LH_FAILED;
    while (outcome != expected && kit_now_ms() < end_ms) {
        outcome = lh_peek(client, key, &cached_ms, report);
        assert_true(cached_ms >= 0);
        kit_sleep_ms(1);
    }
    ASSERT_OUTCOME(outcome, expected, report);
    assert_int_equal(atomic_load(&requests), before);
}

/* ---- another process ---- */

struct other {
    pid_t pid;
    int orders, answers;
};

/* One letter each: acquires the key, releases it with a cooldown, or leaves it to a short TTL. */
static void obey(const char *key, int orders, int answers)
{
    struct lh_client *client = NULL;
    struct lh_lease *lease = NULL;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_open_options names = LH_OPEN_OPTIONS_INIT;
    char what;
    names.holder = "the other";
    bool fine = lh_open(kit_url(), &names, &client, NULL) == LH_OK;
    while (read(orders, &what, 1) == 1) {
        options.cooldown_ms = what == 'c' ? SHORT_MS : 0;
        options.ttl_ms = what == 't' ? SHORT_MS : 0;
        options.unbound = what == 't';
        if (what == 'r')
            fine = fine && lh_release(&lease, NULL) == LH_OK;
        else
            fine = fine && lh_acquire(client, key, &options, &lease, NULL) == LH_OK;
        if (what == 't')
            fine = fine && lh_detach(&lease, NULL) == LH_OK;
        if (write(answers, fine ? "y" : "n", 1) != 1)
            _exit(1);
    }
    lh_close(&client);
    _exit(0);
}

/* Called before this process has a client. */
static struct other start_other(const char *key)
{
    int orders[2], answers[2];
    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    struct other other = {.pid = fork(), .orders = orders[1], .answers = answers[0]};
    assert_true(other.pid >= 0);
    if (other.pid == 0) {
        (void)close(orders[1]);
        obey(key, orders[0], answers[1]);
    }
    (void)close(orders[0]);
    (void)close(answers[1]);
    return other;
}

static void order(const struct other *other, char what)
{
    char reply = '?';
    assert_int_equal(write(other->orders, &what, 1), 1);
    assert_int_equal(read(other->answers, &reply, 1), 1);
    assert_int_equal(reply, 'y');
}

static void end_other(struct other *other)
{
    int status = -1;
    (void)close(other->orders);
    (void)close(other->answers);
    assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
    assert_int_equal(status, 0);
}

/* ---- the tests ---- */

static void looks_ask_nobody(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    int64_t cached_ms = 0;
    (void)state;
    struct lh_client *client = open_counted();
    ASSERT_OUTCOME(lh_peek(client, "k", &cached_ms, &report), LH_OK, &report);
    assert_int_equal(cached_ms, -1); /* the first queries the store */
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
    int before = atomic_load(&requests);
    for (int i = 0; i < LOOKS; i++) {
        ASSERT_OUTCOME(lh_peek(client, "k", &cached_ms, &report), LH_OK, &report);
        assert_true(cached_ms >= 0);
    }
    assert_int_equal(atomic_load(&requests), before);
    ASSERT_OUTCOME(lh_peek(client, NULL, NULL, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_peek(client, "", NULL, &report), LH_USAGE, &report);
    assert_int_equal(lh_peek(client, "k", NULL, NULL), LH_OK);
    lh_close(&client);
}

/* Also a lock that was held before the first peek. */
static void looks_see_what_this_process_does(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_BUSY, &report);
    assert_true(report.token == lh_token(lease));
    assert_true(report.since_ms >= 0 && report.ends_in_ms > 0);
    kit_release(&lease, LH_OK);
    await_cached(client, "k", LH_OK, &report);
    lease = kit_acquire(client, "k", NULL);
    await_cached(client, "k", LH_BUSY, &report);
    assert_true(report.token == lh_token(lease));
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void looks_follow_another_process(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    struct other other = start_other("k");
    struct lh_client *client = open_counted();
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
    order(&other, 'c');
    await_cached(client, "k", LH_BUSY, &report);
    assert_string_equal(report.holder, "the other");
    assert_true(report.token > 0 && report.since_ms >= 0 && report.ends_in_ms > 0);
    order(&other, 'r');
    await_cached(client, "k", LH_COOLING, &report);
    assert_string_equal(report.holder, "the other");
    assert_true(report.ends_in_ms > 0 && report.ends_in_ms <= SHORT_MS);
    await_cached(client, "k", LH_OK, &report); /* the end of a cooldown writes nothing */
    end_other(&other);
    lh_close(&client);
}

static void a_lease_that_ran_out_is_seen_without_a_change(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    struct other other = start_other("k");
    struct lh_client *client = open_counted();
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
    order(&other, 't');
    await_cached(client, "k", LH_BUSY, &report);
    await_cached(client, "k", LH_OK, &report);
    end_other(&other);
    lh_close(&client);
}

/* The store decides, not the cache. */
static void a_free_look_grants_nothing(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    (void)state;
    struct other other = start_other("k");
    struct lh_client *client = open_counted();
    for (int i = 0; i < 20; i++) {
        ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
        order(&other, 'a');
        (void)lh_peek(client, "k", NULL, &report); /* cached or not */
        ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_BUSY, &report);
        assert_null(lease);
        order(&other, 'r');
        await_cached(client, "k", LH_OK, &report);
        lease = kit_acquire(client, "k", NULL);
        kit_release(&lease, LH_OK);
        await_cached(client, "k", LH_OK, &report);
    }
    end_other(&other);
    lh_close(&client);
}

static void a_semaphore_is_free_while_it_has_room(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    (void)state;
    struct lh_client *client = kit_open(NULL);
    options.limit = 2;
    struct lh_lease *first = kit_acquire(client, "s", &options);
    ASSERT_OUTCOME(peek_cached(client, "s", &report), LH_OK, &report);
    struct lh_lease *second = kit_acquire(client, "s", &options);
    await_cached(client, "s", LH_BUSY, &report);
    kit_release(&first, LH_OK);
    await_cached(client, "s", LH_OK, &report);
    kit_release(&second, LH_OK);
    lh_close(&client);
}

static void a_store_in_trouble_is_neither_free_nor_busy(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    int64_t cached_ms = 0;
    (void)state;
    options.timeout_ms = 300;
    struct lh_client *client = kit_open(&options);
    int stopped = kit_stop_store();
    ASSERT_OUTCOME(lh_peek(client, "k", &cached_ms, &report), LH_UNAVAILABLE, &report);
    assert_int_equal(cached_ms, -1);
    kit_resume(stopped);
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
    lh_close(&client);
}

/* The cache ends with the watch. */
static void a_store_that_is_gone_is_not_free_for_ever(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    int64_t cached_ms = -1, end_ms = kit_now_ms() + SOON_MS;
    enum lh_outcome outcome = LH_OK;
    (void)state;
    options.timeout_ms = 300;
    struct lh_client *client = kit_open(&options);
    ASSERT_OUTCOME(peek_cached(client, "k", &report), LH_OK, &report);
    assert_int_equal(unlink(kit_url() + strlen("file:")), 0);
    while (outcome == LH_OK && kit_now_ms() < end_ms)
        outcome = lh_peek(client, "k", &cached_ms, &report);
    ASSERT_OUTCOME(outcome, LH_UNAVAILABLE, &report);
    assert_int_equal(cached_ms, -1);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(looks_ask_nobody),
        ON_FILE(looks_ask_nobody),
        ON_MEMORY(looks_see_what_this_process_does),
        ON_FILE(looks_see_what_this_process_does),
        ON_FILE(looks_follow_another_process),
        ON_FILE(a_lease_that_ran_out_is_seen_without_a_change),
        ON_FILE(a_free_look_grants_nothing),
        ON_MEMORY(a_semaphore_is_free_while_it_has_room),
        ON_FILE(a_semaphore_is_free_while_it_has_room),
        ON_FILE(a_store_in_trouble_is_neither_free_nor_busy),
        ON_FILE(a_store_that_is_gone_is_not_free_for_ever),
    };
    return cmocka_run_group_tests_name("lib_peek", tests, NULL, NULL);
}

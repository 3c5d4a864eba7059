/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_metrics(): every metric of docs/metrics.md, read from the text alone, of clients without
 * on_event, so that memory: uses its fast path.
 */
#include "lib_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, PAIRS = 2000, ROUNDS = 100 };

static double value_of(const char *text, const char *series)
{
    size_t length = strlen(series);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, series, length) == 0 && line[length] == ' ')
            return strtod(line + length, NULL);
    }
    fail_msg("no series %s", series);
    return -1;
}

/* The value of a series, without the prefix. */
static double metric(struct lh_client *client, const char *series)
{
    char *text = malloc(LH_METRICS_SIZE); /* not static: callbacks read metrics too */
    char name[128];
    size_t length = 0;
    struct lh_report report = LH_REPORT_INIT;
    assert_non_null(text);
    assert_int_equal(lh_metrics(client, "test", text, LH_METRICS_SIZE, &length, &report), LH_OK);
    assert_int_equal(length, strlen(text));
    (void)snprintf(name, sizeof name, "test_%s", series);
    double value = value_of(text, name);
    free(text);
    return value;
}

#define ASSERT_METRIC(client, series, expected) \
    assert_int_equal((long)metric(client, series), expected)
#define REASON(name) "lock_acquisition_failures_total{reason=\"" name "\"}"
#define CLAIMS(name) "once_claims_total{outcome=\"" name "\"}"

static void acquisitions_are_counted(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *second = NULL;
    (void)state;
    options.cooldown_ms = 60000;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    ASSERT_METRIC(client, "locks_held", 1);
    assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_BUSY);
    options.wait_ms = 100; /* of which some passes before it is in the queue */
    assert_int_equal(lh_acquire(client, "k", &options, &second, NULL), LH_BUSY);
    kit_release(&lease, LH_OK);
    assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_COOLING);
    ASSERT_METRIC(client, REASON("contention"), 1);
    ASSERT_METRIC(client, REASON("timeout"), 1);
    ASSERT_METRIC(client, REASON("cooling"), 1);
    ASSERT_METRIC(client, REASON("api_error"), 0);
    ASSERT_METRIC(client, "lock_acquisition_attempts_total", 4);
    ASSERT_METRIC(client, "lock_acquisition_successes_total", 1);
    ASSERT_METRIC(client, "lock_acquisition_duration_seconds_count", 4);
    ASSERT_METRIC(client, "lock_wait_duration_seconds_count", 1);
    assert_true(metric(client, "lock_wait_duration_seconds_sum") >= 0.05);
    ASSERT_METRIC(client, "lock_hold_duration_seconds_count", 1);
    assert_true(metric(client, "lock_hold_duration_seconds_sum") >= 0.05);
    ASSERT_METRIC(client, "lock_releases_total", 1);
    ASSERT_METRIC(client, "locks_held", 0);
    ASSERT_METRIC(client, "lock_waiters", 0);
    assert_true(metric(client, "store_request_duration_seconds_count{verb=\"swap\"}") >= 2);
    lh_close(&client);
}

static void ignore_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user, (void)lease, (void)report;
}

static void await_metric(struct lh_client *client, const char *series, long expected)
{
    for (int i = 0; i < 3000 && (long)metric(client, series) != expected; i++)
        kit_sleep_ms(10);
    ASSERT_METRIC(client, series, expected);
}

static void waiters_are_a_gauge(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    (void)state;
    options.wait_ms = LH_WAIT_FOREVER;
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    struct lh_request *request =
        lh_acquire_start(client, "k", &options, ignore_done, NULL, /* report= */ NULL);
    kit_started(request);
    await_metric(client, "lock_waiters", 1);
    lh_cancel(request);
    await_metric(client, "lock_waiters", 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void ids_are_counted(void **state)
{
    struct lh_once once = LH_ONCE_INIT;
    struct lh_lease *claim = NULL, *second = NULL;
    struct lh_client *client = kit_open(NULL);
    (void)state;
    assert_int_equal(lh_once_claim(client, "a", NULL, &claim, &once, NULL), LH_OK);
    assert_int_equal(lh_once_claim(client, "a", NULL, &second, &once, NULL), LH_BUSY);
    assert_int_equal(lh_finish(&claim, NULL, NULL), LH_OK);
    assert_int_equal(lh_once_claim(client, "a", NULL, &claim, &once, NULL), LH_DONE);
    assert_int_equal(lh_mark(client, "b", NULL, NULL), LH_OK);
    assert_int_equal(lh_mark(client, "b", NULL, NULL), LH_DONE);
    ASSERT_METRIC(client, CLAIMS("new"), 2);
    ASSERT_METRIC(client, CLAIMS("running"), 1);
    ASSERT_METRIC(client, CLAIMS("done"), 2);
    ASSERT_METRIC(client, CLAIMS("error"), 0);
    ASSERT_METRIC(client, REASON("duplicate"), 1);
    ASSERT_METRIC(client, "lock_acquisition_attempts_total", 3);
    ASSERT_METRIC(client, "locks_held", 0);
    lh_close(&client);
}

/* A plain lock on memory: never reaches the store, and is counted all the same. */
static void fast_path_is_counted(void **state)
{
    struct lh_client *client = kit_open(NULL);
    struct lh_view view = LH_VIEW_INIT;
    struct lh_lease *second = NULL;
    (void)state;
    struct lh_lease *held = kit_acquire(client, "held", NULL);
    for (int i = 0; i < ROUNDS; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        kit_release(&lease, LH_OK);
    }
    assert_int_equal(lh_acquire(client, "held", NULL, &second, NULL), LH_BUSY);
    ASSERT_METRIC(client, "store_request_duration_seconds_count{verb=\"swap\"}", 0);
    ASSERT_METRIC(client, "lock_acquisition_attempts_total", ROUNDS + 2);
    ASSERT_METRIC(client, "lock_acquisition_successes_total", ROUNDS + 1);
    ASSERT_METRIC(client, "lock_acquisition_duration_seconds_count", ROUNDS + 2);
    ASSERT_METRIC(client, REASON("contention"), 1);
    ASSERT_METRIC(client, "lock_releases_total", ROUNDS);
    ASSERT_METRIC(client, "locks_held", 1);
    long timed = (long)metric(client, "lock_hold_duration_seconds_count");
    assert_true(timed > 0 && timed <= ROUNDS);
    assert_int_equal(lh_status(client, "held", &view, NULL), LH_OK); /* promotes it */
    ASSERT_METRIC(client, "locks_held", 1);
    ASSERT_METRIC(client, "lock_acquisition_successes_total", ROUNDS + 1);
    kit_release(&held, LH_OK);
    struct lh_lease *again = kit_acquire(client, "held", NULL);
    ASSERT_METRIC(client, "locks_held", 1);
    kit_release(&again, LH_OK);
    ASSERT_METRIC(client, "locks_held", 0);
    ASSERT_METRIC(client, "lock_acquisition_successes_total", ROUNDS + 2);
    ASSERT_METRIC(client, "lock_releases_total", ROUNDS + 2);
    lh_close(&client);
}

static void rare_holds_are_all_timed(void **state)
{
    struct lh_client *client = kit_open(NULL);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        kit_sleep_ms(260);
        kit_release(&lease, LH_OK);
    }
    ASSERT_METRIC(client, "lock_hold_duration_seconds_count", 2);
    ASSERT_METRIC(client, "lock_hold_duration_seconds_bucket{le=\"0.1\"}", 0);
    assert_true(metric(client, "lock_hold_duration_seconds_sum") >= 0.5);
    lh_close(&client);
}

static void *make_pairs(void *argument)
{
    struct lh_client *client = argument;
    char key[16];
    (void)snprintf(key, sizeof key, "%p", (void *)&key);
    for (int i = 0; i < PAIRS; i++) {
        struct lh_lease *lease = kit_acquire(client, key, NULL);
        kit_release(&lease, LH_OK);
    }
    return NULL;
}

static void counters_never_decrease_between_threads(void **state)
{
    struct lh_client *client = kit_open(NULL);
    pthread_t threads[THREADS];
    double before = 0, timed_before = 0;
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_pairs, client), 0);
    for (int i = 0; i < 20; i++) {
        double now = metric(client, "lock_releases_total");
        double timed = metric(client, "lock_hold_duration_seconds_count");
        assert_true(now >= before && timed >= timed_before);
        before = now;
        timed_before = timed;
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    ASSERT_METRIC(client, "lock_acquisition_attempts_total", THREADS * PAIRS);
    ASSERT_METRIC(client, "lock_acquisition_successes_total", THREADS * PAIRS);
    ASSERT_METRIC(client, "lock_releases_total", THREADS * PAIRS);
    ASSERT_METRIC(client, "locks_held", 0);
    lh_close(&client);
}

/* The store does not reply: requests are repeated, the lease is lost, the breaker opens. */
static void trouble_is_counted(void **state)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *second = NULL;
    (void)state;
    open.timeout_ms = 300;
    struct lh_client *client = kit_open(&open);
    options.ttl_ms = 1500;
    struct lh_lease *lease = kit_acquire(client, "held", &options);
    int stopped = kit_stop_store();
    await_metric(client, "lock_lost_total", 1);
    assert_true(metric(client, "lock_retries_total") >= 1);
    ASSERT_METRIC(client, "locks_held", 0);
    for (int i = 0; i < 100 && metric(client, "breaker_open") == 0; i++)
        assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_UNAVAILABLE);
    ASSERT_METRIC(client, "breaker_open", 1);
    assert_true(metric(client, REASON("api_error")) >= 1);
    assert_true(metric(client, "store_errors_total{kind=\"unavailable\"}") >= 1);
    kit_resume(stopped);
    (void)lh_release(&lease, NULL);
    lh_close(&client);
}

static void callback_may_read(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lh_client *client = user;
    (void)report;
    ASSERT_METRIC(client, "lock_acquisition_successes_total", 1);
    assert_int_equal(lh_release_start(&lease, NULL, NULL), LH_OK);
}

static void wrong_calls_are_refused(void **state)
{
    struct lh_client *client = kit_open(NULL);
    static char text[LH_METRICS_SIZE];
    size_t length = 7, needed = 0;
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    text[0] = 'x';
    assert_int_equal(lh_metrics(NULL, "p", text, sizeof text, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, NULL, text, sizeof text, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, "", text, sizeof text, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, "a b", text, sizeof text, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, "p", NULL, sizeof text, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, "p", text, sizeof text, NULL, &report), LH_USAGE);
    assert_int_equal(length, 7);
    assert_int_equal(lh_metrics(client, "p", text, 100, &needed, &report), LH_USAGE);
    assert_non_null(strstr(report.text, "do not fit into 100 bytes"));
    assert_int_equal(text[0], 'x');
    assert_int_equal(lh_metrics(client, "p", text, needed, &length, &report), LH_USAGE);
    assert_int_equal(lh_metrics(client, "p", text, needed + 1, &length, NULL), LH_OK);
    assert_int_equal(strlen(text), needed);
    struct lh_request *request =
        lh_acquire_start(client, "k", NULL, callback_may_read, client, /* report= */ NULL);
    kit_started(request);
    await_metric(client, "lock_releases_total", 1);
    lh_close(&client);
}

int main(void)
{
#define ON_MEMORY(test)                                         \
    {                                                           \
#test " on memory", test, kit_on_memory, kit_done, NULL \
    }
#define ON_FILE(test)                                       \
    {                                                       \
#test " on file", test, kit_on_file, kit_done, NULL \
    }
    const struct CMUnitTest tests[] = {
        ON_MEMORY(acquisitions_are_counted),
        ON_FILE(acquisitions_are_counted),
        ON_MEMORY(waiters_are_a_gauge),
        ON_FILE(waiters_are_a_gauge),
        ON_MEMORY(ids_are_counted),
        ON_FILE(ids_are_counted),
        ON_MEMORY(fast_path_is_counted),
        ON_MEMORY(rare_holds_are_all_timed),
        ON_MEMORY(counters_never_decrease_between_threads),
        ON_FILE(trouble_is_counted),
        ON_MEMORY(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests_name("lib_metrics", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every metric of docs/metrics.md, counted from events alone: only on_event() changes a counter
 * here.
 */
#include "lib_kit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VERBS = 3, KINDS = 2 };
enum reason { CONTENTION, COOLING, TIMEOUT, API_ERROR, REASONS };

static struct {
    atomic_int attempts, successes, failures[REASONS], others_refused;
    atomic_int acquisition_durations, hold_durations, wait_durations;
    atomic_int releases, lost, retries, takeovers, held, waiters;
    atomic_int requests[VERBS], errors[KINDS];
    atomic_int breaker_open, once_claims[LH_DONE + 1];
    /* Not metrics. */
    atomic_int renewed, renew_failed, fine, watermarks[LH_DONE + 1];
    char failed_key[LH_KEY_SIZE];
} metrics;

static void count_refusal(const struct lh_event *event)
{
    if (event->outcome == LH_BUSY)
        atomic_fetch_add(&metrics.failures[event->waited ? TIMEOUT : CONTENTION], 1);
    else if (event->outcome == LH_COOLING)
        atomic_fetch_add(&metrics.failures[COOLING], 1);
    else if (event->outcome == LH_UNAVAILABLE)
        atomic_fetch_add(&metrics.failures[API_ERROR], 1);
    else
        atomic_fetch_add(&metrics.others_refused, 1);
}

static void count_end(const struct lh_event *event)
{
    if (event->after_us < 0)
        return;
    atomic_fetch_sub(&metrics.held, 1);
    atomic_fetch_add(&metrics.hold_durations, 1);
}

static void count_store(const struct lh_event *event)
{
    static const char *const verbs[VERBS] = {"read", "swap", "delete"};
    for (size_t i = 0; i < VERBS; i++)
        if (event->verb != NULL && strcmp(event->verb, verbs[i]) == 0)
            atomic_fetch_add(&metrics.requests[i], 1);
    if (event->outcome == LH_UNAVAILABLE)
        atomic_fetch_add(&metrics.errors[0], 1);
    if (event->outcome == LH_DENIED)
        atomic_fetch_add(&metrics.errors[1], 1);
    if (event->after_us % 1000 != 0) /* finer than milliseconds */
        atomic_fetch_add(&metrics.fine, 1);
}

static void count_acquisition(const struct lh_event *event)
{
    bool once = event->key_kind == LH_ONCE, granted = event->kind == LH_EVENT_GRANTED;
    assert_true(event->after_us >= 0);
    if (once)
        atomic_fetch_add(&metrics.once_claims[event->outcome], 1);
    atomic_fetch_add(&metrics.acquisition_durations, 1);
    atomic_fetch_add(&metrics.successes, granted ? 1 : 0);
    atomic_fetch_add(&metrics.held, granted ? 1 : 0);
    if (!granted)
        count_refusal(event);
}

static void on_event(void *user, const struct lh_event *event)
{
    assert_null(user);
    assert_non_null(event->key);
    switch (event->kind) {
    case LH_EVENT_ATTEMPT:
        atomic_fetch_add(&metrics.attempts, 1);
        break;
    case LH_EVENT_WAITING:
        atomic_fetch_add(&metrics.waiters, 1);
        break;
    case LH_EVENT_WAITED:
        atomic_fetch_sub(&metrics.waiters, 1);
        atomic_fetch_add(&metrics.wait_durations, event->after_us > 0 ? 1 : 0);
        break;
    case LH_EVENT_GRANTED:
    case LH_EVENT_REFUSED:
        count_acquisition(event);
        break;
    case LH_EVENT_TAKEOVER:
        atomic_fetch_add(&metrics.takeovers, 1);
        break;
    case LH_EVENT_RENEWED:
        atomic_fetch_add(&metrics.renewed, 1);
        break;
    case LH_EVENT_RENEW_FAILED:
        (void)snprintf(metrics.failed_key, sizeof metrics.failed_key, "%s", event->key);
        atomic_fetch_add(&metrics.renew_failed, 1);
        break;
    case LH_EVENT_LOST:
        atomic_fetch_add(&metrics.lost, 1);
        count_end(event);
        break;
    case LH_EVENT_RELEASED:
        atomic_fetch_add(&metrics.releases, event->outcome == LH_OK ? 1 : 0);
        count_end(event);
        break;
    case LH_EVENT_LEFT:
        count_end(event);
        break;
    case LH_EVENT_MARK:
        assert_int_equal(event->key_kind, LH_ONCE);
        atomic_fetch_add(&metrics.once_claims[event->outcome], 1);
        break;
    case LH_EVENT_WATERMARK:
        assert_int_equal(event->key_kind, LH_WATERMARK);
        atomic_fetch_add(&metrics.watermarks[event->outcome], 1);
        break;
    case LH_EVENT_RETRY:
        assert_true(event->key[0] != '\0');
        atomic_fetch_add(&metrics.retries, 1);
        break;
    case LH_EVENT_STORE:
        count_store(event);
        break;
    case LH_EVENT_BREAKER:
        atomic_store(&metrics.breaker_open, event->outcome == LH_UNAVAILABLE ? 1 : 0);
        break;
    }
}

static struct lh_client *open_counted(int64_t timeout_ms)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    memset(&metrics, 0, sizeof metrics);
    open.on_event = on_event;
    open.timeout_ms = timeout_ms;
    return kit_open(&open);
}

static void await_count(atomic_int *count, int least)
{
    for (int i = 0; i < 3000 && atomic_load(count) < least; i++)
        kit_sleep_ms(10);
    assert_true(atomic_load(count) >= least);
}

#define ASSERT_METRIC(name, expected) assert_int_equal(atomic_load(&metrics.name), expected)

static void acquisitions_are_counted(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_counted(/* timeout_ms= */ 0);
    struct lh_lease *second = NULL;
    (void)state;
    options.cooldown_ms = 60000;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    ASSERT_METRIC(held, 1);
    assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_BUSY);
    ASSERT_METRIC(failures[CONTENTION], 1);
    options.wait_ms = 100;
    assert_int_equal(lh_acquire(client, "k", &options, &second, NULL), LH_BUSY);
    ASSERT_METRIC(failures[TIMEOUT], 1);
    ASSERT_METRIC(wait_durations, 1);
    ASSERT_METRIC(waiters, 0);
    kit_release(&lease, LH_OK);
    assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_COOLING);
    ASSERT_METRIC(failures[COOLING], 1);
    ASSERT_METRIC(attempts, 4);
    ASSERT_METRIC(successes, 1);
    ASSERT_METRIC(acquisition_durations, 4);
    ASSERT_METRIC(hold_durations, 1);
    ASSERT_METRIC(releases, 1);
    ASSERT_METRIC(held, 0);
    ASSERT_METRIC(others_refused, 0);
    assert_true(atomic_load(&metrics.requests[1]) >= 2);
    lh_close(&client);
}

static void ignore_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user, (void)lease, (void)report;
}

static void waiters_are_a_gauge(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_counted(/* timeout_ms= */ 0);
    (void)state;
    options.wait_ms = LH_WAIT_FOREVER;
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    struct lh_request *request =
        lh_acquire_start(client, "k", &options, ignore_done, NULL, /* report= */ NULL);
    kit_started(request);
    await_count(&metrics.waiters, 1);
    lh_cancel(request);
    await_count(&metrics.wait_durations, 1);
    ASSERT_METRIC(waiters, 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* Every end of a lease is counted. */
static void held_locks_are_a_gauge(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_counted(/* timeout_ms= */ 0);
    (void)state;
    options.unbound = true;
    options.ttl_ms = 1000;
    struct lh_lease *left = kit_acquire(client, "left", &options);
    assert_int_equal(lh_detach(&left, NULL), LH_OK);
    ASSERT_METRIC(held, 0);
    ASSERT_METRIC(hold_durations, 1);
    kit_sleep_ms(1300);
    struct lh_lease *taken = kit_acquire(client, "left", NULL);
    ASSERT_METRIC(takeovers, 1);
    struct lh_lease *bound = kit_acquire(client, "bound", NULL);
    struct lh_lease *unbound = kit_acquire(client, "unbound", &options);
    ASSERT_METRIC(held, 3);
    lh_close(&client);
    ASSERT_METRIC(held, 0);
    ASSERT_METRIC(releases, 2);
    (void)lh_release(&taken, NULL);
    (void)lh_release(&bound, NULL);
    (void)lh_release(&unbound, NULL);
    ASSERT_METRIC(releases, 2);
}

static void ids_and_watermarks_are_counted(void **state)
{
    struct lh_once once = LH_ONCE_INIT;
    struct lh_lease *claim = NULL, *second = NULL;
    struct lh_client *client = open_counted(/* timeout_ms= */ 0);
    (void)state;
    assert_int_equal(lh_once_claim(client, "a", NULL, &claim, &once, NULL), LH_OK);
    assert_int_equal(lh_once_claim(client, "a", NULL, &second, &once, NULL), LH_BUSY);
    assert_int_equal(lh_finish(&claim, NULL, NULL), LH_OK);
    assert_int_equal(lh_once_claim(client, "a", NULL, &claim, &once, NULL), LH_DONE);
    assert_int_equal(lh_mark(client, "b", NULL, NULL), LH_OK);
    assert_int_equal(lh_mark(client, "b", NULL, NULL), LH_DONE);
    assert_int_equal(lh_once_begin(client, "c", NULL, &once, NULL), LH_OK);
    ASSERT_METRIC(held, 0);
    assert_int_equal(lh_once_renew(client, "c", once.token, 0, NULL), LH_OK);
    ASSERT_METRIC(renewed, 1);
    assert_int_equal(lh_once_finish(client, "c", once.token, NULL, NULL), LH_OK);
    ASSERT_METRIC(once_claims[LH_OK], 3);
    ASSERT_METRIC(once_claims[LH_BUSY], 1);
    ASSERT_METRIC(once_claims[LH_DONE], 2);
    ASSERT_METRIC(releases, 2);
    assert_int_equal(lh_watermark_advance(client, "w", "", "5", NULL), LH_OK);
    assert_int_equal(lh_watermark_advance(client, "w", "3", "7", NULL), LH_STALE);
    assert_int_equal(lh_watermark_set(client, "w", "1", "test", NULL), LH_OK);
    ASSERT_METRIC(watermarks[LH_OK], 2);
    ASSERT_METRIC(watermarks[LH_STALE], 1);
    assert_int_equal(lh_renew(client, "nobody", 1024, 0, NULL), LH_STALE);
    ASSERT_METRIC(renew_failed, 1);
    assert_string_equal(metrics.failed_key, "nobody");
    lh_close(&client);
}

/* The store does not reply: renewals fail with their key, the lease is lost, the breaker opens. */
static void trouble_is_counted(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_counted(/* timeout_ms= */ 600);
    struct lh_lease *second = NULL;
    (void)state;
    options.ttl_ms = 3000;
    struct lh_lease *lease = kit_acquire(client, "held", &options);
    int stopped = kit_stop_store();
    await_count(&metrics.lost, 1);
    assert_true(atomic_load(&metrics.renew_failed) >= 1);
    assert_string_equal(metrics.failed_key, "held");
    assert_true(atomic_load(&metrics.retries) >= 1);
    ASSERT_METRIC(held, 0);
    ASSERT_METRIC(hold_durations, 1);
    for (int i = 0; i < 100 && atomic_load(&metrics.breaker_open) == 0; i++)
        assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_UNAVAILABLE);
    ASSERT_METRIC(breaker_open, 1);
    assert_true(atomic_load(&metrics.failures[API_ERROR]) >= 1);
    assert_true(atomic_load(&metrics.errors[0]) >= 1);
    kit_resume(stopped);
    for (int i = 0; i < 1000 && lh_acquire(client, "k", NULL, &second, NULL) != LH_OK; i++)
        kit_sleep_ms(50);
    for (int i = 0; i < 3000 && atomic_load(&metrics.breaker_open) != 0; i++)
        kit_sleep_ms(10); /* emitted at the end of the same step */
    ASSERT_METRIC(breaker_open, 0);
    kit_release(&second, LH_OK);
    (void)lh_release(&lease, NULL);
    ASSERT_METRIC(held, 0);
    ASSERT_METRIC(hold_durations, 2);
    lh_close(&client);
}

static void times_are_in_microseconds(void **state)
{
    struct lh_client *client = open_counted(/* timeout_ms= */ 0);
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        kit_release(&lease, LH_OK);
    }
    assert_true(atomic_load(&metrics.fine) > 0);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(acquisitions_are_counted),
        ON_FILE(acquisitions_are_counted),
        ON_MEMORY(waiters_are_a_gauge),
        ON_FILE(waiters_are_a_gauge),
        ON_MEMORY(held_locks_are_a_gauge),
        ON_FILE(held_locks_are_a_gauge),
        ON_MEMORY(ids_and_watermarks_are_counted),
        ON_FILE(ids_and_watermarks_are_counted),
        ON_FILE(trouble_is_counted),
        ON_FILE(times_are_in_microseconds),
    };
    return cmocka_run_group_tests_name("lib_events", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a store that judges by sessions: nothing that it reports has a time of the store, and
 * a lease that expires without a write is free to every caller. A linker option makes the library
 * find the store of the test.
 */
#include "session_driver.h"

#include "leasehold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SHORT_MS = 150, PEEKS = 2000 };

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
const struct store_driver *__wrap_store_find(const char *url);

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
const struct store_driver *__wrap_store_find(const char *url)
{
    return strcmp(url, "sessions:") == 0 ? &session_driver : NULL;
}

static struct lh_client *client;

static int open_client(void **state)
{
    (void)state;
    return lh_open("sessions:", NULL, &client, NULL) == LH_OK ? 0 : -1;
}

static int close_client(void **state)
{
    (void)state;
    lh_close(&client);
    return 0;
}

static void nap(int64_t ms)
{
    struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

/* Holds the key by its token alone, for a short time. */
static void leave_behind(const char *key)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.ttl_ms = SHORT_MS;
    options.unbound = true;
    assert_int_equal(lh_acquire(client, key, &options, &lease, NULL), LH_OK);
    assert_int_equal(lh_detach(&lease, NULL), LH_OK);
}

static void no_time_is_reported(void **state)
{
    struct lh_view view = LH_VIEW_INIT;
    struct lh_lease *lease = NULL;
    (void)state;
    assert_int_equal(lh_acquire(client, "k", NULL, &lease, NULL), LH_OK);
    assert_int_equal(lh_status(client, "k", &view, NULL), LH_OK);
    assert_int_equal(view.state, LH_HELD);
    assert_true(view.since_ms == -1 && view.ends_in_ms == -1 && view.takeover_in_ms == -1);
    assert_int_equal(lh_release(&lease, NULL), LH_OK);
}

/* The first waiter reads when the lease should have ended, long before its usual poll. */
static void a_waiter_takes_over_an_expired_lease(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct timespec began, ended;
    (void)state;
    leave_behind("k");
    options.wait_ms = 20000;
    (void)clock_gettime(CLOCK_BOOTTIME, &began);
    assert_int_equal(lh_acquire(client, "k", &options, &lease, &report), LH_OK);
    (void)clock_gettime(CLOCK_BOOTTIME, &ended);
    assert_in_range(ended.tv_sec - began.tv_sec, 0, 3);
    assert_int_equal(lh_release(&lease, NULL), LH_OK);
}

/* No change is reported when a lease expires, so a copy cannot say that it is held. */
static void a_peek_does_not_believe_a_copy(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    leave_behind("k");
    (void)lh_peek(client, "k", NULL, &report); /* begins to watch */
    nap(SHORT_MS + 20);
    for (int i = 0; i < PEEKS && report.outcome != LH_OK; i++)
        (void)lh_peek(client, "k", NULL, &report);
    assert_int_equal(report.outcome, LH_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_time_is_reported, open_client, close_client),
        cmocka_unit_test_setup_teardown(a_waiter_takes_over_an_expired_lease, open_client,
                                        close_client),
        cmocka_unit_test_setup_teardown(a_peek_does_not_believe_a_copy, open_client, close_client),
    };
    return cmocka_run_group_tests_name("lib_session", tests, NULL, NULL);
}

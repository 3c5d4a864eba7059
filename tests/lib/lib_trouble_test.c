/* SPDX-License-Identifier: Apache-2.0 */
/* A store that refuses every connection: port 1 of this host has no listener. */
#include "lib_kit.h"

#include <string.h>

enum { FAILURES = 5, TIMEOUT_MS = 60000, AT_ONCE_MS = 20000 };

static struct lh_client *open_refused(void)
{
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.timeout_ms = TIMEOUT_MS;
    ASSERT_OUTCOME(lh_open("redis://127.0.0.1:1", &options, &client, &report), LH_OK, &report);
    return client;
}

static bool count_nothing(void *user, const struct lh_view *view)
{
    (void)user, (void)view;
    return true;
}

/* Five failures open the breaker. From then on every report has retry_after_ms. */
static void a_refused_call_is_answered_at_once(void **state)
{
    struct lh_client *client = open_refused();
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    int64_t began_ms = kit_now_ms();
    (void)state;
    for (int i = 0; i < FAILURES; i++) {
        ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_UNAVAILABLE, &report);
        assert_int_equal(report.retry_after_ms > 0, i == FAILURES - 1);
    }
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_UNAVAILABLE, &report);
    assert_in_range(report.retry_after_ms, 1, 30000);
    assert_non_null(strstr(report.text, "try again in "));
    ASSERT_OUTCOME(lh_status(client, "k", &view, &report), LH_UNAVAILABLE, &report);
    assert_in_range(report.retry_after_ms, 1, 30000);
    report.retry_after_ms = -1;
    for (int i = 0; i < 10 && report.retry_after_ms < 0; i++) { /* it may just have closed */
        (void)lh_acquire(client, "k", NULL, &lease, NULL);
        ASSERT_OUTCOME(lh_list(client, "", count_nothing, NULL, &report), LH_UNAVAILABLE, &report);
    }
    assert_in_range(report.retry_after_ms, 1, 30000);
    ASSERT_OUTCOME(lh_mark(client, "id", NULL, &report), LH_UNAVAILABLE, &report);
    assert_in_range(report.retry_after_ms, 1, 30000);
    assert_in_range(kit_now_ms() - began_ms, 0, AT_ONCE_MS);
    lh_close(&client);
}

/* In other reports retry_after_ms is -1. */
static void a_report_without_trouble_has_no_retry(void **state)
{
    struct lh_client *client = NULL;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    ASSERT_OUTCOME(lh_open("memory:", NULL, &client, &report), LH_OK, &report);
    assert_int_equal(report.retry_after_ms, -1);
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_OK, &report);
    assert_int_equal(report.retry_after_ms, -1);
    struct lh_lease *second = NULL;
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &second, &report), LH_BUSY, &report);
    assert_int_equal(report.retry_after_ms, -1);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_call_is_answered_at_once),
        cmocka_unit_test(a_report_without_trouble_has_no_retry),
    };
    return cmocka_run_group_tests_name("lib_trouble", tests, NULL, NULL);
}

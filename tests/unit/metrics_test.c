/* SPDX-License-Identifier: Apache-2.0 */
/* The text of metrics: written, read back, added up, refused. */
#include "wire/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char written[METRICS_TEXT_MAX];

static size_t write_text(const struct metrics *metrics, const char *prefix, bool gauges)
{
    struct text text;
    text_init(&text, written, sizeof written);
    metrics_write(metrics, prefix, gauges, &text);
    return text.length;
}

static struct metrics sample(void)
{
    struct metrics metrics = {0};
    for (size_t i = 0; i < SLOT_HELD; i++)
        metrics.values[i] = i * 7 % 13;
    return metrics;
}

static bool reads(const char *bytes, struct metrics *out)
{
    char message[256];
    struct text why;
    text_init(&why, message, sizeof message);
    bool read = metrics_read(bytes, strlen(bytes), "leasehold", out, &why);
    assert_int_equal(read, message[0] == '\0');
    return read;
}

static bool has_line(const char *line)
{
    const char *at = strstr(written, line);
    return at != NULL && (at == written || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static void text_has_every_family(void **state)
{
    struct metrics metrics = {0};
    (void)state;
    metrics.values[SLOT_ATTEMPTS] = 3;
    metrics.values[SLOT_FAILURES + FAILURE_TIMEOUT] = 1;
    metrics.values[SLOT_HELD] = 2;
    metrics_observe(&metrics, SLOT_HOLD, 1500000, 2);
    metrics_observe(&metrics, SLOT_HOLD, (int64_t)90000 * 1000000, 1);
    metrics_observe(&metrics, SLOT_REQUEST + METRIC_SWAP * METRIC_HISTOGRAM, 100, 1);
    (void)write_text(&metrics, "wfe", /* gauges= */ true);
    assert_true(has_line("# TYPE wfe_lock_acquisition_attempts_total counter"));
    assert_true(has_line("wfe_lock_acquisition_attempts_total 3"));
    assert_true(has_line("wfe_lock_acquisition_failures_total{reason=\"timeout\"} 1"));
    assert_true(has_line("wfe_lock_acquisition_failures_total{reason=\"contention\"} 0"));
    assert_true(has_line("# TYPE wfe_lock_hold_duration_seconds histogram"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_bucket{le=\"1\"} 0"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_bucket{le=\"5\"} 2"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_bucket{le=\"86400\"} 2"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_bucket{le=\"+Inf\"} 3"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_sum 90003.000000"));
    assert_true(has_line("wfe_lock_hold_duration_seconds_count 3"));
    assert_true(
        has_line("wfe_store_request_duration_seconds_bucket{verb=\"swap\",le=\"0.0001\"} 1"));
    assert_true(has_line("wfe_store_request_duration_seconds_sum{verb=\"swap\"} 0.000100"));
    assert_true(has_line("wfe_locks_held 2"));
    assert_true(has_line("# TYPE wfe_breaker_open gauge"));
}

static void text_fits_and_has_no_gauges_if_unwanted(void **state)
{
    struct metrics metrics;
    char prefix[METRICS_PREFIX_MAX + 1];
    (void)state;
    memset(&metrics, 0xff, sizeof metrics);
    memset(prefix, 'p', sizeof prefix);
    prefix[METRICS_PREFIX_MAX] = '\0';
    assert_true(metrics_is_prefix(prefix));
    assert_true(write_text(&metrics, prefix, /* gauges= */ true) < METRICS_TEXT_MAX);
    (void)write_text(&metrics, "leasehold", /* gauges= */ false);
    assert_null(strstr(written, "gauge"));
    assert_null(strstr(written, "locks_held"));
    assert_true(has_line("leasehold_lock_lost_total 9007199254740992"));
}

static void text_is_read_back(void **state)
{
    struct metrics metrics = sample(), found;
    (void)state;
    (void)write_text(&metrics, "leasehold", /* gauges= */ false);
    assert_true(reads(written, &found));
    assert_memory_equal(&found, &metrics, sizeof found);
    metrics.values[SLOT_WAITERS] = 3;
    (void)write_text(&metrics, "leasehold", /* gauges= */ true);
    assert_true(reads(written, &found));
    assert_memory_equal(&found, &metrics, sizeof found);
    memset(&metrics, 0xff, sizeof metrics);
    (void)write_text(&metrics, "leasehold", /* gauges= */ false);
    assert_true(reads(written, &found));
    assert_int_equal(found.values[SLOT_LOST], METRIC_MOST);
}

/* Text of an older release lacks what was added since. */
static void missing_metrics_are_zero(void **state)
{
    struct metrics metrics = sample(), found;
    (void)state;
    (void)write_text(&metrics, "leasehold", /* gauges= */ false);
    char *from = strstr(written, "# HELP leasehold_store_errors_total");
    char *to = strstr(written, "# HELP leasehold_once_claims_total");
    memmove(from, to, strlen(to) + 1);
    from = strstr(written, "leasehold_lock_acquisition_failures_total{reason=\"mismatch\"}");
    to = strchr(from, '\n') + 1;
    memmove(from, to, strlen(to) + 1);
    from = strstr(written, "leasehold_lock_hold_duration_seconds_bucket{le=\"0.02\"}");
    to = strchr(from, '\n') + 1;
    memmove(from, to, strlen(to) + 1);
    assert_true(reads(written, &found));
    size_t bucket = SLOT_HOLD + metrics_bucket(SLOT_HOLD, 20000);
    metrics.values[bucket + 1] += metrics.values[bucket]; /* of the next one, whose bound holds */
    metrics.values[bucket] = 0;
    metrics.values[SLOT_STORE_ERRORS] = metrics.values[SLOT_STORE_ERRORS + 1] = 0;
    metrics.values[SLOT_FAILURES + FAILURE_MISMATCH] = 0;
    assert_memory_equal(&found, &metrics, sizeof found);
}

/* Replaces the first `what` in the text of sample(). */
static bool reads_changed(const char *what, const char *by)
{
    static char changed[METRICS_TEXT_MAX + 64];
    struct metrics metrics = sample(), found, before;
    memset(&found, 0x5a, sizeof found);
    before = found;
    (void)write_text(&metrics, "leasehold", /* gauges= */ false);
    const char *at = strstr(written, what);
    assert_non_null(at);
    (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - written), written, by,
                   at + strlen(what));
    bool read = reads(changed, &found);
    if (!read)
        assert_memory_equal(&found, &before, sizeof found);
    return read;
}

static void other_text_is_refused(void **state)
{
    struct metrics found;
    (void)state;
    assert_false(reads("", &found));
    assert_false(reads("hello\n", &found));
    assert_true(reads("# EOF\n", &found));
    assert_false(reads("# EOF\n# EOF\n", &found));
    assert_true(reads_changed("were refused.", "had no success."));
    assert_false(reads_changed("# EOF\n", ""));
    assert_false(reads_changed("# EOF\n", "# EOF"));
    assert_false(reads_changed("\nleasehold_lock_lost_total ", "\nother_lock_lost_total "));
    assert_false(reads_changed("\nleasehold_lock_lost_total ", "\nleasehold_lock_lost_total -"));
    assert_false(reads_changed("\nleasehold_lock_lost_total ", "\nleasehold_lock_lost_total 0"));
    assert_false(reads_changed("\nleasehold_lock_lost_total ",
                               "\nleasehold_lock_lost_total 9007199254740992"));
    assert_false(reads_changed("attempts_total counter", "attempts_total gauge"));
    assert_false(reads_changed("hold_duration_seconds_bucket{le=\"60\"}", "x"));
    assert_false(reads_changed("hold_duration_seconds_bucket{le=\"+Inf\"}", "x"));
    assert_false(reads_changed("hold_duration_seconds_count ", "hold_duration_seconds_count 1"));
    assert_false(reads_changed("hold_duration_seconds_bucket{le=\"1\"} ",
                               "hold_duration_seconds_bucket{le=\"1\"} 99"));
    assert_false(
        reads_changed("hold_duration_seconds_sum 0.00000", "hold_duration_seconds_sum 0.0000"));
    assert_false(
        reads_changed("# HELP leasehold_lock_lost", "extra 1\n# HELP leasehold_lock_lost"));
}

static void only_counters_add_up(void **state)
{
    struct metrics sum = sample(), more = sample();
    (void)state;
    sum.values[SLOT_LOST] = METRIC_MOST - 1;
    more.values[SLOT_LOST] = 5;
    sum.values[SLOT_HELD] = 3;
    more.values[SLOT_HELD] = 4;
    metrics_add(&sum, &more);
    assert_int_equal(sum.values[SLOT_RETRIES], 2 * more.values[SLOT_RETRIES]);
    assert_int_equal(sum.values[SLOT_LOST], METRIC_MOST);
    assert_int_equal(sum.values[SLOT_HELD], 3);
    assert_false(metrics_are_zero(&sum));
    sum = (struct metrics){0};
    sum.values[SLOT_HELD] = 1;
    assert_true(metrics_are_zero(&sum));
}

static void buckets_include_their_bound(void **state)
{
    (void)state;
    assert_int_equal(metrics_bucket(SLOT_HOLD, -1), 0);
    assert_int_equal(metrics_bucket(SLOT_HOLD, 1000), 0);
    assert_int_equal(metrics_bucket(SLOT_HOLD, 1001), 1);
    assert_int_equal(metrics_bucket(SLOT_HOLD, INT64_MAX), METRIC_BUCKETS - 1);
    assert_int_equal(metrics_bucket(SLOT_REQUEST, 100), 0);
    assert_int_equal(metrics_bucket(SLOT_REQUEST + METRIC_HISTOGRAM, 10000001), METRIC_BUCKETS - 1);
}

static void prefixes_are_names(void **state)
{
    (void)state;
    assert_true(metrics_is_prefix("leasehold"));
    assert_true(metrics_is_prefix("_a9"));
    assert_false(metrics_is_prefix(""));
    assert_false(metrics_is_prefix("9a"));
    assert_false(metrics_is_prefix("a-b"));
    assert_false(metrics_is_prefix("a{b=\"c\"}"));
    assert_false(
        metrics_is_prefix("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_every_family),
        cmocka_unit_test(text_fits_and_has_no_gauges_if_unwanted),
        cmocka_unit_test(text_is_read_back),
        cmocka_unit_test(missing_metrics_are_zero),
        cmocka_unit_test(other_text_is_refused),
        cmocka_unit_test(only_counters_add_up),
        cmocka_unit_test(buckets_include_their_bound),
        cmocka_unit_test(prefixes_are_names),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}

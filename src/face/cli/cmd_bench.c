/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold bench: measures the chosen store with pairs of acquire and release, one at a time and
 * many in flight, through the public library. Time and keys are bounded; the keys are its own and
 * are free again at the end.
 */
#include "face/cli/cli.h"
#include "face/cli/signals.h"

#include "wire/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { FLIGHT_MAX = 1000 };

/* Buckets of a sixteenth of each power of two of 1 µs. */
#define FINE    ((size_t)16)
#define BUCKETS (40 * FINE)

static const struct option option_duration = {.name = "duration",
                                              .kind = VALUE_DURATION,
                                              .at = offsetof(struct settings, duration_ms),
                                              .value = "DUR",
                                              .min = 100,
                                              .max = 60000,
                                              .default_value = "2s",
                                              .flag_only = true,
                                              .help = "duration of each part, at most 1m"};
static const struct option option_flight = {.name = "flight",
                                            .kind = VALUE_COUNT,
                                            .at = offsetof(struct settings, flight),
                                            .value = "N",
                                            .min = 2,
                                            .max = FLIGHT_MAX,
                                            .default_value = "64",
                                            .flag_only = true,
                                            .help = "pairs in flight in the second part"};

/* A histogram of durations. */
struct histogram {
    uint64_t counts[BUCKETS], all;
    int64_t max_us;
};

struct bench;

/* One key, acquired and released repeatedly. */
struct bench_worker {
    struct bench *bench;
    struct lh_request *request;
    char key[64];
    int64_t began_us;
    bool busy;
};

struct bench {
    struct context *context;
    int64_t ends_us;
    uint64_t pairs;
    struct histogram acquires, releases;
    bool failed;
    struct lh_report report; /* of the first failure */
    size_t flight;
    struct bench_worker workers[FLIGHT_MAX];
};

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- times ---- */

static size_t bucket_of(int64_t length_us)
{
    uint64_t length = length_us > 0 ? (uint64_t)length_us : 0;
    size_t power = 0;
    while (length >= 2 * FINE && power < BUCKETS / FINE - 2) {
        length >>= 1;
        power++;
    }
    size_t bucket = power * FINE + (length < 2 * FINE ? (size_t)length : 2 * FINE - 1);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The longest duration of a bucket, approximately. */
static int64_t end_of_bucket(size_t bucket)
{
    if (bucket < 2 * FINE)
        return (int64_t)bucket;
    size_t power = bucket / FINE - 1;
    return ((int64_t)(bucket % FINE + FINE + 1) << power) - 1;
}

static void histogram_add(struct histogram *histogram, int64_t length_us)
{
    histogram->counts[bucket_of(length_us)]++;
    histogram->all++;
    if (length_us > histogram->max_us)
        histogram->max_us = length_us;
}

static int64_t histogram_percentile(const struct histogram *histogram, uint64_t of_thousand)
{
    uint64_t wanted = (histogram->all * of_thousand + 999) / 1000, seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen >= wanted && seen > 0) {
            int64_t end_us = end_of_bucket(i);
            return end_us < histogram->max_us ? end_us : histogram->max_us;
        }
    }
    return 0;
}

/* ---- pairs ---- */

static void bench_start_pair(struct bench_worker *worker);

static void bench_fail(struct bench *bench, const struct lh_report *report)
{
    if (!bench->failed)
        bench->report = *report;
    bench->failed = true;
}

static void bench_on_released(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct bench_worker *worker = user;
    struct bench *bench = worker->bench;
    (void)lease;
    worker->busy = false;
    if (report->outcome != LH_OK) {
        bench_fail(bench, report);
        return;
    }
    int64_t now = now_us();
    histogram_add(&bench->releases, now - worker->began_us);
    bench->pairs++;
    if (now < bench->ends_us && signals_caught() == 0 && !bench->failed)
        bench_start_pair(worker);
}

static void bench_on_granted(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct bench_worker *worker = user;
    struct bench *bench = worker->bench;
    lh_request_free(worker->request);
    if (report->outcome != LH_OK) {
        worker->busy = false;
        bench_fail(bench, report);
        return;
    }
    int64_t now = now_us();
    histogram_add(&bench->acquires, now - worker->began_us);
    worker->began_us = now;
    if (lh_release_start(&lease, bench_on_released, worker) != LH_OK) {
        worker->busy = false;
        bench_fail(bench,
                   &(struct lh_report){.outcome = LH_FAILED, .text = "failed: out of memory"});
    }
}

static void bench_start_pair(struct bench_worker *worker)
{
    struct lh_report report = LH_REPORT_INIT;
    worker->began_us = now_us();
    worker->busy = true;
    worker->request = lh_acquire_start(worker->bench->context->client, worker->key, NULL,
                                       bench_on_granted, worker, &report);
    if (worker->request != NULL)
        return;
    worker->busy = false;
    bench_fail(worker->bench, &report);
}

static bool bench_is_busy(const struct bench *bench)
{
    for (size_t i = 0; i < bench->flight; i++) {
        if (bench->workers[i].busy)
            return true;
    }
    return false;
}

/* ---- output ---- */

static void bench_add_histogram(struct text *text, const char *name,
                                const struct histogram *histogram)
{
    json_add_object(text, name);
    json_add_number(text, "p50_us", histogram_percentile(histogram, 500));
    json_add_number(text, "p95_us", histogram_percentile(histogram, 950));
    json_add_number(text, "p99_us", histogram_percentile(histogram, 990));
    json_add_number(text, "max_us", histogram->max_us);
    json_end(text);
}

static void bench_output_json(const struct bench *bench, double pairs_per_s)
{
    char line[2048];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_number(&text, "in_flight", (int64_t)bench->flight);
    json_add_number(&text, "pairs", (int64_t)bench->pairs);
    json_add_number(&text, "pairs_per_s", (int64_t)pairs_per_s);
    bench_add_histogram(&text, "acquire", &bench->acquires);
    bench_add_histogram(&text, "release", &bench->releases);
    json_add_string(&text, "store", bench->context->shown);
    json_end(&text);
    puts(line);
}

static void output_histogram(const char *name, const struct histogram *histogram)
{
    printf("  %s  p50 %7.2f ms  p95 %7.2f ms  p99 %7.2f ms  max %7.2f ms\n", name,
           (double)histogram_percentile(histogram, 500) / 1000,
           (double)histogram_percentile(histogram, 950) / 1000,
           (double)histogram_percentile(histogram, 990) / 1000, (double)histogram->max_us / 1000);
}

static void bench_output(const struct bench *bench, int64_t took_us)
{
    double pairs_per_s = (double)bench->pairs * 1e6 / (double)(took_us > 0 ? took_us : 1);
    if (bench->context->settings.json) {
        bench_output_json(bench, pairs_per_s);
        return;
    }
    if (bench->flight == 1)
        printf("one at a time: %.0f pairs/s\n", pairs_per_s);
    else
        printf("%zu in flight: %.0f pairs/s\n", bench->flight, pairs_per_s);
    output_histogram("acquire", &bench->acquires);
    output_histogram("release", &bench->releases);
    (void)fflush(stdout);
}

/* ---- the parts ---- */

static int bench_run_part(struct context *context, const struct signals *signals, size_t flight)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL)
        return output_error(context, LH_FAILED, "out of memory");
    bench->context = context;
    bench->flight = flight;
    int64_t began_us = now_us();
    bench->ends_us = began_us + context->settings.duration_ms * 1000;
    for (size_t i = 0; i < flight; i++) {
        struct bench_worker *worker = &bench->workers[i];
        worker->bench = bench;
        (void)snprintf(worker->key, sizeof worker->key, "leasehold-bench/%ld/%zu", (long)getpid(),
                       i);
        bench_start_pair(worker);
    }
    while (bench_is_busy(bench)) {
        (void)lh_step(context->client);
        if (bench_is_busy(bench))
            signals_wait(signals, context->client, /* length_ms= */ -1);
    }
    int64_t took_us = now_us() - began_us;
    int status = EXIT_DONE;
    if (bench->failed)
        status = output_report(context, NULL, &bench->report);
    else
        bench_output(bench, took_us);
    free(bench);
    return status;
}

static int cmd_bench(struct context *context)
{
    struct signals signals;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    signals_begin(&signals);
    status = bench_run_part(context, &signals, 1);
    if (status == EXIT_DONE && signals_caught() == 0)
        status = bench_run_part(context, &signals, (size_t)context->settings.flight);
    signals_end(&signals);
    return signals_caught() != 0 ? EXIT_SIGNAL + signals_caught() : status;
}

static const struct option *const bench_options[] = {&option_duration, &option_flight, NULL};

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the store: pairs of acquire and release",
    .about =
        "Acquires and releases its own keys (leasehold-bench/PID/N) in the chosen store, first "
        "one at a time, then with many in flight. It prints the pairs per second and the "
        "latencies of acquire and release. All keys are free again when it ends; a store "
        "with a history keeps their changes.\n\n"
        "The figures depend on the machine and on the other load of the store.",
    .example = "  leasehold bench --store file:/var/tmp/bench.log --duration 5s",
    .options = bench_options,
    .run = cmd_bench,
};

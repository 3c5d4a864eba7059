/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold bench: what the chosen store does here and now: pairs of acquire and release, one at a
 * time and many in flight, through the same library that everything else uses. Bounded in time and
 * keys, which are its own and free again at the end.
 */
#include "face/cli/cli.h"
#include "face/cli/stop.h"

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
                                              .least = 100,
                                              .most = 60000,
                                              .usual = "2s",
                                              .flag_only = true,
                                              .does = "how long each part takes, at most 1m"};
static const struct option option_flight = {.name = "flight",
                                            .kind = VALUE_COUNT,
                                            .at = offsetof(struct settings, flight),
                                            .value = "N",
                                            .least = 2,
                                            .most = FLIGHT_MAX,
                                            .usual = "64",
                                            .flag_only = true,
                                            .does = "pairs in flight at once, in the second part"};

/* How often something took how long. */
struct times {
    uint64_t counts[BUCKETS], all;
    int64_t most_us;
};

struct bench;

/* One key, taken and given back over and over. */
struct seat {
    struct bench *bench;
    char key[64];
    int64_t began_us;
    bool busy;
};

struct bench {
    struct visit *visit;
    int64_t ends_us;
    uint64_t pairs;
    struct times acquires, releases;
    bool failed;
    struct lh_report report; /* why */
    size_t flight;
    struct seat seats[FLIGHT_MAX];
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

/* The longest time that falls into it, near enough. */
static int64_t end_of_bucket(size_t bucket)
{
    if (bucket < 2 * FINE)
        return (int64_t)bucket;
    size_t power = bucket / FINE - 1;
    return ((int64_t)(bucket % FINE + FINE + 1) << power) - 1;
}

static void add_time(struct times *times, int64_t length_us)
{
    times->counts[bucket_of(length_us)]++;
    times->all++;
    if (length_us > times->most_us)
        times->most_us = length_us;
}

static int64_t percentile(const struct times *times, uint64_t of_thousand)
{
    uint64_t wanted = (times->all * of_thousand + 999) / 1000, seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += times->counts[i];
        if (seen >= wanted && seen > 0) {
            int64_t end_us = end_of_bucket(i);
            return end_us < times->most_us ? end_us : times->most_us;
        }
    }
    return 0;
}

/* ---- the work ---- */

static void start(struct seat *seat);

static void fail(struct bench *bench, const struct lh_report *report)
{
    if (!bench->failed)
        bench->report = *report;
    bench->failed = true;
}

static void released(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct seat *seat = user;
    struct bench *bench = seat->bench;
    (void)lease;
    seat->busy = false;
    if (report->outcome != LH_OK) {
        fail(bench, report);
        return;
    }
    int64_t now = now_us();
    add_time(&bench->releases, now - seat->began_us);
    bench->pairs++;
    if (now < bench->ends_us && stop_caught() == 0 && !bench->failed)
        start(seat);
}

static void granted(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct seat *seat = user;
    struct bench *bench = seat->bench;
    if (report->outcome != LH_OK) {
        seat->busy = false;
        fail(bench, report);
        return;
    }
    int64_t now = now_us();
    add_time(&bench->acquires, now - seat->began_us);
    seat->began_us = now;
    if (lh_release_start(&lease, released, seat) != LH_OK) {
        seat->busy = false;
        fail(bench, &(struct lh_report){.outcome = LH_FAILED, .text = "failed: memory is short"});
    }
}

static void start(struct seat *seat)
{
    struct lh_report report;
    seat->began_us = now_us();
    seat->busy = true;
    if (lh_acquire_start(seat->bench->visit->client, seat->key, NULL, granted, seat, &report) !=
        NULL)
        return;
    seat->busy = false;
    fail(seat->bench, &report);
}

static bool is_busy(const struct bench *bench)
{
    for (size_t i = 0; i < bench->flight; i++) {
        if (bench->seats[i].busy)
            return true;
    }
    return false;
}

/* ---- what is told ---- */

static void add_times(struct text *text, const char *name, const struct times *times)
{
    json_add_object(text, name);
    json_add_number(text, "p50_us", percentile(times, 500));
    json_add_number(text, "p95_us", percentile(times, 950));
    json_add_number(text, "p99_us", percentile(times, 990));
    json_add_number(text, "max_us", times->most_us);
    json_end(text);
}

static void tell_json(const struct bench *bench, double pairs_per_s)
{
    char line[2048];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_number(&text, "in_flight", (int64_t)bench->flight);
    json_add_number(&text, "pairs", (int64_t)bench->pairs);
    json_add_number(&text, "pairs_per_s", (int64_t)pairs_per_s);
    add_times(&text, "acquire", &bench->acquires);
    add_times(&text, "release", &bench->releases);
    json_add_words(&text, "store", bench->visit->shown);
    json_end(&text);
    puts(line);
}

static void tell_times(const char *name, const struct times *times)
{
    printf("  %s  p50 %7.2f ms  p95 %7.2f ms  p99 %7.2f ms  max %7.2f ms\n", name,
           (double)percentile(times, 500) / 1000, (double)percentile(times, 950) / 1000,
           (double)percentile(times, 990) / 1000, (double)times->most_us / 1000);
}

static void tell(const struct bench *bench, int64_t took_us)
{
    double pairs_per_s = (double)bench->pairs * 1e6 / (double)(took_us > 0 ? took_us : 1);
    if (bench->visit->settings.json) {
        tell_json(bench, pairs_per_s);
        return;
    }
    if (bench->flight == 1)
        printf("one at a time: %.0f pairs/s\n", pairs_per_s);
    else
        printf("%zu in flight: %.0f pairs/s\n", bench->flight, pairs_per_s);
    tell_times("acquire", &bench->acquires);
    tell_times("release", &bench->releases);
    (void)fflush(stdout);
}

/* ---- the parts ---- */

static int run_part(struct visit *visit, const struct stop *stop, size_t flight)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL)
        return say_trouble(visit, LH_FAILED, "memory is short");
    bench->visit = visit;
    bench->flight = flight;
    int64_t began_us = now_us();
    bench->ends_us = began_us + visit->settings.duration_ms * 1000;
    for (size_t i = 0; i < flight; i++) {
        struct seat *seat = &bench->seats[i];
        seat->bench = bench;
        (void)snprintf(seat->key, sizeof seat->key, "leasehold-bench/%ld/%zu", (long)getpid(), i);
        start(seat);
    }
    while (is_busy(bench)) {
        (void)lh_step(visit->client);
        if (is_busy(bench))
            stop_sleep(stop, visit->client, /* length_ms= */ -1);
    }
    int64_t took_us = now_us() - began_us;
    int status = EXIT_DONE;
    if (bench->failed)
        status = say_report(visit, NULL, &bench->report);
    else
        tell(bench, took_us);
    free(bench);
    return status;
}

static int run_bench(struct visit *visit)
{
    struct stop stop;
    int status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    stop_begin(&stop);
    status = run_part(visit, &stop, 1);
    if (status == EXIT_DONE && stop_caught() == 0)
        status = run_part(visit, &stop, (size_t)visit->settings.flight);
    stop_end(&stop);
    return stop_caught() != 0 ? EXIT_SIGNAL + stop_caught() : status;
}

static const struct option *const bench_options[] = {&option_duration, &option_flight, NULL};

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the store: pairs of acquire and release",
    .about = "Takes and gives back keys of its own (leasehold-bench/PID/N) in the chosen store, "
             "first one at a time, then with many in flight, and says how many pairs there were in "
             "a second and how long each half took. All keys are free again when it ends; a store "
             "with a history keeps what happened.\n\n"
             "It measures this store on this machine at this moment, with what else goes on in "
             "it.",
    .example = "  leasehold bench --store file:/var/tmp/bench.log --duration 5s",
    .options = bench_options,
    .run = run_bench,
};

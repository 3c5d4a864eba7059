/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of acquire and release through the library, to count the instructions of one or to time
 * it. scripts/bench.sh counts with two numbers of pairs: their difference is free of the cost of
 * the start and of the end.
 *
 *     bench_walk URL plain|named|together PAIRS
 *
 * A named pair has a request id and is unbound, so that it takes no fast path. Together: the same
 * with 64 requests in flight.
 */
#include "leasehold.h"

#include "rounds.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS = 64, KEY_SIZE = 33 };

static char keys[KEYS][KEY_SIZE];
static struct lh_lease *leases[KEYS];
static atomic_uint left; /* of the requests in flight */
static sem_t ended;

static struct lh_acquire_options options_of(bool named)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.request_id = named ? "walk-1" : NULL;
    options.unbound = named;
    return options;
}

static void walk_alone(struct lh_client *client, const char *key, bool named)
{
    struct lh_acquire_options options = options_of(named);
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    if (lh_acquire(client, key, &options, &lease, &report) != LH_OK)
        rounds_fail("lh_acquire", report.text);
    if (lh_release(&lease, &report) != LH_OK)
        rounds_fail("lh_release", report.text);
}

static void on_end(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    if (report->outcome != LH_OK)
        rounds_fail("a pair", report->text);
    *(struct lh_lease **)user = lease;
    if (atomic_fetch_sub(&left, 1) == 1)
        (void)sem_post(&ended);
}

static void await_all(void)
{
    while (sem_wait(&ended) != 0) {
    }
}

static void walk_together(struct lh_client *client)
{
    struct lh_acquire_options options = options_of(/* named= */ true);
    struct lh_report report = LH_REPORT_INIT;
    struct lh_request *requests[KEYS];
    atomic_store(&left, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        requests[i] = lh_acquire_start(client, keys[i], &options, on_end, &leases[i], &report);
        if (requests[i] == NULL)
            rounds_fail("lh_acquire_start", report.text);
    }
    await_all();
    atomic_store(&left, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        lh_request_free(requests[i]);
        if (lh_release_start(&leases[i], on_end, &leases[i]) != LH_OK)
            rounds_fail("lh_release_start", keys[i]);
    }
    await_all();
}

static void walk(struct lh_client *client, const char *how, size_t pairs)
{
    bool together = strcmp(how, "together") == 0, named = strcmp(how, "named") == 0;
    for (size_t i = 0; i < pairs; i += together ? KEYS : 1) {
        if (together)
            walk_together(client);
        else
            walk_alone(client, keys[i % KEYS], named);
    }
}

/* Of all threads. */
static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    if (count != 4)
        rounds_fail("usage", "bench_walk URL plain|named|together PAIRS");
    size_t pairs = strtoul(words[3], NULL, 10);
    for (unsigned i = 0; i < KEYS; i++)
        (void)snprintf(keys[i], sizeof keys[i], "orders/warehouse/%015u", i);
    (void)sem_init(&ended, /* pshared= */ 0, 0);
    if (lh_open(words[1], NULL, &client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
    double wall = rounds_seconds(), processor = processor_seconds();
    walk(client, words[2], pairs);
    processor = processor_seconds() - processor;
    wall = rounds_seconds() - wall;
    (void)printf("  %-34s %10.2f us of processor time, %.2f us in all\n", words[2],
                 processor * 1e6 / (double)pairs, wall * 1e6 / (double)pairs);
    lh_close(&client);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64 threads of one client, on one key and on 64 random ones, on memory: and file:, or the named
 * store, with and without on_event: sections do not overlap, tokens only grow, no lease is lost.
 * The requests of the local queue are counted: while the process holds the lease, its other
 * contenders send none, however many they are; on one key a store grant serves several of them.
 *
 * A round is one section of each thread. The library is used through its public headers only.
 */
#include "guarded.h"
#include "fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 64, KEYS_MOST = 64, CONTENDERS = THREADS - 1, EVENT_KINDS = LH_EVENT_BREAKER + 1 };

/* Long enough that no renewal is counted, even on a busy machine. */
#define TTL_MS ((int64_t)600000)

struct store {
    const char *name, *url;
};

static struct {
    struct lh_client *client;
    uint64_t rounds, seed, keys;
    struct guarded guarded[KEYS_MOST];
    struct guarded_counts seen;
    atomic_uint refused;
    atomic_ullong events[EVENT_KINDS];
    atomic_bool begun;
} ring;

static void count_event(void *user, const struct lh_event *event)
{
    (void)user;
    atomic_fetch_add(&ring.events[event->kind], 1);
}

static unsigned long long heard(enum lh_event_kind kind)
{
    return atomic_load(&ring.events[kind]);
}

static bool open_client(const char *url, bool listens)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    memset(&ring, 0, sizeof ring);
    options.on_event = listens ? count_event : NULL;
    if (lh_open(url, &options, &ring.client, &report) == LH_OK)
        return true;
    fixture_print("%s", report.text);
    return false;
}

/* ---- exclusive sections ---- */

static void *work(void *argument)
{
    struct random random = {ring.seed + *(const uint64_t *)argument};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.wait_ms = LH_WAIT_FOREVER;
    while (!atomic_load(&ring.begun))
        (void)sched_yield();
    for (uint64_t round = 0; round < ring.rounds; round++) {
        char key[32];
        uint64_t index = random_below(&random, ring.keys);
        struct lh_lease *lease = NULL;
        (void)snprintf(key, sizeof key, "key-%" PRIu64, index);
        if (lh_acquire(ring.client, key, &options, &lease, NULL) != LH_OK) {
            atomic_fetch_add(&ring.refused, 1);
            continue;
        }
        guarded_enter(&ring.guarded[index], lease, &ring.seen);
        guarded_leave(&ring.guarded[index], lease, &ring.seen);
        if (lh_release(&lease, NULL) != LH_OK)
            atomic_fetch_add(&ring.refused, 1);
    }
    return NULL;
}

static size_t run_threads(void *(*body)(void *), pthread_t *threads, uint64_t *numbers,
                          size_t count)
{
    size_t running = 0;
    while (running < count) {
        numbers[running] = running;
        if (pthread_create(&threads[running], NULL, body, &numbers[running]) != 0)
            break;
        running++;
    }
    return running;
}

static void join_threads(const pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
}

/* True if every section was counted, and both counters are equal. */
static bool nothing_lost(void)
{
    uint64_t entered = 0;
    for (size_t i = 0; i < ring.keys; i++) {
        if (ring.guarded[i].first != ring.guarded[i].second)
            return false;
        entered += ring.guarded[i].first;
    }
    return entered == THREADS * ring.rounds;
}

static void judge_sections(struct fixture *fixture, const char *where, size_t running)
{
    fixture_case(fixture, running == THREADS && ring.refused == 0 && nothing_lost(),
                 "%s: %" PRIu64 " sections, nothing lost (%u refused)", where,
                 THREADS * ring.rounds, ring.refused);
    fixture_case(fixture, ring.seen.overlaps == 0 && ring.seen.torn == 0,
                 "%s: every section alone (%u, %u)", where, ring.seen.overlaps, ring.seen.torn);
    fixture_case(fixture, ring.seen.shrunk == 0 && ring.seen.unheld == 0,
                 "%s: tokens grow, and it is held (%u, %u)", where, ring.seen.shrunk,
                 ring.seen.unheld);
}

/* Store requests per section; 0 without events. */
static double contend(struct fixture *fixture, const struct store *store, uint64_t keys,
                      bool listens)
{
    pthread_t threads[THREADS];
    uint64_t numbers[THREADS];
    char where[64];
    (void)snprintf(where, sizeof where, "%s %" PRIu64 " key%s%s", store->name, keys,
                   keys > 1 ? "s" : "", listens ? ", events" : "");
    if (!open_client(store->url, listens)) {
        fixture_case(fixture, false, "%s: the client opens", where);
        return 0;
    }
    ring.rounds = fixture->rounds;
    ring.seed = fixture->seed;
    ring.keys = keys;
    size_t running = run_threads(work, threads, numbers, THREADS);
    int64_t began_us = fixture_now_us();
    atomic_store(&ring.begun, true); /* all start together, or they would not contend */
    join_threads(threads, running);
    int64_t took_us = fixture_now_us() - began_us;
    lh_close(&ring.client);
    judge_sections(fixture, where, running);
    double rounds = (double)(THREADS * ring.rounds);
    fixture_print("%s: %.0f sections, %.1f us each", where, rounds, (double)took_us / rounds);
    if (!listens)
        return 0;
    double each = (double)heard(LH_EVENT_STORE) / rounds;
    fixture_print("%s: %.3f store requests for each section", where, each);
    return each;
}

/* Acquire and release are two requests; only hand-offs lead to less than one per section. Retries,
 * since on a busy machine the threads may run one after the other without contention. */
static void share_grants(struct fixture *fixture, const struct store *store)
{
    enum { ATTEMPTS = 10 };
    double each = 2;
    for (unsigned i = 0; i < ATTEMPTS && each >= 1; i++)
        each = contend(fixture, store, /* keys= */ 1, /* listens= */ true);
    fixture_case(fixture, each > 0 && each < 1, "%s contenders share the grants of the store",
                 store->name);
}

/* ---- no requests while the lease is held here ---- */

static void *wait_in_line(void *argument)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    (void)argument;
    options.ttl_ms = TTL_MS;
    options.wait_ms = LH_WAIT_FOREVER;
    if (lh_acquire(ring.client, "held", &options, &lease, NULL) != LH_OK ||
        lh_release(&lease, NULL) != LH_OK)
        atomic_fetch_add(&ring.refused, 1);
    return NULL;
}

/* Events may follow the return of a call: waits until the count is stable. */
static unsigned long long settled(enum lh_event_kind kind)
{
    unsigned long long before, now = heard(kind);
    do {
        before = now;
        fixture_pause_us(100000);
        now = heard(kind);
    } while (now != before);
    return now;
}

/* Calls without a wait return from the local queue, too. */
static void ask_at_once(size_t times)
{
    for (size_t i = 0; i < times; i++) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(ring.client, "held", NULL, &lease, NULL) != LH_BUSY)
            atomic_fetch_add(&ring.refused, 1);
    }
}

static void hold_against(struct fixture *fixture, const struct store *store, size_t contenders)
{
    pthread_t threads[CONTENDERS];
    uint64_t numbers[CONTENDERS];
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.ttl_ms = TTL_MS;
    if (!open_client(store->url, /* listens= */ true) ||
        lh_acquire(ring.client, "held", &options, &lease, NULL) != LH_OK) {
        fixture_case(fixture, false, "%s a key is held", store->name);
        lh_close(&ring.client);
        return;
    }
    unsigned long long before = settled(LH_EVENT_STORE);
    size_t running = run_threads(wait_in_line, threads, numbers, contenders);
    while (heard(LH_EVENT_WAITING) < running && !fixture_late(fixture))
        fixture_pause_us(1000);
    ask_at_once(contenders);
    unsigned long long asked = settled(LH_EVENT_STORE) - before;
    bool held = lh_held(lease);
    (void)lh_release(&lease, NULL);
    join_threads(threads, running);
    unsigned long long after = settled(LH_EVENT_STORE) - before;
    lh_close(&ring.client);
    fixture_print("%s held against %zu: %llu store requests meanwhile, %llu for all %zu after",
                  store->name, contenders, asked, after, contenders);
    fixture_case(fixture, running == contenders && held && before > 0 && ring.refused == 0,
                 "%s %zu waited for what another held", store->name, contenders);
    fixture_case(fixture, asked == 0, "%s and asked the store nothing (%llu)", store->name, asked);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 10, /* limit_s= */ 120, /* round_ms= */ 2000,
                 /* shared_size= */ 1);
    char file[sizeof fixture.url];
    (void)snprintf(file, sizeof file, "file:%s/store.log", fixture.folder);
    const struct store here[] = {{"memory:", "memory:"}, {"file:", file}};
    const struct store given = {fixture.driver->scheme, fixture.url};
    const struct store *stores = fixture.given ? &given : here;
    size_t count = fixture.given ? 1 : 2;
    for (size_t i = 0; i < count; i++) {
        hold_against(&fixture, &stores[i], /* contenders= */ 1);
        hold_against(&fixture, &stores[i], CONTENDERS);
        (void)contend(&fixture, &stores[i], /* keys= */ 1, /* listens= */ false);
        (void)contend(&fixture, &stores[i], KEYS_MOST, /* listens= */ false);
        share_grants(&fixture, &stores[i]);
        (void)contend(&fixture, &stores[i], KEYS_MOST, /* listens= */ true);
    }
    return fixture_close(&fixture);
}

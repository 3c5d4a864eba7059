/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a lock inside the process through the public calls, compared with its parts: a bare
 * mutex, a bare futex, one thread. All alternate in one run; see rounds.h.
 *
 *     bench_memory              times, with their aims
 *     bench_memory pairs LIVE   pairs beside LIVE keys, for counting instructions
 *     bench_memory claims LIVE  claims beside LIVE ids: times, bytes, and for counting
 */
#include "leasehold.h"
#include "leasehold_once.h"

#include "rounds.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    KEYS = 1000,
    PAIRS = 200000,
    COUNTED_PAIRS = 20000,
    CLAIMS = 10000, /* as in scripts/bench.sh */
    LIVE = 1000000,
    HAND_OVERS = 2000,
    ASLEEP_NS = 100000, /* the waiter sleeps by then */
    KEY_LENGTH = 32,
    THREADS = 2,
};

static struct lh_client *client;
static char (*keys)[KEY_LENGTH + 1];
static pthread_mutex_t mutexes[KEYS];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* N keys of 32 bytes, starting at this number. */
static void make_keys(size_t first, size_t count)
{
    free(keys);
    keys = rounds_memory(count * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(keys[i], sizeof keys[i], "orders/warehouse/%015u", (unsigned)(first + i));
}

static void open_client(const char *url)
{
    struct lh_report report = LH_REPORT_INIT;
    if (lh_open(url, NULL, &client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
}

static struct lh_lease *take(const char *key, int64_t wait_ms)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.wait_ms = wait_ms;
    if (lh_acquire(client, key, &options, &lease, &report) != LH_OK)
        rounds_fail("lh_acquire", report.text);
    return lease;
}

static void give(struct lh_lease *lease)
{
    struct lh_report report = LH_REPORT_INIT;
    if (lh_release(&lease, &report) != LH_OK)
        rounds_fail("lh_release", report.text);
}

/* A separate function so that callgrind can count in it. */
void measured_pairs(size_t pairs);

__attribute__((noinline)) void measured_pairs(size_t pairs)
{
    uint64_t seed = 7;
    for (size_t i = 0; i < pairs; i++)
        give(take(keys[next_random(&seed) % KEYS], /* wait_ms= */ 0));
}

/* ---- against a bare mutex ---- */

static double ours_ns(void)
{
    double began = rounds_seconds();
    measured_pairs(PAIRS);
    return (rounds_seconds() - began) * 1e9 / PAIRS;
}

static double bare_ns(void)
{
    uint64_t seed = 7;
    double began = rounds_seconds();
    for (size_t i = 0; i < PAIRS; i++) {
        pthread_mutex_t *mutex = &mutexes[next_random(&seed) % KEYS];
        (void)pthread_mutex_lock(mutex);
        (void)pthread_mutex_unlock(mutex);
    }
    return (rounds_seconds() - began) * 1e9 / PAIRS;
}

static void against_mutex(void)
{
    double ours[ROUNDS], bare[ROUNDS];
    make_keys(0, KEYS);
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = ours_ns();
        bare[i] = bare_ns();
    }
    printf("== acquire+release over %d random keys of %d bytes, in one thread\n", KEYS, KEY_LENGTH);
    rounds_say("a pair of ours", ours, "ns");
    rounds_say("a bare pthread mutex", bare, "ns");
    rounds_aim(ours, bare, AT_MOST, 40);
    rounds_aim(ours, bare, AT_MOST, 20);
}

/* ---- beside a million live keys ---- */

static size_t resident_bytes(void)
{
    bool fine = false;
    char words[128] = "", *second;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        fine = fgets(words, sizeof words, file) != NULL;
        (void)fclose(file);
    }
    if (!fine)
        rounds_fail("/proc/self/statm", "cannot be read");
    (void)strtoul(words, &second, 10);
    return strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static struct lh_lease **hold(size_t first, size_t count)
{
    struct lh_lease **leases = rounds_memory(count * sizeof(struct lh_lease *));
    for (size_t i = 0; i < count; i++)
        leases[i] = take(keys[first + i], /* wait_ms= */ 0);
    return leases;
}

static void let_go(struct lh_lease **leases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        give(leases[i]);
    free(leases);
}

/* The first KEYS are free, the rest are held. */
static void beside_many(void)
{
    double few[ROUNDS], many[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        few[i] = ours_ns();
    make_keys(0, KEYS + LIVE);
    struct lh_lease **leases = rounds_memory(LIVE * sizeof(struct lh_lease *));
    memset(leases, 1, LIVE * sizeof(struct lh_lease *)); /* these pages are not the locks' */
    size_t before = resident_bytes();
    for (size_t i = 0; i < LIVE; i++)
        leases[i] = take(keys[KEYS + i], /* wait_ms= */ 0);
    double bytes = (double)(resident_bytes() - before) / LIVE;
    for (size_t i = 0; i < ROUNDS; i++)
        many[i] = ours_ns();
    printf("== beside %d live keys\n", LIVE);
    rounds_say("a pair, nothing held", few, "ns");
    rounds_say("a pair, a million held", many, "ns");
    rounds_ratio(many, few);
    printf("  %-34s %10.0f bytes of memory for each live key; aim at most 200: %s\n", "", bytes,
           bytes <= 200 ? "reached" : "missed");
    let_go(leases, LIVE);
}

/* ---- claims of ids ---- */

static void claim(const char *id, enum lh_outcome wanted, struct lh_once *out)
{
    struct lh_report report = LH_REPORT_INIT;
    if (lh_once_begin(client, id, NULL, out, &report) != wanted)
        rounds_fail("lh_once_begin", report.text);
}

/* Two separate functions so that callgrind can count in them. */
void measured_live_claims(size_t live);
void measured_new_claims(void);

/* Of ids that are done, chosen at random. */
__attribute__((noinline)) void measured_live_claims(size_t live)
{
    uint64_t seed = 7;
    struct lh_once once = LH_ONCE_INIT;
    for (size_t i = 0; i < CLAIMS; i++)
        claim(keys[KEYS + next_random(&seed) % live], LH_DONE, &once);
}

/* Of ids that are not done, cancelled again so that the number of live ids stays the same. */
__attribute__((noinline)) void measured_new_claims(void)
{
    uint64_t seed = 7;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    for (size_t i = 0; i < CLAIMS; i++) {
        const char *id = keys[next_random(&seed) % KEYS];
        claim(id, LH_OK, &once);
        if (lh_once_abandon(client, id, once.token, &report) != LH_OK)
            rounds_fail("lh_once_abandon", report.text);
    }
}

static void claims_beside(size_t live)
{
    struct lh_report report = LH_REPORT_INIT;
    make_keys(0, KEYS + live);
    size_t before = resident_bytes();
    for (size_t i = 0; i < live; i++) {
        if (lh_mark(client, keys[KEYS + i], NULL, &report) != LH_OK)
            rounds_fail("lh_mark", report.text);
    }
    double bytes = (double)(resident_bytes() - before) / (double)live;
    double began = rounds_seconds();
    measured_live_claims(live);
    double between = rounds_seconds();
    measured_new_claims();
    double ended = rounds_seconds();
    printf("%9zu live ids: %5.0f ns for a claim of one of them, %5.0f ns for a new one and back; "
           "%.0f bytes of memory each\n",
           live, (between - began) * 1e9 / CLAIMS, (ended - between) * 1e9 / CLAIMS, bytes);
}

/* ---- two threads ---- */

struct runner {
    pthread_t thread;
    size_t key;
    pthread_barrier_t *start;
    double began, ended;
};

static void *run_pairs(void *argument)
{
    struct runner *runner = argument;
    (void)pthread_barrier_wait(runner->start);
    runner->began = rounds_seconds();
    for (size_t i = 0; i < PAIRS; i++)
        give(take(keys[runner->key], /* wait_ms= */ 0));
    runner->ended = rounds_seconds();
    return NULL;
}

/* Pairs per microsecond, of all threads together. */
static double rate(size_t threads)
{
    struct runner runners[THREADS];
    pthread_barrier_t start;
    double began = 0, ended = 0;
    (void)pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (size_t i = 0; i < threads; i++) {
        runners[i] = (struct runner){.key = i, .start = &start};
        if (pthread_create(&runners[i].thread, NULL, run_pairs, &runners[i]) != 0)
            rounds_fail("pthread_create", "no thread is left");
    }
    for (size_t i = 0; i < threads; i++) {
        (void)pthread_join(runners[i].thread, NULL);
        began = i == 0 || runners[i].began < began ? runners[i].began : began;
        ended = runners[i].ended > ended ? runners[i].ended : ended;
    }
    (void)pthread_barrier_destroy(&start);
    return (double)(threads * PAIRS) / (ended - began) / 1e6;
}

static void two_threads(void)
{
    double one[ROUNDS], two[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        one[i] = rate(1);
        two[i] = rate(THREADS);
    }
    printf("== threads on keys of their own\n");
    rounds_say("one thread", one, "pairs/us");
    rounds_say("two threads", two, "pairs/us");
    rounds_aim(two, one, AT_LEAST, 1.6);
}

/* ---- hand-off ---- */

/*
 * One thread holds, the other sleeps waiting for it: the time from the start of the release to the
 * grant in the second thread. Between rounds both stay awake.
 */
struct hand_off_run {
    atomic_uint round;  /* number of grants to the first */
    atomic_uint wanted; /* number of waits of the second */
    atomic_uint ended;  /* number of grants to the second */
    atomic_uint word;   /* of the bare futex */
    atomic_long began_ns;
    bool bare;
    double lengths_us[HAND_OVERS];
};

static long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void await(const atomic_uint *count, unsigned value)
{
    while (atomic_load(count) != value)
        (void)sched_yield();
}

static void *receive(void *argument)
{
    struct hand_off_run *hand_off_run = argument;
    for (unsigned round = 1; round <= HAND_OVERS; round++) {
        struct lh_lease *lease = NULL;
        await(&hand_off_run->round, round);
        atomic_store(&hand_off_run->wanted, round);
        if (!hand_off_run->bare)
            lease = take(keys[0], LH_WAIT_FOREVER);
        while (hand_off_run->bare && atomic_load(&hand_off_run->word) != round)
            (void)syscall(SYS_futex, &hand_off_run->word, FUTEX_WAIT_PRIVATE, round - 1, NULL, NULL,
                          0);
        hand_off_run->lengths_us[round - 1] =
            (double)(now_ns() - atomic_load(&hand_off_run->began_ns)) / 1e3;
        if (!hand_off_run->bare)
            give(lease);
        atomic_store(&hand_off_run->ended, round);
    }
    return NULL;
}

/* The median of all hand-offs. */
static double hand_off_us(bool bare)
{
    struct hand_off_run *hand_off_run = rounds_memory(sizeof *hand_off_run);
    pthread_t other;
    hand_off_run->bare = bare;
    if (pthread_create(&other, NULL, receive, hand_off_run) != 0)
        rounds_fail("pthread_create", "no thread is left");
    for (unsigned round = 1; round <= HAND_OVERS; round++) {
        struct lh_lease *lease = bare ? NULL : take(keys[0], LH_WAIT_FOREVER);
        atomic_store(&hand_off_run->round, round);
        await(&hand_off_run->wanted, round);
        long asleep_ns = now_ns() + ASLEEP_NS;
        while (now_ns() < asleep_ns)
            (void)sched_yield();
        atomic_store(&hand_off_run->began_ns, now_ns());
        atomic_store(&hand_off_run->word, round);
        if (bare)
            (void)syscall(SYS_futex, &hand_off_run->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        else
            give(lease);
        await(&hand_off_run->ended, round);
    }
    (void)pthread_join(other, NULL);
    double median_us = rounds_share(hand_off_run->lengths_us, HAND_OVERS, 0.5);
    free(hand_off_run);
    return median_us;
}

static void hand_over(void)
{
    double ours[ROUNDS], bare[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = hand_off_us(/* bare= */ false);
        bare[i] = hand_off_us(/* bare= */ true);
    }
    printf("== one key from thread to thread that waits for it (median of %d)\n", HAND_OVERS);
    rounds_say("a hand-over of ours", ours, "us");
    rounds_say("a bare futex", bare, "us");
    rounds_aim(ours, bare, AT_MOST, 3);
}

int main(int count, char **words)
{
    /* Beside a million live ids there must be room for one more. */
    open_client("memory:?ids=2000000");
    for (size_t i = 0; i < KEYS; i++)
        (void)pthread_mutex_init(&mutexes[i], NULL);
    if (count == 3 && strcmp(words[1], "pairs") == 0) {
        size_t live = strtoul(words[2], NULL, 10);
        make_keys(0, KEYS + live);
        struct lh_lease **leases = hold(KEYS, live);
        measured_pairs(COUNTED_PAIRS);
        let_go(leases, live);
    } else if (count == 3 && strcmp(words[1], "claims") == 0) {
        claims_beside(strtoul(words[2], NULL, 10));
    } else if (count == 1) {
        against_mutex();
        beside_many();
        two_threads();
        hand_over();
    } else {
        rounds_fail("usage", "bench_memory [pairs|claims LIVE]");
    }
    lh_close(&client);
    free(keys);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller with three replicas of ten threads each, on five tasks: sections do not overlap, no
 * thread starves, the tasks of a killed replica are taken over in time, and a release wakes the
 * next waiter at once. On the API server of on-k8s.sh its audit log is checked, too: a replica
 * never has two writes to one Lease in flight. A proxy delays the requests, so that overlapping
 * writes of the replica show in the log.
 *
 * Two wrong variants show that the checks work: one without a lock, one with a client for each
 * thread. shared_tasks [URL] [--rounds N]: sections of each thread; N/5 replicas are killed, and
 * 10*N hand-offs are measured. The library is used through its public header only.
 */
#include "audit.h"
#include "guarded.h"
#include "proxy_kit.h"
#include "fixture.h"
#include "overlap_checker.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way { BY_LOCK, CLIENT_EACH, NO_LOCK };
enum {
    PODS = 3,
    THREADS = 10,
    TASKS = 5,
    PAIRS = PODS * TASKS,
    WRONG_ROUNDS = 5, /* of the wrong variants */
    TTL_MS = 6000,
    LONG_US = (TTL_MS / 3 + 500) * 1000, /* a section in which the lease is renewed */
    CRASH_TTL_MS = 3000,
    WHOLE_SECOND_MS = 1000, /* the resolution of the API server's time */
    BUSY_MS = 2000,         /* added to a takeover on a loaded machine */
    HAND_OVER_MS = 100,
    /* A turn of a replica has up to 9 sections; a replica has no two turns while others wait, and
     * its threads take turns in order. */
    PASSED_MOST = 9 * PODS * THREADS,
    STUCK_MS = 3000, /* no waiter was woken: waiters poll every 5 s */
    SAMPLES_MOST = 10000,
    DELAY_MS = 5,                        /* of the proxy, in either direction */
    APART_US = 2 * (DELAY_MS - 1) * 1000 /* the proxy counts whole milliseconds */
};

struct hold {
    _Atomic int pod;
    _Atomic int64_t since_us; /* 0: not held yet */
};

struct shared {
    enum way way;
    uint64_t rounds;
    bool slow; /* through the proxy */
    /* sections */
    struct guarded tasks[TASKS];
    struct guarded_counts seen;
    _Atomic int64_t entries[TASKS];
    atomic_uint ready, refused, renewed, sections;
    _Atomic bool begun;
    _Atomic int64_t longest_wait_us;
    _Atomic int64_t most_passed; /* others' sections of the task while one waited for it */
    /* killed replicas */
    _Atomic uint64_t round;
    struct hold holds[TASKS];
    atomic_uint asked[PODS]; /* a bit for each task that it waits for or holds */
    /* hand-offs: written by the holder of the task */
    int64_t released_us;
    size_t released_by, sample_count;
    int64_t samples_us[SAMPLES_MOST];
};

struct worker {
    struct fixture *fixture;
    struct lh_client *client;
    size_t number;
    struct random random;
};

static struct shared *shared;
static size_t pod_here;        /* the replica that this process is */
static struct proxy_run proxy; /* in front of the API server */

/* ---- connection to the store ---- */

static bool on_k8s(const struct fixture *fixture)
{
    return strcmp(fixture->driver->scheme, "k8s") == 0;
}

/* This process becomes that replica. Each has its own token for the API server. */
static void become_pod(const struct fixture *fixture, size_t pod)
{
    char path[PATH_MAX], server[128];
    pod_here = pod;
    if (!on_k8s(fixture))
        return;
    (void)snprintf(server, sizeof server, "https://127.0.0.1:%u", proxy.port);
    (void)snprintf(path, sizeof path, "%s/pod.%d", fixture->folder, (int)getpid());
    FILE *file = fopen(path, "we");
    if (file == NULL)
        abort();
    (void)fprintf(file,
                  "{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": "
                  "{\"cluster\": \"c\", \"user\": \"u\"}}], \"clusters\": [{\"name\": \"c\", "
                  "\"cluster\": {\"server\": \"%s\", \"certificate-authority\": \"%s\"}}], "
                  "\"users\": [{\"name\": \"u\", \"user\": {\"tokenFile\": "
                  "\"%s/pod-%zu.token\"}}]}\n",
                  shared->slow ? server : getenv("K8S_SERVER"), getenv("K8S_CA"),
                  getenv("K8S_PODS"), pod + 1);
    if (fclose(file) != 0 || setenv("KUBECONFIG", path, 1) != 0)
        abort();
}

static struct lh_client *open_client(const struct fixture *fixture, lh_event_fn *on_event)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    char name[16];
    (void)snprintf(name, sizeof name, "pod-%zu", pod_here + 1);
    options.holder = name;
    options.on_event = on_event;
    if (lh_open(fixture->url, &options, &client, &report) != LH_OK) {
        fixture_print("%s", report.text);
        _exit(1);
    }
    return client;
}

static const char *name_task(char *key, size_t size, size_t task)
{
    (void)snprintf(key, size, "task-%zu", task);
    return key;
}

static struct lh_lease *take(struct lh_client *client, size_t task, int64_t ttl_ms)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    char key[16];
    options.ttl_ms = ttl_ms;
    options.wait_ms = LH_WAIT_FOREVER;
    if (lh_acquire(client, name_task(key, sizeof key, task), &options, &lease, &report) != LH_OK)
        fixture_print("%s: %s", lh_outcome_name(report.outcome), report.text);
    return lease;
}

static void run_threads(struct worker *workers, size_t count, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, body, &workers[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
}

/* ---- samples ---- */

static void keep_sample(int64_t length_us)
{
    if (shared->sample_count < SAMPLES_MOST)
        shared->samples_us[shared->sample_count++] = length_us;
}

static int compare_lengths(const void *left, const void *right)
{
    const int64_t *one = left, *other = right;
    return (*one > *other) - (*one < *other);
}

/* Of the sorted samples, in milliseconds. */
static double percentile(size_t hundredth)
{
    size_t count = shared->sample_count, index = count > 0 ? (count - 1) * hundredth / 100 : 0;
    return (double)shared->samples_us[index] / 1000;
}

static void say_samples(const char *what)
{
    qsort(shared->samples_us, shared->sample_count, sizeof *shared->samples_us, compare_lengths);
    fixture_print("%s: %zu times, p50 %.1f ms, p90 %.1f ms, most %.1f ms", what,
                  shared->sample_count, percentile(50), percentile(90), percentile(100));
}

/* ---- sections ---- */

static void do_section(struct worker *worker, size_t task, const struct lh_lease *lease,
                       int64_t length_us)
{
    atomic_fetch_add(&shared->entries[task], 1);
    guarded_enter(&shared->tasks[task], lease, &shared->seen);
    fixture_pause_us(length_us + (int64_t)random_below(&worker->random, 1000));
    guarded_leave(&shared->tasks[task], lease, &shared->seen);
    atomic_fetch_add(&shared->sections, 1);
}

static void work_on(struct worker *worker, size_t task, int64_t length_us)
{
    if (shared->way == NO_LOCK) {
        do_section(worker, task, NULL, length_us);
        return;
    }
    int64_t before = atomic_load(&shared->entries[task]);
    int64_t began_us = fixture_now_us();
    struct lh_lease *lease = take(worker->client, task, TTL_MS);
    if (lease == NULL) {
        atomic_fetch_add(&shared->refused, 1);
        return;
    }
    keep_longest(&shared->longest_wait_us, fixture_now_us() - began_us);
    keep_longest(&shared->most_passed, atomic_load(&shared->entries[task]) - before);
    do_section(worker, task, lease, length_us);
    if (lh_release(&lease, NULL) != LH_OK)
        atomic_fetch_add(&shared->refused, 1);
}

static void *play_worker(void *argument)
{
    struct worker *worker = argument;
    bool own = shared->way == CLIENT_EACH;
    if (own)
        worker->client = open_client(worker->fixture, NULL);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->begun))
        fixture_pause_us(1000);
    for (uint64_t round = 0; round < shared->rounds; round++) {
        bool lasts = shared->way == BY_LOCK && worker->number == 0 && round == 0;
        work_on(worker, random_below(&worker->random, TASKS), lasts ? LONG_US : 0);
    }
    if (own)
        lh_close(&worker->client);
    return NULL;
}

static void count_renewals(void *user, const struct lh_event *event)
{
    (void)user;
    if (event->kind == LH_EVENT_RENEWED)
        atomic_fetch_add(&shared->renewed, 1);
}

static void play_pod(struct fixture *fixture, size_t child)
{
    struct worker workers[THREADS];
    struct lh_client *client = NULL;
    become_pod(fixture, child);
    if (shared->way == BY_LOCK)
        client = open_client(fixture, count_renewals);
    for (size_t i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.fixture = fixture,
                                     .client = client,
                                     .number = i,
                                     .random = {fixture->seed + child * THREADS + i}};
    run_threads(workers, THREADS, play_worker);
    lh_close(&client);
}

static bool all_live(const struct fixture *fixture)
{
    bool live = !fixture_late(fixture);
    for (size_t child = 0; child < PODS; child++)
        live = live && fixture_lives(fixture, child);
    return live;
}

/* True if all replicas succeeded. */
static bool play_sections(struct fixture *fixture, enum way way, uint64_t rounds)
{
    bool joined = true;
    memset(shared, 0, sizeof *shared);
    shared->way = way;
    shared->rounds = rounds;
    shared->slow = on_k8s(fixture);
    for (size_t child = 0; child < PODS; child++)
        fixture_start(fixture, child, play_pod);
    while (atomic_load(&shared->ready) < PODS * THREADS && all_live(fixture))
        fixture_pause_us(1000);
    int64_t began_us = fixture_now_us();
    atomic_store(&shared->begun, true);
    for (size_t child = 0; child < PODS; child++)
        joined = fixture_join(fixture, child) && joined;
    fixture_print("%u sections in %" PRId64 " ms, the longest wait %" PRId64 " ms and %" PRId64
                  " sections of others, %u renewals",
                  shared->sections, (fixture_now_us() - began_us) / 1000,
                  shared->longest_wait_us / 1000, shared->most_passed, shared->renewed);
    return joined;
}

static void judge_sections(struct fixture *fixture)
{
    const struct guarded_counts *seen = &shared->seen;
    uint64_t expected = fixture->rounds * PODS * THREADS;
    bool joined = play_sections(fixture, BY_LOCK, fixture->rounds);
    fixture_case(fixture, joined && shared->sections == expected && shared->refused == 0,
                 "%u sections of %d replicas with %d threads (%u refused)", shared->sections, PODS,
                 THREADS, shared->refused);
    fixture_case(fixture, seen->overlaps == 0 && seen->torn == 0, "every section alone (%u, %u)",
                 seen->overlaps, seen->torn);
    fixture_case(fixture, seen->shrunk == 0 && seen->unheld == 0,
                 "tokens grow, and it is held (%u, %u)", seen->shrunk, seen->unheld);
    fixture_case(fixture, shared->most_passed <= PASSED_MOST,
                 "nobody let more than %d sections of others pass (%" PRId64 ")", PASSED_MOST,
                 shared->most_passed);
    fixture_case(fixture, shared->renewed > 0, "long sections were renewed (%u)", shared->renewed);
}

static void judge_writes(struct fixture *fixture)
{
    struct audit_writes writes = {0};
    long from = audit_length();
    judge_sections(fixture);
    bool read = audit_read(from, APART_US, &writes);
    fixture_print(
        "%zu writes, %.1f for each section; the next one of a replica to a Lease at least "
        "%" PRId64 " us after the answer to the one before",
        writes.count, (double)writes.count / shared->sections, writes.least_gap_us);
    fixture_case(fixture, read && writes.pairs == PAIRS && writes.together == 0,
                 "no replica had two writes to a Lease on their way (%zu)", writes.together);
    from = audit_length();
    bool joined = play_sections(fixture, CLIENT_EACH, WRONG_ROUNDS);
    read = audit_read(from, APART_US, &writes);
    fixture_case(fixture, joined && shared->seen.overlaps == 0,
                 "a client for each thread: alone as well");
    fixture_case(fixture, read && writes.together > 0,
                 "and %zu of %zu writes at once, so it would be seen", writes.together,
                 writes.count);
}

/* ---- killed replicas ---- */

/* Every round has its own tasks: no waiter queues behind a killed one of an earlier round. */
static void note_asked(void *user, const struct lh_event *event)
{
    (void)user;
    if (event->kind != LH_EVENT_WAITING && event->kind != LH_EVENT_GRANTED)
        return;
    uint64_t number = strtoull(event->key + strlen("task-"), NULL, 10);
    if (number / TASKS == atomic_load(&shared->round))
        atomic_fetch_or(&shared->asked[pod_here], 1U << number % TASKS);
}

/* Holds the task of the round until the next one begins. */
static void *keep_task(void *argument)
{
    struct worker *worker = argument;
    struct hold *hold = &shared->holds[worker->number];
    for (;;) {
        uint64_t round = atomic_load(&shared->round);
        struct lh_lease *lease = take(worker->client, round * TASKS + worker->number, CRASH_TTL_MS);
        if (lease == NULL)
            _exit(1);
        if (atomic_load(&shared->round) == round) {
            atomic_store(&hold->pod, (int)pod_here);
            atomic_store(&hold->since_us, fixture_now_us());
        }
        while (atomic_load(&shared->round) == round)
            fixture_pause_us(5000);
        (void)lh_release(&lease, NULL);
    }
}

static void play_keeper(struct fixture *fixture, size_t child)
{
    struct worker workers[TASKS];
    become_pod(fixture, child);
    struct lh_client *client = open_client(fixture, note_asked);
    for (size_t i = 0; i < TASKS; i++)
        workers[i] = (struct worker){.fixture = fixture, .client = client, .number = i};
    run_threads(workers, TASKS, keep_task);
}

static void begin_round(void)
{
    for (size_t i = 0; i < PODS; i++)
        atomic_store(&shared->asked[i], 0);
    for (size_t i = 0; i < TASKS; i++)
        atomic_store(&shared->holds[i].since_us, 0);
    atomic_fetch_add(&shared->round, 1);
}

static bool await_holds(const struct fixture *fixture)
{
    for (size_t i = 0; i < TASKS; i++) {
        while (atomic_load(&shared->holds[i].since_us) == 0) {
            if (fixture_late(fixture))
                return false;
            fixture_pause_us(500);
        }
    }
    return true;
}

/* Waits until every replica holds each task or waits for it. */
static bool await_asked(const struct fixture *fixture)
{
    for (size_t i = 0; i < PODS; i++) {
        while (atomic_load(&shared->asked[i]) != (1U << TASKS) - 1) {
            if (fixture_late(fixture))
                return false;
            fixture_pause_us(500);
        }
    }
    return await_holds(fixture);
}

static int find_busiest(void)
{
    int counts[PODS] = {0}, busiest = 0;
    for (size_t i = 0; i < TASKS; i++)
        counts[atomic_load(&shared->holds[i].pod)]++;
    for (int i = 1; i < PODS; i++)
        busiest = counts[i] > counts[busiest] ? i : busiest;
    return busiest;
}

/* Kills the replica that holds the most tasks; one sample for each of them. */
static bool strike(struct fixture *fixture)
{
    bool struck[TASKS];
    int victim = find_busiest();
    fixture_pause_us((int64_t)random_below(&fixture->random, (uint64_t)CRASH_TTL_MS * 1000));
    for (size_t i = 0; i < TASKS; i++) {
        struck[i] = atomic_load(&shared->holds[i].pod) == victim;
        if (struck[i])
            atomic_store(&shared->holds[i].since_us, 0);
    }
    int64_t killed_us = fixture_now_us();
    if (!fixture_kill(fixture, (size_t)victim) || !await_holds(fixture))
        return false;
    for (size_t i = 0; i < TASKS; i++) {
        if (struck[i])
            keep_sample(atomic_load(&shared->holds[i].since_us) - killed_us);
    }
    begin_round();
    fixture_start(fixture, (size_t)victim, play_keeper);
    return true;
}

static void judge_kills(struct fixture *fixture)
{
    bool good = true;
    int64_t margin_ms = store_facts_at(fixture->driver, fixture->url).margin_ms;
    margin_ms += margin_ms > 0 ? WHOLE_SECOND_MS : 0;
    double most_ms = (double)(CRASH_TTL_MS + margin_ms);
    memset(shared, 0, sizeof *shared);
    for (size_t child = 0; child < PODS; child++)
        fixture_start(fixture, child, play_keeper);
    for (uint64_t kills = 0; kills * 5 < fixture->rounds && good; kills++)
        good = await_asked(fixture) && strike(fixture);
    for (size_t child = 0; child < PODS; child++)
        (void)fixture_kill(fixture, child);
    say_samples("taken over from a killed replica");
    fixture_case(fixture, good, "tasks of killed replicas were taken over");
    fixture_case(fixture, percentile(50) <= most_ms && percentile(100) <= most_ms + BUSY_MS,
                 "within the lease (%d ms) and the stated margin (%" PRId64 " ms)", CRASH_TTL_MS,
                 margin_ms);
}

/* ---- hand-offs ---- */

static void play_relay(struct fixture *fixture, size_t child)
{
    struct random random = {fixture->seed + child};
    size_t wanted = 10 * fixture->rounds;
    become_pod(fixture, child);
    struct lh_client *client = open_client(fixture, NULL);
    bool over = false;
    while (!over) {
        int64_t called_us = fixture_now_us();
        struct lh_lease *lease = take(client, 0, TTL_MS);
        int64_t held_us = fixture_now_us();
        if (lease == NULL)
            _exit(1);
        /* Counts only if this process waited before the release. */
        if (shared->released_by != child && called_us < shared->released_us &&
            shared->sample_count < wanted)
            keep_sample(held_us - shared->released_us);
        over = shared->sample_count >= wanted;
        fixture_pause_us(20000 + (int64_t)random_below(&random, 20000));
        shared->released_by = child;
        shared->released_us = fixture_now_us();
        if (lh_release(&lease, NULL) != LH_OK)
            _exit(1);
    }
    lh_close(&client);
}

static void judge_hand_overs(struct fixture *fixture)
{
    bool joined = true;
    memset(shared, 0, sizeof *shared);
    for (size_t child = 0; child < PODS; child++)
        fixture_start(fixture, child, play_relay);
    for (size_t child = 0; child < PODS; child++)
        joined = fixture_join(fixture, child) && joined;
    say_samples("from a release to the next replica's grant");
    fixture_case(fixture, joined && shared->sample_count == 10 * fixture->rounds,
                 "releases handed over to other replicas");
    fixture_case(fixture, percentile(90) < HAND_OVER_MS, "in less than %d ms", HAND_OVER_MS);
    fixture_case(fixture, percentile(100) < STUCK_MS, "and nobody was left to look by itself");
}

static bool start_proxy(const struct fixture *fixture)
{
    char words[32];
    const char *server = getenv("K8S_SERVER"), *port = server != NULL ? strrchr(server, ':') : NULL;
    (void)snprintf(words, sizeof words, "delay %d %d", DELAY_MS, DELAY_MS);
    return port != NULL &&
           proxy_start(&proxy, (uint16_t)strtoul(port + 1, NULL, 10), fixture->seed, NULL) &&
           proxy_say(&proxy, words);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 10, /* limit_s= */ 300, /* round_ms= */ 30000,
                 sizeof *shared);
    shared = fixture.shared;
    if (!on_k8s(&fixture)) {
        judge_sections(&fixture);
    } else if (start_proxy(&fixture)) {
        judge_writes(&fixture);
        fixture_case(&fixture, proxy_stop(&proxy), "the proxy ends");
    } else {
        fixture_case(&fixture, false, "the proxy runs, in front of the server of on-k8s.sh");
        return fixture_close(&fixture);
    }
    (void)play_sections(&fixture, NO_LOCK, WRONG_ROUNDS);
    fixture_case(&fixture, shared->seen.overlaps > 0,
                 "without a lock %u sections were not alone, so there was something to prevent",
                 shared->seen.overlaps);
    judge_kills(&fixture);
    judge_hand_overs(&fixture);
    return fixture_close(&fixture);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes that write one log at the same time, one request each at a time: a sync of one
 * covers the writes of the others. And a lock that moves from one process to another and back.
 */
#include "bench_file.h"
#include "bench_process.h"
#include "leases.h"
#include "raw.h"
#include "rounds.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 8, RUN_MS = 400, HANDOVERS = 100, KEY = 1, WAIT_MS = 60000, SETTLE_US = 300 };

/* Shared by the processes of a part. */
struct shared {
    _Atomic unsigned ready;
    _Atomic bool go, stop;
    _Atomic uint64_t pairs;
    double let_go_at;
    double handed_us[2][ROUNDS * HANDOVERS];
};

static void write_pairs(struct shared *shared, const char *path, uint64_t session)
{
    struct leases *leases = leases_open(path, session, /* most= */ 1);
    uint64_t pairs = 0;
    leases_take(leases, 1, session);
    leases_give_back(leases, 1);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        bench_sleep_us(100);
    for (; !atomic_load(&shared->stop); pairs++) {
        leases_take(leases, 1, session);
        leases_give_back(leases, 1);
    }
    atomic_fetch_add(&shared->pairs, pairs);
    leases_close(&leases);
}

/* Pairs per second of all processes together. */
static double rate_of(struct shared *shared, const char *path, unsigned processes)
{
    pid_t children[MANY];
    atomic_store(&shared->go, false);
    atomic_store(&shared->stop, false);
    atomic_store(&shared->ready, 0);
    atomic_store(&shared->pairs, 0);
    for (unsigned i = 0; i < processes; i++) {
        children[i] = bench_fork();
        if (children[i] == 0) {
            write_pairs(shared, path, /* session= */ 100 + i);
            _exit(0);
        }
    }
    while (atomic_load(&shared->ready) < processes)
        bench_sleep_us(100);
    double from = rounds_seconds();
    atomic_store(&shared->go, true);
    bench_sleep_us(RUN_MS * 1000L);
    atomic_store(&shared->stop, true);
    double took = rounds_seconds() - from;
    for (unsigned i = 0; i < processes; i++)
        bench_wait(children[i]);
    return (double)atomic_load(&shared->pairs) / took;
}

void bench_processes(const struct bench_paths *paths)
{
    char path[BENCH_PATH];
    double many[ROUNDS], one[ROUNDS];
    struct shared *shared = bench_share(sizeof *shared);
    bench_path(paths, "processes.log", path);
    for (int i = 0; i < ROUNDS; i++) {
        many[i] = rate_of(shared, path, MANY);
        one[i] = rate_of(shared, path, 1);
    }
    (void)printf("== file: acquire+release by eight processes on one log, one request each\n");
    rounds_say("pairs, eight processes together", many, "a second");
    rounds_say("pairs, one process", one, "a second");
    rounds_ratio(many, one);
    bench_unshare(shared, sizeof *shared);
}

/* One of the two processes of a hand-off. */
struct player {
    struct shared *shared;
    int me;
    int partner; /* a stream to the other one, for "I am waiting" and "I have it" */
    int datagrams;
    struct leases *leases;
    struct raw raw;
};

static void hear(const struct player *player)
{
    char word;
    if (read(player->partner, &word, 1) != 1)
        rounds_fail("hand-over", "the other process is gone");
}

static void say(const struct player *player)
{
    if (write(player->partner, "w", 1) != 1)
        rounds_fail("hand-over", "the other process is gone");
}

/* The other one waits, and had the time to fall asleep. */
static void await_waiting(const struct player *player)
{
    hear(player);
    bench_sleep_us(SETTLE_US);
    player->shared->let_go_at = rounds_seconds();
}

static double since_let_go_us(const struct player *player)
{
    return (rounds_seconds() - player->shared->let_go_at) * 1e6;
}

/* Through the store: a release that grants to the next waiter and wakes it. The releaser requests
 * again only after the grant: otherwise its next write would delay the other process. */
static void hand_over(struct player *player, bool gives, double *out_us)
{
    struct leases *leases = player->leases;
    if (gives) {
        await_waiting(player);
        leases_let_go(leases, 0);
        leases_await(leases, 0, NOTIFY_ENDED);
        hear(player);
    } else {
        leases_ask(leases, 0, KEY, WAIT_MS);
        leases_await(leases, 0, NOTIFY_WAITING);
        say(player);
        leases_await(leases, 0, NOTIFY_HELD);
        *out_us = since_let_go_us(player);
        say(player);
    }
}

/* The minimum cost: one synced write, and one datagram to the sleeping process. */
static void hand_over_raw(struct player *player, bool gives, double *out_us)
{
    char word[32] = "key";
    if (gives) {
        await_waiting(player);
        raw_overwrite(&player->raw);
        if (send(player->datagrams, word, sizeof word, 0) != (ssize_t)sizeof word)
            rounds_fail("send", strerror(errno));
    } else {
        say(player);
        if (recv(player->datagrams, word, sizeof word, 0) != (ssize_t)sizeof word)
            rounds_fail("recv", strerror(errno));
        *out_us = since_let_go_us(player);
    }
}

/* Placement of the woken process dominates the result: each one has a core of its own. */
static void pin(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    (void)sched_setaffinity(/* ourselves= */ 0, sizeof cores, &cores); /* where there is only one */
}

/* Both run the same rounds; the round number determines the releaser. */
static void play(struct player *player, const char *log, const char *raw)
{
    double *stored_us = player->shared->handed_us[0], *raw_us = player->shared->handed_us[1];
    pin(player->me);
    player->leases = leases_open(log, /* session= */ 50 + (uint64_t)player->me, /* most= */ 1);
    raw_make(&player->raw, raw);
    if (player->me == 0) {
        leases_take(player->leases, 1, KEY);
        say(player); /* the lock is held: the other process may begin to wait */
    } else {
        await_waiting(player);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = round * HANDOVERS; i < (round + 1) * HANDOVERS; i++)
            hand_over(player, /* gives= */ i % 2 == player->me, stored_us + i);
        for (int i = round * HANDOVERS; i < (round + 1) * HANDOVERS; i++)
            hand_over_raw(player, /* gives= */ i % 2 == player->me, raw_us + i);
    }
    raw_done(&player->raw);
    leases_close(&player->leases);
}

void bench_handover(const struct bench_paths *paths)
{
    char log[BENCH_PATH], raw[BENCH_PATH];
    int streams[2], datagrams[2];
    double stored[ROUNDS], least[ROUNDS];
    struct shared *shared = bench_share(sizeof *shared);
    bench_path(paths, "handover.log", log);
    bench_path(paths, "raw", raw);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) != 0 ||
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams) != 0)
        rounds_fail("socketpair", strerror(errno));
    pid_t child = bench_fork();
    int me = child == 0 ? 1 : 0;
    struct player player = {
        .shared = shared, .me = me, .partner = streams[me], .datagrams = datagrams[me]};
    (void)close(streams[1 - me]);
    (void)close(datagrams[1 - me]);
    play(&player, log, raw);
    if (child == 0)
        _exit(0);
    bench_wait(child);
    for (size_t i = 0; i < ROUNDS; i++) {
        stored[i] = rounds_share(shared->handed_us[0] + i * HANDOVERS, HANDOVERS, 0.5);
        least[i] = rounds_share(shared->handed_us[1] + i * HANDOVERS, HANDOVERS, 0.5);
    }
    (void)printf(
        "== file: a lock goes from one process to the next in line, each on its own core\n");
    rounds_say("from release to held (median of a round)", stored, "us");
    rounds_say("an overwrite with fdatasync and a datagram", least, "us");
    rounds_aim(stored, least, AT_MOST, 1.5);
    (void)close(streams[0]);
    (void)close(datagrams[0]);
    bench_unshare(shared, sizeof *shared);
}

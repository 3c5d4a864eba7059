/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquire and release of free keys, durable: one after the other, 64 at once, compared with the
 * bare disk and with Redis.
 */
#include "bench_file.h"
#include "leases.h"
#include "raw.h"
#include "redis_peer.h"
#include "rounds.h"

#include <stdio.h>

enum { SINGLE = 400, FLIGHT = 64, BATCHES = 100, SESSION = 7 };

/* Microseconds for a pair, with N concurrent leases; and processor time of our thread. */
static double pair_us(struct leases *leases, size_t together, int batches, double *out_busy_us)
{
    double from = rounds_seconds(), busy_from = rounds_busy_seconds();
    for (int i = 0; i < batches; i++) {
        leases_take(leases, together, /* first= */ (uint64_t)i % 16 * FLIGHT);
        leases_give_back(leases, together);
    }
    double pairs = batches * (double)together;
    *out_busy_us = (rounds_busy_seconds() - busy_from) * 1e6 / pairs;
    return (rounds_seconds() - from) * 1e6 / pairs;
}

static double two_overwrites_us(struct raw *raw)
{
    double from = rounds_seconds();
    for (int i = 0; i < 2 * SINGLE; i++)
        raw_overwrite(raw);
    return (rounds_seconds() - from) * 1e6 / SINGLE;
}

void bench_pairs(const struct bench_paths *paths)
{
    char path[BENCH_PATH];
    struct raw raw;
    double ours[ROUNDS], least[ROUNDS], unsaid;
    bench_path(paths, "pairs.log", path);
    struct leases *leases = leases_open(path, SESSION, /* most= */ 1);
    bench_path(paths, "raw", path);
    raw_make(&raw, path);
    (void)pair_us(leases, /* together= */ 1, SINGLE, &unsaid);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = pair_us(leases, /* together= */ 1, SINGLE, &unsaid);
        least[i] = two_overwrites_us(&raw);
    }
    (void)printf("== file: acquire+release by one process, one request in flight, synced\n");
    rounds_say("a pair", ours, "us");
    rounds_say("two overwrites of 160 bytes with fdatasync", least, "us");
    rounds_aim(ours, least, AT_MOST, 1.4);
    raw_done(&raw);
    leases_close(&leases);
}

static void say_redis(const double *ours, const double *redis)
{
    (void)printf("== file: the same against Redis with appendfsync always, 64 clients that do\n"
                 "   SET NX PX and DEL, each awaited, on a unix socket\n");
    rounds_say("pairs, Redis", redis, "a second");
    rounds_aim(ours, redis, AT_LEAST, 3);
}

void bench_flight(const struct bench_paths *paths)
{
    char path[BENCH_PATH];
    double many[ROUNDS], busy[ROUNDS], one[ROUNDS], redis[ROUNDS] = {0}, unsaid;
    bench_path(paths, "flight.log", path);
    struct leases *leases = leases_open(path, SESSION, FLIGHT);
    struct redis_peer *peer = paths->socket != NULL
                                  ? redis_peer_open(paths->socket, FLIGHT, /* compares= */ false)
                                  : NULL;
    (void)pair_us(leases, FLIGHT, BATCHES, &unsaid);
    for (int i = 0; i < ROUNDS; i++) {
        many[i] = 1e6 / pair_us(leases, FLIGHT, 4 * BATCHES, &busy[i]);
        one[i] = 1e6 / pair_us(leases, /* together= */ 1, SINGLE, &unsaid);
        if (peer != NULL)
            redis[i] = 1e6 / redis_peer_pair_us(peer, (size_t)FLIGHT * BATCHES);
    }
    (void)printf("== file: acquire+release, 64 requests in flight in one process, synced\n");
    rounds_say("pairs, 64 in flight", many, "a second");
    rounds_say("processor time of such a pair, its thread", busy, "us");
    rounds_say("pairs, one in flight", one, "a second");
    rounds_aim(many, one, AT_LEAST, 40);
    if (peer != NULL) {
        say_redis(many, redis);
        redis_peer_close(&peer);
    }
    leases_close(&leases);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on a Redis server compared with the usual commands on the same server: parts of
 * bench_redis. Each gets the server's loopback port as text and the store's URL.
 */
#ifndef LEASEHOLD_TESTS_BENCH_REDIS_H
#define LEASEHOLD_TESTS_BENCH_REDIS_H

struct bench_server {
    const char *port, *url;
};

/* Acquire and release of free keys, 1, 16 and 64 at a time. */
void bench_redis_pairs(const struct bench_server *server);
/* One key from one process to the next waiter. */
void bench_redis_hand_over(const struct bench_server *server);
/* Sixteen processes that contend for one key. */
void bench_redis_crowd(const struct bench_server *server);

#endif

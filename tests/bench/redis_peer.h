/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of a Redis server that take and give back locks as everybody does there: SET NX PX, then
 * DEL, each sent when the one before was answered, no pipelining. One thread drives them all; the
 * server has the other core. A wrong answer ends the program.
 */
#ifndef LEASEHOLD_TESTS_REDIS_PEER_H
#define LEASEHOLD_TESTS_REDIS_PEER_H

#include <stddef.h>

struct redis_peer;

/* On a unix socket: of its two ways in, the faster one. */
struct redis_peer *redis_peer_open(const char *socket, size_t clients);
void redis_peer_close(struct redis_peer **peer);
/* Microseconds for a pair, over all clients together. */
double redis_peer_pair_us(struct redis_peer *peer, size_t pairs);

#endif

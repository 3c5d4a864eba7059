/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upper limit for locks with growing tokens on a Redis server: pipelined scripts of bare
 * commands, by a client that prepares its bytes and only compares the replies. More work on either
 * side is slower. An unexpected reply ends the program.
 */
#ifndef LEASEHOLD_TESTS_REDIS_BARE_H
#define LEASEHOLD_TESTS_REDIS_BARE_H

#include <stddef.h>

enum redis_bare_kind {
    BARE_TOKEN, /* a count and SET NX PX; compare and delete: the minimum with a token */
    BARE_OURS,  /* every command that ours needs, and nothing else */
};

struct redis_bare;

/* The server is a unix socket, or a port of the loopback. */
struct redis_bare *redis_bare_open(const char *server, enum redis_bare_kind kind, size_t together);
void redis_bare_close(struct redis_bare **bare);
/* Microseconds for a pair: all are acquired in one write, then released in another. */
double redis_bare_pair_us(struct redis_bare *bare, size_t pairs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast locks with growing tokens can be on a Redis server at all: scripts of bare commands in a
 * pipeline, by a client that knows its bytes before and only compares the answers. Whoever does
 * more, on either side, is slower than that. A wrong answer ends the program.
 */
#ifndef LEASEHOLD_TESTS_REDIS_BARE_H
#define LEASEHOLD_TESTS_REDIS_BARE_H

#include <stddef.h>

enum redis_bare_kind {
    BARE_TOKEN, /* a count and SET NX PX; compare and delete: the least that gives a token */
    BARE_OURS,  /* every command that ours needs, and not one word around them */
};

struct redis_bare;

/* The server is a unix socket, or a port of the loopback. */
struct redis_bare *redis_bare_open(const char *server, enum redis_bare_kind kind, size_t together);
void redis_bare_close(struct redis_bare **bare);
/* Microseconds for a pair: all are taken in one write, then all given back in another. */
double redis_bare_pair_us(struct redis_bare *bare, size_t pairs);

#endif

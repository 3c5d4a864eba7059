/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of a Redis server that acquire and release locks in the usual way: SET NX PX, then DEL or
 * a script that compares and deletes, each sent after the previous reply, no pipelining. One thread
 * drives them all; the server has the other core. An unexpected reply ends the program.
 */
#ifndef LEASEHOLD_TESTS_REDIS_PEER_H
#define LEASEHOLD_TESTS_REDIS_PEER_H

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_COMMAND = 192, REDIS_SHA = 40 };

struct redis_peer;

/* The server is a unix socket, or a port of the loopback. */
struct redis_peer *redis_peer_open(const char *server, size_t clients, bool compares);
void redis_peer_close(struct redis_peer **peer);
/* Microseconds for a pair, over all clients together. */
double redis_peer_pair_us(struct redis_peer *peer, size_t pairs);

/* The same, one command at a time. */
struct redis_commands {
    size_t set_length, free_length;
    char set[REDIS_COMMAND], free[REDIS_COMMAND];
};
int redis_peer_connect(const char *server);
/* For a key of 32 bytes made from one number, and a value made from the other. */
void redis_peer_commands(int file, size_t key, size_t value, bool compares,
                         struct redis_commands *out);
/* Sends a command; true when the reply is the expected one, false when it is nil. */
bool redis_peer_call(int file, const char *command, size_t length, const char *expected);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the daemon for load tests: RESP2 over TCP on the loopback, many connections in one
 * thread. A failure ends the program: under load every reply is expected.
 */
#ifndef LEASEHOLD_TESTS_LOAD_PEER_H
#define LEASEHOLD_TESTS_LOAD_PEER_H

#include "wire/resp.h"

enum { LOAD_IN = 4096, LOAD_COMMAND_MAX = 1024 };

struct load_peer {
    int file;
    unsigned step;     /* of the caller */
    uint64_t number;   /* of the caller */
    size_t at, length; /* unread bytes of `in` */
    struct resp resp;
    char in[LOAD_IN];
};

struct load_reply {
    bool ok; /* the outcome is "ok", or it is no map and no error */
    uint64_t token;
    char outcome[32];
};

void load_open(struct load_peer *peer, uint16_t port);
void load_close(struct load_peer *peer);
/* Writes a command of at most 8 words, separated by spaces; returns its length. */
__attribute__((format(printf, 2, 3))) size_t load_command(char out[LOAD_COMMAND_MAX],
                                                          const char *format, ...);
void load_send(const struct load_peer *peer, const char *bytes, size_t length);
/* Receives what has arrived; waits if nothing has. */
void load_receive(struct load_peer *peer);
/* False: the next reply has not arrived as a whole. */
bool load_next(struct load_peer *peer, struct load_reply *out);
/* Waits for the next reply. */
void load_await(struct load_peer *peer, struct load_reply *out);
/* Sends one command and waits for its reply. */
__attribute__((format(printf, 3, 4))) void load_call(struct load_peer *peer, struct load_reply *out,
                                                     const char *format, ...);
_Noreturn void load_fail(const char *what);
/* Ends the program unless `fine`. */
static inline void load_check(bool fine, const char *what)
{
    if (!fine)
        load_fail(what);
}
/* As many open files as the hard limit allows; false if these are fewer. */
bool load_allow_files(size_t files);

#endif

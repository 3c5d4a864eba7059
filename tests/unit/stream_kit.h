/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A poller, streams that record their callbacks, and real sockets on the other side, all in one
 * thread: the test runs the poller until the expected event.
 */
#ifndef LEASEHOLD_TESTS_STREAM_KIT_H
#define LEASEHOLD_TESTS_STREAM_KIT_H

#include "net/stream.h"

struct party {
    struct stream *stream;
    unsigned opened, ended, calls; /* calls: with bytes */
    enum stream_end end;
    char why[512];
    char got[256 * 1024];
    size_t got_length;
    size_t spares;      /* bytes that it never consumes */
    size_t in_max;      /* limit of unconsumed bytes; 0: the usual one */
    bool frees_on_open; /* closes itself, within the callback */
    bool frees_on_bytes;
    bool pauses_on_bytes;
    bool frees_on_end;
};

extern struct poller *kit_net;

int kit_open(void **state);
int kit_close(void **state);

/* Runs the poller until the flag is set; false after five seconds. */
bool kit_until(const unsigned *flag);
void kit_turn(int64_t ms); /* for that duration */
void kit_settle(void);     /* several steps: handles all that is there already */

void party_open(struct party *party, const struct stream_target *target);
void party_adopt(struct party *party, int in, int out);
/* A connected socket; `timeout_ms` of the handshake. */
void party_adopt_tls(struct party *party, int file, struct tls_server *server, int64_t timeout_ms);
struct stream_target kit_target(uint16_t port);

/* A listening socket on a free port of the loopback. */
int kit_listen(int family, uint16_t *out_port);
int kit_accept(int listening);

#endif

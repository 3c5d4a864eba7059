/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server of ours and a client of OpenSSL, connected by TCP, with certificates for both: one
 * thread, in which the test turns both.
 */
#ifndef LEASEHOLD_TESTS_TLS_LINK_H
#define LEASEHOLD_TESTS_TLS_LINK_H

#include "net/tls_server.h"
#include "stream_kit.h"
#include "tls_kit.h"

struct link_certs {
    struct test_cert ca, other_ca;
    struct test_cert fine, expired;                          /* of the server */
    struct test_cert client, expired_client, foreign_client; /* with names of their own */
};

extern char link_folder[64];
extern struct link_certs link_certs;
extern struct tls_server *link_server; /* of the next connection */
extern int link_buffer;                /* of the kernel, for each side; 0: the usual one */
extern struct party link_party;        /* our side … */
extern struct tls_client link_client;  /* … and the peer */

int link_make_certs(void **state);
int link_remove_certs(void **state);
/* Setup and teardown of a case: a server without a CA of clients, no connection. */
int link_begin(void **state);
int link_finish(void **state);

/* Replaces the server; NULL: no certificates of clients. */
void link_serve(const struct test_cert *test_cert, const struct test_cert *client_ca);
/* A connection of plain TCP; returns the peer's socket. */
int link_connect_plain(int64_t timeout_ms);
/* Begins the handshake of the client. */
void link_connect(void);
/* Both are open. */
void link_open(void);
/* Turns both until the flag is set; false after five seconds. */
bool link_until(const unsigned *flag);
/* Turns for that duration. */
void link_turn(int64_t ms);
/* As the client: writes all, reads exactly that. */
void link_put(const char *bytes, size_t length);
void link_expect(const char *bytes, size_t length);
void link_expect_end(enum stream_end end, const char *why);
/* Ends both sides, so that a case can connect once more. */
void link_disconnect(void);

#endif

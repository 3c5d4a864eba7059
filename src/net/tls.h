/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over a connected socket, for streams: version 1.2 or later. A client verifies the server's
 * certificate against its name or address, a server that of a client, if it has one, against a CA.
 * Has no timers, and no buffers beyond the current record; reports which readiness it waits for.
 */
#ifndef LEASEHOLD_NET_TLS_H
#define LEASEHOLD_NET_TLS_H

#include "base/text.h"
#include "net/stream.h"

#include <sys/types.h>

struct tls;

/* The certificate must have the name `host`, unless the settings have another. NULL, with the
 * reason in `why`: a file of ours is unusable, or out of memory. The caller keeps the socket. */
struct tls *tls_new(const struct stream_tls *settings, const char *host, int file,
                    struct text *why);
/* The other side is a client. NULL when out of memory. The caller keeps the socket. */
struct tls *tls_accept(struct tls_server *server, int file);
/* Sends close_notify if the socket has room for it. Accepts NULL. */
void tls_free(struct tls **tls);

/* Bytes transferred (the handshake: 1 when done); 0: retry when ready; −1: it ended. */
ssize_t tls_handshake(struct tls *tls);
ssize_t tls_read(struct tls *tls, char *bytes, size_t length);
ssize_t tls_write(struct tls *tls, const char *bytes, size_t length);
/* Sends close_notify; 1 when done. The other side can still be read. */
ssize_t tls_close(struct tls *tls);

/* POLLER_READ or POLLER_WRITE, if the last handshake or read waits for it. A write always waits for
 * POLLER_WRITE. */
unsigned tls_wants(const struct tls *tls);
/* True if decrypted bytes are buffered, for which the socket does not become readable. */
bool tls_has_more(const struct tls *tls);
/* The reason, after −1. */
enum stream_end tls_end(const struct tls *tls);
const char *tls_why(const struct tls *tls);
/* In the verified certificate of a client; NULL: it has none. */
const char *tls_peer_name(const struct tls *tls);

#endif

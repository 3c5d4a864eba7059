/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over a connected socket, for streams: version 1.2 or later. Verifies the server's certificate
 * against its name or address. Has no timers, and no buffers beyond the current record; reports
 * which readiness it waits for.
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
/* Sends close_notify if the socket has room for it. Accepts NULL. */
void tls_free(struct tls **tls);

/* Bytes transferred (the handshake: 1 when done); 0: retry when ready; −1: it ended. */
ssize_t tls_handshake(struct tls *tls);
ssize_t tls_read(struct tls *tls, char *bytes, size_t length);
ssize_t tls_write(struct tls *tls, const char *bytes, size_t length);

/* POLLER_READ or POLLER_WRITE, if the last call waits for it. */
unsigned tls_wants(const struct tls *tls);
/* True if decrypted bytes are buffered, for which the socket does not become readable. */
bool tls_has_more(const struct tls *tls);
/* The reason, after −1. */
enum stream_end tls_end(const struct tls *tls);
const char *tls_why(const struct tls *tls);

#endif

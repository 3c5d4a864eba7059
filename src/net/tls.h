/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over a connected socket, for streams: 1.2 or later, the server's certificate checked against
 * its name or address. Knows no timers and no buffers of its own beyond the record that is being
 * carried; says what it waits for.
 */
#ifndef LEASEHOLD_NET_TLS_H
#define LEASEHOLD_NET_TLS_H

#include "base/text.h"
#include "net/stream.h"

#include <sys/types.h>

struct tls;

/* `host` is what the certificate must have when the settings name nothing else. NULL with words in
 * `why`: a file of ours is no good, or out of memory. The socket stays the caller's. */
struct tls *tls_new(const struct stream_tls *settings, const char *host, int file,
                    struct text *why);
/* Says goodbye when there is room for it. NULL is fine. */
void tls_free(struct tls **tls);

/* Bytes that were carried (the handshake: 1 when it is done); 0: later; −1: it ended. */
ssize_t tls_handshake(struct tls *tls);
ssize_t tls_read(struct tls *tls, char *bytes, size_t length);
ssize_t tls_write(struct tls *tls, const char *bytes, size_t length);

/* What the last call waits for, of poller.h. */
unsigned tls_wants(const struct tls *tls);
/* Is something left of a record that came in, of which the socket does not know? */
bool tls_has_more(const struct tls *tls);
/* After −1. */
enum stream_end tls_end(const struct tls *tls);
const char *tls_why(const struct tls *tls);

#endif

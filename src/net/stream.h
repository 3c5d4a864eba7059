/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server: name lookup, TCP or a unix socket, TLS; or a connection of a peer,
 * which a listener accepted. Must not block, and must not depend on a protocol. The bytes written
 * in a step are sent together at its end. A stream that ended stays ended: to reconnect, the caller
 * opens another one after a pause (see backoff.h).
 */
#ifndef LEASEHOLD_NET_STREAM_H
#define LEASEHOLD_NET_STREAM_H

#include "net/poller.h"

#include <stddef.h>

/* PEM files, read again for every stream, so that renewed ones take effect. All may be NULL. */
struct stream_tls {
    bool on;
    const char *ca_file;   /* NULL: the system's */
    const char *cert_file; /* ours, for servers that request one … */
    const char *key_file;  /* … with its key; NULL: it is in cert_file */
    const char *name;      /* required in the server's certificate; NULL: the host */
};

struct stream_target {
    const char *host; /* a name or an address; with `path` unused */
    uint16_t port;
    const char *path; /* of a unix socket, or NULL */
    struct stream_tls tls;
    int64_t timeout_ms; /* until it is open, TLS included */
};

enum stream_end {
    STREAM_CLOSED,     /* by the other side, in an orderly way */
    STREAM_CUT,        /* reset, unreachable, unknown name, timeout … */
    STREAM_REFUSED,    /* no server listens at any of its addresses: nothing was sent */
    STREAM_UNTRUSTED,  /* a certificate was refused, theirs or ours: a retry does not help */
    STREAM_OVERFLOWED, /* the unsent bytes exceed our own limit */
};

struct stream;
struct tls_server;

struct stream_callbacks {
    void (*opened)(void *owner); /* may be NULL */
    /* Returns how many bytes it consumed; the rest is passed again, with more behind it. The stream
     * is cut when `in_max` bytes are left over. */
    size_t (*bytes)(void *owner, const char *bytes, size_t length);
    /* The last callback; may free the stream. `why`: the address and the error, never a secret. */
    void (*ended)(void *owner, enum stream_end end, const char *why);
    /* Of adopted pipes: the input has ended and all its bytes were consumed. Replies can still be
     * written; the owner ends the stream. NULL: the stream ends then. */
    void (*input_over)(void *owner);
    /* The peer of an adopted socket has closed its direction: true if it is taken for one that
     * still reads, as with pipes. May be asked again. NULL: no, because most have closed both. */
    bool (*half_open)(void *owner);
    void *owner;
    size_t in_max;  /* limit of unconsumed bytes */
    size_t out_max; /* limit of unsent bytes */
};

/* NULL when out of memory. `ended` reports every other failure, from a later step. */
struct stream *stream_new(struct poller *poller, const struct stream_target *target,
                          const struct stream_callbacks *callbacks);
/*
 * A connection that a peer opened, or a pair of pipes: `in` and `out` may be equal. The stream owns
 * the files and closes them, but 0 and 1 are never shut down, because other processes may share
 * them. `in` may be a regular file. `name` is for texts. It is open from the start; `opened` is not
 * called. NULL when out of memory: the files remain the caller's.
 */
struct stream *stream_adopt(struct poller *poller, int in, int out, const char *name,
                            const struct stream_callbacks *callbacks);
/*
 * A socket of a peer, with TLS. `opened` is called after the handshake, which must be done within
 * the timeout, however many bytes arrive. An end without close_notify is STREAM_CUT. NULL when out
 * of memory: the file remains the caller's.
 */
struct stream *stream_adopt_tls(struct poller *poller, int file, const char *name,
                                struct tls_server *server, int64_t timeout_ms,
                                const struct stream_callbacks *callbacks);
/* In the verified certificate of the peer, valid until the stream ends: its common name, or without
 * one its first DNS name. NULL: it has none. */
const char *stream_peer_name(const struct stream *stream);
/* No callback follows. May be called from its callbacks. Accepts NULL. */
void stream_free(struct stream **stream);

/* Queues the bytes if it is not open yet. Exceeding the limit ends the stream. */
void stream_write(struct stream *stream, const char *bytes, size_t length);
/* Sends the queued bytes now, not at the end of a step: for writers outside of one. */
void stream_flush(struct stream *stream);

/*
 * Adopted streams only, from here on.
 *
 * A paused stream reads nothing, so that the peer's writes fill up; `bytes` may leave over more
 * than `in_max`. The bytes received before are delivered again in the step after it is resumed. An
 * end of the connection is still reported, but with pipes only after all bytes are delivered.
 */
void stream_set_paused(struct stream *stream, bool paused);
/* Sends the queued bytes, then calls `ended` with STREAM_CLOSED: when the peer has closed too, a
 * second after the last byte was sent, or after five seconds; before the end of a TLS handshake in
 * the next step. `bytes` is not called again, and stream_write() has no effect. */
void stream_end_after_flush(struct stream *stream);
const char *stream_name(const struct stream *stream);
size_t stream_unsent(const struct stream *stream);
size_t stream_buffered(const struct stream *stream); /* memory of its buffers */

#endif

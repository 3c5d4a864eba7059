/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server: name look-up, TCP or a unix socket, TLS. Never blocks. What was written
 * since the last step travels together at the end of it. A stream that ended stays so: who wants to
 * go on opens another one (and waits before, see backoff.h). Knows no protocol.
 */
#ifndef LEASEHOLD_NET_STREAM_H
#define LEASEHOLD_NET_STREAM_H

#include "net/poller.h"

#include <stddef.h>

/* Files in PEM; read anew for every stream, so that renewed ones count. All may be NULL. */
struct stream_tls {
    bool on;
    const char *ca_file;   /* NULL: the system's */
    const char *cert_file; /* ours, for servers that ask for one … */
    const char *key_file;  /* … with its key; NULL: it stands in cert_file */
    const char *name;      /* that the server's certificate must have; NULL: the host's */
};

struct stream_target {
    const char *host; /* a name or an address; with `path` unused */
    uint16_t port;
    const char *path; /* of a unix socket, or NULL */
    struct stream_tls tls;
    int64_t timeout_ms; /* until it is open, TLS included */
};

enum stream_end {
    STREAM_CLOSED,     /* by the other side, in order */
    STREAM_CUT,        /* reset, unreachable, no such name, not in time … */
    STREAM_REFUSED,    /* nobody listens there, at any of its addresses: nothing was sent */
    STREAM_UNTRUSTED,  /* the certificate: theirs or ours. Trying again does not help */
    STREAM_OVERFLOWED, /* it took too little of what was written: our own limit */
};

struct stream;

struct stream_callbacks {
    void (*opened)(void *owner);
    /* How many of the bytes were used up; the rest comes again, with more behind it. When as many
     * as `keeps` are left over, the stream is cut. */
    size_t (*bytes)(void *owner, const char *bytes, size_t length);
    /* The last thing that is told; the stream may be freed in it. `why`: what happened, and to
     * which address; never a secret. */
    void (*ended)(void *owner, enum stream_end end, const char *why);
    void *owner;
    size_t in_max;  /* limit of bytes that were not used up */
    size_t out_max; /* limit of bytes that were not sent */
};

/* NULL when out of memory. Whatever else fails is told by `ended`, from a later step. */
struct stream *stream_new(struct poller *poller, const struct stream_target *target,
                          const struct stream_callbacks *callbacks);
/* Says nothing more. From anywhere, also from its callbacks. NULL is fine. */
void stream_free(struct stream **stream);

bool stream_is_open(const struct stream *stream);
/* Queued when it is not open yet. What is beyond the limit ends it. */
void stream_write(struct stream *stream, const char *bytes, size_t length);
/* Sends now what a step would send at its end: for writers outside of one. */
void stream_flush(struct stream *stream);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by stream.c, which transfers bytes and calls the owner, and stream_open.c, which connects
 * to an address. No other file may include it.
 */
#ifndef LEASEHOLD_NET_STREAM_INTERNAL_H
#define LEASEHOLD_NET_STREAM_INTERNAL_H

#include "net/lookup.h"
#include "net/stream.h"
#include "net/tls.h"

enum { STREAM_ERROR_MAX = 400, STREAM_SHOWN = 160, STREAM_COPIES = 6 };

enum stream_state {
    STREAM_RESOLVING,   /* looks up the addresses of a name */
    STREAM_CONNECTING,  /* to one of them */
    STREAM_HANDSHAKING, /* TLS */
    STREAM_OPEN,
    STREAM_ENDING, /* ended outside of a step; the next step reports it */
    STREAM_ENDED,
};

/* A buffer; the bytes before `start` are consumed. */
struct stream_bytes {
    char *bytes;
    size_t size, start, length;
};

struct stream {
    uint32_t magic;
    struct poller *poller;
    struct stream_callbacks callbacks;
    struct stream_target target; /* its strings are in `copies` */
    char *copies[STREAM_COPIES];
    enum stream_state state;
    unsigned refs; /* of calls that still use it … */
    bool freed;    /* … the last of which destroys it */
    struct poller_watch watch;
    /* Opening: timeout of this address or of all; open: more to read; ending: immediate. */
    struct poller_timer timer;
    struct poller_deferred deferred;
    int64_t opens_by_ms;
    struct lookup *lookup;
    struct addrinfo *addresses; /* all of them … */
    struct addrinfo *address;   /* … and the one that is being tried */
    size_t tried, refusals;
    struct tls *tls; /* NULL: none */
    struct stream_bytes in, out;
    bool full; /* the kernel's buffer is full, and `out` waits */
    enum stream_end end;
    char why[STREAM_ERROR_MAX];
};

/* stream.c */
/* Sets the reason of the coming end, without further effect. `detail` may be NULL. */
void stream_set_error(struct stream *stream, enum stream_end end, const char *what,
                      const char *detail);
/* Ends it and calls `ended`; within a step only. */
void stream_finish(struct stream *stream);
/* As stream_set_error(), with the reason of TLS. */
void stream_set_tls_error(struct stream *stream);
/* The connection is established: bytes can be transferred from here on. */
void stream_opened(struct stream *stream);
void stream_close_file(struct stream *stream);

/* stream_open.c */
/* False if it has failed already, with the reason in `why`. */
bool stream_open_begin(struct stream *stream);
/* The socket is ready, or the time for this address is over. */
void stream_open_ready(struct stream *stream);
void stream_open_timeout(struct stream *stream);
/* Releases everything that only an opening stream needs. */
void stream_open_done(struct stream *stream);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a stream share: stream.c carries bytes and tells its owner, stream_open.c finds
 * an address that answers. Nobody outside of them includes it.
 */
#ifndef LEASEHOLD_NET_STREAM_INTERNAL_H
#define LEASEHOLD_NET_STREAM_INTERNAL_H

#include "net/lookup.h"
#include "net/stream.h"
#include "net/tls.h"

enum { STREAM_ERROR_MAX = 400, STREAM_SHOWN = 160, STREAM_COPIES = 6 };

enum stream_state {
    STREAM_RESOLVING,   /* for the addresses of a name */
    STREAM_CONNECTING,  /* to one of them */
    STREAM_HANDSHAKING, /* hands: TLS */
    STREAM_OPEN,
    STREAM_ENDING, /* it ended outside of a step; the next one tells */
    STREAM_ENDED,
};

/* Bytes on their way; those before `start` are done with. */
struct stream_bytes {
    char *bytes;
    size_t size, start, length;
};

struct stream {
    uint32_t magic;
    struct poller *poller;
    struct stream_callbacks callbacks;
    struct stream_target target; /* with words of our own: */
    char *copies[STREAM_COPIES];
    enum stream_state state;
    unsigned refs; /* by calls that come back to it … */
    bool freed;    /* … and free it then */
    struct poller_watch watch;
    /* Opening: of this address or of all; open: there is more to read; ending: at once. */
    struct poller_timer timer;
    struct poller_deferred deferred;
    int64_t opens_by_ms;
    struct lookup *lookup;
    struct addrinfo *addresses; /* all of them … */
    struct addrinfo *address;   /* … and the one that is being tried */
    size_t tried, refusals;
    struct tls *tls; /* NULL: none */
    struct stream_bytes in, out;
    bool full; /* what is in `out` waits for the kernel to take it */
    enum stream_end end;
    char why[STREAM_ERROR_MAX];
};

/* stream.c */
/* Why it is going to end; nothing happens yet. `detail` may be NULL. */
void stream_set_error(struct stream *stream, enum stream_end end, const char *what,
                      const char *detail);
/* Ends it and tells so: at once within a step, otherwise in the next one. */
void stream_finish(struct stream *stream);
void stream_finish_later(struct stream *stream);
/* Likewise, for what TLS says. */
void stream_set_tls_error(struct stream *stream);
/* The other side can be reached: from here on bytes go to and fro. */
void stream_opened(struct stream *stream);
void stream_close_file(struct stream *stream);

/* stream_open.c */
/* False when it came to an end already, with the reason in `why`. */
bool stream_open_begin(struct stream *stream);
/* The next address; likewise. */
bool stream_open_next(struct stream *stream);
/* The socket has something to tell, or the time for this address is over. */
void stream_open_ready(struct stream *stream);
void stream_open_timeout(struct stream *stream);
/* Lets go of everything that only an opening needs. */
void stream_open_done(struct stream *stream);

#endif

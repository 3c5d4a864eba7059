/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by stream.c, which transfers bytes and calls the owner, stream_open.c, which connects to
 * an address, stream_adopt.c, which serves connections of peers, and stream_accept.c, which serves
 * those with TLS. No other file may include it.
 */
#ifndef LEASEHOLD_NET_STREAM_INTERNAL_H
#define LEASEHOLD_NET_STREAM_INTERNAL_H

#include "net/lookup.h"
#include "net/stream.h"
#include "net/stream_buffer.h"
#include "net/tls.h"

#include <sys/types.h>

enum {
    STREAM_MAGIC = 0x57e4,
    STREAM_ERROR_MAX = 400,
    STREAM_SHOWN = 160,
    STREAM_COPIES = 6,
    STREAM_READS_MOST = 16, /* in one step, so that no stream starves others */
};

enum stream_state {
    STREAM_RESOLVING,   /* looks up the addresses of a name */
    STREAM_CONNECTING,  /* to one of them */
    STREAM_HANDSHAKING, /* TLS */
    STREAM_OPEN,
    STREAM_FLUSHING, /* sends what is queued, then ends; discards what it receives */
    STREAM_ENDING,   /* ended outside of a step; the next step reports it */
    STREAM_ENDED,
};

/* The server of a stream that we opened. */
struct stream_remote {
    struct stream_target target; /* its strings are in `copies` */
    char *copies[STREAM_COPIES];
    int64_t opens_by_ms;
    struct lookup *lookup;
    struct addrinfo *addresses; /* all of them … */
    struct addrinfo *address;   /* … and the one that is being tried */
    size_t tried, refusals;
};

/* Files of an adopted stream that are not one socket. */
struct stream_pipes {
    struct poller_watch out;
    bool in_socket, out_socket;
    bool always_ready;       /* a regular file, which epoll refuses */
    int in_flags, out_flags; /* restored at the end, because other processes share them; or -1 */
};

struct stream {
    uint32_t magic;
    enum stream_state state;
    struct poller *poller;
    struct stream_callbacks callbacks;
    struct poller_watch watch; /* of the file, or of the one that is read */
    /* Opening: timeout of this address or of all; open: more to read; ending: immediate. */
    struct poller_timer timer;
    struct poller_deferred deferred;
    struct stream_buffer in, out;
    struct stream_remote *remote; /* NULL: adopted */
    struct stream_pipes *pipes;   /* NULL: one socket */
    struct tls *tls;              /* NULL: none */
    char *name;                   /* of an adopted stream */
    char *why;                    /* the reason of the end, once it is known */
    enum stream_end end;
    unsigned refs;  /* of calls that still use it … */
    bool freed;     /* … the last of which destroys it */
    bool full;      /* the kernel's buffer is full, and `out` waits */
    bool paused;    /* by the owner … */
    bool deaf;      /* … and bytes have arrived since: only a hang-up is watched … */
    bool hung_up;   /* … or nothing, because it has hung up */
    bool resumed;   /* the timer delivers what `in` holds */
    bool lingering; /* all is sent; waits for the peer to close */
    bool at_end;    /* flushing, and the peer has closed its direction */
};

/* stream.c */
/* Sets the reason of the coming end, without further effect. `detail` may be NULL. */
void stream_set_error(struct stream *stream, enum stream_end end, const char *what,
                      const char *detail);
/* As stream_set_error(), for a sentence whose subject is the other side. */
void stream_set_other_error(struct stream *stream, enum stream_end end, const char *does);
/* As stream_set_error(), with the reason of TLS. */
void stream_set_tls_error(struct stream *stream);
/* Ends it and calls `ended`; within a step only. */
void stream_finish(struct stream *stream);
void stream_finish_later(struct stream *stream); /* outside of a step too */
/* The connection is established: bytes can be transferred from here on. */
void stream_opened(struct stream *stream);
void stream_close_file(struct stream *stream);
/* False, with the reason, if epoll fails. */
bool stream_update_watch(struct stream *stream);
/* Returns the bytes received; 0: none yet; −1: it ended, and the reason is set. */
ssize_t stream_receive(struct stream *stream, char *bytes, size_t length);
/* False if the connection failed. */
bool stream_send(struct stream *stream);
/* Passes the buffered bytes to the owner; false if too many are left over. */
bool stream_deliver(struct stream *stream);
bool stream_check_left(struct stream *stream);
bool stream_read_in(struct stream *stream);
/* A stream without a connection; NULL when out of memory. */
struct stream *stream_create(struct poller *poller, const struct stream_callbacks *callbacks);
void stream_destroy(struct stream *stream);

/* stream_open.c */
/* False if it has failed already, with the reason in `why`. */
bool stream_open_begin(struct stream *stream);
/* The socket is ready, or the time for this address is over. */
void stream_open_ready(struct stream *stream);
void stream_open_timeout(struct stream *stream);
/* Releases everything that only an opening stream needs. */
void stream_open_done(struct stream *stream);

/* stream_accept.c */
void stream_accept_ready(struct stream *stream);
void stream_accept_timeout(struct stream *stream);
/* Discards what has arrived. True, with the reason of the end set, if close_notify is behind it. */
bool stream_seek_close_notify(struct stream *stream);

/* stream_adopt.c */
/* Reads once, by way of the poller's scratch memory. Returns as stream_receive(), with all bytes
 * delivered; `out_room`: what it could have received. */
ssize_t stream_adopted_read(struct stream *stream, size_t *out_room);
ssize_t stream_pipe_read(struct stream *stream, char *bytes, size_t length);
ssize_t stream_pipe_write(struct stream *stream, const char *bytes, size_t length);
bool stream_pipe_update_watch(struct stream *stream, unsigned reads);
void stream_pipe_close(struct stream *stream);
/* Handles an event of an adopted stream; false if it ended, with the reason set. */
bool stream_adopted_ready(struct stream *stream, unsigned what);
bool stream_adopted_timer(struct stream *stream);
/* The sent bytes were the last ones. */
void stream_flushed(struct stream *stream);
/* True if an end of file must wait until all is sent. */
bool stream_flush_at_end(struct stream *stream);

#endif

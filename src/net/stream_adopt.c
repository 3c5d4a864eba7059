/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of a server: see stream_adopt() in stream.h. An idle one owns no buffer: bytes arrive in
 * memory that all streams of the poller share, and only an incomplete rest is kept. In the steady
 * state a request costs one recv() and one send().
 */
#include "net/stream_internal.h"

#include "base/check.h"
#include "process/block_signal.h"
#include "process/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REST_FIRST = 512,                 /* of an incomplete command */
    REST_COPIED = POLLER_SCRATCH / 2, /* a larger rest is read into its own buffer */
    FLUSH_MS = 5000,
    LINGER_MS = 1000,
};

/* ---- pipes ---- */

ssize_t stream_pipe_read(struct stream *stream, char *bytes, size_t length)
{
    if (stream->pipes->in_socket)
        return recv(stream->watch.file, bytes, length, MSG_DONTWAIT);
    return read(stream->watch.file, bytes, length);
}

ssize_t stream_pipe_write(struct stream *stream, const char *bytes, size_t length)
{
    int file = stream->pipes->out.file;
    struct block_signal block;
    if (stream->pipes->out_socket)
        return send(file, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    block_signal_begin(&block, SIGPIPE);
    ssize_t written = write(file, bytes, length);
    block_signal_end(&block, written < 0 && errno == EPIPE);
    return written;
}

bool stream_pipe_update_watch(struct stream *stream, unsigned reads)
{
    struct stream_pipes *pipes = stream->pipes;
    unsigned writes = stream->full ? POLLER_WRITE : 0U;
    if (pipes->out.file == stream->watch.file)
        return poller_watch(stream->poller, &stream->watch, reads | writes);
    if (!pipes->always_ready && !poller_watch(stream->poller, &stream->watch, reads)) {
        if (errno != EPERM)
            return false;
        pipes->always_ready = true;
        poller_call_at(stream->poller, &stream->timer, host_boot_ms());
    }
    return poller_watch(stream->poller, &pipes->out, writes);
}

/* Makes a file non-blocking; returns the flags to restore, or -1. */
static int stream_pipe_unblock(int file)
{
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) != 0)
        return -1;
    return fcntl(file, F_SETFL, flags | O_NONBLOCK) == 0 ? flags : -1;
}

static void stream_pipe_close_one(int file, bool is_socket, int flags)
{
    if (flags >= 0)
        (void)fcntl(file, F_SETFL, flags);
    if (is_socket && file > STDOUT_FILENO)
        (void)shutdown(file, SHUT_RDWR);
    (void)close(file);
}

void stream_pipe_close(struct stream *stream)
{
    struct stream_pipes *pipes = stream->pipes;
    int in = stream->watch.file, out = pipes->out.file;
    (void)poller_watch(stream->poller, &pipes->out, 0);
    stream_pipe_close_one(in, pipes->in_socket, pipes->in_flags);
    if (out != in)
        stream_pipe_close_one(out, pipes->out_socket, pipes->out_flags);
    stream->watch.file = pipes->out.file = -1;
}

static bool stream_is_socket(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISSOCK(status.st_mode);
}

static void stream_on_pipe_ready(void *owner, unsigned what)
{
    struct stream *stream = owner;
    stream->watch.ready(owner, what);
}

/* False when out of memory. */
static bool stream_adopt_pipes(struct stream *stream, int in, int out)
{
    struct stream_pipes *pipes = calloc(1, sizeof *pipes);
    if (pipes == NULL)
        return false;
    stream->pipes = pipes;
    pipes->out = (struct poller_watch){.file = out, .ready = stream_on_pipe_ready, .owner = stream};
    pipes->in_socket = stream_is_socket(in);
    pipes->out_socket = stream_is_socket(out);
    pipes->in_flags = pipes->in_socket ? -1 : stream_pipe_unblock(in);
    pipes->out_flags = pipes->out_socket || out == in ? -1 : stream_pipe_unblock(out);
    return true;
}

struct stream *stream_adopt(struct poller *poller, int in, int out, const char *name,
                            const struct stream_callbacks *callbacks)
{
    struct stream *stream = stream_create(poller, callbacks);
    if (stream == NULL)
        return NULL;
    stream->name = strdup(name);
    bool plain = in == out && in > STDOUT_FILENO && stream_is_socket(in);
    if (stream->name == NULL || (!plain && !stream_adopt_pipes(stream, in, out))) {
        stream_destroy(stream);
        return NULL;
    }
    stream->watch.file = in;
    stream->state = STREAM_OPEN;
    if (!stream_update_watch(stream))
        stream_finish_later(stream);
    return stream;
}

/* ---- reading ---- */

/* Keeps what the owner has not consumed. */
static bool stream_keep_rest(struct stream *stream, const char *rest, size_t length)
{
    stream_buffer_consume(&stream->in, stream->in.length, /* keep= */ length > 0 ? SIZE_MAX : 0);
    if (length == 0)
        return true;
    if (!stream_buffer_reserve(&stream->in, length, REST_FIRST)) {
        stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
        return false;
    }
    memcpy(stream->in.bytes, rest, length);
    stream->in.length = length;
    return stream_check_left(stream);
}

static ssize_t stream_read_behind_rest(struct stream *stream, char *scratch, size_t *out_room)
{
    size_t rest = stream->in.length, limit = stream->callbacks.in_max;
    size_t room = (limit < POLLER_SCRATCH ? limit : POLLER_SCRATCH) - rest;
    if (rest > 0)
        memcpy(scratch, stream->in.bytes + stream->in.start, rest);
    *out_room = room;
    ssize_t got = stream_receive(stream, scratch + rest, room);
    size_t length = rest + (got > 0 ? (size_t)got : 0);
    if (got > 0) {
        size_t used = stream->callbacks.bytes(stream->callbacks.owner, scratch, length);
        ASSERT(used <= length || stream->state != STREAM_OPEN);
        if (stream->state == STREAM_OPEN &&
            !stream_keep_rest(stream, scratch + used, length - used))
            got = -1;
    }
    explicit_bzero(scratch, length); /* may contain a password */
    return got;
}

/* A long argument arrives: into the buffer that will hold all of it. */
static ssize_t stream_read_into_rest(struct stream *stream, size_t *out_room)
{
    size_t room = stream->callbacks.in_max - stream->in.length;
    room = room < POLLER_SCRATCH ? room : POLLER_SCRATCH;
    *out_room = room;
    if (!stream_buffer_reserve(&stream->in, room, REST_FIRST)) {
        stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
        return -1;
    }
    ssize_t got =
        stream_receive(stream, stream->in.bytes + stream->in.start + stream->in.length, room);
    if (got <= 0)
        return got;
    stream->in.length += (size_t)got;
    return stream_deliver(stream) ? got : -1;
}

ssize_t stream_adopted_read(struct stream *stream, size_t *out_room)
{
    if (stream->in.length > REST_COPIED)
        return stream_read_into_rest(stream, out_room);
    char *scratch = poller_scratch(stream->poller);
    if (scratch != NULL)
        return stream_read_behind_rest(stream, scratch, out_room);
    stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
    return -1;
}

/* ---- pausing ---- */

/* True if the end of what the peer sends does not mean that it reads no replies. */
static bool stream_is_half_open(const struct stream *stream)
{
    return stream->pipes != NULL || (stream->callbacks.half_open != NULL &&
                                     stream->callbacks.half_open(stream->callbacks.owner));
}

/* The peer has closed while we do not read. If it may still read, its unread bytes count. */
static bool stream_on_hangup(struct stream *stream)
{
    int unread = 0, error = 0;
    socklen_t length = sizeof error;
    if (stream_is_half_open(stream) &&
        (stream->in.length > 0 ||
         (ioctl(stream->watch.file, FIONREAD, &unread) == 0 && unread > 0))) {
        stream->hung_up = true;
        return stream_update_watch(stream);
    }
    if (getsockopt(stream->watch.file, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0)
        stream_set_error(stream, STREAM_CUT, "the connection broke", strerror(error));
    else if (stream->tls != NULL && !stream_seek_close_notify(stream))
        stream_set_error(stream, STREAM_CUT, "the connection was cut", "no close_notify");
    else
        stream_set_other_error(stream, STREAM_CLOSED, "closed the connection");
    return stream_flush_at_end(stream);
}

void stream_set_paused(struct stream *stream, bool paused)
{
    ASSERT(stream->magic == STREAM_MAGIC && stream->remote == NULL);
    if (stream->state > STREAM_OPEN || stream->paused == paused)
        return;
    stream->paused = paused;
    if (paused || stream->state < STREAM_OPEN)
        return; /* the interest changes only if bytes arrive: most peers wait for their reply */
    stream->deaf = stream->hung_up = false;
    if (!stream_update_watch(stream)) {
        stream_finish_later(stream);
        return;
    }
    stream->resumed = stream->in.length > 0;
    if (stream->resumed || (stream->pipes != NULL && stream->pipes->always_ready) ||
        (stream->tls != NULL && tls_has_more(stream->tls)))
        poller_call_at(stream->poller, &stream->timer, host_boot_ms());
}

/* ---- flushing ---- */

void stream_end_after_flush(struct stream *stream)
{
    ASSERT(stream->magic == STREAM_MAGIC && stream->remote == NULL);
    if (stream->state > STREAM_OPEN)
        return;
    stream_set_error(stream, STREAM_CLOSED, "closed after the last reply", NULL);
    if (stream->state < STREAM_OPEN) { /* a peer without TLS gets no reply */
        stream_finish_later(stream);
        return;
    }
    stream->state = STREAM_FLUSHING;
    stream->paused = stream->deaf = stream->hung_up = false;
    stream_buffer_free(&stream->in);
    poller_call_at(stream->poller, &stream->timer, host_boot_ms() + FLUSH_MS);
    if (!stream_update_watch(stream))
        stream_finish_later(stream);
    else if (!stream->full)
        poller_defer(stream->poller, &stream->deferred);
}

/* Nothing more arrives, but the peer may still read. True if the owner ends the stream itself. */
static bool stream_end_input(struct stream *stream)
{
    if (stream->callbacks.input_over == NULL || stream->state != STREAM_OPEN)
        return false;
    stream->paused = stream->deaf = stream->hung_up = true;
    stream->callbacks.input_over(stream->callbacks.owner);
    return stream->state != STREAM_OPEN || stream_update_watch(stream);
}

bool stream_flush_at_end(struct stream *stream)
{
    if (stream->remote == NULL && stream->end == STREAM_CLOSED && stream_is_half_open(stream) &&
        stream_end_input(stream))
        return true;
    if (stream->remote != NULL || stream->pipes == NULL || stream->end != STREAM_CLOSED ||
        stream->out.length == 0)
        return false;
    stream_end_after_flush(stream);
    stream->at_end = true;
    return stream_update_watch(stream);
}

/* Sends close_notify; false if it waits for room. */
static bool stream_flush_tls(struct stream *stream)
{
    if (tls_close(stream->tls) != 0)
        return true;
    stream->full = true;
    if (!stream_update_watch(stream))
        stream_finish_later(stream);
    return false;
}

/* A socket that is closed with unread bytes resets the connection, and the peer may lose the last
 * reply: so the peer closes first. */
void stream_flushed(struct stream *stream)
{
    if (stream->lingering || (stream->tls != NULL && !stream_flush_tls(stream)))
        return;
    if (stream->pipes != NULL || stream->at_end || shutdown(stream->watch.file, SHUT_WR) != 0) {
        stream_finish_later(stream);
        return;
    }
    stream->lingering = true;
    poller_call_at(stream->poller, &stream->timer, host_boot_ms() + LINGER_MS);
}

/* Discards what arrives; false at the end. */
static bool stream_drain(struct stream *stream)
{
    char *scratch = poller_scratch(stream->poller);
    ssize_t got = POLLER_SCRATCH;
    for (int i = 0; scratch != NULL && got == POLLER_SCRATCH && i < STREAM_READS_MOST; i++) {
        got = stream_receive(stream, scratch, POLLER_SCRATCH);
        explicit_bzero(scratch, got > 0 ? (size_t)got : 0);
    }
    if (scratch != NULL && got >= 0)
        return stream->tls == NULL || stream_update_watch(stream);
    if (stream->lingering) { /* also after a reset: the last reply was sent */
        stream->end = STREAM_CLOSED;
        return false;
    }
    if (stream->end != STREAM_CLOSED || scratch == NULL)
        return false;
    stream->at_end = true; /* it may still read */
    return stream_update_watch(stream);
}

/* ---- events ---- */

/* Delivers once more what was received before the pause. */
static bool stream_redeliver(struct stream *stream)
{
    if (!stream->resumed || stream->paused)
        return true;
    stream->resumed = false;
    return stream_deliver(stream);
}

bool stream_adopted_ready(struct stream *stream, unsigned what)
{
    if ((what & POLLER_WRITE) != 0) {
        if (!stream_send(stream))
            return false;
        if (stream->state == STREAM_FLUSHING && stream->out.length == 0)
            stream_flushed(stream);
    }
    if (stream->state == STREAM_FLUSHING)
        return (what & POLLER_READ) == 0 || stream_drain(stream);
    if (stream->state != STREAM_OPEN)
        return true;
    if ((what & POLLER_HANGUP) != 0)
        return stream_on_hangup(stream);
    if ((what & POLLER_READ) == 0)
        return true;
    if (!stream->paused)
        return stream_redeliver(stream) && stream_read_in(stream);
    stream->deaf = true;
    return stream_update_watch(stream);
}

bool stream_adopted_timer(struct stream *stream)
{
    if (stream->state == STREAM_FLUSHING)
        return false;
    if (!stream_redeliver(stream))
        return false;
    if (stream->tls != NULL) /* what it has decrypted */
        return stream->paused || stream->state != STREAM_OPEN || !tls_has_more(stream->tls) ||
               stream_read_in(stream);
    if (stream->pipes == NULL || !stream->pipes->always_ready || stream->state != STREAM_OPEN ||
        stream->paused)
        return true;
    poller_call_at(stream->poller, &stream->timer, host_boot_ms());
    return stream_read_in(stream);
}

const char *stream_name(const struct stream *stream)
{
    return stream->name;
}

size_t stream_unsent(const struct stream *stream)
{
    return stream->out.length;
}

size_t stream_buffered(const struct stream *stream)
{
    return stream->in.size + stream->out.size;
}

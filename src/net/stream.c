/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stream.h: the bytes of a stream and its end. A callback may free the stream, so its caller
 * holds a reference until it returns.
 */
#include "net/stream_internal.h"

#include "base/check.h"
#include "base/text.h"
#include "process/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFER_FIRST = 4096,
    BUFFER_IDLE = 64 * 1024, /* a larger buffer is freed once it is empty */
    /* A server has thousands of streams: an idle one keeps no buffer, and malloc() is fastest with
     * small sizes. */
    ADOPTED_FIRST = 1024,
};

/* ---- error texts ---- */

static void show_address(const struct stream *stream, struct text *out)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct addrinfo *address = stream->remote->address;
    if (address == NULL)
        return;
    const struct sockaddr_in *four = (const void *)address->ai_addr;
    const struct sockaddr_in6 *six = (const void *)address->ai_addr;
    const void *bytes =
        address->ai_family == AF_INET6 ? (const void *)&six->sin6_addr : &four->sin_addr;
    if (inet_ntop(address->ai_family, bytes, text, sizeof text) == NULL ||
        strcmp(text, stream->remote->target.host) == 0)
        return;
    TEXT_JOIN(out, " (", text, ")");
}

static void show_target(const struct stream *stream, struct text *out)
{
    if (stream->remote == NULL) {
        text_add_bytes(out, stream->name, strnlen(stream->name, STREAM_SHOWN));
        return;
    }
    const struct stream_target *target = &stream->remote->target;
    if (target->path != NULL) {
        text_add(out, target->path);
        return;
    }
    bool six = strchr(target->host, ':') != NULL;
    text_add(out, six ? "[" : "");
    text_add_bytes(out, target->host, strnlen(target->host, STREAM_SHOWN));
    text_add(out, six ? "]:" : ":");
    text_add_u64(out, target->port);
    show_address(stream, out);
}

void stream_set_error(struct stream *stream, enum stream_end end, const char *what,
                      const char *detail)
{
    struct text text;
    stream->end = end;
    if (stream->why == NULL)
        stream->why = malloc(STREAM_ERROR_MAX);
    if (stream->why == NULL)
        return;
    text_init(&text, stream->why, STREAM_ERROR_MAX);
    show_target(stream, &text);
    TEXT_JOIN(&text, ": ", what);
    if (detail != NULL)
        TEXT_JOIN(&text, " (", detail, ")");
}

void stream_set_other_error(struct stream *stream, enum stream_end end, const char *does)
{
    char what[64];
    struct text text;
    text_init(&text, what, sizeof what);
    TEXT_JOIN(&text, stream->remote != NULL ? "the server " : "the peer ", does);
    stream_set_error(stream, end, what, NULL);
}

void stream_set_tls_error(struct stream *stream)
{
    stream_set_error(stream, tls_end(stream->tls), tls_why(stream->tls), NULL);
}

/* ---- lifetime ---- */

void stream_destroy(struct stream *stream)
{
    for (size_t i = 0; stream->remote != NULL && i < STREAM_COPIES; i++)
        free(stream->remote->copies[i]);
    free(stream->remote);
    free(stream->pipes);
    free(stream->name);
    free(stream->why);
    stream_buffer_free(&stream->in);
    stream_buffer_free(&stream->out);
    stream->magic = 0;
    free(stream);
}

static void stream_ref(struct stream *stream)
{
    stream->refs++;
}

static void stream_unref(struct stream *stream)
{
    if (--stream->refs == 0 && stream->freed)
        stream_destroy(stream);
}

void stream_close_file(struct stream *stream)
{
    tls_free(&stream->tls);
    if (stream->watch.file < 0)
        return;
    (void)poller_watch(stream->poller, &stream->watch, 0);
    if (stream->pipes != NULL) {
        stream_pipe_close(stream);
        return;
    }
    /* A forked child may have a copy: shutdown() closes the connection nevertheless. */
    (void)shutdown(stream->watch.file, SHUT_RDWR);
    (void)close(stream->watch.file);
    stream->watch.file = -1;
}

static void stream_stop(struct stream *stream, enum stream_state state)
{
    stream->state = state;
    stream_close_file(stream);
    stream_open_done(stream);
    poller_cancel_deferred(&stream->deferred);
    poller_call_at(stream->poller, &stream->timer, POLLER_NEVER);
}

void stream_finish(struct stream *stream)
{
    stream_stop(stream, STREAM_ENDED);
    stream_ref(stream); /* it owns `why` */
    stream->callbacks.ended(stream->callbacks.owner, stream->end,
                            stream->why != NULL ? stream->why : "out of memory");
    stream_unref(stream);
}

void stream_finish_later(struct stream *stream)
{
    stream_stop(stream, STREAM_ENDING);
    poller_call_at(stream->poller, &stream->timer, host_boot_ms());
}

void stream_free(struct stream **stream_pointer)
{
    struct stream *stream = *stream_pointer;
    if (stream == NULL)
        return;
    ASSERT(stream->magic == STREAM_MAGIC && !stream->freed);
    stream_stop(stream, STREAM_ENDED);
    stream->freed = true;
    if (stream->refs == 0)
        stream_destroy(stream);
    *stream_pointer = NULL;
}

/* ---- bytes ---- */

bool stream_update_watch(struct stream *stream)
{
    unsigned reads = stream->deaf ? POLLER_HANGUP : POLLER_READ;
    if (stream->hung_up || stream->at_end)
        reads = 0;
    /* TLS has to write before it reads: what can be read would wake us for nothing. */
    else if (stream->tls != NULL && !stream->deaf && tls_wants(stream->tls) == POLLER_WRITE)
        reads = POLLER_HANGUP | POLLER_WRITE;
    if (stream->pipes != NULL ? stream_pipe_update_watch(stream, reads)
                              : poller_watch(stream->poller, &stream->watch,
                                             reads | (stream->full ? POLLER_WRITE : 0U)))
        return true;
    stream_set_error(stream, STREAM_CUT, "cannot watch the socket", strerror(errno));
    return false;
}

ssize_t stream_receive(struct stream *stream, char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t read = tls_read(stream->tls, bytes, length);
        if (read < 0)
            stream_set_tls_error(stream);
        return read;
    }
    ssize_t got = stream->pipes != NULL ? stream_pipe_read(stream, bytes, length)
                                        : recv(stream->watch.file, bytes, length, MSG_DONTWAIT);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got == 0)
        stream_set_other_error(stream, STREAM_CLOSED, "closed the connection");
    else
        stream_set_error(stream, STREAM_CUT, "the connection broke", strerror(errno));
    return -1;
}

/* The peer of a unix socket or of a pipe may have closed it in an orderly way before we sent. */
static void stream_set_send_error(struct stream *stream, int error)
{
    char byte;
    bool closed =
        error == EPIPE && stream->remote == NULL &&
        (stream->pipes != NULL || recv(stream->watch.file, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0);
    if (closed)
        stream_set_other_error(stream, STREAM_CLOSED, "closed the connection");
    else
        stream_set_error(stream, STREAM_CUT, "the connection broke", strerror(error));
}

static ssize_t stream_transmit(struct stream *stream, const char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t written = tls_write(stream->tls, bytes, length);
        if (written < 0) {
            stream_set_tls_error(stream);
            if (stream->remote == NULL) /* the peer may have closed it before */
                (void)stream_seek_close_notify(stream);
        }
        return written;
    }
    ssize_t sent = stream->pipes != NULL
                       ? stream_pipe_write(stream, bytes, length)
                       : send(stream->watch.file, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    stream_set_send_error(stream, errno);
    return -1;
}

bool stream_send(struct stream *stream)
{
    size_t keep = stream->remote != NULL ? BUFFER_IDLE : 0;
    stream->full = false;
    while (stream->out.length > 0 && !stream->full) {
        size_t length = stream->out.length;
        ssize_t sent = stream_transmit(stream, stream->out.bytes + stream->out.start, length);
        if (sent < 0)
            return false;
        /* The kernel takes less than all only if it is full; TLS sends one record at a time. */
        stream->full = sent == 0 || (stream->tls == NULL && (size_t)sent < length);
        stream_buffer_consume(&stream->out, (size_t)sent, keep);
    }
    return stream_update_watch(stream);
}

bool stream_check_left(struct stream *stream)
{
    if (stream->in.length < stream->callbacks.in_max || stream->paused)
        return true;
    stream_set_other_error(stream, STREAM_CUT, "sent more at once than we take");
    return false;
}

bool stream_deliver(struct stream *stream)
{
    size_t used = stream->callbacks.bytes(stream->callbacks.owner,
                                          stream->in.bytes + stream->in.start, stream->in.length);
    if (stream->state != STREAM_OPEN)
        return true;
    stream_buffer_consume(&stream->in, used, stream->remote != NULL ? BUFFER_IDLE : 0);
    return stream_check_left(stream);
}

/* Reads once and delivers. Returns as stream_receive(). */
static ssize_t stream_read_once(struct stream *stream, size_t *out_room)
{
    size_t room = stream->callbacks.in_max - stream->in.length;
    if (room > BUFFER_IDLE)
        room = BUFFER_IDLE;
    if (!stream_buffer_reserve(&stream->in, room < BUFFER_FIRST ? room : BUFFER_FIRST,
                               BUFFER_FIRST)) {
        stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
        return -1;
    }
    size_t space = stream->in.size - stream->in.start - stream->in.length;
    if (room > space)
        room = space;
    *out_room = room;
    ssize_t got =
        stream_receive(stream, stream->in.bytes + stream->in.start + stream->in.length, room);
    if (got <= 0)
        return got;
    stream->in.length += (size_t)got;
    return stream_deliver(stream) ? got : -1;
}

bool stream_read_in(struct stream *stream)
{
    for (int reads = 0;
         reads < STREAM_READS_MOST && stream->state == STREAM_OPEN && !stream->paused; reads++) {
        size_t room = 0;
        ssize_t got = stream->remote == NULL ? stream_adopted_read(stream, &room)
                                             : stream_read_once(stream, &room);
        if (got < 0)
            return stream_flush_at_end(stream);
        if (got == 0)
            return stream_update_watch(stream); /* TLS may have to write before it reads */
        if ((size_t)got < room)
            return true;
    }
    if (stream->state == STREAM_OPEN && stream->tls != NULL && tls_has_more(stream->tls))
        poller_call_at(stream->poller, &stream->timer, host_boot_ms());
    return true;
}

/* ---- callbacks of the poller ---- */

void stream_opened(struct stream *stream)
{
    stream_open_done(stream);
    poller_call_at(stream->poller, &stream->timer, POLLER_NEVER);
    stream->state = STREAM_OPEN;
    if (!stream_update_watch(stream)) {
        stream_finish(stream);
        return;
    }
    if (stream->out.length > 0)
        poller_defer(stream->poller, &stream->deferred);
    if (stream->callbacks.opened != NULL)
        stream->callbacks.opened(stream->callbacks.owner);
}

static void stream_open_step(struct stream *stream, bool timeout)
{
    if (stream->remote == NULL)
        (timeout ? stream_accept_timeout : stream_accept_ready)(stream);
    else
        (timeout ? stream_open_timeout : stream_open_ready)(stream);
}

static void stream_on_ready(void *owner, unsigned what)
{
    struct stream *stream = owner;
    stream_ref(stream);
    if (stream->tls != NULL && (what & tls_wants(stream->tls) & POLLER_WRITE) != 0)
        what |= POLLER_READ; /* the read that waits for it */
    if (stream->state < STREAM_OPEN) {
        stream_open_step(stream, /* timeout= */ false);
    } else if (stream->remote == NULL) {
        if (!stream_adopted_ready(stream, what))
            stream_finish(stream);
    } else if (((what & POLLER_WRITE) != 0 && !stream_send(stream)) ||
               ((what & POLLER_READ) != 0 && !stream_read_in(stream))) {
        stream_finish(stream);
    }
    stream_unref(stream);
}

static void stream_on_timer(void *owner)
{
    struct stream *stream = owner;
    stream_ref(stream);
    if (stream->state < STREAM_OPEN)
        stream_open_step(stream, /* timeout= */ true);
    else if (stream->state == STREAM_ENDING ||
             !(stream->remote == NULL ? stream_adopted_timer(stream) : stream_read_in(stream)))
        stream_finish(stream);
    stream_unref(stream);
}

static void stream_on_deferred(void *owner)
{
    stream_flush(owner);
}

/* ---- interface ---- */

/* Copies the strings, which the caller may free. False when out of memory. */
static bool copy_target(struct stream *stream, const struct stream_target *target)
{
    struct stream_target *copy = &stream->remote->target;
    struct stream_tls *tls = &copy->tls;
    const char **text[STREAM_COPIES] = {&copy->host,     &copy->path,    &tls->ca_file,
                                        &tls->cert_file, &tls->key_file, &tls->name};
    *copy = *target;
    for (size_t i = 0; i < STREAM_COPIES; i++) {
        if (*text[i] == NULL)
            continue;
        *text[i] = stream->remote->copies[i] = strdup(*text[i]);
        if (stream->remote->copies[i] == NULL)
            return false;
    }
    return true;
}

struct stream *stream_create(struct poller *poller, const struct stream_callbacks *callbacks)
{
    struct stream *stream = calloc(1, sizeof *stream);
    ASSERT(callbacks->in_max > 0);
    if (stream == NULL)
        return NULL;
    stream->magic = STREAM_MAGIC;
    stream->poller = poller;
    stream->callbacks = *callbacks;
    stream->watch = (struct poller_watch){.file = -1, .ready = stream_on_ready, .owner = stream};
    stream->timer = (struct poller_timer){.due = stream_on_timer, .owner = stream};
    stream->deferred = (struct poller_deferred){.run = stream_on_deferred, .owner = stream};
    return stream;
}

struct stream *stream_new(struct poller *poller, const struct stream_target *target,
                          const struct stream_callbacks *callbacks)
{
    ASSERT(target->host != NULL || target->path != NULL);
    struct stream *stream = stream_create(poller, callbacks);
    if (stream == NULL)
        return NULL;
    stream->remote = calloc(1, sizeof *stream->remote);
    if (stream->remote == NULL || !copy_target(stream, target)) {
        stream_destroy(stream);
        return NULL;
    }
    if (!stream_open_begin(stream))
        stream_finish_later(stream);
    return stream;
}

void stream_write(struct stream *stream, const char *bytes, size_t length)
{
    ASSERT(stream->magic == STREAM_MAGIC);
    if (stream->state > STREAM_OPEN || length == 0)
        return;
    bool fits = length <= stream->callbacks.out_max &&
                stream->out.length <= stream->callbacks.out_max - length;
    size_t first = stream->remote != NULL ? BUFFER_FIRST : ADOPTED_FIRST;
    bool reserved = fits && stream_buffer_reserve(&stream->out, length, first);
    if (!reserved) {
        if (fits)
            stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
        else
            stream_set_other_error(stream, STREAM_OVERFLOWED, "does not take what we send");
        stream_finish_later(stream);
        return;
    }
    memcpy(stream->out.bytes + stream->out.start + stream->out.length, bytes, length);
    stream->out.length += length;
    if (stream->state == STREAM_OPEN && !stream->full)
        poller_defer(stream->poller, &stream->deferred);
}

void stream_flush(struct stream *stream)
{
    ASSERT(stream->magic == STREAM_MAGIC);
    poller_cancel_deferred(&stream->deferred);
    bool sends = stream->state == STREAM_OPEN || stream->state == STREAM_FLUSHING;
    if (!sends || stream->full)
        return;
    if (!stream_send(stream))
        stream_finish_later(stream);
    else if (stream->state == STREAM_FLUSHING && stream->out.length == 0)
        stream_flushed(stream);
}

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
    STREAM_MAGIC = 0x57e4,
    BUFFER_FIRST = 4096,
    BUFFER_IDLE = 64 * 1024, /* a larger buffer is freed once it is empty */
    READS_MOST = 16,         /* in one step, so that no stream starves others */
};

/* ---- error texts ---- */

static void show_address(const struct stream *stream, struct text *out)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct addrinfo *address = stream->address;
    if (address == NULL)
        return;
    const struct sockaddr_in *four = (const void *)address->ai_addr;
    const struct sockaddr_in6 *six = (const void *)address->ai_addr;
    const void *bytes =
        address->ai_family == AF_INET6 ? (const void *)&six->sin6_addr : &four->sin_addr;
    if (inet_ntop(address->ai_family, bytes, text, sizeof text) == NULL ||
        strcmp(text, stream->target.host) == 0)
        return;
    TEXT_JOIN(out, " (", text, ")");
}

static void show_target(const struct stream *stream, struct text *out)
{
    const struct stream_target *target = &stream->target;
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
    text_init(&text, stream->why, sizeof stream->why);
    show_target(stream, &text);
    TEXT_JOIN(&text, ": ", what);
    if (detail != NULL)
        TEXT_JOIN(&text, " (", detail, ")");
    stream->end = end;
}

void stream_set_tls_error(struct stream *stream)
{
    stream_set_error(stream, tls_end(stream->tls), tls_why(stream->tls), NULL);
}

/* ---- buffers ---- */

/* Not by realloc(): the old buffer may contain a password and must be wiped. */
static bool buffer_resize(struct stream_bytes *buffer, size_t size)
{
    char *bytes = size > 0 ? malloc(size) : NULL;
    ASSERT(size >= buffer->length);
    if (size > 0 && bytes == NULL)
        return false;
    if (buffer->length > 0)
        memcpy(bytes, buffer->bytes + buffer->start, buffer->length);
    if (buffer->bytes != NULL)
        explicit_bzero(buffer->bytes, buffer->size);
    free(buffer->bytes);
    *buffer = (struct stream_bytes){.bytes = bytes, .size = size, .length = buffer->length};
    return true;
}

/* Makes room for `more` bytes; the caller enforces the limit. */
static bool buffer_reserve(struct stream_bytes *buffer, size_t more)
{
    if (buffer->size - buffer->start - buffer->length >= more)
        return true;
    if (buffer->size - buffer->length >= more) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->length);
        buffer->start = 0;
        return true;
    }
    size_t size = buffer->size > 0 ? buffer->size : BUFFER_FIRST;
    while (size - buffer->length < more)
        size *= 2;
    return buffer_resize(buffer, size);
}

static void buffer_consume(struct stream_bytes *buffer, size_t length)
{
    buffer->start += length;
    buffer->length -= length;
    if (buffer->length > 0)
        return;
    buffer->start = 0;
    if (buffer->size > BUFFER_IDLE)
        (void)buffer_resize(buffer, 0);
}

/* ---- lifetime ---- */

static void stream_destroy(struct stream *stream)
{
    for (size_t i = 0; i < STREAM_COPIES; i++)
        free(stream->copies[i]);
    stream->in.length = stream->out.length = 0;
    (void)buffer_resize(&stream->in, 0);
    (void)buffer_resize(&stream->out, 0);
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
    stream->callbacks.ended(stream->callbacks.owner, stream->end, stream->why);
    stream_unref(stream);
}

static void stream_finish_later(struct stream *stream)
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

static bool stream_update_watch(struct stream *stream)
{
    unsigned more = stream->tls != NULL ? tls_wants(stream->tls) : 0;
    if (poller_watch(stream->poller, &stream->watch,
                     POLLER_READ | more | (stream->full ? POLLER_WRITE : 0U)))
        return true;
    stream_set_error(stream, STREAM_CUT, "cannot watch the socket", strerror(errno));
    return false;
}

/* Returns the bytes received; 0: none yet; −1: it ended, and the reason is set. */
static ssize_t stream_receive(struct stream *stream, char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t read = tls_read(stream->tls, bytes, length);
        if (read < 0)
            stream_set_tls_error(stream);
        return read;
    }
    ssize_t got = recv(stream->watch.file, bytes, length, 0);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got == 0)
        stream_set_error(stream, STREAM_CLOSED, "the server closed the connection", NULL);
    else
        stream_set_error(stream, STREAM_CUT, "the connection broke", strerror(errno));
    return -1;
}

static ssize_t stream_transmit(struct stream *stream, const char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t written = tls_write(stream->tls, bytes, length);
        if (written < 0)
            stream_set_tls_error(stream);
        return written;
    }
    ssize_t sent = send(stream->watch.file, bytes, length, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    stream_set_error(stream, STREAM_CUT, "the connection broke", strerror(errno));
    return -1;
}

/* False if the connection failed. */
static bool stream_send(struct stream *stream)
{
    stream->full = false;
    while (stream->out.length > 0 && !stream->full) {
        ssize_t sent =
            stream_transmit(stream, stream->out.bytes + stream->out.start, stream->out.length);
        if (sent < 0)
            return false;
        stream->full = sent == 0;
        buffer_consume(&stream->out, (size_t)sent);
    }
    return stream_update_watch(stream);
}

/* Passes the buffered bytes to the owner; false if too many are left over. */
static bool stream_deliver(struct stream *stream)
{
    size_t used = stream->callbacks.bytes(stream->callbacks.owner,
                                          stream->in.bytes + stream->in.start, stream->in.length);
    if (stream->state != STREAM_OPEN)
        return true;
    ASSERT(used <= stream->in.length);
    buffer_consume(&stream->in, used);
    if (stream->in.length < stream->callbacks.in_max)
        return true;
    stream_set_error(stream, STREAM_CUT, "the server sent more at once than we take", NULL);
    return false;
}

static bool stream_read_in(struct stream *stream)
{
    for (int reads = 0; reads < READS_MOST && stream->state == STREAM_OPEN; reads++) {
        size_t room = stream->callbacks.in_max - stream->in.length;
        if (room > BUFFER_IDLE)
            room = BUFFER_IDLE;
        if (!buffer_reserve(&stream->in, room < BUFFER_FIRST ? room : BUFFER_FIRST)) {
            stream_set_error(stream, STREAM_CUT, "out of memory", NULL);
            return false;
        }
        size_t space = stream->in.size - stream->in.start - stream->in.length;
        if (room > space)
            room = space;
        ssize_t got =
            stream_receive(stream, stream->in.bytes + stream->in.start + stream->in.length, room);
        if (got <= 0)
            return got == 0 &&
                   stream_update_watch(stream); /* TLS may have to write before it reads */
        stream->in.length += (size_t)got;
        if (!stream_deliver(stream))
            return false;
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
    stream->callbacks.opened(stream->callbacks.owner);
}

static void stream_on_ready(void *owner, unsigned what)
{
    struct stream *stream = owner;
    stream_ref(stream);
    if (stream->state != STREAM_OPEN)
        stream_open_ready(stream);
    else if (((what & POLLER_WRITE) != 0 && !stream_send(stream)) ||
             ((what & POLLER_READ) != 0 && !stream_read_in(stream)))
        stream_finish(stream);
    stream_unref(stream);
}

static void stream_on_timer(void *owner)
{
    struct stream *stream = owner;
    stream_ref(stream);
    if (stream->state < STREAM_OPEN)
        stream_open_timeout(stream);
    else if (stream->state == STREAM_ENDING || !stream_read_in(stream))
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
    struct stream_tls *tls = &stream->target.tls;
    const char **text[STREAM_COPIES] = {&stream->target.host, &stream->target.path, &tls->ca_file,
                                        &tls->cert_file,      &tls->key_file,       &tls->name};
    stream->target = *target;
    for (size_t i = 0; i < STREAM_COPIES; i++) {
        if (*text[i] == NULL)
            continue;
        *text[i] = stream->copies[i] = strdup(*text[i]);
        if (stream->copies[i] == NULL)
            return false;
    }
    return true;
}

struct stream *stream_new(struct poller *poller, const struct stream_target *target,
                          const struct stream_callbacks *callbacks)
{
    struct stream *stream = calloc(1, sizeof *stream);
    ASSERT(target->host != NULL || target->path != NULL);
    ASSERT(callbacks->in_max > 0);
    if (stream == NULL)
        return NULL;
    stream->magic = STREAM_MAGIC;
    stream->poller = poller;
    stream->callbacks = *callbacks;
    stream->watch = (struct poller_watch){.file = -1, .ready = stream_on_ready, .owner = stream};
    stream->timer = (struct poller_timer){.due = stream_on_timer, .owner = stream};
    stream->deferred = (struct poller_deferred){.run = stream_on_deferred, .owner = stream};
    if (!copy_target(stream, target)) {
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
    if (stream->state >= STREAM_ENDING)
        return;
    bool fits = length <= stream->callbacks.out_max &&
                stream->out.length <= stream->callbacks.out_max - length;
    if (!fits || !buffer_reserve(&stream->out, length)) {
        stream_set_error(stream, fits ? STREAM_CUT : STREAM_OVERFLOWED,
                         fits ? "out of memory" : "the server does not take what we send", NULL);
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
    if (stream->state == STREAM_OPEN && !stream->full && !stream_send(stream))
        stream_finish_later(stream);
}

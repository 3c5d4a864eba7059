/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stream.h: the bytes of a stream and its end. Callbacks may free the stream, so whoever calls
 * one holds it until it comes back.
 */
#include "io/stream_inside.h"

#include "base/check.h"
#include "base/text.h"
#include "io/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STREAM_MAGIC = 0x57e4,
    BUFFER_FIRST = 4096,
    BUFFER_IDLE = 64 * 1024, /* an empty one that is larger is given back */
    READS_MOST = 16,         /* in one step: others want to be served too */
};

/* ---- words ---- */

static void show_address(const struct stream *stream, struct text *out)
{
    char words[INET6_ADDRSTRLEN] = "";
    const struct addrinfo *address = stream->address;
    if (address == NULL)
        return;
    const struct sockaddr_in *four = (const void *)address->ai_addr;
    const struct sockaddr_in6 *six = (const void *)address->ai_addr;
    const void *bytes =
        address->ai_family == AF_INET6 ? (const void *)&six->sin6_addr : &four->sin_addr;
    if (inet_ntop(address->ai_family, bytes, words, sizeof words) == NULL ||
        strcmp(words, stream->target.host) == 0)
        return;
    text_add(out, " (");
    text_add(out, words);
    text_add(out, ")");
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

void stream_blame(struct stream *stream, enum stream_end end, const char *what, const char *detail)
{
    struct text text;
    text_init(&text, stream->why, sizeof stream->why);
    show_target(stream, &text);
    text_add(&text, ": ");
    text_add(&text, what);
    if (detail != NULL) {
        text_add(&text, " (");
        text_add(&text, detail);
        text_add(&text, ")");
    }
    stream->end = end;
}

void stream_blame_tls(struct stream *stream)
{
    stream_blame(stream, tls_end(stream->tls), tls_why(stream->tls), NULL);
}

/* ---- buffers ---- */

/* By hand and not by realloc(): a password may have passed through, and nothing of it stays. */
static bool set_size(struct stream_bytes *buffer, size_t size)
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

/* Room for so many bytes more; the caller keeps the limit. */
static bool make_room(struct stream_bytes *buffer, size_t more)
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
    return set_size(buffer, size);
}

static void use_up(struct stream_bytes *buffer, size_t length)
{
    buffer->start += length;
    buffer->length -= length;
    if (buffer->length > 0)
        return;
    buffer->start = 0;
    if (buffer->size > BUFFER_IDLE)
        (void)set_size(buffer, 0);
}

/* ---- life ---- */

static void free_now(struct stream *stream)
{
    for (size_t i = 0; i < STREAM_COPIES; i++)
        free(stream->copies[i]);
    stream->in.length = stream->out.length = 0;
    (void)set_size(&stream->in, 0);
    (void)set_size(&stream->out, 0);
    stream->magic = 0;
    free(stream);
}

static void hold(struct stream *stream)
{
    stream->held++;
}

static void let_go(struct stream *stream)
{
    if (--stream->held == 0 && stream->unwanted)
        free_now(stream);
}

void stream_close_file(struct stream *stream)
{
    tls_free(&stream->tls);
    if (stream->watch.file < 0)
        return;
    (void)net_want(stream->net, &stream->watch, 0);
    /* A forked child may have a copy: the server hears of the end all the same. */
    (void)shutdown(stream->watch.file, SHUT_RDWR);
    (void)close(stream->watch.file);
    stream->watch.file = -1;
}

static void stop(struct stream *stream, enum stream_state state)
{
    stream->state = state;
    stream_close_file(stream);
    stream_open_done(stream);
    net_forget_late(&stream->late);
    net_call_at(stream->net, &stream->timer, NET_NEVER);
}

void stream_finish(struct stream *stream)
{
    stop(stream, STREAM_OVER);
    hold(stream); /* the words are its own */
    stream->site.ended(stream->site.owner, stream->end, stream->why);
    let_go(stream);
}

void stream_finish_later(struct stream *stream)
{
    stop(stream, STREAM_ENDING);
    net_call_at(stream->net, &stream->timer, host_boot_ms());
}

void stream_free(struct stream **stream_pointer)
{
    struct stream *stream = *stream_pointer;
    if (stream == NULL)
        return;
    ASSERT(stream->magic == STREAM_MAGIC && !stream->unwanted);
    stop(stream, STREAM_OVER);
    stream->unwanted = true;
    if (stream->held == 0)
        free_now(stream);
    *stream_pointer = NULL;
}

/* ---- bytes ---- */

static bool set_wants(struct stream *stream)
{
    unsigned more = stream->tls != NULL ? tls_wants(stream->tls) : 0;
    if (net_want(stream->net, &stream->watch, NET_READ | more | (stream->full ? NET_WRITE : 0U)))
        return true;
    stream_blame(stream, STREAM_CUT, "the system watches no further socket", strerror(errno));
    return false;
}

/* How many bytes were carried; 0: later; −1: it ended, and the reason is noted. */
static ssize_t receive(struct stream *stream, char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t read = tls_read(stream->tls, bytes, length);
        if (read < 0)
            stream_blame_tls(stream);
        return read;
    }
    ssize_t got = recv(stream->watch.file, bytes, length, 0);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got == 0)
        stream_blame(stream, STREAM_CLOSED, "the server closed the connection", NULL);
    else
        stream_blame(stream, STREAM_CUT, "the connection broke", strerror(errno));
    return -1;
}

static ssize_t transmit(struct stream *stream, const char *bytes, size_t length)
{
    if (stream->tls != NULL) {
        ssize_t written = tls_write(stream->tls, bytes, length);
        if (written < 0)
            stream_blame_tls(stream);
        return written;
    }
    ssize_t sent = send(stream->watch.file, bytes, length, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    stream_blame(stream, STREAM_CUT, "the connection broke", strerror(errno));
    return -1;
}

/* False when it came to an end. */
static bool send_out(struct stream *stream)
{
    stream->full = false;
    while (stream->out.length > 0 && !stream->full) {
        ssize_t sent = transmit(stream, stream->out.bytes + stream->out.start, stream->out.length);
        if (sent < 0)
            return false;
        stream->full = sent == 0;
        use_up(&stream->out, (size_t)sent);
    }
    return set_wants(stream);
}

/* Gives its owner what is there; false when it came to an end. */
static bool hand_in(struct stream *stream)
{
    size_t used = stream->site.bytes(stream->site.owner, stream->in.bytes + stream->in.start,
                                     stream->in.length);
    if (stream->state != STREAM_OPEN)
        return true;
    ASSERT(used <= stream->in.length);
    use_up(&stream->in, used);
    if (stream->in.length < stream->site.keeps)
        return true;
    stream_blame(stream, STREAM_CUT, "the server sent more at once than we take", NULL);
    return false;
}

static bool take_in(struct stream *stream)
{
    for (int reads = 0; reads < READS_MOST && stream->state == STREAM_OPEN; reads++) {
        size_t room = stream->site.keeps - stream->in.length;
        if (room > BUFFER_IDLE)
            room = BUFFER_IDLE;
        if (!make_room(&stream->in, room < BUFFER_FIRST ? room : BUFFER_FIRST)) {
            stream_blame(stream, STREAM_CUT, "memory is short", NULL);
            return false;
        }
        size_t space = stream->in.size - stream->in.start - stream->in.length;
        if (room > space)
            room = space;
        ssize_t got =
            receive(stream, stream->in.bytes + stream->in.start + stream->in.length, room);
        if (got <= 0)
            return got == 0 && set_wants(stream); /* TLS may have to write before it reads */
        stream->in.length += (size_t)got;
        if (!hand_in(stream))
            return false;
        if ((size_t)got < room)
            return true;
    }
    if (stream->state == STREAM_OPEN && stream->tls != NULL && tls_has_more(stream->tls))
        net_call_at(stream->net, &stream->timer, host_boot_ms());
    return true;
}

/* ---- what comes of a step ---- */

void stream_opened(struct stream *stream)
{
    stream_open_done(stream);
    net_call_at(stream->net, &stream->timer, NET_NEVER);
    stream->state = STREAM_OPEN;
    if (!set_wants(stream)) {
        stream_finish(stream);
        return;
    }
    if (stream->out.length > 0)
        net_put_off(stream->net, &stream->late);
    stream->site.opened(stream->site.owner);
}

static void on_ready(void *owner, unsigned what)
{
    struct stream *stream = owner;
    hold(stream);
    if (stream->state != STREAM_OPEN)
        stream_open_ready(stream);
    else if (((what & NET_WRITE) != 0 && !send_out(stream)) ||
             ((what & NET_READ) != 0 && !take_in(stream)))
        stream_finish(stream);
    let_go(stream);
}

static void on_timer(void *owner)
{
    struct stream *stream = owner;
    hold(stream);
    if (stream->state < STREAM_OPEN)
        stream_open_late(stream);
    else if (stream->state == STREAM_ENDING || !take_in(stream))
        stream_finish(stream);
    let_go(stream);
}

static void on_late(void *owner)
{
    stream_flush(owner);
}

/* ---- for its owner ---- */

/* The caller's words may be gone before we need them. False when memory is short. */
static bool copy_target(struct stream *stream, const struct stream_target *target)
{
    struct stream_tls *tls = &stream->target.tls;
    const char **words[STREAM_COPIES] = {&stream->target.host, &stream->target.path, &tls->ca_file,
                                         &tls->cert_file,      &tls->key_file,       &tls->name};
    stream->target = *target;
    for (size_t i = 0; i < STREAM_COPIES; i++) {
        if (*words[i] == NULL)
            continue;
        *words[i] = stream->copies[i] = strdup(*words[i]);
        if (stream->copies[i] == NULL)
            return false;
    }
    return true;
}

struct stream *stream_new(struct net *net, const struct stream_target *target,
                          const struct stream_site *site)
{
    struct stream *stream = calloc(1, sizeof *stream);
    ASSERT(target->host != NULL || target->path != NULL);
    ASSERT(site->keeps > 0);
    if (stream == NULL)
        return NULL;
    stream->magic = STREAM_MAGIC;
    stream->net = net;
    stream->site = *site;
    stream->watch = (struct net_watch){.file = -1, .ready = on_ready, .owner = stream};
    stream->timer = (struct net_timer){.due = on_timer, .owner = stream};
    stream->late = (struct net_late){.run = on_late, .owner = stream};
    if (!copy_target(stream, target)) {
        free_now(stream);
        return NULL;
    }
    if (!stream_open_begin(stream))
        stream_finish_later(stream);
    return stream;
}

bool stream_is_open(const struct stream *stream)
{
    ASSERT(stream->magic == STREAM_MAGIC);
    return stream->state == STREAM_OPEN;
}

void stream_write(struct stream *stream, const char *bytes, size_t length)
{
    ASSERT(stream->magic == STREAM_MAGIC);
    if (stream->state >= STREAM_ENDING)
        return;
    bool fits = length <= stream->site.owes && stream->out.length <= stream->site.owes - length;
    if (!fits || !make_room(&stream->out, length)) {
        stream_blame(stream, fits ? STREAM_CUT : STREAM_OVERFLOWED,
                     fits ? "memory is short" : "the server does not take what we send", NULL);
        stream_finish_later(stream);
        return;
    }
    memcpy(stream->out.bytes + stream->out.start + stream->out.length, bytes, length);
    stream->out.length += length;
    if (stream->state == STREAM_OPEN && !stream->full)
        net_put_off(stream->net, &stream->late);
}

void stream_flush(struct stream *stream)
{
    ASSERT(stream->magic == STREAM_MAGIC);
    net_forget_late(&stream->late);
    if (stream->state == STREAM_OPEN && !stream->full && !send_out(stream))
        stream_finish_later(stream);
}

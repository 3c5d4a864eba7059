/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of a TLS server: see stream_adopt_tls() in stream.h. The handshake has one deadline,
 * which no byte of the peer moves. An end counts as a close only if close_notify was received:
 * anyone between the two can send a FIN.
 */
#include "net/stream_internal.h"

#include "process/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    DISCARD_SIZE = 4096,
    DISCARDS_MOST = 4096, /* more than the kernel's buffer holds */
};

struct stream *stream_adopt_tls(struct poller *poller, int file, const char *name,
                                struct tls_server *server, int64_t timeout_ms,
                                const struct stream_callbacks *callbacks)
{
    struct stream *stream = stream_create(poller, callbacks);
    if (stream == NULL)
        return NULL;
    stream->name = strdup(name);
    stream->tls = tls_accept(server, file);
    if (stream->name == NULL || stream->tls == NULL) {
        tls_free(&stream->tls);
        stream_destroy(stream);
        return NULL;
    }
    stream->watch.file = file;
    stream->state = STREAM_HANDSHAKING;
    poller_call_at(poller, &stream->timer, host_boot_ms() + timeout_ms);
    if (!poller_watch(poller, &stream->watch, POLLER_READ)) {
        stream_set_error(stream, STREAM_CUT, "cannot watch the socket", strerror(errno));
        stream_finish_later(stream);
    }
    return stream;
}

/* A socket that is closed with unread bytes resets the connection, and the peer may lose the alert
 * that states what is wrong. */
static void stream_accept_fail(struct stream *stream)
{
    char bytes[DISCARD_SIZE];
    for (int i = 0; i < STREAM_READS_MOST; i++) {
        if (recv(stream->watch.file, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            break;
    }
    stream_finish(stream);
}

void stream_accept_ready(struct stream *stream)
{
    ssize_t done = tls_handshake(stream->tls);
    if (done > 0) {
        stream_opened(stream);
    } else if (done < 0) {
        stream_set_tls_error(stream);
        stream_accept_fail(stream);
    } else if (!poller_watch(stream->poller, &stream->watch, tls_wants(stream->tls))) {
        stream_set_error(stream, STREAM_CUT, "cannot watch the socket", strerror(errno));
        stream_finish(stream);
    }
}

void stream_accept_timeout(struct stream *stream)
{
    stream_set_error(stream, STREAM_CUT, "the TLS handshake is not done in time", NULL);
    stream_accept_fail(stream);
}

bool stream_seek_close_notify(struct stream *stream)
{
    char bytes[DISCARD_SIZE];
    ssize_t got = 1;
    for (int i = 0; got > 0 && i < DISCARDS_MOST; i++)
        got = tls_read(stream->tls, bytes, sizeof bytes);
    explicit_bzero(bytes, sizeof bytes); /* may contain a password */
    if (got >= 0 || tls_end(stream->tls) != STREAM_CLOSED)
        return false;
    stream_set_tls_error(stream);
    return true;
}

const char *stream_peer_name(const struct stream *stream)
{
    return stream->tls != NULL ? tls_peer_name(stream->tls) : NULL;
}

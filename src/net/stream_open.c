/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a stream: resolves the name and tries its addresses in turn until one accepts. Divides the
 * remaining timeout among the remaining addresses, so that a dead one does not consume the time of
 * the others.
 */
#include "net/stream_internal.h"

#include "process/host.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ADDRESSES_MOST = 16, /* tried for one name */
    IDLE_S = 15,         /* keepalive: the idle time before the first probe, … */
    PROBE_S = 5,         /* … the interval of probes … */
    PROBES = 3,          /* … and their count; sent data must be acknowledged in the same time */
};

/* A failure here only delays the detection of a dead connection. */
static void set_socket_options(int file)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, (IDLE_S + PROBE_S * PROBES) * 1000},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(file, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

static bool stream_open_fail(struct stream *stream, const char *what, int error)
{
    stream_close_file(stream);
    stream_set_error(stream, STREAM_CUT, what, error != 0 ? strerror(error) : NULL);
    return false;
}

static bool fail_connect(struct stream *stream, int error)
{
    bool refused = error == ECONNREFUSED || error == ENOENT;
    (void)stream_open_fail(
        stream, refused ? "no connection; is a server running there?" : "no connection", error);
    stream->remote->refusals += refused ? 1 : 0;
    if (refused && stream->remote->refusals >= stream->remote->tried)
        stream->end = STREAM_REFUSED;
    return false;
}

static bool connect_to(struct stream *stream, const struct sockaddr *address, socklen_t length)
{
    int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return stream_open_fail(stream, "cannot create a socket", errno);
    stream->watch.file = file;
    stream->state = STREAM_CONNECTING;
    if (address->sa_family != AF_UNIX)
        set_socket_options(file);
    if (connect(file, address, length) != 0 && errno != EINPROGRESS && errno != EINTR)
        return fail_connect(stream, errno);
    return poller_watch(stream->poller, &stream->watch, POLLER_WRITE) ||
           stream_open_fail(stream, "cannot watch the socket", errno);
}

static bool connect_unix(struct stream *stream)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(stream->remote->target.path) >= sizeof address.sun_path)
        return stream_open_fail(stream, "the path is too long for a unix socket", /* error= */ 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", stream->remote->target.path);
    return connect_to(stream, (const struct sockaddr *)&address, sizeof address);
}

/* The number of addresses left, including the one that is tried next. */
static int64_t count_left(const struct stream *stream)
{
    int64_t count = 1, most = ADDRESSES_MOST - (int64_t)stream->remote->tried;
    const struct addrinfo *next = stream->remote->address->ai_next;
    for (; next != NULL && count < most; next = next->ai_next)
        count++;
    return count;
}

static bool fail_timeout(struct stream *stream)
{
    char message[64];
    (void)snprintf(message, sizeof message, "not open within %lld ms; is the host reachable?",
                   (long long)stream->remote->target.timeout_ms);
    return stream_open_fail(stream, message, /* error= */ 0);
}

/* False if none is left. */
static bool choose_next(struct stream *stream)
{
    if (stream->remote->addresses == NULL || stream->remote->tried == ADDRESSES_MOST)
        return false;
    struct addrinfo *next =
        stream->remote->tried == 0 ? stream->remote->addresses : stream->remote->address->ai_next;
    if (next == NULL)
        return false;
    stream->remote->address = next;
    return true;
}

/* Tries the next address; false if none is left, with the reason in `why`. */
static bool stream_open_next(struct stream *stream)
{
    while (choose_next(stream)) {
        int64_t now_ms = host_boot_ms();
        if (now_ms >= stream->remote->opens_by_ms)
            return fail_timeout(stream);
        poller_call_at(stream->poller, &stream->timer,
                       now_ms + (stream->remote->opens_by_ms - now_ms) / count_left(stream));
        stream->remote->tried++;
        if (connect_to(stream, stream->remote->address->ai_addr,
                       stream->remote->address->ai_addrlen))
            return true;
    }
    return false;
}

static void on_resolved(void *owner, int error, int reason, struct addrinfo *addresses)
{
    struct stream *stream = owner;
    stream->remote->addresses = addresses;
    lookup_free(&stream->remote->lookup);
    if (error == EAI_NONAME)
        stream_set_error(stream, STREAM_CUT, "no such host; is its name right?", NULL);
    else if (error != 0)
        stream_set_error(stream, STREAM_CUT, "its name cannot be looked up",
                         error == EAI_SYSTEM ? strerror(reason) : gai_strerror(error));
    if (error != 0 || !stream_open_next(stream))
        stream_finish(stream);
}

bool stream_open_begin(struct stream *stream)
{
    stream->remote->opens_by_ms = host_boot_ms() + stream->remote->target.timeout_ms;
    poller_call_at(stream->poller, &stream->timer, stream->remote->opens_by_ms);
    if (stream->remote->target.path != NULL)
        return connect_unix(stream);
    stream->remote->addresses =
        lookup_address(stream->remote->target.host, stream->remote->target.port);
    if (stream->remote->addresses != NULL)
        return stream_open_next(stream);
    stream->remote->lookup = lookup_new(stream->poller, stream->remote->target.host,
                                        stream->remote->target.port, on_resolved, stream);
    return stream->remote->lookup != NULL ||
           stream_open_fail(stream,
                            "its name cannot be looked up: too many look-ups, or out of memory",
                            /* error= */ 0);
}

/* If no server listens on a local port, the kernel may connect the socket to itself. */
static bool is_self_connect(int file)
{
    struct sockaddr_storage ours = {0}, theirs = {0};
    socklen_t our_length = sizeof ours, their_length = sizeof theirs;
    return getsockname(file, (struct sockaddr *)&ours, &our_length) == 0 &&
           getpeername(file, (struct sockaddr *)&theirs, &their_length) == 0 &&
           ours.ss_family != AF_UNIX && our_length == their_length &&
           memcmp(&ours, &theirs, our_length) == 0;
}

static void try_next(struct stream *stream)
{
    if (!stream_open_next(stream))
        stream_finish(stream);
}

static void stream_handshake(struct stream *stream)
{
    ssize_t done = tls_handshake(stream->tls);
    if (done > 0) {
        stream_opened(stream);
    } else if (done == 0) {
        if (poller_watch(stream->poller, &stream->watch, tls_wants(stream->tls)))
            return;
        (void)stream_open_fail(stream, "cannot watch the socket", errno);
        try_next(stream);
    } else {
        stream_set_tls_error(stream);
        stream_close_file(stream);
        /* Another address of the same name has the same certificates. */
        if (stream->end == STREAM_UNTRUSTED)
            stream_finish(stream);
        else
            try_next(stream);
    }
}

static void begin_tls(struct stream *stream)
{
    char message[STREAM_ERROR_MAX];
    struct text why;
    text_init(&why, message, sizeof message);
    const char *host = stream->remote->target.path == NULL ? stream->remote->target.host : NULL;
    stream->tls = tls_new(&stream->remote->target.tls, host, stream->watch.file, &why);
    if (stream->tls == NULL) {
        stream_set_error(stream, STREAM_UNTRUSTED, message, NULL);
        stream_finish(stream);
        return;
    }
    stream->state = STREAM_HANDSHAKING;
    stream_handshake(stream);
}

static void on_connected(struct stream *stream)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(stream->watch.file, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if (error == 0 && is_self_connect(stream->watch.file))
        error = ECONNREFUSED;
    if (error != 0) {
        (void)fail_connect(stream, error);
        try_next(stream);
    } else if (stream->remote->target.tls.on) {
        begin_tls(stream);
    } else {
        stream_opened(stream);
    }
}

void stream_open_ready(struct stream *stream)
{
    if (stream->state == STREAM_CONNECTING)
        on_connected(stream);
    else
        stream_handshake(stream);
}

void stream_open_timeout(struct stream *stream)
{
    (void)fail_timeout(stream);
    try_next(stream);
}

void stream_open_done(struct stream *stream)
{
    if (stream->remote == NULL)
        return;
    lookup_free(&stream->remote->lookup);
    if (stream->remote->addresses != NULL)
        freeaddrinfo(stream->remote->addresses);
    stream->remote->addresses = stream->remote->address = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See listener.h: accepting. Linux copies the options of the listening socket to every accepted
 * one, so a connection costs one system call.
 */
#include "net/listener_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    LISTENER_MAGIC = 0x115e,
    ACCEPTS_MOST = 64, /* in one step, so that connections do not starve */
    STARVED_MS = 100,
    KEEP_IDLE_S = 30, /* a peer that vanished is noticed after a minute */
    KEEP_PROBE_S = 10,
    KEEP_PROBES = 3,
};

union listener_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
};

/* ---- accepting ---- */

/* An IPv4 peer of an IPv6 socket is shown as IPv4. */
static void listener_show_host(const union listener_address *address, char *out)
{
    const void *bytes = &address->four.sin_addr;
    int family = AF_INET;
    if (address->any.sa_family == AF_INET6) {
        bool mapped = IN6_IS_ADDR_V4MAPPED(&address->six.sin6_addr);
        bytes = mapped ? &address->six.sin6_addr.s6_addr[12] : address->six.sin6_addr.s6_addr;
        family = mapped ? AF_INET : AF_INET6;
    }
    if (inet_ntop(family, bytes, out, LISTENER_ADDRESS_MAX) == NULL)
        text_copy(out, LISTENER_ADDRESS_MAX, "?");
}

static void listener_read_peer(int file, const union listener_address *address,
                               struct listener_peer *out)
{
    struct ucred credentials = {.pid = -1, .uid = (uid_t)-1};
    socklen_t length = sizeof credentials;
    *out = (struct listener_peer){.uid = (unsigned)-1, .pid = -1};
    if (address->any.sa_family != AF_UNIX) {
        listener_show_host(address, out->address);
        return;
    }
    text_copy(out->address, sizeof out->address, "unix");
    out->local = true;
    if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
        out->uid = credentials.uid;
        out->pid = credentials.pid > 0 ? credentials.pid : -1;
    }
}

static void listener_update_watch(struct listener *listener)
{
    bool on = !listener->paused && !listener->starved;
    if (poller_watch(listener->poller, &listener->watch, on ? POLLER_READ : 0U))
        return;
    listener->starved = true; /* out of memory: the timer tries again */
    poller_call_at(listener->poller, &listener->timer, host_boot_ms() + STARVED_MS);
}

static void listener_starve(struct listener *listener)
{
    listener->starved = true;
    listener_update_watch(listener);
    poller_call_at(listener->poller, &listener->timer, host_boot_ms() + STARVED_MS);
}

static void listener_on_timer(void *owner)
{
    struct listener *listener = owner;
    listener->starved = false;
    listener_update_watch(listener);
}

/* False if no connection is waiting. */
static bool listener_accept_one(struct listener *listener)
{
    union listener_address address = {.any.sa_family = AF_UNIX};
    socklen_t length = sizeof address;
    struct listener_peer peer;
    int file = accept4(listener->watch.file, &address.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) {
        if (listener->local)
            address.any.sa_family = AF_UNIX; /* an unnamed peer has no address */
        listener_read_peer(file, &address, &peer);
        listener->callbacks.accepted(listener->callbacks.owner, file, &peer);
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        listener_starve(listener);
        return false;
    default: /* ECONNABORTED, or another error of that connection */
        return true;
    }
}

static void listener_destroy(struct listener *listener)
{
    listener->magic = 0;
    free(listener);
}

static void listener_on_ready(void *owner, unsigned what)
{
    struct listener *listener = owner;
    (void)what;
    listener->accepting = true;
    for (int i = 0; i < ACCEPTS_MOST && !listener->paused && !listener->freed; i++) {
        if (!listener_accept_one(listener))
            break;
    }
    listener->accepting = false;
    if (listener->freed)
        listener_destroy(listener);
}

/* ---- lifetime ---- */

/* A failure here only delays the detection of a dead connection. */
static void listener_set_options(int file)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_PROBE_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, (KEEP_IDLE_S + KEEP_PROBE_S * KEEP_PROBES) * 1000},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(file, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

static bool listener_prepare(struct listener *listener, int file)
{
    union listener_address address = {0};
    int listens = 0, flags = fcntl(file, F_GETFL);
    socklen_t length = sizeof listens, address_length = sizeof address;
    if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 ||
        getsockname(file, &address.any, &address_length) != 0 || flags < 0 ||
        fcntl(file, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(file, F_SETFD, FD_CLOEXEC) != 0)
        return false;
    if (listens == 0) {
        errno = EINVAL;
        return false;
    }
    listener->local = address.any.sa_family == AF_UNIX;
    if (!listener->local)
        listener_set_options(file);
    if (address.any.sa_family == AF_INET)
        listener->port = ntohs(address.four.sin_port);
    else if (address.any.sa_family == AF_INET6)
        listener->port = ntohs(address.six.sin6_port);
    return true;
}

struct listener *listener_new(struct poller *poller, int file,
                              const struct listener_callbacks *callbacks)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener != NULL) {
        listener->magic = LISTENER_MAGIC;
        listener->poller = poller;
        listener->callbacks = *callbacks;
        listener->lock = -1;
        listener->watch =
            (struct poller_watch){.file = file, .ready = listener_on_ready, .owner = listener};
        listener->timer = (struct poller_timer){.due = listener_on_timer, .owner = listener};
        if (listener_prepare(listener, file) && poller_watch(poller, &listener->watch, POLLER_READ))
            return listener;
    }
    int error = errno;
    (void)close(file);
    free(listener);
    errno = error;
    return NULL;
}

struct listener *listener_adopt(struct poller *poller, int file,
                                const struct listener_callbacks *callbacks)
{
    return listener_new(poller, file, callbacks);
}

void listener_free(struct listener **listener_pointer)
{
    struct listener *listener = *listener_pointer;
    if (listener == NULL)
        return;
    ASSERT(listener->magic == LISTENER_MAGIC && !listener->freed);
    *listener_pointer = NULL;
    listener_remove_path(listener);
    (void)poller_watch(listener->poller, &listener->watch, 0);
    poller_call_at(listener->poller, &listener->timer, POLLER_NEVER);
    (void)close(listener->watch.file);
    listener->freed = true;
    if (!listener->accepting)
        listener_destroy(listener);
}

/* ---- queries ---- */

void listener_set_paused(struct listener *listener, bool paused)
{
    ASSERT(listener->magic == LISTENER_MAGIC);
    listener->paused = paused;
    listener_update_watch(listener);
}

bool listener_is_loopback(const struct listener *listener)
{
    union listener_address address = {0};
    socklen_t length = sizeof address;
    ASSERT(listener->magic == LISTENER_MAGIC);
    if (listener->local)
        return true;
    if (getsockname(listener->watch.file, &address.any, &length) != 0)
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl(address.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (address.any.sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &address.six.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}

void listener_describe(const struct listener *listener, struct text *out)
{
    union listener_address address = {0};
    char host[LISTENER_ADDRESS_MAX] = "?";
    socklen_t length = sizeof address;
    ASSERT(listener->magic == LISTENER_MAGIC);
    bool known = getsockname(listener->watch.file, &address.any, &length) == 0;
    if (listener->local) {
        size_t most = length > offsetof(struct sockaddr_un, sun_path)
                          ? length - offsetof(struct sockaddr_un, sun_path)
                          : 0;
        text_add(out, "unix:");
        if (known)
            text_add_clean(out, address.local.sun_path, strnlen(address.local.sun_path, most));
        return;
    }
    if (known)
        listener_show_host(&address, host);
    bool six = strchr(host, ':') != NULL;
    TEXT_JOIN(out, six ? "[" : "", host, six ? "]:" : ":");
    text_add_u64(out, listener->port);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a listening TCP socket; see listener.h. */
#include "net/listener_internal.h"

#include "net/lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_MAX = 256, BACKLOG = 4096 };

struct listener_place {
    char host[HOST_MAX]; /* "": all interfaces */
    uint16_t port;
};

static bool place_read_port(const char *digits, uint16_t *out)
{
    unsigned port = 0;
    size_t length = strlen(digits);
    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        port = port * 10 + (unsigned)(digits[i] - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX;
}

/* False if it is none of the forms that listener_open_tcp() names. */
static bool place_read(const char *address, struct listener_place *out)
{
    const char *colon = strrchr(address, ':');
    const char *host = address, *end = colon;
    if (colon == NULL) {
        text_copy(out->host, sizeof out->host, "127.0.0.1");
        return place_read_port(address, &out->port);
    }
    if (*host == '[') {
        host++;
        end = colon - 1;
        if (end <= host || *end != ']')
            return false;
    } else if (memchr(host, ':', (size_t)(end - host)) != NULL) {
        return false; /* an IPv6 address needs brackets: its last group looks like a port */
    }
    size_t length = (size_t)(end - host);
    if (length >= sizeof out->host)
        return false;
    memcpy(out->host, host, length);
    out->host[length] = '\0';
    if (strcmp(out->host, "localhost") == 0)
        text_copy(out->host, sizeof out->host, "127.0.0.1");
    return place_read_port(colon + 1, &out->port);
}

/* Returns the socket, or -1 with errno. */
static int listener_bind(const struct sockaddr *address, socklen_t length)
{
    int on = 1, off = 0;
    int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return -1;
    (void)setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6) /* [::] accepts IPv4 too */
        (void)setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(file, address, length) == 0 && listen(file, BACKLOG) == 0)
        return file;
    int error = errno;
    (void)close(file);
    errno = error;
    return -1;
}

static int listener_bind_all(uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int file = listener_bind((const struct sockaddr *)&six, sizeof six);
    if (file < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) /* a host without IPv6 */
        file = listener_bind((const struct sockaddr *)&four, sizeof four);
    return file;
}

/* Tries the addresses of a host in turn. */
static int listener_bind_host(const struct listener_place *place, const char **out_wrong)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *addresses = lookup_address(place->host, place->port);
    int file = -1, error = 0;
    int wrong = addresses == NULL ? getaddrinfo(place->host, NULL, &hints, &addresses) : 0;
    if (wrong != 0) {
        *out_wrong = wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong);
        return -1;
    }
    for (const struct addrinfo *next = addresses; next != NULL && file < 0; next = next->ai_next) {
        if (next->ai_family == AF_INET6)
            ((struct sockaddr_in6 *)(void *)next->ai_addr)->sin6_port = htons(place->port);
        else if (next->ai_family == AF_INET)
            ((struct sockaddr_in *)(void *)next->ai_addr)->sin_port = htons(place->port);
        file = listener_bind(next->ai_addr, next->ai_addrlen);
        error = errno;
    }
    freeaddrinfo(addresses);
    errno = error;
    return file;
}

struct listener *listener_open_tcp(struct poller *poller, const char *address,
                                   const struct listener_callbacks *callbacks, struct text *why)
{
    struct listener_place place = {0};
    struct listener *listener = NULL;
    const char *wrong = NULL;
    if (!place_read(address, &place)) {
        TEXT_JOIN(why, "usage: ", address,
                  ": not an address to listen at; write HOST:PORT, [IPV6]:PORT, ", ":PORT or PORT");
        return NULL;
    }
    int file =
        place.host[0] == '\0' ? listener_bind_all(place.port) : listener_bind_host(&place, &wrong);
    if (file >= 0)
        listener = listener_new(poller, file, callbacks);
    if (listener != NULL)
        return listener;
    TEXT_JOIN(why, address, ": cannot listen: ", wrong != NULL ? wrong : strerror(errno));
    if (wrong == NULL && errno == EADDRINUSE)
        text_add(why, "; is another server running there?");
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that accept connections: TCP, a unix socket, or one that another program opened. Must not
 * read or write on a connection: its owner makes a stream of it (stream_adopt()).
 */
#ifndef LEASEHOLD_NET_LISTENER_H
#define LEASEHOLD_NET_LISTENER_H

#include "base/text.h"
#include "net/poller.h"

enum { LISTENER_ADDRESS_MAX = 64 };

struct listener;

struct listener_peer {
    bool local;                         /* a unix socket */
    unsigned uid;                       /* of a unix peer, … */
    int pid;                            /* … or -1 */
    char address[LISTENER_ADDRESS_MAX]; /* without the port: "127.0.0.1", "unix" */
};

struct listener_callbacks {
    /* A new connection: non-blocking, close-on-exec, TCP_NODELAY, keep-alive. The callee owns the
     * file; it may pause or free the listener. */
    void (*accepted)(void *owner, int file, const struct listener_peer *peer);
    void *owner;
};

/* `address`: "127.0.0.1:7379", "[::1]:0", "localhost:7379", ":7379" (all interfaces), "7379" (the
 * loopback). Any other name is looked up, which may block. NULL, with the reason, on failure. */
struct listener *listener_open_tcp(struct poller *poller, const char *address,
                                   const struct listener_callbacks *callbacks, struct text *why);

enum listener_unix_result { LISTENER_OPEN, LISTENER_IN_USE, LISTENER_FAILED };

/* `mode` is that of the file, 0600: private. Replaces a socket file at which no process accepts,
 * never another kind of file. A locked file beside it, PATH.lock, makes sure that only one of
 * several processes opens it. */
enum listener_unix_result listener_open_unix(struct poller *poller, const char *path, unsigned mode,
                                             const struct listener_callbacks *callbacks,
                                             struct listener **out, struct text *why);

/* A listening socket that another program opened; it is closed in any case. NULL if it does not
 * listen, or when out of memory. */
struct listener *listener_adopt(struct poller *poller, int file,
                                const struct listener_callbacks *callbacks);

/* True if no other host can connect: a loopback address, or a unix socket. */
bool listener_is_loopback(const struct listener *listener);
uint16_t listener_port(const struct listener *listener); /* 0: unix */
/* "127.0.0.1:7379", "[::1]:7379", "unix:/path" */
void listener_describe(const struct listener *listener, struct text *out);
/* Leaves new connections to the kernel's backlog: at the limit of connections. */
void listener_set_paused(struct listener *listener, bool paused);
/* Removes its unix socket file if that is still its own. Accepts NULL. */
void listener_free(struct listener **listener);

#endif

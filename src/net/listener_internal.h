/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by listener.c, which accepts connections, listener_tcp.c and listener_unix.c, which
 * open the sockets. No
 * other file may include it.
 */
#ifndef LEASEHOLD_NET_LISTENER_INTERNAL_H
#define LEASEHOLD_NET_LISTENER_INTERNAL_H

#include "net/listener.h"

#include <sys/types.h>

struct listener {
    uint32_t magic;
    struct poller *poller;
    struct listener_callbacks callbacks;
    struct poller_watch watch;
    struct poller_timer timer; /* the end of `starved` */
    bool paused;               /* by the owner */
    bool starved;              /* out of descriptors or memory */
    bool accepting, freed;     /* freed by a callback: destroyed when that returns */
    bool local;
    uint16_t port;
    char *path; /* of the unix socket file that is ours, or NULL … */
    dev_t device;
    ino_t inode;
    int lock; /* … with its locked file, or -1 */
};

/* listener.c: takes the listening socket, which it closes on failure. NULL, with errno. */
struct listener *listener_new(struct poller *poller, int file,
                              const struct listener_callbacks *callbacks);
/* listener_unix.c */
void listener_remove_path(struct listener *listener);

#endif

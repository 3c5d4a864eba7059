/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects the end of another session: a thread blocks in the kernel until the lock of that session
 * is free, then sends an empty wake-up (wakeup.h) to our own session. That only makes its reader
 * read again: session_lives() decides, and it ignores the read lock that the thread takes.
 * Best effort: if there is no thread or FIFO, no wake-up comes, and the fallback poll remains.
 *
 * Must not block its caller: a thread that waits for an outdated session is cancelled.
 */
#ifndef LEASEHOLD_DISK_SESSION_WATCH_H
#define LEASEHOLD_DISK_SESSION_WATCH_H

#include "disk/wakeup.h"

#include <fcntl.h>
#include <pthread.h>

/* The thread sleeps this long before it blocks, so that a short wait costs only a mutex. */
enum { SESSION_WATCH_SETTLE_MS = 10 };

struct session_watch {
    const struct disk *disk;
    int file; /* the caller owns it */
    uint64_t own;
    bool ready; /* mutex and condition exist */
    bool runs;  /* the thread must be joined */
    pthread_t thread;
    struct flock lock;     /* the thread's */
    pthread_mutex_t mutex; /* protects what follows */
    pthread_cond_t changed;
    bool idle, ending, ended;
    uint64_t serial;  /* of the last change */
    uint64_t session; /* the session to wait for; 0: none */
    uint64_t blocked; /* the session for which the thread blocks; 0: it does not. It writes this */
};

/* `file` is an open file of the session locks; it and `disk` must stay valid. On failure the watch
 * does nothing. */
void session_watch_init(struct session_watch *watch, const struct disk *disk, int file,
                        uint64_t own);
/* Ends the thread, if it belongs to this process. */
void session_watch_done(struct session_watch *watch);
/* Watches that session from now on, and no other; 0: none. */
void session_watch_set(struct session_watch *watch, uint64_t session);
/* True if the session that was set last has ended. */
bool session_watch_has_ended(struct session_watch *watch);

#endif

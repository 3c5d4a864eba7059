/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches descriptors and timers for the client's loop and the drivers of network stores, behind
 * one descriptor that another loop can watch. Times are those of host_boot_ms(), which includes
 * suspend. One thread at a time. Callbacks run only in poller_step() and poller_run_deferred(), and
 * must not call poller_step(), poller_wait() or poller_free().
 */
#ifndef LEASEHOLD_NET_POLLER_H
#define LEASEHOLD_NET_POLLER_H

#include "base/heap.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

#define POLLER_NEVER INT64_MAX

enum {
    POLLER_READ = 1,
    POLLER_WRITE = 2,
    POLLER_HANGUP = 4, /* the peer has closed, whatever is left to read; part of POLLER_READ */
    POLLER_EDGE = 8,   /* with POLLER_READ: only what arrives is reported, and may stay unread */
};
enum { POLLER_SCRATCH = 64 * 1024 };

struct poller;

/* In the caller's memory; `poller` and `wants` are zero before the first use. */
struct poller_watch {
    struct poller *poller;
    int file;
    unsigned wants; /* 0: not watched */
    void (*ready)(void *owner, unsigned what);
    void *owner;
};

struct poller_timer {
    struct poller *poller;
    struct heap_node node;
    int64_t at_ms;
    void (*due)(void *owner);
    void *owner;
};

/* A callback that runs once, at the end of a step, after all descriptors and timers. */
struct poller_deferred {
    struct poller *poller;
    struct list_node node;
    bool queued;
    void (*run)(void *owner);
    void *owner;
};

/* NULL when out of memory or descriptors. */
struct poller *poller_new(void);
/* All watches, timers and deferred callbacks must have been removed. Accepts NULL. */
void poller_free(struct poller **poller);

int poller_fd(const struct poller *poller); /* readable when a step has work to do */
/* Sleeps until that descriptor is readable (true), at most that long. Wakes faster than poll() or a
 * nested epoll, which wake the thread indirectly, on an idle core. */
bool poller_wait_fd(int file, int most_ms);
/* Sleeps until a step has work to do, at most that long (-1: no limit). The next step handles the
 * events found here and polls no further. Another thread may call poller_call_at() meanwhile. */
void poller_wait(struct poller *poller, int most_ms);
/* Handles descriptors first, then timers, so that a reply that arrived in time counts even if this
 * step is late; then deferred callbacks. */
void poller_step(struct poller *poller);
/* A step then runs deferred callbacks also after each so many watches. 0: only at its end. */
void poller_set_burst(struct poller *poller, unsigned watches);
/* Runs only the deferred callbacks. */
void poller_run_deferred(struct poller *poller);

/* Replaces the previous interest; 0 removes it, and is required before the file is closed. False if
 * epoll fails. */
bool poller_watch(struct poller *poller, struct poller_watch *watch, unsigned wants);
/* A later call replaces the earlier one; POLLER_NEVER cancels it. */
void poller_call_at(struct poller *poller, struct poller_timer *timer, int64_t at_ms);
/* Runs at the end of the current or the next step. The descriptor does not become readable, so a
 * caller outside of a step must ensure that a step or poller_run_deferred() follows. */
void poller_defer(struct poller *poller, struct poller_deferred *deferred);
void poller_cancel_deferred(struct poller_deferred *deferred);
/* POLLER_SCRATCH bytes that all callbacks share, valid until the callback returns; NULL when out of
 * memory. */
char *poller_scratch(struct poller *poller);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client's loop and the drivers of network stores stand on: descriptors to watch and times
 * to be called at, in one descriptor that another loop can watch. poller_step() does what there is
 * to do and returns. Times are those of host_boot_ms(), which also runs in suspend. One thread at a
 * time; callbacks come from poller_step() only, and may call anything here but poller_step(),
 * poller_wait() and poller_free().
 */
#ifndef LEASEHOLD_NET_POLLER_H
#define LEASEHOLD_NET_POLLER_H

#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>

#define POLLER_NEVER INT64_MAX

enum { POLLER_READ = 1, POLLER_WRITE = 2 };

struct poller;

/* In its user's memory; all 0 before it is first used. */
struct poller_watch {
    struct poller *poller;
    int file;
    unsigned wants; /* 0: is not watched */
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

/* Something to be done at the end of a step, once, when all that the step brought is known. */
struct poller_deferred {
    struct poller *poller;
    struct poller_deferred *next, *before;
    bool queued;
    void (*run)(void *owner);
    void *owner;
};

/* NULL when memory or descriptors are short. */
struct poller *poller_new(void);
/* Everything that stood on it is gone already. NULL is fine. */
void poller_free(struct poller **poller);
/* Sets the timer at every change. Otherwise the net may wake up for a time that was replaced by a
 * later one: that costs less where times change often. */
void poller_set_exact(struct poller *poller);

int poller_fd(const struct poller *poller); /* readable when a step has something to do */
/* Sleeps until it is (true), or so long. Whoever polls the descriptor, or has another epoll look at
 * it, is woken by a detour, and on a core that was asleep. */
bool poller_wait_fd(int file, int most_ms);
/* Sleeps until there is something to do, so long at most (-1: without limit). The next step takes
 * what it found and asks the system no more. Another thread may call poller_call_at() meanwhile. */
void poller_wait(struct poller *poller, int most_ms);
/* Descriptors first, then times, so that what came in time counts although we were late; then what
 * was put off to the end. */
void poller_step(struct poller *poller);
/* Only what was put off. */
void poller_run_deferred(struct poller *poller);

/* Replaces what was wanted before; 0 ends it, and must be said before the file is closed. False
 * when the system refuses. */
bool poller_watch(struct poller *poller, struct poller_watch *watch, unsigned wants);
/* A later call replaces the earlier one; POLLER_NEVER ends it. */
void poller_call_at(struct poller *poller, struct poller_timer *timer, int64_t at_ms);
/* Of this step, or of the next one when none is on its way: the descriptor does not tell of it, so
 * who puts off something outside of a step takes care that one follows, or poller_run_deferred().
 */
void poller_defer(struct poller *poller, struct poller_deferred *deferred);
void poller_cancel_deferred(struct poller_deferred *deferred);

#endif

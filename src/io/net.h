/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client's loop and the drivers of network stores stand on: descriptors to watch and times
 * to be called at, in one descriptor that another loop can watch. net_step() does what there is to
 * do and returns. Times are those of host_boot_ms(), which also runs in suspend. One thread at a
 * time; callbacks come from net_step() only, and may call anything here but net_step(), net_wait()
 * and net_free().
 */
#ifndef LEASEHOLD_IO_NET_H
#define LEASEHOLD_IO_NET_H

#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>

#define NET_NEVER INT64_MAX

enum { NET_READ = 1, NET_WRITE = 2 };

struct net;

/* In its user's memory; all 0 before it is first used. */
struct net_watch {
    struct net *net;
    int file;
    unsigned wants; /* 0: is not watched */
    void (*ready)(void *owner, unsigned what);
    void *owner;
};

struct net_timer {
    struct net *net;
    struct heap_node node;
    int64_t at_ms;
    void (*due)(void *owner);
    void *owner;
};

/* Something to be done at the end of a step, once, when all that the step brought is known. */
struct net_late {
    struct net *net;
    struct net_late *next, *before;
    bool waits;
    void (*run)(void *owner);
    void *owner;
};

/* NULL when memory or descriptors are short. */
struct net *net_new(void);
/* Everything that stood on it is gone already. NULL is fine. */
void net_free(struct net **net);
/* Sets the timer at every change. Otherwise the net may wake up for a time that was replaced by a
 * later one: that costs less where times change often. */
void net_set_exact(struct net *net);

int net_fd(const struct net *net); /* readable when a step has something to do */
/* Sleeps until it is (true), or so long. Whoever polls the descriptor, or has another epoll look at
 * it, is woken by a detour, and on a core that was asleep. */
bool net_rest(int file, int most_ms);
/* Sleeps until there is something to do, so long at most (-1: without limit). The next step takes
 * what it found and asks the system no more. Another thread may call net_call_at() meanwhile. */
void net_wait(struct net *net, int most_ms);
/* Descriptors first, then times, so that what came in time counts although we were late; then what
 * was put off to the end. */
void net_step(struct net *net);
/* Only what was put off. */
void net_catch_up(struct net *net);

/* Replaces what was wanted before; 0 ends it, and must be said before the file is closed. False
 * when the system refuses. */
bool net_want(struct net *net, struct net_watch *watch, unsigned wants);
/* A later call replaces the earlier one; NET_NEVER ends it. */
void net_call_at(struct net *net, struct net_timer *timer, int64_t at_ms);
/* Of this step, or of the next one when none is on its way: the descriptor does not tell of it, so
 * who puts off something outside of a step takes care that one follows, or net_catch_up(). */
void net_put_off(struct net *net, struct net_late *late);
void net_forget_late(struct net_late *late);

#endif

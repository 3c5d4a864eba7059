/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop: descriptors to listen to, one time to be woken at, and tasks that other threads hand
 * in. Deadlines come first: whatever woke the loop, `due` is called before anything else when its
 * time has come, on a clock that also runs in suspend. Knows nothing about leases.
 *
 * loop_post(), loop_stop() and loop_fd() may be called from any thread, everything else from the
 * one that runs the loop, or from one that has entered it.
 */
#ifndef LEASEHOLD_NET_LOOP_H
#define LEASEHOLD_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_NEVER INT64_MAX

enum { LOOP_LISTENERS_MAX = 16 };

struct loop;

/*
 * Something to be done in the loop. It is its poster's and stays in its place until it is called,
 * so the queue needs no memory and is never full: it is as long as there are posters.
 */
struct loop_task {
    struct loop_task *next;
    void (*run)(struct loop_task *task);
};

struct loop_callbacks {
    void (*due)(void *owner); /* the time of loop_wake_at() has come; it is LOOP_NEVER then */
    void (*after_step)(void *owner); /* the end of every step; NULL: nobody wants to know */
    void *owner;
    bool lazy; /* spares system calls: the loop may wake up where an earlier time was asked for */
};

/* NULL when memory or descriptors are short. */
struct loop *loop_new(const struct loop_callbacks *callbacks);
/* Nobody may post any more. Tasks that were not run stay so. */
void loop_free(struct loop **loop);

/* On the clock of host_boot_ms(). A later call replaces the earlier one. */
void loop_wake_at(struct loop *loop, int64_t at_ms);
/* Calls when the descriptor is readable. False when too many are, or the system refuses. */
bool loop_listen(struct loop *loop, int file, void (*readable)(void *owner), void *owner);
void loop_post(struct loop *loop, struct loop_task *task);

/* In between, the calling thread stands in for the loop's: nothing of it runs elsewhere. From any
 * thread but from within the loop. */
void loop_enter(struct loop *loop);
void loop_leave(struct loop *loop);
/* In between: runs what was posted so far. */
void loop_run_posted(struct loop *loop);

/* Until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Does what there is to do, once; `wait`: sleeps first when there is nothing. */
void loop_step(struct loop *loop, bool wait);
/* Readable when a step has something to do: for callers with a loop of their own. */
int loop_fd(const struct loop *loop);

#endif

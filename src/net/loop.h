/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop: descriptors to watch, one deadline, and wake-ups by other threads. The deadline
 * has priority: once it has passed, `due` is called before any other callback, on a clock that
 * includes suspend. Must not depend on leases.
 *
 * loop_wake(), loop_stop() and loop_fd() may be called from any thread, all others only from the
 * thread that runs the loop, or from one that has entered it.
 */
#ifndef LEASEHOLD_NET_LOOP_H
#define LEASEHOLD_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_NEVER INT64_MAX

enum { LOOP_LISTENERS_MAX = 16 };

struct loop;

struct loop_callbacks {
    void (*due)(void *owner);   /* the time of loop_wake_at() has passed; it is LOOP_NEVER now */
    void (*woken)(void *owner); /* loop_wake() was called since */
    void (*after_step)(void *owner); /* at the end of every step; may be NULL */
    void *owner;
};

/* NULL when out of memory or descriptors. */
struct loop *loop_new(const struct loop_callbacks *callbacks);
/* No thread may wake it any more. */
void loop_free(struct loop **loop);

/* On the clock of host_boot_ms(). A later call replaces the earlier one. */
void loop_wake_at(struct loop *loop, int64_t at_ms);
/* Calls back when the descriptor is readable. False beyond LOOP_LISTENERS_MAX, or on an error. */
bool loop_listen(struct loop *loop, int file, void (*readable)(void *owner), void *owner);
/* Several calls may lead to one callback. */
void loop_wake(const struct loop *loop);

/* Between the two, the calling thread acts as the loop's: no callback runs elsewhere. From any
 * thread, but not from a callback of the loop. */
void loop_enter(struct loop *loop);
void loop_leave(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Handles pending events once; `wait`: sleeps first if there are none. */
void loop_step(struct loop *loop, bool wait);
/* Readable when a step has work to do: for callers with their own event loop. */
int loop_fd(const struct loop *loop);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local queue: the contenders for a key inside one process queue here, and one of them at a
 * time sends a request to the store. A grant passes from one caller to the next without a write,
 * with a growing token, at most HAND_OFFS_MAX times in a row and only while no waiter of another
 * process is known. Everything else is done by the executor.
 *
 * It has no tick of its own: its commands are in the executor's inbox, and the rules of executor.h
 * apply. An unused key takes no memory.
 */
#ifndef LEASEHOLD_RUNTIME_LOCAL_QUEUE_H
#define LEASEHOLD_RUNTIME_LOCAL_QUEUE_H

#include "runtime/executor.h"

enum {
    HAND_OFFS_MAX = 8,     /* below GRANT_STEP: they are added to the token */
    LOCAL_WAITERS = 100000 /* queued, of all keys together or of one */
};

struct local_queue;
struct local_waiter; /* one caller's request for a key; freed after NOTIFY_ENDED */

struct local_waiter_caller {
    void (*notify)(void *owner, struct local_waiter *waiter, const struct task_news *news);
    void *owner;
};

/* NULL when out of memory. The queue creates its own executor with these callbacks. */
struct local_queue *local_queue_new(const struct executor_callbacks *callbacks);
/* As executor_free(). */
void local_queue_free(struct local_queue **queue);
/* For its ticks, operations, notifications and counts. */
struct executor *local_queue_executor(struct local_queue *queue);

/*
 * The options are as in executor_start(), with VERB_ACQUIRE. A waiter without its own request id
 * may be served by a grant that another caller of the process requested, if both have equal
 * options: bound, holder, TTL, lock-delay, no meta. A waiter with `waits` unset ends with `busy` at
 * once if this process holds the key; otherwise the store is queried. One with its own request id
 * gets the grant that this id has (rule 9), also if the process holds it. Beyond LOCAL_WAITERS a
 * waiter ends with `busy`, "queue full". NULL when out of memory.
 */
struct local_waiter *local_queue_acquire(struct local_queue *queue,
                                         const struct lease_options *options,
                                         const struct local_waiter_caller *caller);
/*
 * For a grant that exists in the store already, made by this process under the request id of the
 * options: the waiter holds it once the store confirms it, and no other waiter is served before. It
 * can be handed off as if it had no request id.
 */
struct local_waiter *local_queue_adopt(struct local_queue *queue,
                                       const struct lease_options *options,
                                       const struct local_waiter_caller *caller);
/* True if the key has waiters or leases. */
bool local_queue_has_key(const struct local_queue *queue, const char *key);
/* See executor_release(), executor_cancel() and executor_forget(). */
void local_queue_release(struct local_waiter *waiter);
/* Of a waiter that holds: its release starts no cooldown. */
void local_queue_drop_cooldown(struct local_waiter *waiter);
/* The store may take this long for the release that follows. */
void local_queue_limit_release(struct local_waiter *waiter, int64_t timeout_ms);
void local_queue_cancel(struct local_waiter *waiter);
/* A paused waiter keeps its position and is passed over, which does not raise its priority; its
 * wait goes on. If only paused waiters are left, the process gives up its position in the store. No
 * effect on a waiter that holds, or does not wait. */
void local_queue_pause(struct local_waiter *waiter);
void local_queue_resume(struct local_waiter *waiter);
void local_queue_forget(struct local_waiter *waiter);

/* True if this waiter holds the lease now. */
bool local_queue_holds(const struct local_waiter *waiter);

struct local_queue_counts {
    uint64_t waiters, hand_offs, known_busy;
    uint64_t waiting, keys; /* current values */
};

struct local_queue_counts local_queue_counts(const struct local_queue *queue);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local layer: contenders for a key inside one process queue here, and one of them at a time
 * asks the store. A grant of the process goes from one caller to the next without a write, with a
 * growing token, at most HAND_OFFS_MAX times in a row and only while nobody outside is known to be
 * next in line. Everything that is not such a hand-over is the executor's.
 *
 * As in executor.h everything is told in local_queue_tick() only, from where anything may be called
 * but that and local_queue_free(); one thread at a time. A key that nobody wants costs nothing.
 */
#ifndef LEASEHOLD_RUNTIME_LOCAL_QUEUE_H
#define LEASEHOLD_RUNTIME_LOCAL_QUEUE_H

#include "runtime/executor.h"

enum { HAND_OFFS_MAX = 8 /* below GRANT_STEP: they count in the token's n */ };

struct local_queue;
struct local_waiter; /* one caller's wish for a key; gone once it was told TASK_ENDED */

struct local_waiter_caller {
    void (*notify)(void *owner, struct local_waiter *waiter, const struct task_news *news);
    void *owner;
};

/* NULL when out of memory. The desk has an executor of its own on this site. */
struct local_queue *local_queue_new(const struct executor_callbacks *callbacks);
/* As executor_free(). */
void local_queue_free(struct local_queue **queue);
/* For errands, notices and counts; local_queue_tick() ticks it. */
struct executor *local_queue_executor(struct local_queue *queue);

/*
 * The options are as in executor_start(), with VERB_ACQUIRE. A claim without a request id of its
 * own may be served by a grant that another caller of the process asked for, as long as both want
 * the same: bound, holder, TTL, lock-delay, no meta. Who does not wait hears `busy` at once while
 * the process itself holds the key in its way; otherwise the store is asked. NULL when memory is
 * short.
 */
struct local_waiter *local_queue_acquire(struct local_queue *queue,
                                         const struct lease_options *options,
                                         const struct local_waiter_caller *caller);
/*
 * For a grant that stands in the store already, made by this process under the request id of the
 * options: the claim holds it once it is found there, and nobody else is let in before. It can be
 * handed over as if it had no request id.
 */
struct local_waiter *local_queue_adopt(struct local_queue *queue,
                                       const struct lease_options *options,
                                       const struct local_waiter_caller *caller);
/* Is anybody at this key? */
bool local_queue_has_key(const struct local_queue *queue, const char *key);
/* See executor_release(), executor_cancel() and executor_forget(). */
void local_queue_release(struct local_waiter *waiter);
/* Of a claim that holds: when it lets go, no cooldown begins. */
void local_queue_drop_cooldown(struct local_waiter *waiter);
void local_queue_cancel(struct local_waiter *waiter);
void local_queue_forget(struct local_waiter *waiter);
void local_queue_tick(struct local_queue *queue);

/* Held at this moment by this very claim. */
bool local_queue_holds(const struct local_waiter *waiter);

struct local_queue_counts {
    uint64_t waiters, hand_offs, known_busy;
    uint64_t waiting, keys; /* at this moment */
};

struct local_queue_counts local_queue_counts(const struct local_queue *queue);

#endif

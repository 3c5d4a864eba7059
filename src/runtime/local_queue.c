/* SPDX-License-Identifier: Apache-2.0 */
/* See local_queue.h: the interface, the tick, and the waiters. */
#include "runtime/local_queue.h"

#include "base/check.h"
#include "runtime/local_queue_internal.h"
#include "runtime/lease_options.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOCAL_QUEUE_MAGIC = 0xde5c001,
    WAITER_MAGIC = 0xc1a1301,
    LOCAL_WAITERS_MAX = 1 << 20,
    ROUNDS_MAX = 64
};

static int64_t local_queue_now(const struct local_queue *queue)
{
    return queue->callbacks.now_ms(queue->callbacks.owner);
}

static void on_executor_wake_at(void *owner, int64_t at_ms)
{
    struct local_queue *queue = owner;
    queue->executor_at_ms = at_ms;
    if (!queue->ticking)
        queue->callbacks.wake_at(queue->callbacks.owner, at_ms);
}

static int64_t forward_now(void *owner)
{
    return local_queue_now(owner);
}

static void forward_submit(void *owner, const struct store_request *request, store_done *done,
                           void *caller)
{
    const struct local_queue *queue = owner;
    queue->callbacks.submit(queue->callbacks.owner, request, done, caller);
}

static void forward_step(void *owner, const struct executor_step *step)
{
    const struct local_queue *queue = owner;
    queue->callbacks.watcher(queue->callbacks.owner, step);
}

static void forward_failure(void *owner, const struct executor_failure *failure)
{
    const struct local_queue *queue = owner;
    queue->callbacks.failed(queue->callbacks.owner, failure);
}

struct local_queue *local_queue_new(const struct executor_callbacks *callbacks)
{
    struct local_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    struct executor_callbacks inner = *callbacks;
    inner.now_ms = forward_now;
    inner.submit = forward_submit;
    inner.wake_at = on_executor_wake_at;
    if (callbacks->watcher != NULL)
        inner.watcher = forward_step;
    if (callbacks->failed != NULL)
        inner.failed = forward_failure;
    inner.owner = queue;
    queue->magic = LOCAL_QUEUE_MAGIC;
    queue->callbacks = *callbacks;
    queue->executor_at_ms = NEVER;
    queue->executor = executor_new(&inner);
    if (queue->executor != NULL && table_init(&queue->keys))
        return queue;
    executor_free(&queue->executor);
    free(queue);
    return NULL;
}

struct executor *local_queue_executor(struct local_queue *queue)
{
    return queue != NULL ? queue->executor : NULL;
}

/* Keys. */

static struct local_key *local_key_ref(struct local_queue *queue, const char *key)
{
    struct local_key *found = (struct local_key *)table_find(&queue->keys, key);
    size_t size = strlen(key) + 1;
    if (found == NULL) {
        found = calloc(1, sizeof *found + size);
        if (found == NULL)
            return NULL;
        memcpy(found->key, key, size);
        found->queue = queue;
        table_put(&queue->keys, &found->node, found->key);
    }
    found->users++;
    return found;
}

void local_key_unref(struct local_key *key)
{
    ASSERT(key->users > 0);
    if (--key->users > 0)
        return;
    ASSERT(key->leases == NULL && key->first == NULL);
    table_remove(&key->queue->keys, &key->node);
    free(key);
}

/* Waiters. */

static void waiter_clear_commands(struct local_waiter *waiter)
{
    struct local_queue *queue = waiter->queue;
    if (waiter->commands == 0)
        return;
    if (waiter->next_ready != NULL)
        waiter->next_ready->before_ready = waiter->before_ready;
    else
        queue->last_ready = waiter->before_ready;
    if (waiter->before_ready != NULL)
        waiter->before_ready->next_ready = waiter->next_ready;
    else
        queue->first_ready = waiter->next_ready;
    waiter->next_ready = waiter->before_ready = NULL;
    waiter->commands = 0;
    queue->ready_count--;
}

static void waiter_queue_command(struct local_waiter *waiter, enum waiter_command what)
{
    struct local_queue *queue = waiter->queue;
    ASSERT(waiter->magic == WAITER_MAGIC);
    bool first = queue->first_ready == NULL;
    if (waiter->commands == 0) {
        waiter->before_ready = queue->last_ready;
        if (queue->last_ready != NULL)
            queue->last_ready->next_ready = waiter;
        else
            queue->first_ready = waiter;
        queue->last_ready = waiter;
        queue->ready_count++;
    }
    waiter->commands |= (unsigned)what;
    if (first && !queue->ticking)
        queue->callbacks.wake_at(queue->callbacks.owner, local_queue_now(queue));
}

static void waiter_free(struct local_waiter *waiter)
{
    struct local_queue *queue = waiter->queue;
    waiter_clear_commands(waiter);
    heap_set(&queue->timeouts, &waiter->timeout, HEAP_NEVER);
    if (waiter->next_of_all != NULL)
        waiter->next_of_all->before_of_all = waiter->before_of_all;
    if (waiter->before_of_all != NULL)
        waiter->before_of_all->next_of_all = waiter->next_of_all;
    else
        queue->waiters = waiter->next_of_all;
    queue->counts.waiters--;
    waiter->magic = 0;
    free(waiter);
}

void waiter_notify(struct local_waiter *waiter, const struct task_news *news)
{
    if (!waiter->silent)
        waiter->caller.notify(waiter->caller.owner, waiter, news);
}

void waiter_end(struct local_waiter *waiter, const struct task_news *news)
{
    struct local_key *key = waiter->key;
    waiter_notify(waiter, news);
    waiter_free(waiter);
    local_key_unref(key);
}

void waiter_end_with(struct local_waiter *waiter, enum outcome outcome, const char *why)
{
    waiter_end(waiter, &(struct task_news){.notify = NOTIFY_ENDED, .outcome = outcome, .why = why});
}

struct local_waiter *local_queue_acquire(struct local_queue *queue,
                                         const struct lease_options *options,
                                         const struct local_waiter_caller *caller)
{
    ASSERT(queue->magic == LOCAL_QUEUE_MAGIC && options->request.verb == VERB_ACQUIRE);
    if (queue->counts.waiters >= LOCAL_WAITERS_MAX)
        return NULL;
    struct local_waiter *waiter = calloc(1, sizeof *waiter + lease_options_size(options));
    struct local_key *key = waiter != NULL ? local_key_ref(queue, options->request.key) : NULL;
    if (key == NULL) {
        free(waiter);
        return NULL;
    }
    waiter->magic = WAITER_MAGIC;
    waiter->queue = queue;
    waiter->caller = *caller;
    waiter->key = key;
    heap_node_init(&waiter->timeout);
    lease_options_copy(&waiter->options, options, key->key, waiter->storage);
    waiter->next_of_all = queue->waiters;
    if (queue->waiters != NULL)
        queue->waiters->before_of_all = waiter;
    queue->waiters = waiter;
    queue->counts.waiters++;
    waiter_queue_command(waiter, WAITER_ENTERS);
    return waiter;
}

struct local_waiter *local_queue_adopt(struct local_queue *queue,
                                       const struct lease_options *options,
                                       const struct local_waiter_caller *caller)
{
    ASSERT(options->request.request != NULL && !options->request.waits);
    struct local_waiter *waiter = local_queue_acquire(queue, options, caller);
    if (waiter == NULL)
        return NULL;
    waiter_clear_commands(waiter);
    waiter->adopts = true;
    if (waiter_adopt(waiter))
        return waiter;
    waiter->silent = true;
    waiter_end_with(waiter, OUTCOME_UNAVAILABLE, /* why= */ NULL);
    return NULL;
}

bool local_queue_has_key(const struct local_queue *queue, const char *key)
{
    return table_find(&queue->keys, key) != NULL;
}

void local_queue_release(struct local_waiter *waiter)
{
    waiter_queue_command(waiter, WAITER_LEAVES);
}

void local_queue_drop_cooldown(struct local_waiter *waiter)
{
    if (waiter->state != WAITER_HOLDING)
        return;
    waiter->options.cooldown_ms = waiter->options.request.cooldown_ms = 0;
    executor_drop_cooldown(waiter->lease->task);
    waiter->lease->starter = NULL; /* its options differ from the starter's now */
}

void local_queue_cancel(struct local_waiter *waiter)
{
    waiter->silent = true;
    waiter_queue_command(waiter, WAITER_LEAVES);
}

void local_queue_forget(struct local_waiter *waiter)
{
    waiter->silent = true;
    waiter_queue_command(waiter, WAITER_FORGOTTEN);
}

bool local_queue_holds(const struct local_waiter *waiter)
{
    return waiter->state == WAITER_HOLDING && waiter->lease->state == STORE_LEASE_HELD &&
           executor_holds(waiter->lease->task);
}

struct local_queue_counts local_queue_counts(const struct local_queue *queue)
{
    struct local_queue_counts counts = queue->counts;
    counts.keys = queue->keys.count;
    return counts;
}

/* The tick. */

static void waiter_run_commands(struct local_waiter *waiter)
{
    unsigned commands = waiter->commands;
    waiter_clear_commands(waiter);
    bool enters = (commands & WAITER_ENTERS) != 0, out = (commands & WAITER_LEAVES) != 0;
    if ((commands & WAITER_FORGOTTEN) != 0)
        waiter_forget(waiter);
    else if (enters && out)
        waiter_end_with(waiter, OUTCOME_BUSY, "cancelled");
    else if (enters)
        waiter_enter(waiter);
    else
        waiter_leave(waiter, "cancelled");
}

/* Commands queued meanwhile run in the next round. */
static void run_waiter_commands(struct local_queue *queue)
{
    for (size_t left = queue->ready_count; left > 0 && queue->first_ready != NULL; left--)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): who is freed wishes nothing any more */
        waiter_run_commands(queue->first_ready);
}

static void expire_waits(struct local_queue *queue)
{
    int64_t now_ms = local_queue_now(queue);
    while (heap_first(&queue->timeouts) <= now_ms) {
        char *node = (char *)queue->timeouts.top;
        struct local_waiter *waiter =
            (struct local_waiter *)(void *)(node - offsetof(struct local_waiter, timeout));
        heap_set(&queue->timeouts, &waiter->timeout, HEAP_NEVER);
        waiter_time_out(waiter);
    }
}

static int64_t earlier_tick(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The executor runs first: holders' deadlines precede all commands. Waits expire right after it,
 * when all earlier requests were sent: a slow tick must not count as a store timeout. */
void local_queue_tick(struct local_queue *queue)
{
    ASSERT(queue->magic == LOCAL_QUEUE_MAGIC && !queue->ticking);
    queue->ticking = true;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        executor_tick(queue->executor);
        expire_waits(queue);
        run_waiter_commands(queue);
        if (queue->executor_at_ms > local_queue_now(queue) && queue->first_ready == NULL)
            break;
    }
    queue->ticking = false;
    int64_t next_ms = earlier_tick(queue->executor_at_ms, heap_first(&queue->timeouts));
    queue->callbacks.wake_at(queue->callbacks.owner,
                             queue->first_ready != NULL ? local_queue_now(queue) : next_ms);
}

void local_queue_free(struct local_queue **queue_pointer)
{
    struct local_queue *queue = *queue_pointer;
    if (queue == NULL)
        return;
    ASSERT(queue->magic == LOCAL_QUEUE_MAGIC && !queue->ticking);
    queue->ticking = queue->closing = true; /* no wake-ups, no new requests */
    while (queue->waiters != NULL) {
        struct local_waiter *waiter = queue->waiters;
        waiter->silent = true;
        waiter_forget(waiter);
    }
    for (size_t i = 0; i < queue->keys.chain_count; i++)
        while (queue->keys.chains[i] != NULL)
            local_key_free((struct local_key *)queue->keys.chains[i]);
    executor_free(&queue->executor);
    table_done(&queue->keys);
    queue->magic = 0;
    free(queue);
    *queue_pointer = NULL;
}

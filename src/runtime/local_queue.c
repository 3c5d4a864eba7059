/* SPDX-License-Identifier: Apache-2.0 */
/* See local_queue.h: the interface, and the waiters. */
#include "runtime/local_queue.h"

#include "base/check.h"
#include "runtime/local_queue_internal.h"
#include "runtime/lease_options.h"

#include <stdlib.h>
#include <string.h>

enum { LOCAL_QUEUE_MAGIC = 0xde5c001, WAITER_MAGIC = 0xc1a1301, LOCAL_WAITERS_MAX = 1 << 20 };

struct local_queue *local_queue_new(const struct executor_callbacks *callbacks)
{
    struct local_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->magic = LOCAL_QUEUE_MAGIC;
    queue->executor = executor_new(callbacks);
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
        found = malloc(sizeof *found + size);
        if (found == NULL)
            return NULL;
        memset(found, 0, sizeof *found);
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
    ASSERT(key->leases.first == NULL && key->waiters.first == NULL);
    table_remove(&key->queue->keys, &key->node);
    free(key);
}

/* Waiters. */

static void waiter_clear_commands(struct local_waiter *waiter)
{
    if (waiter->commands != 0)
        inbox_remove(&waiter->queue->executor->inbox.commands, &waiter->item);
    waiter->commands = 0;
}

static void waiter_queue_command(struct local_waiter *waiter, enum waiter_command what)
{
    struct executor *executor = waiter->queue->executor;
    ASSERT(waiter->magic == WAITER_MAGIC);
    if (waiter->commands == 0)
        inbox_add(&executor->inbox.commands, &waiter->item);
    waiter->commands |= (unsigned)what;
    executor_schedule(executor);
}

static void waiter_free(struct local_waiter *waiter)
{
    struct local_queue *queue = waiter->queue;
    waiter_clear_commands(waiter);
    executor_set_timer(queue->executor, &waiter->timeout, HEAP_NEVER);
    list_remove(&queue->waiters, &waiter->in_all);
    queue->counts.waiters--;
    waiter->magic = 0;
    free(waiter);
}

void waiter_notify(struct local_waiter *waiter, const struct task_news *news)
{
    struct executor *executor = waiter->queue->executor;
    if (waiter->silent)
        return;
    waiter->caller.notify(waiter->caller.owner, waiter, news);
    if (executor->notifying == NULL) /* otherwise the task does it */
        executor_read_clock(executor);
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

static void waiter_run_commands(struct inbox_item *item)
{
    struct local_waiter *waiter = LIST_ENTRY(&item->node, struct local_waiter, item.node);
    unsigned commands = waiter->commands;
    waiter->commands = 0;
    bool enters = (commands & WAITER_ENTERS) != 0, out = (commands & WAITER_LEAVES) != 0;
    if ((commands & WAITER_FORGOTTEN) != 0)
        waiter_forget(waiter);
    else if (enters && out)
        waiter_end_with(waiter, OUTCOME_BUSY, "cancelled");
    else if (enters)
        waiter_enter(waiter);
    else if (out)
        waiter_leave(waiter, "cancelled");
    else
        waiter_review(waiter);
}

struct local_waiter *local_queue_acquire(struct local_queue *queue,
                                         const struct lease_options *options,
                                         const struct local_waiter_caller *caller)
{
    ASSERT(queue->magic == LOCAL_QUEUE_MAGIC && options->request.verb == VERB_ACQUIRE);
    if (queue->counts.waiters >= LOCAL_WAITERS_MAX)
        return NULL;
    struct local_waiter *waiter = malloc(sizeof *waiter + lease_options_size(options));
    struct local_key *key = waiter != NULL ? local_key_ref(queue, options->request.key) : NULL;
    if (key == NULL) {
        free(waiter);
        return NULL;
    }
    memset(waiter, 0, sizeof *waiter);
    waiter->magic = WAITER_MAGIC;
    waiter->queue = queue;
    waiter->caller = *caller;
    waiter->key = key;
    waiter->item.run = waiter_run_commands;
    heap_node_init(&waiter->timeout.node);
    waiter->timeout.due = waiter_time_out;
    lease_options_copy(&waiter->options, options, key->key, waiter->storage);
    list_prepend(&queue->waiters, &waiter->in_all);
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

void local_queue_limit_release(struct local_waiter *waiter, int64_t timeout_ms)
{
    waiter->options.timeout_ms = timeout_ms > 0 ? timeout_ms : 1;
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

/* The order changes at once, so that no grant reaches a paused waiter; the request to the store is
 * reviewed by the command. */
void local_queue_pause(struct local_waiter *waiter)
{
    bool may_wait = waiter->state != WAITER_HOLDING && waiter->state != WAITER_LEAVING;
    if (!waiter->options.request.waits || waiter->paused || !may_wait)
        return;
    waiter->paused = true;
    if (waiter->state != WAITER_QUEUED)
        return;
    waiters_pause(waiter);
    if (waiter->key->asking != NULL && waiter->key->asking->heir == waiter && !waiter->ordered)
        waiter->key->asking->heir = NULL;
    waiter_queue_command(waiter, WAITER_PAUSES);
}

void local_queue_resume(struct local_waiter *waiter)
{
    if (!waiter->paused)
        return;
    waiter->paused = false;
    if (waiter->state != WAITER_QUEUED)
        return;
    waiters_resume(waiter);
    waiter_queue_command(waiter, WAITER_PAUSES);
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

void local_queue_free(struct local_queue **queue_pointer)
{
    struct local_queue *queue = *queue_pointer;
    if (queue == NULL)
        return;
    ASSERT(queue->magic == LOCAL_QUEUE_MAGIC && !queue->executor->ticking);
    queue->closing = queue->executor->ticking = true; /* no new requests, no wake-ups */
    while (queue->waiters.first != NULL) {
        struct local_waiter *waiter = LIST_ENTRY(queue->waiters.first, struct local_waiter, in_all);
        waiter->silent = true;
        waiter_forget(waiter);
    }
    table_settle(&queue->keys);
    for (size_t i = 0; i < queue->keys.chain_count; i++)
        while (queue->keys.chains[i] != NULL)
            local_key_free((struct local_key *)queue->keys.chains[i]);
    queue->executor->ticking = false;
    executor_free(&queue->executor);
    table_done(&queue->keys);
    queue->magic = 0;
    free(queue);
    *queue_pointer = NULL;
}

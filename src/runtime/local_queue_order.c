/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of one key, and which grants fit its waiters. The order is that of the store (rule 4):
 * priority, raised by one for each time a waiter is passed over, then arrival. Nothing here visits
 * all waiters: a queue of 100,000 costs about as much as one of ten. Sends nothing to the store.
 */
#include "base/check.h"
#include "core/mutant.h"
#include "runtime/local_queue_internal.h"

#include <string.h>

/* Compatibility of grants. */

static bool same_string(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A grant that is identified by a request id or meta, or outlives the process, belongs to one
 * caller. So does a claim of an id (KIND_ONCE): it ends with the store's token, and has a
 * payload. */
bool waiter_is_shareable(const struct lease_options *options)
{
    const struct request *request = &options->request;
    return request->bound && request->kind == KIND_LOCK && request->request == NULL &&
           request->meta == NULL;
}

bool waiter_fits(const struct store_lease *lease, const struct local_waiter *waiter)
{
    const struct lease_options *mine = &waiter->options, *asked = executor_options(lease->task);
    if (waiter == lease->starter)
        return true;
    bool both = (lease->shareable && waiter_is_shareable(mine)) ||
                (MUTANT(CLAIM_SHARED) && mine->request.kind == KIND_ONCE);
    return both && mine->request.mode == asked->request.mode &&
           mine->request.limit == asked->request.limit &&
           mine->request.ttl_ms == asked->request.ttl_ms &&
           mine->request.lock_delay_ms == asked->request.lock_delay_ms &&
           mine->cooldown_ms == asked->cooldown_ms && mine->kill_grace_ms == asked->kill_grace_ms &&
           same_string(mine->request.holder, asked->request.holder);
}

bool waiter_means_same(const struct local_waiter *waiter, const struct store_lease *lease)
{
    const struct request *mine = &waiter->options.request;
    const struct request *asked = &executor_options(lease->task)->request;
    return mine->kind == asked->kind && same_string(mine->payload, asked->payload);
}

bool waiter_repeats(const struct local_waiter *waiter, const struct store_lease *lease)
{
    const char *own = waiter->options.request.request;
    return own != NULL && strcmp(own, executor_options(lease->task)->request.request) == 0;
}

bool waiter_id_ends(const struct local_waiter *waiter)
{
    if (waiter->options.request.request == NULL || waiter->key->blocking == 0)
        return false;
    for (struct list_node *node = waiter->key->leases.first; node != NULL; node = node->next)
        if (store_lease_of(node)->state == STORE_LEASE_ENDING &&
            waiter_repeats(waiter, store_lease_of(node)))
            return true;
    return false;
}

/* The order. */

static struct local_waiter *waiter_in_order(struct rank_node *node)
{
    return node == NULL ? NULL
                        : (struct local_waiter *)(void *)((char *)node -
                                                          offsetof(struct local_waiter, in_order));
}

static void waiter_join_order(struct local_waiter *waiter)
{
    rank_tree_insert(&waiter->key->order, &waiter->in_order, waiter->arrived, waiter->rank);
    waiter->ordered = true;
}

/* The rank is kept for its return: while it is away it is not passed over. */
static void waiter_leave_order(struct local_waiter *waiter)
{
    waiter->rank = rank_tree_rank(&waiter->key->order, &waiter->in_order);
    rank_tree_remove(&waiter->key->order, &waiter->in_order);
    waiter->ordered = false;
}

void waiters_add(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    waiter->state = WAITER_QUEUED;
    waiter->rank = waiter->options.request.priority;
    list_append(&key->waiters, &waiter->in_key);
    if (!waiter->waiting_notified)
        list_append(&key->quiet, &waiter->in_quiet);
    if (!waiter->paused || MUTANT(PAUSED_IS_SERVED))
        waiter_join_order(waiter);
    waiter->queue->counts.waiting++;
}

void waiters_remove(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    if (waiter->ordered)
        waiter_leave_order(waiter);
    if (!waiter->waiting_notified)
        list_remove(&key->quiet, &waiter->in_quiet);
    list_remove(&key->waiters, &waiter->in_key);
    waiter->queue->counts.waiting--;
    executor_set_timer(waiter->queue->executor, &waiter->timeout, HEAP_NEVER);
}

void waiters_pause(struct local_waiter *waiter)
{
    if (waiter->ordered && !MUTANT(PAUSED_IS_SERVED))
        waiter_leave_order(waiter);
}

void waiters_resume(struct local_waiter *waiter)
{
    if (!waiter->ordered)
        waiter_join_order(waiter);
}

struct local_waiter *waiters_first(struct local_key *key)
{
    if (MUTANT(HAND_OVER_TO_NEWEST))
        for (struct list_node *node = key->waiters.last; node != NULL; node = node->previous)
            if (waiter_of(node)->ordered)
                return waiter_of(node);
    return waiter_in_order(rank_tree_first(&key->order));
}

bool waiters_ahead(const struct local_waiter *waiter, const struct local_waiter *other)
{
    struct rank_tree *order = &waiter->key->order;
    int64_t mine = rank_tree_rank(order, &waiter->in_order);
    int64_t others = rank_tree_rank(order, &other->in_order);
    return mine > others || (mine == others && waiter->arrived < other->arrived);
}

void waiters_age(const struct local_waiter *chosen)
{
    rank_tree_raise_before(&chosen->key->order, chosen->arrived);
}

void waiter_notify_waiting(struct local_waiter *waiter, const struct task_news *news)
{
    if (waiter->waiting_notified)
        return;
    list_remove(&waiter->key->quiet, &waiter->in_quiet);
    waiter->waiting_notified = true;
    waiter_notify(waiter, news);
}

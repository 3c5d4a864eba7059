/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store leases of one key: a lease, or a request for one, at the store. One for the queue
 * serves its heir, the first waiter that it fits. While it is in flight no waiter is passed over,
 * so ranks do not change: the heir changes only when a waiter enters or leaves.
 *
 * Callbacks only queue commands, so nothing changes during these loops.
 */
#include "base/check.h"
#include "core/mutant.h"
#include "runtime/local_queue_internal.h"

#include <stdlib.h>
#include <string.h>

/* True while the process holds the key alone, or gives it up, or adopts a grant of its own. */
static bool store_lease_blocks(const struct store_lease *lease)
{
    return lease->state == STORE_LEASE_ENDING ||
           (lease->state == STORE_LEASE_HELD && lease->exclusive) ||
           (lease->state == STORE_LEASE_ASKING && lease->adopts);
}

static void store_lease_move(struct store_lease *lease, enum store_lease_state state)
{
    struct local_key *key = lease->key;
    key->blocking -= store_lease_blocks(lease) ? 1 : 0;
    lease->state = state;
    key->blocking += store_lease_blocks(lease) ? 1 : 0;
    list_remove(&key->leases, &lease->node);
    if (state == STORE_LEASE_HELD)
        list_prepend(&key->leases, &lease->node);
    else
        list_append(&key->leases, &lease->node);
}

void store_lease_free(struct store_lease *lease)
{
    struct local_key *key = lease->key;
    key->blocking -= store_lease_blocks(lease) ? 1 : 0;
    list_remove(&key->leases, &lease->node);
    if (key->asking == lease)
        key->asking = NULL;
    free(lease);
    local_key_unref(key);
}

void store_lease_release(struct store_lease *lease)
{
    store_lease_move(lease, STORE_LEASE_ENDING);
    if (lease->key->asking == lease)
        lease->key->asking = NULL;
    executor_release(lease->task);
}

struct local_waiter *store_lease_heir(const struct store_lease *lease)
{
    if (lease->heir != NULL && !MUTANT(HAND_OVER_TO_NEWEST))
        return lease->heir;
    struct local_waiter *first = waiters_first(lease->key);
    return first != NULL && waiter_fits(lease, first) ? first : lease->heir;
}

static void store_lease_assign(struct store_lease *lease, struct local_waiter *waiter,
                               struct task_news news)
{
    waiters_age(waiter);
    waiters_remove(waiter);
    waiter->state = WAITER_HOLDING;
    waiter->lease = lease;
    lease->waiter = waiter;
    news.notify = NOTIFY_HELD;
    news.token = lease->token + (MUTANT(HAND_OVER_KEEPS_TOKEN) ? 0 : lease->hand_offs);
    news.deadline_ms = lease->deadline_ms;
    news.kill_at_ms = lease->kill_at_ms;
    waiter_notify(waiter, &news);
}

void store_lease_hand_off(struct store_lease *lease, struct local_waiter *next)
{
    waiter_end_with(lease->waiter, OUTCOME_OK, /* why= */ NULL);
    lease->hand_offs++;
    lease->key->queue->counts.hand_offs++;
    store_lease_assign(lease, next, (struct task_news){0});
}

static void note_renewal(struct store_lease *lease, const struct task_news *news)
{
    lease->deadline_ms = news->deadline_ms;
    lease->kill_at_ms = news->kill_at_ms;
}

/* The request was for the queue. */
static void on_queue_granted(struct store_lease *lease, const struct task_news *news)
{
    struct local_waiter *next = store_lease_heir(lease);
    lease->key->asking = NULL;
    if (next != NULL)
        store_lease_assign(lease, next, *news);
    else if (!MUTANT(GRANT_FOR_NOBODY))
        store_lease_release(lease);
}

/* The grant that its request id has already stays in the store until the waiter is resumed. */
static void set_grant_aside(struct store_lease *lease)
{
    struct local_waiter *waiter = lease->waiter;
    executor_forget(lease->task);
    store_lease_free(lease);
    waiter->lease = NULL;
    waiter->set_aside = true;
    waiter_enqueue(waiter);
}

static void on_lease_granted(struct store_lease *lease, const struct task_news *news)
{
    struct local_key *key = lease->key;
    struct local_waiter *waiter = lease->waiter;
    lease->token = news->token;
    if (lease->state == STORE_LEASE_ASKING) /* else its release follows */
        store_lease_move(lease, STORE_LEASE_HELD);
    note_renewal(lease, news);
    if (key->asking == lease) {
        on_queue_granted(lease, news);
    } else if (waiter != NULL && waiter->state == WAITER_ASKING && waiter->paused) {
        set_grant_aside(lease);
        return;
    } else if (waiter != NULL) {
        waiter->state = WAITER_HOLDING;
        waiter_notify(waiter, news);
    }
    lease->starter = NULL; /* from now on it belongs to its holder */
    local_key_ask_next(key);
}

/* To the waiter that has the store lease, with its own token, not the store's. */
static void forward_to_waiter(const struct store_lease *lease, struct task_news news)
{
    news.token += news.token != 0 ? lease->hand_offs : 0;
    if (lease->waiter != NULL)
        waiter_notify(lease->waiter, &news);
}

/* A denial or an unavailable store ends all waiters; other refusals end those that the store lease
 * fits. The result of a once-only id goes to the waiters with the same payload. */
static void refuse_queue(const struct store_lease *lease, const struct task_news *news)
{
    bool cools = news->outcome == OUTCOME_COOLING;
    bool all = news->outcome == OUTCOME_DENIED || news->outcome == OUTCOME_UNAVAILABLE ||
               news->outcome == OUTCOME_USAGE; /* the store refuses the key */
    bool one = !all && !cools && !lease->shareable && !MUTANT(CLAIM_SHARED);
    if (one && lease->heir != NULL) {
        struct local_waiter *waiter = lease->heir;
        waiters_remove(waiter);
        waiter_end(waiter, news);
    }
    if (one)
        return;
    for (struct list_node *node = lease->key->waiters.first, *next; node != NULL; node = next) {
        struct local_waiter *waiter = waiter_of(node);
        next = node->next;
        bool too = cools && (waiter_means_same(waiter, lease) || MUTANT(DONE_TOLD_TO_ALL));
        if (!all && !too && !waiter_fits(lease, waiter))
            continue;
        waiters_remove(waiter);
        waiter_end(waiter, news);
    }
}

static void on_lease_ended(struct store_lease *lease, const struct task_news *news)
{
    struct local_key *key = lease->key;
    struct local_waiter *waiter = lease->waiter;
    struct task_news final = *news;
    bool queues = waiter != NULL && waiter->state == WAITER_ASKING &&
                  waiter->options.request.waits && news->outcome == OUTCOME_BUSY;
    key->users++; /* until the end of this function */
    if (queues) { /* the grant of its request id has ended meanwhile */
        waiter->lease = NULL;
        waiter_enqueue(waiter);
    } else if (waiter != NULL) {
        if (waiter->why_left != NULL && news->outcome == OUTCOME_BUSY)
            final.why = waiter->why_left;
        waiter_end(waiter, &final);
    } else if (key->asking == lease) {
        refuse_queue(lease, news);
    }
    store_lease_free(lease);
    local_key_ask_next(key);
    local_key_unref(key);
}

static void on_lease_event(void *owner, struct task *task, const struct task_news *news)
{
    struct store_lease *lease = owner;
    (void)task;
    switch (news->notify) {
    case NOTIFY_WAITING:
        for (struct list_node *node; (node = lease->key->quiet.first) != NULL;)
            waiter_notify_waiting(LIST_ENTRY(node, struct local_waiter, in_quiet), news);
        return;
    case NOTIFY_HELD:
        on_lease_granted(lease, news);
        return;
    case NOTIFY_RENEWED:
        note_renewal(lease, news);
        forward_to_waiter(lease, *news);
        return;
    case NOTIFY_LOST:
        if (lease->state == STORE_LEASE_HELD)
            store_lease_move(lease, STORE_LEASE_LOST);
        if (!MUTANT(LOSS_UNTOLD) || lease->hand_offs == 0)
            forward_to_waiter(lease, *news);
        local_key_ask_next(lease->key);
        return;
    case NOTIFY_ENDED:
        on_lease_ended(lease, news);
        return;
    case NOTIFY_NONE:
        break;
    }
    UNREACHABLE("the executor reports nothing else");
}

struct store_lease *store_lease_new(struct local_waiter *waiter, bool waits)
{
    struct local_key *key = waiter->key;
    struct lease_options options = waiter->options;
    struct store_lease *lease = malloc(sizeof *lease);
    if (lease == NULL)
        return NULL;
    options.request.waits = waits;
    options.wait_ms = waits ? WAIT_WITHOUT_LIMIT : 0;
    *lease =
        (struct store_lease){.key = key,
                             .starter = waiter,
                             .adopts = waiter->adopts,
                             .exclusive = options.request.mode == MODE_EXCLUSIVE,
                             .shareable = waiter->adopts || waiter_is_shareable(&waiter->options)};
    lease->task =
        executor_start(key->queue->executor, &options,
                       &(struct executor_caller){.notify = on_lease_event, .owner = lease});
    if (lease->task == NULL) {
        free(lease);
        return NULL;
    }
    list_append(&key->leases, &lease->node);
    key->blocking += store_lease_blocks(lease) ? 1 : 0;
    key->users++;
    return lease;
}

bool local_key_may_ask(const struct local_key *key)
{
    return key->blocking == 0 && key->asking == NULL;
}

/* False when out of memory. */
static bool local_key_ask_for(struct local_waiter *first)
{
    struct store_lease *lease = store_lease_new(first, /* waits= */ true);
    if (lease == NULL)
        return false;
    lease->heir = first;
    first->key->asking = lease;
    return true;
}

void local_key_ask_next(struct local_key *key)
{
    key->users++; /* until the end of this function */
    while (local_key_may_ask(key) && !key->queue->closing) {
        struct local_waiter *next = waiters_first(key);
        if (next == NULL || local_key_ask_for(next))
            break;
        waiters_remove(next);
        waiter_end_with(next, OUTCOME_UNAVAILABLE, "out of memory");
    }
    local_key_unref(key);
}

/*
 * A new request takes over the process's position in the store's queue, which keeps its age (rule
 * 4). The earlier store lease releases a grant that it may get meanwhile; false if it may have one,
 * if the waiter must not ask yet, or when out of memory.
 */
static bool local_key_replace(struct store_lease *before, struct local_waiter *first)
{
    if (executor_grant_due(before->task) != NEVER || before->key->queue->closing ||
        waiter_id_ends(first) || !local_key_ask_for(first))
        return false;
    store_lease_release(before);
    return true;
}

/* The request has no heir: it serves the first waiter, or ends. True if it was released. */
static bool local_key_settle(struct store_lease *lease)
{
    struct local_waiter *first = waiters_first(lease->key);
    lease->heir = first != NULL && waiter_fits(lease, first) ? first : NULL;
    if (lease->heir != NULL || MUTANT(GRANT_FOR_NOBODY))
        return false;
    if (first == NULL || !local_key_replace(lease, first))
        store_lease_release(lease);
    return true;
}

void local_key_note_entry(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct store_lease *lease = key->asking;
    if (lease == NULL || !waiter->ordered) {
        local_key_ask_next(key);
        return;
    }
    if (lease->heir == NULL) {
        (void)local_key_settle(lease);
        return;
    }
    bool fits = waiter_fits(lease, waiter);
    bool raises =
        waiter->options.request.priority > executor_options(lease->task)->request.priority;
    if (fits && waiters_ahead(waiter, lease->heir))
        lease->heir = waiter;
    if (waiters_first(key) == waiter && (!fits || raises))
        (void)local_key_replace(lease, waiter); /* otherwise it is served later */
}

struct store_lease *local_key_note_exit(const struct local_waiter *waiter)
{
    struct store_lease *lease = waiter->key->asking;
    if (lease != NULL && lease->starter == waiter)
        lease->starter = NULL;
    if (lease == NULL || (lease->heir != NULL && lease->heir != waiter))
        return NULL;
    return local_key_settle(lease) ? lease : NULL;
}

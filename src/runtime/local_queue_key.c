/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry and exit of the waiters of one key of the local queue. A waiter with its own request id
 * that would be queued reads the record first: its id may have a grant already (rule 9), and it
 * must not wait for that.
 */
#include "base/check.h"
#include "core/mutant.h"
#include "runtime/local_queue_internal.h"

#include <string.h>

/* Entry. */

/* A lease of this process that is held now and excludes the waiter: no query is needed. */
static const struct store_lease *blocking_lease(const struct local_waiter *waiter)
{
    for (struct list_node *node = waiter->key->leases.first; node != NULL; node = node->next) {
        const struct store_lease *lease = store_lease_of(node);
        if (lease->state != STORE_LEASE_HELD && !MUTANT(BUSY_FROM_OLD_COPY))
            break; /* those that are held come first */
        bool alone = waiter->options.request.mode == MODE_EXCLUSIVE ||
                     executor_options(lease->task)->request.mode == MODE_EXCLUSIVE;
        bool held = lease->state == STORE_LEASE_HELD && executor_holds(lease->task);
        if (alone && waiter_means_same(waiter, lease) && (held || MUTANT(BUSY_FROM_OLD_COPY)))
            return lease;
    }
    return NULL;
}

/* With a store lease of its own, which does not wait. */
static bool ask_for_waiter(struct local_waiter *waiter)
{
    struct store_lease *lease = store_lease_new(waiter, /* waits= */ false);
    if (lease == NULL)
        return false;
    waiter->state = WAITER_ASKING;
    waiter->lease = lease;
    lease->waiter = waiter;
    return true;
}

bool waiter_adopt(struct local_waiter *waiter)
{
    ASSERT(waiter->key->leases.first == NULL && waiter->key->waiters.first == NULL);
    return ask_for_waiter(waiter);
}

static bool was_done(const struct local_waiter *waiter)
{
    struct stamp at;
    const struct record *copy =
        executor_cached_record(waiter->queue->executor, waiter->key->key, &at);
    return copy != NULL && copy->kind == KIND_ONCE && copy->cooling.length_ms > 0;
}

static void enter_without_wait(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    const struct store_lease *holder = blocking_lease(waiter);
    struct task_news busy = {.notify = NOTIFY_ENDED, .outcome = OUTCOME_BUSY};
    if (MUTANT(DONE_FROM_OLD_COPY) && was_done(waiter)) {
        waiter_end_with(waiter, OUTCOME_COOLING, /* why= */ NULL);
        return;
    }
    bool named = waiter->options.request.request != NULL;
    bool waits_for_it = key->asking != NULL && waiter_repeats(waiter, key->asking);
    if (holder != NULL && !waiter_repeats(waiter, holder)) {
        busy.key_info = (struct key_info){.state = KEY_HELD,
                                          .holder = executor_options(holder->task)->request.holder,
                                          .token = holder->token + holder->hand_offs,
                                          .ends_in_ms = -1,
                                          .takeover_in_ms = -1};
    } else if (waiter_id_ends(waiter)) {
        busy.why = "an earlier request with its id is being given up";
    } else if (!waits_for_it && (named || key->waiters.first == NULL || key->asking != NULL)) {
        if (!ask_for_waiter(waiter))
            waiter_end_with(waiter, OUTCOME_UNAVAILABLE, "out of memory");
        return;
    } else {
        busy.why = "others are in line";
    }
    waiter->queue->counts.known_busy++;
    waiter_end(waiter, &busy);
}

/* The wait counts from the entry, also after a probe. */
void waiter_enqueue(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct local_queue *queue = waiter->queue;
    int64_t wait_ms = waiter->options.wait_ms;
    if (queue->counts.waiting >= LOCAL_WAITERS) {
        waiter_end_with(waiter, OUTCOME_BUSY, "queue full");
        return;
    }
    bool behind = key->waiters.first != NULL || !local_key_may_ask(key);
    waiters_add(waiter);
    if (wait_ms != WAIT_WITHOUT_LIMIT)
        executor_set_timer(queue->executor, &waiter->timeout, waiter->entered_ms + wait_ms);
    if (behind)
        waiter_notify_waiting(waiter, &(struct task_news){.notify = NOTIFY_WAITING});
    local_key_note_entry(waiter);
}

static bool has_grant_of(const struct record *record, const char *request)
{
    for (size_t i = 0; i < record->grant_count; i++)
        if (strcmp(record->grants[i].request, request) == 0)
            return true;
    return false;
}

/* The store decides about the grant that was found: whose it is, and whether it has ended. */
static void on_probe_event(void *owner, struct task *task, const struct task_news *news)
{
    struct local_waiter *waiter = owner;
    (void)task;
    if (news->notify != NOTIFY_ENDED)
        return;
    waiter->probe = NULL;
    bool found = news->outcome == OUTCOME_OK && news->record != NULL && !waiter->paused &&
                 has_grant_of(news->record, waiter->options.request.request);
    if (news->outcome != OUTCOME_OK)
        waiter_end(waiter, news);
    else if (!found || waiter_id_ends(waiter) || !ask_for_waiter(waiter))
        waiter_enqueue(waiter);
}

/* A read, which is over before the wait is. False when out of memory. */
static bool waiter_probe(struct local_waiter *waiter)
{
    int64_t timeout_ms = waiter->options.timeout_ms, wait_ms = waiter->options.wait_ms;
    bool short_wait = wait_ms != WAIT_WITHOUT_LIMIT && wait_ms > 0 && wait_ms < timeout_ms;
    struct lease_options options = {
        .request = {.verb = VERB_QUERY,
                    .key = waiter->key->key,
                    .holder = waiter->options.request.holder,
                    .request = waiter->options.request.request},
        .timeout_ms = short_wait ? wait_ms : timeout_ms,
    };
    waiter->probe =
        executor_start(waiter->queue->executor, &options,
                       &(struct executor_caller){.notify = on_probe_event, .owner = waiter});
    if (waiter->probe != NULL)
        waiter->state = WAITER_PROBING;
    return waiter->probe != NULL;
}

void waiter_enter(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct local_queue *queue = waiter->queue;
    waiter->arrived = ++queue->arrivals;
    waiter->entered_ms = executor_now(queue->executor);
    if (!waiter->options.request.waits) {
        enter_without_wait(waiter);
        return;
    }
    bool behind = key->waiters.first != NULL || !local_key_may_ask(key);
    bool known = key->asking != NULL && waiter_repeats(waiter, key->asking);
    bool probes =
        waiter->options.request.request != NULL && behind && !known && !waiter_id_ends(waiter);
    if (queue->counts.waiting < LOCAL_WAITERS && probes && waiter_probe(waiter))
        return;
    waiter_enqueue(waiter);
}

/* Exit. */

/* From one caller to the next without a write; the store sees one holder. */
static bool hand_off(struct store_lease *lease)
{
    struct local_key *key = lease->key;
    const struct lease_options *options = executor_options(lease->task);
    struct local_waiter *next = waiters_first(key);
    bool held = lease->state == STORE_LEASE_HELD && executor_holds(lease->task);
    bool few = lease->hand_offs < HAND_OFFS_MAX || MUTANT(HAND_OVER_WITHOUT_END);
    bool alone = !executor_others_wait(lease->task) || MUTANT(HAND_OVER_PAST_OUTSIDERS);
    bool may = (held || MUTANT(HAND_OVER_AFTER_LOSS)) && few && alone && key->asking == NULL &&
               options->request.mode == MODE_EXCLUSIVE && options->cooldown_ms == 0;
    if (!may || next == NULL || !waiter_fits(lease, next))
        return false;
    store_lease_hand_off(lease, next);
    return true;
}

/* The last waiter that the store lease fits releases it; otherwise it stays for the others. */
static void leave_queue(struct local_waiter *waiter, const char *why, bool in_trouble)
{
    struct local_key *key = waiter->key;
    key->users++;
    waiters_remove(waiter);
    struct store_lease *released = local_key_note_exit(waiter);
    if (released != NULL && !in_trouble) { /* ends when the store has removed it */
        waiter->state = WAITER_LEAVING;
        waiter->why_left = why;
        waiter->lease = released;
        released->waiter = waiter;
    } else if (in_trouble) {
        waiter_end_with(waiter, OUTCOME_UNAVAILABLE, "the store does not answer");
    } else {
        waiter_end_with(waiter, OUTCOME_BUSY, why);
    }
    local_key_ask_next(key);
    local_key_unref(key);
}

void waiter_review(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    if (waiter->state != WAITER_QUEUED)
        return;
    key->users++;
    if (!waiter->paused && waiter->set_aside) {
        waiters_remove(waiter);
        waiter->set_aside = false;
        (void)local_key_note_exit(waiter);
        if (waiter_id_ends(waiter) || !ask_for_waiter(waiter))
            waiter_enqueue(waiter);
    } else if (waiter->ordered) {
        local_key_note_entry(waiter);
    } else {
        (void)local_key_note_exit(waiter);
    }
    local_key_ask_next(key);
    local_key_unref(key);
}

/* True if the store causes the wait. A release of ours in flight blocks the waiter too. */
static bool store_delays(const struct local_waiter *waiter)
{
    const struct local_key *key = waiter->key;
    if (MUTANT(SILENCE_IS_BUSY))
        return false;
    if (key->asking != NULL)
        return executor_in_trouble(key->asking->task, waiter->entered_ms);
    if (key->blocking == 0)
        return false;
    for (struct list_node *node = key->leases.first; node != NULL; node = node->next) {
        const struct store_lease *lease = store_lease_of(node);
        if (lease->state == STORE_LEASE_ENDING && executor_in_trouble(lease->task, INT64_MIN))
            return true;
    }
    return false;
}

void waiter_time_out(struct executor_timer *timeout)
{
    struct local_waiter *waiter =
        (struct local_waiter *)(void *)((char *)timeout - offsetof(struct local_waiter, timeout));
    const struct store_lease *lease = waiter->key->asking;
    bool served = lease != NULL && store_lease_heir(lease) == waiter;
    int64_t due_ms = served ? executor_grant_due(lease->task) : NEVER;
    ASSERT(waiter->state == WAITER_QUEUED);
    /* If a write in flight would be its grant, the waiter stays until the reply is due. */
    if (due_ms != NEVER) {
        int64_t now_ms = executor_now(waiter->queue->executor);
        executor_set_timer(waiter->queue->executor, timeout,
                           (due_ms > now_ms ? due_ms : now_ms) + 1);
        return;
    }
    const char *why =
        waiter->paused ? "paused until the end of the wait" : "not granted within the wait";
    leave_queue(waiter, why, store_delays(waiter));
}

/* Nothing was requested yet. */
static void stop_probe(struct local_waiter *waiter)
{
    if (waiter->probe != NULL)
        executor_forget(waiter->probe);
    waiter->probe = NULL;
}

void waiter_leave(struct local_waiter *waiter, const char *why)
{
    switch (waiter->state) {
    case WAITER_PROBING:
        stop_probe(waiter);
        waiter_end_with(waiter, OUTCOME_BUSY, why);
        return;
    case WAITER_QUEUED:
        leave_queue(waiter, why, /* in_trouble= */ false);
        return;
    case WAITER_HOLDING:
        if (hand_off(waiter->lease))
            return;
        why = NULL;
        break;
    case WAITER_ASKING:
        break;
    case WAITER_NEW:
    case WAITER_LEAVING:
        return;
    }
    waiter->state = WAITER_LEAVING;
    waiter->why_left = why;
    executor_limit_release(waiter->lease->task, waiter->options.timeout_ms);
    store_lease_release(waiter->lease);
}

/* The store lease that nobody else needs: its own, or that of the queue if it was the last. */
static struct store_lease *forgotten_lease(struct local_waiter *waiter)
{
    struct store_lease *lease = waiter->key->asking;
    if (waiter->state != WAITER_QUEUED)
        return waiter->lease;
    waiters_remove(waiter);
    if (lease != NULL && lease->starter == waiter)
        lease->starter = NULL;
    if (lease == NULL || (lease->heir != NULL && lease->heir != waiter))
        return NULL;
    struct local_waiter *first = waiters_first(waiter->key);
    lease->heir = first != NULL && waiter_fits(lease, first) ? first : NULL;
    return lease->heir == NULL ? lease : NULL;
}

void waiter_forget(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    key->users++;
    stop_probe(waiter);
    struct store_lease *lease = forgotten_lease(waiter);
    if (lease != NULL) {
        executor_forget(lease->task);
        store_lease_free(lease);
    }
    waiter_end_with(waiter, OUTCOME_BUSY, /* why= */ NULL); /* it is silent */
    local_key_ask_next(key);
    local_key_unref(key);
}

void local_key_free(struct local_key *key)
{
    key->users++;
    for (struct list_node *node = key->leases.first, *next; node != NULL; node = next) {
        struct store_lease *lease = store_lease_of(node);
        next = node->next;
        executor_forget(lease->task);
        store_lease_free(lease);
    }
    local_key_unref(key);
}

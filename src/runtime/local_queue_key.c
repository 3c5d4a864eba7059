/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key of the local queue. The queue has the order of the store's (rule 4): priority, raised by
 * one for each time a waiter is passed over, then arrival. A store lease is a lease, or a request
 * for one, at the store; one for the queue serves the waiter that is first when it is granted.
 *
 * Callbacks only queue commands, so nothing changes during these loops.
 */
#include "base/check.h"
#include "core/mutant.h"
#include "runtime/local_queue_internal.h"

#include <stdlib.h>
#include <string.h>

static void local_key_ask_next(struct local_key *key);

/* Compatibility of grants. */

static bool same_string(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A grant that is identified by a request id or meta, or outlives the process, belongs to one
 * caller. So does a claim of an id (KIND_ONCE): it ends with the store's token, and has a
 * payload. */
static bool is_shareable(const struct lease_options *options)
{
    const struct request *request = &options->request;
    return request->bound && request->kind == KIND_LOCK && request->request == NULL &&
           request->meta == NULL;
}

static bool lease_fits(const struct store_lease *lease, const struct local_waiter *waiter)
{
    const struct lease_options *mine = &waiter->options, *asked = executor_options(lease->task);
    if (waiter == lease->starter)
        return true;
    bool both = (lease->shareable && is_shareable(mine)) ||
                (MUTANT(CLAIM_SHARED) && mine->request.kind == KIND_ONCE);
    return both && mine->request.mode == asked->request.mode &&
           mine->request.limit == asked->request.limit &&
           mine->request.ttl_ms == asked->request.ttl_ms &&
           mine->request.lock_delay_ms == asked->request.lock_delay_ms &&
           mine->cooldown_ms == asked->cooldown_ms && mine->kill_grace_ms == asked->kill_grace_ms &&
           same_string(mine->request.holder, asked->request.holder);
}

/* The queue. */

static int64_t waiter_rank(const struct local_waiter *waiter)
{
    return (int64_t)waiter->options.request.priority + waiter->passed;
}

/* The first waiter, of those that the store lease fits if there is one. */
static struct local_waiter *next_waiter(const struct local_key *key,
                                        const struct store_lease *lease)
{
    struct local_waiter *next = NULL;
    for (struct list_node *node = key->waiters.first; node != NULL; node = node->next) {
        struct local_waiter *waiter = waiter_of(node);
        if ((lease == NULL || lease_fits(lease, waiter)) &&
            (next == NULL || waiter_rank(waiter) > waiter_rank(next) ||
             MUTANT(HAND_OVER_TO_NEWEST)))
            next = waiter;
    }
    return next;
}

static void enqueue(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    waiter->state = WAITER_QUEUED;
    list_append(&key->waiters, &waiter->in_key);
    key->queued++;
    waiter->queue->counts.waiting++;
}

static void dequeue(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    list_remove(&key->waiters, &waiter->in_key);
    key->queued--;
    waiter->queue->counts.waiting--;
    executor_set_timer(waiter->queue->executor, &waiter->timeout, HEAP_NEVER);
}

/* Every earlier waiter was passed over once more. */
static void age_waiters(const struct local_waiter *chosen)
{
    for (struct list_node *node = chosen->in_key.previous; node != NULL; node = node->previous)
        if (waiter_of(node)->passed < PASSED_MAX)
            waiter_of(node)->passed++;
}

static void notify_waiting(struct local_waiter *waiter, const struct task_news *news)
{
    if (!waiter->waiting_notified)
        waiter_notify(waiter, news);
    waiter->waiting_notified = true;
}

/* Store leases. */

static void store_lease_free(struct store_lease *lease)
{
    struct local_key *key = lease->key;
    list_remove(&key->leases, &lease->node);
    if (key->asking == lease)
        key->asking = NULL;
    free(lease);
    local_key_unref(key);
}

static void store_lease_release(struct store_lease *lease)
{
    lease->state = STORE_LEASE_ENDING;
    if (lease->key->asking == lease)
        lease->key->asking = NULL;
    executor_release(lease->task);
}

static void assign_lease(struct store_lease *lease, struct local_waiter *waiter,
                         struct task_news news)
{
    age_waiters(waiter);
    dequeue(waiter);
    waiter->state = WAITER_HOLDING;
    waiter->lease = lease;
    lease->waiter = waiter;
    news.notify = NOTIFY_HELD;
    news.token = lease->token + (MUTANT(HAND_OVER_KEEPS_TOKEN) ? 0 : lease->hand_offs);
    news.deadline_ms = lease->deadline_ms;
    news.kill_at_ms = lease->kill_at_ms;
    waiter_notify(waiter, &news);
}

static void note_renewal(struct store_lease *lease, const struct task_news *news)
{
    lease->deadline_ms = news->deadline_ms;
    lease->kill_at_ms = news->kill_at_ms;
}

static void on_lease_granted(struct store_lease *lease, const struct task_news *news)
{
    struct local_key *key = lease->key;
    bool for_queue = key->asking == lease;
    lease->token = news->token;
    lease->state = STORE_LEASE_HELD;
    note_renewal(lease, news);
    if (for_queue) {
        struct local_waiter *next = next_waiter(key, lease);
        key->asking = NULL;
        if (next != NULL)
            assign_lease(lease, next, *news);
        else if (!MUTANT(GRANT_FOR_NOBODY))
            store_lease_release(lease);
    } else {
        lease->waiter->state = WAITER_HOLDING;
        waiter_notify(lease->waiter, news);
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

/* True if the store gives both the same reply: an id with another payload gets another one. */
static bool means_same(const struct local_waiter *waiter, const struct store_lease *lease)
{
    const struct request *mine = &waiter->options.request;
    const struct request *asked = &executor_options(lease->task)->request;
    return mine->kind == asked->kind && same_string(mine->payload, asked->payload);
}

/* A denial, an invalid key or an unavailable store ends all waiters; other refusals end those that
 * the store lease fits. The result of a once-only id goes to the waiters with the same payload. */
static void refuse_queue(const struct store_lease *lease, const struct task_news *news)
{
    bool cools = news->outcome == OUTCOME_COOLING;
    bool all = news->outcome == OUTCOME_DENIED || news->outcome == OUTCOME_UNAVAILABLE ||
               news->outcome == OUTCOME_USAGE;
    for (struct list_node *node = lease->key->waiters.first, *next; node != NULL; node = next) {
        struct local_waiter *waiter = waiter_of(node);
        next = node->next;
        bool too = cools && (means_same(waiter, lease) || MUTANT(DONE_TOLD_TO_ALL));
        if (!all && !too && !lease_fits(lease, waiter))
            continue;
        dequeue(waiter);
        waiter_end(waiter, news);
    }
}

static void on_lease_ended(struct store_lease *lease, const struct task_news *news)
{
    struct local_key *key = lease->key;
    struct local_waiter *waiter = lease->waiter;
    struct task_news final = *news;
    key->users++; /* until the end of this function */
    if (waiter != NULL) {
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
        for (struct list_node *node = lease->key->waiters.first; node != NULL; node = node->next)
            notify_waiting(waiter_of(node), news);
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
            lease->state = STORE_LEASE_LOST;
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

/* NULL when out of memory. It waits without limit for the queue: waiters have own timeouts. */
static struct store_lease *store_lease_new(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct lease_options options = waiter->options;
    struct store_lease *lease = malloc(sizeof *lease);
    if (lease == NULL)
        return NULL;
    memset(lease, 0, sizeof *lease);
    if (options.request.waits)
        options.wait_ms = WAIT_WITHOUT_LIMIT;
    lease->key = key;
    lease->starter = waiter;
    lease->adopts = waiter->adopts;
    lease->shareable = waiter->adopts || is_shareable(&waiter->options);
    lease->task =
        executor_start(key->queue->executor, &options,
                       &(struct executor_caller){.notify = on_lease_event, .owner = lease});
    if (lease->task == NULL) {
        free(lease);
        return NULL;
    }
    list_prepend(&key->leases, &lease->node);
    key->users++;
    return lease;
}

/* False if this process holds the key, or its release is in flight. */
static bool may_ask_store(const struct local_key *key)
{
    for (struct list_node *node = key->leases.first; node != NULL; node = node->next) {
        const struct store_lease *lease = store_lease_of(node);
        enum mode mode = executor_options(lease->task)->request.mode;
        if (lease->state == STORE_LEASE_ENDING ||
            (lease->state == STORE_LEASE_HELD && mode == MODE_EXCLUSIVE) ||
            (lease->state == STORE_LEASE_ASKING && lease->adopts))
            return false;
    }
    return key->asking == NULL;
}

/* One request of the queue is in flight at a time, and none while a lease of ours blocks it. */
static void local_key_ask_next(struct local_key *key)
{
    key->users++; /* until the end of this function */
    while (may_ask_store(key) && !key->queue->closing) {
        struct local_waiter *next = next_waiter(key, /* lease= */ NULL);
        if (next == NULL)
            break;
        key->asking = store_lease_new(next);
        if (key->asking != NULL)
            break;
        dequeue(next);
        waiter_end_with(next, OUTCOME_UNAVAILABLE, "out of memory");
    }
    local_key_unref(key);
}

/*
 * A higher priority moves up the process's waiter in the store, which keeps its age (rule 4): a new
 * request takes it over. The earlier store lease releases a grant that it may get meanwhile.
 */
static void raise_priority(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct store_lease *before = key->asking;
    if (before == NULL || next_waiter(key, /* lease= */ NULL) != waiter ||
        waiter->options.request.priority <= executor_options(before->task)->request.priority ||
        executor_grant_due(before->task) != NEVER)
        return;
    struct store_lease *lease = store_lease_new(waiter);
    if (lease == NULL)
        return; /* the earlier one also serves, only later */
    key->asking = lease;
    store_lease_release(before);
}

/* Entry. */

/* A lease of this process that is held now and excludes the waiter: no query is needed. */
static const struct store_lease *blocking_lease(const struct local_waiter *waiter)
{
    for (struct list_node *node = waiter->key->leases.first; node != NULL; node = node->next) {
        const struct store_lease *lease = store_lease_of(node);
        bool alone = waiter->options.request.mode == MODE_EXCLUSIVE ||
                     executor_options(lease->task)->request.mode == MODE_EXCLUSIVE;
        bool held = lease->state == STORE_LEASE_HELD && executor_holds(lease->task);
        if (alone && means_same(waiter, lease) && (held || MUTANT(BUSY_FROM_OLD_COPY)))
            return lease;
    }
    return NULL;
}

static bool ask_for_waiter(struct local_waiter *waiter)
{
    struct store_lease *lease = store_lease_new(waiter);
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
    if (holder != NULL) {
        busy.key_info = (struct key_info){.state = KEY_HELD,
                                          .holder = executor_options(holder->task)->request.holder,
                                          .token = holder->token + holder->hand_offs,
                                          .ends_in_ms = -1,
                                          .takeover_in_ms = -1};
    } else if (key->waiters.first == NULL || key->asking != NULL) {
        if (!ask_for_waiter(waiter))
            waiter_end_with(waiter, OUTCOME_UNAVAILABLE, "out of memory");
        return;
    } else {
        busy.why = "others are in line";
    }
    waiter->queue->counts.known_busy++;
    waiter_end(waiter, &busy);
}

void waiter_enter(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct local_queue *queue = waiter->queue;
    int64_t wait_ms = waiter->options.wait_ms;
    if (!waiter->options.request.waits) {
        enter_without_wait(waiter);
        return;
    }
    if (key->queued >= WAITERS_MAX) {
        waiter_end_with(waiter, OUTCOME_BUSY, "queue full");
        return;
    }
    bool behind = key->waiters.first != NULL || !may_ask_store(key);
    enqueue(waiter);
    waiter->entered_ms = executor_now(queue->executor);
    if (wait_ms != WAIT_WITHOUT_LIMIT)
        executor_set_timer(queue->executor, &waiter->timeout, waiter->entered_ms + wait_ms);
    if (behind)
        notify_waiting(waiter, &(struct task_news){.notify = NOTIFY_WAITING});
    raise_priority(waiter);
    local_key_ask_next(key);
}

/* Exit. */

/* From one caller to the next without a write; the store sees one holder. */
static bool hand_off(struct store_lease *lease)
{
    struct local_key *key = lease->key;
    const struct lease_options *options = executor_options(lease->task);
    struct local_waiter *next = next_waiter(key, /* lease= */ NULL);
    bool held = lease->state == STORE_LEASE_HELD && executor_holds(lease->task);
    bool few = lease->hand_offs < HAND_OFFS_MAX || MUTANT(HAND_OVER_WITHOUT_END);
    bool alone = !executor_others_wait(lease->task) || MUTANT(HAND_OVER_PAST_OUTSIDERS);
    bool may = (held || MUTANT(HAND_OVER_AFTER_LOSS)) && few && alone && key->asking == NULL &&
               options->request.mode == MODE_EXCLUSIVE && options->cooldown_ms == 0;
    if (!may || next == NULL || !lease_fits(lease, next))
        return false;
    waiter_end_with(lease->waiter, OUTCOME_OK, /* why= */ NULL);
    lease->hand_offs++;
    key->queue->counts.hand_offs++;
    assign_lease(lease, next, (struct task_news){0});
    return true;
}

/* The last waiter that the store lease fits releases it; otherwise it stays for the others. */
static void leave_queue(struct local_waiter *waiter, const char *why, bool in_trouble)
{
    struct local_key *key = waiter->key;
    struct store_lease *lease = key->asking;
    bool served = lease != NULL && lease_fits(lease, waiter);
    dequeue(waiter);
    if (lease != NULL && lease->starter == waiter)
        lease->starter = NULL;
    bool last = served && next_waiter(key, lease) == NULL;
    last = last && !MUTANT(GRANT_FOR_NOBODY);
    if (last)
        store_lease_release(lease);
    key->users++;
    if (last && !in_trouble) { /* ends when the store has removed it */
        waiter->state = WAITER_LEAVING;
        waiter->why_left = why;
        waiter->lease = lease;
        lease->waiter = waiter;
    } else if (in_trouble) {
        waiter_end_with(waiter, OUTCOME_UNAVAILABLE, "the store does not answer");
    } else {
        waiter_end_with(waiter, OUTCOME_BUSY, why);
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
    struct local_key *key = waiter->key;
    const struct store_lease *lease = key->asking;
    bool served = lease != NULL && lease_fits(lease, waiter);
    int64_t due_ms = served ? executor_grant_due(lease->task) : NEVER;
    ASSERT(waiter->state == WAITER_QUEUED);
    /* If a write in flight would be its grant, the waiter stays until the reply is due. */
    if (due_ms != NEVER && next_waiter(key, lease) == waiter) {
        int64_t now_ms = executor_now(waiter->queue->executor);
        executor_set_timer(waiter->queue->executor, timeout,
                           (due_ms > now_ms ? due_ms : now_ms) + 1);
        return;
    }
    leave_queue(waiter, "not granted within the wait", store_delays(waiter));
}

void waiter_leave(struct local_waiter *waiter, const char *why)
{
    switch (waiter->state) {
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

void waiter_forget(struct local_waiter *waiter)
{
    struct local_key *key = waiter->key;
    struct store_lease *lease = waiter->state == WAITER_QUEUED ? key->asking : waiter->lease;
    bool takes_lease = lease != NULL;
    if (waiter->state == WAITER_QUEUED) {
        takes_lease = lease != NULL && lease_fits(lease, waiter);
        dequeue(waiter);
        if (lease != NULL && lease->starter == waiter)
            lease->starter = NULL;
        takes_lease = takes_lease && next_waiter(key, lease) == NULL;
    }
    key->users++;
    if (takes_lease) {
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

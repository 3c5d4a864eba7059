/* SPDX-License-Identifier: Apache-2.0 */
/* See executor.h: the interface, and the tick. */
#include "runtime/executor.h"

#include "base/check.h"
#include "runtime/executor_internal.h"
#include "store/translate.h"

#include <stdlib.h>

enum { EXECUTOR_MAGIC = 0xe3ec001, ROUNDS_MAX = 64 };

int64_t executor_now(const struct executor *executor)
{
    return executor->ticking ? executor->now_ms
                             : executor->callbacks.now_ms(executor->callbacks.owner);
}

void executor_read_clock(struct executor *executor)
{
    executor->now_ms = executor->callbacks.now_ms(executor->callbacks.owner);
}

void executor_schedule(struct executor *executor)
{
    if (executor->ticking || executor->scheduled)
        return;
    executor->scheduled = true;
    executor->callbacks.wake_at(executor->callbacks.owner, executor_now(executor));
}

void executor_post(struct executor *executor, struct inbox_item *item)
{
    inbox_post(&executor->inbox, item, executor->callbacks.wake, executor->callbacks.owner);
}

bool executor_has_posted(const struct executor *executor)
{
    return atomic_load(&executor->inbox.any_posted);
}

void executor_add(struct executor *executor, struct inbox_item *item)
{
    (void)inbox_collect(&executor->inbox);
    inbox_add(&executor->inbox.calls, item);
    executor_schedule(executor);
}

void executor_set_timer(struct executor *executor, struct executor_timer *timer, int64_t at_ms)
{
    heap_set(&executor->timers, &timer->node, at_ms);
}

struct executor *executor_new(const struct executor_callbacks *callbacks)
{
    ASSERT(callbacks->session != 0);
    struct executor *executor = calloc(1, sizeof *executor);
    if (executor == NULL)
        return NULL;
    size_t cache_max =
        callbacks->replies_at_once ? RECORD_CACHE_BYTES_AT_ONCE : RECORD_CACHE_BYTES_MAX;
    if (!record_cache_init(&executor->record_cache, cache_max)) {
        free(executor);
        return NULL;
    }
    executor->magic = EXECUTOR_MAGIC;
    executor->callbacks = *callbacks;
    executor->random.state = callbacks->seed;
    inbox_init(&executor->inbox);
    return executor;
}

void executor_free(struct executor **executor_pointer)
{
    struct executor *executor = *executor_pointer;
    if (executor == NULL)
        return;
    ASSERT(executor->magic == EXECUTOR_MAGIC && !executor->ticking);
    while (executor->tasks.first != NULL)
        task_free(LIST_ENTRY(executor->tasks.first, struct task, in_all));
    while (executor->sents.first != NULL)
        send_queue_free(executor, LIST_ENTRY(executor->sents.first, struct sent, in_all));
    record_cache_done(&executor->record_cache);
    inbox_done(&executor->inbox);
    executor->magic = 0;
    free(executor);
    *executor_pointer = NULL;
}

struct task *executor_start(struct executor *executor, const struct lease_options *options,
                            const struct executor_caller *caller)
{
    ASSERT(executor->magic == EXECUTOR_MAGIC);
    struct task *task = task_new(executor, options, caller);
    if (task != NULL)
        task_queue_command(task, COMMAND_START);
    return task;
}

void executor_release(struct task *task)
{
    task_queue_command(task, COMMAND_RELEASE);
}

void executor_drop_cooldown(struct task *task)
{
    task->options.cooldown_ms = task->options.request.cooldown_ms = 0;
}

void executor_limit_release(struct task *task, int64_t timeout_ms)
{
    task->options.timeout_ms = timeout_ms;
}

void executor_cancel(struct task *task)
{
    task->silent = true;
    task_queue_command(task, COMMAND_RELEASE);
}

void executor_forget(struct task *task)
{
    task_free(task);
}

/* True if the reply is new: then the entry owns it. One that is too long would be evicted at once.
 */
static bool cache_reply(struct executor *executor, struct record_cache_entry *entry,
                        struct saved_reply *saved_reply)
{
    const struct store_reply *said = &saved_reply->reply;
    saved_reply->saved_at_ms = executor_now(executor);
    const struct store_reply *before =
        entry->saved_reply != NULL ? &entry->saved_reply->reply : NULL;
    bool has_record =
        (said->result == REPLY_OK || said->result == REPLY_CONFLICT) && said->length <= RECORD_MAX;
    bool older = before != NULL && before->present && said->present &&
                 stamp_order(&said->written) < stamp_order(&before->written);
    if (has_record && !older)
        record_cache_set(&executor->record_cache, entry, saved_reply);
    return has_record && !older;
}

static void command_all(const struct record_cache_entry *entry, const struct task *but,
                        enum task_command command)
{
    for (struct list_node *node = entry->user_list.first; node != NULL; node = node->next) {
        struct task *task = LIST_ENTRY(node, struct task, in_key);
        if (task != but)
            task_queue_command(task, command);
    }
}

/* True if the cache is now at least as new as `current`. A cached absence has no revision. */
static bool cache_notified_record(struct executor *executor, struct record_cache_entry *entry,
                                  const struct store_reply *current)
{
    if (entry->saved_reply != NULL && !entry->saved_reply->reply.present)
        return false;
    struct saved_reply *saved_reply = saved_reply_new(current);
    if (saved_reply == NULL)
        return false;
    if (!cache_reply(executor, entry, saved_reply))
        free(saved_reply);
    return entry->saved_reply != NULL;
}

/* The record cannot replace a cached absence, but a waiter in it is known from now on. */
static void note_notified_waiters(struct executor *executor, struct record_cache_entry *entry,
                                  const struct store_reply *current)
{
    const char *why = NULL;
    struct event event = {0};
    if (executor->notifying != NULL) /* the scratch record is in use */
        return;
    translate_reply(current, entry->key, &executor->record, &event, &why);
    if (event.known)
        executor_note_others(executor, entry, &event.at);
}

void executor_on_notify(struct executor *executor, const char *key,
                        const struct store_reply *current)
{
    struct record_cache_entry *entry = record_cache_find(&executor->record_cache, key);
    if (entry == NULL)
        return;
    if (current != NULL && current->present && cache_notified_record(executor, entry, current)) {
        command_all(entry, /* but= */ NULL, COMMAND_UPDATE);
        return;
    }
    if (current != NULL && current->present)
        note_notified_waiters(executor, entry, current);
    record_cache_set(&executor->record_cache, entry, /* saved_reply= */ NULL);
    command_all(entry, /* but= */ NULL, COMMAND_NOTIFY);
}

void executor_on_change(struct executor *executor, const struct store_reply *reply)
{
    struct record_cache_entry *entry = record_cache_find(&executor->record_cache, reply->key);
    if (entry == NULL)
        return;
    struct saved_reply *saved_reply = saved_reply_new(reply);
    if (saved_reply == NULL) {
        executor_on_notify(executor, reply->key, /* current= */ NULL);
    } else if (cache_reply(executor, entry, saved_reply)) {
        command_all(entry, /* but= */ NULL, COMMAND_UPDATE);
    } else {
        free(saved_reply);
    }
}

bool executor_holds(const struct task *task)
{
    const struct executor_callbacks *callbacks = &task->executor->callbacks;
    return lease_held(&task->lease, callbacks->now_ms(callbacks->owner));
}

bool executor_in_trouble(const struct task *task, int64_t since_ms)
{
    const struct lease *lease = &task->lease;
    bool unheard = lease->in_flight && task->last_reply_ms <= since_ms;
    return lease->trouble_since_ms != NEVER || unheard || lease->state == LEASE_IDLE ||
           lease->late > 0;
}

int64_t executor_grant_due(const struct task *task)
{
    const struct lease *lease = &task->lease;
    bool grants = lease->in_flight && lease->trouble_since_ms == NEVER &&
                  lease->sent != ACTION_READ && lease->sent_verb == VERB_ACQUIRE &&
                  lease->pending == VERDICT_GRANTED;
    return grants ? lease->reply_by_ms : NEVER;
}

bool executor_others_wait(const struct task *task)
{
    return task->entry->others_wait;
}

const struct lease_options *executor_options(const struct task *task)
{
    return &task->options;
}

const struct record *executor_cached_record(struct executor *executor, const char *key,
                                            struct stamp *out_at)
{
    const char *why = NULL;
    struct event event = {0};
    const struct record_cache_entry *entry = record_cache_find(&executor->record_cache, key);
    if (entry == NULL || entry->saved_reply == NULL || executor->notifying != NULL)
        return NULL;
    translate_reply(&entry->saved_reply->reply, key, &executor->record, &event, &why);
    if (!event.known)
        return NULL;
    *out_at = event.at;
    return &executor->record;
}

const struct store_reply *executor_last_reply(const struct executor *executor, const char *key)
{
    const struct record_cache_entry *entry = record_cache_find(&executor->record_cache, key);
    return entry != NULL && entry->saved_reply != NULL ? &entry->saved_reply->reply : NULL;
}

int64_t executor_retry_after(const struct executor *executor)
{
    return breaker_retry_after(&executor->breaker, executor_now(executor));
}

struct executor_counts executor_counts(const struct executor *executor)
{
    struct executor_counts counts = executor->counts;
    counts.copies = executor->record_cache.copies;
    counts.copy_bytes = executor->record_cache.bytes;
    counts.breaker_open = breaker_is_open(&executor->breaker);
    return counts;
}

/* The tick. */

static struct task *task_of(struct heap_node *node, size_t offset)
{
    return (struct task *)(void *)((char *)node - offset);
}

/* First in a tick: a holder past its deadline is notified whatever the store replies. */
static void expire_overdue(struct executor *executor)
{
    while (heap_first(&executor->deadlines) <= executor->now_ms) {
        struct task *task = task_of(executor->deadlines.top, offsetof(struct task, deadline));
        task_step(task, &(struct event){.kind = EVENT_TIMER}, /* saved_reply= */ NULL);
    }
}

static void count_reply(struct executor *executor, const struct sent *sent)
{
    if (sent->saved_reply == NULL)
        return; /* our lack of memory is not a failure of the store */
    enum reply_status result = sent->saved_reply->reply.result;
    executor->counts.conflicts += result == REPLY_CONFLICT ? 1 : 0;
    if (result == REPLY_TROUBLE) {
        executor->counts.troubles++;
        breaker_failure(&executor->breaker, executor_now(executor));
        return;
    }
    breaker_success(&executor->breaker);
    /* Other results have their own reason, and the store works. */
    if (result == REPLY_OK || result == REPLY_CONFLICT)
        executor->trouble[0] = '\0';
}

static void handle_reply(struct executor *executor, struct sent *sent)
{
    struct task *task = sent->task;
    const struct saved_reply *saved_reply = sent->saved_reply;
    struct event event = {.kind = EVENT_REPLY, .serial = sent->serial, .reply = REPLY_TROUBLE};
    count_reply(executor, sent);
    struct record_cache_entry *entry =
        task != NULL ? task->entry : record_cache_find(&executor->record_cache, sent->request.key);
    if (saved_reply != NULL && entry != NULL && cache_reply(executor, entry, sent->saved_reply)) {
        sent->saved_reply = NULL;
        /* Our write may concern other tasks; a reply without a task concerns all. */
        if (task == NULL || sent->request.verb != VERB_STORE_READ)
            command_all(entry, task, COMMAND_UPDATE);
    }
    if (task == NULL)
        return;
    if (saved_reply != NULL)
        task->last_reply_ms = executor_now(executor);
    task_step(task, &event, saved_reply);
}

static void handle_replies(struct executor *executor)
{
    for (struct sent *sent; (sent = send_queue_pop_answered(executor)) != NULL;) {
        handle_reply(executor, sent);
        send_queue_free(executor, sent);
    }
}

/* Commands given meanwhile run in the next round. */
static void run_commands(struct executor *executor)
{
    struct inbox_item *item;
    for (size_t left = executor->inbox.commands.count;
         left > 0 && (item = inbox_pop(&executor->inbox.commands)) != NULL; left--)
        item->run(item);
}

/* A call may call back too; holders' deadlines precede the next one. */
static void run_calls(struct executor *executor)
{
    struct inbox_item *item;
    for (size_t left = inbox_collect(&executor->inbox);
         left > 0 && (item = inbox_pop(&executor->inbox.calls)) != NULL; left--) {
        item->run(item);
        executor_read_clock(executor);
        expire_overdue(executor);
    }
}

static void fire_timers(struct executor *executor)
{
    int64_t now_ms = executor->now_ms; /* a timer set meanwhile is due in the next round */
    while (heap_first(&executor->wakes) <= now_ms) {
        struct task *task = task_of(executor->wakes.top, offsetof(struct task, wake));
        task_step(task, &(struct event){.kind = EVENT_TIMER}, /* saved_reply= */ NULL);
    }
}

/* False if none was due. */
static bool run_timers(struct executor *executor)
{
    int64_t now_ms = executor->now_ms;
    bool any = heap_first(&executor->timers) <= now_ms;
    while (heap_first(&executor->timers) <= now_ms) {
        struct executor_timer *timer =
            (struct executor_timer *)(void *)((char *)executor->timers.top -
                                              offsetof(struct executor_timer, node));
        heap_set(&executor->timers, &timer->node, HEAP_NEVER);
        timer->due(timer);
    }
    return any;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Within a call only its own consequences count. */
static bool has_work(struct executor *executor, bool within_call)
{
    return executor->answered.first != NULL || executor->inbox.commands.count > 0 ||
           (!within_call && inbox_collect(&executor->inbox) > 0);
}

/* A reply within the submit call is handled in the same tick. Timers run when all requests before
 * them were sent: a slow tick must not count as a store timeout. */
static void run_rounds(struct executor *executor, bool within_call)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        expire_overdue(executor);
        handle_replies(executor);
        run_commands(executor);
        if (!within_call)
            run_calls(executor);
        fire_timers(executor);
        send_queue_submit(executor);
        if (!has_work(executor, within_call) && !run_timers(executor))
            return;
    }
    (void)run_timers(executor); /* constant work must not delay them for ever */
}

void executor_tick(struct executor *executor)
{
    ASSERT(executor->magic == EXECUTOR_MAGIC && executor->notifying == NULL);
    bool within_call = executor->ticking;
    executor->ticking = true;
    executor->scheduled = false;
    executor_read_clock(executor);
    run_rounds(executor, within_call);
    if (within_call)
        return;
    executor->ticking = false;
    int64_t next_ms = earlier(heap_first(&executor->deadlines), heap_first(&executor->wakes));
    next_ms = earlier(next_ms, heap_first(&executor->timers));
    executor->callbacks.wake_at(
        executor->callbacks.owner,
        has_work(executor, /* within_call= */ false) ? executor_now(executor) : next_ms);
}

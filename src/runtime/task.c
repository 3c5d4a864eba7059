/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One task of the executor: its memory, and one step of its lease with the results: the request to
 * send, the timers, the callback. The record is the executor's scratch; a task stores none.
 */
#include "base/check.h"
#include "runtime/executor_internal.h"
#include "runtime/lease_options.h"
#include "store/translate.h"

#include <stdlib.h>
#include <string.h>

enum { TASK_MAGIC = 0x7a5c001, REQUEST_ID_SIZE = 40, WINDOWS_PER_TTL = 20, TRACE_SIZE = 256 };

static void task_run_commands(struct inbox_item *item);

/* Unique among all processes, as sessions are. */
static void make_request_id(struct executor *executor, char out[REQUEST_ID_SIZE])
{
    struct text text;
    text_init(&text, out, REQUEST_ID_SIZE);
    text_add_hex(&text, executor->callbacks.session);
    text_add(&text, "-");
    text_add_u64(&text, executor->number);
}

struct task *task_new(struct executor *executor, const struct lease_options *options,
                      const struct executor_caller *caller)
{
    char made_id[REQUEST_ID_SIZE];
    struct lease_options filled = *options;
    if (executor->counts.tasks >= TASKS_MAX)
        return NULL;
    executor->number++;
    filled.facts = &executor->callbacks.facts;
    filled.request.session = executor->callbacks.session;
    enum verb verb = filled.request.verb;
    bool named = verb == VERB_ACQUIRE || verb == VERB_MARK || verb == VERB_ADVANCE;
    if (filled.request.request == NULL && named) {
        make_request_id(executor, made_id);
        filled.request.request = made_id;
    }
    struct task *task = malloc(sizeof *task + lease_options_size(&filled));
    struct record_cache_entry *entry =
        task != NULL ? record_cache_ref(&executor->record_cache, filled.request.key) : NULL;
    if (entry == NULL) {
        free(task);
        return NULL;
    }
    memset(task, 0, sizeof *task);
    task->magic = TASK_MAGIC;
    task->executor = executor;
    task->caller = *caller;
    task->entry = entry;
    task->last_reply_ms = INT64_MIN;
    heap_node_init(&task->deadline);
    heap_node_init(&task->wake);
    lease_options_copy(&task->options, &filled, entry->key, task->storage);
    lease_init(&task->lease, &task->options, /* observations= */ NULL,
               random_next(&executor->random));
    task->item.run = task_run_commands;
    list_prepend(&executor->tasks, &task->in_all);
    list_prepend(&entry->user_list, &task->in_key);
    executor->counts.tasks++;
    return task;
}

static void task_clear_commands(struct executor *executor, struct task *task)
{
    if (task->commands != 0)
        inbox_remove(&executor->inbox.commands, &task->item);
    task->commands = 0;
}

void task_queue_command(struct task *task, enum task_command command)
{
    struct executor *executor = task->executor;
    ASSERT(task->magic == TASK_MAGIC && !task->forgotten);
    if (task->commands == 0)
        inbox_add(&executor->inbox.commands, &task->item);
    task->commands |= (unsigned)command;
    executor_schedule(executor);
}

void task_free(struct task *task)
{
    struct executor *executor = task->executor;
    ASSERT(task->magic == TASK_MAGIC);
    if (executor->notifying == task) {
        task->forgotten = true;
        return;
    }
    task_clear_commands(executor, task);
    heap_set(&executor->deadlines, &task->deadline, HEAP_NEVER);
    heap_set(&executor->wakes, &task->wake, HEAP_NEVER);
    send_queue_abandon(task);
    list_remove(&executor->tasks, &task->in_all);
    list_remove(&task->entry->user_list, &task->in_key);
    executor->counts.tasks--;
    record_cache_unref(&executor->record_cache, task->entry);
    task->magic = 0;
    free(task);
}

/* True if this step needs the cached record: decoding one is most of the cost of a step. */
static bool wants_copy(const struct task *task, enum event_kind kind)
{
    const struct store_facts *store = task->options.facts;
    bool renews_by_token = store->tests_grant && !store->renews_by_revision;
    bool reads = store->renews_by_session && task->options.request.bound;
    if (kind == EVENT_TIMER)
        return task->lease.state == LEASE_LEAVING ||
               (task->lease.state == LEASE_HELD && !renews_by_token && !reads);
    return kind == EVENT_START || kind == EVENT_RELEASE;
}

void executor_note_others(const struct executor *executor, struct record_cache_entry *entry,
                          const struct stamp *at)
{
    const struct record *record = &executor->record;
    bool written = at->revision != 0;
    if (written && stamp_order(at) < entry->others_order)
        return;
    if (written)
        entry->others_order = stamp_order(at);
    entry->others_wait = false;
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].session != executor->callbacks.session)
            entry->others_wait = true;
}

/* Fills the scratch record and the event from a reply, or from the cache. */
static void task_load_record(struct task *task, struct event *event,
                             const struct saved_reply *saved_reply)
{
    struct executor *executor = task->executor;
    const char *why = NULL;
    struct event filled = *event;
    if (saved_reply == NULL && wants_copy(task, event->kind))
        saved_reply = task->entry->saved_reply;
    if (saved_reply == NULL)
        return;
    translate_reply(&saved_reply->reply, task->entry->key, &executor->record, &filled, &why);
    event->known = filled.known;
    event->at = filled.at;
    event->read_ms = saved_reply->saved_at_ms;
    if (filled.known)
        executor_note_others(executor, task->entry, &filled.at);
    if (event->kind == EVENT_REPLY) { /* never from the cache: wants_copy() */
        event->alive_ms = filled.alive_ms;
        event->reply = filled.reply;
        event->refused = filled.refused;
    }
    if (why != NULL) {
        struct text text;
        text_init(&text, executor->trouble, sizeof executor->trouble);
        text_add(&text, why);
    }
}

static bool is_holding(const struct lease *lease)
{
    return lease->state == LEASE_HELD || lease->state == LEASE_RENEWING;
}

/* Delays renewals to the end of a small window, so that those of many leases are sent together. */
static int64_t end_of_window(const struct lease *lease, int64_t at_ms)
{
    int64_t window_ms = lease->ttl_ms / WINDOWS_PER_TTL;
    int64_t most_ms = lease->options->facts->renewal_window_ms;
    window_ms = window_ms < 1 ? 1 : window_ms > most_ms ? most_ms : window_ms;
    return (at_ms + window_ms - 1) / window_ms * window_ms;
}

static void task_set_timers(struct task *task)
{
    struct executor *executor = task->executor;
    const struct lease *lease = &task->lease;
    int64_t at_ms = executor->output.wake_at_ms;
    if (at_ms <= lease->now_ms)
        at_ms = lease->now_ms + 1;
    if (lease->state == LEASE_HELD && at_ms != NEVER)
        at_ms = end_of_window(lease, at_ms);
    int64_t deadline_ms =
        lease->deadline_ms > lease->now_ms ? lease->deadline_ms : lease->now_ms + 1;
    heap_set(&executor->deadlines, &task->deadline, is_holding(lease) ? deadline_ms : HEAP_NEVER);
    heap_set(&executor->wakes, &task->wake, at_ms == NEVER ? HEAP_NEVER : at_ms);
}

static void task_notify_caller(struct task *task, const struct task_news *news)
{
    struct executor *executor = task->executor;
    if (task->silent)
        return;
    executor->notifying = task;
    task->caller.notify(task->caller.owner, task, news);
    executor->notifying = NULL;
    executor_read_clock(executor);
}

static void task_report(struct task *task, enum lease_notify notify, const struct event *event)
{
    struct executor *executor = task->executor;
    const struct lease_output *out = &executor->output;
    struct task_news news = {.notify = notify,
                             .outcome = out->outcome,
                             .why = out->why,
                             .trouble = executor->trouble[0] != '\0' ? executor->trouble : NULL,
                             .token = task->lease.token,
                             .took_over = notify == NOTIFY_HELD && task->took_over,
                             .deadline_ms = task->lease.deadline_ms,
                             .kill_at_ms = task->lease.kill_at_ms};
    if (event->known) {
        struct view view = {.at = event->at, .facts = task->options.facts};
        news.record = &executor->record;
        news.at = event->at;
        news.key_info = record_key_info(&executor->record, &view);
    }
    task_notify_caller(task, &news);
}

/* Reports the result of a step; the task is freed if it ended or was forgotten. */
static bool task_report_step(struct task *task, const struct lease *before,
                             const struct event *event)
{
    struct executor *executor = task->executor;
    bool renewed = is_holding(before) && is_holding(&task->lease) &&
                   before->deadline_ms != task->lease.deadline_ms;
    enum lease_notify notify = renewed ? NOTIFY_RENEWED : executor->output.notify;
    executor->counts.renewals += renewed ? 1 : 0;
    executor->counts.lost += executor->output.notify == NOTIFY_LOST ? 1 : 0;
    if (notify != NOTIFY_NONE)
        task_report(task, notify, event);
    if (task->lease.state != LEASE_ENDED && !task->forgotten)
        return true;
    task_free(task);
    return false;
}

/* Counts a request without a reply in time as a failure for the breaker. */
static void note_health(struct task *task, const struct lease *before, const struct event *event)
{
    struct executor *executor = task->executor;
    bool in_time = !before->in_flight || event->now_ms < before->reply_by_ms;
    if (event->kind == EVENT_TIMER && !in_time) {
        executor->counts.troubles++;
        breaker_failure(&executor->breaker, event->now_ms);
    }
}

/* For metrics, if the request is retried; otherwise the task's caller receives the reason. */
static void note_failure(const struct task *task, const struct lease *before,
                         const struct event *event)
{
    const struct executor_callbacks *callbacks = &task->executor->callbacks;
    const struct lease *lease = &task->lease;
    bool answered = event->kind == EVENT_REPLY && event->serial == before->serial;
    bool late = event->kind == EVENT_TIMER && event->now_ms >= before->reply_by_ms;
    enum reply_status reply = late ? REPLY_TROUBLE : event->reply;
    bool over = lease->state == LEASE_ENDED || lease->state == LEASE_LOST;
    if (callbacks->failed == NULL || !before->in_flight || !(answered || late) || over)
        return;
    /* After a conflict a retry is not always necessary. */
    bool again = reply == REPLY_CONFLICT ? lease->in_flight || lease->state == LEASE_ACQUIRING
                                         : reply != REPLY_OK;
    if (!again)
        return;
    callbacks->failed(callbacks->owner,
                      &(struct executor_failure){.key = task->entry->key,
                                                 .token = lease->token,
                                                 .renews = is_holding(lease),
                                                 .reply = reply,
                                                 .took_ms = event->now_ms - before->sent_at_ms});
    executor_read_clock(task->executor); /* the callback may have taken long */
}

/* Out of line, so that other steps need no room for the trace. */
__attribute__((noinline)) static void step_traced(struct task *task, const struct event *event,
                                                  const struct lease *before)
{
    struct executor *executor = task->executor;
    struct record *record = &executor->record;
    char line[TRACE_SIZE];
    struct text trace;
    text_init(&trace, line, sizeof line);
    lease_step(&task->lease, event, record, &executor->output, &trace);
    executor->callbacks.watcher(executor->callbacks.owner,
                                &(struct executor_step){.before = before,
                                                        .after = &task->lease,
                                                        .event = event,
                                                        .output = &executor->output,
                                                        .record = record,
                                                        .trace = line});
}

/* One step of the core; true if a request could not be sent, which is a failure at once. */
static bool step_once(struct task *task, struct event *event, const struct saved_reply *saved_reply,
                      bool *out_lives)
{
    struct executor *executor = task->executor;
    struct lease before = task->lease;
    event->now_ms = executor_now(executor);
    task_load_record(task, event, saved_reply);
    record_cache_load_observations(task->entry, &executor->observations);
    task->lease.observations = &executor->observations;
    if (executor->callbacks.watcher == NULL)
        lease_step(&task->lease, event, &executor->record, &executor->output, /* trace= */ NULL);
    else
        step_traced(task, event, &before);
    record_cache_save_observations(task->entry, &executor->observations);
    note_health(task, &before, event);
    note_failure(task, &before, event);
    if (executor->output.decided)
        task->took_over = executor->output.verdict.kind == VERDICT_GRANTED &&
                          executor->output.verdict.expired > 0;
    bool unsent = executor->output.action != ACTION_NONE && !send_queue_add(executor, task);
    task_set_timers(task);
    uint32_t serial = executor->output.serial;
    *out_lives = task_report_step(task, &before, event);
    if (unsent && *out_lives)
        *event = (struct event){.kind = EVENT_REPLY,
                                .serial = serial,
                                .reply = REPLY_TROUBLE,
                                .refused = executor_retry_after(executor) >= 0,
                                .retry_at_ms = executor->breaker.open_until_ms};
    return unsent && *out_lives;
}

void task_step(struct task *task, struct event *event, const struct saved_reply *saved_reply)
{
    bool lives = true;
    if (!step_once(task, event, saved_reply, &lives))
        return;
    bool unsure = task->lease.unsure;
    (void)step_once(task, event, /* saved_reply= */ NULL, &lives);
    if (lives) /* the request was never sent: it had no effect */
        task->lease.unsure = unsure;
}

/* The caller released before anything was sent. */
static void task_end_unstarted(struct task *task)
{
    struct task_news news = {.notify = NOTIFY_ENDED, .outcome = OUTCOME_BUSY, .why = "cancelled"};
    task_notify_caller(task, &news);
    task_free(task);
}

static void task_run_commands(struct inbox_item *item)
{
    struct task *task = LIST_ENTRY(&item->node, struct task, item.node);
    unsigned commands = task->commands;
    task->commands = 0;
    bool starts = (commands & COMMAND_START) != 0, releases = (commands & COMMAND_RELEASE) != 0;
    if (starts && releases)
        task_end_unstarted(task);
    else if (starts)
        task_step(task, &(struct event){.kind = EVENT_START}, /* saved_reply= */ NULL);
    else if (releases)
        task_step(task, &(struct event){.kind = EVENT_RELEASE}, /* saved_reply= */ NULL);
    else
        task_step(task, &(struct event){.kind = EVENT_NOTICE},
                  (commands & COMMAND_NOTIFY) != 0 ? NULL : task->entry->saved_reply);
}

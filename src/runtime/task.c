/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One task of the executor: its memory, and one step of its lease with all that follows from it:
 * what to send, when to wake, whom to tell. The record is the executor's scratch; a task keeps
 * none.
 */
#include "base/check.h"
#include "runtime/executor_inside.h"
#include "runtime/options.h"
#include "store/exchange.h"

#include <stdlib.h>
#include <string.h>

enum {
    TASK_MAGIC = 0x7a5c001,
    REQUEST_ID_SIZE = 40,
    WINDOW_MS = 50,
    WINDOWS_PER_TTL = 20,
    TRACE_SIZE = 256
};

/* Unique among all processes, as sessions are. */
static void make_request_id(struct executor *executor, char out[REQUEST_ID_SIZE])
{
    struct text text;
    text_init(&text, out, REQUEST_ID_SIZE);
    text_add_hex(&text, executor->site.session);
    text_add(&text, "-");
    text_add_u64(&text, executor->number);
}

static void link_task(struct executor *executor, struct task *task)
{
    struct task *first_of_key = task->known->first_user;
    task->next = executor->tasks;
    if (task->next != NULL)
        task->next->before = task;
    executor->tasks = task;
    task->next_of_key = first_of_key;
    if (first_of_key != NULL)
        first_of_key->before_of_key = task;
    task->known->first_user = task;
    executor->counts.tasks++;
}

static void unlink_task(struct executor *executor, struct task *task)
{
    if (task->next != NULL)
        task->next->before = task->before;
    if (task->before != NULL)
        task->before->next = task->next;
    else
        executor->tasks = task->next;
    if (task->next_of_key != NULL)
        task->next_of_key->before_of_key = task->before_of_key;
    if (task->before_of_key != NULL)
        task->before_of_key->next_of_key = task->next_of_key;
    else
        task->known->first_user = task->next_of_key;
    executor->counts.tasks--;
}

struct task *task_new(struct executor *executor, const struct lease_options *options,
                      const struct executor_caller *caller)
{
    char made_id[REQUEST_ID_SIZE];
    struct lease_options filled = *options;
    if (executor->counts.tasks >= TASKS_MAX)
        return NULL;
    executor->number++;
    filled.store = executor->site.facts;
    filled.request.session = executor->site.session;
    enum verb verb = filled.request.verb;
    bool named = verb == VERB_ASK || verb == VERB_MARK || verb == VERB_ADVANCE;
    if (filled.request.request == NULL && named) {
        make_request_id(executor, made_id);
        filled.request.request = made_id;
    }
    struct task *task = calloc(1, sizeof *task + options_size(&filled));
    struct known *known =
        task != NULL ? knowledge_use(&executor->knowledge, filled.request.key) : NULL;
    if (known == NULL) {
        free(task);
        return NULL;
    }
    task->magic = TASK_MAGIC;
    task->executor = executor;
    task->caller = *caller;
    task->known = known;
    task->heard_ms = INT64_MIN;
    heap_node_init(&task->deadline);
    heap_node_init(&task->wake);
    options_copy(&task->options, &filled, known->key, task->words);
    lease_init(&task->lease, &task->options, /* sighting= */ NULL, random_next(&executor->random));
    link_task(executor, task);
    return task;
}

static void stop_wishing(struct executor *executor, struct task *task)
{
    if (task->wishes == 0)
        return;
    if (task->next_wishing != NULL)
        task->next_wishing->before_wishing = task->before_wishing;
    else
        executor->last_wishing = task->before_wishing;
    if (task->before_wishing != NULL)
        task->before_wishing->next_wishing = task->next_wishing;
    else
        executor->first_wishing = task->next_wishing;
    task->next_wishing = task->before_wishing = NULL;
    task->wishes = 0;
    executor->wishing--;
}

unsigned task_take_wishes(struct task *task)
{
    unsigned wishes = task->wishes;
    stop_wishing(task->executor, task);
    return wishes;
}

void task_wish(struct task *task, enum wish wish)
{
    struct executor *executor = task->executor;
    ASSERT(task->magic == TASK_MAGIC && !task->forgotten);
    if (task->wishes == 0) {
        task->before_wishing = executor->last_wishing;
        if (executor->last_wishing != NULL)
            executor->last_wishing->next_wishing = task;
        else
            executor->first_wishing = task;
        executor->last_wishing = task;
        executor->wishing++;
    }
    task->wishes |= (unsigned)wish;
    executor_rouse(executor);
}

void task_free(struct task *task)
{
    struct executor *executor = task->executor;
    ASSERT(task->magic == TASK_MAGIC);
    if (executor->told == task) {
        task->forgotten = true;
        return;
    }
    stop_wishing(executor, task);
    heap_set(&executor->deadlines, &task->deadline, HEAP_NEVER);
    heap_set(&executor->wakes, &task->wake, HEAP_NEVER);
    outbox_abandon(task);
    unlink_task(executor, task);
    knowledge_return(&executor->knowledge, task->known);
    task->magic = 0;
    free(task);
}

/* Is there anything in this step that a copy is good for? Decoding one is most of a step's cost. */
static bool wants_copy(const struct task *task, enum event_kind kind)
{
    if (kind == EVENT_TIMER)
        return task->lease.state == LEASE_LEAVING ||
               (task->lease.state == LEASE_HELD && !task->options.store.tests_grant);
    return kind == EVENT_START || kind == EVENT_LET_GO;
}

/* From the scratch record, unless it is older than what told of it last. */
static void note_others(const struct executor *executor, struct known *known,
                        const struct stamp *at)
{
    const struct record *record = &executor->record;
    bool written = at->revision != 0;
    if (written && at->epoch == known->others_epoch && at->revision < known->others_revision)
        return;
    if (written) {
        known->others_epoch = at->epoch;
        known->others_revision = at->revision;
    }
    known->others_wait = false;
    for (size_t i = 0; i < record->place_count; i++)
        if (record->places[i].session != executor->site.session)
            known->others_wait = true;
}

/* Fills the scratch record and the event from an answer, or from what was last heard. */
static void recall(struct task *task, struct event *event, const struct heard *heard)
{
    struct executor *executor = task->executor;
    const char *why = NULL;
    struct event filled = *event;
    if (heard == NULL && wants_copy(task, event->kind))
        heard = task->known->heard;
    if (heard == NULL)
        return;
    exchange_event(&heard->answer, task->known->key, &executor->record, &filled, &why);
    event->known = filled.known;
    event->at = filled.at;
    if (filled.known)
        note_others(executor, task->known, &filled.at);
    if (event->kind == EVENT_ANSWER) {
        event->answer = filled.answer;
        event->refused = filled.refused;
    }
    if (why != NULL) {
        struct text text;
        text_init(&text, executor->trouble, sizeof executor->trouble);
        text_add(&text, why);
    }
}

static bool holds(const struct lease *lease)
{
    return lease->state == LEASE_HELD || lease->state == LEASE_RENEWING;
}

/* Renewals are put off to the end of a small window, so that those of many leases go together. */
static int64_t end_of_window(const struct lease *lease, int64_t at_ms)
{
    int64_t window_ms = lease->ttl_ms / WINDOWS_PER_TTL;
    window_ms = window_ms < 1 ? 1 : window_ms > WINDOW_MS ? WINDOW_MS : window_ms;
    return (at_ms + window_ms - 1) / window_ms * window_ms;
}

static void schedule(struct task *task)
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
    heap_set(&executor->deadlines, &task->deadline, holds(lease) ? deadline_ms : HEAP_NEVER);
    heap_set(&executor->wakes, &task->wake, at_ms == NEVER ? HEAP_NEVER : at_ms);
}

static void call(struct task *task, const struct task_news *news)
{
    struct executor *executor = task->executor;
    if (task->silent)
        return;
    executor->told = task;
    task->caller.told(task->caller.owner, task, news);
    executor->told = NULL;
}

static void tell(struct task *task, enum task_event kind, const struct event *event)
{
    struct executor *executor = task->executor;
    const struct lease_output *out = &executor->output;
    const struct store_facts *facts = &task->options.store;
    struct task_news news = {.event = kind,
                             .outcome = out->outcome,
                             .why = out->why,
                             .trouble = executor->trouble[0] != '\0' ? executor->trouble : NULL,
                             .token = task->lease.token,
                             .took_over = kind == TASK_HELD && task->took_over,
                             .deadline_ms = task->lease.deadline_ms,
                             .kill_at_ms = task->lease.kill_at_ms};
    if (event->known) {
        struct view view = {.at = event->at,
                            .judge = facts->judge,
                            .one_clock = facts->one_clock,
                            .margin_ms = facts->margin_ms};
        news.record = &executor->record;
        news.at = event->at;
        news.look = record_look(&executor->record, &view);
    }
    call(task, &news);
}

/* Tells what the step brought; the task is gone afterwards when it ended or was forgotten. */
static bool tell_all(struct task *task, const struct lease *before, const struct event *event)
{
    struct executor *executor = task->executor;
    bool renewed =
        holds(before) && holds(&task->lease) && before->deadline_ms != task->lease.deadline_ms;
    static const enum task_event kinds[] = {[TOLD_WAITING] = TASK_WAITING,
                                            [TOLD_HELD] = TASK_HELD,
                                            [TOLD_LOST] = TASK_LOST,
                                            [TOLD_ENDED] = TASK_ENDED};
    enum told told = executor->output.told;
    executor->counts.renewals += renewed ? 1 : 0;
    executor->counts.lost += told == TOLD_LOST ? 1 : 0;
    if (renewed)
        tell(task, TASK_RENEWED, event);
    else if (told != TOLD_NOTHING)
        tell(task, kinds[told], event);
    if (task->lease.state != LEASE_ENDED && !task->forgotten)
        return true;
    task_free(task);
    return false;
}

/* What the breaker learns from a step: answers, and those that did not come in time. */
static void note_health(struct task *task, const struct lease *before, const struct event *event)
{
    struct executor *executor = task->executor;
    bool in_time = !before->in_flight || event->now_ms < before->answer_by_ms;
    if (event->kind == EVENT_TIMER && !in_time) {
        executor->counts.troubles++;
        breaker_missed(&executor->breaker, event->now_ms);
    }
}

static void step_watched(struct task *task, const struct event *event, const struct lease *before)
{
    struct executor *executor = task->executor;
    struct record *record = &executor->record;
    char line[TRACE_SIZE];
    struct text trace;
    if (executor->site.watcher == NULL) {
        lease_step(&task->lease, event, record, &executor->output, /* trace= */ NULL);
        return;
    }
    text_init(&trace, line, sizeof line);
    lease_step(&task->lease, event, record, &executor->output, &trace);
    executor->site.watcher(executor->site.owner,
                           &(struct executor_step){.before = before,
                                                   .after = &task->lease,
                                                   .event = event,
                                                   .output = &executor->output,
                                                   .record = record,
                                                   .trace = line});
}

/* One step of the core; true when a request could not be sent: that is trouble, and known at once.
 */
static bool step_once(struct task *task, struct event *event, const struct heard *heard,
                      bool *out_lives)
{
    struct executor *executor = task->executor;
    struct lease before = task->lease;
    event->now_ms = executor_now(executor);
    recall(task, event, heard);
    knowledge_load_sights(task->known, &executor->sighting);
    task->lease.sighting = &executor->sighting;
    step_watched(task, event, &before);
    knowledge_save_sights(task->known, &executor->sighting);
    note_health(task, &before, event);
    if (executor->output.decided)
        task->took_over = executor->output.verdict.kind == VERDICT_GRANTED &&
                          executor->output.verdict.expired > 0;
    bool unsent = executor->output.action != ACTION_NONE && !outbox_add(executor, task);
    schedule(task);
    uint32_t serial = executor->output.serial;
    *out_lives = tell_all(task, &before, event);
    if (unsent && *out_lives)
        *event = (struct event){.kind = EVENT_ANSWER,
                                .serial = serial,
                                .answer = ANSWER_TROUBLE,
                                .refused = executor_retry_after(executor) >= 0,
                                .retry_at_ms = executor->breaker.open_until_ms};
    return unsent && *out_lives;
}

void task_step(struct task *task, struct event *event, const struct heard *heard)
{
    bool lives = true;
    if (!step_once(task, event, heard, &lives))
        return;
    bool unsure = task->lease.unsure;
    (void)step_once(task, event, /* heard= */ NULL, &lives);
    if (lives) /* it did not happen, for it never left */
        task->lease.unsure = unsure;
}

void task_end_unstarted(struct task *task)
{
    struct task_news news = {.event = TASK_ENDED, .outcome = OUTCOME_BUSY, .why = "cancelled"};
    call(task, &news);
    task_free(task);
}

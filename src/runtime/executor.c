/* SPDX-License-Identifier: Apache-2.0 */
/* See executor.h: what callers see, and the tick. */
#include "runtime/executor.h"

#include "base/check.h"
#include "runtime/executor_inside.h"
#include "store/exchange.h"

#include <stdlib.h>

enum { EXECUTOR_MAGIC = 0xe3ec001, ROUNDS_MAX = 64 };

int64_t executor_now(const struct executor *executor)
{
    return executor->site.now_ms(executor->site.owner);
}

void executor_rouse(struct executor *executor)
{
    if (executor->ticking || executor->roused)
        return;
    executor->roused = true;
    executor->site.wake_at(executor->site.owner, executor_now(executor));
}

struct executor *executor_new(const struct executor_site *site)
{
    ASSERT(site->session != 0);
    struct executor *executor = calloc(1, sizeof *executor);
    if (executor == NULL)
        return NULL;
    if (!knowledge_init(&executor->knowledge)) {
        free(executor);
        return NULL;
    }
    executor->magic = EXECUTOR_MAGIC;
    executor->site = *site;
    executor->random.state = site->seed;
    outbox_init(executor);
    return executor;
}

void executor_free(struct executor **executor_pointer)
{
    struct executor *executor = *executor_pointer;
    if (executor == NULL)
        return;
    ASSERT(executor->magic == EXECUTOR_MAGIC && !executor->ticking);
    while (executor->tasks != NULL)
        task_free(executor->tasks);
    while (executor->sents != NULL)
        outbox_forget(executor, executor->sents);
    knowledge_done(&executor->knowledge);
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
        task_wish(task, WISH_START);
    return task;
}

void executor_let_go(struct task *task)
{
    task_wish(task, WISH_LET_GO);
}

void executor_drop_cooldown(struct task *task)
{
    task->options.cooldown_ms = task->options.request.cooldown_ms = 0;
}

void executor_cancel(struct task *task)
{
    task->silent = true;
    task_wish(task, WISH_LET_GO);
}

void executor_forget(struct task *task)
{
    task_free(task);
}

/* True when the copy belongs to the key now: what was heard is new. */
static bool remember(struct executor *executor, struct known *known, struct heard *heard)
{
    const struct store_answer *said = &heard->answer;
    const struct store_answer *before = known->heard != NULL ? &known->heard->answer : NULL;
    bool tells = said->result == ANSWER_OK || said->result == ANSWER_CONFLICT;
    bool older = before != NULL && before->present && said->present &&
                 said->written.epoch == before->written.epoch &&
                 said->written.revision < before->written.revision;
    if (tells && !older)
        knowledge_hear(&executor->knowledge, known, heard);
    return tells && !older;
}

static void wish_all(const struct known *known, const struct task *but, enum wish wish)
{
    for (struct task *task = known->first_user; task != NULL; task = task->next_of_key)
        if (task != but)
            task_wish(task, wish);
}

/* Is there a copy afterwards that is at least as new as what was told? One that says that nothing
 * stands has no revision to compare. */
static bool learn(struct executor *executor, struct known *known, const struct store_answer *stands)
{
    if (known->heard != NULL && !known->heard->answer.present)
        return false;
    struct heard *heard = heard_new(stands);
    if (heard == NULL)
        return false;
    if (!remember(executor, known, heard))
        free(heard);
    return known->heard != NULL;
}

void executor_notice(struct executor *executor, const char *key, const struct store_answer *stands)
{
    struct known *known = knowledge_find(&executor->knowledge, key);
    if (known == NULL)
        return;
    if (stands != NULL && stands->present && learn(executor, known, stands)) {
        wish_all(known, /* but= */ NULL, WISH_NEWS);
        return;
    }
    knowledge_hear(&executor->knowledge, known, /* heard= */ NULL);
    wish_all(known, /* but= */ NULL, WISH_NOTICE);
}

void executor_hear(struct executor *executor, const struct store_answer *answer)
{
    struct known *known = knowledge_find(&executor->knowledge, answer->key);
    if (known == NULL)
        return;
    struct heard *heard = heard_new(answer);
    if (heard == NULL) {
        executor_notice(executor, answer->key, /* stands= */ NULL);
    } else if (remember(executor, known, heard)) {
        wish_all(known, /* but= */ NULL, WISH_NEWS);
    } else {
        free(heard);
    }
}

bool executor_holds(const struct task *task)
{
    return lease_held(&task->lease, executor_now(task->executor));
}

bool executor_in_trouble(const struct task *task, int64_t since_ms)
{
    const struct lease *lease = &task->lease;
    bool unheard = lease->in_flight && task->heard_ms <= since_ms;
    return lease->trouble_since_ms != NEVER || unheard || lease->state == LEASE_IDLE ||
           lease->late > 0;
}

int64_t executor_grant_due(const struct task *task)
{
    const struct lease *lease = &task->lease;
    bool grants = lease->in_flight && lease->trouble_since_ms == NEVER &&
                  lease->sent != ACTION_READ && lease->sent_verb == VERB_ASK &&
                  lease->pending == VERDICT_GRANTED;
    return grants ? lease->answer_by_ms : NEVER;
}

bool executor_others_wait(const struct task *task)
{
    return task->known->others_wait;
}

const struct lease_options *executor_options(const struct task *task)
{
    return &task->options;
}

const struct record *executor_recall(struct executor *executor, const char *key,
                                     struct stamp *out_at)
{
    const char *why = NULL;
    struct event event = {0};
    const struct known *known = knowledge_find(&executor->knowledge, key);
    if (known == NULL || known->heard == NULL || executor->told != NULL)
        return NULL;
    exchange_event(&known->heard->answer, key, &executor->record, &event, &why);
    if (!event.known)
        return NULL;
    *out_at = event.at;
    return &executor->record;
}

const struct store_answer *executor_heard(const struct executor *executor, const char *key)
{
    const struct known *known = knowledge_find(&executor->knowledge, key);
    return known != NULL && known->heard != NULL ? &known->heard->answer : NULL;
}

int64_t executor_retry_after(const struct executor *executor)
{
    return breaker_retry_after(&executor->breaker, executor_now(executor));
}

struct executor_counts executor_counts(const struct executor *executor)
{
    struct executor_counts counts = executor->counts;
    counts.copies = executor->knowledge.copies;
    counts.copy_bytes = executor->knowledge.bytes;
    counts.breaker_open = breaker_is_open(&executor->breaker);
    return counts;
}

/* The tick. */

static struct task *task_of(struct heap_node *node, size_t offset)
{
    return (struct task *)(void *)((char *)node - offset);
}

/* Before anything else: who has passed its deadline is told so, whatever the store says. */
static void lose_overdue(struct executor *executor)
{
    int64_t now_ms = executor_now(executor);
    while (heap_first(&executor->deadlines) <= now_ms) {
        struct task *task = task_of(executor->deadlines.top, offsetof(struct task, deadline));
        task_step(task, &(struct event){.kind = EVENT_TIMER}, /* heard= */ NULL);
    }
}

static void note_answer(struct executor *executor, const struct sent *sent)
{
    if (sent->heard == NULL)
        return; /* our own lack of memory says nothing about the store */
    enum answer result = sent->heard->answer.result;
    executor->counts.conflicts += result == ANSWER_CONFLICT ? 1 : 0;
    if (result == ANSWER_TROUBLE) {
        executor->counts.troubles++;
        breaker_missed(&executor->breaker, executor_now(executor));
        return;
    }
    breaker_heard(&executor->breaker);
    /* The others say why, and nothing is wrong with the store. */
    if (result == ANSWER_OK || result == ANSWER_CONFLICT)
        executor->trouble[0] = '\0';
}

static void hear_one(struct executor *executor, struct sent *sent)
{
    struct task *task = sent->task;
    const struct heard *heard = sent->heard;
    struct event event = {.kind = EVENT_ANSWER, .serial = sent->serial, .answer = ANSWER_TROUBLE};
    note_answer(executor, sent);
    struct known *known =
        task != NULL ? task->known : knowledge_find(&executor->knowledge, sent->request.key);
    if (heard != NULL && known != NULL && remember(executor, known, sent->heard)) {
        sent->heard = NULL;
        /* Our own write may be about one of us; what its asker does not hear is news to all. */
        if (task == NULL || sent->request.verb != VERB_STORE_READ)
            wish_all(known, task, WISH_NEWS);
    }
    if (task == NULL)
        return;
    if (heard != NULL)
        task->heard_ms = executor_now(executor);
    task_step(task, &event, heard);
}

static void hear(struct executor *executor)
{
    for (struct sent *sent; (sent = outbox_answered(executor)) != NULL;) {
        hear_one(executor, sent);
        outbox_forget(executor, sent);
    }
}

static void fulfil_one(struct task *task)
{
    unsigned wishes = task_take_wishes(task);
    bool starts = (wishes & WISH_START) != 0, lets_go = (wishes & WISH_LET_GO) != 0;
    if (starts && lets_go)
        task_end_unstarted(task);
    else if (starts)
        task_step(task, &(struct event){.kind = EVENT_START}, /* heard= */ NULL);
    else if (lets_go)
        task_step(task, &(struct event){.kind = EVENT_LET_GO}, /* heard= */ NULL);
    else
        task_step(task, &(struct event){.kind = EVENT_NOTICE},
                  (wishes & WISH_NOTICE) != 0 ? NULL : task->known->heard);
}

/* Wishes that come up meanwhile are for the next round. */
static void fulfil(struct executor *executor)
{
    for (size_t left = executor->wishing; left > 0 && executor->first_wishing != NULL; left--)
        fulfil_one(executor->first_wishing);
}

static void fire(struct executor *executor)
{
    int64_t now_ms = executor_now(executor);
    while (heap_first(&executor->wakes) <= now_ms) {
        struct task *task = task_of(executor->wakes.top, offsetof(struct task, wake));
        task_step(task, &(struct event){.kind = EVENT_TIMER}, /* heard= */ NULL);
    }
}

static int64_t next_tick(const struct executor *executor)
{
    int64_t deadline_ms = heap_first(&executor->deadlines);
    int64_t wake_ms = heap_first(&executor->wakes);
    if (executor->answered.first != NULL || executor->first_wishing != NULL)
        return executor_now(executor);
    return deadline_ms < wake_ms ? deadline_ms : wake_ms;
}

/* A store that answers within the call is heard in the same tick, for some rounds. */
void executor_tick(struct executor *executor)
{
    ASSERT(executor->magic == EXECUTOR_MAGIC && !executor->ticking);
    executor->ticking = true;
    executor->roused = false;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        lose_overdue(executor);
        hear(executor);
        fulfil(executor);
        fire(executor);
        outbox_submit(executor);
        if (executor->answered.first == NULL && executor->first_wishing == NULL)
            break;
    }
    executor->ticking = false;
    executor->site.wake_at(executor->site.owner, next_tick(executor));
}

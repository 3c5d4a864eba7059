/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actors of world.h on the shipped executor or, if a process has several callers, on the
 * shipped local queue with its executor: all but the I/O is the shipped code. The network is the
 * world's: a lost request gets no reply, and of a duplicated reply only the first counts.
 */
#include "history.h"
#include "world_internal.h"

#include "runtime/executor_internal.h"
#include "runtime/local_queue.h"

#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 1024 };

struct runner {
    struct world *world;
    struct actor *actor;
    struct local_queue *queue; /* NULL: the actor uses the executor directly */
    struct executor *executor;
    struct task *task; /* without a local queue */
    bool ticking;
    struct {
        uint32_t ticket;
        store_done *done; /* NULL: answered */
        void *caller;
        size_t key;
    } pending[PENDING_MAX]; /* by ticket */
};

static int64_t read_clock(void *owner)
{
    const struct runner *runner = owner;
    return actor_clock(runner->world, runner->actor);
}

static size_t key_of(const struct world *world, const char *key)
{
    size_t at = 0;
    while (strcmp(world->keys[at].key, key) != 0)
        at++;
    return at;
}

/* With a local queue a process has many tasks: the actor represents the current one. */
static void turn_to(const struct runner *runner, const struct lease *lease)
{
    struct world *world = runner->world;
    struct actor *actor = runner->actor;
    actor->lease = *lease;
    if (runner->queue == NULL)
        return;
    actor->options = *lease->options;
    actor->key = key_of(world, lease->options->request.key);
    actor->number = oracle_number(world, lease->options->request.request);
    actor->grant = actor->number;
    const struct acquisition *own = &world->acquisitions[actor->number];
    actor->answered = own->answered;
    actor->heard.now_ms = own->heard_ms;
    (void)snprintf(actor->request, sizeof actor->request, "%s", lease->options->request.request);
}

static void submit(void *owner, const struct store_request *request, store_done *done, void *caller)
{
    struct runner *runner = owner;
    const struct sent *sent = caller;
    uint32_t ticket = ++runner->actor->ticket;
    size_t at = ticket % PENDING_MAX;
    turn_to(runner, &sent->task->lease);
    runner->pending[at].ticket = ticket;
    runner->pending[at].done = done;
    runner->pending[at].caller = caller;
    runner->pending[at].key = runner->actor->key;
    actor_transmit(runner->world, runner->actor, request, ticket);
}

static void wake_at(void *owner, int64_t at_ms)
{
    struct runner *runner = owner;
    struct world *world = runner->world;
    struct actor *actor = runner->actor;
    actor->timer++;
    if (at_ms != NEVER)
        world_schedule(world, (struct world_event){.at_ms = actor_moment(world, actor, at_ms),
                                                   .kind = WORLD_TIMER,
                                                   .actor = actor->index,
                                                   .value = actor->timer});
}

/* Numbers a task that the local queue created. */
static void name_task(struct world *world, const struct actor *actor,
                      const struct lease_options *options)
{
    const struct request *request = &options->request;
    if (oracle_number(world, request->request) == 0)
        oracle_name(world, request->request, actor_number(world));
    struct acquisition *own = &world->acquisitions[oracle_number(world, request->request)];
    *own = acquisition_of(key_of(world, request->key), options);
    own->session = actor->session;
}

/* Copies the step to where the oracle and the history read it. */
static void stepped(void *owner, const struct executor_step *step)
{
    const struct runner *runner = owner;
    struct world *world = runner->world;
    struct actor *actor = runner->actor;
    if (runner->queue != NULL && step->event->kind == EVENT_START)
        name_task(world, actor, step->after->options);
    turn_to(runner, step->after);
    world->output = *step->output;
    record_copy(&world->record, step->record);
    if (step->trace[0] != '\0')
        world_say(world, actor->name, step->trace);
    if (runner->queue == NULL)
        history_step(world, actor, step->before, step->event);
    if (actor->lease.state == LEASE_HELD && step->before->state != LEASE_HELD)
        oracle_deadline(world, actor);
    if (runner->queue == NULL)
        return;
    oracle_lined_up(world, actor);
    oracle_told(world, actor, step->output);
}

static void notify(void *owner, struct task *task, const struct task_news *news)
{
    struct runner *runner = owner;
    (void)task;
    if (news->notify == NOTIFY_ENDED)
        runner->task = NULL;
    if (news->notify != NOTIFY_RENEWED)
        actor_report(runner->world, runner->actor);
}

struct runner *runner_of(struct world *world, struct actor *actor)
{
    struct runner *runner = actor->runner;
    if (runner != NULL)
        return runner;
    runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        abort();
    runner->world = world;
    runner->actor = actor;
    struct executor_callbacks site = {.now_ms = read_clock,
                                      .submit = submit,
                                      .wake_at = wake_at,
                                      .owner = runner,
                                      .facts = world->rules.facts,
                                      .session = actor->session,
                                      .seed = random_next(&world->random),
                                      .watcher = stepped};
    if (actor->has_callers)
        runner->queue = local_queue_new(&site);
    runner->executor =
        actor->has_callers ? local_queue_executor(runner->queue) : executor_new(&site);
    if (runner->executor == NULL)
        abort();
    actor->runner = runner;
    return runner;
}

struct local_queue *runner_local_queue(const struct runner *runner)
{
    return runner->queue;
}

void runner_tick(struct actor *actor)
{
    struct runner *runner = actor->runner;
    if (runner == NULL || runner->ticking) /* a callback may start a request */
        return;
    runner->ticking = true;
    executor_tick(runner->executor);
    runner->ticking = false;
    if (runner->queue != NULL)
        oracle_process(runner->world, actor);
}

void runner_start(struct world *world, struct actor *actor)
{
    struct runner *runner = runner_of(world, actor);
    runner->task = executor_start(runner->executor, &actor->options,
                                  &(struct executor_caller){.notify = notify, .owner = runner});
    if (runner->task == NULL)
        abort();
    runner_tick(actor);
}

void runner_let_go(struct actor *actor)
{
    executor_release(actor->runner->task);
    runner_tick(actor);
}

void runner_forget(struct actor *actor)
{
    executor_forget(actor->runner->task);
    actor->runner->task = NULL;
    runner_tick(actor);
}

static void on_reply(struct world *world, struct actor *actor, const struct message *message)
{
    struct runner *runner = actor->runner;
    size_t at = message->serial % PENDING_MAX;
    store_done *done = runner->pending[at].done;
    struct store_reply reply = message->reply;
    if (runner->pending[at].ticket != message->serial || done == NULL)
        return;
    reply.bytes = message->bytes;
    reply.length = message->length;
    if (runner->queue != NULL) {
        world->acquisitions[message->number].answered = true;
        world->acquisitions[message->number].heard_ms = reply.now_ms;
        oracle_heard(world, actor, runner->pending[at].key, &reply);
        actor->options.request.key = world->keys[runner->pending[at].key].key;
    } else if (message->number == actor->number) {
        actor->answered = actor->answered || reply.result != REPLY_TROUBLE;
        actor->heard.now_ms = reply.now_ms;
    }
    actor_shape_answer(world, actor, &reply);
    runner->pending[at].done = NULL;
    done(runner->pending[at].caller, &reply);
}

/* A watch carries the record; a notification carries it or only the key. */
static void notice_key(struct world *world, struct actor *actor, const struct message *message,
                       const char *key)
{
    struct executor *executor = actor->runner->executor;
    struct store_reply reply = message->reply;
    if (!world->rules.watches && !world->rules.facts.wakes_with_record) {
        executor_on_notify(executor, key, /* current= */ NULL);
        return;
    }
    reply.key = actor->options.request.key = key;
    reply.bytes = message->bytes;
    reply.length = message->length;
    if (actor->has_callers)
        oracle_heard(world, actor, key_of(world, key), &reply);
    actor_shape_answer(world, actor, &reply);
    if (world->rules.watches)
        executor_on_change(executor, &reply);
    else
        executor_on_notify(executor, key, &reply);
}

static void notice(struct world *world, struct actor *actor, const struct message *message)
{
    for (size_t key = 0; key < world->key_count; key++)
        if (actor->has_callers ? world_has_name(world, key, message->request.key)
                               : key == actor->key)
            notice_key(world, actor, message, world->keys[key].key);
}

void runner_receives(struct world *world, struct actor *actor, const struct message *message,
                     enum world_event_kind kind)
{
    if (!actor->alive || actor->runner == NULL)
        return;
    if (kind == WORLD_REPLY)
        on_reply(world, actor, message);
    else
        notice(world, actor, message);
    runner_tick(actor);
}

void runner_free(struct actor *actor)
{
    struct runner *runner = actor->runner;
    if (runner == NULL)
        return;
    if (runner->queue != NULL)
        local_queue_free(&runner->queue);
    else
        executor_free(&runner->executor);
    free(runner);
    actor->runner = NULL;
}

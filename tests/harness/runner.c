/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actors of world.h on the shipped executor: everything but io is what users run. The network
 * stays the world's: a request may be lost, and then it is never answered; an answer may come
 * twice, and only the first one counts.
 */
#include "history.h"
#include "inside.h"

#include "runtime/executor.h"

#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 1024 };

struct runner {
    struct world *world;
    struct actor *actor;
    struct executor *executor;
    struct task *task;
    bool ticking;
    struct {
        uint32_t ticket;
        store_done *done; /* NULL: answered */
        void *caller;
    } pending[PENDING_MAX]; /* by ticket */
};

static int64_t read_clock(void *owner)
{
    const struct runner *runner = owner;
    return actor_clock(runner->world, runner->actor);
}

static void submit(void *owner, const struct store_request *request, store_done *done, void *caller)
{
    struct runner *runner = owner;
    uint32_t ticket = ++runner->actor->ticket;
    size_t at = ticket % PENDING_MAX;
    runner->pending[at].ticket = ticket;
    runner->pending[at].done = done;
    runner->pending[at].caller = caller;
    actor_transmit(runner->world, runner->actor, request, ticket);
}

static void wake_at(void *owner, int64_t at_ms)
{
    struct runner *runner = owner;
    struct world *world = runner->world;
    struct actor *actor = runner->actor;
    actor->timer++;
    if (at_ms != NEVER)
        world_schedule(world, (struct happening){.at_ms = actor_moment(world, actor, at_ms),
                                                 .kind = HAPPENS_TIMER,
                                                 .actor = actor->index,
                                                 .value = actor->timer});
}

/* What the oracle and the history look at is where they expect it. */
static void stepped(void *owner, const struct executor_step *step)
{
    const struct runner *runner = owner;
    struct world *world = runner->world;
    struct actor *actor = runner->actor;
    actor->lease = *step->after;
    world->output = *step->output;
    record_copy(&world->record, step->record);
    if (step->trace[0] != '\0')
        world_say(world, actor->name, step->trace);
    history_step(world, actor, step->before, step->event);
    if (actor->lease.state == LEASE_HELD && step->before->state != LEASE_HELD)
        oracle_deadline(world, actor);
}

static void told(void *owner, struct task *task, const struct task_news *news)
{
    struct runner *runner = owner;
    (void)task;
    if (news->event == TASK_ENDED)
        runner->task = NULL;
    if (news->event != TASK_RENEWED)
        actor_tell(runner->world, runner->actor);
}

static struct runner *runner_of(struct world *world, struct actor *actor)
{
    struct runner *runner = actor->runner;
    if (runner != NULL)
        return runner;
    runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        abort();
    runner->world = world;
    runner->actor = actor;
    struct executor_site site = {.now_ms = read_clock,
                                 .submit = submit,
                                 .wake_at = wake_at,
                                 .owner = runner,
                                 .facts = world->rules.facts,
                                 .session = actor->session,
                                 .seed = random_next(&world->random),
                                 .watcher = stepped};
    runner->executor = executor_new(&site);
    if (runner->executor == NULL)
        abort();
    actor->runner = runner;
    return runner;
}

void runner_tick(struct actor *actor)
{
    struct runner *runner = actor->runner;
    if (runner->ticking) /* told something, it wants something: that is done in the same tick */
        return;
    runner->ticking = true;
    executor_tick(runner->executor);
    runner->ticking = false;
}

void runner_start(struct world *world, struct actor *actor)
{
    struct runner *runner = runner_of(world, actor);
    runner->task = executor_start(runner->executor, &actor->options,
                                  &(struct executor_caller){.told = told, .owner = runner});
    if (runner->task == NULL)
        abort();
    runner_tick(actor);
}

void runner_let_go(struct actor *actor)
{
    executor_let_go(actor->runner->task);
    runner_tick(actor);
}

static void hear(struct world *world, struct actor *actor, const struct message *message)
{
    struct runner *runner = actor->runner;
    size_t at = message->serial % PENDING_MAX;
    store_done *done = runner->pending[at].done;
    struct store_answer answer = message->answer;
    if (runner->pending[at].ticket != message->serial || done == NULL)
        return;
    answer.bytes = message->bytes;
    answer.length = message->length;
    if (message->number == actor->number) {
        actor->answered = actor->answered || answer.result != ANSWER_TROUBLE;
        actor->heard.now_ms = answer.now_ms;
    }
    actor_shape_answer(world, actor, &answer);
    runner->pending[at].done = NULL;
    done(runner->pending[at].caller, &answer);
}

/* A watch brings the record along, a poke only says that there is something to see. */
static void notice(struct world *world, struct actor *actor, const struct message *message)
{
    struct executor *executor = actor->runner->executor;
    struct store_answer answer = message->answer;
    if (!world->rules.watches) {
        executor_notice(executor, world->keys[actor->key].key);
        return;
    }
    answer.key = world->keys[actor->key].key;
    answer.bytes = message->bytes;
    answer.length = message->length;
    actor_shape_answer(world, actor, &answer);
    executor_hear(executor, &answer);
}

void runner_receives(struct world *world, struct actor *actor, const struct message *message,
                     enum happening_kind kind)
{
    if (!actor->alive || actor->runner == NULL)
        return;
    if (kind == HAPPENS_ANSWER)
        hear(world, actor, message);
    else
        notice(world, actor, message);
    runner_tick(actor);
}

void runner_free(struct actor *actor)
{
    if (actor->runner == NULL)
        return;
    executor_free(&actor->runner->executor);
    free(actor->runner);
    actor->runner = NULL;
}

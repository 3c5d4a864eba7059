/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several callers in one process, on the shipped local queue (runner.c): their notifications and
 * their next requests. Decides nothing; the checks are in oracle_local_queue.c.
 */
#include "world_internal.h"

#include "runtime/local_queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct actor *world_add_caller(struct world *world, struct actor *process, const char *name)
{
    struct actor *actor = world_add_actor(world, name);
    process->has_callers = true;
    actor->process = process;
    actor->session = process->session;
    actor->rate = process->rate;
    actor->offset_ms = process->offset_ms;
    memcpy(actor->holder, process->holder, sizeof actor->holder);
    return actor;
}

static const struct actor *process_of(const struct actor *actor)
{
    return actor->process != NULL ? actor->process : actor;
}

bool actor_same_process(const struct actor *a, const struct actor *b)
{
    return process_of(a) == process_of(b);
}

static void say(struct world *world, const struct actor *actor, const struct task_news *news)
{
    static const char *const texts[] = {[NOTIFY_WAITING] = "is told to wait",
                                        [NOTIFY_HELD] = "is told held",
                                        [NOTIFY_RENEWED] = "is told renewed",
                                        [NOTIFY_LOST] = "is told lost",
                                        [NOTIFY_ENDED] = "is told the end"};
    char line[128];
    const char *outcome = news->notify == NOTIFY_ENDED ? outcome_name(news->outcome) : "";
    (void)snprintf(line, sizeof line, "%s %s: %s %s (token %" PRIu64 ")",
                   world->keys[actor->key].key, texts[news->notify], outcome,
                   news->why != NULL ? news->why : "", news->token);
    world_say(world, actor->name, line);
}

static void tell_script(struct world *world, struct actor *actor, enum lease_notify notify,
                        const struct task_news *news)
{
    struct lease_output out = {.notify = notify, .outcome = news->outcome, .why = news->why};
    if (news->record != NULL) {
        record_copy(&world->record, news->record);
        actor->heard.now_ms = news->at.time_ms;
    }
    world->notify(world, actor, &out);
}

static void hold(struct world *world, struct actor *actor, const struct task_news *news)
{
    actor->token = actor->lease.token = news->token;
    oracle_caller_held(world, actor, news);
    oracle_once_held(world, actor);
    actor->inside = true;
    actor->lost = actor->caller.waiting = false;
    tell_script(world, actor, NOTIFY_HELD, news);
}

static void notify(void *owner, struct local_waiter *claim, const struct task_news *news)
{
    struct actor *actor = owner;
    struct world *world = actor->caller.world;
    (void)claim;
    say(world, actor, news);
    if (news->notify == NOTIFY_HELD || news->notify == NOTIFY_RENEWED) {
        actor->lease.deadline_ms = news->deadline_ms;
        actor->lease.kill_at_ms = news->kill_at_ms;
    }
    switch (news->notify) {
    case NOTIFY_WAITING:
        world->counts->local_waits++;
        tell_script(world, actor, NOTIFY_WAITING, news);
        return;
    case NOTIFY_HELD:
        hold(world, actor, news);
        return;
    case NOTIFY_RENEWED:
        oracle_caller_renewed(world, actor, news);
        return;
    case NOTIFY_LOST:
        actor->lost = true;
        tell_script(world, actor, NOTIFY_LOST, news);
        return;
    case NOTIFY_ENDED:
        oracle_caller_ended(world, actor, news);
        oracle_once_ended(world, actor, news->outcome);
        actor->caller.claim = NULL;
        actor->inside = actor->busy = actor->caller.waiting = actor->caller.paused = false;
        tell_script(world, actor, NOTIFY_ENDED, news);
        return;
    case NOTIFY_NONE:
        return;
    }
}

static void operation_told(void *owner, struct task *task, const struct task_news *news)
{
    struct actor *actor = owner;
    (void)task;
    if (news->notify != NOTIFY_ENDED)
        return;
    actor->busy = false;
    oracle_once_ended(actor->caller.world, actor, news->outcome);
    tell_script(actor->caller.world, actor, NOTIFY_ENDED, news);
}

static void trace_request(struct world *world, const struct actor *actor)
{
    static const char *const modes[] = {
        [MODE_EXCLUSIVE] = "alone", [MODE_SHARED] = "shared", [MODE_SLOT] = "a slot"};
    const struct request *request = &actor->options.request;
    char line[128];
    (void)snprintf(line, sizeof line, "%s is asked for: %s, wait %" PRId64 ", ttl %" PRId64 "%s",
                   request->key, modes[request->mode], actor->options.wait_ms, request->ttl_ms,
                   actor->caller.named ? ", for itself" : "");
    world_say(world, actor->name, line);
}

/* Most callers leave their request id to the local queue: only these may share a grant. */
static void ask(struct world *world, struct actor *actor, struct local_queue *queue)
{
    struct lease_options options = actor->options;
    if (!actor->caller.named)
        options.request.request = NULL;
    actor->caller.waiting = actor->caller.entering = true;
    actor->caller.gave_up = actor->caller.paused = false;
    actor->caller.passed = 0;
    actor->caller.arrived = ++world->arrivals;
    trace_request(world, actor);
    oracle_caller_asks(world, actor);
    actor->caller.claim = local_queue_acquire(
        queue, &options, &(struct local_waiter_caller){.notify = notify, .owner = actor});
    if (actor->caller.claim == NULL)
        abort();
}

void caller_start(struct world *world, struct actor *actor)
{
    struct actor *process = actor->process;
    struct runner *runner = runner_of(world, process);
    actor->caller.world = world;
    if (actor->options.request.verb == VERB_ACQUIRE)
        ask(world, actor, runner_local_queue(runner));
    else if (executor_start(local_queue_executor(runner_local_queue(runner)), &actor->options,
                            &(struct executor_caller){.notify = operation_told, .owner = actor}) ==
             NULL)
        abort();
    runner_tick(process);
    actor->caller.entering = false;
}

void caller_let_go(struct actor *actor)
{
    if (actor->caller.claim == NULL) /* an operation runs to its end */
        return;
    actor->caller.gave_up = true;
    local_queue_release(actor->caller.claim);
    runner_tick(actor->process);
}

static void go_away(struct world *world, struct actor *actor, void go(struct local_waiter *gone))
{
    struct local_waiter *claim = actor->caller.claim;
    if (claim == NULL)
        return;
    world->counts->cancels++;
    actor->caller.claim = NULL;
    actor->busy = actor->inside = actor->caller.waiting = false;
    go(claim);
    runner_tick(actor->process);
}

void actor_cancel(struct world *world, struct actor *actor)
{
    world_say(world, actor->name, "goes away");
    go_away(world, actor, local_queue_cancel);
}

void caller_forget(struct world *world, struct actor *actor)
{
    go_away(world, actor, local_queue_forget);
}

void actor_stay_away(struct world *world, struct actor *actor, int64_t for_ms)
{
    struct caller *caller = &actor->caller;
    if (caller->claim == NULL || !caller->waiting || caller->paused || caller->gave_up)
        return;
    world_say(world, actor->name, "stays away");
    world->counts->away++;
    caller->paused = true;
    local_queue_pause(caller->claim);
    world_plan(world, actor, world->now_ms + for_ms, CALLER_RETURNS, actor->number);
    if (!caller->entering)
        runner_tick(actor->process);
}

void actor_return(struct world *world, struct actor *actor, uint64_t value)
{
    struct caller *caller = &actor->caller;
    if (caller->claim == NULL || !caller->paused || value != actor->number)
        return;
    world_say(world, actor->name, "is back");
    caller->paused = false;
    local_queue_resume(caller->claim);
    runner_tick(actor->process);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See pollers.h. */
#include "pollers_internal.h"

#include "oracle.h"
#include "script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct pollers pollers;

/* Most durations are equal: then nothing else distinguishes two claims. */
static int64_t new_keep(struct world *world)
{
    return chance(world, 7000) ? pollers.keep_ms : between(world, 200, 1500);
}

static void set_request(struct world *world, struct actor *actor, enum verb verb, size_t key)
{
    struct request *request = &actor->options.request;
    memset(request, 0, sizeof *request);
    actor->key = key;
    request->verb = verb;
    request->ttl_ms = pollers.ttl_ms;
    request->kind = key == WATERMARK ? KIND_LOCK : KIND_ONCE;
    actor->options.cooldown_ms = 0;
    actor->options.wait_ms = 0;
    actor->options.timeout_ms = between(world, 2000, 6000);
    actor->options.kill_grace_ms = 1000;
    if (!pollers.quiet && chance(world, pollers.crash_chance))
        plan(world, actor, between(world, 0, 1500), DIE);
    if (!pollers.quiet && chance(world, pollers.pause_chance))
        plan(world, actor, between(world, 0, 1500), STAND_STILL);
}

/* The next event that this poll can see, or EVENTS. */
static size_t next_event(const struct world *world, const struct polling *poll)
{
    size_t i = poll->next;
    while (i < EVENTS && (pollers.events[i].seen_from_ms > world->now_ms ||
                          pollers.events[i].position < strtoll(poll->from, NULL, 10)))
        i++;
    return i;
}

/* The result to store: the number by which the oracle identifies the writer. */
static const struct completion *deed_of(const struct world *world, struct polling *poll, size_t id)
{
    (void)snprintf(poll->word, sizeof poll->word, "%" PRIu32, world->next_number);
    poll->completion = (struct completion){.result = poll->word};
    if (id < EVENTS) {
        poll->completion.watermark = pollers.names[WATERMARK];
        poll->completion.until = pollers.events[id].until;
    }
    return &poll->completion;
}

static const char *any_payload(struct world *world)
{
    static const char *const payloads[] = {NULL, "p", "q"};
    return payloads[below(world, 3)];
}

static void start_mark(struct world *world, struct actor *actor, size_t id)
{
    set_request(world, actor, VERB_MARK, id);
    actor->options.request.payload = any_payload(world);
    actor->options.request.completion = deed_of(world, &pollers.polls[actor->index], id);
    actor->options.cooldown_ms = between(world, 100, 4000);
    actor_start(world, actor);
}

/* A claim is held until it is finished, or only its token is kept. */
static void start_claim(struct world *world, struct actor *actor, size_t id)
{
    struct polling *poll = &pollers.polls[actor->index];
    set_request(world, actor, VERB_ACQUIRE, id);
    struct request *request = &actor->options.request;
    poll->by_token = chance(world, 5000);
    request->payload = id < EVENTS ? "e" : any_payload(world);
    request->bound = !poll->by_token && chance(world, 7000);
    request->waits = chance(world, id < EVENTS ? 4000 : 7000);
    actor->options.wait_ms = request->waits ? between(world, 50, 3000) : 0;
    if (!poll->by_token) {
        request->completion = deed_of(world, poll, id);
        actor->options.cooldown_ms = new_keep(world);
    }
    actor_start(world, actor);
}

/* From here on only the token counts: another process could continue as well. */
static void start_by_token(struct world *world, struct actor *actor, enum verb verb, uint64_t token)
{
    size_t id = actor->key;
    set_request(world, actor, verb, id);
    actor->options.request.token = token;
    if (verb == VERB_RELEASE) {
        actor->options.request.completion = deed_of(world, &pollers.polls[actor->index], id);
        actor->options.cooldown_ms = new_keep(world);
    }
    actor_start(world, actor);
}

static void start_abandoning(struct world *world, struct actor *actor, uint64_t token)
{
    set_request(world, actor, VERB_RELEASE, actor->key);
    actor->options.request.token = token;
    pollers.polls[actor->index].all_done = false;
    actor_start(world, actor);
}

static void start_advance(struct world *world, struct actor *actor, struct polling *poll)
{
    set_request(world, actor, VERB_ADVANCE, WATERMARK);
    actor->options.request.expected = poll->from;
    actor->options.request.value = poll->start;
    actor_start(world, actor);
}

static void end_faults(struct world *world)
{
    pollers.quiet = true;
    world->faults = (struct faults){.latency_ms = world->faults.latency_ms};
    world->store_down = false;
    world_say(world, "", "--- faults are over ---");
}

/* The next event of the poll, or the step after the last one. */
static void handle_next(struct world *world, struct actor *actor, struct polling *poll)
{
    poll->next = next_event(world, poll);
    if (poll->next < EVENTS) {
        start_claim(world, actor, poll->next);
        return;
    }
    bool forward = strtoll(poll->start, NULL, 10) > strtoll(poll->from, NULL, 10);
    poll->step = poll->all_done && forward ? STEP_ADVANCE : STEP_SIDE;
    plan(world, actor, 0, NEXT);
}

/* The work is done; a death before the finish causes a repeat. */
static void finish_by_token(struct world *world, struct actor *actor, struct polling *poll)
{
    if (!pollers.quiet && chance(world, 1500)) {
        start_abandoning(world, actor, poll->token);
        return;
    }
    if (actor->key < EVENTS)
        pollers.events[actor->key].handled = true;
    start_by_token(world, actor, VERB_RELEASE, poll->token);
}

static void take_step(struct world *world, struct actor *actor)
{
    struct polling *poll = &pollers.polls[actor->index];
    bool spent = world->next_number + 2 * ACTORS_MAX >= NUMBERS_MAX; /* no numbers left */
    if (actor->busy || actor->has_callers || !actor->alive || spent ||
        (pollers.quiet && pollers_all_handled()))
        return;
    if (world->counts->operations - pollers.first_operation >= OPERATIONS && !pollers.quiet)
        end_faults(world);
    switch (poll->step) {
    case STEP_BEGIN:
        world->counts->polls++;
        set_request(world, actor, VERB_QUERY, WATERMARK);
        actor_start(world, actor);
        return;
    case STEP_HANDLE:
        handle_next(world, actor, poll);
        return;
    case STEP_WORK:
    case STEP_STALE: /* after the work */
        return;
    case STEP_FINISH:
        finish_by_token(world, actor, poll);
        return;
    case STEP_ADVANCE:
        start_advance(world, actor, poll);
        return;
    case STEP_SIDE:
        if (chance(world, 3000))
            start_mark(world, actor, EVENTS + below(world, pollers.sides));
        else
            start_claim(world, actor, EVENTS + below(world, pollers.sides));
        return;
    }
}

/* With the token alone: renews it, tries a wrong one, or continues. */
static void worked(struct world *world, struct actor *actor, struct polling *poll)
{
    uint64_t old = pollers.old_token[actor->key];
    if (!poll->renewed && chance(world, 2000)) {
        poll->renewed = true;
        start_by_token(world, actor, VERB_RENEW, poll->token);
        return;
    }
    poll->step = STEP_FINISH;
    if (old != 0 && chance(world, 2000)) {
        poll->step = STEP_STALE;
        start_by_token(world, actor, VERB_RELEASE, old);
        return;
    }
    take_step(world, actor);
}

/* The poll covers from the watermark to now, by the store's clock, with an overlap. */
static void begin_poll(struct world *world, const struct actor *actor, struct polling *poll)
{
    struct poll begun = watermark_begin(&world->record, actor->heard.now_ms, OVERLAP_MS);
    (void)snprintf(poll->from, sizeof poll->from, "%s", begun.from);
    int64_t start_ms = begun.start_ms, into_ms = (start_ms - pollers.skew_ms) % GRID_MS;
    if (pollers.on_grid && start_ms > pollers.skew_ms + GRID_MS)
        start_ms -= into_ms;
    (void)snprintf(poll->start, sizeof poll->start, "%" PRId64, start_ms);
    poll->step = STEP_HANDLE;
    poll->next = 0;
    poll->all_done = true;
}

static void back_to_poll(struct world *world, struct polling *poll, bool good)
{
    bool side = poll->next >= EVENTS;
    poll->all_done = poll->all_done && good;
    poll->next++;
    poll->step = !side ? STEP_HANDLE : chance(world, 5000) ? STEP_SIDE : STEP_BEGIN;
}

static void ended(struct world *world, struct actor *actor, const struct lease_output *out)
{
    struct polling *poll = &pollers.polls[actor->index];
    bool good = out->outcome == OUTCOME_OK || out->outcome == OUTCOME_COOLING;
    world->counts->full += out->outcome == OUTCOME_UNAVAILABLE && out->why != NULL &&
                           strcmp(out->why, "the store is full") == 0;
    switch (poll->step) {
    case STEP_BEGIN:
        if (out->outcome == OUTCOME_OK)
            begin_poll(world, actor, poll);
        break;
    case STEP_HANDLE: /* busy: another poller works on it, and may die before it is done */
    case STEP_FINISH:
    case STEP_SIDE:
        back_to_poll(world, poll, good);
        break;
    case STEP_WORK:
        world_plan(world, actor, world->now_ms + between(world, 0, 100), WORKED, poll->number);
        return;
    case STEP_STALE:
        poll->step = STEP_FINISH;
        break;
    case STEP_ADVANCE:
        poll->step = STEP_SIDE;
        break;
    }
    plan(world, actor, between(world, 0, poll->step == STEP_BEGIN ? 1500 : 20), NEXT);
}

/* Most deaths happen at any time; these exactly between two steps. */
static void perhaps_die(struct world *world, struct actor *actor)
{
    if (!pollers.quiet && chance(world, pollers.crash_chance / 4))
        plan(world, actor, 0, DIE);
}

static void held(struct world *world, struct actor *actor)
{
    struct polling *poll = &pollers.polls[actor->index];
    int64_t work_ms = between(world, 0, chance(world, 1500) ? pollers.ttl_ms * 2 : 100);
    pollers.old_token[actor->key] = pollers.last_token[actor->key];
    pollers.last_token[actor->key] = actor->token;
    if (!poll->by_token) {
        plan(world, actor, work_ms, STOP_WORK);
        return;
    }
    poll->step = STEP_WORK;
    poll->renewed = false;
    poll->number = actor->number;
    poll->token = actor->token;
    actor_forget(world, actor);
    plan(world, actor, work_ms, WORKED);
}

/* The work of a lost lease may continue until it is killed. */
static void stop_by_kill_time(struct world *world, struct actor *actor)
{
    int64_t kill_in_ms = actor_moment(world, actor, actor->lease.kill_at_ms) - world->now_ms;
    actor->inside = actor->inside && kill_in_ms > 0;
    plan(world, actor, between(world, 0, kill_in_ms > 0 ? kill_in_ms : 0), STOP_WORK);
}

static void notify(struct world *world, struct actor *actor, const struct lease_output *out)
{
    if (out->notify == NOTIFY_HELD || out->notify == NOTIFY_ENDED)
        perhaps_die(world, actor);
    if (out->notify == NOTIFY_HELD)
        held(world, actor);
    else if (out->notify == NOTIFY_LOST)
        stop_by_kill_time(world, actor);
    else if (out->notify == NOTIFY_ENDED)
        ended(world, actor, out);
}

/* The work is done before the claim is finished: a death in between causes a repeat. */
static void finish(struct world *world, struct actor *actor)
{
    if (actor->inside && !actor->lost && actor->key < EVENTS)
        pollers.events[actor->key].handled = true;
    actor_let_go(world, actor);
}

static void stand_still(struct world *world, struct actor *actor)
{
    int64_t for_ms = between(world, 1, pollers.ttl_ms * 2);
    actor_pause(world, actor, world->now_ms + for_ms);
    plan(world, actor, for_ms, WAKE_UP);
}

static void die(struct world *world, struct actor *actor)
{
    actor_crash(world, actor);
    for (size_t i = 0; i < world->actor_count; i++)
        if (actor_same_process(actor, &world->actors[i]))
            memset(&pollers.polls[i], 0, sizeof pollers.polls[i]);
    plan(world, actor, between(world, 0, 3000), RESTART);
}

static void restart(struct world *world, struct actor *actor)
{
    actor_revive(world, actor);
    for (size_t i = 0; i < world->actor_count; i++)
        if (actor_same_process(actor, &world->actors[i]))
            plan(world, &world->actors[i], 0, NEXT);
}

static void happens(struct world *world, struct actor *actor, int what, uint64_t value)
{
    bool lives = actor->alive && !actor->paused && !pollers.quiet;
    struct polling *poll = &pollers.polls[actor->index];
    switch (what) {
    case NEXT:
        take_step(world, actor);
        return;
    case STOP_WORK:
        if (actor->alive && actor->busy && value == actor->number)
            finish(world, actor);
        return;
    case WORKED:
        if (actor->alive && !actor->busy && poll->step == STEP_WORK && value == poll->number)
            worked(world, actor, poll);
        return;
    case DIE:
        if (lives)
            die(world, actor);
        return;
    case RESTART:
        restart(world, actor);
        return;
    case STAND_STILL:
        if (lives)
            stand_still(world, actor);
        return;
    case WAKE_UP:
        actor_resume(world, actor);
        return;
    default:
        world->store_down = what == STORE_GOES && !pollers.quiet;
        world->counts->outages += world->store_down ? 1 : 0;
        return;
    }
}

bool pollers_has(uint64_t seed)
{
    return seed % 5 == 3;
}

void pollers_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace)
{
    enum { LONGEST_MS = 600000, FINISH_MS = 120000 };
    memset(&pollers, 0, sizeof pollers);
    pollers.first_operation = counts->operations;
    world_init(world, seed, counts);
    world->trace = trace;
    world->notify = notify;
    world->event = happens;
    world->unhandled = pollers_unhandled;
    world->on_executor = script_on_executor || script_with_local_queue;
    pollers_make_world(world);
    counts->events += EVENTS;
    while (!pollers.quiet && world->violation[0] == '\0' && world->now_ms < LONGEST_MS)
        world_run(world, world->now_ms + 1000);
    world_run(world, world->now_ms + FINISH_MS);
    if (world->violation[0] == '\0' && pollers.roomy && !pollers_all_handled())
        oracle_fail(world, &world->actors[0], "rule 7", "an event was never handled");
    for (size_t i = 0; i < world->actor_count; i++)
        if (world->violation[0] == '\0' && pollers.roomy && world->actors[i].busy)
            oracle_fail(world, &world->actors[i], "liveness", "still at it long after the faults");
    world_done(world);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a seed with ids: its source of events, its store, its actors. See pollers.h. */
#include "pollers_internal.h"

#include "script.h"

#include <inttypes.h>
#include <string.h>

/* The source. An event's position is the source's clock; many share one, and some are late. */
static void create_events(struct world *world)
{
    for (size_t i = 0; i < EVENTS; i++) {
        struct source_event *event = &pollers.events[i];
        int64_t at_ms = SKEW_MS + between(world, 0, pollers.created_until_ms) / GRID_MS * GRID_MS;
        event->position = at_ms + pollers.skew_ms;
        event->seen_from_ms = at_ms + (chance(world, 3000) ? between(world, 0, LATE_MS) : 0);
        (void)snprintf(event->until, sizeof event->until, "%" PRId64, event->position);
    }
}

/* Of the events that have happened by now, visible or not. */
bool pollers_unhandled(struct world *world, int64_t position)
{
    for (size_t i = 0; i < EVENTS; i++) {
        const struct source_event *event = &pollers.events[i];
        int64_t at_ms = event->position - pollers.skew_ms;
        if (at_ms <= world->now_ms && event->position <= position && !event->handled)
            return true;
    }
    return false;
}

bool pollers_all_handled(void)
{
    for (size_t i = 0; i < EVENTS; i++)
        if (!pollers.events[i].handled)
            return false;
    return true;
}

/* How the expiry of a claim, or of an id, is determined. */
static void choose_judge(struct world *world, struct world_rules *rules)
{
    uint64_t kind = below(world, 6);
    switch (script_by_session ? 1 : kind) {
    case 0:
        rules->facts.judge = JUDGE_OBSERVED;
        rules->facts.tests_grant = false;
        return;
    case 1:
        rules->facts.judge = JUDGE_SESSION;
        rules->knows_sessions = true;
        world->judge.late_ms = chance(world, 5000) ? between(world, 0, 2000) : 0;
        return;
    case 2: /* a server with dates in whole seconds */
        rules->tick_ms = 1000;
        rules->facts.margin_ms = 2000;
        rules->facts.tests_grant = false;
        return;
    default:
        rules->facts.one_clock = chance(world, 6000);
        return;
    }
}

static void choose(struct world *world)
{
    static const unsigned few[] = {0, 100, 500, 1500};
    struct world_rules *rules = &world->rules;
    world->faults = (struct faults){.lose_request = few[below(world, 4)] / 2,
                                    .lose_answer = few[below(world, 4)] / 2,
                                    .doubled = few[below(world, 4)] / 2,
                                    .slow = few[below(world, 4)] / 2,
                                    .lose_notice = few[below(world, 4)],
                                    .latency_ms = between(world, 1, 20),
                                    .slow_ms = between(world, 100, 2000)};
    pollers.crash_chance = few[below(world, 4)];
    pollers.pause_chance = few[below(world, 4)];
    pollers.ttl_ms = between(world, 800, 2500);
    pollers.skew_ms = between(world, -SKEW_MS, SKEW_MS);
    pollers.created_until_ms = between(world, 2000, 20000);
    pollers.keep_ms = between(world, 200, 1500);
    pollers.sides = 1 + below(world, SIDES);
    pollers.on_grid = chance(world, 5000);
    rules->tick_ms = 1;
    rules->fastest = 1000;
    rules->facts.reply_timeout_ms = between(world, 100, 400);
    rules->facts.poll_ms = between(world, 500, 2000);
    rules->facts.tests_grant = chance(world, 5000);
    rules->watches = chance(world, 3000);
    rules->facts.wakes_with_record = chance(world, 5000);
    rules->knows_sessions = chance(world, 5000);
    rules->keeps_copies = chance(world, 5000);
    choose_judge(world, rules);
}

static void open_store(struct world *world)
{
    char url[32];
    unsigned ids = (unsigned)between(world, 6, (int64_t)2 * IDS);
    pollers.roomy = ids >= IDS;
    (void)snprintf(url, sizeof url, "memory:?ids=%u", ids);
    memory_driver.close(world->store);
    world_open_store(world, url);
}

static void name_keys(struct world *world)
{
    world->key_count = IDS + 1;
    for (size_t i = 0; i < world->key_count; i++) {
        (void)snprintf(pollers.names[i], sizeof pollers.names[i],
                       i == WATERMARK ? WATERMARK_PREFIX "w" : ONCE_PREFIX "%zu", i);
        world->keys[i].key = pollers.names[i];
    }
}

/* With a local queue: the callers of a few processes; a single process has at least three. */
static void add_callers(struct world *world, struct actor *process, int64_t least)
{
    memcpy(process->holder, process->name, sizeof process->name);
    for (int64_t left = between(world, least, 4); left > 0; left--) {
        char name[20];
        (void)snprintf(name, sizeof name, "%s%u", process->name, (unsigned)left);
        plan(world, world_add_caller(world, process, name), between(world, 0, 1000), NEXT);
    }
}

static void add_actors(struct world *world)
{
    static const char *const names[] = {"ann", "bob", "cem", "dot", "eve"};
    size_t count = script_with_local_queue ? 1 + below(world, 3) : 3 + below(world, 3);
    for (size_t i = 0; i < count; i++)
        plan(world, world_add_actor(world, names[i]), between(world, 0, 1000), NEXT);
    for (size_t i = 0; script_with_local_queue && i < count; i++)
        add_callers(world, &world->actors[i], count == 1 ? 3 : 1);
    for (uint64_t i = below(world, 3); i > 0; i--) {
        int64_t from_ms = between(world, 0, 15000);
        plan(world, &world->actors[0], from_ms, STORE_GOES);
        plan(world, &world->actors[0], from_ms + between(world, 50, 4000), STORE_COMES);
    }
}

void pollers_make_world(struct world *world)
{
    choose(world);
    name_keys(world);
    create_events(world);
    open_store(world);
    add_actors(world);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats of the actors of world.h, for a store where one write of a process keeps all of its
 * bound grants alive. They take the simulated network to the store and back: late, lost or doubled.
 */
#include "world_internal.h"

#include <stdlib.h>

void world_use_heartbeats(struct world *world, int64_t ttl_ms)
{
    world->rules.facts.renews_by_session = true;
    world->rules.facts.ttl_ms = ttl_ms;
    world->judge.sessions = world->sessions;
    world->judge.session_ttl_ms = ttl_ms;
}

static void heartbeat_transmit(struct world *world, struct message content,
                               enum world_event_kind kind)
{
    struct message *message = malloc(sizeof *message);
    if (message == NULL)
        abort();
    *message = content;
    bool reply = kind == WORLD_BEAT_REPLY;
    world_transmit(world, message, kind,
                   reply ? world->faults.lose_answer : world->faults.lose_request,
                   reply ? &world->counts->lost_answers : &world->counts->lost_requests);
}

static bool heartbeat_is_needed(const struct world *world, const struct actor *actor)
{
    bool holds = false;
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *mate = &world->actors[i];
        holds = holds || (mate->inside && !mate->lost && actor_same_process(mate, actor));
    }
    return holds && actor->alive && !actor->paused;
}

void actor_beat(struct world *world, struct actor *actor)
{
    if (!heartbeat_is_needed(world, actor))
        return;
    world->counts->beats++;
    heartbeat_transmit(world,
                       (struct message){.actor = actor->index,
                                        .request = {.session = actor->session},
                                        .reply = {.alive_ms = actor_clock(world, actor)}},
                       WORLD_BEAT);
}

void store_receives_beat(struct world *world, const struct message *message)
{
    if (world->store_down) {
        world->counts->lost_requests++;
        return;
    }
    session_judge_beat(&world->judge, message->request.session, world->now_ms);
    heartbeat_transmit(world, *message, WORLD_BEAT_REPLY);
}

/* Replies may overtake each other. */
void actor_receives_beat(struct actor *actor, const struct message *message)
{
    int64_t sent_ms = message->reply.alive_ms;
    if (actor->session == message->request.session && sent_ms > actor->alive_ms)
        actor->alive_ms = sent_ms;
}

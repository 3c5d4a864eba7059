/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by world.c, actor.c and oracle.c; scripts include world.h. */
#ifndef LEASEHOLD_TESTS_HARNESS_WORLD_INTERNAL_H
#define LEASEHOLD_TESTS_HARNESS_WORLD_INTERNAL_H

#include "oracle.h"
#include "world.h"

struct local_queue;
struct runner;
struct task_news;

enum world_event_kind {
    WORLD_REQUEST, /* reaches the store */
    WORLD_REPLY,   /* reaches the actor */
    WORLD_NOTICE,
    WORLD_TIMER,
    WORLD_SCRIPT,
    WORLD_BEAT,       /* a heartbeat reaches the store … */
    WORLD_BEAT_REPLY, /* … and its reply the actor */
    WORLD_GUARDED,    /* a write reaches the guarded resource */
};

/* In flight between an actor and the store, in either direction. */
struct message {
    size_t actor;
    uint32_t number; /* of the lease */
    uint32_t serial;
    bool counted; /* a write that may still change the store */
    struct store_request request;
    enum verb verb;
    bool now;
    size_t wake_count;
    uint64_t wake[ACTORS_MAX];
    struct store_reply reply;
    size_t length;
    char bytes[];
};

struct world_event {
    int64_t at_ms;
    uint64_t sequence;
    enum world_event_kind kind;
    size_t actor;
    int what;
    uint64_t value;
    struct message *message;
};

void world_schedule(struct world *world, struct world_event world_event);
void world_transmit(struct world *world, struct message *message, enum world_event_kind kind,
                    unsigned lose, uint64_t *lost);
void store_receives(struct world *world, const struct message *message);
void store_receives_beat(struct world *world, const struct message *message);
void actor_receives_beat(struct actor *actor, const struct message *message);
void actor_receives(struct world *world, struct actor *actor, const struct message *message,
                    enum world_event_kind kind);
void actor_step(struct world *world, struct actor *actor, struct event *event,
                const struct store_reply *reply);
/* The time of its timer has come. */
void actor_wake(struct world *world, struct actor *actor);
void actor_report(struct world *world, struct actor *actor);
bool world_by_session(const struct world *world);
void actor_shape_answer(struct world *world, const struct actor *actor, struct store_reply *notify);
void actor_transmit(struct world *world, struct actor *actor, const struct store_request *request,
                    uint32_t serial);
/* A number for a new acquisition, and its description. */
uint32_t actor_number(struct world *world);
struct acquisition acquisition_of(size_t key, const struct lease_options *options);
/* True if the store keeps the key under this name. */
bool world_has_name(const struct world *world, size_t key, const char *name);
void guard_receives(struct world *world, const struct actor *actor,
                    const struct world_event *world_event);

/* The same on the shipped executor (runner.c). */
void runner_start(struct world *world, struct actor *actor);
void runner_let_go(struct actor *actor);
void runner_forget(struct actor *actor);
void runner_tick(struct actor *actor);
void runner_receives(struct world *world, struct actor *actor, const struct message *message,
                     enum world_event_kind kind);
void runner_free(struct actor *actor);
struct runner *runner_of(struct world *world, struct actor *actor);
struct local_queue *runner_local_queue(const struct runner *runner);

/* Callers of a local queue (caller.c, oracle_local_queue.c). */
void caller_start(struct world *world, struct actor *actor);
void caller_let_go(struct actor *actor);
void caller_forget(struct world *world, struct actor *actor);
/* oracle_request_id.c */
void oracle_request_ids(struct world *world, const struct change *change);

void oracle_caller_asks(const struct world *world, struct actor *actor);
void oracle_caller_held(struct world *world, struct actor *actor, const struct task_news *news);
void oracle_caller_renewed(struct world *world, const struct actor *actor,
                           const struct task_news *news);
void oracle_caller_ended(struct world *world, const struct actor *actor,
                         const struct task_news *news);
void oracle_process(struct world *world, const struct actor *process);
/* After every step of a lease of the process. */
void oracle_lined_up(struct world *world, const struct actor *process);
/* The process receives this for the key. */
void oracle_heard(struct world *world, struct actor *process, size_t key,
                  const struct store_reply *reply);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by pollers.c (the pollers' steps) and pollers_world.c (the source, the store). */
#ifndef LEASEHOLD_TESTS_SIMULATION_POLLERS_INTERNAL_H
#define LEASEHOLD_TESTS_SIMULATION_POLLERS_INTERNAL_H

#include "pollers.h"

enum {
    EVENTS = 24,
    SIDES = 6, /* other ids than events, with any payload, marked or claimed */
    IDS = EVENTS + SIDES,
    WATERMARK = IDS, /* as a key */
    OVERLAP_MS = 3000,
    SKEW_MS = 1000, /* of the source's clock relative to the store's, either way */
    LATE_MS = 1500, /* from its time until an event is visible */
    GRID_MS = 500,  /* between times of events */
    OPERATIONS = 300,
    MOMENT_MAX = 24,
};

_Static_assert(SKEW_MS + LATE_MS < OVERLAP_MS, "what the overlap is for");

/* Script events; negative ones also reach a paused actor. */
enum {
    WAKE_UP = -1,
    NEXT = 1,
    STOP_WORK, /* value: the lease's number */
    WORKED,    /* value: the claim's number */
    DIE,
    RESTART,
    STAND_STILL,
    STORE_GOES,
    STORE_COMES
};

struct source_event {
    bool handled;
    int64_t position, seen_from_ms;
    char until[MOMENT_MAX];
};

enum step {
    STEP_BEGIN,
    STEP_HANDLE, /* claims an event … */
    STEP_WORK,   /* … and has only its token, works, may renew … */
    STEP_STALE,  /* … tries an older token by mistake … */
    STEP_FINISH, /* … and finishes or abandons it */
    STEP_ADVANCE,
    STEP_SIDE,
};

/* One poll of an actor, lost if it dies. */
struct polling {
    enum step step;
    size_t next;   /* event */
    bool by_token; /* this claim is left to its TTL, and finished by an operation */
    bool renewed;
    uint32_t number; /* of the claim … */
    uint64_t token;  /* … and the token */
    bool all_done;
    char from[MOMENT_MAX], start[MOMENT_MAX];
    char word[MOMENT_MAX];
    struct completion completion;
};

struct pollers {
    uint64_t first_operation;
    bool quiet;
    unsigned crash_chance, pause_chance;
    int64_t ttl_ms, skew_ms, created_until_ms, keep_ms;
    size_t sides; /* the number in use */
    bool on_grid; /* watermarks are at the times of events, not between them */
    bool roomy;   /* the store has room for all ids */
    struct source_event events[EVENTS];
    struct polling polls[ACTORS_MAX];
    uint64_t last_token[IDS], old_token[IDS]; /* the claim's, and the previous claim's */
    char names[IDS + 1][MOMENT_MAX];
};

extern struct pollers pollers; /* of the current seed */

static inline uint64_t below(struct world *world, uint64_t most)
{
    return random_below(&world->random, most);
}

static inline int64_t between(struct world *world, int64_t least, int64_t most)
{
    return least + (int64_t)below(world, (uint64_t)(most - least) + 1);
}

static inline void plan(struct world *world, struct actor *actor, int64_t in_ms, int what)
{
    world_plan(world, actor, world->now_ms + in_ms, what, actor->number);
}

/* Draws everything from the world's random numbers: faults, store, keys, events, actors. */
void pollers_make_world(struct world *world);
/* True if an event at or before this position has happened and was not handled. */
bool pollers_unhandled(struct world *world, int64_t position);
bool pollers_all_handled(void);

#endif

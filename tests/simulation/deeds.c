/* SPDX-License-Identifier: Apache-2.0 */
/* See deeds.h. */
#include "deeds.h"

#include "oracle.h"
#include "script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS = 24,
    SIDES = 6, /* ids beside the events, of any payload, marked or claimed */
    IDS = EVENTS + SIDES,
    WATERMARK = IDS, /* as a key */
    OVERLAP_MS = 3000,
    SKEW_MS = 1000, /* of the source's clock against the store's, either way */
    LATE_MS = 1500, /* from its moment until an event can be seen */
    GRID_MS = 500,  /* between moments at which events happen */
    OPERATIONS = 300,
    MOMENT_MAX = 24,
};

_Static_assert(SKEW_MS + LATE_MS < OVERLAP_MS, "what the overlap is for");

/* Script events; negative ones also reach an actor that stands still. */
enum {
    WAKE_UP = -1,
    NEXT = 1,
    STOP_WORK, /* value: the lease's number */
    WORKED,    /* value: the claim's number */
    DIE,
    BE_BORN,
    STAND_STILL,
    STORE_GOES,
    STORE_COMES
};

struct happened {
    bool handled;
    int64_t position, seen_from_ms;
    char until[MOMENT_MAX];
};

enum step {
    STEP_BEGIN,
    STEP_HANDLE, /* claims an event … */
    STEP_WORK,   /* … and has only its token, works, perhaps renews … */
    STEP_STALE,  /* … tries an older token by mistake … */
    STEP_FINISH, /* … and finishes or abandons it */
    STEP_ADVANCE,
    STEP_SIDE,
};

/* One poll of an actor, lost when it dies. */
struct polling {
    enum step step;
    size_t next;   /* event */
    bool by_token; /* this claim is left to its TTL, and finished by an errand */
    bool renewed;
    uint32_t number; /* of the claim … */
    uint64_t token;  /* … and the token */
    bool all_done;
    char from[MOMENT_MAX], start[MOMENT_MAX];
    char word[MOMENT_MAX];
    struct deed deed;
};

struct deeds {
    uint64_t first_operation;
    bool quiet;
    unsigned crash_chance, pause_chance;
    int64_t ttl_ms, skew_ms, created_until_ms, keep_ms;
    size_t sides; /* how many of them are in use */
    bool on_grid; /* watermarks stand where events do, not between them */
    bool roomy;   /* the store has room for all ids */
    struct happened events[EVENTS];
    struct polling polls[ACTORS_MAX];
    uint64_t old_token[IDS];
    char names[IDS + 1][MOMENT_MAX];
};

static struct deeds life; /* of the seed that is played */

static uint64_t below(struct world *world, uint64_t most)
{
    return random_below(&world->random, most);
}

static int64_t between(struct world *world, int64_t least, int64_t most)
{
    return least + (int64_t)below(world, (uint64_t)(most - least) + 1);
}

static void plan(struct world *world, struct actor *actor, int64_t in_ms, int what)
{
    world_plan(world, actor, world->now_ms + in_ms, what, actor->number);
}

/* The source. An event's position is the source's clock; many share one, and some come late. */
static void create_events(struct world *world)
{
    for (size_t i = 0; i < EVENTS; i++) {
        struct happened *event = &life.events[i];
        int64_t at_ms = SKEW_MS + between(world, 0, life.created_until_ms) / GRID_MS * GRID_MS;
        event->position = at_ms + life.skew_ms;
        event->seen_from_ms = at_ms + (chance(world, 3000) ? between(world, 0, LATE_MS) : 0);
        (void)snprintf(event->until, sizeof event->until, "%" PRId64, event->position);
    }
}

/* Of those that have happened by now, seen or not. */
static bool unhandled(struct world *world, int64_t position)
{
    for (size_t i = 0; i < EVENTS; i++) {
        const struct happened *event = &life.events[i];
        int64_t at_ms = event->position - life.skew_ms;
        if (at_ms <= world->now_ms && event->position <= position && !event->handled)
            return true;
    }
    return false;
}

static bool all_handled(void)
{
    for (size_t i = 0; i < EVENTS; i++)
        if (!life.events[i].handled)
            return false;
    return true;
}

/* Most are kept equally long: nothing else tells two claims apart then. */
static int64_t new_keep(struct world *world)
{
    return chance(world, 7000) ? life.keep_ms : between(world, 200, 1500);
}

static void set_request(struct world *world, struct actor *actor, enum verb verb, size_t key)
{
    struct request *request = &actor->options.request;
    memset(request, 0, sizeof *request);
    actor->key = key;
    request->verb = verb;
    request->ttl_ms = life.ttl_ms;
    request->kind = key == WATERMARK ? KIND_LOCK : KIND_ONCE;
    actor->options.cooldown_ms = 0;
    actor->options.wait_ms = 0;
    actor->options.patience_ms = between(world, 2000, 6000);
    actor->options.kill_grace_ms = 1000;
    actor->options.look_ms = between(world, 500, 2000);
    if (!life.quiet && chance(world, life.crash_chance))
        plan(world, actor, between(world, 0, 1500), DIE);
    if (!life.quiet && chance(world, life.pause_chance))
        plan(world, actor, between(world, 0, 1500), STAND_STILL);
}

/* The next event that this poll can see, or EVENTS. */
static size_t next_event(const struct world *world, const struct polling *poll)
{
    size_t i = poll->next;
    while (i < EVENTS && (life.events[i].seen_from_ms > world->now_ms ||
                          life.events[i].position < strtoll(poll->from, NULL, 10)))
        i++;
    return i;
}

/* What is to be remembered: the oracle knows who asked by the number. */
static const struct deed *deed_of(const struct world *world, struct polling *poll, size_t id)
{
    (void)snprintf(poll->word, sizeof poll->word, "%" PRIu32, world->next_number);
    poll->deed = (struct deed){.result = poll->word};
    if (id < EVENTS) {
        poll->deed.watermark = life.names[WATERMARK];
        poll->deed.until = life.events[id].until;
    }
    return &poll->deed;
}

static void start_mark(struct world *world, struct actor *actor, size_t id)
{
    static const char *const payloads[] = {NULL, "p", "q"};
    set_request(world, actor, VERB_MARK, id);
    actor->options.request.payload = payloads[below(world, 3)];
    actor->options.request.deed = deed_of(world, &life.polls[actor->index], id);
    actor->options.cooldown_ms = between(world, 100, 4000);
    actor_start(world, actor);
}

/* A claim is held until it is finished, or only its token is kept. */
static void start_claim(struct world *world, struct actor *actor, size_t id)
{
    static const char *const payloads[] = {NULL, "p", "q"};
    struct polling *poll = &life.polls[actor->index];
    set_request(world, actor, VERB_ASK, id);
    struct request *request = &actor->options.request;
    poll->by_token = chance(world, 5000);
    request->payload = id < EVENTS ? "e" : payloads[below(world, 3)];
    request->bound = !poll->by_token && chance(world, 7000);
    request->waits = chance(world, id < EVENTS ? 4000 : 7000);
    actor->options.wait_ms = request->waits ? between(world, 50, 3000) : 0;
    if (!poll->by_token) {
        request->deed = deed_of(world, poll, id);
        actor->options.cooldown_ms = new_keep(world);
    }
    actor_start(world, actor);
}

/* From here on only the token counts: another process could go on as well. */
static void start_by_token(struct world *world, struct actor *actor, enum verb verb, uint64_t token)
{
    size_t id = actor->key;
    set_request(world, actor, verb, id);
    actor->options.request.token = token;
    if (verb == VERB_RELEASE) {
        actor->options.request.deed = deed_of(world, &life.polls[actor->index], id);
        actor->options.cooldown_ms = new_keep(world);
    }
    actor_start(world, actor);
}

static void start_abandoning(struct world *world, struct actor *actor, uint64_t token)
{
    set_request(world, actor, VERB_RELEASE, actor->key);
    actor->options.request.token = token;
    life.polls[actor->index].all_done = false;
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
    life.quiet = true;
    world->faults = (struct faults){.latency_ms = world->faults.latency_ms};
    world->store_down = false;
    world_say(world, "", "--- faults are over ---");
}

/* The next event of the poll, or what comes when there is none. */
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

/* The work is done; whoever dies before it is finished leaves a repeat. */
static void finish_by_token(struct world *world, struct actor *actor, struct polling *poll)
{
    if (!life.quiet && chance(world, 1500)) {
        start_abandoning(world, actor, poll->token);
        return;
    }
    if (actor->key < EVENTS)
        life.events[actor->key].handled = true;
    start_by_token(world, actor, VERB_RELEASE, poll->token);
}

static void take_step(struct world *world, struct actor *actor)
{
    struct polling *poll = &life.polls[actor->index];
    bool spent = world->next_number + 2 * ACTORS_MAX >= NUMBERS_MAX; /* a store without room */
    if (actor->busy || actor->is_house || !actor->alive || spent || (life.quiet && all_handled()))
        return;
    if (world->counts->operations - life.first_operation >= OPERATIONS && !life.quiet)
        end_faults(world);
    switch (poll->step) {
    case STEP_BEGIN:
        world->counts->polls++;
        set_request(world, actor, VERB_LOOK, WATERMARK);
        actor_start(world, actor);
        return;
    case STEP_HANDLE:
        handle_next(world, actor, poll);
        return;
    case STEP_WORK:
    case STEP_STALE: /* when it has worked */
        return;
    case STEP_FINISH:
        finish_by_token(world, actor, poll);
        return;
    case STEP_ADVANCE:
        start_advance(world, actor, poll);
        return;
    case STEP_SIDE:
        if (chance(world, 3000))
            start_mark(world, actor, EVENTS + below(world, life.sides));
        else
            start_claim(world, actor, EVENTS + below(world, life.sides));
        return;
    }
}

/* With nothing but the token: renews it, tries a wrong one, or goes on. */
static void worked(struct world *world, struct actor *actor, struct polling *poll)
{
    uint64_t old = life.old_token[actor->key];
    if (!poll->renewed && chance(world, 2000)) {
        poll->renewed = true;
        start_by_token(world, actor, VERB_RENEW, poll->token);
        return;
    }
    life.old_token[actor->key] = poll->token;
    poll->step = STEP_FINISH;
    if (old != 0 && old != poll->token && chance(world, 2000)) {
        poll->step = STEP_STALE;
        start_by_token(world, actor, VERB_RELEASE, old);
        return;
    }
    take_step(world, actor);
}

/* The watermark was read: from there to now, by the store's clock with an overlap. */
static void begin_poll(struct world *world, const struct actor *actor, struct polling *poll)
{
    struct poll begun = watermark_begin(&world->record, actor->heard.now_ms, OVERLAP_MS);
    (void)snprintf(poll->from, sizeof poll->from, "%s", begun.from);
    int64_t start_ms = begun.start_ms, into_ms = (start_ms - life.skew_ms) % GRID_MS;
    if (life.on_grid && start_ms > life.skew_ms + GRID_MS)
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
    struct polling *poll = &life.polls[actor->index];
    bool good = out->outcome == OUTCOME_OK || out->outcome == OUTCOME_COOLING;
    world->counts->full += out->outcome == OUTCOME_UNAVAILABLE && out->why != NULL &&
                           strcmp(out->why, "the store is full") == 0;
    switch (poll->step) {
    case STEP_BEGIN:
        if (out->outcome == OUTCOME_OK)
            begin_poll(world, actor, poll);
        break;
    case STEP_HANDLE: /* busy: somebody is at it, and may die before it is done */
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

static void held(struct world *world, struct actor *actor)
{
    struct polling *poll = &life.polls[actor->index];
    int64_t work_ms = between(world, 0, chance(world, 1500) ? life.ttl_ms * 2 : 100);
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

/* The work that was lost may go on until it is killed. */
static void stop_by_kill_time(struct world *world, struct actor *actor)
{
    int64_t kill_in_ms = actor_moment(world, actor, actor->lease.kill_at_ms) - world->now_ms;
    actor->inside = actor->inside && kill_in_ms > 0;
    plan(world, actor, between(world, 0, kill_in_ms > 0 ? kill_in_ms : 0), STOP_WORK);
}

static void told(struct world *world, struct actor *actor, const struct lease_output *out)
{
    if (out->told == TOLD_HELD)
        held(world, actor);
    else if (out->told == TOLD_LOST)
        stop_by_kill_time(world, actor);
    else if (out->told == TOLD_ENDED)
        ended(world, actor, out);
}

/* The work is done, and then the claim finished: whoever dies in between leaves a repeat. */
static void finish(struct world *world, struct actor *actor)
{
    if (actor->inside && !actor->lost)
        life.old_token[actor->key] = actor->token;
    if (actor->inside && !actor->lost && actor->key < EVENTS)
        life.events[actor->key].handled = true;
    actor_let_go(world, actor);
}

static void stand_still(struct world *world, struct actor *actor)
{
    int64_t for_ms = between(world, 1, life.ttl_ms * 2);
    actor_pause(world, actor, world->now_ms + for_ms);
    plan(world, actor, for_ms, WAKE_UP);
}

static void die(struct world *world, struct actor *actor)
{
    actor_crash(world, actor);
    for (size_t i = 0; i < world->actor_count; i++)
        if (actor_same_process(actor, &world->actors[i]))
            memset(&life.polls[i], 0, sizeof life.polls[i]);
    plan(world, actor, between(world, 0, 3000), BE_BORN);
}

static void be_born(struct world *world, struct actor *actor)
{
    actor_revive(world, actor);
    for (size_t i = 0; i < world->actor_count; i++)
        if (actor_same_process(actor, &world->actors[i]))
            plan(world, &world->actors[i], 0, NEXT);
}

static void happens(struct world *world, struct actor *actor, int what, uint64_t value)
{
    bool lives = actor->alive && !actor->paused && !life.quiet;
    struct polling *poll = &life.polls[actor->index];
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
    case BE_BORN:
        be_born(world, actor);
        return;
    case STAND_STILL:
        if (lives)
            stand_still(world, actor);
        return;
    case WAKE_UP:
        actor_resume(world, actor);
        return;
    default:
        world->store_down = what == STORE_GOES && !life.quiet;
        world->counts->outages += world->store_down ? 1 : 0;
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
    life.crash_chance = few[below(world, 4)];
    life.pause_chance = few[below(world, 4)];
    life.ttl_ms = between(world, 800, 2500);
    life.skew_ms = between(world, -SKEW_MS, SKEW_MS);
    life.created_until_ms = between(world, 2000, 20000);
    life.keep_ms = between(world, 200, 1500);
    life.sides = 1 + below(world, SIDES);
    life.on_grid = chance(world, 5000);
    rules->tick_ms = 1;
    rules->fastest = 1000;
    rules->facts.answer_ms = between(world, 100, 400);
    rules->facts.one_clock = chance(world, 4000);
    rules->facts.tests_grant = chance(world, 5000);
    rules->watches = chance(world, 3000);
    rules->knows_sessions = chance(world, 5000);
    rules->keeps_copies = chance(world, 5000);
}

static void open_store(struct world *world)
{
    char url[32];
    unsigned ids = (unsigned)between(world, 6, (int64_t)2 * IDS);
    life.roomy = ids >= IDS;
    (void)snprintf(url, sizeof url, "memory:?ids=%u", ids);
    memory_driver.close(world->store);
    world_open_store(world, url);
}

static void name_keys(struct world *world)
{
    world->key_count = IDS + 1;
    for (size_t i = 0; i < world->key_count; i++) {
        (void)snprintf(life.names[i], sizeof life.names[i],
                       i == WATERMARK ? WATERMARK_PREFIX "w" : ONCE_PREFIX "%zu", i);
        world->keys[i].key = life.names[i];
    }
}

/* With a desk, callers of a few processes; one process alone has at least three. */
static void add_callers(struct world *world, struct actor *house, int64_t least)
{
    memcpy(house->holder, house->name, sizeof house->name);
    for (int64_t left = between(world, least, 4); left > 0; left--) {
        char name[20];
        (void)snprintf(name, sizeof name, "%s%u", house->name, (unsigned)left);
        plan(world, world_add_caller(world, house, name), between(world, 0, 1000), NEXT);
    }
}

static void add_actors(struct world *world)
{
    static const char *const names[] = {"ann", "bob", "cem", "dot", "eve"};
    size_t count = script_with_desk ? 1 + below(world, 3) : 3 + below(world, 3);
    for (size_t i = 0; i < count; i++)
        plan(world, world_add_actor(world, names[i]), between(world, 0, 1000), NEXT);
    for (size_t i = 0; script_with_desk && i < count; i++)
        add_callers(world, &world->actors[i], count == 1 ? 3 : 1);
    for (uint64_t i = below(world, 3); i > 0; i--) {
        int64_t from_ms = between(world, 0, 15000);
        plan(world, &world->actors[0], from_ms, STORE_GOES);
        plan(world, &world->actors[0], from_ms + between(world, 50, 4000), STORE_COMES);
    }
}

bool deeds_has(uint64_t seed)
{
    return seed % 5 == 3;
}

void deeds_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace)
{
    enum { LONGEST_MS = 600000, FINISH_MS = 120000 };
    memset(&life, 0, sizeof life);
    life.first_operation = counts->operations;
    world_init(world, seed, counts);
    world->trace = trace;
    world->told = told;
    world->event = happens;
    world->unhandled = unhandled;
    world->on_executor = script_on_executor || script_with_desk;
    choose(world);
    name_keys(world);
    create_events(world);
    open_store(world);
    add_actors(world);
    counts->events += EVENTS;
    while (!life.quiet && world->violation[0] == '\0' && world->now_ms < LONGEST_MS)
        world_run(world, world->now_ms + 1000);
    world_run(world, world->now_ms + FINISH_MS);
    if (world->violation[0] == '\0' && life.roomy && !all_handled())
        oracle_fail(world, &world->actors[0], "rule 7", "an event was never handled");
    world_done(world);
}

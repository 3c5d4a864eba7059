/* SPDX-License-Identifier: Apache-2.0 */
/* See script.h. */
#include "script.h"

#include "history.h"
#include "oracle.h"

#include <string.h>

/* Script events; negative ones also reach a paused actor. */
enum {
    WAKE_UP = -1,
    NEXT = 1,
    STOP_WORK, /* value: the lease's number */
    WRITE,
    GIVE_UP,
    DIE,
    RESTART,
    STAND_STILL,
    STORE_GOES,
    STORE_COMES,
    EPOCH_RISES,
    HEARTBEAT,
    STAY_AWAY,
};

bool script_on_executor, script_with_local_queue, script_by_session, script_short_grace;
bool script_with_heartbeats;

struct life {
    uint64_t first_operation; /* counts at the seed's start */
    uint64_t first_offer, first_passed_live;
    bool quiet;   /* faults are over; all actors finish */
    bool calm;    /* sane clocks, no faults, and replies within the usual time */
    int64_t pace; /* everything takes this many times as long */
    unsigned pause_chance, crash_chance;
    int64_t ttl_least_ms, ttl_most_ms;
    bool one_holder_name;
    bool brisk; /* short work, and the next request at once, which causes hand-offs */
    bool plain; /* only operations that the history checker supports */
    uint32_t limit[KEYS_MAX];
    uint64_t old_token[KEYS_MAX];
};

static uint64_t below(struct world *world, uint64_t most)
{
    return random_below(&world->random, most);
}

static int64_t between(struct world *world, int64_t least, int64_t most)
{
    return least + (int64_t)below(world, (uint64_t)(most - least) + 1);
}

/* The same at the pace of the world. */
static int64_t paced(struct world *world, int64_t least, int64_t most)
{
    const struct life *life = world->script;
    return life->pace * between(world, least, most);
}

static void plan(struct world *world, struct actor *actor, int64_t in_ms, int what)
{
    world_plan(world, actor, world->now_ms + in_ms, what, actor->number);
}

static int64_t new_ttl(struct world *world, const struct life *life)
{
    return between(world, life->ttl_least_ms, life->ttl_most_ms);
}

static void plan_faults(struct world *world, struct actor *actor, const struct life *life)
{
    if (chance(world, life->crash_chance))
        plan(world, actor, paced(world, 0, 3000), DIE);
    if (chance(world, life->pause_chance))
        plan(world, actor, paced(world, 0, 3000), STAND_STILL);
}

/* Most callers of a process make equal requests, so that one grant can serve them all. */
static void ask_as_usual(struct actor *actor, const struct life *life)
{
    struct request *request = &actor->options.request;
    if (request->limit == 0)
        request->mode = MODE_EXCLUSIVE;
    request->ttl_ms = life->ttl_least_ms;
    request->lock_delay_ms = 0;
    request->bound = true;
    actor->options.cooldown_ms = 0;
    actor->caller.named = false;
}

static void ask(struct world *world, struct actor *actor, const struct life *life)
{
    struct request *request = &actor->options.request;
    bool slot = life->limit[actor->key] > 0;
    request->verb = VERB_ACQUIRE;
    request->limit = life->limit[actor->key];
    request->mode = slot ? MODE_SLOT : chance(world, 3500) ? MODE_SHARED : MODE_EXCLUSIVE;
    request->waits = chance(world, 7000);
    request->priority = chance(world, 3000) ? (int32_t)between(world, -3, 3) : 0;
    request->lock_delay_ms = !life->plain && chance(world, 1500) ? paced(world, 50, 1000) : 0;
    request->bound = chance(world, 6000);
    actor->caller.named = chance(world, 1000);
    actor->options.wait_ms = !request->waits       ? 0
                             : chance(world, 5000) ? WAIT_WITHOUT_LIMIT
                                                   : paced(world, 50, 5000);
    /* The end of two concurrent cooldowns is too uncertain for a history: by a round trip. */
    bool may_cool = !life->plain || request->mode == MODE_EXCLUSIVE;
    actor->options.cooldown_ms = may_cool && chance(world, 1200) ? paced(world, 50, 1500) : 0;
    if (actor->process != NULL && chance(world, 8000))
        ask_as_usual(actor, life);
    plan_faults(world, actor, life);
    actor_start(world, actor);
}

static void run_operation(struct world *world, struct actor *actor, const struct life *life)
{
    static const enum verb verbs[] = {VERB_QUERY, VERB_QUERY,   VERB_BREAK,  VERB_CLEAR,
                                      VERB_RENEW, VERB_RELEASE, VERB_RELEASE};
    struct request *request = &actor->options.request;
    request->verb = verbs[below(world, sizeof verbs / sizeof verbs[0])];
    request->now = life->plain || chance(world, 4000);
    request->reason = "an operator's reason";
    request->mode = MODE_EXCLUSIVE;
    request->waits = false;
    request->token = life->old_token[actor->key];
    actor->options.cooldown_ms = 0;
    if (request->token == 0 && (request->verb == VERB_RENEW || request->verb == VERB_RELEASE))
        request->verb = VERB_QUERY;
    actor_start(world, actor);
}

static void do_next(struct world *world, struct actor *actor)
{
    struct life *life = world->script;
    if (actor->busy || actor->has_callers || !actor->alive || life->quiet)
        return;
    if (world->counts->operations - life->first_operation >= OPERATIONS_PER_SEED) {
        life->quiet = true;
        world->faults = (struct faults){.least_ms = world->faults.least_ms,
                                        .latency_ms = world->faults.latency_ms,
                                        .lose_notice = world->faults.lose_notice};
        world->store_down = false;
        world_say(world, "", "--- faults are over ---");
        return;
    }
    actor->key = below(world, world->key_count);
    struct request *request = &actor->options.request;
    memset(request, 0, sizeof *request);
    request->ttl_ms = new_ttl(world, life);
    actor->options.timeout_ms = paced(world, 2000, 10000) + 20 * world->faults.least_ms;
    actor->options.kill_grace_ms = 5000;
    if (chance(world, 8500))
        ask(world, actor, life);
    else
        run_operation(world, actor, life);
}

static void notify(struct world *world, struct actor *actor, const struct lease_output *out)
{
    struct life *life = world->script;
    int64_t ttl_ms = actor->options.request.ttl_ms, kill_in_ms = 0, longest_ms = 0;
    switch (out->notify) {
    case NOTIFY_HELD:
        life->old_token[actor->key] = actor->lease.token;
        longest_ms = chance(world, 3000) ? ttl_ms * 2 : ttl_ms / 3;
        if (life->brisk && chance(world, 9000))
            longest_ms = 30;
        plan(world, actor, between(world, 0, longest_ms), STOP_WORK);
        plan(world, actor, paced(world, 0, 200), WRITE);
        return;
    case NOTIFY_LOST: /* the work may continue until it is killed, and often does */
        kill_in_ms = actor_moment(world, actor, actor->lease.kill_at_ms) - world->now_ms;
        actor->inside = actor->inside && kill_in_ms > 0;
        plan(world, actor, chance(world, 5000) ? kill_in_ms : between(world, 0, kill_in_ms),
             STOP_WORK);
        return;
    case NOTIFY_WAITING:
        if (!life->quiet && chance(world, 2000))
            plan(world, actor, paced(world, 0, 3000), GIVE_UP);
        if (!life->quiet && actor->process != NULL && chance(world, 2000))
            plan(world, actor, paced(world, 0, 300), STAY_AWAY);
        return;
    case NOTIFY_ENDED:
        plan(world, actor, paced(world, 0, life->brisk ? 20 : 300), NEXT);
        return;
    case NOTIFY_RENEWED:
    case NOTIFY_NONE:
        return;
    }
}

static void stand_still(struct world *world, struct actor *actor, const struct life *life)
{
    int64_t for_ms = between(world, 1, life->ttl_most_ms * 2);
    actor_pause(world, actor, world->now_ms + for_ms);
    plan(world, actor, for_ms, WAKE_UP);
}

/* A local caller may also cancel. */
static void stop(struct world *world, struct actor *actor)
{
    bool is_operation = actor->options.request.verb != VERB_ACQUIRE;
    if (actor->process == NULL || is_operation || !chance(world, 1000)) {
        actor_let_go(world, actor);
        return;
    }
    if (actor->inside && !actor->options.request.bound)
        actor_forget(world, actor);
    else
        actor_cancel(world, actor);
    plan(world, actor, paced(world, 0, 300), NEXT);
}

/* The counter of the restored backup is some writes behind: in the new epoch their revisions come
 * again, and writes that were prepared before must not fit them. */
static void raise_epoch(struct world *world)
{
    uint64_t made = memory_raise_revision(world->store, /* at_least= */ 0);
    memory_raise_epoch(world->store, below(world, (made < 12 ? made : 12) + 1));
    world->counts->raises++;
}

/* Every third of the TTL or sooner, until all have finished. */
static void beat(struct world *world, struct actor *actor)
{
    const struct life *life = world->script;
    int64_t ttl_ms = world->rules.facts.ttl_ms;
    bool ends = life->quiet;
    for (size_t i = 0; i < world->actor_count; i++)
        ends = ends && !world->actors[i].busy;
    if (ends)
        return;
    actor_beat(world, actor);
    plan(world, actor, between(world, ttl_ms / 5, ttl_ms / 3), HEARTBEAT);
}

static void happens(struct world *world, struct actor *actor, int what, uint64_t value)
{
    const struct life *life = world->script;
    bool same_lease = actor->alive && actor->busy && value == actor->number;
    switch (what) {
    case NEXT:
        do_next(world, actor);
        return;
    case WRITE:
        if (same_lease && actor->inside) {
            bool slow = chance(world, 2000);
            actor_write(world, actor, between(world, 0, slow ? life->ttl_most_ms * 2 : 20));
            plan(world, actor, paced(world, 50, 800), WRITE);
        }
        return;
    case STOP_WORK:
    case GIVE_UP:
        if (same_lease)
            stop(world, actor);
        return;
    case DIE:
        if (actor->alive && !actor->paused && !life->quiet) {
            actor_crash(world, actor);
            plan(world, actor, paced(world, 0, 3000), RESTART);
        }
        return;
    case RESTART:
        actor_revive(world, actor);
        for (size_t i = 0; i < world->actor_count; i++)
            if (actor_same_process(actor, &world->actors[i]))
                plan(world, &world->actors[i], 0, NEXT);
        return;
    case STAND_STILL:
        if (actor->alive && !actor->paused && !life->quiet)
            stand_still(world, actor, life);
        return;
    case WAKE_UP:
        actor_resume(world, actor);
        return;
    case STORE_GOES:
    case STORE_COMES:
        world->store_down = what == STORE_GOES && !life->quiet;
        world->counts->outages += world->store_down ? 1 : 0;
        return;
    case EPOCH_RISES:
        raise_epoch(world);
        return;
    case HEARTBEAT:
        beat(world, actor);
        return;
    case STAY_AWAY:
        if (same_lease)
            actor_stay_away(world, actor, paced(world, 0, 3000));
        return;
    case CALLER_RETURNS:
        actor_return(world, actor, value);
        return;
    default:
        return;
    }
}

bool script_is_wild(uint64_t seed)
{
    return seed % 5 == 4;
}

static void choose_faults(struct world *world, struct life *life)
{
    static const unsigned few[] = {0, 50, 200, 1000};
    struct faults *faults = &world->faults;
    faults->lose_request = few[below(world, 4)];
    faults->lose_answer = few[below(world, 4)];
    faults->doubled = few[below(world, 4)];
    faults->slow = few[below(world, 4)];
    faults->lose_notice = chance(world, 3000) ? 10000 : few[below(world, 4)];
    faults->latency_ms = between(world, 1, 40);
    faults->slow_ms = between(world, 100, 4000);
    if (chance(world, 500)) /* a distant store */
        faults->least_ms = between(world, 50, 400);
    life->pause_chance = few[below(world, 4)];
    life->crash_chance = few[below(world, 4)];
    life->ttl_least_ms = between(world, 400, 1500) + 15 * faults->least_ms;
    life->ttl_most_ms = life->ttl_least_ms + between(world, 0, 1500);
}

/* Every fifth seed is plain: its results are recorded and must have one order. */
static bool is_plain(uint64_t seed)
{
    return seed % 5 == 1;
}

static void choose_plain_store(struct world *world, struct life *life)
{
    world->rules.tick_ms = 1;
    world->rules.watches = chance(world, 5000);
    world->rules.facts.wakes_with_record = chance(world, 5000);
    world->rules.facts.tests_grant = chance(world, 5000);
    world->rules.facts.reply_timeout_ms = between(world, 100, 600);
    world->rules.facts.poll_ms = between(world, 1000, 5000);
    world->rules.facts.takeover_ms = chance(world, 6000) ? between(world, 20, 400) : 0;
    world->rules.names_collide = false;
    world->faults.doubled = 0; /* the duplicate of a release is stale */
    life->ttl_most_ms = life->ttl_least_ms;
    life->plain = true;
    if (script_by_session) /* the checker knows no sessions: leases end by their TTL, none late */
        world->rules.facts.judge = JUDGE_SESSION;
}

static void choose_store(struct world *world, bool wild)
{
    struct world_rules *rules = &world->rules;
    rules->tick_ms = 1;
    rules->watches = chance(world, 5000);
    rules->facts.wakes_with_record = chance(world, 5000);
    rules->facts.tests_grant = chance(world, 5000);
    rules->facts.reply_timeout_ms = between(world, 100, 600);
    rules->facts.poll_ms = between(world, 1000, 5000);
    rules->facts.takeover_ms = chance(world, 6000) ? between(world, 20, 400) : 0;
    rules->keeps_copies = chance(world, 5000);
    rules->overlaps_allowed = wild;
    if (wild) /* on a distant store a fast clock would always time out */
        world->faults.least_ms = 0;
    uint64_t kind = below(world, 6);
    switch (script_by_session ? 1 : kind) {
    case 0:
        rules->facts.judge = JUDGE_OBSERVED;
        rules->facts.tests_grant = false;
        break;
    case 1:
        rules->facts.judge = JUDGE_SESSION;
        rules->knows_sessions = true;
        world->judge.late_ms = chance(world, 5000) ? between(world, 0, 2000) : 0;
        break;
    case 2: /* one host, one clock */
        rules->facts.one_clock = !wild;
        rules->knows_sessions = chance(world, 5000);
        break;
    case 3: /* a server with dates in whole seconds */
        rules->tick_ms = 1000;
        rules->facts.margin_ms = 2000;
        rules->facts.tests_grant = false;
        break;
    default: /* some test a token, and renew by revision nevertheless */
        rules->facts.renews_by_revision = rules->facts.wakes_with_record;
        rules->knows_sessions = chance(world, 3000);
        break;
    }
}

/*
 * A store without notifications that replies within a second: its times and those of its clients
 * are a hundred times longer, its queue is short.
 */
static void choose_slow(struct world *world, struct life *life)
{
    struct store_facts *facts = &world->rules.facts;
    facts->answer_ms = 1000;
    facts->reply_timeout_ms = 10000;
    facts->offer_grace_ms = script_short_grace ? 1000 : 150000;
    facts->takeover_ms = 0;
    facts->poll_ms = 60000;
    facts->waiters_max = 32;
    facts->ttl_ms = life->ttl_least_ms = life->ttl_most_ms = 300000;
    facts->renewal_window_ms = 5000;
    world->rules.watches = false;
    world->faults.lose_notice = 10000;
    world->faults.least_ms = 100;
    world->faults.latency_ms = 400;
    world->faults.slow_ms *= 10;
    life->pace = 100;
}

/* Usual facts, a short queue with another grace, or a slow store; some without any fault. */
static void choose_facts(struct world *world, bool wild, struct life *life)
{
    struct store_facts *facts = &world->rules.facts;
    bool slow = chance(world, 1500);
    facts->answer_ms = 100;
    life->calm = !wild && chance(world, slow ? 5000 : 1000);
    if (life->calm) {
        world->faults = (struct faults){.latency_ms = world->faults.latency_ms};
        life->pause_chance = life->crash_chance = 0;
        facts->takeover_ms = facts->takeover_ms > 0 ? 5 * facts->answer_ms : 0;
    }
    if (chance(world, 2000)) {
        facts->waiters_max = (uint32_t)between(world, 1, 4);
        facts->offer_grace_ms = between(world, 800, 4000);
    }
    if (slow)
        choose_slow(world, life);
    bool by_session = facts->judge == JUDGE_SESSION;
    if (by_session && (script_with_heartbeats || (!script_by_session && chance(world, 5000)))) {
        life->ttl_most_ms = life->ttl_least_ms;
        world_use_heartbeats(world, life->ttl_least_ms);
    }
}

/* The clocks of a world differ by a factor of 1.15 at most, in a wild one by 4 and more. */
static void add_actors(struct world *world, bool wild, const struct life *life)
{
    static const char *const names[] = {"ann", "bob", "cem", "dot", "eve", "fay"};
    bool observed = world->rules.facts.judge == JUDGE_OBSERVED;
    int64_t slowest = wild       ? 250
                      : observed ? 933
                                 : 870,
            fastest = wild       ? 4000
                      : observed ? 1072
                                 : 1150;
    size_t count = script_with_local_queue ? 1 + below(world, 4) : ACTORS_LEAST + below(world, 4);
    world->rules.fastest = world->rules.facts.one_clock ? 1000 : fastest;
    for (size_t i = 0; i < count; i++) {
        struct actor *actor = world_add_actor(world, names[i]);
        if (!world->rules.facts.one_clock) {
            actor->rate = between(world, slowest, fastest);
            actor->offset_ms = between(world, 0, 100000000);
        }
        if (life->one_holder_name)
            memcpy(actor->holder, "pod", sizeof "pod");
        plan(world, actor, paced(world, 0, 300), NEXT);
        if (world->rules.facts.renews_by_session)
            plan(world, actor, paced(world, 0, 300), HEARTBEAT);
    }
}

/* Up to five in each process; three or more in all. */
static void add_callers(struct world *world)
{
    size_t houses = world->actor_count, least = houses < 3 ? 4 - houses : 1;
    for (size_t i = 0; i < houses; i++)
        for (uint64_t left = (uint64_t)between(world, (int64_t)least, 5); left > 0; left--) {
            char name[20];
            struct actor *process = &world->actors[i];
            (void)snprintf(name, sizeof name, "%s%u", process->name, (unsigned)left);
            if (process->holder[0] == '\0')
                memcpy(process->holder, process->name, sizeof process->name);
            plan(world, world_add_caller(world, process, name), paced(world, 0, 300), NEXT);
        }
}

static void plan_outages(struct world *world)
{
    for (uint64_t i = below(world, 3); i > 0; i--) {
        int64_t from_ms = paced(world, 0, 40000);
        plan(world, &world->actors[0], from_ms, STORE_GOES);
        plan(world, &world->actors[0], from_ms + paced(world, 50, 6000), STORE_COMES);
    }
}

/* Most seeds have none: a store is rarely restored. */
static void plan_raises(struct world *world)
{
    for (uint64_t i = chance(world, 4000) ? below(world, 4) : 0; i > 0; i--)
        plan(world, &world->actors[0], between(world, 0, 40000), EPOCH_RISES);
}

/* Where nothing fails, a live waiter accepts its offer: the grace suits the usual reply. */
static void check_offers(struct world *world)
{
    enum { SHARE = 10 };
    const struct life *life = world->script;
    uint64_t offers = world->counts->offers - life->first_offer;
    uint64_t passed = world->counts->passed_live - life->first_passed_live;
    if (life->calm && passed * SHARE > offers)
        oracle_fail(world, &world->actors[0], "offer grace", "live waiters are passed over");
}

static struct history history; /* large: kept off the stack */

void script_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace)
{
    enum { LONGEST_MS = 1000000, FINISH_MS = 200000 };
    struct life life = {.first_operation = counts->operations,
                        .first_offer = counts->offers,
                        .first_passed_live = counts->passed_live,
                        .pace = 1};
    bool wild = script_is_wild(seed);
    world_init(world, seed, counts);
    world->trace = trace;
    world->on_executor = script_on_executor || script_with_local_queue;
    world->notify = notify;
    world->event = happens;
    world->script = &life;
    world->key_count = 1 + below(world, 2);
    world->keys[0].key = "a/b";
    world->keys[1].key = "a-b";
    world->rules.names_collide = world->key_count == 2 && chance(world, 2000);
    for (size_t key = 0; key < world->key_count; key++)
        life.limit[key] = chance(world, 2500) ? (uint32_t)between(world, 1, 3) : 0;
    life.one_holder_name = chance(world, 3000);
    choose_faults(world, &life);
    life.brisk = script_with_local_queue && chance(world, 5000);
    if (is_plain(seed) && !script_with_local_queue) {
        choose_plain_store(world, &life);
        history_init(&history);
        world->history = &history;
    } else {
        choose_store(world, wild);
        choose_facts(world, wild, &life);
    }
    add_actors(world, wild, &life);
    if (script_with_local_queue)
        add_callers(world);
    if (!life.calm) {
        plan_outages(world);
        plan_raises(world);
    }
    while (!life.quiet && world->violation[0] == '\0' && world->now_ms < LONGEST_MS * life.pace &&
           !world_idle(world))
        world_run(world, world->now_ms + 1000 * life.pace);
    world_run(world, world->now_ms + FINISH_MS * life.pace);
    check_offers(world);
    if (world->violation[0] == '\0')
        script_check_end(world, life.pace, life.ttl_most_ms, life.limit);
    if (world->violation[0] == '\0' && world->history != NULL)
        history_check(world);
    world_done(world);
}

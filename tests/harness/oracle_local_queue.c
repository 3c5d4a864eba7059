/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants for several callers of one process: see oracle.h. Written against
 * docs/guarantees.md and docs/architecture.md, not against the local queue.
 */
#include "world_internal.h"

#include "runtime/local_queue.h"

enum { IN_A_ROW = 8 /* hand-offs without a request to the store */ };

static int64_t rank_of(const struct actor *actor)
{
    return (int64_t)actor->options.request.priority + actor->caller.passed;
}

static bool same_process(const struct actor *actor, const struct actor *other)
{
    return other != actor && other->process == actor->process && other->key == actor->key;
}

/* Still queued, as far as can be determined from outside. */
static bool is_in_line(const struct world *world, const struct actor *actor)
{
    int64_t waited_ms = world->now_ms - actor->began_ms;
    bool waits = actor->options.request.waits;
    bool over = actor->options.wait_ms != WAIT_WITHOUT_LIMIT &&
                waited_ms * actor->rate / 1000 + 2 >= actor->options.wait_ms;
    return actor->caller.waiting && waits && !actor->caller.gave_up && !over;
}

/* True if one grant could have served both. */
static bool wants_same(const struct actor *a, const struct actor *b)
{
    const struct request *x = &a->options.request, *y = &b->options.request;
    return !a->caller.named && !b->caller.named && x->bound && y->bound && x->mode == y->mode &&
           x->ttl_ms == y->ttl_ms && x->lock_delay_ms == y->lock_delay_ms &&
           a->options.cooldown_ms == b->options.cooldown_ms;
}

/* First come, first served within a priority, which rises each time a caller is passed over. */
static void check_turn(struct world *world, const struct actor *actor)
{
    if (!actor->options.request.waits)
        return;
    for (size_t i = 0; i < world->actor_count; i++) {
        struct actor *other = &world->actors[i];
        if (!same_process(actor, other) || !other->caller.waiting || other->caller.paused)
            continue;
        bool earlier = other->caller.arrived < actor->caller.arrived;
        bool ahead =
            rank_of(other) > rank_of(actor) || (earlier && rank_of(other) == rank_of(actor));
        if (ahead && wants_same(actor, other) && is_in_line(world, other))
            oracle_fail(world, actor, "rule 4", "a local caller overtook another");
        other->caller.passed += earlier ? 1 : 0;
    }
}

/* The store's grant with the caller's token, of the same process; 0: none. */
static uint32_t grant_of(const struct world *world, const struct actor *actor, uint64_t token)
{
    for (uint32_t number = 1; number < world->next_number; number++) {
        const struct acquisition *own = &world->acquisitions[number];
        if (own->session == actor->process->session && own->key == actor->key &&
            oracle_order(own, token) != 0)
            return number;
    }
    return 0;
}

static void check_hand_over(struct world *world, const struct actor *actor,
                            const struct acquisition *own, uint32_t handed)
{
    world->counts->hand_overs++;
    if (own->mode != MODE_EXCLUSIVE || own->cooldown_ms > 0)
        oracle_fail(world, actor, "hand-over", "of what the store must be told to end");
    if (handed > IN_A_ROW)
        oracle_fail(world, actor, "hand-over", "more in a row than others can bear");
    if (actor->process->heard_of[actor->key].outsiders)
        oracle_fail(world, actor, "hand-over", "past somebody outside who is known to wait");
}

static void check_terms(struct world *world, const struct actor *actor,
                        const struct acquisition *own)
{
    const struct request *wanted = &actor->options.request;
    if (own->mode != wanted->mode || own->limit != wanted->limit || own->ttl_ms != wanted->ttl_ms ||
        own->bound != wanted->bound || own->lock_delay_ms != wanted->lock_delay_ms ||
        own->cooldown_ms != actor->options.cooldown_ms)
        oracle_fail(world, actor, "rule 11", "served on other terms than asked for");
}

static void check_deadline(struct world *world, const struct actor *actor,
                           const struct task_news *news)
{
    const struct acquisition *own = &world->acquisitions[actor->grant];
    if (news->deadline_ms <= actor_clock(world, actor))
        oracle_fail(world, actor, "rule 3", "told held after its deadline");
    if (news->deadline_ms > own->deadline_ms || news->kill_at_ms > own->kill_at_ms)
        oracle_fail(world, actor, "rule 3", "told of more time than the lease has");
}

void oracle_caller_held(struct world *world, struct actor *actor, const struct task_news *news)
{
    struct key_truth *key = &world->keys[actor->key];
    uint32_t handed = (uint32_t)(news->token % GRANT_STEP);
    actor->grant = grant_of(world, actor, news->token - handed);
    struct acquisition *own = &world->acquisitions[actor->grant];
    if (actor->grant == 0) {
        oracle_fail(world, actor, "rule 2", "told a token that was not granted to its process");
        return;
    }
    actor->process->heard_of[actor->key].turns++;
    if (actor->caller.paused)
        oracle_fail(world, actor, "rule 4", "granted while its caller is away");
    if (handed < own->served)
        oracle_fail(world, actor, "rule 2", "a token that does not grow with the hand-over");
    own->served = handed + 1;
    actor->order = oracle_order(own, news->token - handed) + handed;
    key->grant_order = actor->order > key->grant_order ? actor->order : key->grant_order;
    if (handed > 0)
        check_hand_over(world, actor, own, handed);
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *other = &world->actors[i];
        if (same_process(actor, other) && other->inside && other->grant == actor->grant)
            oracle_fail(world, actor, "rule 1", "two callers hold by one grant");
    }
    check_terms(world, actor, own);
    check_deadline(world, actor, news);
    check_turn(world, actor);
    oracle_alone(world, actor);
}

void oracle_caller_renewed(struct world *world, const struct actor *actor,
                           const struct task_news *news)
{
    if (actor->inside && news->token != actor->token)
        oracle_fail(world, actor, "rule 2", "renewed under another token");
    if (actor->inside)
        check_deadline(world, actor, news);
}

static bool conflicts(const struct actor *a, const struct actor *b)
{
    return a->options.request.mode == MODE_EXCLUSIVE || b->options.request.mode == MODE_EXCLUSIVE;
}

/* Busy within the call: at that moment another caller of its process must hold or wait. */
static void check_known_busy(struct world *world, const struct actor *actor)
{
    bool in_the_way = false;
    world->counts->known_busy++;
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *other = &world->actors[i];
        bool holds = other->inside && !other->lost && conflicts(actor, other) &&
                     other->lease.deadline_ms > actor_clock(world, actor);
        bool waits = other->caller.waiting && other->options.request.waits;
        if (same_process(actor, other) && (holds || waits))
            in_the_way = true;
    }
    if (!in_the_way)
        oracle_fail(world, actor, "rule 10", "told busy unasked, and nobody here has it");
}

static bool stands_in_line(const struct world *world, const struct actor *actor)
{
    for (uint32_t number = 1; number < world->next_number; number++) {
        const struct acquisition *own = &world->acquisitions[number];
        if (own->stands && own->session == actor->session && own->key == actor->key)
            return true;
    }
    return false;
}

void oracle_caller_asks(const struct world *world, struct actor *actor)
{
    const struct heard_of *heard_of = &actor->process->heard_of[actor->key];
    actor->caller.answers = heard_of->answers;
    actor->caller.turns = heard_of->turns;
    actor->caller.found_taken = false;
    for (size_t i = 0; i < world->actor_count; i++)
        if (same_process(actor, &world->actors[i]) && world->actors[i].inside)
            actor->caller.found_taken = true;
}

/* Busy and cooling are facts: from the store, or because of another caller of the process. */
void oracle_caller_ended(struct world *world, const struct actor *actor,
                         const struct task_news *news)
{
    const struct heard_of *heard_of = &actor->process->heard_of[actor->key];
    bool refused = news->outcome == OUTCOME_BUSY || news->outcome == OUTCOME_COOLING;
    if (!refused || actor->caller.gave_up ||
        actor->caller.paused) /* away: it was not to be served */
        return;
    if (actor->caller.entering && !actor->options.request.waits) {
        check_known_busy(world, actor);
        return;
    }
    bool heard = heard_of->answers > actor->caller.answers;
    bool taken = heard_of->turns > actor->caller.turns || actor->caller.found_taken;
    if (!heard && !taken && !stands_in_line(world, actor))
        oracle_fail(world, actor, "rule 10", "told of others while the store never answered");
}

/* After every tick: no caller works past its deadline without a notification. */
void oracle_process(struct world *world, const struct actor *process)
{
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *actor = &world->actors[i];
        bool works = actor->process == process && actor->inside && !actor->lost;
        if (works && actor_clock(world, actor) >= actor->lease.deadline_ms)
            oracle_fail(world, actor, "rule 3", "not told of its loss by its deadline");
    }
}

void oracle_lined_up(struct world *world, const struct actor *process)
{
    struct acquisition *own = &world->acquisitions[process->number];
    enum lease_state state = process->lease.state;
    own->deadline_ms = process->lease.deadline_ms;
    own->kill_at_ms = process->lease.kill_at_ms;
    bool backs_off = state == LEASE_ACQUIRING && !process->lease.in_flight;
    own->stands =
        process->lease.trouble_since_ms == NEVER &&
        (state == LEASE_WAITING || state == LEASE_RELEASING || state == LEASE_LEAVING || backs_off);
}

void oracle_heard(struct world *world, struct actor *process, size_t key,
                  const struct store_reply *reply)
{
    struct heard_of *heard_of = &process->heard_of[key];
    struct event event = {0};
    const char *why = NULL;
    heard_of->answers++;
    translate_reply(reply, world->keys[key].key, &world->record, &event, &why);
    if (!event.known || (reply->present && stamp_order(&reply->written) < heard_of->revision))
        return;
    heard_of->revision = reply->present ? stamp_order(&reply->written) : heard_of->revision;
    heard_of->outsiders = false;
    for (size_t i = 0; i < world->record.waiter_count; i++)
        if (world->record.waiters[i].session != process->session)
            heard_of->outsiders = true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h. */
#include "history.h"

#include "oracle.h"

void history_init(struct history *history)
{
    history->count = 0;
    history->spoiled = false;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        history->open[i] = history->renewing[i] = NO_OPERATION;
}

static int open_operation(struct world *world, const struct actor *actor, enum linear_kind kind)
{
    struct history *history = world->history;
    const struct request *request = &actor->options.request;
    static const enum linear_mode modes[] = {[MODE_EXCLUSIVE] = LINEAR_EXCLUSIVE,
                                             [MODE_SHARED] = LINEAR_SHARED,
                                             [MODE_SLOT] = LINEAR_SEMAPHORE};
    if (history->count == HISTORY_MAX)
        return NO_OPERATION;
    history->ops[history->count] =
        (struct linear_op){.key = world->keys[actor->key].key,
                           .kind = kind,
                           .mode = modes[request->mode],
                           .limit = request->limit,
                           .waits = request->waits,
                           .client = (int)actor->index,
                           .result = LINEAR_UNKNOWN,
                           .token = actor->lease.token != 0 ? actor->lease.token : request->token,
                           .ttl_ms = request->ttl_ms,
                           .cooldown_ms = actor->options.cooldown_ms,
                           .call_ms = world->now_ms};
    return (int)history->count++;
}

static void close_operation(struct world *world, int *index, enum linear_result result)
{
    if (*index == NO_OPERATION)
        return;
    struct linear_op *op = &world->history->ops[*index];
    op->result = result;
    op->return_ms = world->now_ms;
    *index = NO_OPERATION;
}

/* Copies in flight may take effect later: adds one operation without a reply. */
static void note_stragglers(struct world *world, const struct actor *actor, enum linear_kind kind)
{
    if (world->acquisitions[actor->number].writes_in_flight > 0)
        (void)open_operation(world, actor, kind);
}

static enum linear_result status_of(const struct world *world, const struct event *event,
                                    uint64_t *out_token)
{
    static const enum linear_result results[] = {[KEY_FREE] = LINEAR_FREE,
                                                 [KEY_HELD] = LINEAR_HELD,
                                                 [KEY_OFFERED] = LINEAR_OFFERED,
                                                 [KEY_COOLING] = LINEAR_COOLING,
                                                 [KEY_DELAYED] = LINEAR_UNKNOWN};
    struct view view = {.at = event->at, .facts = &world->rules.facts};
    struct key_info key_info = record_key_info(&world->record, &view);
    *out_token = key_info.token;
    return results[key_info.state];
}

/* Ok because an earlier attempt may have succeeded, but another client may have done it. */
static bool only_presumed(const struct world *world)
{
    return world->output.decided && world->output.verdict.kind == VERDICT_STALE;
}

static void close_errand(struct world *world, const struct actor *actor, const struct event *event)
{
    int *open = &world->history->open[actor->index];
    enum outcome outcome = world->output.outcome;
    enum linear_result result = outcome == OUTCOME_OK      ? LINEAR_OK
                                : outcome == OUTCOME_STALE ? LINEAR_STALE
                                                           : LINEAR_UNKNOWN;
    if (*open == NO_OPERATION)
        return;
    struct linear_op *op = &world->history->ops[*open];
    if (op->kind == LINEAR_STATUS && result == LINEAR_OK)
        result = status_of(world, event, &op->token);
    if (result == LINEAR_OK && only_presumed(world))
        result = LINEAR_UNKNOWN;
    enum linear_kind kind = op->kind;
    /* A repeated break spares newer grants, which the checker's model cannot express. */
    if (kind == LINEAR_BREAK_NOW && actor->lease.unsure)
        world->history->spoiled = true;
    close_operation(world, open, result);
    if (kind != LINEAR_STATUS)
        note_stragglers(world, actor, kind);
}

/* A waiter that gives up also releases a grant that it never received: neither is reported. */
static void note_silent_release(struct world *world, const struct actor *actor)
{
    const struct acquisition *own = &world->acquisitions[actor->number];
    size_t last = (own->grant_count + TOKENS_MAX - 1) % TOKENS_MAX;
    uint64_t token = own->grant_count > 0 ? own->tokens[last] : 0;
    int open = world->history->open[actor->index];
    if (token == 0 || open == NO_OPERATION)
        return;
    int release = open_operation(world, actor, LINEAR_RELEASE);
    if (release == NO_OPERATION)
        return;
    world->history->ops[release].token = token;
    world->history->ops[release].cooldown_ms = 0;
    world->history->ops[release].call_ms = world->history->ops[open].call_ms;
}

/*
 * The client tried more than once, was granted without receiving it, and may have renewed that
 * grant. The checker's model cannot express this; the oracle has checked every write of it.
 */
static void note_unheard_grant(struct world *world, const struct actor *actor)
{
    bool granted = world->acquisitions[actor->number].grant_count > 0;
    if (granted && world->history->unheard[actor->index] > 0)
        world->history->spoiled = true;
}

static void close_ask(struct world *world, const struct actor *actor, enum linear_result result)
{
    if (result != LINEAR_OK) {
        note_silent_release(world, actor);
        note_unheard_grant(world, actor);
    }
    close_operation(world, &world->history->open[actor->index], result);
    if (result != LINEAR_OK && result != LINEAR_UNKNOWN)
        note_stragglers(world, actor, LINEAR_ACQUIRE);
}

static void start(struct world *world, const struct actor *actor)
{
    static const enum linear_kind kinds[] = {
        [VERB_ACQUIRE] = LINEAR_ACQUIRE, [VERB_RENEW] = LINEAR_RENEW,
        [VERB_RELEASE] = LINEAR_RELEASE, [VERB_BREAK] = LINEAR_BREAK_NOW,
        [VERB_CLEAR] = LINEAR_CLEAR,     [VERB_QUERY] = LINEAR_STATUS,
        [VERB_LEAVE] = LINEAR_STATUS};
    world->history->unheard[actor->index] = 0;
    world->history->open[actor->index] =
        open_operation(world, actor, kinds[actor->options.request.verb]);
}

static void step_renewal(struct world *world, const struct actor *actor, enum lease_state from)
{
    int *renewing = &world->history->renewing[actor->index];
    enum lease_state to = actor->lease.state;
    if (from == LEASE_HELD && to == LEASE_RENEWING)
        *renewing = open_operation(world, actor, LINEAR_RENEW);
    if (from == LEASE_RENEWING && to != LEASE_RENEWING) {
        close_operation(world, renewing, to == LEASE_HELD ? LINEAR_OK : LINEAR_UNKNOWN);
        note_stragglers(world, actor, LINEAR_RENEW);
    }
}

/* A waiter that ends because of a cooldown was in the queue until then, as one that ends busy. */
static enum linear_result ask_result(const struct world *world, const struct actor *actor)
{
    enum outcome outcome = world->output.outcome;
    bool refused = outcome == OUTCOME_BUSY || outcome == OUTCOME_COOLING;
    if (refused && actor->lease.notified_waiting)
        return LINEAR_BUSY;
    if (outcome == OUTCOME_BUSY && actor->lease.final_why == NULL) /* not cancelled by the caller */
        return LINEAR_BUSY;
    return outcome == OUTCOME_COOLING ? LINEAR_COOLING : LINEAR_UNKNOWN;
}

static void step_end(struct world *world, const struct actor *actor, enum lease_state from,
                     const struct event *event)
{
    bool ok = world->output.outcome == OUTCOME_OK && !only_presumed(world);
    if (from == LEASE_OPERATION)
        close_errand(world, actor, event);
    else if (from == LEASE_RELEASING)
        close_operation(world, &world->history->open[actor->index],
                        ok ? LINEAR_OK : LINEAR_UNKNOWN);
    else
        close_ask(world, actor, ask_result(world, actor));
}

/* An abandoned attempt may have been granted, or have renewed, besides the next one. */
static void note_abandoned(struct world *world, const struct actor *actor,
                           const struct lease *before, const struct event *event)
{
    struct history *history = world->history;
    bool holds = before->state == LEASE_RENEWING;
    int open = holds ? history->renewing[actor->index] : history->open[actor->index];
    bool asks = before->sent_verb == VERB_ACQUIRE;
    bool wrote = before->in_flight && before->sent != ACTION_READ;
    bool abandoned = wrote && actor->lease.attempts > before->attempts;
    bool too_late = wrote && asks && before->pending == VERDICT_GRANTED &&
                    event->kind == EVENT_REPLY && event->serial == before->serial &&
                    event->reply == REPLY_OK && world->output.notify != NOTIFY_HELD;
    bool counts = asks || before->sent_verb == VERB_RENEW;
    if (!(abandoned || too_late) || open == NO_OPERATION || !counts)
        return;
    int unheard = open_operation(world, actor, asks ? LINEAR_ACQUIRE : LINEAR_RENEW);
    if (unheard != NO_OPERATION)
        history->ops[unheard].call_ms = history->ops[open].call_ms;
    history->unheard[actor->index] += asks ? 1 : 0;
}

/* An acquire that finds its own grant renews it, with every attempt, received or not. */
static void told_held(struct world *world, const struct actor *actor, const struct event *event)
{
    struct history *history = world->history;
    int open = history->open[actor->index];
    if (open == NO_OPERATION)
        return;
    history->ops[open].token = actor->lease.token;
    int64_t call_ms = history->ops[open].call_ms;
    close_ask(world, actor, LINEAR_OK);
    uint64_t granted_by = actor->lease.token >> 10;
    unsigned unheard = history->unheard[actor->index];
    bool again = unheard > 0 || granted_by != stamp_order(&event->at);
    for (unsigned i = 0; again && i <= unheard; i++) {
        int renewal = open_operation(world, actor, LINEAR_RENEW);
        if (renewal != NO_OPERATION)
            history->ops[renewal].call_ms = call_ms;
    }
}

void history_step(struct world *world, const struct actor *actor, const struct lease *before,
                  const struct event *event)
{
    enum lease_state from = before->state, to = actor->lease.state;
    if (world->history == NULL)
        return;
    if (event->kind == EVENT_START)
        start(world, actor);
    note_abandoned(world, actor, before, event);
    step_renewal(world, actor, from);
    if (to == LEASE_LEAVING && from != LEASE_LEAVING && actor->lease.reacquires)
        note_silent_release(world, actor);
    if (world->output.notify == NOTIFY_HELD)
        told_held(world, actor, event);
    if (to == LEASE_RELEASING && from != LEASE_RELEASING) {
        int open = open_operation(world, actor, LINEAR_RELEASE);
        world->history->open[actor->index] = open;
        bool lost = from == LEASE_LOST || world->output.notify == NOTIFY_LOST;
        if (lost && open != NO_OPERATION) /* a lost lease starts no cooldown */
            world->history->ops[open].cooldown_ms = 0;
    }
    if (to == LEASE_ENDED && from != LEASE_ENDED)
        step_end(world, actor, from, event);
}

void history_crash(struct world *world, const struct actor *actor)
{
    struct history *history = world->history;
    if (history == NULL)
        return;
    if (actor->busy && actor->options.request.verb == VERB_BREAK)
        history->spoiled = true;
    if (actor->busy && history->open[actor->index] != NO_OPERATION)
        note_unheard_grant(world, actor);
    history->open[actor->index] = history->renewing[actor->index] = NO_OPERATION;
}

void history_check(struct world *world)
{
    if (world->history->spoiled)
        return;
    struct linear_report report;
    struct linear_options options = LINEAR_OPTIONS_DEFAULT;
    options.revive = !world->rules.facts.tests_grant;
    enum linear_verdict verdict =
        linear_check(world->history->ops, world->history->count, &options, &report);
    world->counts->histories++;
    world->counts->undecided += verdict == LINEAR_UNDECIDED ? 1 : 0;
    if (verdict == LINEAR_REFUSED || verdict == LINEAR_MALFORMED)
        oracle_fail(world, &world->actors[0], "linearizability", report.text);
}

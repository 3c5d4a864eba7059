/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h. */
#include "world_internal.h"

#include "wire/record_codec.h"

#include <stdlib.h>
#include <string.h>

void oracle_fail(struct world *world, const struct actor *actor, const char *rule,
                 const char *detail)
{
    if (world->violation[0] != '\0')
        return;
    (void)snprintf(world->violation, sizeof world->violation, "at %lld ms, %s: %s: %s",
                   (long long)world->now_ms, actor->name, rule, detail);
    world_say(world, "!!!", world->violation);
}

/* An empty slot, or that of this text. */
static struct known_id *id_of(struct world *world, const char *request)
{
    uint64_t hash = 14695981039346656037U;
    for (const char *at = request; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211U;
    size_t at = hash % IDS_MAX;
    while (world->ids[at].number != 0 && world->ids[at].hash != hash)
        at = (at + 1) % IDS_MAX;
    world->ids[at].hash = hash;
    return &world->ids[at];
}

void oracle_name(struct world *world, const char *request, uint32_t number)
{
    id_of(world, request)->number = number;
}

uint32_t oracle_number(struct world *world, const char *request)
{
    return id_of(world, request)->number;
}

/* True if the duration may have passed by any process's clock. */
static bool may_have_passed(const struct world *world, const struct stamp *since, int64_t length_ms)
{
    int64_t passed_ms = world->now_ms - since->time_ms;
    if (world->rules.facts.judge != JUDGE_OBSERVED)
        return passed_ms >= length_ms;
    return passed_ms * world->rules.fastest / 1000 + 2 >= length_ms;
}

/* The end of the grant as the store judges it; its session may have heartbeats. */
static int64_t grant_end_ms(const struct world *world, const struct grant *grant)
{
    return world->judge.sessions != NULL ? session_judge_end(&world->judge, grant)
                                         : grant->renewed.time_ms + grant->ttl_ms;
}

static bool grant_may_have_ended(const struct world *world, const struct grant *grant)
{
    return world->judge.sessions != NULL ? grant_end_ms(world, grant) <= world->now_ms
                                         : may_have_passed(world, &grant->renewed, grant->ttl_ms);
}

/* An offer has the whole grace, except the first one where the store has a takeover time. */
static bool offer_may_have_lapsed(const struct world *world, const struct waiter *waiter)
{
    const struct store_facts *facts = &world->rules.facts;
    int64_t passed_ms = world->now_ms - waiter->offer.time_ms;
    bool first = facts->takeover_ms > 0 && waiter->passed == 0;
    int64_t lasts_ms = first ? facts->takeover_ms : facts->offer_grace_ms;
    return waiter->offered && passed_ms * world->rules.fastest / 1000 + 2 >= lasts_ms;
}

static bool is_dead(const struct world *world, uint64_t session)
{
    return world->rules.knows_sessions && world->dead_session[session];
}

/* True if that process had ended by then, in a store that knows. */
static bool died_by(const struct world *world, uint64_t session, int64_t at_ms)
{
    for (size_t i = 0; world->rules.knows_sessions && i < world->dead_count; i++)
        if (world->dead[i] == session)
            return world->died_ms[i] <= at_ms;
    return false;
}

static bool is_own(struct world *world, const struct change *change, const char *request)
{
    return change->number == oracle_number(world, request);
}

static bool has_token_of(const struct world *world, const struct change *change,
                         const struct grant *grant)
{
    const struct acquisition *writer = &world->acquisitions[change->number];
    return writer->operation_token != 0 && writer->operation_token == grant_token(grant);
}

/* True if this write may remove the grant. *out_crash: because it expired or its holder died. */
static bool removal_is_justified(struct world *world, const struct change *change,
                                 const struct grant *grant, bool *out_crash)
{
    bool own = is_own(world, change, grant->request) || has_token_of(world, change, grant);
    *out_crash = false;
    if (own && (change->verb == VERB_RELEASE || change->verb == VERB_LEAVE))
        return true;
    *out_crash =
        grant_may_have_ended(world, grant) || (grant->bound && is_dead(world, grant->session));
    return *out_crash || (change->verb == VERB_BREAK && change->now);
}

static void check_kept_grant(struct world *world, const struct change *change,
                             const struct grant *was, const struct grant *is)
{
    bool own = is_own(world, change, was->request) || has_token_of(world, change, was);
    if (grant_token(was) != grant_token(is))
        oracle_fail(world, change->writer, "rule 2", "a standing grant's token moved");
    bool renewed = stamp_order(&was->renewed) != stamp_order(&is->renewed);
    if (renewed && was->broken)
        oracle_fail(world, change->writer, "break", "a broken grant was renewed");
    if (renewed && !own)
        oracle_fail(world, change->writer, "rule 2", "somebody else renewed a grant");
    if (was->broken && !is->broken)
        oracle_fail(world, change->writer, "break", "a broken grant was mended");
}

static void check_old_grants(struct world *world, const struct change *change, bool *out_crash)
{
    for (size_t i = 0; i < world->before.grant_count; i++) {
        const struct grant *was = &world->before.grants[i];
        const struct grant *is = record_grant_by_request(&world->after, was->request);
        bool crash = false;
        if (is != NULL && grant_token(is) == grant_token(was)) {
            check_kept_grant(world, change, was, is);
            continue;
        }
        if (!removal_is_justified(world, change, was, &crash))
            oracle_fail(world, change->writer, "rule 1", "a grant that still stood was removed");
        world->counts->expiries += crash ? 1 : 0;
        *out_crash = *out_crash || crash;
        if (change->verb == VERB_BREAK || has_token_of(world, change, was))
            world->acquisitions[oracle_number(world, was->request)].taken_away = true;
    }
}

static int64_t rank_of(const struct waiter *waiter)
{
    return (int64_t)waiter->priority + waiter->passed;
}

/* First come, first served within a priority: no waiter that is still queued was ahead. */
static void check_order(struct world *world, const struct change *change, const struct grant *grant)
{
    const struct acquisition *acquisition =
        &world->acquisitions[oracle_number(world, grant->request)];
    const struct waiter *own = record_waiter_by_session(&world->before, grant->session);
    uint64_t returned = own == NULL ? acquisition->ticket : 0;
    uint64_t ticket = own != NULL ? own->ticket : returned != 0 ? returned : UINT64_MAX;
    int64_t rank = acquisition->priority + (own != NULL ? (int64_t)own->passed : returned != 0);
    if (own != NULL && own->offered)
        return;
    rank += (int64_t)(grant->n / GRANT_STEP); /* grants before it in this write passed it over */
    for (size_t i = 0; i < world->before.waiter_count; i++) {
        const struct waiter *other = &world->before.waiters[i];
        if (other == own || record_waiter_by_request(&world->after, other->request) == NULL)
            continue;
        bool earlier = other->ticket < ticket;
        bool ahead = other->offered || rank_of(other) > rank || (rank_of(other) == rank && earlier);
        const struct waiter *is = record_waiter_by_request(&world->after, other->request);
        bool alike = is->mode != MODE_EXCLUSIVE && is->offered;
        if (ahead && !alike)
            oracle_fail(world, change->writer, "rule 4", "a grant overtook a better place");
    }
}

static void check_new_grant(struct world *world, const struct change *change,
                            const struct grant *grant, struct key_truth *key, bool crash)
{
    struct acquisition *acquisition = &world->acquisitions[oracle_number(world, grant->request)];
    uint64_t token = grant_token(grant);
    if (token <= key->top_token)
        oracle_fail(world, change->writer, "rule 2", "a token that does not grow");
    if (token > key->top_token)
        key->top_token = token;
    if (&world->keys[acquisition->key] != key)
        oracle_fail(world, change->writer, "names", "granted under another key's record");
    if (grant->bound != acquisition->bound || grant->lock_delay_ms != acquisition->lock_delay_ms ||
        grant->ttl_ms != acquisition->ttl_ms)
        oracle_fail(world, change->writer, "rule 11", "granted on other terms than asked for");
    size_t slot = acquisition->grant_count++ % TOKENS_MAX;
    acquisition->tokens[slot] = token;
    acquisition->orders[slot] = key->grant_order += ORDER_STEP;
    const struct span *cooling = &world->before.cooling, *delay = &world->before.delay;
    if (cooling->length_ms > 0 && !may_have_passed(world, &cooling->since, cooling->length_ms))
        oracle_fail(world, change->writer, "rule 5", "granted in a cooldown");
    bool delayed = delay->length_ms > 0 && !may_have_passed(world, &delay->since, delay->length_ms);
    if (delayed && !(change->verb == VERB_BREAK && change->now))
        oracle_fail(world, change->writer, "lock-delay", "granted in a lock-delay");
    if (!world->rules.facts.one_clock || change->verb == VERB_ACQUIRE)
        check_order(world, change, grant);
    acquisition->passed_over = false;
    world->counts->takeovers += crash ? 1 : 0;
}

static bool has_ticket(const struct record *record, uint64_t ticket)
{
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].ticket == ticket)
            return true;
    return false;
}

/* A live waiter whose first offer was taken over keeps its ticket, if it knew that it waits. */
static void check_return(struct world *world, const struct change *change,
                         const struct waiter *waiter)
{
    struct acquisition *own = &world->acquisitions[oracle_number(world, waiter->request)];
    bool returned = own->passed_over && waiter->ticket == own->ticket && waiter->passed > 0;
    bool knew = own->passed_over && own->told_waiting && own->ticket != 0;
    own->passed_over = false;
    world->counts->returned += returned ? 1 : 0;
    if (knew && !returned && !has_ticket(&world->before, own->ticket))
        oracle_fail(world, change->writer, "rule 4",
                    "a waiter that was passed over lost its place");
    if (waiter->passed == 0 && own->ticket != 0) /* a new queue may give out the same number */
        own->told_waiting = false;
}

/* A later ticket of the same request may be unknown to it: it is notified only once. */
static void note_ticket(struct world *world, const struct waiter *waiter)
{
    struct acquisition *own = &world->acquisitions[oracle_number(world, waiter->request)];
    if (world->rules.facts.takeover_ms == 0 || waiter->passed > 0 || waiter->ticket == own->ticket)
        return;
    own->told_waiting = own->told_waiting && own->ticket == 0;
    own->ticket = waiter->ticket;
}

static bool is_awake(const struct world *world, const struct waiter *waiter)
{
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *actor = &world->actors[i];
        if (actor->session == waiter->session && actor->alive && !actor->paused)
            return true;
    }
    return false;
}

/* Only a waiter that returns, because it was passed over, may exceed the store's limit. */
static void check_length(struct world *world, const struct change *change)
{
    const struct record *before = &world->before, *after = &world->after;
    if (after->waiter_count <= before->waiter_count ||
        after->waiter_count <= world->rules.facts.waiters_max)
        return;
    for (size_t i = 0; i < after->waiter_count; i++) {
        const struct waiter *waiter = &after->waiters[i];
        if (record_waiter_by_session(&world->before, waiter->session) == NULL &&
            waiter->passed == 0)
            oracle_fail(world, change->writer, "rule 4",
                        "the queue is longer than the store admits");
    }
}

static void check_places(struct world *world, const struct change *change)
{
    check_length(world, change);
    const struct span *cooling = &world->after.cooling;
    bool sent_home = cooling->length_ms > 0 && stamp_order(&cooling->since) == change->revision;
    for (size_t i = 0; i < world->before.waiter_count; i++) {
        const struct waiter *was = &world->before.waiters[i];
        const struct waiter *is = record_waiter_by_session(&world->after, was->session);
        if (is != NULL) {
            if (is->passed < was->passed || is->ticket != was->ticket)
                oracle_fail(world, change->writer, "rule 4", "a place lost what it had");
            if (is->offered && !was->offered)
                world->counts->offers++;
            continue;
        }
        bool granted = record_grant_by_request(&world->after, was->request) != NULL;
        bool lapsed = offer_may_have_lapsed(world, was);
        bool own = is_own(world, change, was->request) ||
                   was->session == world->actors[change->writer->index].session;
        world->counts->passed_on += lapsed && !own ? 1 : 0;
        struct acquisition *acquisition = &world->acquisitions[oracle_number(world, was->request)];
        acquisition->passed_over = !granted && lapsed && !own && was->passed == 0;
        world->counts->passed_live += lapsed && !own && !granted && is_awake(world, was) ? 1 : 0;
        if (!granted && !lapsed && !own && !sent_home && !is_dead(world, was->session))
            oracle_fail(world, change->writer, "rule 4", "a waiter was put out of the queue");
    }
    for (size_t i = 0; i < world->after.waiter_count; i++) {
        const struct waiter *is = &world->after.waiters[i];
        if (record_waiter_by_session(&world->before, is->session) == NULL)
            check_return(world, change, is);
        note_ticket(world, is);
    }
}

/*
 * True if this write removed the grant after a crash, with a lock-delay that cannot be over yet.
 * Where no client knows the time, the delay begins with the write that notices the crash.
 */
static bool lock_delay_is_due(struct world *world, const struct change *change,
                              const struct grant *was)
{
    bool crash = false;
    bool gone = record_grant_by_request(&world->after, was->request) == NULL;
    int64_t ends_ms = was->renewed.time_ms + was->ttl_ms + was->lock_delay_ms;
    bool justified = removal_is_justified(world, change, was, &crash);
    bool timed = world->rules.facts.judge == JUDGE_STORE_TIME && ends_ms > world->now_ms;
    return gone && justified && crash && was->lock_delay_ms > 0 && change->verb != VERB_BREAK &&
           (timed || world_by_session(world));
}

static void check_spans(struct world *world, const struct change *change, bool crash)
{
    const struct span *was = &world->before.cooling, *is = &world->after.cooling;
    bool running = was->length_ms > 0 && !may_have_passed(world, &was->since, was->length_ms);
    bool same =
        is->length_ms == was->length_ms && stamp_order(&is->since) == stamp_order(&was->since);
    bool fresh = is->length_ms > 0 && stamp_order(&is->since) == change->revision;
    if (running && !same && !fresh && change->verb != VERB_CLEAR)
        oracle_fail(world, change->writer, "rule 5", "a cooldown was cut short");
    world->counts->cooldowns += fresh ? 1 : 0;
    if (fresh && change->verb != VERB_RELEASE && change->verb != VERB_MARK)
        oracle_fail(world, change->writer, "rule 5", "a cooldown without a release");
    bool delay_due = false;
    for (size_t i = 0; i < world->before.grant_count; i++)
        delay_due = delay_due || lock_delay_is_due(world, change, &world->before.grants[i]);
    const struct span *delay = &world->after.delay;
    if (delay_due && delay->length_ms == 0)
        oracle_fail(world, change->writer, "lock-delay", "a crash without its lock-delay");
    if (delay_due && world_by_session(world) && stamp_order(&delay->since) != change->revision)
        oracle_fail(world, change->writer, "lock-delay", "began before the crash was noticed");
    bool delay_began = world->after.delay.length_ms > 0 && world->before.delay.length_ms == 0;
    if (delay_began && !crash)
        oracle_fail(world, change->writer, "lock-delay", "a lock-delay without a crash");
}

/* A write that leaves the key free names the next waiter, if there is one (rule 4). */
static void check_named(struct world *world, const struct change *change)
{
    const struct record *after = &world->after;
    bool blocked = after->cooling.length_ms > 0 || after->delay.length_ms > 0;
    if (after->grant_count == 0 && after->waiter_count > 0 && record_offers(after) == 0 && !blocked)
        oracle_fail(world, change->writer, "rule 4", "a free key, waiters, and nobody named");
}

static struct key_truth *truth_of(struct world *world)
{
    const char *name = record_needed(&world->after) ? world->after.key : world->before.key;
    for (size_t i = 0; i < world->key_count; i++)
        if (strcmp(world->keys[i].key, name) == 0)
            return &world->keys[i];
    return &world->keys[0];
}

static void show(struct world *world, const char *when, const struct record *record)
{
    size_t length = record_encode(record, world->encoded, sizeof world->encoded - 1);
    world->encoded[length] = '\0';
    world_say(world, when, world->encoded);
}

void oracle_changed(struct world *world, const struct change *change)
{
    bool crash = false;
    const char *broken = record_broken(&world->after);
    if (broken != NULL)
        oracle_fail(world, change->writer, "invariant", broken);
    check_old_grants(world, change, &crash);
    for (size_t i = 0; i < world->after.grant_count; i++) {
        const struct grant *grant = &world->after.grants[i];
        const struct grant *was = record_grant_by_request(&world->before, grant->request);
        if (was == NULL || grant_token(was) != grant_token(grant))
            check_new_grant(world, change, grant, truth_of(world), crash);
    }
    check_places(world, change);
    check_spans(world, change, crash);
    check_named(world, change);
    oracle_request_ids(world, change);
    oracle_once_changed(world, change, truth_of(world));
    if (world->trace != NULL && world->violation[0] != '\0') {
        show(world, "before", &world->before);
        show(world, "after", &world->after);
    }
    world->counts->renewals += change->verb == VERB_RENEW ? 1 : 0;
    world->counts->breaks += change->verb == VERB_BREAK ? 1 : 0;
}

static void keep_truth(void *caller, const struct store_reply *reply)
{
    struct world *world = caller;
    struct event ignored = {0};
    const char *why = NULL;
    translate_reply(reply, "", &world->before, &ignored, &why);
    if (world_by_session(world))
        session_judge_restore(&world->judge, &world->before);
}

/* The store's current record of the actor's key, in world->before. */
static void read_truth(struct world *world, const struct actor *actor)
{
    const char *name = world->rules.names_collide ? "one-name" : world->keys[actor->key].key;
    struct store_request look = {.verb = VERB_STORE_READ, .key = name};
    memory_driver.submit(world->store, &look, keep_truth, world);
}

static void check_lost(struct world *world, const struct actor *actor)
{
    if (actor_clock(world, actor) >= actor->lease.deadline_ms)
        return;
    read_truth(world, actor);
    const struct grant *grant = record_grant_by_token(&world->before, actor->lease.token);
    if (grant != NULL && !grant->broken && !grant_may_have_ended(world, grant))
        oracle_fail(world, actor, "rule 4", "told lost without a cause");
}

/*
 * The store knew of this end before the request began. An exclusive grant is alone, so no other can
 * have been in the way; a waiter may not have polled yet.
 */
static void check_blocker(struct world *world, const struct actor *actor, enum outcome outcome)
{
    const struct record *before = &world->before;
    const struct grant *grant = &before->grants[0];
    const struct span *cooling = &before->cooling;
    int64_t named_ms = actor->began_ms - world->judge.late_ms; /* ended by then */
    bool sole = before->grant_count == 1 && grant->mode == MODE_EXCLUSIVE &&
                grant->granted.time_ms < actor->began_ms && !actor->options.request.waits;
    if (outcome == OUTCOME_BUSY && sole && grant->bound && died_by(world, grant->session, named_ms))
        oracle_fail(world, actor, "rule 11", "told busy because of a dead holder");
    if (outcome == OUTCOME_COOLING && cooling->length_ms > 0 && before->kind == KIND_LOCK &&
        cooling->since.time_ms + cooling->length_ms <= named_ms)
        oracle_fail(world, actor, "rule 5", "told cooling after the cooldown");
}

/* Busy and cooling are facts about the store, and leave no grant of the client behind. */
static void check_refused(struct world *world, const struct actor *actor, enum outcome outcome)
{
    if (!actor->answered)
        oracle_fail(world, actor, "rule 10", "told of others while the store never answered");
    read_truth(world, actor);
    if (world->rules.facts.judge != JUDGE_OBSERVED && world->rules.facts.margin_ms == 0)
        check_blocker(world, actor, outcome);
    if (world->acquisitions[actor->number].writes_in_flight > 0)
        return;
    const struct grant *grant = record_grant_by_request(&world->before, actor->request);
    if (grant == NULL || grant->session != actor->session) /* another repeated the request */
        return;
    /* A duplicate create that arrives after the reply is a ghost; as documented, it costs a TTL. */
    int64_t granted_ms = grant->granted.time_ms + world->rules.tick_ms - 1; /* at the latest */
    bool ghost = granted_ms >= actor->heard.now_ms;
    world->counts->ghosts += ghost ? 1 : 0;
    if (!ghost)
        oracle_fail(world, actor, "rule 4", "told busy while it was granted");
}

/* A renewal that wrote nothing needs the grant in the record that it read. */
static void check_read_renewal(struct world *world, const struct actor *actor)
{
    const struct lease_output *out = &world->output;
    if (world->judge.sessions == NULL || !out->decided || out->verdict.kind != VERDICT_DONE ||
        out->verdict.write)
        return;
    const struct grant *grant = record_grant_by_token(&world->record, actor->lease.token);
    world->counts->read_renewals++;
    if (grant == NULL || grant->broken || grant->over || grant->session != actor->session)
        oracle_fail(world, actor, "rule 3", "renewed by a record without its grant");
}

/* Rule 3: the work is killed before the lease ends in the store's time, if clocks are sane. */
void oracle_deadline(struct world *world, const struct actor *actor)
{
    check_read_renewal(world, actor);
    if (world->rules.overlaps_allowed || world->rules.facts.judge == JUDGE_OBSERVED)
        return;
    read_truth(world, actor);
    const struct grant *grant = record_grant_by_token(&world->before, actor->lease.token);
    int64_t killed_at_ms = actor_moment(world, actor, actor->lease.kill_at_ms);
    if (grant != NULL && killed_at_ms > grant_end_ms(world, grant) + world->rules.facts.margin_ms)
        oracle_fail(world, actor, "rule 3", "its kill time is after the end of its lease");
}

/* The position of that token's grant among all of its key; 0: not of this acquisition. */
uint32_t oracle_order(const struct acquisition *own, uint64_t token)
{
    for (size_t i = 0; i < TOKENS_MAX; i++)
        if (own->tokens[i] == token)
            return own->orders[i];
    return 0;
}

static void check_held(struct world *world, const struct actor *actor)
{
    const struct acquisition *own = &world->acquisitions[actor->number];
    if (oracle_order(own, actor->lease.token) == 0)
        oracle_fail(world, actor, "rule 2", "told a token that was not granted to it");
    oracle_alone(world, actor);
}

void oracle_told(struct world *world, struct actor *actor, const struct lease_output *out)
{
    switch (out->notify) {
    case NOTIFY_HELD:
        world->counts->grants++;
        check_held(world, actor);
        return;
    case NOTIFY_LOST:
        world->counts->told_lost++;
        check_lost(world, actor);
        return;
    case NOTIFY_WAITING:
        world->counts->waits++;
        world->acquisitions[actor->number].told_waiting = !actor->has_callers;
        return;
    case NOTIFY_ENDED:
        world->counts->unavailable += out->outcome == OUTCOME_UNAVAILABLE ? 1 : 0;
        if (out->outcome == OUTCOME_BUSY || out->outcome == OUTCOME_COOLING)
            check_refused(world, actor, out->outcome);
        if (out->outcome == OUTCOME_OK)
            oracle_once_told(world, actor);
        return;
    case NOTIFY_RENEWED:
    case NOTIFY_NONE:
        return;
    }
}

static bool is_inside(const struct world *world, const struct actor *actor)
{
    return actor->alive && actor->inside && !actor->paused &&
           !world->acquisitions[actor->grant].taken_away;
}

void oracle_alone(struct world *world, const struct actor *actor)
{
    enum mode mode = actor->options.request.mode;
    size_t others = 0;
    if (world->acquisitions[actor->grant].taken_away)
        return;
    for (size_t i = 0; i < world->actor_count; i++) {
        const struct actor *other = &world->actors[i];
        bool both_read = mode == MODE_SHARED && other->options.request.mode == MODE_SHARED;
        if (other != actor && other->key == actor->key && is_inside(world, other) && !both_read)
            others++;
    }
    size_t room = mode == MODE_SLOT ? actor->options.request.limit : 1;
    if (others < room)
        return;
    world->counts->overlaps++;
    if (!world->rules.overlaps_allowed)
        oracle_fail(world, actor, "rule 3", "two inside at once");
}

void oracle_guarded_write(struct world *world, struct key_truth *key, uint64_t token,
                          uint32_t order)
{
    if (order < key->grant_order)
        world->counts->stale_attempts++;
    if (token < key->guard_token)
        return; /* refused: the purpose of fencing */
    key->guard_token = token;
    if (order < key->guard_order) {
        world->counts->stale_accepted++;
        oracle_fail(world, &world->actors[0], "fencing", "a stale write was accepted");
    }
    key->guard_order = order;
}

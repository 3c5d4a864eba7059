/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of every write to the store, of every notification of a client, and of every state.
 * The truth is the store's slot and the time of each of its writes; all clocks have the same rate
 * here. The checks compare and never repair; the numbers are the rules of docs/guarantees.md.
 */
#include "explore.h"

#include <string.h>

const char *violation;
uint64_t seen[SEEN_COUNT];

void check_that(bool holds, const char *what)
{
    if (!holds && violation == NULL)
        violation = what;
}

struct brief world_truth(const struct world *world)
{
    return brief_of(world->page, world->written.revision, world->written.time_ms);
}

uint64_t brief_token(const struct brief_grant *grant)
{
    struct stamp granted = {.revision = grant->granted.revision,
                            .time_ms = grant->granted.at_ms + BEGIN_MS};
    return token_of(&granted, grant->n);
}

static int64_t elapsed_ms(const struct world *world, const struct mark *since)
{
    int64_t at_ms = since->at_ms != UNTIMED ? since->at_ms : world->written_at_ms[since->revision];
    return world->now_ms - BEGIN_MS - at_ms;
}

bool brief_expired(const struct world *world, const struct brief_grant *grant)
{
    return elapsed_ms(world, &grant->renewed) >= grant->ttl_ms;
}

static bool session_over(const struct world *world, uint8_t session)
{
    return playing->tells_dead && (world->dead >> session & 1) != 0;
}

bool brief_ended(const struct world *world, const struct brief_grant *grant)
{
    return brief_expired(world, grant) || (grant->bound && session_over(world, grant->session));
}

bool brief_blocks(const struct world *world, const struct brief_span *span)
{
    return span->length_ms > 0 && elapsed_ms(world, &span->since) < span->length_ms;
}

static const struct brief_grant *grant_by_token(const struct brief *brief, uint64_t token)
{
    for (size_t i = 0; i < brief->grant_count; i++)
        if (brief_token(&brief->grants[i]) == token)
            return &brief->grants[i];
    return NULL;
}

bool session_refuses(const struct world *world, uint64_t token)
{
    struct brief truth = world_truth(world);
    const struct brief_grant *grant = grant_by_token(&truth, token);
    return playing->facts.judge == JUDGE_SESSION && grant != NULL && brief_expired(world, grant);
}

static const struct brief_grant *grant_by_request(const struct brief *brief, uint8_t request)
{
    for (size_t i = 0; i < brief->grant_count; i++)
        if (brief->grants[i].request == request)
            return &brief->grants[i];
    return NULL;
}

static const struct brief_place *place_by_request(const struct brief *brief, uint8_t request)
{
    for (size_t i = 0; i < brief->waiter_count; i++)
        if (brief->waiters[i].request == request)
            return &brief->waiters[i];
    return NULL;
}

static const struct brief_place *place_by_session(const struct brief *brief, uint8_t session)
{
    for (size_t i = 0; i < brief->waiter_count; i++)
        if (brief->waiters[i].session == session)
            return &brief->waiters[i];
    return NULL;
}

static const struct brief_place *place_by_ticket(const struct brief *brief, uint64_t ticket)
{
    for (size_t i = 0; i < brief->waiter_count; i++)
        if (brief->waiters[i].ticket == ticket)
            return &brief->waiters[i];
    return NULL;
}

static uint8_t sender(const struct message *message)
{
    return request_id(message->actor, message->life);
}

static bool same_mark(const struct mark *a, const struct mark *b)
{
    return a->revision == b->revision && a->at_ms == b->at_ms;
}

/* A grant that existed before the write */

static void check_grant_kept(const struct brief_grant *before, const struct brief_grant *after,
                             const struct message *message)
{
    bool by_token = message->verb == VERB_RENEW && message->token == brief_token(before);
    bool by_request = message->verb == VERB_ACQUIRE && sender(message) == before->request;
    bool by_owner = by_token || by_request;
    bool same = before->request == after->request && before->mode == after->mode &&
                before->lock_delay_ms == after->lock_delay_ms &&
                same_mark(&before->granted, &after->granted);
    check_that(same, "a standing grant changed its identity (rule 2)");
    bool renewed = !same_mark(&before->renewed, &after->renewed) ||
                   before->ttl_ms != after->ttl_ms || before->session != after->session ||
                   before->bound != after->bound;
    check_that(!renewed || by_owner, "a grant was renewed by somebody else (rule 2)");
    check_that(!renewed || !before->broken, "a broken grant was renewed");
    check_that(!before->broken || after->broken, "a broken grant was mended");
    check_that(before->broken || !after->broken || message->verb == VERB_BREAK,
               "a grant was broken by no operator");
    seen[SEEN_RENEWALS] += renewed ? 1 : 0;
    seen[SEEN_BROKEN] += after->broken && !before->broken ? 1 : 0;
}

static void check_grant_gone(struct world *world, const struct brief_grant *grant,
                             const struct message *message)
{
    uint64_t token = brief_token(grant);
    bool ended = brief_ended(world, grant);
    bool released = message->verb == VERB_RELEASE && message->token == token;
    bool left = message->verb == VERB_LEAVE && sender(message) == grant->request;
    bool cut = message->verb == VERB_BREAK && message->breaks_now;
    check_that(ended || released || left || cut,
               "a grant disappeared that had not ended, by no act of its own (rules 1, 2)");
    seen[SEEN_RELEASES] += released ? 1 : 0;
    seen[SEEN_TAKEOVERS] += ended && !released && !left ? 1 : 0;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        if (cut && world->actors[i].granted == token)
            world->actors[i].excused = true;
}

/* A grant that this write made */

static void check_grant_new(struct world *world, const struct brief *before,
                            const struct brief_grant *grant, const struct message *message)
{
    uint64_t token = brief_token(grant);
    const struct brief_place *waiter = place_by_request(before, grant->request);
    check_that(token > world->last_token, "a token did not grow (rule 2)");
    check_that(sender(message) == grant->request || playing->facts.one_clock,
               "a grant that the granted one did not write (rule 4)");
    check_that(!brief_blocks(world, &before->cooling) || message->verb == VERB_CLEAR,
               "granted in a cooldown (rule 5)");
    if (world->first_token == 0)
        world->first_token = token;
    seen[SEEN_GRANTS]++;
    seen[SEEN_ACCEPTED] += waiter != NULL && waiter->offered ? 1 : 0;
    seen[SEEN_HANDED] += sender(message) != grant->request ? 1 : 0;
    uint8_t who = grant->request / 16, life = grant->request % 16;
    if (world->actors[who].life == life)
        world->actors[who].granted = token;
}

static void check_grants(struct world *world, const struct brief *before, const struct brief *after,
                         const struct message *message)
{
    uint64_t last = world->last_token;
    for (size_t i = 0; i < before->grant_count; i++) {
        const struct brief_grant *grant = &before->grants[i];
        const struct brief_grant *kept = grant_by_token(after, brief_token(grant));
        if (kept != NULL)
            check_grant_kept(grant, kept, message);
        else
            check_grant_gone(world, grant, message);
    }
    for (size_t i = 0; i < after->grant_count; i++) {
        const struct brief_grant *grant = &after->grants[i];
        uint64_t token = brief_token(grant);
        if (grant_by_token(before, token) == NULL)
            check_grant_new(world, before, grant, message);
        last = token > last ? token : last;
        check_that(place_by_request(after, grant->request) == NULL,
                   "a request waits for its own grant (rule 9)");
        check_that(grant_by_request(after, grant->request) == grant,
                   "a request was granted twice (rule 9)");
    }
    world->last_token = last;
}

/* Waiters */

static bool was_passed_over(const struct brief_place *waiter)
{
    return waiter->rank > playing->parts[waiter->request / 16].priority;
}

static void check_place_gone(const struct world *world, const struct brief_place *waiter,
                             const struct brief *after, const struct message *message)
{
    bool entered = grant_by_request(after, waiter->request) != NULL;
    bool own = (message->verb == VERB_ACQUIRE || message->verb == VERB_LEAVE) &&
               message->session == waiter->session;
    bool first = playing->facts.takeover_ms > 0 && !was_passed_over(waiter);
    int64_t lasts_ms = first ? playing->facts.takeover_ms : playing->facts.offer_grace_ms;
    bool lapsed = waiter->offered && elapsed_ms(world, &waiter->offer) >= lasts_ms;
    bool sent_home = message->verb == VERB_RELEASE && message->cools;
    check_that(entered || own || lapsed || sent_home || session_over(world, waiter->session),
               "a place disappeared by no act of its own (rule 4)");
    seen[SEEN_LAPSED] += !entered && !own && lapsed ? 1 : 0;
}

/* Only a lock-delay that begins withdraws an offer. */
static void check_place_kept(const struct brief_place *before, const struct brief_place *after,
                             bool blocked)
{
    check_that(before->session == after->session && before->mode == after->mode,
               "a place changed hands (rule 4)");
    check_that(before->rank <= after->rank, "a place forgot that it was passed over (rule 4)");
    if (before->offered && !blocked)
        check_that(after->offered && same_mark(&before->offer, &after->offer),
                   "an offer was withdrawn or moved (rule 4)");
    seen[SEEN_OFFERS] += after->offered && !before->offered ? 1 : 0;
}

/* No waiter that is still queued, and was before, was ahead of the chosen one. */
static void check_order(const struct brief *before, const struct brief *after, int rank,
                        uint64_t ticket)
{
    for (size_t i = 0; i < before->waiter_count; i++) {
        const struct brief_place *waiter = &before->waiters[i];
        const struct brief_place *kept = place_by_ticket(after, waiter->ticket);
        if (waiter->offered || kept == NULL || kept->offered || waiter->ticket == ticket)
            continue;
        bool ahead = waiter->rank > rank || (waiter->rank == rank && waiter->ticket < ticket);
        check_that(!ahead, "somebody was overtaken (rule 4)");
    }
}

static void check_turns(const struct brief *before, const struct brief *after)
{
    for (size_t i = 0; i < before->waiter_count; i++) {
        const struct brief_place *waiter = &before->waiters[i];
        const struct brief_place *kept = place_by_ticket(after, waiter->ticket);
        bool chosen =
            kept != NULL ? kept->offered : grant_by_request(after, waiter->request) != NULL;
        if (!waiter->offered && chosen)
            check_order(before, after, waiter->rank, waiter->ticket);
    }
    for (size_t i = 0; i < after->grant_count; i++) {
        const struct brief_grant *grant = &after->grants[i];
        bool newcomer = grant_by_request(before, grant->request) == NULL &&
                        place_by_session(before, grant->session) == NULL;
        if (newcomer)
            check_order(before, after, playing->parts[grant->request / 16].priority,
                        before->next_ticket);
    }
}

static void check_places(const struct world *world, const struct brief *before,
                         const struct brief *after, const struct message *message)
{
    for (size_t i = 0; i < before->waiter_count; i++) {
        const struct brief_place *place = &before->waiters[i];
        const struct brief_place *now = place_by_ticket(after, place->ticket);
        if (now != NULL)
            check_place_kept(place, now, brief_blocks(world, &after->delay));
        else
            check_place_gone(world, place, after, message);
    }
    for (size_t i = 0; i < after->waiter_count; i++) {
        const struct brief_place *waiter = &after->waiters[i];
        if (place_by_ticket(before, waiter->ticket) != NULL)
            continue;
        check_that(!brief_blocks(world, &after->cooling), "somebody waits in a cooldown (rule 5)");
        check_that(message->verb == VERB_ACQUIRE && sender(message) == waiter->request,
                   "a place that nobody asked for (rule 4)");
        bool returns = playing->facts.takeover_ms > 0 && was_passed_over(waiter);
        check_that(waiter->ticket >= before->next_ticket || returns,
                   "a ticket was given out twice (rule 4)");
        check_that(after->waiter_count <= playing->facts.waiters_max || returns,
                   "the queue is longer than the store admits (rule 4)");
    }
    check_turns(before, after);
}

/* Spans */

static bool somebody_crashed(const struct world *world, const struct brief *before,
                             const struct brief *after)
{
    for (size_t i = 0; i < before->grant_count; i++) {
        const struct brief_grant *grant = &before->grants[i];
        if (grant_by_token(after, brief_token(grant)) == NULL && brief_ended(world, grant))
            return true;
    }
    return false;
}

static int64_t rest_ms(const struct world *world, const struct brief_span *span)
{
    return brief_blocks(world, span) ? span->length_ms - elapsed_ms(world, &span->since) : 0;
}

static void check_spans(const struct world *world, const struct brief *before,
                        const struct brief *after, const struct message *message)
{
    bool cooling_moved = before->cooling.length_ms != after->cooling.length_ms ||
                         !same_mark(&before->cooling.since, &after->cooling.since);
    bool delay_moved = before->delay.length_ms != after->delay.length_ms ||
                       !same_mark(&before->delay.since, &after->delay.since);
    if (cooling_moved && after->cooling.length_ms > 0)
        check_that(message->verb == VERB_RELEASE && message->cools,
                   "a cooldown began or moved without a clean release (rule 5)");
    if (cooling_moved && message->verb != VERB_CLEAR)
        check_that(rest_ms(world, &before->cooling) <= rest_ms(world, &after->cooling),
                   "a cooldown was shortened (rule 5)");
    if (delay_moved && after->delay.length_ms > 0)
        check_that(somebody_crashed(world, before, after), "a lock-delay began without a crash");
    if (delay_moved && !message->breaks_now)
        check_that(rest_ms(world, &before->delay) <= rest_ms(world, &after->delay),
                   "a lock-delay was shortened");
    if (!brief_blocks(world, &after->delay))
        return;
    for (size_t i = 0; i < after->grant_count; i++)
        check_that(grant_by_token(before, brief_token(&after->grants[i])) != NULL,
                   "granted in a lock-delay");
}

/* Every time is that of its write: it does not move, and no mark is left. */
static void check_times(const struct world *world, const struct brief *after)
{
    struct mark marks[3 * BRIEF_MAX + 1] = {after->cooling.since};
    size_t count = 1;
    for (size_t i = 0; i < after->grant_count; i++) {
        marks[count++] = after->grants[i].granted;
        marks[count++] = after->grants[i].renewed;
    }
    for (size_t i = 0; i < after->waiter_count; i++)
        marks[count++] = after->waiters[i].offer;
    for (size_t i = 0; i < count; i++)
        if (marks[i].revision != 0 && marks[i].at_ms != UNTIMED)
            check_that(marks[i].at_ms == world->written_at_ms[marks[i].revision],
                       "a time moved away from its write");
}

void check_write(struct world *world, const struct brief *before, const struct brief *after,
                 const struct message *message)
{
    const struct part *part = &playing->parts[message->actor == OPERATOR ? 0 : message->actor];
    check_that(world->page == NULL || strcmp(after->key, part->key) == 0,
               "a record was written that belongs to another key");
    check_grants(world, before, after, message);
    check_places(world, before, after, message);
    check_spans(world, before, after, message);
    check_times(world, after);
}

/* Notifications */

static bool on_its_way(const struct world *world, uint8_t who)
{
    for (size_t i = 0; i < world->message_count; i++) {
        const struct message *message = &world->messages[i];
        if (message->kind != MESSAGE_NOTICE && message->actor == who &&
            message->life == world->actors[who].life)
            return true;
    }
    return false;
}

static bool breaks_happen(void)
{
    for (size_t i = 0; i < playing->operation_count; i++)
        if (playing->operations[i] <= OPERATION_BREAK_NOW)
            return true;
    return false;
}

/* Busy and cooling: the store has no grant or waiter of it, unless a request is in flight. */
static void check_refused(const struct world *world, uint8_t who,
                          const struct store_view *store_view)
{
    struct brief truth = world_truth(world);
    uint8_t request = request_id(who, world->actors[who].life);
    const struct brief_grant *grant = grant_by_request(&truth, request);
    if (store_view->outdated || on_its_way(world, who))
        return;
    check_that(grant == NULL || brief_ended(world, grant), "told no, and granted in the store");
    check_that(place_by_request(&truth, request) == NULL, "told no, and still in line");
}

static void check_busy(const struct world *world, uint8_t who, const struct store_view *store_view)
{
    const struct part *part = &playing->parts[who];
    bool limited = part->wait_ms != WAIT_WITHOUT_LIMIT;
    bool full = store_view->page != NULL &&
                store_view->page->brief.waiter_count >= playing->facts.waiters_max;
    check_that(!part->waits || limited || full || world->actors[who].cancelled || breaks_happen(),
               "told busy although it waits without limit");
    check_refused(world, who, store_view);
}

static void check_given_back(const struct world *world, const struct actor *before,
                             enum outcome outcome)
{
    struct brief truth = world_truth(world);
    const struct brief_grant *grant = grant_by_token(&truth, before->lease.token);
    if (outcome == OUTCOME_OK)
        check_that(grant == NULL || brief_ended(world, grant),
                   "told that the grant was given back, and it still stands");
    else if (before->lease.final != OUTCOME_LOST)
        check_that(grant == NULL || brief_ended(world, grant) || grant->broken,
                   "told lost without a cause");
}

static void check_operation(const struct actor *before, enum outcome outcome)
{
    bool by_token = before->operation >= OPERATION_RELEASE;
    seen[SEEN_REFUSED] += by_token && outcome == OUTCOME_STALE ? 1 : 0;
    check_that(!by_token || outcome != OUTCOME_OK || before->lease.unsure,
               "a stale token was accepted (rule 2)");
}

static void check_ended(const struct world *world, const struct actor *before, uint8_t who,
                        const struct lease_output *out, const struct store_view *store_view)
{
    static const enum seen counted[] = {
        [OUTCOME_BUSY] = SEEN_BUSY + 1,
        [OUTCOME_COOLING] = SEEN_COOLING + 1,
        [OUTCOME_UNAVAILABLE] = SEEN_UNAVAILABLE + 1,
        [OUTCOME_MISMATCH] = SEEN_MISMATCH + 1,
    };
    if (counted[out->outcome] > 0)
        seen[counted[out->outcome] - 1]++;
    if (who == OPERATOR) {
        check_operation(before, out->outcome);
        return;
    }
    switch (out->outcome) {
    case OUTCOME_OK:
    case OUTCOME_LOST:
        check_given_back(world, before, out->outcome);
        return;
    case OUTCOME_BUSY:
        check_busy(world, who, store_view);
        return;
    case OUTCOME_COOLING:
        check_that((store_view->over & OVER_COOLING) == 0,
                   "told cooling although the store says that it is over (rule 5)");
        check_refused(world, who, store_view);
        return;
    case OUTCOME_UNAVAILABLE:
        check_that(before->lease.trouble_since_ms != NEVER || before->lease.in_flight,
                   "told unavailable although the store answered");
        return;
    case OUTCOME_MISMATCH:
        check_that(strcmp(playing->parts[0].key, playing->parts[1].key) != 0,
                   "told mismatch without another key");
        return;
    case OUTCOME_STALE:
    case OUTCOME_DENIED:
    case OUTCOME_USAGE:
        check_that(false, "told what this store never says");
        return;
    }
}

void check_told(const struct world *world, const struct actor *before, const struct actor *after,
                const struct lease_output *out, const struct store_view *store_view)
{
    uint8_t who = (uint8_t)(after - world->actors);
    if (out->notify == NOTIFY_ENDED)
        check_ended(world, before, who, out, store_view);
    if (out->notify == NOTIFY_HELD)
        check_that(after->lease.token == after->granted || after->excused,
                   "told held by a token not given to it");
    if (out->notify != NOTIFY_LOST)
        return;
    struct brief truth = world_truth(world);
    const struct brief_grant *grant = grant_by_token(&truth, before->lease.token);
    check_that(world->now_ms >= after->lease.deadline_ms || grant == NULL || grant->broken ||
                   brief_ended(world, grant),
               "told lost without a cause");
    seen[SEEN_LOST]++;
}

/* Equal in everything that determines the next step. */
static bool same_lease(const struct lease *a, const struct lease *b)
{
    bool same_request = a->in_flight == b->in_flight && a->unsure == b->unsure &&
                        a->noticed == b->noticed && a->sent == b->sent &&
                        a->sent_verb == b->sent_verb && a->pending == b->pending &&
                        a->serial == b->serial && a->attempts == b->attempts &&
                        a->conflicts == b->conflicts && a->up_to == b->up_to;
    bool same_times = a->start_ms == b->start_ms && a->deadline_ms == b->deadline_ms &&
                      a->kill_at_ms == b->kill_at_ms && a->sent_at_ms == b->sent_at_ms &&
                      a->reply_by_ms == b->reply_by_ms && a->next_at_ms == b->next_at_ms &&
                      a->give_up_at_ms == b->give_up_at_ms &&
                      a->trouble_since_ms == b->trouble_since_ms;
    return same_request && same_times && a->state == b->state && a->token == b->token &&
           a->final == b->final && a->notified_waiting == b->notified_waiting;
}

static bool same_sighting(const struct observations *a, const struct brief_sighting *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct observation *one = &a->observed[i], *other = &b->observed[i];
        if (one->token != other->token || one->revision != other->revision ||
            one->since_ms != other->since_ms)
            return false;
    }
    return a->count == b->count && a->offer == b->offer && a->offer_since_ms == b->offer_since_ms;
}

void check_unmoved(const struct actor *before, const struct lease *lease,
                   const struct observations *observations, const struct lease_output *out)
{
    check_that(out->action == ACTION_NONE && out->notify == NOTIFY_NONE &&
                   same_lease(lease, &before->lease) &&
                   same_sighting(observations, &before->observations),
               "an answer that nobody waited for changed something");
}

/* States */

/* The work may still run: held, or lost and before the kill time. */
static bool is_inside(const struct world *world, const struct actor *actor)
{
    const struct lease *lease = &actor->lease;
    if (!actor->alive || !actor->started)
        return false;
    return (actor_holds(actor) && world->now_ms < lease->kill_at_ms) ||
           lease_held(lease, world->now_ms);
}

static void check_inside(const struct world *world, const struct brief *truth,
                         const struct actor *actor)
{
    const struct brief_grant *grant = grant_by_token(truth, actor->lease.token);
    check_that(grant != NULL, "at work without a grant in the store (rule 3)");
    check_that(grant == NULL || !brief_expired(world, grant),
               "at work when the store may grant anew (rule 3)");
}

void check_state(const struct world *world)
{
    struct brief truth;
    bool known = false;
    size_t writers = 0, readers = 0, slots = 0;
    for (size_t i = 0; i < playing->clients; i++) {
        const struct actor *actor = &world->actors[i];
        if (!is_inside(world, actor) || actor->excused)
            continue;
        if (!known)
            truth = world_truth(world);
        known = true;
        check_inside(world, &truth, actor);
        writers += playing->parts[i].mode == MODE_EXCLUSIVE ? 1 : 0;
        readers += playing->parts[i].mode == MODE_SHARED ? 1 : 0;
        slots += playing->parts[i].mode == MODE_SLOT ? 1 : 0;
    }
    check_that(writers <= 1, "two writers at work (rule 1)");
    check_that(writers == 0 || readers == 0, "a reader beside a writer (rule 1)");
    check_that(slots <= playing->limit, "more at work than there are slots (rule 1)");
}

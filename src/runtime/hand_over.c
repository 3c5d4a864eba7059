/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes on at one key of the front desk. The queue is ordered as the store's own (rule 4): the
 * highest priority first, each step up for having been passed over, then first come. Bids are what
 * the store is asked; a bid for the queue serves whoever is first when it is granted.
 *
 * Callers that are told something only queue their wishes, so nothing changes under these loops.
 */
#include "base/check.h"
#include "core/mutant.h"
#include "runtime/front_desk_inside.h"

#include <stdlib.h>
#include <string.h>

static void pump(struct desk_key *key);

/* Whom a grant may serve. */

static bool same_words(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A grant that is known by its request id or its meta, or outlives the process, is one caller's;
 * so is a claim: it is finished by the token that the store knows, and has a payload. */
static bool is_shareable(const struct lease_options *options)
{
    const struct request *request = &options->request;
    return request->bound && request->kind == KIND_LOCK && request->request == NULL &&
           request->meta == NULL;
}

static bool fits(const struct bid *bid, const struct claim *claim)
{
    const struct lease_options *mine = &claim->options, *asked = executor_options(bid->task);
    if (claim == bid->starter)
        return true;
    bool both = (bid->shareable && is_shareable(mine)) ||
                (MUTANT(CLAIM_SHARED) && mine->request.kind == KIND_ONCE);
    return both && mine->request.mode == asked->request.mode &&
           mine->request.limit == asked->request.limit &&
           mine->request.ttl_ms == asked->request.ttl_ms &&
           mine->request.lock_delay_ms == asked->request.lock_delay_ms &&
           mine->cooldown_ms == asked->cooldown_ms && mine->kill_grace_ms == asked->kill_grace_ms &&
           same_words(mine->request.holder, asked->request.holder);
}

/* The queue. */

static int64_t rank_of(const struct claim *claim)
{
    return (int64_t)claim->options.request.priority + claim->passed;
}

/* The first in line, of those whom the bid fits when there is one. */
static struct claim *next_in_line(const struct desk_key *key, const struct bid *bid)
{
    struct claim *next = NULL;
    for (struct claim *claim = key->first; claim != NULL; claim = claim->next)
        if ((bid == NULL || fits(bid, claim)) &&
            (next == NULL || rank_of(claim) > rank_of(next) || MUTANT(HAND_OVER_TO_NEWEST)))
            next = claim;
    return next;
}

static void enqueue(struct claim *claim)
{
    struct desk_key *key = claim->key;
    claim->state = CLAIM_QUEUED;
    claim->before = key->last;
    if (key->last != NULL)
        key->last->next = claim;
    else
        key->first = claim;
    key->last = claim;
    key->queued++;
    claim->desk->counts.waiting++;
}

static void dequeue(struct claim *claim)
{
    struct desk_key *key = claim->key;
    if (claim->next != NULL)
        claim->next->before = claim->before;
    else
        key->last = claim->before;
    if (claim->before != NULL)
        claim->before->next = claim->next;
    else
        key->first = claim->next;
    claim->next = claim->before = NULL;
    key->queued--;
    claim->desk->counts.waiting--;
    heap_set(&claim->desk->give_ups, &claim->give_up, HEAP_NEVER);
}

/* Everybody who came before it and still waits was passed over once more. */
static void age(const struct claim *chosen)
{
    for (struct claim *claim = chosen->key->first; claim != chosen; claim = claim->next)
        if (claim->passed < PASSED_MAX)
            claim->passed++;
}

static void tell_waiting(struct claim *claim, const struct task_news *news)
{
    if (!claim->told_waiting)
        claim_tell(claim, news);
    claim->told_waiting = true;
}

/* Bids. */

static void drop_bid(struct bid *bid)
{
    struct desk_key *key = bid->key;
    struct bid **at = &key->bids;
    while (*at != bid)
        at = &(*at)->next;
    *at = bid->next;
    if (key->asking == bid)
        key->asking = NULL;
    free(bid);
    desk_key_return(key);
}

static void let_bid_go(struct bid *bid)
{
    bid->state = BID_ENDING;
    if (bid->key->asking == bid)
        bid->key->asking = NULL;
    executor_let_go(bid->task);
}

static void serve(struct bid *bid, struct claim *claim, struct task_news news)
{
    age(claim);
    dequeue(claim);
    claim->state = CLAIM_HOLDING;
    claim->bid = bid;
    bid->claim = claim;
    news.event = TASK_HELD;
    news.token = bid->token + (MUTANT(HAND_OVER_KEEPS_TOKEN) ? 0 : bid->hand_overs);
    news.deadline_ms = bid->deadline_ms;
    news.kill_at_ms = bid->kill_at_ms;
    claim_tell(claim, &news);
}

static void note_renewal(struct bid *bid, const struct task_news *news)
{
    bid->deadline_ms = news->deadline_ms;
    bid->kill_at_ms = news->kill_at_ms;
}

static void granted(struct bid *bid, const struct task_news *news)
{
    struct desk_key *key = bid->key;
    bool for_queue = key->asking == bid;
    bid->token = news->token;
    bid->state = BID_HELD;
    note_renewal(bid, news);
    if (for_queue) {
        struct claim *next = next_in_line(key, bid);
        key->asking = NULL;
        if (next != NULL)
            serve(bid, next, *news);
        else if (!MUTANT(GRANT_FOR_NOBODY))
            let_bid_go(bid);
    } else {
        bid->claim->state = CLAIM_HOLDING;
        claim_tell(bid->claim, news);
    }
    bid->starter = NULL; /* from now on it is whoever holds it */
    pump(key);
}

/* To the claim that has the bid: its own token, not the store's. */
static void pass_on(const struct bid *bid, struct task_news news)
{
    news.token += news.token != 0 ? bid->hand_overs : 0;
    if (bid->claim != NULL)
        claim_tell(bid->claim, &news);
}

/* Would the store tell both the same? Of an id with another payload it does not. */
static bool means_same(const struct claim *claim, const struct bid *bid)
{
    const struct request *mine = &claim->options.request;
    const struct request *asked = &executor_options(bid->task)->request;
    return mine->kind == asked->kind && same_words(mine->payload, asked->payload);
}

/* What keeps out one keeps out all; other refusals are for those who asked for the same, and what
 * was done is told to those who meant it. */
static void refuse_queue(const struct bid *bid, const struct task_news *news)
{
    bool cools = news->outcome == OUTCOME_COOLING;
    bool all = news->outcome == OUTCOME_DENIED || news->outcome == OUTCOME_UNAVAILABLE;
    for (struct claim *claim = bid->key->first, *next; claim != NULL; claim = next) {
        next = claim->next;
        bool too = cools && (means_same(claim, bid) || MUTANT(DONE_TOLD_TO_ALL));
        if (!all && !too && !fits(bid, claim))
            continue;
        dequeue(claim);
        claim_end(claim, news);
    }
}

static void ended(struct bid *bid, const struct task_news *news)
{
    struct desk_key *key = bid->key;
    struct claim *claim = bid->claim;
    struct task_news told = *news;
    key->users++; /* until the end of this function */
    if (claim != NULL) {
        if (claim->why_left != NULL && news->outcome == OUTCOME_BUSY)
            told.why = claim->why_left;
        claim_end(claim, &told);
    } else if (key->asking == bid) {
        refuse_queue(bid, news);
    }
    drop_bid(bid);
    pump(key);
    desk_key_return(key);
}

static void bid_told(void *owner, struct task *task, const struct task_news *news)
{
    struct bid *bid = owner;
    (void)task;
    switch (news->event) {
    case TASK_WAITING:
        for (struct claim *claim = bid->key->first; claim != NULL; claim = claim->next)
            tell_waiting(claim, news);
        return;
    case TASK_HELD:
        granted(bid, news);
        return;
    case TASK_RENEWED:
        note_renewal(bid, news);
        pass_on(bid, *news);
        return;
    case TASK_LOST:
        if (bid->state == BID_HELD)
            bid->state = BID_LOST;
        if (!MUTANT(LOSS_UNTOLD) || bid->hand_overs == 0)
            pass_on(bid, *news);
        pump(bid->key);
        return;
    case TASK_ENDED:
        ended(bid, news);
        return;
    }
    UNREACHABLE("every event is listed");
}

/* NULL when memory is short. A bid for the queue waits without limit: claims have their own. */
static struct bid *new_bid(struct claim *claim)
{
    struct desk_key *key = claim->key;
    struct lease_options options = claim->options;
    struct bid *bid = calloc(1, sizeof *bid);
    if (bid == NULL)
        return NULL;
    if (options.request.waits)
        options.wait_ms = WAIT_WITHOUT_LIMIT;
    bid->key = key;
    bid->starter = claim;
    bid->adopts = claim->adopts;
    bid->shareable = claim->adopts || is_shareable(&claim->options);
    bid->task = executor_start(key->desk->executor, &options,
                               &(struct executor_caller){.told = bid_told, .owner = bid});
    if (bid->task == NULL) {
        free(bid);
        return NULL;
    }
    bid->next = key->bids;
    key->bids = bid;
    key->users++;
    return bid;
}

/* Does the process itself stand in the way, or is it just giving back? */
static bool may_bid(const struct desk_key *key)
{
    for (const struct bid *bid = key->bids; bid != NULL; bid = bid->next) {
        enum mode mode = executor_options(bid->task)->request.mode;
        if (bid->state == BID_ENDING || (bid->state == BID_HELD && mode == MODE_EXCLUSIVE) ||
            (bid->state == BID_ASKING && bid->adopts))
            return false;
    }
    return key->asking == NULL;
}

/* One request of the queue at a time goes to the store, when nothing of ours is before it. */
static void pump(struct desk_key *key)
{
    key->users++; /* until the end of this function */
    while (may_bid(key) && !key->desk->closing) {
        struct claim *next = next_in_line(key, /* bid= */ NULL);
        if (next == NULL)
            break;
        key->asking = new_bid(next);
        if (key->asking != NULL)
            break;
        dequeue(next);
        claim_end_with(next, OUTCOME_UNAVAILABLE, "memory is short");
    }
    desk_key_return(key);
}

/*
 * A higher priority raises the place outside, which is the process's and keeps its age (rule 4):
 * who asks anew goes on there. The bid before gives back what it may have been granted meanwhile.
 */
static void outbid(struct claim *claim)
{
    struct desk_key *key = claim->key;
    struct bid *before = key->asking;
    if (before == NULL || next_in_line(key, /* bid= */ NULL) != claim ||
        claim->options.request.priority <= executor_options(before->task)->request.priority ||
        executor_grant_due(before->task) != NEVER)
        return;
    struct bid *bid = new_bid(claim);
    if (bid == NULL)
        return; /* the one before serves as well, only later */
    key->asking = bid;
    let_bid_go(before);
}

/* Coming in. */

/* A grant of this process that is held at this moment and leaves no room: no store need be asked.
 */
static const struct bid *in_the_way(const struct claim *claim)
{
    for (const struct bid *bid = claim->key->bids; bid != NULL; bid = bid->next) {
        bool alone = claim->options.request.mode == MODE_EXCLUSIVE ||
                     executor_options(bid->task)->request.mode == MODE_EXCLUSIVE;
        bool held = bid->state == BID_HELD && executor_holds(bid->task);
        if (alone && means_same(claim, bid) && (held || MUTANT(BUSY_FROM_OLD_COPY)))
            return bid;
    }
    return NULL;
}

static bool bid_for(struct claim *claim)
{
    struct bid *bid = new_bid(claim);
    if (bid == NULL)
        return false;
    claim->state = CLAIM_BIDDING;
    claim->bid = bid;
    bid->claim = claim;
    return true;
}

bool desk_adopt(struct claim *claim)
{
    ASSERT(claim->key->bids == NULL && claim->key->first == NULL);
    return bid_for(claim);
}

static bool was_done(const struct claim *claim)
{
    struct stamp at;
    const struct record *copy = executor_recall(claim->desk->executor, claim->key->key, &at);
    return copy != NULL && copy->kind == KIND_ONCE && copy->cooling.length_ms > 0;
}

static void enter_at_once(struct claim *claim)
{
    struct desk_key *key = claim->key;
    const struct bid *holder = in_the_way(claim);
    struct task_news busy = {.event = TASK_ENDED, .outcome = OUTCOME_BUSY};
    if (MUTANT(DONE_FROM_OLD_COPY) && was_done(claim)) {
        claim_end_with(claim, OUTCOME_COOLING, /* why= */ NULL);
        return;
    }
    if (holder != NULL) {
        busy.look = (struct look){.state = KEY_HELD,
                                  .holder = executor_options(holder->task)->request.holder,
                                  .token = holder->token + holder->hand_overs,
                                  .ends_in_ms = -1,
                                  .takeover_in_ms = -1};
    } else if (key->first == NULL || key->asking != NULL) {
        if (!bid_for(claim))
            claim_end_with(claim, OUTCOME_UNAVAILABLE, "memory is short");
        return;
    } else {
        busy.why = "others are in line";
    }
    claim->desk->counts.known_busy++;
    claim_end(claim, &busy);
}

void desk_enter(struct claim *claim)
{
    struct desk_key *key = claim->key;
    struct front_desk *desk = claim->desk;
    int64_t wait_ms = claim->options.wait_ms;
    if (!claim->options.request.waits) {
        enter_at_once(claim);
        return;
    }
    if (key->queued >= PLACES_MAX) {
        claim_end_with(claim, OUTCOME_BUSY, "queue full");
        return;
    }
    bool behind = key->first != NULL || !may_bid(key);
    enqueue(claim);
    claim->entered_ms = desk->site.now_ms(desk->site.owner);
    if (wait_ms != WAIT_WITHOUT_LIMIT)
        heap_set(&desk->give_ups, &claim->give_up, claim->entered_ms + wait_ms);
    if (behind)
        tell_waiting(claim, &(struct task_news){.event = TASK_WAITING});
    outbid(claim);
    pump(key);
}

/* Going out. */

/* From one caller to the next without a write; the store sees one holder. */
static bool hand_on(struct bid *bid)
{
    struct desk_key *key = bid->key;
    const struct lease_options *options = executor_options(bid->task);
    struct claim *next = next_in_line(key, /* bid= */ NULL);
    bool held = bid->state == BID_HELD && executor_holds(bid->task);
    bool few = bid->hand_overs < HAND_OVERS_MAX || MUTANT(HAND_OVER_WITHOUT_END);
    bool alone = !executor_others_wait(bid->task) || MUTANT(HAND_OVER_PAST_OUTSIDERS);
    bool may = (held || MUTANT(HAND_OVER_AFTER_LOSS)) && few && alone && key->asking == NULL &&
               options->request.mode == MODE_EXCLUSIVE && options->cooldown_ms == 0;
    if (!may || next == NULL || !fits(bid, next))
        return false;
    claim_end_with(bid->claim, OUTCOME_OK, /* why= */ NULL);
    bid->hand_overs++;
    key->desk->counts.hand_overs++;
    serve(bid, next, (struct task_news){0});
    return true;
}

/* The last one whom the bid would have served takes it along; else it stays for the others. */
static void leave_queue(struct claim *claim, const char *why, bool in_trouble)
{
    struct desk_key *key = claim->key;
    struct bid *bid = key->asking;
    bool served = bid != NULL && fits(bid, claim);
    dequeue(claim);
    if (bid != NULL && bid->starter == claim)
        bid->starter = NULL;
    bool last = served && next_in_line(key, bid) == NULL;
    last = last && !MUTANT(GRANT_FOR_NOBODY);
    if (last)
        let_bid_go(bid);
    key->users++;
    if (last && !in_trouble) { /* told once it is written out */
        claim->state = CLAIM_LEAVING;
        claim->why_left = why;
        claim->bid = bid;
        bid->claim = claim;
    } else if (in_trouble) {
        claim_end_with(claim, OUTCOME_UNAVAILABLE, "the store does not answer");
    } else {
        claim_end_with(claim, OUTCOME_BUSY, why);
    }
    pump(key);
    desk_key_return(key);
}

/* Is it the store that keeps it waiting? What we give back there stands in its way too. */
static bool store_delays(const struct claim *claim)
{
    const struct desk_key *key = claim->key;
    if (MUTANT(SILENCE_IS_BUSY))
        return false;
    if (key->asking != NULL)
        return executor_in_trouble(key->asking->task, claim->entered_ms);
    for (const struct bid *bid = key->bids; bid != NULL; bid = bid->next)
        if (bid->state == BID_ENDING && executor_in_trouble(bid->task, INT64_MIN))
            return true;
    return false;
}

void desk_give_up(struct claim *claim)
{
    struct desk_key *key = claim->key;
    const struct bid *bid = key->asking;
    bool served = bid != NULL && fits(bid, claim);
    int64_t due_ms = served ? executor_grant_due(bid->task) : NEVER;
    ASSERT(claim->state == CLAIM_QUEUED);
    /* A write on its way that would be its grant is heard out; who is late looks again soon. */
    if (due_ms != NEVER && next_in_line(key, bid) == claim) {
        int64_t now_ms = claim->desk->site.now_ms(claim->desk->site.owner);
        heap_set(&claim->desk->give_ups, &claim->give_up, (due_ms > now_ms ? due_ms : now_ms) + 1);
        return;
    }
    leave_queue(claim, "not granted within the wait", store_delays(claim));
}

void desk_leave(struct claim *claim, const char *why)
{
    switch (claim->state) {
    case CLAIM_QUEUED:
        leave_queue(claim, why, /* in_trouble= */ false);
        return;
    case CLAIM_HOLDING:
        if (hand_on(claim->bid))
            return;
        why = NULL;
        break;
    case CLAIM_BIDDING:
        break;
    case CLAIM_NEW:
    case CLAIM_LEAVING:
        return;
    }
    claim->state = CLAIM_LEAVING;
    claim->why_left = why;
    let_bid_go(claim->bid);
}

void desk_forget(struct claim *claim)
{
    struct desk_key *key = claim->key;
    struct bid *bid = claim->state == CLAIM_QUEUED ? key->asking : claim->bid;
    bool takes_bid = bid != NULL;
    if (claim->state == CLAIM_QUEUED) {
        takes_bid = bid != NULL && fits(bid, claim);
        dequeue(claim);
        if (bid != NULL && bid->starter == claim)
            bid->starter = NULL;
        takes_bid = takes_bid && next_in_line(key, bid) == NULL;
    }
    key->users++;
    if (takes_bid) {
        executor_forget(bid->task);
        drop_bid(bid);
    }
    claim_end_with(claim, OUTCOME_BUSY, /* why= */ NULL); /* it is silent */
    pump(key);
    desk_key_return(key);
}

void desk_key_drop(struct desk_key *key)
{
    key->users++;
    for (struct bid *bid = key->bids, *next; bid != NULL; bid = next) {
        next = bid->next;
        executor_forget(bid->task);
        drop_bid(bid);
    }
    desk_key_return(key);
}

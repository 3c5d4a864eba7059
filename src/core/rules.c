/* SPDX-License-Identifier: Apache-2.0 */
/* Implements rules.h, one function per verb. Pure; each rule has one implementation. */
#include "core/rules_internal.h"

#include "base/check.h"
#include "base/text.h"
#include "core/mutant.h"

#include <string.h>

const char request_id_used[] = "another holder has used this request id";

bool time_is_known(const struct stamp *since, const struct view *view)
{
    return view->facts->judge == JUDGE_STORE_TIME && since->time_ms != TIME_UNKNOWN &&
           view->at.time_ms != TIME_UNKNOWN;
}

/*
 * True if the length has passed since then; false for what this write begins. If the store's clock
 * is unknown, or was set back before that time, the client's own observation counts.
 */
static bool has_passed(const struct stamp *since, int64_t length_ms, int64_t observed_ms,
                       const struct view *view)
{
    bool judged = view->facts->judge == JUDGE_SESSION && !MUTANT(JUDGED_BY_TIME);
    if (since->revision == THIS_WRITE || judged)
        return false;
    int64_t wait_ms = length_ms + view->facts->margin_ms;
    if (time_is_known(since, view) && view->at.time_ms >= since->time_ms)
        return since->time_ms + wait_ms <= view->at.time_ms;
    return observed_ms >= wait_ms;
}

bool grant_ended(const struct grant *grant, const struct view *view)
{
    if (grant->over || (grant->dead && (grant->bound || MUTANT(UNBOUND_ENDS_WITH_SESSION))))
        return true;
    return has_passed(&grant->renewed, grant->ttl_ms, grant->observed_ms, view);
}

bool span_blocks(const struct span *span, const struct view *view)
{
    return span->length_ms > 0 && !span->over &&
           !has_passed(&span->since, span->length_ms, span->observed_ms, view);
}

bool record_is_cooling(const struct record *record, const struct view *view)
{
    return span_blocks(&record->cooling, view) || record_awaits_watermark(record);
}

static bool offer_lapsed(const struct waiter *waiter, const struct view *view)
{
    int64_t grace_ms = MUTANT(OFFER_GRACE_FIXED) ? 1000 : view->facts->offer_grace_ms;
    if (!waiter->offered || MUTANT(OFFER_NEVER_LAPSES))
        return false;
    if (stamp_order(&waiter->offer) <= view->offer_revision &&
        view->offer_observed_ms >= queue_offer_lasts_ms(waiter, view->facts))
        return true;
    return has_passed(&waiter->offer, grace_ms, /* observed_ms= */ 0, view);
}

/*
 * The rest of the span; all of it if the time is unknown or the clock was set back. Not above 0
 * while only the clock's error keeps the span open.
 */
static int64_t rest_of(const struct span *span, const struct view *view)
{
    if (span->since.revision == THIS_WRITE || !time_is_known(&span->since, view))
        return span->length_ms;
    int64_t passed_ms = view->at.time_ms - span->since.time_ms;
    return passed_ms > 0 ? span->length_ms - passed_ms : span->length_ms;
}

/* Of two spans of one kind the later end counts: neither cuts the other short. */
static void rules_add_span(struct span *span, const struct span *added, const struct view *view)
{
    int64_t left_ms = rest_of(span, view);
    bool longer = span_blocks(span, view) && left_ms > rest_of(added, view);
    *span = *added;
    if (longer) {
        span->since = (struct stamp){.revision = THIS_WRITE};
        span->length_ms = left_ms > 0 ? left_ms : 1;
    }
}

void rules_cool(struct record *record, const char *by, int64_t length_ms, const struct view *view)
{
    struct span cooling = {.length_ms = length_ms};
    text_copy(cooling.by, sizeof cooling.by, by);
    rules_add_span(&record->cooling, &cooling, view);
    record->waiter_count = 0;
}

/*
 * Only a crash starts the lock-delay. Open offers are withdrawn: no waiter may enter now, and those
 * with an offer are first again afterwards.
 */
static void start_delay(struct record *record, const struct grant *grant, const struct view *view)
{
    struct span delay = {.length_ms = grant->lock_delay_ms,
                         .since = MUTANT(DELAY_FROM_RENEWAL) ? grant->renewed : (struct stamp){0}};
    bool ran_out = has_passed(&grant->renewed, grant->ttl_ms, grant->observed_ms, view);
    if (ran_out && time_is_known(&grant->renewed, view)) { /* else: its session has just ended */
        delay.since = grant->renewed;
        delay.since.time_ms += grant->ttl_ms;
        if (delay.since.time_ms > TIME_MAX_MS) /* beyond every valid clock */
            delay.since.time_ms = TIME_MAX_MS;
    }
    text_copy(delay.by, sizeof delay.by, grant->holder);
    if (!span_blocks(&delay, view))
        return;
    rules_add_span(&record->delay, &delay, view);
    for (size_t i = 0; i < record->waiter_count; i++)
        record->waiters[i].offered = false;
}

static void remove_ended_grants(struct record *record, const struct view *view, struct verdict *out)
{
    for (size_t i = record->grant_count; i-- > 0;) {
        struct grant *grant = &record->grants[i];
        if (!grant_ended(grant, view))
            continue;
        start_delay(record, grant, view);
        record_remove_grant(record, grant);
        out->expired++;
    }
}

/* A waiter that died or missed its offer is removed, except the client's own: it is alive. */
static void remove_lost_waiters(struct record *record, uint64_t own, const struct view *view,
                                struct verdict *out)
{
    for (size_t i = record->waiter_count; i-- > 0;) {
        struct waiter *waiter = &record->waiters[i];
        if (waiter->session == own || !(waiter->dead || offer_lapsed(waiter, view)))
            continue;
        out->passed_on = (uint16_t)(out->passed_on + (waiter->offered ? 1 : 0));
        record_remove_waiter(record, waiter);
        out->write = true;
    }
}

void rules_prune(struct record *record, uint64_t own, const struct view *view, struct verdict *out)
{
    remove_ended_grants(record, view, out);
    remove_lost_waiters(record, own, view, out);
    if (record->cooling.length_ms > 0 && !record_is_cooling(record, view))
        record_end_cooling(record);
    if (record->delay.length_ms > 0 && !span_blocks(&record->delay, view))
        memset(&record->delay, 0, sizeof record->delay);
    out->write = out->write || out->expired > 0;
}

static void fill_waiter(struct waiter *waiter, const struct request *request)
{
    if (waiter->mode != request->mode)
        waiter->offered = false; /* the offer was for another mode */
    text_copy(waiter->holder, sizeof waiter->holder, request->holder);
    text_copy(waiter->request, sizeof waiter->request, request->request);
    waiter->session = request->session;
    waiter->mode = request->mode;
    waiter->priority = request->priority;
    waiter->bound = request->bound;
    waiter->ttl_ms = request->ttl_ms;
    waiter->lock_delay_ms = request->lock_delay_ms;
}

/*
 * A queue position belongs to the process, not to the request: a process that gave up without
 * reaching the store and requests again resumes its position. A request that is repeated by another
 * process resumes it there.
 */
static struct waiter *find_waiter(struct record *record, const struct request *request)
{
    struct waiter *waiter = record_waiter_by_request(record, request->request);
    if (!request->waits) /* it needs no position, and must not take another thread's */
        return waiter;
    struct waiter *left_behind = record_waiter_by_session(record, request->session);
    if (waiter == NULL || left_behind == NULL || waiter == left_behind)
        return waiter != NULL ? waiter : left_behind;
    record_remove_waiter(record, left_behind);
    return record_waiter_by_request(record, request->request);
}

/*
 * A live waiter whose offer was taken over returns with its ticket, as one that was passed over,
 * also to a queue that newcomers may not join. Tickets do not run out in practice, but a forged
 * record can exhaust them.
 */
static struct waiter *new_waiter(struct record *record, const struct request *request,
                                 const struct store_facts *facts)
{
    if (record->waiter_count == 0 && record->next_ticket >= TICKET_MAX)
        record->next_ticket = 1;
    bool returns = request->ticket != 0 && record->waiter_count < WAITERS_MAX &&
                   !MUTANT(PASSED_OVER_LOSES_TICKET);
    struct waiter *waiter = returns ? record_return_waiter(record, request->ticket) : NULL;
    if (waiter != NULL) {
        waiter->passed = 1;
        return waiter;
    }
    size_t most = MUTANT(QUEUE_LIMIT_IGNORED) ? (size_t)WAITERS_MAX : facts->waiters_max;
    if (record->waiter_count >= most || record->next_ticket >= TICKET_MAX)
        return NULL;
    return record_add_waiter(record);
}

/* NULL if the queue or the record is full. */
static struct waiter *own_waiter(struct record *record, const struct request *request,
                                 const struct store_facts *facts)
{
    struct waiter *waiter = find_waiter(record, request);
    bool same = waiter != NULL && waiter->session == request->session &&
                strcmp(waiter->request, request->request) == 0;
    if (same)
        return waiter;
    if (waiter == NULL && (waiter = new_waiter(record, request, facts)) == NULL)
        return NULL;
    fill_waiter(waiter, request);
    if (record_fits(record, RECORD_MAX - RECORD_RESERVE))
        return waiter;
    record_remove_waiter(record, waiter);
    return NULL;
}

/* Meta is for people: it is left out if it would fill more than half of the record. */
static void set_meta(const struct record *record, struct grant *grant, const struct meta *meta)
{
    if (meta == NULL || !record_fits(record, RECORD_MAX / 2 - meta_size_bound(meta)))
        return;
    grant->meta.count = meta->count;
    grant->meta.used = meta->used;
    memcpy(grant->meta.text, meta->text, meta->used);
}

/* A lease is never shortened: a client may still rely on the old TTL. */
static int64_t rules_longer_of(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* A grant made by a release has no meta, since a waiter carries none. */
static bool lacks_meta(const struct grant *grant, const struct request *request)
{
    return request->meta != NULL && request->meta->used > 0 && grant->meta.used == 0;
}

/* Young enough to be adopted without a write: a holder would not have renewed it yet. */
static bool is_young(const struct grant *grant, const struct view *view)
{
    return view->at.time_ms < grant->renewed.time_ms + grant->ttl_ms / 3;
}

/*
 * A repeated acquire finds its own grant (rule 9). The send time of the write whose reply was lost
 * is unknown, so the grant is renewed: the deadline counts from the send time of this write. From
 * another process it moves there, as with a renewal (rule 11).
 */
static struct verdict rules_reacquire(const struct record *record, struct grant *grant,
                                      const struct request *request, const struct view *view)
{
    struct verdict out = {.kind = VERDICT_GRANTED, .n = grant->n};
    bool bare = lacks_meta(grant, request), moves = grant->session != request->session;
    if (grant->broken) {
        out.kind = VERDICT_BROKEN;
    } else if ((view->facts->one_clock && !bare && !moves && is_young(grant, view)) ||
               MUTANT(OFFER_IS_GRANT)) {
        out.since_ms = MUTANT(OFFER_IS_GRANT) ? TIME_UNKNOWN : grant->renewed.time_ms;
    } else {
        if (bare)
            set_meta(record, grant, request->meta);
        if (moves)
            grant->bound = request->bound;
        grant->renewed = (struct stamp){.revision = THIS_WRITE};
        grant->session = request->session;
        grant->ttl_ms = rules_longer_of(grant->ttl_ms, request->ttl_ms);
        out.write = true;
    }
    return out;
}

/* True if another holder has used this request id and its grant or queue position exists. */
static bool is_id_of_another(struct record *record, const struct request *request)
{
    const struct grant *grant = record_grant_by_request(record, request->request);
    const struct waiter *waiter = record_waiter_by_request(record, request->request);
    const char *holder = grant != NULL ? grant->holder : waiter != NULL ? waiter->holder : NULL;
    return holder != NULL && !request->any_holder && strcmp(holder, request->holder) != 0 &&
           !MUTANT(REQUEST_ID_SHARED);
}

static struct grant *rules_own_grant(struct record *record, const struct request *request)
{
    if (MUTANT(REQUEST_ID_IGNORED))
        return NULL;
    if (MUTANT(REENTRY_BY_HOLDER))
        for (size_t i = 0; i < record->grant_count; i++)
            if (strcmp(record->grants[i].holder, request->holder) == 0)
                return &record->grants[i];
    return record_grant_by_request(record, request->request);
}

static void rules_enter(struct record *record, struct waiter *waiter, const struct request *request,
                        const struct stamp *previous, struct verdict *out)
{
    out->accepts = waiter->offered;
    struct grant *grant = queue_grant(record, waiter);
    set_meta(record, grant, request->meta);
    out->n = grant->n;
    out->kind = VERDICT_GRANTED;
    out->write = true;
    if (MUTANT(TAKEOVER_KEEPS_TOKEN) && previous->revision != THIS_WRITE)
        grant->granted = *previous;
}

static bool may_enter(struct record *record, const struct waiter *waiter, const struct view *view)
{
    if (waiter->offered)
        return true;
    if (MUTANT(NEWCOMER_OVERTAKES) && record->grant_count == 0)
        return true;
    return waiter == queue_next(record) && queue_admits(record, waiter->mode, view);
}

/* Enters if it is this request's turn, else waits or leaves. */
static struct verdict acquire_in_queue(struct record *record, const struct request *request,
                                       const struct view *view, const struct stamp *previous,
                                       struct verdict out)
{
    const struct waiter *known = record_waiter_by_request(record, request->request);
    bool was_queued = known != NULL && known->session == request->session;
    size_t waiters = record->waiter_count;
    struct waiter *waiter = own_waiter(record, request, view->facts);
    if (waiter == NULL) {
        out.kind = VERDICT_BUSY;
        out.why = "queue full";
        out.write = out.write || record->waiter_count != waiters;
    } else if (may_enter(record, waiter, view)) {
        rules_enter(record, waiter, request, previous, &out);
    } else if (request->waits) {
        out.kind = VERDICT_WAITING;
        out.write = out.write || !was_queued;
        bool is_new = record->waiter_count > waiters && waiter->passed == 0;
        if (is_new && view->age_ms >= 0)
            record_time_ticket(record, waiter, view->at.time_ms + view->age_ms);
    } else {
        out.kind = VERDICT_BUSY;
        record_remove_waiter(record, waiter);
        out.write = out.write || record->waiter_count != waiters;
    }
    out.offered = queue_offer_next(record, view);
    out.write = out.write || out.offered > 0;
    const struct grant *grant = out.kind == VERDICT_WAITING && out.offered > 0
                                    ? record_grant_by_request(record, request->request)
                                    : NULL;
    if (grant != NULL) { /* one clock: the offer granted it */
        out.kind = VERDICT_GRANTED;
        out.n = grant->n;
    }
    return out;
}

static struct verdict rules_acquire(struct record *record, const struct request *request,
                                    const struct view *view)
{
    struct verdict out = {.kind = VERDICT_BUSY};
    struct stamp previous = record->grant_count > 0 ? record->grants[0].granted
                                                    : (struct stamp){.revision = THIS_WRITE};
    rules_prune(record, request->session, view, &out);
    if (is_id_of_another(record, request))
        return (struct verdict){.kind = VERDICT_MISMATCH, .why = request_id_used};
    struct grant *grant = rules_own_grant(record, request);
    if (grant != NULL)
        return rules_reacquire(record, grant, request, view);
    if (out.expired == 0)
        previous.revision = THIS_WRITE;
    if (record->grant_count == 0 && record->waiter_count == 0)
        record->limit = request->limit;
    out.why = record->limit != request->limit ? "the key is in use with another limit"
                                              : once_refuses(record, request, request->kind);
    if (out.why != NULL) {
        out.kind = VERDICT_MISMATCH;
        out.write = false;
        return out;
    }
    if (MUTANT(DONE_FORGOTTEN) && record->kind == KIND_ONCE)
        record_end_cooling(record);
    if (record->cooling.length_ms > 0 && !MUTANT(COOLDOWN_FORGOTTEN)) {
        out.kind = VERDICT_COOLING;
        return out;
    }
    if (MUTANT(RUNNING_IS_DONE) && record->kind == KIND_ONCE && record->grant_count > 0)
        return (struct verdict){.kind = VERDICT_COOLING};
    out = acquire_in_queue(record, request, view, &previous, out);
    if (out.kind == VERDICT_GRANTED || out.kind == VERDICT_WAITING)
        once_note_payload(record, request);
    return out;
}

/*
 * True if the caller chose the request id and uses the grant, which it received through another
 * process: it renews after a wait, before it enters, and otherwise before its first deadline. That
 * renewal makes the grant this session's if it came through this process.
 */
static bool is_used_elsewhere(const struct grant *grant, const struct request *request)
{
    return request->repeatable && grant->renewed.revision != grant->granted.revision;
}

/*
 * Gives up: removes the waiter, and a grant whose reply was lost. Only those of this process: if
 * another one has repeated the request since, they are the other's (rule 9).
 */
static struct verdict rules_leave(struct record *record, const struct request *request,
                                  const struct view *view)
{
    struct verdict out = {.kind = VERDICT_DONE};
    struct grant *grant = record_grant_by_request(record, request->request);
    struct waiter *waiter = record_waiter_by_request(record, request->request);
    if (grant != NULL && grant->session == request->session && !is_used_elsewhere(grant, request) &&
        !MUTANT(WAITER_FREED_WHILE_GRANTED)) {
        record_remove_grant(record, grant);
        out.write = true;
    }
    if (waiter != NULL && waiter->session == request->session) {
        record_remove_waiter(record, waiter);
        out.write = true;
    }
    if (out.write) {
        rules_prune(record, NOBODY, view, &out);
        out.offered = queue_offer_next(record, view);
    }
    return out;
}

/* The valid grant with this token, or NULL; a stale token changes nothing (rule 2). */
static struct grant *current_grant(struct record *record, const struct request *request,
                                   const struct view *view)
{
    struct grant *grant = record_grant_by_token(record, request->token);
    if (MUTANT(RELEASE_BY_HOLDER) && request->verb == VERB_RELEASE)
        for (size_t i = 0; i < record->grant_count; i++)
            if (strcmp(record->grants[i].holder, request->holder) == 0)
                grant = &record->grants[i];
    return grant == NULL || grant_ended(grant, view) ? NULL : grant;
}

/* The session's own writes keep the grant alive, so the record need not change (rule 3). */
static bool lives_by_session(const struct grant *grant, const struct request *request,
                             const struct view *view)
{
    return view->facts->renews_by_session && grant->bound && grant->session == request->session &&
           request->ttl_ms <= grant->ttl_ms;
}

static struct verdict rules_renew(struct record *record, const struct request *request,
                                  const struct view *view)
{
    struct grant *grant = current_grant(record, request, view);
    if (MUTANT(SESSION_RENEWAL_UNCHECKED) && view->facts->renews_by_session && request->bound)
        return (struct verdict){.kind = VERDICT_DONE};
    if (grant == NULL)
        return (struct verdict){.kind = VERDICT_STALE};
    if (grant->broken && !MUTANT(BREAK_IGNORED))
        return (struct verdict){.kind = VERDICT_BROKEN, .why = record->reason};
    if (lives_by_session(grant, request, view))
        return (struct verdict){.kind = VERDICT_DONE, .n = grant->n};
    if (grant->session != request->session) {
        grant->session = request->session;
        grant->bound = request->bound;
    }
    grant->ttl_ms = rules_longer_of(grant->ttl_ms, request->ttl_ms);
    grant->renewed = (struct stamp){.revision = THIS_WRITE};
    return (struct verdict){.kind = VERDICT_DONE, .write = true, .n = grant->n};
}

/*
 * The same write offers the key to the next waiter (rule 4). With a cooldown it offers nothing: the
 * awaited work was just done, so all waiters are removed and get `cooling` (rule 5).
 */
static struct verdict rules_release(struct record *record, const struct request *request,
                                    const struct view *view)
{
    struct grant *grant = current_grant(record, request, view);
    bool cools = request->cooldown_ms > 0;
    if (grant == NULL && cools && once_was_done(record, request->token))
        return (struct verdict){.kind = VERDICT_DONE};
    if (MUTANT(FINISH_UNFENCED) && grant == NULL && cools && record->kind == KIND_ONCE &&
        record->grant_count > 0)
        grant = &record->grants[0];
    if (grant == NULL)
        return (struct verdict){.kind = VERDICT_STALE};
    struct verdict out = {.kind = VERDICT_DONE, .write = true};
    if (cools) {
        rules_cool(record, grant->holder, request->cooldown_ms, view);
        once_remember(record, grant->request, request->token, request->completion);
    }
    if (MUTANT(DELAY_AFTER_RELEASE))
        start_delay(record, grant, view);
    record_remove_grant(record, grant);
    rules_prune(record, NOBODY, view, &out);
    if (MUTANT(OFFER_EVICTED))
        record->waiter_count = 0;
    out.offered = queue_offer_next(record, view);
    return out;
}

/* A break that is repeated after a lost reply must not hit the next holder. */
static bool is_meant(const struct stamp *written, const struct request *request)
{
    return request->up_to == 0 || stamp_order(written) <= request->up_to;
}

static void note_broken(const struct grant *grant, struct broken *broken)
{
    broken->count++;
    text_copy(broken->holder, sizeof broken->holder, grant->holder);
    broken->token = grant_token(grant);
    broken->since_ms = grant->granted.time_ms;
}

/* The holder's next renewal reports the break; `now` relies on fencing instead. */
static struct verdict rules_break(struct record *record, const struct request *request,
                                  const struct view *view)
{
    struct verdict out = {.kind = VERDICT_DONE, .why = "nobody holds it"};
    struct broken broken = {0};
    rules_prune(record, NOBODY, view, &out);
    for (size_t i = record->grant_count; i-- > 0;) {
        if (!is_meant(&record->grants[i].granted, request))
            continue;
        note_broken(&record->grants[i], &broken);
        record->grants[i].broken = true;
        if (request->now)
            record_remove_grant(record, &record->grants[i]);
        text_copy(record->reason, sizeof record->reason, request->reason);
        out.why = NULL;
        out.write = true;
    }
    /* A repeated break that finds no holder may have freed the key at its first attempt. */
    if (request->broken != NULL && (broken.count > 0 || request->up_to == 0))
        *request->broken = broken;
    if (request->now && record->delay.length_ms > 0 && is_meant(&record->delay.since, request)) {
        memset(&record->delay, 0, sizeof record->delay);
        out.write = true;
    }
    out.offered = queue_offer_next(record, view);
    out.write = out.write || out.offered > 0;
    return out;
}

static struct verdict rules_clear(struct record *record, const struct request *request,
                                  const struct view *view)
{
    struct verdict out = {.kind = VERDICT_DONE, .why = "it is not cooling"};
    rules_prune(record, NOBODY, view, &out);
    if (record->cooling.length_ms > 0 && is_meant(&record->cooling.since, request)) {
        record_end_cooling(record);
        out.why = NULL;
        out.write = true;
    }
    out.offered = queue_offer_next(record, view);
    out.write = out.write || out.offered > 0;
    return out;
}

static struct verdict decide_verb(struct record *record, const struct request *request,
                                  const struct view *view)
{
    switch (request->verb) {
    case VERB_ACQUIRE:
        return rules_acquire(record, request, view);
    case VERB_LEAVE:
        return rules_leave(record, request, view);
    case VERB_RENEW:
        return rules_renew(record, request, view);
    case VERB_RELEASE:
        return rules_release(record, request, view);
    case VERB_BREAK:
        return rules_break(record, request, view);
    case VERB_CLEAR:
        return rules_clear(record, request, view);
    case VERB_QUERY:
        return (struct verdict){.kind = VERDICT_DONE};
    case VERB_MARK:
        return once_mark(record, request, view);
    case VERB_ADVANCE:
        return watermark_advance(record, request, view);
    case VERB_SET:
        return watermark_set(record, request, view);
    }
    UNREACHABLE("every verb is listed");
}

struct verdict rules_decide(struct record *record, const struct request *request,
                            const struct view *view)
{
    if (strcmp(record->key, request->key) != 0 && !MUTANT(KEY_NOT_COMPARED))
        return (struct verdict){.kind = VERDICT_MISMATCH,
                                .why = "another key has the same name in the store"};
    struct verdict out = decide_verb(record, request, view);
    if (out.write && !record_fits(record, RECORD_MAX)) /* the rules alone never exceed it */
        return (struct verdict){.kind = VERDICT_MISMATCH,
                                .why = "the record is too full to be changed"};
    ASSERT(!out.write || MUTANT(READER_BESIDE_WRITER) || record_broken(record) == NULL);
    return out;
}

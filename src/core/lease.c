/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step function of lease.h: the next request of a holder, a waiter or an operation.
 * rules_decide() decides about records; this file only orders requests, deadlines and retries.
 * Every step checks the holder's deadline first, for every kind of event.
 */
#include "core/lease_internal.h"

#include "base/check.h"
#include "core/mutant.h"

#include <string.h>

enum { LEASE_MAGIC = 0x1ea5e401 };

void lease_init(struct lease *lease, const struct lease_options *options,
                struct observations *observations, uint64_t seed)
{
    /* Callers have checked it by request_broken(), whose check of the texts is not repeated here:
     * text_copy() asserts their lengths and the encoder their bytes. */
    ASSERT(options->request.key[0] != '\0' && options->request.session != 0);
    ASSERT(options->request.ttl_ms >= 0 && options->request.ttl_ms <= TTL_MAX_MS);
    ASSERT(options->cooldown_ms >= 0 && options->cooldown_ms <= SPAN_MAX_MS);
    ASSERT(options->request.verb != VERB_MARK || options->cooldown_ms > 0);
    ASSERT(options->facts->reply_timeout_ms > 0 && options->facts->poll_ms > 0);
    ASSERT(options->facts->waiters_max > 0 && options->facts->waiters_max <= WAITERS_MAX);
    ASSERT(options->timeout_ms > 0 && options->kill_grace_ms >= 0);
    memset(lease, 0, sizeof *lease);
    lease->magic = LEASE_MAGIC;
    lease->options = options;
    lease->observations = observations;
    lease->random.state = seed;
    lease->reply_by_ms = lease->next_at_ms = lease->give_up_at_ms = NEVER;
    lease->trouble_since_ms = lease->deadline_ms = lease->kill_at_ms = NEVER;
}

bool lease_held(const struct lease *lease, int64_t now_ms)
{
    return lease_holds(lease) && (now_ms < lease->deadline_ms || MUTANT(RENEWAL_FAILURE_IGNORED));
}

enum verb lease_verb(const struct lease *l)
{
    switch (l->state) {
    case LEASE_HELD:
    case LEASE_RENEWING:
        return VERB_RENEW;
    case LEASE_RELEASING:
        return VERB_RELEASE;
    case LEASE_LEAVING:
        return VERB_LEAVE;
    default:
        return l->options->request.verb;
    }
}

static struct request request_of(const struct lease *l)
{
    struct request request = l->options->request;
    request.verb = lease_verb(l);
    if (l->token != 0)
        request.token = l->token;
    request.up_to = l->unsure ? l->up_to : 0;
    request.ticket = l->ticket;
    bool lost = l->state == LEASE_RELEASING && l->final == OUTCOME_LOST;
    request.cooldown_ms = lost ? 0 : l->options->cooldown_ms;
    if (l->state == LEASE_OPERATION) /* its process may end at once: never bind a grant to it */
        request.bound = false;
    return request;
}

/* Grows with each attempt, with jitter, so that clients do not retry a failing store in step. */
static int64_t backoff_ms(struct lease *l, uint32_t attempts, int64_t first_ms, int64_t most_ms)
{
    enum { DOUBLINGS = 10, TRIES_PER_TTL = 6 };
    int64_t ms = first_ms << (attempts < DOUBLINGS ? attempts : DOUBLINGS);
    int64_t share_ms = l->options->request.ttl_ms / TRIES_PER_TTL + 1;
    if (lease_holds(l) && most_ms > share_ms)
        most_ms = share_ms;
    ms = ms < most_ms ? ms : most_ms;
    return ms + (int64_t)random_below(&l->random, (uint64_t)ms / 2 + 1);
}

int64_t lease_pause_ms(struct lease *l, uint32_t attempts)
{
    enum { RETRY_MS = 50, RETRY_MOST_MS = 2000 };
    return backoff_ms(l, attempts, RETRY_MS, RETRY_MOST_MS);
}

void lease_send(struct lease *l, enum action action, struct lease_output *out)
{
    int64_t most_ms = l->options->timeout_ms;
    l->in_flight = true;
    l->noticed = false;
    l->sent = action;
    l->sent_verb = lease_verb(l);
    l->sent_at_ms = l->now_ms;
    l->reply_by_ms =
        l->now_ms + backoff_ms(l, l->attempts, l->options->facts->reply_timeout_ms, most_ms);
    l->next_at_ms = NEVER;
    out->action = action;
    out->serial = ++l->serial;
}

/*
 * The token of the grant that this write depends on, which may have expired since the record was
 * read: released, renewed, or found by a repeated acquire. 0 if there is none.
 */
static uint64_t required_token(const struct lease *l, const struct request *request,
                               struct record *record)
{
    const struct grant *own = request->verb == VERB_ACQUIRE
                                  ? record_grant_by_request(record, l->options->request.request)
                                  : NULL;
    if (own != NULL)
        return grant_token(own); /* 0 if this write makes it */
    bool needs_grant = request->verb == VERB_RELEASE || request->verb == VERB_RENEW;
    if (MUTANT(FINISH_UNFENCED) && request->cooldown_ms > 0)
        return 0;
    return needs_grant ? request->token : 0;
}

/* The end of that grant's lease by the store's clock: a later write must fail. Computed before the
 * record changes; 0 if the store has no clock or there is no such grant. */
static int64_t required_token_end(const struct lease *l, const struct request *request,
                                  struct record *record, const struct view *view)
{
    const struct grant *own = request->verb == VERB_ACQUIRE
                                  ? record_grant_by_request(record, l->options->request.request)
                                  : record_grant_by_token(record, request->token);
    if (own == NULL || !time_is_known(&own->renewed, view))
        return 0;
    return own->renewed.time_ms + own->ttl_ms + view->facts->margin_ms;
}

static void lease_write(struct lease *l, const struct request *request, struct record *record,
                        const struct stamp *at, struct lease_output *out)
{
    if (MUTANT(MARKS_LEFT))
        for (size_t i = 0; i < record->grant_count; i++)
            if (record->grants[i].renewed.revision == at->revision)
                record->grants[i].granted.revision = THIS_WRITE;
    ASSERT(at->revision != 0 || record_needed(record)); /* an absent key is never deleted */
    lease_wake_after(l, request->verb, record, out);
    lease_send(l, record_needed(record) ? ACTION_SWAP : ACTION_DELETE, out);
    if (!l->unsure) /* an absent key counts as revision 1: every later write is above it */
        l->up_to = at->revision > 0 ? stamp_order(at) : 1;
    l->pending = out->verdict.kind;
    l->pending_why = out->verdict.why;
    out->condition.kind = at->revision == 0 ? IF_ABSENT : IF_REVISION;
    out->condition.revision = at->revision > 0 ? stamp_order(at) : 0;
    out->condition.token = required_token(l, request, record);
    if (MUTANT(RELEASE_UNCONDITIONAL) && request->verb == VERB_RELEASE)
        out->condition = (struct condition){.kind = IF_REVISION, .revision = 0};
    if (MUTANT(ACCEPT_UNCONDITIONAL) && out->verdict.accepts)
        out->condition = (struct condition){.kind = IF_REVISION, .revision = 0};
    if (MUTANT(SEEN_THEN_MARK) && request->verb == VERB_MARK)
        out->condition = (struct condition){.kind = IF_REVISION, .revision = 0};
}

/*
 * Decides on a record, then writes or applies the verdict. A write based on an outdated cached
 * record is safe, since the store compares revisions; an outcome is reported only after a read.
 */
static void lease_decide(struct lease *l, struct record *record, const struct stamp *at, bool fresh,
                         struct lease_output *out)
{
    struct request request = request_of(l);
    struct view view = lease_observe(l, record, at, fresh);
    /* The rest of another cooldown is computed from the store's time, which must be current. */
    if (!fresh && request.verb == VERB_RELEASE && request.cooldown_ms > 0 &&
        record->cooling.length_ms > 0) {
        lease_send(l, ACTION_READ, out);
        return;
    }
    lease_wake_dismissed(record, &request, out);
    int64_t ends_ms = required_token_end(l, &request, record, &view);
    out->verdict = rules_decide(record, &request, &view);
    out->decided = true;
    enum verdict_kind kind = out->verdict.kind;
    bool reports = !out->verdict.write || kind == VERDICT_BUSY || kind == VERDICT_COOLING;
    if (reports && !fresh) { /* the copy is older: the block may have ended since */
        out->wake_count = 0;
        lease_send(l, ACTION_READ, out);
        return;
    }
    if (!out->verdict.write) {
        out->wake_count = 0;
        if (kind == VERDICT_GRANTED)
            l->sent_at_ms = MUTANT(OFFER_IS_GRANT)
                                ? l->now_ms
                                : l->sent_at_ms - (at->time_ms - out->verdict.since_ms);
        lease_apply_verdict(l, kind, record, &view, out);
        return;
    }
    if (request.verb == VERB_ACQUIRE)
        lease_move(l, out->verdict.accepts ? LEASE_OFFERED : LEASE_ACQUIRING);
    lease_write(l, &request, record, at, out);
    out->condition.ends_ms = out->condition.token != 0 ? ends_ms : 0;
}

/* Renews or releases by the token alone, where the store can test it: needs no revision. */
static bool send_by_token(struct lease *l, struct lease_output *out)
{
    struct request request = request_of(l);
    bool renews = request.verb == VERB_RENEW && !l->options->facts->renews_by_revision;
    bool releases = request.verb == VERB_RELEASE && request.cooldown_ms == 0;
    if (!l->options->facts->tests_grant || !(renews || releases) || lease_renews_by_session(l))
        return false;
    lease_send(l, renews ? ACTION_SWAP : ACTION_DELETE, out);
    l->pending = VERDICT_DONE;
    l->pending_why = NULL;
    out->condition = (struct condition){.kind = IF_GRANT, .token = request.token};
    return true;
}

static void lease_reread(struct lease *l, struct lease_output *out)
{
    bool may_write_blind =
        l->state == LEASE_RENEWING || (l->state == LEASE_OPERATION && l->serial == 0);
    if (!(may_write_blind && send_by_token(l, out)))
        lease_send(l, ACTION_READ, out);
}

static void begin_renewal(struct lease *l, const struct event *event, struct record *record,
                          struct lease_output *out)
{
    lease_move(l, LEASE_RENEWING);
    l->attempts = 0;
    if (send_by_token(l, out))
        return;
    if (event->known && !lease_renews_by_session(l))
        lease_decide(l, record, &event->at, /* fresh= */ false, out);
    else
        lease_send(l, ACTION_READ, out);
}

static void begin_release(struct lease *l, const struct event *event, struct record *record,
                          enum outcome final, struct lease_output *out)
{
    l->final = final;
    l->final_why = out->why;
    l->unsure = false;
    l->attempts = l->conflicts = 0;
    l->in_flight = false;
    l->reply_by_ms = NEVER;
    l->give_up_at_ms = l->now_ms + l->options->timeout_ms;
    lease_move(l, LEASE_RELEASING);
    if (event->known)
        lease_decide(l, record, &event->at, /* fresh= */ false, out);
    else if (!send_by_token(l, out))
        lease_send(l, ACTION_READ, out);
}

/* Without a cached record, assumes a free key: one round trip if that is right. */
static void send_optimistic(struct lease *l, const struct event *event, struct record *record,
                            struct lease_output *out)
{
    if (!event->known)
        record_init(record, l->options->request.key);
    lease_decide(l, record, event->known ? &event->at : &(struct stamp){0}, /* fresh= */ false,
                 out);
}

/* Break, clear and set must apply to the record that stood when the call began. If their write has
 * no reply, later writes are excluded by `up_to`, which an older copy would set too low. */
static bool starts_with_read(enum verb verb)
{
    return verb == VERB_BREAK || verb == VERB_CLEAR || verb == VERB_SET;
}

static void lease_on_start(struct lease *l, const struct event *event, struct record *record,
                           struct lease_output *out)
{
    const struct lease_options *options = l->options;
    if (options->request.verb != VERB_ACQUIRE) {
        l->give_up_at_ms = l->now_ms + options->timeout_ms;
        lease_move(l, LEASE_OPERATION);
        if (options->request.verb == VERB_MARK && !MUTANT(SEEN_THEN_MARK))
            send_optimistic(l, event, record, out);
        else if (event->known && !starts_with_read(options->request.verb))
            lease_decide(l, record, &event->at, /* fresh= */ false, out);
        else
            lease_reread(l, out);
        return;
    }
    lease_move(l, LEASE_ACQUIRING);
    bool limited = options->wait_ms != WAIT_WITHOUT_LIMIT;
    if (!options->request.waits)
        l->give_up_at_ms = l->now_ms + options->timeout_ms;
    else if (limited)
        l->give_up_at_ms = l->now_ms + options->wait_ms;
    send_optimistic(l, event, record, out);
}

/* An acquiring lease gives up on a failing store (rule 10); a holder tries until its deadline. */
static int64_t store_timeout_at(const struct lease *l)
{
    bool limited_by_trouble = lease_is_acquiring(l) && l->trouble_since_ms != NEVER;
    return limited_by_trouble ? l->trouble_since_ms + l->options->timeout_ms : NEVER;
}

/* No reply, or one with trouble: it is unknown whether the request took effect. */
static void lease_on_trouble(struct lease *l, const struct event *event, struct lease_output *out)
{
    l->in_flight = false;
    l->reply_by_ms = NEVER;
    l->unsure = l->unsure || (l->sent != ACTION_READ && !event->refused);
    if (l->trouble_since_ms == NEVER)
        l->trouble_since_ms = l->sent_at_ms;
    l->next_at_ms = l->now_ms + lease_pause_ms(l, l->attempts);
    l->attempts++;
    if (l->now_ms >= store_timeout_at(l) || lease_is_futile(l, event))
        lease_end(l, OUTCOME_UNAVAILABLE, "the store does not answer", out);
}

/* Holders retry at once. An acquiring lease backs off at random, scaled by the store's latency:
 * where a write takes a millisecond, a longer pause loses to every client that does not pause. */
static void lease_on_conflict(struct lease *l, const struct event *event, struct record *record,
                              struct lease_output *out)
{
    enum { AT_ONCE = 2, LEAST_MS = 2, MOST_MS = 20, DOUBLINGS = 5 };
    if (MUTANT(CONFLICT_LOSES_LEASE) && lease_holds(l)) {
        lease_lose(l, "conflict", out);
        return;
    }
    l->conflicts++;
    if (lease_is_acquiring(l) && l->conflicts > AT_ONCE) {
        uint32_t doublings = l->conflicts - AT_ONCE;
        int64_t step_ms = LEAST_MS + 2 * (l->now_ms - l->sent_at_ms);
        uint64_t most = (uint64_t)(step_ms < MOST_MS ? step_ms : MOST_MS)
                        << (doublings < DOUBLINGS ? doublings : DOUBLINGS);
        l->next_at_ms = l->now_ms + 1 + (int64_t)random_below(&l->random, most);
        return;
    }
    lease_decide(l, record, &event->at, /* fresh= */ true, out);
}

static void lease_on_reply(struct lease *l, const struct event *event, struct record *record,
                           struct lease_output *out)
{
    bool ours = l->in_flight && event->serial == l->serial;
    if (!ours && !(MUTANT(STALE_ANSWER_BELIEVED) && l->in_flight))
        return;
    bool denied = event->reply == REPLY_DENIED;
    if (denied && !lease_holds(l)) {
        lease_end(l, OUTCOME_DENIED, "the store does not permit it", out);
        return;
    }
    if (event->reply == REPLY_INVALID && !lease_holds(l)) {
        lease_end(l, OUTCOME_USAGE, "the store does not lock this key", out);
        return;
    }
    if (event->reply == REPLY_FULL && !lease_holds(l)) {
        lease_end(l, OUTCOME_UNAVAILABLE, "the store is full", out);
        return;
    }
    if (event->reply != REPLY_OK &&
        event->reply != REPLY_CONFLICT) { /* permissions may be restored */
        lease_on_trouble(l, event, out);
        return;
    }
    int64_t trouble_since_ms = l->trouble_since_ms;
    bool was_read = l->sent == ACTION_READ;
    l->in_flight = false;
    l->reply_by_ms = NEVER;
    l->trouble_since_ms = NEVER;
    if (event->reply == REPLY_CONFLICT) {
        lease_on_conflict(l, event, record, out);
    } else if (was_read || l->sent_verb != lease_verb(l)) {
        lease_decide(l, record, &event->at, /* fresh= */ true, out);
        /* If a write follows, the successful read alone does not end the trouble. */
        if (was_read && out->action != ACTION_NONE)
            l->trouble_since_ms = trouble_since_ms;
    } else {
        struct view view = lease_observe(l, record, &event->at, /* seen= */ true);
        lease_apply_verdict(l, l->pending, record, &view, out);
    }
}

/* A notification while waiting: accepts an offer at once, reads the record in unclear cases. */
static void lease_notice_waiting(struct lease *l, const struct event *event, struct record *record,
                                 struct lease_output *out)
{
    const struct waiter *waiter =
        event->known ? record_waiter_by_request(record, l->options->request.request) : NULL;
    if (waiter == NULL || (record->grant_count == 0 && record_offers(record) == 0)) {
        lease_send(l, ACTION_READ, out);
    } else if (waiter->offered) {
        lease_decide(l, record, &event->at, /* fresh= */ false, out);
    } else {
        uint64_t offer = l->observations->offer;
        struct view view = lease_observe(l, record, &event->at, /* seen= */ true);
        int64_t poll_at_ms = lease_next_poll(l, record, &view);
        bool settled = offer != 0 && offer != l->observations->offer;
        if (settled || poll_at_ms < l->next_at_ms) /* settled: it no longer polls for that offer */
            l->next_at_ms = poll_at_ms;
    }
}

/* A notification is a hint and may be outdated: no outcome is reported because of it. */
static void lease_on_notice(struct lease *l, const struct event *event, struct record *record,
                            struct lease_output *out)
{
    if (lease_is_acquiring(l) && l->in_flight) {
        l->noticed = true;
    } else if (l->state == LEASE_WAITING) {
        lease_notice_waiting(l, event, record, out);
    } else if (l->state == LEASE_HELD) {
        const struct grant *grant = event->known ? record_grant_by_token(record, l->token) : NULL;
        if (grant == NULL || grant->broken)
            begin_renewal(l, event, record, out);
    }
}

/* True if a write in flight may be the grant: its reply is awaited even if the wait has ended. */
static bool awaits_grant_reply(const struct lease *l)
{
    return lease_is_acquiring(l) && l->in_flight && l->sent != ACTION_READ &&
           l->pending == VERDICT_GRANTED;
}

/* The wait or the timeout has ended. */
static void lease_give_up(struct lease *l, struct lease_output *out)
{
    bool trouble_now = l->trouble_since_ms != NEVER;
    /* Late grants were released; an unsure lease may still have an entry in the store. */
    bool pauses = l->state == LEASE_ACQUIRING && !l->in_flight && l->late > 0 && !l->unsure;
    if (awaits_grant_reply(l))
        return;
    if (pauses) {
        lease_end(l, OUTCOME_UNAVAILABLE, lease_late_text, out);
    } else if (lease_is_acquiring(l) && l->options->request.waits && trouble_now) {
        lease_leave(l, OUTCOME_UNAVAILABLE, "the store does not answer");
        int64_t last_try_ms = 2 * l->options->facts->reply_timeout_ms;
        if (last_try_ms < l->options->timeout_ms)
            l->give_up_at_ms = l->now_ms + last_try_ms;
    } else if (lease_is_acquiring(l) && l->options->request.waits) {
        lease_leave(l, OUTCOME_BUSY, "not granted within the wait");
    } else if (l->state == LEASE_RELEASING && l->final == OUTCOME_LOST) {
        lease_end(l, OUTCOME_LOST, l->final_why, out);
    } else {
        lease_end(l, OUTCOME_UNAVAILABLE, "the store does not answer", out);
    }
}

static void lease_on_timer(struct lease *l, const struct event *event, struct record *record,
                           struct lease_output *out)
{
    if (l->now_ms >= store_timeout_at(l))
        lease_end(l, OUTCOME_UNAVAILABLE, "the store does not answer", out);
    if (l->in_flight && l->now_ms >= l->reply_by_ms)
        lease_on_trouble(l, event, out);
    if (l->state != LEASE_ENDED && l->now_ms >= l->give_up_at_ms)
        lease_give_up(l, out);
    if (l->now_ms < l->next_at_ms)
        return;
    ASSERT(!l->in_flight);
    if (l->state == LEASE_HELD)
        begin_renewal(l, event, record, out);
    else if (l->state == LEASE_LEAVING && event->known && !l->unsure)
        lease_decide(l, record, &event->at, /* fresh= */ false, out);
    else
        lease_reread(l, out);
}

/* The caller lets go of a wait, of a grant, or, once its work has stopped, of a lost grant. */
static void lease_on_release(struct lease *l, const struct event *event, struct record *record,
                             struct lease_output *out)
{
    if (lease_is_acquiring(l)) {
        lease_leave(l, OUTCOME_BUSY, "cancelled");
        if (!l->in_flight)
            lease_on_timer(l, event, record, out);
    } else if (lease_holds(l)) {
        begin_release(l, event, record, OUTCOME_OK, out);
    } else if (l->state == LEASE_LOST) {
        begin_release(l, event, record, OUTCOME_LOST, out);
    } else if (l->state == LEASE_LEAVING && l->reacquires) {
        l->reacquires = false;
        l->final = OUTCOME_BUSY;
        l->final_why = "cancelled";
    }
}

static void lease_handle(struct lease *l, const struct event *event, struct record *record,
                         struct lease_output *out)
{
    switch (event->kind) {
    case EVENT_START:
        ASSERT(l->state == LEASE_IDLE);
        lease_on_start(l, event, record, out);
        return;
    case EVENT_REPLY:
        lease_on_reply(l, event, record, out);
        return;
    case EVENT_NOTICE:
        lease_on_notice(l, event, record, out);
        return;
    case EVENT_TIMER:
        lease_on_timer(l, event, record, out);
        return;
    case EVENT_RELEASE:
        lease_on_release(l, event, record, out);
        return;
    }
    UNREACHABLE("every event is listed");
}

/* The event came too late, except that the caller may have let go at the same time. */
static void lose_at_deadline(struct lease *l, const struct event *event, struct record *record,
                             struct lease_output *out)
{
    lease_lose(l, "deadline", out);
    if (event->kind == EVENT_RELEASE)
        lease_on_release(l, event, record, out);
}

static int64_t lease_wake_at(const struct lease *l)
{
    int64_t at = l->in_flight ? l->reply_by_ms : l->next_at_ms;
    if (store_timeout_at(l) < at)
        at = store_timeout_at(l);
    if (lease_holds(l) && l->deadline_ms < at && !MUTANT(RENEWAL_FAILURE_IGNORED))
        at = l->deadline_ms;
    return !awaits_grant_reply(l) && l->give_up_at_ms < at ? l->give_up_at_ms : at;
}

void lease_step(struct lease *lease, const struct event *event, struct record *record,
                struct lease_output *out, struct text *trace)
{
    ASSERT(lease->magic == LEASE_MAGIC);
    enum lease_state from = lease->state;
    lease->now_ms = event->now_ms;
    lease->read_ms = event->read_ms;
    lease->alive_ms = event->kind == EVENT_REPLY ? event->alive_ms : 0;
    out->action = ACTION_NONE;
    out->notify = NOTIFY_NONE;
    out->wake_count = out->given_count = out->spare_count = 0;
    out->why = NULL;
    out->decided = false;
    if (lease_holds(lease) && lease->now_ms >= lease->deadline_ms &&
        !MUTANT(RENEWAL_FAILURE_IGNORED))
        lose_at_deadline(lease, event, record, out);
    else
        lease_handle(lease, event, record, out);
    out->wake_at_ms = lease_wake_at(lease);
    lease_trace(lease, from, event, out, trace);
}

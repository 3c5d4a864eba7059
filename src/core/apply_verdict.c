/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a verdict to the lease once it holds: reports it held, keeps it waiting, loses it, ends
 * it. Only this file sets the deadline of rule 3. The only request it sends is a read.
 */
#include "core/lease_internal.h"

#include "base/check.h"
#include "core/mutant.h"

void lease_end(struct lease *l, enum outcome outcome, const char *why, struct lease_output *out)
{
    l->in_flight = false;
    l->reply_by_ms = l->next_at_ms = l->give_up_at_ms = NEVER;
    l->token = 0;
    l->reacquires = false;
    lease_move(l, LEASE_ENDED);
    out->notify = NOTIFY_ENDED;
    out->outcome = outcome;
    out->why = why;
}

/* Holders and releases retry until their deadline. Queued waiters keep their position. */
bool lease_is_futile(const struct lease *l, const struct event *event)
{
    const struct request *request = &l->options->request;
    if (!event->refused || l->unsure)
        return false;
    if (l->state == LEASE_OPERATION)
        return request->verb != VERB_RENEW && request->verb != VERB_RELEASE;
    int64_t timeout_ms = l->trouble_since_ms + l->options->timeout_ms;
    return l->state == LEASE_ACQUIRING && (!request->waits || event->retry_at_ms >= timeout_ms);
}

/*
 * The work must stop; the loss is final. The grant in the store expires by itself, or is released
 * early once the caller reports that the work has stopped.
 */
void lease_lose(struct lease *l, const char *why, struct lease_output *out)
{
    int64_t grace_ms = l->kill_at_ms - l->deadline_ms;
    if (l->now_ms < l->deadline_ms)
        l->kill_at_ms = l->now_ms + grace_ms;
    l->in_flight = false;
    l->reply_by_ms = l->next_at_ms = NEVER;
    lease_move(l, LEASE_LOST);
    out->notify = NOTIFY_LOST;
    out->why = why;
}

/* Counts from before the write was sent (rule 3): two thirds of the TTL, then the kill grace. */
static void set_deadlines(struct lease *l, int64_t start_ms)
{
    int64_t ttl_ms = l->ttl_ms, grace_ms = l->options->kill_grace_ms;
    int64_t rest_ms = ttl_ms - ttl_ms * 2 / 3;
    l->start_ms = MUTANT(DEADLINE_FROM_ANSWER) ? l->now_ms : start_ms;
    l->deadline_ms = l->start_ms + ttl_ms * 2 / 3;
    l->kill_at_ms = l->deadline_ms + (grace_ms < rest_ms / 2 ? grace_ms : rest_ms / 2);
    int64_t jitter = (int64_t)random_below(&l->random, (uint64_t)ttl_ms / 30 + 1);
    l->next_at_ms = l->start_ms + ttl_ms / 3 - jitter;
}

/*
 * The renewal wrote nothing: the lease counts from before the session's last write was sent, never
 * from before an earlier start. If those writes fail, the next reads keep a distance.
 */
static void set_deadlines_by_session(struct lease *l)
{
    int64_t alive_ms = l->alive_ms < l->sent_at_ms ? l->alive_ms : l->sent_at_ms;
    if (MUTANT(SESSION_RENEWED_BY_READ))
        alive_ms = l->sent_at_ms;
    set_deadlines(l, alive_ms > l->start_ms ? alive_ms : l->start_ms);
    int64_t least_ms = l->now_ms + l->ttl_ms / 30;
    if (l->next_at_ms < least_ms)
        l->next_at_ms = least_ms;
}

static const struct grant *lease_own_grant(const struct lease *l, struct record *record)
{
    const struct grant *grant = record_grant_by_request(record, l->options->request.request);
    if (MUTANT(REENTRY_BY_HOLDER) && grant == NULL)
        return &record->grants[0];
    ASSERT(grant != NULL);
    return grant;
}

const char lease_late_text[] = "grants arrive after the lease has ended; use a longer TTL";

/*
 * The first grant whose reply arrives after its deadline, but within its lease, is read again and
 * renewed (rule 9). Any other is released and requested again after a growing pause: a store that
 * is slower than the TTL must not be polled in a loop.
 */
static void lease_late_grant(struct lease *l, struct lease_output *out)
{
    int64_t until_ms = l->give_up_at_ms;
    bool over = l->now_ms >= l->start_ms + l->ttl_ms;
    if (l->late++ == 0 && !over) {
        l->unsure = true; /* the grant is in the store */
        lease_move(l, LEASE_ACQUIRING);
        lease_send(l, ACTION_READ, out);
        return;
    }
    l->unsure = false;
    lease_leave(l, OUTCOME_UNAVAILABLE, lease_late_text);
    l->reacquires = true;
    l->wait_until_ms = until_ms;
}

/* The late grant is out of the store. */
static void reacquire_after_pause(struct lease *l, struct lease_output *out)
{
    l->reacquires = false;
    if (l->now_ms >= l->wait_until_ms) {
        lease_end(l, l->final, l->final_why, out);
        return;
    }
    l->give_up_at_ms = l->wait_until_ms;
    l->final_why = NULL;
    l->attempts = l->conflicts = 0;
    l->next_at_ms = l->now_ms + lease_pause_ms(l, l->late - 1);
    lease_move(l, LEASE_ACQUIRING);
}

static void lease_granted(struct lease *l, const struct grant *grant, int64_t start_ms,
                          struct lease_output *out)
{
    l->ttl_ms = grant->ttl_ms;
    l->ticket = 0;
    set_deadlines(l, start_ms);
    l->attempts = l->conflicts = 0;
    if (l->now_ms >= l->deadline_ms) {
        lease_late_grant(l, out);
        return;
    }
    l->late = 0;
    l->token = grant_token(grant);
    l->unsure = false;
    l->give_up_at_ms = NEVER;
    lease_move(l, LEASE_HELD);
    out->notify = NOTIFY_HELD;
}

static void keep_waiting(struct lease *l, struct record *record, const struct view *view,
                         struct lease_output *out)
{
    const struct waiter *own = record_waiter_by_session(record, l->options->request.session);
    bool returns = l->options->facts->takeover_ms > 0 && own != NULL && own->passed == 0;
    lease_move(l, LEASE_WAITING);
    l->attempts = l->conflicts = 0;
    l->ticket = returns ? own->ticket : 0; /* if its first offer is taken over */
    /* The waiter was queued by a cached record: the blocking grant may have ended since. */
    if (l->noticed || (l->sent == ACTION_SWAP && lease_is_overdue(l, record, view))) {
        lease_send(l, ACTION_READ, out);
    } else {
        l->next_at_ms = lease_next_poll(l, record, view);
    }
    if (!l->notified_waiting)
        out->notify = NOTIFY_WAITING;
    l->notified_waiting = true;
}

void lease_leave(struct lease *l, enum outcome final, const char *why)
{
    l->final = final;
    l->final_why = why;
    l->give_up_at_ms = l->now_ms + l->options->timeout_ms;
    l->next_at_ms = l->in_flight ? NEVER : l->now_ms;
    lease_move(l, LEASE_LEAVING);
}

static void apply_acquire(struct lease *l, enum verdict_kind kind, struct record *record,
                          const struct view *view, struct lease_output *out)
{
    const char *why = out->decided ? out->verdict.why : l->pending_why;
    switch (kind) {
    case VERDICT_GRANTED:
        lease_granted(l, lease_own_grant(l, record), l->sent_at_ms, out);
        return;
    case VERDICT_WAITING:
        keep_waiting(l, record, view, out);
        return;
    case VERDICT_BUSY:
        lease_end(l, OUTCOME_BUSY, why, out);
        return;
    case VERDICT_COOLING:
        lease_end(l, OUTCOME_COOLING, NULL, out);
        return;
    case VERDICT_MISMATCH:
        lease_end(l, OUTCOME_MISMATCH, why, out);
        return;
    case VERDICT_BROKEN: /* granted, reply lost, then broken by an operator: release it */
        lease_leave(l, OUTCOME_BUSY, "broken by an operator");
        return;
    case VERDICT_DONE:
    case VERDICT_STALE:
        UNREACHABLE("an acquire is never done or stale");
    }
    UNREACHABLE("every verdict is listed");
}

static void apply_renewal(struct lease *l, enum verdict_kind kind, struct lease_output *out)
{
    if (kind != VERDICT_DONE) {
        lease_lose(l, kind == VERDICT_BROKEN ? "broken by an operator" : "the grant is gone", out);
        return;
    }
    /* A late reply never gets here: the old deadline has ended the lease before. */
    if (out->decided) /* without a write */
        set_deadlines_by_session(l);
    else
        set_deadlines(l, l->sent_at_ms);
    l->attempts = l->conflicts = 0;
    lease_move(l, LEASE_HELD);
}

/*
 * A release that finds no grant succeeds if an earlier attempt may have done it; with a cooldown,
 * only if the key is cooling. A finished id names its request, so nothing is presumed there.
 */
static bool presumed_done(const struct lease *l, const struct record *record)
{
    if (!l->unsure || l->options->cooldown_ms == 0)
        return l->unsure;
    return record->cooling.length_ms > 0 && record->kind != KIND_ONCE;
}

static void apply_release(struct lease *l, enum verdict_kind kind, const struct record *record,
                          struct lease_output *out)
{
    bool ours = kind == VERDICT_DONE || presumed_done(l, record) || l->final == OUTCOME_LOST;
    lease_end(l, ours ? l->final : OUTCOME_LOST, ours ? l->final_why : "the grant is gone", out);
}

static void apply_operation(struct lease *l, enum verdict_kind kind, const struct record *record,
                            struct lease_output *out)
{
    const char *why = out->decided ? out->verdict.why : l->pending_why;
    bool release = l->options->request.verb == VERB_RELEASE;
    bool presumed = kind == VERDICT_STALE && release && presumed_done(l, record);
    if (kind == VERDICT_DONE || presumed)
        lease_end(l, OUTCOME_OK, why, out);
    else if (kind == VERDICT_MISMATCH)
        lease_end(l, OUTCOME_MISMATCH, why, out);
    else if (kind == VERDICT_BUSY)
        lease_end(l, OUTCOME_BUSY, why, out);
    else if (kind == VERDICT_COOLING)
        lease_end(l, OUTCOME_COOLING, why, out);
    else
        lease_end(l, OUTCOME_STALE, kind == VERDICT_BROKEN ? "broken by an operator" : why, out);
}

void lease_apply_verdict(struct lease *l, enum verdict_kind kind, struct record *record,
                         const struct view *view, struct lease_output *out)
{
    switch (l->state) {
    case LEASE_RENEWING:
        apply_renewal(l, kind, out);
        return;
    case LEASE_RELEASING:
        apply_release(l, kind, record, out);
        return;
    case LEASE_LEAVING:
        if (l->reacquires)
            reacquire_after_pause(l, out);
        else
            lease_end(l, l->final, l->final_why, out);
        return;
    case LEASE_OPERATION:
        apply_operation(l, kind, record, out);
        return;
    default:
        apply_acquire(l, kind, record, view, out);
        return;
    }
}

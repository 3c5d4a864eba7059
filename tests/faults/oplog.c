/* SPDX-License-Identifier: Apache-2.0 */
/* See oplog.h. An entry is complete before it is counted, and answered before it has a result. */
#include "oplog.h"

#include "fixture.h"

enum { NO_OPERATION = -1, US = 1000 };

void oplog_init(struct oplog *oplog, int client)
{
    oplog->client = client;
    atomic_store(&oplog->open, NO_OPERATION);
    atomic_store(&oplog->renewing, NO_OPERATION);
    atomic_store(&oplog->spoiled, false);
    atomic_store(&oplog->leaving, false);
    atomic_store(&oplog->count, 0);
}

static int open_operation(struct oplog *oplog, const struct lease *lease, enum linear_kind kind)
{
    const struct request *request = &lease->options->request;
    size_t index = atomic_load(&oplog->count);
    if (index == OPLOG_MAX) {
        atomic_store(&oplog->spoiled, true);
        return NO_OPERATION;
    }
    oplog->ops[index] =
        (struct linear_op){.key = oplog->key,
                           .kind = kind,
                           .mode = LINEAR_EXCLUSIVE,
                           .waits = request->waits,
                           .client = oplog->client,
                           .result = LINEAR_UNKNOWN,
                           .token = lease->token != 0 ? lease->token : request->token,
                           .ttl_ms = request->ttl_ms * US,
                           .cooldown_ms = lease->options->cooldown_ms * US,
                           .call_ms = fixture_now_us()};
    atomic_store(&oplog->count, index + 1);
    return (int)index;
}

static void close_operation(struct oplog *oplog, _Atomic int *open, enum linear_result result)
{
    int index = atomic_load(open);
    if (index == NO_OPERATION)
        return;
    struct linear_op *op = &oplog->ops[index];
    op->return_ms = fixture_now_us();
    atomic_thread_fence(memory_order_release);
    op->result = result;
    atomic_store(open, NO_OPERATION);
}

static enum linear_result status_of(const struct live_step *step, uint64_t *out_token)
{
    static const enum linear_result results[] = {[KEY_FREE] = LINEAR_FREE,
                                                 [KEY_HELD] = LINEAR_HELD,
                                                 [KEY_OFFERED] = LINEAR_OFFERED,
                                                 [KEY_COOLING] = LINEAR_COOLING,
                                                 [KEY_DELAYED] = LINEAR_UNKNOWN};
    struct view view = {.at = step->event->at, .facts = step->after->options->facts};
    struct key_info key_info = record_key_info(step->record, &view);
    *out_token = key_info.token;
    return results[key_info.state];
}

static void close_errand(struct oplog *oplog, const struct live_step *step)
{
    enum outcome outcome = step->output->outcome;
    enum linear_result result = outcome == OUTCOME_OK      ? LINEAR_OK
                                : outcome == OUTCOME_STALE ? LINEAR_STALE
                                                           : LINEAR_UNKNOWN;
    int index = atomic_load(&oplog->open);
    if (index == NO_OPERATION)
        return;
    struct linear_op *op = &oplog->ops[index];
    if (op->kind == LINEAR_STATUS && result == LINEAR_OK)
        result = status_of(step, &op->token);
    close_operation(oplog, &oplog->open, result);
}

static void start(struct oplog *oplog, const struct live_step *step)
{
    static const enum linear_kind kinds[] = {
        [VERB_ACQUIRE] = LINEAR_ACQUIRE, [VERB_RENEW] = LINEAR_RENEW,
        [VERB_RELEASE] = LINEAR_RELEASE, [VERB_BREAK] = LINEAR_BREAK_NOW,
        [VERB_CLEAR] = LINEAR_CLEAR,     [VERB_QUERY] = LINEAR_STATUS,
        [VERB_LEAVE] = LINEAR_STATUS};
    enum verb verb = step->after->options->request.verb;
    oplog->unsure = false;
    atomic_store(&oplog->open, open_operation(oplog, step->after, kinds[verb]));
}

static void step_renewal(struct oplog *oplog, const struct live_step *step)
{
    enum lease_state from = step->before->state, to = step->after->state;
    if (from == LEASE_HELD && to == LEASE_RENEWING)
        atomic_store(&oplog->renewing, open_operation(oplog, step->after, LINEAR_RENEW));
    if (from == LEASE_RENEWING && to != LEASE_RENEWING)
        close_operation(oplog, &oplog->renewing, to == LEASE_HELD ? LINEAR_OK : LINEAR_UNKNOWN);
}

/* A process that was granted by another's write, and polled late, has renewed that grant. */
static void told_held(struct oplog *oplog, const struct live_step *step)
{
    uint64_t token = step->after->token;
    uint64_t granted_by = (token & (((uint64_t)1 << 55) - 1)) >> 10;
    bool wrote = step->before->in_flight && step->before->sent != ACTION_READ;
    int index = atomic_load(&oplog->open);
    if (index == NO_OPERATION)
        return;
    int64_t call_us = oplog->ops[index].call_ms;
    oplog->ops[index].token = token;
    close_operation(oplog, &oplog->open, LINEAR_OK);
    if (!wrote || granted_by == step->event->at.revision)
        return;
    int renewal = open_operation(oplog, step->after, LINEAR_RENEW);
    if (renewal != NO_OPERATION)
        oplog->ops[renewal].call_ms = call_us;
}

/* Implications of the last reply about the key for this request. */
struct own {
    bool known;
    uint64_t token; /* 0: no grant */
    bool in_line;
};

static struct own find_own(const struct live_step *step)
{
    static struct record record;
    struct event event = {0};
    const char *why = NULL;
    const struct request *request = &step->after->options->request;
    if (step->heard == NULL)
        return (struct own){0};
    translate_reply(step->heard, request->key, &record, &event, &why);
    if (!event.known)
        return (struct own){0};
    const struct grant *grant = record_grant_by_request(&record, request->request);
    return (struct own){.known = true,
                        .token = grant != NULL ? grant_token(grant) : 0,
                        .in_line = record_waiter_by_request(&record, request->request) != NULL};
}

/*
 * A waiter without a queue entry was granted by another's write, and that grant was broken or
 * expired unread: an unreported acquire, in addition to the pending one.
 */
static void note_missed_grant(struct oplog *oplog, const struct live_step *step)
{
    int open = atomic_load(&oplog->open);
    bool waited = step->before->state == LEASE_WAITING && step->before->in_flight;
    if (!waited || step->event->kind != EVENT_REPLY || open == NO_OPERATION)
        return;
    struct own own = find_own(step);
    if (!own.known || own.token != 0 || own.in_line)
        return;
    int missed = open_operation(oplog, step->after, LINEAR_ACQUIRE);
    if (missed != NO_OPERATION)
        oplog->ops[missed].call_ms = oplog->ops[open].call_ms;
}

/*
 * A waiter that gives up also releases an unreported grant. The acquire then stays unknown, since
 * it was granted, and an unreported release follows.
 */
static void note_silent_grant(struct oplog *oplog, const struct live_step *step)
{
    bool writes = step->output->action == ACTION_SWAP || step->output->action == ACTION_DELETE;
    int open = atomic_load(&oplog->open);
    if (step->after->state != LEASE_LEAVING || !writes || open == NO_OPERATION)
        return;
    struct own own = find_own(step);
    if (own.token == 0)
        return;
    int release = open_operation(oplog, step->after, LINEAR_RELEASE);
    if (release == NO_OPERATION)
        return;
    oplog->ops[release].token = own.token;
    oplog->ops[release].cooldown_ms = 0;
    oplog->ops[release].call_ms = oplog->ops[open].call_ms;
    atomic_store(&oplog->open, NO_OPERATION);
}

/* A waiter that gave up before a reply does not know whether the key was busy. */
static enum linear_result ask_result(const struct live_step *step, bool unsure)
{
    enum outcome outcome = step->output->outcome;
    if (unsure)
        return LINEAR_UNKNOWN;
    bool refused = outcome == OUTCOME_BUSY || outcome == OUTCOME_COOLING;
    if (refused && step->after->notified_waiting)
        return LINEAR_BUSY;
    if (outcome == OUTCOME_BUSY && step->after->final_why == NULL)
        return LINEAR_BUSY;
    return outcome == OUTCOME_COOLING ? LINEAR_COOLING : LINEAR_UNKNOWN;
}

static void step_end(struct oplog *oplog, const struct live_step *step)
{
    enum lease_state from = step->before->state;
    if (from == LEASE_OPERATION)
        close_errand(oplog, step);
    else if (from == LEASE_RELEASING)
        close_operation(oplog, &oplog->open,
                        step->output->outcome == OUTCOME_OK ? LINEAR_OK : LINEAR_UNKNOWN);
    else
        close_operation(oplog, &oplog->open, ask_result(step, oplog->unsure));
    atomic_store(&oplog->leaving, false);
}

/* No reply, an error, or a grant that came too late: left to other programs. */
static bool is_beyond_words(const struct live_step *step)
{
    const struct lease *before = step->before, *after = step->after;
    bool grants = before->in_flight && before->sent != ACTION_READ &&
                  before->sent_verb == VERB_ACQUIRE && before->pending == VERDICT_GRANTED;
    bool too_late = grants && step->event->kind == EVENT_REPLY && step->event->reply == REPLY_OK &&
                    step->output->notify != NOTIFY_HELD;
    return after->attempts > before->attempts || after->unsure || too_late;
}

void oplog_write(void *owner, const struct live_step *step)
{
    struct oplog *oplog = owner;
    enum lease_state from = step->before->state, to = step->after->state;
    if (step->event->kind == EVENT_START)
        start(oplog, step);
    if (is_beyond_words(step))
        atomic_store(&oplog->spoiled, true);
    step_renewal(oplog, step);
    if (step->output->notify == NOTIFY_HELD)
        told_held(oplog, step);
    note_missed_grant(oplog, step);
    if (to == LEASE_LEAVING && from != LEASE_LEAVING) {
        atomic_store(&oplog->leaving, true);
        oplog->unsure = step->before->in_flight;
    }
    note_silent_grant(oplog, step);
    if (from == LEASE_LEAVING && to == LEASE_ACQUIRING) /* a late grant is released */
        atomic_store(&oplog->leaving, false);
    if (to == LEASE_RELEASING && from != LEASE_RELEASING) {
        int release = open_operation(oplog, step->after, LINEAR_RELEASE);
        bool lost = from == LEASE_LOST || step->output->notify == NOTIFY_LOST;
        if (lost && release != NO_OPERATION) /* a lost grant starts no cooldown */
            oplog->ops[release].cooldown_ms = 0;
        atomic_store(&oplog->open, release);
    }
    if (to == LEASE_ENDED && from != LEASE_ENDED)
        step_end(oplog, step);
}

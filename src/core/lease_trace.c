/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per step: states, event, verdict, request, notification and deadline. Tests compare
 * these lines literally; people read them.
 */
#include "core/lease_internal.h"

static const char *const event_names[] = {
    [EVENT_START] = "start", [EVENT_REPLY] = "answer",   [EVENT_NOTICE] = "notice",
    [EVENT_TIMER] = "timer", [EVENT_RELEASE] = "let go",
};

static const char *const reply_names[] = {
    [REPLY_OK] = "ok",         [REPLY_CONFLICT] = "conflict", [REPLY_TROUBLE] = "trouble",
    [REPLY_DENIED] = "denied", [REPLY_FULL] = "full",         [REPLY_INVALID] = "invalid",
};

static const char *const verdict_names[] = {
    [VERDICT_GRANTED] = "granted", [VERDICT_WAITING] = "waiting",   [VERDICT_BUSY] = "busy",
    [VERDICT_COOLING] = "cooling", [VERDICT_DONE] = "done",         [VERDICT_STALE] = "stale",
    [VERDICT_BROKEN] = "broken",   [VERDICT_MISMATCH] = "mismatch",
};

static void trace_add_number(struct text *trace, const char *label, uint64_t number)
{
    text_add(trace, label);
    text_add_u64(trace, number);
}

static void trace_add_count(struct text *trace, const char *label, uint16_t count)
{
    if (count > 0)
        trace_add_number(trace, label, count);
}

static void trace_add_verdict(const struct verdict *verdict, struct text *trace)
{
    text_add(trace, "; verdict ");
    text_add(trace, verdict_names[verdict->kind]);
    if (verdict->accepts)
        text_add(trace, " (accepts)");
    trace_add_count(trace, ", expired ", verdict->expired);
    trace_add_count(trace, ", passed on ", verdict->passed_on);
    trace_add_count(trace, ", named ", verdict->offered);
}

static void trace_add_action(const struct lease_output *out, struct text *trace)
{
    static const char *const names[] = {"", "; read", "; swap", "; delete"};
    text_add(trace, names[out->action]);
    if (out->action < ACTION_SWAP)
        return;
    if (out->condition.kind == IF_ABSENT)
        text_add(trace, " if absent");
    else if (out->condition.kind == IF_GRANT)
        trace_add_number(trace, " if token stands ", out->condition.token);
    else
        trace_add_number(trace, " if revision ", out->condition.revision & REVISION_MAX);
    if (out->condition.kind == IF_REVISION && out->condition.revision > REVISION_MAX)
        trace_add_number(trace, " of epoch ", out->condition.revision >> 45);
    if (out->wake_count > 0)
        trace_add_number(trace, ", wakes ", out->wake_count);
}

static void trace_add_notify(const struct lease *lease, const struct lease_output *out,
                             struct text *trace)
{
    static const char *const names[] = {"", "; told waiting", "; told held", "; told lost",
                                        "; told "};
    text_add(trace, names[out->notify]);
    if (out->notify == NOTIFY_ENDED)
        text_add(trace, outcome_name(out->outcome));
    if (out->why != NULL) {
        text_add(trace, " (");
        text_add(trace, out->why);
        text_add(trace, ")");
    }
    if (out->notify == NOTIFY_HELD)
        trace_add_number(trace, ", token ", lease->token);
    if (lease->state == LEASE_HELD) {
        text_add(trace, "; deadline ");
        text_add_i64(trace, lease->deadline_ms);
    }
    if (out->notify == NOTIFY_HELD || out->notify == NOTIFY_LOST) {
        text_add(trace, ", kill ");
        text_add_i64(trace, lease->kill_at_ms);
    }
}

void lease_trace(const struct lease *lease, enum lease_state from, const struct event *event,
                 const struct lease_output *out, struct text *trace)
{
    if (trace == NULL)
        return;
    text_add(trace, lease_state_name(from));
    text_add(trace, " + ");
    text_add(trace, event_names[event->kind]);
    if (event->kind == EVENT_REPLY) {
        text_add(trace, " ");
        text_add(trace, reply_names[event->reply]);
    }
    text_add(trace, " -> ");
    text_add(trace, lease_state_name(lease->state));
    if (out->decided)
        trace_add_verdict(&out->verdict, trace);
    trace_add_action(out, trace);
    trace_add_notify(lease, out, trace);
}

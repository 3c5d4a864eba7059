/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per decision: from which state to which, on what event, by what verdict, what is sent,
 * what is told, and when to wake. Tests compare these lines text for text, people read them.
 */
#include "core/lease_inside.h"

static const char *const event_names[] = {
    [EVENT_START] = "start", [EVENT_ANSWER] = "answer", [EVENT_NOTICE] = "notice",
    [EVENT_TIMER] = "timer", [EVENT_LET_GO] = "let go",
};

static const char *const answer_names[] = {
    [ANSWER_OK] = "ok",         [ANSWER_CONFLICT] = "conflict", [ANSWER_TROUBLE] = "trouble",
    [ANSWER_DENIED] = "denied", [ANSWER_FULL] = "full",
};

static const char *const verdict_names[] = {
    [VERDICT_GRANTED] = "granted", [VERDICT_WAITING] = "waiting",   [VERDICT_BUSY] = "busy",
    [VERDICT_COOLING] = "cooling", [VERDICT_DONE] = "done",         [VERDICT_STALE] = "stale",
    [VERDICT_BROKEN] = "broken",   [VERDICT_MISMATCH] = "mismatch",
};

static void add_number(struct text *trace, const char *words, uint64_t number)
{
    text_add(trace, words);
    text_add_u64(trace, number);
}

static void add_count(struct text *trace, const char *words, uint16_t count)
{
    if (count > 0)
        add_number(trace, words, count);
}

static void add_verdict(const struct verdict *verdict, struct text *trace)
{
    text_add(trace, "; verdict ");
    text_add(trace, verdict_names[verdict->kind]);
    if (verdict->accepts)
        text_add(trace, " (accepts)");
    add_count(trace, ", expired ", verdict->expired);
    add_count(trace, ", passed on ", verdict->passed_on);
    add_count(trace, ", named ", verdict->offered);
}

static void add_action(const struct lease_output *out, struct text *trace)
{
    static const char *const names[] = {"", "; read", "; swap", "; delete"};
    text_add(trace, names[out->action]);
    if (out->action < ACTION_SWAP)
        return;
    if (out->condition.kind == IF_ABSENT)
        text_add(trace, " if absent");
    else if (out->condition.kind == IF_GRANT)
        add_number(trace, " if token stands ", out->condition.token);
    else
        add_number(trace, " if revision ", out->condition.revision);
    if (out->poke_count > 0)
        add_number(trace, ", wakes ", out->poke_count);
}

static void add_told(const struct lease *lease, const struct lease_output *out, struct text *trace)
{
    static const char *const names[] = {"", "; told waiting", "; told held", "; told lost",
                                        "; told "};
    text_add(trace, names[out->told]);
    if (out->told == TOLD_ENDED)
        text_add(trace, outcome_word(out->outcome));
    if (out->why != NULL) {
        text_add(trace, " (");
        text_add(trace, out->why);
        text_add(trace, ")");
    }
    if (out->told == TOLD_HELD)
        add_number(trace, ", token ", lease->token);
    if (lease->state == LEASE_HELD) {
        text_add(trace, "; deadline ");
        text_add_i64(trace, lease->deadline_ms);
    }
    if (out->told == TOLD_HELD || out->told == TOLD_LOST) {
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
    if (event->kind == EVENT_ANSWER) {
        text_add(trace, " ");
        text_add(trace, answer_names[event->answer]);
    }
    text_add(trace, " -> ");
    text_add(trace, lease_state_name(lease->state));
    if (out->decided)
        add_verdict(&out->verdict, trace);
    add_action(out, trace);
    add_told(lease, out, trace);
}

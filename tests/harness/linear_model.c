/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of one key. Every rule states what a result needs: grants that are current, grants that
 * have ended, a cooldown that runs or is over. This file must not search: where a result fits
 * several grants, the caller names the choice.
 */
#include "linear_model.h"

#include <assert.h>

/* A result names an unknown token: the chosen unanswered acquire may have it. */
static bool bind_token(struct linear_step *step, struct linear_state *state, size_t index)
{
    struct linear_grant *grant = &state->grants[index];
    uint64_t token = step->op->token;
    if (grant->token != 0 || token <= grant->above || token >= grant->below) {
        return false;
    }
    grant->token = token;
    grant->above = 0;
    grant->below = 0;
    if (token > state->highest) {
        state->highest = token;
    }
    step->changed = true;
    return true;
}

/* The grant that has the operation's token and is current, or can be revived. */
static bool find_grant(struct linear_step *step, struct linear_state *state, bool lapsed_too,
                       size_t *out_index)
{
    uint64_t token = step->op->token;
    size_t index = 0;
    while (index < state->grant_count && state->grants[index].token != token) {
        index++;
    }
    step->wants_token = step->foreign && index == state->grant_count;
    if (step->wants_token && state->grant_count > 0) {
        step->choices = state->grant_count;
        index = step->choice;
        if (!bind_token(step, state, index)) {
            return linear_refuse(step, LINEAR_REASON_NOT_STANDING, token, 0);
        }
    }
    if (index == state->grant_count || (state->grants[index].lapsed && !lapsed_too)) {
        return linear_refuse(step, LINEAR_REASON_NOT_STANDING, token, 0);
    }
    *out_index = index;
    return true;
}

static uint32_t wanted_limit(const struct linear_op *op)
{
    return op->mode == LINEAR_SEMAPHORE ? op->limit : 0;
}

static bool stands_beside(const struct linear_state *state, const struct linear_op *op)
{
    return op->mode != LINEAR_EXCLUSIVE && state->mode == op->mode &&
           state->limit == wanted_limit(op);
}

static bool is_opposed(const struct linear_state *state, const struct linear_op *op)
{
    size_t standing = linear_standing_count(state);
    if (standing == 0) {
        return false;
    }
    return !stands_beside(state, op) || (op->mode == LINEAR_SEMAPHORE && standing >= op->limit);
}

/* Of a full semaphore one slot must have expired, and later results depend on which one. */
static bool make_room(struct linear_step *step, struct linear_state *state)
{
    if (!is_opposed(state, step->op)) {
        return true;
    }
    if (!stands_beside(state, step->op)) {
        return linear_expire_all(step, state);
    }
    step->choices = state->grant_count;
    if (state->grants[step->choice].lapsed) {
        return linear_refuse(step, LINEAR_REASON_HELD, state->grants[step->choice].token, 0);
    }
    return linear_expire(step, state, step->choice);
}

static bool add_grant(struct linear_step *step, struct linear_state *state,
                      struct linear_grant grant)
{
    for (size_t i = state->grant_count; i-- > 0;) {
        if (state->grants[i].lapsed) {
            linear_drop_grant(state, i); /* its place is taken now */
        }
    }
    if (state->grant_count == LINEAR_GRANTS_MAX) {
        return linear_refuse(step, LINEAR_REASON_TOO_MANY, 0, 0);
    }
    state->grants[state->grant_count++] = grant;
    state->mode = step->op->mode;
    state->limit = wanted_limit(step->op);
    step->changed = true;
    return true;
}

static bool acquire_granted(struct linear_step *step, struct linear_state *state)
{
    const struct linear_op *op = step->op;
    if (!linear_end_cooldown(step, state) || !make_room(step, state)) {
        return false;
    }
    if (op->token <= state->highest) {
        return linear_refuse(step, LINEAR_REASON_TOKEN_OLD, state->highest, 0);
    }
    for (size_t i = 0; i < state->grant_count; i++) {
        if (state->grants[i].token == 0 && state->grants[i].below > op->token) {
            state->grants[i].below = op->token;
        }
    }
    state->highest = op->token;
    if (op->mode == LINEAR_EXCLUSIVE) {
        linear_empty_at(step, state, state->clock_ms);
    }
    return add_grant(step, state,
                     (struct linear_grant){
                         .token = op->token,
                         .may_end_ms = linear_first_end(step, state->clock_ms, op->ttl_ms),
                         .must_end_ms = linear_last_end(step, step->latest_ms, op->ttl_ms),
                     });
}

/*
 * The reply was lost, so the grant may be older than the moment at which it is first needed: not
 * older than a conflicting grant's end, but older than a concurrent slot, and even than the current
 * cooldown if it was concurrent with the grant that was released.
 */
static bool acquire_unanswered(struct linear_step *step, struct linear_state *state)
{
    const struct linear_op *op = step->op;
    step->gone_ms = op->call_ms;
    if (op->mode == LINEAR_EXCLUSIVE || state->vacant_ms == LINEAR_FOREVER_MS) {
        if (!linear_end_cooldown(step, state)) {
            return false;
        }
    }
    bool beside = stands_beside(state, op);
    if (!make_room(step, state)) {
        return false;
    }
    int64_t since_ms = beside ? op->call_ms : step->gone_ms;
    since_ms = since_ms > state->vacant_ms ? since_ms : state->vacant_ms;
    uint64_t above = state->vacant_highest;
    if (above >= UINT64_MAX - 1) {
        return linear_refuse(step, LINEAR_REASON_TOKEN_OLD, above, 0);
    }
    if (state->highest == above) {
        state->highest++;
    }
    int64_t may_end_ms = linear_first_end(step, since_ms, op->ttl_ms);
    int64_t must_end_ms = linear_last_end(step, step->latest_ms, op->ttl_ms);
    if (op->result == LINEAR_UNHEARD) { /* the waiter has left by then, or holds by another grant */
        may_end_ms = may_end_ms < op->return_ms ? may_end_ms : op->return_ms;
        must_end_ms = must_end_ms < op->return_ms ? must_end_ms : op->return_ms;
    }
    return add_grant(step, state,
                     (struct linear_grant){
                         .above = above,
                         .below = UINT64_MAX,
                         .may_end_ms = may_end_ms,
                         .must_end_ms = must_end_ms,
                     });
}

static bool acquire(struct linear_step *step, struct linear_state *state)
{
    switch (step->op->result) {
    case LINEAR_BUSY:
        return is_opposed(state, step->op) ||
               linear_wait_until(step, state, step->queue_from_ms, LINEAR_REASON_NOT_BUSY, 0);
    case LINEAR_COOLING:
        return state->cooling || linear_refuse(step, LINEAR_REASON_NOT_COOLING, 0, 0);
    case LINEAR_UNKNOWN:
    case LINEAR_UNHEARD:
        return acquire_unanswered(step, state);
    default:
        return acquire_granted(step, state);
    }
}

static bool stale(struct linear_step *step, struct linear_state *state)
{
    for (size_t i = 0; i < state->grant_count; i++) {
        if (state->grants[i].token == step->op->token) {
            return linear_expire(step, state, i);
        }
    }
    return true;
}

/* The last moment at which a renew or release of a current grant can have happened. */
static int64_t latest_while_standing(const struct linear_step *step,
                                     const struct linear_grant *grant)
{
    if (step->options->revive || grant->must_end_ms > step->latest_ms) {
        return step->latest_ms;
    }
    return grant->must_end_ms;
}

/* An unknown result counts as ok, here and below: it is only placed where it had an effect. */
static bool renew(struct linear_step *step, struct linear_state *state)
{
    size_t index = 0;
    if (step->op->result == LINEAR_STALE) {
        return stale(step, state);
    }
    if (!find_grant(step, state, /* lapsed_too= */ true, &index)) {
        return false;
    }
    struct linear_grant *grant = &state->grants[index];
    int64_t latest_ms = latest_while_standing(step, grant);
    grant->lapsed = false;
    grant->may_end_ms = linear_first_end(step, state->clock_ms, step->op->ttl_ms);
    grant->must_end_ms = linear_last_end(step, latest_ms, step->op->ttl_ms);
    step->changed = true;
    return true;
}

static bool release(struct linear_step *step, struct linear_state *state)
{
    size_t index = 0;
    if (step->op->result == LINEAR_STALE) {
        return stale(step, state);
    }
    if (!find_grant(step, state, /* lapsed_too= */ true, &index)) {
        return false;
    }
    int64_t latest_ms = latest_while_standing(step, &state->grants[index]);
    bool cools = step->op->cooldown_ms > 0;
    if (cools) {
        linear_start_cooling(step, state, latest_ms);
    }
    if (state->mode == LINEAR_EXCLUSIVE) {
        linear_empty_at(step, state, cools ? LINEAR_FOREVER_MS : state->clock_ms);
    }
    linear_drop_grant(state, index);
    step->changed = true;
    return true;
}

static bool status(struct linear_step *step, struct linear_state *state)
{
    size_t index = 0;
    switch (step->op->result) {
    case LINEAR_HELD:
        return find_grant(step, state, /* lapsed_too= */ false, &index);
    case LINEAR_COOLING:
        return state->cooling || linear_refuse(step, LINEAR_REASON_NOT_COOLING, 0, 0);
    default:
        if ((step->op->result == LINEAR_FREE && !linear_end_cooldown(step, state)) ||
            !linear_expire_all(step, state)) {
            return false;
        }
        linear_empty_at(step, state, state->clock_ms);
        return true;
    }
}

/* A break or clear counts as a change even if it finds nothing: elsewhere it may find something. */
static bool end_by_force(struct linear_step *step, struct linear_state *state)
{
    bool breaks = step->op->kind == LINEAR_BREAK_NOW;
    bool finds = breaks ? state->grant_count > 0 : state->cooling;
    if (step->op->result == LINEAR_UNKNOWN && !finds) {
        return linear_refuse(step, LINEAR_REASON_NO_EFFECT, 0, 0);
    }
    if (breaks) {
        state->grant_count = 0;
        linear_empty_at(step, state, state->clock_ms);
    } else {
        linear_stop_cooling(step, state, state->clock_ms);
    }
    step->changed = true;
    return true;
}

static bool apply(struct linear_step *step, struct linear_state *state)
{
    switch (step->op->kind) {
    case LINEAR_ACQUIRE:
        return acquire(step, state);
    case LINEAR_RENEW:
        return renew(step, state);
    case LINEAR_RELEASE:
        return release(step, state);
    case LINEAR_STATUS:
        return status(step, state);
    default:
        return end_by_force(step, state);
    }
}

bool linear_model_step(struct linear_step *step, struct linear_state *state)
{
    step->choices = 1;
    step->wants_token = false;
    step->changed = false;
    step->gone_ms = 0;
    step->reason = LINEAR_REASON_NONE;
    if (step->op->call_ms > state->clock_ms) {
        state->clock_ms = step->op->call_ms;
    }
    assert(state->clock_ms <= step->latest_ms);
    linear_settle(step, state);
    step->changed = false;
    if (!apply(step, state)) {
        return false;
    }
    bool changed = step->changed;
    linear_settle(step, state);
    step->changed = changed;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of one key's state that do not depend on the operation: time passing, leases and
 * cooldowns that expire or must have expired for a result, and the form in which states are
 * compared. Requiring a grant to have ended may move the clock to the first moment at which that is
 * possible. A grant is removed at its last possible end, so it cannot be required as current after
 * that. This file must not use kinds of operations or results; linear_model.c has the rules.
 */
#include "linear_state.h"

#include <assert.h>
#include <string.h>

/* Adds durations to moments; both may be LINEAR_FOREVER_MS, none is negative. */
static int64_t later_by(int64_t moment_ms, int64_t length_ms)
{
    return moment_ms > LINEAR_FOREVER_MS - length_ms ? LINEAR_FOREVER_MS : moment_ms + length_ms;
}

int64_t linear_first_end(const struct linear_step *step, int64_t from_ms, int64_t length_ms)
{
    int64_t end_ms = later_by(from_ms, length_ms);
    if (end_ms == LINEAR_FOREVER_MS) {
        return end_ms;
    }
    return end_ms > step->options->slack_ms ? end_ms - step->options->slack_ms : 0;
}

int64_t linear_last_end(const struct linear_step *step, int64_t from_ms, int64_t length_ms)
{
    return later_by(later_by(from_ms, length_ms), step->options->slack_ms);
}

bool linear_refuse(struct linear_step *step, enum linear_reason reason, uint64_t token,
                   int64_t moment_ms)
{
    step->reason = reason;
    step->reason_token = token;
    step->reason_ms = moment_ms;
    return false;
}

bool linear_wait_until(struct linear_step *step, struct linear_state *state, int64_t from_ms,
                       enum linear_reason reason, uint64_t token)
{
    if (from_ms > step->latest_ms) {
        return linear_refuse(step, reason, token, from_ms);
    }
    if (from_ms > state->clock_ms) {
        state->clock_ms = from_ms;
        step->changed = true;
    }
    if (from_ms > step->gone_ms) {
        step->gone_ms = from_ms;
    }
    return true;
}

void linear_empty_at(struct linear_step *step, struct linear_state *state, int64_t moment_ms)
{
    if (!step->unanswered || moment_ms < state->vacant_ms) {
        return;
    }
    step->changed = step->changed || moment_ms > state->vacant_ms;
    state->vacant_ms = moment_ms;
    state->vacant_highest = state->highest;
}

void linear_drop_grant(struct linear_state *state, size_t index)
{
    assert(index < state->grant_count);
    state->grant_count--;
    memmove(&state->grants[index], &state->grants[index + 1],
            (state->grant_count - index) * sizeof(state->grants[0]));
}

/* The lease expired, at its first possible end or later. */
static void lapse(struct linear_step *step, struct linear_state *state, size_t index)
{
    struct linear_grant *grant = &state->grants[index];
    if (state->mode == LINEAR_EXCLUSIVE) {
        linear_empty_at(step, state, grant->may_end_ms);
    }
    if (!step->options->revive) {
        linear_drop_grant(state, index);
        return;
    }
    grant->lapsed = true;
    grant->may_end_ms = 0;
    grant->must_end_ms = 0;
}

void linear_stop_cooling(struct linear_step *step, struct linear_state *state, int64_t moment_ms)
{
    state->cooling = false;
    state->cooling_may_end_ms = 0;
    state->cooling_must_end_ms = 0;
    if (state->vacant_ms == LINEAR_FOREVER_MS) {
        state->vacant_ms = 0;
        linear_empty_at(step, state, moment_ms);
    }
}

static bool sorts_before(const struct linear_grant *a, const struct linear_grant *b)
{
    if (a->token != b->token) {
        return a->token < b->token;
    }
    return a->may_end_ms != b->may_end_ms ? a->may_end_ms < b->may_end_ms
                                          : a->must_end_ms < b->must_end_ms;
}

/* The order of grants has no meaning, so there is only one. */
static void sort_grants(struct linear_state *state)
{
    for (size_t i = 1; i < state->grant_count; i++) {
        struct linear_grant grant = state->grants[i];
        size_t at = i;
        for (; at > 0 && sorts_before(&grant, &state->grants[at - 1]); at--) {
            state->grants[at] = state->grants[at - 1];
        }
        state->grants[at] = grant;
    }
}

/*
 * Ends what must have ended by now, and drops what no longer distinguishes two states: a lease
 * whose earliest end is in the past equals one that may end now, unless an acquire without a reply
 * may have followed it in between.
 */
void linear_settle(struct linear_step *step, struct linear_state *state)
{
    for (size_t i = state->grant_count; i-- > 0;) {
        struct linear_grant *grant = &state->grants[i];
        if (grant->lapsed) {
            continue;
        }
        if (grant->must_end_ms < state->clock_ms) {
            lapse(step, state, i);
        } else if (grant->may_end_ms < state->clock_ms && !step->unanswered) {
            grant->may_end_ms = state->clock_ms;
        }
    }
    if (state->grant_count == 0) {
        state->mode = LINEAR_EXCLUSIVE;
        state->limit = 0;
    }
    if (state->cooling && state->cooling_must_end_ms < state->clock_ms) {
        linear_stop_cooling(step, state, state->cooling_may_end_ms);
    } else if (state->cooling && state->cooling_may_end_ms < state->clock_ms && !step->unanswered) {
        state->cooling_may_end_ms = state->clock_ms;
    }
    sort_grants(state);
}

size_t linear_standing_count(const struct linear_state *state)
{
    size_t count = 0;
    for (size_t i = 0; i < state->grant_count; i++) {
        count += state->grants[i].lapsed ? 0 : 1;
    }
    return count;
}

bool linear_expire(struct linear_step *step, struct linear_state *state, size_t index)
{
    const struct linear_grant *grant = &state->grants[index];
    if (grant->lapsed) {
        return true;
    }
    if (!linear_wait_until(step, state, grant->may_end_ms, LINEAR_REASON_HELD, grant->token)) {
        return false;
    }
    step->changed = true;
    lapse(step, state, index);
    return true;
}

bool linear_expire_all(struct linear_step *step, struct linear_state *state)
{
    for (size_t i = state->grant_count; i-- > 0;) {
        if (!linear_expire(step, state, i)) {
            return false;
        }
    }
    return true;
}

bool linear_end_cooldown(struct linear_step *step, struct linear_state *state)
{
    if (!state->cooling) {
        return true;
    }
    if (!linear_wait_until(step, state, state->cooling_may_end_ms, LINEAR_REASON_COOLS, 0)) {
        return false;
    }
    step->changed = true;
    linear_stop_cooling(step, state, state->cooling_may_end_ms);
    return true;
}

void linear_start_cooling(const struct linear_step *step, struct linear_state *state,
                          int64_t latest_ms)
{
    int64_t first_ms = linear_first_end(step, state->clock_ms, step->op->cooldown_ms);
    int64_t last_ms = linear_last_end(step, latest_ms, step->op->cooldown_ms);
    state->cooling = true;
    if (first_ms > state->cooling_may_end_ms) {
        state->cooling_may_end_ms = first_ms;
    }
    if (last_ms > state->cooling_must_end_ms) {
        state->cooling_must_end_ms = last_ms;
    }
}

void linear_state_init(struct linear_state *state)
{
    state->clock_ms = 0;
    state->highest = 0;
    state->vacant_ms = 0;
    state->vacant_highest = 0;
    state->cooling = false;
    state->cooling_may_end_ms = 0;
    state->cooling_must_end_ms = 0;
    state->mode = LINEAR_EXCLUSIVE;
    state->limit = 0;
    state->grant_count = 0;
}

/* Most grants of most states are unused, so the struct is not copied as a whole. */
void linear_state_copy(struct linear_state *to, const struct linear_state *from)
{
    memcpy(to, from, offsetof(struct linear_state, grants));
    memcpy(to->grants, from->grants, from->grant_count * sizeof(from->grants[0]));
}

size_t linear_state_pack_key(const struct linear_state *state, uint64_t *out_words)
{
    size_t n = 0;
    out_words[n++] = (uint64_t)state->mode << 32 | state->limit;
    out_words[n++] = (uint64_t)state->grant_count << 1 | (state->cooling ? 1 : 0);
    for (size_t i = 0; i < state->grant_count; i++) {
        out_words[n++] = state->grants[i].token;
        out_words[n++] = state->grants[i].lapsed ? 1 : 0;
    }
    return n;
}

/*
 * Earlier events, earlier first ends and later last ends allow more: a result needs grants ended
 * from a moment on, or current up to one, never the other way round.
 */
size_t linear_state_pack_bounds(const struct linear_state *state, uint64_t *out_words)
{
    size_t n = 0;
    out_words[n++] = (uint64_t)state->clock_ms;
    out_words[n++] = state->highest;
    out_words[n++] = (uint64_t)state->vacant_ms;
    out_words[n++] = state->vacant_highest;
    out_words[n++] = (uint64_t)state->cooling_may_end_ms;
    out_words[n++] = (uint64_t)(LINEAR_FOREVER_MS - state->cooling_must_end_ms);
    for (size_t i = 0; i < state->grant_count; i++) {
        const struct linear_grant *grant = &state->grants[i];
        out_words[n++] = grant->above;
        out_words[n++] = UINT64_MAX - grant->below;
        out_words[n++] = (uint64_t)grant->may_end_ms;
        out_words[n++] = (uint64_t)(LINEAR_FOREVER_MS - grant->must_end_ms);
    }
    return n;
}

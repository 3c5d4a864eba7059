/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one key, and one step of it. Times are bounds, not points, because the moment of an
 * effect is unknown: the clock is the earliest moment of the next one, and a lease has a first and
 * a last possible end. A lease that may have ended is kept until a result needs it ended, so no
 * guess is made early. It must not use other operations of the history: the step has what it needs
 * of them.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_STATE_H
#define LEASEHOLD_TESTS_LINEAR_STATE_H

#include "linear.h"

struct linear_grant {
    uint64_t token; /* 0: of an unanswered acquire, unknown yet: greater than ... */
    uint64_t above;
    uint64_t below; /* ... and less than this */
    int64_t may_end_ms;
    int64_t must_end_ms;
    bool lapsed; /* ended, but can be revived */
};

struct linear_state {
    int64_t clock_ms;
    uint64_t highest; /* no token up to this one can be granted */
    /*
     * An unanswered acquire is placed where its grant is first needed, but may have been granted
     * before, back to here: the last moment at which no such grant can have existed. It is
     * LINEAR_FOREVER_MS while a cooldown keeps the key empty.
     */
    int64_t vacant_ms;
    uint64_t vacant_highest; /* the highest token then */
    bool cooling;
    int64_t cooling_may_end_ms;
    int64_t cooling_must_end_ms;
    enum linear_mode mode; /* of all grants: concurrent ones have one mode and limit */
    uint32_t limit;
    size_t grant_count;
    struct linear_grant grants[LINEAR_GRANTS_MAX];
};

/* The maximum number of words of the two packers below. */
#define LINEAR_STATE_KEY_MAX    (2 + 2 * LINEAR_GRANTS_MAX)
#define LINEAR_STATE_BOUNDS_MAX (6 + 4 * LINEAR_GRANTS_MAX)

enum linear_reason {
    LINEAR_REASON_NONE,
    LINEAR_REASON_HELD,
    LINEAR_REASON_COOLS,
    LINEAR_REASON_NOT_COOLING,
    LINEAR_REASON_TOKEN_OLD,
    LINEAR_REASON_TOKEN_EARLY, /* set by the search: a smaller token is granted later */
    LINEAR_REASON_NOT_STANDING,
    LINEAR_REASON_NOT_BUSY,
    LINEAR_REASON_NO_EFFECT,
    LINEAR_REASON_TOO_MANY,
};

struct linear_step {
    const struct linear_options *options;
    const struct linear_op *op;
    int64_t latest_ms;     /* the operation takes effect at or before this */
    int64_t queue_from_ms; /* from here on another acquire is queued; LINEAR_FOREVER_MS: never */
    bool foreign;          /* no answered acquire of the history returned this token */
    bool unanswered;       /* unanswered acquires are left that may be placed later */
    size_t choice;         /* the grant of this step, if there is a choice; otherwise 0 */

    size_t choices;            /* out: choices to try for this operation in this state */
    bool wants_token;          /* out: only a grant of an unanswered acquire can have its token */
    bool changed;              /* out: a change other than time passing */
    int64_t gone_ms;           /* out: the earliest moment of the required ends */
    enum linear_reason reason; /* out, if refused */
    uint64_t reason_token;
    int64_t reason_ms;
};

void linear_state_init(struct linear_state *state);
void linear_state_copy(struct linear_state *to, const struct linear_state *from);

/*
 * The state as words, in two parts; each function returns their number. Of two states with the same
 * key part, one whose bounds are all no greater allows every result that the other allows, now and
 * later.
 */
size_t linear_state_pack_key(const struct linear_state *state, uint64_t *out_words);
size_t linear_state_pack_bounds(const struct linear_state *state, uint64_t *out_words);

/* The earliest and the latest end of a lease or cooldown that starts at `from_ms`. */
int64_t linear_first_end(const struct linear_step *step, int64_t from_ms, int64_t length_ms);
int64_t linear_last_end(const struct linear_step *step, int64_t from_ms, int64_t length_ms);

/* Sets the reason and returns false. */
bool linear_refuse(struct linear_step *step, enum linear_reason reason, uint64_t token,
                   int64_t moment_ms);

/* The result is possible only from `from_ms` on: moves the clock, or refuses. */
bool linear_wait_until(struct linear_step *step, struct linear_state *state, int64_t from_ms,
                       enum linear_reason reason, uint64_t token);

/* No grant of an unanswered acquire that was made before this moment is current after it. */
void linear_empty_at(struct linear_step *step, struct linear_state *state, int64_t moment_ms);

/* Ends what must have ended by the clock, and normalizes the state for comparison. */
void linear_settle(struct linear_step *step, struct linear_state *state);

size_t linear_standing_count(const struct linear_state *state);
void linear_drop_grant(struct linear_state *state, size_t index);

/* The result needs these to have expired. */
bool linear_expire(struct linear_step *step, struct linear_state *state, size_t index);
bool linear_expire_all(struct linear_step *step, struct linear_state *state);
bool linear_end_cooldown(struct linear_step *step, struct linear_state *state);

void linear_start_cooling(const struct linear_step *step, struct linear_state *state,
                          int64_t latest_ms);
void linear_stop_cooling(struct linear_step *step, struct linear_state *state, int64_t moment_ms);

#endif

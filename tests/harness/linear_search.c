/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a legal order: depth first over the operations that may come next, with a set of
 * visited states (after Wing and Gong, and Lowe). An unanswered operation is placed where it helps,
 * or never. Four reductions keep the search small without changing a verdict, each argued at its
 * function: a result that only reads is placed at once, some orders are fixed in advance, a lost
 * acquire is placed only when needed, and a state that allows no more than a visited one is
 * skipped. This file must not contain the lock's rules; linear_model.c has them.
 */
#include "linear_search.h"

#include "linear_memo.h"
#include "linear_model.h"
#include "linear_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_INDEX  SIZE_MAX
#define SET_WORDS (LINEAR_KEY_OPS_MAX / 64)

struct entry {
    const struct linear_op *op;
    bool unknown;
    bool unheard; /* the grant of a waiter that did not receive it */
    bool foreign; /* has a token that no answered acquire of the key returned */
    size_t after; /* an operation that must be placed before it, or NO_INDEX */
};

/* One level of the search: the lock after the operations placed so far, and the tried ones. */
struct frame {
    size_t placed;     /* the operation that led here */
    int64_t latest_ms; /* first return among the answered operations left */
    size_t only;       /* try only this operation */
    bool unanswered;   /* acquires without a reply are left */
    bool wants_grant;  /* a result found no place, and one of them might explain it ... */
    bool wants_writer; /* ... or one of them that is not shared, ... */
    bool wants_token;  /* ... or one whose token is shown */
    bool on_unknown;   /* the answered operations were all tried */
    size_t index;
    size_t choice;
    struct linear_state state;
};

struct search {
    const struct linear_options *options;
    struct entry *entries; /* in the order of their calls */
    size_t count;
    size_t answered;
    size_t left; /* answered operations not placed */
    uint64_t placed[SET_WORDS];
    uint64_t unknown[SET_WORDS]; /* those without a reply */
    bool strange_cooldown;       /* a lost release of an unknown token may have started one */
    struct frame *frames;        /* count + 1, and one to try in */
    size_t depth;
    struct linear_memo memo;
    bool too_many; /* a branch was cut because too many grants may be current */
    size_t best_left;
    uint64_t best_placed[SET_WORDS];
    struct linear_state best_state;
};

static bool is_placed(const struct search *search, size_t index)
{
    return (search->placed[index / 64] >> (index % 64) & 1) != 0;
}

/* The next operation must take effect before the first of those left returns. */
static int64_t first_return(const struct search *search)
{
    int64_t latest_ms = LINEAR_FOREVER_MS;
    for (size_t i = 0; i < search->count; i++) {
        const struct entry *entry = &search->entries[i];
        if (entry->op->call_ms > latest_ms) {
            break;
        }
        if (!entry->unknown && !is_placed(search, i) && entry->op->return_ms < latest_ms) {
            latest_ms = entry->op->return_ms;
        }
    }
    return latest_ms;
}

/* The first moment from `now_ms` on at which another acquire is queued; see struct linear_op. */
static int64_t queue_from(const struct search *search, size_t index, int64_t now_ms)
{
    for (size_t i = 0; i < search->count; i++) {
        const struct linear_op *op = search->entries[i].op;
        if (op->kind != LINEAR_ACQUIRE || !op->waits || i == index) {
            continue;
        }
        bool granted_later = op->result == LINEAR_OK || op->result == LINEAR_UNKNOWN;
        if (granted_later ? !is_placed(search, i)
                          : is_placed(search, i) && op->return_ms >= now_ms) {
            return op->call_ms > now_ms ? op->call_ms : now_ms;
        }
    }
    return LINEAR_FOREVER_MS;
}

/* True if the operation may be tried here at all. */
static bool is_open(const struct search *search, const struct frame *frame, size_t index)
{
    const struct entry *entry = &search->entries[index];
    bool over = entry->unheard && entry->op->return_ms < frame->state.clock_ms;
    return !is_placed(search, index) && entry->op->call_ms <= frame->latest_ms && !over &&
           (entry->after == NO_INDEX || is_placed(search, entry->after));
}

static bool try_step(struct search *search, const struct frame *frame, size_t index, size_t choice,
                     struct linear_step *out_step, struct linear_state *out_state)
{
    const struct entry *entry = &search->entries[index];
    const struct linear_op *op = entry->op;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every entry has its operation */
    int64_t now_ms = frame->state.clock_ms > op->call_ms ? frame->state.clock_ms : op->call_ms;
    *out_step = (struct linear_step){
        .options = search->options,
        .op = op,
        .latest_ms =
            entry->unheard && op->return_ms < frame->latest_ms ? op->return_ms : frame->latest_ms,
        .queue_from_ms =
            op->result == LINEAR_BUSY ? queue_from(search, index, now_ms) : LINEAR_FOREVER_MS,
        .foreign = entry->foreign,
        .unanswered = frame->unanswered,
        .choice = choice,
    };
    linear_state_copy(out_state, &frame->state);
    bool legal = linear_model_step(out_step, out_state);
    if (out_step->reason == LINEAR_REASON_TOO_MANY) {
        search->too_many = true;
    }
    return legal;
}

static bool fits_somehow(struct search *search, const struct frame *frame, size_t index,
                         struct linear_state *scratch)
{
    struct linear_step step;
    size_t choice = 0;
    do {
        if (try_step(search, frame, index, choice++, &step, scratch)) {
            return true;
        }
    } while (choice < step.choices);
    return false;
}

static bool is_lost_acquire(const struct entry *entry)
{
    return entry->unknown && entry->op->kind == LINEAR_ACQUIRE;
}

/*
 * True if every operation that could be placed now would move the clock as far as this one.
 * Acquires without a reply do not count: they may be placed later and have happened before.
 */
static bool costs_no_time(struct search *search, const struct frame *frame, size_t index,
                          struct linear_state *scratch)
{
    int64_t call_ms = search->entries[index].op->call_ms;
    if (call_ms <= frame->state.clock_ms) {
        return true;
    }
    for (size_t i = 0; i < index; i++) {
        const struct entry *entry = &search->entries[i];
        if (entry->op->call_ms < call_ms && is_open(search, frame, i) && !is_lost_acquire(entry) &&
            (!entry->unknown || fits_somehow(search, frame, i, scratch))) {
            return false;
        }
    }
    return true;
}

/*
 * Notes whether a lost acquire, or a lost release of its grant, might explain a tried result: one
 * that found no place, or one that found it at a price (it took a token that it could take from
 * another grant too, or had to wait until another acquire was queued).
 */
static void note_want(const struct search *search, struct frame *frame,
                      const struct linear_step *step, bool fits)
{
    const struct linear_op *op = step->op;
    if (fits && !step->changed) {
        return;
    }
    if (op->result == LINEAR_BUSY) {
        frame->wants_writer = true;
        frame->wants_grant = frame->wants_grant || op->mode != LINEAR_SHARED;
    } else if (op->result == LINEAR_COOLING) {
        frame->wants_grant = frame->wants_grant || search->strange_cooldown;
    } else if (op->result == LINEAR_HELD || op->result == LINEAR_OK) {
        frame->wants_grant = frame->wants_grant || step->wants_token;
        frame->wants_token = frame->wants_token || (step->wants_token && op->result == LINEAR_HELD);
    }
}

/*
 * A lost acquire is placed only where it is needed, right before the result that it explains: the
 * model lets it have been granted earlier, so nothing is lost. Only a result about a full semaphore
 * can need several.
 */
static bool is_wanted(const struct search *search, const struct frame *frame,
                      const struct entry *entry)
{
    bool excuses = frame->placed != NO_INDEX && is_lost_acquire(&search->entries[frame->placed]);
    if (entry->unheard) {
        return frame->wants_token && !excuses;
    }
    if (is_lost_acquire(entry)) {
        return frame->wants_grant ? !excuses || entry->op->mode == LINEAR_SEMAPHORE
                                  : frame->wants_writer && entry->op->mode != LINEAR_SHARED;
    }
    return !excuses || entry->op->result == LINEAR_BUSY ||
           (entry->foreign && entry->op->token != 0);
}

/*
 * A result that is right now and changes nothing is placed now and nowhere else: it restricts no
 * later operation, so any legal order stays legal with it moved to the front.
 */
static void look_around(struct search *search, struct frame *frame, struct linear_state *scratch)
{
    struct linear_step step;
    frame->only = NO_INDEX;
    frame->wants_grant = false;
    frame->wants_writer = false;
    frame->wants_token = false;
    for (size_t i = 0; i < search->count && frame->only == NO_INDEX; i++) {
        if (search->entries[i].op->call_ms > frame->latest_ms) {
            break;
        }
        if (search->entries[i].unknown || !is_open(search, frame, i)) {
            continue;
        }
        bool fits = try_step(search, frame, i, /* choice= */ 0, &step, scratch);
        note_want(search, frame, &step, fits);
        if (fits && !step.changed && costs_no_time(search, frame, i, scratch)) {
            frame->only = i;
        }
    }
}

static bool lost_acquires_left(const struct search *search)
{
    for (size_t i = 0; i < search->count; i++) {
        if (is_lost_acquire(&search->entries[i]) && !is_placed(search, i)) {
            return true;
        }
    }
    return false;
}

static void keep_best(struct search *search, const struct frame *frame)
{
    if (search->left >= search->best_left) {
        return;
    }
    search->best_left = search->left;
    memcpy(search->best_placed, search->placed, sizeof(search->placed));
    linear_state_copy(&search->best_state, &frame->state);
}

/* Prepares the top frame, whose state and `placed` are filled in. */
static void enter_frame(struct search *search)
{
    struct frame *frame = &search->frames[search->depth];
    frame->latest_ms = first_return(search);
    frame->on_unknown = false;
    frame->index = 0;
    frame->choice = 0;
    frame->unanswered = lost_acquires_left(search);
    look_around(search, frame, &search->frames[search->depth + 1].state);
    if (frame->only != NO_INDEX) {
        frame->index = frame->only;
    }
    keep_best(search, frame);
}

/* Moves to the next operation to try, answered ones first. False if none is left. */
static bool seek(const struct search *search, struct frame *frame)
{
    if (frame->only != NO_INDEX) {
        return frame->index == frame->only;
    }
    for (;; frame->index++) {
        const struct linear_op *op =
            frame->index < search->count ? search->entries[frame->index].op : NULL;
        if (op == NULL || op->call_ms > frame->latest_ms) {
            if (frame->on_unknown) {
                return false;
            }
            frame->on_unknown = true;
            frame->index = 0;
        }
        const struct entry *entry = &search->entries[frame->index];
        if (entry->unknown == frame->on_unknown && is_open(search, frame, frame->index) &&
            is_wanted(search, frame, entry)) {
            return true;
        }
    }
}

/* Fills the frame above with the next legal step of this one. False if none is left. */
static bool next_child(struct search *search, struct frame *frame)
{
    struct frame *child = frame + 1;
    struct linear_step step;
    while (seek(search, frame)) {
        child->placed = frame->index;
        bool legal = try_step(search, frame, frame->index, frame->choice, &step, &child->state);
        frame->choice++;
        if (frame->choice >= step.choices) {
            frame->choice = 0;
            frame->index++;
        }
        if (legal) {
            return true;
        }
    }
    return false;
}

static void flip_placed(struct search *search, size_t index)
{
    search->placed[index / 64] ^= UINT64_C(1) << (index % 64);
    if (search->entries[index].unknown) {
        return;
    }
    if (is_placed(search, index)) {
        search->left--;
    } else {
        search->left++;
    }
}

/*
 * An unanswered operation that is not placed allows more than one that is. It need not be
 * remembered that only a result that needs it may follow a lost acquire: any other could follow
 * without it, too.
 */
static enum linear_memo_answer remember(struct search *search, const struct linear_state *state)
{
    uint64_t key[SET_WORDS + LINEAR_STATE_KEY_MAX];
    uint64_t spent[SET_WORDS];
    uint64_t bounds[LINEAR_STATE_BOUNDS_MAX];
    size_t set_words = (search->count + 63) / 64;
    for (size_t i = 0; i < set_words; i++) {
        key[i] = search->placed[i] & ~search->unknown[i];
        spent[i] = search->placed[i] & search->unknown[i];
    }
    struct linear_memo_item item = {
        .key = key,
        .key_count = set_words + linear_state_pack_key(state, key + set_words),
        .spent = spent,
        .spent_count = set_words,
        .bounds = bounds,
        .bound_count = linear_state_pack_bounds(state, bounds),
    };
    return linear_memo_add(&search->memo, &item);
}

static enum linear_verdict run_search(struct search *search)
{
    linear_state_init(&search->frames[0].state);
    search->frames[0].placed = NO_INDEX;
    enter_frame(search);
    while (search->left > 0) {
        struct frame *frame = &search->frames[search->depth];
        if (next_child(search, frame)) {
            struct frame *child = frame + 1;
            flip_placed(search, child->placed);
            enum linear_memo_answer reply = remember(search, &child->state);
            if (reply == LINEAR_MEMO_FULL) {
                return LINEAR_UNDECIDED;
            }
            if (reply == LINEAR_MEMO_SEEN) {
                flip_placed(search, child->placed);
                continue;
            }
            search->depth++;
            enter_frame(search);
        } else if (search->depth > 0) {
            flip_placed(search, frame->placed);
            search->depth--;
        } else {
            return search->too_many ? LINEAR_UNDECIDED : LINEAR_REFUSED;
        }
    }
    return LINEAR_ACCEPTED;
}

static bool is_twin(const struct linear_op *a, const struct linear_op *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->limit == b->limit &&
           a->waits == b->waits && a->token == b->token && a->ttl_ms == b->ttl_ms &&
           a->cooldown_ms == b->cooldown_ms;
}

static bool is_granted(const struct linear_op *op)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every entry has its operation */
    return op->kind == LINEAR_ACQUIRE && op->result == LINEAR_OK;
}

/*
 * Two orders are fixed in advance. Tokens grow, so the acquire with the next smaller token comes
 * before. Of equal unanswered operations the one called first comes first: an order that uses the
 * later one instead is as legal with the two exchanged.
 */
static bool comes_before(const struct search *search, size_t index, size_t other)
{
    const struct linear_op *op = search->entries[index].op;
    const struct linear_op *first = search->entries[other].op;
    if (op->result == LINEAR_UNKNOWN) {
        return first->result == LINEAR_UNKNOWN && other < index && is_twin(first, op);
    }
    return is_granted(op) && is_granted(first) &&
           (first->token < op->token || (first->token == op->token && other < index));
}

static void fill_entry(struct search *search, size_t index)
{
    struct entry *entry = &search->entries[index];
    entry->unheard = entry->op->result == LINEAR_UNHEARD;
    entry->unknown = entry->op->result == LINEAR_UNKNOWN || entry->unheard;
    entry->foreign = true;
    entry->after = NO_INDEX;
    for (size_t i = 0; i < search->count; i++) {
        const struct linear_op *other = search->entries[i].op;
        if (is_granted(other) && other->token == entry->op->token) {
            entry->foreign = false;
        }
        if (comes_before(search, index, i) &&
            (entry->after == NO_INDEX || comes_before(search, i, entry->after))) {
            entry->after = i; /* the last of its predecessors */
        }
    }
}

/* False if out of memory; linear_search frees what was allocated. */
static bool search_init(struct search *search, const struct linear_op *const *ops, size_t count,
                        const struct linear_options *options)
{
    *search = (struct search){.options = options, .count = count};
    linear_memo_init(&search->memo, options->max_states);
    search->entries = calloc(count, sizeof(*search->entries));
    search->frames = calloc(count + 2, sizeof(*search->frames));
    if (search->entries == NULL || search->frames == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        search->entries[i].op = ops[i];
        if (ops[i]->result == LINEAR_UNKNOWN || ops[i]->result == LINEAR_UNHEARD) {
            search->unknown[i / 64] |= UINT64_C(1) << (i % 64);
        } else {
            search->answered++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        fill_entry(search, i);
        search->strange_cooldown =
            search->strange_cooldown ||
            (search->entries[i].unknown && search->entries[i].foreign && ops[i]->cooldown_ms > 0);
    }
    search->left = search->answered;
    search->best_left = search->answered + 1;
    return true;
}

/*
 * Of the operations that could not follow the longest legal prefix, the one that returns first is
 * reported: it cannot be postponed for ever.
 */
static void explain(struct search *search, struct linear_finding *out)
{
    struct frame *frame = &search->frames[0];
    struct linear_step step;
    size_t stuck = NO_INDEX;
    memcpy(search->placed, search->best_placed, sizeof(search->placed));
    linear_state_copy(&frame->state, &search->best_state);
    frame->latest_ms = first_return(search);
    for (size_t i = 0; i < search->count && stuck == NO_INDEX; i++) {
        const struct entry *entry = &search->entries[i];
        if (!entry->unknown && !is_placed(search, i) && entry->op->return_ms == frame->latest_ms) {
            stuck = i;
        }
    }
    assert(stuck != NO_INDEX);
    (void)try_step(search, frame, stuck, /* choice= */ 0, &step, &search->frames[1].state);
    size_t after = search->entries[stuck].after;
    if (step.reason == LINEAR_REASON_NONE && after != NO_INDEX) {
        step.reason = LINEAR_REASON_TOKEN_EARLY;
        step.reason_token = search->entries[after].op->token;
    }
    out->stuck = search->entries[stuck].op;
    out->placed = search->answered - search->best_left;
    linear_text_reason(&step, out->why, sizeof(out->why));
}

void linear_search(const struct linear_op *const *ops, size_t count,
                   const struct linear_options *options, struct linear_finding *out)
{
    assert(count <= LINEAR_KEY_OPS_MAX);
    struct search *search = malloc(sizeof(*search));
    *out = (struct linear_finding){.verdict = LINEAR_UNDECIDED};
    if (search == NULL) {
        return;
    }
    if (search_init(search, ops, count, options)) {
        out->verdict = run_search(search);
        out->states = search->memo.count;
        if (out->verdict == LINEAR_REFUSED) {
            explain(search, out);
        }
    }
    linear_memo_done(&search->memo);
    free(search->entries);
    free(search->frames);
    free(search);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point of the checker: refuses malformed histories, sorts the others by key and call,
 * searches each key and describes the outcome. This file must not contain the lock's rules
 * (linear_model.c) nor the search (linear_search.c).
 */
#include "linear.h"

#include "linear_search.h"
#include "linear_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(result) (1U << (result))

static const unsigned results_of[] = {
    [LINEAR_ACQUIRE] = BIT(LINEAR_OK) | BIT(LINEAR_BUSY) | BIT(LINEAR_COOLING),
    [LINEAR_RENEW] = BIT(LINEAR_OK) | BIT(LINEAR_STALE),
    [LINEAR_RELEASE] = BIT(LINEAR_OK) | BIT(LINEAR_STALE),
    [LINEAR_STATUS] =
        BIT(LINEAR_FREE) | BIT(LINEAR_HELD) | BIT(LINEAR_COOLING) | BIT(LINEAR_OFFERED),
    [LINEAR_BREAK_NOW] = BIT(LINEAR_OK),
    [LINEAR_CLEAR] = BIT(LINEAR_OK),
};

static bool names_a_token(const struct linear_op *op)
{
    return op->kind == LINEAR_RENEW || op->kind == LINEAR_RELEASE || op->result == LINEAR_HELD ||
           (op->kind == LINEAR_ACQUIRE && op->result == LINEAR_OK);
}

static const char *fault_of(const struct linear_op *op)
{
    if (op->key == NULL) {
        return "no key";
    }
    if ((unsigned)op->kind > LINEAR_CLEAR || (unsigned)op->result > LINEAR_UNKNOWN ||
        ((results_of[op->kind] | BIT(LINEAR_UNKNOWN)) & BIT(op->result)) == 0) {
        return "a result that this kind does not have";
    }
    if (op->call_ms < 0) {
        return "called before time began";
    }
    if (op->result != LINEAR_UNKNOWN &&
        (op->return_ms < op->call_ms || op->return_ms == LINEAR_FOREVER_MS)) {
        return "returned before it was called, or never";
    }
    if (names_a_token(op) && op->token == 0) {
        return "no token";
    }
    if ((op->kind == LINEAR_ACQUIRE || op->kind == LINEAR_RENEW) && op->ttl_ms <= 0) {
        return "no ttl";
    }
    if (op->kind == LINEAR_ACQUIRE &&
        ((unsigned)op->mode > LINEAR_SEMAPHORE ||
         (op->mode == LINEAR_SEMAPHORE && (op->limit == 0 || op->limit > LINEAR_GRANTS_MAX)))) {
        return "no such mode or limit";
    }
    return op->kind == LINEAR_RELEASE && op->cooldown_ms < 0 ? "a negative cooldown" : NULL;
}

static int by_key_then_call(const void *left, const void *right)
{
    const struct linear_op *a = *(const struct linear_op *const *)left;
    const struct linear_op *b = *(const struct linear_op *const *)right;
    int keys = strcmp(a->key, b->key);
    if (keys != 0) {
        return keys;
    }
    if (a->call_ms != b->call_ms) {
        return a->call_ms < b->call_ms ? -1 : 1;
    }
    return a < b ? -1 : a > b; /* the order of the log, so that a verdict is reproducible */
}

/* A query without a reply proves nothing, and a cached one may be outdated. */
static bool is_judged(const struct linear_op *op)
{
    return !op->cached && !(op->kind == LINEAR_STATUS && op->result == LINEAR_UNKNOWN);
}

static void report_refusal(const struct linear_op *ops, const struct linear_finding *finding,
                           struct linear_report *out)
{
    char line[160];
    out->key = finding->stuck->key;
    out->op = (size_t)(finding->stuck - ops);
    out->placed = finding->placed;
    linear_text_op(finding->stuck, out->op, line, sizeof(line));
    (void)snprintf(out->text, sizeof(out->text), "%.64s: %s cannot be placed: %s", out->key, line,
                   finding->why);
}

static void report_undecided(const char *key, const char *why, struct linear_report *out)
{
    out->key = key;
    (void)snprintf(out->text, sizeof(out->text), "%.64s: undecided: %s", key, why);
}

static bool shows_foreign_token(const struct linear_op *const *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool given = sorted[i]->result != LINEAR_HELD;
        for (size_t j = 0; j < count && !given; j++) {
            given = sorted[j]->kind == LINEAR_ACQUIRE && sorted[j]->result == LINEAR_OK &&
                    sorted[j]->token == sorted[i]->token;
        }
        if (!given) {
            return true;
        }
    }
    return false;
}

/* The grants that waiters may have had without receiving them; see linear.h. Sorted by call. */
static size_t add_ghosts(const struct linear_op *const *sorted, size_t count,
                         struct linear_op *ghosts, const struct linear_op **out_all)
{
    size_t all = 0, made = 0;
    for (size_t i = 0; i < count; i++) {
        const struct linear_op *op = sorted[i];
        out_all[all++] = op;
        if (op->kind != LINEAR_ACQUIRE || !op->waits || op->result == LINEAR_UNKNOWN ||
            count + made == LINEAR_KEY_OPS_MAX) {
            continue;
        }
        ghosts[made] = *op;
        ghosts[made].result = LINEAR_UNHEARD;
        ghosts[made].token = 0;
        ghosts[made].waits = false; /* the acquire itself is in the queue */
        out_all[all++] = &ghosts[made++];
    }
    return all;
}

static void search_with_ghosts(const struct linear_op *const *sorted, size_t count,
                               const struct linear_options *options, struct linear_finding *out)
{
    if (!shows_foreign_token(sorted, count)) {
        linear_search(sorted, count, options, out);
        return;
    }
    struct linear_op *ghosts = calloc(count, sizeof(*ghosts));
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is wanted */
    const struct linear_op **all = calloc(2 * count, sizeof(*all));
    *out = (struct linear_finding){.verdict = LINEAR_UNDECIDED};
    if (ghosts != NULL && all != NULL) {
        linear_search(all, add_ghosts(sorted, count, ghosts, all), options, out);
    }
    free(all);
    free(ghosts);
}

static enum linear_verdict check_key(const struct linear_op *ops,
                                     const struct linear_op *const *sorted, size_t count,
                                     const struct linear_options *options,
                                     struct linear_report *out)
{
    struct linear_finding finding;
    if (count > LINEAR_KEY_OPS_MAX) {
        report_undecided(sorted[0]->key, "too many operations", out);
        return LINEAR_UNDECIDED;
    }
    search_with_ghosts(sorted, count, options, &finding);
    out->states += finding.states;
    if (finding.states > out->peak_states) {
        out->peak_states = finding.states;
    }
    if (finding.verdict == LINEAR_REFUSED) {
        report_refusal(ops, &finding, out);
    } else if (finding.verdict == LINEAR_UNDECIDED) {
        report_undecided(sorted[0]->key, "too many states, grants or bytes", out);
    }
    return finding.verdict;
}

static enum linear_verdict check_keys(const struct linear_op *ops,
                                      const struct linear_op *const *sorted, size_t count,
                                      const struct linear_options *options,
                                      struct linear_report *out)
{
    enum linear_verdict verdict = LINEAR_ACCEPTED;
    for (size_t from = 0, to = 0; from < count; from = to) {
        while (to < count && strcmp(sorted[to]->key, sorted[from]->key) == 0) {
            to++;
        }
        enum linear_verdict of_key = check_key(ops, sorted + from, to - from, options, out);
        if (of_key == LINEAR_REFUSED) {
            return LINEAR_REFUSED;
        }
        if (of_key == LINEAR_UNDECIDED) {
            verdict = LINEAR_UNDECIDED;
        }
    }
    return verdict;
}

enum linear_verdict linear_check(const struct linear_op *ops, size_t count,
                                 const struct linear_options *options, struct linear_report *out)
{
    static const struct linear_options by_default = LINEAR_OPTIONS_DEFAULT;
    enum linear_verdict verdict = LINEAR_UNDECIDED;
    size_t judged = 0;
    *out = (struct linear_report){0};
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is wanted */
    const struct linear_op **sorted = calloc(count + 1, sizeof(*sorted));
    if (sorted == NULL) {
        report_undecided("all", "no memory", out);
        return LINEAR_UNDECIDED;
    }
    for (size_t i = 0; i < count; i++) {
        const char *fault = fault_of(&ops[i]);
        if (fault != NULL) {
            out->key = ops[i].key;
            out->op = i;
            (void)snprintf(out->text, sizeof(out->text), "op %zu is malformed: %s", i, fault);
            verdict = LINEAR_MALFORMED;
            goto out;
        }
        if (is_judged(&ops[i])) {
            sorted[judged++] = &ops[i];
        }
    }
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is sorted */
    qsort(sorted, judged, sizeof(*sorted), by_key_then_call);
    options = options == NULL ? &by_default : options;
    assert(options->slack_ms >= 0);
    verdict = check_keys(ops, sorted, judged, options, out);
out:
    free(sorted);
    return verdict;
}

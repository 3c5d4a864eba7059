/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on generated histories. A toy lock replies to random clients at exact moments, and
 * each call is then widened into a window around its moment: all of these histories are legal and
 * must be accepted. After one reply is falsified many are not, and every kind of falsification must
 * be detected. Seeds are fixed, so a run can be repeated. The toy must not share code with the
 * checker: a common mistake would stay hidden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../harness/linear.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define OPS_MAX     400
#define CLIENTS     6
#define SLOTS       3
#define GRANTS_MAX  64
#define LEGAL_SEEDS 400
#define FALSE_SEEDS 150

struct toy_grant {
    uint64_t token;
    int64_t ends_at_ms;
};

struct toy_client {
    int64_t idle_from_ms;
    uint64_t token; /* its last grant, current or not */
    bool in_line;
    size_t line_op;   /* the acquire it waits with */
    uint64_t unheard; /* granted to it while it waits, once, and not reported; 0: not yet */
    int64_t gives_up_at_ms;
};

struct toy {
    uint64_t random;
    int64_t now_ms;
    int64_t blur_ms;
    int64_t loses_one_in; /* replies */
    enum linear_mode flavour;
    uint64_t last_token;
    int64_t cools_until_ms;
    enum linear_mode mode;
    size_t grant_count;
    struct toy_grant grants[GRANTS_MAX];
    struct toy_client clients[CLIENTS];
    size_t count;
    size_t unheard; /* unreported grants */
    struct linear_op ops[OPS_MAX];
};

static int64_t roll(struct toy *toy, int64_t sides)
{
    toy->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (toy->random ^ toy->random >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((mixed ^ mixed >> 31) % (uint64_t)sides);
}

static void toy_remove(struct toy *toy, size_t index)
{
    toy->grants[index] = toy->grants[--toy->grant_count];
}

static size_t toy_find(const struct toy *toy, uint64_t token)
{
    size_t index = 0;
    while (index < toy->grant_count && toy->grants[index].token != token) {
        index++;
    }
    return index;
}

static bool toy_is_taken(const struct toy *toy, enum linear_mode mode)
{
    if (toy->grant_count == 0) {
        return false;
    }
    return mode == LINEAR_EXCLUSIVE || toy->mode != mode ||
           (mode == LINEAR_SEMAPHORE && toy->grant_count == SLOTS);
}

static size_t toy_line_length(const struct toy *toy)
{
    size_t length = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        length += toy->clients[i].in_line ? 1 : 0;
    }
    return length;
}

/* Tokens are even, so that a forged one is never a real one. */
static void toy_grant(struct toy *toy, struct linear_op *op)
{
    assert_true(toy->grant_count < GRANTS_MAX);
    toy->last_token += 2 + 2 * (uint64_t)roll(toy, 3);
    toy->mode = op->mode;
    toy->grants[toy->grant_count++] =
        (struct toy_grant){.token = toy->last_token, .ends_at_ms = toy->now_ms + op->ttl_ms};
    op->result = LINEAR_OK;
    op->token = toy->last_token;
}

static void toy_acquire(struct toy *toy, struct toy_client *client, struct linear_op *op)
{
    op->mode = toy->flavour;
    if (toy->flavour == LINEAR_SHARED && roll(toy, 3) == 0) {
        op->mode = LINEAR_EXCLUSIVE;
    }
    op->limit = op->mode == LINEAR_SEMAPHORE ? SLOTS : 0;
    op->ttl_ms = 20 + 10 * roll(toy, 5);
    op->waits = roll(toy, 4) == 0;
    if (toy->now_ms < toy->cools_until_ms) {
        op->result = LINEAR_COOLING;
    } else if (!toy_is_taken(toy, op->mode) && toy_line_length(toy) == 0) {
        toy_grant(toy, op);
        client->token = op->token;
    } else {
        op->result = LINEAR_BUSY;
        client->in_line = op->waits;
        client->line_op = toy->count;
        client->unheard = 0;
        client->gives_up_at_ms = toy->now_ms + 10 + roll(toy, 60);
    }
}

static void toy_renew_or_release(struct toy *toy, const struct toy_client *client,
                                 struct linear_op *op)
{
    op->token = client->token;
    size_t index = toy_find(toy, op->token);
    op->ttl_ms = op->kind == LINEAR_RENEW ? 20 + 10 * roll(toy, 5) : 0;
    op->cooldown_ms = op->kind == LINEAR_RELEASE && roll(toy, 3) == 0 ? 10 + roll(toy, 20) : 0;
    op->result = index < toy->grant_count ? LINEAR_OK : LINEAR_STALE;
    if (op->result == LINEAR_STALE) {
        return;
    }
    if (op->kind == LINEAR_RENEW) {
        toy->grants[index].ends_at_ms = toy->now_ms + op->ttl_ms;
        return;
    }
    toy_remove(toy, index);
    if (op->cooldown_ms > 0 && toy->now_ms + op->cooldown_ms > toy->cools_until_ms) {
        toy->cools_until_ms = toy->now_ms + op->cooldown_ms;
    }
}

static void toy_status(struct toy *toy, struct linear_op *op)
{
    op->result = LINEAR_FREE;
    if (toy->grant_count > 0) {
        op->result = LINEAR_HELD;
        op->token = toy->grants[roll(toy, (int64_t)toy->grant_count)].token;
    } else if (toy->now_ms < toy->cools_until_ms) {
        op->result = LINEAR_COOLING;
    } else if (toy_line_length(toy) > 0) {
        op->result = LINEAR_OFFERED;
    }
}

static void toy_by_force(struct toy *toy, struct linear_op *op)
{
    op->result = LINEAR_OK;
    if (op->kind == LINEAR_BREAK_NOW) {
        toy->grant_count = 0;
    } else {
        toy->cools_until_ms = 0;
    }
}

static enum linear_kind toy_pick_kind(struct toy *toy, const struct toy_client *client)
{
    int64_t die = roll(toy, 40);
    if (die == 0) {
        return LINEAR_BREAK_NOW;
    }
    if (die == 1) {
        return LINEAR_CLEAR;
    }
    if (die < 10) {
        return LINEAR_STATUS;
    }
    if (die < 22 && client->token != 0) {
        return die < 15 ? LINEAR_RENEW : LINEAR_RELEASE;
    }
    return LINEAR_ACQUIRE;
}

/* Sometimes the reply is lost; and of these, half the requests never arrived. */
static void toy_do(struct toy *toy, struct toy_client *client, struct linear_op *op)
{
    bool lost = op->kind != LINEAR_STATUS && roll(toy, toy->loses_one_in) == 0;
    struct toy before;
    if (lost) {
        before = *toy;
    }
    if (op->kind == LINEAR_ACQUIRE) {
        toy_acquire(toy, client, op);
    } else if (op->kind == LINEAR_STATUS) {
        toy_status(toy, op);
    } else if (op->kind == LINEAR_RENEW || op->kind == LINEAR_RELEASE) {
        toy_renew_or_release(toy, client, op);
    } else {
        toy_by_force(toy, op);
    }
    if (!lost || client->in_line) {
        return;
    }
    struct linear_op asked = *op;
    if (roll(toy, 2) == 0) {
        uint64_t random = toy->random;
        *toy = before;
        toy->random = random;
    }
    *op = asked;
    op->result = LINEAR_UNKNOWN;
    if (op->kind == LINEAR_ACQUIRE) {
        op->token = 0;
        client->token = 0;
    }
}

/* Grants the key to a waiter, or lets one give up, if it is due. */
static void toy_serve_line(struct toy *toy)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        struct toy_client *client = &toy->clients[i];
        struct linear_op *op = &toy->ops[client->line_op];
        if (!client->in_line) {
            continue;
        }
        if (client->unheard != 0 && toy_find(toy, client->unheard) < toy->grant_count) {
            continue; /* until that has expired or is broken */
        }
        bool free = !toy_is_taken(toy, op->mode) && toy->now_ms >= toy->cools_until_ms;
        if (free && client->unheard == 0 && roll(toy, 8) == 0) {
            struct linear_op untold = *op;
            toy_grant(toy, &untold);
            client->unheard = untold.token;
            toy->unheard++;
            continue;
        }
        if (free && roll(toy, 2) == 0) {
            toy_grant(toy, op);
            client->token = op->token;
        } else if (toy->now_ms < client->gives_up_at_ms) {
            continue;
        }
        client->in_line = false;
        op->return_ms = toy->now_ms + roll(toy, toy->blur_ms);
        client->idle_from_ms = op->return_ms + 1;
    }
}

static void toy_turn(struct toy *toy)
{
    struct toy_client *client = &toy->clients[roll(toy, CLIENTS)];
    toy->now_ms += roll(toy, 8);
    for (size_t i = toy->grant_count; i-- > 0;) {
        if (toy->grants[i].ends_at_ms <= toy->now_ms) {
            toy_remove(toy, i);
        }
    }
    toy_serve_line(toy);
    if (client->in_line || client->idle_from_ms > toy->now_ms) {
        return;
    }
    struct linear_op *op = &toy->ops[toy->count];
    *op = (struct linear_op){.key = "toy", .client = (int)(client - toy->clients)};
    op->kind = toy_pick_kind(toy, client);
    op->call_ms = toy->now_ms - roll(toy, toy->blur_ms);
    if (op->call_ms < client->idle_from_ms) {
        op->call_ms = client->idle_from_ms;
    }
    op->return_ms = toy->now_ms + roll(toy, toy->blur_ms);
    toy_do(toy, client, op);
    client->idle_from_ms = op->return_ms + 1;
    toy->count++;
}

static void toy_play(struct toy *toy, uint64_t seed, size_t count, int64_t blur_ms)
{
    memset(toy, 0, sizeof(*toy));
    toy->random = seed;
    toy->blur_ms = blur_ms;
    toy->loses_one_in = seed % 4 == 0 ? 5 : 20;
    toy->flavour = (enum linear_mode)roll(toy, 3);
    while (toy->count < count) {
        toy_turn(toy);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (toy->clients[i].in_line) {
            toy->ops[toy->clients[i].line_op].return_ms = toy->now_ms;
        }
    }
}

/* Ways to falsify one reply. Each picks an operation at random and returns whether it applied. */

static struct linear_op *pick(struct toy *toy, enum linear_kind kind, enum linear_result result)
{
    size_t from = (size_t)roll(toy, (int64_t)toy->count);
    for (size_t i = 0; i < toy->count; i++) {
        struct linear_op *op = &toy->ops[(from + i) % toy->count];
        if (op->kind == kind && op->result == result) {
            return op;
        }
    }
    return NULL;
}

/* The latest token given out before the operation, so that only its use is wrong. */
static uint64_t last_token_before(const struct toy *toy, const struct linear_op *op)
{
    uint64_t token = 0;
    for (size_t i = 0; i < toy->count; i++) {
        const struct linear_op *other = &toy->ops[i];
        if (other->kind == LINEAR_ACQUIRE && other->result == LINEAR_OK &&
            other->return_ms <= op->return_ms && other->token > token) {
            token = other->token;
        }
    }
    return token;
}

static bool swap_tokens(struct toy *toy)
{
    struct linear_op *a = pick(toy, LINEAR_ACQUIRE, LINEAR_OK);
    struct linear_op *b = pick(toy, LINEAR_ACQUIRE, LINEAR_OK);
    if (a == NULL || a == b) {
        return false;
    }
    uint64_t token = a->token;
    a->token = b->token;
    b->token = token;
    return true;
}

static bool reuse_token(struct toy *toy)
{
    struct linear_op *a = pick(toy, LINEAR_ACQUIRE, LINEAR_OK);
    struct linear_op *b = pick(toy, LINEAR_ACQUIRE, LINEAR_OK);
    if (a == NULL || a == b) {
        return false;
    }
    a->token = b->token;
    return true;
}

static bool change(struct toy *toy, enum linear_kind kind, enum linear_result from,
                   enum linear_result to, bool needs_token)
{
    struct linear_op *op = pick(toy, kind, from);
    if (op == NULL) {
        return false;
    }
    if (needs_token) {
        uint64_t token = last_token_before(toy, op);
        op->token = kind == LINEAR_ACQUIRE ? token + 1 : token;
    }
    op->result = to;
    return op->token != 0 || !needs_token;
}

static bool busy_to_ok(struct toy *toy)
{
    return change(toy, LINEAR_ACQUIRE, LINEAR_BUSY, LINEAR_OK, true);
}

static bool ok_to_busy(struct toy *toy)
{
    return change(toy, LINEAR_ACQUIRE, LINEAR_OK, LINEAR_BUSY, false);
}

static bool cooling_to_ok(struct toy *toy)
{
    return change(toy, LINEAR_ACQUIRE, LINEAR_COOLING, LINEAR_OK, true);
}

static bool ok_to_cooling(struct toy *toy)
{
    return change(toy, LINEAR_ACQUIRE, LINEAR_OK, LINEAR_COOLING, false);
}

static bool held_to_free(struct toy *toy)
{
    return change(toy, LINEAR_STATUS, LINEAR_HELD, LINEAR_FREE, false);
}

static bool free_to_held(struct toy *toy)
{
    return change(toy, LINEAR_STATUS, LINEAR_FREE, LINEAR_HELD, true);
}

static bool renew_stale_to_ok(struct toy *toy)
{
    return change(toy, LINEAR_RENEW, LINEAR_STALE, LINEAR_OK, false);
}

static bool renew_ok_to_stale(struct toy *toy)
{
    return change(toy, LINEAR_RENEW, LINEAR_OK, LINEAR_STALE, false);
}

static bool release_stale_to_ok(struct toy *toy)
{
    return change(toy, LINEAR_RELEASE, LINEAR_STALE, LINEAR_OK, false);
}

static bool release_ok_to_stale(struct toy *toy)
{
    return change(toy, LINEAR_RELEASE, LINEAR_OK, LINEAR_STALE, false);
}

static const struct falsification {
    const char *name;
    bool (*apply)(struct toy *toy);
} falsifications[] = {
    {"two tokens swapped", swap_tokens},
    {"a token given twice", reuse_token},
    {"acquire busy, says ok", busy_to_ok},
    {"acquire ok, says busy", ok_to_busy},
    {"acquire cooling, says ok", cooling_to_ok},
    {"acquire ok, says cooling", ok_to_cooling},
    {"status held, says free", held_to_free},
    {"status free, says held", free_to_held},
    {"renew stale, says ok", renew_stale_to_ok},
    {"renew ok, says stale", renew_ok_to_stale},
    {"release stale, says ok", release_stale_to_ok},
    {"release ok, says stale", release_ok_to_stale},
};

static void accepts_random_legal_histories(void **unused)
{
    (void)unused;
    static struct toy toy;
    const struct linear_options slack = {.slack_ms = 5, .revive = true, .max_states = 100000};
    struct linear_report report;
    size_t seen[LINEAR_UNKNOWN + 1] = {0};
    size_t unheard = 0;
    for (uint64_t seed = 1; seed <= LEGAL_SEEDS; seed++) {
        toy_play(&toy, seed, 20 + seed % 60, 1 + (int64_t)(seed % 25));
        if (linear_check(toy.ops, toy.count, NULL, &report) != LINEAR_ACCEPTED) {
            fail_msg("seed %u: %s", (unsigned)seed, report.text);
        }
        if (linear_check(toy.ops, toy.count, &slack, &report) != LINEAR_ACCEPTED) {
            fail_msg("seed %u, with slack: %s", (unsigned)seed, report.text);
        }
        for (size_t i = 0; i < toy.count; i++) {
            seen[toy.ops[i].result]++;
        }
        unheard += toy.unheard;
    }
    for (size_t i = 0; i <= LINEAR_UNKNOWN; i++) {
        assert_true(seen[i] > 0); /* a toy that never replies proves nothing about it */
    }
    assert_true(unheard > LEGAL_SEEDS / 4);
}

static void refuses_falsified_histories(void **unused)
{
    (void)unused;
    static struct toy toy;
    struct linear_report report;
    size_t all_tried = 0;
    size_t all_refused = 0;
    for (size_t kind = 0; kind < sizeof(falsifications) / sizeof(falsifications[0]); kind++) {
        size_t tried = 0;
        size_t refused = 0;
        for (uint64_t seed = 1; seed <= FALSE_SEEDS; seed++) {
            toy_play(&toy, seed, /* count= */ 40, /* blur_ms= */ 6);
            if (!falsifications[kind].apply(&toy)) {
                continue;
            }
            enum linear_verdict verdict = linear_check(toy.ops, toy.count, NULL, &report);
            assert_true(verdict == LINEAR_ACCEPTED || verdict == LINEAR_REFUSED);
            tried++;
            refused += verdict == LINEAR_REFUSED ? 1 : 0;
        }
        print_message("%-26s %3zu of %3zu refused\n", falsifications[kind].name, refused, tried);
        assert_true(refused > 0);
        all_tried += tried;
        all_refused += refused;
    }
    assert_true(all_refused * 2 > all_tried);
}

static double milliseconds_since(const struct timespec *start)
{
    struct timespec end;
    (void)timespec_get(&end, TIME_UTC);
    return (double)(end.tv_sec - start->tv_sec) * 1e3 +
           (double)(end.tv_nsec - start->tv_nsec) / 1e6;
}

/* Judged by states, which are the same on every machine; the time is only printed. */
static void checks_a_long_history_quickly(void **unused)
{
    (void)unused;
    static struct toy toy;
    struct linear_report report;
    double slowest_ms = 0;
    size_t most_states = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        toy_play(&toy, seed, OPS_MAX, /* blur_ms= */ 15);
        struct timespec start;
        (void)timespec_get(&start, TIME_UTC);
        assert_int_equal(linear_check(toy.ops, toy.count, NULL, &report), LINEAR_ACCEPTED);
        double took_ms = milliseconds_since(&start);
        slowest_ms = took_ms > slowest_ms ? took_ms : slowest_ms;
        most_states = report.peak_states > most_states ? report.peak_states : most_states;
    }
    print_message("%d operations of %d clients: at most %.2f ms, %zu states\n", OPS_MAX, CLIENTS,
                  slowest_ms, most_states);
    assert_true(most_states < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_random_legal_histories),
        cmocka_unit_test(refuses_falsified_histories),
        cmocka_unit_test(checks_a_long_history_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See contenders.h. */
#include "contenders.h"

#include <inttypes.h>

enum { BUSY_MS = 1000 }; /* allowance of a call on a loaded machine */

static const char *const keys[CHECKER_KEYS] = {"first", "second", "third"};

struct worker {
    struct contenders *all;
    struct contender *child;
    struct life *life;
    struct random random;
    struct lh_client *client;
};

/* ---- one contender ---- */

struct call {
    int64_t began_ms;
    unsigned stops;
};

static struct call begin_call(const struct worker *worker)
{
    return (struct call){.began_ms = live_now_ms(), .stops = atomic_load(&worker->child->stops)};
}

/* Compares a call's duration with its limit. */
static void judge_call(struct worker *worker, struct call call, int64_t limit_ms)
{
    struct contenders *all = worker->all;
    int64_t beyond_ms = live_now_ms() - call.began_ms - limit_ms;
    atomic_fetch_add(&all->calls, 1);
    if (call.stops != atomic_load(&worker->child->stops))
        return; /* the process was not scheduled */
    atomic_fetch_add(&all->late_calls, beyond_ms > BUSY_MS ? 1 : 0);
    keep_longest(&all->most_beyond_ms, beyond_ms);
}

static void note_deadline(const struct worker *worker, const struct lh_lease *lease)
{
    int64_t left_ms = lh_remaining_ms(lease);
    if (left_ms <= 0)
        return; /* faults noted before are over as well */
    atomic_store(&worker->life->deadline_ms, live_now_ms() + left_ms);
    atomic_store(&worker->life->ends_ms, live_now_ms() + left_ms);
}

/* Mostly short; sometimes so long that only renewals keep the lease. */
static void stay(struct worker *worker, const struct lh_lease *lease)
{
    const struct contender_options *contender_options = &worker->all->contender_options;
    int64_t length_ms =
        (int64_t)random_below(&worker->random, (uint64_t)contender_options->stay_most_ms);
    if (random_below(&worker->random, contender_options->long_stays) == 0)
        length_ms += contender_options->ttl_ms;
    int64_t end_ms = live_now_ms() + length_ms;
    do {
        note_deadline(worker, lease);
        fixture_pause_us(1000);
    } while (live_now_ms() < end_ms && lh_held(lease));
}

static void work_inside(struct worker *worker, struct lh_lease *lease, size_t key)
{
    struct contenders *all = worker->all;
    struct overlap_checker *overlap_checker = &all->overlap_checker;
    uint64_t token = lh_token(lease), value = 0;
    note_deadline(worker, lease);
    checker_enter(overlap_checker, worker->child->life, key, token);
    bool read = fenced_read(overlap_checker, key, token, &value);
    atomic_store(&worker->child->inside, (int)key + 1);
    atomic_fetch_add(&all->entries[key], 1);
    atomic_fetch_add(&worker->child->entries, 1);
    stay(worker, lease);
    if (read)
        (void)fenced_write(overlap_checker, key, token, value);
    atomic_store(&worker->child->inside, 0);
    checker_leave(overlap_checker, worker->child->life, key);
    struct call call = begin_call(worker);
    (void)lh_release(&lease, NULL);
    judge_call(worker, call, all->contender_options.timeout_ms);
}

static void open_client(struct worker *worker, const struct fixture *fixture)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.timeout_ms = worker->all->contender_options.timeout_ms;
    for (;;) {
        struct call call = begin_call(worker);
        enum lh_outcome outcome = lh_open(fixture->url, &options, &worker->client, NULL);
        judge_call(worker, call, options.timeout_ms);
        if (outcome == LH_OK)
            return;
        fixture_pause_us(20000);
    }
}

static void want(struct worker *worker, size_t key)
{
    struct contenders *all = worker->all;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    int64_t wants_since_ms = live_now_ms();
    options.ttl_ms = all->contender_options.ttl_ms;
    options.wait_ms = all->contender_options.wait_ms;
    while (lease == NULL) {
        struct call call = begin_call(worker);
        enum lh_outcome outcome = lh_acquire(worker->client, keys[key], &options, &lease, NULL);
        judge_call(worker, call, options.wait_ms + all->contender_options.timeout_ms);
        atomic_fetch_add(&all->outcomes[outcome], 1);
        if (outcome != LH_OK)
            fixture_pause_us(5000);
    }
    keep_longest(&all->longest_want_ms, live_now_ms() - wants_since_ms);
    work_inside(worker, lease, key);
}

void contender_play(struct contenders *all, const struct fixture *fixture, size_t child)
{
    struct worker worker = {.all = all, .child = &all->children[child]};
    worker.life = &all->overlap_checker.lives[worker.child->life];
    worker.random.state = worker.child->seed;
    open_client(&worker, fixture);
    for (;;)
        want(&worker, random_below(&worker.random, CHECKER_KEYS));
}

/* ---- all contenders ---- */

void contenders_init(struct contenders *all, const struct contender_options *contender_options,
                     size_t first, size_t end)
{
    all->contender_options = *contender_options;
    all->first = first;
    all->end = end;
    all->next_life = 1;
    checker_init(&all->overlap_checker, all->lives);
}

void contender_start(struct contenders *all, struct fixture *fixture, size_t child,
                     fixture_work *work)
{
    struct contender *contender = &all->children[child];
    contender->life = all->next_life++;
    contender->seed = random_next(&fixture->random);
    contender->inside = 0;
    fixture_start(fixture, child, work);
}

void contender_kill(struct contenders *all, struct fixture *fixture, size_t child)
{
    struct life *life = &all->overlap_checker.lives[all->children[child].life];
    atomic_store(&life->killed, true);
    atomic_store(&life->killed_at_ms, live_now_ms());
    (void)fixture_kill(fixture, child);
}

bool contender_stop(struct contenders *all, struct fixture *fixture, size_t child)
{
    atomic_fetch_add(&all->children[child].stops, 1);
    return fixture_stop(fixture, child);
}

size_t contender_inside(struct contenders *all, int64_t timeout_ms, size_t *out_key)
{
    int64_t end_ms = live_now_ms() + timeout_ms;
    while (live_now_ms() < end_ms) {
        for (size_t i = all->first; i < all->end; i++) {
            int inside = atomic_load(&all->children[i].inside);
            *out_key = (size_t)(inside - 1);
            if (inside > 0)
                return i;
        }
    }
    return CHILDREN_MAX;
}

void entries_count(const struct contenders *all, struct entries *out)
{
    for (size_t i = 0; i < CHECKER_KEYS; i++)
        out->of_key[i] = atomic_load(&all->entries[i]);
    for (size_t i = 0; i < CONTENDERS_MAX; i++)
        out->of_child[i] = atomic_load(&all->children[i].entries);
}

static bool await(const _Atomic uint64_t *count, uint64_t before, int64_t end_ms)
{
    while (atomic_load(count) == before) {
        if (live_now_ms() >= end_ms)
            return false;
        fixture_pause_us(500);
    }
    return true;
}

bool entries_await_key(const struct contenders *all, size_t key, const struct entries *before,
                       int64_t timeout_ms)
{
    int64_t end_ms = live_now_ms() + timeout_ms;
    bool came = true;
    for (size_t i = 0; i < CHECKER_KEYS && came; i++) {
        if (key >= CHECKER_KEYS || key == i)
            came = await(&all->entries[i], before->of_key[i], end_ms);
    }
    return came;
}

bool entries_await_all(const struct contenders *all, const struct entries *before,
                       int64_t timeout_ms)
{
    int64_t end_ms = live_now_ms() + timeout_ms;
    bool came = true;
    for (size_t i = all->first; i < all->end && came; i++)
        came = await(&all->children[i].entries, before->of_child[i], end_ms);
    return came;
}

/* ---- verdict ---- */

static void report_figures(const struct contenders *all)
{
    const struct checker_counts *counts = &all->overlap_checker.counts;
    for (size_t i = 0; i <= LH_FAILED; i++)
        if (all->outcomes[i] > 0)
            fixture_print("asked and heard %s %" PRIu64, lh_outcome_name((enum lh_outcome)i),
                          all->outcomes[i]);
    fixture_print("grants %" PRIu64 ", guarded writes %" PRIu64
                  ", overtaken after its own deadline "
                  "%" PRIu64,
                  counts->entries, counts->writes, counts->late);
    fixture_print("calls %" PRIu64 ", the longest %" PRId64
                  " ms beyond its time; the longest that one "
                  "wanted a key: %" PRId64 " ms",
                  all->calls, all->most_beyond_ms, all->longest_want_ms);
}

void contenders_report(const struct contenders *all, struct fixture *fixture)
{
    const struct checker_counts *counts = &all->overlap_checker.counts;
    report_figures(all);
    fixture_case(fixture, counts->stale_refused > 0, "stale writes were tried (%" PRIu64 ")",
                 counts->stale_refused);
    fixture_case(fixture, counts->updates_lost == 0, "and none was taken (%" PRIu64 ")",
                 counts->updates_lost);
    fixture_case(fixture, counts->overlaps == 0, "nobody was inside beside another (%" PRIu64 ")",
                 counts->overlaps);
    fixture_case(fixture, counts->early == 0, "no dead holder's lease was cut short (%" PRIu64 ")",
                 counts->early);
    fixture_case(fixture, counts->old_tokens == 0, "tokens grew (%" PRIu64 ")", counts->old_tokens);
    fixture_case(fixture, all->late_calls == 0, "no call lasted beyond its time (%" PRIu64 ")",
                 all->late_calls);
}

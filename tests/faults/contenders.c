/* SPDX-License-Identifier: Apache-2.0 */
/* See contenders.h. */
#include "contenders.h"

#include <inttypes.h>

enum { BUSY_MS = 1000 }; /* what a loaded machine may add to a call */

static const char *const keys[WITNESS_KEYS] = {"first", "second", "third"};

struct worker {
    struct contenders *all;
    struct contender *seat;
    struct life *life;
    struct random random;
    struct lh_client *client;
};

/* ---- one of them ---- */

struct call {
    int64_t began_ms;
    unsigned stops;
};

static struct call begin_call(const struct worker *worker)
{
    return (struct call){.began_ms = live_now_ms(), .stops = atomic_load(&worker->seat->stops)};
}

/* What a call took, against what it may take. */
static void judge_call(struct worker *worker, struct call call, int64_t limit_ms)
{
    struct contenders *all = worker->all;
    int64_t beyond_ms = live_now_ms() - call.began_ms - limit_ms;
    atomic_fetch_add(&all->calls, 1);
    if (call.stops != atomic_load(&worker->seat->stops))
        return; /* the time was not its own */
    atomic_fetch_add(&all->late_calls, beyond_ms > BUSY_MS ? 1 : 0);
    keep_longest(&all->most_beyond_ms, beyond_ms);
}

static void note_deadline(const struct worker *worker, const struct lh_lease *lease)
{
    int64_t left_ms = lh_remaining_ms(lease);
    if (left_ms <= 0)
        return; /* what was noted before is over as well */
    atomic_store(&worker->life->deadline_ms, live_now_ms() + left_ms);
    atomic_store(&worker->life->ends_ms, live_now_ms() + left_ms);
}

/* Mostly short; now and then so long that only renewals keep the lease. */
static void stay(struct worker *worker, const struct lh_lease *lease)
{
    const struct contest *contest = &worker->all->contest;
    int64_t length_ms = (int64_t)random_below(&worker->random, (uint64_t)contest->stay_most_ms);
    if (random_below(&worker->random, contest->long_stays) == 0)
        length_ms += contest->ttl_ms;
    int64_t end_ms = live_now_ms() + length_ms;
    do {
        note_deadline(worker, lease);
        rig_pause_us(1000);
    } while (live_now_ms() < end_ms && lh_held(lease));
}

static void work_inside(struct worker *worker, struct lh_lease *lease, size_t key)
{
    struct contenders *all = worker->all;
    struct witness *witness = &all->witness;
    uint64_t token = lh_token(lease), value = 0;
    note_deadline(worker, lease);
    witness_enter(witness, worker->seat->life, key, token);
    bool read = fenced_read(witness, key, token, &value);
    atomic_store(&worker->seat->inside, (int)key + 1);
    atomic_fetch_add(&all->entries[key], 1);
    atomic_fetch_add(&worker->seat->entries, 1);
    stay(worker, lease);
    if (read)
        (void)fenced_write(witness, key, token, value);
    atomic_store(&worker->seat->inside, 0);
    witness_leave(witness, worker->seat->life, key);
    struct call call = begin_call(worker);
    (void)lh_release(&lease, NULL);
    judge_call(worker, call, all->contest.patience_ms);
}

static void sit_down(struct worker *worker, const struct rig *rig)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.patience_ms = worker->all->contest.patience_ms;
    for (;;) {
        struct call call = begin_call(worker);
        enum lh_outcome outcome = lh_open(rig->url, &options, &worker->client, NULL);
        judge_call(worker, call, options.patience_ms);
        if (outcome == LH_OK)
            return;
        rig_pause_us(20000);
    }
}

static void want(struct worker *worker, size_t key)
{
    struct contenders *all = worker->all;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    int64_t wants_since_ms = live_now_ms();
    options.ttl_ms = all->contest.ttl_ms;
    options.wait_ms = all->contest.wait_ms;
    while (lease == NULL) {
        struct call call = begin_call(worker);
        enum lh_outcome outcome = lh_acquire(worker->client, keys[key], &options, &lease, NULL);
        judge_call(worker, call, options.wait_ms + all->contest.patience_ms);
        atomic_fetch_add(&all->outcomes[outcome], 1);
        if (outcome != LH_OK)
            rig_pause_us(5000);
    }
    keep_longest(&all->longest_want_ms, live_now_ms() - wants_since_ms);
    work_inside(worker, lease, key);
}

void contender_play(struct contenders *all, const struct rig *rig, size_t seat)
{
    struct worker worker = {.all = all, .seat = &all->seats[seat]};
    worker.life = &all->witness.lives[worker.seat->life];
    worker.random.state = worker.seat->seed;
    sit_down(&worker, rig);
    for (;;)
        want(&worker, random_below(&worker.random, WITNESS_KEYS));
}

/* ---- all of them ---- */

void contenders_init(struct contenders *all, const struct contest *contest, size_t first,
                     size_t end)
{
    all->contest = *contest;
    all->first = first;
    all->end = end;
    all->next_life = 1;
    witness_init(&all->witness, all->lives);
}

void contender_seat(struct contenders *all, struct rig *rig, size_t seat, rig_work *work)
{
    struct contender *contender = &all->seats[seat];
    contender->life = all->next_life++;
    contender->seed = random_next(&rig->random);
    contender->inside = 0;
    rig_start(rig, seat, work);
}

void contender_doom(struct contenders *all, struct rig *rig, size_t seat)
{
    struct life *life = &all->witness.lives[all->seats[seat].life];
    atomic_store(&life->doomed, true);
    atomic_store(&life->killed_at_ms, live_now_ms());
    (void)rig_kill(rig, seat);
}

bool contender_stop(struct contenders *all, struct rig *rig, size_t seat)
{
    atomic_fetch_add(&all->seats[seat].stops, 1);
    return rig_stop(rig, seat);
}

size_t contender_inside(struct contenders *all, int64_t patience_ms, size_t *out_key)
{
    int64_t end_ms = live_now_ms() + patience_ms;
    while (live_now_ms() < end_ms) {
        for (size_t i = all->first; i < all->end; i++) {
            int inside = atomic_load(&all->seats[i].inside);
            *out_key = (size_t)(inside - 1);
            if (inside > 0)
                return i;
        }
    }
    return SEATS_MAX;
}

void entries_count(const struct contenders *all, struct entries *out)
{
    for (size_t i = 0; i < WITNESS_KEYS; i++)
        out->of_key[i] = atomic_load(&all->entries[i]);
    for (size_t i = 0; i < CONTENDER_SEATS; i++)
        out->of_seat[i] = atomic_load(&all->seats[i].entries);
}

static bool await(const _Atomic uint64_t *count, uint64_t before, int64_t end_ms)
{
    while (atomic_load(count) == before) {
        if (live_now_ms() >= end_ms)
            return false;
        rig_pause_us(500);
    }
    return true;
}

bool entries_await_key(const struct contenders *all, size_t key, const struct entries *before,
                       int64_t patience_ms)
{
    int64_t end_ms = live_now_ms() + patience_ms;
    bool came = true;
    for (size_t i = 0; i < WITNESS_KEYS && came; i++) {
        if (key >= WITNESS_KEYS || key == i)
            came = await(&all->entries[i], before->of_key[i], end_ms);
    }
    return came;
}

bool entries_await_all(const struct contenders *all, const struct entries *before,
                       int64_t patience_ms)
{
    int64_t end_ms = live_now_ms() + patience_ms;
    bool came = true;
    for (size_t i = all->first; i < all->end && came; i++)
        came = await(&all->seats[i].entries, before->of_seat[i], end_ms);
    return came;
}

/* ---- judgement ---- */

static void report_figures(const struct contenders *all)
{
    const struct witness_counts *counts = &all->witness.counts;
    for (size_t i = 0; i <= LH_FAILED; i++)
        if (all->outcomes[i] > 0)
            rig_say("asked and heard %s %" PRIu64, lh_outcome_name((enum lh_outcome)i),
                    all->outcomes[i]);
    rig_say("grants %" PRIu64 ", guarded writes %" PRIu64 ", overtaken after its own deadline "
            "%" PRIu64,
            counts->entries, counts->writes, counts->late);
    rig_say("calls %" PRIu64 ", the longest %" PRId64 " ms beyond its time; the longest that one "
            "wanted a key: %" PRId64 " ms",
            all->calls, all->most_beyond_ms, all->longest_want_ms);
}

void contenders_report(const struct contenders *all, struct rig *rig)
{
    const struct witness_counts *counts = &all->witness.counts;
    report_figures(all);
    rig_case(rig, counts->stale_refused > 0, "stale writes were tried (%" PRIu64 ")",
             counts->stale_refused);
    rig_case(rig, counts->updates_lost == 0, "and none was taken (%" PRIu64 ")",
             counts->updates_lost);
    rig_case(rig, counts->overlaps == 0, "nobody was inside beside another (%" PRIu64 ")",
             counts->overlaps);
    rig_case(rig, counts->early == 0, "no dead holder's lease was cut short (%" PRIu64 ")",
             counts->early);
    rig_case(rig, counts->old_tokens == 0, "tokens grew (%" PRIu64 ")", counts->old_tokens);
    rig_case(rig, all->late_calls == 0, "no call lasted beyond its time (%" PRIu64 ")",
             all->late_calls);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes share three keys; one after the other is killed at a random moment, also in the
 * middle of a store call, and started again. A round is a kill. Nobody may ever be inside beside
 * another, tokens only grow, and afterwards every key can be had again.
 */
#include "rig.h"
#include "witness.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    WORKERS = 8,
    ROUNDS_MAX = 100000,
    ROUNDS_FOR_ALL = 100, /* so many show everything; fewer may not */
    LIVES_MAX = ROUNDS_MAX + WORKERS + 1,
    PATIENCE_MS = 10000,
    TTL_LEAST_MS = 1000,
    TTL_MOST_MS = 3000,
    /* After the last kill: a lease that runs out, and a second one that nobody was told of. */
    BOUND_MS = 2 * TTL_MOST_MS,
};

static const char *const keys[WITNESS_KEYS] = {"first", "second", "third"};

/* What a worker is at, for the killer. */
enum phase { RESTING, ASKING, WAITING, INSIDE, RENEWING, LEAVING, PHASES };

static const char *const phase_names[PHASES] = {
    [RESTING] = "resting", [ASKING] = "asking",     [WAITING] = "waiting",
    [INSIDE] = "inside",   [RENEWING] = "renewing", [LEAVING] = "giving back",
};

struct seat {
    uint64_t life, session, seed;
    _Atomic int phase;
    _Atomic bool in_flight;
};

struct shared {
    struct seat seats[WORKERS];
    _Atomic uint64_t outcomes[OUTCOME_MISMATCH + 1], given_back, lost;
    struct witness witness;
    struct life lives[LIVES_MAX];
};

/* A worker, as its watcher sees it. */
struct worker {
    struct shared *shared;
    struct seat *seat;
    struct life *life;
    struct live *live;
    struct random random;
};

static enum phase phase_of(enum lease_state state)
{
    switch (state) {
    case LEASE_ASKING:
    case LEASE_OFFERED:
    case LEASE_ERRAND:
        return ASKING;
    case LEASE_WAITING:
        return WAITING;
    case LEASE_HELD:
        return INSIDE;
    case LEASE_RENEWING:
        return RENEWING;
    case LEASE_LOST:
    case LEASE_RELEASING:
    case LEASE_LEAVING:
        return LEAVING;
    case LEASE_IDLE:
    case LEASE_ENDED:
        return RESTING;
    }
    return RESTING;
}

static void watch(void *owner, const struct live_step *step)
{
    const struct worker *worker = owner;
    const struct lease *lease = step->after;
    if (lease->state == LEASE_HELD) {
        atomic_store(&worker->life->bound, lease->options->request.bound);
        atomic_store(&worker->life->deadline_ms, lease->deadline_ms);
        atomic_store(&worker->life->ends_ms, lease->start_ms + lease->ttl_ms);
    }
    atomic_store(&worker->seat->phase, (int)phase_of(lease->state));
    atomic_store(&worker->seat->in_flight, lease->in_flight);
}

/* Mostly short, now and then so long that only renewals keep the lease. */
static int64_t length_of_work(struct worker *worker, int64_t ttl_ms)
{
    if (random_below(&worker->random, 24) == 0)
        return ttl_ms / 3 + (int64_t)random_below(&worker->random, (uint64_t)ttl_ms);
    return (int64_t)random_below(&worker->random, 5);
}

static void work_inside(struct worker *worker, size_t key, int64_t ttl_ms)
{
    struct witness *witness = &worker->shared->witness;
    uint64_t token = live_lease(worker->live)->token, value = 0;
    witness_enter(witness, worker->seat->life, key, token);
    bool read = fenced_read(witness, key, token, &value);
    bool held = live_work(worker->live, length_of_work(worker, ttl_ms));
    if (held && read)
        read = fenced_write(witness, key, token, value);
    witness_leave(witness, worker->seat->life, key);
    if (!held)
        atomic_fetch_add(&worker->shared->lost, 1);
    if (live_release(worker->live) == OUTCOME_OK)
        atomic_fetch_add(&worker->shared->given_back, 1);
    /* A straggler: what it writes now counts only if nobody came since. */
    if (held && read && random_below(&worker->random, 4) == 0) {
        rig_pause_us((int64_t)random_below(&worker->random, 5000));
        (void)fenced_write(witness, key, token, value + 1);
    }
}

static void play_worker(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    struct worker worker = {.shared = shared, .seat = &shared->seats[seat]};
    worker.life = &shared->witness.lives[worker.seat->life];
    worker.random.state = worker.seat->seed;
    worker.live = rig_live(rig, worker.seat->session, PATIENCE_MS);
    live_watch(worker.live, watch, &worker);
    for (;;) {
        struct random *random = &worker.random;
        size_t key = random_below(random, WITNESS_KEYS);
        bool bound = random_below(random, 4) != 0;
        int64_t spread_ms = (int64_t)random_below(random, TTL_MOST_MS - TTL_LEAST_MS);
        struct live_wish wish = {.key = keys[key],
                                 .bound = bound,
                                 .ttl_ms = TTL_LEAST_MS + (bound ? spread_ms : 0),
                                 .look_ms = 200};
        if (random_below(random, 4) != 0)
            wish.wait_ms = (int64_t)random_below(random, 4000) + 1;
        enum outcome outcome = live_acquire(worker.live, &wish);
        atomic_fetch_add(&shared->outcomes[outcome], 1);
        if (outcome == OUTCOME_OK)
            work_inside(&worker, key, wish.ttl_ms);
        else
            rig_pause_us((int64_t)random_below(random, 2000));
    }
}

static void seat_worker(struct rig *rig, size_t seat, uint64_t life)
{
    struct shared *shared = rig->shared;
    shared->seats[seat] =
        (struct seat){.life = life, .session = rig_session(rig), .seed = random_next(&rig->random)};
    rig_start(rig, seat, play_worker);
}

static bool is_wanted(struct seat *seat, bool inside)
{
    return inside ? atomic_load(&seat->phase) == INSIDE : atomic_load(&seat->in_flight);
}

/* Somebody inside, or with a request on its way; when nobody is so for long, just somebody. */
static size_t hunt(struct rig *rig, bool inside)
{
    enum { LONG_US = 100000, MOMENT_US = 300 };
    struct shared *shared = rig->shared;
    size_t seat = random_below(&rig->random, WORKERS);
    int64_t end_us = rig_now_us() + LONG_US;
    while (!is_wanted(&shared->seats[seat], inside) && rig_now_us() < end_us)
        seat = (seat + 1) % WORKERS;
    rig_spin_us((int64_t)random_below(&rig->random, MOMENT_US));
    return seat;
}

struct kills {
    uint64_t count, in_flight, in_phase[PHASES], ended_before;
};

static void kill_one(struct rig *rig, size_t seat, struct kills *kills)
{
    struct shared *shared = rig->shared;
    struct seat *victim = &shared->seats[seat];
    struct life *life = &shared->witness.lives[victim->life];
    atomic_store(&life->doomed, true);
    atomic_store(&life->killed_at_ms, live_now_ms());
    kills->ended_before += rig_kill(rig, seat) ? 0 : 1;
    kills->count++;
    kills->in_flight += atomic_load(&victim->in_flight) ? 1 : 0;
    kills->in_phase[atomic_load(&victim->phase)]++;
}

static void kill_rounds(struct rig *rig, struct kills *kills)
{
    uint64_t life = 1;
    for (size_t seat = 0; seat < WORKERS; seat++)
        seat_worker(rig, seat, life++);
    for (uint64_t round = 0; round < rig->rounds && !rig_late(rig); round++) {
        rig_pause_us(10000 + (int64_t)random_below(&rig->random, 60000));
        size_t seat = random_below(&rig->random, WORKERS);
        if (round % 3 != 0)
            seat = hunt(rig, /* inside= */ round % 3 == 1);
        kill_one(rig, seat, kills);
        seat_worker(rig, seat, life++);
    }
    struct kills last = {0};
    for (size_t seat = 0; seat < WORKERS; seat++)
        kill_one(rig, seat, &last);
    kills->ended_before += last.ended_before;
}

/* Everybody is dead: a newcomer gets every key, with a token above all that was. */
static void play_newcomer(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    struct live *live = rig_live(rig, shared->seats[seat].session, PATIENCE_MS);
    for (size_t key = 0; key < WITNESS_KEYS; key++) {
        struct live_wish wish = {.key = keys[key], .wait_ms = BOUND_MS, .look_ms = 200};
        int64_t began_ms = live_now_ms();
        enum outcome outcome = live_acquire(live, &wish);
        bool grew = live_lease(live)->token > atomic_load(&shared->witness.keys[key].token);
        rig_say("%s: %s after %" PRId64 " ms", keys[key], outcome_word(outcome),
                live_now_ms() - began_ms);
        if (outcome != OUTCOME_OK || !grew || live_release(live) != OUTCOME_OK)
            _exit(1);
    }
    live_close(&live);
}

static void report_kills(struct rig *rig, const struct kills *kills)
{
    rig_say("kills %" PRIu64 ", with a request on its way %" PRIu64, kills->count,
            kills->in_flight);
    for (size_t phase = 0; phase < PHASES; phase++)
        rig_say("  while %s %" PRIu64, phase_names[phase], kills->in_phase[phase]);
    rig_case(rig, kills->count == rig->rounds, "%" PRIu64 " of %" PRIu64 " rounds in time",
             kills->count, rig->rounds);
    rig_case(rig, kills->ended_before == 0, "nobody ended by itself (%" PRIu64 ")",
             kills->ended_before);
    rig_case(rig,
             kills->in_flight > 0 && kills->in_phase[WAITING] > 0 && kills->in_phase[INSIDE] > 0,
             "some were killed asking, some waiting, some inside");
}

static void report(struct rig *rig, uint64_t in_flight)
{
    struct shared *shared = rig->shared;
    const struct witness_counts *counts = &shared->witness.counts;
    for (size_t i = 0; i <= OUTCOME_MISMATCH; i++)
        if (shared->outcomes[i] > 0)
            rig_say("asked and heard %s %" PRIu64, outcome_word((enum outcome)i),
                    shared->outcomes[i]);
    rig_say("grants %" PRIu64 ", given back %" PRIu64 ", lost and told %" PRIu64, counts->entries,
            shared->given_back, shared->lost);
    rig_say("taken over from a killed one: bound %" PRIu64 ", the longest %" PRId64
            " ms after the kill; unbound %" PRIu64 ", the longest %" PRId64
            " ms after the lease's end",
            counts->after_death_bound, counts->longest_bound_ms, counts->after_death_unbound,
            counts->longest_unbound_ms);
    rig_say("guarded writes %" PRIu64 ", stale ones refused %" PRIu64
            ", late leavers, told before %" PRIu64,
            counts->writes, counts->stale_refused, counts->late);
    /* What was not answered when somebody died in the middle of a sync may be void. */
    rig_case(rig, shared->outcomes[OUTCOME_UNAVAILABLE] <= in_flight,
             "the store was always there, but for requests beside a killed one (%" PRIu64 ")",
             shared->outcomes[OUTCOME_UNAVAILABLE]);
    rig_case(rig, counts->entries > rig->rounds / 2, "work was done meanwhile");
    bool both = counts->after_death_bound > 0 && counts->after_death_unbound > 0;
    rig_case(rig, both || rig->rounds < ROUNDS_FOR_ALL, "both kinds of grants were taken over");
    rig_case(rig, counts->overlaps == 0, "nobody was inside beside another (%" PRIu64 ")",
             counts->overlaps);
    rig_case(rig, counts->early == 0,
             "no unbound lease was cut short (%" PRIu64 ", by %" PRId64 " ms)", counts->early,
             counts->earliest_ms);
    rig_case(rig, counts->old_tokens == 0, "tokens grew (%" PRIu64 ")", counts->old_tokens);
    rig_case(rig, counts->stale_refused > 0, "stale writes were tried");
    rig_case(rig, counts->updates_lost == 0, "no update was lost (%" PRIu64 ")",
             counts->updates_lost);
}

int main(int argc, char **argv)
{
    struct rig rig;
    struct kills kills = {0};
    rig_open(&rig, argc, argv, /* rounds= */ 200, /* limit_s= */ 30, /* round_ms= */ 250,
             sizeof(struct shared));
    struct shared *shared = rig.shared;
    if (rig.rounds > ROUNDS_MAX)
        rig.rounds = ROUNDS_MAX;
    witness_init(&shared->witness, shared->lives);
    kill_rounds(&rig, &kills);
    report_kills(&rig, &kills);
    report(&rig, kills.in_flight);
    shared->seats[0].session = rig_session(&rig);
    rig_start(&rig, 0, play_newcomer);
    rig_case(&rig, rig_join(&rig, 0), "all keys can be had again within %d ms each", BOUND_MS);
    rig_say("files in the store's folder: %zu", rig_files(&rig));
    return rig_close(&rig);
}

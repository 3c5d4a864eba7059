/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes share three keys; one after the other is killed at a random moment, also in the
 * middle of a store call, and restarted. A round is a kill. No two processes may hold a key at the
 * same time, tokens only grow, and afterwards every key can be acquired again. With --server, the
 * server is killed and started again in every sixth round.
 */
#include "fixture.h"
#include "overlap_checker.h"
#include "server_program.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    WORKERS = 8,
    ROUNDS_MAX = 100000,
    ROUNDS_FOR_ALL = 100, /* enough rounds to cover everything; fewer may not */
    LIVES_MAX = ROUNDS_MAX + WORKERS + 1,
    TIMEOUT_MS = 10000,
    TTL_LEAST_MS = 1000,
    TTL_MOST_MS = 3000,
    /* After the last kill: a lease expires, and a second one whose grant was not received. */
    BOUND_MS = 2 * TTL_MOST_MS,
    /* Of each dead waiter, where the store cannot detect it: the grace of an offer, and a poll. */
    DEAD_WAITER_MS = 1300,
    SERVER_EVERY = 6, /* rounds */
};

static const char *const keys[CHECKER_KEYS] = {"first", "second", "third"};

/* State of a worker, for the killer. */
enum phase { RESTING, ASKING, WAITING, INSIDE, RENEWING, LEAVING, PHASES };

static const char *const phase_names[PHASES] = {
    [RESTING] = "resting", [ASKING] = "asking",     [WAITING] = "waiting",
    [INSIDE] = "inside",   [RENEWING] = "renewing", [LEAVING] = "giving back",
};

struct child {
    uint64_t life, session, seed;
    _Atomic int phase;
    _Atomic bool in_flight;
};

struct shared {
    struct child children[WORKERS];
    _Atomic uint64_t outcomes[OUTCOME_MISMATCH + 1], given_back, lost;
    struct overlap_checker overlap_checker;
    struct life lives[LIVES_MAX];
};

/* A worker, as its watcher records it. */
struct worker {
    struct shared *shared;
    struct child *child;
    struct life *life;
    struct live *live;
    struct random random;
};

static enum phase phase_of(enum lease_state state)
{
    switch (state) {
    case LEASE_ACQUIRING:
    case LEASE_OFFERED:
    case LEASE_OPERATION:
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
    atomic_store(&worker->child->phase, (int)phase_of(lease->state));
    atomic_store(&worker->child->in_flight, lease->in_flight);
}

/* Mostly short, sometimes so long that only renewals keep the lease. */
static int64_t length_of_work(struct worker *worker, int64_t ttl_ms)
{
    if (random_below(&worker->random, 24) == 0)
        return ttl_ms / 3 + (int64_t)random_below(&worker->random, (uint64_t)ttl_ms);
    return (int64_t)random_below(&worker->random, 5);
}

static void work_inside(struct worker *worker, size_t key, int64_t ttl_ms)
{
    struct overlap_checker *overlap_checker = &worker->shared->overlap_checker;
    uint64_t token = live_lease(worker->live)->token, value = 0;
    checker_enter(overlap_checker, worker->child->life, key, token);
    bool read = fenced_read(overlap_checker, key, token, &value);
    bool held = live_work(worker->live, length_of_work(worker, ttl_ms));
    if (held && read)
        read = fenced_write(overlap_checker, key, token, value);
    checker_leave(overlap_checker, worker->child->life, key);
    if (!held)
        atomic_fetch_add(&worker->shared->lost, 1);
    if (live_release(worker->live) == OUTCOME_OK)
        atomic_fetch_add(&worker->shared->given_back, 1);
    /* A late write: it is accepted only if no other process entered since. */
    if (held && read && random_below(&worker->random, 4) == 0) {
        fixture_pause_us((int64_t)random_below(&worker->random, 5000));
        (void)fenced_write(overlap_checker, key, token, value + 1);
    }
}

static void play_worker(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct worker worker = {.shared = shared, .child = &shared->children[child]};
    worker.life = &shared->overlap_checker.lives[worker.child->life];
    worker.random.state = worker.child->seed;
    worker.live = fixture_live(fixture, worker.child->session, TIMEOUT_MS);
    live_watch(worker.live, watch, &worker);
    for (;;) {
        struct random *random = &worker.random;
        size_t key = random_below(random, CHECKER_KEYS);
        bool bound = random_below(random, 4) != 0;
        int64_t spread_ms = (int64_t)random_below(random, TTL_MOST_MS - TTL_LEAST_MS);
        struct live_request wanted = {.key = keys[key],
                                      .bound = bound,
                                      .ttl_ms = TTL_LEAST_MS + (bound ? spread_ms : 0),
                                      .poll_ms = 200};
        if (random_below(random, 4) != 0)
            wanted.wait_ms = (int64_t)random_below(random, 4000) + 1;
        enum outcome outcome = live_acquire(worker.live, &wanted);
        atomic_fetch_add(&shared->outcomes[outcome], 1);
        if (outcome == OUTCOME_OK)
            work_inside(&worker, key, wanted.ttl_ms);
        else
            fixture_pause_us((int64_t)random_below(random, 2000));
    }
}

static void start_worker(struct fixture *fixture, size_t child, uint64_t life)
{
    struct shared *shared = fixture->shared;
    shared->children[child] = (struct child){
        .life = life, .session = fixture_session(fixture), .seed = random_next(&fixture->random)};
    fixture_start(fixture, child, play_worker);
}

static bool is_wanted(struct child *child, bool inside)
{
    return inside ? atomic_load(&child->phase) == INSIDE : atomic_load(&child->in_flight);
}

/* Returns a worker that holds or has a request in flight; after a while, any worker. */
static size_t hunt(struct fixture *fixture, bool inside)
{
    enum { LONG_US = 100000, MOMENT_US = 300 };
    struct shared *shared = fixture->shared;
    size_t child = random_below(&fixture->random, WORKERS);
    int64_t end_us = fixture_now_us() + LONG_US;
    while (!is_wanted(&shared->children[child], inside) && fixture_now_us() < end_us)
        child = (child + 1) % WORKERS;
    fixture_spin_us((int64_t)random_below(&fixture->random, MOMENT_US));
    return child;
}

struct kills {
    uint64_t count, in_flight, in_phase[PHASES], ended_before, server;
};

static void kill_one(struct fixture *fixture, size_t child, struct kills *kills)
{
    struct shared *shared = fixture->shared;
    struct child *victim = &shared->children[child];
    struct life *life = &shared->overlap_checker.lives[victim->life];
    atomic_store(&life->killed, true);
    atomic_store(&life->killed_at_ms, live_now_ms());
    kills->ended_before += fixture_kill(fixture, child) ? 0 : 1;
    kills->count++;
    kills->in_flight += atomic_load(&victim->in_flight) ? 1 : 0;
    kills->in_phase[atomic_load(&victim->phase)]++;
}

static bool restart_server(struct fixture *fixture)
{
    bool killed = server_kill(fixture);
    fixture_pause_us((int64_t)random_below(&fixture->random, 300000));
    return server_start(fixture) && killed;
}

static void kill_rounds(struct fixture *fixture, struct kills *kills)
{
    uint64_t life = 1;
    for (size_t child = 0; child < WORKERS; child++)
        start_worker(fixture, child, life++);
    for (uint64_t round = 0; round < fixture->rounds && !fixture_late(fixture); round++) {
        /* Where only the TTL reveals a death, more kills would leave no time for work. */
        fixture_pause_us((10000 + (int64_t)random_below(&fixture->random, 60000)) *
                         (fixture_knows_dead(fixture) ? 1 : 12));
        if (fixture->server != NULL && round % SERVER_EVERY == 0)
            kills->server += restart_server(fixture) ? 1 : 0;
        size_t child = random_below(&fixture->random, WORKERS);
        if (round % 3 != 0)
            child = hunt(fixture, /* inside= */ round % 3 == 1);
        kill_one(fixture, child, kills);
        start_worker(fixture, child, life++);
    }
    struct kills last = {0};
    for (size_t child = 0; child < WORKERS; child++)
        kill_one(fixture, child, &last);
    kills->ended_before += last.ended_before;
}

/* All workers are dead: a new process acquires every key, with a token above all earlier ones. */
static int64_t bound_ms(const struct fixture *fixture)
{
    return fixture_knows_dead(fixture) ? BOUND_MS : BOUND_MS + WORKERS * DEAD_WAITER_MS;
}

static void play_newcomer(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct live *live = fixture_live(fixture, shared->children[child].session, TIMEOUT_MS);
    for (size_t key = 0; key < CHECKER_KEYS; key++) {
        struct live_request wanted = {
            .key = keys[key], .wait_ms = bound_ms(fixture), .poll_ms = 200};
        int64_t began_ms = live_now_ms();
        enum outcome outcome = live_acquire(live, &wanted);
        bool grew = live_lease(live)->token > atomic_load(&shared->overlap_checker.keys[key].token);
        fixture_print("%s: %s after %" PRId64 " ms", keys[key], outcome_name(outcome),
                      live_now_ms() - began_ms);
        if (outcome != OUTCOME_OK || !grew || live_release(live) != OUTCOME_OK)
            _exit(1);
    }
    live_close(&live);
}

static void report_kills(struct fixture *fixture, const struct kills *kills)
{
    fixture_print("kills %" PRIu64 ", with a request on its way %" PRIu64, kills->count,
                  kills->in_flight);
    for (size_t phase = 0; phase < PHASES; phase++)
        fixture_print("  while %s %" PRIu64, phase_names[phase], kills->in_phase[phase]);
    fixture_case(fixture, kills->count == fixture->rounds,
                 "%" PRIu64 " of %" PRIu64 " rounds in time", kills->count, fixture->rounds);
    if (fixture->server != NULL)
        fixture_case(fixture, kills->server == (fixture->rounds - 1) / SERVER_EVERY + 1,
                     "the server was killed and started again %" PRIu64 " times", kills->server);
    fixture_case(fixture, kills->ended_before == 0, "nobody ended by itself (%" PRIu64 ")",
                 kills->ended_before);
    bool few = fixture->server != NULL && fixture->rounds < ROUNDS_FOR_ALL;
    fixture_case(fixture,
                 few || (kills->in_flight > 0 && kills->in_phase[WAITING] > 0 &&
                         kills->in_phase[INSIDE] > 0),
                 "some were killed asking, some waiting, some inside");
}

static void report(struct fixture *fixture, uint64_t in_flight)
{
    struct shared *shared = fixture->shared;
    const struct checker_counts *counts = &shared->overlap_checker.counts;
    for (size_t i = 0; i <= OUTCOME_MISMATCH; i++)
        if (shared->outcomes[i] > 0)
            fixture_print("asked and heard %s %" PRIu64, outcome_name((enum outcome)i),
                          shared->outcomes[i]);
    fixture_print("grants %" PRIu64 ", given back %" PRIu64 ", lost and told %" PRIu64,
                  counts->entries, shared->given_back, shared->lost);
    fixture_print("taken over from a killed one: bound %" PRIu64 ", the longest %" PRId64
                  " ms after the kill; unbound %" PRIu64 ", the longest %" PRId64
                  " ms after the lease's end",
                  counts->after_death_bound, counts->longest_bound_ms, counts->after_death_unbound,
                  counts->longest_unbound_ms);
    fixture_print("guarded writes %" PRIu64 ", stale ones refused %" PRIu64
                  ", late leavers, told before %" PRIu64,
                  counts->writes, counts->stale_refused, counts->late);
    /* A request that was not answered when a process died during a sync may be void. */
    fixture_case(fixture,
                 shared->outcomes[OUTCOME_UNAVAILABLE] <= in_flight || fixture->server != NULL,
                 "the store was always there, but for requests beside a killed one (%" PRIu64 ")",
                 shared->outcomes[OUTCOME_UNAVAILABLE]);
    fixture_case(fixture, counts->entries > fixture->rounds / 2, "work was done meanwhile");
    bool both = counts->after_death_bound > 0 && counts->after_death_unbound > 0;
    fixture_case(fixture, both || fixture->rounds < ROUNDS_FOR_ALL,
                 "both kinds of grants were taken over");
    fixture_case(fixture, counts->overlaps == 0, "nobody was inside beside another (%" PRIu64 ")",
                 counts->overlaps);
    fixture_case(fixture, counts->early == 0,
                 "no unbound lease was cut short (%" PRIu64 ", by %" PRId64 " ms)", counts->early,
                 counts->earliest_ms);
    fixture_case(fixture, counts->old_tokens == 0, "tokens grew (%" PRIu64 ")", counts->old_tokens);
    fixture_case(fixture, counts->stale_refused > 0 || fixture->rounds < ROUNDS_FOR_ALL,
                 "stale writes were tried");
    fixture_case(fixture, counts->updates_lost == 0, "no update was lost (%" PRIu64 ")",
                 counts->updates_lost);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct kills kills = {0};
    fixture_open(&fixture, argc, argv, /* rounds= */ 200, /* limit_s= */ 30, /* round_ms= */ 2000,
                 sizeof(struct shared));
    struct shared *shared = fixture.shared;
    if (fixture.rounds > ROUNDS_MAX)
        fixture.rounds = ROUNDS_MAX;
    checker_init(&shared->overlap_checker, shared->lives);
    kill_rounds(&fixture, &kills);
    report_kills(&fixture, &kills);
    report(&fixture, kills.in_flight);
    shared->children[0].session = fixture_session(&fixture);
    fixture_start(&fixture, 0, play_newcomer);
    fixture_case(&fixture, fixture_join(&fixture, 0),
                 "all keys can be had again within %" PRId64 " ms each", bound_ms(&fixture));
    fixture_print("files in the store's folder: %zu", fixture_files(&fixture));
    return fixture_close(&fixture);
}

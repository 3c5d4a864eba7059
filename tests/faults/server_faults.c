/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real Redis server of our own (AOF, always) and five processes that share three keys through the
 * library. Round by round, so often each, a holder is stopped past the end of its lease, a holder
 * is killed, the server is killed and started again, the server is stopped for a while. Nobody asks
 * whether it still holds before it writes: what is written to must tell by the token. So stale
 * writes are tried, and none may be taken; tokens only grow; whoever waits comes in within the
 * stated time; no call lasts beyond its own.
 */
#include "leasehold.h"
#include "own_server.h"
#include "witness.h"

#include <inttypes.h>

enum fault { HOLDER_STOPPED, HOLDER_KILLED, SERVER_KILLED, SERVER_STOPPED, FAULTS };
enum {
    SERVER, /* its seat; workers sit behind it */
    WORKERS = 5,
    SEATS,
    LIVES_MAX = 4096,
    TTL_MS = 2000,
    WAIT_MS = 3000,
    PATIENCE_MS = 3000,
    BUSY_MS = 1000, /* what a loaded machine may add to a call */
    LOOK_MS = 6500, /* the longest that a waiter sleeps when nobody wakes it */
    IN_AGAIN_MS = TTL_MS + LOOK_MS,
    STOPPED_MOST_US = 2 * TTL_MS * 1000,
};

static const char *const keys[WITNESS_KEYS] = {"first", "second", "third"};
static const char *const fault_names[FAULTS] = {
    "a holder was stopped past its TTL", "a holder was killed",
    "the server was killed and started again", "the server was stopped"};

struct seat {
    uint64_t life, seed;
    _Atomic int inside; /* number of the key, from 1; 0: outside */
};

struct shared {
    struct seat seats[SEATS];
    _Atomic uint64_t entries[WITNESS_KEYS]; /* of each key */
    _Atomic uint64_t outcomes[LH_FAILED + 1], calls, late_calls;
    _Atomic int64_t most_beyond_ms; /* a call's own time */
    struct witness witness;
    struct life lives[LIVES_MAX];
};

struct worker {
    struct shared *shared;
    struct seat *seat;
    struct life *life;
    struct random random;
    struct lh_client *client;
};

/* ---- a worker ---- */

/* What a call took, against what it may take. */
static void judge_call(struct shared *shared, int64_t began_ms, int64_t limit_ms)
{
    int64_t beyond_ms = live_now_ms() - began_ms - limit_ms;
    atomic_fetch_add(&shared->calls, 1);
    atomic_fetch_add(&shared->late_calls, beyond_ms > BUSY_MS ? 1 : 0);
    keep_longest(&shared->most_beyond_ms, beyond_ms);
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
    int64_t length_ms = (int64_t)random_below(&worker->random, 8);
    if (random_below(&worker->random, 48) == 0)
        length_ms += TTL_MS;
    int64_t end_ms = live_now_ms() + length_ms;
    do {
        note_deadline(worker, lease);
        rig_pause_us(1000);
    } while (live_now_ms() < end_ms && lh_held(lease));
}

static void work_inside(struct worker *worker, struct lh_lease *lease, size_t key)
{
    struct shared *shared = worker->shared;
    struct witness *witness = &shared->witness;
    uint64_t token = lh_token(lease), value = 0;
    note_deadline(worker, lease);
    witness_enter(witness, worker->seat->life, key, token);
    bool read = fenced_read(witness, key, token, &value);
    atomic_store(&worker->seat->inside, (int)key + 1);
    atomic_fetch_add(&shared->entries[key], 1);
    stay(worker, lease);
    if (read)
        (void)fenced_write(witness, key, token, value);
    atomic_store(&worker->seat->inside, 0);
    witness_leave(witness, worker->seat->life, key);
    int64_t began_ms = live_now_ms();
    (void)lh_release(&lease, NULL);
    judge_call(shared, began_ms, PATIENCE_MS);
}

static void sit_down(struct worker *worker, const struct rig *rig)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.patience_ms = PATIENCE_MS;
    for (;;) {
        int64_t began_ms = live_now_ms();
        enum lh_outcome outcome = lh_open(rig->url, &options, &worker->client, NULL);
        judge_call(worker->shared, began_ms, PATIENCE_MS);
        if (outcome == LH_OK)
            return;
        rig_pause_us(20000);
    }
}

static void play_worker(struct rig *rig, size_t number)
{
    struct shared *shared = rig->shared;
    struct worker worker = {.shared = shared, .seat = &shared->seats[number]};
    worker.life = &shared->witness.lives[worker.seat->life];
    worker.random.state = worker.seat->seed;
    sit_down(&worker, rig);
    for (;;) {
        size_t key = random_below(&worker.random, WITNESS_KEYS);
        struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
        struct lh_lease *lease = NULL;
        options.ttl_ms = TTL_MS;
        options.wait_ms = WAIT_MS;
        int64_t began_ms = live_now_ms();
        enum lh_outcome outcome = lh_acquire(worker.client, keys[key], &options, &lease, NULL);
        judge_call(shared, began_ms, WAIT_MS + PATIENCE_MS);
        atomic_fetch_add(&shared->outcomes[outcome], 1);
        if (outcome == LH_OK)
            work_inside(&worker, lease, key);
        else
            rig_pause_us(5000);
    }
}

/* ---- rounds ---- */

struct figures {
    uint64_t rounds, stuck, late;
    int64_t longest_ms; /* until somebody came in again */
};

static void seat_worker(struct rig *rig, size_t number, uint64_t life)
{
    struct shared *shared = rig->shared;
    shared->seats[number] = (struct seat){.life = life, .seed = random_next(&rig->random)};
    rig_start(rig, number, play_worker);
}

/* Somebody who is inside, and where; 0: nobody is, for long. */
static size_t find_holder(const struct rig *rig, size_t *out_key)
{
    struct shared *shared = rig->shared;
    int64_t end_ms = live_now_ms() + IN_AGAIN_MS;
    while (live_now_ms() < end_ms) {
        for (size_t i = SERVER + 1; i < SEATS; i++) {
            int inside = atomic_load(&shared->seats[i].inside);
            *out_key = (size_t)(inside - 1);
            if (inside > 0)
                return i;
        }
    }
    return 0;
}

/* Until somebody came in, of this key or, beyond the last, of every one; false: nobody did. */
static bool await_entries(struct rig *rig, size_t key, const uint64_t *before)
{
    struct shared *shared = rig->shared;
    int64_t end_ms = live_now_ms() + 3 * (int64_t)IN_AGAIN_MS;
    for (size_t i = 0; i < WITNESS_KEYS; i++) {
        while ((key >= WITNESS_KEYS || key == i) && atomic_load(&shared->entries[i]) == before[i]) {
            if (live_now_ms() >= end_ms)
                return false;
            rig_pause_us(500);
        }
    }
    return true;
}

static void count_entries(const struct rig *rig, uint64_t *out)
{
    struct shared *shared = rig->shared;
    for (size_t i = 0; i < WITNESS_KEYS; i++)
        out[i] = atomic_load(&shared->entries[i]);
}

static void doom(struct rig *rig, size_t victim)
{
    struct shared *shared = rig->shared;
    struct life *life = &shared->witness.lives[shared->seats[victim].life];
    atomic_store(&life->doomed, true);
    atomic_store(&life->killed_at_ms, live_now_ms());
    (void)rig_kill(rig, victim);
}

static bool strike_holder(struct rig *rig, enum fault fault, uint64_t life, int64_t *out_ms)
{
    uint64_t before[WITNESS_KEYS];
    size_t key = 0, victim = find_holder(rig, &key);
    if (victim == 0)
        return false;
    int64_t struck_ms = live_now_ms();
    if (fault == HOLDER_KILLED)
        doom(rig, victim);
    else if (!rig_stop(rig, victim))
        return false;
    count_entries(rig, before);
    bool came = await_entries(rig, key, before);
    *out_ms = live_now_ms() - struck_ms;
    if (fault == HOLDER_KILLED)
        seat_worker(rig, victim, life);
    else
        rig_continue(rig, victim);
    return came;
}

static bool strike_server(struct rig *rig, enum fault fault, int64_t *out_ms)
{
    uint64_t before[WITNESS_KEYS];
    if (fault == SERVER_KILLED) {
        (void)rig_kill(rig, SERVER);
        rig_pause_us((int64_t)random_below(&rig->random, 1500000));
        if (!own_server_start(rig, SERVER))
            return false;
    } else {
        if (!rig_stop(rig, SERVER))
            return false;
        rig_pause_us(200000 + (int64_t)random_below(&rig->random, STOPPED_MOST_US));
        rig_continue(rig, SERVER);
    }
    int64_t back_ms = live_now_ms();
    count_entries(rig, before);
    bool came = await_entries(rig, WITNESS_KEYS, before);
    *out_ms = live_now_ms() - back_ms;
    return came;
}

static void report_fault(struct rig *rig, enum fault fault, const struct figures *figures)
{
    rig_say("%s: %" PRIu64 " rounds; in again after %" PRId64 " ms at most", fault_names[fault],
            figures->rounds, figures->longest_ms);
    rig_case(rig, figures->rounds == rig->rounds && figures->stuck == 0,
             "%s: %" PRIu64 " of %" PRIu64 " rounds", fault_names[fault], figures->rounds,
             rig->rounds);
    rig_case(rig, figures->late == 0, "each time somebody was in within %d ms (%" PRIu64 ")",
             IN_AGAIN_MS, figures->late);
}

static void play(struct rig *rig, uint64_t *life)
{
    for (enum fault fault = 0; fault < FAULTS; fault++) {
        struct figures figures = {0};
        while (figures.rounds < rig->rounds && figures.stuck == 0 && !rig_late(rig)) {
            int64_t took_ms = 0;
            rig_pause_us((int64_t)random_below(&rig->random, 300000));
            bool came = fault <= HOLDER_KILLED ? strike_holder(rig, fault, (*life)++, &took_ms)
                                               : strike_server(rig, fault, &took_ms);
            figures.rounds++;
            figures.stuck += came ? 0 : 1;
            figures.late += took_ms > IN_AGAIN_MS ? 1 : 0;
            if (took_ms > figures.longest_ms)
                figures.longest_ms = took_ms;
        }
        report_fault(rig, fault, &figures);
    }
}

static void report(struct rig *rig)
{
    struct shared *shared = rig->shared;
    const struct witness_counts *counts = &shared->witness.counts;
    for (size_t i = 0; i <= LH_FAILED; i++)
        if (shared->outcomes[i] > 0)
            rig_say("asked and heard %s %" PRIu64, lh_outcome_name((enum lh_outcome)i),
                    shared->outcomes[i]);
    rig_say("grants %" PRIu64 ", guarded writes %" PRIu64 ", overtaken after its own deadline "
            "%" PRIu64,
            counts->entries, counts->writes, counts->late);
    rig_say("calls %" PRIu64 ", the longest %" PRId64 " ms beyond its time", shared->calls,
            shared->most_beyond_ms);
    rig_case(rig, counts->stale_refused > 0, "stale writes were tried (%" PRIu64 ")",
             counts->stale_refused);
    rig_case(rig, counts->updates_lost == 0, "and none was taken (%" PRIu64 ")",
             counts->updates_lost);
    rig_case(rig, counts->overlaps == 0, "nobody was inside beside another (%" PRIu64 ")",
             counts->overlaps);
    rig_case(rig, counts->early == 0, "no dead holder's lease was cut short (%" PRIu64 ")",
             counts->early);
    rig_case(rig, counts->old_tokens == 0, "tokens grew (%" PRIu64 ")", counts->old_tokens);
    rig_case(rig, shared->late_calls == 0, "no call lasted beyond its time (%" PRIu64 ")",
             shared->late_calls);
    rig_case(rig, shared->outcomes[LH_FAILED] + shared->outcomes[LH_DENIED] == 0,
             "trouble was called unavailable, and nothing else");
}

int main(int argc, char **argv)
{
    struct rig rig;
    rig_open(&rig, argc, argv, /* rounds= */ 2, /* limit_s= */ 60, /* round_ms= */ 60000,
             sizeof(struct shared));
    struct shared *shared = rig.shared;
    uint64_t life = 1;
    witness_init(&shared->witness, shared->lives);
    bool up = own_server_start(&rig, SERVER);
    rig_case(&rig, up, "the server starts");
    for (size_t i = SERVER + 1; up && i < SEATS; i++)
        seat_worker(&rig, i, life++);
    if (up) {
        play(&rig, &life);
        report(&rig);
    }
    return rig_close(&rig);
}

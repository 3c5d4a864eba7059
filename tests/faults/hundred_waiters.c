/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred processes wait for one key while others write other keys. Every release wakes the next
 * waiter and no other, except the one behind it where that may take over the offer; all are served
 * in order of arrival. A round is a full queue that is drained. The fallback poll is set so late
 * that it cannot help.
 *
 * In every second round some are killed, waiting or holding the key: the others still enter in
 * order, and none waits for the dead longer than until the next poll.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    WAITERS = 100,
    HOLDER = WAITERS, /* child indexes */
    WRITERS = HOLDER + 1,
    WRITER_COUNT = 2,
    TIMEOUT_MS = 10000,
    POLL_MS = 60000,
    TTL_MS = 60000,
    DEADLY_POLL_MS = 1000, /* a death sends no notification: the waiter polls */
    MARGIN_MS = 500,
    KILLS_BEFORE = 10, /* the first hand-off; and meanwhile */
    KILLS_MEANWHILE = 10,
};

struct contender {
    uint64_t session;
    _Atomic bool in_line;
    _Atomic uint64_t order; /* order in which it was served, from 1 */
    _Atomic int64_t served_at_us;
    struct live_counts counts; /* when it has ended */
    _Atomic uint64_t in_vain;  /* woken although it was not its turn */
    bool killed;
};

struct shared {
    struct contender waiters[WAITERS + 1]; /* the last one is the first holder */
    uint64_t writer_sessions[WRITER_COUNT];
    _Atomic uint64_t served, written;
    _Atomic bool go, stop;
    bool deadly; /* this round */
    int64_t went_at_us;
};

struct figures {
    uint64_t rounds, kills;
    uint64_t hand_overs, wakes, notices, in_vain, looks, overtakes, lost;
    int64_t took_us, longest_us;
};

static void watch(void *owner, const struct live_step *step)
{
    struct contender *contender = owner;
    if (step->output->notify == NOTIFY_WAITING)
        atomic_store(&contender->in_line, true);
    bool looked_again = step->before->state == LEASE_WAITING && step->before->in_flight;
    if (looked_again && step->after->state == LEASE_WAITING && !step->after->in_flight)
        atomic_fetch_add(&contender->in_vain, 1);
}

static void play_waiter(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct contender *contender = &shared->waiters[child];
    struct live_request wanted = {.key = "queue",
                                  .bound = shared->deadly,
                                  .ttl_ms = TTL_MS,
                                  .wait_ms = WAIT_WITHOUT_LIMIT,
                                  .poll_ms = shared->deadly ? DEADLY_POLL_MS : POLL_MS};
    struct live *live = fixture_live(fixture, contender->session, TIMEOUT_MS);
    live_watch(live, watch, contender);
    if (live_acquire(live, &wanted) != OUTCOME_OK)
        _exit(1);
    if (child == HOLDER) {
        atomic_store(&contender->in_line, true);
        while (!atomic_load(&shared->go))
            if (!live_work(live, 1))
                _exit(1);
        shared->went_at_us = fixture_now_us();
    } else {
        atomic_store(&contender->served_at_us, fixture_now_us());
        atomic_store(&contender->order, atomic_fetch_add(&shared->served, 1) + 1);
        (void)live_work(live, shared->deadly ? 2 : 0);
    }
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    contender->counts = *live_counts(live);
    live_close(&live);
}

static void play_writer(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    size_t number = child - WRITERS;
    struct live *live = fixture_live(fixture, shared->writer_sessions[number], TIMEOUT_MS);
    struct live_request wanted = {.key = number == 0 ? "this" : "that", .ttl_ms = TTL_MS};
    while (!atomic_load(&shared->stop)) {
        if (live_acquire(live, &wanted) != OUTCOME_OK || live_release(live) != OUTCOME_OK)
            _exit(1);
        atomic_fetch_add(&shared->written, 1);
        fixture_pause_us(500);
    }
    live_close(&live);
}

/* One after the other, so that the order of arrival is known. */
static bool line_up(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct contender *contender = &shared->waiters[child];
    *contender = (struct contender){.session = fixture_session(fixture)};
    fixture_start(fixture, child, play_waiter);
    while (!atomic_load(&contender->in_line) && !fixture_late(fixture))
        fixture_pause_us(200);
    return atomic_load(&contender->in_line);
}

static void add_up(const struct shared *shared, struct figures *figures)
{
    uint64_t last = 0;
    int64_t before_us = shared->went_at_us;
    for (size_t i = 0; i < WAITERS; i++) {
        const struct contender *contender = &shared->waiters[i];
        figures->wakes += contender->counts.wakes;
        figures->notices += contender->counts.notices;
        figures->looks += contender->counts.looks;
        figures->in_vain += contender->in_vain;
        figures->lost += contender->order == 0 && !contender->killed ? 1 : 0;
        if (contender->order == 0)
            continue;
        figures->hand_overs++;
        figures->overtakes += contender->order < last ? 1 : 0;
        last = contender->order;
        int64_t took_us = contender->served_at_us - before_us;
        before_us = contender->served_at_us;
        figures->took_us += took_us;
        figures->longest_us = took_us > figures->longest_us ? took_us : figures->longest_us;
    }
}

/* The last one served, which may hold the key; or the first waiter. */
static size_t find_foremost(const struct shared *shared)
{
    size_t child = 0;
    for (size_t i = 0; i < WAITERS; i++)
        child = shared->waiters[i].order != 0 ? i : child;
    return child;
}

/* Every third time the first in the queue, else a waiter behind it; its state may still change. */
static void kill_some(struct fixture *fixture, int count, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    for (int i = 0; i < count; i++) {
        size_t child = find_foremost(shared);
        if (i % 3 != 0)
            child += random_below(&fixture->random, WAITERS - child);
        shared->waiters[child].killed = true;
        figures->kills += fixture_kill(fixture, child) ? 1 : 0;
        fixture_pause_us((int64_t)random_below(&fixture->random, 10000));
    }
}

static bool play_round(struct fixture *fixture, bool deadly, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    atomic_store(&shared->served, 0);
    atomic_store(&shared->go, false);
    shared->deadly = deadly;
    bool all = line_up(fixture, HOLDER);
    for (size_t child = 0; child < WAITERS && all; child++)
        all = line_up(fixture, child);
    if (deadly)
        kill_some(fixture, KILLS_BEFORE, figures);
    atomic_store(&shared->go, true);
    if (deadly)
        kill_some(fixture, KILLS_MEANWHILE, figures);
    for (size_t child = 0; child <= HOLDER; child++)
        all = (shared->waiters[child].killed || fixture_join(fixture, child)) && all;
    figures->rounds++;
    add_up(shared, figures);
    return all;
}

static void say_figures(const char *what, const struct figures *figures)
{
    int64_t count = figures->hand_overs > 0 ? (int64_t)figures->hand_overs : 1;
    fixture_print("%s: hand-overs %" PRIu64 ", notices %" PRIu64 ", wake-ups %" PRIu64
                  ", of those not next %" PRIu64 ", looks without a notice %" PRIu64,
                  what, figures->hand_overs, figures->notices, figures->wakes, figures->in_vain,
                  figures->looks);
    fixture_print("%s: a hand-over took %" PRId64 " us on average, %" PRId64
                  " us at most; killed %" PRIu64,
                  what, figures->took_us / count, figures->longest_us, figures->kills);
}

static bool takes_over(const struct fixture *fixture)
{
    return store_facts_at(fixture->driver, fixture->url).takeover_ms > 0;
}

static void report_quiet(struct fixture *fixture, const struct figures *figures)
{
    uint64_t expected = figures->rounds * WAITERS;
    say_figures("nobody dies", figures);
    fixture_case(fixture, figures->hand_overs == expected && figures->lost == 0,
                 "all %" PRIu64 " waiters were served", expected);
    fixture_case(fixture, figures->overtakes == 0, "in the order in which they came (%" PRIu64 ")",
                 figures->overtakes);
    uint64_t spares = takes_over(fixture) ? expected - figures->rounds : 0; /* none at the end */
    fixture_case(fixture, figures->notices == expected + spares, "a release sends %s",
                 spares > 0 ? "two notices" : "one notice");
    fixture_case(fixture, figures->wakes <= expected + spares, "a release wakes %s",
                 spares > 0 ? "two processes" : "one process");
    fixture_case(fixture, figures->in_vain <= spares, "nobody else was woken in vain (%" PRIu64 ")",
                 figures->in_vain);
    fixture_case(fixture, figures->looks == 0, "nobody had to look by itself (%" PRIu64 ")",
                 figures->looks);
}

static void report_deadly(struct fixture *fixture, const struct figures *figures)
{
    /* Several dead ones in a row are each found by another poll. */
    int64_t most_ms = 3 * (DEADLY_POLL_MS + DEADLY_POLL_MS / 4) + MARGIN_MS;
    say_figures("some die", figures);
    fixture_case(fixture, figures->kills >= figures->rounds * KILLS_BEFORE, "waiters were killed");
    fixture_case(fixture, figures->lost == 0, "all others were served (%" PRIu64 " not)",
                 figures->lost);
    fixture_case(fixture, figures->overtakes == 0, "in the order in which they came (%" PRIu64 ")",
                 figures->overtakes);
    fixture_case(fixture, figures->longest_us <= most_ms * 1000,
                 "nobody waited for the dead longer than %" PRId64 " ms", most_ms);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct figures quiet = {0}, deadly = {0};
    fixture_open(&fixture, argc, argv, /* rounds= */ 2, /* limit_s= */ 30, /* round_ms= */ 20000,
                 sizeof(struct shared));
    struct shared *shared = fixture.shared;
    bool all = true;
    for (size_t i = 0; i < WRITER_COUNT; i++) {
        shared->writer_sessions[i] = fixture_session(&fixture);
        fixture_start(&fixture, WRITERS + i, play_writer);
    }
    for (uint64_t round = 0; round < fixture.rounds && all; round++)
        all = play_round(&fixture, round % 2 == 1, round % 2 == 1 ? &deadly : &quiet);
    atomic_store(&shared->stop, true);
    for (size_t i = 0; i < WRITER_COUNT; i++)
        all = fixture_join(&fixture, WRITERS + i) && all;
    fixture_case(&fixture, all, "every process that was not killed ended well");
    fixture_print("meanwhile written on other keys: %" PRIu64 " times acquired and given back",
                  shared->written);
    fixture_case(&fixture, shared->written > fixture.rounds * WAITERS / 10,
                 "other keys were busy meanwhile");
    report_quiet(&fixture, &quiet);
    if (deadly.rounds > 0)
        report_deadly(&fixture, &deadly);
    return fixture_close(&fixture);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred processes wait for one key while others write other keys. Every release wakes the next
 * in line and nobody else; all are served in the order in which they came. A round is a full queue
 * that is worked off. The fallback look is set so far away that it cannot help.
 *
 * In every second round some are killed, in line or with the key in their hands: the others still
 * come in order, and nobody waits for the dead longer than until somebody looks.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    WAITERS = 100,
    HOLDER = WAITERS, /* seats */
    WRITERS = HOLDER + 1,
    WRITER_COUNT = 2,
    PATIENCE_MS = 10000,
    LOOK_MS = 60000,
    TTL_MS = 60000,
    DEADLY_LOOK_MS = 1000, /* nobody tells a waiter of a death: it looks */
    MARGIN_MS = 500,
    KILLS_BEFORE = 10, /* the first hand-over; and meanwhile */
    KILLS_MEANWHILE = 10,
};

struct waiter {
    uint64_t session;
    _Atomic bool in_line;
    _Atomic uint64_t order; /* in which it was served, from 1 */
    _Atomic int64_t served_at_us;
    struct live_counts counts; /* when it has ended */
    _Atomic uint64_t in_vain;  /* woken, and it was not its turn */
    bool killed;
};

struct shared {
    struct waiter waiters[WAITERS + 1]; /* the last one is the first holder */
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
    struct waiter *waiter = owner;
    if (step->output->told == TOLD_WAITING)
        atomic_store(&waiter->in_line, true);
    bool looked_again = step->before->state == LEASE_WAITING && step->before->in_flight;
    if (looked_again && step->after->state == LEASE_WAITING && !step->after->in_flight)
        atomic_fetch_add(&waiter->in_vain, 1);
}

static void play_waiter(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    struct waiter *waiter = &shared->waiters[seat];
    struct live_wish wish = {.key = "queue",
                             .bound = shared->deadly,
                             .ttl_ms = TTL_MS,
                             .wait_ms = WAIT_WITHOUT_LIMIT,
                             .look_ms = shared->deadly ? DEADLY_LOOK_MS : LOOK_MS};
    struct live *live = rig_live(rig, waiter->session, PATIENCE_MS);
    live_watch(live, watch, waiter);
    if (live_acquire(live, &wish) != OUTCOME_OK)
        _exit(1);
    if (seat == HOLDER) {
        atomic_store(&waiter->in_line, true);
        while (!atomic_load(&shared->go))
            if (!live_work(live, 1))
                _exit(1);
        shared->went_at_us = rig_now_us();
    } else {
        atomic_store(&waiter->served_at_us, rig_now_us());
        atomic_store(&waiter->order, atomic_fetch_add(&shared->served, 1) + 1);
        (void)live_work(live, shared->deadly ? 2 : 0);
    }
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    waiter->counts = *live_counts(live);
    live_close(&live);
}

static void play_writer(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    size_t number = seat - WRITERS;
    struct live *live = rig_live(rig, shared->writer_sessions[number], PATIENCE_MS);
    struct live_wish wish = {.key = number == 0 ? "this" : "that", .ttl_ms = TTL_MS};
    while (!atomic_load(&shared->stop)) {
        if (live_acquire(live, &wish) != OUTCOME_OK || live_release(live) != OUTCOME_OK)
            _exit(1);
        atomic_fetch_add(&shared->written, 1);
        rig_pause_us(500);
    }
    live_close(&live);
}

/* One after the other, so that the order of arrival is known. */
static bool line_up(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    struct waiter *waiter = &shared->waiters[seat];
    *waiter = (struct waiter){.session = rig_session(rig)};
    rig_start(rig, seat, play_waiter);
    while (!atomic_load(&waiter->in_line) && !rig_late(rig))
        rig_pause_us(200);
    return atomic_load(&waiter->in_line);
}

static void add_up(const struct shared *shared, struct figures *figures)
{
    uint64_t last = 0;
    int64_t before_us = shared->went_at_us;
    for (size_t i = 0; i < WAITERS; i++) {
        const struct waiter *waiter = &shared->waiters[i];
        figures->wakes += waiter->counts.wakes;
        figures->notices += waiter->counts.notices;
        figures->looks += waiter->counts.looks;
        figures->in_vain += waiter->in_vain;
        figures->lost += waiter->order == 0 && !waiter->killed ? 1 : 0;
        if (waiter->order == 0)
            continue;
        figures->hand_overs++;
        figures->overtakes += waiter->order < last ? 1 : 0;
        last = waiter->order;
        int64_t took_us = waiter->served_at_us - before_us;
        before_us = waiter->served_at_us;
        figures->took_us += took_us;
        figures->longest_us = took_us > figures->longest_us ? took_us : figures->longest_us;
    }
}

/* The last one served, who may have the key; or the first in line. */
static size_t find_foremost(const struct shared *shared)
{
    size_t seat = 0;
    for (size_t i = 0; i < WAITERS; i++)
        seat = shared->waiters[i].order != 0 ? i : seat;
    return seat;
}

/* Every third time the foremost, else somebody in line behind it; what it is at may change yet. */
static void kill_some(struct rig *rig, int count, struct figures *figures)
{
    struct shared *shared = rig->shared;
    for (int i = 0; i < count; i++) {
        size_t seat = find_foremost(shared);
        if (i % 3 != 0)
            seat += random_below(&rig->random, WAITERS - seat);
        shared->waiters[seat].killed = true;
        figures->kills += rig_kill(rig, seat) ? 1 : 0;
        rig_pause_us((int64_t)random_below(&rig->random, 10000));
    }
}

static bool play_round(struct rig *rig, bool deadly, struct figures *figures)
{
    struct shared *shared = rig->shared;
    atomic_store(&shared->served, 0);
    atomic_store(&shared->go, false);
    shared->deadly = deadly;
    bool all = line_up(rig, HOLDER);
    for (size_t seat = 0; seat < WAITERS && all; seat++)
        all = line_up(rig, seat);
    if (deadly)
        kill_some(rig, KILLS_BEFORE, figures);
    atomic_store(&shared->go, true);
    if (deadly)
        kill_some(rig, KILLS_MEANWHILE, figures);
    for (size_t seat = 0; seat <= HOLDER; seat++)
        all = (shared->waiters[seat].killed || rig_join(rig, seat)) && all;
    figures->rounds++;
    add_up(shared, figures);
    return all;
}

static void say_figures(const char *what, const struct figures *figures)
{
    int64_t count = figures->hand_overs > 0 ? (int64_t)figures->hand_overs : 1;
    rig_say("%s: hand-overs %" PRIu64 ", notices %" PRIu64 ", wake-ups %" PRIu64
            ", of those not next %" PRIu64 ", looks without a notice %" PRIu64,
            what, figures->hand_overs, figures->notices, figures->wakes, figures->in_vain,
            figures->looks);
    rig_say("%s: a hand-over took %" PRId64 " us on average, %" PRId64
            " us at most; killed %" PRIu64,
            what, figures->took_us / count, figures->longest_us, figures->kills);
}

static void report_quiet(struct rig *rig, const struct figures *figures)
{
    uint64_t expected = figures->rounds * WAITERS;
    say_figures("nobody dies", figures);
    rig_case(rig, figures->hand_overs == expected && figures->lost == 0,
             "all %" PRIu64 " waiters were served", expected);
    rig_case(rig, figures->overtakes == 0, "in the order in which they came (%" PRIu64 ")",
             figures->overtakes);
    rig_case(rig, figures->notices == expected, "a release sends one notice");
    rig_case(rig, figures->wakes == expected, "a release wakes one process");
    rig_case(rig, figures->in_vain == 0, "nobody was woken in vain (%" PRIu64 ")",
             figures->in_vain);
    rig_case(rig, figures->looks == 0, "nobody had to look by itself (%" PRIu64 ")",
             figures->looks);
}

static void report_deadly(struct rig *rig, const struct figures *figures)
{
    /* Several dead ones in a row are each found by another look. */
    int64_t most_ms = 3 * (DEADLY_LOOK_MS + DEADLY_LOOK_MS / 4) + MARGIN_MS;
    say_figures("some die", figures);
    rig_case(rig, figures->kills >= figures->rounds * KILLS_BEFORE, "waiters were killed");
    rig_case(rig, figures->lost == 0, "all others were served (%" PRIu64 " not)", figures->lost);
    rig_case(rig, figures->overtakes == 0, "in the order in which they came (%" PRIu64 ")",
             figures->overtakes);
    rig_case(rig, figures->longest_us <= most_ms * 1000,
             "nobody waited for the dead longer than %" PRId64 " ms", most_ms);
}

int main(int argc, char **argv)
{
    struct rig rig;
    struct figures quiet = {0}, deadly = {0};
    rig_open(&rig, argc, argv, /* rounds= */ 2, /* limit_s= */ 30, /* round_ms= */ 20000,
             sizeof(struct shared));
    struct shared *shared = rig.shared;
    bool all = true;
    for (size_t i = 0; i < WRITER_COUNT; i++) {
        shared->writer_sessions[i] = rig_session(&rig);
        rig_start(&rig, WRITERS + i, play_writer);
    }
    for (uint64_t round = 0; round < rig.rounds && all; round++)
        all = play_round(&rig, round % 2 == 1, round % 2 == 1 ? &deadly : &quiet);
    atomic_store(&shared->stop, true);
    for (size_t i = 0; i < WRITER_COUNT; i++)
        all = rig_join(&rig, WRITERS + i) && all;
    rig_case(&rig, all, "every process that was not killed ended well");
    rig_say("meanwhile written on other keys: %" PRIu64 " times acquired and given back",
            shared->written);
    rig_case(&rig, shared->written > rig.rounds * WAITERS / 10, "other keys were busy meanwhile");
    report_quiet(&rig, &quiet);
    if (deadly.rounds > 0)
        report_deadly(&rig, &deadly);
    return rig_close(&rig);
}

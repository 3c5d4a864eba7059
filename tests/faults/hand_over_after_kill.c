/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder is killed; how long until the next in line is in? A bound grant ends with its process
 * where the store knows who lives, long before its TTL; an unbound one when its TTL is over. Each
 * round kills one holder; the waiter that follows is the next to be killed.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 10000,
    BOUND_TTL_MS = 30000,
    UNBOUND_TTL_MS = 1000,
    UNBOUND_EVERY = 16, /* rounds */
    LOOK_MS = 250,      /* nobody tells a waiter of a death: it looks */
    MARGIN_MS = 500,    /* for a busy machine */
};

struct seat {
    uint64_t session;
    bool bound;
    _Atomic bool in_line;
    _Atomic int64_t served_at_ms, ends_ms;
    _Atomic uint64_t token;
};

struct shared {
    struct seat seats[2];
};

static void watch(void *owner, const struct live_step *step)
{
    struct seat *seat = owner;
    const struct lease *lease = step->after;
    if (lease->state == LEASE_HELD)
        atomic_store(&seat->ends_ms, lease->start_ms + lease->ttl_ms);
    if (step->output->told == TOLD_WAITING)
        atomic_store(&seat->in_line, true);
}

static void play(struct rig *rig, size_t number)
{
    struct shared *shared = rig->shared;
    struct seat *seat = &shared->seats[number];
    struct live *live = rig_live(rig, seat->session, PATIENCE_MS);
    struct live_wish wish = {.key = "key",
                             .bound = seat->bound,
                             .ttl_ms = seat->bound ? BOUND_TTL_MS : UNBOUND_TTL_MS,
                             .wait_ms = WAIT_WITHOUT_LIMIT,
                             .look_ms = LOOK_MS};
    live_watch(live, watch, seat);
    if (live_acquire(live, &wish) != OUTCOME_OK)
        _exit(1);
    atomic_store(&seat->token, live_lease(live)->token);
    atomic_store(&seat->served_at_ms, live_now_ms());
    bool held = true;
    while (held)
        held = live_work(live, /* length_ms= */ 1000);
    _exit(2); /* lost, though nobody took it away */
}

static bool await_word(const struct rig *rig, _Atomic int64_t *word)
{
    while (atomic_load(word) == 0) {
        if (rig_late(rig))
            return false;
        rig_pause_us(200);
    }
    return true;
}

static void start(struct rig *rig, size_t number, bool bound)
{
    struct shared *shared = rig->shared;
    shared->seats[number] = (struct seat){.session = rig_session(rig), .bound = bound};
    rig_start(rig, number, play);
}

struct figures {
    uint64_t bound, unbound, early, old_tokens;
    int64_t longest_bound_ms, longest_unbound_ms, sum_bound_ms;
};

/* Kills who holds; false when something went wrong that ends the run. */
static bool play_round(struct rig *rig, size_t holder, bool next_bound, struct figures *figures)
{
    struct shared *shared = rig->shared;
    struct seat *old = &shared->seats[holder], *next = &shared->seats[1 - holder];
    start(rig, 1 - holder, next_bound);
    while (!atomic_load(&next->in_line) && !rig_late(rig))
        rig_pause_us(200);
    rig_pause_us((int64_t)random_below(&rig->random, 20000));
    int64_t killed_at_ms = live_now_ms(), ends_ms = 0;
    if (!rig_kill(rig, holder) || !await_word(rig, &next->served_at_ms))
        return false;
    int64_t served_at_ms = atomic_load(&next->served_at_ms);
    ends_ms = atomic_load(&old->ends_ms);
    figures->old_tokens += next->token <= old->token ? 1 : 0;
    if (old->bound) {
        int64_t took_ms = served_at_ms - killed_at_ms;
        figures->bound++;
        figures->sum_bound_ms += took_ms;
        if (took_ms > figures->longest_bound_ms)
            figures->longest_bound_ms = took_ms;
    } else {
        figures->unbound++;
        figures->early += served_at_ms < ends_ms ? 1 : 0;
        if (served_at_ms - ends_ms > figures->longest_unbound_ms)
            figures->longest_unbound_ms = served_at_ms - ends_ms;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct rig rig;
    struct figures figures = {0};
    rig_open(&rig, argc, argv, /* rounds= */ 48, /* limit_s= */ 30, /* round_ms= */ 2000,
             sizeof(struct shared));
    struct shared *shared = rig.shared;
    start(&rig, 0, /* bound= */ true);
    bool goes_on = await_word(&rig, &shared->seats[0].served_at_ms);
    uint64_t round = 0;
    for (; round < rig.rounds && goes_on; round++)
        goes_on = play_round(&rig, round % 2, round % UNBOUND_EVERY != 0, &figures);
    int64_t bound_by_ms = LOOK_MS + LOOK_MS / 4 + MARGIN_MS;
    int64_t count = figures.bound > 0 ? (int64_t)figures.bound : 1;
    rig_say("bound: %" PRIu64 " kills, the next one in %" PRId64 " ms later on average, %" PRId64
            " ms at most (TTL %d ms, look %d ms)",
            figures.bound, figures.sum_bound_ms / count, figures.longest_bound_ms, BOUND_TTL_MS,
            LOOK_MS);
    rig_say("unbound: %" PRIu64 " kills, the next one in at most %" PRId64
            " ms after the lease's end",
            figures.unbound, figures.longest_unbound_ms);
    rig_case(&rig, goes_on && round == rig.rounds, "%" PRIu64 " holders were killed", round);
    rig_case(&rig, figures.longest_bound_ms <= bound_by_ms,
             "a bound grant ends with its process, within %" PRId64 " ms", bound_by_ms);
    rig_case(&rig, figures.longest_unbound_ms <= MARGIN_MS,
             "an unbound one at its end, within %d ms", MARGIN_MS);
    rig_case(&rig, figures.early == 0, "and not before (%" PRIu64 ")", figures.early);
    rig_case(&rig, figures.old_tokens == 0, "tokens grew (%" PRIu64 ")", figures.old_tokens);
    return rig_close(&rig);
}

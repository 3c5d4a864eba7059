/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first in line is killed while the holder, who has heard of it alive, still holds. The release
 * must not hand the key to the dead: the next one in line is in at once, not when a lease that
 * nobody uses has run out. Where the store does not know who lives the dead one is offered the key;
 * the next one finds that out at its next look, and passes the offer on. Every second round the
 * dead one wanted an unbound grant.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    HOLDER, /* seats */
    DEAD,
    NEXT,
    SEATS,
    PATIENCE_MS = 10000,
    HOLDER_TTL_MS = 2000, /* renewed soon, so that it has heard of those in line */
    WAITER_TTL_MS = 4000,
    AT_ONCE_MS = 500,
    LOOK_MS = 5000 + 5000 / 4, /* with what it is spread by */
    GRACE_MS = 1000,           /* of an offer */
};

struct seat {
    uint64_t session;
    bool bound;
    _Atomic bool in_line;
    _Atomic int64_t served_at_ms;
};

struct shared {
    struct seat seats[SEATS];
    _Atomic uint64_t renewals;
    _Atomic bool release;
    _Atomic int64_t released_at_ms;
};

static void watch(void *owner, const struct live_step *step)
{
    struct seat *seat = owner;
    if (step->output->told == TOLD_WAITING || step->output->told == TOLD_HELD)
        atomic_store(&seat->in_line, true);
}

static void watch_holder(void *owner, const struct live_step *step)
{
    struct shared *shared = owner;
    watch(&shared->seats[HOLDER], step);
    if (step->before->state == LEASE_RENEWING && step->after->state == LEASE_HELD)
        atomic_fetch_add(&shared->renewals, 1);
}

static void play_holder(struct rig *rig, size_t number)
{
    struct shared *shared = rig->shared;
    struct live *live = rig_live(rig, shared->seats[number].session, PATIENCE_MS);
    struct live_wish wish = {.key = "key", .bound = true, .ttl_ms = HOLDER_TTL_MS};
    live_watch(live, watch_holder, shared);
    if (live_acquire(live, &wish) != OUTCOME_OK)
        _exit(1);
    while (!atomic_load(&shared->release))
        if (!live_work(live, /* length_ms= */ 1))
            _exit(1);
    atomic_store(&shared->released_at_ms, live_now_ms());
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    live_close(&live);
}

static void play_waiter(struct rig *rig, size_t number)
{
    struct shared *shared = rig->shared;
    struct seat *seat = &shared->seats[number];
    struct live *live = rig_live(rig, seat->session, PATIENCE_MS);
    struct live_wish wish = {
        .key = "key", .bound = seat->bound, .ttl_ms = WAITER_TTL_MS, .wait_ms = WAIT_WITHOUT_LIMIT};
    live_watch(live, watch, seat);
    if (live_acquire(live, &wish) != OUTCOME_OK)
        _exit(1);
    atomic_store(&seat->served_at_ms, live_now_ms());
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    live_close(&live);
}

static void line_up(struct rig *rig, size_t number, bool bound)
{
    struct shared *shared = rig->shared;
    struct seat *seat = &shared->seats[number];
    *seat = (struct seat){.session = rig_session(rig), .bound = bound};
    rig_start(rig, number, number == HOLDER ? play_holder : play_waiter);
    while (!atomic_load(&seat->in_line) && !rig_late(rig))
        rig_pause_us(200);
}

/* How long the next one had to wait after the release; −1 when something went wrong. */
static int64_t play_round(struct rig *rig, bool bound)
{
    struct shared *shared = rig->shared;
    atomic_store(&shared->release, false);
    line_up(rig, HOLDER, /* bound= */ true);
    line_up(rig, DEAD, bound);
    line_up(rig, NEXT, /* bound= */ true);
    uint64_t renewals = atomic_load(&shared->renewals);
    while (atomic_load(&shared->renewals) == renewals && !rig_late(rig))
        rig_pause_us(200);
    bool killed = rig_kill(rig, DEAD);
    atomic_store(&shared->release, true);
    bool ended = rig_join(rig, HOLDER) && rig_join(rig, NEXT);
    return killed && ended ? shared->seats[NEXT].served_at_ms - shared->released_at_ms : -1;
}

int main(int argc, char **argv)
{
    struct rig rig;
    int64_t longest_ms[2] = {0};
    bool all = true;
    rig_open(&rig, argc, argv, /* rounds= */ 4, /* limit_s= */ 30, /* round_ms= */ 10000,
             sizeof(struct shared));
    for (uint64_t round = 0; round < rig.rounds && all; round++) {
        size_t bound = round % 2;
        int64_t took_ms = play_round(&rig, bound != 0);
        all = took_ms >= 0;
        longest_ms[bound] = took_ms > longest_ms[bound] ? took_ms : longest_ms[bound];
    }
    rig_say("after the release the next one was in within %" PRId64
            " ms, the dead one's wish being bound; within %" PRId64
            " ms, being unbound (TTL %d ms)",
            longest_ms[1], longest_ms[0], WAITER_TTL_MS);
    rig_case(&rig, all, "every process that was not killed ended well");
    int64_t most_ms = AT_ONCE_MS + (rig_knows_dead(&rig) ? 0 : LOOK_MS + GRACE_MS);
    rig_case(&rig, longest_ms[1] <= most_ms, "nobody waits for a dead one that wanted it bound");
    rig_case(&rig, longest_ms[0] <= most_ms, "nor for one that wanted it unbound");
    return rig_close(&rig);
}

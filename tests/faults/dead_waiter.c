/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first waiter is killed while the holder, which has last seen it alive, still holds. The
 * release must not pass the key to the dead process: the next waiter enters at once, not after an
 * unused lease expired. Where the store cannot detect dead processes the dead waiter gets an offer;
 * the next waiter finds out at its next poll, and passes the offer on. In every second round the
 * dead waiter requested an unbound grant.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    HOLDER, /* child indexes */
    DEAD,
    NEXT,
    CHILDREN,
    TIMEOUT_MS = 10000,
    HOLDER_TTL_MS = 2000, /* renewed soon, so that it has read the queue */
    WAITER_TTL_MS = 4000,
    AT_ONCE_MS = 500,
    POLL_MS = 5000 + 5000 / 4, /* including its jitter */
    GRACE_MS = 1000,           /* of an offer */
};

struct child {
    uint64_t session;
    bool bound;
    _Atomic bool in_line;
    _Atomic int64_t served_at_ms;
};

struct shared {
    struct child children[CHILDREN];
    _Atomic uint64_t renewals;
    _Atomic bool release;
    _Atomic int64_t released_at_ms;
};

static void watch(void *owner, const struct live_step *step)
{
    struct child *child = owner;
    if (step->output->notify == NOTIFY_WAITING || step->output->notify == NOTIFY_HELD)
        atomic_store(&child->in_line, true);
}

static void watch_holder(void *owner, const struct live_step *step)
{
    struct shared *shared = owner;
    watch(&shared->children[HOLDER], step);
    if (step->before->state == LEASE_RENEWING && step->after->state == LEASE_HELD)
        atomic_fetch_add(&shared->renewals, 1);
}

static void play_holder(struct fixture *fixture, size_t number)
{
    struct shared *shared = fixture->shared;
    struct live *live = fixture_live(fixture, shared->children[number].session, TIMEOUT_MS);
    struct live_request wanted = {.key = "key", .bound = true, .ttl_ms = HOLDER_TTL_MS};
    live_watch(live, watch_holder, shared);
    if (live_acquire(live, &wanted) != OUTCOME_OK)
        _exit(1);
    while (!atomic_load(&shared->release))
        if (!live_work(live, /* length_ms= */ 1))
            _exit(1);
    atomic_store(&shared->released_at_ms, live_now_ms());
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    live_close(&live);
}

static void play_waiter(struct fixture *fixture, size_t number)
{
    struct shared *shared = fixture->shared;
    struct child *child = &shared->children[number];
    struct live *live = fixture_live(fixture, child->session, TIMEOUT_MS);
    struct live_request wanted = {.key = "key",
                                  .bound = child->bound,
                                  .ttl_ms = WAITER_TTL_MS,
                                  .wait_ms = WAIT_WITHOUT_LIMIT};
    live_watch(live, watch, child);
    if (live_acquire(live, &wanted) != OUTCOME_OK)
        _exit(1);
    atomic_store(&child->served_at_ms, live_now_ms());
    if (live_release(live) != OUTCOME_OK)
        _exit(1);
    live_close(&live);
}

static void line_up(struct fixture *fixture, size_t number, bool bound)
{
    struct shared *shared = fixture->shared;
    struct child *child = &shared->children[number];
    *child = (struct child){.session = fixture_session(fixture), .bound = bound};
    fixture_start(fixture, number, number == HOLDER ? play_holder : play_waiter);
    while (!atomic_load(&child->in_line) && !fixture_late(fixture))
        fixture_pause_us(200);
}

/* Time from the release to the next grant; −1 on errors. */
static int64_t play_round(struct fixture *fixture, bool bound)
{
    struct shared *shared = fixture->shared;
    atomic_store(&shared->release, false);
    line_up(fixture, HOLDER, /* bound= */ true);
    line_up(fixture, DEAD, bound);
    line_up(fixture, NEXT, /* bound= */ true);
    uint64_t renewals = atomic_load(&shared->renewals);
    while (atomic_load(&shared->renewals) == renewals && !fixture_late(fixture))
        fixture_pause_us(200);
    bool killed = fixture_kill(fixture, DEAD);
    atomic_store(&shared->release, true);
    bool ended = fixture_join(fixture, HOLDER) && fixture_join(fixture, NEXT);
    return killed && ended ? shared->children[NEXT].served_at_ms - shared->released_at_ms : -1;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    int64_t longest_ms[2] = {0};
    bool all = true;
    fixture_open(&fixture, argc, argv, /* rounds= */ 4, /* limit_s= */ 30, /* round_ms= */ 10000,
                 sizeof(struct shared));
    for (uint64_t round = 0; round < fixture.rounds && all; round++) {
        size_t bound = round % 2;
        int64_t took_ms = play_round(&fixture, bound != 0);
        all = took_ms >= 0;
        longest_ms[bound] = took_ms > longest_ms[bound] ? took_ms : longest_ms[bound];
    }
    fixture_print("after the release the next one was in within %" PRId64
                  " ms, the dead one's wish being bound; within %" PRId64
                  " ms, being unbound (TTL %d ms)",
                  longest_ms[1], longest_ms[0], WAITER_TTL_MS);
    fixture_case(&fixture, all, "every process that was not killed ended well");
    int64_t most_ms = AT_ONCE_MS + (fixture_knows_dead(&fixture) ? 0 : POLL_MS + GRACE_MS);
    fixture_case(&fixture, longest_ms[1] <= most_ms,
                 "nobody waits for a dead one that wanted it bound");
    fixture_case(&fixture, longest_ms[0] <= most_ms, "nor for one that wanted it unbound");
    return fixture_close(&fixture);
}

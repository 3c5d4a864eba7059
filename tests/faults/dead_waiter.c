/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first waiters are killed while the holder, which has last seen them alive, still holds. The
 * release must not pass the key to a dead process: the next waiter enters at once, not after an
 * unused lease expired. Where the store cannot detect dead processes a dead waiter gets an offer;
 * the next live waiter is woken too, and takes it over. In every second round the dead waiter
 * requested an unbound grant; in the last one several died.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    HOLDER, /* child indexes */
    NEXT,
    DEAD, /* the first of these */
    DEAD_MAX = 3,
    CHILDREN = DEAD + DEAD_MAX,
    TIMEOUT_MS = 10000,
    HOLDER_TTL_MS = 2000, /* renewed soon, so that it has read the queue */
    WAITER_TTL_MS = 4000,
    AT_ONCE_MS = 500,
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
static int64_t play_round(struct fixture *fixture, size_t dead, bool bound)
{
    struct shared *shared = fixture->shared;
    bool killed = true;
    atomic_store(&shared->release, false);
    line_up(fixture, HOLDER, /* bound= */ true);
    for (size_t i = 0; i < dead; i++)
        line_up(fixture, DEAD + i, bound);
    line_up(fixture, NEXT, /* bound= */ true);
    uint64_t renewals = atomic_load(&shared->renewals);
    while (atomic_load(&shared->renewals) == renewals && !fixture_late(fixture))
        fixture_pause_us(200);
    for (size_t i = 0; i < dead; i++)
        killed = fixture_kill(fixture, DEAD + i) && killed;
    atomic_store(&shared->release, true);
    bool ended = fixture_join(fixture, HOLDER) && fixture_join(fixture, NEXT);
    return killed && ended ? shared->children[NEXT].served_at_ms - shared->released_at_ms : -1;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    int64_t longest_ms[2] = {0};
    bool all = true;
    fixture_open(&fixture, argc, argv, /* rounds= */ 4, /* limit_s= */ 40, /* round_ms= */ 10000,
                 sizeof(struct shared));
    struct store_facts facts = store_facts_at(fixture.driver, fixture.url);
    int64_t each_ms = fixture_knows_dead(&fixture) ? 0 : 2 * facts.takeover_ms;
    for (uint64_t round = 0; round < fixture.rounds && all; round++) {
        size_t bound = round % 2;
        int64_t took_ms = play_round(&fixture, /* dead= */ 1, bound != 0);
        all = took_ms >= 0;
        longest_ms[bound] = took_ms > longest_ms[bound] ? took_ms : longest_ms[bound];
    }
    int64_t row_ms = play_round(&fixture, DEAD_MAX, /* bound= */ true);
    fixture_print("after the release the next waiter held within %" PRId64
                  " ms, behind a dead one with a bound request; within %" PRId64
                  " ms, with an unbound one; within %" PRId64 " ms behind %d dead ones",
                  longest_ms[1], longest_ms[0], row_ms, DEAD_MAX);
    fixture_case(&fixture, all && row_ms >= 0, "every process that was not killed ended well");
    fixture_case(&fixture, longest_ms[1] <= AT_ONCE_MS + each_ms,
                 "a dead waiter with a bound request costs at most %" PRId64 " ms", each_ms);
    fixture_case(&fixture, longest_ms[0] <= AT_ONCE_MS + each_ms,
                 "and so does one with an unbound request");
    fixture_case(&fixture, row_ms <= AT_ONCE_MS + DEAD_MAX * each_ms,
                 "and so does each of %d in a row", DEAD_MAX);
    return fixture_close(&fixture);
}

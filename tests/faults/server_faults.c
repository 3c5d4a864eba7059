/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five processes share three keys through the library on a real server of the test's own, which
 * keeps every acknowledged write (--server). In turn, a fixed number of times each: a holder is
 * stopped past the end of its lease, a holder is killed, the server is killed and restarted, the
 * server is stopped for a while. No process checks before a write whether it still holds: the
 * resource must reject stale tokens. So stale writes are attempted, and none may be accepted;
 * tokens only grow; waiters enter within the documented time; no call exceeds its timeout.
 */
#include "contenders.h"
#include "server_program.h"

#include <inttypes.h>

enum fault { HOLDER_STOPPED, HOLDER_KILLED, SERVER_KILLED, SERVER_STOPPED, FAULTS };
enum {
    WORKERS = 5,
    TTL_MS = 2000,
    POLL_MS = 6500, /* the longest sleep of a waiter without a notification */
    IN_AGAIN_MS = TTL_MS + POLL_MS,
    STUCK_MS = 3 * IN_AGAIN_MS,
    STOPPED_MOST_US = 2 * TTL_MS * 1000,
};

static const struct contender_options contender_options = {
    .ttl_ms = TTL_MS, .wait_ms = 3000, .timeout_ms = 3000, .stay_most_ms = 8, .long_stays = 48};

static const char *const fault_names[FAULTS] = {
    "a holder was stopped past its TTL", "a holder was killed",
    "the server was killed and started again", "the server was stopped"};

struct figures {
    uint64_t rounds, stuck, late;
    int64_t longest_ms; /* until a contender entered again */
};

static void play_worker(struct fixture *fixture, size_t child)
{
    contender_play(fixture->shared, fixture, child);
}

static bool strike_holder(struct fixture *fixture, enum fault fault, int64_t *out_ms)
{
    struct contenders *all = fixture->shared;
    struct entries before;
    size_t key = 0, victim = contender_inside(all, IN_AGAIN_MS, &key);
    if (victim == CHILDREN_MAX)
        return false;
    int64_t struck_ms = live_now_ms();
    if (fault == HOLDER_KILLED)
        contender_kill(all, fixture, victim);
    else if (!contender_stop(all, fixture, victim))
        return false;
    entries_count(all, &before);
    bool came = entries_await_key(all, key, &before, STUCK_MS);
    *out_ms = live_now_ms() - struck_ms;
    if (fault == HOLDER_KILLED)
        contender_start(all, fixture, victim, play_worker);
    else
        fixture_continue(fixture, victim);
    return came;
}

static bool strike_server(struct fixture *fixture, enum fault fault, int64_t *out_ms)
{
    struct contenders *all = fixture->shared;
    struct entries before;
    if (fault == SERVER_KILLED) {
        if (!server_kill(fixture))
            return false;
        fixture_pause_us((int64_t)random_below(&fixture->random, 1500000));
        if (!server_start(fixture))
            return false;
    } else {
        if (!server_freeze(fixture))
            return false;
        fixture_pause_us(200000 + (int64_t)random_below(&fixture->random, STOPPED_MOST_US));
        if (!server_thaw(fixture))
            return false;
    }
    int64_t back_ms = live_now_ms();
    entries_count(all, &before);
    bool came = entries_await_key(all, CHECKER_KEYS, &before, STUCK_MS);
    *out_ms = live_now_ms() - back_ms;
    return came;
}

static void report_fault(struct fixture *fixture, enum fault fault, const struct figures *figures)
{
    fixture_print("%s: %" PRIu64 " rounds; in again after %" PRId64 " ms at most",
                  fault_names[fault], figures->rounds, figures->longest_ms);
    fixture_case(fixture, figures->rounds == fixture->rounds && figures->stuck == 0,
                 "%s: %" PRIu64 " of %" PRIu64 " rounds", fault_names[fault], figures->rounds,
                 fixture->rounds);
    fixture_case(fixture, figures->late == 0,
                 "each time somebody was in within %d ms (%" PRIu64 ")", IN_AGAIN_MS,
                 figures->late);
}

static void play(struct fixture *fixture)
{
    for (enum fault fault = 0; fault < FAULTS; fault++) {
        struct figures figures = {0};
        while (figures.rounds < fixture->rounds && figures.stuck == 0 && !fixture_late(fixture)) {
            int64_t took_ms = 0;
            fixture_pause_us((int64_t)random_below(&fixture->random, 300000));
            bool came = fault <= HOLDER_KILLED ? strike_holder(fixture, fault, &took_ms)
                                               : strike_server(fixture, fault, &took_ms);
            figures.rounds++;
            figures.stuck += came ? 0 : 1;
            figures.late += took_ms > IN_AGAIN_MS ? 1 : 0;
            if (took_ms > figures.longest_ms)
                figures.longest_ms = took_ms;
        }
        report_fault(fixture, fault, &figures);
    }
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 2, /* limit_s= */ 60, /* round_ms= */ 60000,
                 sizeof(struct contenders));
    struct contenders *all = fixture.shared;
    contenders_init(all, &contender_options, /* first= */ 0, WORKERS);
    fixture_case(&fixture, fixture.server != NULL, "the server starts");
    for (size_t i = 0; fixture.server != NULL && i < WORKERS; i++)
        contender_start(all, &fixture, i, play_worker);
    if (fixture.server != NULL) {
        play(&fixture);
        contenders_report(all, &fixture);
        fixture_case(&fixture, all->outcomes[LH_FAILED] + all->outcomes[LH_DENIED] == 0,
                     "trouble was called unavailable, and nothing else");
    }
    return fixture_close(&fixture);
}

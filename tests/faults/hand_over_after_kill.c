/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder is killed; the test measures the time until the next waiter is granted. A bound grant
 * ends with its process where the store detects dead processes, long before its TTL; with a command
 * that inherited the holder's descriptor, when that has ended too; an unbound one when its TTL
 * expires. Two wait. Each round kills one holder, and the first waiter is the next to be killed:
 * the second one becomes the first without any message. The fallback poll comes too late to help.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 10000,
    BOUND_TTL_MS = 30000,
    UNBOUND_TTL_MS = 1000,
    UNBOUND_EVERY = 16, /* rounds */
    COMMAND_EVERY = 8,
    COMMAND_MS = 400,
    POLL_MS = 5000,
    AIM_MS = 50,     /* the median, from a death to the next grant */
    MARGIN_MS = 500, /* for a busy machine */
    CHILDREN = 3,    /* a holder and two waiters */
    ROUNDS_MOST = 4096,
};

enum kind { BOUND, UNBOUND, WITH_COMMAND, KINDS };

struct child {
    uint64_t session;
    enum kind kind;
    _Atomic bool to_start;         /* pid of the command */
    _Atomic int64_t command_at_ms; /* its start time */
    _Atomic bool in_line;
    _Atomic int64_t served_at_ms, ends_ms;
    _Atomic uint64_t token;
};

struct shared {
    struct child children[CHILDREN];
};

static void watch(void *owner, const struct live_step *step)
{
    struct child *child = owner;
    const struct lease *lease = step->after;
    if (lease->state == LEASE_HELD)
        atomic_store(&child->ends_ms, lease->start_ms + lease->ttl_ms);
    if (step->output->notify == NOTIFY_WAITING)
        atomic_store(&child->in_line, true);
}

/* Starts a command that survives a kill of this process, as `run` does. */
static void start_command(struct live *live, struct child *child)
{
    int inherited = dup(live_liveness(live));
    pid_t pid = fork();
    if (inherited < 0 || pid < 0)
        _exit(1);
    if (pid == 0) {
        (void)execlp("sleep", "sleep", "0.4", NULL);
        _exit(1);
    }
    (void)close(inherited);
    atomic_store(&child->command_at_ms, live_now_ms());
}

static void play(struct fixture *fixture, size_t number)
{
    struct shared *shared = fixture->shared;
    struct child *child = &shared->children[number];
    struct live *live = fixture_live(fixture, child->session, TIMEOUT_MS);
    struct live_request wanted = {.key = "key",
                                  .bound = child->kind != UNBOUND,
                                  .ttl_ms = child->kind != UNBOUND ? BOUND_TTL_MS : UNBOUND_TTL_MS,
                                  .wait_ms = WAIT_WITHOUT_LIMIT,
                                  .poll_ms = POLL_MS};
    live_watch(live, watch, child);
    if (live_acquire(live, &wanted) != OUTCOME_OK)
        _exit(1);
    atomic_store(&child->token, live_lease(live)->token);
    atomic_store(&child->served_at_ms, live_now_ms());
    bool held = true;
    while (held) {
        held = live_work(live, /* length_ms= */ 2);
        if (atomic_exchange(&child->to_start, false))
            start_command(live, child);
    }
    _exit(2); /* lost without a cause */
}

static bool await_word(const struct fixture *fixture, _Atomic int64_t *word)
{
    while (atomic_load(word) == 0) {
        if (fixture_late(fixture))
            return false;
        fixture_pause_us(200);
    }
    return true;
}

static void start(struct fixture *fixture, size_t number, enum kind kind)
{
    struct shared *shared = fixture->shared;
    shared->children[number] = (struct child){.session = fixture_session(fixture), .kind = kind};
    fixture_start(fixture, number, play);
}

static bool line_up(struct fixture *fixture, size_t number, enum kind kind)
{
    struct shared *shared = fixture->shared;
    start(fixture, number, kind);
    while (!atomic_load(&shared->children[number].in_line) && !fixture_late(fixture))
        fixture_pause_us(200);
    return !fixture_late(fixture);
}

struct figures {
    uint64_t kills[KINDS], early, old_tokens;
    int64_t took_ms[KINDS][ROUNDS_MOST];
};

/* The next grant must happen at this moment: not before, and not long after. */
static int64_t free_from_ms(const struct child *old, int64_t killed_at_ms)
{
    if (old->kind == UNBOUND)
        return old->ends_ms;
    return old->kind == WITH_COMMAND ? old->command_at_ms + COMMAND_MS : killed_at_ms;
}

/* Kills the holder; false on an error that ends the run. */
static bool play_round(struct fixture *fixture, size_t holder, enum kind next_kind,
                       struct figures *figures)
{
    struct shared *shared = fixture->shared;
    size_t newcomer = (holder + 2) % CHILDREN;
    struct child *old = &shared->children[holder];
    struct child *next = &shared->children[(holder + 1) % CHILDREN];
    if (!line_up(fixture, newcomer, next_kind))
        return false;
    fixture_pause_us((int64_t)random_below(&fixture->random, 20000));
    atomic_store(&old->to_start, old->kind == WITH_COMMAND);
    if (old->kind == WITH_COMMAND && !await_word(fixture, &old->command_at_ms))
        return false;
    int64_t killed_at_ms = live_now_ms();
    if (!fixture_kill(fixture, holder) || !await_word(fixture, &next->served_at_ms))
        return false;
    int64_t took_ms = next->served_at_ms - free_from_ms(old, killed_at_ms);
    figures->took_ms[old->kind][figures->kills[old->kind]++] = took_ms;
    figures->early += took_ms < 0 ? 1 : 0;
    figures->old_tokens += next->token <= old->token ? 1 : 0;
    return true;
}

static enum kind kind_of(uint64_t round)
{
    if (round % UNBOUND_EVERY == 0)
        return UNBOUND;
    return round % COMMAND_EVERY == 1 ? WITH_COMMAND : BOUND;
}

static int compare(const void *one, const void *other)
{
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return left < right ? -1 : left > right;
}

/* Sorts them; the last one is the longest. */
static int64_t median_of(struct figures *figures, enum kind kind)
{
    uint64_t count = figures->kills[kind];
    qsort(figures->took_ms[kind], count, sizeof figures->took_ms[kind][0], compare);
    return count > 0 ? figures->took_ms[kind][count / 2] : INT64_MAX;
}

static int64_t longest_of(const struct figures *figures, enum kind kind)
{
    uint64_t count = figures->kills[kind];
    return count > 0 ? figures->took_ms[kind][count - 1] : INT64_MAX;
}

static void report(struct fixture *fixture, struct figures *figures)
{
    static const char *const texts[KINDS] = {
        [BOUND] = "bound: after the kill",
        [UNBOUND] = "unbound: after the lease's end",
        [WITH_COMMAND] = "with a command: after that one's end",
    };
    for (enum kind kind = 0; kind < KINDS; kind++) {
        int64_t median_ms = median_of(figures, kind), longest_ms = longest_of(figures, kind);
        fixture_print("%s the next one is in after %" PRId64 " ms (median), %" PRId64
                      " ms (maximum), %" PRIu64 " kills",
                      texts[kind], median_ms, longest_ms, figures->kills[kind]);
        int64_t aim_ms = kind == UNBOUND ? MARGIN_MS : AIM_MS;
        fixture_case(fixture, median_ms <= aim_ms && longest_ms <= MARGIN_MS,
                     "%s within %" PRId64 " ms, and %d ms at most", texts[kind], aim_ms, MARGIN_MS);
    }
    fixture_print("TTL %d ms, unbound %d ms; a waiter polls every %d ms", BOUND_TTL_MS,
                  UNBOUND_TTL_MS, POLL_MS);
    fixture_case(fixture, figures->early == 0, "and none before (%" PRIu64 ")", figures->early);
    fixture_case(fixture, figures->old_tokens == 0, "tokens grew (%" PRIu64 ")",
                 figures->old_tokens);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    static struct figures figures;
    fixture_open(&fixture, argc, argv, /* rounds= */ 48, /* limit_s= */ 30, /* round_ms= */ 2000,
                 sizeof(struct shared));
    struct shared *shared = fixture.shared;
    uint64_t round = 0;
    if (fixture.rounds > ROUNDS_MOST)
        fixture.rounds = ROUNDS_MOST;
    start(&fixture, 0, BOUND);
    bool goes_on =
        await_word(&fixture, &shared->children[0].served_at_ms) && line_up(&fixture, 1, BOUND);
    for (; round < fixture.rounds && goes_on; round++)
        goes_on = play_round(&fixture, round % CHILDREN, kind_of(round), &figures);
    fixture_case(&fixture, goes_on && round == fixture.rounds, "%" PRIu64 " holders were killed",
                 round);
    report(&fixture, &figures);
    return fixture_close(&fixture);
}

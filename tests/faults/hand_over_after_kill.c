/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder is killed; the test measures the time until the next waiter is granted. A bound grant
 * ends with its process where the store detects dead processes, long before its TTL; with a command
 * that inherited the holder's descriptor, when that has ended too; an unbound one when its TTL
 * expires. Each round kills one holder; the waiter that follows is the next to be killed.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 10000,
    BOUND_TTL_MS = 30000,
    UNBOUND_TTL_MS = 1000,
    UNBOUND_EVERY = 16, /* rounds */
    COMMAND_EVERY = 8,
    COMMAND_MS = 400,
    POLL_MS = 250,   /* a death sends no notification: the waiter polls */
    MARGIN_MS = 500, /* for a busy machine */
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
    struct child children[2];
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

struct figures {
    uint64_t kills[KINDS], early, old_tokens;
    int64_t longest_ms[KINDS], sum_ms[KINDS];
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
    struct child *old = &shared->children[holder], *next = &shared->children[1 - holder];
    start(fixture, 1 - holder, next_kind);
    while (!atomic_load(&next->in_line) && !fixture_late(fixture))
        fixture_pause_us(200);
    fixture_pause_us((int64_t)random_below(&fixture->random, 20000));
    atomic_store(&old->to_start, old->kind == WITH_COMMAND);
    if (old->kind == WITH_COMMAND && !await_word(fixture, &old->command_at_ms))
        return false;
    int64_t killed_at_ms = live_now_ms();
    if (!fixture_kill(fixture, holder) || !await_word(fixture, &next->served_at_ms))
        return false;
    int64_t took_ms = next->served_at_ms - free_from_ms(old, killed_at_ms);
    figures->kills[old->kind]++;
    figures->sum_ms[old->kind] += took_ms;
    if (took_ms > figures->longest_ms[old->kind])
        figures->longest_ms[old->kind] = took_ms;
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

static void report(struct fixture *fixture, const struct figures *figures)
{
    static const char *const texts[KINDS] = {
        [BOUND] = "bound: after the kill",
        [UNBOUND] = "unbound: after the lease's end",
        [WITH_COMMAND] = "with a command: after that one's end",
    };
    int64_t by_look_ms = POLL_MS + POLL_MS / 4 + MARGIN_MS;
    for (size_t i = 0; i < KINDS; i++) {
        int64_t count = figures->kills[i] > 0 ? (int64_t)figures->kills[i] : 1;
        fixture_print("%s the next one is in %" PRId64 " ms later on average, %" PRId64
                      " ms at most (%" PRIu64 " kills)",
                      texts[i], figures->sum_ms[i] / count, figures->longest_ms[i],
                      figures->kills[i]);
    }
    fixture_print("TTL %d ms, unbound %d ms; a waiter looks every %d ms", BOUND_TTL_MS,
                  UNBOUND_TTL_MS, POLL_MS);
    fixture_case(fixture, figures->longest_ms[BOUND] <= by_look_ms,
                 "a bound grant ends with its process, within %" PRId64 " ms", by_look_ms);
    fixture_case(fixture,
                 figures->longest_ms[WITH_COMMAND] <= by_look_ms && figures->kills[WITH_COMMAND],
                 "or with the last one that has its descriptor");
    fixture_case(fixture, figures->longest_ms[UNBOUND] <= MARGIN_MS && figures->kills[UNBOUND],
                 "an unbound one at its end, within %d ms", MARGIN_MS);
    fixture_case(fixture, figures->early == 0, "and none before (%" PRIu64 ")", figures->early);
    fixture_case(fixture, figures->old_tokens == 0, "tokens grew (%" PRIu64 ")",
                 figures->old_tokens);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct figures figures = {0};
    fixture_open(&fixture, argc, argv, /* rounds= */ 48, /* limit_s= */ 30, /* round_ms= */ 2000,
                 sizeof(struct shared));
    struct shared *shared = fixture.shared;
    start(&fixture, 0, BOUND);
    bool goes_on = await_word(&fixture, &shared->children[0].served_at_ms);
    uint64_t round = 0;
    for (; round < fixture.rounds && goes_on; round++)
        goes_on = play_round(&fixture, round % 2, kind_of(round), &figures);
    fixture_case(&fixture, goes_on && round == fixture.rounds, "%" PRIu64 " holders were killed",
                 round);
    report(&fixture, &figures);
    return fixture_close(&fixture);
}

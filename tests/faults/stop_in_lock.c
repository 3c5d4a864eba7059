/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is stopped while it has the store's own lock. That moment cannot be observed, so busy
 * writers are stopped at random moments until all requests of the others fail, however often they
 * are repeated: a hit. Then every request must return `unavailable` within its timeout, with the
 * pid of the stopped process; nothing may be granted; a holder must learn of its deadline; and all
 * continue when the stopped one does. A round is a hit. On a busy machine requests time out without
 * one: no verdict relies on a single request, or on time without a processor.
 */
#include "fixture.h"
#include "overlap_checker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WRITERS = 2, /* child indexes: writers, askers, a holder, a new process */
    ASKERS = 3,
    KEEPER = WRITERS + ASKERS,
    NEWCOMER = KEEPER + 1,
    CHILDREN = NEWCOMER + 1,
    TIMEOUT_MS = 300,
    MARGIN_MS = 200,
    GO_ON_MS = 30000,
    KEEPER_TTL_MS = 6000,
    SHORT_MS = KEEPER_TTL_MS / 3 - TIMEOUT_MS, /* a holder that renews has more than that left */
    IN_A_ROW = 3,         /* requests in a row that all fail: then it is no slow disk */
    QUESTIONS = 30,       /* until the replies agree */
    LONG_EVERY = 3,       /* hits: every third one lasts until the holder must have lost */
    TRIES_PER_HIT = 1000, /* attempts without a hit */
};

struct asker {
    uint64_t session;
    _Atomic uint64_t done; /* the last request it has answered */
    enum outcome outcome;
    int64_t took_ms; /* without the time in which it was not scheduled */
    char why[256];
};

struct shared {
    struct asker children[CHILDREN];
    _Atomic uint64_t question, written;
    _Atomic bool stop;
    /* of the keeper */
    _Atomic uint64_t lost;
    _Atomic int64_t deadline_ms; /* 0: it does not hold */
    _Atomic int64_t latest_ms;   /* lateness of the loss after its deadline, scheduled time only */
};

struct figures {
    uint64_t tries, hits, named, answers, stuck, keeper_lost_short, keeper_kept_long;
    uint64_t granted, misnamed; /* although the lock was held */
    int64_t longest_ms, longest_again_ms;
};

static void play_writer(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct live *live =
        fixture_live(fixture, shared->children[child].session, /* timeout_ms= */ 10000);
    struct live_request wanted = {.key = child == 0 ? "this" : "that"};
    while (!atomic_load(&shared->stop)) {
        if (live_acquire(live, &wanted) != OUTCOME_OK || live_release(live) != OUTCOME_OK)
            _exit(1);
        atomic_fetch_add(&shared->written, 1);
    }
    live_close(&live);
}

static int64_t used_ms(int64_t since_ms, int64_t unscheduled_us)
{
    return live_now_ms() - since_ms -
           (fixture_unscheduled_us(/* pid= */ 0) - unscheduled_us) / 1000;
}

/* One request to the store: granted and released, or its error. */
static void ask(struct live *live, struct asker *asker, int64_t began_ms)
{
    char key[48];
    /* A new one each time: a request that returned `unavailable` may still have been granted. */
    (void)snprintf(key, sizeof key, "%016" PRIx64 "-%" PRId64, asker->session, began_ms);
    struct live_request wanted = {.key = key};
    int64_t unscheduled_us = fixture_unscheduled_us(/* pid= */ 0);
    asker->outcome = live_acquire(live, &wanted);
    asker->took_ms = used_ms(began_ms, unscheduled_us);
    (void)snprintf(asker->why, sizeof asker->why, "%s", live_trouble(live));
    if (asker->outcome == OUTCOME_OK)
        asker->outcome = live_release(live);
}

static void play_asker(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct asker *asker = &shared->children[child];
    struct live *live = fixture_live(fixture, asker->session, TIMEOUT_MS);
    while (!atomic_load(&shared->stop)) {
        uint64_t question = atomic_load(&shared->question);
        if (atomic_load(&asker->done) == question) {
            fixture_pause_us(200);
            continue;
        }
        ask(live, asker, live_now_ms());
        atomic_store(&asker->done, question);
    }
    live_close(&live);
}

/* Opening the store may take its lock, too. */
static void play_newcomer(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct asker *asker = &shared->children[child];
    struct text why;
    int64_t began_ms = live_now_ms(), unscheduled_us = fixture_unscheduled_us(/* pid= */ 0);
    text_init(&why, asker->why, sizeof asker->why);
    asker->outcome = OUTCOME_UNAVAILABLE;
    struct live *live = live_open(fixture->driver, fixture->url, asker->session, TIMEOUT_MS, &why);
    asker->took_ms = used_ms(began_ms, unscheduled_us);
    if (live != NULL)
        ask(live, asker, live_now_ms());
    live_close(&live);
}

static void play_keeper(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct live *live = fixture_live(fixture, shared->children[child].session, TIMEOUT_MS);
    struct live_request wanted = {
        .key = "kept", .ttl_ms = KEEPER_TTL_MS, .wait_ms = KEEPER_TTL_MS, .poll_ms = 100};
    while (!atomic_load(&shared->stop)) {
        if (live_acquire(live, &wanted) != OUTCOME_OK)
            continue;
        bool held = true;
        int64_t unscheduled_us = 0;
        while (held && !atomic_load(&shared->stop)) {
            unscheduled_us = fixture_unscheduled_us(/* pid= */ 0);
            atomic_store(&shared->deadline_ms, live_lease(live)->deadline_ms);
            held = live_work(live, /* length_ms= */ 5);
        }
        atomic_store(&shared->deadline_ms, 0);
        if (!held) {
            keep_longest(&shared->latest_ms,
                         used_ms(live_lease(live)->deadline_ms, unscheduled_us));
            atomic_fetch_add(&shared->lost, 1);
        }
        (void)live_release(live);
    }
    live_close(&live);
}

/* Sends the request to all askers and waits for the last reply. */
static bool question_all(struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    uint64_t question = atomic_fetch_add(&shared->question, 1) + 1;
    for (size_t i = 0; i < ASKERS; i++)
        while (atomic_load(&shared->children[WRITERS + i].done) != question) {
            if (fixture_late(fixture))
                return false;
            fixture_pause_us(200);
        }
    return true;
}

static size_t count_outcome(const struct shared *shared, enum outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < ASKERS; i++)
        count += shared->children[WRITERS + i].outcome == outcome ? 1 : 0;
    return count;
}

static bool names(const struct asker *asker, pid_t pid)
{
    char number[16];
    (void)snprintf(number, sizeof number, " %d", (int)pid);
    const char *at = strstr(asker->why, number);
    return at != NULL && 1 + strspn(at + 1, "0123456789") == strlen(number);
}

static bool misnames(const struct fixture *fixture, const struct asker *asker, pid_t pid)
{
    for (size_t child = 0; child < CHILDREN; child++) {
        pid_t other = fixture->pids[child];
        if (other != 0 && other != pid && names(asker, other))
            return true;
    }
    return false;
}

/* True if all requests failed in time, with the pid of the stopped process, or with none when the
 * store cannot know it; never with another one. */
static bool judge_refusals(const struct fixture *fixture, pid_t pid, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    bool misnamed = false;
    for (size_t i = 0; i < ASKERS; i++) {
        const struct asker *asker = &shared->children[WRITERS + i];
        figures->answers++;
        figures->named += names(asker, pid) ? 1 : 0;
        misnamed = misnamed || misnames(fixture, asker, pid);
        if (asker->took_ms > figures->longest_ms)
            figures->longest_ms = asker->took_ms;
    }
    return !misnamed;
}

/* True if the stopped process has the lock. Repeats until all succeed, or all failed so often that
 * no other process can have held it that long; earlier grants and wrong pids count then. */
static bool is_inside(struct fixture *fixture, pid_t pid, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    uint64_t granted = 0, misnamed = 0;
    unsigned in_a_row = 0;
    for (unsigned i = 0; i < QUESTIONS && in_a_row < IN_A_ROW && question_all(fixture); i++) {
        size_t through = count_outcome(shared, OUTCOME_OK);
        if (through == ASKERS)
            return false;
        bool refused = count_outcome(shared, OUTCOME_UNAVAILABLE) == ASKERS;
        granted += through > 0 ? 1 : 0;
        misnamed += refused && !judge_refusals(fixture, pid, figures) ? 1 : 0;
        in_a_row = refused ? in_a_row + 1 : 0;
    }
    if (in_a_row < IN_A_ROW)
        return false;
    figures->granted += granted;
    if (misnamed > 0 && figures->misnamed == 0)
        fixture_print("%d stands still, but: %s", (int)pid, shared->children[WRITERS].why);
    figures->misnamed += misnamed;
    return true;
}

/* A process that has to open the store first; its grant counts if the lock was held before and
 * after. */
static bool judge_newcomer(struct fixture *fixture, pid_t pid, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    struct asker *newcomer = &shared->children[NEWCOMER];
    *newcomer = (struct asker){.session = fixture_session(fixture)};
    fixture_start(fixture, NEWCOMER, play_newcomer);
    figures->stuck += fixture_join(fixture, NEWCOMER) ? 0 : 1;
    if (newcomer->outcome != OUTCOME_UNAVAILABLE) {
        if (!is_inside(fixture, pid, figures))
            return false;
        figures->granted++;
    }
    figures->answers++;
    figures->named += names(newcomer, pid) ? 1 : 0;
    figures->misnamed += misnames(fixture, newcomer, pid) ? 1 : 0;
    if (newcomer->took_ms > figures->longest_ms)
        figures->longest_ms = newcomer->took_ms;
    return true;
}

/* A short stop does not affect the holder; a long one must report the loss. */
static void judge_keeper(struct fixture *fixture, uint64_t lost, int64_t since_ms, bool is_long,
                         struct figures *figures)
{
    struct shared *shared = fixture->shared;
    bool was_lost = atomic_load(&shared->lost) > lost;
    figures->keeper_lost_short += was_lost && live_now_ms() - since_ms < SHORT_MS ? 1 : 0;
    int64_t until_ms = live_now_ms() + GO_ON_MS;
    while (is_long && atomic_load(&shared->lost) == lost && live_now_ms() < until_ms)
        fixture_pause_us(1000);
    figures->keeper_kept_long += is_long && atomic_load(&shared->lost) == lost ? 1 : 0;
}

/* It holds, and for long enough: it has caught up after the last stop. */
static bool await_keeper(const struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    while (atomic_load(&shared->deadline_ms) < live_now_ms() + SHORT_MS + TIMEOUT_MS &&
           !fixture_late(fixture))
        fixture_pause_us(1000);
    return !fixture_late(fixture);
}

/* Continues the stopped process: so do all, as soon as a busy machine allows. */
static bool await_all(struct fixture *fixture, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    int64_t began_ms = live_now_ms();
    do {
        if (!question_all(fixture) || live_now_ms() - began_ms > GO_ON_MS)
            return false;
    } while (count_outcome(shared, OUTCOME_OK) < ASKERS);
    int64_t took_ms = live_now_ms() - began_ms;
    if (took_ms > figures->longest_again_ms)
        figures->longest_again_ms = took_ms;
    return true;
}

static bool try_once(struct fixture *fixture, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    size_t writer = random_below(&fixture->random, WRITERS);
    pid_t pid = fixture->pids[writer];
    figures->tries++;
    fixture_spin_us((int64_t)random_below(&fixture->random, 3000));
    if (!await_keeper(fixture))
        return false;
    uint64_t lost = atomic_load(&shared->lost);
    int64_t since_ms = live_now_ms();
    if (!fixture_stop(fixture, writer))
        return false;
    if (is_inside(fixture, pid, figures) && judge_newcomer(fixture, pid, figures)) {
        bool is_long = figures->hits % LONG_EVERY == LONG_EVERY - 1;
        judge_keeper(fixture, lost, since_ms, is_long, figures);
        figures->hits++;
    }
    fixture_continue(fixture, writer);
    return count_outcome(shared, OUTCOME_OK) == ASKERS || await_all(fixture, figures);
}

static void report(struct fixture *fixture, const struct figures *figures)
{
    struct shared *shared = fixture->shared;
    fixture_print("stopped %" PRIu64 " times, inside the lock %" PRIu64 " times", figures->tries,
                  figures->hits);
    fixture_print("the longest wait for `unavailable` %" PRId64 " ms, timeout %d ms; going on took "
                  "%" PRId64 " ms at most",
                  figures->longest_ms, TIMEOUT_MS, figures->longest_again_ms);
    fixture_print("answers %" PRIu64 ", with the pid of the stopped one %" PRIu64, figures->answers,
                  figures->named);
    fixture_print("the holder lost %" PRIu64 " times, told at most %" PRId64
                  " ms after its deadline",
                  shared->lost, shared->latest_ms);
    fixture_case(fixture, figures->hits >= fixture->rounds, "%" PRIu64 " hits", figures->hits);
    fixture_case(fixture, figures->granted == 0, "nothing was granted meanwhile (%" PRIu64 ")",
                 figures->granted);
    fixture_case(fixture, figures->longest_ms <= TIMEOUT_MS + MARGIN_MS,
                 "`unavailable` came within the timeout and %d ms", MARGIN_MS);
    fixture_case(fixture, figures->named > 0 && figures->misnamed == 0,
                 "and named the one that stands still, never another (%" PRIu64 ")",
                 figures->misnamed);
    fixture_case(fixture, figures->stuck == 0, "so did a process that had to open the store first");
    fixture_case(fixture, figures->keeper_lost_short == 0, "a short stop cost the holder nothing");
    fixture_case(fixture,
                 figures->keeper_kept_long == 0 && shared->lost >= figures->hits / LONG_EVERY,
                 "in a long one it was told that it lost");
    fixture_case(fixture, shared->latest_ms <= TIMEOUT_MS + MARGIN_MS, "in time (%" PRId64 " ms)",
                 shared->latest_ms);
}

static bool await_writer(const struct fixture *fixture)
{
    const struct shared *shared = fixture->shared;
    uint64_t written = atomic_load(&shared->written);
    int64_t until_ms = live_now_ms() + GO_ON_MS;
    while (atomic_load(&shared->written) == written && live_now_ms() < until_ms)
        fixture_pause_us(1000);
    return atomic_load(&shared->written) > written;
}

int main(int argc, char **argv)
{
    static fixture_work *const plays[CHILDREN] = {play_writer, play_writer, play_asker,
                                                  play_asker,  play_asker,  play_keeper};
    struct fixture fixture;
    struct figures figures = {0};
    fixture_open(&fixture, argc, argv, /* rounds= */ 3, /* limit_s= */ 60, /* round_ms= */ 20000,
                 sizeof(struct shared));
    struct shared *shared = fixture.shared;
    for (size_t child = 0; child < NEWCOMER; child++) {
        shared->children[child].session = fixture_session(&fixture);
        fixture_start(&fixture, child, plays[child]);
    }
    bool goes_on = question_all(&fixture);
    while (goes_on && figures.hits < fixture.rounds &&
           figures.tries < fixture.rounds * TRIES_PER_HIT && !fixture_late(&fixture))
        goes_on = try_once(&fixture, &figures);
    fixture_case(&fixture, goes_on && await_writer(&fixture),
                 "whenever the stopped one went on, so did all");
    atomic_store(&shared->stop, true);
    bool all = true;
    for (size_t child = 0; child < NEWCOMER; child++)
        all = fixture_join(&fixture, child) && all;
    fixture_case(&fixture, all, "every process ended well");
    report(&fixture, &figures);
    return fixture_close(&fixture);
}

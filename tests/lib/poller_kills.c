/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examples/poller.c, unchanged, with a producer of events. Both are killed with SIGKILL at any
 * time, the poller also right before and after its calls. --rounds N: seconds. The source has its
 * own clock, a day ahead of the store's or behind, many events of one moment, and events that
 * become visible as late as the poller's overlap allows. Hours of that clock pass while no poller
 * runs, and within a poll, without webhooks.
 *
 * Counted, from the lines that the poller prints and those that this program adds when an id was
 * finished:
 * - missing: events without a line, once the watermark is above all of them;
 * - repeats: lines of an event after its finish was confirmed; there must be none;
 * - handled again: lines of an event that was not finished, because its poller died in between or
 * its claim ended first. No store can prevent these; there are at most as many as deaths.
 *
 * An id is kept for 1 ms here, not a day: after that only the watermark keeps it, as it must when
 * no poll runs for long. With planted bugs the same scene must find missing events or repeats.
 * The library is used through its public header; this program intercepts some of its calls.
 */
#include "leasehold.h"
#include "leasehold_once.h"
#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum child { POLLER, PRODUCER };
enum planted_bug { NONE, TO_NOW, TO_STORE_TIME, NO_WATERMARK };
enum {
    EVENTS_MAX = 1000000,
    OVERLAP_MS = 2000, /* the poller's */
    CLAIM_MS = 200,    /* for its five seconds */
    HOUR_MS = 3600000,
    HOUR_STEPS = 40,
    DAY_MS = 24 * HOUR_MS,
    BEYOND_MS = 2 * OVERLAP_MS, /* no poll reads an event that is older */
    SLOW_POLLS = 3,             /* at least, in each true scene */
    BACKLOG_MAX = 200,          /* limits a source that outruns its poller */
    PLANTED_MS = 2000,
    LIMIT_S = 300
};
enum { MOVES_WITHIN_US = 30000000, PLANTED_MOVES_WITHIN_US = 5000000 };

struct shared {
    enum planted_bug planted_bug; /* set before processes start */
    _Atomic bool calm;            /* polls are not slow any more */
    _Atomic bool mortal;          /* the poller may be killed at any call */
    _Atomic int64_t clock_ms, hour_left_ms, reached_ms;
    _Atomic unsigned made, made_at_move, finished, deaths, stale, hours, slow_polls;
};

struct figures {
    unsigned made, by_webhook, unmade, missing, repeats, again;
};

static struct fixture *fixture_here; /* of the poller's process */
static int webhooks = -1;
static unsigned scene; /* each has its own folder */

static const char *path_of(const struct fixture *fixture, const char *file, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/scene-%u/%s", fixture->folder, scene, file);
    return path;
}

/* ---- the library, for the poller ---- */

int poller_main(int argc, char **argv); /* the example's */

static struct shared *here(void)
{
    return fixture_here->shared;
}

static bool sometimes(uint64_t one_in)
{
    return random_below(&fixture_here->random, one_in) == 0;
}

static void maybe_die(uint64_t one_in)
{
    if (atomic_load(&here()->mortal) && sometimes(one_in)) {
        (void)atomic_fetch_add(&here()->deaths, 1);
        (void)raise(SIGKILL);
    }
}

static void find(const char *name, void *out_call)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    memcpy(out_call, &found, sizeof found);
}

enum lh_outcome lh_once_begin(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_once *out,
                              struct lh_report *report)
{
    enum lh_outcome (*call)(struct lh_client *, const char *, const struct lh_once_options *,
                            struct lh_once *, struct lh_report *);
    struct lh_once_options shorter = *options;
    shorter.ttl_ms = CLAIM_MS;
    find("lh_once_begin", &call);
    maybe_die(/* one_in= */ 400);
    enum lh_outcome outcome = call(client, id, &shorter, out, report);
    maybe_die(/* one_in= */ 400);
    return outcome;
}

enum lh_outcome lh_once_finish(struct lh_client *client, const char *id, uint64_t token,
                               const struct lh_completion *completion, struct lh_report *report)
{
    enum lh_outcome (*call)(struct lh_client *, const char *, uint64_t,
                            const struct lh_completion *, struct lh_report *);
    struct lh_completion shorter = *completion;
    shorter.keep_ms = 1;
    if (here()->planted_bug == NO_WATERMARK)
        shorter.watermark = shorter.until = NULL;
    find("lh_once_finish", &call);
    maybe_die(/* one_in= */ 50);
    enum lh_outcome outcome = call(client, id, token, &shorter, report);
    if (outcome == LH_OK && dprintf(STDOUT_FILENO, "%s done\n", id + strlen("event/")) < 0)
        abort();
    (void)atomic_fetch_add(outcome == LH_OK ? &here()->finished : &here()->stale, 1);
    maybe_die(/* one_in= */ 50);
    return outcome;
}

static int64_t store_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Lets an hour pass between the last event and the advance of the watermark; true if it did. */
static bool dawdle(void)
{
    int64_t none = 0;
    if (atomic_load(&here()->calm) || !sometimes(/* one_in= */ 4) ||
        !atomic_compare_exchange_strong(&here()->hour_left_ms, &none, HOUR_MS))
        return false;
    while (atomic_load(&here()->hour_left_ms) > 0)
        fixture_pause_us(1000);
    return true;
}

enum lh_outcome lh_watermark_advance(struct lh_client *client, const char *name,
                                     const char *expected, const char *value,
                                     struct lh_report *report)
{
    enum lh_outcome (*call)(struct lh_client *, const char *, const char *, const char *,
                            struct lh_report *);
    char other[32];
    int64_t to_ms = strtoll(value, NULL, 10);
    find("lh_watermark_advance", &call);
    bool slow = dawdle();
    if (here()->planted_bug == TO_NOW)
        to_ms = atomic_load(&here()->clock_ms);
    if (here()->planted_bug == TO_STORE_TIME)
        to_ms = store_now_ms();
    (void)snprintf(other, sizeof other, "%" PRId64, to_ms);
    maybe_die(/* one_in= */ 20);
    enum lh_outcome outcome = call(client, name, expected, other, report);
    if (outcome == LH_OK) {
        atomic_store(&here()->reached_ms, to_ms);
        atomic_store(&here()->made_at_move, atomic_load(&here()->made));
    }
    if (outcome == LH_OK && slow)
        (void)atomic_fetch_add(&here()->slow_polls, 1);
    maybe_die(/* one_in= */ 20);
    return outcome;
}

/* ---- processes ---- */

static void play_poller(struct fixture *fixture, size_t child)
{
    char url[256], path[192], source[192], notify[192], turns[] = "0", name[] = "poller";
    char *args[] = {name, url, source, turns, NULL};
    (void)child;
    fixture_here = fixture;
    (void)snprintf(url, sizeof url, "file:%s", path_of(fixture, "store", path, sizeof path));
    (void)path_of(fixture, "", source, sizeof source);
    int lines = open(path_of(fixture, "told", notify, sizeof notify),
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (lines < 0 || dup2(lines, STDOUT_FILENO) < 0 || dup2(webhooks, STDIN_FILENO) < 0)
        _exit(1);
    _exit(poller_main(4, args));
}

static void show_clock(const struct fixture *fixture, int64_t clock_ms)
{
    char path[192], next[192];
    struct shared *shared = fixture->shared;
    atomic_store(&shared->clock_ms, clock_ms);
    FILE *file = fopen(path_of(fixture, "clock-next", next, sizeof next), "we");
    if (file == NULL || fprintf(file, "%" PRId64 "\n", clock_ms) < 0 || fclose(file) != 0 ||
        rename(next, path_of(fixture, "clock", path, sizeof path)) != 0)
        abort();
}

/* Half of them are of the current moment, the others late, up to the overlap. */
static void make_event(struct fixture *fixture, int events, bool sends)
{
    char line[64];
    struct shared *shared = fixture->shared;
    int64_t moment_ms = atomic_load(&shared->clock_ms);
    uint64_t late = random_below(&fixture->random, 4);
    if (late == 0)
        moment_ms -= OVERLAP_MS;
    if (late == 1)
        moment_ms -= (int64_t)random_below(&fixture->random, OVERLAP_MS);
    int length = snprintf(line, sizeof line, "%" PRId64 " %u\n", moment_ms,
                          atomic_fetch_add(&shared->made, 1));
    if (write(events, line, (size_t)length) != length)
        abort();
    /* Half of them are sent as webhooks, some twice; they are lost if the pipe is full. */
    for (uint64_t i = random_below(&fixture->random, 4); sends && i >= 2; i--) {
        if (write(webhooks, line, (size_t)length) != length)
            return;
    }
}

/* On a slow disk the watermark may lag behind; the producer pauses, except while an hour passes. */
static bool is_far_ahead(struct shared *shared)
{
    unsigned ahead = atomic_load(&shared->made) - atomic_load(&shared->made_at_move);
    return ahead >= BACKLOG_MAX && atomic_load(&shared->hour_left_ms) == 0;
}

static void play_producer(struct fixture *fixture, size_t child)
{
    char path[192];
    struct shared *shared = fixture->shared;
    int events = open(path_of(fixture, "events", path, sizeof path),
                      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    (void)child;
    while (events >= 0 && atomic_load(&shared->made) < EVENTS_MAX) {
        int64_t clock_ms = atomic_load(&shared->clock_ms);
        int64_t left_ms = atomic_load(&shared->hour_left_ms);
        if (is_far_ahead(shared)) {
            fixture_pause_us(1000);
            continue;
        }
        make_event(fixture, events, /* sends= */ left_ms == 0);
        if (left_ms > 0) {
            show_clock(fixture, clock_ms + HOUR_MS / HOUR_STEPS);
            atomic_store(&shared->hour_left_ms, left_ms - HOUR_MS / HOUR_STEPS);
            fixture_pause_us(500);
        } else if (random_below(&fixture->random, 2) == 0) {
            show_clock(fixture, clock_ms + (int64_t)random_below(&fixture->random, 400));
            fixture_pause_us((int64_t)random_below(&fixture->random, 40000));
        }
    }
}

/* ---- scenes ---- */

static void prepare(struct fixture *fixture, enum planted_bug planted_bug, int64_t ahead_ms)
{
    char path[192];
    struct shared *shared = fixture->shared;
    *shared = (struct shared){.planted_bug = planted_bug};
    scene++;
    if (mkdir(path_of(fixture, "", path, sizeof path), 0700) != 0 ||
        mkfifo(path_of(fixture, "webhooks", path, sizeof path), 0600) != 0)
        abort();
    webhooks = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    show_clock(fixture, store_now_ms() + ahead_ms);
}

static void kill_child(struct fixture *fixture, enum child child)
{
    struct shared *shared = fixture->shared;
    bool lived = fixture_lives(fixture, child);
    (void)fixture_kill(fixture, child);
    if (child == POLLER && lived)
        (void)atomic_fetch_add(&shared->deaths, 1);
}

static void pass_hour(struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    (void)atomic_fetch_add(&shared->hours, 1);
    atomic_store(&shared->hour_left_ms, HOUR_MS);
    while (atomic_load(&shared->hour_left_ms) > 0 && !fixture_late(fixture))
        fixture_pause_us(1000);
}

/* One life in four lasts until the watermark has moved, so that ids expire. Its duration is
 * limited, since a planted bug may have moved the watermark too far to move again. */
static void live_and_die(struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    int64_t end_us = fixture_now_us() + (int64_t)random_below(&fixture->random, 400000);
    int64_t last_us = fixture_now_us() +
                      (shared->planted_bug == NONE ? MOVES_WITHIN_US : PLANTED_MOVES_WITHIN_US);
    bool moves = random_below(&fixture->random, 4) == 0;
    atomic_store(&shared->mortal, !moves);
    atomic_store(&shared->reached_ms, 0);
    fixture_start(fixture, POLLER, play_poller);
    while (fixture_lives(fixture, POLLER) && !fixture_late(fixture) &&
           (moves ? atomic_load(&shared->reached_ms) == 0 && fixture_now_us() < last_us
                  : fixture_now_us() < end_us))
        fixture_pause_us(500);
    kill_child(fixture, POLLER);
    if (random_below(&fixture->random, 10) == 0)
        pass_hour(fixture);
}

/* True if the scene has covered its cases; for a planted bug only those that reveal it. */
static bool saw_all(const struct shared *shared)
{
    unsigned made = atomic_load(&shared->made), moved_at = atomic_load(&shared->made_at_move);
    unsigned slow_polls = atomic_load(&shared->slow_polls);
    switch (shared->planted_bug) {
    case NONE:
        return atomic_load(&shared->hours) > 0 && slow_polls >= SLOW_POLLS;
    case TO_NOW:
        return slow_polls > 0;
    case TO_STORE_TIME:
        return moved_at > 0 && made > moved_at;
    case NO_WATERMARK:
        return atomic_load(&shared->finished) > made;
    }
    abort();
}

/* Starts and kills for that duration, and until saw_all(). */
static void rage(struct fixture *fixture, int64_t length_ms)
{
    int64_t end_ms = live_now_ms() + length_ms;
    while (!fixture_late(fixture) && (live_now_ms() < end_ms || !saw_all(fixture->shared))) {
        fixture_start(fixture, PRODUCER, play_producer);
        for (uint64_t lives = 1 + random_below(&fixture->random, 5); lives > 0; lives--)
            live_and_die(fixture);
        kill_child(fixture, PRODUCER);
    }
}

/* Without kills; true if the watermark moves above every event. */
static bool settle(struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    int64_t end_ms = atomic_load(&shared->clock_ms) + BEYOND_MS;
    atomic_store(&shared->calm, true);
    atomic_store(&shared->mortal, false);
    atomic_store(&shared->reached_ms, 0);
    show_clock(fixture, end_ms);
    fixture_start(fixture, POLLER, play_poller);
    while (atomic_load(&shared->reached_ms) < end_ms && !fixture_late(fixture) &&
           fixture_lives(fixture, POLLER))
        fixture_pause_us(1000);
    (void)fixture_kill(fixture, POLLER);
    return atomic_load(&shared->reached_ms) >= end_ms;
}

enum { MADE = 1, HANDLED = 2, DONE = 4 };

static void judge_told(const char *what, unsigned char *state, struct figures *figures)
{
    if (strcmp(what, " done\n") == 0) {
        *state |= DONE;
        return;
    }
    figures->by_webhook += strcmp(what, " by webhook\n") == 0 ? 1 : 0;
    if (*state & DONE)
        figures->repeats++;
    else if (*state & HANDLED)
        figures->again++;
    figures->unmade += *state & MADE ? 0 : 1;
    *state |= HANDLED;
}

static struct figures judge(const struct fixture *fixture)
{
    struct figures figures = {0};
    char line[128], path[192], *end;
    unsigned char *states = calloc(EVENTS_MAX, 1);
    FILE *events = fopen(path_of(fixture, "events", path, sizeof path), "re");
    FILE *notify = fopen(path_of(fixture, "told", path, sizeof path), "re");
    if (states == NULL || events == NULL || notify == NULL) {
        fixture_print("nothing to judge in %s", path);
        goto out;
    }
    while (fgets(line, sizeof line, events) != NULL) {
        (void)strtoll(line, &end, 10);
        states[strtoul(end, NULL, 10) % EVENTS_MAX] = MADE;
        figures.made++;
    }
    while (fgets(line, sizeof line, notify) != NULL) {
        unsigned long number = strtoul(line, &end, 10) % EVENTS_MAX;
        judge_told(end, &states[number], &figures);
    }
    for (size_t i = 0; i < EVENTS_MAX; i++)
        figures.missing += states[i] == MADE ? 1 : 0;
out:
    if (notify != NULL)
        (void)fclose(notify);
    if (events != NULL)
        (void)fclose(events);
    free(states);
    return figures;
}

static struct figures play(struct fixture *fixture, enum planted_bug planted_bug, int64_t ahead_ms,
                           int64_t length_ms, bool *out_settled)
{
    const struct shared *shared = fixture->shared;
    prepare(fixture, planted_bug, ahead_ms);
    rage(fixture, length_ms);
    /* Repeats show at once, missing events once the watermark is above them. */
    *out_settled = planted_bug == NO_WATERMARK || settle(fixture);
    (void)close(webhooks);
    struct figures figures = judge(fixture);
    fixture_print(
        "%u events, %u of them by webhook; poller killed %u times, %u claims ended too early, "
        "%u hours without it, %u within a poll; missing %u, repeats %u, handled again %u",
        figures.made, figures.by_webhook, shared->deaths, shared->stale, shared->hours,
        shared->slow_polls, figures.missing, figures.repeats, figures.again);
    return figures;
}

static void play_true(struct fixture *fixture, const char *where, int64_t ahead_ms,
                      int64_t length_ms)
{
    bool settled;
    const struct shared *shared = fixture->shared;
    fixture_print("source %s", where);
    struct figures figures = play(fixture, NONE, ahead_ms, length_ms, &settled);
    unsigned excused = shared->deaths + shared->stale;
    fixture_case(fixture, settled && shared->deaths > 0 && figures.unmade == 0,
                 "source %s: the watermark comes to stand above all events", where);
    fixture_case(fixture, figures.missing == 0, "missing events: %u", figures.missing);
    fixture_case(fixture, figures.repeats == 0, "repeats after a finish: %u", figures.repeats);
    fixture_case(fixture, figures.again <= excused, "handled again %u times, for %u reasons",
                 figures.again, excused);
}

static void run_planted(struct fixture *fixture, enum planted_bug planted_bug, const char *name)
{
    bool settled;
    fixture_print("planted: %s", name);
    struct figures figures = play(fixture, planted_bug, -DAY_MS, PLANTED_MS, &settled);
    unsigned found = planted_bug == NO_WATERMARK ? figures.repeats : figures.missing;
    fixture_case(fixture, settled && found > 0, "%s: is seen (%u)", name, found);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 6, LIMIT_S, /* round_ms= */ 1000,
                 sizeof(struct shared));
    int64_t half_ms = (int64_t)fixture.rounds * 500;
    play_true(&fixture, "a day ahead", DAY_MS, half_ms);
    play_true(&fixture, "a day behind", -DAY_MS, half_ms);
    run_planted(&fixture, TO_NOW, "a watermark moved to where the source stands after the poll");
    run_planted(&fixture, TO_STORE_TIME, "a watermark moved to the store's time");
    run_planted(&fixture, NO_WATERMARK, "ids that no watermark keeps");
    return fixture_close(&fixture);
}

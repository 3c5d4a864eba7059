/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renewals that are blocked for good: on_lost is called, and lh_held() turns false, before another
 * process is granted the key. Three ways to block them, each in real processes on a real file:
 *
 * - another process is stopped (SIGSTOP) inside the store's lock, in the middle of a write, and is
 * killed about when the lease ends, whether the loss was reported or not;
 * - the holder's own sync hangs, and blocks all others, since one process syncs for all;
 * - the holder's own write hangs, inside the lock.
 *
 * Two others for a network store that is named: a proxy holds back the replies to renewals, which
 * the server has received, or everything that the holder sends.
 *
 * A holder that hangs is killed after the loss was reported, before or after the end of its lease,
 * which outlives it; only then can another process be granted the key. All times are of one clock,
 * in shared memory. Rounds run in parallel lanes, each with its own store. The library is used
 * through its public header only; this program replaces the system calls that hang.
 */
#include "leasehold.h"
#include "leasehold_admin.h"
#include "proxy_kit.h"
#include "fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { STOPPED, HUNG_SYNC, HUNG_WRITE, HELD_ANSWERS, HELD_REQUESTS, KINDS };
enum role { HOLDER, CHALLENGER, BLOCKER, ROLES };
enum stage { IDLE, STARTING, BLOCKING, ENDING };
enum { LANES = 24, WIRE_LANES = 8, TTL_LEAST_MS = 2000, TTL_MOST_MS = 3000, STUCK_MS = 30000 };

static const char *const kind_names[KINDS] = {"stopped", "sync", "write", "answers", "requests"};

/* One round. All times in microseconds; 0: not yet. */
struct lane {
    /* set before its processes start */
    enum kind kind;
    uint64_t round;
    int64_t ttl_ms;
    bool asks_later; /* the challenger starts after renewals are blocked */
    /* set by them */
    _Atomic bool held, ready, armed;
    _Atomic int64_t blocked_us, last_held_us, lost_us, granted_us;
    _Atomic uint64_t held_token, granted_token;
    /* the parent's */
    enum stage stage;
    int64_t began_us, free_us;
    struct proxy_run proxy; /* between the holder and a network store */
};

struct shared {
    struct lane lanes[LANES];
};

struct figures {
    uint64_t started, ended, stuck, untold, late, early, shrunk, of_kind[KINDS];
    int64_t *margins_us; /* one for each round that ended */
    int64_t longest_us;  /* from the block to the reported loss */
};

/* ---- system calls of this process ---- */

static struct lane *lane_here; /* NULL in the parent */
static enum role role_here;

static bool blocks(enum kind kind, enum role role)
{
    return lane_here != NULL && atomic_load(&lane_here->armed) && lane_here->kind == kind &&
           role_here == role;
}

static void note_once(_Atomic int64_t *at_us)
{
    int64_t none = 0;
    (void)atomic_compare_exchange_strong(at_us, &none, fixture_now_us());
}

static _Noreturn void hang(void)
{
    note_once(&lane_here->blocked_us);
    for (;;)
        (void)pause();
}

ssize_t pwrite(int fd, const void *buf, size_t nbytes, off_t offset)
{
    if (blocks(HUNG_WRITE, HOLDER))
        hang();
    if (blocks(STOPPED, BLOCKER)) {
        note_once(&lane_here->blocked_us);
        (void)raise(SIGSTOP);
    }
    return syscall(SYS_pwrite64, fd, buf, nbytes, offset);
}

int fdatasync(int fildes)
{
    if (blocks(HUNG_SYNC, HOLDER))
        hang();
    return (int)syscall(SYS_fdatasync, fildes);
}

/* ---- processes ---- */

static struct lh_client *open_client(const struct fixture *fixture, size_t child,
                                     lh_event_fn *on_event)
{
    struct shared *shared = fixture->shared;
    char url[sizeof fixture->url];
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    lane_here = &shared->lanes[child / ROLES];
    role_here = (enum role)(child % ROLES);
    options.on_event = on_event;
    if (!fixture->given)
        (void)snprintf(url, sizeof url, "file:%s/lane-%zu.log", fixture->folder, child / ROLES);
    else if (role_here == HOLDER)
        (void)snprintf(url, sizeof url, "%s://127.0.0.1:%u", fixture->driver->scheme,
                       lane_here->proxy.port);
    else
        (void)snprintf(url, sizeof url, "%s", fixture->url);
    if (lh_open(url, &options, &client, &report) != LH_OK) {
        fixture_print("%s", report.text);
        _exit(1);
    }
    return client;
}

static const char *key_of_round(char *key, size_t size)
{
    (void)snprintf(key, size, "key-%" PRIu64, lane_here->round);
    return key;
}

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user, (void)report;
    if (!lh_held(lease))
        note_once(&lane_here->lost_us);
}

static void play_holder(struct fixture *fixture, size_t child)
{
    char key[32];
    struct lh_client *client = open_client(fixture, child, NULL);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.ttl_ms = lane_here->ttl_ms;
    options.unbound = lane_here->kind != STOPPED;
    options.on_lost = on_lost;
    if (lh_acquire(client, key_of_round(key, sizeof key), &options, &lease, NULL) != LH_OK)
        _exit(1);
    atomic_store(&lane_here->held_token, lh_token(lease));
    atomic_store(&lane_here->held, true);
    for (;;) {
        int64_t now_us = fixture_now_us();
        if (lh_held(lease))
            atomic_store(&lane_here->last_held_us, now_us);
        fixture_pause_us(500);
    }
}

/* The event is the earliest sign of a grant, before the call returns. */
static void note_grant(void *user, const struct lh_event *event)
{
    (void)user;
    if (event->kind == LH_EVENT_WAITING)
        atomic_store(&lane_here->ready, true);
    if (event->kind == LH_EVENT_GRANTED)
        note_once(&lane_here->granted_us);
}

static void play_challenger(struct fixture *fixture, size_t child)
{
    char key[32];
    struct lh_client *client = open_client(fixture, child, note_grant);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.wait_ms = LH_WAIT_FOREVER;
    atomic_store(&lane_here->ready, lane_here->asks_later);
    while (atomic_load(lane_here->asks_later ? &lane_here->armed : &lane_here->held) == 0)
        fixture_pause_us(1000);
    (void)key_of_round(key, sizeof key);
    while (lh_acquire(client, key, &options, &lease, NULL) == LH_UNAVAILABLE)
        fixture_pause_us(1000);
    if (lease == NULL)
        _exit(1);
    atomic_store(&lane_here->granted_token, lh_token(lease));
    for (;;)
        (void)pause();
}

static void play_blocker(struct fixture *fixture, size_t child)
{
    struct lh_client *client = open_client(fixture, child, NULL);
    for (;;) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(client, "other", NULL, &lease, NULL) == LH_OK)
            (void)lh_release(&lease, NULL);
        fixture_pause_us(1000);
    }
}

/* ---- rounds ---- */

static size_t child_of(const struct fixture *fixture, const struct lane *lane, enum role role)
{
    const struct shared *shared = fixture->shared;
    return (size_t)(lane - shared->lanes) * ROLES + role;
}

static void begin_round(struct fixture *fixture, struct lane *lane, uint64_t round)
{
    uint64_t ttl_ms = TTL_LEAST_MS + random_below(&fixture->random, TTL_MOST_MS - TTL_LEAST_MS + 1);
    *lane =
        (struct lane){.kind = (enum kind)(fixture->given ? HELD_ANSWERS + round % 2 : round % 3),
                      .proxy = lane->proxy,
                      .round = round,
                      .ttl_ms = (int64_t)ttl_ms,
                      .asks_later = random_below(&fixture->random, 2) == 0,
                      .stage = STARTING,
                      .began_us = fixture_now_us()};
    fixture_start(fixture, child_of(fixture, lane, HOLDER), play_holder);
    fixture_start(fixture, child_of(fixture, lane, CHALLENGER), play_challenger);
    if (lane->kind == STOPPED)
        fixture_start(fixture, child_of(fixture, lane, BLOCKER), play_blocker);
}

/* On a file the processes block renewals themselves, once they see the flag. */
static void block(struct lane *lane)
{
    atomic_store(&lane->armed, true);
    lane->stage = BLOCKING;
    if (lane->kind < HELD_ANSWERS)
        return;
    note_once(&lane->blocked_us);
    (void)proxy_say(&lane->proxy, lane->kind == HELD_ANSWERS ? "hold down" : "hold up");
}

/* A part of the TTL, in hundredths, drawn from a range. */
static int64_t part_us(struct fixture *fixture, const struct lane *lane, uint64_t least,
                       uint64_t most)
{
    uint64_t part = least + random_below(&fixture->random, most - least + 1);
    return lane->ttl_ms * 10 * (int64_t)part;
}

/* The time at which another process can write again; 0: not decided yet. */
static int64_t choose_freeing(struct fixture *fixture, const struct lane *lane)
{
    int64_t blocked_us = atomic_load(&lane->blocked_us), lost_us = atomic_load(&lane->lost_us);
    if (lane->kind >= HELD_ANSWERS) /* only the holder is blocked */
        return fixture_now_us();
    if (lane->kind == STOPPED) /* between the latest loss and after the end of the lease */
        return blocked_us + part_us(fixture, lane, 67, 110);
    if (lost_us == 0 && fixture_now_us() < blocked_us + lane->ttl_ms * 1000)
        return 0; /* a killed holder could not report its loss */
    return fixture_now_us() + part_us(fixture, lane, 0, 50);
}

static void free_store(struct fixture *fixture, const struct lane *lane)
{
    if (lane->kind >= HELD_ANSWERS)
        return;
    (void)fixture_kill(fixture, child_of(fixture, lane, lane->kind == STOPPED ? BLOCKER : HOLDER));
}

static void judge(const struct lane *lane, struct figures *figures)
{
    int64_t lost_us = atomic_load(&lane->lost_us), held_us = atomic_load(&lane->last_held_us);
    int64_t granted_us = atomic_load(&lane->granted_us);
    int64_t known_us = lost_us > held_us ? lost_us : held_us;
    int64_t told_us = lost_us - atomic_load(&lane->blocked_us);
    figures->untold += lost_us == 0 ? 1 : 0;
    figures->early += known_us >= granted_us ? 1 : 0;
    figures->late += told_us >= lane->ttl_ms * 1000 ? 1 : 0;
    figures->shrunk += lane->granted_token <= lane->held_token ? 1 : 0;
    figures->margins_us[figures->ended++] = granted_us - known_us;
    figures->of_kind[lane->kind]++;
    if (told_us > figures->longest_us)
        figures->longest_us = told_us;
    if (lost_us == 0 || known_us >= granted_us)
        fixture_print("round %" PRIu64 " (%s, TTL %" PRId64
                      " ms): blocked at 0, held until %" PRId64 ", told at %" PRId64
                      ", another granted at %" PRId64 " us",
                      lane->round, kind_names[lane->kind], lane->ttl_ms,
                      held_us - atomic_load(&lane->blocked_us), told_us,
                      granted_us - atomic_load(&lane->blocked_us));
}

static void end_round(struct fixture *fixture, struct lane *lane)
{
    for (int role = 0; role < ROLES; role++)
        (void)fixture_kill(fixture, child_of(fixture, lane, (enum role)role));
    if (fixture->given)
        (void)proxy_say(&lane->proxy, "pass");
    lane->stage = IDLE;
}

static void advance(struct fixture *fixture, struct lane *lane, struct figures *figures)
{
    int64_t now_us = fixture_now_us();
    if (lane->stage == STARTING && lane->held && lane->ready) {
        block(lane);
    } else if (lane->stage == BLOCKING && lane->blocked_us != 0) {
        lane->free_us = lane->free_us != 0 ? lane->free_us : choose_freeing(fixture, lane);
        if (lane->free_us != 0 && now_us >= lane->free_us) {
            free_store(fixture, lane);
            lane->stage = ENDING;
        }
    } else if (lane->stage == ENDING && lane->granted_token != 0) {
        judge(lane, figures);
        end_round(fixture, lane);
    } else if (lane->stage != IDLE && now_us - lane->began_us > STUCK_MS * (int64_t)1000) {
        fixture_print("round %" PRIu64 " (%s) stands still at stage %d", lane->round,
                      kind_names[lane->kind], (int)lane->stage);
        figures->stuck++;
        end_round(fixture, lane);
    }
}

static void run(struct fixture *fixture, struct figures *figures)
{
    struct shared *shared = fixture->shared;
    while (figures->ended + figures->stuck < fixture->rounds && !fixture_late(fixture)) {
        for (size_t i = 0; i < (fixture->given ? WIRE_LANES : LANES); i++) {
            struct lane *lane = &shared->lanes[i];
            if (lane->stage == IDLE && figures->started < fixture->rounds)
                begin_round(fixture, lane, figures->started++);
            advance(fixture, lane, figures);
        }
        fixture_pause_us(1000);
    }
}

static int by_length(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return a < b ? -1 : a > b ? 1 : 0;
}

static void print_results(struct fixture *fixture, const struct figures *figures)
{
    uint64_t ended = figures->ended;
    qsort(figures->margins_us, ended, sizeof *figures->margins_us, by_length);
    fixture_print(
        "blocked by a stopped process %" PRIu64 ", hung syncs %" PRIu64 ", a hung write %" PRIu64
        ", answers held back %" PRIu64 ", requests held back %" PRIu64 " times; TTL %d to %d ms",
        figures->of_kind[STOPPED], figures->of_kind[HUNG_SYNC], figures->of_kind[HUNG_WRITE],
        figures->of_kind[HELD_ANSWERS], figures->of_kind[HELD_REQUESTS], TTL_LEAST_MS, TTL_MOST_MS);
    if (ended > 0) {
        int64_t middle_us = figures->margins_us[ended / 2];
        fixture_print("known before another was granted by %.1f ms at least, %.1f ms in the middle",
                      (double)figures->margins_us[0] / 1000, (double)middle_us / 1000);
    }
    fixture_print("told at most %.1f ms after renewals were blocked",
                  (double)figures->longest_us / 1000);
    fixture_case(fixture, ended == fixture->rounds && figures->stuck == 0,
                 "%" PRIu64 " rounds: each ends with somebody else's grant (%" PRIu64 ")", ended,
                 figures->stuck);
    fixture_case(fixture, figures->untold == 0, "every holder was told (%" PRIu64 ")",
                 figures->untold);
    fixture_case(fixture, figures->early == 0,
                 "and lh_held() was false, before another was granted (%" PRIu64 ")",
                 figures->early);
    fixture_case(fixture, figures->late == 0, "and before the lease could end (%" PRIu64 ")",
                 figures->late);
    fixture_case(fixture, figures->shrunk == 0, "tokens grew (%" PRIu64 ")", figures->shrunk);
}

/* A proxy for each lane, in front of the URL's port. */
static bool start_proxies(const struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    const char *port = strrchr(fixture->url, ':');
    for (size_t i = 0; i < WIRE_LANES; i++)
        if (!proxy_start(&shared->lanes[i].proxy, (uint16_t)strtoul(port + 1, NULL, 10), i, NULL))
            return false;
    return true;
}

static bool stop_proxies(const struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    bool all = true;
    for (size_t i = 0; i < WIRE_LANES; i++)
        all = proxy_stop(&shared->lanes[i].proxy) && all;
    return all;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct figures figures = {0};
    fixture_open(&fixture, argc, argv, /* rounds= */ 24, /* limit_s= */ 60, /* round_ms= */ 2000,
                 sizeof(struct shared));
    figures.margins_us = calloc(fixture.rounds, sizeof *figures.margins_us);
    if (figures.margins_us == NULL)
        return 1;
    bool fine = !fixture.given || start_proxies(&fixture);
    if (fine)
        run(&fixture, &figures);
    print_results(&fixture, &figures);
    if (fixture.given)
        fixture_case(&fixture, fine && stop_proxies(&fixture), "the proxies did their part");
    free(figures.margins_us);
    return fixture_close(&fixture);
}

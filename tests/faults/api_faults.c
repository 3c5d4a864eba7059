/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five processes share three keys through the library on a real Kubernetes API server while faults
 * are injected: api_faults URL [--rounds N], run by scripts/on-k8s.sh. Every fault of the server,
 * the network path and the holders happens a fixed number of times (peers/api_act.sh,
 * peers/api_front.py). Some processes connect directly, some through the faulty proxy; some clocks
 * are off by an hour. No grant may be given twice, every waiter enters within the documented time,
 * and holders learn of a loss before another process enters.
 *
 * Only the clock that the library reads is changed. OpenSSL reads the real one: the test's
 * certificates are not valid an hour ago.
 */
#include "contenders.h"
#include "proxy_kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HELPER, /* child index of the program under control */
    CONTENDERS = 5,
    CHILDREN,
    HOUR_S = 3600,
    TTL_MS = 3000,
    MARGIN_MS = 3000, /* two clocks of whole seconds, and the second that is not over */
    POLL_MS = 6500,   /* the longest sleep of a waiter without a notification */
    STAY_MS = 60,
    IN_AGAIN_MS = TTL_MS + MARGIN_MS + POLL_MS,
    ALL_IN_MS = IN_AGAIN_MS + (CONTENDERS - 1) * (TTL_MS + STAY_MS),
    STUCK_MS = 3 * ALL_IN_MS,
    FAULT_US = 2500000, /* duration of the proxy's faults, at least … */
    STRIKES = 3,        /* … and how many */
};

static const struct contender_options contender_options = {.ttl_ms = TTL_MS,
                                                           .wait_ms = 8000,
                                                           .timeout_ms = 4000,
                                                           .stay_most_ms = STAY_MS,
                                                           .long_stays = 24};

struct shared {
    struct contenders all;
    _Atomic int64_t clock_off_s[CONTENDERS_MAX];
};

struct play {
    struct fixture *fixture;
    struct shared *shared;
    struct proxy_run front;
    const char *act; /* actions of the helper */
    uint64_t round;
};

struct figures {
    uint64_t rounds, stuck, late;
    int64_t longest_ms; /* until all contenders entered again */
};

/* ---- clocks ---- */

static const _Atomic int64_t *off_here; /* NULL in the parent */

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    int result = (int)syscall(SYS_clock_gettime, clock_id, tp);
    if (result == 0 && clock_id == CLOCK_REALTIME && off_here != NULL)
        tp->tv_sec += (time_t)atomic_load(off_here);
    return result;
}

static void draw_clock(struct play *play, size_t child)
{
    int64_t way = (int64_t)random_below(&play->fixture->random, 2) * 2 - 1;
    atomic_store(&play->shared->clock_off_s[child], way * HOUR_S);
}

/* ---- processes ---- */

static bool goes_through_front(size_t child)
{
    return child % 2 == 1;
}

static void play_contender(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    char path[sizeof fixture->folder + 8];
    (void)snprintf(path, sizeof path, "%s/%s", fixture->folder,
                   goes_through_front(child) ? "front" : "direct");
    off_here = &shared->clock_off_s[child];
    if (setenv("KUBECONFIG", path, /* overwrite= */ 1) == 0)
        contender_play(&shared->all, fixture, child);
}

static struct play *helped; /* the arguments are not those of a child */

static void play_helper(struct fixture *fixture, size_t child)
{
    char port[8];
    (void)child;
    (void)snprintf(port, sizeof port, "%u", (unsigned)helped->front.port);
    (void)execlp("tests/peers/api_act.sh", "api_act.sh", fixture->folder, helped->act, port, NULL);
    _exit(127);
}

static bool act(struct play *play, const char *what)
{
    play->act = what;
    helped = play;
    fixture_start(play->fixture, HELPER, play_helper);
    bool done = fixture_join(play->fixture, HELPER);
    if (!done)
        fixture_print("%s did not succeed", what);
    return done;
}

static bool start_front(struct play *play)
{
    char python[] = "python3", program[] = "tests/peers/api_front.py", certificate[512], key[512];
    char server[128], authority[512];
    const char *place = getenv("K8S_CA"), *address = getenv("K8S_SERVER");
    if (place == NULL || address == NULL)
        return false;
    int length = (int)(strlen(place) - strlen("ca.crt"));
    (void)snprintf(server, sizeof server, "%s", address);
    (void)snprintf(authority, sizeof authority, "%s", place);
    (void)snprintf(certificate, sizeof certificate, "%.*ssrv.crt", length, place);
    (void)snprintf(key, sizeof key, "%.*ssrv.key", length, place);
    char *args[] = {python, program, server, authority, certificate, key, NULL};
    return proxy_start_program(&play->front, args);
}

/* ---- faults ---- */

/* Injects a fault into the holder of a key; another contender must enter before this returns. */
static bool strike_holder(struct play *play, bool kills)
{
    struct contenders *all = &play->shared->all;
    struct entries before;
    size_t key = 0, victim = contender_inside(all, STUCK_MS, &key);
    if (victim == CHILDREN_MAX)
        return false;
    if (kills)
        contender_kill(all, play->fixture, victim);
    else if (!contender_stop(all, play->fixture, victim))
        return false;
    entries_count(all, &before);
    bool came = entries_await_key(all, key, &before, IN_AGAIN_MS);
    if (kills)
        contender_start(all, play->fixture, victim, play_contender);
    else
        fixture_continue(play->fixture, victim);
    return came;
}

/* Until a stale write was attempted: a victim may have been about to leave. */
static bool stop_holder(struct play *play)
{
    const struct checker_counts *counts = &play->shared->all.overlap_checker.counts;
    uint64_t before = atomic_load(&counts->stale_refused);
    int64_t end_ms = live_now_ms() + STUCK_MS;
    bool came = true;
    while (came && atomic_load(&counts->stale_refused) == before && live_now_ms() < end_ms) {
        came = strike_holder(play, /* kills= */ false);
        fixture_pause_us(200000);
    }
    return came;
}

static bool kill_holder(struct play *play)
{
    return strike_holder(play, /* kills= */ true);
}

/* A holder's clock steps; every second time another fault kills it then. */
static bool step_clock(struct play *play)
{
    size_t key = 0, victim = contender_inside(&play->shared->all, STUCK_MS, &key);
    if (victim == CHILDREN_MAX)
        return false;
    for (size_t i = HELPER + 1; i < CHILDREN; i++)
        atomic_store(&play->shared->clock_off_s[i], 0);
    draw_clock(play, victim);
    draw_clock(play, HELPER + 1 + play->round % CONTENDERS);
    return act(play, "clock-off") && (play->round % 2 == 0 || kill_holder(play));
}

static bool kill_api(struct play *play)
{
    return act(play, "kill-api");
}

static bool stop_api(struct play *play)
{
    return act(play, "stop-api");
}

static bool kill_etcd(struct play *play)
{
    return act(play, "kill-etcd");
}

static bool change_token(struct play *play)
{
    return act(play, play->round % 2 == 0 ? "token-early" : "token-late");
}

/* An event that did not happen yet has no count. */
static uint64_t front_count(struct play *play, const char *name)
{
    uint64_t count = proxy_count(&play->front, name);
    return count != UINT64_MAX ? count : 0;
}

/* The proxy injects a fault for a while; `name` is the counter of that fault. */
static bool trouble(struct play *play, const char *command, const char *name)
{
    int64_t end_ms = live_now_ms() + STUCK_MS;
    uint64_t enough = front_count(play, name) + STRIKES;
    bool made = proxy_say(&play->front, command);
    fixture_pause_us(FAULT_US);
    while (made && front_count(play, name) < enough && live_now_ms() < end_ms)
        fixture_pause_us(20000);
    return proxy_say(&play->front, "pass") && front_count(play, name) >= enough;
}

static bool cut(struct play *play)
{
    for (unsigned i = 0; i < 5; i++) {
        if (!proxy_say(&play->front, i % 2 == 0 ? "cut watches" : "cut"))
            return false;
        fixture_pause_us((int64_t)random_below(&play->fixture->random, 400000));
    }
    return true;
}

/* Watches are few and long-lived: they are cut until some were answered that way. */
static bool tell_gone(struct play *play)
{
    int64_t end_ms = live_now_ms() + STUCK_MS;
    const char *name = play->round % 2 == 0 ? "410" : "gone";
    uint64_t enough = front_count(play, name) + STRIKES;
    bool made = proxy_say(&play->front, play->round % 2 == 0 ? "answer 410 70" : "gone 70");
    while (made && front_count(play, name) < enough && live_now_ms() < end_ms) {
        made = proxy_say(&play->front, "cut watches");
        fixture_pause_us(FAULT_US / STRIKES);
    }
    return proxy_say(&play->front, "pass") && front_count(play, name) >= enough;
}

static bool refuse_changes(struct play *play)
{
    return play->round % 2 == 0 ? trouble(play, "answer 409 50", "409")
                                : trouble(play, "double 50", "double");
}

static bool throttle(struct play *play)
{
    return trouble(play, play->round % 2 == 0 ? "answer 429 60" : "answer 429 100", "429");
}

static bool hide_answers(struct play *play)
{
    return trouble(play, "hide 40", "hide");
}

/*
 * One process is stopped with its watch cut, while others write and the server compacts its
 * history. Continued, it requests the changes after its last revision, which no longer exist.
 */
static bool compact(struct play *play)
{
    struct contenders *all = &play->shared->all;
    struct entries before;
    size_t victim = HELPER + 1; /* through the proxy */
    uint64_t notify = front_count(play, "told-gone");
    if (!contender_stop(all, play->fixture, victim) || !proxy_say(&play->front, "cut"))
        return false;
    entries_count(all, &before);
    bool went_on = entries_await_key(all, CHECKER_KEYS, &before, STUCK_MS) && act(play, "compact");
    went_on = went_on && act(play, "kill-api");
    fixture_continue(play->fixture, victim);
    int64_t end_ms = live_now_ms() + STUCK_MS;
    while (went_on && live_now_ms() < end_ms && front_count(play, "told-gone") == notify)
        fixture_pause_us(20000);
    return went_on && live_now_ms() < end_ms;
}

static const struct {
    const char *name;
    bool (*strike)(struct play *play); /* false: not injected, or a contender is stuck */
} faults[] = {
    {"a holder was stopped past its TTL", stop_holder},
    {"a holder was killed", kill_holder},
    {"a holder's clock stepped by an hour", step_clock},
    {"the API server was killed and started again", kill_api},
    {"the API server was stopped", stop_api},
    {"etcd was killed and started again", kill_etcd},
    {"connections and watches were cut", cut},
    {"watches were answered with 410", tell_gone},
    {"the server forgot what a watch asked for", compact},
    {"changes were refused with 409, or sent twice", refuse_changes},
    {"requests were put off with 429", throttle},
    {"changes were carried out and answered with 504", hide_answers},
    {"the token was revoked, and another given", change_token},
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* ---- rounds ---- */

static void report_fault(struct fixture *fixture, const char *name, const struct figures *figures)
{
    fixture_print("%s: %" PRIu64 " rounds; all in again after %" PRId64 " ms at most", name,
                  figures->rounds, figures->longest_ms);
    fixture_case(fixture, figures->rounds == fixture->rounds && figures->stuck == 0,
                 "%s: %" PRIu64 " of %" PRIu64 " rounds", name, figures->rounds - figures->stuck,
                 fixture->rounds);
    fixture_case(fixture, figures->late == 0, "each time all were in within %d ms (%" PRIu64 ")",
                 ALL_IN_MS, figures->late);
}

static void play_fault(struct play *play, size_t fault)
{
    struct contenders *all = &play->shared->all;
    struct figures figures = {0};
    while (figures.rounds < play->fixture->rounds && figures.stuck == 0 &&
           !fixture_late(play->fixture)) {
        struct entries before;
        fixture_pause_us((int64_t)random_below(&play->fixture->random, 300000));
        play->round = figures.rounds++;
        bool done = faults[fault].strike(play);
        int64_t back_ms = live_now_ms();
        entries_count(all, &before);
        bool came = entries_await_all(all, &before, STUCK_MS);
        int64_t took_ms = live_now_ms() - back_ms;
        figures.stuck += done && came ? 0 : 1;
        figures.late += took_ms > ALL_IN_MS ? 1 : 0;
        if (took_ms > figures.longest_ms)
            figures.longest_ms = took_ms;
    }
    report_fault(play->fixture, faults[fault].name, &figures);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    if (argc < 2)
        return 64;
    fixture_open(&fixture, argc - 1, argv + 1, /* rounds= */ 1, /* limit_s= */ 300,
                 /* round_ms= */ (int64_t)FAULTS * 60000, sizeof(struct shared));
    struct play play = {.fixture = &fixture, .shared = fixture.shared};
    struct contenders *all = &play.shared->all;
    (void)snprintf(fixture.url, sizeof fixture.url, "%s", argv[1]);
    contenders_init(all, &contender_options, HELPER + 1, CHILDREN);
    bool up = start_front(&play) && act(&play, "begin");
    fixture_case(&fixture, up, "the front stands, and there is a token");
    for (size_t i = HELPER + 1; up && i < CHILDREN; i++) {
        if (i <= 2)
            atomic_store(&play.shared->clock_off_s[i], i == 1 ? HOUR_S : -HOUR_S);
        contender_start(all, &fixture, i, play_contender);
    }
    for (size_t i = 0; up && i < FAULTS; i++)
        play_fault(&play, i);
    if (up) {
        (void)proxy_say(&play.front, "counts");
        fixture_print("the front: %.*s", (int)strcspn(play.front.last_word, "\n"),
                      play.front.last_word);
        contenders_report(all, &fixture);
        fixture_case(&fixture, all->outcomes[LH_FAILED] == 0,
                     "nothing was called a failure of ours");
    }
    for (size_t i = HELPER + 1; i < CHILDREN; i++)
        (void)fixture_kill(&fixture, i); /* they keep connections to the proxy open */
    (void)proxy_stop(&play.front);
    return fixture_close(&fixture);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every call of the library with the first allocation refused, then with the second, until a
 * run ends before the refused one; and the same with all allocations refused from there on. The
 * allocations of all threads count. Each call must return a defined outcome. Exactly the leases
 * that lh_held() reports must be held in the store, as another client of the same file sees it. The
 * client must work again once there is memory. Nothing may leak.
 *
 * Each variant of a scene runs in its own process, several in parallel, since most of the time is
 * spent in retries of a store without memory.
 */
#include "alloc_failure.h"
#include "fixture.h"
#include "torture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    KEYS = 5,
    LANES = 16,      /* processes at a time */
    VARIANTS = 4,    /* of each scene: both stores, with and without events */
    NTH_MOST = 5000, /* allocations of one scene */
    STUCK_S = 60,    /* a run that takes longer hangs */
    TRIES = 400,     /* 10 ms each: until the breaker closes */
};

static const char *const keys[KEYS] = {"a", "b", "c", "after", "once:a"};

/* Only with the address sanitizer. */
__attribute__((weak)) int find_leaks(void) __asm__("__lsan_do_recoverable_leak_check");
/* A dlopen() that runs out of memory leaks inside the C library; session_watch.c calls it. */
const char *known_leaks(void) __asm__("__lsan_default_suppressions");
const char *known_leaks(void)
{
    return "leak:_dl_map_object_deps\n";
}

struct figures {
    uint64_t runs, refused, wrong, leaks;
};

/* Results of each scene, and the scene that each lane runs. */
struct shared {
    struct figures figures[SCENARIOS * VARIANTS];
    unsigned playing[LANES];
};

/* One run, identified in failure messages. */
struct run {
    const struct scenario *scenario;
    struct context context;
    unsigned long nth;
    bool from_then_on;
    unsigned wrong;
};

static void blame(struct run *run, const char *text, const char *key)
{
    const struct context *context = &run->context;
    run->wrong++;
    fixture_print("%s, %s%s, %s allocation %lu: %s %s (outcomes %#x)", run->scenario->name,
                  context->is_file ? "file:" : "memory:", context->listens ? ", events" : "",
                  run->from_then_on ? "from" : "only", run->nth, text, key, context->seen);
}

/* ---- checks, with memory ---- */

/* Retries, since the breaker may be open after failures. */
static bool look(struct lh_client *client, const char *key, struct lh_view *view)
{
    for (int i = 0; i < TRIES; i++) {
        if (lh_status(client, key, view, NULL) == LH_OK)
            return true;
        fixture_pause_us(10000);
    }
    return false;
}

/* The number of handles for which lh_held() is true. */
static unsigned said_held(const struct context *context, const char *key)
{
    unsigned count = 0;
    for (size_t i = 0; i < CONTEXT_LEASES; i++)
        for (size_t part = 0; lh_held(context->leases[i]) && part < LH_KEYS_MAX; part++) {
            const char *name = lh_key_at(context->leases[i], part);
            count += name != NULL && strcmp(name, key) == 0 ? 1 : 0;
        }
    return count;
}

static void judge_keys(struct run *run)
{
    const struct context *context = &run->context;
    struct lh_client *observer = context->other != NULL ? context->other : context->client;
    bool unsure = (context->seen & (SEEN(LH_UNAVAILABLE) | SEEN(LH_FAILED))) != 0;
    for (size_t i = 0; i < KEYS && observer != NULL; i++) {
        struct lh_view view = LH_VIEW_INIT;
        if (!look(observer, keys[i], &view)) {
            blame(run, "the store cannot be asked about", keys[i]);
            continue;
        }
        unsigned said = said_held(context, keys[i]);
        unsigned held = view.state == LH_HELD ? view.holders : 0;
        bool strange = unsure || (run->scenario->leaves && i == 0) || context->of_other != NULL;
        if (said > held)
            blame(run, "held out of thin air:", keys[i]);
        if (held > said && !strange)
            blame(run, "held by nobody:", keys[i]);
    }
}

static void judge_outcomes(struct run *run)
{
    const struct context *context = &run->context;
    unsigned defined = SEEN(LH_OK) | SEEN(LH_FAILED) | SEEN(LH_UNAVAILABLE) | run->scenario->also;
    if ((context->seen & ~defined) != 0)
        blame(run, "an outcome that makes no sense", "");
    if (atomic_load(&context->done_bad) != 0)
        blame(run, "told OK without a lease, or the other way round", "");
}

static void work_again(struct run *run)
{
    struct context *context = &run->context;
    for (int i = 0; i < TRIES; i++) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(context->client, "after", NULL, &lease, NULL) == LH_OK &&
            lh_release(&lease, NULL) == LH_OK)
            return;
        fixture_pause_us(10000);
    }
    blame(run, "with memory again the client does not work", "");
}

/* Bound leases must have ended with the client; removes unbound ones for the next run. */
static void clean_up(struct run *run)
{
    struct context *context = &run->context;
    (void)lh_release(&context->of_other, NULL);
    lh_close(&context->client);
    lh_request_free(context->request);
    context->request = NULL;
    for (size_t i = 0; i < CONTEXT_LEASES; i++)
        (void)lh_release(&context->leases[i], NULL);
    if (atomic_load(&context->done) != context->started)
        blame(run, "somebody was not told, or twice", "");
    for (size_t i = 0; i < KEYS && context->other != NULL; i++) {
        struct lh_view view = LH_VIEW_INIT;
        if (!look(context->other, keys[i], &view))
            blame(run, "the store cannot be asked about", keys[i]);
        if (view.state == LH_HELD && !(run->scenario->leaves && i == 0))
            blame(run, "held although its client is closed:", keys[i]);
        if (view.state == LH_HELD)
            (void)lh_break(context->other, keys[i], "torture", /* at_once= */ true, NULL);
        if (view.state == LH_COOLING_DOWN)
            (void)lh_clear(context->other, keys[i], NULL);
    }
}

/* ---- runs ---- */

/* With memory; retries, since the store timeout may pass on a busy machine. */
static bool prepare(struct run *run)
{
    struct context *context = &run->context;
    const struct context before = *context;
    const struct scenario *scenario = run->scenario;
    for (int i = 0; i < TRIES; i++) {
        if ((scenario->unbegun ||
             context_open(context, context->url, scenario->own_loop) == LH_OK) &&
            (scenario->prepare == NULL ||
             (scenario->prepare(context), context->seen == SEEN(LH_OK))))
            return true;
        clean_up(run);
        *context = before;
    }
    blame(run, "the scene could not be prepared", "");
    return false;
}

/* True if no allocation was refused. */
static bool run_once(struct run *run, struct figures *figures)
{
    struct context *context = &run->context;
    const struct scenario *scenario = run->scenario;
    unsigned long refused = 0;
    figures->runs++;
    if (!prepare(run)) {
        figures->wrong++;
        return true;
    }
    context->seen = 0;
    alloc_failure_begin(run->nth, run->from_then_on);
    scenario->act(context);
    (void)alloc_failure_end(&refused);
    judge_outcomes(run);
    judge_keys(run);
    if (context->client != NULL)
        work_again(run);
    clean_up(run);
    figures->refused += run->from_then_on ? 0 : refused;
    figures->wrong += run->wrong;
    return refused == 0;
}

static void play(struct fixture *fixture, const struct scenario *scenario,
                 const struct context *set, bool from_then_on, struct figures *figures)
{
    static unsigned stores;
    for (unsigned long nth = 1; nth <= NTH_MOST; nth++) {
        char new_url[sizeof fixture->url + 16];
        struct run run = {.scenario = scenario, .nth = nth, .from_then_on = from_then_on};
        (void)snprintf(new_url, sizeof new_url, "%s-%u", set->url, stores++);
        memcpy(&run.context, set, sizeof run.context);
        run.context.new_url = set->is_file ? new_url : set->url;
        (void)alarm(STUCK_S);
        if (run_once(&run, figures))
            return;
    }
    figures->wrong++;
    fixture_print("%s never succeeds", scenario->name);
}

static bool is_file_of(unsigned job)
{
    return job / SCENARIOS % 2 == 1;
}

static bool listens_of(unsigned job)
{
    return job / SCENARIOS / 2 == 1;
}

static const char *store_of(unsigned job)
{
    return is_file_of(job) ? "file:" : "memory:";
}

static const char *events_of(unsigned job)
{
    return listens_of(job) ? " with events" : "";
}

/* In its own process. */
static void play_job(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    unsigned job = shared->playing[child];
    const struct scenario *scenario = &scenarios[job % SCENARIOS];
    struct figures *figures = &shared->figures[job];
    char url[sizeof fixture->url];
    struct context set = {.url = "memory:", .is_file = is_file_of(job), .listens = listens_of(job)};
    (void)snprintf(url, sizeof url, "file:%s/store-%u.log", fixture->folder, job);
    if (set.is_file) {
        set.url = url;
        if (lh_open(url, NULL, &set.other, NULL) != LH_OK)
            _exit(1);
    }
    alloc_failure_here(true);
    play(fixture, scenario, &set, /* from_then_on= */ false, figures);
    play(fixture, scenario, &set, /* from_then_on= */ true, figures);
    lh_close(&set.other);
    if (find_leaks != NULL)
        figures->leaks = find_leaks() != 0 ? 1 : 0;
}

/* Only failures are reported as cases. */
static void end_job(struct fixture *fixture, size_t child)
{
    const struct shared *shared = fixture->shared;
    unsigned job = shared->playing[child];
    const struct figures *figures = &shared->figures[job];
    bool ended = fixture_join(fixture, child);
    if (ended && figures->wrong == 0 && figures->leaks == 0)
        return;
    fixture_case(fixture, false, "%s%s %s%s%s", store_of(job), events_of(job),
                 scenarios[job % SCENARIOS].name, figures->leaks != 0 ? ": leaks" : "",
                 ended ? "" : ": ended badly");
}

static void report(struct fixture *fixture)
{
    const struct shared *shared = fixture->shared;
    uint64_t all = 0;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        struct figures sum = {0};
        unsigned played = 0, first = variant * SCENARIOS;
        for (unsigned i = first; i < first + SCENARIOS; i++) {
            sum.runs += shared->figures[i].runs;
            sum.refused += shared->figures[i].refused;
            played += shared->figures[i].runs > 0 ? 1 : 0;
        }
        all += sum.refused;
        fixture_case(fixture, fixture->failed == 0 && sum.refused > 0,
                     "%s%s %u scenes, %" PRIu64 " allocations refused in turn, %" PRIu64 " runs",
                     store_of(first), events_of(first), played, sum.refused, sum.runs);
    }
    fixture_print("%" PRIu64
                  " allocations refused in turn, and as often all from there on; leaks were "
                  "%slooked for",
                  all, find_leaks != NULL ? "" : "not ");
}

static void play_all(struct fixture *fixture)
{
    struct shared *shared = fixture->shared;
    unsigned next = 0, jobs = SCENARIOS * VARIANTS;
    bool busy = true;
    while (busy && !fixture_late(fixture)) {
        busy = next < jobs;
        for (size_t child = 0; child < LANES; child++) {
            if (fixture->pids[child] != 0 && !fixture_lives(fixture, child))
                end_job(fixture, child);
            while (next < jobs && scenarios[next % SCENARIOS].file_only && !is_file_of(next))
                next++;
            if (fixture->pids[child] == 0 && next < jobs) {
                shared->playing[child] = next++;
                fixture_start(fixture, child, play_job);
            }
            busy = busy || fixture->pids[child] != 0;
        }
        fixture_pause_us(2000);
    }
    fixture_case(fixture, !busy, "all scenes were played");
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 1, /* limit_s= */ 600, /* round_ms= */ 0,
                 sizeof(struct shared));
    play_all(&fixture);
    report(&fixture);
    return fixture_close(&fixture);
}

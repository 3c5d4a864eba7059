/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every verb of the library again and again, with the first allocation refused, then the second,
 * until one run needs none of those that are refused; and the same with all refused from there on.
 * Those of all threads count. Each call must give a defined outcome; what the library says is held
 * must be held in the store, as another client of the same file sees it, and nothing else; the
 * client must work again once there is memory; nothing may leak.
 *
 * Each scene of each kind is played in a process of its own, several at a time: much of it is
 * waiting for a store that has no memory.
 */
#include "refusing.h"
#include "rig.h"
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
    STUCK_S = 60,    /* one run that takes so long hangs */
    TRIES = 400,     /* 10 ms each: until a breaker lets somebody through */
};

static const char *const keys[KEYS] = {"a", "b", "c", "after", "once:a"};

/* The sanitizer's, where there is one. */
__attribute__((weak)) int find_leaks(void) __asm__("__lsan_do_recoverable_leak_check");

struct figures {
    uint64_t runs, refused, wrong, leaks;
};

/* What the processes tell: of each scene, and of the one that sits in each seat. */
struct shared {
    struct figures figures[SCENES * VARIANTS];
    unsigned playing[LANES];
};

/* One run: which it is, for whoever reads of a failure. */
struct run {
    const struct scene *scene;
    struct stage stage;
    unsigned long nth;
    bool from_then_on;
    unsigned wrong;
};

static void blame(struct run *run, const char *words, const char *key)
{
    const struct stage *stage = &run->stage;
    run->wrong++;
    rig_say("%s, %s%s, %s allocation %lu: %s %s (outcomes %#x)", run->scene->name,
            stage->is_file ? "file:" : "memory:", stage->listens ? ", events" : "",
            run->from_then_on ? "from" : "only", run->nth, words, key, stage->seen);
}

/* ---- what is so, with memory ---- */

/* In trouble the breaker may be open for a moment. */
static bool look(struct lh_client *client, const char *key, struct lh_view *view)
{
    for (int i = 0; i < TRIES; i++) {
        if (lh_status(client, key, view, NULL) == LH_OK)
            return true;
        rig_pause_us(10000);
    }
    return false;
}

/* How many handles of the stage say that they hold the key. */
static unsigned said_held(const struct stage *stage, const char *key)
{
    unsigned count = 0;
    for (size_t i = 0; i < STAGE_LEASES; i++)
        for (size_t part = 0; lh_held(stage->leases[i]) && part < LH_KEYS_MAX; part++) {
            const char *name = lh_key_at(stage->leases[i], part);
            count += name != NULL && strcmp(name, key) == 0 ? 1 : 0;
        }
    return count;
}

static void judge_keys(struct run *run)
{
    const struct stage *stage = &run->stage;
    struct lh_client *witness = stage->other != NULL ? stage->other : stage->client;
    bool unsure = (stage->seen & (SEEN(LH_UNAVAILABLE) | SEEN(LH_FAILED))) != 0;
    for (size_t i = 0; i < KEYS && witness != NULL; i++) {
        struct lh_view view;
        if (!look(witness, keys[i], &view)) {
            blame(run, "the store cannot be asked about", keys[i]);
            continue;
        }
        unsigned said = said_held(stage, keys[i]);
        unsigned held = view.state == LH_HELD ? view.holders : 0;
        bool strange = unsure || (run->scene->leaves && i == 0) || stage->of_other != NULL;
        if (said > held)
            blame(run, "held out of thin air:", keys[i]);
        if (held > said && !strange)
            blame(run, "held by nobody:", keys[i]);
    }
}

static void judge_outcomes(struct run *run)
{
    const struct stage *stage = &run->stage;
    unsigned defined = SEEN(LH_OK) | SEEN(LH_FAILED) | SEEN(LH_UNAVAILABLE) | run->scene->also;
    if ((stage->seen & ~defined) != 0)
        blame(run, "an outcome that makes no sense", "");
    if (atomic_load(&stage->done_bad) != 0)
        blame(run, "told OK without a lease, or the other way round", "");
}

static void work_again(struct run *run)
{
    struct stage *stage = &run->stage;
    for (int i = 0; i < TRIES; i++) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(stage->client, "after", NULL, &lease, NULL) == LH_OK &&
            lh_release(&lease, NULL) == LH_OK)
            return;
        rig_pause_us(10000);
    }
    blame(run, "with memory again the client does not work", "");
}

/* Everything bound has ended with its client; what was unbound is put away for the next run. */
static void clean_up(struct run *run)
{
    struct stage *stage = &run->stage;
    (void)lh_release(&stage->of_other, NULL);
    lh_close(&stage->client);
    for (size_t i = 0; i < STAGE_LEASES; i++)
        (void)lh_release(&stage->leases[i], NULL);
    if (atomic_load(&stage->done) != stage->started)
        blame(run, "somebody was not told, or twice", "");
    for (size_t i = 0; i < KEYS && stage->other != NULL; i++) {
        struct lh_view view = {0};
        if (!look(stage->other, keys[i], &view))
            blame(run, "the store cannot be asked about", keys[i]);
        if (view.state == LH_HELD && !(run->scene->leaves && i == 0))
            blame(run, "held although its client is closed:", keys[i]);
        if (view.state == LH_HELD)
            (void)lh_break(stage->other, keys[i], "torture", /* at_once= */ true, NULL);
        if (view.state == LH_COOLING_DOWN)
            (void)lh_clear(stage->other, keys[i], NULL);
    }
}

/* ---- runs ---- */

/* With memory; on a busy machine the store's patience may end all the same. */
static bool prepare(struct run *run)
{
    struct stage *stage = &run->stage;
    const struct stage before = *stage;
    const struct scene *scene = run->scene;
    for (int i = 0; i < TRIES; i++) {
        if ((scene->unbegun || stage_open(stage, stage->url, scene->own_loop) == LH_OK) &&
            (scene->prepare == NULL || (scene->prepare(stage), stage->seen == SEEN(LH_OK))))
            return true;
        clean_up(run);
        *stage = before;
    }
    blame(run, "the scene could not be prepared", "");
    return false;
}

/* True when none of its allocations was refused. */
static bool run_once(struct run *run, struct figures *figures)
{
    struct stage *stage = &run->stage;
    const struct scene *scene = run->scene;
    unsigned long refused = 0;
    figures->runs++;
    if (!prepare(run)) {
        figures->wrong++;
        return true;
    }
    stage->seen = 0;
    refusing_begin(run->nth, run->from_then_on);
    scene->act(stage);
    (void)refusing_end(&refused);
    judge_outcomes(run);
    judge_keys(run);
    if (stage->client != NULL)
        work_again(run);
    clean_up(run);
    figures->refused += run->from_then_on ? 0 : refused;
    figures->wrong += run->wrong;
    return refused == 0;
}

static void play(struct rig *rig, const struct scene *scene, const struct stage *set,
                 bool from_then_on, struct figures *figures)
{
    static unsigned stores;
    for (unsigned long nth = 1; nth <= NTH_MOST; nth++) {
        char new_url[sizeof rig->url + 16];
        struct run run = {.scene = scene, .nth = nth, .from_then_on = from_then_on};
        (void)snprintf(new_url, sizeof new_url, "%s-%u", set->url, stores++);
        memcpy(&run.stage, set, sizeof run.stage);
        run.stage.new_url = set->is_file ? new_url : set->url;
        (void)alarm(STUCK_S);
        if (run_once(&run, figures))
            return;
    }
    figures->wrong++;
    rig_say("%s never succeeds", scene->name);
}

static bool is_file_of(unsigned job)
{
    return job / SCENES % 2 == 1;
}

static bool listens_of(unsigned job)
{
    return job / SCENES / 2 == 1;
}

static const char *store_of(unsigned job)
{
    return is_file_of(job) ? "file:" : "memory:";
}

static const char *events_of(unsigned job)
{
    return listens_of(job) ? " with events" : "";
}

/* In a process of its own. */
static void play_job(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    unsigned job = shared->playing[seat];
    const struct scene *scene = &scenes[job % SCENES];
    struct figures *figures = &shared->figures[job];
    char url[sizeof rig->url];
    struct stage set = {.url = "memory:", .is_file = is_file_of(job), .listens = listens_of(job)};
    (void)snprintf(url, sizeof url, "file:%s/store-%u.log", rig->folder, job);
    if (set.is_file) {
        set.url = url;
        if (lh_open(url, NULL, &set.other, NULL) != LH_OK)
            _exit(1);
    }
    refusing_here(true);
    play(rig, scene, &set, /* from_then_on= */ false, figures);
    play(rig, scene, &set, /* from_then_on= */ true, figures);
    lh_close(&set.other);
    if (find_leaks != NULL)
        figures->leaks = find_leaks() != 0 ? 1 : 0;
}

/* Only what went wrong is a case of its own. */
static void end_job(struct rig *rig, size_t seat)
{
    const struct shared *shared = rig->shared;
    unsigned job = shared->playing[seat];
    const struct figures *figures = &shared->figures[job];
    bool ended = rig_join(rig, seat);
    if (ended && figures->wrong == 0 && figures->leaks == 0)
        return;
    rig_case(rig, false, "%s%s %s%s%s", store_of(job), events_of(job), scenes[job % SCENES].name,
             figures->leaks != 0 ? ": leaks" : "", ended ? "" : ": ended badly");
}

static void report(struct rig *rig)
{
    const struct shared *shared = rig->shared;
    uint64_t all = 0;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        struct figures sum = {0};
        unsigned played = 0, first = variant * SCENES;
        for (unsigned i = first; i < first + SCENES; i++) {
            sum.runs += shared->figures[i].runs;
            sum.refused += shared->figures[i].refused;
            played += shared->figures[i].runs > 0 ? 1 : 0;
        }
        all += sum.refused;
        rig_case(rig, rig->failed == 0 && sum.refused > 0,
                 "%s%s %u scenes, %" PRIu64 " allocations refused in turn, %" PRIu64 " runs",
                 store_of(first), events_of(first), played, sum.refused, sum.runs);
    }
    rig_say("%" PRIu64 " allocations refused in turn, and as often all from there on; leaks were "
            "%slooked for",
            all, find_leaks != NULL ? "" : "not ");
}

static void play_all(struct rig *rig)
{
    struct shared *shared = rig->shared;
    unsigned next = 0, jobs = SCENES * VARIANTS;
    bool busy = true;
    while (busy && !rig_late(rig)) {
        busy = next < jobs;
        for (size_t seat = 0; seat < LANES; seat++) {
            if (rig->pids[seat] != 0 && !rig_lives(rig, seat))
                end_job(rig, seat);
            while (next < jobs && scenes[next % SCENES].file_only && !is_file_of(next))
                next++;
            if (rig->pids[seat] == 0 && next < jobs) {
                shared->playing[seat] = next++;
                rig_start(rig, seat, play_job);
            }
            busy = busy || rig->pids[seat] != 0;
        }
        rig_pause_us(2000);
    }
    rig_case(rig, !busy, "all scenes were played");
}

int main(int argc, char **argv)
{
    struct rig rig;
    rig_open(&rig, argc, argv, /* rounds= */ 1, /* limit_s= */ 600, /* round_ms= */ 0,
             sizeof(struct shared));
    play_all(&rig);
    report(&rig);
    return rig_close(&rig);
}

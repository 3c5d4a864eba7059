/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while other threads acquire, hold, wait, query, start, cancel and run callbacks, on memory:
 * and file: or the named store, from the main thread and from within a callback. No lease is held
 * in the child; its own client is granted and refused like any other; the parent is not affected. A
 * program that is started meanwhile inherits no descriptor except that of lh_liveness_fd().
 *
 * A round is one fork and one exec. The library is used through its public header alone.
 */
#include "leasehold.h"
#include "leasehold_admin.h"
#include "fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIDES = 2,
    KINDS = 4,
    BUSY_THREADS = SIDES * KINDS,
    CALLED_BACK_EVERY = 4,
    DESCRIPTORS_MOST = 1024,
    LISTED_WRONG = 255
};

#define HELD_TTL_MS ((int64_t)9000)

/* Shared with the children. */
struct shared {
    atomic_int wrong; /* the first check of a child that failed */
    atomic_int inside;
    atomic_uint overlaps;
    _Atomic uint64_t last_token, sections, own_sections;
};

static struct side {
    const char *name, *url;
    struct lh_client *client;
    struct lh_lease *held;
    struct lh_request *waiting; /* for a held key, until the end */
    struct lh_watcher *watch;
    atomic_uint lost, unexpected, changes;
    atomic_ullong sections, refusals, looks, cancels, renewals;
} sides[SIDES];

static struct shared *shared;
static atomic_bool stop, fork_asked;
static bool lives_in_file; /* the second store detects dead processes by a file */
static atomic_int forked;  /* the pid of a child forked in a callback */

/* ---- the child ---- */

static void ignore(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user, (void)lease, (void)report;
}

static bool ignore_view(void *user, const struct lh_view *view)
{
    (void)user, (void)view;
    return true;
}

static void ignore_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    (void)user, (void)view, (void)report;
}

/* 0, or the number of the first call with a wrong outcome. */
static int call_everything(const struct side *side)
{
    struct lh_client *client = side->client;
    const char *keys[] = {"a", "b"};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_lease *lease = NULL;
    struct lh_watcher *watch = side->watch, *other = NULL;
    const enum lh_outcome outcomes[] = {
        lh_acquire(client, "free", NULL, &lease, &report),
        lh_acquire_all(client, keys, 2, NULL, &lease, &report),
        lh_renew(client, "held", lh_token(side->held), 0, &report),
        lh_release_token(client, "held", lh_token(side->held), 0, &report),
        lh_status(client, "held", &view, &report),
        lh_list(client, "", ignore_view, NULL, &report),
        lh_history(client, "held", ignore_view, NULL, &report),
        lh_watch(client, "", ignore_change, NULL, &other, &report),
        lh_unwatch(&watch, &report),
        lh_break(client, "held", "", true, &report),
        lh_clear(client, "held", &report),
        lh_step(client),
    };
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++)
        if (outcomes[i] != LH_LOST)
            return 10 + (int)i;
    if (lh_acquire_start(client, "free", NULL, ignore, NULL, &report) != NULL ||
        report.outcome != LH_LOST)
        return 30;
    lh_cancel(side->waiting);
    return lh_fd(client) == -1 && lh_liveness_fd(client) == -1 ? 0 : 31;
}

static int let_go_of_everything(struct side *side)
{
    struct lh_lease *lease = side->held;
    if (lh_held(lease) || lh_remaining_ms(lease) != 0)
        return 1;
    int wrong = call_everything(side);
    if (wrong != 0)
        return wrong;
    if (lh_release(&lease, NULL) != LH_LOST || lease != NULL)
        return 2;
    lh_close(&side->client);
    return side->client == NULL ? 0 : 3;
}

static void enter_section(atomic_int *inside)
{
    if (atomic_fetch_add(inside, 1) != 0)
        atomic_fetch_add(&shared->overlaps, 1);
    fixture_spin_us(20);
    atomic_fetch_sub(inside, 1);
}

/* Its own client is refused a key that the parent holds, and excludes the parent from another. */
static int live_on_its_own(const struct side *side, bool same_store)
{
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *own = NULL;
    struct lh_lease *lease = NULL;
    patient.wait_ms = LH_WAIT_FOREVER;
    if (lh_open(side->url, NULL, &own, NULL) != LH_OK)
        return 40;
    enum lh_outcome outcome = lh_acquire(own, "held", NULL, &lease, NULL);
    if (outcome != (same_store ? LH_BUSY : LH_OK))
        return 41;
    if (lease != NULL && lh_release(&lease, NULL) != LH_OK)
        return 42;
    if (lh_acquire(own, "shared", &patient, &lease, NULL) != LH_OK || !lh_held(lease))
        return 43;
    if (same_store) {
        enter_section(&shared->inside);
        if (lh_token(lease) <= atomic_load(&shared->last_token))
            return 44;
        atomic_store(&shared->last_token, lh_token(lease));
        atomic_fetch_add(&shared->own_sections, 1);
    }
    if (lh_release(&lease, NULL) != LH_OK)
        return 45;
    lh_close(&own);
    return 0;
}

static void be_child(void)
{
    int wrong = 0;
    for (int i = 0; i < SIDES && wrong == 0; i++)
        wrong = let_go_of_everything(&sides[i]);
    for (int i = 0; i < SIDES && wrong == 0; i++)
        wrong = live_on_its_own(&sides[i], /* same_store= */ i == 1);
    if (wrong != 0)
        atomic_store(&shared->wrong, wrong);
    _exit(wrong != 0 ? 1 : 0);
}

static void play_child(struct fixture *fixture, size_t child)
{
    (void)fixture, (void)child;
    be_child();
}

/* ---- the parent's threads ---- */

static void on_event(void *user, const struct lh_event *event)
{
    struct side *side = user;
    if (event->kind == LH_EVENT_RENEWED)
        atomic_fetch_add(&side->renewals, 1);
    if (!atomic_exchange(&fork_asked, false))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_child();
    }
    atomic_store(&forked, (int)pid);
}

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct side *side = user;
    (void)lease, (void)report;
    atomic_fetch_add(&side->lost, 1);
}

static void on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct side *side = user;
    (void)report;
    atomic_fetch_add(view != NULL ? &side->changes : &side->unexpected, 1);
}

static void expect(struct side *side, bool fine)
{
    if (!fine)
        atomic_fetch_add(&side->unexpected, 1);
}

static void *keep_entering(void *argument)
{
    static atomic_int inside_memory;
    struct side *side = argument;
    bool is_file = side == &sides[1];
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = LH_WAIT_FOREVER;
    while (!atomic_load(&stop)) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(side->client, "shared", &patient, &lease, NULL) != LH_OK) {
            expect(side, false);
            continue;
        }
        enter_section(is_file ? &shared->inside : &inside_memory);
        expect(side, lh_held(lease) && lh_release(&lease, NULL) == LH_OK);
        atomic_fetch_add(&side->sections, 1);
    }
    return NULL;
}

static void *keep_being_refused(void *argument)
{
    struct side *side = argument;
    struct lh_acquire_options brief = LH_ACQUIRE_OPTIONS_INIT;
    brief.wait_ms = 3;
    while (!atomic_load(&stop)) {
        struct lh_lease *lease = NULL;
        expect(side, lh_acquire(side->client, "held", &brief, &lease, NULL) == LH_BUSY);
        atomic_fetch_add(&side->refusals, 1);
    }
    return NULL;
}

static void *keep_looking(void *argument)
{
    struct side *side = argument;
    while (!atomic_load(&stop)) {
        struct lh_view view = LH_VIEW_INIT;
        expect(side, lh_status(side->client, "held", &view, NULL) == LH_OK &&
                         view.state == LH_HELD && view.token == lh_token(side->held));
        expect(side, lh_list(side->client, "", ignore_view, NULL, NULL) == LH_OK);
        atomic_fetch_add(&side->looks, 1);
    }
    return NULL;
}

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    atomic_uint *done = user;
    (void)report;
    if (lease != NULL)
        (void)lh_release_start(&lease, NULL, NULL);
    atomic_fetch_add(done, 1);
}

static void *keep_cancelling(void *argument)
{
    struct side *side = argument;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = LH_WAIT_FOREVER;
    while (!atomic_load(&stop)) {
        atomic_uint done = 0;
        struct lh_request *request =
            lh_acquire_start(side->client, "held", &patient, count_done, &done, NULL);
        expect(side, request != NULL);
        fixture_pause_us(200);
        lh_cancel(request);
        while (request != NULL && atomic_load(&done) == 0)
            fixture_pause_us(100);
        lh_request_free(request);
        atomic_fetch_add(&side->cancels, 1);
    }
    return NULL;
}

/* ---- rounds ---- */

static bool open_side(struct side *side)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    open.on_event = on_event;
    open.user = side;
    options.ttl_ms = HELD_TTL_MS;
    options.on_lost = on_lost;
    options.user = side;
    if (lh_open(side->url, &open, &side->client, NULL) != LH_OK ||
        lh_acquire(side->client, "held", &options, &side->held, NULL) != LH_OK ||
        lh_watch(side->client, "", on_change, side, &side->watch, NULL) != LH_OK)
        return false;
    options.wait_ms = LH_WAIT_FOREVER;
    side->waiting = lh_acquire_start(side->client, "held", &options, ignore, NULL, NULL);
    return side->waiting != NULL;
}

static void close_side(struct side *side)
{
    lh_request_free(side->waiting);
    expect(side, lh_unwatch(&side->watch, NULL) == LH_OK);
    expect(side, lh_held(side->held) && lh_release(&side->held, NULL) == LH_OK);
    lh_close(&side->client);
}

/* The next event of either client forks. */
static bool fork_called_back(struct fixture *fixture)
{
    atomic_store(&forked, 0);
    atomic_store(&fork_asked, true);
    while (atomic_load(&forked) == 0 && !fixture_late(fixture))
        fixture_pause_us(50);
    fixture->pids[0] = atomic_load(&forked);
    return fixture->pids[0] > 0;
}

static bool fork_once(struct fixture *fixture, uint64_t round)
{
    fixture_spin_us((int64_t)random_below(&fixture->random, 2000));
    if (round % CALLED_BACK_EVERY == 0) {
        if (!fork_called_back(fixture))
            return false;
    } else {
        fixture_start(fixture, 0, play_child);
    }
    return fixture_join(fixture, 0);
}

/* ---- inherited descriptors ---- */

/* In the program: exits with the number of descriptors; the named one is a lock file. */
static int list_descriptors(const char *inherited)
{
    int count = 0;
    char entry[64], target[512];
    for (int file = 0; file < DESCRIPTORS_MOST; file++)
        count += fcntl(file, F_GETFD) >= 0 ? 1 : 0;
    if (inherited[0] == '-')
        return count;
    (void)snprintf(entry, sizeof entry, "/proc/self/fd/%s", inherited);
    ssize_t length = readlink(entry, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strstr(target, ".log.lock") != NULL ? count : LISTED_WRONG;
}

static int count_in_exec(int inherited)
{
    char number[16];
    siginfo_t info = {0};
    (void)snprintf(number, sizeof number, "%d", inherited);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "fork_anywhere", "--descriptors", number, (char *)NULL);
        _exit(LISTED_WRONG);
    }
    if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 || info.si_code != CLD_EXITED)
        return LISTED_WRONG;
    return info.si_status;
}

static bool exec_once(int before)
{
    if (count_in_exec(-1) != before)
        return false;
    int alive = lh_liveness_fd(sides[1].client);
    bool fine = lives_in_file ? alive > 2 && count_in_exec(alive) == before + 1 : alive == -1;
    if (alive >= 0)
        (void)close(alive);
    return fine && lh_liveness_fd(sides[0].client) == -1;
}

/* ---- all together ---- */

static void judge(struct fixture *fixture, const struct side *side)
{
    fixture_print(
        "%s meanwhile %llu sections, %llu refusals, %llu looks, %llu cancels, %u changes told, "
        "%llu renewals",
        side->name, side->sections, side->refusals, side->looks, side->cancels, side->changes,
        side->renewals);
    fixture_case(fixture, side->lost == 0 && side->unexpected == 0,
                 "%s the parent did not notice (%u lost, %u unexpected)", side->name, side->lost,
                 side->unexpected);
    fixture_case(fixture,
                 side->sections > 0 && side->refusals > 0 && side->looks > 0 && side->cancels > 0 &&
                     side->changes > 0,
                 "%s everything went on meanwhile", side->name);
}

static void run(struct fixture *fixture, int before)
{
    static void *(*const kinds[KINDS])(void *) = {keep_entering, keep_being_refused, keep_looking,
                                                  keep_cancelling};
    pthread_t threads[BUSY_THREADS];
    size_t running = 0;
    uint64_t rounds = 0, programs = 0;
    for (; running < BUSY_THREADS; running++)
        if (pthread_create(&threads[running], NULL, kinds[running / SIDES],
                           &sides[running % SIDES]) != 0)
            break;
    fixture_case(fixture, running == BUSY_THREADS, "%zu threads are busy", running);
    while (rounds < fixture->rounds && fork_once(fixture, rounds)) {
        rounds++;
        programs += exec_once(before) ? 1 : 0;
        if (!lh_held(sides[0].held) || !lh_held(sides[1].held))
            break;
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < running; i++)
        (void)pthread_join(threads[i], NULL);
    fixture_case(fixture, rounds == fixture->rounds,
                 "%" PRIu64 " children held nothing, and lived (check %d)", rounds,
                 atomic_load(&shared->wrong));
    fixture_case(fixture, programs == fixture->rounds,
                 "%" PRIu64 " programs found what was meant for them", programs);
    fixture_case(fixture, shared->overlaps == 0 && shared->own_sections == fixture->rounds,
                 "%" PRIu64 " sections of children, each alone (%u)",
                 atomic_load(&shared->own_sections), atomic_load(&shared->overlaps));
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    if (argc == 3 && strcmp(argv[1], "--descriptors") == 0)
        return list_descriptors(argv[2]);
    fixture_open(&fixture, argc, argv, /* rounds= */ 20, /* limit_s= */ 60, /* round_ms= */ 500,
                 sizeof(struct shared));
    shared = fixture.shared;
    char file[sizeof fixture.url];
    (void)snprintf(file, sizeof file, "file:%s/store.log", fixture.folder);
    sides[0].name = sides[0].url = "memory:";
    sides[1].name = fixture.given ? fixture.driver->scheme : "file:";
    sides[1].url = fixture.given ? fixture.url : file;
    lives_in_file = !fixture.given;
    int before = count_in_exec(-1);
    bool open = before >= 3 && before < LISTED_WRONG;
    for (int i = 0; i < SIDES; i++)
        open = open && open_side(&sides[i]);
    fixture_case(&fixture, open, "the stores open, and a program finds %d descriptors", before);
    if (open)
        run(&fixture, before);
    for (int i = 0; open && i < SIDES; i++) {
        close_side(&sides[i]);
        judge(&fixture, &sides[i]);
    }
    return fixture_close(&fixture);
}

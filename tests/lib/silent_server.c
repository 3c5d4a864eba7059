/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library on a Redis server that is not there, stands still or is killed: a client opens all
 * the same, no call lasts beyond the client's patience, and closing ends whatever is on its way;
 * with a thread and with a loop of one's own. Events tell of the breaker, of what was lost and of
 * what was taken over. The library is used through its public header alone.
 */
#include "leasehold.h"
#include "own_server.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SERVER, /* seats */
    HOLDER,
    PATIENCE_MS = 1000,
    BUSY_MS = 2000, /* what a loaded machine may add to a call */
    SOON_MS = 20000,
    TTL_MS = 3000,
    STARTED = 20,
    EVENT_KINDS = LH_EVENT_BREAKER + 1,
};

struct ears {
    atomic_uint heard[EVENT_KINDS], spared, served, told;
};

static void count_event(void *user, const struct lh_event *event)
{
    struct ears *ears = user;
    atomic_fetch_add(&ears->heard[event->kind], 1);
    if (event->kind == LH_EVENT_BREAKER)
        atomic_fetch_add(event->outcome == LH_OK ? &ears->served : &ears->spared, 1);
}

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct ears *ears = user;
    (void)report;
    atomic_fetch_add(&ears->told, 1);
    if (lease != NULL)
        (void)lh_release_start(&lease, NULL, NULL);
}

static void ignore_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    (void)user, (void)view, (void)report;
}

static struct lh_client *open_client(const struct rig *rig, struct ears *ears, bool own_loop)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report;
    options.patience_ms = PATIENCE_MS;
    options.on_event = count_event;
    options.user = ears;
    options.own_loop = own_loop;
    if (lh_open(rig->url, &options, &client, &report) != LH_OK)
        rig_say("%s", report.text);
    return client;
}

/* Lets a client of one's own loop live for so long; one with a thread does so by itself. */
static void live_on(struct lh_client *client, int64_t length_ms)
{
    int64_t end_ms = live_now_ms() + length_ms;
    struct pollfd news = {.fd = lh_fd(client), .events = POLLIN};
    if (news.fd < 0)
        rig_pause_us(length_ms * 1000);
    while (news.fd >= 0 && live_now_ms() < end_ms) {
        (void)poll(&news, 1, 10);
        (void)lh_step(client);
    }
}

static bool becomes(struct lh_client *client, const atomic_uint *count, unsigned least)
{
    int64_t end_ms = live_now_ms() + SOON_MS;
    while (atomic_load(count) < least && live_now_ms() < end_ms)
        live_on(client, 10);
    return atomic_load(count) >= least;
}

/* ---- nobody is there ---- */

static void call_nobody(struct rig *rig)
{
    struct ears ears = {0};
    struct lh_lease *lease = NULL;
    struct lh_view view;
    struct lh_report report;
    int64_t began_ms = live_now_ms();
    struct lh_client *client = open_client(rig, &ears, /* own_loop= */ false);
    rig_case(rig, client != NULL && live_now_ms() - began_ms <= BUSY_MS,
             "a client opens where no server is");
    began_ms = live_now_ms();
    enum lh_outcome outcome = lh_acquire(client, "key", NULL, &lease, &report);
    int64_t took_ms = live_now_ms() - began_ms;
    rig_say("%s after %" PRId64 " ms: %s", lh_outcome_name(outcome), took_ms, report.text);
    rig_case(rig, outcome == LH_UNAVAILABLE && took_ms <= PATIENCE_MS + BUSY_MS,
             "to acquire is unavailable within the patience");
    began_ms = live_now_ms();
    outcome = lh_status(client, "key", &view, &report);
    rig_case(rig, outcome == LH_UNAVAILABLE && live_now_ms() - began_ms <= PATIENCE_MS + BUSY_MS,
             "so is a look");
    began_ms = live_now_ms();
    lh_close(&client);
    rig_case(rig, live_now_ms() - began_ms <= BUSY_MS, "closing takes no time");
}

/* ---- it stands still ---- */

/* Everything is on its way when the server stops, and the client is closed in the midst of it. */
static void close_amid(struct rig *rig, bool own_loop)
{
    const char *how = own_loop ? "a loop of one's own" : "a thread";
    struct ears ears = {0};
    struct lh_client *client = open_client(rig, &ears, own_loop);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *held = NULL;
    struct lh_watcher *watch = NULL;
    unsigned started = 0;
    options.ttl_ms = TTL_MS * 10;
    bool fine = lh_acquire(client, "held", &options, &held, NULL) == LH_OK &&
                lh_watch(client, "", ignore_change, NULL, &watch, NULL) == LH_OK;
    options.wait_ms = LH_WAIT_FOREVER;
    fine = lh_acquire_start(client, "held", &options, count_done, &ears, NULL) != NULL && fine;
    live_on(client, /* length_ms= */ 100);
    (void)rig_stop(rig, SERVER);
    for (char key[16]; started < STARTED; started++) {
        (void)snprintf(key, sizeof key, "key-%u", started);
        fine = lh_acquire_start(client, key, &options, count_done, &ears, NULL) != NULL && fine;
    }
    live_on(client, /* length_ms= */ 100);
    int64_t began_ms = live_now_ms();
    lh_close(&client);
    int64_t took_ms = live_now_ms() - began_ms;
    enum lh_outcome outcome = lh_release(&held, NULL);
    rig_continue(rig, SERVER);
    rig_say("%s: closed after %" PRId64 " ms, the patience being %d; %u of %u were told", how,
            took_ms, PATIENCE_MS, ears.told, started + 1);
    rig_case(rig, fine && took_ms <= 2 * PATIENCE_MS + BUSY_MS, "%s: closing does not hang", how);
    rig_case(rig, ears.told == started + 1, "%s: all that was started is told", how);
    rig_case(rig, outcome != LH_OK, "%s: what was not given back is not said to be", how);
}

/* What is held is lost by the clock; those who ask for more are spared after a while. */
static void lose(struct rig *rig, bool own_loop)
{
    const char *how = own_loop ? "a loop of one's own" : "a thread";
    struct ears ears = {0};
    struct lh_client *client = open_client(rig, &ears, own_loop);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *held = NULL, *more = NULL;
    options.ttl_ms = TTL_MS;
    bool fine = lh_acquire(client, "lost", &options, &held, NULL) == LH_OK;
    int64_t began_ms = live_now_ms();
    (void)rig_stop(rig, SERVER);
    fine = becomes(client, &ears.heard[LH_EVENT_LOST], 1) && fine;
    int64_t told_ms = live_now_ms() - began_ms;
    rig_say("%s: lost was told %" PRId64 " ms after the server stopped, TTL %d ms", how, told_ms,
            TTL_MS);
    rig_case(rig, fine && !lh_held(held) && told_ms < TTL_MS, "%s: lost before the lease ends",
             how);
    unsigned calls = 0;
    for (; calls < 20 && atomic_load(&ears.spared) == 0; calls++)
        fine = lh_acquire(client, "more", &options, &more, NULL) == LH_UNAVAILABLE && fine;
    began_ms = live_now_ms();
    fine = lh_acquire(client, "more", &options, &more, NULL) == LH_UNAVAILABLE && fine;
    rig_case(rig, fine && ears.spared > 0 && live_now_ms() - began_ms <= PATIENCE_MS + BUSY_MS,
             "%s: the breaker spares a server that is silent (after %u calls)", how, calls);
    rig_continue(rig, SERVER);
    /* What was given up may have been granted all the same, and lasts for its TTL then. */
    int64_t end_ms = live_now_ms() + SOON_MS;
    enum lh_outcome outcome = LH_UNAVAILABLE;
    while (outcome != LH_OK && live_now_ms() < end_ms)
        outcome = lh_acquire(client, "more", &options, &more, NULL);
    rig_case(rig, outcome == LH_OK && becomes(client, &ears.served, 1),
             "%s: and no more once it answers", how);
    (void)lh_release(&held, NULL);
    (void)lh_release(&more, NULL);
    lh_close(&client);
}

/* ---- a holder dies ---- */

static void play_holder(struct rig *rig, size_t seat)
{
    struct ears ears = {0};
    atomic_bool *holds = rig->shared;
    struct lh_client *client = open_client(rig, &ears, /* own_loop= */ false);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    (void)seat;
    options.ttl_ms = TTL_MS;
    if (lh_acquire(client, "taken", &options, &lease, NULL) != LH_OK)
        _exit(1);
    atomic_store(holds, true);
    for (;;)
        (void)pause();
}

static void take_over(struct rig *rig)
{
    const atomic_bool *holds = rig->shared;
    struct ears ears = {0};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    rig_start(rig, HOLDER, play_holder);
    int64_t end_ms = live_now_ms() + SOON_MS;
    while (!atomic_load(holds) && live_now_ms() < end_ms)
        rig_pause_us(1000);
    bool fine = atomic_load(holds) && rig_kill(rig, HOLDER);
    struct lh_client *client = open_client(rig, &ears, /* own_loop= */ false);
    int64_t began_ms = live_now_ms();
    options.wait_ms = SOON_MS;
    fine = lh_acquire(client, "taken", &options, &lease, NULL) == LH_OK && fine;
    int64_t took_ms = live_now_ms() - began_ms;
    rig_say("a killed holder's lock was there after %" PRId64 " ms, TTL %d ms", took_ms, TTL_MS);
    rig_case(rig, fine && took_ms <= TTL_MS + BUSY_MS, "a killed holder's lock ends with its TTL");
    rig_case(rig, ears.heard[LH_EVENT_TAKEOVER] == 1, "and it is told that it was taken over");
    (void)lh_release(&lease, NULL);
    lh_close(&client);
}

int main(int argc, char **argv)
{
    struct rig rig;
    rig_open(&rig, argc, argv, /* rounds= */ 1, /* limit_s= */ 60, /* round_ms= */ 60000,
             sizeof(atomic_bool));
    bool fine = own_server_start(&rig, SERVER);
    rig_case(&rig, fine, "a server runs");
    for (uint64_t round = 0; fine && round < rig.rounds; round++) {
        close_amid(&rig, round % 2 == 1);
        lose(&rig, round % 2 == 1);
    }
    if (fine)
        take_over(&rig);
    if (rig_kill(&rig, SERVER))
        call_nobody(&rig);
    return rig_close(&rig);
}

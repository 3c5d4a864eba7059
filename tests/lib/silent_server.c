/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library on a server (--server) that is absent, stopped or killed: a client opens all the
 * same, no call exceeds the store timeout, and lh_close() ends everything in flight; with a thread
 * and with own_loop. Events report the breaker, losses and takeovers. The library is used through
 * its public headers only.
 */
#include "leasehold.h"
#include "leasehold_admin.h"
#include "server_program.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    HOLDER,
    TIMEOUT_MS = 1000,
    BUSY_MS = 2000, /* added to a call on a loaded machine */
    SOON_MS = 20000,
    TTL_MS = 3000,
    LONG_TTL_MS = 30000,
    STARTED = 20,
    EVENT_KINDS = LH_EVENT_BREAKER + 1,
};

struct event_counts {
    atomic_uint heard[EVENT_KINDS], spared, served, notify;
};

static void count_event(void *user, const struct lh_event *event)
{
    struct event_counts *event_counts = user;
    atomic_fetch_add(&event_counts->heard[event->kind], 1);
    if (event->kind == LH_EVENT_BREAKER)
        atomic_fetch_add(event->outcome == LH_OK ? &event_counts->served : &event_counts->spared,
                         1);
}

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct event_counts *event_counts = user;
    (void)report;
    atomic_fetch_add(&event_counts->notify, 1);
    if (lease != NULL)
        (void)lh_release_start(&lease, NULL, NULL);
}

static void ignore_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    (void)user, (void)view, (void)report;
}

static struct lh_client *open_client(const struct fixture *fixture,
                                     struct event_counts *event_counts, bool own_loop)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.timeout_ms = TIMEOUT_MS;
    options.on_event = count_event;
    options.user = event_counts;
    options.own_loop = own_loop;
    if (lh_open(fixture->url, &options, &client, &report) != LH_OK)
        fixture_print("%s", report.text);
    return client;
}

/* Steps a client with own_loop for that duration; for one with a thread, sleeps. */
static void live_on(struct lh_client *client, int64_t length_ms)
{
    int64_t end_ms = live_now_ms() + length_ms;
    struct pollfd news = {.fd = lh_fd(client), .events = POLLIN};
    if (news.fd < 0)
        fixture_pause_us(length_ms * 1000);
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

/* ---- no server ---- */

static void call_nobody(struct fixture *fixture)
{
    struct event_counts event_counts = {0};
    struct lh_lease *lease = NULL;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int64_t began_ms = live_now_ms();
    struct lh_client *client = open_client(fixture, &event_counts, /* own_loop= */ false);
    fixture_case(fixture, client != NULL && live_now_ms() - began_ms <= BUSY_MS,
                 "a client opens where no server is");
    began_ms = live_now_ms();
    enum lh_outcome outcome = lh_acquire(client, "key", NULL, &lease, &report);
    int64_t took_ms = live_now_ms() - began_ms;
    fixture_print("%s after %" PRId64 " ms: %s", lh_outcome_name(outcome), took_ms, report.text);
    fixture_case(fixture, outcome == LH_UNAVAILABLE && took_ms <= TIMEOUT_MS + BUSY_MS,
                 "to acquire is unavailable within the timeout");
    began_ms = live_now_ms();
    outcome = lh_status(client, "key", &view, &report);
    fixture_case(fixture,
                 outcome == LH_UNAVAILABLE && live_now_ms() - began_ms <= TIMEOUT_MS + BUSY_MS,
                 "so is a look");
    began_ms = live_now_ms();
    lh_close(&client);
    fixture_case(fixture, live_now_ms() - began_ms <= BUSY_MS, "closing takes no time");
}

/* ---- a stopped server ---- */

/* Calls are in flight when the server stops and the client is closed. */
static void close_amid(struct fixture *fixture, bool own_loop)
{
    const char *how = own_loop ? "a loop of one's own" : "a thread";
    struct event_counts event_counts = {0};
    struct lh_client *client = open_client(fixture, &event_counts, own_loop);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *held = NULL;
    struct lh_watcher *watch = NULL;
    unsigned started = 0;
    options.ttl_ms = LONG_TTL_MS;
    bool fine = lh_acquire(client, "held", &options, &held, NULL) == LH_OK &&
                lh_watch(client, "", ignore_change, NULL, &watch, NULL) == LH_OK;
    options.wait_ms = LH_WAIT_FOREVER;
    struct lh_request *requests[STARTED + 1];
    requests[STARTED] = lh_acquire_start(client, "held", &options, count_done, &event_counts, NULL);
    live_on(client, /* length_ms= */ 100);
    (void)server_freeze(fixture);
    for (char key[16]; started < STARTED; started++) {
        (void)snprintf(key, sizeof key, "key-%u", started);
        requests[started] =
            lh_acquire_start(client, key, &options, count_done, &event_counts, NULL);
    }
    live_on(client, /* length_ms= */ 100);
    int64_t began_ms = live_now_ms();
    lh_close(&client);
    int64_t took_ms = live_now_ms() - began_ms;
    for (unsigned i = 0; i <= STARTED; i++) {
        fine = requests[i] != NULL && fine;
        lh_request_free(requests[i]);
    }
    enum lh_outcome outcome = lh_release(&held, NULL);
    (void)server_thaw(fixture);
    fixture_print("%s: closed after %" PRId64 " ms, with a timeout of %d; %u of %u were notified",
                  how, took_ms, TIMEOUT_MS, event_counts.notify, started + 1);
    fixture_case(fixture, fine && took_ms <= 2 * TIMEOUT_MS + BUSY_MS, "%s: closing does not hang",
                 how);
    fixture_case(fixture, event_counts.notify == started + 1, "%s: all that was started is told",
                 how);
    fixture_case(fixture, outcome != LH_OK, "%s: what was not given back is not said to be", how);
}

/* A held lease is lost in time; after some failures the breaker opens. */
static void lose(struct fixture *fixture, bool own_loop)
{
    const char *how = own_loop ? "a loop of one's own" : "a thread";
    struct event_counts event_counts = {0};
    struct lh_client *client = open_client(fixture, &event_counts, own_loop);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *held = NULL, *more = NULL;
    options.ttl_ms = TTL_MS;
    bool fine = lh_acquire(client, "lost", &options, &held, NULL) == LH_OK;
    int64_t began_ms = live_now_ms();
    (void)server_freeze(fixture);
    fine = becomes(client, &event_counts.heard[LH_EVENT_LOST], 1) && fine;
    int64_t told_ms = live_now_ms() - began_ms;
    fixture_print("%s: lost was told %" PRId64 " ms after the server stopped, TTL %d ms", how,
                  told_ms, TTL_MS);
    fixture_case(fixture, fine && !lh_held(held) && told_ms < TTL_MS,
                 "%s: lost before the lease ends", how);
    unsigned calls = 0;
    for (; calls < 20 && atomic_load(&event_counts.spared) == 0; calls++)
        fine = lh_acquire(client, "more", &options, &more, NULL) == LH_UNAVAILABLE && fine;
    began_ms = live_now_ms();
    fine = lh_acquire(client, "more", &options, &more, NULL) == LH_UNAVAILABLE && fine;
    fixture_case(fixture,
                 fine && event_counts.spared > 0 &&
                     live_now_ms() - began_ms <= TIMEOUT_MS + BUSY_MS,
                 "%s: the breaker spares a server that is silent (after %u calls)", how, calls);
    (void)server_thaw(fixture);
    /* A call that timed out may have been granted, and then lasts for its TTL. */
    int64_t end_ms = live_now_ms() + SOON_MS;
    enum lh_outcome outcome = LH_UNAVAILABLE;
    while (outcome != LH_OK && live_now_ms() < end_ms)
        outcome = lh_acquire(client, "more", &options, &more, NULL);
    fixture_case(fixture, outcome == LH_OK && becomes(client, &event_counts.served, 1),
                 "%s: and no more once it answers", how);
    (void)lh_release(&held, NULL);
    (void)lh_release(&more, NULL);
    lh_close(&client);
}

/* ---- a holder dies ---- */

static void play_holder(struct fixture *fixture, size_t child)
{
    struct event_counts event_counts = {0};
    atomic_bool *holds = fixture->shared;
    struct lh_client *client = open_client(fixture, &event_counts, /* own_loop= */ false);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    (void)child;
    options.ttl_ms = TTL_MS;
    if (lh_acquire(client, "taken", &options, &lease, NULL) != LH_OK)
        _exit(1);
    atomic_store(holds, true);
    for (;;)
        (void)pause();
}

static void take_over(struct fixture *fixture)
{
    const atomic_bool *holds = fixture->shared;
    struct event_counts event_counts = {0};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    fixture_start(fixture, HOLDER, play_holder);
    int64_t end_ms = live_now_ms() + SOON_MS;
    while (!atomic_load(holds) && live_now_ms() < end_ms)
        fixture_pause_us(1000);
    bool fine = atomic_load(holds) && fixture_kill(fixture, HOLDER);
    struct lh_client *client = open_client(fixture, &event_counts, /* own_loop= */ false);
    int64_t began_ms = live_now_ms();
    options.wait_ms = SOON_MS;
    fine = lh_acquire(client, "taken", &options, &lease, NULL) == LH_OK && fine;
    int64_t took_ms = live_now_ms() - began_ms;
    fixture_print("a killed holder's lock was there after %" PRId64 " ms, TTL %d ms", took_ms,
                  TTL_MS);
    fixture_case(fixture, fine && took_ms <= TTL_MS + BUSY_MS,
                 "a killed holder's lock ends with its TTL");
    fixture_case(fixture, event_counts.heard[LH_EVENT_TAKEOVER] == 1,
                 "and it is told that it was taken over");
    (void)lh_release(&lease, NULL);
    lh_close(&client);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 1, /* limit_s= */ 60, /* round_ms= */ 60000,
                 sizeof(atomic_bool));
    bool fine = fixture.server != NULL;
    fixture_case(&fixture, fine, "a server runs");
    for (uint64_t round = 0; fine && round < fixture.rounds; round++) {
        close_amid(&fixture, round % 2 == 1);
        lose(&fixture, round % 2 == 1);
    }
    if (fine)
        take_over(&fixture);
    if (fine && server_kill(&fixture))
        call_nobody(&fixture);
    return fixture_close(&fixture);
}

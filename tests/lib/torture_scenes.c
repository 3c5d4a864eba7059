/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenes of lib_torture.c. What they do must make sense however many of its calls fail, and
 * must not judge: every outcome is noted, every handle left on the stage.
 */
#include "refusing.h"
#include "torture.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define TTL_MS      ((int64_t)600000)
#define PATIENCE_MS ((int64_t)300) /* how long a store without memory is asked again */

static void note(struct stage *stage, enum lh_outcome outcome)
{
    atomic_fetch_or(&stage->seen, SEEN(outcome));
}

static void nap_ms(long length_ms)
{
    struct timespec length = {.tv_nsec = length_ms * 1000000};
    (void)nanosleep(&length, NULL);
}

static void on_event(void *user, const struct lh_event *event)
{
    (void)user, (void)event;
}

enum lh_outcome stage_open(struct stage *stage, const char *url, bool own_loop)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.own_loop = own_loop;
    options.patience_ms = PATIENCE_MS;
    options.on_event = stage->listens ? on_event : NULL;
    return lh_open(url, &options, &stage->client, NULL);
}

/* ---- steps ---- */

static struct lh_acquire_options usual(void)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    return options;
}

static void take(struct stage *stage, size_t place, const char *key,
                 const struct lh_acquire_options *options)
{
    note(stage, lh_acquire(stage->client, key, options, &stage->leases[place], NULL));
}

static void give(struct stage *stage, size_t place)
{
    if (stage->leases[place] != NULL)
        note(stage, lh_release(&stage->leases[place], NULL));
}

/* A request may be cancelled until its function was called, and who cancels is another thread. */
static pthread_mutex_t of_request = PTHREAD_MUTEX_INITIALIZER;

static void cancel(struct stage *stage)
{
    (void)pthread_mutex_lock(&of_request);
    lh_cancel(stage->request);
    (void)pthread_mutex_unlock(&of_request);
}

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct stage *stage = user;
    if ((report->outcome == LH_OK) != (lease != NULL))
        atomic_fetch_add(&stage->done_bad, 1);
    (void)pthread_mutex_lock(&of_request);
    stage->leases[STAGE_LEASES - 1] = lease;
    stage->request = NULL;
    note(stage, report->outcome);
    (void)pthread_mutex_unlock(&of_request);
    atomic_fetch_add(&stage->done, 1);
}

static void count_return(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct stage *stage = user;
    stage->leases[1] = lease; /* NULL: it is gone; otherwise whoever judges finds it */
    note(stage, report->outcome);
    atomic_fetch_add(&stage->done, 1);
}

static void start(struct stage *stage, const char *key, int64_t wait_ms)
{
    struct lh_acquire_options options = usual();
    struct lh_report report;
    options.wait_ms = wait_ms;
    (void)pthread_mutex_lock(&of_request);
    stage->request = lh_acquire_start(stage->client, key, &options, count_done, stage, &report);
    stage->started += stage->request != NULL ? 1 : 0;
    if (stage->request == NULL)
        note(stage, report.outcome);
    (void)pthread_mutex_unlock(&of_request);
}

/* Until all that was started has come back, or for so long. */
static bool await_done(const struct stage *stage, int tries)
{
    while (atomic_load(&stage->done) < stage->started && tries-- > 0)
        nap_ms(1);
    return atomic_load(&stage->done) == stage->started;
}

static bool count_view(void *user, const struct lh_view *view)
{
    struct stage *stage = user;
    (void)view;
    atomic_fetch_add(&stage->views, 1);
    return true;
}

static void count_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct stage *stage = user;
    (void)view, (void)report;
    atomic_fetch_add(&stage->views, 1);
}

/* ---- preparations: with memory ---- */

static void hold_a(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    take(stage, 0, "a", &options);
}

static void hold_unbound(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    options.unbound = true;
    take(stage, 0, "a", &options);
}

static void leave_unbound(struct stage *stage)
{
    hold_unbound(stage);
    stage->token = lh_token(stage->leases[0]);
    if (stage->leases[0] != NULL)
        note(stage, lh_detach(&stage->leases[0], NULL));
}

static void leave_cooling(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    options.cooldown_ms = TTL_MS;
    take(stage, 0, "a", &options);
    give(stage, 0);
}

static void hold_cooling(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    options.cooldown_ms = TTL_MS;
    take(stage, 0, "a", &options);
}

static void hold_a_and_wait(struct stage *stage)
{
    hold_a(stage);
    start(stage, "a", LH_WAIT_FOREVER);
    note(stage, lh_watch(stage->client, "", count_change, stage, &stage->watch, NULL));
}

static void other_holds_a(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    note(stage, lh_acquire(stage->other, "a", &options, &stage->of_other, NULL));
}

static void claim_a(struct stage *stage)
{
    note(stage, lh_once_claim(stage->client, "a", NULL, &stage->leases[0], NULL, NULL));
}

/* ---- acts: without memory ---- */

static void open_and_close(struct stage *stage)
{
    note(stage, stage_open(stage, stage->new_url, /* own_loop= */ false));
    lh_close(&stage->client);
}

static void open_again(struct stage *stage)
{
    note(stage, stage_open(stage, stage->url, /* own_loop= */ false));
    lh_close(&stage->client);
}

static void close_it(struct stage *stage)
{
    lh_close(&stage->client);
}

static void acquire_with_all_options(struct stage *stage)
{
    static const struct lh_meta meta[] = {{"job", "nightly"}, {"run", "7"}};
    struct lh_acquire_options options = usual();
    options.wait_ms = 2000;
    options.lock_delay_ms = 1;
    options.priority = 7;
    options.holder = "somebody";
    options.request_id = "request";
    options.meta = meta;
    options.meta_count = 2;
    take(stage, 0, "a", &options);
}

static void acquire_several(struct stage *stage)
{
    const char *keys[] = {"c", "a", "b"};
    struct lh_acquire_options options = usual();
    note(stage, lh_acquire_all(stage->client, keys, 3, &options, &stage->leases[0], NULL));
}

static void acquire_shared(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    options.shared = true;
    take(stage, 0, "a", &options);
    take(stage, 1, "a", &options);
}

static void acquire_slots(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    options.limit = 3;
    take(stage, 0, "a", &options);
    take(stage, 1, "a", &options);
    give(stage, 0);
}

static void start_and_hear(struct stage *stage)
{
    start(stage, "a", /* wait_ms= */ 0);
    (void)await_done(stage, 20000);
}

static void start_and_cancel(struct stage *stage)
{
    start(stage, "a", LH_WAIT_FOREVER);
    nap_ms(3);
    cancel(stage);
    (void)await_done(stage, 20000);
}

static void release_it(struct stage *stage)
{
    give(stage, 0);
}

static void start_release(struct stage *stage)
{
    enum lh_outcome outcome = lh_release_start(&stage->leases[0], count_return, stage);
    note(stage, outcome);
    stage->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(stage, 20000);
}

static void detach_it(struct stage *stage)
{
    note(stage, lh_detach(&stage->leases[0], NULL));
}

static void renew_by_token(struct stage *stage)
{
    note(stage, lh_renew(stage->client, "a", stage->token, TTL_MS, NULL));
}

static void give_back_by_token(struct stage *stage)
{
    note(stage, lh_give_back(stage->client, "a", stage->token, /* cooldown_ms= */ 0, NULL));
}

static void ask_status(struct stage *stage)
{
    struct lh_view view;
    enum lh_outcome outcome = lh_status(stage->client, "a", &view, NULL);
    note(stage, outcome);
    if (outcome == LH_OK && view.state != LH_HELD)
        note(stage, LH_STALE); /* what it told is not so */
}

/* Who is only looked at loses nothing by it. */
static void ask_status_and_release(struct stage *stage)
{
    ask_status(stage);
    give(stage, 0);
}

static void ask_list(struct stage *stage)
{
    enum lh_outcome outcome = lh_list(stage->client, "", count_view, stage, NULL);
    note(stage, outcome);
    if (outcome == LH_OK && atomic_load(&stage->views) == 0)
        note(stage, LH_STALE);
}

static void ask_history(struct stage *stage)
{
    enum lh_outcome outcome = lh_history(stage->client, "a", count_view, stage, NULL);
    note(stage, outcome);
    if (outcome == LH_OK && atomic_load(&stage->views) == 0)
        note(stage, LH_STALE);
}

/* Changes that are not told must at least be said to be missing: the watch ends then. */
static void watch_and_change(struct stage *stage)
{
    enum lh_outcome outcome = lh_watch(stage->client, "", count_change, stage, &stage->watch, NULL);
    note(stage, outcome);
    take(stage, 0, "b", NULL);
    bool changed = stage->leases[0] != NULL;
    for (int i = 0; i < 5000 && outcome == LH_OK && changed; i++) {
        if (atomic_load(&stage->views) > 0)
            break;
        nap_ms(1);
    }
    if (outcome == LH_OK && changed && atomic_load(&stage->views) == 0)
        note(stage, LH_STALE);
    if (outcome == LH_OK)
        note(stage, lh_unwatch(&stage->watch, NULL));
}

/* A change that the copy cannot follow ends the copy: what was given back is not busy for long. */
static void peek_and_change(struct stage *stage)
{
    enum lh_outcome peeked = LH_OK, released = LH_FAILED;
    for (int i = 0; i < 5; i++)
        note(stage, peeked = lh_peek(stage->client, "a", NULL, NULL));
    if (peeked == LH_OK)
        note(stage, LH_STALE);
    if (stage->leases[0] != NULL)
        note(stage, released = lh_release(&stage->leases[0], NULL));
    peeked = LH_BUSY;
    for (int i = 0; i < 5000 && released == LH_OK && peeked == LH_BUSY; i++) {
        peeked = lh_peek(stage->client, "a", NULL, NULL);
        nap_ms(1);
    }
    if (released == LH_OK && peeked == LH_BUSY)
        note(stage, LH_STALE);
}

static void break_it(struct stage *stage)
{
    note(stage, lh_break(stage->client, "a", "stuck", /* at_once= */ true, NULL));
}

static void clear_it(struct stage *stage)
{
    note(stage, lh_clear(stage->client, "a", NULL));
}

static void hand_over(struct stage *stage)
{
    start(stage, "a", LH_WAIT_FOREVER);
    nap_ms(3);
    give(stage, 0);
    if (!await_done(stage, 2000))
        cancel(stage);
    (void)await_done(stage, 20000);
}

static void wait_for_another(struct stage *stage)
{
    start(stage, "a", LH_WAIT_FOREVER);
    nap_ms(20);
    refusing_here(false); /* the other client has memory */
    (void)lh_release(&stage->of_other, NULL);
    refusing_here(true);
    if (!await_done(stage, 200))
        cancel(stage);
    (void)await_done(stage, 20000);
}

static void turn_own_loop(struct stage *stage)
{
    struct lh_acquire_options options = usual();
    take(stage, 0, "a", &options);
    start(stage, "b", /* wait_ms= */ 0);
    for (int i = 0; i < 20000 && atomic_load(&stage->done) < stage->started; i++) {
        note(stage, lh_step(stage->client));
        nap_ms(1);
    }
    give(stage, 0);
}

static void claim_with_payload(struct stage *stage)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    options.payload = "9f";
    note(stage, lh_once_claim(stage->client, "a", &options, &stage->leases[0], NULL, NULL));
    give(stage, 0);
}

static void finish_it(struct stage *stage)
{
    struct lh_done done = LH_DONE_INIT;
    done.result = "done";
    note(stage, lh_finish(&stage->leases[0], &done, NULL));
}

static void start_finish(struct stage *stage)
{
    struct lh_done done = LH_DONE_INIT;
    done.result = "done";
    enum lh_outcome outcome = lh_finish_start(&stage->leases[0], &done, count_return, stage, NULL);
    note(stage, outcome);
    stage->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(stage, 20000);
}

/* Each of them after the other, as far as they can be started. */
static void start_about_watermarks(struct stage *stage)
{
    struct lh_watermark mark;
    enum lh_outcome outcome =
        lh_watermark_set_start(stage->client, "w", "7", "again", count_return, stage, NULL);
    note(stage, outcome);
    stage->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(stage, 20000);
    outcome = lh_watermark_begin_start(stage->client, "w", 1, &mark, count_return, stage, NULL);
    note(stage, outcome);
    stage->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(stage, 20000);
}

#define BUSY_TOO SEEN(LH_BUSY)

const struct scene scenes[SCENES] = {
    {.name = "open a new store, close", .act = open_and_close, .unbegun = true},
    {.name = "open, close", .act = open_again, .unbegun = true},
    {.name = "close what is busy", .prepare = hold_a_and_wait, .act = close_it, .also = BUSY_TOO},
    {.name = "acquire, all options", .act = acquire_with_all_options, .also = BUSY_TOO},
    {.name = "acquire several", .act = acquire_several},
    {.name = "acquire shared", .act = acquire_shared},
    {.name = "acquire slots", .act = acquire_slots},
    {.name = "start", .act = start_and_hear},
    {.name = "start, cancel", .prepare = hold_a, .act = start_and_cancel, .also = BUSY_TOO},
    {.name = "release", .prepare = hold_a, .act = release_it},
    {.name = "release with a cooldown", .prepare = hold_cooling, .act = release_it},
    {.name = "start a release", .prepare = hold_a, .act = start_release},
    {.name = "detach", .prepare = hold_unbound, .act = detach_it, .leaves = true},
    {.name = "renew", .prepare = leave_unbound, .act = renew_by_token, .leaves = true},
    {.name = "give back", .prepare = leave_unbound, .act = give_back_by_token, .leaves = true},
    {.name = "status", .prepare = hold_a, .act = ask_status},
    {.name = "status, release", .prepare = hold_a, .act = ask_status_and_release},
    {.name = "list", .prepare = hold_a, .act = ask_list},
    {.name = "history", .prepare = hold_a, .act = ask_history, .file_only = true},
    {.name = "watch, unwatch", .act = watch_and_change},
    {.name = "peek, release", .prepare = hold_a, .act = peek_and_change, .also = BUSY_TOO},
    {.name = "break", .prepare = leave_unbound, .act = break_it, .leaves = true},
    {.name = "clear", .prepare = leave_cooling, .act = clear_it},
    {.name = "hand over", .prepare = hold_a, .act = hand_over, .also = BUSY_TOO},
    {.name = "wait for another",
     .prepare = other_holds_a,
     .act = wait_for_another,
     .also = BUSY_TOO,
     .file_only = true},
    {.name = "own loop", .act = turn_own_loop, .own_loop = true},
    {.name = "claim", .act = claim_with_payload, .also = BUSY_TOO},
    {.name = "finish", .prepare = claim_a, .act = finish_it},
    {.name = "start a finish", .prepare = claim_a, .act = start_finish},
    {.name = "start about watermarks", .act = start_about_watermarks},
};

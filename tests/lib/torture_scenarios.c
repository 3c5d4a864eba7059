/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenes of lib_torture.c. Any of their calls may fail. They check nothing: they note every
 * outcome and keep every handle in the context.
 */
#include "alloc_failure.h"
#include "torture.h"

#include <stddef.h>
#include <time.h>

#define TTL_MS     ((int64_t)600000)
#define TIMEOUT_MS ((int64_t)300) /* of a store without memory */

static void note(struct context *context, enum lh_outcome outcome)
{
    atomic_fetch_or(&context->seen, SEEN(outcome));
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

enum lh_outcome context_open(struct context *context, const char *url, bool own_loop)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.own_loop = own_loop;
    options.timeout_ms = TIMEOUT_MS;
    options.on_event = context->listens ? on_event : NULL;
    return lh_open(url, &options, &context->client, NULL);
}

/* ---- steps ---- */

static struct lh_acquire_options usual(void)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    return options;
}

static void take(struct context *context, size_t place, const char *key,
                 const struct lh_acquire_options *options)
{
    note(context, lh_acquire(context->client, key, options, &context->leases[place], NULL));
}

static void give(struct context *context, size_t place)
{
    if (context->leases[place] != NULL)
        note(context, lh_release(&context->leases[place], NULL));
}

static void cancel(struct context *context)
{
    lh_cancel(context->request);
}

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct context *context = user;
    if ((report->outcome == LH_OK) != (lease != NULL))
        atomic_fetch_add(&context->done_bad, 1);
    context->leases[CONTEXT_LEASES - 1] = lease;
    note(context, report->outcome);
    atomic_fetch_add(&context->done, 1);
}

static void count_return(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct context *context = user;
    context->leases[1] = lease; /* NULL: released; otherwise checked later */
    note(context, report->outcome);
    atomic_fetch_add(&context->done, 1);
}

static void start(struct context *context, const char *key, int64_t wait_ms)
{
    struct lh_acquire_options options = usual();
    struct lh_report report = LH_REPORT_INIT;
    options.wait_ms = wait_ms;
    lh_request_free(context->request);
    context->request =
        lh_acquire_start(context->client, key, &options, count_done, context, &report);
    context->started += context->request != NULL ? 1 : 0;
    if (context->request == NULL)
        note(context, report.outcome);
}

/* Waits until all started calls have ended; false after `tries` milliseconds. */
static bool await_done(const struct context *context, int tries)
{
    while (atomic_load(&context->done) < context->started && tries-- > 0)
        nap_ms(1);
    return atomic_load(&context->done) == context->started;
}

static bool count_view(void *user, const struct lh_view *view)
{
    struct context *context = user;
    (void)view;
    atomic_fetch_add(&context->views, 1);
    return true;
}

static void count_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct context *context = user;
    (void)view, (void)report;
    atomic_fetch_add(&context->views, 1);
}

/* ---- preparations: with memory ---- */

static void hold_a(struct context *context)
{
    struct lh_acquire_options options = usual();
    take(context, 0, "a", &options);
}

static void hold_unbound(struct context *context)
{
    struct lh_acquire_options options = usual();
    options.unbound = true;
    take(context, 0, "a", &options);
}

static void leave_unbound(struct context *context)
{
    hold_unbound(context);
    context->token = lh_token(context->leases[0]);
    if (context->leases[0] != NULL)
        note(context, lh_detach(&context->leases[0], NULL));
}

static void leave_cooling(struct context *context)
{
    struct lh_acquire_options options = usual();
    options.cooldown_ms = TTL_MS;
    take(context, 0, "a", &options);
    give(context, 0);
}

static void hold_cooling(struct context *context)
{
    struct lh_acquire_options options = usual();
    options.cooldown_ms = TTL_MS;
    take(context, 0, "a", &options);
}

static void hold_a_and_wait(struct context *context)
{
    hold_a(context);
    start(context, "a", LH_WAIT_FOREVER);
    note(context, lh_watch(context->client, "", count_change, context, &context->watch, NULL));
}

static void other_holds_a(struct context *context)
{
    struct lh_acquire_options options = usual();
    note(context, lh_acquire(context->other, "a", &options, &context->of_other, NULL));
}

static void claim_a(struct context *context)
{
    note(context, lh_once_claim(context->client, "a", NULL, &context->leases[0], NULL, NULL));
}

/* ---- acts: without memory ---- */

static void open_and_close(struct context *context)
{
    note(context, context_open(context, context->new_url, /* own_loop= */ false));
    lh_close(&context->client);
}

static void open_again(struct context *context)
{
    note(context, context_open(context, context->url, /* own_loop= */ false));
    lh_close(&context->client);
}

static void close_it(struct context *context)
{
    lh_close(&context->client);
}

static void acquire_with_all_options(struct context *context)
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
    take(context, 0, "a", &options);
}

static void acquire_several(struct context *context)
{
    const char *keys[] = {"c", "a", "b"};
    struct lh_acquire_options options = usual();
    note(context, lh_acquire_all(context->client, keys, 3, &options, &context->leases[0], NULL));
}

static void acquire_shared(struct context *context)
{
    struct lh_acquire_options options = usual();
    options.shared = true;
    take(context, 0, "a", &options);
    take(context, 1, "a", &options);
}

static void acquire_slots(struct context *context)
{
    struct lh_acquire_options options = usual();
    options.limit = 3;
    take(context, 0, "a", &options);
    take(context, 1, "a", &options);
    give(context, 0);
}

static void start_and_hear(struct context *context)
{
    start(context, "a", /* wait_ms= */ 0);
    (void)await_done(context, 20000);
}

static void start_and_cancel(struct context *context)
{
    start(context, "a", LH_WAIT_FOREVER);
    nap_ms(3);
    cancel(context);
    (void)await_done(context, 20000);
}

static void release_it(struct context *context)
{
    give(context, 0);
}

static void start_release(struct context *context)
{
    enum lh_outcome outcome = lh_release_start(&context->leases[0], count_return, context);
    note(context, outcome);
    context->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(context, 20000);
}

static void detach_it(struct context *context)
{
    note(context, lh_detach(&context->leases[0], NULL));
}

static void renew_by_token(struct context *context)
{
    note(context, lh_renew(context->client, "a", context->token, TTL_MS, NULL));
}

static void give_back_by_token(struct context *context)
{
    note(context,
         lh_release_token(context->client, "a", context->token, /* cooldown_ms= */ 0, NULL));
}

static void ask_status(struct context *context)
{
    struct lh_view view = LH_VIEW_INIT;
    enum lh_outcome outcome = lh_status(context->client, "a", &view, NULL);
    note(context, outcome);
    if (outcome == LH_OK && view.state != LH_HELD)
        note(context, LH_STALE); /* the view is wrong */
}

/* A failed query must not affect the lease. */
static void ask_status_and_release(struct context *context)
{
    ask_status(context);
    give(context, 0);
}

static void ask_list(struct context *context)
{
    enum lh_outcome outcome = lh_list(context->client, "", count_view, context, NULL);
    note(context, outcome);
    if (outcome == LH_OK && atomic_load(&context->views) == 0)
        note(context, LH_STALE);
}

static void ask_history(struct context *context)
{
    enum lh_outcome outcome = lh_history(context->client, "a", count_view, context, NULL);
    note(context, outcome);
    if (outcome == LH_OK && atomic_load(&context->views) == 0)
        note(context, LH_STALE);
}

/* If a change cannot be delivered, the watch must end with a report. */
static void watch_and_change(struct context *context)
{
    enum lh_outcome outcome =
        lh_watch(context->client, "", count_change, context, &context->watch, NULL);
    note(context, outcome);
    take(context, 0, "b", NULL);
    bool changed = context->leases[0] != NULL;
    for (int i = 0; i < 5000 && outcome == LH_OK && changed; i++) {
        if (atomic_load(&context->views) > 0)
            break;
        nap_ms(1);
    }
    if (outcome == LH_OK && changed && atomic_load(&context->views) == 0)
        note(context, LH_STALE);
    if (outcome == LH_OK)
        note(context, lh_unwatch(&context->watch, NULL));
}

/* The cache drops an entry that it cannot update: a released key does not stay busy. */
static void peek_and_change(struct context *context)
{
    enum lh_outcome peeked = LH_OK, released = LH_FAILED;
    for (int i = 0; i < 5; i++)
        note(context, peeked = lh_peek(context->client, "a", NULL, NULL));
    if (peeked == LH_OK)
        note(context, LH_STALE);
    if (context->leases[0] != NULL)
        note(context, released = lh_release(&context->leases[0], NULL));
    peeked = LH_BUSY;
    for (int i = 0; i < 5000 && released == LH_OK && peeked == LH_BUSY; i++) {
        peeked = lh_peek(context->client, "a", NULL, NULL);
        nap_ms(1);
    }
    if (released == LH_OK && peeked == LH_BUSY)
        note(context, LH_STALE);
}

static void break_it(struct context *context)
{
    note(context, lh_break(context->client, "a", "stuck", /* at_once= */ true, NULL));
}

static void clear_it(struct context *context)
{
    note(context, lh_clear(context->client, "a", NULL));
}

static void hand_over(struct context *context)
{
    start(context, "a", LH_WAIT_FOREVER);
    nap_ms(3);
    give(context, 0);
    if (!await_done(context, 2000))
        cancel(context);
    (void)await_done(context, 20000);
}

static void wait_for_another(struct context *context)
{
    start(context, "a", LH_WAIT_FOREVER);
    nap_ms(20);
    alloc_failure_here(false); /* the other client has memory */
    (void)lh_release(&context->of_other, NULL);
    alloc_failure_here(true);
    if (!await_done(context, 200))
        cancel(context);
    (void)await_done(context, 20000);
}

static void turn_own_loop(struct context *context)
{
    struct lh_acquire_options options = usual();
    take(context, 0, "a", &options);
    start(context, "b", /* wait_ms= */ 0);
    for (int i = 0; i < 20000 && atomic_load(&context->done) < context->started; i++) {
        note(context, lh_step(context->client));
        nap_ms(1);
    }
    give(context, 0);
}

static void count_started(struct context *context, enum lh_outcome outcome)
{
    note(context, outcome);
    context->started += outcome == LH_OK ? 1 : 0;
}

/* A lease that is left to its TTL is not kept. */
static void count_detached(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct context *context = user;
    if ((report->outcome == LH_OK) != (lh_token(lease) != 0))
        atomic_fetch_add(&context->done_bad, 1);
    note(context, report->outcome);
    atomic_fetch_add(&context->done, 1);
}

static void run_own_loop(struct context *context)
{
    struct lh_acquire_options options = usual();
    struct lh_client *client = context->client;
    struct lh_report report = LH_REPORT_INIT;
    options.unbound = options.detach = true;
    note(context, lh_run(client));
    count_started(context, lh_watch_start(client, "", count_change, count_return, context,
                                          &context->watch, NULL));
    count_started(context, lh_peek_start(client, "b", NULL, count_return, context, NULL));
    context->request = lh_acquire_start(client, "a", &options, count_detached, context, &report);
    count_started(context, context->request != NULL ? LH_OK : report.outcome);
    for (int i = 0; i < 20000 && atomic_load(&context->done) < context->started; i++) {
        note(context, i % 2 == 0 ? lh_run(client) : lh_step(client));
        nap_ms(1);
    }
    if (context->watch != NULL)
        note(context, lh_unwatch_start(&context->watch, NULL));
}

static void claim_with_payload(struct context *context)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    options.payload = "9f";
    note(context, lh_once_claim(context->client, "a", &options, &context->leases[0], NULL, NULL));
    give(context, 0);
}

static void finish_it(struct context *context)
{
    struct lh_completion done = LH_COMPLETION_INIT;
    done.result = "done";
    note(context, lh_finish(&context->leases[0], &done, NULL));
}

static void start_finish(struct context *context)
{
    struct lh_completion done = LH_COMPLETION_INIT;
    done.result = "done";
    enum lh_outcome outcome =
        lh_finish_start(&context->leases[0], &done, count_return, context, NULL);
    note(context, outcome);
    context->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(context, 20000);
}

/* One after the other, as far as they can be started. */
static void start_about_watermarks(struct context *context)
{
    struct lh_watermark mark = LH_WATERMARK_INIT;
    enum lh_outcome outcome =
        lh_watermark_set_start(context->client, "w", "7", "again", count_return, context, NULL);
    note(context, outcome);
    context->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(context, 20000);
    outcome = lh_watermark_begin_start(context->client, "w", 1, &mark, count_return, context, NULL);
    note(context, outcome);
    context->started += outcome == LH_OK ? 1 : 0;
    (void)await_done(context, 20000);
}

#define BUSY_TOO SEEN(LH_BUSY)

const struct scenario scenarios[SCENARIOS] = {
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
    {.name = "run", .act = run_own_loop, .own_loop = true, .leaves = true},
    {.name = "claim", .act = claim_with_payload, .also = BUSY_TOO},
    {.name = "finish", .prepare = claim_a, .act = finish_it},
    {.name = "start a finish", .prepare = claim_a, .act = start_finish},
    {.name = "start about watermarks", .act = start_about_watermarks},
};

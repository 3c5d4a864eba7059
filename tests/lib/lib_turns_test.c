/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that drives its client from its own loop and never blocks: watches and peeks that are
 * started, calls that are started within callbacks, and turns by lh_step() and lh_run().
 */
#include "lib_kit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 16, CHAIN = 40 };

static struct lh_client *open_own(void)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    open.own_loop = true;
    return kit_open(&open);
}

static bool is_readable(struct lh_client *client)
{
    struct pollfd wait = {.fd = lh_fd(client), .events = POLLIN};
    return poll(&wait, 1, /* timeout= */ 0) > 0;
}

static void turn_until(struct lh_client *client, const unsigned *count, unsigned wanted)
{
    struct pollfd wait = {.fd = lh_fd(client), .events = POLLIN};
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (*count < wanted && kit_now_ms() < until_ms) {
        (void)poll(&wait, 1, /* timeout= */ 20);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(*count, wanted);
}

/* A few more turns, in which nothing should happen. */
static void turn_idle(struct lh_client *client)
{
    for (int i = 0; i < 20; i++) {
        kit_sleep_ms(2);
        assert_int_equal(lh_step(client), LH_OK);
    }
}

/* ---- watches ---- */

/* A watch, and what it received. */
struct stream {
    struct lh_client *client;
    struct lh_watcher *watch, *second;
    struct stream *ends; /* ends this stream's watch at the next change */
    unsigned done, changes, grants;
    enum lh_outcome outcome;
};

static void on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct stream *stream = user;
    assert_null(report);
    stream->changes++;
    stream->grants += view->state == LH_HELD;
    if (stream->ends != NULL) {
        assert_int_equal(lh_unwatch(&stream->ends->watch, NULL), LH_USAGE); /* it would block */
        assert_int_equal(lh_unwatch_start(&stream->ends->watch, NULL), LH_OK);
        assert_null(stream->ends->watch);
        stream->ends = NULL;
    }
}

static void on_watching(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct stream *stream = user;
    assert_null(lease);
    stream->outcome = report->outcome;
    stream->done++;
}

static void watch(struct lh_client *client, const char *prefix, struct stream *stream)
{
    struct lh_report report = LH_REPORT_INIT;
    stream->client = client;
    ASSERT_OUTCOME(
        lh_watch_start(client, prefix, on_change, on_watching, stream, &stream->watch, &report),
        LH_OK, &report);
    assert_non_null(stream->watch);
    assert_int_equal(stream->done, 0); /* never from within */
}

static void pass(struct lh_client *client, const char *key)
{
    struct lh_lease *lease = kit_acquire(client, key, NULL);
    kit_release(&lease, LH_OK);
}

static void a_started_watch_gets_every_change_once(void **state)
{
    struct stream first = {.done = 0}, second = {.done = 0};
    struct lh_client *client = open_own();
    (void)state;
    pass(client, "a/0");
    watch(client, "a/", &first);
    turn_until(client, &first.done, 1);
    assert_int_equal(first.outcome, LH_OK);
    pass(client, "a/1");
    turn_until(client, &first.grants, 1);
    watch(client, NULL, &second); /* joins the watch of the store */
    turn_until(client, &second.done, 1);
    turn_idle(client);
    unsigned seen = second.grants; /* a change that was still in flight, at most */
    assert_true(seen <= 1);
    pass(client, "a/2");
    pass(client, "b/1");
    turn_until(client, &second.grants, seen + 2);
    turn_until(client, &first.grants, 2);
    turn_idle(client);
    assert_int_equal(first.grants, 2);
    assert_int_equal(second.grants, seen + 2);
    assert_int_equal(first.done + second.done, 2);
    assert_int_equal(lh_unwatch_start(&first.watch, NULL), LH_OK);
    pass(client, "a/3");
    turn_until(client, &second.grants, seen + 3);
    assert_int_equal(first.grants, 2);
    assert_int_equal(lh_unwatch(&second.watch, NULL), LH_OK);
    assert_int_equal(lh_unwatch_start(&second.watch, NULL), LH_USAGE);
    lh_close(&client);
}

/* Each of three watches ends itself, the one before or the one behind it; the others go on. */
static void a_watch_can_be_ended_while_others_are_notified(void **state)
{
    (void)state;
    for (int who = 0; who < 3; who++) {
        struct stream streams[3] = {{.done = 0}, {.done = 0}, {.done = 0}};
        struct lh_client *client = open_own();
        for (int i = 0; i < 3; i++) {
            watch(client, "", &streams[i]);
            turn_until(client, &streams[i].done, 1);
        }
        streams[1].ends = &streams[who];
        pass(client, "k");
        for (int i = 0; i < 3; i++)
            if (i != who)
                turn_until(client, &streams[i].grants, 1);
        assert_true(streams[who].changes <= 1);
        unsigned changes = streams[who].changes;
        pass(client, "l");
        for (int i = 0; i < 3; i++)
            if (i != who)
                turn_until(client, &streams[i].grants, 2);
        assert_int_equal(streams[who].changes, changes);
        lh_close(&client);
    }
}

static void a_watch_that_is_ended_at_once_calls_nobody(void **state)
{
    struct stream stream = {.done = 0};
    struct lh_client *client = open_own();
    (void)state;
    watch(client, "", &stream);
    assert_int_equal(lh_unwatch_start(&stream.watch, NULL), LH_OK);
    pass(client, "k");
    turn_idle(client);
    assert_int_equal(stream.done + stream.changes, 0);
    watch(client, "", &stream);
    assert_int_equal(lh_unwatch(&stream.watch, NULL), LH_OK);
    assert_int_equal(stream.done, 0);
    watch(client, "", &stream);
    lh_close(&client);
    assert_int_equal(stream.done, 1); /* every call that was started ends */
}

static void watch_more(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct stream *stream = user;
    on_watching(user, lease, report);
    assert_int_equal(
        lh_watch_start(stream->client, "", on_change, on_watching, user, &stream->second, NULL),
        LH_OK);
    assert_int_equal(lh_unwatch_start(&stream->watch, NULL), LH_OK);
}

static void watches_can_be_started_in_callbacks(void **state)
{
    struct stream stream = {.done = 0};
    struct lh_client *client = stream.client = open_own();
    (void)state;
    assert_int_equal(
        lh_watch_start(client, "", on_change, watch_more, &stream, &stream.watch, NULL), LH_OK);
    turn_until(client, &stream.done, 2);
    pass(client, "k");
    turn_until(client, &stream.grants, 1);
    assert_null(stream.watch);
    assert_int_equal(lh_unwatch_start(&stream.second, NULL), LH_OK);
    lh_close(&client);
}

static void a_wrong_watch_is_refused(void **state)
{
    char longest[LH_KEY_SIZE + 1];
    struct stream stream = {.done = 0};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ASSERT_OUTCOME(
        lh_watch_start(client, longest, on_change, on_watching, &stream, &stream.watch, &report),
        LH_USAGE, &report);
    ASSERT_OUTCOME(lh_watch_start(client, "", on_change, NULL, &stream, &stream.watch, &report),
                   LH_USAGE, &report);
    ASSERT_OUTCOME(lh_watch_start(client, "", NULL, on_watching, &stream, &stream.watch, &report),
                   LH_USAGE, &report);
    ASSERT_OUTCOME(lh_watch_start(client, "", on_change, on_watching, &stream, NULL, &report),
                   LH_USAGE, &report);
    ASSERT_OUTCOME(lh_unwatch_start(NULL, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_peek_start(client, "", NULL, on_watching, &stream, &report), LH_USAGE,
                   &report);
    ASSERT_OUTCOME(lh_peek_start(client, "k", NULL, NULL, &stream, &report), LH_USAGE, &report);
    assert_int_equal(lh_run(client), LH_USAGE); /* it has its own thread */
    assert_null(stream.watch);
    lh_close(&client);
    assert_int_equal(stream.done, 0);
}

/* ---- peeks ---- */

static void a_started_peek_uses_the_cache(void **state)
{
    struct stream stream = {.done = 0};
    struct lh_client *client = open_own();
    struct lh_lease *lease = kit_acquire(client, "held", NULL);
    char key[] = "held"; /* overwritten before the loop runs */
    int64_t cached_ms = -1, until_ms = kit_now_ms() + KIT_WITHIN_MS;
    (void)state;
    assert_int_equal(lh_peek_start(client, key, &cached_ms, on_watching, &stream, NULL), LH_OK);
    memset(key, '?', 4);
    assert_int_equal(stream.done, 0); /* never from within */
    turn_until(client, &stream.done, 1);
    assert_int_equal(stream.outcome, LH_BUSY);
    assert_int_equal(cached_ms, -1);
    for (unsigned i = 2; cached_ms < 0 && kit_now_ms() < until_ms; i++) {
        assert_int_equal(lh_peek_start(client, "held", &cached_ms, on_watching, &stream, NULL),
                         LH_OK);
        turn_until(client, &stream.done, i);
        assert_int_equal(stream.outcome, LH_BUSY);
    }
    assert_true(cached_ms >= 0);
    unsigned done = stream.done;
    assert_int_equal(lh_peek_start(client, "free", NULL, on_watching, &stream, NULL), LH_OK);
    turn_until(client, &stream.done, done + 1);
    assert_int_equal(stream.outcome, LH_OK);
    kit_release(&lease, LH_OK);
    assert_int_equal(lh_peek_start(client, "held", NULL, on_watching, &stream, NULL), LH_OK);
    lh_close(&client);
    assert_int_equal(stream.done, done + 2);
}

/* ---- turns ---- */

/* Acquisitions that are left to their TTL; each can start another one in its callback. */
struct series {
    struct lh_client *client;
    unsigned done, follows, number;
};

static void start_one(struct series *series);

static void on_granted(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct series *series = user;
    assert_int_equal(report->outcome, LH_OK);
    assert_true(lh_token_at(lease, 0) != 0);
    series->done++;
    if (series->follows > 0) {
        series->follows--;
        start_one(series);
    }
}

static void start_one(struct series *series)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    char key[16];
    options.unbound = options.detach = true;
    (void)snprintf(key, sizeof key, "k%u", series->number++);
    kit_started(lh_acquire_start(series->client, key, &options, on_granted, series, NULL));
}

static void one_step_handles_all_started_calls(void **state)
{
    struct series series = {.client = open_own()};
    (void)state;
    for (int i = 0; i < BATCH; i++)
        start_one(&series);
    assert_true(is_readable(series.client));
    assert_int_equal(lh_step(series.client), LH_OK);
    assert_int_equal(series.done, BATCH);
    assert_false(is_readable(series.client));
    series.follows = CHAIN; /* started within callbacks: the same step handles them */
    start_one(&series);
    assert_int_equal(lh_step(series.client), LH_OK);
    assert_int_equal(series.done, BATCH + 1 + CHAIN);
    assert_false(is_readable(series.client));
    lh_close(&series.client);
}

static void a_run_needs_no_descriptor(void **state)
{
    struct series series = {.client = open_own()};
    (void)state;
    assert_int_equal(lh_run(series.client), LH_OK);
    for (int round = 0; round < 3; round++) {
        series.done = 0;
        series.follows = CHAIN;
        for (int i = 0; i < BATCH; i++)
            start_one(&series);
        assert_false(is_readable(series.client));
        assert_int_equal(round == 1 ? lh_step(series.client) : lh_run(series.client), LH_OK);
        assert_int_equal(series.done, BATCH + CHAIN);
        assert_false(is_readable(series.client));
    }
    lh_close(&series.client);
}

/* A chain without end returns to the caller, and goes on in the next steps. */
static void an_endless_chain_leaves_room_for_others(void **state)
{
    enum { LONG = 5000 };
    struct series series = {.client = open_own(), .follows = LONG};
    (void)state;
    assert_int_equal(lh_run(series.client), LH_OK);
    start_one(&series);
    assert_int_equal(lh_run(series.client), LH_OK);
    assert_true(series.done < LONG);
    while (series.done < LONG + 1) {
        struct pollfd wait = {.fd = lh_fd(series.client), .events = POLLIN};
        assert_int_equal(poll(&wait, 1, KIT_WITHIN_MS), 1);
        assert_int_equal(lh_step(series.client), LH_OK);
    }
    lh_close(&series.client);
}

/* Calls that were started before, and by callbacks meanwhile, are not stuck in a blocking call. */
static void blocking_calls_and_close_work_after_a_run(void **state)
{
    struct series series = {.client = open_own(), .follows = CHAIN};
    struct stream stream = {.done = 0};
    (void)state;
    assert_int_equal(lh_run(series.client), LH_OK);
    start_one(&series);
    assert_int_equal(kit_state(series.client, "blocking"), LH_FREE); /* runs the loop */
    turn_until(series.client, &series.done, CHAIN + 1);
    watch(series.client, "", &stream);
    assert_int_equal(lh_run(series.client), LH_OK);
    turn_until(series.client, &stream.done, 1);
    assert_int_equal(lh_run(series.client), LH_OK);
    assert_int_equal(lh_peek_start(series.client, "k", NULL, on_watching, &stream, NULL), LH_OK);
    lh_close(&series.client);
    assert_int_equal(stream.done, 2);
}

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)lease;
    (void)report;
    *(unsigned *)user += 1;
}

/* Timers are due in lh_run(), too: a wait ends, and a lease is renewed. */
static void a_run_serves_timers(void **state)
{
    struct stream stream = {.done = 0};
    struct lh_acquire_options brief = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_own();
    unsigned lost = 0;
    (void)state;
    brief.ttl_ms = 300;
    brief.on_lost = on_lost;
    brief.user = &lost;
    struct lh_lease *lease = kit_acquire(client, "k", &brief);
    brief.wait_ms = 100;
    assert_int_equal(lh_run(client), LH_OK);
    kit_started(lh_acquire_start(client, "k", &brief, on_watching, &stream, NULL));
    int64_t until_ms = kit_now_ms() + 1000;
    while (kit_now_ms() < until_ms) {
        assert_int_equal(lh_run(client), LH_OK);
        kit_sleep_ms(1);
        if (is_readable(client))
            assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(stream.done, 1);
    assert_int_equal(stream.outcome, LH_BUSY);
    assert_int_equal(lost, 0);
    assert_true(lh_held(lease));
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

int main(void)
{
#define ON_BOTH(test) ON_MEMORY(test), ON_FILE(test)
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_started_watch_gets_every_change_once),
        ON_BOTH(a_watch_can_be_ended_while_others_are_notified),
        ON_BOTH(a_watch_that_is_ended_at_once_calls_nobody),
        ON_BOTH(watches_can_be_started_in_callbacks),
        ON_BOTH(a_wrong_watch_is_refused),
        ON_BOTH(a_started_peek_uses_the_cache),
        ON_MEMORY(one_step_handles_all_started_calls),
        ON_MEMORY(a_run_needs_no_descriptor),
        ON_MEMORY(an_endless_chain_leaves_room_for_others),
        ON_BOTH(blocking_calls_and_close_work_after_a_run),
        ON_MEMORY(a_run_serves_timers),
    };
    return cmocka_run_group_tests_name("lib_turns", tests, NULL, NULL);
}

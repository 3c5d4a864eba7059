/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's service to its callers while the store works. */
#include "runtime_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 300 };

static struct process *const us = &processes[0];
static struct process *const them = &processes[1];

static struct caller callers[MANY];
static char keys[MANY][16];

static void acquire(struct process *process, struct caller *caller, const char *key, bool waits)
{
    struct lease_options options = options_for(key, waits);
    start(process, caller, key, &options);
    tick(process);
}

static void a_lease_from_start_to_end(void **state)
{
    (void)state;
    struct caller a = {0};
    acquire(us, &a, "k", /* waits= */ false);
    assert_told(&a, NOTIFY_HELD);
    assert_true(a.token == token_in_store("k") && a.token != 0);
    assert_int_equal(a.deadline_ms, START_MS + 6000);
    assert_true(executor_holds(a.task));
    run_until(START_MS + 30000);
    assert_told(&a, NOTIFY_HELD);
    assert_in_range(a.renewed, 9, 12);
    assert_true(a.deadline_ms > now_ms + 2500);
    let_go(&a);
    tick(us);
    assert_ended(&a, OUTCOME_OK);
    assert_true(token_in_store("k") == 0);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
    assert_true(us->wake_at_ms == NEVER);
}

static void nothing_is_told_but_in_a_tick(void **state)
{
    (void)state;
    struct caller a = {0};
    struct lease_options options = options_for("k", /* waits= */ false);
    start(us, &a, "a", &options);
    assert_int_equal(us->wake_at_ms, now_ms); /* it requests one */
    assert_told(&a, -1);
    assert_int_equal(us->submitted, 0);
    us->reply_mode = ANSWERS_LATER;
    tick(us);
    assert_int_equal(us->submitted, 1);
    assert_true(answer_kept(us));
    assert_told(&a, -1);
    assert_int_equal(us->wake_at_ms, now_ms);
    tick(us);
    assert_told(&a, NOTIFY_HELD);
}

static void a_try_reports_the_holder(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(them, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ false);
    assert_ended(&b, OUTCOME_BUSY);
    assert_string_equal(b.holder, "us");
}

static void a_waiter_is_woken(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(them, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true);
    assert_told(&b, NOTIFY_WAITING);
    run_until(START_MS + 1000);
    let_go(&a);
    run_until(START_MS + 1001);
    assert_ended(&a, OUTCOME_OK);
    assert_told(&b, NOTIFY_HELD);
    assert_true(b.token > a.token);
}

/* No store notifies a process of its own writes: the reply wakes the local waiters concerned. */
static void our_own_write_wakes_us(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    us->takes_notices = false;
    acquire(us, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true);
    assert_told(&b, NOTIFY_WAITING);
    us->submitted = 0;
    let_go(&a);
    tick(us);
    assert_ended(&a, OUTCOME_OK);
    assert_told(&b, NOTIFY_HELD);
    assert_in_range(us->submitted, 2, 3);
    assert_int_equal(b.renewed, 0);
}

static void a_lost_notice_costs_a_look(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    us->takes_notices = false;
    acquire(them, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true);
    let_go(&a);
    run_until(START_MS + 100);
    assert_told(&b, NOTIFY_WAITING);
    run_until(START_MS + 7000);
    assert_told(&b, NOTIFY_HELD);
}

static void a_lease_begins_with_what_was_last_heard(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(them, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true); /* bets on a free key, then queues */
    assert_int_equal(us->submitted, 2);
    let_go(&b);
    tick(us);
    assert_ended(&b, OUTCOME_BUSY);
    us->submitted = 0;
    acquire(us, &b, "k", /* waits= */ true);
    assert_told(&b, NOTIFY_WAITING);
    assert_int_equal(us->submitted, 1);
    struct stamp at;
    const struct record *known = executor_cached_record(us->executor, "k", &at);
    assert_non_null(known);
    assert_int_equal(known->waiter_count, 1);
    assert_null(executor_cached_record(us->executor, "other", &at));
}

static void start_many(struct process *process, int64_t ttl_ms)
{
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%zu", i);
        struct lease_options options = options_for(keys[i], /* waits= */ false);
        options.request.ttl_ms = ttl_ms;
        callers[i] = (struct caller){0};
        start(process, &callers[i], keys[i], &options);
    }
}

static void requests_of_one_turn_travel_together(void **state)
{
    (void)state;
    us->reply_mode = ANSWERS_LATER;
    start_many(us, /* ttl_ms= */ 30000);
    tick(us);
    assert_int_equal(us->submitted, MANY);
    assert_int_equal(us->ticks, 1);
    (void)answer_kept(us);
    tick(us);
    for (size_t i = 0; i < MANY; i++)
        assert_told(&callers[i], NOTIFY_HELD);
}

static void renewals_are_spread_and_batched(void **state)
{
    (void)state;
    start_many(us, /* ttl_ms= */ 30000);
    tick(us);
    us->submitted = us->ticks = 0;
    run_until(START_MS + 10500);
    assert_int_equal(us->submitted, MANY);
    /* A second of jitter in windows of 50 ms. */
    assert_in_range(us->ticks, 10, 22);
    run_until(START_MS + 90000);
    for (size_t i = 0; i < MANY; i++) {
        assert_told(&callers[i], NOTIFY_HELD);
        assert_true(executor_holds(callers[i].task));
    }
}

static void many_short_leases_live_on(void **state)
{
    (void)state;
    start_many(us, /* ttl_ms= */ 300);
    tick(us);
    run_until(START_MS + 10000);
    for (size_t i = 0; i < MANY; i++)
        assert_true(callers[i].notify == NOTIFY_HELD && executor_holds(callers[i].task));
    assert_int_equal(executor_counts(us->executor).lost, 0);
    for (size_t i = 0; i < MANY; i++)
        let_go(&callers[i]);
    tick(us);
    for (size_t i = 0; i < MANY; i++)
        assert_ended(&callers[i], OUTCOME_OK);
}

static void errands_are_tasks_too(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(them, &a, "k", /* waits= */ false);
    struct lease_options look = operation_options(VERB_QUERY, "k", /* token= */ 0);
    start(us, &b, "look", &look);
    tick(us);
    assert_ended(&b, OUTCOME_OK);
    assert_string_equal(b.holder, "us");
    struct lease_options renew = operation_options(VERB_RENEW, "k", a.token);
    start(us, &b, "renew", &renew);
    tick(us);
    assert_ended(&b, OUTCOME_OK);
    struct lease_options stale = operation_options(VERB_RELEASE, "k", a.token + GRANT_STEP);
    start(us, &b, "stale", &stale);
    tick(us);
    assert_ended(&b, OUTCOME_STALE);
    struct lease_options release = operation_options(VERB_RELEASE, "k", a.token);
    start(us, &b, "release", &release);
    tick(us);
    assert_ended(&b, OUTCOME_OK);
    assert_true(token_in_store("k") == 0);
}

static void a_break_reaches_the_holder(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(us, &a, "k", /* waits= */ false);
    struct lease_options options = operation_options(VERB_BREAK, "k", /* token= */ 0);
    start(them, &b, "break", &options);
    tick(them);
    assert_ended(&b, OUTCOME_OK);
    run_until(START_MS + 1);
    assert_told(&a, NOTIFY_LOST);
    assert_string_equal(a.why, "broken by an operator");
    assert_in_range(a.kill_at_ms, now_ms, now_ms + 5000);
    let_go(&a);
    run_until(START_MS + 2);
    assert_ended(&a, OUTCOME_LOST);
    assert_true(token_in_store("k") == 0);
}

struct watched {
    struct store_reply reply;
    char bytes[1024];
};

static void keep_answer(void *caller, const struct store_reply *reply)
{
    struct watched *watched = caller;
    assert_true(reply->length <= sizeof watched->bytes);
    watched->reply = *reply;
    if (reply->present)
        memcpy(watched->bytes, reply->bytes, reply->length);
    watched->reply.bytes = watched->bytes;
    watched->reply.key = "k";
}

/* A watch also reports our own writes: they must not cause another write. */
static void a_watch_event_alone_costs_nothing(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct watched watched;
    struct store_request read = {.verb = VERB_STORE_READ, .key = "k"};
    acquire(us, &a, "k", /* waits= */ false);
    them->takes_notices = false;
    acquire(them, &b, "k", /* waits= */ true);
    us->submitted = them->submitted = 0;
    us->site.submit(us, &read, keep_answer, &watched);
    executor_on_change(us->executor, &watched.reply);
    executor_on_change(them->executor, &watched.reply);
    run_until(now_ms + 10);
    assert_int_equal(us->submitted, 1); /* our own read */
    assert_int_equal(them->submitted, 0);
    let_go(&a);
    tick(us);
    us->site.submit(us, &read, keep_answer, &watched);
    executor_on_change(them->executor, &watched.reply);
    run_until(now_ms + 10);
    assert_told(&b, NOTIFY_HELD);
}

static void start_again(struct caller *caller, const struct task_news *news)
{
    struct lease_options options = options_for("k", /* waits= */ false);
    if (news->notify != NOTIFY_ENDED)
        return;
    caller->then = NULL;
    start(caller->process, &callers[1], "again", &options);
}

static void callers_may_ask_anew_while_they_are_told(void **state)
{
    (void)state;
    struct caller a = {.then = start_again};
    callers[1] = (struct caller){0};
    acquire(us, &a, "k", /* waits= */ false);
    let_go(&a);
    tick(us);
    assert_ended(&a, OUTCOME_OK);
    assert_told(&callers[1], NOTIFY_HELD);
}

static void forget_oneself(struct caller *caller, const struct task_news *news)
{
    if (news->notify != NOTIFY_HELD)
        return;
    executor_forget(caller->task);
    caller->task = NULL;
}

static void a_forgotten_lease_stays_in_the_store(void **state)
{
    (void)state;
    struct caller a = {.then = forget_oneself};
    acquire(us, &a, "k", /* waits= */ false);
    assert_told(&a, NOTIFY_HELD);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
    assert_true(token_in_store("k") == a.token);
}

static void meta_and_words_are_copied(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    char holder[] = "somebody";
    struct meta meta = {0};
    assert_true(meta_add(&meta, "job", "42"));
    struct lease_options options = options_for("k", /* waits= */ false);
    options.request.holder = holder;
    options.request.meta = &meta;
    start(us, &a, "a", &options);
    memset(&meta, 'x', sizeof meta);
    memset(holder, 'x', sizeof holder);
    tick(us);
    assert_told(&a, NOTIFY_HELD);
    struct lease_options look = operation_options(VERB_QUERY, "k", /* token= */ 0);
    start(them, &b, "look", &look);
    tick(them);
    assert_string_equal(b.holder, "somebody");
    struct stamp at;
    const struct record *known = executor_cached_record(us->executor, "k", &at);
    assert_memory_equal(known->grants[0].meta.text,
                        "job\0"
                        "42",
                        7);
}

/* A million keys locked in the past must leave nothing behind but the newest copies. */
static void copies_are_bounded(void **state)
{
    (void)state;
    char key[32];
    struct caller a = {0};
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        acquire(us, &a, key, /* waits= */ false);
        let_go(&a);
        tick(us);
    }
    struct executor_counts counts = executor_counts(us->executor);
    assert_true(counts.copies > 1000);
    assert_true(counts.copy_bytes <= (uint64_t)4 * 1024 * 1024);
    assert_int_equal(counts.tasks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXECUTOR_TEST(a_lease_from_start_to_end),
        EXECUTOR_TEST(nothing_is_told_but_in_a_tick),
        EXECUTOR_TEST(a_try_reports_the_holder),
        EXECUTOR_TEST(a_waiter_is_woken),
        EXECUTOR_TEST(our_own_write_wakes_us),
        EXECUTOR_TEST(a_lost_notice_costs_a_look),
        EXECUTOR_TEST(a_lease_begins_with_what_was_last_heard),
        EXECUTOR_TEST(requests_of_one_turn_travel_together),
        EXECUTOR_TEST(renewals_are_spread_and_batched),
        EXECUTOR_TEST(many_short_leases_live_on),
        EXECUTOR_TEST(errands_are_tasks_too),
        EXECUTOR_TEST(a_break_reaches_the_holder),
        EXECUTOR_TEST(a_watch_event_alone_costs_nothing),
        EXECUTOR_TEST(callers_may_ask_anew_while_they_are_told),
        EXECUTOR_TEST(a_forgotten_lease_stays_in_the_store),
        EXECUTOR_TEST(meta_and_words_are_copied),
        EXECUTOR_TEST(copies_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The executor when the store fails, hangs or is too slow, and when out of memory. */
#include "runtime_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 200 };

static struct process *const us = &processes[0];
static struct process *const them = &processes[1];
static struct caller callers[MANY];
static struct caller crowd[1500];
static size_t crowd_count;

static void acquire(struct process *process, struct caller *caller, const char *key, bool waits)
{
    struct lease_options options = options_for(key, waits);
    start(process, caller, key, &options);
    tick(process);
}

static void acquire_many(struct process *process)
{
    char key[16];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "k%zu", i);
        struct lease_options options = options_for(key, /* waits= */ false);
        callers[i] = (struct caller){0};
        start(process, &callers[i], "many", &options);
    }
    tick(process);
}

static void lost_is_told_in_time_when_the_store_never_answers(void **state)
{
    (void)state;
    acquire_many(us);
    us->reply_mode = ANSWERS_NEVER;
    run_until(START_MS + 5999);
    for (size_t i = 0; i < MANY; i++)
        assert_true(callers[i].notify == NOTIFY_HELD && executor_holds(callers[i].task));
    run_until(START_MS + 6000);
    for (size_t i = 0; i < MANY; i++) {
        assert_told(&callers[i], NOTIFY_LOST);
        assert_int_equal(callers[i].told_at_ms, START_MS + 6000);
        assert_false(executor_holds(callers[i].task));
    }
    assert_int_equal(executor_counts(us->executor).lost, MANY);
}

/* The process was stopped: a pending reply must not be handled before the deadline. */
static void deadlines_come_first(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(us, &a, "a", /* waits= */ false);
    us->reply_mode = ANSWERS_LATER;
    run_until(START_MS + 3000); /* the renewal is in flight */
    struct lease_options options = options_for("b", /* waits= */ false);
    start(us, &b, "b", &options);
    now_ms = START_MS + 6000;
    assert_true(answer_kept(us));
    tick(us);
    assert_told(&a, NOTIFY_LOST);
    assert_int_equal(a.renewed, 0);
    assert_told(&b, -1);
}

/* Of many pending callbacks, losses are delivered first. */
static void a_loss_is_told_before_anything_else(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0}, c = {0};
    acquire(us, &a, "a", /* waits= */ false);
    us->reply_mode = ANSWERS_LATER;
    run_until(START_MS + 3500);
    drop_kept(us);
    acquire(us, &b, "b", /* waits= */ false);
    assert_true(answer_kept(us));
    struct lease_options options = options_for("c", /* waits= */ false);
    start(us, &c, "c", &options);
    let_go(&c);
    now_ms = START_MS + 6000;
    tick(us);
    assert_told(&a, NOTIFY_LOST);
    assert_told(&b, NOTIFY_HELD);
    assert_ended(&c, OUTCOME_BUSY);
    assert_true(a.told_as < b.told_as && a.told_as < c.told_as);
}

static void a_renewal_in_time_is_believed_after_a_stop(void **state)
{
    (void)state;
    struct caller a = {0};
    acquire(us, &a, "a", /* waits= */ false);
    us->reply_mode = ANSWERS_LATER;
    run_until(START_MS + 3000);
    assert_true(answer_kept(us));
    now_ms = START_MS + 5999; /* late, but not too late: the reply counts, not its timer */
    tick(us);
    assert_told(&a, NOTIFY_HELD);
    assert_int_equal(a.renewed, 1);
}

static void a_dead_store_is_unavailable(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    us->reply_mode = ANSWERS_NEVER;
    acquire(us, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true);
    run_until(START_MS + 10000);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
    assert_ended(&b, OUTCOME_UNAVAILABLE);
}

static void trouble_is_retried_and_its_words_are_told(void **state)
{
    (void)state;
    struct caller a = {0};
    us->reply_mode = ANSWERS_TROUBLE;
    acquire(us, &a, "k", /* waits= */ false);
    run_until(START_MS + 120);
    assert_in_range(us->submitted, 2, 3);
    us->reply_mode = ANSWERS_AT_ONCE;
    run_until(START_MS + 1000);
    assert_told(&a, NOTIFY_HELD);
}

static void open_breaker(void)
{
    for (size_t i = 0; i < 5; i++) {
        struct lease_options options = options_for("b", /* waits= */ false);
        callers[i] = (struct caller){0};
        start(us, &callers[i], "b", &options);
    }
    us->reply_mode = ANSWERS_TROUBLE;
    tick(us);
    assert_true(executor_counts(us->executor).breaker_open);
}

static void an_open_breaker_leaves_the_store_alone(void **state)
{
    (void)state;
    open_breaker();
    us->submitted = 0;
    run_until(now_ms + 999);
    assert_int_equal(us->submitted, 0);
    run_until(now_ms + 60);
    assert_true(us->submitted <= 1);
    run_until(START_MS + 10000);
    for (size_t i = 0; i < 5; i++)
        assert_ended(&callers[i], OUTCOME_UNAVAILABLE);
    assert_in_range(us->submitted, 2, 4); /* after 1, 3 and 7 seconds */
}

static void an_open_breaker_answers_at_once_who_does_not_wait(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0}, c = {0};
    assert_int_equal(executor_retry_after(us->executor), -1);
    open_breaker();
    us->submitted = 0;
    acquire(us, &a, "k", /* waits= */ false);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
    struct lease_options look = operation_options(VERB_QUERY, "k", /* token= */ 0);
    start(us, &b, "k", &look);
    tick(us);
    assert_ended(&b, OUTCOME_UNAVAILABLE);
    acquire(us, &c, "k", /* waits= */ true);
    assert_told(&c, -1);
    assert_int_equal(us->submitted, 0);
    assert_int_equal(executor_retry_after(us->executor), 1000);
    us->reply_mode = ANSWERS_AT_ONCE;
    run_until(now_ms + 4000);
    assert_told(&c, NOTIFY_HELD);
    assert_int_equal(executor_retry_after(us->executor), -1);
}

/* The pause is longer than the store timeout: a wait would be useless. */
static void a_long_pause_answers_who_waits_too(void **state)
{
    (void)state;
    struct caller a = {0};
    open_breaker();
    while (executor_retry_after(us->executor) < 15000) {
        struct caller probe = {0};
        acquire(us, &probe, "k", /* waits= */ false);
        run_until(now_ms + 100);
        if (probe.notify != NOTIFY_ENDED)
            cancel(&probe);
        run_until(now_ms + 100);
    }
    acquire(us, &a, "a", /* waits= */ true);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
}

static void an_open_breaker_lets_renewals_and_releases_pass(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(us, &a, "a", /* waits= */ false);
    acquire(us, &b, "c", /* waits= */ false);
    open_breaker();
    us->submitted = 0;
    let_go(&b);
    tick(us);
    assert_int_equal(us->submitted, 1);
    run_until(START_MS + 900); /* its retries pass as well */
    assert_true(us->submitted > 2);
    run_until(START_MS + 3100); /* the renewal of a is the probe that finds the store working */
    us->reply_mode = ANSWERS_AT_ONCE;
    run_until(START_MS + 3600);
    assert_false(executor_counts(us->executor).breaker_open);
    assert_true(a.renewed > 0);
    run_until(START_MS + 6500);
    assert_ended(&b, OUTCOME_OK);
    for (size_t i = 0; i < 5; i++)
        assert_true(callers[i].notify == NOTIFY_HELD || callers[i].outcome == OUTCOME_BUSY);
}

static void a_waiter_behind_an_open_breaker_is_never_told_busy(void **state)
{
    (void)state;
    struct caller a = {0};
    open_breaker();
    struct lease_options options = options_for("k", /* waits= */ true);
    options.wait_ms = 2000;
    start(us, &a, "a", &options);
    run_until(START_MS + 20000);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
}

/* More than the store accepts at once: holders' requests go first, and none is lost. */
static void too_many_requests_wait_their_turn(void **state)
{
    (void)state;
    char key[16];
    us->reply_mode = ANSWERS_LATER;
    for (size_t i = 0; i < 1500; i++) {
        (void)snprintf(key, sizeof key, "k%zu", i);
        struct lease_options options = options_for(key, /* waits= */ false);
        crowd[i] = (struct caller){0};
        start(us, &crowd[i], "crowd", &options);
    }
    tick(us);
    assert_int_equal(us->submitted, 512);
    while (answer_kept(us))
        tick(us);
    for (size_t i = 0; i < 1500; i++)
        assert_told(&crowd[i], NOTIFY_HELD);
    assert_int_equal(us->submitted, 1500);
}

static void start_another(struct caller *caller, const struct task_news *news)
{
    char key[16];
    if ((caller != NULL && news->notify != NOTIFY_HELD) || crowd_count == 1500)
        return;
    if (caller != NULL)
        caller->then = NULL;
    struct caller *next = &crowd[crowd_count++];
    (void)snprintf(key, sizeof key, "k%zu", crowd_count);
    struct lease_options options = options_for(key, /* waits= */ false);
    *next = (struct caller){.then = start_another};
    start(us, next, "crowd", &options);
}

/* Callers that request again as soon as they are served must not take every free slot. */
static void a_holder_passes_constant_requests(void **state)
{
    (void)state;
    struct caller holder = {0};
    acquire(us, &holder, "a", /* waits= */ false);
    us->reply_mode = ANSWERS_LATER;
    for (crowd_count = 0; crowd_count < 512;)
        start_another(NULL, NULL);
    tick(us);
    let_go(&holder);
    tick(us);
    for (int turn = 0; turn < 2; turn++) {
        assert_true(answer_kept(us));
        tick(us);
    }
    assert_ended(&holder, OUTCOME_OK);
}

static void a_request_without_a_waiter_is_not_sent(void **state)
{
    (void)state;
    char key[16];
    us->reply_mode = ANSWERS_LATER;
    for (size_t i = 0; i < 600; i++) {
        (void)snprintf(key, sizeof key, "k%zu", i);
        struct lease_options options = options_for(key, /* waits= */ false);
        crowd[i] = (struct caller){0};
        start(us, &crowd[i], "crowd", &options);
    }
    tick(us);
    for (size_t i = 512; i < 600; i++) {
        executor_forget(crowd[i].task);
        crowd[i].task = NULL;
    }
    while (answer_kept(us))
        tick(us);
    assert_int_equal(us->submitted, 512);
}

/* Brings a lease on "k" into a state, cancels it there, and checks that the store is empty. */
static void cancel_when(void (*reach)(struct caller *caller))
{
    struct caller a = {0};
    reach(&a);
    cancel(&a);
    us->reply_mode = ANSWERS_AT_ONCE;
    (void)answer_kept(us);
    run_until(now_ms + 20000);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
}

static void reach_unstarted(struct caller *caller)
{
    struct lease_options options = options_for("k", /* waits= */ true);
    start(us, caller, "a", &options);
}

static void reach_asking(struct caller *caller)
{
    us->reply_mode = ANSWERS_LATER;
    acquire(us, caller, "k", /* waits= */ true);
}

static void reach_held(struct caller *caller)
{
    acquire(us, caller, "k", /* waits= */ true);
    assert_told(caller, NOTIFY_HELD);
}

static void reach_renewing(struct caller *caller)
{
    reach_held(caller);
    us->reply_mode = ANSWERS_LATER;
    run_until(now_ms + 3000);
}

static void reach_lost(struct caller *caller)
{
    reach_held(caller);
    us->reply_mode = ANSWERS_LATER;
    run_until(now_ms + 6000);
    assert_told(caller, NOTIFY_LOST);
    drop_kept(us);
}

static void reach_releasing(struct caller *caller)
{
    reach_held(caller);
    us->reply_mode = ANSWERS_LATER;
    let_go(caller);
    tick(us);
}

static void reach_errand(struct caller *caller)
{
    struct lease_options options = operation_options(VERB_QUERY, "k", /* token= */ 0);
    us->reply_mode = ANSWERS_LATER;
    start(us, caller, "a", &options);
    tick(us);
}

static void cancelled_in_any_state_nothing_is_left(void **state)
{
    (void)state;
    static void (*const reaches[])(struct caller *) = {
        reach_unstarted, reach_asking,    reach_held,  reach_renewing,
        reach_lost,      reach_releasing, reach_errand};
    for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
        cancel_when(reaches[i]);
        assert_true(token_in_store("k") == 0);
        assert_int_equal(waiters_in_store("k"), 0);
    }
}

static void a_cancelled_waiter_leaves_the_line(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    acquire(them, &a, "k", /* waits= */ false);
    acquire(us, &b, "k", /* waits= */ true);
    assert_int_equal(waiters_in_store("k"), 1);
    cancel(&b);
    run_until(now_ms + 10);
    assert_told(&b, NOTIFY_WAITING);
    assert_int_equal(waiters_in_store("k"), 0);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
}

/* A release before any request was sent needs no store. */
static void let_go_before_the_first_tick_costs_nothing(void **state)
{
    (void)state;
    struct caller a = {0};
    reach_unstarted(&a);
    let_go(&a);
    tick(us);
    assert_ended(&a, OUTCOME_BUSY);
    assert_int_equal(us->submitted, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXECUTOR_TEST(lost_is_told_in_time_when_the_store_never_answers),
        EXECUTOR_TEST(deadlines_come_first),
        EXECUTOR_TEST(a_loss_is_told_before_anything_else),
        EXECUTOR_TEST(a_renewal_in_time_is_believed_after_a_stop),
        EXECUTOR_TEST(a_dead_store_is_unavailable),
        EXECUTOR_TEST(trouble_is_retried_and_its_words_are_told),
        EXECUTOR_TEST(an_open_breaker_leaves_the_store_alone),
        EXECUTOR_TEST(an_open_breaker_answers_at_once_who_does_not_wait),
        EXECUTOR_TEST(a_long_pause_answers_who_waits_too),
        EXECUTOR_TEST(an_open_breaker_lets_renewals_and_releases_pass),
        EXECUTOR_TEST(a_waiter_behind_an_open_breaker_is_never_told_busy),
        EXECUTOR_TEST(too_many_requests_wait_their_turn),
        EXECUTOR_TEST(a_holder_passes_constant_requests),
        EXECUTOR_TEST(a_request_without_a_waiter_is_not_sent),
        EXECUTOR_TEST(cancelled_in_any_state_nothing_is_left),
        EXECUTOR_TEST(a_cancelled_waiter_leaves_the_line),
        EXECUTOR_TEST(let_go_before_the_first_tick_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

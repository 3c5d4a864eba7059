/* SPDX-License-Identifier: Apache-2.0 */
/* The local queue when waits end, callers leave, the store fails, or a grant is lost. */
#include "runtime_kit.h"

#include <stdio.h>
#include <string.h>

static struct process *const us = &processes[0];
static struct process *const them = &processes[1];

static void ask_for(struct process *process, struct caller *caller, int64_t wait_ms)
{
    struct lease_options options = options_for("k", wait_ms != 0);
    options.wait_ms = wait_ms;
    *caller = (struct caller){0};
    start(process, caller, "k", &options);
    tick(process);
}

static void release(struct caller *caller)
{
    struct process *process = caller->process;
    let_go(caller);
    tick(process);
}

static void assert_nothing_left(void)
{
    struct local_queue_counts counts = local_queue_counts(us->queue);
    assert_int_equal(counts.keys, 0);
    assert_int_equal(counts.waiters, 0);
    assert_int_equal(counts.waiting, 0);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
}

static void a_wait_behind_our_own_holder_ends_in_time(void **state)
{
    (void)state;
    struct caller a, b;
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, 2000);
    run_until(START_MS + 1999);
    assert_told(&b, NOTIFY_WAITING);
    run_until(START_MS + 2000);
    assert_ended(&b, OUTCOME_BUSY);
    assert_string_equal(b.why, "not granted within the wait");
    assert_int_equal(us->submitted, 1);
    assert_told(&a, NOTIFY_HELD);
}

static void a_wait_behind_others_is_written_out(void **state)
{
    (void)state;
    struct caller a, b;
    ask_for(them, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, 2000);
    assert_int_equal(waiters_in_store("k"), 1);
    run_until(START_MS + 2001);
    assert_ended(&b, OUTCOME_BUSY);
    assert_string_equal(b.why, "not granted within the wait");
    assert_int_equal(waiters_in_store("k"), 0);
    assert_nothing_left();
}

/* The first waiter leaves; the process's queue entry stays for the next one. */
static void the_place_is_the_process_s(void **state)
{
    (void)state;
    struct caller a, b, c;
    ask_for(them, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, 2000);
    ask_for(us, &c, WAIT_WITHOUT_LIMIT);
    us->submitted = 0;
    run_until(START_MS + 2001);
    assert_ended(&b, OUTCOME_BUSY);
    assert_int_equal(us->submitted, 0);
    assert_int_equal(waiters_in_store("k"), 1);
    release(&a);
    run_until(START_MS + 2010);
    assert_told(&c, NOTIFY_HELD);
}

static void take_long(struct caller *caller, const struct task_news *news)
{
    (void)caller;
    (void)news;
    now_ms += 10;
}

/* Our own tick takes longer than the wait, and no request was sent yet. */
static void a_slow_tick_is_not_the_stores_silence(void **state)
{
    (void)state;
    struct caller holder, slow = {.then = take_long}, brief = {0};
    struct lease_options waits = options_for("other", /* waits= */ true);
    struct lease_options asks = options_for("k", /* waits= */ false);
    waits.wait_ms = 5;
    ask_for(us, &holder, WAIT_WITHOUT_LIMIT);
    start(us, &brief, "brief", &waits);
    start(us, &slow, "slow", &asks);
    tick(us);
    assert_ended(&slow, OUTCOME_BUSY);
    assert_told(&brief, NOTIFY_HELD);
}

/* A wait shorter than the round trip: the reply in flight is still awaited. */
static void a_grant_on_its_way_is_heard_out(void **state)
{
    (void)state;
    struct caller a;
    us->reply_mode = ANSWERS_LATER;
    ask_for(us, &a, 5);
    run_until(START_MS + 100);
    assert_told(&a, -1);
    assert_true(answer_kept(us));
    tick(us);
    assert_told(&a, NOTIFY_HELD);
}

/* The process was stopped past the wait and past the reply timeout, and is woken by a notification:
 * this tick must terminate. */
static void an_answer_overdue_at_the_end_of_a_wait(void **state)
{
    (void)state;
    struct caller a;
    us->reply_mode = ANSWERS_LATER;
    ask_for(us, &a, 5);
    now_ms = START_MS + 60000;
    executor_on_notify(us->executor, "k", /* current= */ NULL);
    tick(us);
    run_until(now_ms + 1000);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
}

static void trouble_at_the_end_of_a_wait_is_unavailable(void **state)
{
    (void)state;
    struct caller a, b;
    us->reply_mode = ANSWERS_NEVER;
    ask_for(us, &a, 5000);
    ask_for(us, &b, 4000);
    run_until(START_MS + 5000);
    assert_ended(&b, OUTCOME_UNAVAILABLE);
    assert_in_range(b.told_at_ms, START_MS + 4000, START_MS + 4001);
    assert_ended(&a, OUTCOME_UNAVAILABLE);
    assert_in_range(a.told_at_ms, START_MS + 5000, START_MS + 5001);
}

/* It has no holder any more, but the store does not report so: that is no `busy`. */
static void a_wait_behind_a_swallowed_release_is_unavailable(void **state)
{
    (void)state;
    struct caller a, b;
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    us->reply_mode = ANSWERS_NEVER;
    release(&a);
    run_until(START_MS + 3000);
    ask_for(us, &b, 500);
    assert_told(&b, NOTIFY_WAITING);
    run_until(START_MS + 3501);
    assert_ended(&b, OUTCOME_UNAVAILABLE);
}

/* The last reply came before this caller started. */
static void silence_during_the_whole_wait_is_unavailable(void **state)
{
    (void)state;
    struct caller a, b, c;
    ask_for(them, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    assert_told(&b, NOTIFY_WAITING);
    us->reply_mode = ANSWERS_NEVER;
    release(&a);
    run_until(START_MS + 5); /* a query is in flight */
    ask_for(us, &c, 20);
    run_until(START_MS + 26);
    assert_ended(&c, OUTCOME_UNAVAILABLE);
    assert_told(&b, NOTIFY_WAITING);
}

static void a_dead_store_ends_every_wait(void **state)
{
    (void)state;
    struct caller callers[5];
    us->reply_mode = ANSWERS_TROUBLE;
    for (size_t i = 0; i < 5; i++)
        ask_for(us, &callers[i], WAIT_WITHOUT_LIMIT);
    run_until(START_MS + 10001);
    for (size_t i = 0; i < 5; i++)
        assert_ended(&callers[i], OUTCOME_UNAVAILABLE);
    assert_nothing_left();
}

static void a_loss_is_told_to_who_holds_it_now(void **state)
{
    (void)state;
    struct caller a, b, c;
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    ask_for(us, &c, WAIT_WITHOUT_LIMIT);
    release(&a);
    uint64_t token = b.token;
    us->reply_mode = ANSWERS_NEVER;
    run_until(START_MS + 6000);
    assert_told(&b, NOTIFY_LOST);
    assert_int_equal(b.told_at_ms, START_MS + 6000);
    assert_true(b.token == token);
    assert_false(local_queue_holds(b.claim));
    assert_told(&c, NOTIFY_WAITING);
    us->reply_mode = ANSWERS_AT_ONCE;
    release(&b);
    run_until(START_MS + 12000);
    assert_ended(&b, OUTCOME_LOST);
    assert_told(&c, NOTIFY_HELD);
    assert_true(c.token > token);
}

/* The deadline has passed unnoticed: nothing is handed over any more. */
static void an_overdue_grant_is_not_handed_off(void **state)
{
    (void)state;
    struct caller a, b;
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    us->reply_mode = ANSWERS_LATER;
    now_ms = START_MS + 6000;
    let_go(&a);
    tick(us);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, 0);
    assert_true(b.notify != NOTIFY_HELD);
    us->reply_mode = ANSWERS_AT_ONCE;
    (void)answer_kept(us);
    run_until(START_MS + 12000);
    assert_ended(&a, OUTCOME_LOST);
    assert_told(&b, NOTIFY_HELD);
}

static void dawdle(struct caller *caller, const struct task_news *news)
{
    caller->then = NULL;
    now_ms += news->notify == NOTIFY_ENDED ? 6000 : 0;
}

/* A callback takes so long that the deadline passes within one tick. */
static void a_grant_overdue_meanwhile_is_not_handed_off(void **state)
{
    (void)state;
    struct caller a, b, slow = {.then = dawdle};
    struct lease_options options = options_for("k", /* waits= */ false);
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    us->reply_mode = ANSWERS_LATER;
    start(us, &slow, "slow", &options);
    let_go(&a);
    tick(us);
    assert_ended(&slow, OUTCOME_BUSY);
    assert_int_equal(now_ms, START_MS + 6000);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, 0);
    assert_true(b.notify != NOTIFY_HELD);
    assert_told(&a, NOTIFY_LOST); /* it is released already */
}

static void let_go_while_waiting(void **state)
{
    (void)state;
    struct caller a, b, c;
    ask_for(them, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    ask_for(us, &c, WAIT_WITHOUT_LIMIT);
    release(&c);
    assert_ended(&c, OUTCOME_BUSY);
    assert_string_equal(c.why, "cancelled");
    release(&b);
    assert_ended(&b, OUTCOME_BUSY);
    assert_int_equal(waiters_in_store("k"), 0);
    assert_nothing_left();
}

static void cancelled_in_any_state_nothing_is_left(void **state)
{
    (void)state;
    struct caller a, b, c;
    struct lease_options options = options_for("k", /* waits= */ true);
    c = (struct caller){0};
    start(us, &c, "new", &options); /* not even started */
    cancel(&c);
    tick(us);
    assert_nothing_left();
    us->reply_mode = ANSWERS_LATER;
    ask_for(us, &a, 0); /* requesting for itself */
    cancel(&a);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT); /* requesting for the queue */
    cancel(&b);
    us->reply_mode = ANSWERS_AT_ONCE;
    (void)answer_kept(us);
    run_until(START_MS + 20000);
    assert_nothing_left();
    assert_true(token_in_store("k") == 0);
    ask_for(us, &a, WAIT_WITHOUT_LIMIT); /* holding, with a waiter behind it */
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    cancel(&a);
    tick(us);
    assert_told(&b, NOTIFY_HELD);
    us->reply_mode = ANSWERS_NEVER;
    run_until(now_ms + 7000);
    assert_told(&b, NOTIFY_LOST);
    us->reply_mode = ANSWERS_AT_ONCE;
    cancel(&b); /* after the loss */
    run_until(now_ms + 20000);
    assert_nothing_left();
    assert_int_equal(waiters_in_store("k"), 0);
}

static void a_forgotten_lease_stays_in_the_store(void **state)
{
    (void)state;
    struct caller a, b;
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    ask_for(us, &b, WAIT_WITHOUT_LIMIT);
    local_queue_forget(b.claim);
    tick(us);
    assert_told(&b, NOTIFY_WAITING);
    local_queue_forget(a.claim);
    tick(us);
    assert_nothing_left();
    assert_true(token_in_store("k") == a.token);
}

static void a_newcomer_does_not_slip_in_before_the_line(void **state)
{
    (void)state;
    struct caller a, b, c;
    struct lease_options options = options_for("k", /* waits= */ true);
    ask_for(us, &a, WAIT_WITHOUT_LIMIT);
    options.request.ttl_ms = 5000; /* cannot be handed over */
    b = (struct caller){0};
    start(us, &b, "b", &options);
    tick(us);
    us->reply_mode = ANSWERS_LATER;
    release(&a);
    ask_for(us, &c, 0);
    assert_ended(&c, OUTCOME_BUSY);
    assert_string_equal(c.why, "others are in line");
    while (answer_kept(us))
        tick(us);
    assert_told(&b, NOTIFY_HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCAL_QUEUE_TEST(a_wait_behind_our_own_holder_ends_in_time),
        LOCAL_QUEUE_TEST(a_wait_behind_others_is_written_out),
        LOCAL_QUEUE_TEST(the_place_is_the_process_s),
        LOCAL_QUEUE_TEST(a_slow_tick_is_not_the_stores_silence),
        LOCAL_QUEUE_TEST(a_grant_on_its_way_is_heard_out),
        LOCAL_QUEUE_TEST(an_answer_overdue_at_the_end_of_a_wait),
        LOCAL_QUEUE_TEST(trouble_at_the_end_of_a_wait_is_unavailable),
        LOCAL_QUEUE_TEST(a_wait_behind_a_swallowed_release_is_unavailable),
        LOCAL_QUEUE_TEST(silence_during_the_whole_wait_is_unavailable),
        LOCAL_QUEUE_TEST(a_dead_store_ends_every_wait),
        LOCAL_QUEUE_TEST(a_loss_is_told_to_who_holds_it_now),
        LOCAL_QUEUE_TEST(an_overdue_grant_is_not_handed_off),
        LOCAL_QUEUE_TEST(a_grant_overdue_meanwhile_is_not_handed_off),
        LOCAL_QUEUE_TEST(let_go_while_waiting),
        LOCAL_QUEUE_TEST(cancelled_in_any_state_nothing_is_left),
        LOCAL_QUEUE_TEST(a_forgotten_lease_stays_in_the_store),
        LOCAL_QUEUE_TEST(a_newcomer_does_not_slip_in_before_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

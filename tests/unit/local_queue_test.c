/* SPDX-License-Identifier: Apache-2.0 */
/* Contenders inside one process: their order, the number of store requests, their tokens. */
#include "runtime_kit.h"

#include <stdio.h>
#include <string.h>

enum { CROWD = 64 };

static struct process *const us = &processes[0];
static struct process *const them = &processes[1];
static struct caller crowd[CROWD];

static void ask(struct process *process, struct caller *caller, const char *name,
                const struct lease_options *options)
{
    *caller = (struct caller){0};
    start(process, caller, name, options);
    tick(process);
}

static void ask_plainly(struct process *process, struct caller *caller, bool waits)
{
    struct lease_options options = options_for("k", waits);
    ask(process, caller, "plain", &options);
}

static void release(struct caller *caller)
{
    struct process *process = caller->process;
    let_go(caller);
    tick(process);
}

static void crowd_in(size_t count)
{
    for (size_t i = 0; i < count; i++)
        ask_plainly(us, &crowd[i], /* waits= */ true);
}

static void a_hand_over_costs_no_request(void **state)
{
    (void)state;
    crowd_in(4);
    assert_told(&crowd[0], NOTIFY_HELD);
    assert_int_equal(us->submitted, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_told(&crowd[i + 1], NOTIFY_WAITING);
        uint64_t token = crowd[i].token;
        release(&crowd[i]);
        assert_ended(&crowd[i], OUTCOME_OK);
        assert_told(&crowd[i + 1], NOTIFY_HELD);
        assert_true(crowd[i + 1].token == token + 1);
        assert_true(local_queue_holds(crowd[i + 1].claim));
    }
    assert_int_equal(us->submitted, 1);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, 3);
    release(&crowd[3]);
    assert_ended(&crowd[3], OUTCOME_OK);
    assert_true(token_in_store("k") == 0);
    assert_int_equal(us->submitted, 2);
    assert_int_equal(local_queue_counts(us->queue).keys, 0);
}

static void after_eight_hand_overs_the_store_is_asked_again(void **state)
{
    (void)state;
    crowd_in(20);
    uint64_t before = 0;
    for (size_t i = 0; i < 20; i++) {
        assert_told(&crowd[i], NOTIFY_HELD);
        assert_true(crowd[i].token > before);
        before = crowd[i].token;
        release(&crowd[i]);
    }
    /* Grants for 0, 9 and 18, each of them released. */
    assert_int_equal(us->submitted, 6);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, 17);
}

static void the_deadline_goes_on_over_a_hand_over(void **state)
{
    (void)state;
    crowd_in(2);
    run_until(START_MS + 2000);
    release(&crowd[0]);
    assert_int_equal(crowd[1].deadline_ms, START_MS + 6000);
    run_until(START_MS + 20000);
    assert_told(&crowd[1], NOTIFY_HELD);
    assert_true(crowd[1].renewed > 3);
    assert_true(crowd[1].token == token_in_store("k") + 1);
}

static void a_waiter_of_another_process_is_not_passed_over(void **state)
{
    (void)state;
    struct caller other = {0};
    crowd_in(3);
    ask_plainly(them, &other, /* waits= */ true);
    run_until(START_MS + 3500); /* a renewal shows that another process waits */
    release(&crowd[0]);
    run_until(START_MS + 3510);
    assert_told(&other, NOTIFY_HELD);
    assert_told(&crowd[1], NOTIFY_WAITING);
    assert_int_equal(waiters_in_store("k"), 1); /* one queue entry for all of us */
    release(&other);
    run_until(START_MS + 3520);
    assert_told(&crowd[1], NOTIFY_HELD);
    assert_told(&crowd[2], NOTIFY_WAITING);
}

static void ignore(void *owner, struct task *task, const struct task_news *news)
{
    (void)owner;
    (void)task;
    (void)news;
}

static struct task *look_at_it(void)
{
    struct lease_options options = operation_options(VERB_QUERY, "k", 0);
    struct task *task =
        executor_start(us->executor, &options, &(struct executor_caller){.notify = ignore});
    assert_non_null(task);
    tick(us);
    return task;
}

/* Not only a renewal: every reply about the key counts. */
static void any_answer_tells_who_waits_outside(void **state)
{
    (void)state;
    struct caller other = {0};
    crowd_in(3);
    ask_plainly(them, &other, /* waits= */ true);
    (void)look_at_it();
    release(&crowd[0]);
    run_until(START_MS + 10);
    assert_told(&other, NOTIFY_HELD);
    assert_told(&crowd[1], NOTIFY_WAITING);
}

static void an_answer_that_nobody_awaits_counts_too(void **state)
{
    (void)state;
    struct caller other = {0};
    crowd_in(3);
    ask_plainly(them, &other, /* waits= */ true);
    us->reply_mode = ANSWERS_LATER;
    executor_forget(look_at_it());
    us->reply_mode = ANSWERS_AT_ONCE;
    assert_true(answer_kept(us));
    tick(us);
    release(&crowd[0]);
    run_until(START_MS + 10);
    assert_told(&other, NOTIFY_HELD);
    assert_told(&crowd[1], NOTIFY_WAITING);
}

static void unknown_outsiders_wait_for_eight_at_most(void **state)
{
    (void)state;
    struct caller other = {0};
    crowd_in(20);
    ask_plainly(them, &other, /* waits= */ true);
    for (size_t i = 0; i < 9; i++)
        release(&crowd[i]);
    run_until(START_MS + 10);
    assert_told(&other, NOTIFY_HELD);
    assert_told(&crowd[9], NOTIFY_WAITING);
}

static void a_try_reports_our_own_holder(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    ask_plainly(us, &a, /* waits= */ false);
    assert_told(&a, NOTIFY_HELD);
    ask_plainly(us, &b, /* waits= */ false);
    assert_ended(&b, OUTCOME_BUSY);
    assert_string_equal(b.holder, "us");
    assert_int_equal(us->submitted, 1);
    release(&a);
    ask_plainly(us, &b, /* waits= */ false);
    assert_told(&b, NOTIFY_HELD);
}

static void a_try_asks_the_store_about_others(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0}, c = {0};
    ask_plainly(them, &a, /* waits= */ false);
    ask_plainly(us, &b, /* waits= */ true);
    us->submitted = 0;
    ask_plainly(us, &c, /* waits= */ false);
    assert_ended(&c, OUTCOME_BUSY);
    assert_true(us->submitted > 0);
    assert_told(&b, NOTIFY_WAITING);
    assert_int_equal(waiters_in_store("k"), 1);
    release(&a);
    run_until(START_MS + 10);
    assert_told(&b, NOTIFY_HELD);
}

static void priority_goes_first_and_being_passed_over_counts(void **state)
{
    (void)state;
    struct caller low = {0}, high[3] = {{0}};
    struct lease_options options = options_for("k", /* waits= */ true);
    ask_plainly(us, &crowd[0], /* waits= */ true);
    ask(us, &low, "low", &options);
    options.request.priority = 2;
    for (size_t i = 0; i < 3; i++)
        ask(us, &high[i], "high", &options);
    release(&crowd[0]);
    assert_told(&high[0], NOTIFY_HELD);
    release(&high[0]);
    assert_told(&high[1], NOTIFY_HELD);
    release(&high[1]);
    assert_told(&low,
                NOTIFY_HELD); /* passed over twice: the same priority as the rest, and older */
    assert_told(&high[2], NOTIFY_WAITING);
}

static void assert_not_mixed(const struct lease_options *options)
{
    struct caller a = {0}, b = {0};
    uint64_t hand_offs = local_queue_counts(us->queue).hand_offs;
    ask_plainly(us, &a, /* waits= */ true);
    ask(us, &b, "other", options);
    assert_told(&b, NOTIFY_WAITING);
    release(&a);
    assert_told(&b, NOTIFY_HELD);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, hand_offs);
    assert_true(token_in_store("k") == b.token);
    release(&b);
    assert_ended(&b, OUTCOME_OK);
}

/* The queue entry in the store is the process's, and keeps its age. */
static void a_higher_priority_raises_the_place_outside(void **state)
{
    (void)state;
    struct caller other = {0}, low = {0}, high = {0}, lower = {0};
    struct lease_options options = options_for("k", /* waits= */ true);
    ask_plainly(them, &other, /* waits= */ true);
    ask(us, &low, "low", &options);
    uint64_t ticket = first_waiter("k")->ticket;
    options.request.priority = 5;
    ask(us, &high, "high", &options);
    assert_told(&high, NOTIFY_WAITING);
    assert_int_equal(waiters_in_store("k"), 1);
    assert_int_equal(first_waiter("k")->priority, 5);
    assert_true(first_waiter("k")->ticket == ticket);
    us->submitted = 0;
    options.request.priority = 4;
    ask(us, &lower, "lower", &options); /* nothing to be raised */
    assert_int_equal(us->submitted, 0);
    release(&other);
    run_until(START_MS + 10);
    assert_told(&high, NOTIFY_HELD);
    release(&high);
    assert_told(&lower, NOTIFY_HELD);
    release(&lower);
    assert_told(&low, NOTIFY_HELD);
    release(&low);
    assert_true(token_in_store("k") == 0);
    assert_int_equal(executor_counts(us->executor).tasks, 0);
}

static void a_different_request_gets_a_grant_of_its_own(void **state)
{
    (void)state;
    struct meta meta = {0};
    struct lease_options same = options_for("k", /* waits= */ true), other = same;
    other.request.ttl_ms = 5000;
    assert_not_mixed(&other);
    other = same;
    other.request.holder = "somebody else";
    assert_not_mixed(&other);
    other = same;
    other.request.bound = false;
    assert_not_mixed(&other);
    other = same;
    other.request.request = "mine";
    assert_not_mixed(&other);
    other = same;
    assert_true(meta_add(&meta, "job", "42"));
    other.request.meta = &meta;
    assert_not_mixed(&other);
    other = same;
    other.request.mode = MODE_SHARED;
    assert_not_mixed(&other);
}

static void readers_hold_side_by_side(void **state)
{
    (void)state;
    struct caller readers[3] = {{0}}, writer = {0}, late = {0};
    struct lease_options read = options_for("k", /* waits= */ true);
    read.request.mode = MODE_SHARED;
    for (size_t i = 0; i < 3; i++) {
        ask(us, &readers[i], "reader", &read);
        assert_told(&readers[i], NOTIFY_HELD);
        assert_true(i == 0 || readers[i].token > readers[i - 1].token);
    }
    ask_plainly(us, &writer, /* waits= */ true);
    assert_told(&writer, NOTIFY_WAITING);
    ask(us, &late, "reader", &read); /* behind the writer, as it would be in the store */
    assert_told(&late, NOTIFY_WAITING);
    for (size_t i = 0; i < 3; i++) {
        assert_told(&writer, NOTIFY_WAITING);
        release(&readers[i]);
        assert_ended(&readers[i], OUTCOME_OK);
    }
    run_until(START_MS + 10);
    assert_told(&writer, NOTIFY_HELD);
    assert_told(&late, NOTIFY_WAITING);
    release(&writer);
    run_until(START_MS + 20);
    assert_told(&late, NOTIFY_HELD);
    assert_int_equal(local_queue_counts(us->queue).hand_offs, 0);
}

static void slots_are_counted_by_the_store(void **state)
{
    (void)state;
    struct caller callers[4] = {{0}}, wrong = {0};
    struct lease_options slot = options_for("k", /* waits= */ true);
    slot.request.mode = MODE_SLOT;
    slot.request.limit = 2;
    for (size_t i = 0; i < 4; i++)
        ask(us, &callers[i], "slot", &slot);
    assert_told(&callers[0], NOTIFY_HELD);
    assert_told(&callers[1], NOTIFY_HELD);
    assert_told(&callers[2], NOTIFY_WAITING);
    assert_told(&callers[3], NOTIFY_WAITING);
    slot.request.limit = 3;
    slot.request.waits = false;
    ask(us, &wrong, "wrong", &slot);
    assert_ended(&wrong, OUTCOME_MISMATCH);
    release(&callers[0]);
    run_until(START_MS + 10);
    assert_told(&callers[2], NOTIFY_HELD);
    assert_told(&callers[3], NOTIFY_WAITING);
    assert_true(callers[2].token > callers[1].token);
}

static void a_cooldown_sends_all_home(void **state)
{
    (void)state;
    struct caller a = {0};
    struct lease_options options = options_for("k", /* waits= */ true);
    options.cooldown_ms = 60000;
    ask(us, &a, "a", &options);
    crowd_in(3);
    release(&a);
    run_until(START_MS + 10);
    assert_ended(&a, OUTCOME_OK);
    for (size_t i = 0; i < 3; i++)
        assert_ended(&crowd[i], OUTCOME_COOLING);
    assert_int_equal(local_queue_counts(us->queue).keys, 0);
}

static struct lease_options claim_of(const char *payload, const struct completion *completion,
                                     bool waits)
{
    struct lease_options options = options_for("once:k", waits);
    options.request.kind = KIND_ONCE;
    options.request.payload = payload;
    options.request.completion = completion;
    options.cooldown_ms = 60000;
    return options;
}

static const char *result_in_store(void)
{
    struct stamp at;
    const struct record *record = executor_cached_record(us->executor, "once:k", &at);
    return record != NULL ? record->once.done.result : NULL;
}

/* The waiter that sent the request has left, and another one holds: its values count. */
static void a_claim_is_its_callers_own(void **state)
{
    (void)state;
    struct caller other = {0}, a = {0}, b = {0};
    struct completion of_a = {.result = "a"}, of_b = {.result = "b"};
    struct lease_options theirs = claim_of(/* payload= */ NULL, /* completion= */ NULL, true);
    struct lease_options first = claim_of("p", &of_a, true), second = claim_of("p", &of_b, true);
    theirs.cooldown_ms = 0;
    ask(them, &other, "other", &theirs);
    ask(us, &a, "a", &first);
    ask(us, &b, "b", &second);
    assert_told(&a, NOTIFY_WAITING);
    release(&a);
    run_until(START_MS + 10);
    assert_ended(&a, OUTCOME_BUSY);
    release(&other);
    run_until(START_MS + 20000);
    assert_told(&b, NOTIFY_HELD);
    release(&b);
    run_until(now_ms + 10);
    assert_ended(&b, OUTCOME_OK);
    assert_string_equal(result_in_store(), "b");
}

static void done_is_told_to_those_who_meant_the_same(void **state)
{
    (void)state;
    struct caller a = {0}, same = {0}, other = {0}, hasty = {0};
    struct lease_options claim = claim_of("p", /* completion= */ NULL, true);
    struct lease_options another = claim_of("q", /* completion= */ NULL, false);
    ask(us, &a, "a", &claim);
    ask(us, &hasty, "hasty", &another);
    run_until(START_MS + 10);
    assert_ended(&hasty, OUTCOME_MISMATCH); /* our own hold is not the only reason */
    another = claim_of("q", /* completion= */ NULL, true);
    ask(us, &same, "same", &claim);
    ask(us, &other, "other", &another);
    release(&a);
    run_until(START_MS + 20);
    assert_ended(&a, OUTCOME_OK);
    assert_ended(&same, OUTCOME_COOLING);
    assert_ended(&other, OUTCOME_MISMATCH);
    assert_int_equal(local_queue_counts(us->queue).keys, 0);
}

static unsigned inside;
static uint64_t top_token;
static uint64_t sections;

/* Works a moment; the holder must be alone and have the highest token. */
static void work(struct caller *caller, const struct task_news *news)
{
    if (news->notify == NOTIFY_HELD) {
        assert_int_equal(inside++, 0);
        assert_true(news->token > top_token);
        top_token = news->token;
        sections++;
        local_queue_release(caller->claim);
    } else if (news->notify == NOTIFY_ENDED) {
        assert_int_equal(news->outcome, OUTCOME_OK);
        inside--;
    }
}

/* All threads request the key all the time: every section is alone, and tokens grow. */
static void a_crowd_enters_one_by_one(void **state)
{
    (void)state;
    struct lease_options options = options_for("k", /* waits= */ true);
    inside = 0;
    top_token = sections = 0;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < CROWD; i++) {
            crowd[i] = (struct caller){.then = work};
            start(&processes[i % PROCESSES], &crowd[i], "worker", &options);
        }
        run_until(now_ms + 60000);
        for (size_t i = 0; i < CROWD; i++)
            assert_ended(&crowd[i], OUTCOME_OK);
    }
    assert_int_equal(sections, 20 * CROWD);
    assert_int_equal(inside, 0);
    assert_true(token_in_store("k") == 0);
    uint64_t hand_offs =
        local_queue_counts(us->queue).hand_offs + local_queue_counts(them->queue).hand_offs;
    assert_true(hand_offs > sections / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCAL_QUEUE_TEST(a_hand_over_costs_no_request),
        LOCAL_QUEUE_TEST(after_eight_hand_overs_the_store_is_asked_again),
        LOCAL_QUEUE_TEST(the_deadline_goes_on_over_a_hand_over),
        LOCAL_QUEUE_TEST(a_waiter_of_another_process_is_not_passed_over),
        LOCAL_QUEUE_TEST(any_answer_tells_who_waits_outside),
        LOCAL_QUEUE_TEST(an_answer_that_nobody_awaits_counts_too),
        LOCAL_QUEUE_TEST(unknown_outsiders_wait_for_eight_at_most),
        LOCAL_QUEUE_TEST(a_try_reports_our_own_holder),
        LOCAL_QUEUE_TEST(a_try_asks_the_store_about_others),
        LOCAL_QUEUE_TEST(priority_goes_first_and_being_passed_over_counts),
        LOCAL_QUEUE_TEST(a_higher_priority_raises_the_place_outside),
        LOCAL_QUEUE_TEST(a_different_request_gets_a_grant_of_its_own),
        LOCAL_QUEUE_TEST(readers_hold_side_by_side),
        LOCAL_QUEUE_TEST(slots_are_counted_by_the_store),
        LOCAL_QUEUE_TEST(a_cooldown_sends_all_home),
        LOCAL_QUEUE_TEST(a_claim_is_its_callers_own),
        LOCAL_QUEUE_TEST(done_is_told_to_those_who_meant_the_same),
        LOCAL_QUEUE_TEST(a_crowd_enters_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

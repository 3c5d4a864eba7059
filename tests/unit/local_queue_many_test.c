/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local queue as a daemon uses it: many waiters of distinct holders, whose grants are left to
 * their TTL and released by token; waiters whose caller is away; repeated request ids.
 */
#include "runtime_kit.h"

#include "base/random.h"
#include "runtime/local_queue_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { SERVED = 400, VISITS_MAX = 600 };

static struct process *const us = &processes[0];
static struct caller many[LOCAL_WAITERS + 2];
static int64_t ranks[LOCAL_WAITERS + 2]; /* of those that wait, by a walk over all */
static char names[LOCAL_WAITERS + 2][16];

/* As the library does with an acquisition that is left to its TTL. */
static void detach(struct caller *caller, const struct task_news *news)
{
    if (news->notify != NOTIFY_HELD)
        return;
    local_queue_forget(caller->claim);
    caller->claim = NULL;
}

static struct lease_options remote(size_t i, int32_t priority)
{
    struct lease_options options = options_for("k", /* waits= */ true);
    (void)snprintf(names[i], sizeof names[i], "client-%zu", i);
    options.request.holder = names[i];
    options.request.bound = false;
    options.request.priority = priority;
    ranks[i] = priority;
    return options;
}

static void enter(size_t i, int32_t priority, const char *id)
{
    struct lease_options options = remote(i, priority);
    options.request.request = id;
    many[i] = (struct caller){.then = detach};
    start(us, &many[i], names[i], &options);
}

static void release_token(uint64_t token)
{
    static struct caller admin;
    struct lease_options options = operation_options(VERB_RELEASE, "k", token);
    admin = (struct caller){0};
    start(us, &admin, "release", &options);
    tick(us);
    assert_ended(&admin, OUTCOME_OK);
}

static uint64_t visits(void)
{
    const struct local_key *key = (const struct local_key *)table_find(&us->queue->keys, "k");
    return key->order.visits;
}

static size_t next_by_walk(size_t count)
{
    size_t next = 0;
    for (size_t i = 1; i < count; i++)
        if (many[i].claim != NULL && (next == 0 || ranks[i] > ranks[next]))
            next = i;
    for (size_t i = 1; i < next; i++)
        ranks[i]++;
    return next;
}

static void a_grant_among_100000_visits_few(void **state)
{
    struct random random = {.state = 3};
    uint64_t most = 0, writes = 0;
    (void)state;
    enter(0, 0, NULL);
    tick(us);
    for (size_t i = 1; i <= LOCAL_WAITERS; i++)
        enter(i, (int32_t)random_below(&random, 21) - 10, NULL);
    tick(us);
    assert_told(&many[0], NOTIFY_HELD);
    assert_int_equal(local_queue_counts(us->queue).waiting, LOCAL_WAITERS);
    enter(LOCAL_WAITERS + 1, 0, NULL);
    tick(us);
    assert_ended(&many[LOCAL_WAITERS + 1], OUTCOME_BUSY);
    assert_string_equal(many[LOCAL_WAITERS + 1].why, "queue full");
    for (size_t i = 0; i < LOCAL_WAITERS / 2; i++) {
        struct caller *gone = &many[1 + random_below(&random, LOCAL_WAITERS)];
        uint64_t before = visits();
        if (gone->claim != NULL)
            cancel(gone);
        tick(us);
        most = visits() - before > most ? visits() - before : most;
    }
    uint64_t token = many[0].token;
    us->submitted = us->reads = 0;
    for (size_t i = 0; i < SERVED; i++) {
        struct caller *next = &many[next_by_walk(LOCAL_WAITERS + 1)];
        uint64_t before = visits();
        release_token(token);
        most = visits() - before > most ? visits() - before : most;
        assert_told(next, NOTIFY_HELD);
        assert_true(next->token > token);
        token = next->token;
    }
    writes = us->submitted - us->reads;
    print_message("# at most %lu waiters visited; per hand-over %.2f writes and %.2f reads\n",
                  (unsigned long)most, (double)writes / SERVED, (double)us->reads / SERVED);
    assert_true(most <= VISITS_MAX);
    /* The release that grants, and the next queue position. */
    assert_true(writes <= 2 * (size_t)SERVED);
}

static void a_paused_waiter_is_passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        enter(i, 0, NULL);
    tick(us);
    local_queue_pause(many[1].claim);
    tick(us);
    release_token(many[0].token);
    assert_told(&many[2], NOTIFY_HELD);
    assert_told(&many[1], NOTIFY_WAITING);
    local_queue_resume(many[1].claim);
    tick(us);
    release_token(many[2].token);
    assert_told(&many[1], NOTIFY_HELD); /* its position was kept */
    release_token(many[1].token);
    assert_told(&many[3], NOTIFY_HELD);
}

/* A grant that is decided while the last waiter pauses is released. */
static void a_grant_for_a_paused_waiter_is_released(void **state)
{
    (void)state;
    us->reply_mode = ANSWERS_LATER;
    enter(0, 0, NULL);
    tick(us);
    local_queue_pause(many[0].claim); /* the granting write is in flight */
    while (answer_kept(us))
        tick(us);
    assert_true(many[0].notify != NOTIFY_HELD);
    assert_true(token_in_store("k") == 0);
    assert_int_equal(waiters_in_store("k"), 0);
    us->reply_mode = ANSWERS_AT_ONCE;
    local_queue_resume(many[0].claim);
    tick(us);
    assert_told(&many[0], NOTIFY_HELD);
}

/* The process gives up its position in the store, and takes one again. */
static void only_paused_waiters_need_no_position(void **state)
{
    (void)state;
    enter(0, 0, NULL);
    enter(1, 0, NULL);
    tick(us);
    assert_int_equal(waiters_in_store("k"), 1);
    local_queue_pause(many[1].claim);
    tick(us);
    assert_int_equal(waiters_in_store("k"), 0);
    release_token(many[0].token);
    assert_true(token_in_store("k") == 0);
    assert_told(&many[1], NOTIFY_WAITING);
    local_queue_resume(many[1].claim);
    tick(us);
    assert_told(&many[1], NOTIFY_HELD);
}

static void the_wait_of_a_paused_waiter_goes_on(void **state)
{
    struct lease_options options = remote(1, 0);
    (void)state;
    options.wait_ms = 1000;
    enter(0, 0, NULL);
    many[1] = (struct caller){0};
    start(us, &many[1], "1", &options);
    tick(us);
    local_queue_pause(many[1].claim);
    run_until(START_MS + 1500);
    assert_ended(&many[1], OUTCOME_BUSY);
}

static void paused_waiters_do_not_age(void **state)
{
    (void)state;
    enter(0, 0, NULL);
    tick(us);
    enter(1, 0, NULL);
    enter(2, 0, NULL);
    enter(3, 1, NULL);
    tick(us);
    local_queue_pause(many[1].claim);
    tick(us);
    release_token(many[0].token);
    assert_told(&many[3], NOTIFY_HELD); /* passes over 2, whose rank is 1 now */
    local_queue_resume(many[1].claim);
    tick(us);
    release_token(many[3].token);
    assert_told(&many[2], NOTIFY_HELD);
    release_token(many[2].token);
    assert_told(&many[1], NOTIFY_HELD);
}

/* The first reply was lost: the client repeats its request behind 3 others (rule 9). */
static void a_repeated_request_does_not_wait_for_itself(void **state)
{
    (void)state;
    enter(0, 0, "job-1");
    for (size_t i = 1; i < 4; i++)
        enter(i, 0, NULL);
    tick(us);
    struct lease_options options = remote(0, 0);
    options.request.request = "job-1";
    struct caller again = {.then = detach}, thief = {0}, hasty = {0};
    start(us, &again, "again", &options);
    tick(us);
    assert_told(&again, NOTIFY_HELD);
    assert_true(again.token == many[0].token);
    options.request.holder = "thief";
    start(us, &thief, "thief", &options);
    tick(us);
    assert_ended(&thief, OUTCOME_MISMATCH);
    options.request.holder = names[0];
    options.request.waits = false;
    options.wait_ms = 0;
    hasty.then = detach;
    start(us, &hasty, "hasty", &options);
    tick(us);
    assert_true(hasty.token == many[0].token);
    assert_told(&many[1], NOTIFY_WAITING);
    release_token(again.token);
    assert_told(&many[1], NOTIFY_HELD);
}

/* The same while the first one still holds, by a lease of this process. */
static void a_repeated_request_of_a_holder_gets_its_token(void **state)
{
    struct lease_options options = remote(0, 0);
    struct caller first = {0}, again = {.then = detach}, hasty = {.then = detach}, thief = {0};
    (void)state;
    options.request.request = "job-1";
    start(us, &first, "first", &options);
    tick(us);
    start(us, &again, "again", &options);
    tick(us);
    assert_true(first.token != 0 && again.token == first.token);
    options.request.waits = false;
    options.wait_ms = 0;
    start(us, &hasty, "hasty", &options);
    tick(us);
    assert_true(hasty.token == first.token);
    options.request.holder = "thief";
    start(us, &thief, "thief", &options);
    tick(us);
    assert_ended(&thief, OUTCOME_MISMATCH);
    let_go(&first);
    tick(us);
    assert_ended(&first, OUTCOME_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCAL_QUEUE_TEST(a_grant_among_100000_visits_few),
        LOCAL_QUEUE_TEST(a_paused_waiter_is_passed_over),
        LOCAL_QUEUE_TEST(a_grant_for_a_paused_waiter_is_released),
        LOCAL_QUEUE_TEST(only_paused_waiters_need_no_position),
        LOCAL_QUEUE_TEST(the_wait_of_a_paused_waiter_goes_on),
        LOCAL_QUEUE_TEST(paused_waiters_do_not_age),
        LOCAL_QUEUE_TEST(a_repeated_request_does_not_wait_for_itself),
        LOCAL_QUEUE_TEST(a_repeated_request_of_a_holder_gets_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

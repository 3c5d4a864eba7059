/* SPDX-License-Identifier: Apache-2.0 */
/* The poller: one descriptor for many, timers in their order, and callbacks deferred to the end. */
#include "net/poller.h"

#include "process/host.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct poller *poller;
static char order[64];

struct mark {
    const char *word;
    struct poller_timer timer;
    struct poller_deferred late;
    struct poller_watch watch;
    struct mark *other; /* is removed by this one */
    int64_t again_ms;   /* sets this time when it is called; 0: no */
};

static void note(const struct mark *mark)
{
    (void)snprintf(order + strlen(order), sizeof order - strlen(order), "%s", mark->word);
}

static void on_due(void *owner)
{
    struct mark *mark = owner;
    note(mark);
    if (mark->other != NULL)
        poller_call_at(poller, &mark->other->timer, POLLER_NEVER);
    if (mark->again_ms != 0)
        poller_call_at(poller, &mark->timer, mark->again_ms);
}

static void on_late(void *owner)
{
    struct mark *mark = owner;
    note(mark);
    if (mark->other != NULL)
        poller_defer(poller, &mark->other->late);
}

static void on_ready(void *owner, unsigned what)
{
    struct mark *mark = owner;
    note(mark);
    assert_int_equal(what & ~mark->watch.wants, 0);
}

static struct mark new_mark(const char *word)
{
    return (struct mark){.word = word};
}

static void at(struct mark *mark, int64_t at_ms)
{
    mark->timer.due = on_due;
    mark->timer.owner = mark;
    poller_call_at(poller, &mark->timer, at_ms);
}

static bool is_readable(int timeout_ms)
{
    struct pollfd wait = {.fd = poller_fd(poller), .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

static int begin(void **state)
{
    (void)state;
    order[0] = '\0';
    poller = poller_new();
    return poller != NULL ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    poller_free(&poller);
    poller_free(&poller); /* NULL is allowed */
    return 0;
}

static void times_come_in_their_order(void **state)
{
    struct mark a = new_mark("a"), b = new_mark("b"), c = new_mark("c");
    int64_t now_ms = host_boot_ms();
    (void)state;
    assert_false(is_readable(/* timeout_ms= */ 0));
    at(&c, now_ms + 30);
    at(&a, now_ms + 10);
    at(&b, now_ms + 20);
    while (strlen(order) < 3) {
        assert_true(is_readable(/* timeout_ms= */ 5000));
        poller_step(poller);
    }
    assert_string_equal(order, "abc");
    assert_true(host_boot_ms() >= now_ms + 30);
    poller_step(poller); /* a timer that was set too early may have to expire */
    assert_false(is_readable(/* timeout_ms= */ 0));
}

static void a_time_can_be_moved_and_ended(void **state)
{
    struct mark a = new_mark("a"), b = new_mark("b");
    int64_t now_ms = host_boot_ms();
    (void)state;
    at(&a, now_ms);
    at(&a, POLLER_NEVER);
    at(&b, now_ms + 100000);
    at(&b, now_ms);
    assert_true(is_readable(/* timeout_ms= */ 5000));
    poller_step(poller);
    assert_string_equal(order, "b");
}

static void a_callback_may_end_another_and_ask_for_now(void **state)
{
    struct mark a = new_mark("a"), b = new_mark("b");
    int64_t now_ms = host_boot_ms();
    (void)state;
    a.other = &b;
    a.again_ms = 1; /* in the past: at once, but not in the same step */
    at(&b, now_ms);
    at(&a, now_ms - 1);
    poller_step(poller);
    assert_string_equal(order, "a");
    assert_true(is_readable(/* timeout_ms= */ 5000));
    a.again_ms = 0;
    while (strlen(order) < 2)
        poller_step(poller);
    assert_string_equal(order, "aa");
}

static void watch(struct mark *mark, int file)
{
    mark->watch = (struct poller_watch){.file = file, .ready = on_ready, .owner = mark};
    assert_true(poller_watch(poller, &mark->watch, POLLER_READ));
}

static void end_and_free(struct mark *mark)
{
    assert_true(poller_watch(poller, &mark->watch, 0));
    free(mark);
}

/* The first one removes the other, with its memory. */
static void on_first(void *owner, unsigned what)
{
    struct mark *mark = owner;
    (void)what;
    note(mark);
    end_and_free(mark->other);
    mark->other = NULL;
}

static void a_watch_ended_in_a_step_is_not_called_in_it(void **state)
{
    struct mark *marks[2];
    int pipes[2][2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        marks[i] = malloc(sizeof *marks[i]);
        assert_non_null(marks[i]);
        *marks[i] = new_mark(i == 0 ? "a" : "b");
        watch(marks[i], pipes[i][0]);
        marks[i]->watch.ready = on_first;
    }
    marks[0]->other = marks[1];
    marks[1]->other = marks[0];
    assert_false(is_readable(/* timeout_ms= */ 0));
    assert_int_equal(write(pipes[0][1], "x", 1), 1);
    assert_int_equal(write(pipes[1][1], "x", 1), 1);
    assert_true(is_readable(/* timeout_ms= */ 5000));
    poller_step(poller);
    assert_int_equal(strlen(order), 1);
    end_and_free(order[0] == 'a' ? marks[0] : marks[1]);
    assert_false(is_readable(/* timeout_ms= */ 0));
    for (int i = 0; i < 4; i++)
        (void)close(pipes[i / 2][i % 2]);
}

static void a_wish_can_be_changed(void **state)
{
    struct mark a = new_mark("a");
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    a.watch = (struct poller_watch){.file = ends[1], .ready = on_ready, .owner = &a};
    assert_true(poller_watch(poller, &a.watch, POLLER_READ));
    poller_step(poller);
    assert_string_equal(order, "");
    assert_true(poller_watch(poller, &a.watch, POLLER_READ | POLLER_WRITE));
    poller_step(poller);
    assert_string_equal(order, "a");
    assert_true(poller_watch(poller, &a.watch, 0));
    struct mark broken = new_mark("b");
    broken.watch = (struct poller_watch){.file = -1, .ready = on_ready, .owner = &broken};
    assert_false(poller_watch(poller, &broken.watch, POLLER_READ));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void a_deferred_call_comes_last_and_once(void **state)
{
    struct mark a = new_mark("a"), b = new_mark("b"), c = new_mark("c"), t = new_mark("t");
    struct mark *lates[] = {&a, &b, &c};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        lates[i]->late = (struct poller_deferred){.run = on_late, .owner = lates[i]};
    a.other = &c; /* deferred by a deferred callback: still in this step */
    poller_defer(poller, &a.late);
    poller_defer(poller, &b.late);
    poller_defer(poller, &a.late);
    at(&t, host_boot_ms());
    assert_string_equal(order, "");
    poller_step(poller);
    assert_string_equal(order, "tabc");
    poller_step(poller);
    assert_string_equal(order, "tabc");
    poller_defer(poller, &a.late);
    poller_defer(poller, &b.late);
    poller_defer(poller, &c.late);
    poller_cancel_deferred(&b.late);
    poller_cancel_deferred(&b.late);
    poller_cancel_deferred(&c.late);
    poller_cancel_deferred(&a.late);
    poller_step(poller);
    assert_string_equal(order, "tabc");
}

/* As a request does: its timeout is set, it is answered, and the next poll is far away. */
static void a_request(struct mark *timeout)
{
    at(timeout, host_boot_ms() + 30);
    poller_step(poller);
    at(timeout, POLLER_NEVER);
    poller_step(poller);
}

static bool wakes_within(int most_ms)
{
    struct pollfd wait = {.fd = poller_fd(poller), .events = POLLIN};
    return poll(&wait, 1, most_ms) == 1;
}

static void an_idle_poller_sleeps_and_a_busy_one_saves_system_calls(void **state)
{
    struct mark timeout = new_mark("t"), far = new_mark("f");
    (void)state;
    at(&far, host_boot_ms() + 60000);
    a_request(&timeout);
    assert_false(wakes_within(100));
    for (int i = 0; i < 20; i++)
        a_request(&timeout);
    assert_true(wakes_within(10000)); /* once, for a timeout that was left */
    poller_step(poller);
    assert_false(wakes_within(100));
    a_request(&timeout);
    assert_false(wakes_within(100));
    assert_string_equal(order, "");
    at(&far, POLLER_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(times_come_in_their_order, begin, finish),
        cmocka_unit_test_setup_teardown(a_time_can_be_moved_and_ended, begin, finish),
        cmocka_unit_test_setup_teardown(a_callback_may_end_another_and_ask_for_now, begin, finish),
        cmocka_unit_test_setup_teardown(a_watch_ended_in_a_step_is_not_called_in_it, begin, finish),
        cmocka_unit_test_setup_teardown(a_wish_can_be_changed, begin, finish),
        cmocka_unit_test_setup_teardown(a_deferred_call_comes_last_and_once, begin, finish),
        cmocka_unit_test_setup_teardown(an_idle_poller_sleeps_and_a_busy_one_saves_system_calls,
                                        begin, finish),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}

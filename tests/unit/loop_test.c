/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: deadlines first, wake-ups by other threads, and a descriptor for foreign loops. */
#include "net/loop.h"

#include "process/host.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 8, EACH = 500 };

static struct {
    struct loop *loop;
    char order[64];
    unsigned due;
    atomic_uint ran;
    int pipe[2];
} fixture;

static void note(const char *word)
{
    size_t length = strlen(fixture.order);
    (void)snprintf(fixture.order + length, sizeof fixture.order - length, "%s", word);
}

static void due(void *owner)
{
    (void)owner;
    fixture.due++;
    note("D");
}

static void readable(void *owner)
{
    char byte;
    (void)owner;
    note("R");
    assert_int_equal(read(fixture.pipe[0], &byte, 1), 1);
}

static void woken(void *owner)
{
    (void)owner;
    atomic_fetch_add(&fixture.ran, 1);
    note("T");
}

static int open_loop(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    fixture.loop = loop_new(&(struct loop_callbacks){.due = due, .woken = woken});
    return fixture.loop != NULL && pipe(fixture.pipe) == 0 ? 0 : -1;
}

static int close_loop(void **state)
{
    (void)state;
    loop_free(&fixture.loop);
    loop_free(&fixture.loop); /* NULL is allowed */
    (void)close(fixture.pipe[0]);
    (void)close(fixture.pipe[1]);
    return 0;
}

static bool is_readable(int timeout_ms)
{
    struct pollfd wait = {.fd = loop_fd(fixture.loop), .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

static void test_wakes_at_the_time_asked_for(void **state)
{
    (void)state;
    int64_t at_ms = host_boot_ms() + 30;
    loop_wake_at(fixture.loop, at_ms);
    while (fixture.due == 0)
        loop_step(fixture.loop, /* wait= */ true);
    int64_t late_ms = host_boot_ms() - at_ms;
    assert_true(late_ms >= 0);
    assert_true(late_ms < 2000);
    loop_step(fixture.loop, /* wait= */ false);
    assert_int_equal(fixture.due, 1);
}

static void test_a_later_time_replaces_the_earlier_one(void **state)
{
    (void)state;
    loop_wake_at(fixture.loop, host_boot_ms() - 5);
    loop_wake_at(fixture.loop, LOOP_NEVER);
    loop_step(fixture.loop, /* wait= */ false);
    assert_false(is_readable(20));
    assert_int_equal(fixture.due, 0);
    loop_wake_at(fixture.loop, host_boot_ms() - 5);
    loop_step(fixture.loop, /* wait= */ true);
    assert_int_equal(fixture.due, 1);
}

/* Descriptor, wake-up and deadline are ready together: the deadline is handled before the others.
 */
static void test_the_deadline_comes_first(void **state)
{
    (void)state;
    assert_true(loop_listen(fixture.loop, fixture.pipe[0], readable, NULL));
    for (int round = 0; round < 20; round++) {
        fixture.order[0] = '\0';
        loop_wake_at(fixture.loop, host_boot_ms() + 1);
        loop_wake(fixture.loop);
        assert_int_equal(write(fixture.pipe[1], "x", 1), 1);
        (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        while (strlen(fixture.order) < 3)
            loop_step(fixture.loop, /* wait= */ true);
        assert_int_equal(fixture.order[0], 'D');
    }
}

static void test_a_foreign_loop_can_poll(void **state)
{
    (void)state;
    assert_false(is_readable(0));
    loop_wake(fixture.loop);
    loop_wake(fixture.loop);
    assert_true(is_readable(1000));
    loop_step(fixture.loop, /* wait= */ false);
    assert_int_equal(fixture.ran, 1);
    assert_false(is_readable(0));
    loop_wake_at(fixture.loop, host_boot_ms() + 10);
    assert_true(is_readable(1000));
    loop_step(fixture.loop, /* wait= */ false);
    assert_int_equal(fixture.due, 1);
    assert_false(is_readable(0));
}

static void test_listens_are_bounded(void **state)
{
    (void)state;
    int copies[LOOP_LISTENERS_MAX];
    int count = 0;
    for (; count < LOOP_LISTENERS_MAX; count++) {
        copies[count] = dup(fixture.pipe[0]);
        if (!loop_listen(fixture.loop, copies[count], readable, NULL))
            break;
    }
    assert_int_equal(count, LOOP_LISTENERS_MAX - 1); /* the bell is one of them */
    assert_false(loop_listen(fixture.loop, -1, readable, NULL));
    close_loop(NULL); /* before the copies, as a user would */
    for (int i = 0; i <= count; i++)
        (void)close(copies[i]);
    assert_int_equal(open_loop(NULL), 0);
}

/* Waits for the callback after each wake-up of its own. */
static void *wake_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < EACH; i++) {
        unsigned ran = atomic_load(&fixture.ran);
        loop_wake(fixture.loop);
        while (atomic_load(&fixture.ran) == ran)
            (void)sched_yield();
    }
    return NULL;
}

static void *run_loop(void *argument)
{
    (void)argument;
    loop_run(fixture.loop);
    return NULL;
}

static void test_many_threads_wake(void **state)
{
    (void)state;
    pthread_t runner, posters[THREADS];
    assert_int_equal(pthread_create(&runner, NULL, run_loop, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&posters[i], NULL, wake_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(posters[i], NULL), 0);
    loop_stop(fixture.loop);
    assert_int_equal(pthread_join(runner, NULL), 0);
    assert_true(atomic_load(&fixture.ran) >= EACH);
}

/* A callback may wake the loop again without blocking the rest of it. */
static void wake_again(void *owner)
{
    (void)owner;
    atomic_fetch_add(&fixture.ran, 1);
    loop_wake(fixture.loop);
}

static void test_a_callback_that_wakes_starves_nobody(void **state)
{
    (void)state;
    loop_free(&fixture.loop);
    fixture.loop = loop_new(&(struct loop_callbacks){.due = due, .woken = wake_again});
    assert_non_null(fixture.loop);
    loop_wake(fixture.loop);
    loop_wake_at(fixture.loop, host_boot_ms() + 5);
    for (int i = 0; i < 1000000 && fixture.due == 0; i++)
        loop_step(fixture.loop, /* wait= */ false);
    assert_int_equal(fixture.due, 1);
    assert_true(atomic_load(&fixture.ran) > 1);
}

static void after_step(void *owner)
{
    (void)owner;
    note("E");
}

static void ask_for_now(void *owner)
{
    (void)owner;
    note("T");
    loop_wake_at(fixture.loop, host_boot_ms());
}

/* All callbacks of a step, their requests, and then its end: requests are sent there. */
static void test_the_end_of_a_step_is_told_last(void **state)
{
    (void)state;
    loop_free(&fixture.loop);
    fixture.loop = loop_new(
        &(struct loop_callbacks){.due = due, .woken = ask_for_now, .after_step = after_step});
    assert_non_null(fixture.loop);
    loop_wake(fixture.loop);
    loop_step(fixture.loop, /* wait= */ true);
    assert_string_equal(fixture.order, "TDE");
    assert_false(is_readable(0)); /* nothing is left of the requested time */
    loop_wake_at(fixture.loop, host_boot_ms() + 5);
    assert_true(is_readable(1000));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, open_loop, close_loop)
    const struct CMUnitTest tests[] = {
        CASE(test_wakes_at_the_time_asked_for),
        CASE(test_a_later_time_replaces_the_earlier_one),
        CASE(test_the_deadline_comes_first),
        CASE(test_a_foreign_loop_can_poll),
        CASE(test_listens_are_bounded),
        CASE(test_many_threads_wake),
        CASE(test_a_callback_that_wakes_starves_nobody),
        CASE(test_the_end_of_a_step_is_told_last),
    };
#undef CASE
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}

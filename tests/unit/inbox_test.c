/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox: order of arrival, removal, and posts of many threads, none of which is lost. */
#include "runtime/inbox.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 8, EACH = 500 };

static struct inbox inbox;
static atomic_uint wakes;

/* One item of one thread, and whether it has run. */
struct letter {
    struct inbox_item item; /* first */
    atomic_bool done;
};

static void run(struct inbox_item *item)
{
    atomic_store(&((struct letter *)item)->done, true);
}

static void wake(void *owner)
{
    (void)owner;
    atomic_fetch_add(&wakes, 1);
}

static int open_inbox(void **state)
{
    (void)state;
    atomic_store(&wakes, 0);
    inbox_init(&inbox);
    return 0;
}

static int close_inbox(void **state)
{
    (void)state;
    inbox_done(&inbox);
    return 0;
}

static void test_calls_come_out_in_order(void **state)
{
    struct inbox_item items[3], command;
    (void)state;
    assert_null(inbox_pop(&inbox.calls));
    inbox_post(&inbox, &items[0], wake, NULL);
    inbox_post(&inbox, &items[1], wake, NULL);
    assert_int_equal(atomic_load(&wakes), 1); /* one wake-up is enough for both */
    inbox_add(&inbox.commands, &command);
    assert_int_equal(inbox_collect(&inbox), 2);
    inbox_post(&inbox, &items[2], wake, NULL);
    assert_int_equal(atomic_load(&wakes), 2);
    assert_int_equal(inbox_collect(&inbox), 3);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(inbox_pop(&inbox.calls), &items[i]);
    assert_null(inbox_pop(&inbox.calls));
    assert_ptr_equal(inbox_pop(&inbox.commands), &command);
}

static void test_a_command_can_be_removed(void **state)
{
    struct inbox_item items[3];
    (void)state;
    for (size_t i = 0; i < 3; i++)
        inbox_add(&inbox.commands, &items[i]);
    inbox_remove(&inbox.commands, &items[1]);
    assert_int_equal(inbox.commands.count, 2);
    assert_ptr_equal(inbox_pop(&inbox.commands), &items[0]);
    assert_ptr_equal(inbox_pop(&inbox.commands), &items[2]);
    assert_null(inbox_pop(&inbox.commands));
}

static void *post_many(void *argument)
{
    struct letter letter = {.item = {.run = run}};
    (void)argument;
    for (int i = 0; i < EACH; i++) {
        atomic_store(&letter.done, false);
        inbox_post(&inbox, &letter.item, wake, NULL);
        while (!atomic_load(&letter.done))
            (void)sched_yield();
    }
    return NULL;
}

static void test_many_threads_post(void **state)
{
    pthread_t posters[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&posters[i], NULL, post_many, NULL), 0);
    for (unsigned ran = 0; ran < THREADS * EACH;) {
        (void)inbox_collect(&inbox);
        for (struct inbox_item *item; (item = inbox_pop(&inbox.calls)) != NULL; ran++)
            item->run(item);
        (void)sched_yield();
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(posters[i], NULL), 0);
    assert_int_equal(inbox_collect(&inbox), 0);
    assert_true(atomic_load(&wakes) > 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, open_inbox, close_inbox)
    const struct CMUnitTest tests[] = {
        CASE(test_calls_come_out_in_order),
        CASE(test_a_command_can_be_removed),
        CASE(test_many_threads_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

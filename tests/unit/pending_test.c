/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in flight: bounded, one at a time per key, overdue at their deadline, and each with
 * exactly one last reply, whatever its callback does.
 */
#include "process/host.h"
#include "store/pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4 };

/* A request of a driver. */
struct job {
    struct pending base;
    int payload;
};

static char names[][2] = {"a", "b", "c", "d"}; /* of callers */
static struct pending_set set;
static struct job *jobs[8];
static char replies[256]; /* callers and results, in order */
static void (*on_last)(void);
static unsigned cleared;

static void on_reply(void *caller, const struct store_reply *reply)
{
    size_t length = strlen(replies);
    (void)snprintf(replies + length, sizeof replies - length, "%s%s ", (const char *)caller,
                   reply->more                 ? "+"
                   : reply->result == REPLY_OK ? ""
                                               : "!");
    void (*action)(void) = on_last;
    on_last = NULL;
    if (action != NULL)
        action();
}

static void on_clear(struct pending *pending)
{
    (void)pending;
    cleared++;
}

static struct job *add(const char *key, const char *caller)
{
    struct store_request request = {.verb = VERB_STORE_READ, .key = key};
    return pending_add(&set, &request, on_reply, names[caller[0] - 'a']);
}

static int set_up(void **state)
{
    (void)state;
    set = (struct pending_set){.size = sizeof(struct job), .most = MOST, .clear = on_clear};
    replies[0] = '\0';
    on_last = NULL;
    cleared = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pending_done(&set);
    return 0;
}

static void end(struct job *job)
{
    pending_reply(&job->base, &(struct store_reply){.result = REPLY_OK});
}

static void more_than_the_maximum_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        assert_non_null(jobs[i] = add("k", "a"));
    assert_null(add("k", "b"));
    pending_refuse(on_reply, names[1]);
    assert_string_equal(replies, "b! ");
    end(jobs[2]);
    assert_non_null(jobs[2] = add("k", "c"));
    assert_null(add("k", "d"));
}

static void the_memory_of_an_ended_request_is_used_again(void **state)
{
    (void)state;
    struct job *first = add("k", "a");
    first->payload = 1;
    end(first);
    assert_int_equal(cleared, 1);
    struct job *second = add("other", "b");
    assert_ptr_equal(second, first);
    assert_int_equal(second->payload, 0);
    assert_string_equal(second->base.request.key, "other");
}

static void replies_with_more_do_not_end_it(void **state)
{
    (void)state;
    struct job *job = add("k", "a");
    pending_reply(&job->base, &(struct store_reply){.result = REPLY_OK, .more = true});
    pending_reply(&job->base, &(struct store_reply){.result = REPLY_OK, .more = true});
    assert_int_equal(set.count, 1);
    end(job);
    assert_string_equal(replies, "a+ a+ a ");
    assert_int_equal(set.count, 0);
}

static void requests_of_a_key_run_in_order_of_arrival(void **state)
{
    (void)state;
    set.by_key = true;
    struct job *first = add("k", "a"), *second = add("k", "b"), *other = add("other", "c");
    pending_extend(&first->base); /* the order of deadlines is another one */
    struct job *third = add("k", "d");
    assert_null(first->base.behind);
    assert_null(other->base.behind);
    assert_ptr_equal(second->base.behind, first);
    assert_ptr_equal(third->base.behind, second);
    end(first);
    assert_null(second->base.behind);
    assert_ptr_equal(third->base.behind, second);
    pending_drop(&second->base);
    assert_null(third->base.behind);
    assert_string_equal(replies, "a ");
}

static void add_b(void)
{
    jobs[1] = add("k", "b");
}

static void a_callback_may_submit(void **state)
{
    (void)state;
    jobs[0] = add("k", "a");
    on_last = add_b;
    end(jobs[0]);
    assert_non_null(jobs[1]);
    assert_ptr_not_equal(jobs[1], jobs[0]); /* the reply may point into it */
    assert_int_equal(set.count, 1);
    end(jobs[1]);
    assert_string_equal(replies, "a b ");
}

static void close_set(void)
{
    pending_done(&set);
}

static void a_callback_may_close(void **state)
{
    (void)state;
    jobs[0] = add("k", "a");
    assert_non_null(add("k", "b"));
    on_last = close_set;
    end(jobs[0]);
    assert_string_equal(replies, "a ");
    assert_int_equal(cleared, 2);
    assert_null(add("k", "c"));
}

static void all_fail_once_while_a_callback_submits(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_non_null(add("k", "a"));
    on_last = add_b;
    pending_fail_all(&set, REPLY_TROUBLE, "lost");
    assert_string_equal(replies, "a! a! a! ");
    assert_int_equal(set.count, 1);
    pending_fail_all(&set, REPLY_TROUBLE, "lost");
    assert_string_equal(replies, "a! a! a! b! ");
}

static void fail_others(void)
{
    add_b();
    pending_fail_all(&set, REPLY_TROUBLE, "lost");
    add_b();
}

static void all_fail_once_while_a_callback_fails_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_non_null(add("k", "a"));
    on_last = fail_others;
    pending_fail_all(&set, REPLY_TROUBLE, "lost");
    assert_string_equal(replies, "a! a! a! b! ");
    assert_int_equal(set.count, 1);
}

static void close_at_failure(void **state)
{
    (void)state;
    assert_non_null(add("k", "a"));
    assert_non_null(add("k", "b"));
    on_last = close_set;
    pending_fail_all(&set, REPLY_TROUBLE, "lost");
    assert_string_equal(replies, "a! ");
}

static void a_watch_leaves_and_gets_its_replies_elsewhere(void **state)
{
    (void)state;
    struct watchers watchers = {0};
    struct job *job = add("prefix/", "a");
    struct watcher *watcher = pending_watch(&job->base, &watchers);
    assert_int_equal(set.count, 0);
    assert_string_equal(watcher->prefix, "prefix/");
    watchers_confirm(&watchers, &(struct store_reply){.result = REPLY_OK});
    assert_string_equal(replies, "a+ ");
    watchers_done(&watchers);
}

static void on_overdue(void *owner, struct pending *first)
{
    assert_ptr_equal(owner, &set);
    pending_fail(first, REPLY_TROUBLE, "it did not reply in time");
}

static void step_for(struct poller *poller, int64_t for_ms)
{
    for (int64_t end_ms = host_boot_ms() + for_ms; host_boot_ms() < end_ms;) {
        poller_wait(poller, /* most_ms= */ 5);
        poller_step(poller);
    }
}

static void a_request_is_overdue_at_its_deadline(void **state)
{
    (void)state;
    struct poller *poller = poller_new();
    set.timeout_ms = 30;
    set.poller = poller;
    set.overdue = on_overdue;
    set.owner = &set;
    int64_t before_ms = host_boot_ms();
    assert_non_null(jobs[0] = add("k", "a"));
    assert_non_null(jobs[1] = add("k", "b"));
    assert_non_null(jobs[2] = add("k", "c"));
    assert_true(jobs[0]->base.deadline_ms >= before_ms + 30);
    end(jobs[1]);
    assert_string_equal(replies, "b ");
    step_for(poller, /* for_ms= */ 10);
    pending_extend(&jobs[0]->base);
    step_for(poller, jobs[2]->base.deadline_ms - host_boot_ms() + 5);
    assert_true(strncmp(replies, "b c! ", 5) == 0); /* the extended one comes later */
    step_for(poller, /* for_ms= */ 40);
    assert_string_equal(replies, "b c! a! ");
    pending_done(&set);
    poller_free(&poller);
}

int main(void)
{
#define PENDING_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        PENDING_TEST(more_than_the_maximum_are_refused),
        PENDING_TEST(the_memory_of_an_ended_request_is_used_again),
        PENDING_TEST(replies_with_more_do_not_end_it),
        PENDING_TEST(requests_of_a_key_run_in_order_of_arrival),
        PENDING_TEST(a_callback_may_submit),
        PENDING_TEST(a_callback_may_close),
        PENDING_TEST(all_fail_once_while_a_callback_submits),
        PENDING_TEST(all_fail_once_while_a_callback_fails_all),
        PENDING_TEST(close_at_failure),
        PENDING_TEST(a_watch_leaves_and_gets_its_replies_elsewhere),
        PENDING_TEST(a_request_is_overdue_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

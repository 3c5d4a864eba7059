/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers: each receives the changes of its prefix after it is confirmed, in order of arrival, and
 * one last reply, whatever a callback does meanwhile.
 */
#include "store/watchers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct watchers watchers;
static char replies[256]; /* callers and what they received, in order */
static void (*next_action)(void);
static const struct store_reply confirmation = {.result = REPLY_OK};
static const struct store_reply lost = {.result = REPLY_TROUBLE};

static void on_reply(void *caller, const struct store_reply *reply)
{
    size_t length = strlen(replies);
    (void)snprintf(replies + length, sizeof replies - length, "%s:%s ", (const char *)caller,
                   !reply->more         ? "end"
                   : reply->key != NULL ? reply->key
                                        : "on");
    void (*action)(void) = next_action;
    next_action = NULL;
    if (action != NULL)
        action();
}

/* Callers are "a" to "e". */
static struct watcher *add(const char *prefix, const char *caller)
{
    static char names[][2] = {"a", "b", "c", "d", "e"};
    return watchers_add(&watchers, prefix, on_reply, names[caller[0] - 'a']);
}

static void change(const char *key)
{
    for (struct watchers_walk walk = watchers_walk(&watchers, key); watchers_next(&walk);) {
        struct store_reply reply = {.result = REPLY_OK};
        watchers_deliver(&walk, &reply);
    }
}

static int set_up(void **state)
{
    (void)state;
    watchers = (struct watchers){0};
    replies[0] = '\0';
    next_action = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    watchers_done(&watchers);
    return 0;
}

static void add_confirmed(const char *prefix, const char *caller)
{
    assert_non_null(add(prefix, caller));
    watchers_confirm(&watchers, &confirmation);
    replies[0] = '\0';
}

static void a_change_reaches_those_who_watch_its_prefix(void **state)
{
    (void)state;
    add_confirmed("", "c");
    add_confirmed("a/", "d");
    add_confirmed("a/1", "e");
    change("b");
    change("a");
    change("a/2");
    change("a/10");
    assert_string_equal(replies, "c:b c:a c:a/2 d:a/2 c:a/10 d:a/10 e:a/10 ");
}

static void each_is_confirmed_once_and_receives_nothing_before(void **state)
{
    (void)state;
    assert_non_null(add("", "a"));
    change("k");
    assert_string_equal(replies, "");
    watchers_confirm(&watchers, &confirmation);
    assert_non_null(add("", "b"));
    change("k");
    watchers_confirm(&watchers, &confirmation);
    change("k");
    assert_string_equal(replies, "a:on a:k b:on a:k b:k ");
}

static void too_many_are_refused_with_a_reply(void **state)
{
    (void)state;
    for (size_t i = 0; i < WATCHERS_MAX; i++)
        assert_non_null(add("k", "a"));
    assert_null(add("k", "b"));
    assert_string_equal(replies, "b:end ");
}

static void all_end_once(void **state)
{
    (void)state;
    add_confirmed("", "a");
    assert_non_null(add("", "b"));
    watchers_end(&watchers, &lost);
    watchers_end(&watchers, &lost);
    change("k");
    assert_string_equal(replies, "a:end b:end ");
    assert_int_equal(watchers.count, 0);
}

static void end_all(void)
{
    watchers_end(&watchers, &lost);
}

static void add_c(void)
{
    assert_non_null(add("", "c"));
    watchers_confirm(&watchers, &confirmation);
}

static void end_all_and_add(void)
{
    end_all();
    add_c();
}

static void close_all(void)
{
    watchers_done(&watchers);
}

static void a_watcher_may_end_inside_its_own_delivery(void **state)
{
    (void)state;
    add_confirmed("", "a");
    add_confirmed("", "b");
    next_action = end_all;
    change("k");
    assert_string_equal(replies, "a:k a:end b:end ");
}

static void a_watcher_added_inside_a_delivery_starts_with_the_next(void **state)
{
    (void)state;
    add_confirmed("", "a");
    next_action = add_c;
    change("k");
    change("l");
    assert_string_equal(replies, "a:k c:on a:l c:l ");
}

static void a_watcher_added_while_all_end_stays(void **state)
{
    (void)state;
    add_confirmed("", "a");
    add_confirmed("", "b");
    next_action = add_c;
    watchers_end(&watchers, &lost);
    assert_string_equal(replies, "a:end c:on b:end ");
    assert_int_equal(watchers.count, 1);
}

static void all_may_end_again_while_they_end(void **state)
{
    (void)state;
    add_confirmed("", "a");
    add_confirmed("", "b");
    next_action = end_all_and_add;
    watchers_end(&watchers, &lost);
    assert_string_equal(replies, "a:end b:end c:on ");
    assert_int_equal(watchers.count, 1);
}

static void the_store_may_be_closed_inside_any_callback(void **state)
{
    (void)state;
    add_confirmed("", "a");
    add_confirmed("", "b");
    next_action = close_all;
    change("k");
    assert_string_equal(replies, "a:k ");
    assert_non_null(add("", "a"));
    assert_non_null(add("", "b"));
    next_action = close_all;
    watchers_confirm(&watchers, &confirmation);
    assert_string_equal(replies, "a:k a:on ");
    assert_non_null(add("", "a"));
    assert_non_null(add("", "b"));
    next_action = close_all;
    watchers_end(&watchers, &lost);
    assert_string_equal(replies, "a:k a:on a:end ");
}

int main(void)
{
#define WATCHERS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WATCHERS_TEST(a_change_reaches_those_who_watch_its_prefix),
        WATCHERS_TEST(each_is_confirmed_once_and_receives_nothing_before),
        WATCHERS_TEST(too_many_are_refused_with_a_reply),
        WATCHERS_TEST(all_end_once),
        WATCHERS_TEST(a_watcher_may_end_inside_its_own_delivery),
        WATCHERS_TEST(a_watcher_added_inside_a_delivery_starts_with_the_next),
        WATCHERS_TEST(a_watcher_added_while_all_end_stays),
        WATCHERS_TEST(all_may_end_again_while_they_end),
        WATCHERS_TEST(the_store_may_be_closed_inside_any_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

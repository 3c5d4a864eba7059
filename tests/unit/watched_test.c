/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that a watch keeps: which are believed, which are not, and how many there are. */
#include "runtime/watched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct store_answer answer_of(const char *key, const char *bytes)
{
    return (struct store_answer){.result = ANSWER_OK,
                                 .present = bytes[0] != '\0',
                                 .key = key,
                                 .bytes = bytes,
                                 .length = strlen(bytes)};
}

static bool says(struct watched *watched, const char *key, int64_t now_ms, const char *bytes)
{
    const struct watched_copy *copy = watched_find(watched, key, now_ms);
    return copy != NULL && copy->heard->answer.length == strlen(bytes) &&
           memcmp(copy->heard->answer.bytes, bytes, strlen(bytes)) == 0;
}

static void keep(struct watched *watched, const char *key, const char *bytes, int64_t now_ms)
{
    struct store_answer answer = answer_of(key, bytes);
    watched_keep(watched, key, watched_begin(watched, key), &answer, now_ms);
}

static void hear(struct watched *watched, const char *key, const char *bytes, int64_t now_ms)
{
    struct store_answer answer = answer_of(key, bytes);
    watched_hear(watched, &answer, now_ms);
}

static void a_copy_follows_the_watch(void **state)
{
    struct watched watched;
    (void)state;
    assert_true(watched_init(&watched));
    hear(&watched, "k", "nobody has looked", 0);
    assert_null(watched_find(&watched, "k", 0));
    keep(&watched, "k", "one", 0);
    assert_true(says(&watched, "k", 0, "one"));
    hear(&watched, "k", "two", 5);
    hear(&watched, "other", "three", 5);
    assert_true(says(&watched, "k", 5, "two"));
    assert_null(watched_find(&watched, "other", 5));
    watched_forget(&watched); /* the watch has ended */
    assert_null(watched_find(&watched, "k", 5));
    assert_int_equal(watched.bytes, 0);
    watched_done(&watched);
}

/* The read was answered before the change, and its answer came after it. */
static void a_late_answer_does_not_undo_what_the_watch_told(void **state)
{
    struct watched watched;
    struct store_answer late = answer_of("k", "old");
    (void)state;
    assert_true(watched_init(&watched));
    uint64_t begun = watched_begin(&watched, "k");
    hear(&watched, "k", "", 0);
    watched_keep(&watched, "k", begun, &late, 1);
    assert_null(watched_find(&watched, "k", 1));
    keep(&watched, "k", "", 1);
    begun = watched_begin(&watched, "k");
    hear(&watched, "k", "new", 2);
    watched_keep(&watched, "k", begun, &late, 3);
    assert_true(says(&watched, "k", 3, "new"));
    begun = watched_begin(&watched, "k");
    watched_forget(&watched); /* the watch ended and began anew meanwhile */
    (void)watched_begin(&watched, "k");
    watched_keep(&watched, "k", begun, &late, 1);
    assert_null(watched_find(&watched, "k", 1));
    watched_done(&watched);
}

static void an_old_copy_is_not_believed(void **state)
{
    struct watched watched;
    (void)state;
    assert_true(watched_init(&watched));
    keep(&watched, "k", "one", 100);
    assert_true(says(&watched, "k", 99 + WATCHED_MOST_MS, "one"));
    assert_null(watched_find(&watched, "k", 100 + WATCHED_MOST_MS));
    keep(&watched, "k", "two", 100 + WATCHED_MOST_MS);
    assert_true(says(&watched, "k", 100 + WATCHED_MOST_MS, "two"));
    watched_done(&watched);
}

static void the_longest_unused_go_first(void **state)
{
    struct watched watched;
    char key[32];
    (void)state;
    assert_true(watched_init(&watched));
    for (int i = 0; i < WATCHED_KEYS_MAX + 10; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        keep(&watched, key, "x", 0);
        assert_true(says(&watched, "k0", 0, "x"));
    }
    assert_int_equal(watched.table.count, WATCHED_KEYS_MAX);
    assert_null(watched_find(&watched, "k1", 0));
    assert_non_null(watched_find(&watched, key, 0));
    watched_done(&watched);
}

static void their_bytes_are_bounded(void **state)
{
    struct watched watched;
    enum { LARGE = 60000 };
    static char bytes[LARGE + 1];
    char key[32];
    (void)state;
    memset(bytes, 'x', LARGE);
    assert_true(watched_init(&watched));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        keep(&watched, key, bytes, 0);
        assert_true(watched.bytes <= WATCHED_BYTES_MAX);
        assert_non_null(watched_find(&watched, key, 0));
    }
    watched_done(&watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_follows_the_watch),
        cmocka_unit_test(a_late_answer_does_not_undo_what_the_watch_told),
        cmocka_unit_test(an_old_copy_is_not_believed),
        cmocka_unit_test(the_longest_unused_go_first),
        cmocka_unit_test(their_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that a watch keeps: which are trusted, which are not, and how many there are. */
#include "runtime/watch_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct store_reply answer_of(const char *key, const char *bytes)
{
    return (struct store_reply){.result = REPLY_OK,
                                .present = bytes[0] != '\0',
                                .key = key,
                                .bytes = bytes,
                                .length = strlen(bytes)};
}

static bool says(struct watch_cache *watch_cache, const char *key, int64_t now_ms,
                 const char *bytes)
{
    const struct watch_cache_entry *copy = watch_cache_find(watch_cache, key, now_ms);
    return copy != NULL && copy->saved_reply->reply.length == strlen(bytes) &&
           memcmp(copy->saved_reply->reply.bytes, bytes, strlen(bytes)) == 0;
}

static void keep(struct watch_cache *watch_cache, const char *key, const char *bytes,
                 int64_t now_ms)
{
    struct store_reply reply = answer_of(key, bytes);
    watch_cache_end_read(watch_cache, key, watch_cache_begin_read(watch_cache, key), &reply,
                         now_ms);
}

static void hear(struct watch_cache *watch_cache, const char *key, const char *bytes,
                 int64_t now_ms)
{
    struct store_reply reply = answer_of(key, bytes);
    watch_cache_on_change(watch_cache, &reply, now_ms);
}

static void a_copy_follows_the_watch(void **state)
{
    struct watch_cache watch_cache;
    (void)state;
    assert_true(watch_cache_init(&watch_cache));
    hear(&watch_cache, "k", "nobody has looked", 0);
    assert_null(watch_cache_find(&watch_cache, "k", 0));
    keep(&watch_cache, "k", "one", 0);
    assert_true(says(&watch_cache, "k", 0, "one"));
    hear(&watch_cache, "k", "two", 5);
    hear(&watch_cache, "other", "three", 5);
    assert_true(says(&watch_cache, "k", 5, "two"));
    assert_null(watch_cache_find(&watch_cache, "other", 5));
    watch_cache_clear(&watch_cache); /* the watch has ended */
    assert_null(watch_cache_find(&watch_cache, "k", 5));
    assert_int_equal(watch_cache.bytes, 0);
    watch_cache_done(&watch_cache);
}

/* The read was answered before the change, and its reply came after it. */
static void a_late_answer_does_not_undo_what_the_watch_told(void **state)
{
    struct watch_cache watch_cache;
    struct store_reply late = answer_of("k", "old");
    (void)state;
    assert_true(watch_cache_init(&watch_cache));
    uint64_t begun = watch_cache_begin_read(&watch_cache, "k");
    hear(&watch_cache, "k", "", 0);
    watch_cache_end_read(&watch_cache, "k", begun, &late, 1);
    assert_null(watch_cache_find(&watch_cache, "k", 1));
    keep(&watch_cache, "k", "", 1);
    begun = watch_cache_begin_read(&watch_cache, "k");
    hear(&watch_cache, "k", "new", 2);
    watch_cache_end_read(&watch_cache, "k", begun, &late, 3);
    assert_true(says(&watch_cache, "k", 3, "new"));
    begun = watch_cache_begin_read(&watch_cache, "k");
    watch_cache_clear(&watch_cache); /* the watch ended and restarted meanwhile */
    (void)watch_cache_begin_read(&watch_cache, "k");
    watch_cache_end_read(&watch_cache, "k", begun, &late, 1);
    assert_null(watch_cache_find(&watch_cache, "k", 1));
    watch_cache_done(&watch_cache);
}

static void an_old_copy_is_not_believed(void **state)
{
    struct watch_cache watch_cache;
    (void)state;
    assert_true(watch_cache_init(&watch_cache));
    keep(&watch_cache, "k", "one", 100);
    assert_true(says(&watch_cache, "k", 99 + WATCH_CACHE_MAX_AGE_MS, "one"));
    assert_null(watch_cache_find(&watch_cache, "k", 100 + WATCH_CACHE_MAX_AGE_MS));
    keep(&watch_cache, "k", "two", 100 + WATCH_CACHE_MAX_AGE_MS);
    assert_true(says(&watch_cache, "k", 100 + WATCH_CACHE_MAX_AGE_MS, "two"));
    watch_cache_done(&watch_cache);
}

static void the_longest_unused_go_first(void **state)
{
    struct watch_cache watch_cache;
    char key[32];
    (void)state;
    assert_true(watch_cache_init(&watch_cache));
    for (int i = 0; i < WATCH_CACHE_KEYS_MAX + 10; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        keep(&watch_cache, key, "x", 0);
        assert_true(says(&watch_cache, "k0", 0, "x"));
    }
    assert_int_equal(watch_cache.table.count, WATCH_CACHE_KEYS_MAX);
    assert_null(watch_cache_find(&watch_cache, "k1", 0));
    assert_non_null(watch_cache_find(&watch_cache, key, 0));
    watch_cache_done(&watch_cache);
}

static void their_bytes_are_bounded(void **state)
{
    struct watch_cache watch_cache;
    enum { LARGE = 60000 };
    static char bytes[LARGE + 1];
    char key[32];
    (void)state;
    memset(bytes, 'x', LARGE);
    assert_true(watch_cache_init(&watch_cache));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        keep(&watch_cache, key, bytes, 0);
        assert_true(watch_cache.bytes <= WATCH_CACHE_BYTES_MAX);
        assert_non_null(watch_cache_find(&watch_cache, key, 0));
    }
    watch_cache_done(&watch_cache);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of records of a process: its content, its lifetime, and its eviction order. */
#include "runtime/record_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct record_cache record_cache;

static int open_knowledge(void **state)
{
    (void)state;
    return record_cache_init(&record_cache, RECORD_CACHE_BYTES_MAX) ? 0 : -1;
}

static int close_knowledge(void **state)
{
    (void)state;
    record_cache_done(&record_cache);
    return 0;
}

static void hear(struct record_cache_entry *entry, uint64_t revision, const char *bytes,
                 size_t length)
{
    static const uint64_t dead[] = {7, 8};
    struct store_reply reply = {.result = REPLY_OK,
                                .present = true,
                                .written = {.revision = revision},
                                .bytes = bytes,
                                .length = length,
                                .dead_sessions = dead,
                                .dead_count = 2};
    struct saved_reply *saved_reply = saved_reply_new(&reply);
    assert_non_null(saved_reply);
    record_cache_set(&record_cache, entry, saved_reply);
}

static void a_reply_is_copied_and_outlives_its_use(void **state)
{
    (void)state;
    char bytes[] = "a record";
    struct record_cache_entry *entry = record_cache_ref(&record_cache, "k");
    hear(entry, 5, bytes, sizeof bytes);
    memset(bytes, 'x', sizeof bytes);
    record_cache_unref(&record_cache, entry);
    entry = record_cache_find(&record_cache, "k");
    assert_non_null(entry);
    assert_string_equal(entry->saved_reply->reply.bytes, "a record");
    assert_int_equal(entry->saved_reply->reply.dead_sessions[1], 8);
    assert_int_equal(record_cache.copies, 1);
}

static void an_empty_cache_leaves_nothing(void **state)
{
    (void)state;
    struct record_cache_entry *entry = record_cache_ref(&record_cache, "k");
    record_cache_unref(&record_cache, entry);
    assert_null(record_cache_find(&record_cache, "k"));
    assert_int_equal(record_cache.bytes, 0);
}

/* An empty entry is not kept: it has no information. */
static void sights_are_kept_without_their_empty_room(void **state)
{
    (void)state;
    static struct observations seen = {.offer = 3, .offer_since_ms = 30, .count = 3}, loaded;
    seen.observed[0] = (struct observation){.token = 1024, .revision = 1, .since_ms = 10};
    seen.observed[1] = (struct observation){.token = 1, .revision = 0, .since_ms = 20};
    seen.observed[2] = (struct observation){.token = 2, .revision = 9, .since_ms = 30};
    struct record_cache_entry *entry = record_cache_ref(&record_cache, "k");
    record_cache_load_observations(entry, &loaded);
    assert_int_equal(loaded.count, 0);
    record_cache_save_observations(entry, &seen);
    record_cache_unref(&record_cache, entry);
    entry = record_cache_ref(&record_cache, "k");
    record_cache_load_observations(entry, &loaded);
    assert_int_equal(loaded.count, 2);
    assert_int_equal(loaded.offer, 3);
    assert_int_equal(loaded.offer_since_ms, 30);
    assert_int_equal(loaded.observed[1].token, 2);
    assert_int_equal(loaded.observed[1].since_ms, 30);
    memset(&seen, 0, sizeof seen);
    record_cache_save_observations(entry, &seen);
    assert_null(entry->observed);
    record_cache_unref(&record_cache, entry);
    assert_null(record_cache_find(&record_cache, "k"));
}

/* The longest unused goes first; an entry in use loses its copy, but not its observations. */
static void the_room_is_bounded(void **state)
{
    (void)state;
    static char bytes[32 * 1024];
    static struct observations seen = {.count = 1, .observed = {{.token = 1024, .revision = 1}}};
    char key[16];
    struct record_cache_entry *used = record_cache_ref(&record_cache, "in use");
    hear(used, 1, bytes, sizeof bytes);
    record_cache_save_observations(used, &seen);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct record_cache_entry *entry = record_cache_ref(&record_cache, key);
        hear(entry, 2, bytes, sizeof bytes);
        record_cache_unref(&record_cache, entry);
        assert_true(record_cache.bytes <= RECORD_CACHE_BYTES_MAX);
    }
    assert_null(record_cache_find(&record_cache, "k0"));
    assert_non_null(record_cache_find(&record_cache, "k499"));
    assert_null(used->saved_reply);
    assert_non_null(used->observed);
    hear(used, 3, bytes, sizeof bytes);
    assert_non_null(used->saved_reply);
    record_cache_unref(&record_cache, used);
}

static void a_small_cache_keeps_the_newest(void **state)
{
    (void)state;
    record_cache_done(&record_cache);
    assert_true(record_cache_init(&record_cache, RECORD_CACHE_BYTES_AT_ONCE));
    char key[16], bytes[1024] = "";
    for (int i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct record_cache_entry *entry = record_cache_ref(&record_cache, key);
        hear(entry, 1, bytes, sizeof bytes);
        record_cache_unref(&record_cache, entry);
        assert_true(record_cache.bytes <= RECORD_CACHE_BYTES_AT_ONCE);
    }
    assert_null(record_cache_find(&record_cache, "k0"));
    assert_non_null(record_cache_find(&record_cache, "k180"));
}

static void many_keys_are_found(void **state)
{
    (void)state;
    char key[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct record_cache_entry *entry = record_cache_ref(&record_cache, key);
        hear(entry, (uint64_t)i + 1, "x", 1);
    }
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct record_cache_entry *entry = record_cache_find(&record_cache, key);
        assert_non_null(entry);
        assert_int_equal(entry->saved_reply->reply.written.revision, i + 1);
        record_cache_unref(&record_cache, entry);
    }
    assert_true(record_cache.table.chain_count >= 4096);
}

#define KNOWLEDGE_TEST(name) cmocka_unit_test_setup_teardown(name, open_knowledge, close_knowledge)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KNOWLEDGE_TEST(a_reply_is_copied_and_outlives_its_use),
        KNOWLEDGE_TEST(an_empty_cache_leaves_nothing),
        KNOWLEDGE_TEST(sights_are_kept_without_their_empty_room),
        KNOWLEDGE_TEST(the_room_is_bounded),
        KNOWLEDGE_TEST(a_small_cache_keeps_the_newest),
        KNOWLEDGE_TEST(many_keys_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

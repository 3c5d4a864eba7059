/* SPDX-License-Identifier: Apache-2.0 */
/* What a process remembers of its keys, for how long, and what it forgets first. */
#include "runtime/knowledge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct knowledge knowledge;

static int open_knowledge(void **state)
{
    (void)state;
    return knowledge_init(&knowledge) ? 0 : -1;
}

static int close_knowledge(void **state)
{
    (void)state;
    knowledge_done(&knowledge);
    return 0;
}

static void hear(struct known *known, uint64_t revision, const char *bytes, size_t length)
{
    static const uint64_t dead[] = {7, 8};
    struct store_answer answer = {.result = ANSWER_OK,
                                  .present = true,
                                  .written = {.revision = revision},
                                  .bytes = bytes,
                                  .length = length,
                                  .dead_sessions = dead,
                                  .dead_count = 2};
    struct heard *heard = heard_new(&answer);
    assert_non_null(heard);
    knowledge_hear(&knowledge, known, heard);
}

static void what_was_heard_is_copied_and_outlives_its_use(void **state)
{
    (void)state;
    char bytes[] = "a record";
    struct known *known = knowledge_use(&knowledge, "k");
    hear(known, 5, bytes, sizeof bytes);
    memset(bytes, 'x', sizeof bytes);
    knowledge_return(&knowledge, known);
    known = knowledge_find(&knowledge, "k");
    assert_non_null(known);
    assert_string_equal(known->heard->answer.bytes, "a record");
    assert_int_equal(known->heard->answer.dead_sessions[1], 8);
    assert_int_equal(knowledge.copies, 1);
}

static void who_heard_nothing_leaves_nothing(void **state)
{
    (void)state;
    struct known *known = knowledge_use(&knowledge, "k");
    knowledge_return(&knowledge, known);
    assert_null(knowledge_find(&knowledge, "k"));
    assert_int_equal(knowledge.bytes, 0);
}

/* Empty room is not kept: it says nothing. */
static void sights_are_kept_without_their_empty_room(void **state)
{
    (void)state;
    static struct sighting seen = {.offer = 3, .offer_since_ms = 30, .count = 3}, loaded;
    seen.sights[0] = (struct sight){.token = 1024, .revision = 1, .since_ms = 10};
    seen.sights[1] = (struct sight){.token = 1, .revision = 0, .since_ms = 20};
    seen.sights[2] = (struct sight){.token = 2, .revision = 9, .since_ms = 30};
    struct known *known = knowledge_use(&knowledge, "k");
    knowledge_load_sights(known, &loaded);
    assert_int_equal(loaded.count, 0);
    knowledge_save_sights(known, &seen);
    knowledge_return(&knowledge, known);
    known = knowledge_use(&knowledge, "k");
    knowledge_load_sights(known, &loaded);
    assert_int_equal(loaded.count, 2);
    assert_int_equal(loaded.offer, 3);
    assert_int_equal(loaded.offer_since_ms, 30);
    assert_int_equal(loaded.sights[1].token, 2);
    assert_int_equal(loaded.sights[1].since_ms, 30);
    memset(&seen, 0, sizeof seen);
    knowledge_save_sights(known, &seen);
    assert_null(known->sights);
    knowledge_return(&knowledge, known);
    assert_null(knowledge_find(&knowledge, "k"));
}

/* The longest unused goes first; what is in use loses its copy, but not what was seen. */
static void the_room_is_bounded(void **state)
{
    (void)state;
    static char bytes[32 * 1024];
    static struct sighting seen = {.count = 1, .sights = {{.token = 1024, .revision = 1}}};
    char key[16];
    struct known *used = knowledge_use(&knowledge, "in use");
    hear(used, 1, bytes, sizeof bytes);
    knowledge_save_sights(used, &seen);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct known *known = knowledge_use(&knowledge, key);
        hear(known, 2, bytes, sizeof bytes);
        knowledge_return(&knowledge, known);
        assert_true(knowledge.bytes <= KNOWN_BYTES_MAX);
    }
    assert_null(knowledge_find(&knowledge, "k0"));
    assert_non_null(knowledge_find(&knowledge, "k499"));
    assert_null(used->heard);
    assert_non_null(used->sights);
    hear(used, 3, bytes, sizeof bytes);
    assert_non_null(used->heard);
    knowledge_return(&knowledge, used);
}

static void many_keys_are_found(void **state)
{
    (void)state;
    char key[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct known *known = knowledge_use(&knowledge, key);
        hear(known, (uint64_t)i + 1, "x", 1);
    }
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        struct known *known = knowledge_find(&knowledge, key);
        assert_non_null(known);
        assert_int_equal(known->heard->answer.written.revision, i + 1);
        knowledge_return(&knowledge, known);
    }
    assert_true(knowledge.table.chain_count >= 4096);
}

#define KNOWLEDGE_TEST(name) cmocka_unit_test_setup_teardown(name, open_knowledge, close_knowledge)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KNOWLEDGE_TEST(what_was_heard_is_copied_and_outlives_its_use),
        KNOWLEDGE_TEST(who_heard_nothing_leaves_nothing),
        KNOWLEDGE_TEST(sights_are_kept_without_their_empty_room),
        KNOWLEDGE_TEST(the_room_is_bounded),
        KNOWLEDGE_TEST(many_keys_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions of store.h, each true and false: absent, revision, grant with a token. The content
 * of a conflict, the reply to a write, and that revisions only grow.
 */
#include "suite.h"

#include <string.h>

static void a_key_never_written_is_absent(void)
{
    expect_absent(key_named("k"));
}

static void an_absent_key_is_created_once(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    uint64_t revision = put(0, key, if_absent, one);
    expect_stands(key, one, revision);
    for (unsigned client = 0; client < 3; client++)
        expect_conflict(ask(client, swapping(key, if_absent, two)), one, revision);
    expect_stands(key, one, revision);
}

static void a_revision_is_swapped_once(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    uint64_t first = put(0, key, if_absent, one);
    uint64_t second = put(1, key, if_revision(first), two);
    EXPECT(second > first);
    expect_conflict(ask(2, swapping(key, if_revision(first), one)), two, second);
    expect_conflict(ask(0, swapping(key, if_revision(second + 1), one)), two, second);
    expect_stands(key, two, second);
}

static void a_revision_of_nothing_is_a_conflict(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    uint64_t revision = put(0, other, if_absent, value_of(other, "one"));
    struct value nothing = {0};
    expect_conflict(ask(1, swapping(key, if_revision(revision), value_of(key, "two"))), nothing, 0);
    expect_conflict(ask(1, swapping(key, if_revision(1), value_of(key, "two"))), nothing, 0);
    expect_absent(key);
}

static void a_reply_carries_the_written_record(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    const struct store_reply *reply = ask(0, swapping(key, if_absent, one));
    EXPECT(reply->result == REPLY_OK && !reply->more);
    EXPECT(has_value(reply, one));
    EXPECT(reply->written.revision > 0 && reply->written.revision <= REVISION_MAX);
    reply = ask(1, swapping(key, if_revision(reply->written.revision), two));
    EXPECT(reply->result == REPLY_OK && !reply->more);
    EXPECT(has_value(reply, two));
}

static void times_are_the_stores_and_never_go_back(void)
{
    const char *key = key_named("k");
    int64_t now_ms = 0, time_ms = 0;
    uint64_t revision = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct condition condition = i == 0 ? if_absent : if_revision(revision);
        const struct store_reply *reply = ask(i, swapping(key, condition, value_of(key, "h")));
        EXPECT(reply->result == REPLY_OK);
        EXPECT(reply->written.time_ms >= 0 && reply->written.time_ms <= reply->now_ms);
        EXPECT(reply->now_ms <= TIME_MAX_MS);
        EXPECT(reply->written.time_ms >= time_ms && reply->now_ms >= now_ms);
        revision = reply->written.revision;
        time_ms = reply->written.time_ms;
        now_ms = reply->now_ms;
        reply = ask(i + 1, reading(key));
        EXPECT(reply->written.time_ms == time_ms);
        EXPECT(reply->now_ms >= now_ms);
        now_ms = reply->now_ms;
    }
    suite_sleep(50);
    EXPECT(ask(0, reading(key))->now_ms >= now_ms + 40 - suite_facts().margin_ms);
    EXPECT(ask(1, reading(key))->written.time_ms == time_ms);
}

static void a_conflict_carries_the_time_too(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one");
    const struct store_reply *reply = ask(0, swapping(key, if_absent, one));
    int64_t time_ms = reply->written.time_ms;
    suite_sleep(10);
    reply = ask(1, swapping(key, if_absent, one));
    EXPECT(reply->result == REPLY_CONFLICT);
    EXPECT(reply->written.time_ms == time_ms);
    EXPECT(reply->now_ms >= time_ms);
}

/* Revisions also grow across deletes, recreated keys and other keys: tokens are never reused. */
static void revisions_grow_over_deletes(void)
{
    const char *key = key_named("k");
    uint64_t revision = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t next = put(i, key, if_absent, value_of(key, "again"));
        EXPECT(next > revision);
        revision = put(i + 1, key, if_revision(next), value_of(key, "more"));
        EXPECT(revision > next);
        EXPECT(ask(i + 2, deleting(key, if_revision(revision)))->result == REPLY_OK);
    }
}

static void revisions_grow_while_others_write(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    uint64_t revision = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t beside = put(i, other, if_absent, value_of(other, "beside"));
        uint64_t next = put(i + 1, key, if_absent, value_of(key, "again"));
        EXPECT(next > revision);
        revision = next;
        EXPECT(ask(i, deleting(other, if_revision(beside)))->result == REPLY_OK);
        EXPECT(ask(i, deleting(key, if_revision(next)))->result == REPLY_OK);
    }
}

static void a_delete_needs_its_revision(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), nothing = {0};
    uint64_t revision = put(0, key, if_absent, one);
    expect_conflict(ask(1, deleting(key, if_revision(revision + 1))), one, revision);
    expect_conflict(ask(1, deleting(key, if_revision(revision - 1))), one, revision);
    expect_stands(key, one, revision);
    const struct store_reply *reply = ask(1, deleting(key, if_revision(revision)));
    EXPECT(reply->result == REPLY_OK && !reply->present);
    expect_absent(key);
    expect_conflict(ask(0, deleting(key, if_revision(revision))), nothing, 0);
    expect_conflict(ask(1, swapping(key, if_revision(revision), one)), nothing, 0);
    expect_absent(key);
}

static void an_old_revision_deletes_nothing(void)
{
    const char *key = key_named("k");
    struct value two = value_of(key, "two");
    uint64_t first = put(0, key, if_absent, value_of(key, "one"));
    uint64_t second = put(1, key, if_revision(first), two);
    expect_conflict(ask(0, deleting(key, if_revision(first))), two, second);
    EXPECT(ask(1, deleting(key, if_revision(second)))->result == REPLY_OK);
    uint64_t third = put(0, key, if_absent, two);
    expect_conflict(ask(1, deleting(key, if_revision(first))), two, third);
    expect_conflict(ask(1, deleting(key, if_revision(second))), two, third);
    expect_stands(key, two, third);
}

/* The last writer may have cached the record; for it the key must be absent, too. */
static void a_swap_does_not_recreate_a_deleted_key(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), nothing = {0};
    for (unsigned i = 0; i < 3; i++) {
        uint64_t revision = put(i, key, if_absent, one);
        EXPECT(ask(i + 1, deleting(key, if_revision(revision)))->result == REPLY_OK);
        expect_conflict(ask(i, swapping(key, if_revision(revision), one)), nothing, 0);
        expect_absent(key);
    }
}

static void a_deleted_key_costs_nothing(void)
{
    const char *key = key_named("k");
    for (unsigned i = 0; i < 5; i++) {
        uint64_t revision = put(i, key, if_absent, value_of(key, "one"));
        EXPECT(list_keys(i + 1, key).count == 1);
        EXPECT(ask(i, deleting(key, if_revision(revision)))->result == REPLY_OK);
        EXPECT(list_keys(i + 1, key).count == 0);
    }
}

static const struct test_case test_cases[] = {
    {"read: a key never written is absent", a_key_never_written_is_absent, 0, false},
    {"swap: an absent key is created once, and the conflict carries the record",
     an_absent_key_is_created_once, 0, false},
    {"swap: a revision is swapped once", a_revision_is_swapped_once, 0, false},
    {"swap: a revision of nothing is a conflict", a_revision_of_nothing_is_a_conflict, 0, false},
    {"swap: the reply to a write carries the written record", a_reply_carries_the_written_record, 0,
     false},
    {"time: it is the store's, stands with the record and never goes back",
     times_are_the_stores_and_never_go_back, STORE_TIME, false},
    {"time: a conflict carries it too", a_conflict_carries_the_time_too, STORE_TIME, false},
    {"revision: it grows over deletes", revisions_grow_over_deletes, STORE_DELETES, false},
    {"revision: it grows while others write", revisions_grow_while_others_write, STORE_DELETES,
     false},
    {"delete: it needs its revision", a_delete_needs_its_revision, STORE_DELETES, false},
    {"delete: an old revision deletes nothing", an_old_revision_deletes_nothing, STORE_DELETES,
     false},
    {"delete: a swap does not recreate a deleted key", a_swap_does_not_recreate_a_deleted_key,
     STORE_DELETES, false},
    {"delete: a deleted key costs nothing", a_deleted_key_costs_nothing, STORE_DELETES, false},
};

const struct test_group record_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

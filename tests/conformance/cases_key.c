/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and records at their limits: every valid key is distinct, a list contains the keys with the
 * prefix and no others, and values are read back byte for byte.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/* The reply for the key, which must be there exactly once. */
static const struct store_reply *listed(const struct client_replies *client_replies,
                                        const char *key)
{
    size_t found = 0, at = 0;
    for (size_t i = 0; i < client_replies->count; i++) {
        if (strcmp(client_replies->list[i].reply.key, key) != 0)
            continue;
        found++;
        at = i;
    }
    EXPECT(found == 1);
    return &client_replies->list[at].reply;
}

static void a_list_has_the_keys_of_its_prefix(void)
{
    static const char *const names[] = {"job/1", "job/2", "job/10", "job", "jobs/1", "lock/1"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (unsigned i = 0; i < NAMES; i++)
        (void)put(i, key_named(names[i]), if_absent, value_of(key_named(names[i]), names[i]));
    static const struct {
        const char *prefix;
        size_t count;
    } lists_of[] = {{"job/", 3}, {"job/1", 2}, {"job", 5},    {"jobs/", 1}, {"lock/1", 1},
                    {"", 6},     {"joc", 0},   {"job/1/", 0}, {"job/11", 0}};
    for (unsigned i = 0; i < sizeof lists_of / sizeof lists_of[0]; i++)
        EXPECT(list_keys(i, key_named(lists_of[i].prefix)).count == lists_of[i].count);
}

static void a_list_carries_the_records(void)
{
    enum { KEYS = 20 };
    const char *keys[KEYS];
    struct value values[KEYS];
    uint64_t revisions[KEYS];
    char name[16];
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(name, sizeof name, "k%02u", i);
        keys[i] = key_named(name);
        values[i] = value_of(keys[i], name);
        revisions[i] = put(i, keys[i], if_absent, values[i]);
    }
    struct client_replies client_replies = list_keys(1, key_named(""));
    EXPECT(client_replies.count == KEYS);
    for (unsigned i = 0; i < KEYS; i++) {
        const struct store_reply *reply = listed(&client_replies, keys[i]);
        EXPECT(has_value(reply, values[i]));
        EXPECT(reply->written.revision == revisions[i]);
    }
}

/* The store lists every key; the caller reports which records it cannot decode. */
static void an_unreadable_record_is_listed_too(void)
{
    const char *const names[] = {"a", "b", "c"};
    struct value junk = {.bytes = "no record at all", .length = sizeof "no record at all" - 1};
    for (unsigned i = 0; i < 3; i++) {
        const char *key = key_named(names[i]);
        (void)put(i, key, if_absent, i == 1 ? junk : value_of(key, "h"));
    }
    for (unsigned client = 0; client < 3; client++) {
        struct client_replies client_replies = list_keys(client, key_named(""));
        EXPECT(client_replies.count == 3);
        for (size_t i = 0; i < client_replies.count; i++) {
            const struct store_reply *reply = &client_replies.list[i].reply;
            bool is_junk = strcmp(reply->key, key_named("b")) == 0;
            EXPECT(has_value(reply, is_junk ? junk : value_of(reply->key, "h")));
        }
    }
}

static void the_empty_prefix_lists_all(void)
{
    const char *a = key_named("a"), *b = key_named("b");
    (void)put(0, a, if_absent, value_of(a, "one"));
    (void)put(1, b, if_absent, value_of(b, "one"));
    struct client_replies client_replies = list_keys(1, "");
    (void)listed(&client_replies, a);
    (void)listed(&client_replies, b);
}

static void a_long_list_is_whole(void)
{
    enum { KEYS = 300 };
    char name[16];
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(name, sizeof name, "%u", i * 7919);
        (void)put(i, key_named(name), if_absent, value_of(key_named(name), name));
    }
    struct client_replies client_replies = list_keys(1, key_named(""));
    EXPECT(client_replies.count == KEYS);
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(name, sizeof name, "%u", i * 7919);
        (void)listed(&client_replies, key_named(name));
    }
}

/* All of them must be distinct: no folding of case, of folders or of escapes. */
static const char *const odd_names[] = {
    "a",       "A",         "a/",       "/a",        "a//b",     "a/b",
    "a/../b",  "../a",      ".",        "..",        "a b",      " a",
    "a ",      "a%2Fb",     "a%",       "%00",       "a\\b",     "a\"b",
    "a'b;--",  "*",         "a?[b]",    "$1",        "#",        "a:b",
    "a=b&c=d", "{\"k\":1}", "\xc3\xa9", "e\xcc\x81", "\xc3\x89", "\xf0\x9f\x94\x92",
    "~",       "-",         "--help",   "a,b",       "a.b",      "a_b",
};
enum { ODD_NAMES = sizeof odd_names / sizeof odd_names[0] };

static void every_key_is_its_own(void)
{
    const char *keys[ODD_NAMES];
    struct value values[ODD_NAMES];
    uint64_t revisions[ODD_NAMES];
    for (unsigned i = 0; i < ODD_NAMES; i++) {
        keys[i] = key_named(odd_names[i]);
        values[i] = value_of(keys[i], odd_names[i]);
        revisions[i] = put(i, keys[i], if_absent, values[i]);
    }
    struct client_replies client_replies = list_keys(1, key_named(""));
    EXPECT(client_replies.count == ODD_NAMES);
    for (unsigned i = 0; i < ODD_NAMES; i++) {
        (void)listed(&client_replies, keys[i]);
        expect_stands(keys[i], values[i], revisions[i]);
    }
}

static void odd_prefixes_are_words_too(void)
{
    static const struct {
        const char *prefix;
        size_t count;
    } lists_of[] = {{"a%", 2}, {"%", 1}, {"a\\", 1}, {"_", 0}, {"a/", 4}, {"*", 1}, {".", 3}};
    for (unsigned i = 0; i < ODD_NAMES; i++)
        (void)put(i, key_named(odd_names[i]), if_absent, value_of(key_named(odd_names[i]), "h"));
    for (unsigned i = 0; i < sizeof lists_of / sizeof lists_of[0]; i++)
        EXPECT(list_keys(i, key_named(lists_of[i].prefix)).count == lists_of[i].count);
}

/* Keys of the maximum length, which differ only at their ends. */
static void the_longest_keys_are_distinct(void)
{
    char name[KEY_MAX + 1];
    const char *keys[4];
    struct value values[4];
    uint64_t revisions[4];
    size_t room = KEY_MAX - strlen(key_named(""));
    for (unsigned i = 0; i < 4; i++) {
        memset(name, 'x', room);
        name[room - (i == 3 ? 1 : 0)] = '\0';
        name[room - 2] = (char)('a' + i);
        keys[i] = key_named(name);
        values[i] = value_of(keys[i], "long");
        revisions[i] = put(i, keys[i], if_absent, values[i]);
    }
    EXPECT(strlen(keys[0]) == KEY_MAX && strlen(keys[3]) == KEY_MAX - 1);
    EXPECT(list_keys(0, key_named("xxx")).count == 4);
    EXPECT(list_keys(0, keys[1]).count == 1);
    for (unsigned i = 0; i < 4; i++)
        expect_stands(keys[i], values[i], revisions[i]);
}

/* This key is not unique to the run: a record of another user is left alone. */
static void one_byte_makes_a_key(void)
{
    static const char *const keys[] = {"q", "/", "%", "~", "0"};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct value one = value_of(keys[i], "one");
        const struct store_reply *reply = ask(i, swapping(keys[i], if_absent, one));
        if (reply->result == REPLY_CONFLICT && reply->present)
            continue;
        EXPECT(reply->result == REPLY_OK);
        expect_stands(keys[i], one, reply->written.revision);
        struct client_replies client_replies = list_keys(i, keys[i]);
        (void)listed(&client_replies, keys[i]);
        struct condition condition = if_revision(reply->written.revision);
        if ((suite_bits() & STORE_DELETES) != 0)
            EXPECT(ask(i + 1, deleting(keys[i], condition))->result == REPLY_OK);
    }
}

static void a_key_may_begin_another(void)
{
    static const char *const names[] = {"a", "a/b", "a/b/c", "a/b/c/d"};
    uint64_t revisions[4];
    for (unsigned i = 0; i < 4; i++)
        revisions[i] = put(i, key_named(names[i]), if_absent, value_of(key_named(names[i]), "h"));
    for (unsigned i = 0; i < 4; i++)
        EXPECT(list_keys(i, key_named(names[i])).count == 4 - i);
    if ((suite_bits() & STORE_DELETES) == 0)
        return;
    EXPECT(ask(0, deleting(key_named("a/b"), if_revision(revisions[1])))->result == REPLY_OK);
    for (unsigned i = 0; i < 4; i += i == 0 ? 2 : 1)
        expect_stands(key_named(names[i]), value_of(key_named(names[i]), "h"), revisions[i]);
}

static void the_largest_record_is_kept(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    struct value largest = value_of_size(key, RECORD_MAX), small = value_of(key, "small");
    EXPECT(largest.length == RECORD_MAX);
    uint64_t revision = put(0, key, if_absent, largest);
    uint64_t beside = put(1, other, if_absent, value_of(other, "beside"));
    expect_stands(key, largest, revision);
    expect_conflict(ask(1, swapping(key, if_absent, small)), largest, revision);
    revision = put(1, key, if_revision(revision), small);
    expect_stands(key, small, revision);
    revision = put(0, key, if_revision(revision), largest);
    expect_stands(key, largest, revision);
    expect_stands(other, value_of(other, "beside"), beside);
    EXPECT(list_keys(0, key_named("")).count == 2);
}

static void the_smallest_record_is_kept(void)
{
    const char *key = key_named("k");
    struct record *record = value_record(key, "nobody");
    record->grant_count = 0;
    record->cooling.length_ms = 1;
    struct value smallest = value_encode(record);
    uint64_t revision = put(0, key, if_absent, smallest);
    expect_stands(key, smallest, revision);
    revision = put(1, key, if_revision(revision), smallest);
    expect_stands(key, smallest, revision);
}

static void a_record_is_read_back_byte_for_byte(void)
{
    static const char *const texts[] = {
        "plain",        "\"quoted\\\"",          "back\\slash \\n \\u0041",
        "1e2 0.10 -0",  "\xc3\xa9 e\xcc\x81",    "\xf0\x9f\x94\x92",
        "<&amp;>",      "two  spaces ",          "null",
        "\xe2\x80\xa8", "'; DROP TABLE records", "\xef\xbf\xbd",
    };
    const char *key = key_named("k");
    struct condition condition = if_absent;
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct record *record = value_record(key, texts[i]);
        EXPECT(meta_add(&record->grants[0].meta, texts[i], "") &&
               meta_add(&record->grants[0].meta, "b", texts[i]) &&
               meta_add(&record->grants[0].meta, "a", "1"));
        (void)snprintf(record->reason, sizeof record->reason, "%s", texts[i]);
        struct value value = value_encode(record);
        uint64_t revision = put(i, key, condition, value);
        expect_stands(key, value, revision);
        condition = if_revision(revision);
    }
}

static const struct test_case test_cases[] = {
    {"list: it has the keys that begin with its prefix", a_list_has_the_keys_of_its_prefix, 0,
     false},
    {"list: it carries the records", a_list_carries_the_records, 0, false},
    {"list: it has unreadable records too", an_unreadable_record_is_listed_too, 0, false},
    {"list: the empty prefix lists all", the_empty_prefix_lists_all, 0, false},
    {"list: a long one is whole", a_long_list_is_whole, 0, false},
    {"list: odd prefixes are words too", odd_prefixes_are_words_too, 0, false},
    {"key: every one is its own", every_key_is_its_own, 0, false},
    {"key: the longest are distinct", the_longest_keys_are_distinct, 0, false},
    {"key: one byte makes one", one_byte_makes_a_key, 0, false},
    {"key: one may begin another", a_key_may_begin_another, 0, false},
    {"record: the largest is kept", the_largest_record_is_kept, 0, false},
    {"record: the smallest is kept", the_smallest_record_is_kept, 0, false},
    {"record: it is read back byte for byte", a_record_is_read_back_byte_for_byte, 0, false},
};

const struct test_group key_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

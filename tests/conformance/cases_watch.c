/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: every change under the prefix arrives soon and in order, and nothing else does. Close
 * changes of one key may be merged; the last one always arrives.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { QUIET_MS = 60 };

static void watch(unsigned client, const char *prefix)
{
    const struct store_reply *reply =
        ask(client, (struct store_request){.verb = VERB_STORE_WATCH, .key = prefix});
    EXPECT(reply->result == REPLY_OK && reply->more);
}

/* Changes of this case's keys: watches of other cases are still open. */
static struct client_replies changes(unsigned client, size_t wanted, int64_t wait_ms)
{
    struct client_reply *ours = NULL;
    struct client_replies all = {0};
    int64_t until_ms = suite_now_ms() + wait_ms;
    do {
        struct client_replies came =
            client_changes(client, /* wanted= */ 1, until_ms - suite_now_ms());
        ours = suite_keep(NULL, (all.count + came.count) * sizeof *ours);
        if (all.count > 0)
            memcpy(ours, all.list, all.count * sizeof *ours);
        all.list = ours;
        for (size_t i = 0; i < came.count; i++) {
            EXPECT(came.list[i].reply.result == REPLY_OK && came.list[i].reply.key != NULL);
            if (strncmp(came.list[i].reply.key, key_named(""), strlen(key_named(""))) == 0)
                ours[all.count++] = came.list[i];
        }
    } while (all.count < wanted && suite_now_ms() < until_ms);
    return all;
}

static bool is_news_of(const struct store_reply *news, const char *key, uint64_t revision)
{
    return strcmp(news->key, key) == 0 && news->present && news->written.revision == revision;
}

/* Waits for that change; earlier ones must be of the watched keys. */
static const struct store_reply *expect_news(unsigned client, const char *key, uint64_t revision)
{
    for (unsigned looks = 0; looks < 8; looks++) {
        struct client_replies client_replies = changes(client, /* wanted= */ 1, suite_soon_ms());
        EXPECT(client_replies.count > 0); /* in time */
        for (size_t i = 0; i < client_replies.count; i++)
            if (is_news_of(&client_replies.list[i].reply, key, revision))
                return &client_replies.list[i].reply;
    }
    suite_fail("the change was not reported");
}

static void a_change_is_reported_to_others(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    watch(1, key);
    uint64_t revision = put(0, key, if_absent, one);
    const struct store_reply *news = expect_news(1, key, revision);
    EXPECT(news->result == REPLY_OK && news->more && has_value(news, one));
    revision = put(2, key, if_revision(revision), two);
    EXPECT(has_value(expect_news(1, key, revision), two));
}

static void a_change_of_ones_own_is_reported_too(void)
{
    const char *key = key_named("k");
    watch(1, key);
    uint64_t revision = put(1, key, if_absent, value_of(key, "one"));
    (void)expect_news(1, key, revision);
}

static void a_watch_keeps_to_its_prefix(void)
{
    static const char *const outside[] = {"b/1", "a", "A/1", "xa/1", "ab/1"};
    const char *inside = key_named("a/1");
    watch(1, key_named("a/"));
    for (unsigned i = 0; i < sizeof outside / sizeof outside[0]; i++)
        (void)put(i, key_named(outside[i]), if_absent, value_of(key_named(outside[i]), "h"));
    uint64_t revision = put(0, inside, if_absent, value_of(inside, "h"));
    struct client_replies client_replies = changes(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(client_replies.count == 1 &&
           is_news_of(&client_replies.list[0].reply, inside, revision));
    EXPECT(changes(1, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void a_refused_write_is_not_reported(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one");
    uint64_t revision = put(0, key, if_absent, one);
    watch(1, key);
    EXPECT(ask(0, swapping(key, if_absent, one))->result == REPLY_CONFLICT);
    EXPECT(ask(0, swapping(key, if_revision(revision + 1), one))->result == REPLY_CONFLICT);
    EXPECT(ask(0, reading(key))->result == REPLY_OK);
    struct client_replies client_replies = changes(1, /* wanted= */ 1, QUIET_MS);
    for (size_t i = 0; i < client_replies.count; i++) /* the earlier record may be repeated */
        EXPECT(is_news_of(&client_replies.list[i].reply, key, revision));
}

static void a_delete_is_reported_as_absent(void)
{
    const char *key = key_named("k");
    uint64_t revision = put(0, key, if_absent, value_of(key, "one"));
    watch(1, key);
    EXPECT(ask(0, deleting(key, if_revision(revision)))->result == REPLY_OK);
    for (unsigned looks = 0; looks < 8; looks++) {
        struct client_replies client_replies = changes(1, /* wanted= */ 1, suite_soon_ms());
        EXPECT(client_replies.count > 0);
        const struct store_reply *last = &client_replies.list[client_replies.count - 1].reply;
        EXPECT(strcmp(last->key, key) == 0);
        if (!last->present)
            return;
    }
    suite_fail("the delete was not reported");
}

static void revisions_are_reported_in_order(void)
{
    enum { WRITES = 30 };
    const char *keys[2] = {key_named("a"), key_named("b")};
    uint64_t revisions[2] = {0, 0}, notify[2] = {0, 0};
    watch(1, key_named(""));
    for (unsigned i = 0; i < WRITES; i++) {
        struct condition condition = i < 2 ? if_absent : if_revision(revisions[i % 2]);
        revisions[i % 2] = put(i / 2, keys[i % 2], condition, value_of(keys[i % 2], "h"));
    }
    while (notify[0] != revisions[0] || notify[1] != revisions[1]) {
        struct client_replies client_replies = changes(1, /* wanted= */ 1, suite_soon_ms());
        EXPECT(client_replies.count > 0);
        for (size_t i = 0; i < client_replies.count; i++) {
            const struct store_reply *news = &client_replies.list[i].reply;
            size_t which = strcmp(news->key, keys[0]) == 0 ? 0 : 1;
            EXPECT(strcmp(news->key, keys[which]) == 0 && news->present);
            EXPECT(news->written.revision > notify[which]);
            notify[which] = news->written.revision;
        }
    }
}

/* A client that watches before it reads misses no change, however close. */
static void nothing_is_lost_between_watch_and_look(void)
{
    for (unsigned i = 0; i < 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%u", i);
        const char *key = key_named(name);
        struct store_request requests[2] = {{.verb = VERB_STORE_WATCH, .key = key},
                                            swapping(key, if_absent, value_of(key, "h"))};
        struct client_replies got[2];
        for (unsigned turn = 0; turn < 2; turn++) /* either one goes first */
            client_send(1 + (i + turn) % 2, &requests[(i + turn) % 2], 1);
        for (unsigned turn = 0; turn < 2; turn++)
            got[(i + turn) % 2] = client_receive(1 + (i + turn) % 2);
        EXPECT(got[0].count == 1 && got[0].list[0].reply.result == REPLY_OK);
        EXPECT(got[1].count == 1 && got[1].list[0].reply.result == REPLY_OK);
        uint64_t revision = got[1].list[0].reply.written.revision;
        if (!ask(1, reading(key))->present)
            (void)expect_news(1, key, revision);
    }
}

/* The watch precedes the write, so the write is delivered, also in the same batch. */
static void later_writes_of_the_batch_are_reported(void)
{
    const char *key = key_named("k");
    struct store_request requests[2] = {{.verb = VERB_STORE_WATCH, .key = key},
                                        swapping(key, if_absent, value_of(key, "one"))};
    client_send(1, requests, 2);
    struct client_replies client_replies = client_receive(1);
    EXPECT(client_replies.count == 2);
    size_t swap = client_replies.list[0].of == 1 ? 0 : 1;
    EXPECT(client_replies.list[0].reply.result == REPLY_OK);
    EXPECT(client_replies.list[1].reply.result == REPLY_OK);
    (void)expect_news(1, key, client_replies.list[swap].reply.written.revision);
}

/* Many writes: a compaction must not drop watches. */
static void a_watch_goes_on_while_much_is_written(void)
{
    enum { WRITES = 60, SIZE = 32 * 1024 };
    const char *key = key_named("k"), *other = key_named("other");
    watch(1, key);
    uint64_t revision = put(0, key, if_absent, value_of(key, "one"));
    (void)expect_news(1, key, revision);
    struct value large = value_of_size(other, SIZE);
    uint64_t beside = put(2, other, if_absent, large);
    for (unsigned i = 0; i < WRITES; i++)
        beside = put(i, other, if_revision(beside), large);
    revision = put(0, key, if_revision(revision), value_of(key, "two"));
    (void)expect_news(1, key, revision);
    EXPECT(changes(1, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void several_watches_receive_every_change(void)
{
    enum { WATCHES = 3 };
    const char *key = key_named("k");
    size_t each = clients_count() == 1 ? WATCHES : 1;
    for (unsigned client = 0; client < WATCHES; client++)
        watch(client, key);
    uint64_t revision = put(0, key, if_absent, value_of(key, "one"));
    for (unsigned client = 0; client < WATCHES / each; client++) {
        struct client_replies client_replies = changes(client, each, suite_soon_ms());
        EXPECT(client_replies.count == each);
        for (size_t i = 0; i < each; i++)
            EXPECT(is_news_of(&client_replies.list[i].reply, key, revision));
    }
}

static const struct test_case test_cases[] = {
    {"watch: a change is reported to others", a_change_is_reported_to_others, STORE_WATCHES, false},
    {"watch: a change of one's own is reported too", a_change_of_ones_own_is_reported_too,
     STORE_WATCHES, false},
    {"watch: it keeps to its prefix", a_watch_keeps_to_its_prefix, STORE_WATCHES, false},
    {"watch: a refused write is not reported", a_refused_write_is_not_reported, STORE_WATCHES,
     false},
    {"watch: a delete is reported as absent", a_delete_is_reported_as_absent,
     STORE_WATCHES | STORE_DELETES, false},
    {"watch: revisions are reported in order", revisions_are_reported_in_order, STORE_WATCHES,
     false},
    {"watch: nothing is lost between watch and read", nothing_is_lost_between_watch_and_look,
     STORE_WATCHES, false},
    {"watch: later writes of its batch are reported", later_writes_of_the_batch_are_reported,
     STORE_WATCHES, false},
    {"watch: it goes on while much is written", a_watch_goes_on_while_much_is_written,
     STORE_WATCHES, false},
    {"watch: several watches receive every change", several_watches_receive_every_change,
     STORE_WATCHES, false},
};

const struct test_group watch_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

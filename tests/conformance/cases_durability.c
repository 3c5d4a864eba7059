/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durability: the history of a key, where the store keeps one, and every confirmed write survive
 * the end of all processes that had the store open.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/* The changes of a key, newest first; checks and drops the end of the list. */
static struct client_replies history(unsigned client, const char *key)
{
    struct store_request request = {.verb = VERB_STORE_HISTORY, .key = key};
    client_send(client, &request, 1);
    struct client_replies client_replies = client_receive(client);
    EXPECT(client_replies.count > 0);
    const struct store_reply *end = &client_replies.list[--client_replies.count].reply;
    EXPECT(end->result == REPLY_OK && !end->more && !end->present);
    for (size_t i = 0; i < client_replies.count; i++) {
        const struct store_reply *change = &client_replies.list[i].reply;
        EXPECT(change->result == REPLY_OK && change->more);
        EXPECT(change->key == NULL || strcmp(change->key, key) == 0);
        EXPECT(change->written.revision > 0);
        EXPECT(i == 0 ||
               change->written.revision < client_replies.list[i - 1].reply.written.revision);
    }
    return client_replies;
}

static void history_that_is_not_kept_is_reported(void)
{
    const char *key = key_named("k");
    if ((suite_bits() & STORE_HISTORY) != 0) {
        EXPECT(history(0, key).count == 0);
        return;
    }
    const struct store_reply *reply =
        ask(0, (struct store_request){.verb = VERB_STORE_HISTORY, .key = key});
    EXPECT(reply->result == REPLY_TROUBLE && !reply->more && reply->why != NULL);
}

static void a_history_begins_with_the_newest(void)
{
    static const char *const holders[] = {"one", "two", "three", "four"};
    enum { CHANGES = sizeof holders / sizeof holders[0] };
    const char *key = key_named("k"), *other = key_named("kk");
    struct value values[CHANGES];
    uint64_t revisions[CHANGES];
    for (unsigned i = 0; i < CHANGES; i++) {
        values[i] = value_of(key, holders[i]);
        revisions[i] = put(i, key, i == 0 ? if_absent : if_revision(revisions[i - 1]), values[i]);
        if (i == 1)
            (void)put(0, other, if_absent, value_of(other, "beside"));
        EXPECT(ask(0, swapping(key, if_absent, values[i]))->result == REPLY_CONFLICT);
    }
    for (unsigned client = 0; client < clients_count(); client++) {
        struct client_replies client_replies = history(client, key);
        EXPECT(client_replies.count == CHANGES);
        for (size_t i = 0; i < CHANGES; i++) {
            const struct store_reply *change = &client_replies.list[i].reply;
            EXPECT(has_value(change, values[CHANGES - 1 - i]));
            EXPECT(change->written.revision == revisions[CHANGES - 1 - i]);
        }
    }
    EXPECT(history(1, other).count == 1);
}

static void a_history_contains_deletions(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    uint64_t first = put(0, key, if_absent, one);
    EXPECT(ask(1, deleting(key, if_revision(first)))->result == REPLY_OK);
    EXPECT(history(0, key).count == 2);
    uint64_t second = put(1, key, if_absent, two);
    struct client_replies client_replies = history(0, key);
    EXPECT(client_replies.count == 3);
    EXPECT(has_value(&client_replies.list[0].reply, two));
    EXPECT(client_replies.list[0].reply.written.revision == second);
    EXPECT(!client_replies.list[1].reply.present);
    EXPECT(has_value(&client_replies.list[2].reply, one));
    EXPECT(client_replies.list[2].reply.written.revision == first);
}

/* At least the newest hundred; the store may keep more. */
static void a_history_has_an_end(void)
{
    enum { CHANGES = 140, AT_LEAST = 100 };
    const char *key = key_named("k");
    uint64_t revisions[CHANGES];
    struct value value = value_of(key, "h");
    for (unsigned i = 0; i < CHANGES; i++)
        revisions[i] = put(i, key, i == 0 ? if_absent : if_revision(revisions[i - 1]), value);
    struct client_replies client_replies = history(1, key);
    EXPECT(client_replies.count >= AT_LEAST && client_replies.count <= CHANGES);
    for (size_t i = 0; i < client_replies.count; i++)
        EXPECT(client_replies.list[i].reply.written.revision == revisions[CHANGES - 1 - i]);
}

/* Restarts. */

struct remembered {
    const char *key;
    const struct store_reply *reply;
    struct stamp granted;
    uint64_t token;
};

static struct remembered remember(const char *name)
{
    struct remembered remembered = {.key = key_named(name)};
    remembered.reply =
        ask(0, swapping(remembered.key, if_absent, value_of(remembered.key, "holder")));
    EXPECT(remembered.reply->result == REPLY_OK);
    remembered.token = token_in(remembered.reply, remembered.key);
    remembered.granted = record_in(remembered.reply, remembered.key)->grants[0].granted;
    return remembered;
}

static void expect_remembered(const struct remembered *remembered)
{
    struct value value = {.bytes = remembered->reply->bytes, .length = remembered->reply->length};
    expect_stands(remembered->key, value, remembered->reply->written.revision);
    const struct store_reply *reply = ask(1, reading(remembered->key));
    EXPECT(token_in(reply, remembered->key) == remembered->token);
    const struct stamp *granted = &record_in(reply, remembered->key)->grants[0].granted;
    EXPECT(granted->time_ms == remembered->granted.time_ms);
    EXPECT(granted->epoch == remembered->granted.epoch);
}

/* An earlier write, an earlier delete and the first write after it: every client reads the same. */
static void over_a_restart(void (*restart)(void))
{
    struct remembered kept = remember("kept"), gone = remember("gone");
    struct condition condition = if_revision(gone.reply->written.revision);
    if ((suite_bits() & STORE_DELETES) != 0)
        EXPECT(ask(1, deleting(gone.key, condition))->result == REPLY_OK);
    restart();
    expect_remembered(&kept);
    if ((suite_bits() & STORE_DELETES) == 0)
        return;
    expect_absent(gone.key);
    const struct store_reply *anew =
        ask(1, swapping(gone.key, if_absent, value_of(gone.key, "holder")));
    EXPECT(anew->result == REPLY_OK);
    EXPECT(token_in(anew, gone.key) > gone.token);
    EXPECT(anew->written.revision > gone.reply->written.revision);
    uint64_t revision =
        put(0, kept.key, if_revision(kept.reply->written.revision), value_of(kept.key, "next"));
    EXPECT(revision > kept.reply->written.revision);
}

static void close_all(void)
{
    for (unsigned client = 0; client < clients_count(); client++)
        client_close(client);
    for (unsigned client = 0; client < clients_count(); client++)
        client_open(client);
}

static void close_one_by_one(void)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        client_close(client);
        client_open(client);
    }
}

static void kill_all(void)
{
    for (unsigned client = 0; client < clients_count(); client++)
        client_kill(client);
    for (unsigned client = 0; client < clients_count(); client++)
        client_replace(client);
}

static void acknowledged_writes_survive_a_close_of_all(void)
{
    over_a_restart(close_all);
}

static void acknowledged_writes_survive_each_close(void)
{
    over_a_restart(close_one_by_one);
}

static void acknowledged_writes_survive_a_kill_of_all(void)
{
    over_a_restart(kill_all);
}

static void an_untouched_key_survives_many_writes(void)
{
    enum { WRITES = 80, SIZE = 48 * 1024 };
    struct remembered kept = remember("kept");
    const char *key = key_named("k");
    struct value large = value_of_size(key, SIZE);
    uint64_t revision = put(0, key, if_absent, large);
    for (unsigned i = 0; i < WRITES; i++) {
        uint64_t next = put(i, key, if_revision(revision), large);
        EXPECT(next > revision);
        revision = next;
    }
    expect_remembered(&kept);
    expect_stands(key, large, revision);
    EXPECT(list_keys(2, key_named("")).count == 2);
}

/* A store may report an unknown outcome once for the writes of a killed process. */
static void settle(void)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        int64_t until_ms = suite_now_ms() + suite_soon_ms();
        while (ask(client, reading(key_named("k")))->result != REPLY_OK)
            EXPECT(suite_now_ms() < until_ms);
    }
}

/* Killed during a write: the write is complete or absent, and blocks no other client for long. */
static void a_writer_killed_midway_leaves_whole_records(void)
{
    enum { BATCH = 200, ROUNDS = 6 };
    static struct store_request requests[BATCH];
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[24];
        for (unsigned i = 0; i < BATCH; i++) {
            (void)snprintf(name, sizeof name, "%u/%03u", round, i);
            requests[i] = swapping(key_named(name), if_absent, value_of(key_named(name), name));
        }
        client_send(1, requests, BATCH);
        suite_sleep(round);
        client_kill(1);
        client_replace(1);
        settle();
        (void)snprintf(name, sizeof name, "%u/", round);
        struct client_replies client_replies = list_keys(2, key_named(name));
        for (size_t i = 0; i < client_replies.count; i++) {
            const struct store_reply *reply = &client_replies.list[i].reply;
            const char *holder = reply->key + strlen(key_named(""));
            EXPECT(has_value(reply, value_of(reply->key, holder)));
        }
        (void)snprintf(name, sizeof name, "%u/last", round);
        (void)put(0, key_named(name), if_absent, value_of(key_named(name), name));
    }
}

static void a_closed_store_replies_nothing_more(void)
{
    const char *key = key_named("k");
    struct store_request requests[2] = {reading(key),
                                        swapping(key, if_absent, value_of(key, "one"))};
    client_drop(1, requests, 2);
    client_open(1);
    const struct store_reply *reply = ask(1, reading(key));
    EXPECT(reply->result == REPLY_OK);
    if (!reply->present)
        (void)put(0, key, if_absent, value_of(key, "two"));
}

static void a_list_is_whole_after_a_restart(void)
{
    enum { KEYS = 40 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP";
    for (unsigned i = 0; i < KEYS; i++) {
        char name[2] = {letters[i], '\0'};
        uint64_t revision = put(i, key_named(name), if_absent, value_of(key_named(name), name));
        if (i % 4 == 0)
            EXPECT(ask(0, deleting(key_named(name), if_revision(revision)))->result == REPLY_OK);
    }
    close_all();
    for (unsigned client = 0; client < clients_count(); client++)
        EXPECT(list_keys(client, key_named("")).count == KEYS - KEYS / 4);
}

static const struct test_case test_cases[] = {
    {"history: a store that keeps none says so", history_that_is_not_kept_is_reported, 0, false},
    {"history: it begins with the newest", a_history_begins_with_the_newest, STORE_HISTORY, false},
    {"history: it contains deletions", a_history_contains_deletions, STORE_HISTORY | STORE_DELETES,
     false},
    {"history: it has an end", a_history_has_an_end, STORE_HISTORY, false},
    {"restart: answered writes survive when all have closed",
     acknowledged_writes_survive_a_close_of_all, STORE_DURABLE | STORE_TOKENS_RESTART, false},
    {"restart: answered writes survive when each has closed",
     acknowledged_writes_survive_each_close, STORE_DURABLE | STORE_TOKENS_RESTART, false},
    {"restart: answered writes survive when all were killed",
     acknowledged_writes_survive_a_kill_of_all, STORE_DURABLE | STORE_TOKENS_RESTART, true},
    {"restart: a death during a write leaves whole records",
     a_writer_killed_midway_leaves_whole_records, STORE_DURABLE, true},
    {"close: a closed store replies nothing more", a_closed_store_replies_nothing_more, 0, false},
    {"volume: an idle record survives many writes", an_untouched_key_survives_many_writes, 0,
     false},
    {"restart: a list is whole after it", a_list_is_whole_after_a_restart,
     STORE_DURABLE | STORE_DELETES, false},
};

const struct test_group durability_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

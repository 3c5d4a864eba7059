/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: many requests in one step of one client, each with its own outcome, in the order of
 * submission; and requests of several clients at the same time, where exactly one of two
 * conflicting writes succeeds.
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, LARGE_BATCH = 300 };

static struct store_request requests[LARGE_BATCH];

/* The replies in the order of the requests, not of their arrival. */
static const struct store_reply **gather(unsigned client, size_t count)
{
    struct client_replies client_replies = client_receive(client);
    const struct store_reply **answers = suite_keep(NULL, count * sizeof(void *));
    EXPECT(client_replies.count == count);
    for (size_t i = 0; i < count; i++) {
        const struct client_reply *client_reply = &client_replies.list[i];
        EXPECT(client_reply->of < count && answers[client_reply->of] == NULL);
        answers[client_reply->of] = &client_reply->reply;
    }
    return answers;
}

static const struct store_reply **ask_all(unsigned client, size_t count)
{
    client_send(client, requests, count);
    return gather(client, count);
}

static const char *key_number(size_t number)
{
    char name[24];
    (void)snprintf(name, sizeof name, "k%zu", number);
    return key_named(name);
}

static void each_of_a_batch_is_written(void)
{
    for (size_t i = 0; i < BATCH; i++)
        requests[i] = swapping(key_number(i), if_absent, value_of(key_number(i), "h"));
    const struct store_reply **answers = ask_all(0, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        EXPECT(answers[i]->result == REPLY_OK);
        EXPECT(has_value(answers[i], value_of(key_number(i), "h")));
        for (size_t j = 0; j < i; j++)
            EXPECT(answers[j]->written.revision != answers[i]->written.revision ||
                   strcmp(requests[j].key, requests[i].key) != 0);
    }
    EXPECT(list_keys(1, key_named("")).count == BATCH);
}

static void each_of_a_batch_has_its_own_outcome(void)
{
    uint64_t revisions[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        const char *key = key_number(i);
        if (i % 2 == 0)
            revisions[i] = put(0, key, if_absent, value_of(key, "before"));
        requests[i] = swapping(key, if_absent, value_of(key, "after"));
        if (i % 4 == 2)
            requests[i].condition = if_revision(revisions[i]);
    }
    const struct store_reply **answers = ask_all(1, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        const char *key = key_number(i);
        if (i % 4 == 0)
            expect_conflict(answers[i], value_of(key, "before"), revisions[i]);
        else
            EXPECT(answers[i]->result == REPLY_OK && has_value(answers[i], value_of(key, "after")));
    }
    for (size_t i = 0; i < BATCH; i++)
        expect_stands(key_number(i), value_of(key_number(i), i % 4 == 0 ? "before" : "after"),
                      answers[i]->written.revision);
}

static void in_a_batch_the_second_sees_the_first(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    requests[0] = reading(key);
    requests[1] = swapping(key, if_absent, one);
    requests[2] = swapping(key, if_absent, two);
    requests[3] = reading(key);
    const struct store_reply **answers = ask_all(0, 4);
    EXPECT(answers[0]->result == REPLY_OK && !answers[0]->present);
    EXPECT(answers[1]->result == REPLY_OK);
    expect_conflict(answers[2], one, answers[1]->written.revision);
    EXPECT(answers[3]->result == REPLY_OK && has_value(answers[3], one));
}

static void in_a_batch_a_key_comes_and_goes(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    uint64_t revision = put(0, key, if_absent, value_of(key, "one"));
    requests[0] = deleting(key, if_revision(revision));
    requests[1] = swapping(other, if_absent, value_of(other, "one"));
    requests[2] = swapping(key, if_absent, value_of(key, "two"));
    requests[3] = deleting(key, if_revision(revision));
    const struct store_reply **answers = ask_all(1, 4);
    for (size_t i = 0; i < 3; i++)
        EXPECT(answers[i]->result == REPLY_OK);
    EXPECT(answers[2]->written.revision > revision);
    expect_conflict(answers[3], value_of(key, "two"), answers[2]->written.revision);
}

static void a_large_batch_is_answered(void)
{
    for (size_t i = 0; i < LARGE_BATCH; i++) {
        const char *key = key_number(i % 100);
        requests[i] = swapping(key, if_absent, value_of(key, "h"));
        if (i % 3 == 2)
            requests[i] = reading(key);
    }
    const struct store_reply **answers = ask_all(0, LARGE_BATCH);
    size_t written = 0, refused = 0;
    for (size_t i = 0; i < LARGE_BATCH; i++) {
        written += requests[i].verb == VERB_STORE_SWAP && answers[i]->result == REPLY_OK ? 1 : 0;
        refused += answers[i]->result == REPLY_CONFLICT ? 1 : 0;
    }
    EXPECT(written == 100 && refused == 100);
    EXPECT(list_keys(1, key_named("")).count == 100);
}

static void a_callback_may_ask_again(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    struct value one = value_of(key, "one");
    requests[0] = reading(key);
    requests[1] = swapping(key, if_absent, one);
    requests[2] = swapping(key, if_absent, value_of(key, "two"));
    requests[3] = swapping(other, if_absent, value_of(other, "three"));
    requests[4] = reading(key);
    struct client_replies client_replies = client_chain(0, requests, 5);
    EXPECT(client_replies.count == 5);
    for (size_t i = 0; i < 5; i++)
        EXPECT(client_replies.list[i].of == i);
    EXPECT(!client_replies.list[0].reply.present);
    EXPECT(client_replies.list[1].reply.result == REPLY_OK);
    expect_conflict(&client_replies.list[2].reply, one,
                    client_replies.list[1].reply.written.revision);
    EXPECT(client_replies.list[3].reply.result == REPLY_OK);
    EXPECT(has_value(&client_replies.list[4].reply, one));
}

/* Both clients send before either receives. */
static void race(const char *key, unsigned client)
{
    const struct store_reply *answers[2];
    struct value values[2] = {value_of(key, "one"), value_of(key, "other")};
    for (unsigned i = 0; i < 2; i++) {
        requests[i] = swapping(key, if_absent, values[i]);
        client_send(client + i, &requests[i], 1);
    }
    for (unsigned i = 0; i < 2; i++)
        answers[i] = gather(client + i, 1)[0];
    EXPECT((answers[0]->result == REPLY_OK) != (answers[1]->result == REPLY_OK));
    size_t loser = answers[0]->result == REPLY_OK ? 1 : 0;
    expect_conflict(answers[loser], values[1 - loser], answers[1 - loser]->written.revision);
}

static void one_of_two_creations_succeeds(void)
{
    for (unsigned i = 0; i < 200; i++)
        race(key_number(i), i);
}

/* A store must not take the second write for a repetition of the first. */
static void of_two_equal_records_one_is_written(void)
{
    const char *key = key_named("k");
    const struct store_reply *seen = ask(0, swapping(key, if_absent, value_of(key, "first")));
    for (unsigned i = 0; i < 40; i++) {
        const struct store_reply *answers[2];
        requests[0] = swapping(key, if_revision(seen->written.revision), value_of(key, "equal"));
        for (unsigned client = 0; client < 2; client++)
            client_send(i + client, &requests[0], 1);
        for (unsigned client = 0; client < 2; client++)
            answers[client] = gather(i + client, 1)[0];
        EXPECT((answers[0]->result == REPLY_OK) != (answers[1]->result == REPLY_OK));
        seen = answers[answers[0]->result == REPLY_OK ? 0 : 1];
    }
}

static void of_two_batches_each_key_goes_to_one(void)
{
    enum { KEYS = 100 };
    const struct store_reply **answers[2];
    for (unsigned client = 0; client < 2; client++) {
        for (size_t i = 0; i < KEYS; i++) {
            const char *key = key_number(client == 0 ? i : KEYS - 1 - i);
            requests[i] = swapping(key, if_absent, value_of(key, client == 0 ? "one" : "other"));
        }
        client_send(client, requests, KEYS);
    }
    for (unsigned client = 0; client < 2; client++)
        answers[client] = gather(client, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        const struct store_reply *one = answers[0][i], *other = answers[1][KEYS - 1 - i];
        EXPECT((one->result == REPLY_OK) != (other->result == REPLY_OK));
        EXPECT(one->written.revision == other->written.revision);
    }
}

/* Increments the number in the record if it is unchanged since the read. */
static struct store_request counting_up(const struct store_reply *seen, const char *key)
{
    char number[24];
    const char *holder = record_in(seen, key)->grants[0].holder;
    (void)snprintf(number, sizeof number, "%ld", strtol(holder, NULL, 10) + 1);
    return swapping(key, if_revision(seen->written.revision), value_of(key, number));
}

static void no_update_is_lost(void)
{
    enum { PARTIES = 4, EACH = 50 };
    const char *key = key_named("k");
    const struct store_reply *first = ask(0, swapping(key, if_absent, value_of(key, "0")));
    const struct store_reply *seen[PARTIES] = {first, first, first, first};
    unsigned left[PARTIES] = {EACH, EACH, EACH, EACH};
    for (unsigned all = PARTIES * EACH, rounds = 0; all > 0; rounds++) {
        EXPECT(rounds < 10 * PARTIES * EACH); /* in every round a client succeeds */
        bool asked[PARTIES];
        for (unsigned i = 0; i < PARTIES; i++) {
            requests[i] = counting_up(seen[i], key);
            asked[i] = left[i] > 0;
            if (asked[i])
                client_send(i, &requests[i], 1);
        }
        for (unsigned i = 0; i < PARTIES; i++) {
            if (!asked[i])
                continue;
            seen[i] = gather(i, 1)[0];
            EXPECT(seen[i]->result == REPLY_OK || seen[i]->result == REPLY_CONFLICT);
            left[i] -= seen[i]->result == REPLY_OK ? 1 : 0;
            all -= seen[i]->result == REPLY_OK ? 1 : 0;
        }
    }
    EXPECT(strcmp(record_in(ask(1, reading(key)), key)->grants[0].holder, "200") == 0);
}

static const struct test_case test_cases[] = {
    {"batch: each is written", each_of_a_batch_is_written, 0, false},
    {"batch: each has its own outcome", each_of_a_batch_has_its_own_outcome, 0, false},
    {"batch: the second sees the first", in_a_batch_the_second_sees_the_first, 0, false},
    {"batch: a key comes and goes", in_a_batch_a_key_comes_and_goes, STORE_DELETES, false},
    {"batch: a large one is answered", a_large_batch_is_answered, 0, false},
    {"batch: a callback may ask again", a_callback_may_ask_again, 0, false},
    {"race: one of two creations succeeds", one_of_two_creations_succeeds, 0, false},
    {"race: of two equal records one is written", of_two_equal_records_one_is_written, 0, false},
    {"race: of two batches each key goes to one", of_two_batches_each_key_goes_to_one, 0, false},
    {"race: no update is lost", no_update_is_lost, 0, false},
};

const struct test_group batch_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

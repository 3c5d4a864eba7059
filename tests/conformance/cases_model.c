/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random requests from all clients in turn, alone and in batches: each reply must be that of a
 * simple model of a store. The random numbers are the same in every run.
 */
#include "suite.h"

#include <stdio.h>

enum { KEYS = 5, BATCH_MAX = 12, HOLDERS = 7 };

/* The unknown revision of a write in the same batch. */
#define ON_ITS_WAY UINT64_MAX

struct entry {
    const char *key;
    bool present;
    struct value value;
    uint64_t revision, revision_before;
    size_t writer; /* in this batch, while it is in flight */
};

struct expectation {
    enum reply_status result;
    bool present;
    struct value value;
    uint64_t revision;
    size_t writer;
};

static struct entry model[KEYS];
static struct random dice;

static bool holds(const struct entry *entry, const struct condition *condition)
{
    if (condition->kind == IF_ABSENT)
        return !entry->present;
    return entry->present && entry->revision == (condition->revision & REVISION_MAX);
}

static struct condition any_condition(const struct entry *entry)
{
    switch (random_below(&dice, 4)) {
    case 0:
        return if_absent;
    case 1:
        return if_revision(entry->revision_before / 2); /* an old revision */
    default:
        return if_revision(entry->revision != ON_ITS_WAY ? entry->revision
                                                         : entry->revision_before);
    }
}

static struct store_request any_request(const struct entry *entry)
{
    char holder[16];
    struct condition condition = any_condition(entry);
    uint64_t verb = random_below(&dice, 5);
    (void)snprintf(holder, sizeof holder, "h%u", (unsigned)random_below(&dice, HOLDERS));
    if (verb == 0)
        return reading(entry->key);
    if (verb == 1 && (suite_bits() & STORE_DELETES) != 0 && condition.kind == IF_REVISION)
        return deleting(entry->key, condition);
    return swapping(entry->key, entry->present ? condition : if_absent,
                    value_of(entry->key, holder));
}

/* The model's reply to the request with this index in its batch. */
static struct expectation apply(struct entry *entry, const struct store_request *request,
                                size_t number)
{
    struct expectation expected = {.result = REPLY_OK};
    bool done = request->verb == VERB_STORE_READ || holds(entry, &request->condition);
    if (!done)
        expected.result = REPLY_CONFLICT;
    if (done && request->verb == VERB_STORE_SWAP) {
        entry->value = (struct value){.bytes = request->bytes, .length = request->length};
        entry->present = true;
        entry->revision = ON_ITS_WAY;
        entry->writer = number;
    } else if (done && request->verb == VERB_STORE_DELETE) {
        entry->present = false;
    }
    expected.present = entry->present;
    expected.value = entry->value;
    expected.revision = entry->revision;
    expected.writer = entry->writer;
    return expected;
}

static void compare(const struct store_reply *reply, const struct expectation *expected,
                    const uint64_t *revisions)
{
    EXPECT(reply->result == expected->result);
    EXPECT(reply->present == expected->present);
    if (!expected->present)
        return;
    EXPECT(has_value(reply, expected->value));
    EXPECT(reply->written.revision ==
           (expected->revision == ON_ITS_WAY ? revisions[expected->writer] : expected->revision));
}

static void play_batch(unsigned client, size_t count)
{
    static struct store_request requests[BATCH_MAX];
    static struct expectation expected[BATCH_MAX];
    uint64_t revisions[BATCH_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = &model[random_below(&dice, KEYS)];
        requests[i] = any_request(entry);
        expected[i] = apply(entry, &requests[i], i);
    }
    client_send(client, requests, count);
    struct client_replies client_replies = client_receive(client);
    EXPECT(client_replies.count == count);
    for (size_t i = 0; i < count; i++)
        revisions[client_replies.list[i].of] = client_replies.list[i].reply.written.revision;
    for (size_t i = 0; i < count; i++)
        compare(&client_replies.list[i].reply, &expected[client_replies.list[i].of], revisions);
    for (size_t i = 0; i < KEYS; i++) {
        struct entry *entry = &model[i];
        if (entry->revision != ON_ITS_WAY)
            continue;
        EXPECT(revisions[entry->writer] > entry->revision_before);
        entry->revision = entry->revision_before = revisions[entry->writer];
    }
}

static void play(uint64_t seed, size_t batch)
{
    enum { ROUNDS = 120 };
    static const char *const names[KEYS] = {"a", "a/b", "b", "B", "c c"};
    dice.state = seed;
    for (size_t i = 0; i < KEYS; i++)
        model[i] = (struct entry){.key = key_named(names[i])};
    for (unsigned round = 0; round < ROUNDS; round++)
        play_batch((unsigned)random_below(&dice, clients_count()),
                   1 + (size_t)random_below(&dice, batch));
}

static void one_at_a_time_as_the_model(void)
{
    play(/* seed= */ 1, /* batch= */ 1);
}

static void in_batches_as_the_model(void)
{
    play(/* seed= */ 2, BATCH_MAX);
}

static const struct test_case test_cases[] = {
    {"model: random requests are answered as a plain store would", one_at_a_time_as_the_model, 0,
     false},
    {"model: random batches are answered as a plain store would", in_batches_as_the_model, 0,
     false},
};

const struct test_group model_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

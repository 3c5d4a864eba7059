/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store remembers: the changes of a key, where it keeps them, and everything it answered,
 * over the end of all processes that had it open.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/* The changes of a key, newest first, the end of the list looked at and left out. */
static struct tidings history(unsigned seat, const char *key)
{
    struct store_request request = {.verb = VERB_STORE_HISTORY, .key = key};
    seat_send(seat, &request, 1);
    struct tidings tidings = seat_receive(seat);
    EXPECT(tidings.count > 0);
    const struct store_answer *end = &tidings.list[--tidings.count].answer;
    EXPECT(end->result == ANSWER_OK && !end->more && !end->present);
    for (size_t i = 0; i < tidings.count; i++) {
        const struct store_answer *change = &tidings.list[i].answer;
        EXPECT(change->result == ANSWER_OK && change->more);
        EXPECT(change->key == NULL || strcmp(change->key, key) == 0);
        EXPECT(change->written.revision > 0);
        EXPECT(i == 0 || change->written.revision < tidings.list[i - 1].answer.written.revision);
    }
    return tidings;
}

static void what_is_not_kept_is_said_so(void)
{
    const char *key = key_named("k");
    if ((suite_bits() & STORE_HISTORY) != 0) {
        EXPECT(history(0, key).count == 0);
        return;
    }
    const struct store_answer *answer =
        ask(0, (struct store_request){.verb = VERB_STORE_HISTORY, .key = key});
    EXPECT(answer->result == ANSWER_TROUBLE && !answer->more && answer->why != NULL);
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
        EXPECT(ask(0, swapping(key, if_absent, values[i]))->result == ANSWER_CONFLICT);
    }
    for (unsigned seat = 0; seat < seats_count(); seat++) {
        struct tidings tidings = history(seat, key);
        EXPECT(tidings.count == CHANGES);
        for (size_t i = 0; i < CHANGES; i++) {
            const struct store_answer *change = &tidings.list[i].answer;
            EXPECT(has_value(change, values[CHANGES - 1 - i]));
            EXPECT(change->written.revision == revisions[CHANGES - 1 - i]);
        }
    }
    EXPECT(history(1, other).count == 1);
}

static void a_history_remembers_what_was_deleted(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one"), two = value_of(key, "two");
    uint64_t first = put(0, key, if_absent, one);
    EXPECT(ask(1, deleting(key, if_revision(first)))->result == ANSWER_OK);
    EXPECT(history(0, key).count == 2);
    uint64_t second = put(1, key, if_absent, two);
    struct tidings tidings = history(0, key);
    EXPECT(tidings.count == 3);
    EXPECT(has_value(&tidings.list[0].answer, two));
    EXPECT(tidings.list[0].answer.written.revision == second);
    EXPECT(!tidings.list[1].answer.present);
    EXPECT(has_value(&tidings.list[2].answer, one));
    EXPECT(tidings.list[2].answer.written.revision == first);
}

/* The newest hundred at least; how many more is the store's affair, but not all for ever. */
static void a_history_has_an_end(void)
{
    enum { CHANGES = 140, AT_LEAST = 100 };
    const char *key = key_named("k");
    uint64_t revisions[CHANGES];
    struct value value = value_of(key, "h");
    for (unsigned i = 0; i < CHANGES; i++)
        revisions[i] = put(i, key, i == 0 ? if_absent : if_revision(revisions[i - 1]), value);
    struct tidings tidings = history(1, key);
    EXPECT(tidings.count >= AT_LEAST && tidings.count <= CHANGES);
    for (size_t i = 0; i < tidings.count; i++)
        EXPECT(tidings.list[i].answer.written.revision == revisions[CHANGES - 1 - i]);
}

/* Restarts. */

struct memento {
    const char *key;
    const struct store_answer *answer;
    struct stamp granted;
    uint64_t token;
};

static struct memento remember(const char *name)
{
    struct memento memento = {.key = key_named(name)};
    memento.answer = ask(0, swapping(memento.key, if_absent, value_of(memento.key, "holder")));
    EXPECT(memento.answer->result == ANSWER_OK);
    memento.token = token_in(memento.answer, memento.key);
    memento.granted = record_in(memento.answer, memento.key)->grants[0].granted;
    return memento;
}

static void expect_remembered(const struct memento *memento)
{
    struct value value = {.bytes = memento->answer->bytes, .length = memento->answer->length};
    expect_stands(memento->key, value, memento->answer->written.revision);
    const struct store_answer *answer = ask(1, reading(memento->key));
    EXPECT(token_in(answer, memento->key) == memento->token);
    const struct stamp *granted = &record_in(answer, memento->key)->grants[0].granted;
    EXPECT(granted->time_ms == memento->granted.time_ms);
    EXPECT(granted->epoch == memento->granted.epoch);
}

/* Written before, deleted before, and the first write after: told by everybody. */
static void over_a_restart(void (*restart)(void))
{
    struct memento kept = remember("kept"), gone = remember("gone");
    struct condition condition = if_revision(gone.answer->written.revision);
    if ((suite_bits() & STORE_DELETES) != 0)
        EXPECT(ask(1, deleting(gone.key, condition))->result == ANSWER_OK);
    restart();
    expect_remembered(&kept);
    if ((suite_bits() & STORE_DELETES) == 0)
        return;
    expect_absent(gone.key);
    const struct store_answer *anew =
        ask(1, swapping(gone.key, if_absent, value_of(gone.key, "holder")));
    EXPECT(anew->result == ANSWER_OK);
    EXPECT(token_in(anew, gone.key) > gone.token);
    EXPECT(anew->written.revision > gone.answer->written.revision);
    uint64_t revision =
        put(0, kept.key, if_revision(kept.answer->written.revision), value_of(kept.key, "next"));
    EXPECT(revision > kept.answer->written.revision);
}

static void close_all(void)
{
    for (unsigned seat = 0; seat < seats_count(); seat++)
        seat_close(seat);
    for (unsigned seat = 0; seat < seats_count(); seat++)
        seat_open(seat);
}

static void close_one_by_one(void)
{
    for (unsigned seat = 0; seat < seats_count(); seat++) {
        seat_close(seat);
        seat_open(seat);
    }
}

static void kill_all(void)
{
    for (unsigned seat = 0; seat < seats_count(); seat++)
        seat_kill(seat);
    for (unsigned seat = 0; seat < seats_count(); seat++)
        seat_replace(seat);
}

static void what_was_answered_stands_when_all_have_closed(void)
{
    over_a_restart(close_all);
}

static void what_was_answered_stands_when_each_has_closed(void)
{
    over_a_restart(close_one_by_one);
}

static void what_was_answered_stands_when_all_were_killed(void)
{
    over_a_restart(kill_all);
}

static void what_nobody_touches_stands_while_much_is_written(void)
{
    enum { WRITES = 80, SIZE = 48 * 1024 };
    struct memento kept = remember("kept");
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

/* A store may have to say once that it does not know what became of a dead one's writes. */
static void settle(void)
{
    for (unsigned seat = 0; seat < seats_count(); seat++) {
        int64_t until_ms = suite_now_ms() + suite_soon_ms();
        while (ask(seat, reading(key_named("k")))->result != ANSWER_OK)
            EXPECT(suite_now_ms() < until_ms);
    }
}

/* Dead in the midst of it: what it wrote is whole or not there, and nobody is held up for long. */
static void who_dies_while_writing_leaves_whole_records(void)
{
    enum { BATCH = 200, ROUNDS = 6 };
    static struct store_request requests[BATCH];
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[24];
        for (unsigned i = 0; i < BATCH; i++) {
            (void)snprintf(name, sizeof name, "%u/%03u", round, i);
            requests[i] = swapping(key_named(name), if_absent, value_of(key_named(name), name));
        }
        seat_send(1, requests, BATCH);
        suite_sleep(round);
        seat_kill(1);
        seat_replace(1);
        settle();
        (void)snprintf(name, sizeof name, "%u/", round);
        struct tidings tidings = list_keys(2, key_named(name));
        for (size_t i = 0; i < tidings.count; i++) {
            const struct store_answer *answer = &tidings.list[i].answer;
            const char *holder = answer->key + strlen(key_named(""));
            EXPECT(has_value(answer, value_of(answer->key, holder)));
        }
        (void)snprintf(name, sizeof name, "%u/last", round);
        (void)put(0, key_named(name), if_absent, value_of(key_named(name), name));
    }
}

static void who_closes_is_answered_nothing_more(void)
{
    const char *key = key_named("k");
    struct store_request requests[2] = {reading(key),
                                        swapping(key, if_absent, value_of(key, "one"))};
    seat_drop(1, requests, 2);
    seat_open(1);
    const struct store_answer *answer = ask(1, reading(key));
    EXPECT(answer->result == ANSWER_OK);
    if (!answer->present)
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
            EXPECT(ask(0, deleting(key_named(name), if_revision(revision)))->result == ANSWER_OK);
    }
    close_all();
    for (unsigned seat = 0; seat < seats_count(); seat++)
        EXPECT(list_keys(seat, key_named("")).count == KEYS - KEYS / 4);
}

static const struct trial trials[] = {
    {"history: what is not kept is said so", what_is_not_kept_is_said_so, 0, false},
    {"history: it begins with the newest", a_history_begins_with_the_newest, STORE_HISTORY, false},
    {"history: it remembers what was deleted", a_history_remembers_what_was_deleted,
     STORE_HISTORY | STORE_DELETES, false},
    {"history: it has an end", a_history_has_an_end, STORE_HISTORY, false},
    {"restart: what was answered stands when all have closed",
     what_was_answered_stands_when_all_have_closed, STORE_DURABLE | STORE_TOKENS_RESTART, false},
    {"restart: what was answered stands when each has closed",
     what_was_answered_stands_when_each_has_closed, STORE_DURABLE | STORE_TOKENS_RESTART, false},
    {"restart: what was answered stands when all were killed",
     what_was_answered_stands_when_all_were_killed, STORE_DURABLE | STORE_TOKENS_RESTART, true},
    {"restart: who dies while writing leaves whole records",
     who_dies_while_writing_leaves_whole_records, STORE_DURABLE, true},
    {"close: who closes is answered nothing more", who_closes_is_answered_nothing_more, 0, false},
    {"volume: what nobody touches stands while much is written",
     what_nobody_touches_stands_while_much_is_written, 0, false},
    {"restart: a list is whole after it", a_list_is_whole_after_a_restart,
     STORE_DURABLE | STORE_DELETES, false},
};

const struct chapter past_chapter = {trials, sizeof trials / sizeof trials[0]};

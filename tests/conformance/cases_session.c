/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who lives: a store with sessions says of a record which of its processes have ended, and only
 * those. A write that names a process wakes it, once, and nobody else.
 */
#include "live.h"

#include <string.h>

enum { QUIET_MS = 60 };

static bool is_dead(const struct store_answer *answer, uint64_t session)
{
    for (size_t i = 0; i < answer->dead_count; i++)
        if (answer->dead_sessions[i] == session)
            return true;
    return false;
}

/* Reads until the seat hears it: a session's end may take the store a moment. */
static const struct store_answer *expect_dead(unsigned seat, const char *key, uint64_t session)
{
    int64_t until_ms = suite_now_ms() + suite_soon_ms();
    const struct store_answer *answer = ask(seat, reading(key));
    while (!is_dead(answer, session) && suite_now_ms() < until_ms) {
        suite_sleep(5);
        answer = ask(seat, reading(key));
    }
    EXPECT(is_dead(answer, session));
    return answer;
}

/* A grant of the one seat, and a place of the other behind it. */
static const struct store_answer *write_both(const char *key, unsigned holder, unsigned waiter,
                                             bool bound)
{
    struct record *record = value_record(key, "holder");
    record->grants[0].session = seat_session(holder);
    record->grants[0].bound = bound;
    struct place *place = record_add_place(record);
    (void)strcpy(place->holder, "waiter");
    (void)strcpy(place->request, "waiting");
    place->session = seat_session(waiter);
    place->ttl_ms = record->grants[0].ttl_ms;
    const struct store_answer *answer = ask(holder, swapping(key, if_absent, value_encode(record)));
    EXPECT(answer->result == ANSWER_OK);
    return answer;
}

static void the_living_are_not_called_dead(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    for (unsigned seat = 0; seat < seats_count(); seat++) {
        const struct store_answer *answer = ask(seat, reading(key));
        EXPECT(!is_dead(answer, seat_session(1)) && !is_dead(answer, seat_session(2)));
        answer = ask(seat, swapping(key, if_absent, value_of(key, "x")));
        EXPECT(answer->result == ANSWER_CONFLICT);
        EXPECT(!is_dead(answer, seat_session(1)) && !is_dead(answer, seat_session(2)));
    }
}

static void who_was_killed_is_told_dead(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = seat_session(1), waiter = seat_session(2);
    seat_kill(1);
    EXPECT(!is_dead(expect_dead(0, key, holder), waiter));
    seat_kill(2);
    EXPECT(is_dead(expect_dead(0, key, waiter), holder));
    seat_replace(1);
    seat_replace(2);
    for (unsigned seat = 0; seat < seats_count(); seat++) {
        const struct store_answer *answer = expect_dead(seat, key, waiter);
        const struct record *record = record_in(answer, key);
        EXPECT(record->grants[0].dead && record->places[0].dead);
    }
}

static void a_conflict_says_who_is_dead_too(void)
{
    const char *key = key_named("k");
    const struct store_answer *answer = write_both(key, 1, 2, /* bound= */ true);
    struct value standing = {.bytes = answer->bytes, .length = answer->length};
    uint64_t holder = seat_session(1), revision = answer->written.revision;
    seat_kill(1);
    seat_replace(1);
    (void)expect_dead(0, key, holder);
    answer = ask(0, swapping(key, if_absent, value_of(key, "x")));
    expect_conflict(answer, standing, revision);
    EXPECT(is_dead(answer, holder));
}

static void who_closes_its_store_has_ended(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = seat_session(1), waiter = seat_session(2);
    seat_close(1);
    EXPECT(!is_dead(expect_dead(0, key, holder), waiter));
    seat_open(1);
    EXPECT(is_dead(ask(1, reading(key)), holder));
    EXPECT(!is_dead(ask(0, reading(key)), seat_session(1)));
}

/* The killed holder's command still runs: as long as it does, nobody may take its place. */
static void a_command_keeps_the_session_that_it_inherited(void)
{
    const char *key = key_named("k");
    if (!seats_have_heirs())
        suite_skip("liveness that a command can inherit");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = seat_session(1);
    pid_t heir = seat_heir(1);
    seat_kill(1);
    seat_replace(1);
    for (unsigned seat = 0; seat < seats_count(); seat++)
        EXPECT(!is_dead(ask(seat, reading(key)), holder));
    suite_sleep(QUIET_MS);
    EXPECT(!is_dead(ask(0, reading(key)), holder));
    heir_kill(heir);
    (void)expect_dead(0, key, holder);
}

/* Rule 11: only what is bound ends with its process. */
static void only_the_bound_ends_with_its_process(void)
{
    const char *keys[2] = {key_named("unbound"), key_named("bound")};
    for (unsigned bound = 0; bound < 2; bound++)
        (void)write_both(keys[bound], 1, 2, bound == 1);
    uint64_t holder = seat_session(1);
    seat_kill(1);
    seat_replace(1);
    for (unsigned bound = 0; bound < 2; bound++) {
        (void)expect_dead(0, keys[bound], holder);
        struct request request = request_by(3, keys[bound], "next", VERB_ASK);
        struct verdict verdict = act(0, request);
        EXPECT(verdict.expired == bound);
        EXPECT(verdict.kind == VERDICT_WAITING); /* for the holder, or behind the first waiter */
    }
}

/* Pokes. */

/* A swap, or a delete, that names these sessions. */
static const struct store_answer *poke(unsigned seat, struct store_request request,
                                       const uint64_t *sessions, size_t count)
{
    request.poke = sessions;
    request.poke_count = count;
    return ask(seat, request);
}

/* Who can be named has changed a record before, to put itself into it. */
static void take_places(void)
{
    const char *key = key_named("places");
    uint64_t revision = put(0, key, if_absent, value_of(key, "nobody"));
    for (unsigned seat = 0; seat < seats_count(); seat++)
        revision = put(seat, key, if_revision(revision), value_of(key, "one more"));
}

static void forget_notices(void)
{
    take_places();
    for (unsigned seat = 0; seat < seats_count(); seat++)
        (void)seat_notices(seat, /* wanted= */ 1, QUIET_MS);
}

static void expect_woken(unsigned seat, const char *key)
{
    struct tidings tidings = seat_notices(seat, /* wanted= */ 1, suite_soon_ms());
    EXPECT(tidings.count == 1);
    EXPECT(strcmp(tidings.list[0].answer.key, key) == 0);
    EXPECT(seat_notices(seat, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void expect_asleep(unsigned seat)
{
    EXPECT(seat_notices(seat, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void who_is_named_is_woken_once(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {seat_session(1)};
    forget_notices();
    const struct store_answer *answer =
        poke(0, swapping(key, if_absent, value_of(key, "one")), sessions, 1);
    EXPECT(answer->result == ANSWER_OK);
    expect_woken(1, key);
    for (unsigned seat = 0; seat < seats_count(); seat++)
        if (seat != 1)
            expect_asleep(seat);
    struct condition condition = if_revision(answer->written.revision);
    answer = poke(2, deleting(key, condition), sessions, 1);
    EXPECT(answer->result == ANSWER_OK);
    expect_woken(1, key);
    expect_asleep(3);
}

static void several_are_named_and_woken(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {seat_session(1), seat_session(3)};
    forget_notices();
    EXPECT(poke(0, swapping(key, if_absent, value_of(key, "one")), sessions, 2)->result ==
           ANSWER_OK);
    expect_woken(1, key);
    expect_woken(3, key);
    expect_asleep(2);
}

static void what_was_refused_wakes_nobody(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {seat_session(1)};
    struct value one = value_of(key, "one");
    (void)put(0, key, if_absent, one);
    forget_notices();
    EXPECT(poke(0, swapping(key, if_absent, one), sessions, 1)->result == ANSWER_CONFLICT);
    expect_asleep(1);
}

/* It may have ended long ago: then there is nobody to wake, and that is all. */
static void who_is_gone_cannot_be_woken(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {seat_session(1), seat_session(2)};
    forget_notices();
    seat_kill(1);
    EXPECT(poke(0, swapping(key, if_absent, value_of(key, "one")), sessions, 2)->result ==
           ANSWER_OK);
    expect_woken(2, key);
    seat_replace(1);
    expect_asleep(1);
}

/* What a read would have shown right behind the write; of a delete, nothing. */
static void who_is_named_hears_what_was_written(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one");
    uint64_t sessions[] = {seat_session(1)};
    forget_notices();
    struct stamp written = poke(0, swapping(key, if_absent, one), sessions, 1)->written;
    struct tidings tidings = seat_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(tidings.count == 1);
    const struct store_answer *told = &tidings.list[0].answer;
    EXPECT(strcmp(told->key, key) == 0);
    EXPECT(told->result == ANSWER_OK && has_value(told, one));
    EXPECT(told->written.revision == written.revision && told->written.epoch == written.epoch);
    EXPECT(told->written.time_ms == written.time_ms && told->now_ms == written.time_ms);
    (void)poke(0, deleting(key, if_revision(written.revision)), sessions, 1);
    tidings = seat_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(tidings.count == 1 && !tidings.list[0].answer.present);
}

/* It need not hear all of it, but it must not hear a part. */
static void what_is_long_wakes_too(void)
{
    const char *key = key_named("k");
    struct value most = value_of_size(key, RECORD_MAX);
    uint64_t sessions[] = {seat_session(1)};
    forget_notices();
    EXPECT(poke(0, swapping(key, if_absent, most), sessions, 1)->result == ANSWER_OK);
    struct tidings tidings = seat_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(tidings.count == 1 && strcmp(tidings.list[0].answer.key, key) == 0);
    EXPECT(!tidings.list[0].answer.present || tidings.list[0].answer.length == most.length);
}

static const struct trial trials[] = {
    {"session: the living are not called dead", the_living_are_not_called_dead, STORE_SESSIONS,
     false},
    {"session: who closes its store has ended", who_closes_its_store_has_ended, STORE_SESSIONS,
     false},
    {"session: who was killed is told dead", who_was_killed_is_told_dead, STORE_SESSIONS, true},
    {"session: a conflict says who is dead too", a_conflict_says_who_is_dead_too, STORE_SESSIONS,
     true},
    {"session: a command keeps the one that it inherited",
     a_command_keeps_the_session_that_it_inherited, STORE_SESSIONS, true},
    {"session: only the bound ends with its process (rule 11)",
     only_the_bound_ends_with_its_process, STORE_SESSIONS, true},
    {"poke: who is named is woken once", who_is_named_is_woken_once,
     STORE_SESSIONS | STORE_WATCHES | STORE_DELETES, false},
    {"poke: several are named and woken", several_are_named_and_woken,
     STORE_SESSIONS | STORE_WATCHES, false},
    {"poke: what was refused wakes nobody", what_was_refused_wakes_nobody,
     STORE_SESSIONS | STORE_WATCHES, false},
    {"poke: who is gone cannot be woken", who_is_gone_cannot_be_woken,
     STORE_SESSIONS | STORE_WATCHES, true},
    {"poke: who is named hears what was written", who_is_named_hears_what_was_written,
     STORE_TELLS | STORE_DELETES, false},
    {"poke: what is long wakes too", what_is_long_wakes_too, STORE_TELLS, false},
};

const struct chapter session_chapter = {trials, sizeof trials / sizeof trials[0]};

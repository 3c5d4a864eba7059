/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: the queue and the record are bounded, a refusal names its reason, and whatever the rules
 * do to a record that they filled, its weight stays within the store's limit (checked by act()).
 */
#include "rules_kit.h"

#include <stdio.h>
#include <string.h>

static struct request asking_number(size_t number)
{
    static char who[16];
    (void)snprintf(who, sizeof who, "w%zu", number);
    struct request request = asking(who);
    request.session = 1000 + number;
    return request;
}

/* Names of full length; encoded, every letter of them takes two bytes. */
static struct request asking_heavy(size_t number)
{
    static char holder[HOLDER_MAX + 1], id[REQUEST_MAX + 1];
    memset(holder, '"', HOLDER_MAX);
    memset(id, '"', REQUEST_MAX);
    (void)snprintf(id, sizeof id, "%03zu", number);
    id[3] = '"';
    struct request request = asking_number(number);
    request.holder = holder;
    request.request = id;
    return request;
}

static void assert_full(struct verdict verdict)
{
    assert_kind(verdict, VERDICT_BUSY, /* write= */ false);
    assert_string_equal(verdict.why, "queue full");
}

static void a_full_queue_is_busy_and_says_so(void **state)
{
    (void)state;
    (void)ask("a");
    for (size_t i = 0; i < WAITERS_MAX; i++)
        assert_kind(act(asking_number(i)), VERDICT_WAITING, /* write= */ true);
    assert_full(ask("z"));
    struct request returning = asking("z"); /* even to one that was passed over */
    returning.ticket = 1;
    assert_full(act(returning));
    assert_int_equal(record.waiter_count, WAITERS_MAX);
    assert_kind(act(asking_number(7)), VERDICT_WAITING, /* write= */ false);
}

/* Waiters that another client admitted keep their positions. */
static void a_store_can_admit_fewer_waiters(void **state)
{
    (void)state;
    (void)ask("a");
    for (size_t i = 0; i < 3; i++)
        (void)act(asking_number(i));
    facts.waiters_max = 3;
    assert_full(ask("z"));
    facts.waiters_max = 2;
    assert_full(ask("z"));
    assert_kind(act(asking_number(2)), VERDICT_WAITING, /* write= */ false);
    assert_int_equal(record.waiter_count, 3);
    facts.waiters_max = 4;
    assert_kind(ask("z"), VERDICT_WAITING, /* write= */ true);
}

/* Refused, it still writes what it observed: the holder is gone, the next waiter is named. */
static void a_refused_request_removes_the_dead(void **state)
{
    (void)state;
    (void)ask("a");
    for (size_t i = 0; i < WAITERS_MAX; i++)
        (void)act(asking_number(i));
    pass(TTL_MS);
    struct verdict verdict = ask("z");
    assert_kind(verdict, VERDICT_BUSY, /* write= */ true);
    assert_string_equal(verdict.why, "queue full");
    assert_int_equal(verdict.expired, 1);
    assert_true(waiter_of("w0")->offered);
}

static void the_dead_make_room_in_a_full_queue(void **state)
{
    (void)state;
    (void)ask("a");
    for (size_t i = 0; i < WAITERS_MAX; i++)
        (void)act(asking_number(i));
    record.waiters[9].dead = true;
    assert_kind(ask("z"), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(record.waiter_count, WAITERS_MAX);
}

/* Readers with the longest names behind the writer "a", until one is refused. */
static size_t fill_with_heavy_readers(void)
{
    size_t number = 0;
    struct verdict verdict;
    assert_granted(ask("a"));
    do {
        assert_true(number <= WAITERS_MAX);
        struct request request = asking_heavy(number++);
        request.mode = MODE_SHARED;
        request.lock_delay_ms = 1000;
        verdict = act(request);
    } while (verdict.kind == VERDICT_WAITING);
    assert_full(verdict);
    return number - 1;
}

static void a_full_record_is_busy_and_says_so(void **state)
{
    (void)state;
    size_t count = fill_with_heavy_readers();
    assert_int_equal(record.waiter_count, count);
    assert_true(count > 90 && count < WAITERS_MAX);
    assert_true(record_size_bound(&record) + RECORD_RESERVE <= RECORD_MAX);
    assert_true(record_size_bound(&record) + RECORD_RESERVE > RECORD_MAX - 1000);
}

static void a_full_record_has_room_for_all_its_readers(void **state)
{
    (void)state;
    (void)fill_with_heavy_readers();
    (void)release("a");
    for (size_t number = 0; number < GRANTS_MAX; number++) {
        struct request request = asking_heavy(number);
        request.mode = MODE_SHARED;
        request.lock_delay_ms = 1000;
        assert_granted(act(request));
    }
    assert_int_equal(record.grant_count, GRANTS_MAX);
    /* … for an operator's longest reason … */
    char reason[REASON_MAX + 1];
    memset(reason, '"', REASON_MAX);
    reason[REASON_MAX] = '\0';
    struct request breaking = doing(VERB_BREAK, "op");
    breaking.reason = reason;
    assert_kind(act(breaking), VERDICT_DONE, /* write= */ true);
    /* … and for the delay and the cooldown of one that dies and one that releases. */
    record.grants[0].over = true;
    record.grants[1].n = 1;
    struct request going = doing(VERB_RELEASE, "x");
    going.token = grant_token(&record.grants[1]);
    going.cooldown_ms = 1000;
    assert_kind(act(going), VERDICT_DONE, /* write= */ true);
    assert_true(record.delay.length_ms > 0 && record.cooling.length_ms > 0);
}

/* Readers with the most meta that is allowed: the record never exceeds its limit for it. */
static void meta_is_left_out_of_a_full_record(void **state)
{
    (void)state;
    struct meta meta = {0};
    char value[META_MAX];
    size_t with_meta = 0;
    memset(value, '"', META_MAX - 3);
    value[META_MAX - 3] = '\0';
    assert_true(meta_add(&meta, "n", value));
    for (size_t i = 0; i < GRANTS_MAX; i++) {
        struct request request = asking_number(i);
        request.mode = MODE_SHARED;
        request.meta = &meta;
        assert_kind(act(request), VERDICT_GRANTED, /* write= */ true);
        with_meta += record.grants[i].meta.count;
        assert_true(record_size_bound(&record) <= RECORD_MAX);
    }
    assert_int_equal(record.grants[0].meta.count, 1);
    assert_true(with_meta > 10 && with_meta < GRANTS_MAX);
}

/* A process that left a queue entry behind continues with it under a longer name. */
static void a_place_does_not_outgrow_the_record(void **state)
{
    (void)state;
    (void)ask("a");
    size_t refused = 0;
    for (size_t i = 0; i < WAITERS_MAX; i++)
        assert_kind(act(asking_number(i)), VERDICT_WAITING, /* write= */ true);
    for (size_t i = 0; i < WAITERS_MAX; i++)
        refused += act(asking_heavy(i)).kind == VERDICT_BUSY ? 1 : 0;
    assert_true(refused > 0);
    assert_int_equal(record.waiter_count, WAITERS_MAX - refused);
}

/* Only an artificial record gets that far; it must not crash us. */
static void tickets_end_like_the_queue(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    record.next_ticket = TICKET_MAX - 1;
    assert_kind(ask("c"), VERDICT_WAITING, /* write= */ true);
    assert_full(ask("d"));
    assert_standing("a | b c");
}

static void tickets_begin_again_when_nobody_waits(void **state)
{
    (void)state;
    (void)ask("a");
    record.next_ticket = TICKET_MAX;
    assert_kind(ask("b"), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_since_ms(waiter_of("b")), view.at.time_ms);
}

/* Readers whose meta fills the record to the last byte that the decoder accepts, and beyond. */
static void make_up_a_full_record(void)
{
    char value[META_MAX];
    memset(value, 'v', sizeof value);
    value[META_MAX - 3] = '\0';
    record_init(&record, "k");
    for (size_t i = 0; i < GRANTS_MAX - 10; i++) {
        struct grant *grant = record_add_grant(&record);
        (void)snprintf(grant->holder, sizeof grant->holder, "h%zu", i);
        (void)snprintf(grant->request, sizeof grant->request, "r%zu", i);
        grant->mode = MODE_SHARED;
        grant->ttl_ms = TTL_MS;
        grant->n = (uint16_t)i;
        grant->granted = grant->renewed = view.at;
        grant->granted.revision = grant->renewed.revision = 7;
        assert_true(meta_add(&grant->meta, "m", value));
    }
    assert_true(record_size_bound(&record) > RECORD_MAX);
}

static void a_record_too_full_to_be_changed_is_left_alone(void **state)
{
    (void)state;
    static const enum verb verbs[] = {VERB_RENEW, VERB_BREAK};
    make_up_a_full_record();
    for (size_t i = 0; i < 2; i++) {
        struct request request = doing(verbs[i], "r1");
        request.reason = "too many";
        struct verdict verdict = act(request);
        assert_kind(verdict, VERDICT_MISMATCH, /* write= */ false);
        assert_string_equal(verdict.why, "the record is too full to be changed");
    }
    assert_full(ask("z"));
    struct request request = doing(VERB_BREAK, "op");
    request.reason = "too many";
    request.now = true;
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    assert_false(record_needed(&record));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_full_queue_is_busy_and_says_so, fresh),
        cmocka_unit_test_setup(a_store_can_admit_fewer_waiters, fresh),
        cmocka_unit_test_setup(a_refused_request_removes_the_dead, fresh),
        cmocka_unit_test_setup(the_dead_make_room_in_a_full_queue, fresh),
        cmocka_unit_test_setup(a_full_record_is_busy_and_says_so, fresh),
        cmocka_unit_test_setup(a_full_record_has_room_for_all_its_readers, fresh),
        cmocka_unit_test_setup(meta_is_left_out_of_a_full_record, fresh),
        cmocka_unit_test_setup(a_place_does_not_outgrow_the_record, fresh),
        cmocka_unit_test_setup(tickets_end_like_the_queue, fresh),
        cmocka_unit_test_setup(a_record_too_full_to_be_changed_is_left_alone, fresh),
        cmocka_unit_test_setup(tickets_begin_again_when_nobody_waits, fresh),
    };
    return cmocka_run_group_tests_name("rules_room", tests, NULL, NULL);
}

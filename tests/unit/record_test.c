/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record's functions: marks and tokens, lookups, removal, meta, weight. Broken records are in
 * record_broken_test.c; the rules in rules_*_test.c.
 */
#include "base/text.h"
#include "core/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct record record, copy;

/* Records are large and only partly used: unused parts contain garbage. */
static int fresh(void **state)
{
    (void)state;
    memset(&record, 0xa5, sizeof record);
    memset(&copy, 0x5a, sizeof copy);
    record_init(&record, "k");
    return 0;
}

static struct grant *add_grant(const char *request, uint64_t revision, uint16_t n)
{
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, "h");
    text_copy(grant->request, sizeof grant->request, request);
    grant->mode = MODE_SHARED;
    grant->n = n;
    grant->granted.revision = grant->renewed.revision = revision;
    return grant;
}

static struct waiter *add_waiter(const char *request, uint64_t session)
{
    struct waiter *waiter = record_add_waiter(&record);
    text_copy(waiter->holder, sizeof waiter->holder, "h");
    text_copy(waiter->request, sizeof waiter->request, request);
    waiter->session = session;
    return waiter;
}

static void a_fresh_record_says_nothing(void **state)
{
    (void)state;
    assert_string_equal(record.key, "k");
    assert_int_equal(record.limit, 0);
    assert_int_equal(record.next_ticket, 1);
    assert_string_equal(record.reason, "");
    assert_int_equal(record_offers(&record), 0);
    assert_false(record_needed(&record));
    assert_null(record_broken(&record));
}

static void the_longest_key_fits(void **state)
{
    (void)state;
    char key[KEY_MAX + 1];
    memset(key, 'k', KEY_MAX);
    key[KEY_MAX] = '\0';
    record_init(&record, key);
    assert_string_equal(record.key, key);
}

static void a_record_is_needed_by_whatever_it_says(void **state)
{
    (void)state;
    (void)add_grant("a", 1, 0);
    assert_true(record_needed(&record));
    record_remove_grant(&record, &record.grants[0]);
    (void)add_waiter("a", 1);
    assert_true(record_needed(&record));
    record_remove_waiter(&record, &record.waiters[0]);
    record.cooling.length_ms = 1;
    assert_true(record_needed(&record));
    record.cooling.length_ms = 0;
    record.delay.length_ms = 1;
    assert_true(record_needed(&record));
    record.delay.length_ms = 0;
    record.limit = 3;
    record.next_ticket = 9;
    text_copy(record.reason, sizeof record.reason, "stuck");
    assert_false(record_needed(&record));
}

static void tokens_are_epoch_revision_and_n(void **state)
{
    (void)state;
    struct stamp granted = {.epoch = 3, .revision = 5};
    assert_true(token_of(&granted, 7) == ((uint64_t)3 << 55) + ((uint64_t)5 << 10) + 7);
    granted = (struct stamp){.epoch = EPOCH_MAX, .revision = REVISION_MAX};
    assert_true(token_of(&granted, 1023) == INT64_MAX);
    assert_true(stamp_order(&granted) == ORDER_MAX);
    granted = stamp_of_order(ORDER_MAX, /* time_ms= */ 9);
    assert_true(granted.epoch == EPOCH_MAX && granted.revision == REVISION_MAX);
    granted = (struct stamp){.epoch = 3, .revision = THIS_WRITE};
    assert_int_equal(token_of(&granted, 7), 0);
}

/* By revision, within a write by n, and over everything by the epoch. */
static void tokens_grow(void **state)
{
    (void)state;
    static const struct {
        struct stamp granted;
        uint16_t n;
    } order[] = {
        {{.revision = 1}, 0},
        {{.revision = 1}, GRANT_STEP - 1},
        {{.revision = 1}, GRANT_STEP},
        {{.revision = 1}, 1023},
        {{.revision = 2}, 0},
        {{.revision = REVISION_MAX}, 1023},
        {{.epoch = 1, .revision = 1}, 0},
        {{.epoch = 1, .revision = REVISION_MAX}, 0},
        {{.epoch = 2, .revision = 1}, 0},
        {{.epoch = EPOCH_MAX, .revision = 1}, 0},
    };
    uint64_t before = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        uint64_t token = token_of(&order[i].granted, order[i].n);
        assert_true(token > before);
        before = token;
    }
}

static void marks_become_the_write_and_nothing_else_moves(void **state)
{
    (void)state;
    struct stamp old = {.epoch = 1, .revision = 7, .time_ms = 70};
    struct stamp written = {.epoch = 2, .revision = 9, .time_ms = 90};
    struct grant *grant = add_grant("a", THIS_WRITE, 0);
    grant->granted = old;
    (void)add_grant("b", THIS_WRITE, 1);
    add_waiter("c", 1)->offered = true;
    struct waiter *waiter = add_waiter("d", 2);
    waiter->offered = true;
    waiter->offer = old;
    record.cooling.length_ms = 5;
    record.delay.length_ms = 5;
    record.delay.since = old;
    record_resolve(&record, &written);
    assert_memory_equal(&record.grants[0].granted, &old, sizeof old);
    assert_memory_equal(&record.grants[0].renewed, &written, sizeof written);
    assert_memory_equal(&record.grants[1].granted, &written, sizeof written);
    assert_memory_equal(&record.waiters[0].offer, &written, sizeof written);
    assert_memory_equal(&record.waiters[1].offer, &old, sizeof old);
    assert_memory_equal(&record.cooling.since, &written, sizeof written);
    assert_memory_equal(&record.delay.since, &old, sizeof old);
}

static void an_absent_item_has_no_mark(void **state)
{
    (void)state;
    struct stamp written = {.revision = 9, .time_ms = TIME_UNKNOWN};
    (void)add_waiter("c", 1);
    record_resolve(&record, &written);
    assert_int_equal(record.waiters[0].offer.revision, THIS_WRITE);
    assert_int_equal(record.cooling.since.revision, THIS_WRITE);
    assert_int_equal(record.delay.since.revision, THIS_WRITE);
    record.delay.length_ms = 1;
    record_resolve(&record, &written);
    assert_int_equal(record.delay.since.revision, 9);
    assert_true(record.delay.since.time_ms == TIME_UNKNOWN);
}

static void grants_are_found_by_token_and_by_request(void **state)
{
    (void)state;
    (void)add_grant("a", 4, 0);
    (void)add_grant("b", 4, 64);
    assert_ptr_equal(record_grant_by_token(&record, (4 << 10) + 64), &record.grants[1]);
    assert_null(record_grant_by_token(&record, (4 << 10) + 1));
    assert_ptr_equal(record_grant_by_request(&record, "b"), &record.grants[1]);
    assert_null(record_grant_by_request(&record, "c"));
    assert_null(record_grant_by_request(&record, ""));
}

static void places_are_found_by_request_and_by_session(void **state)
{
    (void)state;
    (void)add_waiter("a", 1);
    (void)add_waiter("b", 2);
    assert_ptr_equal(record_waiter_by_request(&record, "b"), &record.waiters[1]);
    assert_null(record_waiter_by_request(&record, "c"));
    assert_ptr_equal(record_waiter_by_session(&record, 2), &record.waiters[1]);
    assert_null(record_waiter_by_session(&record, 3));
}

static void tickets_are_given_out_once(void **state)
{
    (void)state;
    assert_int_equal(add_waiter("a", 1)->ticket, 1);
    assert_int_equal(add_waiter("b", 2)->ticket, 2);
    record_remove_waiter(&record, &record.waiters[1]);
    assert_int_equal(add_waiter("c", 3)->ticket, 3);
    assert_int_equal(record.next_ticket, 4);
    assert_null(record_broken(&record));
}

static const char *tickets(void)
{
    static char line[64];
    struct text text;
    text_init(&text, line, sizeof line);
    for (size_t i = 0; i < record.waiter_count; i++) {
        text_add(&text, " ");
        text_add_u64(&text, record.waiters[i].ticket);
    }
    return line;
}

static void a_ticket_is_returned_to_its_place(void **state)
{
    (void)state;
    (void)add_waiter("a", 1);
    (void)add_waiter("b", 2);
    (void)add_waiter("c", 3);
    record_remove_waiter(&record, &record.waiters[1]);
    struct waiter *waiter = record_return_waiter(&record, 2);
    assert_ptr_equal(waiter, &record.waiters[1]);
    assert_string_equal(waiter->request, "");
    assert_null(record_return_waiter(&record, 1));
    assert_null(record_return_waiter(&record, 3));
    assert_string_equal(tickets(), " 1 2 3");
    assert_int_equal(record.next_ticket, 4);
    record_clear(&record); /* of a record that was removed meanwhile */
    assert_non_null(record_return_waiter(&record, 9));
    assert_non_null(record_return_waiter(&record, 8));
    assert_string_equal(tickets(), " 8 9");
    assert_int_equal(record.next_ticket, 10);
}

static void what_is_added_begins_empty(void **state)
{
    (void)state;
    const struct grant *grant = record_add_grant(&record);
    assert_string_equal(grant->holder, "");
    assert_false(grant->bound || grant->broken || grant->dead || grant->over);
    assert_int_equal(grant->meta.count, 0);
    assert_int_equal(grant->meta.used, 0);
    const struct waiter *waiter = record_add_waiter(&record);
    assert_string_equal(waiter->request, "");
    assert_false(waiter->bound || waiter->dead || waiter->offered);
}

static void removal_closes_the_gap(void **state)
{
    (void)state;
    (void)add_grant("a", 1, 0);
    (void)add_grant("b", 2, 0);
    (void)add_grant("c", 3, 0);
    record_remove_grant(&record, &record.grants[1]);
    assert_int_equal(record.grant_count, 2);
    assert_string_equal(record.grants[0].request, "a");
    assert_string_equal(record.grants[1].request, "c");
    (void)add_waiter("a", 1);
    (void)add_waiter("b", 2);
    (void)add_waiter("c", 3);
    record_remove_waiter(&record, &record.waiters[0]);
    assert_int_equal(record.waiter_count, 2);
    assert_string_equal(record.waiters[0].request, "b");
    assert_string_equal(record.waiters[1].request, "c");
}

static void a_copy_has_all_that_is_used(void **state)
{
    (void)state;
    (void)add_grant("a", 1, 0);
    (void)add_grant("b", 2, 0);
    (void)add_waiter("c", 3);
    record.limit = 4;
    text_copy(record.reason, sizeof record.reason, "stuck");
    record_copy(&copy, &record);
    assert_string_equal(copy.key, "k");
    assert_string_equal(copy.reason, "stuck");
    assert_int_equal(copy.limit, 4);
    assert_int_equal(copy.grant_count, 2);
    assert_int_equal(copy.waiter_count, 1);
    assert_memory_equal(copy.grants, record.grants, 2 * sizeof record.grants[0]);
    assert_memory_equal(copy.waiters, record.waiters, sizeof record.waiters[0]);
}

static void meta_keeps_pairs_in_order(void **state)
{
    (void)state;
    struct meta meta = {0};
    assert_true(meta_add(&meta, "pid", "17"));
    assert_true(meta_add(&meta, "note", ""));
    assert_int_equal(meta.count, 2);
    assert_int_equal(meta.used, sizeof "pid\0"
                                       "17\0"
                                       "note\0");
    assert_memory_equal(meta.text,
                        "pid\0"
                        "17\0"
                        "note\0",
                        meta.used);
}

static void meta_refuses_without_a_change(void **state)
{
    (void)state;
    struct meta meta = {0};
    assert_true(meta_add(&meta, "a", "b"));
    assert_false(meta_add(&meta, "", "v"));
    assert_false(meta_add(&meta, "a", "other"));
    assert_false(meta_add(&meta, "n\n", "v"));
    assert_false(meta_add(&meta, "n", "\x80"));
    assert_int_equal(meta.count, 1);
    assert_int_equal(meta.used, 4);
    assert_true(meta_add(&meta, "n", "m"));
    assert_true(meta_add(&meta, "b", "a")); /* a value is not a name */
    assert_false(meta_add(&meta, "n", "m"));
}

static void meta_ends_at_its_bytes(void **state)
{
    (void)state;
    struct meta meta = {0};
    char value[META_MAX];
    memset(value, 'v', sizeof value);
    value[META_MAX - 3] = '\0';
    assert_true(meta_add(&meta, "n", value)); /* n, v…, two NULs */
    assert_int_equal(meta.used, META_MAX);
    assert_false(meta_add(&meta, "m", ""));
    meta = (struct meta){0};
    value[META_MAX - 3] = 'v';
    value[META_MAX - 2] = '\0';
    assert_false(meta_add(&meta, "n", value));
}

static void meta_ends_at_its_pairs(void **state)
{
    (void)state;
    struct meta meta = {0};
    for (char name[] = "a"; name[0] < 'a' + META_PAIRS_MAX; name[0]++)
        assert_true(meta_add(&meta, name, "v"));
    assert_int_equal(meta.count, META_PAIRS_MAX);
    assert_false(meta_add(&meta, "z", "v"));
}

static void words_weigh_as_they_are_written(void **state)
{
    (void)state;
    size_t plain, before = record_size_bound(&record);
    text_copy(record.reason, sizeof record.reason, "abc");
    plain = record_size_bound(&record);
    assert_int_equal(plain, before + 3);
    text_copy(record.reason, sizeof record.reason, "a\"\\");
    assert_int_equal(record_size_bound(&record), plain + 2);
}

static void fill(char *text, size_t most)
{
    memset(text, '"', most);
    text[most] = '\0';
}

/* The longest texts, all escaped: what fits without counting must fit when counted. */
static void a_record_fits_by_its_weight(void **state)
{
    (void)state;
    fill(record.key, KEY_MAX);
    fill(record.reason, REASON_MAX);
    fill(record.cooling.by, HOLDER_MAX);
    fill(record.delay.by, HOLDER_MAX);
    record_set_kind(&record, KIND_ONCE);
    fill(record.once.payload, PAYLOAD_MAX);
    fill(record.once.done.request, REQUEST_MAX);
    fill(record.once.done.result, RESULT_MAX);
    fill(record.once.done.watermark, KEY_MAX);
    fill(record.once.done.until, POSITION_MAX);
    for (size_t i = 0; i < GRANTS_MAX; i++) {
        size_t weight = record_size_bound(&record);
        assert_true(record_fits(&record, weight));
        assert_false(record_fits(&record, weight - 1));
        struct grant *grant = add_grant("a", i, 0);
        struct waiter *waiter = add_waiter("b", i);
        fill(grant->holder, HOLDER_MAX);
        fill(grant->request, REQUEST_MAX);
        grant->meta.count = META_PAIRS_MAX;
        grant->meta.used = META_MAX;
        memset(grant->meta.text, '"', META_MAX);
        for (size_t pair = 0; pair < (size_t)2 * META_PAIRS_MAX; pair++)
            grant->meta.text[META_MAX - 1 - pair * 2] = '\0';
        fill(waiter->holder, HOLDER_MAX);
        fill(waiter->request, REQUEST_MAX);
        waiter->offered = true;
    }
}

static void everything_in_a_record_weighs(void **state)
{
    (void)state;
    size_t weight = record_size_bound(&record), more;
    struct grant *grant = add_grant("a", 1, 0);
    assert_true((more = record_size_bound(&record)) > weight);
    text_copy(grant->request, sizeof grant->request, "a+");
    text_copy(grant->holder, sizeof grant->holder, "h++");
    assert_int_equal(record_size_bound(&record), more + 3);
    more += 3;
    assert_true(meta_add(&grant->meta, "n", "v"));
    assert_int_equal(record_size_bound(&record), more + strlen("\"n\":\"v\","));
    weight = record_size_bound(&record);
    struct waiter *waiter = add_waiter("b", 2);
    assert_true((more = record_size_bound(&record)) > weight);
    text_copy(waiter->request, sizeof waiter->request, "b+");
    text_copy(waiter->holder, sizeof waiter->holder, "h++");
    assert_int_equal(record_size_bound(&record), more + 3);
    more += 3;
    waiter->offered = true;
    assert_true(record_size_bound(&record) > more);
    weight = record_size_bound(&record);
    text_copy(record.cooling.by, sizeof record.cooling.by, "xy");
    text_copy(record.delay.by, sizeof record.delay.by, "z");
    assert_int_equal(record_size_bound(&record), weight + 3);
    text_copy(record.key, sizeof record.key, "key");
    assert_int_equal(record_size_bound(&record), weight + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_fresh_record_says_nothing, fresh),
        cmocka_unit_test_setup(the_longest_key_fits, fresh),
        cmocka_unit_test_setup(a_record_is_needed_by_whatever_it_says, fresh),
        cmocka_unit_test_setup(tokens_are_epoch_revision_and_n, fresh),
        cmocka_unit_test_setup(tokens_grow, fresh),
        cmocka_unit_test_setup(marks_become_the_write_and_nothing_else_moves, fresh),
        cmocka_unit_test_setup(an_absent_item_has_no_mark, fresh),
        cmocka_unit_test_setup(grants_are_found_by_token_and_by_request, fresh),
        cmocka_unit_test_setup(places_are_found_by_request_and_by_session, fresh),
        cmocka_unit_test_setup(tickets_are_given_out_once, fresh),
        cmocka_unit_test_setup(a_ticket_is_returned_to_its_place, fresh),
        cmocka_unit_test_setup(what_is_added_begins_empty, fresh),
        cmocka_unit_test_setup(removal_closes_the_gap, fresh),
        cmocka_unit_test_setup(a_copy_has_all_that_is_used, fresh),
        cmocka_unit_test_setup(meta_keeps_pairs_in_order, fresh),
        cmocka_unit_test_setup(meta_refuses_without_a_change, fresh),
        cmocka_unit_test_setup(meta_ends_at_its_bytes, fresh),
        cmocka_unit_test_setup(meta_ends_at_its_pairs, fresh),
        cmocka_unit_test_setup(words_weigh_as_they_are_written, fresh),
        cmocka_unit_test_setup(a_record_fits_by_its_weight, fresh),
        cmocka_unit_test_setup(everything_in_a_record_weighs, fresh),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}

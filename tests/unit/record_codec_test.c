/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record codec, round trip: a record decodes to the same record and never exceeds its weight;
 * marks become the write that carried them. Refusals: record_codec_refusals_test.c.
 */
#include "base/random.h"
#include "base/text.h"
#include "core/record.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Records are large: these are reused by all tests, filled with garbage in between. */
static struct record original, decoded;
static char bytes[RECORD_MAX + 1], again[RECORD_MAX + 1], input[2 * RECORD_MAX];

static int soil(void **state)
{
    (void)state;
    memset(&original, 0xa5, sizeof original);
    memset(&decoded, 0xa5, sizeof decoded);
    return 0;
}

/* Comparing records */

/* Other fields of a mark are not written, and decode as zero. */
static void assert_same_stamp(const struct stamp *a, const struct stamp *b)
{
    assert_int_equal(a->revision, b->revision);
    if (a->revision == THIS_WRITE) {
        assert_int_equal(b->epoch, 0);
        assert_int_equal(b->time_ms, 0);
        return;
    }
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->time_ms, b->time_ms);
}

static void assert_same_grant(const struct grant *a, const struct grant *b)
{
    assert_string_equal(a->holder, b->holder);
    assert_string_equal(a->request, b->request);
    assert_int_equal(a->session, b->session);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->bound, b->bound);
    assert_int_equal(a->broken, b->broken);
    assert_int_equal(a->n, b->n);
    assert_same_stamp(&a->granted, &b->granted);
    assert_same_stamp(&a->renewed, &b->renewed);
    assert_int_equal(a->ttl_ms, b->ttl_ms);
    assert_int_equal(a->lock_delay_ms, b->lock_delay_ms);
    assert_int_equal(a->meta.count, b->meta.count);
    assert_int_equal(a->meta.used, b->meta.used);
    assert_memory_equal(a->meta.text, b->meta.text, a->meta.used);
}

static void assert_same_place(const struct waiter *a, const struct waiter *b)
{
    assert_string_equal(a->holder, b->holder);
    assert_string_equal(a->request, b->request);
    assert_int_equal(a->session, b->session);
    assert_int_equal(a->ticket, b->ticket);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->passed, b->passed);
    assert_int_equal(a->bound, b->bound);
    assert_int_equal(a->offered, b->offered);
    if (a->offered)
        assert_same_stamp(&a->offer, &b->offer);
    assert_int_equal(a->ttl_ms, b->ttl_ms);
    assert_int_equal(a->lock_delay_ms, b->lock_delay_ms);
}

static void assert_same_span(const struct span *a, const struct span *b)
{
    assert_int_equal(a->length_ms, b->length_ms);
    if (a->length_ms == 0)
        return;
    assert_same_stamp(&a->since, &b->since);
    assert_string_equal(a->by, b->by);
}

static void assert_same_record(const struct record *a, const struct record *b)
{
    assert_string_equal(a->key, b->key);
    assert_int_equal(a->limit, b->limit);
    assert_int_equal(a->next_ticket, b->next_ticket);
    assert_same_span(&a->cooling, &b->cooling);
    assert_same_span(&a->delay, &b->delay);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->grant_count, b->grant_count);
    assert_int_equal(a->waiter_count, b->waiter_count);
    for (size_t i = 0; i < a->grant_count; i++)
        assert_same_grant(&a->grants[i], &b->grants[i]);
    for (size_t i = 0; i < a->waiter_count; i++)
        assert_same_place(&a->waiters[i], &b->waiters[i]);
}

/* Encodes and decodes `original`; false when it is too long for the format. */
static bool round_trip(void)
{
    struct codec_error error;
    size_t length = record_encode(&original, bytes, sizeof bytes);
    if (length == 0)
        return false;
    assert_true(length <= record_size_bound(&original));
    assert_int_equal(strlen(bytes), length);
    assert_int_equal(record_decode(bytes, length, &decoded, &error), DECODE_OK);
    assert_same_record(&original, &decoded);
    assert_int_equal(record_encode(&decoded, again, sizeof again), length);
    assert_memory_equal(bytes, again, length);
    return true;
}

static struct grant *add_grant(const char *holder, const char *request, enum mode mode)
{
    struct grant *grant = record_add_grant(&original);
    text_copy(grant->holder, sizeof grant->holder, holder);
    text_copy(grant->request, sizeof grant->request, request);
    grant->mode = mode;
    grant->ttl_ms = 30000;
    return grant;
}

static struct waiter *add_waiter(const char *holder, const char *request, uint64_t session)
{
    struct waiter *waiter = record_add_waiter(&original);
    text_copy(waiter->holder, sizeof waiter->holder, holder);
    text_copy(waiter->request, sizeof waiter->request, request);
    waiter->session = session;
    waiter->ttl_ms = 30000;
    return waiter;
}

static void set_stamp(struct stamp *stamp, uint16_t epoch, uint64_t revision, int64_t time_ms)
{
    stamp->epoch = epoch;
    stamp->revision = revision;
    stamp->time_ms = time_ms;
}

static const char full_sample[] =
    "{\"leasehold\":1,\"key\":\"db/\\\"main\\\"\",\"limit\":3,\"next\":9,\"grants\":["
    "{\"holder\":\"a\",\"request\":\"r1\",\"session\":\"1f\",\"mode\":\"slot\",\"bound\":true,"
    "\"broken\":true,\"n\":64,\"granted\":[1,41,1000],\"renewed\":[1,43,null],\"ttl_ms\":30000,"
    "\"lock_delay_ms\":500,\"meta\":{\"path\":\"C:\\\\x\",\"é\":\"\"}},"
    "{\"holder\":\"b\",\"request\":\"r2\",\"session\":\"0\",\"mode\":\"slot\",\"granted\":\"this\","
    "\"ttl_ms\":1}],\"places\":[{\"holder\":\"c\",\"request\":\"r3\",\"session\":\"2\","
    "\"mode\":\"slot\",\"bound\":true,\"ticket\":7,\"priority\":-5,\"passed\":2,"
    "\"offered\":\"this\",\"ttl_ms\":30000,\"lock_delay_ms\":1},{\"holder\":\"c\",\"request\":"
    "\"r4\",\"session\":\"3\",\"mode\":\"slot\",\"ticket\":8,\"ttl_ms\":30000}],"
    "\"reason\":\"stuck\"}";

static void build_full_sample(void)
{
    record_init(&original, "db/\"main\"");
    original.limit = 3;
    struct grant *grant = add_grant("a", "r1", MODE_SLOT);
    grant->session = 0x1f;
    grant->bound = grant->broken = true;
    grant->n = 64;
    set_stamp(&grant->granted, /* epoch= */ 1, /* revision= */ 41, /* time_ms= */ 1000);
    set_stamp(&grant->renewed, /* epoch= */ 1, /* revision= */ 43, TIME_UNKNOWN);
    grant->lock_delay_ms = 500;
    assert_true(meta_add(&grant->meta, "path", "C:\\x"));
    assert_true(meta_add(&grant->meta, "é", ""));
    add_grant("b", "r2", MODE_SLOT)->ttl_ms = 1;
    original.next_ticket = 7;
    struct waiter *waiter = add_waiter("c", "r3", /* session= */ 2);
    waiter->mode = MODE_SLOT;
    waiter->bound = waiter->offered = true;
    waiter->priority = -5;
    waiter->passed = 2;
    waiter->lock_delay_ms = 1;
    add_waiter("c", "r4", /* session= */ 3)->mode = MODE_SLOT;
    text_copy(original.reason, sizeof original.reason, "stuck");
}

/* There is no offer while the key is blocked, so this takes a record of its own. */
static const char blocked_sample[] =
    "{\"leasehold\":1,\"key\":\"k\",\"next\":2,\"places\":[{\"holder\":\"c\",\"request\":\"r3\","
    "\"session\":\"2\",\"mode\":\"exclusive\",\"ticket\":1,\"ttl_ms\":30000}],"
    "\"cooling\":{\"since\":\"this\",\"length_ms\":300000,\"by\":\"y\"},"
    "\"delay\":{\"since\":[0,9,5],\"length_ms\":15000,\"by\":\"z\"},\"reason\":\"stuck\"}";

static void build_blocked_sample(void)
{
    record_init(&original, "k");
    (void)add_waiter("c", "r3", /* session= */ 2);
    original.cooling.length_ms = 300000;
    text_copy(original.cooling.by, sizeof original.cooling.by, "y");
    set_stamp(&original.delay.since, /* epoch= */ 0, /* revision= */ 9, /* time_ms= */ 5);
    original.delay.length_ms = 15000;
    text_copy(original.delay.by, sizeof original.delay.by, "z");
    text_copy(original.reason, sizeof original.reason, "stuck");
}

static void test_known_bytes(void **state)
{
    (void)state;
    build_full_sample();
    assert_true(round_trip());
    assert_string_equal(bytes, full_sample);

    build_blocked_sample();
    assert_true(round_trip());
    assert_string_equal(bytes, blocked_sample);

    record_init(&original, "k");
    assert_true(round_trip());
    assert_string_equal(bytes, "{\"leasehold\":1,\"key\":\"k\"}");

    original.cooling.length_ms = 300000;
    assert_true(round_trip());
    assert_string_equal(bytes, "{\"leasehold\":1,\"key\":\"k\","
                               "\"cooling\":{\"since\":\"this\",\"length_ms\":300000}}");
}

static void test_what_the_store_says_is_not_written(void **state)
{
    (void)state;
    build_full_sample();
    original.grants[0].dead = original.grants[0].over = original.waiters[0].dead = true;
    assert_true(round_trip());
    assert_string_equal(bytes, full_sample);
    assert_false(decoded.grants[0].dead || decoded.grants[0].over || decoded.waiters[0].dead);

    build_blocked_sample();
    original.cooling.over = original.delay.over = true;
    assert_true(round_trip());
    assert_string_equal(bytes, blocked_sample);
    assert_false(decoded.cooling.over || decoded.delay.over);
}

/* Random records */

static void random_text(struct random *random, size_t least, size_t most, char *out)
{
    static const char *const letters[] = {"a", "Z", "0", "/", " ",    "\"", "\\",
                                          "ä", "€", "😀", "{", "\\\"", "u",  ":"};
    size_t goal = random_below(random, 8) == 0 ? most : least + random_below(random, 12);
    size_t length = 0;
    for (;;) {
        const char *letter = letters[random_below(random, sizeof letters / sizeof letters[0])];
        if (length + strlen(letter) > most || (length >= goal && length >= least))
            break;
        memcpy(out + length, letter, strlen(letter));
        length += strlen(letter);
    }
    while (length < least)
        out[length++] = 'x';
    out[length] = '\0';
}

/* The index makes it unique. */
static void random_request(struct random *random, size_t index, char *out)
{
    out[0] = (char)('a' + index / 26);
    out[1] = (char)('a' + index % 26);
    random_text(random, /* least= */ 0, REQUEST_MAX - 2, out + 2);
}

static uint64_t random_up_to(struct random *random, uint64_t least, uint64_t most)
{
    switch (random_below(random, 4)) {
    case 0:
        return least;
    case 1:
        return most;
    default:
        return least + random_next(random) % (most - least + 1);
    }
}

static void random_stamp(struct random *random, struct stamp *out)
{
    out->epoch = (uint16_t)random_up_to(random, 0, EPOCH_MAX);
    out->revision = random_up_to(random, 1, REVISION_MAX);
    if (random_below(random, 4) == 0)
        out->revision = THIS_WRITE;
    out->time_ms = (int64_t)random_up_to(random, 0, RECORD_NUMBER_MAX);
    if (random_below(random, 4) == 0)
        out->time_ms = TIME_UNKNOWN;
}

static void random_grant(struct random *random, size_t index, enum mode mode)
{
    struct grant *grant = record_add_grant(&original);
    random_text(random, /* least= */ 1, HOLDER_MAX, grant->holder);
    random_request(random, index, grant->request);
    grant->session = random_up_to(random, 0, UINT64_MAX - 1);
    grant->mode = mode;
    grant->bound = random_below(random, 2) == 0;
    grant->broken = random_below(random, 2) == 0;
    grant->n = (uint16_t)(index * 16 + random_below(random, 16));
    random_stamp(random, &grant->granted);
    grant->renewed = grant->granted;
    if (random_below(random, 2) == 0)
        random_stamp(random, &grant->renewed);
    grant->ttl_ms = (int64_t)random_up_to(random, 1, (uint64_t)TTL_MAX_MS);
    grant->lock_delay_ms = (int64_t)random_up_to(random, 0, (uint64_t)TTL_MAX_MS);
    char name[65], value[257];
    for (uint64_t i = random_below(random, (uint64_t)2 * META_PAIRS_MAX); i < META_PAIRS_MAX; i++) {
        random_text(random, /* least= */ 1, /* most= */ 64, name);
        random_text(random, /* least= */ 0, /* most= */ 256, value);
        (void)meta_add(&grant->meta, name, value);
    }
}

static void random_waiter(struct random *random, size_t index)
{
    original.next_ticket += random_below(random, 3);
    struct waiter *waiter = record_add_waiter(&original);
    random_text(random, /* least= */ 1, HOLDER_MAX, waiter->holder);
    random_request(random, index, waiter->request);
    waiter->session = (random_next(random) << 8) + index;
    waiter->mode = original.limit > 0             ? MODE_SLOT
                   : random_below(random, 2) == 0 ? MODE_SHARED
                                                  : MODE_EXCLUSIVE;
    waiter->priority = (int32_t)random_up_to(random, 0, (uint64_t)2 * PRIORITY_MAX) - PRIORITY_MAX;
    waiter->passed = (uint32_t)random_up_to(random, 0, PASSED_MAX);
    waiter->bound = random_below(random, 2) == 0;
    waiter->ttl_ms = (int64_t)random_up_to(random, 1, (uint64_t)TTL_MAX_MS);
    waiter->lock_delay_ms = (int64_t)random_up_to(random, 0, (uint64_t)TTL_MAX_MS);
    waiter->offered = random_below(random, 4) == 0;
    if (record_broken(&original) != NULL)
        waiter->offered = false;
    if (waiter->offered)
        random_stamp(random, &waiter->offer);
}

static void random_span(struct random *random, struct span *out)
{
    out->length_ms = (int64_t)random_up_to(random, 0, (uint64_t)SPAN_MAX_MS);
    random_stamp(random, &out->since);
    random_text(random, /* least= */ 0, HOLDER_MAX, out->by);
}

static void random_record(struct random *random)
{
    char key[KEY_MAX + 1];
    random_text(random, /* least= */ 1, KEY_MAX, key);
    record_init(&original, key);
    enum mode mode = (enum mode)random_below(random, 3);
    size_t grants = random_below(random, mode == MODE_EXCLUSIVE         ? 2
                                         : random_below(random, 8) == 0 ? GRANTS_MAX + 1
                                                                        : 4);
    size_t waiters = random_below(random, random_below(random, 8) == 0 ? WAITERS_MAX + 1 : 5);
    if (mode == MODE_SLOT)
        original.limit = (uint32_t)random_up_to(random, GRANTS_MAX, UINT32_MAX);
    if (random_below(random, 4) == 0)
        random_span(random, &original.cooling);
    if (random_below(random, 4) == 0)
        random_span(random, &original.delay);
    random_text(random, /* least= */ 0, REASON_MAX, original.reason);
    original.next_ticket = random_up_to(random, 1, RECORD_NUMBER_MAX - (uint64_t)4 * WAITERS_MAX);
    for (size_t i = 0; i < grants; i++)
        random_grant(random, i, mode);
    for (size_t i = 0; i < waiters; i++)
        random_waiter(random, i);
    assert_null(record_broken(&original));
}

static void test_random_records(void **state)
{
    (void)state;
    struct random random = {.state = 20240611};
    size_t tried = 4000, fitted = 0;
    for (size_t i = 0; i < tried; i++) {
        random_record(&random);
        if (round_trip())
            fitted++;
        else
            assert_true(record_size_bound(&original) > RECORD_MAX);
    }
    assert_true(fitted > tried * 9 / 10 && fitted < tried);
}

/* Limits */

static void fill(char *out, char letter, size_t length)
{
    memset(out, letter, length);
    out[length] = '\0';
}

static void test_widest_fields_keep_the_weight(void **state)
{
    (void)state;
    char longest[KEY_MAX + 1];
    fill(longest, '"', KEY_MAX);
    record_init(&original, longest);
    original.limit = UINT32_MAX;
    original.next_ticket = RECORD_NUMBER_MAX - 1;
    fill(original.reason, '\\', REASON_MAX);
    struct stamp widest = {REVISION_MAX, (int64_t)RECORD_NUMBER_MAX, EPOCH_MAX};
    original.delay.length_ms = SPAN_MAX_MS;
    original.delay.since = widest;
    fill(original.delay.by, '"', HOLDER_MAX);
    struct grant *grant = add_grant("?", "?", MODE_SLOT);
    fill(grant->holder, '"', HOLDER_MAX);
    fill(grant->request, '"', REQUEST_MAX);
    grant->session = UINT64_MAX;
    grant->bound = grant->broken = true;
    grant->n = 1023;
    grant->granted = grant->renewed = widest;
    grant->renewed.epoch--;
    grant->ttl_ms = grant->lock_delay_ms = TTL_MAX_MS;
    for (size_t i = 1; i <= META_PAIRS_MAX; i++) {
        char name[META_PAIRS_MAX + 1];
        fill(name, '"', i);
        assert_true(meta_add(&grant->meta, name, "\\"));
    }
    struct waiter *waiter = add_waiter("?", "?", UINT64_MAX);
    fill(waiter->holder, '"', HOLDER_MAX);
    fill(waiter->request, '"', REQUEST_MAX);
    waiter->mode = MODE_SLOT;
    waiter->priority = -PRIORITY_MAX;
    waiter->passed = PASSED_MAX;
    waiter->bound = true;
    waiter->ttl_ms = waiter->lock_delay_ms = TTL_MAX_MS;
    original.cooling = original.delay;
    assert_true(round_trip());

    original.cooling.length_ms = original.delay.length_ms = 0;
    waiter->offered = true;
    waiter->offer = widest;
    assert_true(round_trip());
}

/* 60 readers whose meta and the reason are stretched until the record has the requested length. */
static void build_of_length(size_t wanted)
{
    enum { READERS = 60 };
    char value[META_MAX] = "v";
    size_t stretch = 0, rest = 0;
    for (int pass = 0; pass < 2; pass++) {
        record_init(&original, "k");
        fill(original.reason, 'r', 1 + rest);
        fill(value, 'v', 1 + stretch);
        for (size_t i = 0; i < READERS; i++) {
            char request[] = {(char)('A' + i), '\0'};
            struct grant *grant = add_grant("h", request, MODE_SHARED);
            grant->n = (uint16_t)(10 + i);
            assert_true(meta_add(&grant->meta, "m", value));
        }
        if (pass > 0)
            return;
        size_t missing = wanted - record_encode(&original, bytes, sizeof bytes);
        stretch = missing / READERS;
        rest = missing % READERS;
    }
}

static void test_longest_record(void **state)
{
    (void)state;
    struct codec_error error;
    build_of_length(RECORD_MAX);
    assert_true(round_trip());
    assert_int_equal(record_encode(&original, input, sizeof input), RECORD_MAX);
    assert_int_equal(record_encode(&original, bytes, RECORD_MAX), 0);

    memcpy(input, bytes, RECORD_MAX);
    assert_int_equal(record_decode(input, RECORD_MAX + 1, &decoded, &error), DECODE_TOO_LONG);
    assert_int_equal(error.offset, RECORD_MAX);

    build_of_length(RECORD_MAX + 1);
    assert_int_equal(record_encode(&original, input, sizeof input), 0);
}

static void test_fullest_record(void **state)
{
    (void)state;
    record_init(&original, "k");
    for (size_t i = 0; i < GRANTS_MAX; i++) {
        char request[] = {'r', (char)('0' + i), '\0'};
        if (request[1] == '\\')
            request[1] = 'z';
        add_grant("host-17:4711", request, MODE_SHARED)->n = (uint16_t)i;
    }
    for (size_t i = 0; i < WAITERS_MAX; i++)
        add_waiter("host-17:4711", "request", /* session= */ (i << 48) + 1)->bound = true;
    assert_true(round_trip());
}

static void test_room(void **state)
{
    (void)state;
    size_t length = sizeof full_sample - 1;
    build_full_sample();
    assert_int_equal(record_encode(&original, bytes, length + 1), length);
    for (size_t size = 0; size <= length; size++)
        assert_int_equal(record_encode(&original, bytes, size), 0);

    original.next_ticket = RECORD_NUMBER_MAX;
    assert_true(round_trip());
    original.next_ticket++;
    assert_int_equal(record_encode(&original, bytes, sizeof bytes), 0);
}

/* Marks */

static void write_and_read(uint64_t revision, int64_t time_ms)
{
    struct stamp written = {revision, time_ms, 2};
    assert_true(round_trip());
    record_resolve(&decoded, &written);
    record_copy(&original, &decoded);
}

static void test_marks_become_the_write(void **state)
{
    (void)state;
    record_init(&original, "k");
    add_grant("a", "r1", MODE_SHARED)->n = 64;
    add_waiter("b", "r2", /* session= */ 7)->mode = MODE_SHARED;
    original.waiters[0].offered = true;
    assert_true(round_trip());
    assert_int_equal(grant_token(&decoded.grants[0]), 0);

    write_and_read(/* revision= */ 41, /* time_ms= */ 1000);
    struct stamp written = {41, 1000, 2};
    assert_int_equal(grant_token(&original.grants[0]), token_of(&written, 64));
    assert_same_stamp(&original.grants[0].renewed, &written);
    assert_same_stamp(&original.waiters[0].offer, &written);

    record_init(&original, "k");
    original.cooling.length_ms = original.delay.length_ms = 5000;
    write_and_read(/* revision= */ 41, /* time_ms= */ 1000);
    assert_same_stamp(&original.cooling.since, &written);
    assert_same_stamp(&original.delay.since, &written);
}

/* A waiter enqueues, then the holder renews: the token never changes, the expiry only by the
 * renewal. */
static void test_other_writers_move_nothing(void **state)
{
    (void)state;
    record_init(&original, "k");
    add_grant("a", "r1", MODE_EXCLUSIVE)->n = 3;
    write_and_read(/* revision= */ 41, /* time_ms= */ 1000);
    struct grant *grant = &original.grants[0];
    uint64_t token = grant_token(grant);
    assert_int_equal(token, ((uint64_t)2 << 55) + (41 << 10) + 3);

    add_waiter("b", "r2", /* session= */ 7);
    write_and_read(/* revision= */ 42, /* time_ms= */ 2000);
    assert_int_equal(grant_token(grant), token);
    assert_int_equal(grant->renewed.time_ms + grant->ttl_ms, 31000);

    memset(&grant->renewed, 0, sizeof grant->renewed);
    write_and_read(/* revision= */ 43, /* time_ms= */ 11000);
    add_waiter("c", "r3", /* session= */ 8);
    write_and_read(/* revision= */ 44, TIME_UNKNOWN);
    assert_int_equal(grant_token(grant), token);
    assert_int_equal(grant->granted.time_ms, 1000);
    assert_int_equal(grant->renewed.time_ms + grant->ttl_ms, 41000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_known_bytes, soil),
        cmocka_unit_test_setup(test_what_the_store_says_is_not_written, soil),
        cmocka_unit_test_setup(test_random_records, soil),
        cmocka_unit_test_setup(test_widest_fields_keep_the_weight, soil),
        cmocka_unit_test_setup(test_longest_record, soil),
        cmocka_unit_test_setup(test_fullest_record, soil),
        cmocka_unit_test_setup(test_room, soil),
        cmocka_unit_test_setup(test_marks_become_the_write, soil),
        cmocka_unit_test_setup(test_other_writers_move_nothing, soil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

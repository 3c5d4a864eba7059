/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoding of the log: records decode at their own offset and in their own generation only; any
 * changed bit, any truncation, and anything that the encoder does not write is refused.
 */
#include "store/log/log_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OFFSET = 4096 + 640, GENERATION = 5 };

static unsigned char bytes[LOG_RECORD_MOST + 64], sector[LOG_HEADER];
static struct log_record back;

static struct log_record put_record(void)
{
    return (struct log_record){.type = LOG_PUT,
                               .key = "key",
                               .key_length = 3,
                               .bytes = "some bytes",
                               .length = 10,
                               .written = {.revision = 77, .time_ms = 123456, .epoch = 3},
                               .offset = OFFSET,
                               .previous = 4096,
                               .synced = 4160,
                               .file_length = 8192,
                               .chain = 0x1122334455667788};
}

static size_t encode(struct log_record *record)
{
    size_t size = log_record_size(record->key_length, record->length);
    log_record_encode(record, GENERATION, bytes);
    return size;
}

static enum log_reading decode(size_t length)
{
    memset(&back, 0, sizeof back);
    return log_record_decode(bytes, length, OFFSET, GENERATION, &back);
}

static void a_record_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct log_record record = put_record();
    size_t size = encode(&record);
    assert_int_equal(size, 80);
    assert_int_equal(decode(size), LOG_READ_OK);
    assert_int_equal(back.type, LOG_PUT);
    assert_int_equal(back.key_length, 3);
    assert_memory_equal(back.key, "key", 3);
    assert_int_equal(back.length, 10);
    assert_memory_equal(back.bytes, "some bytes", 10);
    assert_true(back.written.revision == 77 && back.written.time_ms == 123456);
    assert_int_equal(back.written.epoch, 3);
    assert_true(back.offset == OFFSET && back.previous == 4096 && back.synced == 4160);
    assert_true(back.file_length == 8192 && back.chain == record.chain);
    assert_true(back.checksum == record.checksum && record.checksum != 0);
}

static void the_largest_and_the_smallest_fit(void **state)
{
    (void)state;
    static char key[KEY_MAX], value[RECORD_MAX];
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    struct log_record record = put_record();
    record.key = key;
    record.key_length = sizeof key;
    record.bytes = value;
    record.length = sizeof value;
    record.written =
        (struct stamp){.revision = REVISION_MAX, .time_ms = TIME_MAX_MS, .epoch = EPOCH_MAX};
    size_t size = encode(&record);
    assert_int_equal(size, LOG_RECORD_MOST);
    assert_int_equal(decode(size), LOG_READ_OK);
    assert_memory_equal(back.bytes, value, sizeof value);
    struct log_record seal = {.type = LOG_SEAL, .written = {.revision = 1}, .offset = OFFSET};
    assert_int_equal(encode(&seal), LOG_HEAD);
    assert_int_equal(decode(LOG_HEAD), LOG_READ_OK);
    assert_int_equal(back.type, LOG_SEAL);
}

static void only_at_its_place(void **state)
{
    (void)state;
    struct log_record record = put_record();
    size_t size = encode(&record);
    assert_int_equal(log_record_decode(bytes, size, OFFSET + 8, GENERATION, &back), LOG_READ_BAD);
    assert_int_equal(log_record_decode(bytes, size, OFFSET, GENERATION + 1, &back), LOG_READ_BAD);
    assert_int_equal(log_record_decode(bytes, size, OFFSET, GENERATION, &back), LOG_READ_OK);
}

static void any_changed_bit_is_refused(void **state)
{
    (void)state;
    struct log_record record = put_record();
    size_t size = encode(&record);
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            assert_int_not_equal(decode(size), LOG_READ_OK);
            assert_int_not_equal(decode(sizeof bytes), LOG_READ_OK);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    assert_int_equal(decode(size), LOG_READ_OK);
}

static void half_a_record_is_short_and_zeros_are_nothing(void **state)
{
    (void)state;
    struct log_record record = put_record();
    size_t size = encode(&record);
    for (size_t length = 0; length < size; length++)
        assert_int_equal(decode(length), length == 0 ? LOG_READ_NOTHING : LOG_READ_SHORT);
    memset(bytes, 0, sizeof bytes);
    for (size_t length = 0; length < 200; length++)
        assert_int_equal(decode(length), LOG_READ_NOTHING);
}

/* With a valid checksum: the type it would be decoded as. */
static enum log_reading decode_as(struct log_record *record)
{
    return decode(encode(record));
}

static void an_unknown_type_is_known_as_such(void **state)
{
    (void)state;
    struct log_record record = put_record();
    for (unsigned type = 0; type < 256; type++) {
        record.type = (enum log_type)type;
        enum log_reading reading = decode_as(&record);
        if (type == LOG_PUT)
            assert_int_equal(reading, LOG_READ_OK);
        else if (type > LOG_PUT && type <= LOG_SEAL)
            assert_int_equal(reading, LOG_READ_BAD); /* it has a key and bytes */
        else
            assert_int_equal(reading, LOG_READ_UNKNOWN);
    }
    assert_true(back.chain == record.chain && back.synced == record.synced);
}

static void a_record_nobody_writes_is_refused(void **state)
{
    (void)state;
    struct log_record record = put_record();
    record.written.revision = 0;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.written.revision = REVISION_MAX + 1;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.written.time_ms = -1;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.written.epoch = EPOCH_MAX + 1;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.previous = OFFSET;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.key_length = 0;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record = put_record();
    record.length = 0;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
    record.type = LOG_ERASE;
    assert_int_equal(decode_as(&record), LOG_READ_OK);
    record.type = LOG_HOST;
    assert_int_equal(decode_as(&record), LOG_READ_BAD);
}

static struct log_header some_header(void)
{
    struct log_header header = {.version = LOG_VERSION,
                                .generation = GENERATION,
                                .slots = 64,
                                .length = 8192,
                                .tail = 4200,
                                .ceiling = 99};
    memset(header.machine, 0xaa, LOG_ID);
    memset(header.boot, 0xbb, LOG_ID);
    return header;
}

static void a_header_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct log_header header = some_header(), read;
    log_header_encode(&header, sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_OK);
    assert_true(read.version == LOG_VERSION && read.generation == GENERATION && read.slots == 64);
    assert_true(read.length == 8192 && read.tail == 4200 && read.ceiling == 99);
    assert_memory_equal(read.machine, header.machine, LOG_ID);
    assert_memory_equal(read.boot, header.boot, LOG_ID);
}

static void any_changed_bit_of_a_header_is_refused(void **state)
{
    (void)state;
    struct log_header header = some_header(), read;
    log_header_encode(&header, sector);
    for (size_t i = 0; i < LOG_HEADER; i++) {
        for (int bit = 0; bit < 8; bit++) {
            sector[i] ^= (unsigned char)(1 << bit);
            enum log_reading reading = log_header_decode(sector, &read);
            bool in_version = i >= 8 && i < 12;
            if (i < 8)
                assert_int_equal(reading, LOG_READ_FOREIGN);
            else if (in_version && (i > 8 || bit > 0))
                assert_int_equal(reading, LOG_READ_NEWER);
            else
                assert_int_equal(reading, LOG_READ_BAD);
            sector[i] ^= (unsigned char)(1 << bit);
        }
    }
    memset(sector, 0, sizeof sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_FOREIGN);
}

static void a_header_that_nobody_writes_is_refused(void **state)
{
    (void)state;
    struct log_header read, header = some_header();
    /* No power of two; less than one read; more than the maximum. */
    static const uint32_t slots[] = {65, 1, 2, 4, (uint32_t)1 << 31};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        header.slots = slots[i];
        log_header_encode(&header, sector);
        assert_int_equal(log_header_decode(sector, &read), LOG_READ_BAD);
    }
    header.slots = 1 << 21; /* a compaction may drop most of the records that it counted */
    log_header_encode(&header, sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_OK);
    header = some_header();
    header.generation = 0;
    log_header_encode(&header, sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_BAD);
    header = some_header();
    header.tail = header.length + 8;
    log_header_encode(&header, sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_BAD);
    header = some_header();
    header.ceiling = REVISION_MAX + 1;
    log_header_encode(&header, sector);
    assert_int_equal(log_header_decode(sector, &read), LOG_READ_BAD);
}

static void a_home_is_read_as_it_was_written(void **state)
{
    (void)state;
    unsigned char written[LOG_HOST_BYTES];
    struct log_host host = {.base_ms = -5, .foreign_before = 1234567, .epoch = 7}, read;
    memset(host.machine, 1, LOG_ID);
    memset(host.boot, 2, LOG_ID);
    log_host_encode(&host, written);
    assert_true(log_host_decode(written, &read));
    assert_true(read.base_ms == -5 && read.foreign_before == 1234567 && read.epoch == 7);
    assert_memory_equal(read.machine, host.machine, LOG_ID);
    assert_memory_equal(read.boot, host.boot, LOG_ID);
}

/* A time that is added to, a part of tokens: out of bounds they would overflow later. */
static void a_home_that_nobody_writes_is_refused(void **state)
{
    (void)state;
    static const struct log_host homes[] = {{.base_ms = TIME_MAX_MS + 1},
                                            {.base_ms = INT64_MIN},
                                            {.foreign_before = REVISION_MAX + 2},
                                            {.epoch = EPOCH_MAX + 1}};
    unsigned char written[LOG_HOST_BYTES];
    struct log_host read;
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        log_host_encode(&homes[i], written);
        assert_false(log_host_decode(written, &read));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(the_largest_and_the_smallest_fit),
        cmocka_unit_test(only_at_its_place),
        cmocka_unit_test(any_changed_bit_is_refused),
        cmocka_unit_test(half_a_record_is_short_and_zeros_are_nothing),
        cmocka_unit_test(an_unknown_type_is_known_as_such),
        cmocka_unit_test(a_record_nobody_writes_is_refused),
        cmocka_unit_test(a_header_is_read_as_it_was_written),
        cmocka_unit_test(any_changed_bit_of_a_header_is_refused),
        cmocka_unit_test(a_header_that_nobody_writes_is_refused),
        cmocka_unit_test(a_home_is_read_as_it_was_written),
        cmocka_unit_test(a_home_that_nobody_writes_is_refused),
    };
    return cmocka_run_group_tests_name("log_format", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a header or a record of the log. The first four choose which, its generation and
 * offset, and whether the checksum is corrected first, since a fuzzer cannot guess one. The oracle:
 * accepted bytes encode to the same bytes again, and nothing is read past the end of the input.
 * Built with LH_FUZZ_PLANT the decoder has a bug that this must find.
 */
#include "base/check.h"
#include "base/checksum.h"
#include "store/log/log_format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 4, IS_HEADER = 1, IS_SUMMED = 2, HEADER_SUM_AT = LOG_HEADER - 8 };

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put64(unsigned char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static void try_header(unsigned char *bytes, size_t length, bool summed)
{
    unsigned char again[LOG_HEADER];
    struct log_header header;
    if (length < LOG_HEADER)
        return;
    if (summed)
        put64(bytes + HEADER_SUM_AT, checksum(0, bytes, HEADER_SUM_AT));
    if (log_header_decode(bytes, &header) != LOG_READ_OK)
        return;
    ASSERT(header.version == LOG_VERSION && header.tail <= header.length);
    log_header_encode(&header, again);
    ASSERT(memcmp(bytes, again, sizeof again) == 0);
}

/* As in log_format.c, for the length in the record. */
static void put_sum(unsigned char *bytes, size_t length, uint64_t offset, uint64_t generation)
{
    unsigned char place[16];
    if (length < LOG_HEAD)
        return;
    size_t key_length = bytes[52] | (size_t)bytes[53] << 8;
    size_t body = bytes[48] | (size_t)bytes[49] << 8 | (size_t)bytes[50] << 16;
    size_t size = log_record_size(key_length, body);
    if (size > length)
        return;
    put64(place, generation);
    put64(place + 8, offset);
    put64(bytes, checksum(checksum(0, place, sizeof place), bytes + 8, size - 8));
}

static void try_record(unsigned char *bytes, size_t length, uint64_t offset, uint64_t generation)
{
    static unsigned char again[LOG_RECORD_MOST];
    struct log_record record;
    enum log_reading reading = log_record_decode(bytes, length, offset, generation, &record);
    ASSERT(reading != LOG_READ_FOREIGN && reading != LOG_READ_NEWER);
    if (reading != LOG_READ_OK)
        return;
    size_t size = log_record_size(record.key_length, record.length);
    ASSERT(size <= length && record.offset == offset);
    log_record_encode(&record, generation, again);
    ASSERT(memcmp(bytes, again, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < PREFIX)
        return 0;
    uint64_t generation = (uint64_t)data[1] + 1;
    uint64_t offset = LOG_START + LOG_ALIGN * (data[2] | (uint64_t)data[3] << 8);
    size_t length = size - PREFIX;
    unsigned char *bytes = malloc(length > 0 ? length : 1); /* the exact size, for ASan */
    if (bytes == NULL)
        return 0;
    memcpy(bytes, data + PREFIX, length);
    bool summed = (data[0] & IS_SUMMED) != 0;
    if ((data[0] & IS_HEADER) != 0) {
        try_header(bytes, length, summed);
    } else {
        if (summed)
            put_sum(bytes, length, offset, generation);
        try_record(bytes, length, offset, generation);
    }
    free(bytes);
    return 0;
}

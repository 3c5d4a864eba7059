/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the log. Rejects all bytes that it would not have written itself. */
#include "store/log/log_format.h"

#include "base/check.h"
#include "base/checksum.h"

#include <string.h>

enum { MAGIC = 8, CHECKSUM = 8, HEADER_SUM_AT = LOG_HEADER - CHECKSUM, HEADER_USED = 80 };

static const char magic[MAGIC] = "leasehld";

static void put16(unsigned char *at, uint16_t number)
{
    at[0] = (unsigned char)number;
    at[1] = (unsigned char)(number >> 8);
}

static void put32(unsigned char *at, uint32_t number)
{
    put16(at, (uint16_t)number);
    put16(at + 2, (uint16_t)(number >> 16));
}

static void put64(unsigned char *at, uint64_t number)
{
    put32(at, (uint32_t)number);
    put32(at + 4, (uint32_t)(number >> 32));
}

static uint16_t get16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const unsigned char *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static bool is_zero(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

void log_header_encode(const struct log_header *header, unsigned char *sector)
{
    ASSERT(header->length % LOG_UNIT == 0 && header->tail >= LOG_START);
    memset(sector, 0, LOG_HEADER);
    memcpy(sector, magic, MAGIC);
    put32(sector + 8, header->version);
    put32(sector + 12, header->slots);
    put64(sector + 16, header->generation);
    put64(sector + 24, header->length);
    put64(sector + 32, header->tail);
    put64(sector + 40, header->ceiling);
    memcpy(sector + 48, header->machine, LOG_ID);
    memcpy(sector + 48 + LOG_ID, header->boot, LOG_ID);
    put64(sector + HEADER_SUM_AT, checksum(0, sector, HEADER_SUM_AT));
}

/* A power of two. The file's length is no bound: a compaction sizes the index before it drops
 * records. */
static bool has_possible_slots(const struct log_header *header)
{
    return header->slots >= LOG_SLOTS_LEAST && header->slots <= LOG_SLOTS_MOST &&
           (header->slots & (header->slots - 1)) == 0;
}

enum log_reading log_header_decode(const unsigned char *sector, struct log_header *out)
{
    if (memcmp(sector, magic, MAGIC) != 0)
        return LOG_READ_FOREIGN;
    uint32_t version = get32(sector + 8);
    if (version > LOG_VERSION) {
        out->version = version;
        return LOG_READ_NEWER;
    }
    struct log_header header = {.version = version,
                                .slots = get32(sector + 12),
                                .generation = get64(sector + 16),
                                .length = get64(sector + 24),
                                .tail = get64(sector + 32),
                                .ceiling = get64(sector + 40)};
    memcpy(header.machine, sector + 48, LOG_ID);
    memcpy(header.boot, sector + 48 + LOG_ID, LOG_ID);
    bool fits = version > 0 && header.generation > 0 && header.generation <= LOG_GENERATION_MAX &&
                header.length <= LOG_OFFSET_MAX && header.length % LOG_UNIT == 0 &&
                header.tail >= LOG_START && header.tail <= header.length &&
                header.ceiling <= REVISION_MAX && has_possible_slots(&header);
    if (!fits || get64(sector + HEADER_SUM_AT) != checksum(0, sector, HEADER_SUM_AT) ||
        !is_zero(sector + HEADER_USED, HEADER_SUM_AT - HEADER_USED))
        return LOG_READ_BAD;
    *out = header;
    return LOG_READ_OK;
}

size_t log_record_size(size_t key_length, size_t length)
{
    return (LOG_HEAD + key_length + length + LOG_ALIGN - 1) / LOG_ALIGN * LOG_ALIGN;
}

static uint64_t checksum_of(uint64_t generation, uint64_t offset, const unsigned char *bytes,
                            size_t size)
{
    unsigned char position[16];
    put64(position, generation);
    put64(position + 8, offset);
    return checksum(checksum(0, position, sizeof position), bytes + CHECKSUM, size - CHECKSUM);
}

void log_record_encode(struct log_record *record, uint64_t generation, unsigned char *bytes)
{
    uint64_t offset = record->offset;
    size_t size = log_record_size(record->key_length, record->length);
    ASSERT(record->key_length <= KEY_MAX && record->length <= RECORD_MAX);
    ASSERT(offset % LOG_ALIGN == 0 && record->synced <= offset);
    ASSERT(record->file_length % LOG_UNIT == 0);
    memset(bytes, 0, size);
    put64(bytes + 8, record->chain);
    put64(bytes + 16, record->synced);
    put64(bytes + 24, record->previous);
    put64(bytes + 32, record->written.revision);
    put64(bytes + 40, (uint64_t)record->written.time_ms);
    put32(bytes + 48, (uint32_t)record->length);
    put16(bytes + 52, (uint16_t)record->key_length);
    put16(bytes + 54, record->written.epoch);
    bytes[56] = (unsigned char)record->type;
    put32(bytes + 60, (uint32_t)(record->file_length / LOG_UNIT));
    if (record->key_length > 0)
        memcpy(bytes + LOG_HEAD, record->key, record->key_length);
    if (record->length > 0)
        memcpy(bytes + LOG_HEAD + record->key_length, record->bytes, record->length);
    record->checksum = checksum_of(generation, offset, bytes, size);
    put64(bytes, record->checksum);
}

static bool fits_its_type(const struct log_record *record)
{
    switch (record->type) {
    case LOG_PUT:
        return record->key_length > 0 && record->length > 0;
    case LOG_ERASE:
        return record->key_length > 0 && record->length == 0;
    case LOG_HOST:
        return record->key_length == 0 && record->length == LOG_HOST_BYTES;
    case LOG_SEAL:
        return record->key_length == 0 && record->length == 0;
    }
    return false;
}

static bool is_possible(const struct log_record *record, uint64_t offset)
{
    const struct stamp *written = &record->written;
    return written->revision > 0 && written->revision <= REVISION_MAX && written->time_ms >= 0 &&
           written->time_ms <= TIME_MAX_MS && written->epoch <= EPOCH_MAX &&
           record->synced <= offset && record->previous < offset && fits_its_type(record);
}

enum log_reading log_record_decode(const unsigned char *bytes, size_t length, uint64_t offset,
                                   uint64_t generation, struct log_record *out)
{
    if (length < LOG_HEAD)
        return is_zero(bytes, length) ? LOG_READ_NOTHING : LOG_READ_SHORT;
    size_t key_length = get16(bytes + 52);
    size_t body = get32(bytes + 48);
    if (is_zero(bytes, LOG_HEAD))
        return LOG_READ_NOTHING;
    if (key_length > KEY_MAX || body > RECORD_MAX)
        return LOG_READ_BAD;
    size_t size = log_record_size(key_length, body);
    if (length < size)
        return LOG_READ_SHORT;
    uint64_t sum = get64(bytes);
    if (sum != checksum_of(generation, offset, bytes, size))
        return LOG_READ_BAD;
    *out = (struct log_record){.type = (enum log_type)bytes[56],
                               .key = (const char *)bytes + LOG_HEAD,
                               .key_length = key_length,
                               .bytes = (const char *)bytes + LOG_HEAD + key_length,
                               .length = body,
                               .written = {.revision = get64(bytes + 32),
                                           .time_ms = (int64_t)get64(bytes + 40),
                                           .epoch = get16(bytes + 54)},
                               .offset = offset,
                               .previous = get64(bytes + 24),
                               .synced = get64(bytes + 16),
                               .file_length = (uint64_t)get32(bytes + 60) * LOG_UNIT,
                               .chain = get64(bytes + 8),
                               .checksum = sum};
    if (bytes[56] < LOG_PUT || bytes[56] > LOG_SEAL)
        return LOG_READ_UNKNOWN;
#ifdef LH_FUZZ_PLANT /* proves that the fuzzer finds unchecked bytes */
    size_t used = size;
#else
    size_t used = LOG_HEAD + key_length + body;
#endif
    if (!is_zero(bytes + 57, 3) || !is_zero(bytes + used, size - used) || !is_possible(out, offset))
        return LOG_READ_BAD;
    return LOG_READ_OK;
}

void log_host_encode(const struct log_host *host, unsigned char *bytes)
{
    memcpy(bytes, host->machine, LOG_ID);
    memcpy(bytes + LOG_ID, host->boot, LOG_ID);
    put64(bytes + 32, (uint64_t)host->base_ms);
    put64(bytes + 40, host->foreign_before);
    put64(bytes + 48, host->epoch);
}

bool log_host_decode(const unsigned char *bytes, struct log_host *out)
{
    int64_t base_ms = (int64_t)get64(bytes + 32);
    uint64_t foreign_before = get64(bytes + 40), epoch = get64(bytes + 48);
    if (base_ms < -TIME_MAX_MS || base_ms > TIME_MAX_MS || foreign_before > REVISION_MAX + 1 ||
        epoch > EPOCH_MAX)
        return false;
    memcpy(out->machine, bytes, LOG_ID);
    memcpy(out->boot, bytes + LOG_ID, LOG_ID);
    out->base_ms = base_ms;
    out->foreign_before = foreign_before;
    out->epoch = (uint16_t)epoch;
    return true;
}

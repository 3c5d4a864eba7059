/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the log with its index: records are collected, written together, and found by their
 * key. The index is a table of slots in a file beside the log: where each key's last record is, so
 * that nobody has to read the log to look at one key. It counts within one boot, is never synced,
 * and is built anew from the log after a reboot. Whoever writes here holds the right lock.
 */
#include "store/file/log_inside.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_START = 4096, LINE = 8 /* slots that are read together */, LOOK_FIRST = 1024 };

/* A slot: 19 bits of the key's hash, whether something stands there, the record's offset. */
#define SLOT_LIVE ((uint64_t)1 << 44)
#define SLOT_TAG  (~(uint64_t)0 << 45)

static const uint64_t index_magic = 0x7865646e69686c81; /* no text: the lowest byte is no letter */

uint64_t generation_hash(const char *key, size_t length)
{
    return crc64(0, key, length);
}

bool generation_init(struct generation *generation)
{
    *generation = (struct generation){.file = -1, .index = -1, .buffer = malloc(BUFFER)};
    return generation->buffer != NULL;
}

static void close_files(struct log *log, struct generation *generation)
{
    const struct disk *disk = log->options.disk;
    if (generation->file >= 0)
        disk->close(disk->owner, generation->file);
    if (generation->index >= 0)
        disk->close(disk->owner, generation->index);
    generation->file = generation->index = -1;
    free(generation->slots);
    generation->slots = NULL;
    generation->pending_count = 0;
}

void generation_done(struct log *log, struct generation *generation)
{
    close_files(log, generation);
    free(generation->buffer);
    generation->buffer = NULL;
}

enum log_result generation_open(struct log *log, struct generation *out)
{
    unsigned char head[LOG_START];
    const struct disk *disk = log->options.disk;
    close_files(log, out);
    out->file = disk->open(disk->owner, "", DISK_OPEN);
    if (out->file < 0)
        return log_failed(log, "open", out->file);
    int64_t got = disk_read(disk, out->file, head, sizeof head, /* offset= */ 0);
    if (got < 0)
        return log_failed(log, "read", got);
    switch (got < LOG_HEADER ? LOG_READ_FOREIGN : log_header_decode(head, &out->header)) {
    case LOG_READ_OK:
        for (int64_t i = LOG_HEADER; i < LOG_START; i++)
            if (i >= got || head[i] != 0)
                return log_damaged_at(log, (uint64_t)i);
        return LOG_OK;
    case LOG_READ_FOREIGN:
        return LOG_NOT_OURS;
    case LOG_READ_NEWER:
        return LOG_NEWER;
    default:
        return log_damaged_at(log, /* offset= */ 0);
    }
}

enum log_result generation_make(struct log *log, struct generation *out,
                                const struct log_header *header)
{
    const struct disk *disk = log->options.disk;
    close_files(log, out);
    out->header = *header;
    out->end = out->written = LOG_START;
    out->chain = header->generation;
    out->used = 0;
    out->file = disk->open(disk->owner, ".new", DISK_EMPTY);
    return out->file < 0 ? log_failed(log, "make", out->file) : LOG_OK;
}

enum log_result generation_fill(struct log *log, int file, uint64_t from, uint64_t end)
{
    static const unsigned char zeros[LOG_START * 8];
    while (from < end) {
        uint64_t length = end - from < sizeof zeros ? end - from : sizeof zeros;
        int error = disk_write(log->options.disk, file, zeros, length, from);
        if (error != 0)
            return log_failed(log, "write", error);
        from += length;
    }
    return LOG_OK;
}

enum log_result generation_index_build(struct log *log, struct generation *generation)
{
    (void)log;
    free(generation->slots);
    generation->used = 0;
    generation->slots = calloc(generation->header.slots, sizeof *generation->slots);
    return generation->slots == NULL ? LOG_MEMORY : LOG_OK;
}

enum log_result generation_index_save(struct log *log, struct generation *generation,
                                      const char *suffix)
{
    uint64_t head[INDEX_START / sizeof(uint64_t)] = {index_magic, generation->header.generation};
    const struct disk *disk = log->options.disk;
    int index = disk->open(disk->owner, suffix, DISK_EMPTY);
    if (index < 0)
        return log_failed(log, "make the index", index);
    int error = disk_write(disk, index, head, sizeof head, /* offset= */ 0);
    if (error == 0)
        error = disk_write(disk, index, generation->slots,
                           generation->header.slots * sizeof *generation->slots, INDEX_START);
    if (error != 0) {
        disk->close(disk->owner, index);
        return log_failed(log, "write the index", error);
    }
    if (generation->index >= 0)
        disk->close(disk->owner, generation->index);
    generation->index = index;
    free(generation->slots);
    generation->slots = NULL;
    return LOG_OK;
}

enum log_result generation_index_open(struct log *log, struct generation *generation)
{
    uint64_t head[2];
    const struct disk *disk = log->options.disk;
    generation->index = disk->open(disk->owner, ".index", DISK_OPEN);
    if (generation->index < 0)
        return log_failed(log, "open the index", generation->index);
    int64_t got = disk_read(disk, generation->index, head, sizeof head, /* offset= */ 0);
    if (got != sizeof head || head[0] != index_magic || head[1] != generation->header.generation)
        return log_failed(log, "read the index", got < 0 ? got : -EIO);
    return LOG_OK;
}

/* Goes over the slots where a key can be, until an empty one. */
struct probe {
    uint64_t number, left, line;
    uint64_t slots[LINE];
};

static enum log_result probe_next(struct log *log, const struct generation *generation,
                                  struct probe *probe, uint64_t *out)
{
    probe->number = (probe->number + 1) & (generation->header.slots - 1);
    if (probe->left-- == 0)
        return LOG_FULL;
    uint64_t line = probe->number / LINE;
    if (line != probe->line && generation->slots != NULL)
        memcpy(probe->slots, generation->slots + line * LINE, sizeof probe->slots);
    else if (line != probe->line) {
        int64_t got = disk_read(log->options.disk, generation->index, probe->slots,
                                sizeof probe->slots, INDEX_START + line * sizeof probe->slots);
        if (got != sizeof probe->slots)
            return log_failed(log, "read the index", got < 0 ? got : -EIO);
    }
    probe->line = line;
    *out = probe->slots[probe->number % LINE];
    return LOG_OK;
}

static struct probe probe_from(const struct generation *generation, uint64_t hash)
{
    return (struct probe){.number = hash - 1, .left = generation->header.slots, .line = UINT64_MAX};
}

enum log_result generation_index_set(struct log *log, struct generation *generation,
                                     const struct pending *record)
{
    uint64_t found = 0, offset = 0;
    uint64_t slot = (record->hash & SLOT_TAG) | (record->live ? SLOT_LIVE : 0) | record->offset;
    struct probe probe = probe_from(generation, record->hash);
    do {
        enum log_result result = probe_next(log, generation, &probe, &found);
        if (result != LOG_OK)
            return result;
        offset = found & LOG_OFFSET_MAX;
    } while (found != 0 && offset != record->offset &&
             (record->previous == 0 || offset != record->previous));
    generation->used += found == 0;
    if (generation->slots != NULL) {
        generation->slots[probe.number] = slot;
        return LOG_OK;
    }
    int error = disk_write(log->options.disk, generation->index, &slot, sizeof slot,
                           INDEX_START + probe.number * sizeof slot);
    return error != 0 ? log_failed(log, "write the index", error) : LOG_OK;
}

enum log_result generation_live(struct log *log, const struct generation *generation,
                                uint64_t **out_offsets, size_t *out_count)
{
    uint64_t found;
    size_t count = 0;
    enum log_result result = LOG_OK;
    uint64_t *offsets = malloc((generation->used + 1) * sizeof *offsets);
    struct probe probe = probe_from(generation, /* hash= */ 0);
    while (offsets != NULL && result == LOG_OK && probe.left > 0) {
        result = probe_next(log, generation, &probe, &found);
        if (result == LOG_OK && (found & SLOT_LIVE) != 0 && count < generation->used)
            offsets[count++] = found & LOG_OFFSET_MAX;
    }
    if (offsets == NULL || result != LOG_OK) {
        free(offsets);
        return offsets == NULL ? LOG_MEMORY : result;
    }
    *out_offsets = offsets;
    *out_count = count;
    return LOG_OK;
}

bool generation_index_has(struct log *log, const struct generation *generation, uint64_t hash,
                          uint64_t offset)
{
    uint64_t found = 1;
    uint64_t slot = (hash & SLOT_TAG) | SLOT_LIVE | offset;
    struct probe probe = probe_from(generation, hash);
    while (found != 0 && found != slot)
        if (probe_next(log, generation, &probe, &found) != LOG_OK)
            return true; /* rather one record too many */
    return found == slot;
}

enum log_result generation_read(struct log *log, const struct generation *generation,
                                uint64_t offset, struct log_record *out)
{
    uint64_t number = generation->header.generation;
    enum log_reading reading = LOG_READ_SHORT;
    if (offset >= generation->written && offset < generation->end)
        reading = log_record_decode(generation->buffer + (offset - generation->written),
                                    generation->end - offset, offset, number, out);
    for (size_t want = LOOK_FIRST; reading == LOG_READ_SHORT; want = LOG_RECORD_MOST) {
        int64_t got = disk_read(log->options.disk, generation->file, log->scratch, want, offset);
        if (got < 0)
            return log_failed(log, "read", got);
        reading = log_record_decode(log->scratch, (size_t)got, offset, number, out);
        if (want == LOG_RECORD_MOST)
            break;
    }
    return reading == LOG_READ_OK ? LOG_OK : log_damaged_at(log, offset);
}

static bool is_of(const struct log_record *record, const char *key, size_t length)
{
    return record->key_length == length && memcmp(record->key, key, length) == 0;
}

enum log_result generation_find(struct log *log, const struct generation *generation,
                                const char *key, size_t length, struct log_record *out)
{
    uint64_t found = 1, hash = generation_hash(key, length);
    enum log_result result = LOG_OK;
    for (size_t i = generation->pending_count; i-- > 0;) {
        if (generation->pending[i].hash != hash)
            continue;
        result = generation_read(log, generation, generation->pending[i].offset, out);
        if (result != LOG_OK || is_of(out, key, length))
            return result;
    }
    struct probe probe = probe_from(generation, hash);
    while (found != 0) {
        result = probe_next(log, generation, &probe, &found);
        if (result == LOG_OK && found != 0 && (found & SLOT_TAG) == (hash & SLOT_TAG)) {
            result = generation_read(log, generation, found & LOG_OFFSET_MAX, out);
            if (result == LOG_OK && is_of(out, key, length))
                return LOG_OK;
        }
        if (result != LOG_OK)
            return result;
    }
    *out = (struct log_record){.type = LOG_ERASE};
    return LOG_OK;
}

bool generation_fits(const struct generation *generation, size_t size)
{
    return generation->pending_count < PENDING_MOST &&
           generation->end - generation->written + size <= BUFFER;
}

void generation_add(struct generation *generation, struct log_record *record)
{
    size_t size = log_record_size(record->key_length, record->length);
    ASSERT(generation_fits(generation, size));
    record->offset = generation->end;
    record->chain = generation->chain;
    log_record_encode(record, generation->header.generation,
                      generation->buffer + (generation->end - generation->written));
    if (record->key_length > 0)
        generation->pending[generation->pending_count++] =
            (struct pending){.offset = generation->end,
                             .hash = generation_hash(record->key, record->key_length),
                             .previous = record->previous,
                             .live = record->type == LOG_PUT};
    generation->end += size;
    generation->chain = record->checksum;
}

enum log_result generation_write(struct log *log, struct generation *generation)
{
    enum log_result result = LOG_OK;
    int error = disk_write(log->options.disk, generation->file, generation->buffer,
                           generation->end - generation->written, generation->written);
    if (error != 0)
        result = log_failed(log, "write", error);
    for (size_t i = 0; i < generation->pending_count && result == LOG_OK; i++)
        result = generation_index_set(log, generation, &generation->pending[i]);
    if (result != LOG_OK)
        return result;
    generation->written = generation->end;
    generation->pending_count = 0;
    return LOG_OK;
}

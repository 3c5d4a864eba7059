/* SPDX-License-Identifier: Apache-2.0 */
/* See hash_index.h. A slot packs 19 bits of the hash, whether it is live, and the offset. */
#include "store/log/hash_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    START = 4096,       /* of the slots in the file */
    CACHE_LINES = 2048, /* lines at most, each preceded by its mark */
    CACHE_LINE_SIZE = HASH_INDEX_LINE + 1,
    CHUNK = 8192, /* slots per read of the whole table */
};

#define LIVE ((uint64_t)1 << 44)
#define TAG  (~(uint64_t)0 << 45)

static const uint64_t magic = 0x7865646e69686c81; /* not text: the lowest byte is not a letter */

void hash_index_init(struct hash_index *index, const struct disk *disk)
{
    *index = (struct hash_index){.disk = disk, .file = -1};
}

void hash_index_done(struct hash_index *index)
{
    if (index->file >= 0)
        index->disk->close(index->disk->owner, index->file);
    free(index->building);
    free(index->cache);
    hash_index_init(index, index->disk);
}

void hash_index_invalidate(struct hash_index *index)
{
    index->cache_epoch++;
}

/* Works without a cache if out of memory, but slower. */
static void cache_init(struct hash_index *index)
{
    index->cache = calloc((size_t)CACHE_LINES * CACHE_LINE_SIZE, sizeof *index->cache);
    index->cache_epoch = 1;
}

int hash_index_build(struct hash_index *index, uint32_t count)
{
    hash_index_done(index);
    index->count = count;
    index->building = calloc(count, sizeof *index->building);
    return index->building == NULL ? -ENOMEM : 0;
}

int hash_index_save(struct hash_index *index, const char *suffix, uint64_t mark)
{
    uint64_t head[START / sizeof(uint64_t)] = {magic, mark};
    const struct disk *disk = index->disk;
    int file = disk->open(disk->owner, suffix, DISK_EMPTY);
    if (file < 0)
        return file;
    int error = disk_write(disk, file, head, sizeof head, /* offset= */ 0);
    if (error == 0)
        error =
            disk_write(disk, file, index->building, index->count * sizeof *index->building, START);
    if (error != 0) {
        disk->close(disk->owner, file);
        return error;
    }
    index->file = file;
    free(index->building);
    index->building = NULL;
    cache_init(index);
    return 0;
}

uint64_t hash_index_file_size(uint32_t count)
{
    return START + (uint64_t)count * sizeof(uint64_t);
}

int hash_index_open(struct hash_index *index, const char *suffix, uint64_t mark, uint32_t count)
{
    uint64_t head[2];
    hash_index_done(index);
    int file = index->disk->open(index->disk->owner, suffix, DISK_OPEN);
    if (file < 0)
        return file;
    index->file = file;
    index->count = count;
    int64_t got = disk_read(index->disk, file, head, sizeof head, /* offset= */ 0);
    if (got < 0)
        return (int)got;
    int64_t size = index->disk->size(index->disk->owner, file);
    if (size < 0)
        return (int)size;
    if (got != sizeof head || head[0] != magic || head[1] != mark ||
        (uint64_t)size < hash_index_file_size(count))
        return -EBADMSG;
    cache_init(index);
    return 0;
}

static int read_values(const struct hash_index *index, uint64_t from, size_t count, uint64_t *out)
{
    size_t length = count * sizeof *out;
    int64_t got = disk_read(index->disk, index->file, out, length, START + from * sizeof *out);
    if (got < 0)
        return (int)got;
    return (size_t)got == length ? 0 : -EIO;
}

/* The cache entry of a line, beginning with its mark; NULL: no cache. */
static uint64_t *cached_line(const struct hash_index *index, uint64_t line)
{
    return index->cache == NULL ? NULL : index->cache + line % CACHE_LINES * CACHE_LINE_SIZE;
}

static uint64_t cache_tag(const struct hash_index *index, uint64_t line)
{
    return index->cache_epoch << 32 | line;
}

static int read_slot_line(const struct hash_index *index, uint64_t line, uint64_t *out)
{
    uint64_t *cache = cached_line(index, line);
    const uint64_t *from = cache != NULL && cache[0] == cache_tag(index, line) ? cache + 1 : NULL;
    if (index->building != NULL)
        from = index->building + line * HASH_INDEX_LINE;
    if (from != NULL) {
        memcpy(out, from, HASH_INDEX_LINE * sizeof *out);
        return 0;
    }
    int error = read_values(index, line * HASH_INDEX_LINE, HASH_INDEX_LINE, out);
    if (error == 0 && cache != NULL) {
        cache[0] = cache_tag(index, line);
        memcpy(cache + 1, out, HASH_INDEX_LINE * sizeof *out);
    }
    return error;
}

static int write_value(struct hash_index *index, uint64_t number, uint64_t value)
{
    if (index->building != NULL) {
        index->building[number] = value;
        return 0;
    }
    uint64_t line = number / HASH_INDEX_LINE, *cache = cached_line(index, line);
    int error =
        disk_write(index->disk, index->file, &value, sizeof value, START + number * sizeof value);
    if (error == 0 && cache != NULL && cache[0] == cache_tag(index, line))
        cache[1 + number % HASH_INDEX_LINE] = value;
    return error;
}

struct hash_index_probe hash_index_probe(const struct hash_index *index, uint64_t hash)
{
    return (struct hash_index_probe){
        .hash = hash, .number = hash - 1, .left = index->count, .line = UINT64_MAX};
}

/* The value of the next slot, 0 if empty; −ENOBUFS after the last. */
static int next_value(const struct hash_index *index, struct hash_index_probe *probe, uint64_t *out)
{
    if (probe->left == 0)
        return -ENOBUFS;
    probe->left--;
    probe->number = (probe->number + 1) & (index->count - 1);
    uint64_t line = probe->number / HASH_INDEX_LINE;
    int error = line != probe->line ? read_slot_line(index, line, probe->values) : 0;
    if (error != 0)
        return error;
    probe->line = line;
    *out = probe->values[probe->number % HASH_INDEX_LINE];
    return 0;
}

int hash_index_next(const struct hash_index *index, struct hash_index_probe *probe,
                    uint64_t *out_offset)
{
    uint64_t value = 0;
    do {
        int error = next_value(index, probe, &value);
        if (error != 0)
            return error;
    } while (value != 0 && (value & TAG) != (probe->hash & TAG));
    *out_offset = value & HASH_INDEX_OFFSET_MAX;
    return 0;
}

int hash_index_set(struct hash_index *index, const struct slot *slot)
{
    uint64_t found = 0, offset = 0;
    uint64_t value = (slot->hash & TAG) | (slot->live ? LIVE : 0) | slot->offset;
    struct hash_index_probe probe = hash_index_probe(index, slot->hash);
    do {
        int error = next_value(index, &probe, &found);
        if (error != 0)
            return error;
        offset = found & HASH_INDEX_OFFSET_MAX;
    } while (found != 0 && offset != slot->offset &&
             (slot->previous == 0 || offset != slot->previous));
    index->used += found == 0;
    return write_value(index, probe.number, value);
}

int hash_index_has(const struct hash_index *index, uint64_t hash, uint64_t offset, bool *out)
{
    uint64_t found = 1, wanted = (hash & TAG) | LIVE | offset;
    struct hash_index uncached = *index;
    uncached.cache = NULL;
    struct hash_index_probe probe = hash_index_probe(&uncached, hash);
    int error = 0;
    while (error == 0 && found != 0 && found != wanted)
        error = next_value(&uncached, &probe, &found);
    *out = error == 0 && found == wanted;
    return error == -ENOBUFS ? 0 : error; /* no slot is left */
}

/* Adds the live offsets in a part of the table. */
static int collect_live(const uint64_t *values, size_t length, uint64_t **offsets, size_t *count,
                        size_t *room)
{
    for (size_t i = 0; i < length; i++) {
        if ((values[i] & LIVE) == 0)
            continue;
        if (*count == *room) {
            uint64_t *more = realloc(*offsets, 2 * *room * sizeof **offsets);
            if (more == NULL)
                return -ENOMEM;
            *offsets = more;
            *room *= 2;
        }
        (*offsets)[(*count)++] = values[i] & HASH_INDEX_OFFSET_MAX;
    }
    return 0;
}

int hash_index_live(const struct hash_index *index, uint64_t **out_offsets, size_t *out_count)
{
    uint64_t values[CHUNK];
    size_t count = 0, room = 64;
    uint64_t *offsets = malloc(room * sizeof *offsets);
    int error = offsets == NULL ? -ENOMEM : 0;
    for (uint64_t from = 0; from < index->count && error == 0; from += CHUNK) {
        size_t length = index->count - from < CHUNK ? index->count - from : CHUNK;
        if (index->building == NULL)
            error = read_values(index, from, length, values);
        if (error == 0)
            error = collect_live(index->building != NULL ? index->building + from : values, length,
                                 &offsets, &count, &room);
    }
    if (error != 0) {
        free(offsets);
        return error;
    }
    *out_offsets = offsets;
    *out_count = count;
    return 0;
}

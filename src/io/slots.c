/* SPDX-License-Identifier: Apache-2.0 */
/* See slots.h. A slot: 19 bits of the hash, whether something stands there, the offset. */
#include "io/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    START = 4096, /* of the slots in the file */
    KNOWN = 2048, /* lines at most, each with its mark in front */
    KNOWN_WORDS = SLOTS_LINE + 1,
    CHUNK = 8192, /* slots that are read together when all are */
};

#define LIVE ((uint64_t)1 << 44)
#define TAG  (~(uint64_t)0 << 45)

static const uint64_t magic = 0x7865646e69686c81; /* no text: the lowest byte is no letter */

void slots_init(struct slots *slots, const struct disk *disk)
{
    *slots = (struct slots){.disk = disk, .file = -1};
}

void slots_done(struct slots *slots)
{
    if (slots->file >= 0)
        slots->disk->close(slots->disk->owner, slots->file);
    free(slots->building);
    free(slots->known);
    slots_init(slots, slots->disk);
}

void slots_forget(struct slots *slots)
{
    slots->knowing++;
}

/* When memory is short it only takes longer. */
static void know_lines(struct slots *slots)
{
    slots->known = calloc((size_t)KNOWN * KNOWN_WORDS, sizeof *slots->known);
    slots->knowing = 1;
}

int slots_build(struct slots *slots, uint32_t count)
{
    slots_done(slots);
    slots->count = count;
    slots->building = calloc(count, sizeof *slots->building);
    return slots->building == NULL ? -ENOMEM : 0;
}

int slots_save(struct slots *slots, const char *suffix, uint64_t mark)
{
    uint64_t head[START / sizeof(uint64_t)] = {magic, mark};
    const struct disk *disk = slots->disk;
    int file = disk->open(disk->owner, suffix, DISK_EMPTY);
    if (file < 0)
        return file;
    int error = disk_write(disk, file, head, sizeof head, /* offset= */ 0);
    if (error == 0)
        error =
            disk_write(disk, file, slots->building, slots->count * sizeof *slots->building, START);
    if (error != 0) {
        disk->close(disk->owner, file);
        return error;
    }
    slots->file = file;
    free(slots->building);
    slots->building = NULL;
    know_lines(slots);
    return 0;
}

uint64_t slots_file_size(uint32_t count)
{
    return START + (uint64_t)count * sizeof(uint64_t);
}

int slots_open(struct slots *slots, const char *suffix, uint64_t mark, uint32_t count)
{
    uint64_t head[2];
    slots_done(slots);
    int file = slots->disk->open(slots->disk->owner, suffix, DISK_OPEN);
    if (file < 0)
        return file;
    slots->file = file;
    slots->count = count;
    int64_t got = disk_read(slots->disk, file, head, sizeof head, /* offset= */ 0);
    if (got < 0)
        return (int)got;
    int64_t size = slots->disk->size(slots->disk->owner, file);
    if (size < 0)
        return (int)size;
    if (got != sizeof head || head[0] != magic || head[1] != mark ||
        (uint64_t)size < slots_file_size(count))
        return -EBADMSG;
    know_lines(slots);
    return 0;
}

static int read_values(const struct slots *slots, uint64_t from, size_t count, uint64_t *out)
{
    size_t length = count * sizeof *out;
    int64_t got = disk_read(slots->disk, slots->file, out, length, START + from * sizeof *out);
    if (got < 0)
        return (int)got;
    return (size_t)got == length ? 0 : -EIO;
}

/* Where we keep a copy of that line, behind its mark; NULL: nowhere. */
static uint64_t *known_line(const struct slots *slots, uint64_t line)
{
    return slots->known == NULL ? NULL : slots->known + line % KNOWN * KNOWN_WORDS;
}

static uint64_t mark_of(const struct slots *slots, uint64_t line)
{
    return slots->knowing << 32 | line;
}

static int read_line(const struct slots *slots, uint64_t line, uint64_t *out)
{
    uint64_t *known = known_line(slots, line);
    const uint64_t *from = known != NULL && known[0] == mark_of(slots, line) ? known + 1 : NULL;
    if (slots->building != NULL)
        from = slots->building + line * SLOTS_LINE;
    if (from != NULL) {
        memcpy(out, from, SLOTS_LINE * sizeof *out);
        return 0;
    }
    int error = read_values(slots, line * SLOTS_LINE, SLOTS_LINE, out);
    if (error == 0 && known != NULL) {
        known[0] = mark_of(slots, line);
        memcpy(known + 1, out, SLOTS_LINE * sizeof *out);
    }
    return error;
}

static int write_value(struct slots *slots, uint64_t number, uint64_t value)
{
    if (slots->building != NULL) {
        slots->building[number] = value;
        return 0;
    }
    uint64_t line = number / SLOTS_LINE, *known = known_line(slots, line);
    int error =
        disk_write(slots->disk, slots->file, &value, sizeof value, START + number * sizeof value);
    if (error == 0 && known != NULL && known[0] == mark_of(slots, line))
        known[1 + number % SLOTS_LINE] = value;
    return error;
}

struct slots_probe slots_probe(const struct slots *slots, uint64_t hash)
{
    return (struct slots_probe){
        .hash = hash, .number = hash - 1, .left = slots->count, .line = UINT64_MAX};
}

/* The next slot's value, 0 at an empty one; −ENOBUFS when all were seen. */
static int next_value(const struct slots *slots, struct slots_probe *probe, uint64_t *out)
{
    if (probe->left == 0)
        return -ENOBUFS;
    probe->left--;
    probe->number = (probe->number + 1) & (slots->count - 1);
    uint64_t line = probe->number / SLOTS_LINE;
    int error = line != probe->line ? read_line(slots, line, probe->values) : 0;
    if (error != 0)
        return error;
    probe->line = line;
    *out = probe->values[probe->number % SLOTS_LINE];
    return 0;
}

int slots_next(const struct slots *slots, struct slots_probe *probe, uint64_t *out_offset)
{
    uint64_t value = 0;
    do {
        int error = next_value(slots, probe, &value);
        if (error != 0)
            return error;
    } while (value != 0 && (value & TAG) != (probe->hash & TAG));
    *out_offset = value & SLOTS_OFFSET_MAX;
    return 0;
}

int slots_set(struct slots *slots, const struct slot *slot)
{
    uint64_t found = 0, offset = 0;
    uint64_t value = (slot->hash & TAG) | (slot->live ? LIVE : 0) | slot->offset;
    struct slots_probe probe = slots_probe(slots, slot->hash);
    do {
        int error = next_value(slots, &probe, &found);
        if (error != 0)
            return error;
        offset = found & SLOTS_OFFSET_MAX;
    } while (found != 0 && offset != slot->offset &&
             (slot->previous == 0 || offset != slot->previous));
    slots->used += found == 0;
    return write_value(slots, probe.number, value);
}

int slots_has(const struct slots *slots, uint64_t hash, uint64_t offset, bool *out)
{
    uint64_t found = 1, wanted = (hash & TAG) | LIVE | offset;
    struct slots as_it_is = *slots;
    as_it_is.known = NULL;
    struct slots_probe probe = slots_probe(&as_it_is, hash);
    int error = 0;
    while (error == 0 && found != 0 && found != wanted)
        error = next_value(&as_it_is, &probe, &found);
    *out = error == 0 && found == wanted;
    return error == -ENOBUFS ? 0 : error; /* all were seen */
}

/* Adds what stands in a part of the table. */
static int gather(const uint64_t *values, size_t length, uint64_t **offsets, size_t *count,
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
        (*offsets)[(*count)++] = values[i] & SLOTS_OFFSET_MAX;
    }
    return 0;
}

int slots_live(const struct slots *slots, uint64_t **out_offsets, size_t *out_count)
{
    uint64_t values[CHUNK];
    size_t count = 0, room = 64;
    uint64_t *offsets = malloc(room * sizeof *offsets);
    int error = offsets == NULL ? -ENOMEM : 0;
    for (uint64_t from = 0; from < slots->count && error == 0; from += CHUNK) {
        size_t length = slots->count - from < CHUNK ? slots->count - from : CHUNK;
        if (slots->building == NULL)
            error = read_values(slots, from, length, values);
        if (error == 0)
            error = gather(slots->building != NULL ? slots->building + from : values, length,
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

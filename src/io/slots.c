/* SPDX-License-Identifier: Apache-2.0 */
/* See slots.h. A slot: 19 bits of the hash, whether something stands there, the offset. */
#include "io/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { START = 4096 /* of the slots in the file */ };

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
    slots_init(slots, slots->disk);
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
    return 0;
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
    return got != sizeof head || head[0] != magic || head[1] != mark ? -EBADMSG : 0;
}

struct slots_probe slots_probe(const struct slots *slots, uint64_t hash)
{
    return (struct slots_probe){
        .hash = hash, .number = hash - 1, .left = slots->count, .line = UINT64_MAX};
}

/* The next slot's value, 0 at an empty one; −ENOSPC when all were seen. */
static int next_value(const struct slots *slots, struct slots_probe *probe, uint64_t *out)
{
    if (probe->left == 0)
        return -ENOSPC;
    probe->left--;
    probe->number = (probe->number + 1) & (slots->count - 1);
    uint64_t line = probe->number / SLOTS_LINE;
    if (line != probe->line && slots->building != NULL)
        memcpy(probe->values, slots->building + line * SLOTS_LINE, sizeof probe->values);
    else if (line != probe->line) {
        int64_t got = disk_read(slots->disk, slots->file, probe->values, sizeof probe->values,
                                START + line * sizeof probe->values);
        if (got != sizeof probe->values)
            return got < 0 ? (int)got : -EIO;
    }
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
    if (slots->building == NULL)
        return disk_write(slots->disk, slots->file, &value, sizeof value,
                          START + probe.number * sizeof value);
    slots->building[probe.number] = value;
    return 0;
}

bool slots_has(const struct slots *slots, uint64_t hash, uint64_t offset)
{
    uint64_t found = 1, wanted = (hash & TAG) | LIVE | offset;
    struct slots_probe probe = slots_probe(slots, hash);
    while (found != 0 && found != wanted)
        if (next_value(slots, &probe, &found) != 0)
            return true; /* rather one too many */
    return found == wanted;
}

int slots_live(const struct slots *slots, uint64_t **out_offsets, size_t *out_count)
{
    uint64_t found = 0;
    size_t count = 0, most = 64;
    struct slots_probe probe = slots_probe(slots, /* hash= */ 0);
    uint64_t *offsets = malloc(most * sizeof *offsets);
    int error = offsets == NULL ? -ENOMEM : 0;
    while (error == 0 && probe.left > 0) {
        error = next_value(slots, &probe, &found);
        if (error != 0 || (found & LIVE) == 0)
            continue;
        if (count == most) {
            uint64_t *more = realloc(offsets, 2 * most * sizeof *offsets);
            error = more == NULL ? -ENOMEM : 0;
            offsets = more == NULL ? offsets : more;
            most *= 2;
        }
        if (error == 0)
            offsets[count++] = found & SLOTS_OFFSET_MAX;
    }
    if (error != 0) {
        free(offsets);
        return error;
    }
    *out_offsets = offsets;
    *out_count = count;
    return 0;
}

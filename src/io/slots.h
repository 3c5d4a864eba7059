/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table in a file: from the hash of a key to the offset of its last record in another file. It is
 * made in memory, saved, and from then on read and changed in place by whoever holds the right
 * lock, so that nobody has to know all keys to look at one. Slots are never emptied, and a change
 * is one write of eight bytes: whoever dies leaves a table that can be gone over again.
 * Never synced, never believed after a boot. Calls give −errno when they failed.
 */
#ifndef LEASEHOLD_IO_SLOTS_H
#define LEASEHOLD_IO_SLOTS_H

#include "io/disk.h"

enum { SLOTS_LINE = 8 /* that are read together */ };

#define SLOTS_OFFSET_MAX (((uint64_t)1 << 44) - 1)

struct slots {
    const struct disk *disk;
    int file;
    uint32_t count; /* a power of two */
    uint64_t used;
    uint64_t *building; /* the table while it is only in memory, else NULL */
    uint64_t *known;    /* lines that were read from the file; NULL: none … */
    uint64_t knowing;   /* … and since when they count */
};

/* What a record is going to be found by. */
struct slot {
    uint64_t hash, offset;
    uint64_t previous; /* the offset that it takes the place of, or 0 */
    bool live;         /* something stands there */
};

void slots_init(struct slots *slots, const struct disk *disk);
void slots_done(struct slots *slots); /* may be used again */

int slots_build(struct slots *slots, uint32_t count);
/* Into a new file; `mark` tells one table from another. */
int slots_save(struct slots *slots, const char *suffix, uint64_t mark);
uint64_t slots_file_size(uint32_t count);
/* −EBADMSG when the file is not that table, or not all of it. */
int slots_open(struct slots *slots, const char *suffix, uint64_t mark, uint32_t count);
/* Somebody else may have changed the table since we last looked. */
void slots_forget(struct slots *slots);

/* −ENOBUFS when there is no empty one left. Setting the same slot again changes nothing. */
int slots_set(struct slots *slots, const struct slot *slot);
/* Is that what stands? Looks at the file, also while others change it. */
int slots_has(const struct slots *slots, uint64_t hash, uint64_t offset, bool *out);
/* All that stands, likewise; the caller frees it. */
int slots_live(const struct slots *slots, uint64_t **out_offsets, size_t *out_count);

/* Where a key with this hash can be: one offset after the other, 0 when there are no more. */
struct slots_probe {
    uint64_t hash, number, left, line;
    uint64_t values[SLOTS_LINE];
};

struct slots_probe slots_probe(const struct slots *slots, uint64_t hash);
int slots_next(const struct slots *slots, struct slots_probe *probe, uint64_t *out_offset);

#endif

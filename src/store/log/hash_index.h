/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table in a file: from the hash of a key to the offset of its last record in another file. It is
 * made in memory, saved, and from then on read and changed in place by whoever holds the right
 * lock, so that nobody has to know all keys to look at one. Slots are never emptied, and a change
 * is one write of eight bytes: whoever dies leaves a table that can be gone over again.
 * Never synced, never believed after a boot. Calls give −errno when they failed.
 */
#ifndef LEASEHOLD_STORE_LOG_HASH_INDEX_H
#define LEASEHOLD_STORE_LOG_HASH_INDEX_H

#include "disk/disk.h"

enum { HASH_INDEX_LINE = 8 /* that are read together */ };

#define HASH_INDEX_OFFSET_MAX (((uint64_t)1 << 44) - 1)

struct hash_index {
    const struct disk *disk;
    int file;
    uint32_t count; /* a power of two */
    uint64_t used;
    uint64_t *building;   /* the table while it is only in memory, else NULL */
    uint64_t *cache;      /* lines that were read from the file; NULL: none … */
    uint64_t cache_epoch; /* … and since when they count */
};

/* What a record is going to be found by. */
struct slot {
    uint64_t hash, offset;
    uint64_t previous; /* the offset that it takes the place of, or 0 */
    bool live;         /* something stands there */
};

void hash_index_init(struct hash_index *index, const struct disk *disk);
void hash_index_done(struct hash_index *index); /* may be used again */

int hash_index_build(struct hash_index *index, uint32_t count);
/* Into a new file; `mark` tells one table from another. */
int hash_index_save(struct hash_index *index, const char *suffix, uint64_t mark);
uint64_t hash_index_file_size(uint32_t count);
/* −EBADMSG when the file is not that table, or not all of it. */
int hash_index_open(struct hash_index *index, const char *suffix, uint64_t mark, uint32_t count);
/* Somebody else may have changed the table since we last looked. */
void hash_index_invalidate(struct hash_index *index);

/* −ENOBUFS when there is no empty one left. Setting the same slot again changes nothing. */
int hash_index_set(struct hash_index *index, const struct slot *slot);
/* Is that what stands? Looks at the file, also while others change it. */
int hash_index_has(const struct hash_index *index, uint64_t hash, uint64_t offset, bool *out);
/* All that stands, likewise; the caller frees it. */
int hash_index_live(const struct hash_index *index, uint64_t **out_offsets, size_t *out_count);

/* Where a key with this hash can be: one offset after the other, 0 when there are no more. */
struct hash_index_probe {
    uint64_t hash, number, left, line;
    uint64_t values[HASH_INDEX_LINE];
};

struct hash_index_probe hash_index_probe(const struct hash_index *index, uint64_t hash);
int hash_index_next(const struct hash_index *index, struct hash_index_probe *probe,
                    uint64_t *out_offset);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table in a file: maps the hash of a key to the offset of its last record in the log file.
 * It is built in memory, saved, then read and changed in place by the process with the right lock,
 * so that a lookup need not load all keys. Slots are never emptied, and a change is one write of
 * eight bytes, so after a crash the same changes can be applied again. The file is never synced and
 * must not be used after a reboot. Functions return −errno on failure.
 */
#ifndef LEASEHOLD_STORE_LOG_HASH_INDEX_H
#define LEASEHOLD_STORE_LOG_HASH_INDEX_H

#include "disk/disk.h"

enum { HASH_INDEX_LINE = 8 /* slots that are read together */ };

#define HASH_INDEX_OFFSET_MAX (((uint64_t)1 << 44) - 1)

struct hash_index {
    const struct disk *disk;
    int file;
    uint32_t count; /* a power of two */
    uint64_t used;
    uint64_t *building;   /* the table while it exists only in memory, else NULL */
    uint64_t *cache;      /* lines read from the file; NULL: no cache … */
    uint64_t cache_epoch; /* … and the epoch in which they are valid */
};

/* The index entry of a record. */
struct slot {
    uint64_t hash, offset;
    uint64_t previous; /* the offset that this one replaces, or 0 */
    bool live;         /* the offset is that of the key's current record */
};

void hash_index_init(struct hash_index *index, const struct disk *disk);
void hash_index_done(struct hash_index *index); /* may be used again */

int hash_index_build(struct hash_index *index, uint32_t count);
/* Writes a new file; `mark` identifies the table. */
int hash_index_save(struct hash_index *index, const char *suffix, uint64_t mark);
uint64_t hash_index_file_size(uint32_t count);
/* −EBADMSG if the file is not that table, or incomplete. */
int hash_index_open(struct hash_index *index, const char *suffix, uint64_t mark, uint32_t count);
/* Drops the cache: another process may have changed the table since the last read. */
void hash_index_invalidate(struct hash_index *index);

/* −ENOBUFS if no slot is empty. Setting the same slot again changes nothing. */
int hash_index_set(struct hash_index *index, const struct slot *slot);
/* Reports whether the slot is live. Reads the file, also while other processes change it. */
int hash_index_has(const struct hash_index *index, uint64_t hash, uint64_t offset, bool *out);
/* Offsets of all live slots, read likewise; the caller frees them. */
int hash_index_live(const struct hash_index *index, uint64_t **out_offsets, size_t *out_count);

/* Iterates over the offsets where a key with this hash can be; 0 at the end. */
struct hash_index_probe {
    uint64_t hash, number, left, line;
    uint64_t values[HASH_INDEX_LINE];
};

struct hash_index_probe hash_index_probe(const struct hash_index *index, uint64_t hash);
int hash_index_next(const struct hash_index *index, struct hash_index_probe *probe,
                    uint64_t *out_offset);

#endif

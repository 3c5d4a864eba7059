/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The minimum cost of durability: a small overwrite in a file that was written before, and a sync
 * without metadata changes. The baseline of the file store.
 */
#ifndef LEASEHOLD_TESTS_RAW_H
#define LEASEHOLD_TESTS_RAW_H

#include <stdint.h>

struct raw {
    int file;
    uint64_t at;
};

/* Filled with zeros and synced. */
void raw_make(struct raw *raw, const char *path);
/* Writes 160 bytes after the last ones and syncs; at the end it wraps around. */
void raw_overwrite(struct raw *raw);
void raw_done(struct raw *raw);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that durability costs: a small overwrite in a file that was written before, and a sync
 * that moves no metadata. What the embedded store is measured against.
 */
#ifndef LEASEHOLD_TESTS_RAW_H
#define LEASEHOLD_TESTS_RAW_H

#include <stdint.h>

struct raw {
    int file;
    uint64_t at;
};

/* Written with zeros and synced. */
void raw_make(struct raw *raw, const char *path);
/* 160 bytes behind the last ones, on the disk when it returns; at the end it begins anew. */
void raw_overwrite(struct raw *raw);
void raw_done(struct raw *raw);

#endif

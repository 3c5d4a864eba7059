/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the log's tests: a small log on a fake disk, opened, written and read with one call.
 * Everything goes through log.h, as in the driver. Checks nothing by itself.
 */
#ifndef LEASEHOLD_TESTS_LOG_KIT_H
#define LEASEHOLD_TESTS_LOG_KIT_H

#include "fake_disk.h"
#include "store/log/log.h"

enum {
    KIT_SEGMENT = 8192,
    KIT_RESERVE = 1024,
    KIT_WINDOW = 512,
    KIT_SLOTS = 32,
    KIT_TIMEOUT_MS = 1000,
    KIT_MACHINE = 7,
    /* This many keys, each erased once, make a compaction due. */
    KIT_DEAD_KEYS = 25,
};

struct log_options kit_options(const struct disk *disk, unsigned boot);
int64_t kit_deadline(const struct disk *disk);
/* NULL if it was refused; `why` may be NULL. */
struct log *kit_open(const struct disk *disk, unsigned boot, enum log_result *out_result,
                     struct text *why);

/* In its own turn; NULL erases. Not synced. */
enum log_result kit_put(const struct disk *disk, struct log *log, const char *key,
                        const char *value, struct stamp *out_written);
/* Within a turn. */
enum log_result kit_append(struct log *log, const char *key, const char *value, bool urgent,
                           struct stamp *out_written);
enum log_result kit_sync(const struct disk *disk, struct log *log);
enum log_result kit_tend(struct log *log);
/* Makes a compaction due, with keys of its own. */
enum log_result kit_make_garbage(const struct disk *disk, struct log *log);

/* The key's current revision, or 0, with its value; in its own turn. */
struct kit_value {
    enum log_result result;
    uint64_t revision;
    size_t length;
    char value[8192]; /* the beginning, with a NUL */
};

void kit_read(const struct disk *disk, struct log *log, const char *key, struct kit_value *out);
/* True if this is the current value; NULL: none. */
bool kit_has(const struct disk *disk, struct log *log, const char *key, const char *value);
/* True if the index lists each current key once, and a lookup finds the listed record. */
bool kit_agrees(const struct disk *disk, struct log *log);

#endif

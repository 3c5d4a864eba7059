/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file calls of the embedded store, as one table: the real one (disk_open), or one of a test
 * that records every write and fails when told to. A disk is bound to one folder and one name in
 * it; its files are that name with a suffix. Wrappers only: no retry of what failed, no opinion
 * about what is in the files. A call that returns a number gives −errno when it failed.
 */
#ifndef LEASEHOLD_DISK_DISK_H
#define LEASEHOLD_DISK_DISK_H

#include "base/text.h"

#include <stdatomic.h>

enum { DISK_PAGE = 4096 };

enum disk_how {
    DISK_OPEN,   /* read and write what is there */
    DISK_CREATE, /* and make it when it is not */
    DISK_EMPTY,  /* make it anew; what had that name is unlinked first, never truncated */
};

struct disk {
    void *owner; /* the first argument of every call */
    int (*open)(void *owner, const char *suffix, enum disk_how how);
    void (*close)(void *owner, int file);
    int64_t (*size)(void *owner, int file);
    /* May be short at the end of the file. */
    int64_t (*read)(void *owner, int file, void *bytes, size_t length, uint64_t offset);
    /* May be short at any time: disk_write() below goes on. */
    int64_t (*write)(void *owner, int file, const void *bytes, size_t length, uint64_t offset);
    /* Between the two, what is done around a write is done once for all of this thread's. */
    void (*begin_writes)(void *owner);
    void (*end_writes)(void *owner);
    int (*sync)(void *owner, int file); /* the data, and of the rest what is needed to find it */
    int (*sync_folder)(void *owner);
    int (*rename)(void *owner, const char *from_suffix, const char *to_suffix);
    /* One byte of the file, for this open file alone; −EAGAIN when another has it. It ends with
     * the file's last descriptor, so a killed process leaves none behind. */
    int (*lock)(void *owner, int file, uint64_t byte);
    void (*unlock)(void *owner, int file, uint64_t byte);
    /* 1 when another open file has that byte, 0 when nobody has. */
    int (*is_locked)(void *owner, int file, uint64_t byte);
    /* The same for all bytes from `first` on. */
    int (*is_any_locked)(void *owner, int file, uint64_t first);
    /* 1 while the file still has a name, 0 when somebody removed it. */
    int (*is_linked)(void *owner, int file);
    /* The file's first page, shared by all processes that ask for it; NULL when it failed. */
    void *(*share)(void *owner, int file);
    void (*unshare)(void *owner, void *page);
    /* Sleeps while the word has that value, at most so long; wakes one process that does, or all.
     */
    void (*wait)(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds);
    void (*wake)(void *owner, _Atomic uint32_t *word, bool all);
    int64_t (*boot_ms)(void *owner); /* since the host's boot, also in suspend; the same for all */
    int64_t (*wall_ms)(void *owner); /* the time of day, from 1970; can step */
};

/*
 * The real disk for the file at `path`. Refused with words in `why`: a folder that is not there or
 * not writable, a file system whose locks and syncs we do not trust, a symbolic link in the path
 * that neither root nor we own, a file of another user. New files are 0600; in a folder that is
 * setgid and writable for its group they are 0660 and may belong to any member of that group.
 */
bool disk_open(struct disk *out, const char *path, struct text *why);
void disk_done(struct disk *disk);

/* All of it or −errno; a part may have been written then. */
int disk_write(const struct disk *disk, int file, const void *bytes, size_t length,
               uint64_t offset);
/* As much as there is, also when the system gives it in parts. */
int64_t disk_read(const struct disk *disk, int file, void *bytes, size_t length, uint64_t offset);

/*
 * A lock that many processes wait for: the byte says who has it, the word (in a shared page; NULL:
 * none yet) wakes the next one. −ETIMEDOUT when the disk's clock reaches the deadline first. A
 * killed owner is noticed within 10 ms although nobody says it.
 */
int disk_lock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word,
              int64_t deadline_ms);
void disk_unlock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file calls of the embedded store, as one table: the real disk (disk_open), or a test's, which
 * records writes and injects failures. A disk is bound to one folder and one name in it; its files
 * are that name with a suffix. The calls must not retry, and must not interpret file contents. A
 * call that returns a number returns −errno on failure.
 */
#ifndef LEASEHOLD_DISK_DISK_H
#define LEASEHOLD_DISK_DISK_H

#include "base/text.h"

#include <stdatomic.h>

enum { DISK_PAGE = 4096 };

enum disk_how {
    DISK_OPEN,   /* an existing file, for reading and writing */
    DISK_CREATE, /* likewise, but creates a missing file */
    DISK_EMPTY,  /* creates the file; an existing one is unlinked first, never truncated */
};

struct disk {
    void *owner; /* the first argument of every call */
    int (*open)(void *owner, const char *suffix, enum disk_how how);
    void (*close)(void *owner, int file);
    int64_t (*size)(void *owner, int file);
    /* May be short at the end of the file. */
    int64_t (*read)(void *owner, int file, void *bytes, size_t length, uint64_t offset);
    /* May be short at any time: disk_write() below continues. */
    int64_t (*write)(void *owner, int file, const void *bytes, size_t length, uint64_t offset);
    /* Between these calls, the thread's writes share their setup (blocking SIGXFSZ). */
    void (*begin_writes)(void *owner);
    void (*end_writes)(void *owner);
    int (*sync)(void *owner, int file); /* the data, and the metadata needed to read it */
    int (*sync_folder)(void *owner);
    int (*rename)(void *owner, const char *from_suffix, const char *to_suffix);
    /* Locks one byte for this open file; −EAGAIN if another open file has it. The lock ends with
     * the file's last descriptor, so a killed process leaves none behind. */
    int (*lock)(void *owner, int file, uint64_t byte);
    void (*unlock)(void *owner, int file, uint64_t byte);
    /* 1 if another open file has locked that byte, 0 if none has. Read locks do not count. */
    int (*is_locked)(void *owner, int file, uint64_t byte);
    /* Likewise for any byte from `first` on. */
    int (*is_any_locked)(void *owner, int file, uint64_t first);
    /* 1 while the file has a name, 0 after it was unlinked. */
    int (*is_linked)(void *owner, int file);
    /* Maps the file's first page, shared with all processes that map it; NULL on failure. */
    void *(*share)(void *owner, int file);
    void (*unshare)(void *owner, void *page);
    /* As a futex: wait sleeps while the word has that value, until the timeout; wake wakes one
     * sleeping process, or all. */
    void (*wait)(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds);
    void (*wake)(void *owner, _Atomic uint32_t *word, bool all);
    int64_t (*boot_ms)(void *owner); /* since boot, including suspend; the same for all */
    int64_t (*wall_ms)(void *owner); /* since 1970; can step */
};

/*
 * The real disk for the file at `path`. Refuses, with the reason in `why`: a folder that is missing
 * or not writable, a file system whose locks and syncs are not trusted, a symbolic link in the path
 * that neither root nor this user owns, a file of another user. New files are 0600; in a setgid and
 * group-writable folder they are 0660 and may belong to any member of that group.
 */
bool disk_open(struct disk *out, const char *path, struct text *why);
void disk_done(struct disk *disk);

/* Writes all bytes, or returns −errno; some may have been written then. */
int disk_write(const struct disk *disk, int file, const void *bytes, size_t length,
               uint64_t offset);
/* Reads up to the end of the file; continues after a short read. */
int64_t disk_read(const struct disk *disk, int file, void *bytes, size_t length, uint64_t offset);

/*
 * A lock that many processes wait for: the byte lock grants it, the word (in a shared page; NULL:
 * none yet) wakes the next waiter. −ETIMEDOUT if the disk's clock reaches the deadline first. A
 * killed owner wakes no waiter; waiters poll, and detect its end within 10 ms.
 */
int disk_lock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word,
              int64_t deadline_ms);
void disk_unlock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word);

#endif

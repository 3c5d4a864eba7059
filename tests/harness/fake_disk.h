/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk in memory for the embedded store's tests. It records writes, syncs and changes of names,
 * and can build each state that a power loss at any moment may leave: all synced data, and a chosen
 * part of the rest. It can fail a chosen call. Time passes only in waits.
 *
 * Several handles ("processes") may use one disk: a lock belongs to the descriptor of open().
 */
#ifndef LEASEHOLD_TESTS_FAKE_DISK_H
#define LEASEHOLD_TESTS_FAKE_DISK_H

#include "disk/disk.h"

enum {
    FAKE_FILES = 32,
    FAKE_OPEN = 32,
    FAKE_LOCKS = 64,
    FAKE_EVENTS = 2048,
    FAKE_PENDING = 64,
    FAKE_NAME = 32,
};

enum fake_kind {
    FAKE_WRITE,
    FAKE_NAMED,   /* created or renamed: the file has this name from now on */
    FAKE_UNNAMED, /* no file has this name from now on */
    FAKE_SYNC,
    FAKE_SYNC_FAILED, /* later syncs do not cover what this one should have; −1: names */
    FAKE_SYNC_FOLDER,
    FAKE_NOTE,
};

struct fake_event {
    enum fake_kind kind;
    int file; /* index in the array below, or −1 */
    uint64_t offset;
    size_t length;
    unsigned char *bytes;
    char name[FAKE_NAME]; /* the suffix */
    unsigned note;
};

/* The first page never moves, since handles share it; reads and writes use it, too. */
struct fake_file {
    unsigned char *page;
    unsigned char *rest; /* the bytes after the page */
    size_t size, room;
    bool unsynced; /* never synced: undefined after a power loss */
};

struct fake_disk {
    struct disk table; /* for the store */
    int64_t boot_ms, wall_ms;
    unsigned wakes;
    size_t file_count, name_count, lock_count, event_count;
    struct fake_file files[FAKE_FILES];
    struct {
        char name[FAKE_NAME];
        int file;
    } names[FAKE_FILES];
    struct {
        uint64_t byte;
        int file, owner;
    } locks[FAKE_LOCKS];
    int open[FAKE_OPEN]; /* file + 1 */
    /* The suffixes that are never synced; by default the lock and every index. */
    bool (*is_unsynced)(const char *suffix);
    /* Counts the calls that can fail. The fail_at-th fails, and with `for_good` all after it. With
     * error 0 none fails, but a read or write is short. */
    unsigned calls, fail_at;
    bool for_good, short_writes; /* every write is short */
    int error;
    unsigned syncs, fail_sync_at; /* likewise for syncs alone, with EIO */
    bool full;                    /* no file can grow: ENOSPC */
    uint64_t size_limit;          /* … beyond this; 0: no limit */
    bool recording;
    struct fake_event events[FAKE_EVENTS];
};

enum fake_unsynced {
    UNSYNCED_WRITTEN, /* as written up to the moment */
    UNSYNCED_LATEST,  /* as it is now on the recorded disk, with the shared page */
    UNSYNCED_ZEROS,
    UNSYNCED_ABSENT,
    UNSYNCED_COUNT,
};

/* The events that survive, of those that no sync covers, in their order. */
struct fake_choice {
    uint64_t kept;    /* one bit each */
    int torn;         /* the one that survives in part, or −1 */
    uint64_t torn_at; /* … and where, as a file offset */
    bool torn_behind; /* … the part after it survives, not the one before */
    enum fake_unsynced unsynced;
};

/* Content without events and failures, to inspect or to damage it. */
struct fake_file fake_file_new(void);
void fake_file_drop(struct fake_file *file);
size_t fake_file_get(const struct fake_file *file, void *bytes, size_t length, uint64_t offset);
void fake_file_put(struct fake_file *file, const void *bytes, size_t length, uint64_t offset);
void fake_file_copy(struct fake_file *to, const struct fake_file *from);

void fake_disk_init(struct fake_disk *disk);
void fake_disk_done(struct fake_disk *disk);
/* Records a result of the caller in the stream of the writes. */
void fake_disk_note(struct fake_disk *disk, unsigned note);
size_t fake_disk_open_files(const struct fake_disk *disk);
/* The file with that suffix, or NULL. */
struct fake_file *fake_disk_file(struct fake_disk *disk, const char *suffix);
/* Removes the name; open descriptors keep the file. */
void fake_disk_remove(struct fake_disk *disk, const char *suffix);
/* A second disk with the same files and clocks, and no open descriptors. */
void fake_disk_copy(struct fake_disk *to, const struct fake_disk *from);

/* The indices of those of the first `moment` events that could be lost, at most FAKE_PENDING: of
 * more, the oldest count as kept. Files that are never synced are left out. */
size_t fake_disk_pending(const struct fake_disk *disk, size_t moment, int *out);
/* `base` is the disk at the start of the recording. The image's boot clock starts again. */
void fake_disk_image(const struct fake_disk *disk, const struct fake_disk *base, size_t moment,
                     const struct fake_choice *choice, struct fake_disk *out);

#endif

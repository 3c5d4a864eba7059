/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk in memory for the embedded store's tests. It writes down every write, sync and change of a
 * name, and can build what a power loss at any moment might leave: everything synced, and of the
 * rest what the test chooses. It fails the n-th call when told to. Time passes only in waits.
 *
 * Several handles ("processes") may use one disk: a lock belongs to the number that open() gave.
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
    FAKE_NAMED,   /* made, or renamed: this name is the file's from now on */
    FAKE_UNNAMED, /* this name is nobody's any more */
    FAKE_SYNC,
    FAKE_SYNC_FAILED, /* and what it should have covered is lost to every later one; −1: names */
    FAKE_SYNC_FOLDER,
    FAKE_NOTE,
};

struct fake_event {
    enum fake_kind kind;
    int file; /* of the array below, or −1 */
    uint64_t offset;
    size_t length;
    unsigned char *bytes;
    char name[FAKE_NAME]; /* the suffix */
    unsigned note;
};

/* The first page stays where it is, for those who share it; reads and writes see it too. */
struct fake_file {
    unsigned char *page;
    unsigned char *rest; /* what lies behind it */
    size_t size, room;
    bool unsynced; /* never synced: after a power loss it holds anything */
};

struct fake_disk {
    struct disk table; /* give this one to the store */
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
    /* Which suffixes are fleeting; at first the lock and every index. */
    bool (*is_unsynced)(const char *suffix);
    /* Calls that can fail are counted; the fail_at-th does, and all after it while `for_good`.
     * With error 0 nothing fails, but a read or write is short. */
    unsigned calls, fail_at;
    bool for_good, short_writes; /* … every write is short */
    int error;
    unsigned syncs, fail_sync_at; /* likewise, of syncs alone, with EIO */
    bool full;                    /* no file grows any more: ENOSPC */
    uint64_t size_limit;          /* … beyond this; 0: as it likes */
    bool recording;
    struct fake_event events[FAKE_EVENTS];
};

enum fake_unsynced {
    UNSYNCED_WRITTEN, /* as it was written until the moment */
    UNSYNCED_LATEST,  /* as it is now on the recorded disk, the shared page included */
    UNSYNCED_ZEROS,
    UNSYNCED_ABSENT,
    UNSYNCED_COUNT,
};

/* What survives of the events that no sync covers, in their order. */
struct fake_choice {
    uint64_t kept;    /* one bit each */
    int torn;         /* this one only in part, or −1 */
    uint64_t torn_at; /* … where, as an offset of the file */
    bool torn_behind; /* … the part from there on, instead of the one before */
    enum fake_unsynced unsynced;
};

/* Content, past all events and failures: to look at, or to damage it. */
struct fake_file fake_file_new(void);
void fake_file_drop(struct fake_file *file);
size_t fake_file_get(const struct fake_file *file, void *bytes, size_t length, uint64_t offset);
void fake_file_put(struct fake_file *file, const void *bytes, size_t length, uint64_t offset);
void fake_file_copy(struct fake_file *to, const struct fake_file *from);

void fake_disk_init(struct fake_disk *disk);
void fake_disk_done(struct fake_disk *disk);
/* Something that our caller was told, in the same stream as the writes. */
void fake_disk_note(struct fake_disk *disk, unsigned note);
size_t fake_disk_open_files(const struct fake_disk *disk);
/* The file of that suffix, or NULL. */
struct fake_file *fake_disk_file(struct fake_disk *disk, const char *suffix);
/* Somebody removes it; whoever has it open goes on. */
void fake_disk_remove(struct fake_disk *disk, const char *suffix);
/* A second disk with the same files and clocks, nobody having any of them open. */
void fake_disk_copy(struct fake_disk *to, const struct fake_disk *from);

/* Which of the first `moment` events could be lost: their indices, FAKE_PENDING at most. Where
 * there are more, the oldest are taken as kept. Those of fleeting files are not among them. */
size_t fake_disk_pending(const struct fake_disk *disk, size_t moment, int *out);
/* `base` is the disk as it was when the recording began. The image's boot clock begins anew. */
void fake_disk_image(const struct fake_disk *disk, const struct fake_disk *base, size_t moment,
                     const struct fake_choice *choice, struct fake_disk *out);

#endif

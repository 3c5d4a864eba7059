/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the log share, and nobody else looks at. */
#ifndef LEASEHOLD_STORE_FILE_LOG_INSIDE_H
#define LEASEHOLD_STORE_FILE_LOG_INSIDE_H

#include "store/file/log.h"

enum {
    LOG_MAGIC = 0x106f11e,
    BUFFER = 256 * 1024, /* of what is appended and of what is read */
    PENDING_MOST = 512,  /* records in one write */
    WHY_MOST = 192,
};

/* Bytes of the lock file. Whoever holds one may take a later one, never the other way. */
enum log_lock {
    LOCK_COMPACT,
    LOCK_GROW,
    LOCK_APPEND,
    LOCK_SYNC, /* nobody may open or sync while a failed sync is not yet told */
    LOCK_COUNT,
};

#define SESSION_BYTES ((uint64_t)1 << 62) /* one for each session, far behind the locks */

enum shared_state {
    SHARED_VOID, /* nothing of it can be believed: recover */
    SHARED_VALID,
    SHARED_WRITING, /* somebody was, behind the end */
};

/*
 * The first page of the lock file, mapped by everybody. It counts within one boot, so it is never
 * synced. Written under the append lock; `synced` and `ready` hold generation and offset in one
 * word and only grow, `poisoned` too.
 */
struct log_shared {
    _Atomic uint64_t magic, boot, state;
    _Atomic uint64_t attachment; /* counts new files: everybody opens them again */
    _Atomic uint64_t generation, tail, end, chain, revision, used;
    _Atomic uint64_t synced, ready, ceiling;
    _Atomic uint64_t syncing;  /* a sync was begun; when its lock is free, that failed */
    _Atomic uint64_t poisoned; /* the generation that is, and all before it */
    _Atomic uint64_t base_ms, foreign_before, epoch;
    _Atomic uint32_t turn[LOCK_COUNT], owner[LOCK_COUNT];
};

struct pending {
    uint64_t offset, hash;
    uint64_t previous;
    bool live;
};

/* What a scan has seen. */
struct past {
    uint64_t revision, file_length; /* the highest of each */
    int64_t time_ms;
    bool has_home;
    struct log_home home;
};

/* A file with its index, being read and appended to. */
struct generation {
    int file, index;
    struct log_header header;
    uint64_t end, chain, used; /* with what is pending */
    uint64_t written;          /* up to here it is in the file */
    uint64_t *slots;           /* the index while it is being built, else NULL */
    size_t pending_count;
    struct pending pending[PENDING_MOST];
    unsigned char *buffer; /* BUFFER: what is pending */
};

struct log {
    uint32_t magic;
    struct log_options options;
    int lock_file;
    struct log_shared *shared;
    uint64_t attachment;
    struct generation now;
    uint64_t revision;      /* with what is pending */
    uint64_t seen;          /* the word up to which we know of records */
    unsigned char *scratch; /* LOG_RECORD_MOST */
    unsigned cuts;
    char why[WHY_MOST];
};

/* log.c */
enum log_result log_failed(struct log *log, const char *what, int64_t error);
enum log_result log_damaged_at(struct log *log, uint64_t offset);
enum log_result log_lock(struct log *log, enum log_lock which, int64_t deadline_ms);
void log_unlock(struct log *log, enum log_lock which);
bool log_is_poisoned(const struct log *log, uint64_t generation);
uint64_t log_word(uint64_t generation, uint64_t offset);
void log_raise(_Atomic uint64_t *word, uint64_t value); /* never lowers it */
/* Syncs that file up to `offset` at least, also if somebody has (always); when that fails, the
 * generation is poisoned. */
enum log_result log_sync_to(struct log *log, const struct generation *generation, uint64_t offset,
                            bool always, int64_t deadline_ms);
void log_publish(struct log *log); /* where we are, to everybody */

/* generation.c */
bool generation_init(struct generation *generation);
void generation_done(struct log *log, struct generation *generation);
enum log_result generation_open(struct log *log, struct generation *out);
/* An empty file beside the one that counts. */
enum log_result generation_make(struct log *log, struct generation *out,
                                const struct log_header *header);
enum log_result generation_fill(struct log *log, int file, uint64_t from, uint64_t end);
/* An empty index in memory; into a file with it; the one that the generation has. */
enum log_result generation_index_build(struct log *log, struct generation *generation);
enum log_result generation_index_save(struct log *log, struct generation *generation,
                                      const char *suffix);
enum log_result generation_index_open(struct log *log, struct generation *generation);
enum log_result generation_index_set(struct log *log, struct generation *generation,
                                     const struct pending *record);
/* Where all that stands is; the caller frees it. */
enum log_result generation_live(struct log *log, const struct generation *generation,
                                uint64_t **out_offsets, size_t *out_count);
bool generation_index_has(struct log *log, const struct generation *generation, uint64_t hash,
                          uint64_t offset);
uint64_t generation_hash(const char *key, size_t length);
enum log_result generation_read(struct log *log, const struct generation *generation,
                                uint64_t offset, struct log_record *out);
enum log_result generation_find(struct log *log, const struct generation *generation,
                                const char *key, size_t length, struct log_record *out);
/* Collects a record, as long as it fits, with its chain; writes what was collected. */
bool generation_fits(const struct generation *generation, size_t size);
void generation_add(struct generation *generation, struct log_record *record);
enum log_result generation_write(struct log *log, struct generation *generation);

/* recover.c: under the append lock, makes the handle fit what the page says. */
enum log_result log_settle(struct log *log, int64_t deadline_ms);
/* Reads and indexes what follows our end in our chain. */
enum log_result log_scan(struct log *log, uint64_t limit, struct past *past);

/* compact.c */
enum log_result log_grow(struct log *log, uint64_t need, int64_t deadline_ms);
/* Under the append lock: the first generation; a new one of what was synced of a poisoned one.
 * Both are to be recovered from. */
enum log_result log_create(struct log *log);
enum log_result log_replace(struct log *log);
/* Tells everybody that our file is the one that counts. */
void log_take_over(struct log *log, uint64_t length);

#endif

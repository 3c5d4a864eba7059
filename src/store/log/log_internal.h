/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the log; not for use elsewhere. */
#ifndef LEASEHOLD_STORE_LOG_LOG_INTERNAL_H
#define LEASEHOLD_STORE_LOG_LOG_INTERNAL_H

#include "store/log/log.h"

enum { LOG_MAGIC = 0x106f11e, WHY_MOST = 192, OFFSET_BITS = 44 };

#define SHARED_MAGIC ((uint64_t)0x3164657261687381) /* not text: the lowest byte is no letter */

/* Bytes of the lock file. Lock order: a holder may take only later ones. */
enum log_lock {
    LOCK_COMPACT,
    LOCK_APPEND,
    LOCK_GROW,
    LOCK_SYNC, /* no process syncs before a failed sync is published */
    LOCK_COUNT,
};

enum shared_state {
    SHARED_VOID, /* the content is invalid: recover */
    SHARED_VALID,
    SHARED_WRITING, /* a process writes after the end, or crashed doing so */
};

/*
 * The first page of the lock file, mapped by every process. It is valid within one boot, so it is
 * never synced. It is written under the append lock, except for values that only grow: `synced` and
 * `ready`, which pack generation and offset, `ceiling` and `poisoned`.
 */
struct log_shared {
    _Atomic uint64_t magic, boot, state;
    _Atomic uint64_t attachment; /* counts new files: every process reopens them */
    _Atomic uint64_t generation, tail, end, last, chain, revision, used;
    _Atomic uint64_t synced, ready, ceiling;
    _Atomic uint64_t syncing;  /* a sync was begun; if its lock is free, that process died in it */
    _Atomic uint64_t poisoned; /* this generation and all before it */
    _Atomic uint64_t base_ms, foreign_before, epoch;
    _Atomic uint32_t turn[LOCK_COUNT], owner[LOCK_COUNT];
    /* The host and boot of the page, and so of all that its users write, whatever ids their
     * containers show. `boot` is the checksum of the boot id. */
    struct host_ids ids;
};

struct log {
    uint32_t magic;
    struct log_options options;
    int lock_file;
    struct log_shared *shared;
    uint64_t attachment;
    struct log_file current;
    uint64_t revision; /* including collected records */
    uint64_t seen;     /* generation and offset of the end of what we have read */
    uint64_t published_end, published_chain; /* as last published by us */
    uint64_t safe;                           /* while compacting: everything before it is synced */
    uint64_t growing;                        /* the length that our next sync makes ready, or 0 */
    unsigned cuts;
    char why[WHY_MOST];
};

/* The result of a scan: the highest of each value, and the last LOG_HOST. */
struct scan_state {
    bool again; /* the index may already have some of the records */
    uint64_t revision, file_length;
    int64_t time_ms;
    bool has_host;
    struct log_host host;
};

/* log.c */
enum log_result log_failed(struct log *log, const char *what, int64_t error);
enum log_result log_damaged_at(struct log *log, uint64_t offset);
enum log_result log_lock(struct log *log, enum log_lock which, int64_t deadline_ms);
void log_unlock(struct log *log, enum log_lock which);
uint64_t log_pack_offset(uint64_t generation, uint64_t offset);
uint64_t log_offset(const struct log *log, const _Atomic uint64_t *word); /* 0: of another file */
void log_raise(_Atomic uint64_t *word, uint64_t value);                   /* never lowers it */
/* Syncs our file at least up to `offset`; or, with `rest`, the start of the zeros, exactly up to
 * `offset` and even if already synced. On failure the generation is poisoned. */
enum log_result log_sync_to(struct log *log, uint64_t offset, uint64_t rest, int64_t deadline_ms);
/* Syncs the directory, likewise: a name is durable only after that. */
int log_sync_folder(struct log *log, uint64_t generation);
void log_publish(struct log *log);   /* our end, for all processes */
void log_mark_seen(struct log *log); /* everything in our file */
/* The epoch that the file has now. A compaction that began before must not become current. */
void log_set_epoch(struct log *log, uint16_t epoch);

/* shared_page.c: maps the page, under the append lock; rejects impossible values in it. */
enum log_result log_map_page(struct log *log);
enum log_result log_check_page(const struct log *log);
/* For a process that has not mapped the page yet. */
uint32_t log_owner_in_file(const struct disk *disk, int file, enum log_lock which);

/* log_recover.c: under the append lock, makes the handle match the page. */
enum log_result log_refresh(struct log *log, int64_t deadline_ms);
/* Reads and indexes the records after our end that continue our chain. */
enum log_result log_scan(struct log *log, uint64_t limit, struct scan_state *scan);

/* log_compact.c */
enum log_result log_grow(struct log *log, uint64_t need, int64_t deadline_ms);
/* Builds a wider index, or waits for the process that already does. */
enum log_result log_widen_index(struct log *log, int64_t deadline_ms);
/* Under the append lock: creates the first file; replaces a poisoned file by one with its synced
 * records. The caller recovers from the new file. */
enum log_result log_create(struct log *log);
enum log_result log_replace(struct log *log);
/* The content of a LOG_HOST record, as the page has it. */
struct log_host log_current_host(const struct log *log);
/* Publishes our file as the current one. */
void log_publish_file(struct log *log, uint64_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the log share, and nobody else looks at. */
#ifndef LEASEHOLD_STORE_LOG_LOG_INTERNAL_H
#define LEASEHOLD_STORE_LOG_LOG_INTERNAL_H

#include "store/log/log.h"

enum { LOG_MAGIC = 0x106f11e, WHY_MOST = 192, OFFSET_BITS = 44 };

#define SHARED_MAGIC ((uint64_t)0x3164657261687381) /* no text: the lowest byte is no letter */

/* Bytes of the lock file. Whoever holds one may take a later one, never the other way. */
enum log_lock {
    LOCK_COMPACT,
    LOCK_APPEND,
    LOCK_GROW,
    LOCK_SYNC, /* nobody syncs while a failed sync is not yet told */
    LOCK_COUNT,
};

enum shared_state {
    SHARED_VOID, /* nothing of it can be believed: recover */
    SHARED_VALID,
    SHARED_WRITING, /* somebody was, behind the end */
};

/*
 * The first page of the lock file, mapped by everybody. It counts within one boot, so it is never
 * synced. Written under the append lock, but for those that only grow: `synced` and `ready`, which
 * hold generation and offset in one word, `ceiling` and `poisoned`.
 */
struct log_shared {
    _Atomic uint64_t magic, boot, state;
    _Atomic uint64_t attachment; /* counts new files: everybody opens them again */
    _Atomic uint64_t generation, tail, end, last, chain, revision, used;
    _Atomic uint64_t synced, ready, ceiling;
    _Atomic uint64_t syncing;  /* a sync was begun; when its lock is free, somebody died in it */
    _Atomic uint64_t poisoned; /* the generation that is, and all before it */
    _Atomic uint64_t base_ms, foreign_before, epoch;
    _Atomic uint32_t turn[LOCK_COUNT], owner[LOCK_COUNT];
    /* Which host and boot the page belongs to, and so all that is written by its users, whatever
     * ids their containers show them. `boot` is the checksum of the second. */
    struct host_ids ids;
};

struct log {
    uint32_t magic;
    struct log_options options;
    int lock_file;
    struct log_shared *shared;
    uint64_t attachment;
    struct log_file current;
    uint64_t revision; /* with what is collected */
    uint64_t seen;     /* the end of what we know of, and of which generation */
    uint64_t published_end, published_chain; /* as we last published them */
    uint64_t safe;                           /* while compacting: all before it is synced */
    uint64_t growing;                        /* the length that our next sync makes ready, or 0 */
    unsigned cuts;
    char why[WHY_MOST];
};

/* What a scan has seen: the highest of each, and the last home. */
struct scan_state {
    bool again; /* the index may have some of it */
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
uint64_t log_offset(const struct log *log, const _Atomic uint64_t *word); /* 0: not of our file */
void log_raise(_Atomic uint64_t *word, uint64_t value);                   /* never lowers it */
/* Syncs our file up to `offset` at least; or, with a `rest` from which on there are only zeros,
 * exactly so far, and also if somebody has. When that fails, the generation is poisoned. */
enum log_result log_sync_to(struct log *log, uint64_t offset, uint64_t rest, int64_t deadline_ms);
/* Likewise: a name that is not synced is not known to be there. */
int log_sync_folder(struct log *log, uint64_t generation);
void log_publish(struct log *log);   /* where we are, to everybody */
void log_mark_seen(struct log *log); /* all that our file has */

/* shared_page.c: maps the page, under the append lock; and refuses what cannot be in it. */
enum log_result log_map_page(struct log *log);
enum log_result log_check_page(const struct log *log);
/* For a process that has not got as far as mapping the page. */
uint32_t log_owner_in_file(const struct disk *disk, int file, enum log_lock which);

/* log_recover.c: under the append lock, makes the handle fit what the page says. */
enum log_result log_refresh(struct log *log, int64_t deadline_ms);
/* Reads and indexes what follows our end in our chain. */
enum log_result log_scan(struct log *log, uint64_t limit, struct scan_state *scan);

/* log_compact.c */
enum log_result log_grow(struct log *log, uint64_t need, int64_t deadline_ms);
/* A wider index; waits for whoever makes it already. */
enum log_result log_widen_index(struct log *log, int64_t deadline_ms);
/* Under the append lock: the first file; a new one of what was synced of a poisoned one. Both are
 * to be recovered from. */
enum log_result log_create(struct log *log);
enum log_result log_replace(struct log *log);
/* Tells everybody that our file is the one that counts. */
void log_publish_file(struct log *log, uint64_t length);

#endif

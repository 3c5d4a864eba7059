/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log that all processes of a host share. It keeps records in order and safe; what they mean,
 * and what may be written, is its caller's business (store/file).
 *
 *     log_begin()   takes the file's lock; what others appended can be found
 *     log_find()    what stands under a key
 *     log_append()  one record, stamped
 *     log_end()     writes them and lets go; others can see them, nobody may speak of them yet
 *     log_sync()    all that this handle has seen is on the disk: now answer
 *     log_maintain()    lets the file grow, and compacts it, when it is time
 *
 * A handle belongs to one thread. Between begin and end nothing but reads and writes happens,
 * except when somebody died or a disk failed before.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_H
#define LEASEHOLD_STORE_LOG_LOG_H

#include "process/host.h"
#include "store/log/log_file.h"

/* name, what it means and what to do */
#define LOG_RESULTS(X)                                                                          \
    X(LOG_OK, "done")                                                                           \
    X(LOG_NOT_OURS, "this is no log of leasehold; it was left alone, choose another path")      \
    X(LOG_NEWER, "a newer leasehold wrote this log; it was left alone, use that version")       \
    X(LOG_DAMAGED, "the log is damaged where it was safe; it was left alone, restore a backup") \
    X(LOG_UNKNOWN, "the log has a record of an unknown type; use the version that wrote it")    \
    X(LOG_POISONED, "the disk failed to keep what was written; what was not answered is void")  \
    X(LOG_LOCKED, "another process keeps the log's lock; look what it does")                    \
    X(LOG_FULL, "there is no room on the disk; held locks can still be renewed and released")   \
    X(LOG_EXHAUSTED, "the log has no more revisions, generations or offsets")                   \
    X(LOG_REMOVED, "the log was replaced or removed; end all users, remove the lock file")      \
    X(LOG_PAGE, "the lock file is damaged; end all users of the store, then remove it")         \
    X(LOG_INDEX, "the index is damaged; remove it, the next process makes it again")            \
    X(LOG_MEMORY, "out of memory")                                                              \
    X(LOG_IO, "a file call failed")

enum log_result {
#define LOG_RESULT_NAME(name, message) name,
    LOG_RESULTS(LOG_RESULT_NAME)
#undef LOG_RESULT_NAME
};

struct log;
struct log_record;

/* May a compaction leave this record out, which stands? Asked beside all that others do. */
typedef bool log_may_drop(void *owner, struct log *log, const struct log_record *record);

struct log_options {
    const struct disk *disk;
    struct host_ids ids;
    uint64_t segment;       /* the file grows by so much, written and synced before it is used */
    uint64_t reserve;       /* kept free for records that must not fail, such as a release */
    uint64_t window;        /* so much of the past outlives a compaction, as history */
    uint32_t slots;         /* of the index, at least; a power of two */
    log_may_drop *may_drop; /* NULL: nothing is left out */
    void *drop_owner;
};

#define LOG_OPTIONS_DEFAULT                                                                      \
    {                                                                                            \
        .segment = (uint64_t)1 << 20, .reserve = (uint64_t)1 << 19, .window = (uint64_t)1 << 18, \
        .slots = 1 << 14                                                                         \
    }

/* `why` gets words when it fails: what, where, which process, which versions. */
enum log_result log_open(const struct log_options *options, int64_t deadline_ms, struct log **out,
                         struct text *why);
/* Where there is no log yet: what log_open() would say, as far as that can be known without making
 * anything; and how many bytes a new store takes. */
enum log_result log_probe(const struct log_options *options, struct text *why);
uint64_t log_min_size(const struct log_options *options);
/* Nothing is synced. Accepts NULL, and makes the caller's pointer NULL. */
void log_close(struct log **log);

/* Locked when it returns LOG_OK, with room for `need` bytes of records unless the disk is full. */
enum log_result log_begin(struct log *log, uint64_t need, int64_t deadline_ms);
/* A LOG_ERASE when nothing stands under the key. The bytes stay until the next call. */
enum log_result log_find(struct log *log, const char *key, size_t length, struct log_record *out);
/* In the place of what log_find() gave. No bytes: erases. Urgent ones may use the reserve. */
enum log_result log_append(struct log *log, const char *key, uint64_t previous, const char *bytes,
                           size_t length, bool urgent, struct stamp *out_written);
/* Would a record of this size, under a key that is new, be appended? */
enum log_result log_admits(struct log *log, size_t size);
/* As log_find(), for a log_may_drop, without the lock: what is on the disk, or nothing. */
enum log_result log_find_synced(struct log *log, const char *key, struct log_record *out);
/* Where all that stands is; the caller frees it. */
enum log_result log_live(struct log *log, uint64_t **out_offsets, size_t *out_count);
/* After a failure what was appended may have happened or not. */
enum log_result log_end(struct log *log);
enum log_result log_sync(struct log *log, int64_t deadline_ms);

/* Which process has the lock for appending, as far as it has said so; 0: none. Needs no handle. */
uint32_t log_lock_owner(const struct disk *disk);

bool log_needs_maintenance(const struct log *log);
/* May take as long as the live records take to be copied; waits for others no longer than that. */
enum log_result log_maintain(struct log *log, int64_t timeout_ms);

/* Until the next log_begin(), without the lock: a record that log_live() or another record's
 * `previous` named, and all records up to what we have seen. */
enum log_result log_read_at(struct log *log, uint64_t offset, struct log_record *out);
bool log_reader_open(const struct log *log, struct log_reader *out);
uint64_t log_seen(const struct log *log);

/* The last revision that we know of; the file that we read, and whether it failed; the store's
 * clock; before which revision nobody can tell who is alive; who is; the file's descriptor. */
uint64_t log_revision(const struct log *log);
uint64_t log_generation(const struct log *log);
bool log_is_poisoned(const struct log *log, uint64_t generation);
int64_t log_now_ms(const struct log *log);
uint64_t log_foreign_before(const struct log *log);
bool log_session_lives(const struct log *log, uint64_t session);
int log_session_keep(const struct log *log, uint64_t session);
int log_descriptor(const struct log *log);
/* Why the last call failed. How many torn tails were cut. */
void log_explain(const struct log *log, enum log_result result, struct text *out);
unsigned log_cuts(const struct log *log);

#endif

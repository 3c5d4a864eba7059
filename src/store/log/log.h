/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log that all processes of a host share. It keeps records in order and durable. It must not
 * interpret records or decide what may be written; its caller does (store/file).
 *
 *     log_begin()     takes the append lock; records of other processes become visible
 *     log_find()      returns the current record of a key
 *     log_append()    adds one record, stamped
 *     log_end()       writes the records and unlocks; they are visible, but not yet durable
 *     log_sync()      all that this handle has read or written is durable: reply now
 *     log_maintain()  grows and compacts the file when due
 *
 * A handle belongs to one thread. Between begin and end there are only reads and writes, except
 * after a crash or a disk failure.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_H
#define LEASEHOLD_STORE_LOG_LOG_H

#include "process/host.h"
#include "store/log/log_file.h"

/* name, what it means and what to do */
#define LOG_RESULTS(X)                                                                          \
    X(LOG_OK, "done")                                                                           \
    X(LOG_NOT_OURS, "this is not a leasehold log; it was left unchanged, choose another path")  \
    X(LOG_NEWER, "a newer leasehold wrote this log; it was left unchanged, use that version")   \
    X(LOG_DAMAGED, "the log's synced part is damaged; it was left unchanged, restore a backup") \
    X(LOG_UNKNOWN, "the log has a record of an unknown type; use the version that wrote it")    \
    X(LOG_POISONED, "the disk failed to sync the log; writes without a reply are discarded")    \
    X(LOG_LOCKED, "another process holds the log's lock; check whether it is stuck")            \
    X(LOG_FULL, "there is no room on the disk; held locks can still be renewed and released")   \
    X(LOG_EXHAUSTED, "the log has no more revisions, generations or offsets")                   \
    X(LOG_REMOVED, "the log was replaced or removed; stop all users, remove the lock file")     \
    X(LOG_PAGE, "the lock file is damaged; stop all users of the store, then remove it")        \
    X(LOG_INDEX, "the index is damaged; remove it, the next process rebuilds it")               \
    X(LOG_MEMORY, "out of memory")                                                              \
    X(LOG_IO, "a file call failed")

enum log_result {
#define LOG_RESULT_NAME(name, message) name,
    LOG_RESULTS(LOG_RESULT_NAME)
#undef LOG_RESULT_NAME
};

struct log;
struct log_record;

/* True if a compaction may omit this current record. Called while other processes append. */
typedef bool log_may_drop(void *owner, struct log *log, const struct log_record *record);

struct log_options {
    const struct disk *disk;
    struct host_ids ids;
    uint64_t segment;       /* the file grows by this much, written and synced before it is used */
    uint64_t reserve;       /* kept free for records that must not fail, such as a release */
    uint64_t window;        /* bytes of old records that a compaction keeps, as history */
    uint32_t slots;         /* minimum size of the index; a power of two */
    log_may_drop *may_drop; /* NULL: no record is omitted */
    void *drop_owner;
};

#define LOG_OPTIONS_DEFAULT                                                                      \
    {                                                                                            \
        .segment = (uint64_t)1 << 20, .reserve = (uint64_t)1 << 19, .window = (uint64_t)1 << 18, \
        .slots = 1 << 14                                                                         \
    }

/* On failure `why` says what failed, where, and which process or version is involved. */
enum log_result log_open(const struct log_options *options, int64_t deadline_ms, struct log **out,
                         struct text *why);
/* For a path without a log: the result that log_open() would have, as far as it can be determined
 * without creating files; and the size in bytes of a new store. */
enum log_result log_probe(const struct log_options *options, struct text *why);
uint64_t log_min_size(const struct log_options *options);
/* Does not sync. Accepts NULL, and sets the caller's pointer to NULL. */
void log_close(struct log **log);

/* After LOG_OK the log is locked, with room for `need` bytes of records unless the disk is full. */
enum log_result log_begin(struct log *log, uint64_t need, int64_t deadline_ms);
/* Returns a LOG_ERASE if the key has no record. The bytes are valid until the next call. */
enum log_result log_find(struct log *log, const char *key, size_t length, struct log_record *out);
/* Replaces what log_find() returned. Without bytes: erases. Urgent records may use the reserve. */
enum log_result log_append(struct log *log, const char *key, uint64_t previous, const char *bytes,
                           size_t length, bool urgent, struct stamp *out_written);
/* Raises the epoch of all later records, of every process, unless it is as high already. The epoch
 * is part of the log, and durable after log_sync(). */
enum log_result log_raise_epoch(struct log *log, uint16_t least);
/* LOG_OK if a record of this size, under a new key, could be appended. */
enum log_result log_admits(struct log *log, size_t size);
/* As log_find(), for a log_may_drop, without the lock: the synced record, or none. */
enum log_result log_find_synced(struct log *log, const char *key, struct log_record *out);
/* Offsets of all current records; the caller frees them. */
enum log_result log_live(struct log *log, uint64_t **out_offsets, size_t *out_count);
/* After a failure, the appended records may or may not have been written. */
enum log_result log_end(struct log *log);
enum log_result log_sync(struct log *log, int64_t deadline_ms);

/* The process that holds the append lock, if it has registered; 0: none. Needs no handle. */
uint32_t log_lock_owner(const struct disk *disk);

bool log_needs_maintenance(const struct log *log);
/* May take as long as copying the live records; `timeout_ms` limits only the wait for others. */
enum log_result log_maintain(struct log *log, int64_t timeout_ms);

/* Until the next log_begin(), without the lock: a record at an offset from log_live() or from a
 * record's `previous`, and all records up to the end that we have seen. */
enum log_result log_read_at(struct log *log, uint64_t offset, struct log_record *out);
bool log_reader_open(const struct log *log, struct log_reader *out);
uint64_t log_seen(const struct log *log);

/* The last known revision; the epoch; the generation in use, and whether it failed; the store's
 * clock; the revision before which liveness is unknown; whether a session is alive; the file's
 * descriptor. */
uint64_t log_revision(const struct log *log);
uint16_t log_epoch(const struct log *log);
uint64_t log_generation(const struct log *log);
bool log_is_poisoned(const struct log *log, uint64_t generation);
int64_t log_now_ms(const struct log *log);
uint64_t log_foreign_before(const struct log *log);
bool log_session_lives(const struct log *log, uint64_t session);
int log_session_keep(const struct log *log, uint64_t session);
int log_descriptor(const struct log *log);
/* The reason for the last failure; the number of torn tails that were cut. */
void log_explain(const struct log *log, enum log_result result, struct text *out);
unsigned log_cuts(const struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log after a boot or a crash, and decides about unreadable bytes: damage is rejected and
 * the file left unchanged, a torn tail is cut. A tail must be cut by zeros, never by truncation,
 * and only under the append lock. After a boot the cut is synced before anything is appended, and
 * revisions continue above all that the tail can have held.
 */
#include "store/log/log_internal.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/* A crashed process may have indexed it already, and a later record of the same key as well. */
static int reindex(struct log *log, const struct log_record *record, const struct slot *slot)
{
    struct log_record found;
    int error = log_file_find(&log->current, record->key, record->key_length, &found);
    if (error == 0 && found.offset < record->offset)
        return hash_index_set(&log->current.index, slot);
    log->current.index.used += record->previous == 0;
    return error;
}

/* Indexes the next record in our chain. */
static enum log_result recover_record(struct log *log, const struct log_record *record,
                                      struct scan_state *scan)
{
    struct slot slot = {.hash = log_file_hash(record->key, record->key_length),
                        .offset = record->offset,
                        .previous = record->previous,
                        .live = record->type == LOG_PUT};
    if (record->type == LOG_HOST) {
        if (!log_host_decode((const unsigned char *)record->bytes, &scan->host))
            return log_damaged_at(log, record->offset);
        scan->has_host = true;
    }
    if (record->written.revision > scan->revision)
        scan->revision = record->written.revision;
    if (record->written.time_ms > scan->time_ms)
        scan->time_ms = record->written.time_ms;
    if (record->file_length > scan->file_length)
        scan->file_length = record->file_length;
    log_file_seek(&log->current,
                  record->offset + log_record_size(record->key_length, record->length),
                  record->checksum);
    log->current.last = record->offset;
    int error = 0;
    if (record->key_length > 0)
        error =
            scan->again ? reindex(log, record, &slot) : hash_index_set(&log->current.index, &slot);
    return log_failed(log, "index", error);
}

enum log_result log_scan(struct log *log, uint64_t limit, struct scan_state *scan)
{
    struct log_reader reader;
    struct log_record record;
    enum log_reading reading = LOG_READ_OK;
    enum log_result result = LOG_OK;
    bool fine = log_reader_init(&reader, &log->current, limit);
    reader.at = log->current.end;
    if (!fine)
        return LOG_MEMORY;
    while (result == LOG_OK && reading == LOG_READ_OK) {
        reading = log_reader_next(&reader, &record);
        bool chained = (reading == LOG_READ_OK || reading == LOG_READ_UNKNOWN) &&
                       record.chain == log->current.chain;
        if (reading == LOG_READ_OK && chained)
            result = recover_record(log, &record, scan);
        else if (reading == LOG_READ_UNKNOWN && chained)
            result = LOG_UNKNOWN;
        else
            break;
    }
    if (result == LOG_OK && reader.error != 0)
        result = log_failed(log, "read", reader.error);
    log_reader_done(&reader);
    return result;
}

static enum log_result cut_torn_tail(struct log *log, uint64_t limit)
{
    uint64_t last;
    int error = log_file_scan_tail(&log->current, limit, &last);
    if (error == 0 && last > log->current.end) {
        log->cuts++;
        error = log_file_fill(&log->current, log->current.end, last);
    }
    return log_failed(log, "cut a torn tail", error);
}

static enum log_result append_host(struct log *log, const struct scan_state *scan, uint64_t length,
                                   int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    struct log_host_change change = {.existed = scan->has_host,
                                     .unseen = atomic_load(&shared->generation) == 0,
                                     .last = scan->host,
                                     .time_ms = scan->time_ms,
                                     .revision = scan->revision,
                                     .boot_ms = disk->boot_ms(disk->owner),
                                     .wall_ms = disk->wall_ms(disk->owner)};
    memcpy(change.machine, log->shared->ids.machine, LOG_ID);
    memcpy(change.boot, log->shared->ids.boot, LOG_ID);
    struct log_host host = log_host_next(&change);
    bool fresh = log->current.end == LOG_START;
    atomic_store(&shared->base_ms, (uint64_t)host.base_ms);
    atomic_store(&shared->foreign_before, host.foreign_before);
    atomic_store(&shared->epoch, host.epoch);
    log->revision =
        scan->revision > log->current.header.ceiling ? scan->revision : log->current.header.ceiling;
    log->revision += fresh ? 1 : LOG_AHEAD + 1;
    if (log->revision > REVISION_MAX - LOG_AHEAD)
        return LOG_EXHAUSTED;
    struct stamp written = {
        .revision = log->revision, .time_ms = log_now_ms(log), .epoch = host.epoch};
    log_file_add_host(&log->current, &host, &written, length);
    enum log_result result = log_failed(log, "write", log_file_write(&log->current));
    if (result == LOG_OK)
        result = log_sync_to(log, log->current.end, log->current.end, deadline_ms);
    return result;
}

static enum log_result reopen_file(struct log *log)
{
    enum log_reading reading;
    int error = log_file_open(&log->current, &reading);
    if (error == -ENOENT)
        return LOG_REMOVED;
    if (error == 0 && reading != LOG_READ_OK)
        return reading == LOG_READ_NEWER ? LOG_NEWER : LOG_NOT_OURS;
    return log_failed(log, "open", error);
}

/* Reads the whole log, as after a boot. */
static enum log_result recover_all(struct log *log, struct scan_state *scan, uint64_t *out_length)
{
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->current.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    enum log_result result =
        log_failed(log, "index", hash_index_build(&log->current.index, log->current.header.slots));
    if (result == LOG_OK)
        result = log_scan(log, /* limit= */ UINT64_MAX, scan);
    uint64_t least = scan->file_length > log->current.header.length ? scan->file_length
                                                                    : log->current.header.length;
    if (result == LOG_OK && (uint64_t)size < least)
        result = log_damaged_at(log, (uint64_t)size);
    /* Copied records, and those synced in this boot, need no later record as proof. */
    if (result == LOG_OK && (log->current.end < log->current.header.tail ||
                             log->current.end < log_offset(log, &log->shared->synced)))
        result = log_damaged_at(log, log->current.end);
    if (result == LOG_OK)
        result = cut_torn_tail(log, (uint64_t)size);
    *out_length = (uint64_t)size / LOG_UNIT * LOG_UNIT;
    uint64_t need = log->current.end + log_record_size(0, LOG_HOST_BYTES);
    if (result == LOG_OK && need > *out_length) {
        *out_length += log->options.segment;
        result = log_failed(log, "grow", log_file_fill(&log->current, (uint64_t)size, *out_length));
    }
    return result;
}

/* Also under the growing lock, so that the file's length is constant. */
static enum log_result recover_locked(struct log *log, int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    struct scan_state scan = {0};
    uint64_t length = 0;
    enum log_result result = reopen_file(log);
    if (result == LOG_REMOVED && atomic_load(&shared->generation) == 0)
        result = log_create(log);
    if (result == LOG_OK && log_is_poisoned(log, log->current.header.generation))
        result = log_replace(log);
    if (result == LOG_OK)
        result = recover_all(log, &scan, &length);
    uint64_t number = log->current.header.generation;
    if (result == LOG_OK)
        result = log_failed(log, "make the index",
                            hash_index_save(&log->current.index, ".index.mend", number));
    if (result != LOG_OK)
        return result;
    atomic_store(&shared->state, SHARED_VOID); /* until recovery is complete */
    result = log_failed(log, "name the index", disk->rename(disk->owner, ".index.mend", ".index"));
    if (result == LOG_OK)
        result = log_sync_to(log, log->current.end, log->current.end, deadline_ms);
    if (result == LOG_OK)
        result = log_failed(log, "sync the folder", log_sync_folder(log, number));
    if (result == LOG_OK)
        result = append_host(log, &scan, length, deadline_ms);
    if (result == LOG_OK)
        log_publish_file(log, length);
    return result;
}

static enum log_result recover(struct log *log, int64_t deadline_ms)
{
    enum log_result result = log_lock(log, LOCK_GROW, deadline_ms);
    if (result != LOG_OK)
        return result;
    result = recover_locked(log, deadline_ms);
    log_unlock(log, LOCK_GROW);
    return result;
}

/* A process died while writing after the end: keeps complete records, cuts the rest. */
static enum log_result repair_tail(struct log *log)
{
    struct scan_state scan = {.again = true, .revision = log->revision};
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->current.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    enum log_result result = log_scan(log, /* limit= */ UINT64_MAX, &scan);
    uint64_t limit = log->current.end + LOG_FILE_BUFFER;
    if (result == LOG_OK)
        result = cut_torn_tail(log, limit < (uint64_t)size ? limit : (uint64_t)size);
    log->revision = scan.revision;
    if (result == LOG_OK)
        log_publish(log);
    if (result == LOG_OK && scan.has_host) /* it died while it raised the epoch */
        log_set_epoch(log, scan.host.epoch);
    return result;
}

/* Detects an older copy in place of the log. */
static enum log_result check_last_record(struct log *log)
{
    struct log_record record;
    uint64_t last = atomic_load(&log->shared->last);
    if (last == 0)
        return LOG_OK;
    enum log_result result = log_failed(log, "read", log_file_read(&log->current, last, &record));
    bool same =
        result == LOG_OK && record.checksum == atomic_load(&log->shared->chain) &&
        last + log_record_size(record.key_length, record.length) == atomic_load(&log->shared->end);
    return result == LOG_OK && !same ? LOG_REMOVED : result;
}

static enum log_result attach(struct log *log, int64_t deadline_ms)
{
    enum log_result result = reopen_file(log);
    uint64_t number = atomic_load(&log->shared->generation);
    if (result == LOG_OK && log->current.header.generation != number)
        return LOG_REMOVED;
    if (result == LOG_OK)
        result = check_last_record(log);
    if (result != LOG_OK)
        return result;
    int error = hash_index_open(&log->current.index, ".index", number, log->current.header.slots);
    if (error == -ENOENT || error == -EBADMSG) /* it was removed and can be rebuilt */
        return recover(log, deadline_ms);
    if (error != 0)
        return log_failed(log, "open the index", error);
    log->attachment = atomic_load(&log->shared->attachment);
    return LOG_OK;
}

enum log_result log_refresh(struct log *log, int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    enum log_result result = LOG_OK;
    if (disk->is_linked(disk->owner, log->lock_file) == 0)
        return LOG_REMOVED;
    result = log_check_page(log);
    if (result != LOG_OK)
        return result;
    if (atomic_load(&shared->state) == SHARED_VOID ||
        log_is_poisoned(log, atomic_load(&shared->generation)))
        result = recover(log, deadline_ms);
    else if (atomic_load(&shared->attachment) != log->attachment)
        result = attach(log, deadline_ms);
    else if (disk->is_linked(disk->owner, log->current.file) == 0)
        return LOG_REMOVED;
    if (result != LOG_OK)
        return result;
    bool writing = atomic_load(&shared->state) == SHARED_WRITING;
    if (writing || atomic_load(&shared->end) != log->published_end ||
        atomic_load(&shared->chain) != log->published_chain)
        hash_index_invalidate(&log->current.index);
    log_file_seek(&log->current, atomic_load(&shared->end), atomic_load(&shared->chain));
    log->current.index.used = atomic_load(&shared->used);
    log->current.last = atomic_load(&shared->last);
    log->revision = atomic_load(&shared->revision);
    if (writing)
        result = repair_tail(log);
    log_mark_seen(log);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log after a boot or after somebody died, and decides about what cannot be read: damage
 * is refused and left alone, a torn tail is cut. A tail is cut by zeros and never by truncation,
 * and only under the append lock. After a boot that is synced before anything is appended, and
 * revisions go on above all that it can have held.
 */
#include "store/log/log_inside.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/* Somebody may have done it before he died, and gone on with a later record of the same key. */
static int index_again(struct log *log, const struct log_record *record, const struct slot *slot)
{
    struct log_record found;
    int error = log_file_find(&log->now, record->key, record->key_length, &found);
    if (error == 0 && found.offset < record->offset)
        return slots_set(&log->now.slots, slot);
    log->now.slots.used += record->previous == 0;
    return error;
}

/* The next record in our chain: finds its place in the index. */
static enum log_result take(struct log *log, const struct log_record *record, struct past *past)
{
    struct slot slot = {.hash = log_file_hash(record->key, record->key_length),
                        .offset = record->offset,
                        .previous = record->previous,
                        .live = record->type == LOG_PUT};
    if (record->type == LOG_HOME) {
        if (!log_home_decode((const unsigned char *)record->bytes, &past->home))
            return log_damaged_at(log, record->offset);
        past->has_home = true;
    }
    if (record->written.revision > past->revision)
        past->revision = record->written.revision;
    if (record->written.time_ms > past->time_ms)
        past->time_ms = record->written.time_ms;
    if (record->file_length > past->file_length)
        past->file_length = record->file_length;
    log_file_seek(&log->now, record->offset + log_record_size(record->key_length, record->length),
                  record->checksum);
    log->now.last = record->offset;
    int error = 0;
    if (record->key_length > 0)
        error = past->again ? index_again(log, record, &slot) : slots_set(&log->now.slots, &slot);
    return log_failed(log, "index", error);
}

enum log_result log_scan(struct log *log, uint64_t limit, struct past *past)
{
    struct log_reader reader;
    struct log_record record;
    enum log_reading reading = LOG_READ_OK;
    enum log_result result = LOG_OK;
    bool fine = log_reader_init(&reader, &log->now, limit);
    reader.at = log->now.end;
    if (!fine)
        return LOG_MEMORY;
    while (result == LOG_OK && reading == LOG_READ_OK) {
        reading = log_reader_next(&reader, &record);
        bool chained = (reading == LOG_READ_OK || reading == LOG_READ_UNKNOWN) &&
                       record.chain == log->now.chain;
        if (reading == LOG_READ_OK && chained)
            result = take(log, &record, past);
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

static enum log_result cut(struct log *log, uint64_t limit)
{
    uint64_t last;
    int error = log_file_look_behind(&log->now, limit, &last);
    if (error == 0 && last > log->now.end) {
        log->cuts++;
        error = log_file_fill(&log->now, log->now.end, last);
    }
    return log_failed(log, "cut a torn tail", error);
}

static enum log_result move_in(struct log *log, const struct past *past, uint64_t length,
                               int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    struct log_move move = {.lived = past->has_home,
                            .unseen = atomic_load(&shared->generation) == 0,
                            .last = past->home,
                            .time_ms = past->time_ms,
                            .revision = past->revision,
                            .boot_ms = disk->boot_ms(disk->owner),
                            .wall_ms = disk->wall_ms(disk->owner)};
    memcpy(move.machine, log->shared->ids.machine, LOG_ID);
    memcpy(move.boot, log->shared->ids.boot, LOG_ID);
    struct log_home home = log_home_next(&move);
    bool fresh = log->now.end == LOG_START;
    atomic_store(&shared->base_ms, (uint64_t)home.base_ms);
    atomic_store(&shared->foreign_before, home.foreign_before);
    atomic_store(&shared->epoch, home.epoch);
    log->revision =
        past->revision > log->now.header.ceiling ? past->revision : log->now.header.ceiling;
    log->revision += fresh ? 1 : LOG_AHEAD + 1;
    if (log->revision > REVISION_MAX - LOG_AHEAD)
        return LOG_EXHAUSTED;
    struct stamp written = {
        .revision = log->revision, .time_ms = log_now_ms(log), .epoch = home.epoch};
    log_file_add_home(&log->now, &home, &written, length);
    enum log_result result = log_failed(log, "write", log_file_write(&log->now));
    if (result == LOG_OK)
        result = log_sync_to(log, log->now.end, log->now.end, deadline_ms);
    return result;
}

static enum log_result open_file(struct log *log)
{
    enum log_reading reading;
    int error = log_file_open(&log->now, &reading);
    if (error == -ENOENT)
        return LOG_REMOVED;
    if (error == 0 && reading != LOG_READ_OK)
        return reading == LOG_READ_NEWER ? LOG_NEWER : LOG_NOT_OURS;
    return log_failed(log, "open", error);
}

/* All of the log, as after a boot. */
static enum log_result read_all(struct log *log, struct past *past, uint64_t *out_length)
{
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->now.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    enum log_result result =
        log_failed(log, "index", slots_build(&log->now.slots, log->now.header.slots));
    if (result == LOG_OK)
        result = log_scan(log, /* limit= */ UINT64_MAX, past);
    uint64_t least =
        past->file_length > log->now.header.length ? past->file_length : log->now.header.length;
    if (result == LOG_OK && (uint64_t)size < least)
        result = log_damaged_at(log, (uint64_t)size);
    /* What was copied, and in this boot what was synced, needs no later record to say so. */
    if (result == LOG_OK && (log->now.end < log->now.header.tail ||
                             log->now.end < log_offset(log, &log->shared->synced)))
        result = log_damaged_at(log, log->now.end);
    if (result == LOG_OK)
        result = cut(log, (uint64_t)size);
    *out_length = (uint64_t)size / LOG_UNIT * LOG_UNIT;
    uint64_t need = log->now.end + log_record_size(0, LOG_HOME_BYTES);
    if (result == LOG_OK && need > *out_length) {
        *out_length += log->options.segment;
        result = log_failed(log, "grow", log_file_fill(&log->now, (uint64_t)size, *out_length));
    }
    return result;
}

/* With the growing lock, too: the file keeps its length meanwhile. */
static enum log_result recover_alone(struct log *log, int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    struct past past = {0};
    uint64_t length = 0;
    enum log_result result = open_file(log);
    if (result == LOG_REMOVED && atomic_load(&shared->generation) == 0)
        result = log_create(log);
    if (result == LOG_OK && log_is_poisoned(log, log->now.header.generation))
        result = log_replace(log);
    if (result == LOG_OK)
        result = read_all(log, &past, &length);
    uint64_t number = log->now.header.generation;
    if (result == LOG_OK)
        result =
            log_failed(log, "make the index", slots_save(&log->now.slots, ".index.mend", number));
    if (result != LOG_OK)
        return result;
    atomic_store(&shared->state, SHARED_VOID); /* until all that follows is done */
    result = log_failed(log, "name the index", disk->rename(disk->owner, ".index.mend", ".index"));
    if (result == LOG_OK)
        result = log_sync_to(log, log->now.end, log->now.end, deadline_ms);
    if (result == LOG_OK)
        result = log_failed(log, "sync the folder", log_sync_folder(log, number));
    if (result == LOG_OK)
        result = move_in(log, &past, length, deadline_ms);
    if (result == LOG_OK)
        log_take_over(log, length);
    return result;
}

static enum log_result recover(struct log *log, int64_t deadline_ms)
{
    enum log_result result = log_lock(log, LOCK_GROW, deadline_ms);
    if (result != LOG_OK)
        return result;
    result = recover_alone(log, deadline_ms);
    log_unlock(log, LOCK_GROW);
    return result;
}

/* Somebody died while writing behind the end: what is whole counts, the rest is cut. */
static enum log_result mend(struct log *log)
{
    struct past past = {.again = true, .revision = log->revision};
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->now.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    enum log_result result = log_scan(log, /* limit= */ UINT64_MAX, &past);
    uint64_t limit = log->now.end + LOG_FILE_BUFFER;
    if (result == LOG_OK)
        result = cut(log, limit < (uint64_t)size ? limit : (uint64_t)size);
    log->revision = past.revision;
    if (result == LOG_OK)
        log_publish(log);
    return result;
}

/* Somebody may have put an older copy in its place. */
static enum log_result look_at_last(struct log *log)
{
    struct log_record record;
    uint64_t last = atomic_load(&log->shared->last);
    if (last == 0)
        return LOG_OK;
    enum log_result result = log_failed(log, "read", log_file_read(&log->now, last, &record));
    bool same =
        result == LOG_OK && record.checksum == atomic_load(&log->shared->chain) &&
        last + log_record_size(record.key_length, record.length) == atomic_load(&log->shared->end);
    return result == LOG_OK && !same ? LOG_REMOVED : result;
}

static enum log_result attach(struct log *log, int64_t deadline_ms)
{
    enum log_result result = open_file(log);
    uint64_t number = atomic_load(&log->shared->generation);
    if (result == LOG_OK && log->now.header.generation != number)
        return LOG_REMOVED;
    if (result == LOG_OK)
        result = look_at_last(log);
    if (result != LOG_OK)
        return result;
    int error = slots_open(&log->now.slots, ".index", number, log->now.header.slots);
    if (error == -ENOENT || error == -EBADMSG) /* somebody removed it; it can be made again */
        return recover(log, deadline_ms);
    if (error != 0)
        return log_failed(log, "open the index", error);
    log->attachment = atomic_load(&log->shared->attachment);
    return LOG_OK;
}

enum log_result log_settle(struct log *log, int64_t deadline_ms)
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
    else if (disk->is_linked(disk->owner, log->now.file) == 0)
        return LOG_REMOVED;
    if (result != LOG_OK)
        return result;
    bool writing = atomic_load(&shared->state) == SHARED_WRITING;
    if (writing || atomic_load(&shared->end) != log->left_end ||
        atomic_load(&shared->chain) != log->left_chain)
        slots_forget(&log->now.slots);
    log_file_seek(&log->now, atomic_load(&shared->end), atomic_load(&shared->chain));
    log->now.slots.used = atomic_load(&shared->used);
    log->now.last = atomic_load(&shared->last);
    log->revision = atomic_load(&shared->revision);
    if (writing)
        result = mend(log);
    log_see(log);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log after a boot or after somebody died, and decides about what cannot be read: damage
 * is refused and left alone, a torn tail is cut. A tail is cut by zeros and never by truncation,
 * only under the append lock, and synced before anything is appended; revisions then go on above
 * all that it can have held.
 */
#include "store/file/log_inside.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/* The next record in our chain: finds its place in the index. */
static enum log_result take(struct log *log, const struct log_record *record, struct past *past)
{
    enum log_result result = LOG_OK;
    struct pending place = {.offset = record->offset,
                            .hash = generation_hash(record->key, record->key_length),
                            .previous = record->previous,
                            .live = record->type == LOG_PUT};
    if (record->key_length > 0)
        result = generation_index_set(log, &log->now, &place);
    if (record->type == LOG_HOME) {
        log_home_decode((const unsigned char *)record->bytes, &past->home);
        past->has_home = true;
    }
    if (record->written.revision > past->revision)
        past->revision = record->written.revision;
    if (record->written.time_ms > past->time_ms)
        past->time_ms = record->written.time_ms;
    if (record->file_length > past->file_length)
        past->file_length = record->file_length;
    log->now.end = log->now.written =
        record->offset + log_record_size(record->key_length, record->length);
    log->now.chain = record->checksum;
    return result;
}

enum log_result log_scan(struct log *log, uint64_t limit, struct past *past)
{
    struct log_reader reader;
    struct log_record record;
    enum log_reading reading = LOG_READ_OK;
    enum log_result result = LOG_OK;
    if (!log_reader_init(&reader, log))
        return LOG_MEMORY;
    reader.at = log->now.end;
    reader.limit = limit;
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

/* An intact record that says: by then, what you cannot read was on the disk. */
static enum log_result refuse_witness(struct log *log, const unsigned char *bytes, size_t length,
                                      uint64_t offset)
{
    struct log_record record;
    uint64_t number = log->now.header.generation;
    enum log_reading reading = log_record_decode(bytes, length, offset, number, &record);
    if (reading == LOG_READ_SHORT) {
        int64_t got =
            disk_read(log->options.disk, log->now.file, log->scratch, LOG_RECORD_MOST, offset);
        if (got < 0)
            return log_failed(log, "read", got);
        reading = log_record_decode(log->scratch, (size_t)got, offset, number, &record);
    }
    bool intact = reading == LOG_READ_OK || reading == LOG_READ_UNKNOWN;
    return intact && record.synced > log->now.end ? log_damaged_at(log, log->now.end) : LOG_OK;
}

/* Looks at everything from our end up to `limit`; what is written there ends at `out_last`. */
static enum log_result look_behind(struct log *log, uint64_t limit, uint64_t *out_last)
{
    static const unsigned char zeros[LOG_ALIGN];
    unsigned char window[LOG_START + LOG_HEAD];
    *out_last = log->now.end;
    for (uint64_t at = log->now.end; at < limit; at += LOG_START) {
        int64_t got = disk_read(log->options.disk, log->now.file, window, sizeof window, at);
        if (got < 0)
            return log_failed(log, "read", got);
        for (size_t i = 0; i < LOG_START && i < (size_t)got; i += LOG_ALIGN) {
            size_t left = (size_t)got - i;
            size_t length = left < LOG_ALIGN ? left : LOG_ALIGN;
            if (memcmp(window + i, zeros, length) == 0)
                continue;
            *out_last = at + i + length;
            enum log_result result = refuse_witness(log, window + i, left, at + i);
            if (result != LOG_OK)
                return result;
        }
    }
    return LOG_OK;
}

static enum log_result cut(struct log *log, uint64_t limit)
{
    uint64_t last;
    enum log_result result = look_behind(log, limit, &last);
    if (result != LOG_OK || last == log->now.end)
        return result;
    log->cuts++;
    return generation_fill(log, log->now.file, log->now.end, last);
}

/* Which boot the times in the log belong to from now on, and who can still be seen alive. */
static struct log_home home_of(const struct log *log, const struct past *past)
{
    static const unsigned char nobody[HOST_ID];
    const struct disk *disk = log->options.disk;
    const struct host_ids *ids = &log->options.ids;
    struct log_home home = past->home;
    int64_t boot_ms = disk->boot_ms(disk->owner);
    int64_t wall_ms = disk->wall_ms(disk->owner);
    bool same_boot = past->has_home && memcmp(home.boot, ids->boot, LOG_ID) == 0;
    bool same_host = past->has_home && memcmp(home.machine, ids->machine, LOG_ID) == 0 &&
                     memcmp(nobody, ids->machine, LOG_ID) != 0;
    if (!past->has_home)
        home = (struct log_home){.base_ms = wall_ms - boot_ms};
    else if (!same_boot && same_host) /* a cooldown goes on by the time of day */
        home.base_ms = (wall_ms > past->time_ms ? wall_ms : past->time_ms) - boot_ms;
    else if (!same_boot) /* whoever lives there has its whole lease from now on */
        home.base_ms = past->time_ms - boot_ms;
    /* Other host, or another lock file: what their processes keep locked we do not see. */
    bool unseen = same_boot ? atomic_load(&log->shared->generation) == 0 : !same_host;
    if (past->has_home && unseen)
        home.foreign_before = past->revision + 1;
    memcpy(home.machine, ids->machine, LOG_ID);
    memcpy(home.boot, ids->boot, LOG_ID);
    return home;
}

static enum log_result move_in(struct log *log, const struct past *past, uint64_t length,
                               int64_t deadline_ms)
{
    unsigned char bytes[LOG_HOME_BYTES];
    struct log_shared *shared = log->shared;
    struct log_home home = home_of(log, past);
    bool fresh = log->now.end == LOG_START;
    atomic_store(&shared->base_ms, (uint64_t)home.base_ms);
    atomic_store(&shared->foreign_before, home.foreign_before);
    atomic_store(&shared->epoch, home.epoch);
    log->revision =
        past->revision > log->now.header.ceiling ? past->revision : log->now.header.ceiling;
    log->revision += fresh ? 1 : LOG_AHEAD + 1;
    if (log->revision > REVISION_MAX - LOG_AHEAD)
        return LOG_EXHAUSTED;
    log_home_encode(&home, bytes);
    struct log_record record = {
        .type = LOG_HOME,
        .bytes = (const char *)bytes,
        .length = sizeof bytes,
        .written = {.revision = log->revision, .time_ms = log_now_ms(log), .epoch = home.epoch},
        .synced = log->now.end,
        .file_length = length};
    generation_add(&log->now, &record);
    enum log_result result = generation_write(log, &log->now);
    if (result == LOG_OK)
        result = log_sync_to(log, &log->now, log->now.end, /* always= */ true, deadline_ms);
    return result;
}

/* All of the log, as after a boot. */
static enum log_result read_all(struct log *log, struct past *past, uint64_t *out_length)
{
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->now.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    log->now.end = log->now.written = LOG_START;
    log->now.chain = log->now.header.generation;
    log->now.pending_count = 0;
    enum log_result result = generation_index_build(log, &log->now);
    if (result == LOG_OK)
        result = log_scan(log, /* limit= */ UINT64_MAX, past);
    uint64_t least =
        past->file_length > log->now.header.length ? past->file_length : log->now.header.length;
    if (result == LOG_OK && (uint64_t)size < least)
        result = log_damaged_at(log, (uint64_t)size);
    if (result == LOG_OK)
        result = cut(log, (uint64_t)size);
    *out_length = (uint64_t)size / LOG_UNIT * LOG_UNIT;
    uint64_t need = log->now.end + log_record_size(0, LOG_HOME_BYTES);
    if (result == LOG_OK && need > *out_length) {
        *out_length += log->options.segment;
        result = generation_fill(log, log->now.file, (uint64_t)size, *out_length);
    }
    return result;
}

static enum log_result recover(struct log *log, int64_t deadline_ms)
{
    struct log_shared *shared = log->shared;
    const struct disk *disk = log->options.disk;
    struct past past = {0};
    uint64_t length = 0;
    enum log_result result = generation_open(log, &log->now);
    if (log->now.file == -ENOENT)
        result = atomic_load(&shared->generation) == 0 ? log_create(log) : LOG_REMOVED;
    if (result == LOG_OK && log_is_poisoned(log, log->now.header.generation))
        result = log_replace(log);
    if (result == LOG_OK)
        result = read_all(log, &past, &length);
    if (result == LOG_OK)
        result = generation_index_save(log, &log->now, ".index");
    if (result == LOG_OK)
        result = log_sync_to(log, &log->now, log->now.end, /* always= */ true, deadline_ms);
    int error = result == LOG_OK ? disk->sync_folder(disk->owner) : 0;
    if (error != 0)
        result = log_failed(log, "sync the folder", error);
    if (result == LOG_OK)
        result = move_in(log, &past, length, deadline_ms);
    if (result == LOG_OK)
        log_take_over(log, length);
    return result;
}

/* Somebody died while writing behind the end: what is whole counts, the rest is cut. */
static enum log_result mend(struct log *log)
{
    struct past past = {.revision = log->revision};
    const struct disk *disk = log->options.disk;
    int64_t size = disk->size(disk->owner, log->now.file);
    if (size < 0)
        return log_failed(log, "measure", size);
    enum log_result result = log_scan(log, /* limit= */ UINT64_MAX, &past);
    uint64_t limit = log->now.end + BUFFER;
    if (result == LOG_OK)
        result = cut(log, limit < (uint64_t)size ? limit : (uint64_t)size);
    log->revision = past.revision;
    if (result == LOG_OK)
        log_publish(log);
    return result;
}

static enum log_result attach(struct log *log, int64_t deadline_ms)
{
    enum log_result result = generation_open(log, &log->now);
    if (log->now.file == -ENOENT)
        return LOG_REMOVED;
    if (result == LOG_OK && log->now.header.generation != atomic_load(&log->shared->generation))
        return LOG_REMOVED;
    if (result != LOG_OK)
        return result;
    result = generation_index_open(log, &log->now);
    if (result != LOG_OK) /* somebody removed it; it can be made again */
        return recover(log, deadline_ms);
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
    if (atomic_load(&shared->state) == SHARED_VOID ||
        log_is_poisoned(log, atomic_load(&shared->generation)))
        result = recover(log, deadline_ms);
    else if (atomic_load(&shared->attachment) != log->attachment)
        result = attach(log, deadline_ms);
    else if (disk->is_linked(disk->owner, log->now.file) == 0)
        return LOG_REMOVED;
    if (result != LOG_OK)
        return result;
    log->now.pending_count = 0;
    log->now.end = log->now.written = atomic_load(&shared->end);
    log->now.chain = atomic_load(&shared->chain);
    log->now.used = atomic_load(&shared->used);
    log->revision = atomic_load(&shared->revision);
    return atomic_load(&shared->state) == SHARED_WRITING ? mend(log) : LOG_OK;
}

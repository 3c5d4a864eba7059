/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes new log files: the first one, a compacted one, and one with the synced records of a failed
 * file. A new generation is written and synced under another name, then renamed: a partial file
 * must never have the log's name. Most is copied while others append, the rest under their lock.
 */
#include "store/log/log_internal.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_MOST = 8, ROUNDS = 3, SYNC_EACH = 4 << 20 };

static uint64_t round_up(uint64_t number, uint64_t to)
{
    return (number + to - 1) / to * to;
}

void log_publish_file(struct log *log, uint64_t length)
{
    struct log_shared *shared = log->shared;
    uint64_t number = log->current.header.generation;
    log_raise(&shared->ceiling, log->revision + LOG_AHEAD);
    log_raise(&shared->ready, log_pack_offset(number, length));
    log_raise(&shared->synced, log_pack_offset(number, log->current.end));
    atomic_store(&shared->generation, number);
    atomic_store(&shared->tail, log->current.header.tail);
    log->attachment = atomic_fetch_add(&shared->attachment, 1) + 1;
    log_publish(log);
}

/* The length of a new file whose records end at `end`. */
static uint64_t length_for(const struct log_options *options, uint64_t end)
{
    return round_up(end + options->reserve + options->segment / 4, options->segment);
}

uint64_t log_min_size(const struct log_options *options)
{
    return length_for(options, LOG_START) + hash_index_file_size(options->slots) + DISK_PAGE;
}

/* Makes everything durable before the file gets its name. */
static enum log_result complete(struct log *log, struct log_file *next)
{
    uint64_t length = length_for(&log->options, next->end);
    return log_failed(log, "make a new file", log_file_complete(next, length));
}

static struct log_header header_after(const struct log *log, uint32_t slots, uint64_t ceiling)
{
    struct log_header header = {.version = LOG_VERSION,
                                .generation = log->current.header.generation + 1,
                                .slots = slots,
                                .ceiling = ceiling};
    memcpy(header.machine, log->shared->ids.machine, LOG_ID);
    memcpy(header.boot, log->shared->ids.boot, LOG_ID);
    return header;
}

enum log_result log_create(struct log *log)
{
    const struct disk *disk = log->options.disk;
    log->current.header.generation = 0;
    struct log_header header = header_after(log, log->options.slots, /* ceiling= */ 0);
    enum log_result result =
        log_failed(log, "make", log_file_make(&log->current, ".mend", &header));
    if (result == LOG_OK)
        result = complete(log, &log->current);
    if (result == LOG_OK)
        result = log_failed(log, "name the log", disk->rename(disk->owner, ".mend", ""));
    return result;
}

/* A copy from the current file into the next one. */
struct copy_state {
    struct log_file next;
    uint64_t synced; /* of the next one, approximately */
    struct log_reader reader;
};

/* Syncs in steps, because a long sync would delay those of other processes. */
static int compaction_write(struct copy_state *copy)
{
    struct log_file *next = &copy->next;
    int error = log_file_write(next);
    if (error != 0 || next->written - copy->synced < SYNC_EACH)
        return error;
    copy->synced = next->written;
    return next->disk->sync(next->disk->owner, next->file);
}

/* Copies current records, and all records from `recent` on. */
static enum log_result copy_live(struct log *log, struct copy_state *copy, uint64_t recent)
{
    struct log_file *next = &copy->next;
    struct log_reader *reader = &copy->reader;
    struct log_record record, before;
    while (log_reader_next(reader, &record) == LOG_READ_OK) {
        uint64_t hash = log_file_hash(record.key, record.key_length);
        bool worth = record.offset >= recent;
        int error = 0;
        if (!worth && record.key_length > 0)
            error = hash_index_has(&log->current.index, hash, record.offset, &worth);
        if (error == 0 && record.offset < recent && worth && log->options.may_drop != NULL)
            worth = !log->options.may_drop(log->options.drop_owner, log, &record);
        if (error == 0 && (record.key_length == 0 || !worth))
            continue;
        if (error == 0 && !log_file_fits(next, log_record_size(record.key_length, record.length)))
            error = compaction_write(copy);
        if (error == 0)
            error = log_file_find(next, record.key, record.key_length, &before);
        if (error != 0)
            return log_failed(log, "copy", error);
        record.previous = before.offset;
        record.synced = next->end; /* true as soon as the file has its name */
        record.file_length = 0;
        log_file_add(next, &record);
    }
    if (reader->error != 0)
        return log_failed(log, "read", reader->error);
    return reader->at == reader->limit ? LOG_OK : log_damaged_at(log, reader->at);
}

struct log_host log_current_host(const struct log *log)
{
    struct log_host host = {.base_ms = (int64_t)atomic_load(&log->shared->base_ms),
                            .foreign_before = atomic_load(&log->shared->foreign_before),
                            .epoch = (uint16_t)atomic_load(&log->shared->epoch)};
    memcpy(host.machine, log->shared->ids.machine, LOG_ID);
    memcpy(host.boot, log->shared->ids.boot, LOG_ID);
    return host;
}

static void compaction_end(struct copy_state *copy)
{
    log_reader_done(&copy->reader);
    log_file_done(&copy->next);
}

/* Creates a file with its LOG_HOST record; after a failure there is nothing to end. */
static enum log_result compaction_begin(struct log *log, struct copy_state *copy,
                                        const char *suffix, const struct stamp *latest,
                                        const struct log_host *host)
{
    size_t live = 0;
    uint64_t *offsets = NULL, slots = log->options.slots;
    copy->synced = 0;
    bool fine = log_file_init(&copy->next, log->options.disk);
    fine = log_reader_init(&copy->reader, &log->current, /* limit= */ 0) && fine;
    int error = fine ? hash_index_live(&log->current.index, &offsets, &live) : -ENOMEM;
    free(offsets);
    while (slots < 4 * live && slots < LOG_SLOTS_MOST)
        slots *= 2;
    struct log_header header = header_after(log, (uint32_t)slots, latest->revision);
    if (error == 0 && header.generation <= LOG_GENERATION_MAX)
        error = log_file_make(&copy->next, suffix, &header);
    enum log_result result = log_failed(log, "make a new file", error);
    if (header.generation > LOG_GENERATION_MAX)
        result = LOG_EXHAUSTED;
    if (result != LOG_OK)
        compaction_end(copy);
    else if (host != NULL)
        log_file_add_host(&copy->next, host, latest, /* file_length= */ 0);
    return result;
}

/* Marks the end of the old file for its readers. */
static void seal(struct log *log)
{
    struct log_record record = {.type = LOG_SEAL,
                                .written = {.revision = log->revision, .time_ms = log_now_ms(log)}};
    if (log->current.end + LOG_HEAD > log_offset(log, &log->shared->ready))
        return;
    log_file_add(&log->current, &record);
    (void)log_file_write(&log->current); /* a hint only: every process also checks the page */
}

/* Under the append lock: makes the new file current. A crash in between leaves a void page, and
 * either file has all acknowledged records. */
static enum log_result switch_over(struct log *log, struct log_file *next)
{
    const struct disk *disk = log->options.disk;
    struct log_file old = log->current;
    atomic_store(&log->shared->state, SHARED_VOID);
    seal(log);
    int error = disk->rename(disk->owner, ".index.new", ".index");
    if (error == 0)
        error = disk->rename(disk->owner, ".new", "");
    if (error == 0)
        error = log_sync_folder(log, next->header.generation);
    if (error != 0)
        return log_failed(log, "switch over", error);
    log->current = *next;
    *next = old;
    log_publish_file(log, log->current.header.length);
    log_mark_seen(log);
    return LOG_OK;
}

static int64_t deadline_in(const struct log *log, int64_t timeout_ms)
{
    return log->options.disk->boot_ms(log->options.disk->owner) + timeout_ms;
}

/* Copies the bulk, then records appended meanwhile, until few are left. */
static enum log_result copy_bulk(struct log *log, struct copy_state *copy, int64_t timeout_ms)
{
    enum log_result result = LOG_OK;
    for (int tries = 0; result == LOG_OK && tries < TRIES_MOST; tries++) {
        uint64_t end = atomic_load(&log->shared->end);
        if (atomic_load(&log->shared->attachment) != log->attachment)
            return LOG_REMOVED;
        if (tries > 0 && end - copy->reader.at < log->options.segment / 8)
            break;
        result = log_sync_to(log, end, /* rest= */ 0, deadline_in(log, timeout_ms));
        uint64_t recent = end > log->options.window ? end - log->options.window : 0;
        copy->reader.limit = log->safe = end;
        if (result == LOG_OK)
            result = copy_live(log, copy, copy->reader.at == LOG_START ? recent : /* all= */ 0);
    }
    return result;
}

/* Under the append lock: copies the rest and makes the new file current. LOG_LOCKED if the old one
 * has grown too much meanwhile. */
static enum log_result compaction_finish(struct log *log, struct copy_state *copy)
{
    struct log_file *next = &copy->next;
    const struct disk *disk = log->options.disk;
    copy->reader.limit = log->current.end;
    enum log_result result = copy_live(log, copy, /* recent= */ 0);
    if (result == LOG_OK)
        result = log_failed(log, "write", log_file_write(next));
    if (result == LOG_OK && next->end + log->options.reserve > next->header.length)
        result = LOG_LOCKED;
    if (result != LOG_OK)
        return result;
    result = log_failed(log, "sync a new file", disk->sync(disk->owner, next->file));
    return result == LOG_OK ? switch_over(log, next) : result;
}

/* Frees the space of a new file that did not become current. */
static void discard_file(const struct log *log, const char *suffix)
{
    const struct disk *disk = log->options.disk;
    int file = disk->open(disk->owner, suffix, DISK_EMPTY);
    if (file >= 0)
        disk->close(disk->owner, file);
}

/* Copies and syncs all but the rest; later rounds are short. The index can be large, so it is
 * written after the first round: compaction_finish() has to copy what is appended meanwhile. */
static enum log_result compaction_prepare(struct log *log, struct copy_state *copy,
                                          int64_t timeout_ms)
{
    struct log_file *next = &copy->next;
    enum log_result result = LOG_OK;
    for (int round = 0; result == LOG_OK && round < ROUNDS; round++) {
        uint64_t before = copy->next.end;
        result = copy_bulk(log, copy, timeout_ms);
        if (round > 0 && copy->next.end == before)
            break;
        if (result == LOG_OK)
            result = complete(log, next);
        if (result == LOG_OK && round == 0)
            result =
                log_failed(log, "make an index",
                           hash_index_save(&next->index, ".index.new", next->header.generation));
    }
    return result;
}

static enum log_result compact(struct log *log, int64_t timeout_ms)
{
    struct copy_state copy;
    struct log_host host = log_current_host(log);
    uint64_t attachment = log->attachment;
    struct stamp latest = {.revision = atomic_load(&log->shared->revision),
                           .time_ms = log_now_ms(log),
                           .epoch = host.epoch};
    enum log_result result = compaction_begin(log, &copy, ".new", &latest, &host);
    if (result != LOG_OK)
        return result;
    uint64_t number = copy.next.header.generation;
    result = compaction_prepare(log, &copy, timeout_ms);
    if (result == LOG_OK)
        result = log_lock(log, LOCK_APPEND, deadline_in(log, timeout_ms));
    if (result == LOG_OK) {
        result = log_refresh(log, deadline_in(log, timeout_ms));
        /* With another file or index, the copy may be incomplete. */
        if (result == LOG_OK && log->attachment == attachment)
            result = compaction_finish(log, &copy);
        log_unlock(log, LOCK_APPEND);
    }
    compaction_end(&copy);
    if (log->current.header.generation != number) {
        discard_file(log, ".new");
        discard_file(log, ".index.new");
    }
    return result == LOG_REMOVED ? LOG_OK : result; /* another process was faster */
}

enum log_result log_replace(struct log *log)
{
    struct scan_state scan = {.revision = atomic_load(&log->shared->revision)};
    uint64_t synced = log_offset(log, &log->shared->synced);
    uint64_t limit = synced != 0 ? synced : UINT64_MAX; /* after a reboot all is synced */
    enum log_result result =
        log_failed(log, "index", hash_index_build(&log->current.index, log->current.header.slots));
    if (result == LOG_OK)
        result = log_scan(log, limit, &scan);
    if (result == LOG_OK && log->current.end < synced)
        result = log_damaged_at(log, log->current.end);
    struct copy_state copy;
    struct stamp latest = {
        .revision = scan.revision, .time_ms = scan.time_ms, .epoch = scan.host.epoch};
    if (result == LOG_OK)
        result = compaction_begin(log, &copy, ".mend", &latest, scan.has_host ? &scan.host : NULL);
    if (result != LOG_OK)
        return result;
    copy.reader.limit = log->current.end;
    result = copy_live(log, &copy, /* recent= */ 0);
    if (result == LOG_OK)
        result = complete(log, &copy.next);
    const struct disk *disk = log->options.disk;
    if (result == LOG_OK)
        result = log_failed(log, "replace the log", disk->rename(disk->owner, ".mend", ""));
    compaction_end(&copy);
    enum log_reading reading = LOG_READ_OK;
    if (result == LOG_OK)
        result = log_failed(log, "open", log_file_open(&log->current, &reading));
    return result == LOG_OK && reading != LOG_READ_OK ? LOG_REMOVED : result;
}

enum log_result log_grow(struct log *log, uint64_t need, int64_t deadline_ms)
{
    enum log_result result = log_lock(log, LOCK_GROW, deadline_ms);
    if (result != LOG_OK)
        return result;
    uint64_t ready = log_offset(log, &log->shared->ready);
    uint64_t end = atomic_load(&log->shared->end);
    uint64_t wanted = round_up(end + need + log->options.reserve, log->options.segment);
    bool due = ready != 0 && wanted > ready;
    if (due && wanted > LOG_OFFSET_MAX)
        result = LOG_EXHAUSTED;
    if (due && result == LOG_OK)
        result = log_failed(log, "grow", log_file_fill(&log->current, ready, wanted));
    log->growing = wanted;
    if (due && result == LOG_OK)
        result = log_sync_to(log, end, ready, deadline_ms);
    log->growing = 0;
    log_unlock(log, LOCK_GROW);
    return result;
}

bool log_needs_maintenance(const struct log *log)
{
    const struct log_shared *shared = log->shared;
    uint64_t end = atomic_load(&shared->end), tail = atomic_load(&shared->tail);
    uint64_t most = tail > log->options.segment ? tail : log->options.segment;
    uint64_t slots = log->current.header.slots;
    bool full = atomic_load(&shared->used) > slots / 4 * 3;
    bool short_of_room = (atomic_load(&shared->ready) & LOG_OFFSET_MAX) <
                         end + log->options.reserve + log->options.segment / 4;
    return atomic_load(&shared->generation) == log->current.header.generation &&
           (end - tail > most || full || short_of_room);
}

/* Called with the compaction lock, which it releases. */
static enum log_result compact_once(struct log *log, int64_t timeout_ms)
{
    enum log_result result = log_begin(log, /* need= */ 0, deadline_in(log, timeout_ms));
    if (result == LOG_OK) {
        (void)log_end(log);
        if (log_needs_maintenance(log))
            result = compact(log, timeout_ms);
    }
    log_unlock(log, LOCK_COMPACT);
    return result;
}

enum log_result log_widen_index(struct log *log, int64_t deadline_ms)
{
    enum log_result result = log_lock(log, LOCK_COMPACT, deadline_ms);
    if (result != LOG_OK)
        return result;
    int64_t timeout_ms = deadline_ms - deadline_in(log, /* timeout_ms= */ 0);
    return compact_once(log, timeout_ms > 0 ? timeout_ms : 0);
}

enum log_result log_maintain(struct log *log, int64_t timeout_ms)
{
    enum log_result result = log_begin(log, log->options.segment / 4, deadline_in(log, timeout_ms));
    if (result != LOG_OK)
        return result;
    (void)log_end(log);
    if (!log_needs_maintenance(log))
        return LOG_OK;
    result = log_lock(log, LOCK_COMPACT, /* deadline_ms= */ 0);
    if (result == LOG_LOCKED)
        return LOG_OK; /* another process compacts */
    return result == LOG_OK ? compact_once(log, timeout_ms) : result;
}

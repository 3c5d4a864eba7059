/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, locks, appends and syncs the log. Recovery is in log_recover.c, growing and compacting in
 * log_compact.c. Must not interpret the content of records.
 */
#include "store/log/log_internal.h"

#include "base/check.h"
#include "disk/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLL_US = 10000 /* interval to check whether the syncing process died */ };

static const char *const result_texts[] = {
#define LOG_RESULT_TEXT(name, message) message,
    LOG_RESULTS(LOG_RESULT_TEXT)
#undef LOG_RESULT_TEXT
};

static void log_set_why(struct log *log, const char *message, uint64_t number, const char *after)
{
    struct text text;
    text_init(&text, log->why, sizeof log->why);
    text_add(&text, message);
    text_add_u64(&text, number);
    text_add(&text, after);
}

enum log_result log_failed(struct log *log, const char *what, int64_t error)
{
    if (error == 0)
        return LOG_OK;
    if (error == -EBADMSG)
        return log_damaged_at(log, log->current.bad_at);
    if (error == -EUCLEAN)
        return LOG_INDEX;
    struct text text;
    const char *message = strerrordesc_np((int)-error);
    text_init(&text, log->why, sizeof log->why);
    TEXT_JOIN(&text, "cannot ", what, ": ", message != NULL ? message : "unknown error");
    if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
        return LOG_FULL;
    return error == -ENOMEM ? LOG_MEMORY : LOG_IO;
}

enum log_result log_damaged_at(struct log *log, uint64_t offset)
{
    log_set_why(log, "damage at offset ", offset, "");
    return LOG_DAMAGED;
}

void log_explain(const struct log *log, enum log_result result, struct text *out)
{
    text_add(out, result_texts[result]);
    if (log->why[0] != '\0')
        TEXT_JOIN(out, " (", log->why, ")");
}

unsigned log_cuts(const struct log *log)
{
    return log->cuts;
}

/* ---- locks, and values that only grow ---- */

enum log_result log_lock(struct log *log, enum log_lock which, int64_t deadline_ms)
{
    _Atomic uint32_t *turn = log->shared != NULL ? &log->shared->turn[which] : NULL;
    int error = disk_lock(log->options.disk, log->lock_file, which, turn, deadline_ms);
    log->why[0] = '\0';
    if (error == -ETIMEDOUT) {
        uint32_t owner = turn != NULL ? atomic_load(&log->shared->owner[which])
                                      : log_owner_in_file(log->options.disk, log->lock_file, which);
        if (owner != 0) /* else the owner has not registered yet */
            log_set_why(log, "it is process ", owner, "");
    }
    if (error == 0 && turn != NULL)
        atomic_store(&log->shared->owner[which], (uint32_t)getpid());
    if (error == -ETIMEDOUT)
        return LOG_LOCKED;
    return error != 0 ? log_failed(log, "lock", error) : LOG_OK;
}

void log_unlock(struct log *log, enum log_lock which)
{
    const struct disk *disk = log->options.disk;
    _Atomic uint32_t *turn = log->shared != NULL ? &log->shared->turn[which] : NULL;
    if (turn != NULL)
        atomic_store(&log->shared->owner[which], 0); /* so that it is not blamed for the next one */
    if (which != LOCK_SYNC || turn == NULL) {
        disk_unlock(disk, log->lock_file, which, turn);
        return;
    }
    /* The sync served all waiters, so all are woken. */
    disk->unlock(disk->owner, log->lock_file, which);
    (void)atomic_fetch_add(turn, 1);
    disk->wake(disk->owner, turn, /* all= */ true);
}

uint64_t log_pack_offset(uint64_t generation, uint64_t offset)
{
    return generation << OFFSET_BITS | offset;
}

void log_raise(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t before = atomic_load(word);
    while (before < value && !atomic_compare_exchange_weak(word, &before, value)) {
    }
}

uint64_t log_offset(const struct log *log, const _Atomic uint64_t *word)
{
    uint64_t value = atomic_load(word);
    return value >> OFFSET_BITS == log->current.header.generation ? value & LOG_OFFSET_MAX : 0;
}

bool log_is_poisoned(const struct log *log, uint64_t generation)
{
    return atomic_load(&log->shared->poisoned) >= generation;
}

/* A process died in a sync, so its result is unknown: rewrites everything that it can have covered,
 * at least up to `offset`, and zeros from `rest` on. */
static bool write_again(struct log *log, uint64_t offset, uint64_t rest)
{
    struct log_reader reader;
    struct log_record record;
    uint64_t synced = log_offset(log, &log->shared->synced);
    bool ours = atomic_load(&log->shared->generation) == log->current.header.generation;
    uint64_t end = ours ? atomic_load(&log->shared->end) : 0;
    bool fine = log_reader_init(&reader, &log->current, end > offset ? end : offset);
    uint64_t at = reader.at = synced != 0 ? synced : LOG_START;
    while (fine && log_reader_next(&reader, &record) == LOG_READ_OK) {
        fine = disk_write(log->options.disk, log->current.file, record.key - LOG_HEAD,
                          reader.at - at, at) == 0;
        at = reader.at;
    }
    log_reader_done(&reader);
    const struct disk *disk = log->options.disk;
    if (rest == 0) /* another process may be about to publish it as ready */
        rest = log_offset(log, &log->shared->ready);
    int64_t size = rest != 0 ? disk->size(disk->owner, log->current.file) : 0;
    return fine && at >= offset && size >= 0 &&
           log_file_fill(&log->current, rest, (uint64_t)size) == 0;
}

/* Under the sync lock. After a failed sync the kernel drops the dirty pages and reports the error
 * once: a later sync would succeed without writing them. So this file must not be synced again. */
static void sync_once(struct log *log, uint64_t offset, uint64_t rest)
{
    struct log_shared *shared = log->shared;
    uint64_t number = log->current.header.generation;
    uint64_t state = atomic_load(&shared->state); /* must be read before the end */
    uint64_t revision = atomic_load(&shared->revision);
    uint64_t end = atomic_load(&shared->end);
    bool ours = atomic_load(&shared->generation) == number;
    if (rest != 0 || !ours || end < offset)
        end = offset;
    /* Bytes that another process wrote but did not publish may be lost as well; only recovery has
     * read them all. */
    bool known = rest == offset || state == SHARED_VALID;
    if (atomic_load(&shared->syncing) == number && (!known || !write_again(log, offset, rest))) {
        log_raise(&shared->poisoned, number);
        return;
    }
    atomic_store(&shared->syncing, number);
    int error = log->options.disk->sync(log->options.disk->owner, log->current.file);
    if (error != 0) {
        (void)log_failed(log, "sync", error);
        log_raise(&shared->poisoned, number);
    } else {
        log_raise(&shared->synced, log_pack_offset(number, end));
        log_raise(&shared->ceiling, ours ? revision + LOG_AHEAD : 0);
        if (log->growing != 0) /* before another process reads the old value */
            log_raise(&shared->ready, log_pack_offset(number, log->growing));
    }
    atomic_store(&shared->syncing, 0);
}

/* Waits for the sync in progress, which may cover our records. False after the deadline. */
static bool await_turn(struct log *log, uint32_t turn, int64_t deadline_ms)
{
    const struct disk *disk = log->options.disk;
    if (disk->boot_ms(disk->owner) >= deadline_ms)
        return false;
    disk->wait(disk->owner, &log->shared->turn[LOCK_SYNC], turn, POLL_US);
    return true;
}

enum log_result log_sync_to(struct log *log, uint64_t offset, uint64_t rest, int64_t deadline_ms)
{
    bool always = rest != 0;
    struct log_shared *shared = log->shared;
    uint64_t number = log->current.header.generation;
    for (;;) {
        /* Read the turn first: a sync that ends after our check changes it, and we do not sleep. */
        uint32_t turn = atomic_load(&shared->turn[LOCK_SYNC]);
        bool covered = !always && atomic_load(&shared->synced) >= log_pack_offset(number, offset);
        if (log_is_poisoned(log, number))
            return LOG_POISONED;
        if (covered)
            return LOG_OK;
        enum log_result result = log_lock(log, LOCK_SYNC, /* deadline_ms= */ 0);
        if (result == LOG_LOCKED && await_turn(log, turn, deadline_ms))
            continue;
        if (result != LOG_OK)
            return result;
        covered = atomic_load(&shared->synced) >= log_pack_offset(number, offset);
        if (!log_is_poisoned(log, number) && (always || !covered))
            sync_once(log, offset, rest);
        always = false;
        log_unlock(log, LOCK_SYNC);
    }
}

int log_sync_folder(struct log *log, uint64_t generation)
{
    int error = log->options.disk->sync_folder(log->options.disk->owner);
    if (error != 0)
        log_raise(&log->shared->poisoned, generation);
    return error;
}

void log_mark_seen(struct log *log)
{
    log->seen = log_pack_offset(log->current.header.generation, log->current.written);
}

enum log_result log_sync(struct log *log, int64_t deadline_ms)
{
    uint64_t number = log->seen >> OFFSET_BITS;
    if (number == log->current.header.generation)
        return log_sync_to(log, log->seen & LOG_OFFSET_MAX, /* rest= */ 0, deadline_ms);
    /* Seen in an older file: a newer current file includes all of it. */
    bool covered = atomic_load(&log->shared->synced) >= log->seen;
    return covered && !log_is_poisoned(log, number) ? LOG_OK : LOG_POISONED;
}

/* ---- opening and closing ---- */

/* A foreign file is rejected before any file is created next to it. */
static enum log_result log_check_existing(struct log *log)
{
    enum log_reading reading;
    int error = log_file_open(&log->current, &reading);
    if (error == 0 && reading == LOG_READ_FOREIGN)
        return LOG_NOT_OURS;
    if (error == 0 && reading == LOG_READ_NEWER) {
        log_set_why(log, "it has version ", log->current.header.version, ", supported: 1");
        return LOG_NEWER;
    }
    return error == -ENOENT ? LOG_OK : log_failed(log, "open", error);
}

static enum log_result open_files(struct log *log, int64_t deadline_ms)
{
    const struct disk *disk = log->options.disk;
    enum log_result result = log_check_existing(log);
    if (result != LOG_OK)
        return result;
    log->lock_file = disk->open(disk->owner, ".lock", DISK_CREATE);
    if (log->lock_file < 0)
        return log_failed(log, "open the lock file", log->lock_file);
    result = log_lock(log, LOCK_APPEND, deadline_ms);
    if (result != LOG_OK)
        return result;
    result = log_map_page(log);
    if (result == LOG_OK) {
        atomic_store(&log->shared->owner[LOCK_APPEND], (uint32_t)getpid());
        result = log_refresh(log, deadline_ms);
    }
    log_unlock(log, LOCK_APPEND);
    return result;
}

enum log_result log_open(const struct log_options *options, int64_t deadline_ms, struct log **out,
                         struct text *why)
{
    struct log *log = calloc(1, sizeof *log);
    if (log == NULL) {
        text_add(why, result_texts[LOG_MEMORY]);
        return LOG_MEMORY;
    }
    log->magic = LOG_MAGIC;
    log->options = *options;
    log->lock_file = -1;
    enum log_result result = LOG_MEMORY;
    if (log_file_init(&log->current, options->disk))
        result = open_files(log, deadline_ms);
    if (result != LOG_OK) {
        log_explain(log, result, why);
        log_close(&log);
        return result;
    }
    *out = log;
    return LOG_OK;
}

void log_close(struct log **log_pointer)
{
    struct log *log = *log_pointer;
    if (log == NULL)
        return;
    ASSERT(log->magic == LOG_MAGIC);
    const struct disk *disk = log->options.disk;
    if (log->shared != NULL)
        disk->unshare(disk->owner, log->shared);
    log_file_done(&log->current);
    if (log->lock_file >= 0)
        disk->close(disk->owner, log->lock_file);
    log->magic = 0;
    free(log);
    *log_pointer = NULL;
}

/* ---- reading and appending, under the append lock ---- */

void log_publish(struct log *log)
{
    struct log_shared *shared = log->shared;
    atomic_store(&shared->state, SHARED_VOID); /* chain and end are valid only together */
    log->published_end = log->current.end;
    log->published_chain = log->current.chain;
    atomic_store(&shared->chain, log->current.chain);
    atomic_store(&shared->last, log->current.last);
    atomic_store(&shared->used, log->current.index.used);
    atomic_store(&shared->revision, log->revision);
    atomic_store(&shared->end, log->current.end);
    atomic_store(&shared->state, SHARED_VALID);
}

static enum log_result log_commit(struct log *log)
{
    if (log->current.end == log->current.written)
        return LOG_OK;
    atomic_store(&log->shared->state, SHARED_WRITING);
    enum log_result result = log_failed(log, "write", log_file_write(&log->current));
    if (result == LOG_OK)
        log_publish(log);
    return result;
}

enum log_result log_begin(struct log *log, uint64_t need, int64_t deadline_ms)
{
    ASSERT(log->magic == LOG_MAGIC);
    for (enum log_result grown = LOG_OK;;) {
        enum log_result result = log_lock(log, LOCK_APPEND, deadline_ms);
        if (result != LOG_OK)
            return result;
        result = log_refresh(log, deadline_ms);
        uint64_t ready = log_offset(log, &log->shared->ready);
        /* Room for a batch of new keys; log_append() refuses some later. */
        uint32_t slots = log->current.header.slots;
        bool indexed = log->current.index.used <= slots - slots / 8;
        bool fits = indexed && log->current.end + need + log->options.reserve <= ready;
        if (result == LOG_OK && (fits || need == 0 || grown == LOG_FULL))
            return LOG_OK;
        log_unlock(log, LOCK_APPEND);
        if (result == LOG_OK && !indexed)
            result = grown = log_widen_index(log, deadline_ms);
        else if (result == LOG_OK)
            result = grown = log_grow(log, need, deadline_ms);
        if (result != LOG_OK && result != LOG_FULL)
            return result;
    }
}

enum log_result log_find(struct log *log, const char *key, size_t length, struct log_record *out)
{
    return log_failed(log, "find", log_file_find(&log->current, key, length, out));
}

enum log_result log_find_synced(struct log *log, const char *key, struct log_record *out)
{
    enum log_result result = log_find(log, key, strlen(key), out);
    if (result == LOG_OK && out->offset >= log->safe)
        *out = (struct log_record){.type = LOG_ERASE};
    return result;
}

enum log_result log_read_at(struct log *log, uint64_t offset, struct log_record *out)
{
    return log_failed(log, "read", log_file_read(&log->current, offset, out));
}

enum log_result log_live(struct log *log, uint64_t **out_offsets, size_t *out_count)
{
    enum log_result result = log_commit(log);
    if (result != LOG_OK)
        return result;
    return log_failed(log, "read the index",
                      hash_index_live(&log->current.index, out_offsets, out_count));
}

uint64_t log_revision(const struct log *log)
{
    return log->revision;
}

uint16_t log_epoch(const struct log *log)
{
    return (uint16_t)atomic_load(&log->shared->epoch);
}

uint64_t log_generation(const struct log *log)
{
    return log->current.header.generation;
}

int log_descriptor(const struct log *log)
{
    return log->current.file;
}

static enum log_result check_room(struct log *log, uint64_t previous, size_t size, bool urgent)
{
    const struct log_shared *shared = log->shared;
    uint64_t spare = urgent ? 0 : log->options.reserve;
    uint32_t slots = log->current.header.slots;
    if (log->current.end + size + spare > log_offset(log, &shared->ready) ||
        (previous == 0 &&
         log->current.index.used + log->current.pending_count >= slots - slots / 16))
        return LOG_FULL;
    if (log->revision >= REVISION_MAX)
        return LOG_EXHAUSTED;
    if (log->revision >= atomic_load(&shared->ceiling)) {
        log_set_why(log, "", LOG_AHEAD, " changes wait for a sync");
        return LOG_LOCKED;
    }
    return LOG_OK;
}

enum log_result log_admits(struct log *log, size_t size)
{
    return check_room(log, /* previous= */ 0, size, /* urgent= */ false);
}

enum log_result log_append(struct log *log, const char *key, uint64_t previous, const char *bytes,
                           size_t length, bool urgent, struct stamp *out_written)
{
    struct log_shared *shared = log->shared;
    struct log_record record = {.type = length > 0 ? LOG_PUT : LOG_ERASE,
                                .key = key,
                                .key_length = strlen(key),
                                .bytes = bytes,
                                .length = length,
                                .previous = previous,
                                .synced = log_offset(log, &shared->synced),
                                .file_length = log_offset(log, &shared->ready)};
    size_t size = log_record_size(record.key_length, length);
    enum log_result result = check_room(log, previous, size, urgent);
    if (result == LOG_OK && !log_file_fits(&log->current, size))
        result = log_commit(log);
    if (result != LOG_OK)
        return result;
    record.written = (struct stamp){.revision = ++log->revision,
                                    .time_ms = log_now_ms(log),
                                    .epoch = (uint16_t)atomic_load(&shared->epoch)};
    log_file_add(&log->current, &record);
    *out_written = record.written;
    return LOG_OK;
}

void log_set_epoch(struct log *log, uint16_t epoch)
{
    atomic_store(&log->shared->epoch, epoch);
    log->attachment = atomic_fetch_add(&log->shared->attachment, 1) + 1;
}

enum log_result log_raise_epoch(struct log *log, uint16_t least)
{
    struct log_shared *shared = log->shared;
    unsigned char bytes[LOG_HOST_BYTES];
    struct log_host host = log_current_host(log);
    size_t size = log_record_size(/* key_length= */ 0, sizeof bytes);
    if (host.epoch >= least)
        return LOG_OK;
    enum log_result result = check_room(log, /* previous= */ 1, size, /* urgent= */ true);
    if (result == LOG_OK && !log_file_fits(&log->current, size))
        result = log_commit(log);
    if (result != LOG_OK)
        return result;
    struct log_record record = {
        .type = LOG_HOST,
        .bytes = (const char *)bytes,
        .length = sizeof bytes,
        .written = {.revision = ++log->revision, .time_ms = log_now_ms(log), .epoch = least},
        .synced = log_offset(log, &shared->synced),
        .file_length = log_offset(log, &shared->ready)};
    host.epoch = least;
    log_host_encode(&host, bytes);
    log_file_add(&log->current, &record);
    result = log_commit(log);
    if (result == LOG_OK) /* not before: no token may have an epoch that the log lacks */
        log_set_epoch(log, least);
    return result;
}

enum log_result log_end(struct log *log)
{
    enum log_result result = log_commit(log);
    log_mark_seen(log);
    log_unlock(log, LOCK_APPEND);
    return result;
}

/* ---- clock, sessions and descriptors ---- */

int64_t log_now_ms(const struct log *log)
{
    const struct disk *disk = log->options.disk;
    return (int64_t)atomic_load(&log->shared->base_ms) + disk->boot_ms(disk->owner);
}

uint64_t log_foreign_before(const struct log *log)
{
    return atomic_load(&log->shared->foreign_before);
}

bool log_session_lives(const struct log *log, uint64_t session)
{
    return session_lives(log->options.disk, log->lock_file, session);
}

int log_session_keep(const struct log *log, uint64_t session)
{
    return session_keep(log->options.disk, ".lock", session);
}

uint64_t log_seen(const struct log *log)
{
    bool ours = log->seen >> OFFSET_BITS == log->current.header.generation;
    return ours ? log->seen & LOG_OFFSET_MAX : 0;
}

bool log_reader_open(const struct log *log, struct log_reader *out)
{
    return log_reader_init(out, &log->current, log_seen(log));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of the lock file that all processes of a boot share: maps it, checks that it belongs to
 * this boot, and rejects impossible values. Also probes paths without a log. Must not read records.
 */
#include "store/log/log_internal.h"

#include "base/checksum.h"
#include "disk/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t log_owner_in_file(const struct disk *disk, int file, enum log_lock which)
{
    uint64_t magic = 0;
    uint32_t owner = 0;
    size_t at = offsetof(struct log_shared, owner) + which * sizeof owner;
    if (disk_read(disk, file, &magic, sizeof magic, /* offset= */ 0) != (int64_t)sizeof magic ||
        magic != SHARED_MAGIC ||
        disk_read(disk, file, &owner, sizeof owner, at) != (int64_t)sizeof owner)
        return 0;
    return owner;
}

uint32_t log_lock_owner(const struct disk *disk)
{
    int file = disk->open(disk->owner, ".lock", DISK_OPEN);
    if (file < 0)
        return 0;
    uint32_t owner = log_owner_in_file(disk, file, LOCK_APPEND);
    disk->close(disk->owner, file);
    return owner;
}

static uint64_t boot_checksum(const struct host_ids *ids)
{
    return checksum(0, ids->boot, sizeof ids->boot);
}

/*
 * Under the append lock: a page of another boot is void. But a boot id alone does not prove a
 * reboot, because a container may show its own. A live session lock proves that there was none: the
 * page stays, and this handle joins the boot that the page belongs to.
 */
static enum log_result check_boot(struct log *log)
{
    struct log_shared *shared = log->shared;
    uint64_t boot = boot_checksum(&log->options.ids);
    bool ours = atomic_load(&shared->magic) == SHARED_MAGIC;
    bool same = ours && atomic_load(&shared->boot) == boot;
    int lives = ours && !same ? session_any_lives(log->options.disk, log->lock_file) : 0;
    if (lives < 0)
        return log_failed(log, "check which sessions are alive", lives);
    if (lives > 0)
        return LOG_OK;
    if (!same) {
        /* A handle without a session may still be attached: it must detect the new files. */
        uint64_t attachment = ours ? atomic_load(&shared->attachment) + 1 : 0;
        memset(shared, 0, offsetof(struct log_shared, turn));
        atomic_store(&shared->attachment, attachment);
        atomic_store(&shared->boot, boot);
        atomic_store(&shared->magic, SHARED_MAGIC);
    }
    if (!same || boot_checksum(&shared->ids) != boot)
        shared->ids = log->options.ids;
    return LOG_OK;
}

enum log_result log_map_page(struct log *log)
{
    const struct disk *disk = log->options.disk;
    uint64_t found = 0;
    int64_t got = disk_read(disk, log->lock_file, &found, sizeof found, /* offset= */ 0);
    int64_t size = got < 0 ? got : disk->size(disk->owner, log->lock_file);
    if (size < 0)
        return log_failed(log, "read the lock file", size);
    if (found != 0 && found != SHARED_MAGIC)
        return LOG_NOT_OURS;
    static const unsigned char zeros[DISK_PAGE];
    int error = 0;
    if (size < DISK_PAGE)
        error = disk_write(disk, log->lock_file, zeros, sizeof zeros, /* offset= */ 0);
    if (error != 0)
        return log_failed(log, "make the lock file", error);
    log->shared = disk->share(disk->owner, log->lock_file);
    if (log->shared == NULL)
        return log_failed(log, "map the lock file", -EIO);
    return check_boot(log);
}

/* The offset of a packed word, if it is of the page's generation; else 0. */
static uint64_t own_offset(const struct log_shared *shared, const _Atomic uint64_t *word)
{
    uint64_t value = atomic_load(word);
    bool own = value >> OFFSET_BITS == atomic_load(&shared->generation);
    return own ? value & LOG_OFFSET_MAX : 0;
}

/* Checks where the log ends; not valid while the page is void. */
static bool has_sane_end(const struct log_shared *shared)
{
    uint64_t end = atomic_load(&shared->end), last = atomic_load(&shared->last);
    return end >= LOG_START && end <= LOG_OFFSET_MAX && end % LOG_ALIGN == 0 && last < end &&
           atomic_load(&shared->tail) <= end && own_offset(shared, &shared->synced) <= end &&
           own_offset(shared, &shared->ready) % LOG_UNIT == 0;
}

/* Checks the store's clock, likewise. */
static bool has_sane_time(const struct log *log)
{
    int64_t base_ms = (int64_t)atomic_load(&log->shared->base_ms);
    if (base_ms < -TIME_MAX_MS || base_ms > TIME_MAX_MS)
        return false;
    int64_t now_ms = log_now_ms(log);
    return now_ms >= 0 && now_ms <= TIME_MAX_MS && atomic_load(&log->shared->epoch) <= EPOCH_MAX;
}

enum log_result log_check_page(const struct log *log)
{
    const struct log_shared *shared = log->shared;
    uint64_t state = atomic_load(&shared->state), generation = atomic_load(&shared->generation);
    bool sane = state <= SHARED_WRITING && generation <= LOG_GENERATION_MAX &&
                atomic_load(&shared->poisoned) <= LOG_GENERATION_MAX &&
                atomic_load(&shared->revision) <= REVISION_MAX;
    if (sane && state != SHARED_VOID)
        sane = generation > 0 && has_sane_end(shared) && has_sane_time(log);
    return sane ? LOG_OK : LOG_PAGE;
}

/* Fails if a directory has a name that a new store needs. Any other file is replaced. */
static enum log_result probe_names(struct log *log)
{
    static const char *const suffixes[] = {".mend", ".index.mend", ".index"};
    const struct disk *disk = log->options.disk;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int file = disk->open(disk->owner, suffixes[i], DISK_OPEN);
        if (file >= 0)
            disk->close(disk->owner, file);
        if (file == -EISDIR)
            return log_failed(log, suffixes[i], file);
    }
    return LOG_OK;
}

/* Checks whether an existing lock file refers to a log in this boot. */
static enum log_result probe_page(struct log *log)
{
    const struct disk *disk = log->options.disk;
    union {
        struct log_shared shared;
        unsigned char bytes[DISK_PAGE];
    } page = {0};
    int64_t got = disk_read(disk, log->lock_file, page.bytes, sizeof page.bytes, /* offset= */ 0);
    if (got < 0)
        return log_failed(log, "read the lock file", got);
    uint64_t magic = atomic_load(&page.shared.magic);
    if (magic != 0 && magic != SHARED_MAGIC)
        return LOG_NOT_OURS;
    bool same = atomic_load(&page.shared.boot) == boot_checksum(&log->options.ids);
    if (magic == 0 || atomic_load(&page.shared.generation) == 0)
        return LOG_OK;
    int lives = same ? 1 : session_any_lives(disk, log->lock_file);
    if (lives < 0)
        return log_failed(log, "check which sessions are alive", lives);
    return lives > 0 ? LOG_REMOVED : LOG_OK;
}

enum log_result log_probe(const struct log_options *options, struct text *why)
{
    const struct disk *disk = options->disk;
    struct log *log = calloc(1, sizeof *log);
    enum log_result result = LOG_MEMORY;
    if (log == NULL) {
        text_add(why, "out of memory");
        return result;
    }
    log->options = *options;
    result = probe_names(log);
    log->lock_file = disk->open(disk->owner, ".lock", DISK_OPEN);
    if (result == LOG_OK && log->lock_file >= 0)
        result = probe_page(log);
    else if (result == LOG_OK && log->lock_file != -ENOENT)
        result = log_failed(log, "open the lock file", log->lock_file);
    if (log->lock_file >= 0)
        disk->close(disk->owner, log->lock_file);
    if (result != LOG_OK)
        log_explain(log, result, why);
    free(log);
    return result;
}

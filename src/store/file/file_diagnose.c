/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of a file store: folder, file system, free space, permissions, and the log itself,
 * which is opened as every client opens it and then read from start to end. Creates no file.
 */
#include "store/file/file_internal.h"

#include "disk/disk_probe.h"
#include "store/admin.h"
#include "wire/duration.h"
#include "wire/record_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOCK_TIMEOUT_MS = 2000,
    TEXT_SIZE = 256,
    MIB = 1 << 20,
    ROOM_ENOUGH = 16 * MIB,
    RECORD = 512, /* about the size of a grant's */
};

/* ---- folder and disk ---- */

/* The first lock creates the folder of the default store, if it can. */
static void file_check_missing_folder(const struct diagnosis *diagnosis,
                                      const struct disk_probe *disk_probe)
{
    if (disk_probe->can_be_made)
        diagnosis_report(diagnosis, FINDING_OK, "folder", NULL,
                         "%s is not there yet; the first lock makes it", disk_probe->folder);
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "folder", "name another with --store",
                         "%s is not there and cannot be made: %s: %s", disk_probe->folder,
                         disk_probe->above, strerror(disk_probe->above_error));
}

/* True when the folder exists, or the first lock creates it. */
static bool file_check_folder(const struct diagnosis *diagnosis,
                              const struct disk_probe *disk_probe)
{
    bool makes = disk_probe->folder_error == ENOENT && diagnosis->creates_folder;
    if (makes)
        file_check_missing_folder(diagnosis, disk_probe);
    else if (disk_probe->folder_error == ENOENT)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "folder",
                         "make it with mkdir -p, or name another", "%s is not there",
                         disk_probe->folder);
    else if (disk_probe->folder_error != 0)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "folder", "name another with --store",
                         "%s cannot be used: %s", disk_probe->folder,
                         strerror(disk_probe->folder_error));
    return makes ? disk_probe->can_be_made : disk_probe->folder_error == 0;
}

static bool file_check_file_system(const struct diagnosis *diagnosis,
                                   const struct disk_probe *disk_probe)
{
    if (disk_probe->file_system_trusted)
        diagnosis_report(diagnosis, FINDING_OK, "file-system", NULL, "%s is on %s",
                         disk_probe->folder, disk_probe->file_system);
    else if (disk_probe->file_system != NULL)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "file-system", "use a local disk",
                         "%s is on %s, whose locks and syncs are not known to hold",
                         disk_probe->folder, disk_probe->file_system);
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "file-system", "use a local disk",
                         "%s is on a file system of type 0x%" PRIx64
                         ", whose locks and syncs are not known to hold",
                         disk_probe->folder, disk_probe->file_system_type);
    return disk_probe->file_system_trusted;
}

static void file_check_room(const struct diagnosis *diagnosis, const struct disk_probe *disk_probe)
{
    static const char remedy[] = "free some, or name a store elsewhere";
    const struct log_options options = LOG_OPTIONS_DEFAULT;
    uint64_t mib = disk_probe->room / MIB, min = log_min_size(&options);
    if (disk_probe->room >= ROOM_ENOUGH)
        diagnosis_report(diagnosis, FINDING_OK, "room", NULL, "%" PRIu64 " MiB are free", mib);
    else if (disk_probe->room < min && !disk_probe->file_is_there)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "room", remedy,
                         "only %" PRIu64 " KiB are free; a new store needs %" PRIu64 " KiB",
                         disk_probe->room / 1024, (min + 1023) / 1024);
    else
        diagnosis_report(diagnosis, FINDING_WARNING, "room", remedy,
                         "only %" PRIu64
                         " KiB are free; on a full disk held locks can still be renewed "
                         "and released, but none be taken",
                         disk_probe->room / 1024);
}

/* ---- the log ---- */

static int64_t diagnose_timeout_ms(const struct diagnosis *diagnosis)
{
    return diagnosis_timeout_ms(diagnosis, LOCK_TIMEOUT_MS);
}

static void file_check_owner(const struct diagnosis *diagnosis, const struct disk *disk,
                             const char *message)
{
    char name[64], remedy[128], held[DURATION_SHOWN];
    uint32_t pid = log_lock_owner(disk);
    char state = process_state(pid, name, sizeof name);
    if (state == 0) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "lock", NULL, "%s", message);
        return;
    }
    bool stopped = state == 'T' || state == 't';
    (void)snprintf(remedy, sizeof remedy, "let it go on with kill -CONT %u, or end it",
                   (unsigned)pid);
    diagnosis_report(diagnosis, FINDING_PROBLEM, "lock",
                     stopped ? remedy : "check whether it is stuck; a disk may hang",
                     "process %u (%s), which is %s, has held the store's lock for %s",
                     (unsigned)pid, name, stopped ? "stopped" : "not stopped",
                     duration_show(diagnose_timeout_ms(diagnosis), held));
}

/* Reads every record up to the known end, and verifies its checksum and its chain. */
static bool file_check_chain(const struct diagnosis *diagnosis, const struct log *log,
                             int64_t *out_made_ms, uint64_t *out_records)
{
    struct log_reader reader;
    struct log_record record;
    uint64_t records = 0, chain = log_generation(log);
    bool whole = log_reader_open(log, &reader);
    *out_made_ms = TIME_UNKNOWN;
    while (whole && log_reader_next(&reader, &record) == LOG_READ_OK) {
        if (record.chain != chain)
            break;
        chain = record.checksum;
        if (records++ == 0)
            *out_made_ms = record.written.time_ms;
    }
    uint64_t end = reader.at, limit = reader.limit;
    int error = reader.error;
    log_reader_done(&reader);
    *out_records = records;
    if (whole && error == 0 && end == limit)
        return true;
    diagnosis_report(diagnosis, FINDING_PROBLEM, "log",
                     "end all users of the store, restore a backup, and check the disk",
                     "the log is damaged at offset %" PRIu64 "%s%s", end, error != 0 ? ": " : "",
                     error != 0 ? strerror(-error) : "");
    return false;
}

static void file_report_result(const struct diagnosis *diagnosis, const struct log *log,
                               enum log_result result)
{
    char message[TEXT_SIZE];
    struct text why;
    text_init(&why, message, sizeof message);
    log_explain(log, result, &why);
    diagnosis_report(diagnosis, FINDING_PROBLEM, "log", NULL, "%s", message);
}

/* Reads the last record of each key where the index says it is, and decodes it. */
static bool file_check_keys(const struct diagnosis *diagnosis, struct log *log,
                            const uint64_t *live, size_t count)
{
    struct record *scratch = malloc(sizeof *scratch);
    enum log_result result = scratch == NULL ? LOG_MEMORY : LOG_OK;
    unsigned unreadable = 0;
    for (size_t i = 0; i < count && result == LOG_OK; i++) {
        struct codec_error error;
        struct log_record record;
        result = log_read_at(log, live[i], &record);
        if (result == LOG_DAMAGED || (result == LOG_OK && record.type != LOG_PUT))
            result = LOG_INDEX; /* file_check_chain() found the log whole */
        if (result != LOG_OK)
            break;
        enum decode_result decoded = record_decode(record.bytes, record.length, scratch, &error);
        if (decoded == DECODE_OK || unreadable++ > 0)
            continue;
        diagnosis_report(diagnosis, FINDING_PROBLEM, "record",
                         "use the version that wrote it, or another key",
                         "the record of %.*s cannot be read: %s", (int)record.key_length,
                         record.key, decode_result_text(decoded));
    }
    free(scratch);
    if (unreadable > 1)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "record", NULL,
                         "%u more records cannot be read", unreadable - 1);
    if (result != LOG_OK)
        file_report_result(diagnosis, log, result);
    return result == LOG_OK;
}

static void file_check_records(const struct diagnosis *diagnosis, struct log *log,
                               const uint64_t *live, size_t count)
{
    uint64_t records;
    int64_t made_ms;
    char ago[DURATION_SHOWN];
    if (!file_check_chain(diagnosis, log, &made_ms, &records) ||
        !file_check_keys(diagnosis, log, live, count))
        return;
    int64_t age_ms = made_ms == TIME_UNKNOWN ? 0 : log_now_ms(log) - made_ms;
    diagnosis_report(diagnosis, FINDING_OK, "log", NULL,
                     "the log is whole; keys: %zu, records: %" PRIu64 ", revision %" PRIu64
                     ", generation %" PRIu64 ", %s %s ago",
                     count, records, log_revision(log), log_generation(log),
                     log_generation(log) > 1 ? "compacted" : "made",
                     duration_show(age_ms < 0 ? 0 : age_ms, ago));
}

static void file_check_contents(const struct diagnosis *diagnosis, struct log *log)
{
    uint64_t *live = NULL;
    size_t count = 0;
    /* As an acquisition does: the file grows if it must. */
    enum log_result result =
        log_begin(log, RECORD, host_boot_ms() + diagnose_timeout_ms(diagnosis));
    enum log_result admits = LOG_OK;
    if (result == LOG_OK) {
        admits = log_admits(log, RECORD);
        result = log_live(log, &live, &count);
        enum log_result ended = log_end(log);
        result = result != LOG_OK ? result : ended;
    }
    if (result != LOG_OK || admits != LOG_OK)
        file_report_result(diagnosis, log, result != LOG_OK ? result : admits);
    if (log_cuts(log) > 0)
        diagnosis_report(diagnosis, FINDING_WARNING, "log", NULL,
                         "a torn tail was cut, of a crash or power loss; nothing answered is lost");
    if (result == LOG_OK)
        file_check_records(diagnosis, log, live, count);
    free(live);
}

static void file_check_log(const struct diagnosis *diagnosis, const struct disk *disk,
                           bool is_there)
{
    char message[TEXT_SIZE];
    struct text why;
    struct log *log;
    struct log_options options = LOG_OPTIONS_DEFAULT;
    text_init(&why, message, sizeof message);
    options.disk = disk;
    if (!host_read(&options.ids, &why))
        return; /* the caller has reported it */
    enum log_result result =
        is_there ? log_open(&options, host_boot_ms() + diagnose_timeout_ms(diagnosis), &log, &why)
                 : log_probe(&options, &why);
    if (result == LOG_LOCKED)
        file_check_owner(diagnosis, disk, message);
    else if (result != LOG_OK)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "log", NULL, "%s", message);
    else if (!is_there)
        diagnosis_report(diagnosis, FINDING_OK, "log", NULL,
                         "there is no log yet; the first lock makes it");
    if (result != LOG_OK || !is_there)
        return;
    file_check_contents(diagnosis, log);
    log_close(&log);
}

void file_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    const char *path = file_url_path(url);
    char message[TEXT_SIZE];
    struct text why;
    struct disk disk;
    struct disk_probe disk_probe;
    disk_probe_read(&disk_probe, path);
    if (!file_check_folder(diagnosis, &disk_probe) ||
        !file_check_file_system(diagnosis, &disk_probe))
        return;
    file_check_room(diagnosis, &disk_probe);
    if (disk_probe.folder_error != 0)
        return; /* the first lock creates it */
    text_init(&why, message, sizeof message);
    if (!disk_open(&disk, path, &why)) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "rights", NULL, "%s", message);
        return;
    }
    diagnosis_report(diagnosis, FINDING_OK, "rights", NULL,
                     "the rights of folder and file are fine");
    file_check_log(diagnosis, &disk, disk_probe.file_is_there);
    disk_done(&disk);
}

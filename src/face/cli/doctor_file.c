/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor, for a file store: folder, file system, room, rights, and the log itself, which
 * is opened as every command opens it and then read from one end to the other.
 */
#include "face/cli/doctor.h"

#include "disk/disk.h"
#include "disk/disk_probe.h"
#include "store/log/log.h"
#include "wire/duration.h"
#include "wire/record_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 2000,
    MIB = 1 << 20,
    ROOM_ENOUGH = 16 * MIB,
    RECORD = 512, /* about the size of a grant's */
};

/* ---- where it is ---- */

/* The default store's folder is made by the first lock, if it can be. */
static void file_check_default_folder(struct doctor *doctor, const struct disk_probe *disk_probe)
{
    if (disk_probe->can_be_made)
        doctor_report(doctor, FINDING_OK, "folder", NULL,
                      "%s is not there yet; the first lock makes it", disk_probe->folder);
    else
        doctor_report(doctor, FINDING_PROBLEM, "folder", "name another with --store",
                      "%s is not there and cannot be made: %s: %s", disk_probe->folder,
                      disk_probe->above, strerror(disk_probe->above_error));
}

/* True when there is a folder to go on with, or there will be. */
static bool file_check_folder(struct doctor *doctor, const struct disk_probe *disk_probe)
{
    bool makes = disk_probe->folder_error == ENOENT && doctor->context->store_from == FROM_DEFAULT;
    if (makes)
        file_check_default_folder(doctor, disk_probe);
    else if (disk_probe->folder_error == ENOENT)
        doctor_report(doctor, FINDING_PROBLEM, "folder", "make it with mkdir -p, or name another",
                      "%s is not there", disk_probe->folder);
    else if (disk_probe->folder_error != 0)
        doctor_report(doctor, FINDING_PROBLEM, "folder", "name another with --store",
                      "%s cannot be used: %s", disk_probe->folder,
                      strerror(disk_probe->folder_error));
    return makes ? disk_probe->can_be_made : disk_probe->folder_error == 0;
}

static bool file_check_file_system(struct doctor *doctor, const struct disk_probe *disk_probe)
{
    if (disk_probe->file_system_trusted)
        doctor_report(doctor, FINDING_OK, "file-system", NULL, "%s is on %s", disk_probe->folder,
                      disk_probe->file_system);
    else if (disk_probe->file_system != NULL)
        doctor_report(doctor, FINDING_PROBLEM, "file-system", "use a local disk",
                      "%s is on %s, whose locks and syncs are not known to hold",
                      disk_probe->folder, disk_probe->file_system);
    else
        doctor_report(doctor, FINDING_PROBLEM, "file-system", "use a local disk",
                      "%s is on a file system of type 0x%" PRIx64
                      ", whose locks and syncs are not known to hold",
                      disk_probe->folder, disk_probe->file_system_type);
    return disk_probe->file_system_trusted;
}

static void file_check_room(struct doctor *doctor, const struct disk_probe *disk_probe)
{
    static const char remedy[] = "free some, or name a store elsewhere";
    const struct log_options options = LOG_OPTIONS_DEFAULT;
    uint64_t mib = disk_probe->room / MIB, min = log_min_size(&options);
    if (disk_probe->room >= ROOM_ENOUGH)
        doctor_report(doctor, FINDING_OK, "room", NULL, "%" PRIu64 " MiB are free", mib);
    else if (disk_probe->room < min && !disk_probe->file_is_there)
        doctor_report(doctor, FINDING_PROBLEM, "room", remedy,
                      "only %" PRIu64 " KiB are free; a new store needs %" PRIu64 " KiB",
                      disk_probe->room / 1024, (min + 1023) / 1024);
    else
        doctor_report(doctor, FINDING_WARNING, "room", remedy,
                      "only %" PRIu64
                      " KiB are free; on a full disk held locks can still be renewed "
                      "and released, but none be taken",
                      disk_probe->room / 1024);
}

/* ---- what is in it ---- */

static void file_check_owner(struct doctor *doctor, const struct disk *disk, const char *message)
{
    char name[64], remedy[128];
    uint32_t pid = log_lock_owner(disk);
    char state = process_state(pid, name, sizeof name);
    if (state == 0) {
        doctor_report(doctor, FINDING_PROBLEM, "lock", NULL, "%s", message);
        return;
    }
    bool stopped = state == 'T' || state == 't';
    (void)snprintf(remedy, sizeof remedy, "let it go on with kill -CONT %u, or end it",
                   (unsigned)pid);
    doctor_report(doctor, FINDING_PROBLEM, "lock",
                  stopped ? remedy : "look what it does; a disk may hang",
                  "process %u (%s), which is %s, has kept the store's lock for %d s", (unsigned)pid,
                  name, stopped ? "stopped" : "not stopped", TIMEOUT_MS / 1000);
}

/* Every record up to where we have seen it, with its checksum and its chain. */
static bool read_through(struct doctor *doctor, const struct log *log, int64_t *out_made_ms,
                         uint64_t *out_records)
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
    doctor_report(doctor, FINDING_PROBLEM, "log",
                  "end all users of the store, restore a backup, and check the disk",
                  "the log is damaged at offset %" PRIu64 "%s%s", end, error != 0 ? ": " : "",
                  error != 0 ? strerror(-error) : "");
    return false;
}

static void file_report_result(struct doctor *doctor, const struct log *log, enum log_result result)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    text_init(&why, message, sizeof message);
    log_explain(log, result, &why);
    doctor_report(doctor, FINDING_PROBLEM, "log", NULL, "%s", message);
}

/* Each key's last record is where the index says, and can be understood. */
static bool read_records(struct doctor *doctor, struct log *log, const uint64_t *live, size_t count)
{
    struct record *scratch = malloc(sizeof *scratch);
    enum log_result result = scratch == NULL ? LOG_MEMORY : LOG_OK;
    unsigned unreadable = 0;
    for (size_t i = 0; i < count && result == LOG_OK; i++) {
        struct codec_error error;
        struct log_record record;
        result = log_read_at(log, live[i], &record);
        if (result == LOG_DAMAGED || (result == LOG_OK && record.type != LOG_PUT))
            result = LOG_INDEX; /* the log itself is whole, as was seen before */
        if (result != LOG_OK)
            break;
        enum decode_result decoded = record_decode(record.bytes, record.length, scratch, &error);
        if (decoded == DECODE_OK || unreadable++ > 0)
            continue;
        doctor_report(doctor, FINDING_PROBLEM, "record",
                      "use the version that wrote it, or another key",
                      "the record of %.*s cannot be read: %s", (int)record.key_length, record.key,
                      decode_result_text(decoded));
    }
    free(scratch);
    if (unreadable > 1)
        doctor_report(doctor, FINDING_PROBLEM, "record", NULL, "%u more records cannot be read",
                      unreadable - 1);
    if (result != LOG_OK)
        file_report_result(doctor, log, result);
    return result == LOG_OK;
}

static void file_check_records(struct doctor *doctor, struct log *log, const uint64_t *live,
                               size_t count)
{
    uint64_t records;
    int64_t made_ms;
    char ago[DURATION_SHOWN];
    if (!read_through(doctor, log, &made_ms, &records) || !read_records(doctor, log, live, count))
        return;
    int64_t age_ms = made_ms == TIME_UNKNOWN ? 0 : log_now_ms(log) - made_ms;
    doctor_report(doctor, FINDING_OK, "log", NULL,
                  "the log is whole; keys: %zu, records: %" PRIu64 ", revision %" PRIu64
                  ", generation %" PRIu64 ", %s %s ago",
                  count, records, log_revision(log), log_generation(log),
                  log_generation(log) > 1 ? "compacted" : "made",
                  duration_show(age_ms < 0 ? 0 : age_ms, ago));
}

static void file_check_contents(struct doctor *doctor, struct log *log)
{
    uint64_t *live = NULL;
    size_t count = 0;
    /* As a command that takes a lock: the file grows if it has to. */
    enum log_result result = log_begin(log, RECORD, host_boot_ms() + TIMEOUT_MS);
    enum log_result admits = LOG_OK;
    if (result == LOG_OK) {
        admits = log_admits(log, RECORD);
        result = log_live(log, &live, &count);
        enum log_result ended = log_end(log);
        result = result != LOG_OK ? result : ended;
    }
    if (result != LOG_OK || admits != LOG_OK)
        file_report_result(doctor, log, result != LOG_OK ? result : admits);
    if (log_cuts(log) > 0)
        doctor_report(doctor, FINDING_WARNING, "log", NULL,
                      "a torn tail was cut, of a crash or power loss; nothing answered is lost");
    if (result == LOG_OK)
        file_check_records(doctor, log, live, count);
    free(live);
}

static void file_check_log(struct doctor *doctor, const struct disk *disk, bool is_there)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    struct log *log;
    struct log_options options = LOG_OPTIONS_DEFAULT;
    text_init(&why, message, sizeof message);
    options.disk = disk;
    if (!host_read(&options.ids, &why))
        return; /* said before */
    enum log_result result = is_there ? log_open(&options, host_boot_ms() + TIMEOUT_MS, &log, &why)
                                      : log_probe(&options, &why);
    if (result == LOG_LOCKED)
        file_check_owner(doctor, disk, message);
    else if (result != LOG_OK)
        doctor_report(doctor, FINDING_PROBLEM, "log", NULL, "%s", message);
    else if (!is_there)
        doctor_report(doctor, FINDING_OK, "log", NULL,
                      "there is no log yet; the first lock makes it");
    if (result != LOG_OK || !is_there)
        return;
    file_check_contents(doctor, log);
    log_close(&log);
}

void doctor_check_file(struct doctor *doctor, const char *path)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    struct disk disk;
    struct disk_probe disk_probe;
    disk_probe_read(&disk_probe, path);
    if (!file_check_folder(doctor, &disk_probe) || !file_check_file_system(doctor, &disk_probe))
        return;
    file_check_room(doctor, &disk_probe);
    if (disk_probe.folder_error != 0)
        return; /* it is not there yet */
    text_init(&why, message, sizeof message);
    if (!disk_open(&disk, path, &why)) {
        doctor_report(doctor, FINDING_PROBLEM, "rights", NULL, "%s", message);
        return;
    }
    doctor_report(doctor, FINDING_OK, "rights", NULL, "the rights of folder and file are fine");
    file_check_log(doctor, &disk, disk_probe.file_is_there);
    disk_done(&disk);
}

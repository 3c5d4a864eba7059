/* SPDX-License-Identifier: Apache-2.0 */
/* See log_file.h. Must not decide whether unreadable bytes are damage or a torn tail. */
#include "store/log/log_file.h"

#include "base/check.h"
#include "base/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_FIRST = 1024 /* most records are shorter */ };

uint64_t log_file_hash(const char *key, size_t length)
{
    return checksum(0, key, length);
}

bool log_file_init(struct log_file *file, const struct disk *disk)
{
    *file = (struct log_file){.disk = disk,
                              .file = -1,
                              .buffer = malloc(LOG_FILE_BUFFER),
                              .scratch = malloc(LOG_RECORD_MOST)};
    hash_index_init(&file->index, disk);
    return file->buffer != NULL && file->scratch != NULL;
}

static void close_both(struct log_file *file)
{
    if (file->file >= 0)
        file->disk->close(file->disk->owner, file->file);
    file->file = -1;
    hash_index_done(&file->index);
}

void log_file_done(struct log_file *file)
{
    close_both(file);
    free(file->buffer);
    free(file->scratch);
    file->buffer = file->scratch = NULL;
}

static int bad_at(struct log_file *file, uint64_t offset)
{
    file->bad_at = offset;
    return -EBADMSG;
}

void log_file_seek(struct log_file *file, uint64_t end, uint64_t chain)
{
    /* If our last write is still the last, it need not be read from the file. */
    if (end != file->end || chain != file->chain)
        file->kept = end;
    file->end = file->written = end;
    file->chain = chain;
    file->pending_count = 0;
}

int log_file_open(struct log_file *file, enum log_reading *out_reading)
{
    unsigned char head[LOG_START];
    close_both(file);
    file->end = 0;
    *out_reading = LOG_READ_FOREIGN;
    file->file = file->disk->open(file->disk->owner, "", DISK_OPEN);
    if (file->file < 0)
        return file->file;
    int64_t got = disk_read(file->disk, file->file, head, sizeof head, /* offset= */ 0);
    if (got < 0)
        return (int)got;
    if (got >= LOG_HEADER)
        *out_reading = log_header_decode(head, &file->header);
    if (*out_reading == LOG_READ_BAD)
        return bad_at(file, /* offset= */ 0);
    for (int64_t i = LOG_HEADER; i < LOG_START && *out_reading == LOG_READ_OK; i++)
        if (i >= got || head[i] != 0)
            return bad_at(file, (uint64_t)i);
    log_file_seek(file, LOG_START, file->header.generation);
    return 0;
}

int log_file_make(struct log_file *file, const char *suffix, const struct log_header *header)
{
    close_both(file);
    file->end = 0;
    file->header = *header;
    log_file_seek(file, LOG_START, header->generation);
    file->last = 0;
    file->file = file->disk->open(file->disk->owner, suffix, DISK_EMPTY);
    return file->file < 0 ? file->file : hash_index_build(&file->index, header->slots);
}

int log_file_fill(struct log_file *file, uint64_t from, uint64_t end)
{
    static const unsigned char zeros[LOG_START * 16];
    int error = 0;
    while (from < end && error == 0) {
        uint64_t length = end - from < sizeof zeros ? end - from : sizeof zeros;
        error = disk_write(file->disk, file->file, zeros, length, from);
        from += length;
    }
    return error;
}

static unsigned char *in_buffer(const struct log_file *file, uint64_t offset)
{
    return file->buffer + (offset - file->kept);
}

bool log_file_fits(const struct log_file *file, size_t size)
{
    return file->pending_count < LOG_FILE_PENDING &&
           file->end - file->written + size <= LOG_FILE_BUFFER;
}

void log_file_add(struct log_file *file, struct log_record *record)
{
    size_t size = log_record_size(record->key_length, record->length);
    ASSERT(log_file_fits(file, size));
    if (file->end - file->kept + size > LOG_FILE_BUFFER) {
        memmove(file->buffer, in_buffer(file, file->written), file->end - file->written);
        file->kept = file->written;
    }
    record->offset = file->end;
    record->chain = file->chain;
    log_record_encode(record, file->header.generation, in_buffer(file, file->end));
    if (record->key_length > 0)
        file->pending[file->pending_count++] =
            (struct slot){.hash = log_file_hash(record->key, record->key_length),
                          .offset = file->end,
                          .previous = record->previous,
                          .live = record->type == LOG_PUT};
    file->last = file->end;
    file->end += size;
    file->chain = record->checksum;
}

int log_file_write(struct log_file *file)
{
    file->disk->begin_writes(file->disk->owner);
    int error = disk_write(file->disk, file->file, in_buffer(file, file->written),
                           file->end - file->written, file->written);
    for (size_t i = 0; i < file->pending_count && error == 0; i++)
        error = hash_index_set(&file->index, &file->pending[i]);
    file->disk->end_writes(file->disk->owner);
    if (error == 0)
        log_file_seek(file, file->end, file->chain);
    return error;
}

int log_file_read(struct log_file *file, uint64_t offset, struct log_record *out)
{
    uint64_t number = file->header.generation;
    enum log_reading reading = LOG_READ_SHORT;
    if (offset >= file->kept && offset < file->end)
        reading =
            log_record_decode(in_buffer(file, offset), file->end - offset, offset, number, out);
    for (size_t want = READ_FIRST; reading == LOG_READ_SHORT; want = LOG_RECORD_MOST) {
        int64_t got = disk_read(file->disk, file->file, file->scratch, want, offset);
        if (got < 0)
            return (int)got;
        reading = log_record_decode(file->scratch, (size_t)got, offset, number, out);
        if (want == LOG_RECORD_MOST)
            break;
    }
    return reading == LOG_READ_OK ? 0 : bad_at(file, offset);
}

static bool is_of(const struct log_record *record, const char *key, size_t length)
{
    return record->key_length == length && memcmp(record->key, key, length) == 0;
}

int log_file_find(struct log_file *file, const char *key, size_t length, struct log_record *out)
{
    uint64_t offset = 1, hash = log_file_hash(key, length);
    int error = 0;
    for (size_t i = file->pending_count; i-- > 0;) {
        if (file->pending[i].hash != hash)
            continue;
        error = log_file_read(file, file->pending[i].offset, out);
        if (error != 0 || is_of(out, key, length))
            return error;
    }
    struct hash_index_probe probe = hash_index_probe(&file->index, hash);
    while (error == 0 && offset != 0) {
        error = hash_index_next(&file->index, &probe, &offset);
        /* An indexed offset where no record can begin means a damaged index. */
        if (error == 0 && offset != 0)
            error = offset < LOG_START || offset % LOG_ALIGN != 0
                        ? -EUCLEAN
                        : log_file_read(file, offset, out);
        if (error == 0 && offset != 0 && is_of(out, key, length))
            return 0;
    }
    *out = (struct log_record){.type = LOG_ERASE};
    return error;
}

void log_file_add_host(struct log_file *file, const struct log_host *host,
                       const struct stamp *written, uint64_t file_length)
{
    unsigned char bytes[LOG_HOST_BYTES];
    struct log_record record = {.type = LOG_HOST,
                                .bytes = (const char *)bytes,
                                .length = sizeof bytes,
                                .written = *written,
                                .synced = file->end,
                                .file_length = file_length};
    log_host_encode(host, bytes);
    log_file_add(file, &record);
}

int log_file_complete(struct log_file *file, uint64_t length)
{
    unsigned char head[LOG_START] = {0};
    int error = log_file_write(file);
    file->header.tail = file->end;
    file->header.length = length;
    log_header_encode(&file->header, head);
    if (error == 0)
        error = log_file_fill(file, file->end, length);
    if (error == 0)
        error = disk_write(file->disk, file->file, head, sizeof head, /* offset= */ 0);
    return error == 0 ? file->disk->sync(file->disk->owner, file->file) : error;
}

/* An intact record states how far the file was synced: unreadable bytes before that are damage. */
static int check_witness(struct log_file *file, const unsigned char *bytes, size_t length,
                         uint64_t offset)
{
    struct log_record record;
    uint64_t number = file->header.generation;
    enum log_reading reading = log_record_decode(bytes, length, offset, number, &record);
    if (reading == LOG_READ_SHORT) {
        int64_t got = disk_read(file->disk, file->file, file->scratch, LOG_RECORD_MOST, offset);
        if (got < 0)
            return (int)got;
        reading = log_record_decode(file->scratch, (size_t)got, offset, number, &record);
    }
    bool intact = reading == LOG_READ_OK || reading == LOG_READ_UNKNOWN;
    return intact && record.synced > file->end ? bad_at(file, file->end) : 0;
}

int log_file_scan_tail(struct log_file *file, uint64_t limit, uint64_t *out_last)
{
    static const unsigned char zeros[LOG_ALIGN];
    unsigned char window[LOG_START + LOG_HEAD];
    *out_last = file->end;
    for (uint64_t at = file->end; at < limit; at += LOG_START) {
        int64_t got = disk_read(file->disk, file->file, window, sizeof window, at);
        if (got < 0)
            return (int)got;
        for (size_t i = 0; i < LOG_START && i < (size_t)got; i += LOG_ALIGN) {
            size_t left = (size_t)got - i;
            size_t length = left < LOG_ALIGN ? left : LOG_ALIGN;
            if (memcmp(window + i, zeros, length) == 0)
                continue;
            *out_last = at + i + length;
            int error = check_witness(file, window + i, left, at + i);
            if (error != 0)
                return error;
        }
    }
    return 0;
}

bool log_reader_init(struct log_reader *reader, const struct log_file *file, uint64_t limit)
{
    *reader = (struct log_reader){.disk = file->disk,
                                  .file = file->file,
                                  .generation = file->header.generation,
                                  .at = LOG_START,
                                  .limit = limit,
                                  .buffer = malloc(LOG_FILE_BUFFER)};
    return reader->buffer != NULL;
}

void log_reader_done(struct log_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
}

/* Reads on from the current position, little at first; true if no more can be read there. */
static bool refill(struct log_reader *reader)
{
    size_t want = reader->filled == 0 ? LOG_START : LOG_FILE_BUFFER;
    bool all = want == LOG_FILE_BUFFER;
    if (want > reader->limit - reader->at) {
        want = (size_t)(reader->limit - reader->at);
        all = true;
    }
    int64_t got = disk_read(reader->disk, reader->file, reader->buffer, want, reader->at);
    reader->error = got < 0 ? (int)got : 0;
    reader->start = reader->at;
    reader->filled = got < 0 ? 0 : (size_t)got;
    return all || reader->filled < want;
}

enum log_reading log_reader_next(struct log_reader *reader, struct log_record *out)
{
    if (reader->at >= reader->limit)
        return LOG_READ_NOTHING;
    for (bool all = false;;) {
        bool inside = reader->at >= reader->start && reader->at <= reader->start + reader->filled;
        size_t skip = inside ? (size_t)(reader->at - reader->start) : reader->filled;
        size_t left = reader->filled - skip;
        enum log_reading reading = LOG_READ_SHORT;
        if (left >= LOG_HEAD || all)
            reading =
                log_record_decode(reader->buffer + skip, left, reader->at, reader->generation, out);
        if (reader->error != 0)
            return LOG_READ_BAD;
        if (reading == LOG_READ_OK)
            reader->at += log_record_size(out->key_length, out->length);
        if (reading != LOG_READ_SHORT || all)
            return reading == LOG_READ_SHORT ? LOG_READ_BAD : reading;
        all = refill(reader);
    }
}

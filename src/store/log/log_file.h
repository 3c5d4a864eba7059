/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of the log with its index: records are collected, written together, found by their key,
 * and read one after the other. Knows nothing of other processes: whoever writes here holds the
 * right lock. Calls give −errno when they failed, −EBADMSG where the bytes are not ours (bad_at),
 * −EUCLEAN when the index leads to where no record can be.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_FILE_H
#define LEASEHOLD_STORE_LOG_LOG_FILE_H

#include "store/log/hash_index.h"
#include "store/log/log_format.h"

enum {
    LOG_FILE_BUFFER = 256 * 1024, /* of what is collected, and of what is read */
    LOG_FILE_PENDING = 512,       /* records that are collected at most */
};

struct log_file {
    const struct disk *disk;
    int file; /* or −errno */
    struct log_header header;
    struct hash_index index;
    uint64_t end, chain; /* with what is collected */
    uint64_t last;       /* where the record is that has the chain's checksum, or 0 */
    uint64_t written;    /* up to here it is in the file */
    uint64_t kept;       /* from here on it is in the buffer, too */
    uint64_t bad_at;
    size_t pending_count;
    struct slot pending[LOG_FILE_PENDING];
    unsigned char *buffer;  /* what was written last, and what is collected */
    unsigned char *scratch; /* for one record */
};

/* False when out of memory; to be ended all the same. */
bool log_file_init(struct log_file *file, const struct disk *disk);
void log_file_done(struct log_file *file);

/* The file that counts, without its index; LOG_READ_OK, FOREIGN or NEWER come with 0. */
int log_file_open(struct log_file *file, enum log_reading *out_reading);
/* A new one with this header, beside it. */
int log_file_make(struct log_file *file, const char *suffix, const struct log_header *header);
/* Goes on at this place, with nothing collected. */
void log_file_seek(struct log_file *file, uint64_t end, uint64_t chain);
int log_file_fill(struct log_file *file, uint64_t from, uint64_t end); /* with zeros */

/* Collects a record, as long as it fits, with its place and chain; writes what was collected. */
bool log_file_fits(const struct log_file *file, size_t size);
void log_file_add(struct log_file *file, struct log_record *record);
int log_file_write(struct log_file *file);
void log_file_add_host(struct log_file *file, const struct log_host *host,
                       const struct stamp *written, uint64_t file_length);
/* Writes what was collected, zeros up to `length` and the header, and syncs. */
int log_file_complete(struct log_file *file, uint64_t length);

/* What is written behind the end, up to `limit`, ends at `out_last`. −EBADMSG when an intact record
 * among it says that what stands at the end had been synced. */
int log_file_scan_tail(struct log_file *file, uint64_t limit, uint64_t *out_last);

/* The bytes stay until the next call. A LOG_ERASE at 0 for a key that was never there. */
int log_file_read(struct log_file *file, uint64_t offset, struct log_record *out);
int log_file_find(struct log_file *file, const char *key, size_t length, struct log_record *out);
uint64_t log_file_hash(const char *key, size_t length);

/* Goes through the records of a file up to a limit; what is behind it may still be written. */
struct log_reader {
    const struct disk *disk;
    int file;
    uint64_t generation, at, limit;
    int error; /* of the last read, or 0 */
    uint64_t start;
    size_t filled;
    unsigned char *buffer;
};

/* False when out of memory; to be ended all the same. */
bool log_reader_init(struct log_reader *reader, const struct log_file *file, uint64_t limit);
void log_reader_done(struct log_reader *reader);
/* LOG_READ_NOTHING at the limit. */
enum log_reading log_reader_next(struct log_reader *reader, struct log_record *out);

#endif

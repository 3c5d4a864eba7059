/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of the log with its index: collects records, writes them together, finds them by key and
 * reads them in sequence. Must not care about other processes: the caller holds the right lock.
 * Functions return −errno on failure, −EBADMSG for bytes that are not ours (bad_at), −EUCLEAN if
 * the index points to where no record can be.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_FILE_H
#define LEASEHOLD_STORE_LOG_LOG_FILE_H

#include "store/log/hash_index.h"
#include "store/log/log_format.h"

enum {
    LOG_FILE_BUFFER = 256 * 1024, /* for collected records, and for reading */
    LOG_FILE_PENDING = 512,       /* maximum number of collected records */
};

struct log_file {
    const struct disk *disk;
    int file; /* or −errno */
    struct log_header header;
    struct hash_index index;
    uint64_t end, chain; /* including collected records */
    uint64_t last;       /* offset of the record with the chain's checksum, or 0 */
    uint64_t written;    /* the file has everything up to here */
    uint64_t kept;       /* the buffer also has everything from here on */
    uint64_t bad_at;
    size_t pending_count;
    struct slot pending[LOG_FILE_PENDING];
    unsigned char *buffer;  /* the records written last, then the collected ones */
    unsigned char *scratch; /* for one record */
};

/* False if out of memory; log_file_done() is still required. */
bool log_file_init(struct log_file *file, const struct disk *disk);
void log_file_done(struct log_file *file);

/* Opens the current file, without its index. Returns 0 with LOG_READ_OK, FOREIGN or NEWER. */
int log_file_open(struct log_file *file, enum log_reading *out_reading);
/* Creates a new file with this header, under the suffix. */
int log_file_make(struct log_file *file, const char *suffix, const struct log_header *header);
/* Continues at this offset, with nothing collected. */
void log_file_seek(struct log_file *file, uint64_t end, uint64_t chain);
int log_file_fill(struct log_file *file, uint64_t from, uint64_t end); /* with zeros */

/* Collects a record that fits, and sets its offset and chain; log_file_write() writes them. */
bool log_file_fits(const struct log_file *file, size_t size);
void log_file_add(struct log_file *file, struct log_record *record);
int log_file_write(struct log_file *file);
void log_file_add_host(struct log_file *file, const struct log_host *host,
                       const struct stamp *written, uint64_t file_length);
/* Writes collected records, zeros up to `length` and the header, and syncs. */
int log_file_complete(struct log_file *file, uint64_t length);

/* Finds where the bytes after the end, up to `limit`, stop. −EBADMSG if an intact record among them
 * states that the bytes at the end had been synced. */
int log_file_scan_tail(struct log_file *file, uint64_t limit, uint64_t *out_last);

/* The bytes are valid until the next call. A LOG_ERASE at 0 for a key without any record. */
int log_file_read(struct log_file *file, uint64_t offset, struct log_record *out);
int log_file_find(struct log_file *file, const char *key, size_t length, struct log_record *out);
uint64_t log_file_hash(const char *key, size_t length);

/* Reads the records of a file up to a limit; bytes after it may still be written. */
struct log_reader {
    const struct disk *disk;
    int file;
    uint64_t generation, at, limit;
    int error; /* of the last read, or 0 */
    uint64_t start;
    size_t filled;
    unsigned char *buffer;
};

/* False if out of memory; log_reader_done() is still required. */
bool log_reader_init(struct log_reader *reader, const struct log_file *file, uint64_t limit);
void log_reader_done(struct log_reader *reader);
/* Returns LOG_READ_NOTHING at the limit. */
enum log_reading log_reader_next(struct log_reader *reader, struct log_record *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The written form of the embedded store's log. Pure: bytes in, what they say out; whether a bad
 * spot is a torn tail or damage is decided by who reads the file (store/log/log_recover.c).
 *
 * file    header sector, zeros up to LOG_START, records, zeros up to the end
 * header  magic, version, generation, the host and boot that made it, the length that the file had
 *         by then, the highest revision given before; never written again
 * record  head, key, bytes, zeros up to a multiple of 8
 *
 * A record's checksum covers the generation, its own place, the checksum of the record before it
 * and all of its bytes: it can be believed alone, wherever it is found, and nothing of another
 * generation or of a past that was cut can be read as a continuation. The first record chains the
 * generation's number. Each record also says up to
 * where the file was known to be synced, and how long it was, when it was written. Numbers are
 * little-endian. Unused bytes are zero and looked at.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_FORMAT_H
#define LEASEHOLD_STORE_LOG_LOG_FORMAT_H

#include "core/record.h"
#include "store/log/log_host.h"

enum {
    LOG_VERSION = 1,
    LOG_HEADER = 512,
    LOG_START = 4096,
    LOG_ALIGN = 8,
    LOG_HEAD = 64,
    LOG_RECORD_MOST = LOG_HEAD + KEY_MAX + RECORD_MAX, /* a multiple of LOG_ALIGN */
    LOG_UNIT = 4096,                                   /* lengths of the file are counted in it */
    LOG_SLOTS_LEAST = 8,                               /* of the index … */
    LOG_SLOTS_MOST = 1 << 28, /* … a file of two gigabytes, mostly holes */
    /* The token ceiling: a record that is synced promises that no revision above its own plus this
     * is given before a later one is synced. After a cut, revisions go on above the promise. */
    LOG_AHEAD = 65536,
};

#define LOG_GENERATION_MAX (((uint64_t)1 << 20) - 1)
#define LOG_OFFSET_MAX     (((uint64_t)1 << 44) - 1)

struct log_header {
    uint32_t version;
    uint64_t generation;
    uint32_t slots;   /* of its index */
    uint64_t length;  /* the file is never shorter */
    uint64_t tail;    /* the first record that is no copy from the generation before */
    uint64_t ceiling; /* no revision up to it is given any more */
    unsigned char machine[LOG_ID], boot[LOG_ID];
};

enum log_type {
    LOG_PUT = 1,
    LOG_ERASE,
    LOG_HOST, /* from here on, times belong to another boot or host */
    LOG_SEAL, /* the generation ends here: the next one has its name */
};

struct log_record {
    enum log_type type;
    const char *key; /* without a NUL; none for home and seal */
    size_t key_length;
    const char *bytes; /* for put and home */
    size_t length;
    struct stamp written;
    uint64_t offset;   /* its place; filled in by whoever reads or writes it */
    uint64_t previous; /* the offset of the key's record before this one, or 0 */
    uint64_t synced;   /* all below it was on the disk when this was written */
    uint64_t file_length;
    uint64_t chain;    /* the checksum before … */
    uint64_t checksum; /* … and its own */
};

enum log_reading {
    LOG_READ_OK,
    LOG_READ_NOTHING, /* zeros: never written */
    LOG_READ_SHORT,   /* the bytes end before the record does */
    LOG_READ_BAD,
    LOG_READ_FOREIGN, /* no file of ours */
    LOG_READ_NEWER,   /* of a version that we do not know; it alone is filled in */
    LOG_READ_UNKNOWN, /* intact, but of a type that we do not know */
};

void log_header_encode(const struct log_header *header, unsigned char *sector);
enum log_reading log_header_decode(const unsigned char *sector, struct log_header *out);

size_t log_record_size(size_t key_length, size_t length);
/* For its offset; fills in the checksum. The caller keeps the limits. */
void log_record_encode(struct log_record *record, uint64_t generation, unsigned char *bytes);
/* Is there an intact record at this offset, whatever it chains? Only then is `out` filled in. */
enum log_reading log_record_decode(const unsigned char *bytes, size_t length, uint64_t offset,
                                   uint64_t generation, struct log_record *out);

#endif

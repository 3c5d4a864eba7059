/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte format of the embedded store's log. Pure. Must not decide whether unreadable bytes are a
 * torn tail or damage; log_recover.c does.
 *
 * file    header sector, zeros up to LOG_START, records, zeros up to the end
 * header  magic, version, generation, the host and boot that made it, the file's length at that
 *         time, the highest revision used before; never rewritten
 * record  head, key, bytes, zeros up to a multiple of 8
 *
 * A record's checksum covers the generation, its own offset, the checksum of the previous record
 * and all of its bytes. So a record can be verified alone, and nothing of another generation or of
 * a cut tail can be read as a continuation. The first record chains the generation's number. Each
 * record also states the synced offset and the file's length at the time of the write. Numbers are
 * little-endian. Unused bytes are zero and checked.
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
    LOG_UNIT = 4096,                                   /* the unit of file lengths */
    LOG_SLOTS_LEAST = 8,                               /* of the index … */
    LOG_SLOTS_MOST = 1 << 28, /* … a file of two gigabytes, mostly holes */
    /* The token ceiling: no revision above that of a synced record plus this is used before a later
     * record is synced. After a cut, revisions continue above that bound. */
    LOG_AHEAD = 65536,
};

#define LOG_GENERATION_MAX (((uint64_t)1 << 20) - 1)
#define LOG_OFFSET_MAX     (((uint64_t)1 << 44) - 1)

struct log_header {
    uint32_t version;
    uint64_t generation;
    uint32_t slots;   /* of its index */
    uint64_t length;  /* the minimum length of the file */
    uint64_t tail;    /* the first record that is not a copy from the previous generation */
    uint64_t ceiling; /* revisions up to this one are used up */
    unsigned char machine[LOG_ID], boot[LOG_ID];
};

enum log_type {
    LOG_PUT = 1,
    LOG_ERASE,
    LOG_HOST, /* from here on, times belong to another boot or host */
    LOG_SEAL, /* the generation ends here; the next one has replaced the file */
};

struct log_record {
    enum log_type type;
    const char *key; /* without a NUL; none for LOG_HOST and LOG_SEAL */
    size_t key_length;
    const char *bytes; /* for LOG_PUT and LOG_HOST */
    size_t length;
    struct stamp written;
    uint64_t offset;   /* set by the code that reads or writes the record */
    uint64_t previous; /* the offset of the key's record before this one, or 0 */
    uint64_t synced;   /* everything below was synced when this was written */
    uint64_t file_length;
    uint64_t chain;    /* the previous record's checksum … */
    uint64_t checksum; /* … and its own */
};

enum log_reading {
    LOG_READ_OK,
    LOG_READ_NOTHING, /* zeros: never written */
    LOG_READ_SHORT,   /* the bytes end before the record does */
    LOG_READ_BAD,
    LOG_READ_FOREIGN, /* no file of ours */
    LOG_READ_NEWER,   /* of an unsupported version; only the version is set */
    LOG_READ_UNKNOWN, /* intact, but of an unsupported type */
};

void log_header_encode(const struct log_header *header, unsigned char *sector);
enum log_reading log_header_decode(const unsigned char *sector, struct log_header *out);

size_t log_record_size(size_t key_length, size_t length);
/* Encodes for `offset` and sets the checksum. The caller checks the limits. */
void log_record_encode(struct log_record *record, uint64_t generation, unsigned char *bytes);
/* Decodes an intact record at this offset, whatever it chains to. Otherwise `out` is not set. */
enum log_reading log_record_decode(const unsigned char *bytes, size_t length, uint64_t offset,
                                   uint64_t generation, struct log_record *out);

void log_host_encode(const struct log_host *host, unsigned char *bytes);
/* False if no version of ours writes such bytes. */
bool log_host_decode(const unsigned char *bytes, struct log_host *out);

#endif

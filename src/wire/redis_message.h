/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients of leasehold say to each other in Redis. Whoever may publish there may say anything:
 * what is not as it should be is told apart here, and nothing is copied.
 *
 *   a record:          "<revision> <time> <its bytes>"
 *   of every change:   "<revision> <name of the record>"; a delete has the revision 0
 *   to whom it names:  "<name of the record>", alone or with "\n<record>" behind
 */
#ifndef LEASEHOLD_WIRE_REDIS_MESSAGE_H
#define LEASEHOLD_WIRE_REDIS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of a record's bytes behind `from`; 0 when it is no record. */
size_t redis_record_read(const char *message, size_t length, size_t from, uint64_t *out_revision,
                         int64_t *out_time_ms);

/* The name is what stands behind `*out_name`. */
bool redis_change_read(const char *message, size_t length, uint64_t *out_revision,
                       size_t *out_name);

struct redis_notice {
    size_t name_length; /* at the beginning */
    bool has_record;    /* what stands, too */
    uint64_t revision;
    int64_t time_ms;
    const char *bytes;
    size_t length;
};

struct redis_notice redis_notice_read(const char *message, size_t length);

#endif

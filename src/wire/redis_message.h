/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between leasehold clients in Redis. Any client that may publish can send anything, so
 * malformed messages are detected here. Nothing is copied.
 *
 * A revision is written with its epoch, as stamp_order().
 *
 *   a record:             "<revision> <time> <its bytes>"
 *   a sole grant:         "leasehold:<record>", as the value of the plain name
 *   on every change:      "<revision> <name of the record>"; a delete has the revision 0
 *   to a session to wake: "<name of the record>", alone or followed by "\n<record>"
 */
#ifndef LEASEHOLD_WIRE_REDIS_MESSAGE_H
#define LEASEHOLD_WIRE_REDIS_MESSAGE_H

#include "core/record.h"

/* The offset of a record's bytes after `from`; 0 if it is not a record. */
size_t redis_record_read(const char *message, size_t length, size_t from, struct stamp *out);

/* The offset of the record in the value of a plain name; 0 if it is not a sole grant. */
size_t redis_sole_read(const char *value, size_t length);

/* The name begins at `*out_name`. */
bool redis_change_read(const char *message, size_t length, uint64_t *out_revision,
                       size_t *out_name);

struct redis_notice {
    size_t name_length; /* at the start */
    bool has_record;    /* the current record follows */
    struct stamp written;
    const char *bytes;
    size_t length;
};

struct redis_notice redis_notice_read(const char *message, size_t length);

#endif

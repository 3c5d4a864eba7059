/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a log lives: which host and boot its times belong to, and since when. Pure. The store's
 * clock is `base_ms` plus the host's clock since its boot; it never goes back, whatever boot, host
 * or time of day the log is found in next.
 */
#ifndef LEASEHOLD_STORE_LOG_LOG_HOST_H
#define LEASEHOLD_STORE_LOG_LOG_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_ID = 16, LOG_HOST_BYTES = 2 * LOG_ID + 24 };

struct log_host {
    unsigned char machine[LOG_ID], boot[LOG_ID];
    int64_t base_ms;
    uint64_t foreign_before; /* revisions below were written where we cannot see who lives */
    uint16_t epoch;
};

/* What a log that is opened says of its past, and what its host says now. */
struct log_host_change {
    bool existed;         /* somewhere, before */
    bool unseen;          /* the locks of those who live are not the ones that we see */
    struct log_host last; /* then */
    int64_t time_ms;      /* the latest in the log */
    uint64_t revision;    /* likewise */
    int64_t boot_ms, wall_ms;
    unsigned char machine[LOG_ID], boot[LOG_ID];
};

struct log_host log_host_next(const struct log_host_change *move);

void log_host_encode(const struct log_host *host, unsigned char *bytes);
/* False when nobody can have written that. */
bool log_host_decode(const unsigned char *bytes, struct log_host *out);

#endif

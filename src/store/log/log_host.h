/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host and boot that a log's times belong to. Pure. The store's clock is `base_ms` plus the
 * host's time since boot. It must never go back, in whatever boot, on whatever host and at whatever
 * time of day the log is opened next.
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
    uint64_t foreign_before; /* older revisions were written where we cannot check liveness */
    uint16_t epoch;
};

/* The state in an opened log, and the state of the host now. */
struct log_host_change {
    bool existed;         /* the log was in use before */
    bool unseen;          /* the locks of live sessions are not visible to us */
    struct log_host last; /* the last LOG_HOST in the log */
    int64_t time_ms;      /* the latest in the log */
    uint64_t revision;    /* the latest in the log */
    int64_t boot_ms, wall_ms;
    unsigned char machine[LOG_ID], boot[LOG_ID];
};

struct log_host log_host_next(const struct log_host_change *move);

#endif

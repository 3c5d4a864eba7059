/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource side of fencing: a log, next to the resource, of the highest token admitted per key.
 * A writer with a lower token is rejected and changes nothing. An admitted writer has exclusive
 * access until the last process with its descriptor open exits, so nothing happens between check
 * and write. Must not depend on leases or on the store of the locks.
 */
#ifndef LEASEHOLD_STORE_FENCE_H
#define LEASEHOLD_STORE_FENCE_H

#include "store/log/log.h"

enum fence_result {
    FENCE_OK,
    FENCE_STALE,  /* a higher token was admitted before */
    FENCE_HELD,   /* another writer was admitted and has not finished */
    FENCE_TROUBLE /* the highest token cannot be read, so no writer is admitted */
};

struct fence {
    struct log_options options;
    struct log *log;
    int held; /* the open file whose lock excludes other writers, or −1 */
};

/* Returns FENCE_OK, or FENCE_TROUBLE with `why` set and nothing to close. */
enum fence_result fence_open(struct fence *out, const struct disk *disk, const struct host_ids *ids,
                             struct text *why);
/* Releases the exclusion, unless a copy of the descriptor is open elsewhere. */
void fence_close(struct fence *fence);

/*
 * Waits for the current writer until the deadline. After FENCE_OK the token is synced, and `held`
 * excludes other writers of this key. `out_highest` is the highest token before this call, or 0.
 */
enum fence_result fence_enter(struct fence *fence, const char *key, uint64_t token,
                              int64_t deadline_ms, uint64_t *out_highest, struct text *why);
/* Compacts the log if due. A failure is not reported: it recurs in the next call that needs it. */
void fence_maintain(struct fence *fence);

#endif

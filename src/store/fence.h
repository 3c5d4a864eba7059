/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded side of fencing: for each key the highest token that was let in, in a log of its own
 * beside what it guards. Who comes with a lower one is too late and changes nothing. Who is let in
 * has the key's guard for itself until the last process that has its descriptor open is gone, so
 * nothing can happen between the look and the write. Knows nothing of leases or stores of locks.
 */
#ifndef LEASEHOLD_STORE_FENCE_H
#define LEASEHOLD_STORE_FENCE_H

#include "store/log/log.h"

enum fence_result {
    FENCE_OK,
    FENCE_STALE,  /* a higher token was here */
    FENCE_HELD,   /* somebody else was let in and is still at it */
    FENCE_TROUBLE /* nobody knows which tokens were seen: nobody is let in */
};

struct fence {
    struct log_options options;
    struct log *log;
    int held; /* the open file that keeps others out, or −1 */
};

/* FENCE_OK or FENCE_TROUBLE; then `why` says it, and there is nothing to close. */
enum fence_result fence_open(struct fence *out, const struct disk *disk, const struct host_ids *ids,
                             struct text *why);
/* Lets go, unless a copy of the descriptor is open elsewhere. */
void fence_close(struct fence *fence);

/*
 * Waits until the deadline for whoever is in. FENCE_OK: the token is on the disk, and `held` keeps
 * others with this key out. `out_highest` is what was there, 0 when nobody was.
 */
enum fence_result fence_enter(struct fence *fence, const char *key, uint64_t token,
                              int64_t deadline_ms, uint64_t *out_highest, struct text *why);
/* Compacts the log when it is time. What fails here fails again, with words, for whoever needs it.
 */
void fence_maintain(struct fence *fence);

#endif

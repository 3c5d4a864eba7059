/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lock guards, and who sees it broken: words that are changed without atomics inside a
 * section, and differ only there. They may lie in memory that processes share. Nothing here asks
 * the store.
 */
#ifndef LEASEHOLD_TESTS_GUARDED_H
#define LEASEHOLD_TESTS_GUARDED_H

#include "leasehold.h"

#include <stdatomic.h>

struct guarded {
    atomic_int inside;
    uint64_t last_token, first, second;
};

struct guarded_counts {
    atomic_uint overlaps, torn, shrunk, unheld;
};

/* Without a lease nothing is held, and only the section itself is looked at. */
void guarded_enter(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts);
void guarded_leave(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts);

#endif

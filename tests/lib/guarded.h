/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that a lock protects, and the check that it does: numbers that are changed without atomics
 * inside a section, and differ only there. May be in memory shared by processes. Does not use the
 * store.
 */
#ifndef LEASEHOLD_TESTS_GUARDED_H
#define LEASEHOLD_TESTS_GUARDED_H

#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <stdatomic.h>

struct guarded {
    atomic_int inside;
    uint64_t last_token, first, second;
};

struct guarded_counts {
    atomic_uint overlaps, torn, shrunk, unheld;
};

/* With NULL instead of a lease only the section itself is checked. */
void guarded_enter(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts);
void guarded_leave(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts);

#endif

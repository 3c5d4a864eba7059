/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock goes from one process to the next in line and back, through the public calls, beside the
 * cheapest write that the same server can do.
 */
#ifndef LEASEHOLD_TESTS_BENCH_HAND_OFF_H
#define LEASEHOLD_TESTS_BENCH_HAND_OFF_H

#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <stdbool.h>

struct hand_off_setup {
    const char *store, *url;
    const char *cheapest; /* the write in words … */
    /* … and how it is done, each process by a connection of its own. */
    void *(*connect)(const void *owner);
    void (*write)(void *connection);
    void (*disconnect)(void *connection);
    const void *owner;
    int handovers; /* a round */
};

/* From the release to the next one's grant: at most two such writes is the aim. */
void hand_off_measure(const struct hand_off_setup *setup);

/* A client whose loop is the caller's. */
struct lh_client *hand_off_open(const char *url, lh_event_fn *on_event, void *user);
struct lh_lease *hand_off_acquire(struct lh_client *client, const char *wanted);
void hand_off_release(struct lh_lease *lease);

#endif

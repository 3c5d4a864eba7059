/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock moves from one process to the next waiter and back, through the public calls, compared
 * with the cheapest write on the same server.
 */
#ifndef LEASEHOLD_TESTS_BENCH_HAND_OFF_H
#define LEASEHOLD_TESTS_BENCH_HAND_OFF_H

#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <stdbool.h>

struct hand_off_setup {
    const char *store, *url;
    const char *cheapest; /* name of the write … */
    /* … and its function; each process has a connection of its own. */
    void *(*connect)(const void *owner);
    void (*write)(void *connection);
    void (*disconnect)(void *connection);
    const void *owner;
    int handovers; /* a round */
};

/* From the release to the next grant; the aim is at most two such writes. */
void hand_off_measure(const struct hand_off_setup *setup);

/* A client on the caller's loop. */
struct lh_client *hand_off_open(const char *url, lh_event_fn *on_event, void *user);
struct lh_lease *hand_off_acquire(struct lh_client *client, const char *wanted);
void hand_off_release(struct lh_lease *lease);

#endif

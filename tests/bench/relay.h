/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock goes from one process to the next in line and back, through the public calls, beside the
 * cheapest write that the same server can do.
 */
#ifndef LEASEHOLD_TESTS_RELAY_H
#define LEASEHOLD_TESTS_RELAY_H

#include "leasehold.h"

#include <stdbool.h>

struct relay_site {
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
void relay_measure(const struct relay_site *site);

/* A client whose loop is the caller's. */
struct lh_client *relay_sit_down(const char *url, lh_event_fn *on_event, void *user);
struct lh_lease *relay_take(struct lh_client *client, const char *wanted);
void relay_give(struct lh_lease *lease);

#endif

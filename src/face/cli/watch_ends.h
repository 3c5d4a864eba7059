/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of leases and cooldowns that `watch` has seen. A store reports writes only, and an end
 * is not a write: when its time has come, the key is queried, and the end is reported only if no
 * write can have caused it.
 */
#ifndef LEASEHOLD_FACE_CLI_WATCH_ENDS_H
#define LEASEHOLD_FACE_CLI_WATCH_ENDS_H

#include "face/cli/cli.h"

enum { WATCH_ENDS_MAX = 16384 };

struct watch_end {
    char *key, *holder;
    enum lh_state state; /* held, cooling or delayed; free: the key changed during the list */
    uint64_t token;      /* of a holder, otherwise 0 */
    uint64_t revision;   /* of the record that it was read from */
    int64_t at_ms;       /* the end by the clock of the store, ms since 1970; -1: unknown */
    int64_t check_at_ms; /* the next query, on the boot clock */
    bool settles;        /* it is over, but a write may have been the cause: wait for its event */
};

/* Called for each end that no write has caused, with the present state of the key. */
typedef void watch_end_fn(void *user, const struct watch_end *end, const struct lh_view *view);

struct watch_ends {
    struct watch_end *ends;
    size_t count, room;
    bool listing, full; /* during watch_ends_list(); some ends are not watched */
    watch_end_fn *fn;
    void *user;
};

/* Takes up the keys that are held already. False with a report on failure. */
bool watch_ends_list(struct watch_ends *ends, struct lh_client *client, const char *prefix,
                     struct lh_report *report);
/* A key has changed: reports the leases that ended before, and watches those of the view. */
void watch_ends_change(struct watch_ends *ends, const struct lh_view *view);
/* The time until watch_ends_check(); -1: nothing to do. */
int64_t watch_ends_pause_ms(const struct watch_ends *ends);
/* Queries the keys whose time has come. Blocks, and may receive changes. */
void watch_ends_check(struct watch_ends *ends, struct lh_client *client);
void watch_ends_done(struct watch_ends *ends);

#endif

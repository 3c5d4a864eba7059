/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchers of a store: the prefix of each, and where its replies go. A driver adds a watcher,
 * confirms it once no later change can be missed, delivers changes, and ends all watchers when
 * changes may be missing. Callbacks may add watchers, end them all or close the store.
 */
#ifndef LEASEHOLD_STORE_WATCHERS_H
#define LEASEHOLD_STORE_WATCHERS_H

#include "base/list.h"
#include "store/store.h"

enum { WATCHERS_MAX = 1024 };

struct watcher {
    struct list_node node;
    store_done *done;
    void *caller;
    bool confirmed;
    uint64_t after; /* for the driver: the revision at which the watch began */
    size_t length;
    char prefix[];
};

/* Zeroed: there are none. */
struct watchers {
    struct list all; /* in order of arrival */
    size_t count;
    uint64_t ends; /* how often all were ended */
};

/* NULL, after a reply with REPLY_TROUBLE, if there are too many or memory is exhausted. */
struct watcher *watchers_add(struct watchers *watchers, const char *prefix, store_done *done,
                             void *caller);
/* Sends the reply, with `more`, to those that have not been confirmed. */
void watchers_confirm(struct watchers *watchers, const struct store_reply *reply);
/* Ends all with this reply; watchers that a callback adds stay. */
void watchers_end(struct watchers *watchers, const struct store_reply *last);
/* Removes all; they get no reply. */
void watchers_done(struct watchers *watchers);

/* The confirmed watchers of a key, one by one. Those that a callback adds are left out. */
struct watchers_walk {
    struct watchers *watchers;
    const char *key;
    struct watcher *at;
    size_t left;
    uint64_t ends;
};

struct watchers_walk watchers_walk(struct watchers *watchers, const char *key);
bool watchers_next(struct watchers_walk *walk);
/* Sends a change to the current one; sets `key` and `more`. */
void watchers_deliver(const struct watchers_walk *walk, struct store_reply *reply);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the records of some keys, kept current by a watch of the store, so that a query needs
 * no request. A copy starts with a read that is sent while the watch is established. It is dropped
 * when the watch ends, when it is too old, or when others need its space. Must never be the base of
 * a grant: a copy may be stale. Makes no system call.
 */
#ifndef LEASEHOLD_RUNTIME_WATCH_CACHE_H
#define LEASEHOLD_RUNTIME_WATCH_CACHE_H

#include "runtime/record_cache.h"

/* The maximum staleness of a copy, if the watch stalls without ending. */
#define WATCH_CACHE_MAX_AGE_MS ((int64_t)30000)

enum { WATCH_CACHE_KEYS_MAX = 1024, WATCH_CACHE_BYTES_MAX = 4 * 1024 * 1024 };

struct watch_cache_entry {
    struct table_node node;
    struct list_node in_lru;
    struct saved_reply *saved_reply; /* NULL: a read is in flight */
    int64_t received_at_ms;          /* on the user's clock */
    uint64_t touched;                /* sequence number of its start or last change */
    char key[];
};

struct watch_cache {
    struct table table;
    struct list lru; /* the newest first */
    size_t bytes;
    uint64_t count;
};

/* False when out of memory. */
bool watch_cache_init(struct watch_cache *watch_cache);
void watch_cache_done(struct watch_cache *watch_cache);

/* NULL if there is none, or it is too old. */
const struct watch_cache_entry *watch_cache_find(struct watch_cache *watch_cache, const char *key,
                                                 int64_t now_ms);
/* A read is about to be sent, and the watch is established. The result is for
 * watch_cache_end_read(); 0: out of memory. */
uint64_t watch_cache_begin_read(struct watch_cache *watch_cache, const char *key);
/* The reply to the read. Dropped if the watch has reported the key since: that may be newer. */
void watch_cache_end_read(struct watch_cache *watch_cache, const char *key, uint64_t begun,
                          const struct store_reply *reply, int64_t now_ms);
/* A change reported by the watch, with its key. Only keys that were read before are updated: a
 * reader may have to write state first that the store does not have yet. */
void watch_cache_on_change(struct watch_cache *watch_cache, const struct store_reply *reply,
                           int64_t now_ms);
/* The watch has ended, or missed a change. */
void watch_cache_clear(struct watch_cache *watch_cache);

#endif

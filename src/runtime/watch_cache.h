/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of what stands under some keys, kept current by a watch of the store: for looks that ask
 * nobody. A copy is begun by a read that is sent while the watch stands, and is gone when the watch
 * has ended, when it was not heard of for long, or when others need its room. Never the base of a
 * grant: what a copy says is old by the time it is read. Makes no system call.
 */
#ifndef LEASEHOLD_RUNTIME_WATCH_CACHE_H
#define LEASEHOLD_RUNTIME_WATCH_CACHE_H

#include "runtime/record_cache.h"

/* By so much a copy can be behind at most, should the watch be silent without having ended. */
#define WATCH_CACHE_MAX_AGE_MS ((int64_t)30000)

enum { WATCH_CACHE_KEYS_MAX = 1024, WATCH_CACHE_BYTES_MAX = 4 * 1024 * 1024 };

struct watch_cache_entry {
    struct table_node node;
    struct watch_cache_entry *newer, *older; /* by their use */
    struct saved_reply *saved_reply;         /* NULL: the store is being asked */
    int64_t received_at_ms;                  /* on the user's clock */
    uint64_t touched;                        /* when it was begun or last told of, as a count */
    char key[];
};

struct watch_cache {
    struct table table;
    struct watch_cache_entry *newest, *oldest;
    size_t bytes;
    uint64_t count;
};

/* False when out of memory. */
bool watch_cache_init(struct watch_cache *watch_cache);
void watch_cache_done(struct watch_cache *watch_cache);

/* NULL when there is none, or it is too old to be believed. */
const struct watch_cache_entry *watch_cache_find(struct watch_cache *watch_cache, const char *key,
                                                 int64_t now_ms);
/* The store is about to be asked, and the watch stands. To be given to watch_cache_end_read(); 0:
 * out of memory. */
uint64_t watch_cache_begin_read(struct watch_cache *watch_cache, const char *key);
/* It answered. Not kept when the watch told of the key meanwhile: that may be newer. */
void watch_cache_end_read(struct watch_cache *watch_cache, const char *key, uint64_t begun,
                          const struct store_reply *reply, int64_t now_ms);
/* What the watch tells, with its key. Only what was read once is followed: whoever asks may have
 * to write down first what the store does not know yet. */
void watch_cache_on_change(struct watch_cache *watch_cache, const struct store_reply *reply,
                           int64_t now_ms);
/* The watch has ended, or missed a change. */
void watch_cache_clear(struct watch_cache *watch_cache);

#endif

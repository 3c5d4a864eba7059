/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of its keys that a process caches from lease to lease: the last reply of the store, as
 * encoded bytes, and since when a record was observed unchanged. Any of it may be stale or evicted:
 * then the store is queried, or a wait starts again. Bounded, with LRU eviction.
 */
#ifndef LEASEHOLD_RUNTIME_RECORD_CACHE_H
#define LEASEHOLD_RUNTIME_RECORD_CACHE_H

#include "base/list.h"
#include "runtime/table.h"
#include "store/store.h"

enum {
    RECORD_CACHE_BYTES_MAX = 4 * 1024 * 1024,
    /* Of a store that replies at once: a copy saves little there, and should stay in the CPU's
     * cache. */
    RECORD_CACHE_BYTES_AT_ONCE = 64 * 1024,
};

/* A reply of the store with copies of all that it points to. */
struct saved_reply {
    size_t size;
    int64_t saved_at_ms; /* set by the owner of the cache; 0: unknown */
    struct store_reply reply;
    uint64_t storage[];
};

/* NULL when out of memory. */
struct saved_reply *saved_reply_new(const struct store_reply *reply);

/* Observations without their unused slots. */
struct saved_observations {
    uint64_t offer;
    int64_t offer_since_ms;
    size_t count;
    struct observation observed[];
};

struct record_cache_entry {
    struct table_node node;
    struct list_node in_lru;
    bool listed;   /* in the LRU list … */
    size_t weight; /* … with this size in bytes */
    size_t users;
    struct list user_list; /* owned by the user of the cache */
    bool others_wait;      /* a waiter of another process was in the queue … */
    uint64_t others_order; /* … at this write, by its stamp_order(); outlives the copy */
    struct saved_reply *saved_reply;
    struct saved_observations *observed;
    char key[];
};

struct record_cache {
    struct table table;
    struct list lru; /* the newest first */
    size_t bytes, copies, bytes_max;
};

/* False when out of memory. */
bool record_cache_init(struct record_cache *record_cache, size_t bytes_max);
void record_cache_done(struct record_cache *record_cache);

/* NULL if the key is not cached. */
struct record_cache_entry *record_cache_find(const struct record_cache *record_cache,
                                             const char *key);
/* The key's entry, made if there is none. Each call needs one record_cache_unref(). NULL when out
 * of memory. */
struct record_cache_entry *record_cache_ref(struct record_cache *record_cache, const char *key);
void record_cache_unref(struct record_cache *record_cache, struct record_cache_entry *entry);

/* The entry takes ownership of the copy. NULL: the current record is unknown. */
void record_cache_set(struct record_cache *record_cache, struct record_cache_entry *entry,
                      struct saved_reply *saved_reply);
void record_cache_load_observations(const struct record_cache_entry *entry,
                                    struct observations *out);
void record_cache_save_observations(struct record_cache_entry *entry,
                                    const struct observations *observations);

#endif

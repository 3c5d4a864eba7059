/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows of its keys, from lease to lease: what the store last said, as encoded
 * bytes, and what was seen unchanged since when. All of it may be old, and any of it may be
 * forgotten: then the store is asked, or a wait begins anew. Bounded; the longest unused goes
 * first.
 */
#ifndef LEASEHOLD_RUNTIME_RECORD_CACHE_H
#define LEASEHOLD_RUNTIME_RECORD_CACHE_H

#include "runtime/table.h"
#include "store/store.h"

enum { RECORD_CACHE_BYTES_MAX = 4 * 1024 * 1024 };

/* An answer of the store with copies of all that it points to. */
struct saved_reply {
    size_t size;
    struct store_reply reply;
    uint64_t storage[];
};

/* NULL when out of memory. */
struct saved_reply *saved_reply_new(const struct store_reply *reply);

/* A sighting without its empty room. */
struct saved_observations {
    uint64_t offer;
    int64_t offer_since_ms;
    size_t count;
    struct observation observed[];
};

struct record_cache_entry {
    struct table_node node;
    struct record_cache_entry *newer, *older;
    bool listed;   /* in the order of use … */
    size_t weight; /* … with so many bytes */
    size_t users;
    void *first_user; /* the user's own */
    bool others_wait; /* somebody of another process was in line … */
    uint16_t others_epoch;
    uint64_t others_revision; /* … at this one; outlives the copy */
    struct saved_reply *saved_reply;
    struct saved_observations *observed;
    char key[];
};

struct record_cache {
    struct table table;
    struct record_cache_entry *newest, *oldest;
    size_t bytes, copies;
};

/* False when out of memory. */
bool record_cache_init(struct record_cache *record_cache);
void record_cache_done(struct record_cache *record_cache);

/* NULL when nothing is known. */
struct record_cache_entry *record_cache_find(const struct record_cache *record_cache,
                                             const char *key);
/* The key's entry, made when there is none; it stays until it is returned as often as it was used.
 * NULL when out of memory. */
struct record_cache_entry *record_cache_ref(struct record_cache *record_cache, const char *key);
void record_cache_unref(struct record_cache *record_cache, struct record_cache_entry *entry);

/* The entry owns the copy then. NULL: what stands there is not known any more. */
void record_cache_set(struct record_cache *record_cache, struct record_cache_entry *entry,
                      struct saved_reply *saved_reply);
void record_cache_load_observations(const struct record_cache_entry *entry,
                                    struct observations *out);
void record_cache_save_observations(struct record_cache_entry *entry,
                                    const struct observations *observations);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows of its keys, from lease to lease: what the store last said, as encoded
 * bytes, and what was seen unchanged since when. All of it may be old, and any of it may be
 * forgotten: then the store is asked, or a wait begins anew. Bounded; the longest unused goes
 * first.
 */
#ifndef LEASEHOLD_RUNTIME_KNOWLEDGE_H
#define LEASEHOLD_RUNTIME_KNOWLEDGE_H

#include "runtime/table.h"
#include "store/store.h"

enum { KNOWN_BYTES_MAX = 4 * 1024 * 1024 };

/* An answer of the store with copies of all that it points to. */
struct heard {
    size_t size;
    struct store_answer answer;
    uint64_t words[];
};

/* NULL when memory is short. */
struct heard *heard_new(const struct store_answer *answer);

/* A sighting without its empty room. */
struct kept_sights {
    uint64_t offer;
    int64_t offer_since_ms;
    size_t count;
    struct sight sights[];
};

struct known {
    struct table_node node;
    struct known *newer, *older;
    bool listed;   /* in the order of use … */
    size_t weight; /* … with so many bytes */
    size_t users;
    void *first_user; /* the user's own */
    bool others_wait; /* somebody of another process was in line … */
    uint16_t others_epoch;
    uint64_t others_revision; /* … at this one; outlives the copy */
    struct heard *heard;
    struct kept_sights *sights;
    char key[];
};

struct knowledge {
    struct table table;
    struct known *newest, *oldest;
    size_t bytes, copies;
};

/* False when memory is short. */
bool knowledge_init(struct knowledge *knowledge);
void knowledge_done(struct knowledge *knowledge);

/* NULL when nothing is known. */
struct known *knowledge_find(const struct knowledge *knowledge, const char *key);
/* The key's entry, made when there is none; it stays until it is returned as often as it was used.
 * NULL when memory is short. */
struct known *knowledge_use(struct knowledge *knowledge, const char *key);
void knowledge_return(struct knowledge *knowledge, struct known *known);

/* The entry owns the copy then. NULL: what stands there is not known any more. */
void knowledge_hear(struct knowledge *knowledge, struct known *known, struct heard *heard);
void knowledge_load_sights(const struct known *known, struct sighting *out);
void knowledge_save_sights(struct known *known, const struct sighting *sighting);

#endif

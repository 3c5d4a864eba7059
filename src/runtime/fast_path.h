/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path: uncontended locks inside one process. A hold is a node in a table, acquired and
 * released in the caller's own thread without the local queue, the core or the store. Its only
 * rule: a key that is not in the table is free. If any other operation needs the key, the event
 * loop marks it: a hold then leaves the table and is promoted to a real grant, to which the lease
 * rules apply.
 *
 * The table has shards, each with its own mutex, so that threads with different keys do not
 * contend. Only for a store that no other process can reach.
 */
#ifndef LEASEHOLD_RUNTIME_FAST_PATH_H
#define LEASEHOLD_RUNTIME_FAST_PATH_H

#include "wire/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fast_path;

/* False only in a program of make bench that measures what metrics cost. */
#ifdef LH_UNCOUNTED
#define FAST_PATH_TIMES false
#else
#define FAST_PATH_TIMES true
#endif

/* A hold or a mark, in its chain. */
struct fast_path_node {
    struct fast_path_node *next;
    uint64_t hash;
    const char *key;
    uint64_t revision; /* of a hold: makes its token, like a write to the store; 0 in a mark */
};

/* In the holder's memory, as is its key. */
struct fast_path_hold {
    struct fast_path_node node; /* first */
    int64_t since_ms;           /* set by the holder */
    bool listed;                /* it is in the table */
    uint8_t weight; /* how many holds its duration stands for in metrics; 0: it is not timed */
};

struct fast_path_mark {
    struct fast_path_node node; /* first */
    uint64_t revision_floor;    /* the store's next revision must be above this one */
    size_t users;
    struct fast_path_mark *next_idle;
    bool idle;
    char key[];
};

/* NULL when out of memory. */
struct fast_path *fast_path_new(uint64_t seed);
/* All holds must have left the table. NULL is allowed. */
void fast_path_free(struct fast_path **fast_path);

enum fast_path_result {
    FAST_PATH_ACQUIRED,
    FAST_PATH_HELD, /* by another hold, copied to `out_holder` */
    FAST_PATH_MISS  /* the key is marked, or the fast path is disabled: use the local queue */
};

/* From any thread. Key and hold must stay valid until the release. */
enum fast_path_result fast_path_acquire(struct fast_path *fast_path, struct fast_path_hold *hold,
                                        const char *key, size_t length,
                                        struct fast_path_hold *out_holder);
/* From any thread. False if the local queue must release it: the hold has left the table, or the
 * fast path is disabled. */
bool fast_path_release(struct fast_path *fast_path, struct fast_path_hold *hold);
/* True if fast_path_time() must follow the release. */
static inline bool fast_path_is_timed(const struct fast_path_hold *hold)
{
    return FAST_PATH_TIMES && hold->weight != 0;
}
/* From any thread. */
void fast_path_time(struct fast_path *fast_path, const struct fast_path_hold *hold, int64_t now_ms);

/* Most numbers are derived from the table, so that a pair need not count them. */
struct fast_path_counts {
    uint64_t acquired;                     /* since the start … */
    uint64_t released;                     /* … and of these released here … */
    uint64_t promoted;                     /* … or promoted; the others are held */
    uint64_t hold_times[METRIC_HISTOGRAM]; /* as in SLOT_HOLD: of released holds, sampled */
};
/* From any thread. */
void fast_path_count(struct fast_path *fast_path, struct fast_path_counts *out);

/* The rest is for one thread at a time, that of the event loop. */

/* Marks the key; each call needs one fast_path_mark_unref(). A hold of the key leaves the table,
 * and the caller must promote it. NULL when out of memory. */
struct fast_path_mark *fast_path_mark(struct fast_path *fast_path, const char *key,
                                      struct fast_path_hold **out_hold);
/* Adds a user. */
void fast_path_mark_ref(struct fast_path_mark *mark);
/* The promotion failed: the hold replaces its mark in the table. */
void fast_path_restore(struct fast_path *fast_path, struct fast_path_mark *mark,
                       struct fast_path_hold *hold);
void fast_path_mark_unref(struct fast_path *fast_path, struct fast_path_mark *mark);

enum mark_state {
    MARK_UNUSED, /* the key is not in use: the mark can be removed */
    MARK_KEPT,   /* the store has a record: the mark stays until the next use */
    MARK_BUSY,   /* the local queue uses the key: judge again later */
};

/* Judges every unreferenced mark; `revision` is the store's current one. */
typedef enum mark_state fast_path_judge(void *owner, const char *key);
void fast_path_settle(struct fast_path *fast_path, fast_path_judge *judge, void *owner,
                      uint64_t revision);

/* From now on nothing is acquired or released here, so that the store sees every change. */
void fast_path_disable(struct fast_path *fast_path);
/* Removes the hold even if the fast path is disabled. */
void fast_path_drop(struct fast_path *fast_path, struct fast_path_hold *hold);
/*
 * Visits every hold whose key has the prefix. Its shard is locked during `pick`, which may only
 * copy. After each shard `picked` is called, unlocked. Either ends the iteration by returning
 * false.
 */
struct fast_path_visitor {
    bool (*pick)(void *owner, const struct fast_path_hold *hold);
    bool (*picked)(void *owner);
    void *owner;
};
bool fast_path_each(struct fast_path *fast_path, const char *prefix,
                    const struct fast_path_visitor *visitor);
/* Disables the fast path and removes all holds. */
void fast_path_clear(struct fast_path *fast_path,
                     void (*gone)(void *owner, struct fast_path_hold *hold), void *owner);

#endif

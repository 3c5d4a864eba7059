/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks inside one process that nobody contends for. Such a hold is a node in a table, taken and
 * given back in the caller's own thread; desk, core and store hear nothing of it. There is no rule
 * here but this one: a key that is not in the table is free, and one that is in it is somebody's
 * own affair. As soon as anybody else wants anything of the key, the loop marks it: then a hold
 * leaves the table, whoever marked makes a real grant of it, and the rules go on from there.
 *
 * The table is in parts, each with a mutex of its own, so that threads with different keys do not
 * meet. Only for a store that nobody else can reach.
 */
#ifndef LEASEHOLD_RUNTIME_FAST_PATH_H
#define LEASEHOLD_RUNTIME_FAST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fast_path;

/* A hold or a mark, in its chain. */
struct fast_path_node {
    struct fast_path_node *next;
    uint64_t hash;
    const char *key;
    uint64_t revision; /* of a hold: makes its token, as a write of the store would; a mark has 0 */
};

/* In the holder's memory, with its key. */
struct fast_path_hold {
    struct fast_path_node node; /* first */
    int64_t since_ms;           /* the holder's own to set */
    bool listed;                /* it is in the table */
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
/* All holds must have left. NULL is fine. */
void fast_path_free(struct fast_path **fast_path);

enum fast_path_result {
    FAST_PATH_ACQUIRED,
    FAST_PATH_HELD, /* by another hold: what it is was copied */
    FAST_PATH_MISS  /* the key is marked, or all is shut: ask the desk */
};

/* From any thread. Key and hold must stay until it is given back. */
enum fast_path_result fast_path_acquire(struct fast_path *fast_path, struct fast_path_hold *hold,
                                        const char *key, size_t length,
                                        struct fast_path_hold *out_holder);
/* From any thread. False when the desk must be asked, for the hold has left the table, or all is
 * shut. */
bool fast_path_release(struct fast_path *fast_path, struct fast_path_hold *hold);

/* The rest is for one thread at a time, the loop's. */

/* Marks the key, until it is returned as often as it was used. A hold that stood there has left the
 * table, and is the caller's to make a real grant of. NULL when out of memory. */
struct fast_path_mark *fast_path_mark(struct fast_path *fast_path, const char *key,
                                      struct fast_path_hold **out_hold);
/* One user more. */
void fast_path_mark_ref(struct fast_path_mark *mark);
/* The grant could not be made: the hold stands in the table again, instead of its mark. */
void fast_path_restore(struct fast_path *fast_path, struct fast_path_mark *mark,
                       struct fast_path_hold *hold);
void fast_path_mark_unref(struct fast_path *fast_path, struct fast_path_mark *mark);

enum mark_state {
    MARK_UNUSED, /* nobody knows of the key: the mark can go */
    MARK_KEPT,   /* the store has a record: the mark stays until the next use */
    MARK_BUSY,   /* the desk is busy with it: ask again */
};

/* Asks about every mark that was returned; the revision is the store's at this moment. */
typedef enum mark_state fast_path_judge(void *owner, const char *key);
void fast_path_settle(struct fast_path *fast_path, fast_path_judge *judge, void *owner,
                      uint64_t revision);

/* From now on nothing is taken or given back here: somebody wants to see every change. */
void fast_path_disable(struct fast_path *fast_path);
/* Takes the hold out although all is shut. */
void fast_path_drop(struct fast_path *fast_path, struct fast_path_hold *hold);
/*
 * Every hold whose key begins with the prefix. Nothing can be taken or given back in its part of
 * the table while it is picked: `pick` only copies. After each part `picked` is called, when
 * anything may be done again. Either ends it by returning false.
 */
struct fast_path_visitor {
    bool (*pick)(void *owner, const struct fast_path_hold *hold);
    bool (*picked)(void *owner);
    void *owner;
};
bool fast_path_each(struct fast_path *fast_path, const char *prefix,
                    const struct fast_path_visitor *visitor);
/* Takes all holds out; nobody takes or gives any more. */
void fast_path_clear(struct fast_path *fast_path,
                     void (*gone)(void *owner, struct fast_path_hold *hold), void *owner);

#endif

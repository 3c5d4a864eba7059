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
#ifndef LEASEHOLD_RUNTIME_LIGHT_H
#define LEASEHOLD_RUNTIME_LIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct light;

/* A hold or a mark, in its chain. */
struct light_node {
    struct light_node *next;
    uint64_t hash;
    const char *key;
    uint64_t revision; /* of a hold: makes its token, as a write of the store would; a mark has 0 */
};

/* In the holder's memory, with its key. */
struct light_hold {
    struct light_node node; /* first */
    int64_t since_ms;       /* the holder's own to set */
    bool listed;            /* it is in the table */
};

struct light_mark {
    struct light_node node; /* first */
    uint64_t above;         /* the store's next revision must be above this one */
    size_t users;
    struct light_mark *next_resting;
    bool resting;
    char key[];
};

/* NULL when memory is short. */
struct light *light_new(uint64_t seed);
/* All holds must have left. NULL is fine. */
void light_free(struct light **light);

enum light_answer {
    LIGHT_TAKEN,
    LIGHT_HELD, /* by another hold: what it is was copied */
    LIGHT_NOT   /* the key is marked, or all is shut: ask the desk */
};

/* From any thread. Key and hold must stay until it is given back. */
enum light_answer light_take(struct light *light, struct light_hold *hold, const char *key,
                             size_t length, struct light_hold *out_holder);
/* From any thread. False when the desk must be asked, for the hold has left the table, or all is
 * shut. */
bool light_give(struct light *light, struct light_hold *hold);

/* The rest is for one thread at a time, the loop's. */

/* Marks the key, until it is returned as often as it was used. A hold that stood there has left the
 * table, and is the caller's to make a real grant of. NULL when memory is short. */
struct light_mark *light_mark(struct light *light, const char *key, struct light_hold **out_hold);
/* One user more. */
void light_use(struct light_mark *mark);
/* The grant could not be made: the hold stands in the table again, instead of its mark. */
void light_put_back(struct light *light, struct light_mark *mark, struct light_hold *hold);
void light_return(struct light *light, struct light_mark *mark);

enum light_rest {
    REST_FREE,  /* nobody knows of the key: the mark can go */
    REST_KEPT,  /* the store has a record: the mark stays until the next use */
    REST_LATER, /* the desk is busy with it: ask again */
};

/* Asks about every mark that was returned; the revision is the store's at this moment. */
typedef enum light_rest light_judge(void *owner, const char *key);
void light_settle(struct light *light, light_judge *judge, void *owner, uint64_t revision);

/* From now on nothing is taken or given back here: somebody wants to see every change. */
void light_shut(struct light *light);
/* Takes the hold out although all is shut. */
void light_drop(struct light *light, struct light_hold *hold);
/*
 * Every hold whose key begins with the prefix. Nothing can be taken or given back in its part of
 * the table while it is picked: `pick` only copies. After each part `picked` is called, when
 * anything may be done again. Either ends it by returning false.
 */
struct light_visitor {
    bool (*pick)(void *owner, const struct light_hold *hold);
    bool (*picked)(void *owner);
    void *owner;
};
bool light_each(struct light *light, const char *prefix, const struct light_visitor *visitor);
/* Takes all holds out; nobody takes or gives any more. */
void light_empty(struct light *light, void (*gone)(void *owner, struct light_hold *hold),
                 void *owner);

#endif

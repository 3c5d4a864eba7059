/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of keys. The nodes are embedded in the caller's structs; the keys belong to the
 * caller too. The table grows with its content, a few chains at each insertion, so that none takes
 * long; when out of memory its chains get longer instead, so an insertion cannot fail.
 */
#ifndef LEASEHOLD_RUNTIME_TABLE_H
#define LEASEHOLD_RUNTIME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next; /* in its chain */
    const char *key;
    uint64_t hash;
};

struct table {
    size_t count, chain_count; /* a power of two */
    struct table_node **chains;
    struct table_node **old; /* half as many chains, while the table grows; or NULL … */
    size_t moved;            /* … of which the first ones have been moved */
};

/* False when out of memory. */
bool table_init(struct table *table);
/* Does not touch the nodes. */
void table_done(struct table *table);
/* NULL if the key is absent. */
struct table_node *table_find(const struct table *table, const char *key);
/* The key must not be in the table, and must stay valid while the node is in it. */
void table_put(struct table *table, struct table_node *node, const char *key);
/* Ends a growth, so that `chains` has all nodes: for a walk over them. */
void table_settle(struct table *table);
void table_remove(struct table *table, struct table_node *node);

#endif

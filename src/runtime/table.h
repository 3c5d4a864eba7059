/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table by key. The nodes are the caller's, inside its own structs, and so are the keys. It
 * grows with what is in it; when out of memory its chains grow longer instead, so putting
 * something in cannot fail.
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
};

/* False when out of memory. */
bool table_init(struct table *table);
/* The nodes are not touched. */
void table_done(struct table *table);
/* NULL when it is not there. */
struct table_node *table_find(const struct table *table, const char *key);
/* The node's key must stay, and must not be in the table. */
void table_put(struct table *table, struct table_node *node, const char *key);
void table_remove(struct table *table, struct table_node *node);

#endif

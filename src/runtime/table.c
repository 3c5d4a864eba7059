/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "runtime/table.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS_FIRST = 64, CHAINS_PER_STEP = 8 };

bool table_init(struct table *table)
{
    *table = (struct table){.chain_count = CHAINS_FIRST};
    table->chains = calloc(CHAINS_FIRST, sizeof(struct table_node *));
    return table->chains != NULL;
}

void table_done(struct table *table)
{
    free(table->old);
    free(table->chains);
    *table = (struct table){0};
}

/* The chain of this hash: an old one as long as it was not moved. */
static struct table_node **table_chain(const struct table *table, uint64_t hash)
{
    size_t old = hash & (table->chain_count / 2 - 1);
    if (table->old != NULL && old >= table->moved)
        return &table->old[old];
    return &table->chains[hash & (table->chain_count - 1)];
}

struct table_node *table_find(const struct table *table, const char *key)
{
    uint64_t hash = hash_string(key);
    struct table_node *node = *table_chain(table, hash);
    while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
        node = node->next;
    return node;
}

static void table_link(struct table_node **chain, struct table_node *node)
{
    node->next = *chain;
    *chain = node;
}

/* Each old chain becomes two. */
static void table_move_chains(struct table *table)
{
    for (size_t i = 0; i < CHAINS_PER_STEP && table->old != NULL; i++) {
        struct table_node *node = table->old[table->moved++];
        for (struct table_node *next; node != NULL; node = next) {
            next = node->next;
            table_link(&table->chains[node->hash & (table->chain_count - 1)], node);
        }
        if (table->moved < table->chain_count / 2)
            continue;
        free(table->old);
        table->old = NULL;
    }
}

void table_settle(struct table *table)
{
    while (table->old != NULL)
        table_move_chains(table);
}

static void table_grow(struct table *table)
{
    struct table_node **chains = calloc(table->chain_count * 2, sizeof(struct table_node *));
    if (chains == NULL)
        return;
    table->old = table->chains;
    table->moved = 0;
    table->chains = chains;
    table->chain_count *= 2;
}

void table_put(struct table *table, struct table_node *node, const char *key)
{
    node->key = key;
    node->hash = hash_string(key);
    if (table->count++ >= table->chain_count && table->old == NULL)
        table_grow(table);
    table_move_chains(table);
    table_link(table_chain(table, node->hash), node);
}

void table_remove(struct table *table, struct table_node *node)
{
    struct table_node **at = table_chain(table, node->hash);
    while (*at != node) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    table->count--;
}

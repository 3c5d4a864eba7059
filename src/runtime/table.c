/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "runtime/table.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS_FIRST = 64 };

bool table_init(struct table *table)
{
    *table = (struct table){.chain_count = CHAINS_FIRST};
    table->chains = calloc(CHAINS_FIRST, sizeof(struct table_node *));
    return table->chains != NULL;
}

void table_done(struct table *table)
{
    free(table->chains);
    *table = (struct table){0};
}

struct table_node *table_find(const struct table *table, const char *key)
{
    uint64_t hash = hash_string(key);
    struct table_node *node = table->chains[hash & (table->chain_count - 1)];
    while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
        node = node->next;
    return node;
}

static void table_link(struct table_node **chains, size_t count, struct table_node *node)
{
    struct table_node **chain = &chains[node->hash & (count - 1)];
    node->next = *chain;
    *chain = node;
}

static void table_grow(struct table *table)
{
    size_t count = table->chain_count * 2;
    struct table_node **chains = calloc(count, sizeof(struct table_node *));
    if (chains == NULL)
        return;
    for (size_t i = 0; i < table->chain_count; i++) {
        while (table->chains[i] != NULL) {
            struct table_node *node = table->chains[i];
            table->chains[i] = node->next;
            table_link(chains, count, node);
        }
    }
    free(table->chains);
    table->chains = chains;
    table->chain_count = count;
}

void table_put(struct table *table, struct table_node *node, const char *key)
{
    node->key = key;
    node->hash = hash_string(key);
    if (table->count++ >= table->chain_count)
        table_grow(table);
    table_link(table->chains, table->chain_count, node);
}

void table_remove(struct table *table, struct table_node *node)
{
    struct table_node **at = &table->chains[node->hash & (table->chain_count - 1)];
    while (*at != node) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    table->count--;
}

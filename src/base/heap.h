/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pairing heap of times. Reading the earliest one is constant; setting or moving one is amortized
 * O(log n). Nodes are embedded in the caller's structs: nothing is allocated, so nothing can fail.
 * Equal times come out in an unspecified but deterministic order.
 */
#ifndef LEASEHOLD_BASE_HEAP_H
#define LEASEHOLD_BASE_HEAP_H

#include <stdint.h>

#define HEAP_NEVER INT64_MAX /* as a time: not in the heap */

struct heap_node {
    struct heap_node *child, *next;
    struct heap_node *before; /* left sibling, or the parent of the first child */
    int64_t at;
};

struct heap {
    struct heap_node *top; /* the earliest node, or NULL */
};

void heap_node_init(struct heap_node *node);
/* Inserts or moves the node; HEAP_NEVER removes it. */
void heap_set(struct heap *heap, struct heap_node *node, int64_t at);
/* HEAP_NEVER if the heap is empty. */
int64_t heap_first(const struct heap *heap);

#endif

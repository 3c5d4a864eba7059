/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of moments (a pairing heap): the earliest one is at hand, setting and moving one costs
 * O(log n) over time. The nodes are the caller's, inside its own structs: nothing is allocated, so
 * nothing can fail. Equal moments come in no particular, but always the same order.
 */
#ifndef LEASEHOLD_BASE_HEAP_H
#define LEASEHOLD_BASE_HEAP_H

#include <stdint.h>

#define HEAP_NEVER INT64_MAX /* as a moment: not in the heap */

struct heap_node {
    struct heap_node *child, *next;
    struct heap_node *before; /* the neighbour on the left, or the parent of the first child */
    int64_t at;
};

struct heap {
    struct heap_node *top; /* the earliest one, or NULL */
};

void heap_node_init(struct heap_node *node);
/* Puts it in, moves it, or, with HEAP_NEVER, takes it out. */
void heap_set(struct heap *heap, struct heap_node *node, int64_t at);
/* HEAP_NEVER when it is empty. */
int64_t heap_first(const struct heap *heap);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See heap.h. No child is earlier than its parent; siblings form a list. Removing the top merges
 * its children in pairs, then the pairs from last to first.
 */
#include "base/heap.h"

#include "base/check.h"

#include <stddef.h>

void heap_node_init(struct heap_node *node)
{
    *node = (struct heap_node){.at = HEAP_NEVER};
}

int64_t heap_first(const struct heap *heap)
{
    return heap->top != NULL ? heap->top->at : HEAP_NEVER;
}

/* Merges two trees; on a tie `a` stays on top. */
static struct heap_node *heap_merge(struct heap_node *a, struct heap_node *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    struct heap_node *above = b->at < a->at ? b : a;
    struct heap_node *below = above == a ? b : a;
    below->before = above;
    below->next = above->child;
    if (above->child != NULL)
        above->child->before = below;
    above->child = below;
    above->next = above->before = NULL;
    return above;
}

/* Iterative: the pairs form a stack linked by `next`, so the last one is merged first. */
static struct heap_node *heap_merge_all(struct heap_node *first)
{
    struct heap_node *pairs = NULL, *all = NULL;
    while (first != NULL) {
        struct heap_node *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = a->before = NULL;
        if (b != NULL)
            b->next = b->before = NULL;
        a = heap_merge(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct heap_node *rest = pairs->next;
        pairs->next = NULL;
        all = heap_merge(pairs, all);
        pairs = rest;
    }
    return all;
}

static void heap_take_out(struct heap *heap, struct heap_node *node)
{
    if (node == heap->top) {
        heap->top = heap_merge_all(node->child);
    } else {
        if (node->before->child == node)
            node->before->child = node->next;
        else
            node->before->next = node->next;
        if (node->next != NULL)
            node->next->before = node->before;
        heap->top = heap_merge(heap->top, heap_merge_all(node->child));
    }
    heap_node_init(node);
}

void heap_set(struct heap *heap, struct heap_node *node, int64_t at)
{
    if (node->at == at)
        return;
    if (node->at != HEAP_NEVER)
        heap_take_out(heap, node);
    ASSERT(node->child == NULL && node->next == NULL && node->before == NULL);
    node->at = at;
    if (at != HEAP_NEVER)
        heap->top = heap_merge(heap->top, node);
}

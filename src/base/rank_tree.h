/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue whose order changes as waiters are passed over: each has a place, its order of arrival,
 * and a rank. The first one has the highest rank and, of these, the earliest place. Inserting,
 * removing, finding the first and raising all ranks before a place visit O(log n) nodes: it is a
 * treap by place that knows the best rank of each subtree and defers increments.
 *
 * Nodes are embedded in the caller's structs: nothing is allocated, so nothing can fail.
 */
#ifndef LEASEHOLD_BASE_RANK_TREE_H
#define LEASEHOLD_BASE_RANK_TREE_H

#include <stdint.h>

struct rank_node {
    struct rank_node *left, *right, *parent;
    uint64_t place;
    int64_t rank, best; /* without the increments that are pending above */
    int64_t pending;    /* applied here, not yet to the children */
};

struct rank_tree {
    struct rank_node *root;
    uint64_t visits; /* of nodes, since the start: what an operation costs */
};

/* The place must not be in the tree. */
void rank_tree_insert(struct rank_tree *tree, struct rank_node *node, uint64_t place, int64_t rank);
void rank_tree_remove(struct rank_tree *tree, struct rank_node *node);
/* NULL if the tree is empty. */
struct rank_node *rank_tree_first(struct rank_tree *tree);
/* Adds one to every rank before that place. */
void rank_tree_raise_before(struct rank_tree *tree, uint64_t place);
int64_t rank_tree_rank(struct rank_tree *tree, const struct rank_node *node);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See rank_tree.h. The weight of a node is a hash of its place, so a run can be repeated. */
#include "base/rank_tree.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>

static uint64_t rank_node_weight(const struct rank_node *node)
{
    return hash_mix(hash_mix(/* hash= */ 1, node->place), node->place);
}

static void rank_node_raise(struct rank_node *node, int64_t by)
{
    if (node == NULL)
        return;
    node->rank += by;
    node->best += by;
    node->pending += by;
}

static void rank_node_push(struct rank_tree *tree, struct rank_node *node)
{
    tree->visits++;
    if (node->pending == 0)
        return;
    rank_node_raise(node->left, node->pending);
    rank_node_raise(node->right, node->pending);
    node->pending = 0;
}

/* Of a node with nothing pending. */
static void rank_node_update(struct rank_node *node)
{
    node->best = node->rank;
    if (node->left != NULL && node->left->best > node->best)
        node->best = node->left->best;
    if (node->right != NULL && node->right->best > node->best)
        node->best = node->right->best;
}

/* Puts `by`, which may be NULL, where the node is below its parent. */
static void rank_tree_replace(struct rank_tree *tree, const struct rank_node *node,
                              struct rank_node *by)
{
    struct rank_node *parent = node->parent;
    if (parent == NULL)
        tree->root = by;
    else if (parent->left == node)
        parent->left = by;
    else
        parent->right = by;
    if (by != NULL)
        by->parent = parent;
}

/* The child takes the place of its parent; neither has anything pending. */
static void rank_tree_rotate(struct rank_tree *tree, struct rank_node *child)
{
    struct rank_node *parent = child->parent;
    struct rank_node *moved = parent->left == child ? child->right : child->left;
    rank_tree_replace(tree, parent, child);
    if (parent->left == child) {
        parent->left = moved;
        child->right = parent;
    } else {
        parent->right = moved;
        child->left = parent;
    }
    parent->parent = child;
    if (moved != NULL)
        moved->parent = parent;
    rank_node_update(parent);
    rank_node_update(child);
}

/* From the node to the root; nothing is pending on that way. */
static void rank_tree_update(struct rank_tree *tree, struct rank_node *node)
{
    for (; node != NULL; node = node->parent) {
        tree->visits++;
        rank_node_update(node);
    }
}

void rank_tree_insert(struct rank_tree *tree, struct rank_node *node, uint64_t place, int64_t rank)
{
    struct rank_node **at = &tree->root;
    *node = (struct rank_node){.place = place, .rank = rank, .best = rank};
    while (*at != NULL) {
        ASSERT((*at)->place != place);
        rank_node_push(tree, *at);
        node->parent = *at;
        at = place < (*at)->place ? &(*at)->left : &(*at)->right;
    }
    *at = node;
    rank_tree_update(tree, node->parent);
    while (node->parent != NULL && rank_node_weight(node->parent) < rank_node_weight(node)) {
        tree->visits++;
        rank_tree_rotate(tree, node);
    }
}

/* The pending increments above the node are applied on the way up: from the root down. */
static void rank_tree_settle(struct rank_tree *tree, const struct rank_node *node)
{
    for (struct rank_node *at = tree->root; at != node;
         at = node->place < at->place ? at->left : at->right)
        rank_node_push(tree, at);
}

void rank_tree_remove(struct rank_tree *tree, struct rank_node *node)
{
    rank_tree_settle(tree, node);
    rank_node_push(tree, node);
    while (node->left != NULL && node->right != NULL) {
        bool left = rank_node_weight(node->left) > rank_node_weight(node->right);
        struct rank_node *up = left ? node->left : node->right;
        rank_node_push(tree, up);
        rank_tree_rotate(tree, up);
    }
    rank_tree_replace(tree, node, node->left != NULL ? node->left : node->right);
    rank_tree_update(tree, node->parent);
}

struct rank_node *rank_tree_first(struct rank_tree *tree)
{
    struct rank_node *node = tree->root;
    while (node != NULL) {
        rank_node_push(tree, node);
        if (node->left != NULL && node->left->best == node->best)
            node = node->left;
        else if (node->rank == node->best)
            return node;
        else
            node = node->right;
    }
    return NULL;
}

void rank_tree_raise_before(struct rank_tree *tree, uint64_t place)
{
    struct rank_node *last = NULL;
    for (struct rank_node *node = tree->root; node != NULL;) {
        rank_node_push(tree, node);
        last = node;
        if (node->place < place) {
            rank_node_raise(node->left, 1);
            node->rank++;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    rank_tree_update(tree, last);
}

int64_t rank_tree_rank(struct rank_tree *tree, const struct rank_node *node)
{
    rank_tree_settle(tree, node);
    return node->rank;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A doubly linked list whose nodes are members of what is listed. A zeroed list is empty. Allocates
 * nothing and has no lock. A node is in one list at most; the list does not say whether it is.
 */
#ifndef LEASEHOLD_BASE_LIST_H
#define LEASEHOLD_BASE_LIST_H

#include <stddef.h>

struct list_node {
    struct list_node *next, *previous;
};

struct list {
    struct list_node *first, *last;
};

/* The struct that has this node as its member; NULL for NULL. */
#define LIST_ENTRY(node, type, member) ((type *)list_entry((node), offsetof(type, member)))

static inline void *list_entry(struct list_node *node, size_t offset)
{
    return node != NULL ? (char *)node - offset : NULL;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    node->next = NULL;
    node->previous = list->last;
    if (list->last != NULL)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
}

static inline void list_prepend(struct list *list, struct list_node *node)
{
    node->next = list->first;
    node->previous = NULL;
    if (list->first != NULL)
        list->first->previous = node;
    else
        list->last = node;
    list->first = node;
}

static inline void list_remove(struct list *list, struct list_node *node)
{
    if (node->next != NULL)
        node->next->previous = node->previous;
    else
        list->last = node->previous;
    if (node->previous != NULL)
        node->previous->next = node->next;
    else
        list->first = node->next;
}

/* Removes the first node and returns it; NULL if the list is empty. */
static inline struct list_node *list_pop(struct list *list)
{
    struct list_node *node = list->first;
    if (node == NULL)
        return NULL;
    list->first = node->next;
    if (node->next != NULL)
        node->next->previous = NULL;
    else
        list->last = NULL;
    return node;
}

/* Moves all nodes to the list that is returned. */
static inline struct list list_take_all(struct list *list)
{
    struct list taken = *list;
    *list = (struct list){0};
    return taken;
}

#endif

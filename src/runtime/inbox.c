/* SPDX-License-Identifier: Apache-2.0 */
/* See inbox.h. */
#include "runtime/inbox.h"

void inbox_init(struct inbox *inbox)
{
    *inbox = (struct inbox){0};
    (void)pthread_mutex_init(&inbox->mutex, NULL);
}

void inbox_done(struct inbox *inbox)
{
    (void)pthread_mutex_destroy(&inbox->mutex);
}

void inbox_post(struct inbox *inbox, struct inbox_item *item, void (*wake)(void *owner),
                void *owner)
{
    (void)pthread_mutex_lock(&inbox->mutex);
    bool was_empty = inbox->posted.first == NULL;
    list_append(&inbox->posted, &item->node);
    atomic_store(&inbox->any_posted, true);
    /* Under the mutex: once the item has run, its poster may free the inbox. */
    if (was_empty)
        wake(owner);
    (void)pthread_mutex_unlock(&inbox->mutex);
}

size_t inbox_collect(struct inbox *inbox)
{
    if (!atomic_load(&inbox->any_posted))
        return inbox->calls.count;
    (void)pthread_mutex_lock(&inbox->mutex);
    struct list posted = inbox->posted;
    inbox->posted = (struct list){0};
    atomic_store(&inbox->any_posted, false);
    (void)pthread_mutex_unlock(&inbox->mutex);
    for (struct list_node *node = posted.first, *next; node != NULL; node = next) {
        next = node->next;
        inbox_add(&inbox->calls, LIST_ENTRY(node, struct inbox_item, node));
    }
    return inbox->calls.count;
}

void inbox_add(struct inbox_list *to, struct inbox_item *item)
{
    list_append(&to->list, &item->node);
    to->count++;
}

void inbox_remove(struct inbox_list *from, struct inbox_item *item)
{
    list_remove(&from->list, &item->node);
    from->count--;
}

struct inbox_item *inbox_pop(struct inbox_list *from)
{
    struct inbox_item *item = LIST_ENTRY(from->list.first, struct inbox_item, node);
    if (item != NULL)
        inbox_remove(from, item);
    return item;
}

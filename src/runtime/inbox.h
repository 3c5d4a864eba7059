/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inbox of a client: what its next tick has to do, in order of arrival. Calls are posted from
 * any thread. Commands, which calls and callbacks give to leases, are added in the thread of the
 * tick, without a lock; they run in the next round, before further calls. The owner of an item must
 * not move it until it runs, so that the inbox allocates nothing and is never full.
 */
#ifndef LEASEHOLD_RUNTIME_INBOX_H
#define LEASEHOLD_RUNTIME_INBOX_H

#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct inbox_item {
    struct list_node node;
    void (*run)(struct inbox_item *item); /* may free or post the item */
};

struct inbox_list {
    struct list list;
    size_t count;
};

struct inbox {
    struct inbox_list commands, calls;
    atomic_bool any_posted;
    pthread_mutex_t mutex; /* protects the list below */
    struct list posted;
};

void inbox_init(struct inbox *inbox);
void inbox_done(struct inbox *inbox);

/* From any thread. Calls `wake` if nothing else was posted before. */
void inbox_post(struct inbox *inbox, struct inbox_item *item, void (*wake)(void *owner),
                void *owner);

/* The others in the thread of the tick only. */
/* Appends what was posted to the calls; returns their number. */
size_t inbox_collect(struct inbox *inbox);
void inbox_add(struct inbox_list *to, struct inbox_item *item);
void inbox_remove(struct inbox_list *from, struct inbox_item *item);
/* The first item, which is in no list then; NULL if there is none. */
struct inbox_item *inbox_pop(struct inbox_list *from);

#endif

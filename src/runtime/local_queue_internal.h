/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by local_queue.c (the interface, the tick, the waiters) and local_queue_key.c (one key:
 * the order of its queue, its requests to the store, the assignment of grants).
 */
#ifndef LEASEHOLD_RUNTIME_LOCAL_QUEUE_INTERNAL_H
#define LEASEHOLD_RUNTIME_LOCAL_QUEUE_INTERNAL_H

#include "runtime/executor_internal.h"
#include "runtime/local_queue.h"
#include "runtime/table.h"

enum waiter_command { WAITER_ENTERS = 1, WAITER_LEAVES = 2, WAITER_FORGOTTEN = 4 };

enum local_waiter_state {
    WAITER_NEW,
    WAITER_QUEUED, /* in the key's queue; a store lease may be in flight for it and others */
    WAITER_ASKING, /* has its own store lease: it does not wait */
    WAITER_HOLDING,
    WAITER_LEAVING, /* ends when its store lease has ended */
};

struct local_waiter {
    uint32_t magic;
    enum local_waiter_state state;
    unsigned commands;
    bool silent, waiting_notified;
    bool adopts;     /* a grant that exists already */
    uint32_t passed; /* number of later waiters served first: each adds one to its priority */
    struct local_queue *queue;
    struct local_waiter_caller caller;
    struct local_key *key;
    struct store_lease *lease;
    struct list_node in_key; /* in the key's queue, in order of arrival */
    struct list_node in_all;
    struct inbox_item item; /* in the inbox while there are commands */
    struct executor_timer timeout;
    int64_t entered_ms;
    const char *why_left;
    struct lease_options options;
    char storage[]; /* of the options */
};

/* A lease, or a request for one, at the store: one task, which serves its waiters in turn. */
enum store_lease_state {
    STORE_LEASE_ASKING,
    STORE_LEASE_HELD,
    STORE_LEASE_LOST,
    STORE_LEASE_ENDING
};

struct store_lease {
    enum store_lease_state state;
    struct list_node node; /* of the key's */
    struct local_key *key;
    struct task *task;
    struct local_waiter
        *waiter; /* the waiter it serves; NULL: any in the queue that it fits, or none */
    const struct local_waiter *starter; /* its options are used; NULL once it has left */
    bool shareable;                     /* it may serve other waiters with equal options */
    bool adopts;                        /* no waiter is served while it is in flight */
    int64_t deadline_ms, kill_at_ms;
    uint64_t token; /* as granted by the store */
    unsigned hand_offs;
};

/* A key in use. */
struct local_key {
    struct table_node node;
    struct local_queue *queue;
    size_t users; /* waiters and store leases */
    size_t queued;
    struct list waiters; /* the queue */
    struct list leases;
    struct store_lease *asking; /* the one for the queue, while it is not granted */
    char key[];
};

struct local_queue {
    uint32_t magic;
    bool closing;
    struct executor *executor;
    struct table keys;
    struct list waiters;
    struct local_queue_counts counts;
};

/* The first and the next one of a list; NULL after the last. */
static inline struct local_waiter *waiter_of(struct list_node *node)
{
    return LIST_ENTRY(node, struct local_waiter, in_key);
}

static inline struct store_lease *store_lease_of(struct list_node *node)
{
    return LIST_ENTRY(node, struct store_lease, node);
}

/* local_queue.c */
void waiter_notify(struct local_waiter *waiter, const struct task_news *news);
/* Notifies NOTIFY_ENDED and frees the waiter. */
void waiter_end(struct local_waiter *waiter, const struct task_news *news);
void waiter_end_with(struct local_waiter *waiter, enum outcome outcome, const char *why);
void local_key_unref(struct local_key *key);

/* local_queue_key.c */
void waiter_enter(struct local_waiter *waiter);
/* Enters at once, with its own store lease; false when out of memory. */
bool waiter_adopt(struct local_waiter *waiter);
/* The caller releases or gives up; `why` if it only waited. */
void waiter_leave(struct local_waiter *waiter, const char *why);
/* Its wait has expired. */
void waiter_time_out(struct executor_timer *timeout);
/* Sends nothing to the store. */
void waiter_forget(struct local_waiter *waiter);
/* Frees the key and all its store leases, once no waiter is left. */
void local_key_free(struct local_key *key);

#endif

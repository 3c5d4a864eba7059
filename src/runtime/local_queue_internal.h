/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by local_queue.c (the interface, the tick, the waiters), local_queue_order.c (the order of
 * a key's queue), local_queue_lease.c (its requests to the store, the assignment of grants) and
 * local_queue_key.c (entry and exit of its waiters).
 */
#ifndef LEASEHOLD_RUNTIME_LOCAL_QUEUE_INTERNAL_H
#define LEASEHOLD_RUNTIME_LOCAL_QUEUE_INTERNAL_H

#include "base/rank_tree.h"
#include "runtime/executor_internal.h"
#include "runtime/local_queue.h"
#include "runtime/table.h"

enum waiter_command {
    WAITER_ENTERS = 1,
    WAITER_LEAVES = 2,
    WAITER_FORGOTTEN = 4,
    WAITER_PAUSES = 8, /* or resumes */
};

enum local_waiter_state {
    WAITER_NEW,
    WAITER_PROBING, /* reads whether its request id has a grant, before it is queued */
    WAITER_QUEUED,  /* in the key's queue; a store lease may be in flight for it and others */
    WAITER_ASKING,  /* has its own store lease: it does not wait, or its grant exists */
    WAITER_HOLDING,
    WAITER_LEAVING, /* ends when its store lease has ended */
};

struct local_waiter {
    uint32_t magic;
    enum local_waiter_state state;
    unsigned commands;
    bool silent, waiting_notified;
    bool adopts;    /* a grant that exists already */
    bool paused;    /* keeps its position and is passed over … */
    bool ordered;   /* … because it is not in the key's order */
    bool set_aside; /* its request id had a grant when it was paused */
    uint64_t arrived;
    int64_t rank; /* priority, and one for each later waiter served first; while not ordered */
    struct local_queue *queue;
    struct local_waiter_caller caller;
    struct local_key *key;
    struct store_lease *lease;
    struct task *probe;
    struct list_node in_key;   /* in the key's queue */
    struct list_node in_quiet; /* until it is notified that it waits */
    struct rank_node in_order;
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
    struct local_waiter *heir;          /* for the queue: the first waiter that it fits, or NULL */
    bool shareable;                     /* it may serve other waiters with equal options */
    bool adopts;                        /* no waiter is served while it is in flight */
    bool exclusive;                     /* its mode; valid without its task */
    int64_t deadline_ms, kill_at_ms;
    uint64_t token; /* as granted by the store */
    unsigned hand_offs;
};

/* A key in use. */
struct local_key {
    struct table_node node;
    struct local_queue *queue;
    size_t users;        /* waiters and store leases */
    size_t blocking;     /* store leases of which each keeps the queue from asking */
    struct list waiters; /* the queue: all of it, also those that are paused … */
    struct rank_tree order;
    struct list quiet;
    struct list leases;         /* those that are held first */
    struct store_lease *asking; /* the one for the queue, while it is not granted */
    char key[];
};

struct local_queue {
    uint32_t magic;
    bool closing;
    struct executor *executor;
    struct table keys;
    struct list waiters;
    uint64_t arrivals;
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

/* local_queue_order.c */
bool waiter_is_shareable(const struct lease_options *options);
/* True if the store lease may serve the waiter. */
bool waiter_fits(const struct store_lease *lease, const struct local_waiter *waiter);
/* True if the store gives both the same reply: an id with another payload gets another one. */
bool waiter_means_same(const struct local_waiter *waiter, const struct store_lease *lease);
/* True if the store lease was requested with the waiter's own request id. */
bool waiter_repeats(const struct local_waiter *waiter, const struct store_lease *lease);
/* True if an earlier request with its request id is being given up: that removes what the id has in
 * the store, also a later grant, so the waiter must not ask before. */
bool waiter_id_ends(const struct local_waiter *waiter);
/* Adds it at the position of its arrival. */
void waiters_add(struct local_waiter *waiter);
void waiters_remove(struct local_waiter *waiter);
/* The first one that is not paused, or NULL. */
struct local_waiter *waiters_first(struct local_key *key);
bool waiters_ahead(const struct local_waiter *waiter, const struct local_waiter *other);
/* Every earlier waiter that is not paused was passed over once more. */
void waiters_age(const struct local_waiter *chosen);
void waiters_pause(struct local_waiter *waiter);
void waiters_resume(struct local_waiter *waiter);
void waiter_notify_waiting(struct local_waiter *waiter, const struct task_news *news);

/* local_queue_lease.c */
/* NULL when out of memory. One that waits does so without limit: waiters have own timeouts. */
struct store_lease *store_lease_new(struct local_waiter *waiter, bool waits);
void store_lease_free(struct store_lease *lease);
void store_lease_release(struct store_lease *lease);
/* The waiter that gets the grant of the queue's request, or NULL. */
struct local_waiter *store_lease_heir(const struct store_lease *lease);
/* Without a write; the waiter is first in the queue. */
void store_lease_hand_off(struct store_lease *lease, struct local_waiter *next);
/* True unless this process holds the key, or its release is in flight, or it asks already. */
bool local_key_may_ask(const struct local_key *key);
/* One request of the queue is in flight at a time, and none while a lease of ours blocks it. */
void local_key_ask_next(struct local_key *key);
/* A waiter that may be served has entered: it may go before the heir, and raise the priority. */
void local_key_note_entry(struct local_waiter *waiter);
/* A waiter may not be served any more: the request for it, if one was released. */
struct store_lease *local_key_note_exit(const struct local_waiter *waiter);

/* local_queue_key.c */
void waiter_enter(struct local_waiter *waiter);
/* Enters the queue, after a probe or a request of its own found no grant. */
void waiter_enqueue(struct local_waiter *waiter);
/* Enters at once, with its own store lease; false when out of memory. */
bool waiter_adopt(struct local_waiter *waiter);
/* The caller releases or gives up; `why` if it only waited. */
void waiter_leave(struct local_waiter *waiter, const char *why);
/* It was paused or resumed. */
void waiter_review(struct local_waiter *waiter);
/* Its wait has expired. */
void waiter_time_out(struct executor_timer *timeout);
/* Sends nothing to the store. */
void waiter_forget(struct local_waiter *waiter);
/* Frees the key and all its store leases, once no waiter is left. */
void local_key_free(struct local_key *key);

#endif

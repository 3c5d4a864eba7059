/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests in flight of a store: bounded, each with its deadline, each ended by exactly one
 * last reply. A driver's own struct begins with a struct pending; the memory of ended requests is
 * used again, so that a request usually allocates nothing. The callback of a last reply may submit
 * requests, and may close the store if the driver's state outlives the callback. There is no lock:
 * where threads share a set, its owner has one.
 */
#ifndef LEASEHOLD_STORE_PENDING_H
#define LEASEHOLD_STORE_PENDING_H

#include "base/list.h"
#include "net/poller.h"
#include "store/watchers.h"

struct pending_set;

struct pending {
    struct list_node in_all;   /* ordered by deadline */
    struct list_node in_queue; /* for the driver's own queues */
    struct pending_set *set;
    uint64_t number;        /* in order of arrival; 0: it has ended */
    struct pending *behind; /* with `by_key`: the one of the same key that must end first */
    int64_t deadline_ms;
    struct store_request request; /* its strings belong to the caller until the last reply */
    store_done *done;
    void *caller;
};

/* The driver sets the first members and zeroes the others. */
struct pending_set {
    size_t size; /* of the driver's struct */
    size_t most; /* requests in flight; more are refused */
    /* Reads and writes of a key run one at a time, in order of arrival. Lists and watches have a
     * prefix and wait for nothing. */
    bool by_key;
    int64_t timeout_ms; /* from the submission to the deadline; 0: no deadline */
    /* Called at the deadline of the first request; NULL: the driver enforces deadlines. */
    struct poller *poller;
    void (*overdue)(void *owner, struct pending *first);
    void *owner;
    void (*clear)(struct pending *pending); /* frees what the driver's struct owns, or NULL */

    uint64_t last_number;
    size_t count, spare_count;
    struct list all, spare;
    struct poller_timer timer;
};

/* Frees all requests; they get no reply. */
void pending_done(struct pending_set *set);

/* NULL, without a reply, if there are too many or memory is exhausted. The rest of the driver's
 * struct is zero. */
void *pending_add(struct pending_set *set, const struct store_request *request, store_done *done,
                  void *caller);
/* Replies to a request that was not added. */
void pending_refuse(store_done *done, void *caller);
/* Restarts the deadline, because more replies follow. */
void pending_extend(struct pending *pending);

/* Delivers a reply. One without `more` is the last and ends the request. */
void pending_reply(struct pending *pending, const struct store_reply *reply);
/* Ends the request with an error. */
void pending_fail(struct pending *pending, enum reply_status result, const char *why);
/* Fails all requests that are in flight now; those that a callback adds are not affected. */
void pending_fail_all(struct pending_set *set, enum reply_status result, const char *why);
/* Ends the request without a reply … */
void pending_drop(struct pending *pending);
/* … because it is a watcher from now on; see watchers_add(). */
struct watcher *pending_watch(struct pending *pending, struct watchers *watchers);

/* The first of a queue of requests, removed from it; NULL if there is none. */
static inline void *pending_pop(struct list *queue)
{
    return LIST_ENTRY(list_pop(queue), struct pending, in_queue);
}

#endif

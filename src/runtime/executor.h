/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the leases and operations of one client between the core and one store. The clock, the store
 * and the wake-up are injected: the executor makes no system call, and a simulation links it
 * unchanged. It must not decide anything that lease_step() decides.
 *
 * All work is done in executor_tick(): other calls, and the store's replies, only queue and request
 * a tick. A tick handles holders' deadlines first, then replies, then the inbox, then other timers;
 * all requests of one tick are submitted together. Callbacks run in a tick only, and may call
 * everything except executor_tick() and executor_free(). One thread at a time, except for
 * executor_post().
 */
#ifndef LEASEHOLD_RUNTIME_EXECUTOR_H
#define LEASEHOLD_RUNTIME_EXECUTOR_H

#include "runtime/inbox.h"
#include "store/store.h"

struct executor;
struct task; /* a lease or an operation; freed after its caller received NOTIFY_ENDED */

/* One step of the core, for tracing; the watcher must not call the executor. */
struct executor_step {
    const struct lease *before, *after;
    const struct event *event;
    const struct lease_output *output;
    const struct record *record; /* after the step */
    const char *trace;           /* the core's trace line; empty if nothing changed */
};

typedef void executor_watcher(void *owner, const struct executor_step *step);

/* A request that failed, or could not be sent, and will be retried. */
struct executor_failure {
    const char *key;
    uint64_t token; /* of the lease that is held, or 0 */
    bool renews;    /* the request renews that lease */
    enum reply_status reply;
    int64_t took_ms;
};

struct executor_callbacks {
    int64_t (*now_ms)(void *owner); /* a clock that also runs in suspend */
    /* Queues a request in the store, which the owner steps; may call `done` before it returns. */
    void (*submit)(void *owner, const struct store_request *request, store_done *done,
                   void *caller);
    /* Requests a tick at that time; replaces the last request; NEVER: none. */
    void (*wake_at)(void *owner, int64_t at_ms);
    /* The same at once, from any thread; NULL: executor_post() is not used. */
    void (*wake)(void *owner);
    void *owner;
    bool replies_at_once; /* `submit` has called `done` when it returns */
    struct store_facts facts;
    uint64_t session;
    uint64_t seed;
    executor_watcher *watcher; /* NULL: none */
    /* Called in a tick, for metrics; NULL: none. */
    void (*failed)(void *owner, const struct executor_failure *failure);
};

/* Valid until the callback returns. */
struct task_news {
    enum lease_notify notify;
    enum outcome outcome; /* NOTIFY_ENDED */
    const char *why;      /* NULL or a short reason */
    const char *trouble;  /* NULL, or the store's last error text */
    uint64_t token;       /* while held or lost */
    bool took_over;       /* NOTIFY_HELD: from a holder that was dead or expired */
    int64_t deadline_ms, kill_at_ms;
    struct key_info key_info;    /* holder and times of the key; free if unknown … */
    const struct record *record; /* … and its whole record; NULL if unknown */
    struct stamp at;
};

struct executor_caller {
    void (*notify)(void *owner, struct task *task, const struct task_news *news);
    void *owner;
};

/* NULL when out of memory. All leases share the executor's facts and session. */
struct executor *executor_new(const struct executor_callbacks *callbacks);
/* Notifies no caller. The store is closed, or has replied to all requests. NULL is allowed. */
void executor_free(struct executor **executor);

/*
 * VERB_ACQUIRE starts a lease, any other verb an operation. The options are copied with all their
 * strings; store, session and, if NULL, the request id are filled in. The caller must have checked
 * them with request_broken(). NULL when out of memory or at TASKS_MAX.
 */
struct task *executor_start(struct executor *executor, const struct lease_options *options,
                            const struct executor_caller *caller);
/* Ends the wait, releases, or, after NOTIFY_LOST, confirms the stop. NOTIFY_ENDED follows. */
void executor_release(struct task *task);
/* The release starts no cooldown. */
void executor_drop_cooldown(struct task *task);
/* How long the store may take for the release. */
void executor_limit_release(struct task *task, int64_t timeout_ms);
/* As executor_release(), but without further callbacks. The task must not be used again. */
void executor_cancel(struct task *task);
/* Sends nothing to the store: the current record stays as it is. No further callbacks. */
void executor_forget(struct task *task);
/* A write of another process names us: the key is queried, unless `current` is its record. A hint,
 * which may be lost, duplicate or stale. Without a record it must not be used for changes
 * reported by a watch: these include our own, and a holder would renew without end. */
void executor_on_notify(struct executor *executor, const char *key,
                        const struct store_reply *current);
/* A change reported by a watch, with its key and record; may be stale. */
void executor_on_change(struct executor *executor, const struct store_reply *reply);
/* From any thread: the next tick runs the item. */
void executor_post(struct executor *executor, struct inbox_item *item);
/* True if an item was posted that no tick has collected. */
bool executor_has_posted(const struct executor *executor);
/* In the thread of the tick, behind all that was posted. */
void executor_add(struct executor *executor, struct inbox_item *item);
/* A call from the inbox may tick again, for all commands given so far, but no other call. */
void executor_tick(struct executor *executor);

/* True if the lease is granted and its deadline has not passed. */
bool executor_holds(const struct task *task);
/* True if the store fails requests of this task, or has not replied to one since `since_ms`. */
bool executor_in_trouble(const struct task *task, int64_t since_ms);
/* The time until which the reply to a granting write is awaited; NEVER if none is in flight, or the
 * store fails. */
int64_t executor_grant_due(const struct task *task);
/* True if a waiter of another process is in the cached queue of the task's key. */
bool executor_others_wait(const struct task *task);
const struct lease_options *executor_options(const struct task *task);
/* The cached record of the key, valid until the next call; NULL if there is none. */
const struct record *executor_cached_record(struct executor *executor, const char *key,
                                            struct stamp *out_at);

/* The same as the store's reply, valid until the next reply or notification. */
const struct store_reply *executor_last_reply(const struct executor *executor, const char *key);

struct executor_counts {
    uint64_t requests;  /* sent to the store … */
    uint64_t refused;   /* … or refused, by the breaker or when out of memory */
    uint64_t conflicts; /* among the replies */
    uint64_t troubles;  /* among the replies, or timeouts */
    uint64_t renewals, lost;
    uint64_t tasks, copies, copy_bytes; /* current values */
    bool breaker_open;
};

/* The time until the breaker admits a request of a non-holder; -1: at once. */
int64_t executor_retry_after(const struct executor *executor);
struct executor_counts executor_counts(const struct executor *executor);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the library share. Everything of a client that is not atomic is touched by its
 * loop's thread only: callers hand in tasks. With own_loop that thread is the caller.
 */
#ifndef LEASEHOLD_FACE_LIB_LIB_INTERNAL_H
#define LEASEHOLD_FACE_LIB_LIB_INTERNAL_H

#include "core/multi.h"
#include "net/loop.h"
#include "leasehold.h"
#include "runtime/local_queue.h"
#include "runtime/fast_path.h"
#include "runtime/watch_cache.h"
#include "store/store_thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum {
    CLIENT_MAGIC = 0xc11e27,
    LEASE_MAGIC = 0x1ea5e,
    FAST_LEASE_MAGIC = 0x11947,
    URL_SHOWN = 128,
};

#define DEFAULT_TTL_MS   ((int64_t)30000)
#define STORE_TIMEOUT_MS ((int64_t)10000)
#define KILL_GRACE_MS    ((int64_t)5000)
#define POLL_MS          ((int64_t)5000)
#define WAIT_MAX_MS      (INT64_MAX / 2) /* no moment that it ends at is too large to be counted */

#define CLOSING_TEXT "busy: the client is being closed"

struct query;
struct timed;

struct lh_client {
    uint32_t magic;
    unsigned char *alive; /* a page that the kernel wipes in a forked child */
    char url[URL_SHOWN], holder[HOLDER_MAX + 1];
    int64_t timeout_ms;
    uint64_t session;
    bool own_loop;
    lh_event_fn *on_event;
    void *event_user;
    struct loop *loop;
    pthread_t thread;                     /* without own_loop */
    unsigned calling;                     /* inside a function of the user's, … */
    _Atomic(const void *) calling_thread; /* … in this thread; NULL when outside */
    const struct store_driver *driver;
    struct store_facts facts;
    void *state;                       /* of a store that never waits, in the loop … */
    struct store_thread *store_thread; /* … or one that waits for a disk */
    bool submitted; /* to a store in the loop, which is to be stepped in this turn */
    struct local_queue *local_queue;
    struct fast_path
        *fast_path; /* plain locks of a store inside the process; NULL: all go to the desk */
    int64_t queue_wakes_at_ms;
    bool breaker_open; /* as last told */
    bool turning;      /* it will be said at the end when to be woken next */
    bool closing;
    atomic_size_t started;   /* calls and requests that did not block, until they are told */
    struct lh_lease *leases; /* wanted, held, or being given back */
    struct query *queries;   /* lists and histories on their way, and the one watch */
    struct lh_watcher *watches;
    struct watch_cache watch_cache; /* by that watch, for lh_peek() */
    struct timed *timed;            /* store requests on their way, when events are wanted */
    struct record scratch;
};

/* One key of a lease. */
struct lease_part {
    struct lh_lease *lease;
    char *key;
    struct local_waiter *waiter;
    struct fast_path_mark *mark; /* while there is a claim */
    _Atomic uint64_t token;
    int64_t deadline_ms;
    int64_t waits_since_us; /* in line; 0: it does not */
};

struct lh_lease {
    uint32_t magic;
    struct lh_client *client; /* NULL once it is closed */
    struct lh_lease *handle;  /* the user's: itself, or the light one that it grew from */
    struct lh_lease *next, *before;
    _Atomic int64_t deadline_ms; /* of the first key to end; 0 when it is not held */
    struct multi multi;
    struct lease_options options;
    struct meta *meta; /* ours, as are the words of the request */
    char *holder, *request_id, *payload;
    struct lh_once *once; /* of a claim on its way: where the caller reads what became of it */
    bool left;            /* it is left to its TTL as soon as it is granted */
    lh_lost_fn *on_lost;
    void *user;
    int64_t held_since_us; /* 0: it is not granted yet */
    bool waited, was_lost, end_emitted;
    struct lh_request *request; /* who waits for it, to be granted or given back; or NULL */
    size_t count;
    struct lease_part parts[];
};

/* Somebody who wants to hear, once, how an acquisition or a release went. */
struct lh_request {
    struct loop_task task, cancel_task;
    struct lh_lease *lease;
    lh_done_fn *done;
    void *user;
    int64_t began_us;
    bool borrowed; /* it is its caller's, and gone once `done` is called */
    bool cancelled, over;
    atomic_bool cancel_posted;
    struct lh_report report;
};

/* A blocking call, on its caller's stack; or a started one, with whom to tell. */
struct call {
    struct lh_client *client;
    sem_t ended;
    lh_done_fn *done; /* NULL: blocking */
    void *user;
    void *memory; /* of a started call, freed at its end */
    struct lh_report report;
};

/* client.c */
/* LH_OK, or why this call cannot be made here: forked, or within a function of the user's. */
enum lh_outcome client_admits(const struct lh_client *client, bool blocks,
                              struct lh_report *report);
/* The same for something new that does not block; a client that is being closed begins nothing. */
enum lh_outcome client_admits_start(const struct lh_client *client, struct lh_report *report);
/* Is the TTL long enough for this store? Otherwise the report is LH_USAGE (lib_acquire.c). */
bool client_admits_ttl(const struct lh_client *client, int64_t ttl_ms, struct lh_report *report);
/* "host:pid". Returns `words`. */
const char *client_default_holder(char *out, size_t size);
bool client_is_holder(const char *name);
bool client_is_forked(const struct lh_client *client);
void client_arm_timer(struct lh_client *client);
/* While the breaker is open: for so long; otherwise -1. */
int64_t client_retry_after(const struct lh_client *client);
/* Runs the task, or NULL: hears the store, and does what comes of it, in the loop's stead. */
void client_run_task(struct lh_client *client, struct loop_task *task);
/* Within the loop's only thread: sleeps a little; has the store news then? */
bool client_poll_store(struct lh_client *client);
/* Nothing is left to wait for? Then a closing client stops. */
void client_stop_if_idle(struct lh_client *client);

/* Around every function of the user's. */
void client_enter_callback(struct lh_client *client);
void client_leave_callback(struct lh_client *client);

/* events.c */
/* For the executor's site. */
void client_on_failure(void *owner, const struct executor_failure *failure);
void client_submit(struct lh_client *client, const struct store_request *request, store_done *done,
                   void *caller);
void client_emit(struct lh_client *client, const struct lh_event *event);
/* For people who look at the store with its own tools, where it has a place for that. */
void client_store_event(struct lh_client *client, const char *key, const char *reason,
                        const char *more, bool warns);
/* Forgets the requests that are not answered. */
void events_free(struct lh_client *client);

/* call.c */
void call_begin(struct call *call, struct lh_client *client);
/* Runs the task in the loop and waits until call_end(); then the report is copied. */
enum lh_outcome call_make(struct call *call, struct loop_task *task, struct lh_report *report);
/* Hands the task to the loop; `done` hears the rest. The call is in that memory. */
enum lh_outcome call_start(struct call *call, struct loop_task *task, void *memory,
                           lh_done_fn *done, void *user, struct lh_report *report);
/* In the loop. Blocking or started, it is gone then. */
void call_end(struct call *call);

/* lib_acquire.c */
/* NULL with a report when it cannot be. */
struct lh_lease *lease_new(struct lh_client *client, const char **keys, size_t count,
                           const struct lh_acquire_options *options, struct lh_report *report);
/* Both take the new lease over. The first blocks until it is known whether it is granted. */
enum lh_outcome lease_await(struct lh_lease *lease, struct lh_lease **out,
                            struct lh_report *report);
struct lh_request *lease_begin(struct lh_lease *lease, lh_done_fn *done, void *user,
                               struct lh_report *report);
/* LH_OK when the loop may be asked to end it. Otherwise the handle is freed, unless the call was
 * wrong. */
enum lh_outcome lease_admits_end(struct lh_lease **lease, bool blocks, struct lh_report *report);

/* lib_lease.c; what takes a task is run in the loop */
void lease_start(struct loop_task *task);
/* Tells its owner; the request is gone then. */
void request_end(struct lh_request *request, struct lh_client *client, struct lh_lease *granted);
void lease_release(struct loop_task *task);
/* Before it is given back: no cooldown begins. */
void lease_drop_cooldown(struct lh_lease *lease);
void lease_detach(struct loop_task *task);
/* Without a word to the store: it is neither renewed nor given back. */
void lease_forget(struct lh_lease *lease);
/* What was forgotten was given back by other means, with that outcome. */
void lease_free_ended(struct lh_lease *lease, enum lh_outcome outcome);
void lease_free(struct lh_lease *lease);
void lease_abandon_all(struct lh_client *client);
void lease_orphan_all(struct lh_client *client);
/* A lease that is held already, by a grant that stands in the store; NULL when out of memory. */
struct lh_lease *lease_adopt(struct lh_client *client, const char *key,
                             const struct lh_acquire_options *options, uint64_t token,
                             int64_t since_ms, struct lh_lease *handle);

/* lib_fast_path.c; a handle is light or full, and a light one may stand for a full one by now */
bool fast_lease_is(const struct lh_lease *lease);
/* What a light one stands for by now; NULL: itself. */
struct lh_lease *fast_lease_promoted(const struct lh_lease *lease);
struct lh_client *fast_lease_client(const struct lh_lease *lease);
void fast_lease_free(struct lh_lease *lease);
uint64_t fast_lease_token(const struct lh_lease *lease);
const char *fast_lease_key(const struct lh_lease *lease);
int64_t fast_lease_remaining_ms(const struct lh_lease *lease);
/* True when that is the answer: granted, or busy. False: ask the desk. */
bool fast_lease_acquire(struct lh_client *client, const char *key,
                        const struct lh_acquire_options *options, struct lh_lease **out,
                        struct lh_report *report, enum lh_outcome *out_outcome);
/* True when it is given back, and gone. */
bool fast_lease_release(struct lh_lease *lease);
/* In the loop: what a light handle stands for, made when need be. NULL when out of memory
 * for that: then it is given back already. */
struct lh_lease *fast_lease_promote(struct lh_lease *lease);
/* In the loop, around everything that is asked of a key. False when out of memory. */
bool fast_lease_mark_key(struct lh_client *client, const char *key,
                         struct fast_path_mark **out_mark);
void fast_lease_unmark_key(struct lh_client *client, struct fast_path_mark **mark);
/* Keys that nobody asks about any more are light again. */
void fast_lease_settle(struct lh_client *client);
/* False when out of memory. */
bool fast_lease_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                     bool *out_enough);
void fast_lease_orphan_all(struct lh_client *client);

/* Who is to be told of the end of a call that does not block. */
struct listener {
    lh_done_fn *done;
    void *user;
};

/* operation.c: a single verb. */
struct operation_hooks;
/* In the loop, when it has ended; what the report says may be put right here. */
typedef void operation_done_fn(const struct lh_client *client, const struct operation_hooks *hooks,
                               const struct task_news *news, struct lh_report *report);
struct operation_hooks {
    operation_done_fn *on_done;
    void *out; /* the caller's, until it is told; may be NULL */
    int64_t overlap_ms;
    struct lh_lease *ends; /* the verb ends this one's grant in its stead; or NULL */
};
/* Blocks, unless there is a listener. The aim may be NULL, and is copied, as are all words. */
enum lh_outcome operation_run(struct lh_client *client, const struct request *request,
                              const struct operation_hooks *hooks, const struct listener *listener,
                              struct lh_report *report);

/* lib_once.c: what is known of an id that was not granted. `out` may be NULL. */
void once_fill(const struct task_news *news, struct lh_once *out);

/* query.c */
int64_t query_next_ms(const struct lh_client *client);
void query_on_timer(struct lh_client *client, int64_t now_ms);
void query_free_all(struct lh_client *client);
/* Begins the watch of the store if there is none; true when it stands. */
bool query_start_watch(struct lh_client *client);
/* By what the record is judged, as it was heard then. */
struct view view_of(const struct lh_client *client, const struct stamp *at);
/* `pairs` has META_PAIRS_MAX of them, or is NULL: then neither meta nor reason are shown. */
void status_fill(const struct lh_client *client, const struct record *record,
                 const struct stamp *at, const char *key, struct lh_meta *pairs,
                 struct lh_view *out);

/* report.c: words for people: what happened, to what, and what to do. */
void report_clear(struct lh_report *report);
enum lh_outcome report_set(struct lh_report *report, enum lh_outcome outcome, const char *message);
void report_news(const struct lh_client *client, const char *key, const struct task_news *news,
                 enum outcome outcome, struct lh_report *out);
/* Instead of what a loss usually says: the lease had ended so long before. */
void report_expired(struct lh_report *report, const char *key, int64_t over_ms);
/* What a break has done, after report_news(). */
void report_break(const char *key, bool at_once, const struct broken *broken,
                  const struct task_news *news, struct lh_report *out);
/* LH_OK: it was to be given back, and the token does not hold it any more. */
void report_not_held(const char *key, uint64_t token, const struct task_news *news,
                     struct lh_report *out);
void report_copy(struct lh_report *to, const struct lh_report *from);
int64_t age_of(int64_t since_ms, int64_t now_ms);

#endif

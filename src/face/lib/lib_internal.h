/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals shared by the files of the library. Only the thread of a client's loop accesses its
 * non-atomic members; other threads post to its inbox. With own_loop that thread is the caller's.
 */
#ifndef LEASEHOLD_FACE_LIB_LIB_INTERNAL_H
#define LEASEHOLD_FACE_LIB_LIB_INTERNAL_H

#include "base/list.h"
#include "core/multi.h"
#include "net/loop.h"
#include "leasehold_admin.h"
#include "leasehold_once.h"
#include "runtime/local_queue.h"
#include "runtime/fast_path.h"
#include "runtime/watch_cache.h"
#include "store/store_thread.h"
#include "wire/metrics.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum {
    CLIENT_MAGIC = 0xc11e27,
    LEASE_MAGIC = 0x1ea5e,
    FAST_LEASE_MAGIC = 0x11947,
    URL_SHOWN = 128,
};

#define STORE_TIMEOUT_MS ((int64_t)10000)
#define KILL_GRACE_MS    ((int64_t)5000)
#define WAIT_MAX_MS      (INT64_MAX / 2) /* now + wait cannot overflow */

#define CLOSING_TEXT "busy: the client is being closed"

struct query;
struct timed;

struct lh_client {
    uint32_t magic;
    unsigned char *alive; /* a page that the kernel clears in a forked child */
    char url[URL_SHOWN], holder[HOLDER_MAX + 1];
    char *source; /* the URL as given; it may contain secrets */
    int64_t timeout_ms;
    uint64_t session;
    bool own_loop;
    lh_event_fn *on_event;
    void *event_user;
    struct loop *loop;
    pthread_t thread;                     /* without own_loop */
    unsigned calling;                     /* depth of user callbacks, … */
    _Atomic(const void *) calling_thread; /* … in this thread; NULL: none runs */
    const struct store_driver *driver;
    struct store_facts facts;
    void *state;                       /* of a store that never blocks, in the loop … */
    struct store_thread *store_thread; /* … or of one that waits for a disk */
    bool submitted; /* the store has new requests: step or wake it at the end of this turn */
    struct local_queue *local_queue;
    struct executor *executor;   /* the local queue's; its inbox is the client's */
    struct fast_path *fast_path; /* for memory: only; NULL: every lock uses the local queue */
    int64_t queue_wakes_at_ms;
    bool breaker_open; /* as last reported */
    bool turning;      /* inside a turn, which sets the timer at its end */
    bool stepping;     /* own_loop: inside lh_step() or lh_run(), which handle what is posted … */
    bool runs;         /* … and the caller has promised another one */
    bool closing;
    atomic_size_t started; /* started calls and requests whose `done` was not called */
    struct list leases;    /* being acquired, held, or being released */
    struct query *queries; /* lists and histories in flight, and the one watch */
    struct lh_watcher *watches;
    struct watch_cache watch_cache;         /* fed by that watch, for lh_peek() */
    struct list timed;                      /* store requests in flight */
    _Atomic uint64_t metrics[METRIC_SLOTS]; /* written in the loop only; see lib_metrics.c */
    _Atomic uint64_t fast_refusals;         /* busy on the fast path, from any thread */
    struct record scratch;
};

/* One key of a lease. */
struct lease_part {
    struct lh_lease *lease;
    char *key;
    struct local_waiter *waiter;
    struct fast_path_mark *mark; /* while there is a waiter */
    _Atomic uint64_t token;
    int64_t deadline_ms;
    int64_t waits_since_us; /* when it was queued; 0: it is not */
};

struct lh_lease {
    uint32_t magic;
    struct lh_client *client;    /* NULL once it is closed */
    struct lh_lease *handle;     /* the user's: itself, or the fast lease that was promoted */
    struct list_node node;       /* of the client's */
    _Atomic int64_t deadline_ms; /* the earliest of all keys; 0 when it is not held */
    struct multi multi;
    struct lease_options options;
    struct meta *meta;    /* a copy, or NULL … */
    char *payload;        /* … as this one */
    struct lh_once *once; /* the caller's result of a claim in flight */
    bool left;            /* detached as soon as it is granted */
    lh_lost_fn *on_lost;
    void *user;
    int64_t held_since_us; /* 0: it is not granted yet */
    bool waited, was_lost, end_emitted;
    struct lh_request *request; /* the acquisition or release in flight, or NULL */
    size_t count;
    struct lease_part parts[];
};

enum request_state {
    REQUEST_ACTIVE,
    REQUEST_CANCELLING, /* lh_cancel() was called; its task has not run */
    REQUEST_CANCELLED,  /* its task has run */
    REQUEST_OVER,       /* done was called */
};

/* An acquisition or a release in flight, and the callback that gets its result. */
struct lh_request {
    struct inbox_item task, cancel_task;
    struct lh_client *client; /* until it is over */
    struct lh_lease *lease;
    lh_done_fn *done;
    void *user;
    int64_t began_us;
    bool borrowed; /* on its caller's stack: invalid once `done` was called */
    bool cancelled, paused;
    _Atomic enum request_state state;
    atomic_uint users;
    struct lh_report report;
};

/* A blocking call, on its caller's stack; or a started one, with its callback. */
struct call {
    struct lh_client *client;
    sem_t ended;
    lh_done_fn *done; /* NULL: blocking */
    void *user;
    void *memory; /* of a started call, freed at its end */
    struct lh_report report;
};

/* client.c */
/* LH_OK, or the reason of a refusal: a forked child, or a blocking call within a callback. */
enum lh_outcome client_admits(const struct lh_client *client, bool blocks,
                              struct lh_report *report);
/* The same for a call that starts something: LH_BUSY if the client is being closed. */
enum lh_outcome client_admits_start(const struct lh_client *client, struct lh_report *report);
/* False with LH_USAGE if the TTL is below the store's minimum (lib_acquire.c). */
bool client_admits_ttl(const struct lh_client *client, int64_t ttl_ms, struct lh_report *report);
/* "host:pid". Returns `out`. */
const char *client_default_holder(char *out, size_t size);
bool client_is_holder(const char *name);
bool client_is_forked(const struct lh_client *client);
void client_arm_timer(struct lh_client *client);
/* How long the breaker stays open; -1: it is closed. */
int64_t client_retry_after(const struct lh_client *client);
/* One turn of the loop in the calling thread: runs the item, or with NULL steps the store. */
void client_run_item(struct lh_client *client, struct inbox_item *item);
/* Ticks the executor, and sends what it has submitted. Only within loop_enter(). */
void client_turn(struct lh_client *client);
bool client_is_due(struct lh_client *client); /* true if a timer is */
/* With own_loop: waits briefly for the store; true if it has a reply. */
bool client_poll_store(struct lh_client *client);
/* Stops the loop of a closing client once nothing is in flight. */
void client_stop_if_idle(struct lh_client *client);

/* own_loop.c: before the loop waits. From now on posted items wake it. */
void client_expect_wait(struct lh_client *client);

/* Around every user callback. */
void client_enter_callback(struct lh_client *client);
void client_leave_callback(struct lh_client *client);

/* events.c */
/* For executor_callbacks, as is client_submit(): the owner is the client. */
void client_on_failure(void *owner, const struct executor_failure *failure);
void client_submit(void *owner, const struct store_request *request, store_done *done,
                   void *caller);
void client_emit(struct lh_client *client, const struct lh_event *event);
/* An event in the store itself, such as of Kubernetes; nothing where a store has none. */
void client_store_event(struct lh_client *client, const char *key, const char *reason,
                        const char *more, bool warns);
/* Frees the entries of requests without a reply. */
void events_free(struct lh_client *client);

/* lib_metrics.c, in the loop */
/* Counts what the event says. */
void client_count_event(struct lh_client *client, const struct lh_event *event);
/* A reply of the store; us below 0: not measured. */
void client_count_reply(struct lh_client *client, enum store_verb verb, enum reply_status result,
                        int64_t us);
/* One run of a workload. */
struct workload_times {
    bool granted; /* the object was ours … */
    bool left;    /* … and stays */
    int64_t acquisition_us, hold_us;
};
void metrics_count_workload(struct metrics *metrics, enum lh_outcome outcome,
                            const struct workload_times *times);
/* The text with the prefix in the caller's buffer: lh_metrics() and lh_workloads_metrics(). */
enum lh_outcome metrics_output(const struct metrics *metrics, const char *prefix, bool gauges,
                               char *out, size_t size, size_t *out_length,
                               struct lh_report *report);

/* call.c */
void call_begin(struct call *call, struct lh_client *client);
/* Runs the task in the loop and waits for the semaphore, which it initialises before. */
void call_block(struct lh_client *client, struct inbox_item *task, sem_t *ended);
/* The same until call_end(); then the report is copied. */
enum lh_outcome call_make(struct call *call, struct inbox_item *task, struct lh_report *report);
/* Posts the task; `done` gets the result. `memory` contains the call and is freed after it. */
enum lh_outcome call_start(struct call *call, struct inbox_item *task, void *memory,
                           lh_done_fn *done, void *user, struct lh_report *report);
/* In the loop. The call is invalid afterwards. */
void call_end(struct call *call);

/* lib_acquire.c */
/* NULL with a report on failure. */
struct lh_lease *lease_new(struct lh_client *client, const char **keys, size_t count,
                           const struct lh_acquire_options *given, struct lh_report *report);
/* Both take ownership of the new lease. The first blocks until it is granted or refused. */
enum lh_outcome lease_await(struct lh_lease *lease, struct lh_lease **out,
                            struct lh_report *report);
struct lh_request *lease_begin(struct lh_lease *lease, lh_done_fn *done, void *user,
                               struct lh_report *report);
/* LH_OK: the loop may release it. LH_LOST: the handle is freed. LH_USAGE: nothing is changed. */
enum lh_outcome lease_admits_end(struct lh_lease **lease, bool blocks, struct lh_report *report);

/* lib_lease.c; functions with a task run in the loop */
void lease_start(struct inbox_item *task);
/* Calls `done`; the library does not use the request afterwards. */
void request_end(struct lh_request *request, struct lh_client *client, struct lh_lease *granted);
void lease_release(struct inbox_item *task);
/* Its release will start no cooldown. */
void lease_drop_cooldown(struct lh_lease *lease);
void lease_detach(struct inbox_item *task);
/* Stops renewals without a release: the grant stays in the store. */
void lease_forget(struct lh_lease *lease);
/* Frees a forgotten lease that another operation released, with that outcome. */
void lease_free_ended(struct lh_lease *lease, enum lh_outcome outcome);
void lease_free(struct lh_lease *lease);
void lease_abandon_all(struct lh_client *client);
void lease_orphan_all(struct lh_client *client);
/* A lease for a grant that is in the store already; NULL when out of memory. */
struct lh_lease *lease_adopt(struct lh_client *client, const char *key,
                             const struct lh_acquire_options *options, uint64_t token,
                             int64_t since_ms, struct lh_lease *handle);

/* lib_fast_path.c; a handle is a fast lease, which may have been promoted, or a full lease */
static inline bool fast_lease_is(const struct lh_lease *lease)
{
    /* Both kinds begin with their magic. */
    return *(const uint32_t *)(const void *)lease == FAST_LEASE_MAGIC;
}
/* The full lease of a fast one; NULL: not promoted. */
struct lh_lease *fast_lease_promoted(const struct lh_lease *lease);
struct lh_client *fast_lease_client(const struct lh_lease *lease);
void fast_lease_free(struct lh_lease *lease);
uint64_t fast_lease_token(const struct lh_lease *lease);
const char *fast_lease_key(const struct lh_lease *lease);
int64_t fast_lease_ttl_ms(const struct lh_lease *lease);
/* True: granted or busy, see *out_outcome. False: use the local queue. */
bool fast_lease_acquire(struct lh_client *client, const char *key,
                        const struct lh_acquire_options *options, struct lh_lease **out,
                        struct lh_report *report, enum lh_outcome *out_outcome);
/* True if it is released and freed. */
bool fast_lease_release(struct lh_lease *lease);
/* In the loop: the full lease of a fast one, promoted if necessary. NULL: out of memory, and the
 * hold is released. */
struct lh_lease *fast_lease_promote(struct lh_lease *lease);
/* In the loop, around every operation on a key. False when out of memory. */
bool fast_lease_mark_key(struct lh_client *client, const char *key,
                         struct fast_path_mark **out_mark);
void fast_lease_unmark_key(struct lh_client *client, struct fast_path_mark **mark);
/* Keys without operations may use the fast path again. */
void fast_lease_settle(struct lh_client *client);
/* False when out of memory. */
bool fast_lease_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                     bool *out_enough);
void fast_lease_orphan_all(struct lh_client *client);

/* The callback of a started call. */
struct listener {
    lh_done_fn *done;
    void *user;
};

/* operation.c: one request about one key. */
struct operation_hooks;
/* In the loop, when it has ended; may change the report. */
typedef void operation_done_fn(const struct lh_client *client, const struct operation_hooks *hooks,
                               const struct task_news *news, struct lh_report *report);
struct operation_hooks {
    operation_done_fn *on_done;
    void *out; /* the caller's, until the call ends; may be NULL */
    int64_t overlap_ms;
    struct lh_lease *ends; /* the lease whose grant the request ends, or NULL */
};
/* Blocks, unless there is a listener. The hooks may be NULL. Hooks and strings are copied. */
enum lh_outcome operation_run(struct lh_client *client, const struct request *request,
                              const struct operation_hooks *hooks, const struct listener *listener,
                              struct lh_report *report);

/* lib_once.c: the result of an id that was not granted. `out` may be NULL. */
void once_fill(const struct task_news *news, struct lh_once *out);
void once_set_token(struct lh_once *out, uint64_t token);

/* query.c */
int64_t query_next_ms(const struct lh_client *client);
void query_on_timer(struct lh_client *client, int64_t now_ms);
void query_free_all(struct lh_client *client);

/* lib_watch.c */
/* Starts the watch of the store if there is none; true if it is confirmed. */
bool watches_start_store(struct lh_client *client);
void watches_free_all(struct lh_client *client);

/* views.c */
/* The source of a view in a callback; valid as long as the record. */
struct lh_view_source {
    const struct record *record;
    struct view view;
    bool detects_processes;                     /* by locks of the kernel, on this host */
    struct lh_meta meta[META_PAIRS_MAX];        /* of the first holder */
    struct lh_meta holder_meta[META_PAIRS_MAX]; /* of the last one that lh_view_holder() showed */
};
/* The rules of expiry for a record that was read at that time. */
struct view view_of(const struct lh_client *client, const struct stamp *at);
/* `source` is filled; NULL: without meta, reason, result, holders and waiters. */
void status_fill(const struct lh_client *client, const struct record *record,
                 const struct stamp *at, const char *key, struct lh_view_source *source,
                 struct lh_view *out);
void status_fill_unreadable(const char *key, const char *why, struct lh_view *out);

/* sized.c: structs of the public headers that may grow. */
/* False if the caller's struct has no plausible size. NULL is valid. */
bool sized_is_valid(const void *sized);
/* Copies the caller's options; members that it does not know become 0. False if the size is not
 * plausible, or if the caller set a member that this release does not know. */
bool sized_read(void *to, size_t size, const void *from);
/* Copies a result to the caller's struct, no further than its size. NULL is allowed. */
void sized_write(void *to, const void *from, size_t size);

/* report.c */
/* An empty report of our own size. */
void report_init(struct lh_report *report);
enum lh_outcome report_set(struct lh_report *report, enum lh_outcome outcome, const char *message);
/* LH_OK with a text of our own, which needs no check. */
enum lh_outcome report_ok(struct lh_report *report, const char *message);
/* LH_DONE for the cooldown of an id. */
enum lh_outcome report_outcome(enum record_kind kind, enum outcome outcome);
void report_news(const struct lh_client *client, const char *key, const struct task_news *news,
                 enum outcome outcome, struct lh_report *out);
/* The text of a loss that was noticed `over_ms` after the lease had expired. */
void report_expired(struct lh_report *report, const char *key, int64_t over_ms);
/* Add, after report_news(), the holder and the times of the renewed grant … */
void report_renewed(const struct lh_client *client, uint64_t token, const struct task_news *news,
                    struct lh_report *out);
/* … and the effect of a release, with the cooldown that it started. */
void report_released(uint64_t token, const struct task_news *news, struct lh_report *out);
/* Adds the effect of a break, after report_news(). */
void report_break(const char *key, bool at_once, const struct broken *broken,
                  const struct task_news *news, struct lh_report *out);
/* LH_OK for a release if held whose token does not hold the key. */
void report_not_held(const char *key, uint64_t token, const struct task_news *news,
                     struct lh_report *out);
void report_copy(struct lh_report *to, const struct lh_report *from);
int64_t age_of(int64_t since_ms, int64_t now_ms);

#endif

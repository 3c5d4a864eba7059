/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold for operators, their tools, and the side that a lock protects: lists, history, break,
 * clear, names, diagnosis, collection, epochs, fencing, metrics and events, and the words of
 * refusals.
 * Threads, reports and callbacks are as in leasehold.h. The _start functions do not block: LH_OK
 * means that done will be called once. Calls with a URL need no client and block.
 */
#ifndef LEASEHOLD_ADMIN_H
#define LEASEHOLD_ADMIN_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lists ---- */

/* Block; call fn for every key that has a record and begins with the prefix, in any order; */
enum lh_outcome lh_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                        struct lh_report *report);
/* for the kept changes of a key, newest first. LH_USAGE where the store keeps none. */
enum lh_outcome lh_history(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                           struct lh_report *report);
enum lh_outcome lh_list_start(struct lh_client *client, const char *prefix, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_history_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                 lh_done_fn *done, void *user, struct lh_report *report);

/* ---- watch, peek and run, without blocking ---- */

/* As lh_watch(): done is called when it is set up, with LH_OK, or has failed; then fn for every
 * change. *out is set before and is yours, also after a failure, until lh_unwatch_start(). */
enum lh_outcome lh_watch_start(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                               lh_done_fn *done, void *user, struct lh_watcher **out,
                               struct lh_report *report);
/* Sets *watch to NULL. Neither fn nor done is called afterwards; without own_loop, a call that runs
 * in the client's thread meanwhile returns. Allowed in every callback, also in fn. */
enum lh_outcome lh_unwatch_start(struct lh_watcher **watch, struct lh_report *report);
/* done receives the outcome of lh_peek(). *cached_ms may be NULL, or is set before done. */
enum lh_outcome lh_peek_start(struct lh_client *client, const char *key, int64_t *cached_ms,
                              lh_done_fn *done, void *user, struct lh_report *report);
/* With own_loop: handles started calls and timers that are due, but polls no descriptor; for that
 * call lh_step() when lh_fd() is readable. From the first call on, calls that you start do not make
 * lh_fd() readable: call lh_run() or lh_step() after them. It costs few or no system calls. */
enum lh_outcome lh_run(struct lh_client *client);

/* ---- holders and waiters ---- */

/* Of a semaphore or a shared lock there are several. Times are as in struct lh_view. */
struct lh_holder {
    size_t size; /* set by LH_HOLDER_INIT; the library writes no further than this */
    uint64_t token;
    int64_t since_ms, ends_in_ms, takeover_in_ms, renewed_ago_ms, ttl_ms;
    bool shared;
    bool bound;                 /* it ends with its process, where the store notices that */
    bool broken;                /* an operator asked it to stop */
    const struct lh_meta *meta; /* until the next call for this view */
    size_t meta_count;
    char name[LH_HOLDER_SIZE];
    bool foreign; /* another program's: token and since_ms mean nothing. It cannot be asked to stop;
                     lh_break() at once removes a Lease's holder, and no value in Redis */
    bool by_heartbeat; /* its process renews all its leases together: this one ends when the process
                          gives it up, or sends no heartbeat for ttl_ms. renewed_ago_ms is the age
                          of the grant */
};
#define LH_HOLDER_INIT                                                                            \
    {                                                                                             \
        sizeof(struct lh_holder), 0, -1, -1, -1, -1, -1, false, false, false, NULL, 0, "", false, \
            false                                                                                 \
    }

struct lh_waiter {
    size_t size;       /* set by LH_WAITER_INIT; the library writes no further than this */
    int64_t since_ms;  /* time in the queue; -1: unknown */
    uint32_t position; /* 1 is next; all that were offered the key are */
    int32_t priority;
    bool shared;
    bool offered; /* the key is reserved for it, and it has not confirmed yet */
    char name[LH_HOLDER_SIZE];
};
#define LH_WAITER_INIT                                       \
    {                                                        \
        sizeof(struct lh_waiter), -1, 0, 0, false, false, "" \
    }

enum { LH_RECORD_SIZE = 64 * 1024 + 1 };

/* Of a view within the callback that received it, not of a copy: the holder or waiter with this
 * index, in the order of grants and of the queue. False: there is none. */
bool lh_view_holder(const struct lh_view *view, size_t index, struct lh_holder *out);
bool lh_view_waiter(const struct lh_view *view, size_t index, struct lh_waiter *out);
/* The processes whose end would end that holder's lease: at most `size` ids, as far as this user
 * may see them in /proc, which takes milliseconds. Their number; 0: none is visible. -1: the store
 * does not detect dead processes, or the lease is unbound. */
int lh_view_processes(const struct lh_view *view, size_t index, int *out_pids, size_t size);
/* The record as one line of JSON, as stores keep it, NUL-terminated. Its length; 0: there is none,
 * or `size` is too small, which LH_RECORD_SIZE never is. */
size_t lh_view_record(const struct lh_view *view, char *out, size_t size);

/* ---- requests whose caller is away ---- */

/* Of a client with own_loop, in its thread: the request of lh_acquire_start() keeps its queue
 * position, is passed over and is not granted until lh_resume(); its wait goes on. If only paused
 * requests wait for a key, the client gives up its own position in the store's queue. Of several
 * keys, the one that the request waits for now is passed over. No effect after done was called, on
 * a request without wait_ms, and without own_loop. */
void lh_pause(struct lh_request *request);
void lh_resume(struct lh_request *request);

/* ---- break and clear ---- */

/* Blocks. Asks the holder to stop: the key is free when it confirms or when its lease ends, which
 * is not renewed any more. at_once: the key is free now, and only tokens keep the old holder out.
 * The report's effect says what was done; its holder, token and times are the old holder's. */
enum lh_outcome lh_break(struct lh_client *client, const char *key, const char *reason,
                         bool at_once, struct lh_report *report);
enum lh_outcome lh_break_start(struct lh_client *client, const char *key, const char *reason,
                               bool at_once, lh_done_fn *done, void *user,
                               struct lh_report *report);
/* Blocks. Ends a cooldown. */
enum lh_outcome lh_clear(struct lh_client *client, const char *key, struct lh_report *report);
enum lh_outcome lh_clear_start(struct lh_client *client, const char *key, lh_done_fn *done,
                               void *user, struct lh_report *report);

/* ---- events ---- */

enum lh_event_kind {
    LH_EVENT_ATTEMPT,      /* an acquisition, or the claim of an id, starts */
    LH_EVENT_WAITING,      /* it enters the queue of this key */
    LH_EVENT_WAITED,       /* it leaves the queue; after_us: time in the queue */
    LH_EVENT_GRANTED,      /* after_us: time since the attempt */
    LH_EVENT_TAKEOVER,     /* the grant replaces a dead or expired holder; before GRANTED */
    LH_EVENT_REFUSED,      /* outcome says why; after_us: time since the attempt */
    LH_EVENT_RENEWED,      /* after_us: time held; by token: -1 */
    LH_EVENT_RENEW_FAILED, /* one attempt to renew; it is repeated until the deadline */
    LH_EVENT_LOST,         /* after_us: time held */
    LH_EVENT_RELEASED,     /* after_us: time held; -1: lost before, or released by token */
    LH_EVENT_LEFT,         /* detached; after_us: time held */
    LH_EVENT_MARK,         /* lh_mark(): LH_OK is new; after_us: duration */
    LH_EVENT_WATERMARK,    /* a move succeeded or failed; after_us: duration */
    LH_EVENT_RETRY,        /* a store request for this key failed and is repeated */
    LH_EVENT_STORE,        /* the store replied; verb says to what; after_us: duration */
    LH_EVENT_BREAKER       /* LH_UNAVAILABLE: the circuit breaker opened; LH_OK: it closed */
};

/* Passed to on_event of lh_open_options; docs/metrics.md says how each metric is counted. */
struct lh_event {
    size_t size;
    enum lh_event_kind kind;
    enum lh_outcome outcome; /* STORE, RETRY: ok, busy (a conflict), unavailable or denied */
    enum lh_kind key_kind;
    bool waited;      /* GRANTED, REFUSED: it was queued */
    const char *key;  /* until the callback returns; empty: about the store */
    const char *verb; /* STORE: "swap", "read" ...; otherwise NULL */
    uint64_t token;
    int64_t after_us; /* -1: unknown */
};

/* ---- metrics ---- */

enum { LH_METRICS_SIZE = 65536 };

/* The client's metrics since lh_open(), in the text format of Prometheus: docs/metrics.md lists
 * them. Names begin with the prefix and an underscore; a prefix has 1 to 64 letters, digits and
 * underscores. out holds `size` bytes, LH_METRICS_SIZE are enough; *out_length is set without the
 * NUL, also if it does not fit: then the call is LH_USAGE, and out is untouched. From any thread,
 * also within callbacks; sends no request. */
enum lh_outcome lh_metrics(struct lh_client *client, const char *prefix, char *out, size_t size,
                           size_t *out_length, struct lh_report *report);

/* ---- words ---- */

/* The call that a refusal is about, in the table of docs/refusals.md. */
enum lh_verb {
    LH_VERB_ANY,
    LH_VERB_ACQUIRE, /* without waiting */
    LH_VERB_WAIT,    /* acquire with a wait */
    LH_VERB_RENEW,
    LH_VERB_RELEASE,
    LH_VERB_ONCE,   /* claim, begin, mark, status */
    LH_VERB_FINISH, /* also abandon, and renew a claim */
    LH_VERB_WATERMARK,
    LH_VERB_CHECK,
    LH_VERB_CANCEL, /* an acquisition that the caller gave up */
    LH_VERB_WORKLOAD
};
/* The word of a refusal, as in metrics: "contention" ... NULL for LH_OK. From any thread. */
const char *lh_refusal_word(enum lh_verb verb, enum lh_outcome outcome);

/* ---- stores ---- */

enum { LH_NAME_SIZE = 1024 };

/* The URL schemes that are built in, by number: "file" …; NULL beyond the last one. */
const char *lh_store_scheme(size_t index);
/* The name of a key in the store, for the store's own tools: a Redis key, the name of a Lease. out
 * holds `size` bytes, LH_NAME_SIZE are always enough, and is untouched unless LH_OK. The store is
 * not opened. */
enum lh_outcome lh_key_name(const char *url, const char *key, char *out, size_t size,
                            struct lh_report *report);

/* ---- diagnosis ---- */

enum lh_finding_level {
    LH_FINDING_OK,
    LH_FINDING_WARNING, /* locks work, but something weakens them */
    LH_FINDING_PROBLEM  /* the store cannot be used */
};

struct lh_finding {
    size_t size;
    enum lh_finding_level level;
    const char *about;  /* one word: "clock", "rights" … */
    const char *text;   /* the finding, in one line for people */
    const char *remedy; /* NULL: none, or the text says it */
};

/* Called within lh_diagnose(), once for each finding, which is valid until the function returns. */
typedef void lh_finding_fn(void *user, const struct lh_finding *finding);

struct lh_diagnose_options {
    size_t size;
    const char *kind;    /* k8s: also whether lh_workload_run() may use this kind: "jobs.batch" */
    bool creates_folder; /* file: you create a missing folder, so that is no problem */
    bool events_only;    /* only a warning when the URL wants Events that may not be written */
    int64_t timeout_ms;  /* for one reply of the store; 0, or above its limit: its limit, 2-5 s */
};
#define LH_DIAGNOSE_OPTIONS_INIT                                  \
    {                                                             \
        sizeof(struct lh_diagnose_options), NULL, false, false, 0 \
    }

/* Examines clock, store, permissions and settings. LH_OK says that it looked, not that all is well:
 * the findings say that. Changes no record; a file store recovers and grows as for every client. */
enum lh_outcome lh_diagnose(const char *url, const struct lh_diagnose_options *options,
                            lh_finding_fn *fn, void *user, struct lh_report *report);

/* ---- collection ---- */

struct lh_collect_options {
    size_t size;
    const char *kind;      /* k8s: also objects of lh_workload_run() of this kind: "jobs.batch" */
    const char *done_when; /* how such an object ends, as in struct lh_workloads_options */
    const char *failed_when;
    const char *ended_at;
    uint32_t rate;      /* removals in a minute, 60000 at most; 0: 600 */
    int64_t timeout_ms; /* for one reply of the store; 0: 10 s */
};
#define LH_COLLECT_OPTIONS_INIT                                         \
    {                                                                   \
        sizeof(struct lh_collect_options), NULL, NULL, NULL, NULL, 0, 0 \
    }

struct lh_collected {
    size_t size;            /* set by LH_COLLECTED_INIT; the library writes no further */
    unsigned left, removed; /* found, and of them removed */
    unsigned taken;         /* used again before they were removed */
    bool partial;           /* it ended early, and the report says why */
};
#define LH_COLLECTED_INIT                           \
    {                                               \
        sizeof(struct lh_collected), 0, 0, 0, false \
    }

/* Removes locks whose holders died long ago, cooldowns and ids that are over, from a store that
 * does not forget by itself (k8s); elsewhere it finds nothing. Safe at any time, also twice at
 * once. *out is untouched when nothing was examined. */
enum lh_outcome lh_collect(const char *url, const struct lh_collect_options *options,
                           struct lh_collected *out, struct lh_report *report);

/* ---- epoch ---- */

/* The epoch is the highest part of every token: token / 2^55. A restored backup repeats tokens,
 * unless the epoch is raised before the store is used again. */
struct lh_epoch {
    size_t size;             /* set by LH_EPOCH_INIT; the library writes no further */
    uint32_t epoch;          /* of all further tokens */
    uint32_t behind;         /* parts of the store with an older epoch: raise it again */
    uint64_t revision;       /* grows with every write of the store, in one epoch; 0: unknown */
    int64_t now_ms;          /* the store's clock, in ms since 1970; -1: unknown */
    char kept[LH_NAME_SIZE]; /* where the store keeps it, for people */
};
#define LH_EPOCH_INIT                            \
    {                                            \
        sizeof(struct lh_epoch), 0, 0, 0, -1, "" \
    }

/* Reads the epoch, and changes nothing. timeout_ms is for one reply of the store; 0: 10 s. LH_USAGE
 * for memory:, which no backup survives. */
enum lh_outcome lh_epoch_read(const char *url, int64_t timeout_ms, struct lh_epoch *out,
                              struct lh_report *report);
/* Raises the epoch: above that of the token `above`, unless it is already; 0: by one. After LH_OK
 * every token that the store newly grants is above all of earlier epochs; a process that hands a
 * grant from before on among its threads stays in the old epoch, as versions without epochs do, and
 * k8s: has limits (docs/kubernetes-store.md). So end all users first. Grants that exist keep their
 * tokens, and are renewed and released by them. LH_USAGE past the highest epoch, 255. */
enum lh_outcome lh_epoch_raise(const char *url, uint64_t above, int64_t timeout_ms,
                               struct lh_epoch *out, struct lh_report *report);

/* ---- polling ---- */

/* The interval in milliseconds at which waiters and watches poll a store that reports no changes,
 * as github: does; a hand-off takes up to that long. 0: the store reports them. */
int64_t lh_poll_ms(const struct lh_client *client);

/* ---- fencing ---- */

/* For the side that is written to: admits a writer unless a higher token was seen. The file at
 * `path` keeps the highest token of each key; all writers use the same file. LH_OK: the token is on
 * the disk, and no other writer of the key is admitted until the descriptor and all its copies are
 * closed. It is yours to close; exec closes it. wait_ms, or LH_WAIT_FOREVER: for another writer. */
enum lh_outcome lh_check(const char *path, const char *key, uint64_t token, int64_t wait_ms,
                         int *out_fd, struct lh_report *report);

#ifdef __cplusplus
}
#endif

#endif

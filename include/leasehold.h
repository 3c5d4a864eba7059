/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold: locks that are leases, in a store of your choice. A lock that you hold has a token
 * that only grows: hand it to whatever the lock guards, so that a late writer can be refused.
 *
 *     struct lh_client *client = NULL;
 *     struct lh_lease *lease = NULL;
 *     struct lh_report report;
 *     if (lh_open("file:/var/lib/app/locks.log", NULL, &client, &report) != LH_OK) ...
 *     if (lh_acquire(client, "nightly", NULL, &lease, &report) == LH_OK) {
 *         ... work, and ask lh_held(lease) before each step that must not be done twice ...
 *         lh_release(&lease, &report);
 *     }
 *     lh_close(&client);
 *
 * Options may be NULL; then, and where a field is 0 or NULL, the default counts. A report may be
 * NULL too. Strings are copied. docs/library.md says for every function what it can answer.
 * Objects of a Kubernetes cluster that are locks themselves: leasehold_workload.h.
 *
 * Threads. A client may be used by any number of threads. It has a thread of its own, with all
 * signals blocked, that renews leases and calls your functions; on memory: they may also be called
 * within a blocking call, by its thread. Your functions must not block, and must not make a
 * blocking call of this library: it answers LH_USAGE. With own_loop there is no such thread: poll
 * lh_fd(), call lh_step(), and use the client from that one thread only.
 *
 * After fork() all handles are the parent's: in the child every call answers LH_LOST, and nothing
 * is held. A child that wants locks opens a client of its own. The library never logs, never
 * changes a signal's disposition and never ends your process, unless an assert of its own fails.
 */
#ifndef LEASEHOLD_H
#define LEASEHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_client;
struct lh_lease;   /* one key or several that are held together */
struct lh_request; /* an acquisition on its way */
struct lh_watcher;

enum lh_outcome {
    LH_OK,
    LH_BUSY,        /* held elsewhere, or not granted within the wait */
    LH_COOLING,     /* recently done: see cooldown_ms */
    LH_LOST,        /* what you held is not yours any more */
    LH_STALE,       /* the token is not the one that holds; nothing was changed */
    LH_UNAVAILABLE, /* the store is in trouble: neither free nor busy */
    LH_DENIED,      /* the store does not let you */
    LH_MISMATCH,    /* the key is in use as something else, or with another limit or payload */
    LH_USAGE,       /* the call itself is wrong */
    LH_FAILED       /* memory, threads or descriptors are short */
};

enum { LH_HOLDER_SIZE = 129, LH_KEY_SIZE = 513, LH_TEXT_SIZE = 256, LH_KEYS_MAX = 16 };

#define LH_WAIT_FOREVER ((int64_t)-1)

enum lh_state {
    LH_FREE,
    LH_HELD,
    LH_OFFERED, /* somebody is next, and has not come in yet */
    LH_COOLING_DOWN,
    LH_DELAYED,   /* after a crash */
    LH_UNREADABLE /* list, watch, history: the record is not one that this version reads */
};

/* What a call that succeeded has done, where there is more than one answer. */
enum lh_effect {
    LH_EFFECT_NONE,     /* break: nobody held it; other calls: they have no effect of their own */
    LH_EFFECT_ASKED,    /* break: the holder is asked to stop, and holds until it confirms */
    LH_EFFECT_FREED,    /* break at once: it was taken from the holder */
    LH_EFFECT_RELEASED, /* give back: this call gave it back */
    LH_EFFECT_GONE,     /* give back if held: nobody holds it any more; nothing was changed */
    LH_EFFECT_TAKEN     /* give back if held: another token holds it; nothing was changed */
};

/* What happened. Lengths of time are in milliseconds; -1 means unknown. */
struct lh_report {
    enum lh_outcome outcome;
    uint64_t token; /* granted to you; with LH_BUSY the holder's, or 0 */
    char holder[LH_HOLDER_SIZE];
    char key[LH_KEY_SIZE];  /* of several keys the one that it is about; empty: none */
    int64_t since_ms;       /* for how long it has been so */
    int64_t ends_in_ms;     /* when the lease, or the cooldown, ends … */
    int64_t takeover_in_ms; /* … and others may have it: later, where clocks may be apart */
    /* LH_UNAVAILABLE: after repeated failures the store is not asked before then, and calls that
     * need it are answered at once; -1: try when you like */
    int64_t retry_after_ms;
    char text[LH_TEXT_SIZE];
    const char *refusal;   /* one word, by outcome and call: docs/refusals.md; NULL with LH_OK */
    enum lh_effect effect; /* with LH_OK of break and give back; holder, token and times are … */
    enum lh_state state;   /* … the broken holder's, or who holds; and the key is in this state */
};

/* What a key is used as. Ids are under "once:", watermarks under "watermark:". */
enum lh_kind {
    LH_LOCK,
    LH_ONCE,     /* held is running, cooling is done */
    LH_WATERMARK /* always free; holder and since_ms are of its last move */
};

enum lh_event_kind {
    LH_EVENT_ATTEMPT,      /* an acquisition, or the claim of an id, began */
    LH_EVENT_WAITING,      /* it has a place in line for this key … */
    LH_EVENT_WAITED,       /* … and left it; after_us: time in the queue */
    LH_EVENT_GRANTED,      /* after_us: how long it took */
    LH_EVENT_TAKEOVER,     /* … from a holder that was dead or had run out; told before GRANTED */
    LH_EVENT_REFUSED,      /* outcome says why; after_us: how long it took */
    LH_EVENT_RENEWED,      /* after_us: time held; by token: -1 */
    LH_EVENT_RENEW_FAILED, /* one try to renew this key; it is repeated until the deadline */
    LH_EVENT_LOST,         /* after_us: time held */
    LH_EVENT_RELEASED,     /* after_us: time held; -1: lost before, or released by token */
    LH_EVENT_LEFT,         /* detached, left to its TTL; after_us: time held */
    LH_EVENT_MARK,         /* lh_mark(): LH_OK is new; after_us: how long it took */
    LH_EVENT_WATERMARK,    /* it was moved, or was not; after_us: how long it took */
    LH_EVENT_RETRY,        /* a request to the store about this key failed and will be repeated:
                            * outcome as in LH_EVENT_STORE; after_us: how long it took */
    LH_EVENT_STORE,        /* the store answered; after_us: how long it took; key is its verb */
    LH_EVENT_BREAKER       /* LH_UNAVAILABLE: the store is spared for a while; LH_OK: no more */
};

/* docs/library.md says how each metric is counted. */
struct lh_event {
    enum lh_event_kind kind;
    enum lh_outcome outcome; /* LH_EVENT_STORE: ok, busy (a conflict), unavailable or denied */
    enum lh_kind of;         /* what the key is used as */
    bool waited;             /* GRANTED, REFUSED: it stood in line */
    const char *key;         /* until the function returns; empty when it is about the store */
    uint64_t token;
    int64_t after_us; /* microseconds; -1: unknown */
};

/* Called where your functions are called; for metrics. Does not block. */
typedef void lh_event_fn(void *user, const struct lh_event *event);
/* The lease is lost: stop what it guards, then release it. lh_held() is false already. */
typedef void lh_lost_fn(void *user, struct lh_lease *lease, const struct lh_report *report);
/* Exactly once for each start. The lease is yours when the outcome is LH_OK, otherwise NULL. */
typedef void lh_done_fn(void *user, struct lh_lease *lease, const struct lh_report *report);

struct lh_open_options {
    size_t size;        /* of this struct: LH_OPEN_OPTIONS_INIT sets it */
    const char *holder; /* who you are, shown to others: "host:pid" */
    int64_t timeout_ms; /* the store timeout: how long it may fail or not answer; 10 s */
    bool own_loop;      /* no thread; you poll */
    lh_event_fn *on_event;
    void *user; /* on_event's */
};
#define LH_OPEN_OPTIONS_INIT                                       \
    {                                                              \
        sizeof(struct lh_open_options), NULL, 0, false, NULL, NULL \
    }

struct lh_meta {
    const char *name;
    const char *value;
};

struct lh_acquire_options {
    size_t size;            /* of this struct: LH_ACQUIRE_OPTIONS_INIT sets it */
    int64_t ttl_ms;         /* 30 s, renewed at a third; lost at two thirds without renewal. Below
                             * the store's minimum it is LH_USAGE: memory: 10 ms, file: 100 ms,
                             * redis: 500 ms, k8s: 1 s. */
    int64_t wait_ms;        /* 0: not at all; LH_WAIT_FOREVER; several keys: for each anew */
    int64_t cooldown_ms;    /* after a clean release the key answers LH_COOLING for so long */
    int64_t lock_delay_ms;  /* after a crash nobody is let in for so long */
    int32_t priority;       /* -100 to 100, higher first */
    uint32_t limit;         /* a semaphore of so many; 0: a lock */
    bool shared;            /* together with other shared ones; not with a limit */
    bool unbound;           /* outlives the process, until its TTL; see lh_detach() */
    const char *holder;     /* the client's */
    const char *request_id; /* repeated with the same one, you get the same grant; one key only */
    const struct lh_meta *meta;
    size_t meta_count; /* at most 16 pairs, 1 KiB together */
    lh_lost_fn *on_lost;
    void *user; /* on_lost's */
};
#define LH_ACQUIRE_OPTIONS_INIT                                                                 \
    {                                                                                           \
        sizeof(struct lh_acquire_options), 0, 0, 0, 0, 0, 0, false, false, NULL, NULL, NULL, 0, \
            NULL, NULL                                                                          \
    }

/* ---- client ---- */

/* Blocks while the store is opened, recovered if need be. *out is untouched unless LH_OK. */
enum lh_outcome lh_open(const char *url, const struct lh_open_options *options,
                        struct lh_client **out, struct lh_report *report);
/*
 * Blocks. Gives bound leases back as lh_release() does, leaves unbound ones to their TTL, ends what
 * is on its way, then sets *client to NULL. Lease handles that are left are only good for
 * lh_release() afterwards, which frees them; watches are gone. Nobody else may be using the client,
 * and a function that the client calls cannot close it: nothing happens then.
 */
void lh_close(struct lh_client **client);
/* With own_loop: readable when lh_step() has something to do; -1 otherwise. */
int lh_fd(struct lh_client *client);
/* With own_loop: does what there is to do, without blocking. */
enum lh_outcome lh_step(struct lh_client *client);
/*
 * A new descriptor, yours to close, that exec does not close: while any process has it open, bound
 * leases of this client do not end with your process, only with their TTL. For a command to inherit
 * that works under them. -1 where the store does not know who lives (memory:), or when it failed.
 * From anywhere.
 */
int lh_liveness(struct lh_client *client);

/* ---- taking and giving back ---- */

/* Blocks for wait_ms, or until the store timeout; without a wait a store that refuses every
 * connection, or is left alone for a while (retry_after_ms), is told at once. */
enum lh_outcome lh_acquire(struct lh_client *client, const char *key,
                           const struct lh_acquire_options *options, struct lh_lease **out,
                           struct lh_report *report);
/* All or none of up to 16 keys, taken in sorted order. Blocks. */
enum lh_outcome lh_acquire_all(struct lh_client *client, const char *const *keys, size_t count,
                               const struct lh_acquire_options *options, struct lh_lease **out,
                               struct lh_report *report);
/* Does not block; done is called from the client's thread or lh_step(), never from within. NULL
 * when the call is wrong, out of memory or the client is being closed: then done is not called,
 * and the report says why. */
struct lh_request *lh_acquire_start(struct lh_client *client, const char *key,
                                    const struct lh_acquire_options *options, lh_done_fn *done,
                                    void *user, struct lh_report *report);
/* As lh_acquire_all(), without blocking. */
struct lh_request *lh_acquire_all_start(struct lh_client *client, const char *const *keys,
                                        size_t count, const struct lh_acquire_options *options,
                                        lh_done_fn *done, void *user, struct lh_report *report);
/* Gives up. done is called all the same, with LH_BUSY, or with LH_OK when it was granted by then:
 * so a request must not be cancelled after done was called. From anywhere. */
void lh_cancel(struct lh_request *request);

/* Blocks; frees the handle and sets *lease to NULL, whatever the outcome but LH_USAGE. */
enum lh_outcome lh_release(struct lh_lease **lease, struct lh_report *report);
/* The same, but no cooldown begins: what the lock was for was not done, and may be tried again. */
enum lh_outcome lh_abandon(struct lh_lease **lease, struct lh_report *report);
/* Does not block; the handle is gone at once. done may be NULL. For callbacks and event loops. */
enum lh_outcome lh_release_start(struct lh_lease **lease, lh_done_fn *done, void *user);
enum lh_outcome lh_abandon_start(struct lh_lease **lease, lh_done_fn *done, void *user);
/* Blocks. Leaves an unbound lease in the store, unrenewed, and frees the handle: the token is all
 * that is left of it. LH_USAGE, and nothing is changed, for a bound one. */
enum lh_outcome lh_detach(struct lh_lease **lease, struct lh_report *report);

/* True while the lease is yours: asks the clock and never the store. From anywhere, any time. */
bool lh_held(const struct lh_lease *lease);
/* The fencing token, also after a loss; with several keys the first one's. From anywhere. */
uint64_t lh_token(const struct lh_lease *lease);
/* Of several keys, in sorted order: NULL and 0 beyond the last one. From anywhere. */
const char *lh_key_at(const struct lh_lease *lease, size_t index);
uint64_t lh_token_at(const struct lh_lease *lease, size_t index);
/* How long it stays yours if no renewal comes through; 0 when lost. From anywhere. */
int64_t lh_remaining_ms(const struct lh_lease *lease);

/* By token, for grants without a handle. Both block. ttl_ms 0 keeps the lease's own; a renewal
 * never makes a lease shorter. */
enum lh_outcome lh_renew(struct lh_client *client, const char *key, uint64_t token, int64_t ttl_ms,
                         struct lh_report *report);
enum lh_outcome lh_give_back(struct lh_client *client, const char *key, uint64_t token,
                             int64_t cooldown_ms, struct lh_report *report);
/* The same, but LH_OK instead of LH_STALE when the token does not hold the key any more: nothing is
 * changed then, no cooldown begins, and the report's effect says which it was. */
enum lh_outcome lh_give_back_if_held(struct lh_client *client, const char *key, uint64_t token,
                                     int64_t cooldown_ms, struct lh_report *report);

/* ---- looking ---- */

struct lh_view {
    char key[LH_KEY_SIZE];
    enum lh_kind kind;
    enum lh_state state;
    char holder[LH_HOLDER_SIZE]; /* the first of them, or who cooled it */
    uint64_t token;
    int64_t since_ms;       /* for how long; -1: unknown */
    int64_t ends_in_ms;     /* -1: unknown; 0: the lease is over … */
    int64_t takeover_in_ms; /* … but others may take it only then: clocks may be apart */
    int64_t renewed_ago_ms; /* the lease of the first holder; -1: unknown, or not held */
    int64_t written_ago_ms; /* list, watch, history: when the record was written; -1: unknown */
    /* The same as the store's own clock had it, in ms since 1970: equal in every call. -1: unknown,
     * or that clock counts from another moment (memory:). */
    int64_t written_at_ms;
    uint32_t holders, waiters;
    uint32_t place; /* of this very client in the line, 1 is next; 0: it has none */
    uint32_t limit; /* of a semaphore, else 0 */
    bool shared;
    bool broken;                /* an operator wants it back: it is not renewed any more */
    uint64_t revision;          /* of the store's record; 0: there is none */
    const char *reason;         /* of the last break; until the function returns, as what follows */
    const struct lh_meta *meta; /* of the first holder */
    size_t meta_count;
    const char *result; /* of an id that was done, or a watermark's value; otherwise empty */
    int status;         /* of an id that was done: 0 is success */
    const char *text;   /* unreadable: why; otherwise NULL */
    /* No reason, meta and result in lh_status(), where they are NULL: nowhere to keep them. */
};

/* Returns false to hear no more. */
typedef bool lh_view_fn(void *user, const struct lh_view *status);
/* status is NULL when the watch has ended by itself; then the report says why. */
typedef void lh_watch_fn(void *user, const struct lh_view *status, const struct lh_report *report);

/* Blocks; asks the store. A free key is LH_OK with LH_FREE. */
enum lh_outcome lh_status(struct lh_client *client, const char *key, struct lh_view *out,
                          struct lh_report *report);
/* As lh_status(), for fn, once, with reason and meta. */
enum lh_outcome lh_look(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                        struct lh_report *report);
/*
 * Before work that somebody else may be at, or has just done: LH_OK is free (a semaphore: has
 * room), LH_BUSY and LH_COOLING are as from lh_acquire(), and the report says by whom, since when
 * and for how long. Answered from a copy that a watch of the store keeps, without asking it:
 * *cached_ms says how long ago the copy was heard, 30 s at most; -1 when the store was asked, as at
 * first and where it cannot watch. A copy is a hint: acquire decides. Blocks when the store is
 * asked.
 */
enum lh_outcome lh_peek(struct lh_client *client, const char *key, int64_t *cached_ms,
                        struct lh_report *report);
/* Blocks; calls fn for every key that has a record and begins with the prefix, in any order. */
enum lh_outcome lh_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                        struct lh_report *report);
/* Blocks; calls fn for the kept changes of a key, newest first. LH_USAGE where none are kept. */
enum lh_outcome lh_history(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                           struct lh_report *report);
/* Blocks until it is set up; from then on fn is called for every change under the prefix. */
enum lh_outcome lh_watch(struct lh_client *client, const char *prefix, lh_watch_fn *fn, void *user,
                         struct lh_watcher **out, struct lh_report *report);
/* Blocks; fn is not called any more once it returns. */
enum lh_outcome lh_unwatch(struct lh_watcher **watch, struct lh_report *report);

/* ---- done once ---- */

enum { LH_RESULT_SIZE = 1025, LH_POSITION_SIZE = 1025 };

struct lh_once_options {
    size_t size;     /* of this struct */
    int64_t ttl_ms;  /* of the claim; 0: 5 min */
    int64_t wait_ms; /* for who is at it; 0: not at all */
    const char
        *payload; /* NULL, or a fingerprint of at most 64 bytes: another one is LH_MISMATCH */
    lh_lost_fn *on_lost; /* of a claim with a handle */
    void *user;          /* on_lost's */
};
#define LH_ONCE_OPTIONS_INIT                                   \
    {                                                          \
        sizeof(struct lh_once_options), 0, 0, NULL, NULL, NULL \
    }

struct lh_once {
    uint64_t token;              /* of a claim that is new */
    int status;                  /* when it was done: 0 is success … */
    char result[LH_RESULT_SIZE]; /* … and what was said of it */
};

/* What is remembered of an id that was done. */
struct lh_done {
    size_t size;           /* of this struct */
    int64_t keep_ms;       /* for how long; 0: 24 h */
    int status;            /* 0 to 255 */
    const char *result;    /* at most 1024 bytes */
    const char *watermark; /* also until this watermark … */
    const char *until;     /* … stands above this position */
};
#define LH_DONE_INIT                                   \
    {                                                  \
        sizeof(struct lh_done), 0, 0, NULL, NULL, NULL \
    }

/*
 * Blocks. Of all claims of an id one is LH_OK: it is yours to do. The others hear LH_BUSY while it
 * runs and LH_COOLING, with status and result in out (which may be NULL), when it is done. The
 * claim is a lease like any other: it is renewed, ends with your process, and can be lost. Finish
 * it; lh_release() and lh_close() give the id back undone.
 */
enum lh_outcome lh_once_claim(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_lease **out_claim,
                              struct lh_once *out, struct lh_report *report);
/* Blocks; it is done, and remembered as that says (NULL: successfully, for 24 h). Frees the handle
 * and sets *claim to NULL, whatever the outcome but LH_USAGE. LH_LOST: it is not remembered. */
enum lh_outcome lh_finish(struct lh_lease **claim, const struct lh_done *done,
                          struct lh_report *report);
/*
 * The same without a handle. Block. The claim lives by its TTL, and out has its token: renew it,
 * then finish or abandon it, from any process that has the token.
 */
enum lh_outcome lh_once_begin(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_once *out,
                              struct lh_report *report);
enum lh_outcome lh_once_renew(struct lh_client *client, const char *id, uint64_t token,
                              int64_t ttl_ms, struct lh_report *report);
enum lh_outcome lh_once_finish(struct lh_client *client, const char *id, uint64_t token,
                               const struct lh_done *done, struct lh_report *report);
enum lh_outcome lh_once_abandon(struct lh_client *client, const char *id, uint64_t token,
                                struct lh_report *report);
/* LH_OK: nobody has done it, nor is at it; LH_BUSY: running; LH_COOLING: done. */
enum lh_outcome lh_once_status(struct lh_client *client, const char *id, struct lh_once *out,
                               struct lh_report *report);
/* The simple pair. lh_mark() is claim and finish in one write: LH_OK when it is new, LH_BUSY or
 * LH_COOLING when not. lh_seen() answers as lh_once_status(), and decides nothing. */
enum lh_outcome lh_seen(struct lh_client *client, const char *id, struct lh_report *report);
enum lh_outcome lh_mark(struct lh_client *client, const char *id, const struct lh_done *done,
                        struct lh_report *report);

/* ---- watermarks ---- */

struct lh_watermark {
    char value[LH_POSITION_SIZE]; /* the source's own position; "" when there is none yet */
    int64_t start_ms; /* the store's time less the overlap, as Unix time; -1: it has none */
};

/* Block. Read from the value on, handle everything, then advance from it to where the source stood
 * when you began (or, if it has no clock or cursor of its own, to start_ms). */
enum lh_outcome lh_watermark_begin(struct lh_client *client, const char *name, int64_t overlap_ms,
                                   struct lh_watermark *out, struct lh_report *report);
/*
 * LH_OK when it stood at what was expected, in its own order, and now stands at the value; LH_STALE
 * when it stood elsewhere, also at the value, or would go back: begin again. Each call has an id of
 * its own that its retries share.
 */
enum lh_outcome lh_watermark_advance(struct lh_client *client, const char *name,
                                     const char *expected, const char *value,
                                     struct lh_report *report);
/* The same with an id of yours (NULL: one is made): a later call with the same id, expected and
 * value is LH_OK, too, while nobody has moved it since. For callers that may not see the answer. */
enum lh_outcome lh_watermark_advance_id(struct lh_client *client, const char *name,
                                        const char *expected, const char *value,
                                        const char *request_id, struct lh_report *report);
/* An operator's: anywhere, and the reason is kept. */
enum lh_outcome lh_watermark_set(struct lh_client *client, const char *name, const char *value,
                                 const char *reason, struct lh_report *report);

/* ---- operators ---- */

/* Blocks. The holder is asked to stop and not renewed; free when it confirms or its lease ends;
 * at_once: free now, and only tokens keep the old holder out. The report's effect says what was
 * done, to whom, and until when it may stay held. */
enum lh_outcome lh_break(struct lh_client *client, const char *key, const char *reason,
                         bool at_once, struct lh_report *report);
/* Blocks. Ends a cooldown early. */
enum lh_outcome lh_clear(struct lh_client *client, const char *key, struct lh_report *report);

/* ---- the same without blocking ---- */

/* For event loops and callbacks: LH_OK means that done will be called, once, with no lease; any
 * other answer, that it will not. The report is about the start. */
enum lh_outcome lh_renew_start(struct lh_client *client, const char *key, uint64_t token,
                               int64_t ttl_ms, lh_done_fn *done, void *user,
                               struct lh_report *report);
enum lh_outcome lh_give_back_start(struct lh_client *client, const char *key, uint64_t token,
                                   int64_t cooldown_ms, lh_done_fn *done, void *user,
                                   struct lh_report *report);
enum lh_outcome lh_give_back_if_held_start(struct lh_client *client, const char *key,
                                           uint64_t token, int64_t cooldown_ms, lh_done_fn *done,
                                           void *user, struct lh_report *report);
enum lh_outcome lh_look_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_list_start(struct lh_client *client, const char *prefix, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_history_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                 lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_break_start(struct lh_client *client, const char *key, const char *reason,
                               bool at_once, lh_done_fn *done, void *user,
                               struct lh_report *report);
enum lh_outcome lh_clear_start(struct lh_client *client, const char *key, lh_done_fn *done,
                               void *user, struct lh_report *report);

/* out is yours, and must stay until done is called: then it is filled. */
struct lh_request *lh_once_claim_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report);
/* done gets no lease: the token is in out. */
struct lh_request *lh_once_begin_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report);
/* The handle is gone when the answer is LH_OK. */
enum lh_outcome lh_finish_start(struct lh_lease **claim, const struct lh_done *done, lh_done_fn *fn,
                                void *user, struct lh_report *report);
enum lh_outcome lh_once_renew_start(struct lh_client *client, const char *id, uint64_t token,
                                    int64_t ttl_ms, lh_done_fn *done, void *user,
                                    struct lh_report *report);
enum lh_outcome lh_once_finish_start(struct lh_client *client, const char *id, uint64_t token,
                                     const struct lh_done *done, lh_done_fn *fn, void *user,
                                     struct lh_report *report);
enum lh_outcome lh_once_abandon_start(struct lh_client *client, const char *id, uint64_t token,
                                      lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_once_status_start(struct lh_client *client, const char *id, struct lh_once *out,
                                     lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_seen_start(struct lh_client *client, const char *id, lh_done_fn *done,
                              void *user, struct lh_report *report);
enum lh_outcome lh_mark_start(struct lh_client *client, const char *id, const struct lh_done *done,
                              lh_done_fn *fn, void *user, struct lh_report *report);
enum lh_outcome lh_watermark_begin_start(struct lh_client *client, const char *name,
                                         int64_t overlap_ms, struct lh_watermark *out,
                                         lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_watermark_advance_start(struct lh_client *client, const char *name,
                                           const char *expected, const char *value,
                                           lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_watermark_advance_id_start(struct lh_client *client, const char *name,
                                              const char *expected, const char *value,
                                              const char *request_id, lh_done_fn *done, void *user,
                                              struct lh_report *report);
enum lh_outcome lh_watermark_set_start(struct lh_client *client, const char *name,
                                       const char *value, const char *reason, lh_done_fn *done,
                                       void *user, struct lh_report *report);

/* ---- words ---- */

const char *lh_outcome_name(enum lh_outcome outcome); /* "busy" … */

/* What a refusal is about, in the table of docs/refusals.md. */
enum lh_verb {
    LH_VERB_ANY,
    LH_VERB_ACQUIRE, /* without waiting */
    LH_VERB_WAIT,    /* acquire with a wait, which is over */
    LH_VERB_RENEW,
    LH_VERB_RELEASE,
    LH_VERB_ONCE,   /* claim, begin, mark, status */
    LH_VERB_FINISH, /* also abandon, and renew a claim */
    LH_VERB_WATERMARK,
    LH_VERB_CHECK,
    LH_VERB_CANCEL, /* an acquisition that the caller gave up */
    LH_VERB_WORKLOAD
};
/* The word of a report's refusal, as in metrics: "contention" … NULL for LH_OK. From anywhere. */
const char *lh_refusal_word(enum lh_verb verb, enum lh_outcome outcome);
const char *lh_version(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold: locks that are leases, in a store of your choice. Every grant has a token that only
 * grows: pass it to the resource that the lock protects, so that a late writer can be refused.
 *
 *     struct lh_client *client = NULL;
 *     struct lh_lease *lease = NULL;
 *     struct lh_report report = LH_REPORT_INIT;
 *     if (lh_open("file:/var/lib/app/locks.log", NULL, &client, &report) != LH_OK) ...
 *     if (lh_acquire(client, "nightly", NULL, &lease, &report) == LH_OK) {
 *         ... work; check lh_held(lease) before each step that must not be done twice ...
 *         lh_release(&lease, &report);
 *     }
 *     lh_close(&client);
 *
 * Options and reports may be NULL. An option that is 0 or NULL has its default. Strings are copied.
 * Initialise every struct with its _INIT macro, which sets its size: structs may grow in later
 * releases, and programs compiled before keep working. docs/library.md lists the outcomes of each
 * call. Further headers: leasehold_once.h, leasehold_admin.h, and those of workloads and GitHub.
 *
 * Threads: any number of threads may use a client. Its own thread, with all signals blocked, renews
 * leases and calls your callbacks; on memory: a blocking call may run them, too. A callback must
 * not block; a blocking call inside one returns LH_USAGE. With own_loop there is no such thread:
 * poll lh_fd(), call lh_step(), and use the client from that one thread.
 *
 * After fork() the child holds nothing: every call on an inherited handle returns LH_LOST. The
 * library never logs, changes no signal's disposition, and aborts only if its own assertion fails.
 */
#ifndef LEASEHOLD_H
#define LEASEHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_VERSION_NUM 200 /* of this header: major * 10000 + minor * 100 + patch */
struct lh_client;
struct lh_lease;   /* one key, or several that are held together */
struct lh_request; /* a started acquisition; yours until lh_request_free() */
struct lh_watcher;
struct lh_event; /* leasehold_admin.h */

enum lh_outcome {
    LH_OK,
    LH_BUSY,        /* held by another, or not granted within the wait */
    LH_COOLING,     /* recently done: see cooldown_ms */
    LH_LOST,        /* the lease is not yours any more */
    LH_STALE,       /* the token does not hold the key; nothing was changed */
    LH_UNAVAILABLE, /* the store failed or did not reply: neither free nor busy */
    LH_DENIED,      /* the store refused permission */
    LH_MISMATCH,    /* the key is of another kind, or has another limit or payload */
    LH_USAGE,       /* the call itself is wrong */
    LH_FAILED,      /* out of memory, threads or descriptors */
    LH_DONE         /* the id was finished before (leasehold_once.h) */
};

enum { LH_HOLDER_SIZE = 129, LH_KEY_SIZE = 513, LH_TEXT_SIZE = 256, LH_KEYS_MAX = 16 };
#define LH_WAIT_FOREVER ((int64_t)-1)
enum lh_state {
    LH_FREE,
    LH_HELD,
    LH_OFFERED, /* reserved for the next waiter, which has not confirmed yet */
    LH_COOLING_DOWN,
    LH_DELAYED,   /* lock-delay after a crash */
    LH_UNREADABLE /* list, watch, history: this version cannot read the record */
};

/* The effect of a successful call, where that is not obvious. */
enum lh_effect {
    LH_EFFECT_NONE,     /* break: the key was free; all other calls */
    LH_EFFECT_ASKED,    /* break: the holder is asked to stop and holds until it confirms */
    LH_EFFECT_FREED,    /* break at once: the key was taken from its holder */
    LH_EFFECT_RELEASED, /* release by token: this call released the key */
    LH_EFFECT_GONE,     /* release if held: the key was free; nothing was changed */
    LH_EFFECT_TAKEN     /* release if held: another token holds it; nothing was changed */
};

/* The result of a call. Durations are in milliseconds; -1 means unknown. */
struct lh_report {
    size_t size; /* set by LH_REPORT_INIT; the library writes no further than this */
    enum lh_outcome outcome;
    enum lh_state state;    /* of the key, after break, and renew and release by token */
    uint64_t token;         /* granted to you; with LH_BUSY the holder's, or 0 */
    int64_t since_ms;       /* time since the grant, or since the key cooled */
    int64_t ends_in_ms;     /* time until the lease or the cooldown ends */
    int64_t takeover_in_ms; /* time until another may acquire: later, where clocks may differ */
    int64_t retry_after_ms; /* LH_UNAVAILABLE: the store is not tried before; -1: any time */
    enum lh_effect effect;
    const char *refusal; /* one word by outcome and call (docs/refusals.md); NULL with LH_OK */
    char holder[LH_HOLDER_SIZE];
    char key[LH_KEY_SIZE]; /* the key concerned; empty: none */
    char text[LH_TEXT_SIZE];
};
#define LH_REPORT_INIT                                                                             \
    {                                                                                              \
        sizeof(struct lh_report), LH_OK, LH_FREE, 0, -1, -1, -1, -1, LH_EFFECT_NONE, NULL, "", "", \
            ""                                                                                     \
    }

enum lh_kind {
    LH_LOCK,
    LH_ONCE,     /* an id, under "once:": held means running, cooling means done */
    LH_WATERMARK /* under "watermark:": always free; holder and since_ms are of the last move */
};

typedef void lh_event_fn(void *user, const struct lh_event *event); /* for metrics */
/* The lease is lost: stop the work, then release it. lh_held() is false already. */
typedef void lh_lost_fn(void *user, struct lh_lease *lease, const struct lh_report *report);
/* Called exactly once per started call. With LH_OK of an acquisition the lease is yours. */
typedef void lh_done_fn(void *user, struct lh_lease *lease, const struct lh_report *report);

struct lh_open_options {
    size_t size;
    const char *holder; /* your name, shown to others; default "host:pid" */
    int64_t timeout_ms; /* the store may fail for this long; default 10 s, on github 60 s */
    bool own_loop;      /* no thread: you poll lh_fd() */
    lh_event_fn *on_event;
    void *user; /* passed to on_event */
};
#define LH_OPEN_OPTIONS_INIT                                       \
    {                                                              \
        sizeof(struct lh_open_options), NULL, 0, false, NULL, NULL \
    }

struct lh_meta {
    const char *name, *value;
};

struct lh_acquire_options {
    size_t size;
    int64_t ttl_ms;        /* 0: the default, 30 s; renewed at a third, lost at two thirds; at least
                            * 10 ms on memory, 100 ms on file, 500 ms on redis, 1 s on k8s; on
                            * github 10 s, default 5 min, which bound leases always have */
    int64_t wait_ms;       /* 0: do not wait; LH_WAIT_FOREVER; with several keys, for each key */
    int64_t cooldown_ms;   /* after a release the key is LH_COOLING for this long */
    int64_t lock_delay_ms; /* after a crash nobody is granted the key for this long */
    int32_t priority;      /* -100 to 100, higher first */
    uint32_t limit;        /* the number of slots of a semaphore; 0: a lock */
    bool shared;           /* a reader: shares the key with others; not with a limit */
    bool unbound;          /* outlives the process until its TTL; see lh_detach() */
    const char *holder;
    const char *request_id; /* a repeated call with the same id gets the same grant */
    const struct lh_meta *meta;
    size_t meta_count; /* at most 16 pairs, 1 KiB together */
    lh_lost_fn *on_lost;
    void *user;  /* passed to on_lost */
    bool detach; /* with unbound: left to its TTL once granted; done may only read the lease */
};
#define LH_ACQUIRE_OPTIONS_INIT                                                                 \
    {                                                                                           \
        sizeof(struct lh_acquire_options), 0, 0, 0, 0, 0, 0, false, false, NULL, NULL, NULL, 0, \
            NULL, NULL, false                                                                   \
    }

/* ---- client ---- */

/* Blocks while the store is opened and, if necessary, recovered. */
enum lh_outcome lh_open(const char *url, const struct lh_open_options *options,
                        struct lh_client **out, struct lh_report *report);
/* Blocks. Releases bound leases, leaves unbound ones to their TTL, ends started calls, and sets
 * *client to NULL. Remaining lease handles are only valid for lh_release(), watches are gone. No
 * other thread may use the client; inside a callback the call does nothing. */
void lh_close(struct lh_client **client);
/* With own_loop: a descriptor that is readable when lh_step() has work; otherwise -1. */
int lh_fd(struct lh_client *client);
enum lh_outcome lh_step(struct lh_client *client); /* with own_loop; does not block */
/* A new descriptor, yours to close and inherited by exec: bound leases of this client end with
 * their TTL, not with your process, while any process has it open. -1: not supported, or failed. */
int lh_liveness_fd(struct lh_client *client);

/* ---- acquire and release ---- */

/* Blocks for wait_ms and at most the store timeout. */
enum lh_outcome lh_acquire(struct lh_client *client, const char *key,
                           const struct lh_acquire_options *options, struct lh_lease **out,
                           struct lh_report *report);
/* Blocks. All or none of up to 16 keys, acquired in sorted order. */
enum lh_outcome lh_acquire_all(struct lh_client *client, const char *const *keys, size_t count,
                               const struct lh_acquire_options *options, struct lh_lease **out,
                               struct lh_report *report);
/* Does not block; done is called from the client's thread or lh_step(), not from within this call.
 * NULL: done is not called, and the report says why. */
struct lh_request *lh_acquire_start(struct lh_client *client, const char *key,
                                    const struct lh_acquire_options *options, lh_done_fn *done,
                                    void *user, struct lh_report *report);
struct lh_request *lh_acquire_all_start(struct lh_client *client, const char *const *keys,
                                        size_t count, const struct lh_acquire_options *options,
                                        lh_done_fn *done, void *user, struct lh_report *report);
/* Gives up; done is still called: LH_BUSY, or LH_OK if granted meanwhile. No effect later. */
void lh_cancel(struct lh_request *request);
/* In the callback, after it, after lh_close(), or before it, which cancels. NULL is allowed. */
void lh_request_free(struct lh_request *request);

/* Blocks; frees the handle and sets *lease to NULL, unless the outcome is LH_USAGE. */
enum lh_outcome lh_release(struct lh_lease **lease, struct lh_report *report);
/* As lh_release(), without a cooldown: the work was not done. */
enum lh_outcome lh_abandon(struct lh_lease **lease, struct lh_report *report);
/* Without blocking; the handle is freed at once. done may be NULL. */
enum lh_outcome lh_release_start(struct lh_lease **lease, lh_done_fn *done, void *user);
enum lh_outcome lh_abandon_start(struct lh_lease **lease, lh_done_fn *done, void *user);
/* Blocks. Leaves an unbound lease in the store without renewal and frees the handle. */
enum lh_outcome lh_detach(struct lh_lease **lease, struct lh_report *report);

/* The following never ask the store; from any thread. */
bool lh_held(const struct lh_lease *lease);
int64_t lh_remaining_ms(const struct lh_lease *lease); /* until it is lost without a renewal */
int64_t lh_ttl_ms(const struct lh_lease *lease);       /* as given, or the store's default */
uint64_t lh_token(const struct lh_lease *lease);       /* the fencing token of the first key */
const char *lh_key_at(const struct lh_lease *lease, size_t index); /* sorted; NULL: no more */
uint64_t lh_token_at(const struct lh_lease *lease, size_t index);

/* By token, without a handle. Block. ttl_ms 0 keeps the TTL; a renewal never shortens a lease. */
enum lh_outcome lh_renew(struct lh_client *client, const char *key, uint64_t token, int64_t ttl_ms,
                         struct lh_report *report);
enum lh_outcome lh_release_token(struct lh_client *client, const char *key, uint64_t token,
                                 int64_t cooldown_ms, struct lh_report *report);
/* As lh_release_token(), but LH_OK instead of LH_STALE; the effect says what it found. */
enum lh_outcome lh_release_token_if_held(struct lh_client *client, const char *key, uint64_t token,
                                         int64_t cooldown_ms, struct lh_report *report);
/* Without blocking: with LH_OK done will be called once. */
enum lh_outcome lh_renew_start(struct lh_client *client, const char *key, uint64_t token,
                               int64_t ttl_ms, lh_done_fn *done, void *user,
                               struct lh_report *report);
enum lh_outcome lh_release_token_start(struct lh_client *client, const char *key, uint64_t token,
                                       int64_t cooldown_ms, lh_done_fn *done, void *user,
                                       struct lh_report *report);
enum lh_outcome lh_release_token_if_held_start(struct lh_client *client, const char *key,
                                               uint64_t token, int64_t cooldown_ms,
                                               lh_done_fn *done, void *user,
                                               struct lh_report *report);

/* ---- status ---- */

struct lh_view {
    size_t size; /* set by LH_VIEW_INIT; in callbacks by the library */
    enum lh_kind kind;
    enum lh_state state;
    uint64_t token;
    int64_t since_ms;       /* time in this state; -1: unknown */
    int64_t ends_in_ms;     /* 0: the lease has expired; -1: unknown */
    int64_t takeover_in_ms; /* time until another may acquire: later, where clocks may differ */
    int64_t renewed_ago_ms; /* the first holder's lease; -1: unknown, or not held */
    int64_t written_ago_ms; /* list, watch, history: the record's age; -1: unknown */
    int64_t written_at_ms;  /* the same by the store's clock, ms since 1970; -1: unknown */
    uint64_t revision;      /* of the store's record; 0: there is none */
    uint32_t holders, waiters;
    uint32_t position; /* of this client in the queue, 1 is next; 0: not queued */
    uint32_t limit;    /* of a semaphore, else 0 */
    bool shared;
    bool broken; /* an operator asked the holder to stop */
    int status;  /* of a finished id: 0 is success */
    /* NULL in lh_status(); otherwise valid until the callback returns. */
    const char *reason;         /* of the last break */
    const struct lh_meta *meta; /* of the first holder */
    size_t meta_count;
    const char *result;          /* of a finished id, or a watermark's value; otherwise empty */
    const char *text;            /* LH_UNREADABLE: why */
    char holder[LH_HOLDER_SIZE]; /* the first one, or the one that started the cooldown */
    char key[LH_KEY_SIZE];
    struct lh_view_source *source; /* for lh_view_holder() and others in leasehold_admin.h */
};
#define LH_VIEW_INIT                                                                               \
    {                                                                                              \
        sizeof(struct lh_view), LH_LOCK, LH_FREE, 0, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, false, \
            false, 0, NULL, NULL, 0, NULL, NULL, "", "", NULL                                      \
    }

typedef bool lh_view_fn(void *user, const struct lh_view *view); /* false: stop */
/* view is NULL when the watch ended by itself; then the report says why. */
typedef void lh_watch_fn(void *user, const struct lh_view *view, const struct lh_report *report);

/* Blocks; queries the store. A free key is LH_OK with LH_FREE. */
enum lh_outcome lh_status(struct lh_client *client, const char *key, struct lh_view *out,
                          struct lh_report *report);
/* Blocks; calls fn once, with reason, meta and result. */
enum lh_outcome lh_status_details(struct lh_client *client, const char *key, lh_view_fn *fn,
                                  void *user, struct lh_report *report);
enum lh_outcome lh_status_details_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                        lh_done_fn *done, void *user, struct lh_report *report);
/* A hint before work: LH_OK is free; LH_BUSY, LH_COOLING, or LH_DONE of an id. *cached_ms is the
 * age of a copy that a watch keeps, at most 30 s; -1: there is none, and the call blocks. */
enum lh_outcome lh_peek(struct lh_client *client, const char *key, int64_t *cached_ms,
                        struct lh_report *report);
/* Blocks until it is set up; then fn is called for every change under the prefix. */
enum lh_outcome lh_watch(struct lh_client *client, const char *prefix, lh_watch_fn *fn, void *user,
                         struct lh_watcher **out, struct lh_report *report);
enum lh_outcome lh_unwatch(struct lh_watcher **watch, struct lh_report *report); /* blocks */
const char *lh_outcome_name(enum lh_outcome outcome);                            /* "busy" ... */
const char *lh_version(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the rules and the stores. A store does one thing: it replaces a record only
 * if the record is still the one that was read. Drivers move bytes and must not decide anything.
 * Capability bits describe what a driver can do; tests check the bits, never the driver's name.
 *
 * Every request gets its own outcome, also in a batch. A request without a reply ends as
 * REPLY_TROUBLE: it may have been carried out. A driver must not resend a request, because the core
 * retries and checks for the effect. A conflict carries the current record.
 */
#ifndef LEASEHOLD_STORE_STORE_H
#define LEASEHOLD_STORE_STORE_H

#include "core/lease.h"

/* name, what the driver guarantees */
#define STORE_CAPABILITY_LIST(X)                                                             \
    X(DURABLE, "acknowledged writes survive power loss")                                     \
    X(WATCHES, "reports changes as they happen")                                             \
    X(TELLS, "sends the new record to the sessions that a write names")                      \
    X(TIME, "has a clock of its own, sent with every reply")                                 \
    X(ONE_CLOCK, "that clock is the one its clients read")                                   \
    X(SESSIONS, "detects which processes are alive")                                         \
    X(TESTS_GRANT, "tests a token at the write: before a delete, or besides a revision")     \
    X(RENEWS_GRANT, "renews a grant by its token alone")                                     \
    X(RENEWS_SESSION, "keeps all bound grants of a session alive together: a renewal reads") \
    X(DELETES, "deletes conditionally, so that a free key costs nothing")                    \
    X(HISTORY, "keeps the changes of a key")                                                 \
    X(TOKENS_RESTART, "tokens grow over a restart")                                          \
    X(TOKENS_FAILOVER, "tokens grow over a failover")                                        \
    X(EPOCH, "can raise the epoch of its tokens, after a restored backup")

enum store_capability_bit {
#define STORE_CAPABILITY_BIT(name, meaning) STORE_BIT_##name,
    STORE_CAPABILITY_LIST(STORE_CAPABILITY_BIT)
#undef STORE_CAPABILITY_BIT
};

enum store_capability {
#define STORE_CAPABILITY(name, meaning) STORE_##name = 1 << STORE_BIT_##name,
    STORE_CAPABILITY_LIST(STORE_CAPABILITY)
#undef STORE_CAPABILITY
};

enum store_verb {
    VERB_STORE_READ,
    VERB_STORE_SWAP,   /* write the bytes under the condition */
    VERB_STORE_DELETE, /* under the condition */
    /* The keys that begin with `key`: one reply each, then one without `more`. In list and watch,
     * REPLY_TROUBLE with `more` and a key means that this one record cannot be read. */
    VERB_STORE_LIST,
    VERB_STORE_WATCH,   /* a reply for every change of such a key; REPLY_TROUBLE ends it */
    VERB_STORE_HISTORY, /* the changes of the key, newest first, as far back as they are kept */
};

/* The record that a swap writes, as far as drivers need it: they do not decode its bytes. All 0 if
 * the bytes are not a record. The strings are never NULL in the summary of a record. */
struct store_summary {
    enum record_kind kind;
    unsigned grants, new_grants, renewed_grants; /* all; by this write; or renewed by it */
    unsigned waiters, offers;
    bool queued;    /* the request's session is among the waiters */
    bool binds;     /* a new or renewed grant is bound to the request's session */
    bool permanent; /* a watermark, or an id that waits for one: has no retention */
    /* Of the first grant; without a grant, `holder` is that of the span that blocks. */
    bool renewed, broken; /* renewed or made by this write */
    uint64_t token;       /* 0: this write makes the grant */
    int64_t ttl_ms;
    const char *holder, *request;
    /* The key is held for this long after the write, and until this time by the store's clock. A
     * cooldown does not count, except that of an id that is done. 0: it is not. */
    int64_t held_ms, held_until_ms;
    int64_t spans_ms; /* length of cooldown and delay together */
};

struct store_request {
    enum store_verb verb;
    const char *key; /* or prefix */
    struct condition condition;
    const char *bytes; /* swap: the encoded record … */
    size_t length;
    struct store_summary summary; /* … and what it contains */
    /* A delete under IF_GRANT succeeds only if the record contains nothing but that grant. A swap
     * under IF_GRANT needs STORE_RENEWS_GRANT and has no bytes: the store renews that grant as
     * rules_decide() would. */
    int64_t ttl_ms;
    uint64_t session;
    bool bound;
    /* Swap: the store may remove the record this long after the write, by its own clock, unless
     * the record waits for a watermark (expiry.h). 0: not before everything in it has ended: lease
     * and lock-delay of a sole grant; the queue has no end. Watchers are not notified of the
     * removal. */
    int64_t retention_ms;
    /* Sessions to notify after the write, if the driver can. The write grants or offers the key to
     * the first ones. Of the last ones it is enough to reach one, so a driver that cannot tell
     * whether a session receives its notification notifies the first of these. */
    const uint64_t *wake;
    size_t wake_count, given_count, spare_count;
};

struct store_reply {
    enum reply_status result;
    bool more;            /* list, watch: another reply follows */
    bool present;         /* a record exists (after a write: the one that was written) */
    struct stamp written; /* the write that made it; resolves the marks inside the bytes */
    int64_t now_ms;       /* the store's clock at the reply, or TIME_UNKNOWN */
    const char *key;      /* list, watch */
    const char *bytes;    /* valid until the callback returns or submits, like all fields below */
    size_t length;
    /* The store's own observations of the record, in every reply that has one: sessions that ended,
     * leases, cooldown and lock-delay that expired; late perhaps, never early. Without STORE_TIME
     * nothing else ends them, and a condition with a token agrees with them. Not set in history,
     * whose entries are as they were written. */
    const uint64_t *dead_sessions, *ended_tokens;
    size_t dead_count, ended_count;
    bool cooling_over, delay_over;
    /* STORE_RENEWS_SESSION: our session is alive by a write that was sent at this time of the
     * client's clock (callbacks.clock) and has succeeded; 0: unknown. */
    int64_t alive_ms;
    bool refused;    /* trouble: no server accepts a connection, so nothing was sent */
    const char *why; /* trouble: NULL, or what failed and what to do */
};

/* May submit further requests, but must not write in the middle of a list. The request's key,
 * bytes, summary and `wake` must stay valid until the call. */
typedef void store_done(void *caller, const struct store_reply *reply);

/* The time source of a driver without a clock of its own; it must not read any other clock. */
struct store_clock {
    int64_t (*now_ms)(void *owner);
    void *owner;
};

/* The client of a store: its clock, its session and where notifications go. */
struct store_callbacks {
    struct store_clock clock;
    /* With STORE_SESSIONS: alive until the store is closed. A driver that cannot keep it alive
     * refuses all requests from then on: a grant bound to a dead session is free to all. */
    uint64_t session;
    int64_t timeout_ms; /* no request waits longer than this for another process */
    /* Another process's write named our session, or renewed a lease that it waits for. `current` is
     * the record after that write, as a read would have returned it then, and may be outdated;
     * NULL: read the key. No function: notifications are dropped. */
    void (*notice)(void *owner, const char *key, const struct store_reply *current);
    void *owner;
};

struct store_event {
    const char *key, *reason; /* "Acquired" … */
    const char *holder;
    const char *more; /* "", or a reason */
    bool warns;
};

/* The facts of a store that usually replies within a fraction of a second, with a queue of that
 * length. A store with takeover_ms leaves room for waiters that return. */
#define STORE_USUAL_FACTS(queue)                                                               \
    .waiters_max = (queue), .reply_timeout_ms = 1000, .offer_grace_ms = 1000, .poll_ms = 5000, \
    .ttl_ms = 30000, .renewal_window_ms = 50

struct collect_options;
struct collection;
struct diagnosis;
struct epoch_options;
struct epoch_state;

struct store_driver {
    const char *scheme;
    unsigned capabilities;
    size_t state_size;
    int descriptors; /* open() needs at most this many at a time */
    /* Times and limits; store_facts_at() adds what follows from the capabilities. */
    struct store_facts facts;
    /* Changes them as a valid URL says. NULL: the URL changes nothing. */
    void (*facts_at)(const char *url, struct store_facts *facts);
    /* On failure `why` says what is wrong and what to do, after "usage: " if the URL is invalid,
     * and there is nothing to close. On success `why` is empty or a warning. */
    bool (*open)(void *state, const char *url, const struct store_callbacks *callbacks,
                 struct text *why);
    void (*close)(void *state); /* pending requests get no reply */
    void (*submit)(void *state, const struct store_request *request, store_done *done,
                   void *caller);
    /* NULL if submit() replies at once. Otherwise requests submitted since the last step are sent
     * together in the next one. */
    void (*step)(void *state);
    /* A step may wait for a disk or for other processes: store_thread.h runs the store in a thread
     * of its own, which also calls submit(). */
    bool waits;
    int (*fd)(void *state); /* readable when a step would deliver something */
    /* STORE_SESSIONS: a new descriptor, owned by the caller, for a command to inherit. The session
     * stays alive while any process has it open. NULL: not supported; −1: it failed. */
    int (*liveness)(void *state);
    /* The key's name in the store. False, with `why`, if it has none. NULL: the key itself. */
    bool (*name)(const char *url, const char *key, struct text *out, struct text *why);
    /* Records an event of a key, visible in the store's own tools. No rule depends on it, and it
     * may be lost. NULL: not supported. */
    void (*event)(void *state, const struct store_event *event);
    /* Examines the store, opened or not, and reports findings for people (admin.h). Blocks. */
    void (*diagnose)(const char *url, const struct diagnosis *diagnosis);
    /* Removes what nobody needs any more (admin.h). Blocks. False, with words, when the store could
     * not be asked at all. NULL: the store forgets by itself. */
    bool (*collect)(const char *url, const struct collect_options *options, struct collection *out,
                    struct text *why);
    /* STORE_EPOCH: raises the epoch if the options say so, then reads it (admin.h). Blocks. After
     * REPLY_OK every new grant is stamped with that epoch or a later one: a write that was prepared
     * before is stamped so, too, or gets a conflict. The page of a store names its limits.
     * Otherwise `why` says what is wrong. */
    enum reply_status (*epoch)(const char *url, const struct epoch_options *options,
                               struct epoch_state *out, struct text *why);
};

extern const struct store_driver file_driver;
extern const struct store_driver github_driver;
extern const struct store_driver k8s_driver;
extern const struct store_driver memory_driver;
extern const struct store_driver redis_driver, rediss_driver; /* the same, with TLS */
/* Raises the in-memory store's revision to `at_least`; returns the current revision. */
uint64_t memory_raise_revision(void *state, uint64_t at_least);
/* For the simulation: the counter of a restored backup, `lost` revisions behind, in a new epoch. */
void memory_raise_epoch(void *state, uint64_t lost);

/* The driver of the URL's scheme, or NULL; the message then lists the schemes that exist. */
const struct store_driver *store_find(const char *url);
void store_describe_unknown(const char *url, struct text *out);
/* True if the scheme is defined but has no driver in this build: the URL may be valid. */
bool store_is_planned(const char *url);
/* The built-in schemes by index; NULL after the last. */
const char *store_scheme(size_t index);

/* The capability bits as the core uses them, and the driver's facts at that URL. */
struct store_facts store_facts_at(const struct store_driver *driver, const char *url);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the rules and the places that keep records. A store can do one thing: replace a
 * record only if it is still the one that was read. Drivers move bytes; they decide nothing, and
 * what they can do they say in capability bits. Tests ask the bits, never the driver's name.
 *
 * Every request gets exactly one outcome of its own, also in a batch. An answer that did not come
 * is REPLY_TROUBLE: it may have happened; a driver never sends a request a second time by itself,
 * for the core asks again and knows what to look for. A conflict carries the record that stands.
 */
#ifndef LEASEHOLD_STORE_STORE_H
#define LEASEHOLD_STORE_STORE_H

#include "core/lease.h"

/* name, what a driver promises with it */
#define STORE_CAPABILITY_LIST(X)                                                     \
    X(DURABLE, "what was answered survives power loss")                              \
    X(WATCHES, "tells changes as they happen")                                       \
    X(TELLS, "tells whom a write names what it left there")                          \
    X(TIME, "has a clock of its own, given with every answer")                       \
    X(ONE_CLOCK, "that clock is the one its clients read")                           \
    X(SESSIONS, "knows which processes are alive")                                   \
    X(TESTS_GRANT, "can test IF_GRANT, and a token beside a revision, at the write") \
    X(DELETES, "deletes conditionally, so that a free key costs nothing")            \
    X(HISTORY, "keeps the changes of a key")                                         \
    X(TOKENS_RESTART, "tokens grow over a restart")                                  \
    X(TOKENS_FAILOVER, "tokens grow over a failover")

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
    /* The keys that begin with `key`: one answer each, then one without more. In list and watch,
     * trouble with `more` and a key is about that record alone: it cannot be read. */
    VERB_STORE_LIST,
    VERB_STORE_WATCH,   /* an answer for every change of such a key; trouble ends it */
    VERB_STORE_HISTORY, /* the changes of the key, newest first, as far as they are kept */
};

struct store_request {
    enum store_verb verb;
    const char *key; /* or prefix */
    struct condition condition;
    const char *bytes; /* swap: the encoded record */
    size_t length;
    /* Swap under IF_GRANT carries no bytes: the store renews that grant as decide() would. Delete
     * under IF_GRANT succeeds only when the grant is all that the record says. */
    int64_t ttl_ms;
    uint64_t session;
    bool bound;
    /* Swap: so long after the write, by its own clock, the store may forget the record, unless that
     * waits for a watermark (expiry.h); 0: never. A forgotten record is no change to be told. */
    int64_t retention_ms;
    /* Sessions to be woken once the write is in, as far as the driver has a way to. */
    const uint64_t *wake;
    size_t wake_count;
};

struct store_reply {
    enum reply_status result;
    bool more;            /* list, watch: another answer will follow */
    bool present;         /* is there a record? (after a write: the one that was written) */
    struct stamp written; /* by which write: resolves the marks inside the bytes */
    int64_t now_ms;       /* the store's clock at the answer, or TIME_UNKNOWN */
    const char *key;      /* list, watch */
    const char *bytes;    /* valid until the callback returns or submits, as all that follows */
    size_t length;
    /* What the store knows beside the record: processes that ended, leases and spans that are over.
     * Of a history's entries it says nothing: they are as they were written. */
    const uint64_t *dead_sessions, *ended_tokens;
    size_t dead_count, ended_count;
    bool cooling_over, delay_over;
    bool refused;    /* trouble: no server accepts a connection, so nothing was sent */
    const char *why; /* trouble: NULL, or what happened and what to do */
};

/* May submit further requests, but must not write in the middle of a list. Key, bytes and pokes of
 * a request must stay until it is called. */
typedef void store_done(void *caller, const struct store_reply *reply);

/* Where a driver without a clock of its own gets its time from; the only one it may read. */
struct store_clock {
    int64_t (*now_ms)(void *owner);
    void *owner;
};

/* For whom a store is opened. */
struct store_callbacks {
    struct store_clock clock;
    uint64_t session;   /* with STORE_SESSIONS: alive for others until the store is closed */
    int64_t timeout_ms; /* no request waits longer than this for another process */
    /* Another process's write named our session, or renewed what it waits for beside the record:
     * look at this key, unless the notice brings what that write left there (`stands`, else NULL),
     * as a read would have shown it at that moment; it may be old by now. No function: nobody wants
     * to know. */
    void (*notice)(void *owner, const char *key, const struct store_reply *current);
    void *owner;
};

struct store_event {
    const char *key, *reason; /* "Acquired" … */
    const char *holder;
    const char *more; /* "", or a reason */
    bool warns;
};

struct store_driver {
    const char *scheme;
    unsigned capabilities;
    size_t state_size;
    int descriptors; /* open() needs so many at a time, at most */
    /* When it fails, `why` says what is wrong and what to do, after "usage: " when the URL is to
     * blame; there is nothing to close then. When it succeeds, `why` is empty or a warning. */
    bool (*open)(void *state, const char *url, const struct store_callbacks *callbacks,
                 struct text *why);
    void (*close)(void *state); /* what is unanswered stays so */
    void (*submit)(void *state, const struct store_request *request, store_done *done,
                   void *caller);
    /* NULL where submit() answers at once. Otherwise what was submitted since the last step travels
     * together in the next one. */
    void (*step)(void *state);
    /* A lease that is shorter cannot be renewed in time here, so the faces refuse it; 0: none is.
     */
    int64_t ttl_least_ms;
    bool waits; /* a step may wait for a disk or for other processes (see store_thread.h) */
    int (*fd)(void *state); /* readable when a step would bring news from others */
    /* STORE_SESSIONS: a new descriptor, the caller's own, that keeps the session alive while any
     * process has it open: for a command to inherit. NULL where there is none; −1 when it failed.
     */
    int (*liveness)(void *state);
    /* How far the clock that comes with answers may be from the truth; NULL: it is exact. */
    int64_t (*margin_ms)(const char *url);
    /* The name that the key has in the store; false with words when it has none. NULL: itself. */
    bool (*name)(const char *url, const char *key, struct text *out, struct text *why);
    /* Something that happened to a key, for people who look at the store with its own tools; no
     * rule depends on it, and it may get lost. NULL: it has no place for that. */
    void (*event)(void *state, const struct store_event *event);
};

extern const struct store_driver file_driver;
extern const struct store_driver k8s_driver;
extern const struct store_driver memory_driver;
extern const struct store_driver redis_driver, rediss_driver; /* the same, with TLS */
/* The count of the in-memory store's revisions, which goes on above `at_least`. */
uint64_t memory_raise_revision(void *state, uint64_t at_least);

/* The driver that the URL's scheme names, or NULL; then the words say which ones there are. */
const struct store_driver *store_find(const char *url);
void store_describe_unknown(const char *url, struct text *out);
/* A scheme that has its meaning, though no driver here goes by it: the URL may be right. */
bool store_is_planned(const char *url);
/* The schemes that are built in, by number; NULL behind the last. */
const char *store_scheme(size_t index);

/* What the bits mean to the core … */
struct store_facts store_facts_of(const struct store_driver *driver);
/* … and what the URL adds. */
struct store_facts store_facts_at(const struct store_driver *driver, const char *url);

#endif

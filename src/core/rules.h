/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules: record and request in, verdict and next record out. Only this code decides which
 * client holds the key, which one is next, and what has expired or blocks. Pure: the view carries
 * the store's time. Rule numbers in comments refer to docs/guarantees.md.
 */
#ifndef LEASEHOLD_CORE_RULES_H
#define LEASEHOLD_CORE_RULES_H

#include "core/record.h"

enum verb {
    VERB_ACQUIRE,
    VERB_LEAVE,
    VERB_RENEW,
    VERB_RELEASE, /* of an id: finishes it with a cooldown, abandons it without one */
    VERB_BREAK,
    VERB_CLEAR,
    VERB_QUERY,
    VERB_MARK,    /* finishes an id in one write, without a claim */
    VERB_ADVANCE, /* moves a watermark forward from an expected value */
    VERB_SET,     /* an operator sets a watermark and gives a reason */
};

/* The result to store with a finished id; a NULL text is empty. */
struct completion {
    uint8_t status;
    const char *result;
    const char *watermark, *until;
};

/* The holders that a break has hit. */
struct broken {
    uint32_t count;              /* of holders; 0: the key was not held */
    char holder[HOLDER_MAX + 1]; /* the first one … */
    uint64_t token;
    int64_t since_ms; /* … in store time */
};

struct request {
    enum verb verb;
    enum record_kind kind; /* acquire: a lock or an id */
    const char *key;
    const char *holder;
    bool any_holder;     /* the holder is a default: a repeated request may have another one */
    const char *request; /* the acquisition's identity: acquire, leave, mark, advance */
    uint64_t session;
    uint64_t token;  /* renew, release */
    uint64_t ticket; /* acquire: of the position that the request had in the queue; or 0 */
    uint64_t up_to;  /* break, clear, set: ignore writes of a later order; 0: no bound */
    enum mode mode;
    uint32_t limit; /* MODE_SLOT: size of the semaphore; otherwise 0 */
    int32_t priority;
    int64_t ttl_ms; /* renew: 0 keeps the grant's TTL */
    int64_t lock_delay_ms;
    int64_t cooldown_ms; /* release; of an id: its retention, also with mark */
    bool bound;
    bool waits;            /* acquire: queue if not granted at once */
    bool repeatable;       /* the caller chose `request` and may repeat it in another process */
    bool now;              /* break: free at once, without asking the holder first */
    const char *reason;    /* break, set */
    struct broken *broken; /* break: the caller's, filled by each decision; or NULL */
    const struct meta *meta;
    const char *payload;                 /* acquire and mark of an id: its fingerprint, or NULL */
    const struct completion *completion; /* release and mark of an id; or NULL */
    enum order order;     /* advance, set: ORDER_NONE uses the watermark's, or the value's */
    const char *value;    /* advance, set */
    const char *expected; /* advance: the required current value, "" for none */
};

/* NULL, or an error text for the user (request.c). */
const char *request_broken(const struct request *request);

/* How the store determines that a lease has expired. Never by another host's clock. */
enum judge {
    JUDGE_STORE_TIME, /* by the store's clock, in the view */
    JUDGE_SESSION,    /* the store reports it for each grant: over, dead */
    JUDGE_OBSERVED,   /* unchanged on the observer's own clock for the whole length */
};

/* A store as the rules see it; its driver fills this for a URL (store.h). */
struct store_facts {
    enum judge judge;
    bool one_clock;            /* all processes read the same clock: a release may grant */
    bool tests_grant;          /* supports IF_GRANT … */
    bool renews_by_revision;   /* … but not for a renewal */
    bool renews_by_session;    /* the session keeps its bound grants alive: a renewal reads */
    bool wakes_with_record;    /* a wake-up carries the written record */
    uint32_t waiters_max;      /* longest queue, at most WAITERS_MAX; only waiters that were passed
                                * over return beyond it */
    int64_t margin_ms;         /* error of the store's clock, added before anything expires */
    int64_t answer_ms;         /* usual time of a reply */
    int64_t reply_timeout_ms;  /* of the first attempt; retries wait longer */
    int64_t offer_grace_ms;    /* then an offer that was not accepted is passed on */
    int64_t takeover_ms;       /* … or taken over by a waiter that watched it for a few answer
                                * times; 0: not before the grace has passed */
    int64_t poll_ms;           /* a waiter's fallback poll interval */
    int64_t ttl_ms;            /* if the caller gives none */
    int64_t ttl_least_ms;      /* the shortest that can be renewed in time; 0: no minimum */
    int64_t renewal_window_ms; /* renewals that are due within it are sent together */
};

/* The stamp of a record, and the client's information about time. */
struct view {
    struct stamp at; /* the record's revision (0: absent), the store's epoch and time */
    const struct store_facts *facts;
    int64_t age_ms;            /* how long ago the record was read; -1: unknown */
    uint64_t offer_revision;   /* the oldest open offer, by its stamp_order() … */
    int64_t offer_observed_ms; /* … and how long this client has seen it, on its own clock */
};

enum verdict_kind {
    VERDICT_GRANTED,
    VERDICT_WAITING,
    VERDICT_BUSY,
    VERDICT_COOLING,
    VERDICT_DONE,
    VERDICT_STALE,
    VERDICT_BROKEN,
    VERDICT_MISMATCH,
};

struct verdict {
    enum verdict_kind kind;
    bool write;       /* takes effect only once the changed record is written */
    bool accepts;     /* GRANTED by accepting an offer */
    const char *why;  /* NULL or a short reason */
    uint16_t n;       /* GRANTED: the lowest part of the token */
    int64_t since_ms; /* GRANTED without a write: start of its lease, on the one clock */
    uint16_t expired, passed_on, offered;
};

/* Changes the record in place; if verdict.write is false, the record must not be written. */
struct verdict rules_decide(struct record *record, const struct request *request,
                            const struct view *view);

/* The state of a key as shown to people. */
enum key_state { KEY_FREE, KEY_HELD, KEY_OFFERED, KEY_COOLING, KEY_DELAYED };

struct key_info {
    enum key_state state;
    const char *holder;     /* points into the record; NULL if free */
    uint64_t token;         /* if held */
    int64_t since_ms;       /* in store time */
    int64_t ends_in_ms;     /* −1 if the store has no clock; 0: the lease has ended … */
    int64_t takeover_in_ms; /* … but others must wait this long: the clock's error is added */
};

/* Of an id, held means running and cooling means done; a watermark is always free. */
struct key_info record_key_info(const struct record *record, const struct view *view);
/* The same as one holder sees it, while its grant has not ended. */
struct key_info grant_key_info(const struct grant *grant, const struct view *view);

/* True if the grant has expired, has ended with its session, or the store reports its end. */
bool grant_ended(const struct grant *grant, const struct view *view);
bool span_blocks(const struct span *span, const struct view *view);
/* An id that awaits a watermark stays cooling until the store finds that it has passed. */
bool record_is_cooling(const struct record *record, const struct view *view);
/* True if the store's clock can tell how long ago that was: records and replies may lack a time. */
bool time_is_known(const struct stamp *since, const struct view *view);

/*
 * Where a poll begins and where it may move its watermark, by the store's clock instead of the
 * source's (rule 7). Events that become visible later than the overlap are missed.
 */
struct poll {
    const char *from; /* points into the record; "" if there is none yet */
    int64_t start_ms;
};

struct poll watermark_begin(const struct record *record, int64_t now_ms, int64_t overlap_ms);

/*
 * How long after its write the record is needed at most, by the store's clock; then a store may
 * expire it. 0: always. An id that awaits a watermark is also needed until that has passed.
 */
int64_t record_retention_ms(const struct record *record);
/* How long after its write it can block other clients at most, even if all processes in it died. */
int64_t record_blocks_ms(const struct record *record);
bool record_awaits_watermark(const struct record *record);
/* True if the watermark is above that position. */
bool watermark_has_passed(const struct record *watermark, const char *position);

/* Prefixes that separate the keys of ids and watermarks from those of locks. */
#define ONCE_PREFIX      "once:"
#define WATERMARK_PREFIX "watermark:"

/* The queue (queue.c). */
struct waiter *queue_next(struct record *record);
bool queue_admits(const struct record *record, enum mode mode, const struct view *view);
struct grant *queue_grant(struct record *record, struct waiter *waiter);
uint16_t queue_offer_next(struct record *record, const struct view *view);
/* How long an observer leaves the offer to that waiter, by its own clock. */
int64_t queue_offer_lasts_ms(const struct waiter *waiter, const struct store_facts *facts);

#endif

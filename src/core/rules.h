/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules: record and request in, verdict and next record out. Every decision about who may
 * hold, who is next, what has run out and what blocks is made here and nowhere else. Pure: the
 * time is the store's, given in the view; the numbers in the comments are the rules of
 * docs/guarantees.md.
 */
#ifndef LEASEHOLD_CORE_RULES_H
#define LEASEHOLD_CORE_RULES_H

#include "core/record.h"

#define OFFER_GRACE_MS ((int64_t)1000)

enum verb {
    VERB_ACQUIRE,
    VERB_LEAVE,
    VERB_RENEW,
    VERB_RELEASE, /* with a cooldown an id is done by it, without one it is abandoned */
    VERB_BREAK,
    VERB_CLEAR,
    VERB_QUERY,
    VERB_MARK,    /* an id is done, in one write */
    VERB_ADVANCE, /* a watermark moves forward, from what it was expected to be */
    VERB_SET,     /* an operator puts a watermark somewhere, and says why */
};

/* What is to be remembered of an id that was done; no words are none. */
struct completion {
    uint8_t status;
    const char *result;
    const char *watermark, *until;
};

/* Whom a break is about. */
struct broken {
    uint32_t count;              /* of holders; 0: nobody holds the key */
    char holder[HOLDER_MAX + 1]; /* the first of them … */
    uint64_t token;
    int64_t since_ms; /* … in store time */
};

struct request {
    enum verb verb;
    enum record_kind kind; /* ask: a lock or an id */
    const char *key;
    const char *holder;
    const char *request; /* the acquisition's identity: ask, leave, mark, advance */
    uint64_t session;
    uint64_t token; /* renew, release */
    uint64_t up_to; /* break, clear: nothing written after this revision is meant; 0: no bound */
    enum mode mode;
    uint32_t limit; /* MODE_SLOT: the semaphore's size; otherwise 0 */
    int32_t priority;
    int64_t ttl_ms; /* renew: 0 keeps the grant's own */
    int64_t lock_delay_ms;
    int64_t cooldown_ms; /* release; of an id: how long it is remembered, also mark */
    bool bound;
    bool waits;            /* ask: take a place when it is not granted at once */
    bool now;              /* break: free at once instead of telling the holder first */
    const char *reason;    /* break, set */
    struct broken *broken; /* break: the caller's, filled by each decision; or NULL */
    const struct meta *meta;
    const char *payload;                 /* ask and mark of an id: its fingerprint, or NULL */
    const struct completion *completion; /* release and mark of an id; NULL says nothing */
    enum order order;     /* advance, set: ORDER_NONE takes the watermark's, or the value's */
    const char *value;    /* advance, set */
    const char *expected; /* advance: what it must be, "" for none */
};

/* NULL, or what is wrong with it, in words for the one who made it (request.c). */
const char *request_broken(const struct request *request);

/* By what the store lets us judge that a lease has run out. Never another host's clock. */
enum judge {
    JUDGE_STORE_TIME, /* the store's clock, in the view */
    JUDGE_SESSION,    /* the store says it of each grant: over, dead */
    JUDGE_OBSERVED,   /* seen unchanged on the observer's own clock for the whole length */
};

/* What came with the record: where it stood, and what the asker knows about time. */
struct view {
    struct stamp at; /* the record's revision (0: absent), the store's epoch and time */
    enum judge judge;
    bool one_clock;            /* all processes read the store's own clock: a release may grant */
    int64_t margin_ms;         /* error of the store's clock, added before anything is over */
    uint64_t offer_revision;   /* the oldest offer that the asker sees … */
    int64_t offer_observed_ms; /* … and for how long, on its own clock */
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
    bool write;       /* holds only once the changed record is written */
    bool accepts;     /* GRANTED by accepting an offer */
    const char *why;  /* NULL or a few words */
    uint16_t n;       /* GRANTED: the token's last part */
    int64_t since_ms; /* GRANTED without a write: when its lease began, on the one clock */
    uint16_t expired, passed_on, offered;
};

/* Changes the record in place; when verdict.write is false the record must not be written. */
struct verdict rules_decide(struct record *record, const struct request *request,
                            const struct view *view);

/* What people see of a key. */
enum key_state { KEY_FREE, KEY_HELD, KEY_OFFERED, KEY_COOLING, KEY_DELAYED };

struct key_info {
    enum key_state state;
    const char *holder;     /* into the record; NULL when free */
    uint64_t token;         /* when held */
    int64_t since_ms;       /* in store time */
    int64_t ends_in_ms;     /* −1 when the store has no clock; 0: the lease is over … */
    int64_t takeover_in_ms; /* … but others may take it only then: the clock's error is added */
};

/* Of an id, held is running and cooling is done; of a watermark, it is always free. */
struct key_info record_key_info(const struct record *record, const struct view *view);

/* True when the grant has run out, its session ended with it, or the store says so. */
bool grant_ended(const struct grant *grant, const struct view *view);
bool span_blocks(const struct span *span, const struct view *view);
/* What waits for a watermark is remembered until the store finds that it has passed. */
bool record_is_cooling(const struct record *record, const struct view *view);
/* Can the store's clock say how long ago that was? Records and answers may come without a time. */
bool time_is_known(const struct stamp *since, const struct view *view);

/*
 * Where a poll begins and where its watermark may stand afterwards, with the store's clock in the
 * place of the source's (rule 7). What became known of a moment later than the overlap is missed.
 */
struct poll {
    const char *from; /* into the record; "" when there is none yet */
    int64_t start_ms;
};

struct poll watermark_begin(const struct record *record, int64_t now_ms, int64_t overlap_ms);

/*
 * How long after its write the record may be needed, by the store's clock, at most; a store may
 * forget it then. 0: always. An id that waits for a watermark is needed until that has passed, too.
 */
int64_t record_retention_ms(const struct record *record);
/* How long after its write, at most, it can keep anybody out, even if all that are in it died. */
int64_t record_blocks_ms(const struct record *record);
bool record_awaits_watermark(const struct record *record);
/* Does it stand above that position? */
bool watermark_has_passed(const struct record *watermark, const char *position);

/* Keys of ids and watermarks are apart from those of locks by how they begin. */
#define ONCE_PREFIX      "once:"
#define WATERMARK_PREFIX "watermark:"

/* The queue's part (queue.c). */
struct waiter *queue_next(struct record *record);
bool queue_admits(const struct record *record, enum mode mode, const struct view *view);
struct grant *queue_grant(struct record *record, struct waiter *waiter);
uint16_t queue_offer_next(struct record *record, const struct view *view);

#endif

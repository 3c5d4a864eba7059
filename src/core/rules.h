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

enum verb { VERB_ASK, VERB_LEAVE, VERB_RENEW, VERB_RELEASE, VERB_BREAK, VERB_CLEAR, VERB_LOOK };

struct request {
    enum verb verb;
    const char *key;
    const char *holder;
    const char *request; /* the acquisition's identity: ask, leave */
    uint64_t session;
    uint64_t token; /* renew, release */
    uint64_t up_to; /* break, clear: nothing written after this revision is meant; 0: no bound */
    enum mode mode;
    uint32_t limit; /* MODE_SLOT: the semaphore's size; otherwise 0 */
    int32_t priority;
    int64_t ttl_ms;
    int64_t lock_delay_ms;
    int64_t cooldown_ms; /* release */
    bool bound;
    bool waits;         /* ask: take a place when it is not granted at once */
    bool now;           /* break: free at once instead of telling the holder first */
    const char *reason; /* break */
    const struct meta *meta;
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
    bool one_clock;          /* all processes read the store's own clock: a release may grant */
    int64_t margin_ms;       /* error of the store's clock, added before anything is over */
    uint64_t offer_revision; /* the oldest offer that the asker sees … */
    int64_t offer_seen_ms;   /* … and for how long, on its own clock */
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
struct verdict decide(struct record *record, const struct request *request,
                      const struct view *view);

/* What people see of a key. */
enum key_state { KEY_FREE, KEY_HELD, KEY_OFFERED, KEY_COOLING, KEY_DELAYED };

struct look {
    enum key_state state;
    const char *holder; /* into the record; NULL when free */
    uint64_t token;     /* when held */
    int64_t since_ms;   /* in store time */
    int64_t ends_in_ms; /* −1 when the store has no clock */
};

struct look record_look(const struct record *record, const struct view *view);

/* True when the grant has run out, its session ended with it, or the store says so. */
bool grant_ended(const struct grant *grant, const struct view *view);
bool span_blocks(const struct span *span, const struct view *view);
/* Can the store's clock say how long ago that was? Records and answers may come without a time. */
bool time_is_known(const struct stamp *since, const struct view *view);

/* The queue's part (queue.c). */
struct place *queue_next(struct record *record);
bool queue_admits(const struct record *record, enum mode mode, const struct view *view);
struct grant *queue_enter(struct record *record, struct place *place);
uint16_t queue_hand_on(struct record *record, const struct view *view);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record: everything that a store keeps about one key: holders, waiters and blocking spans.
 * Plain data of fixed size; makes no decision (see rules.h), reads no clock and allocates nothing.
 *
 * A record cannot contain the revision and time of the write that carries it, so "now" is written
 * as THIS_WRITE, and readers resolve it (record_resolve). Durations are stored, never end times.
 */
#ifndef LEASEHOLD_CORE_RECORD_H
#define LEASEHOLD_CORE_RECORD_H

#include "core/order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_MAX = 512,
    HOLDER_MAX = 128,
    REQUEST_MAX = 64,
    REASON_MAX = 256,
    META_PAIRS_MAX = 16,
    META_MAX = 1024,
    GRANTS_MAX = 64,
    WAITERS_MAX = 256,
    OFFERS_MAX = 8,
    SPARES_MAX = 4, /* waiters behind an offer that one write tries to wake */
    PRIORITY_MAX = 100,
    RESULT_MAX = 1024,
    PAYLOAD_MAX = 64,
    STATUS_MAX = 255,
    POSITION_MAX = 1024,
    PASSED_MAX = 1000000,
    RECORD_MAX = 64 * 1024, /* encoded */
    RECORD_RESERVE = 6400,  /* for offers, 64 grants made from waiters, a break's reason, spans */
    EPOCH_MAX = 255,        /* so a token is below 2^63, and an order is exact as a double */
    GRANT_STEP = 64, /* between the n of two grants of one write; in between, local hand-offs */
};

#define TTL_MAX_MS   ((int64_t)24 * 3600 * 1000)
#define SPAN_MAX_MS  ((int64_t)366 * 24 * 3600 * 1000) /* cooldown, lock-delay */
#define TIME_MAX_MS  (((int64_t)1 << 53) - 1)          /* of a store's clock, from 0 */
#define REVISION_MAX (((uint64_t)1 << 45) - 1)
#define ORDER_MAX    (((uint64_t)1 << 53) - 1)    /* of EPOCH_MAX and REVISION_MAX */
#define TICKET_MAX   (((uint64_t)1 << 53) - 1)    /* also of next_ticket */
#define TICKET_TIMED ((uint64_t)4000000000000000) /* see waiter_since_ms() */
#define TICKET_STEP  ((uint64_t)1000)
#define THIS_WRITE   ((uint64_t)0) /* as a stamp's revision: resolved by the reader */
#define TIME_UNKNOWN INT64_MIN     /* as a stamp's time: the store has no clock */

/* The time of a write, by the store's revision counter and the store's clock. */
struct stamp {
    uint64_t revision;
    int64_t time_ms;
    uint16_t epoch;
};

/* Concatenated pairs, "name\0value\0…": shown to people, never interpreted. */
struct meta {
    uint16_t count;
    uint16_t used;
    char text[META_MAX];
};

enum mode { MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOT /* of a semaphore */ };

struct grant {
    char holder[HOLDER_MAX + 1];
    char request[REQUEST_MAX + 1]; /* the acquisition's identity (rule 9), not the holder's */
    uint64_t session;              /* the process that owns it */
    enum mode mode;
    bool bound;          /* ends with its session (rule 11); otherwise only with its TTL */
    bool broken;         /* by an operator: not renewable; free once confirmed or expired */
    bool dead;           /* set by the store on read, never stored: its session has ended … */
    bool over;           /* … or its lease has expired */
    int64_t observed_ms; /* how long this client has seen it unchanged; never stored */
    uint16_t n;
    struct stamp granted;
    struct stamp renewed;
    int64_t ttl_ms;
    int64_t lock_delay_ms;
    struct meta meta;
};

struct waiter {
    char holder[HOLDER_MAX + 1];
    char request[REQUEST_MAX + 1];
    uint64_t session; /* one queue position per process */
    uint64_t ticket;  /* order of arrival, and its time: waiter_since_ms() */
    enum mode mode;
    int32_t priority;
    uint32_t passed; /* how often a later ticket was preferred: each adds a step of priority */
    bool bound;
    bool dead; /* set by the store on read, never stored */
    bool offered;
    struct stamp offer; /* when offered */
    int64_t ttl_ms;
    int64_t lock_delay_ms;
};

/* A time span that blocks the key; none if length_ms is 0. */
struct span {
    struct stamp since;
    int64_t length_ms;
    char by[HOLDER_MAX + 1];
    bool over;           /* set by the store on read, never stored */
    int64_t observed_ms; /* as in struct grant */
};

/* The use of a key. An empty record takes the kind of the next request. */
enum record_kind { KIND_LOCK, KIND_ONCE, KIND_WATERMARK };

/* The result of a finished id; the cooldown is its retention. */
struct done {
    char request[REQUEST_MAX + 1]; /* identity of the claim or mark … */
    uint64_t token;                /* … and the claim's token; 0 after a mark */
    uint8_t status;                /* 0 is success */
    char result[RESULT_MAX + 1];   /* for later callers */
    /* Both or neither: the id is also kept until this watermark has passed that position. */
    char watermark[KEY_MAX + 1];
    char until[POSITION_MAX + 1];
};

/*
 * State of an id that is processed once (rule 6). Its claim is an ordinary exclusive grant: it is
 * renewed, expires and is taken over like any other. Finishing it starts the cooldown.
 */
struct once {
    char payload[PAYLOAD_MAX + 1]; /* fingerprint of the payload; empty if none was given */
    struct done done;              /* all 0 unless the key is cooling */
};

/* How far a source was read: everything up to `value` is handled. */
struct watermark {
    enum order order;
    char value[POSITION_MAX + 1]; /* the source's own cursor or clock */
    struct stamp moved;
    char by[HOLDER_MAX + 1];
    /* The last advance: its identity (rule 9) and its start, "" for none. Both are empty after a
     * set by an operator or an advance by an older version. */
    char request[REQUEST_MAX + 1];
    char from[POSITION_MAX + 1];
};

struct record {
    char key[KEY_MAX + 1]; /* the full key, compared on every read */
    uint32_t limit;        /* of a semaphore; 0: a read-write lock */
    uint64_t next_ticket;
    struct span cooling;         /* after a clean release */
    struct span delay;           /* after a crash */
    char reason[REASON_MAX + 1]; /* of the last break, or of a watermark set by an operator */
    enum record_kind kind;
    uint16_t grant_count;
    uint16_t waiter_count;
    struct grant grants[GRANTS_MAX];
    struct waiter waiters[WAITERS_MAX]; /* in order of their tickets */
    struct once once;                   /* with KIND_ONCE only */
    struct watermark watermark;         /* with KIND_WATERMARK only */
};

/* An absent record: no holders, no waiters. */
void record_init(struct record *record, const char *key);
/* The same for a record whose key is set. */
void record_clear(struct record *record);
void record_copy(struct record *to, const struct record *from);
/* Changes the kind and clears the fields of that kind. */
void record_set_kind(struct record *record, enum record_kind kind);
/* Ends the cooldown and clears the result of a finished id. */
void record_end_cooling(struct record *record);
/* Replaces THIS_WRITE by the stamp of the write that carried the record. */
void record_resolve(struct record *record, const struct stamp *written);
/* False if the record is empty and should be deleted. */
bool record_needed(const struct record *record);
/* An upper bound of the encoded length; records made by the rules never exceed RECORD_MAX. */
size_t record_size_bound(const struct record *record);
/* True if that bound is at most `size`; cheap unless the record is long. */
bool record_fits(const struct record *record, size_t size);
size_t meta_size_bound(const struct meta *meta);
/* NULL, or the violated invariant: reported by the decoder, asserted by the rules. */
const char *record_broken(const struct record *record);

/* epoch·2^45 + revision: orders writes over epochs, and names one write; and the stamp of one. */
uint64_t stamp_order(const struct stamp *stamp);
struct stamp stamp_of_order(uint64_t order, int64_t time_ms);

/* epoch·2^55 + revision·2^10 + n; 0 while the stamp is THIS_WRITE. */
uint64_t token_of(const struct stamp *granted, uint16_t n);
uint64_t grant_token(const struct grant *grant);

/*
 * When the waiter was queued, by the store's clock; or TIME_UNKNOWN. The ticket says it, because
 * older versions accept any increasing ticket, but no further member: a ticket of TICKET_TIMED +
 * TICKET_STEP·t was issued at t ms. Older versions issue those in between, which say nothing.
 */
int64_t waiter_since_ms(const struct waiter *waiter);
/* Gives the waiter that was added last a ticket of this time, never before that of the waiter
 * ahead. No effect if a ticket cannot express the time. */
void record_time_ticket(struct record *record, struct waiter *waiter, int64_t now_ms);

struct grant *record_grant_by_token(struct record *record, uint64_t token);
struct grant *record_grant_by_request(struct record *record, const char *request);
struct waiter *record_waiter_by_request(struct record *record, const char *request);
struct waiter *record_waiter_by_session(struct record *record, uint64_t session);
size_t record_offers(const struct record *record);
struct grant *record_add_grant(struct record *record);
struct waiter *record_add_waiter(struct record *record);
/* Adds a waiter at the position of a ticket that it had before; NULL if another waiter has it. */
struct waiter *record_return_waiter(struct record *record, uint64_t ticket);
void record_remove_grant(struct record *record, struct grant *grant);
void record_remove_waiter(struct record *record, struct waiter *waiter);

/* False if there is no room, the name is empty or a duplicate, or the text is not clean. */
bool meta_add(struct meta *meta, const char *name, const char *value);

#endif

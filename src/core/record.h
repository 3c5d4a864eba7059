/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record: everything a store keeps about one key. Who holds it, who waits, what blocks it.
 * Plain data of fixed size; nothing here decides (that is rules.h), reads a clock or allocates.
 *
 * A record cannot know the revision and time of the write that carries it, so what happens "now"
 * is written as the mark THIS_WRITE and resolved by whoever reads it (record_resolve). Lengths are
 * stored, never ends.
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
    PRIORITY_MAX = 100,
    RESULT_MAX = 1024,
    PAYLOAD_MAX = 64,
    STATUS_MAX = 255,
    POSITION_MAX = 1024,
    PASSED_MAX = 1000000,
    RECORD_MAX = 64 * 1024, /* encoded */
    RECORD_RESERVE = 6400,  /* for offers, 64 grants made of places, a break's reason, spans */
    EPOCH_MAX = 511,
    GRANT_STEP = 64, /* between the n of two grants of one write; below it, local hand-overs */
};

#define TTL_MAX_MS   ((int64_t)24 * 3600 * 1000)
#define SPAN_MAX_MS  ((int64_t)366 * 24 * 3600 * 1000) /* cooldown, lock-delay */
#define TIME_MAX_MS  (((int64_t)1 << 53) - 1)          /* of a store's clock, from 0 */
#define REVISION_MAX (((uint64_t)1 << 45) - 1)
#define TICKET_MAX   (((uint64_t)1 << 53) - 1) /* also the next one */
#define THIS_WRITE   ((uint64_t)0)             /* as a stamp's revision: resolved by the reader */
#define TIME_UNKNOWN INT64_MIN                 /* as a stamp's time: the store has no clock */

/* When something was written, in the store's own count and on the store's own clock. */
struct stamp {
    uint64_t revision;
    int64_t time_ms;
    uint16_t epoch;
};

/* Pairs one after the other, "name\0value\0…": shown to people, never interpreted. */
struct meta {
    uint16_t count;
    uint16_t used;
    char text[META_MAX];
};

enum mode { MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOT /* of a semaphore */ };

struct grant {
    char holder[HOLDER_MAX + 1];
    char request[REQUEST_MAX + 1]; /* the acquisition's identity (rule 9), not the holder's */
    uint64_t session;              /* the process that it belongs to */
    enum mode mode;
    bool bound;          /* ends with its session (rule 11); otherwise it lives by its TTL alone */
    bool broken;         /* by an operator: no renewal any more, free when confirmed or run out */
    bool dead;           /* said by the store at the read, never stored: its session is over … */
    bool over;           /* … or its lease has run out */
    int64_t observed_ms; /* how long the asker has seen it unchanged; never stored */
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
    uint64_t session; /* one place per process */
    uint64_t ticket;  /* order of arrival */
    enum mode mode;
    int32_t priority;
    uint32_t passed; /* how often a later ticket went before: each is one step of priority */
    bool bound;
    bool dead; /* said by the store at the read, never stored */
    bool offered;
    struct stamp offer; /* when offered */
    int64_t ttl_ms;
    int64_t lock_delay_ms;
};

/* A stretch of time that blocks the key; no length, no stretch. */
struct span {
    struct stamp since;
    int64_t length_ms;
    char by[HOLDER_MAX + 1];
    bool over;           /* said by the store at the read, never stored */
    int64_t observed_ms; /* as in struct grant */
};

/* What a key is used as; a key that says nothing becomes what it is asked for first. */
enum record_kind { KIND_LOCK, KIND_ONCE, KIND_WATERMARK };

/* What is remembered of an id that was done, beside the cooldown that says for how long. */
struct done {
    char request[REQUEST_MAX + 1]; /* by whom: the claim's or mark's identity … */
    uint64_t token;                /* … and the claim's token; 0 when it was only marked */
    uint8_t status;                /* 0 is success */
    char result[RESULT_MAX + 1];   /* for those who come later */
    /* Both, or neither: also remembered until this watermark stands above that position. */
    char watermark[KEY_MAX + 1];
    char until[POSITION_MAX + 1];
};

/*
 * Of an id that is to be done once (rule 6). Its claim is an ordinary exclusive grant: it is
 * renewed, runs out and is taken over like any other. Once it is done, the key cools.
 */
struct once {
    char payload[PAYLOAD_MAX + 1]; /* fingerprint of what it is about; empty when nobody said */
    struct done done;              /* all 0 unless the key cools */
};

/* How far a source was read: everything up to here is handled. */
struct watermark {
    enum order order;
    char value[POSITION_MAX + 1]; /* the source's own cursor or clock */
    struct stamp moved;
    char by[HOLDER_MAX + 1];
    /* The advance that brought it here: its identity (rule 9), and where it came from, "" for
     * nowhere. No identity when an operator set it, or an older program moved it. */
    char request[REQUEST_MAX + 1];
    char from[POSITION_MAX + 1];
};

struct record {
    char key[KEY_MAX + 1]; /* the full key, compared on every read */
    uint32_t limit;        /* of a semaphore; 0 is a lock with readers and writers */
    uint64_t next_ticket;
    struct span cooling;         /* after a clean release */
    struct span delay;           /* after a crash */
    char reason[REASON_MAX + 1]; /* of the last break, or of a watermark that was set by hand */
    enum record_kind kind;
    uint16_t grant_count;
    uint16_t waiter_count;
    struct grant grants[GRANTS_MAX];
    struct waiter waiters[WAITERS_MAX]; /* in order of their tickets */
    struct once once;                   /* with that kind only */
    struct watermark watermark;         /* likewise */
};

/* An absent record: nobody holds, nobody waits. */
void record_init(struct record *record, const char *key);
void record_copy(struct record *to, const struct record *from);
/* From now on it is of that kind, and says nothing of it yet. */
void record_set_kind(struct record *record, enum record_kind kind);
/* Nothing cools any more, and nothing is done. */
void record_end_cooling(struct record *record);
/* Replaces the marks by the stamp of the write that carried the record. */
void record_resolve(struct record *record, const struct stamp *written);
/* False when the record says nothing any more and should be deleted. */
bool record_needed(const struct record *record);
/* An upper bound of the encoded length; what the rules make never exceeds RECORD_MAX. */
size_t record_size_bound(const struct record *record);
size_t meta_size_bound(const struct meta *meta);
/* NULL, or which invariant is broken: shown to the invariant's breaker, asserted by the rules. */
const char *record_broken(const struct record *record);

/* epoch·2^55 + revision·2^10 + n; 0 while the grant still carries its mark. */
uint64_t token_of(const struct stamp *granted, uint16_t n);
uint64_t grant_token(const struct grant *grant);

struct grant *record_grant_by_token(struct record *record, uint64_t token);
struct grant *record_grant_by_request(struct record *record, const char *request);
struct waiter *record_waiter_by_request(struct record *record, const char *request);
struct waiter *record_waiter_by_session(struct record *record, uint64_t session);
size_t record_offers(const struct record *record);
struct grant *record_add_grant(struct record *record);
struct waiter *record_add_waiter(struct record *record);
void record_remove_grant(struct record *record, struct grant *grant);
void record_remove_waiter(struct record *record, struct waiter *waiter);

/* False when there is no room, the name is empty or there already, or the words are not clean. */
bool meta_add(struct meta *meta, const char *name, const char *value);

#endif

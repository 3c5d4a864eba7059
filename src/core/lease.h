/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease from its holder's side: one step function. Events with their `now` go in; at most one
 * store request, at most one thing to tell the caller, and "wake me at" come out. The diagram of
 * the states is in lease_states.c, the rules that decide over records in rules.h.
 *
 * Pure: no clock, no I/O, no allocation. `now` is the caller's clock that also runs in suspend.
 * The record argument is the caller's scratch: on entry what it last heard of the key (when
 * event.known), on return the record to write when the action is a swap.
 */
#ifndef LEASEHOLD_CORE_LEASE_H
#define LEASEHOLD_CORE_LEASE_H

#include "base/random.h"
#include "base/text.h"
#include "core/outcome.h"
#include "core/rules.h"

#define NEVER              INT64_MAX
#define WAIT_WITHOUT_LIMIT (-1)

enum lease_state {
    LEASE_IDLE,
    LEASE_ACQUIRING, /* a request to enter or to take a place is on its way */
    LEASE_WAITING,   /* has a place; woken by a notice, or looks now and then */
    LEASE_OFFERED,   /* accepts an offer; that write will be the grant */
    LEASE_HELD,      /* told so; the deadline is ahead */
    LEASE_RENEWING,  /* held, and a renewal is on its way */
    LEASE_LOST,      /* told so; the work must have stopped by the kill time */
    LEASE_RELEASING, /* gives the grant back */
    LEASE_LEAVING,   /* gives up: writes itself out first */
    LEASE_OPERATION, /* a single verb: cold renew or release, break, clear, look */
    LEASE_ENDED,
};

enum event_kind {
    EVENT_START,
    EVENT_REPLY,   /* of the store, to the request with that serial */
    EVENT_NOTICE,  /* the key changed; a hint, may be lost, doubled or old */
    EVENT_TIMER,   /* the time asked for has come */
    EVENT_RELEASE, /* the caller gives up waiting, is done, or, after LOST, has stopped */
};

enum reply_status {
    REPLY_OK,
    REPLY_CONFLICT,
    REPLY_TROUBLE, /* may have happened or not */
    REPLY_DENIED,
    REPLY_FULL, /* there is no room for one more key; nothing happened */
};

struct event {
    enum event_kind kind;
    int64_t now_ms;
    uint32_t serial;
    enum reply_status reply;
    /* Trouble: the request was not sent, so it did not happen; a retry before then is in vain. */
    bool refused;
    int64_t retry_at_ms;
    bool known;      /* the record argument holds what stands (or stood) in the store … */
    struct stamp at; /* … at this revision (0: absent) and store time */
};

enum action { ACTION_NONE, ACTION_READ, ACTION_SWAP, ACTION_DELETE };

/* Under which condition the store may change the record. */
enum condition_kind {
    IF_ABSENT,
    IF_REVISION,
    IF_GRANT, /* the grant with this token stands: only it is renewed or removed */
};

struct condition {
    enum condition_kind kind;
    uint64_t revision;
    uint64_t token;  /* with IF_REVISION: must stand too, where the store can test it; or 0 */
    int64_t ends_ms; /* with that token: when its lease ends by the store's clock; or 0 */
};

enum lease_notify { NOTIFY_NONE, NOTIFY_WAITING, NOTIFY_HELD, NOTIFY_LOST, NOTIFY_ENDED };

struct lease_output {
    enum action action;
    struct condition condition;
    uint32_t serial;   /* to be returned with the answer */
    size_t wake_count; /* sessions to wake once this write is in the store */
    uint64_t wake[WAITERS_MAX];
    enum lease_notify notify;
    enum outcome outcome; /* with NOTIFY_ENDED */
    const char *why;      /* NULL or a few words, until the next step */
    int64_t wake_at_ms;   /* NEVER when only an event can help */
    struct verdict verdict;
    bool decided; /* the verdict above was made in this step */
};

/* What the store can do; a driver's capability bits in the core's words. */
struct store_facts {
    enum judge judge;
    bool one_clock;
    bool tests_grant;       /* knows IF_GRANT */
    bool wakes_with_record; /* who is woken by a write hears what it left there */
    int64_t margin_ms;
    int64_t reply_timeout_ms; /* a first answer is awaited this long, the next ones longer */
};

struct lease_options {
    struct request request; /* VERB_ACQUIRE makes a lease; any other verb is an errand */
    struct store_facts store;
    int64_t wait_ms;       /* 0: not at all */
    int64_t cooldown_ms;   /* after a clean release */
    int64_t timeout_ms;    /* how long the store may be in trouble: 10 s */
    int64_t kill_grace_ms; /* 5 s */
    int64_t poll_ms;       /* the waiter's fallback look: 5 s */
};

struct observation {
    uint64_t token, revision;
    int64_t since_ms;
};

/*
 * What an observer has seen unchanged, and since when on its own clock. One for each key of a
 * process, kept by the caller from lease to lease; all zero at first.
 */
struct observations {
    uint64_t offer; /* the oldest one open */
    int64_t offer_since_ms;
    size_t count;
    struct observation observed[GRANTS_MAX + 2]; /* every grant, the cooldown, the lock-delay */
};

struct lease {
    uint32_t magic;
    enum lease_state state;
    const struct lease_options *options; /* the caller's; must outlive the lease */
    struct random random;                /* for jitter */
    int64_t now_ms;
    uint64_t token; /* 0 until granted */
    int64_t ttl_ms; /* as granted */
    int64_t start_ms, deadline_ms, kill_at_ms;
    /* the request on its way, if any */
    bool in_flight;
    bool unsure;  /* an earlier attempt may have happened unheard */
    bool noticed; /* the key changed while a request was on its way */
    enum action sent;
    enum verb sent_verb;
    enum verdict_kind pending; /* what holds once the write is in … */
    const char *pending_why;   /* … and why */
    uint32_t serial;
    uint32_t attempts, conflicts;
    uint32_t late;         /* grants in a row that were heard of after their deadline */
    bool reacquires;       /* LEAVING: gives back what came too late, then asks again */
    int64_t wait_until_ms; /* then: when that ends */
    uint64_t up_to;        /* break, clear: the revision that the unsure write was about */
    int64_t sent_at_ms, reply_by_ms;
    int64_t next_at_ms;    /* renewal, look or retry */
    int64_t give_up_at_ms; /* end of the wait, or of patience */
    int64_t trouble_since_ms;
    enum outcome final; /* told at the end of RELEASING and LEAVING */
    const char *final_why;
    bool notified_waiting;
    struct observations *observations; /* the caller's */
};

void lease_init(struct lease *lease, const struct lease_options *options,
                struct observations *observations, uint64_t seed);
/* A step that moved, sent or told something adds one line to the trace (NULL: none). */
void lease_step(struct lease *lease, const struct event *event, struct record *record,
                struct lease_output *out, struct text *trace);
bool lease_held(const struct lease *lease, int64_t now_ms);
const char *lease_state_name(enum lease_state state);

#endif

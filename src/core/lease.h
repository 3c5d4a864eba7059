/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease on the client's side, as one step function. An event with its `now` goes in; at most one
 * store request, at most one notification for the caller, and the next wake-up time come out.
 * lease_states.c has the state diagram; rules.h decides about records.
 *
 * Pure: no clock, no I/O, no allocation. `now` comes from a clock that also runs during suspend.
 * The record argument is the caller's scratch buffer: on entry the cached record of the key (if
 * event.known), on return the record to write if the action is a swap.
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
    LEASE_ACQUIRING, /* requests a grant or a queue position */
    LEASE_WAITING,   /* queued; woken by a notification, polls as a fallback */
    LEASE_OFFERED,   /* accepts an offer; that write becomes the grant */
    LEASE_HELD,      /* the caller is notified; the deadline is ahead */
    LEASE_RENEWING,  /* held, with a renewal in flight */
    LEASE_LOST,      /* the caller is notified; its work must stop by kill_at_ms */
    LEASE_RELEASING, /* returns the grant */
    LEASE_LEAVING,   /* gives up: removes its waiter or grant first */
    LEASE_OPERATION, /* a single verb without a lease: renew, release, break, query … */
    LEASE_ENDED,
};

enum event_kind {
    EVENT_START,
    EVENT_REPLY,   /* of the store, to the request with this serial */
    EVENT_NOTICE,  /* the key changed; a hint that may be lost, duplicated or outdated */
    EVENT_TIMER,   /* wake_at_ms has come */
    EVENT_RELEASE, /* the caller gives up waiting, is done, or, after LOST, has stopped */
};

enum reply_status {
    REPLY_OK,
    REPLY_CONFLICT,
    REPLY_TROUBLE, /* the request may have taken effect or not */
    REPLY_DENIED,
    REPLY_FULL,    /* the store has no room for another key; nothing happened */
    REPLY_INVALID, /* the store does not lock this key; nothing happened */
};

struct event {
    enum event_kind kind;
    int64_t now_ms;
    uint32_t serial;
    enum reply_status reply;
    /* With trouble: the request was not sent; a retry before retry_at_ms cannot succeed. */
    bool refused;
    int64_t retry_at_ms;
    bool known;      /* the record argument is a copy of the stored record … */
    struct stamp at; /* … at this revision (0: absent) and store time … */
    int64_t read_ms; /* … when it was read, by the clock of now_ms; 0: unknown */
    /* A reply, with renews_by_session: a write that was sent at this time, by the clock of now_ms,
     * keeps our session alive; 0: unknown. A cached record has none. */
    int64_t alive_ms;
};

enum action { ACTION_NONE, ACTION_READ, ACTION_SWAP, ACTION_DELETE };

/* The condition under which the store may change the record. */
enum condition_kind {
    IF_ABSENT,
    IF_REVISION,
    IF_GRANT, /* the grant with this token exists: only it is renewed or removed */
};

struct condition {
    enum condition_kind kind;
    uint64_t revision; /* of the write that was read: its stamp_order(), so the epoch counts, too */
    uint64_t token;    /* with IF_REVISION: must exist too, where the store can test it; or 0 */
    int64_t ends_ms;   /* end of that token's lease by the store's clock; or 0 */
};

enum lease_notify {
    NOTIFY_NONE,
    NOTIFY_WAITING, /* is in the queue; at most once */
    NOTIFY_HELD,
    NOTIFY_LOST,    /* the work must have stopped by the kill time; then release */
    NOTIFY_ENDED,   /* with its outcome; always the last one */
    NOTIFY_RENEWED, /* the deadline moved; the executor reports it, from the deadline */
};

struct lease_output {
    enum action action;
    struct condition condition;
    uint32_t serial;    /* to be returned with the reply */
    size_t wake_count;  /* sessions to wake once this write has succeeded … */
    size_t given_count; /* … of which it grants or offers the key to the first ones … */
    size_t spare_count; /* … and of the last ones needs to reach only one, the first that lives */
    uint64_t wake[WAITERS_MAX];
    enum lease_notify notify;
    enum outcome outcome; /* with NOTIFY_ENDED */
    const char *why;      /* NULL or a short reason, valid until the next step */
    int64_t wake_at_ms;   /* NEVER if no timer is needed */
    struct verdict verdict;
    bool decided; /* this step made the verdict above */
};

struct lease_options {
    struct request request; /* VERB_ACQUIRE makes a lease; any other verb is a single operation */
    const struct store_facts *facts; /* the caller's; must outlive the lease */
    int64_t wait_ms;                 /* 0: do not wait */
    int64_t cooldown_ms;             /* after a clean release */
    int64_t timeout_ms;              /* how long store trouble may last: 10 s */
    int64_t kill_grace_ms;           /* 5 s */
};

struct observation {
    uint64_t token, revision; /* the latter with its epoch, as in struct condition */
    int64_t since_ms;
};

/*
 * The parts of a record that this process has seen unchanged, and since when on its own clock. One
 * per key and process, kept by the caller across leases; initially zero.
 */
struct observations {
    uint64_t offer; /* stamp_order() of the oldest open offer */
    int64_t offer_since_ms;
    size_t count;
    struct observation observed[GRANTS_MAX + 2]; /* every grant, the cooldown, the lock-delay */
};

struct lease {
    uint32_t magic;
    enum lease_state state;
    const struct lease_options *options; /* the caller's; must outlive the lease */
    struct random random;                /* for jitter */
    int64_t now_ms, read_ms, alive_ms;   /* of the last event */
    uint64_t token;                      /* 0 until granted */
    uint64_t ticket;                     /* of its queue position, to return to it; or 0 */
    int64_t ttl_ms;                      /* as granted */
    int64_t start_ms, deadline_ms, kill_at_ms;
    /* the request in flight, if any */
    bool in_flight;
    bool unsure;  /* an earlier attempt may have taken effect without a reply */
    bool noticed; /* the key changed while a request was in flight */
    enum action sent;
    enum verb sent_verb;
    enum verdict_kind pending; /* the verdict once the write succeeds … */
    const char *pending_why;   /* … and its reason */
    uint32_t serial;
    uint32_t attempts, conflicts;
    uint32_t late;         /* consecutive grants whose reply came after their deadline */
    bool reacquires;       /* LEAVING: returns a late grant, then acquires again */
    int64_t wait_until_ms; /* with reacquires: the end of the wait */
    uint64_t up_to;        /* break, clear: the write that the unsure one replaced */
    int64_t sent_at_ms, reply_by_ms;
    int64_t next_at_ms;    /* renewal, poll or retry */
    int64_t give_up_at_ms; /* end of the wait, or of the timeout */
    int64_t trouble_since_ms;
    enum outcome final; /* reported at the end of RELEASING and LEAVING */
    const char *final_why;
    bool notified_waiting;
    struct observations *observations; /* the caller's */
};

void lease_init(struct lease *lease, const struct lease_options *options,
                struct observations *observations, uint64_t seed);
/* Adds one line to the trace unless it is NULL. */
void lease_step(struct lease *lease, const struct event *event, struct record *record,
                struct lease_output *out, struct text *trace);
bool lease_held(const struct lease *lease, int64_t now_ms);
const char *lease_state_name(enum lease_state state);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linearizability checker for lock histories: finds an order of all operations, each with its
 * effect between its call and its return, in which a correct lock gives the same results. Keys are
 * checked separately; expiry is a step of the lock itself. Histories come from any source,
 * simulated or logged by real processes, on one clock that is also the store's time. The checker
 * must not depend on how the library works: only on what its results promise.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_H
#define LEASEHOLD_TESTS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAR_KEY_OPS_MAX 1024 /* operations per key; more is undecided */
#define LINEAR_GRANTS_MAX  128  /* concurrent grants; more is undecided */
#define LINEAR_TEXT_MAX    512
#define LINEAR_FOREVER_MS  INT64_MAX /* a TTL or cooldown that never ends */

enum linear_kind {
    LINEAR_ACQUIRE,   /* ok with token, busy, cooling */
    LINEAR_RENEW,     /* ok, stale */
    LINEAR_RELEASE,   /* ok, stale */
    LINEAR_STATUS,    /* free, held with token, cooling, offered */
    LINEAR_BREAK_NOW, /* ok: every grant ends at once; cooldowns stay */
    LINEAR_CLEAR,     /* ok: a cooldown, if any, ends */
};

enum linear_mode { LINEAR_EXCLUSIVE, LINEAR_SHARED, LINEAR_SEMAPHORE };

enum linear_result {
    LINEAR_OK,
    LINEAR_BUSY,
    LINEAR_COOLING,
    LINEAR_STALE,
    LINEAR_FREE,
    LINEAR_HELD,
    LINEAR_OFFERED,
    LINEAR_UNKNOWN, /* no reply: it took effect at any time after its call, or never */
    LINEAR_UNHEARD, /* internal, never in a history: see below */
};

/*
 * One operation, and the promise of each result at the moment the operation takes effect:
 *
 * acquire ok      no incompatible grant is current, no cooldown runs, and the token is above every
 *                 token granted before on this key.
 * acquire busy    an incompatible grant is current, or another acquire is queued (`waits`). An
 *                 acquire that is granted in the end is queued from its call to its grant, and one
 *                 without a reply from its call on, for ever unless it is granted. One that ends
 *                 busy or cooling is queued from the moment it takes effect (it found the key held
 *                 and joined the queue) to its return; so two of them cannot be each other's only
 *                 reason. Fairness is not checked: a newcomer may overtake.
 * acquire cooling a cooldown runs.
 * renew ok        the token is current; its lease starts again with `ttl_ms`, longer or shorter.
 * release ok      the token is current. With `cooldown_ms` a cooldown starts; of two, the later end
 *                 counts. Grants of other readers or slots are unaffected.
 * stale           the token is not current. Nothing changes.
 * status free     no grant is current and no cooldown runs.
 * status held     `token` is current.
 * status cooling  a cooldown runs.
 * status offered  no grant is current.
 *
 * Two semaphore requests with different limits are incompatible. The model has no other limit of
 * holders: a reader whose result is busy because of one is refused.
 *
 * A lease or cooldown that an operation started ends its duration after the moment of the effect.
 * That moment is not before the call, nor before any operation placed earlier, and not after the
 * return, nor after that of any operation placed later. Moments are closed: a call in the
 * millisecond of another's return overlaps it, and a lease that ends now may still be current.
 *
 * An unanswered acquire that took effect has an unknown token. A later operation may name it (held,
 * renew, release); it is above the tokens granted before and below those granted after.
 *
 * A release may grant the key to a waiter whose grant is broken or expires before it is received.
 * So each acquire that waits and is answered may have had one more grant, between its call and its
 * return, that expires or is broken not after that return. No client received its token: the grant
 * is assumed only where a status shows a token that no acquire returned.
 */
struct linear_op {
    const char *key;
    enum linear_kind kind;
    enum linear_mode mode; /* acquire */
    uint32_t limit;        /* acquire, semaphore: 1 to LINEAR_GRANTS_MAX */
    bool waits;            /* acquire: would wait in the queue */
    bool cached;           /* from a cache that may be outdated: not checked */
    int client;            /* only for the report */
    enum linear_result result;
    uint64_t token;      /* renew, release: the argument; acquire ok, status held: the result */
    int64_t ttl_ms;      /* acquire, renew */
    int64_t cooldown_ms; /* release; 0 is none */
    int64_t call_ms;
    int64_t return_ms; /* undefined if the result is unknown */
};

struct linear_options {
    int64_t slack_ms;  /* leases and cooldowns may end this much early or late */
    bool revive;       /* an expired grant may be renewed or released until the next grant */
    size_t max_states; /* per key; about 300 bytes each. Beyond it the verdict is undecided */
};

#define LINEAR_OPTIONS_DEFAULT                               \
    {                                                        \
        .slack_ms = 0, .revive = false, .max_states = 100000 \
    }

enum linear_verdict {
    LINEAR_ACCEPTED,
    LINEAR_REFUSED,
    LINEAR_UNDECIDED, /* a bound was reached before an order was found or ruled out */
    LINEAR_MALFORMED, /* malformed: a return before its call, a renew with result free */
};

struct linear_report {
    const char *key;    /* the key that decided, from the history; NULL if accepted */
    size_t op;          /* refused, malformed: index of the operation in the history */
    size_t placed;      /* refused: operations of the key in the longest legal prefix */
    size_t states;      /* distinct states searched, over all keys */
    size_t peak_states; /* most states stored for one key */
    char text[LINEAR_TEXT_MAX];
};

/*
 * Checks the first `count` operations of `ops`, in any order. A refusal outweighs an undecided key.
 * `options` NULL means the default. `out` is filled for every verdict and points into `ops`.
 */
enum linear_verdict linear_check(const struct linear_op *ops, size_t count,
                                 const struct linear_options *options, struct linear_report *out);

#endif

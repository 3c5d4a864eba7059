/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linearizability checker for lock histories: is there one order of all operations, each
 * taking effect between its call and its return, that a correct lock could have answered so?
 * Keys are judged apart; expiry is a step of the lock itself. It takes histories from any
 * source, simulated or logged by real processes, on one clock that is also the store's time.
 * It must not know how the library works: only what its answers promise.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_H
#define LEASEHOLD_TESTS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAR_KEY_OPS_MAX 1024 /* operations per key; more is undecided */
#define LINEAR_GRANTS_MAX  128  /* grants that may stand at once; more is undecided */
#define LINEAR_TEXT_MAX    512
#define LINEAR_FOREVER_MS  INT64_MAX /* a ttl or cooldown that never ends */

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
    LINEAR_UNKNOWN, /* no answer: it took effect at any time after its call, or never */
    LINEAR_UNHEARD, /* the checker's own, no answer in a history: see below */
};

/*
 * One operation. What each result promises, at the moment the operation takes effect:
 *
 * acquire ok      nothing incompatible stands, no cooldown runs, and the token is above every
 *                 token granted before on this key.
 * acquire busy    something incompatible stands, or somebody is in line (`waits`). An acquire
 *                 that is granted in the end is in line from its call to its grant, and one
 *                 without an answer from its call on, for ever unless it is granted. One that
 *                 ends busy or cooling is in line from the moment it takes effect (it found the
 *                 key taken and joined the queue) to its return; so two of them cannot be each
 *                 other's only excuse. Fairness is not judged: a newcomer may overtake.
 * acquire cooling a cooldown runs.
 * renew ok        the token stands; its lease starts anew with `ttl_ms`, longer or shorter.
 * release ok      the token stands. With `cooldown_ms` a cooldown starts; of two, the later end
 *                 counts. What other readers or slots still hold stays theirs.
 * stale           the token does not stand. Nothing changes.
 * status free     nothing stands and no cooldown runs.
 * status held     `token` stands.
 * status cooling  a cooldown runs.
 * status offered  nothing stands.
 *
 * Two semaphore requests with different limits are incompatible. No other cap on holders is
 * known here: a reader that hears busy because of one is refused.
 *
 * A lease or cooldown that was started by an operation ends its length after the moment that
 * took effect: which was not before its call, nor before anything placed earlier, and not after
 * its return, nor after that of anything placed later. Moments are closed: a call in the
 * millisecond of another's return overlaps it, and a lease that ends now may still stand.
 *
 * An unanswered acquire that took effect has a token nobody knows. An answer may name it (held,
 * renew, release); it is above the tokens granted before and below those granted after.
 *
 * A release may let in who waits before that one hears of it, and the grant may be broken or run
 * out unheard. So each acquire that waits and is answered may have had one more grant, between its
 * call and its return, that ends by itself or by force and not after that return. Nobody was told
 * its token: it is believed in only where a status shows a token that no acquire was given.
 */
struct linear_op {
    const char *key;
    enum linear_kind kind;
    enum linear_mode mode; /* acquire */
    uint32_t limit;        /* acquire, semaphore: 1 to LINEAR_GRANTS_MAX */
    bool waits;            /* acquire: was ready to stand in line */
    bool cached;           /* answered from a copy that may be old: not judged */
    int client;            /* only for the report */
    enum linear_result result;
    uint64_t token;      /* renew, release: the argument; acquire ok, status held: the answer */
    int64_t ttl_ms;      /* acquire, renew */
    int64_t cooldown_ms; /* release; 0 is none */
    int64_t call_ms;
    int64_t return_ms; /* without meaning when the result is unknown */
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
    LINEAR_MALFORMED, /* the history itself is wrong: a return before its call, a free renew */
};

struct linear_report {
    const char *key;    /* the key that decided, from the history; NULL when accepted */
    size_t op;          /* refused, malformed: index of the operation in the history */
    size_t placed;      /* refused: operations of the key in the longest legal prefix */
    size_t states;      /* distinct states searched, over all keys */
    size_t peak_states; /* most states remembered for one key */
    char text[LINEAR_TEXT_MAX];
};

/*
 * Judges the first `count` operations of `ops`, in any order. A refusal outweighs an undecided
 * key. `options` NULL means the default. `out` is filled for every verdict and points into `ops`.
 */
enum linear_verdict linear_check(const struct linear_op *ops, size_t count,
                                 const struct linear_options *options, struct linear_report *out);

#endif

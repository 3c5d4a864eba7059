/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share three keys through the library while faults happen, and their statistics.
 * Each requests one key after the other and retries until it is granted. None checks before a write
 * whether it still holds: the resource must reject stale tokens. So stale writes are attempted, and
 * none may be accepted.
 */
#ifndef LEASEHOLD_TESTS_CONTENDERS_H
#define LEASEHOLD_TESTS_CONTENDERS_H

#include "leasehold.h"
#include "fixture.h"
#include "overlap_checker.h"

enum { CONTENDERS_MAX = 8, CONTENDER_LIVES = 4096 };

/* Parameters of their requests. */
struct contender_options {
    int64_t ttl_ms, wait_ms, timeout_ms;
    int64_t stay_most_ms;
    unsigned long_stays; /* one of N stays is longer than the TTL */
};

struct contender {
    uint64_t life, seed;
    _Atomic int inside;     /* number of the key, from 1; 0: outside */
    _Atomic unsigned stops; /* a call during a stop may last longer */
    _Atomic uint64_t entries;
};

/* In shared memory. */
struct contenders {
    struct contender_options contender_options;
    size_t first, end; /* child indexes */
    uint64_t next_life;
    struct contender children[CONTENDERS_MAX];
    _Atomic uint64_t entries[CHECKER_KEYS]; /* per key */
    _Atomic uint64_t outcomes[LH_FAILED + 1], calls, late_calls;
    _Atomic int64_t most_beyond_ms; /* beyond a call's own limit */
    _Atomic int64_t longest_want_ms;
    struct overlap_checker overlap_checker;
    struct life lives[CONTENDER_LIVES];
};

void contenders_init(struct contenders *all, const struct contender_options *contender_options,
                     size_t first, size_t end);
/* Starts a contender as a child, with a new life; `work` calls contender_play(). */
void contender_start(struct contenders *all, struct fixture *fixture, size_t child,
                     fixture_work *work);
/* Never returns. */
void contender_play(struct contenders *all, const struct fixture *fixture, size_t child);
/* Marks its life as killed, then kills it. */
void contender_kill(struct contenders *all, struct fixture *fixture, size_t child);
/* As fixture_stop(); fixture_continue() continues it. */
bool contender_stop(struct contenders *all, struct fixture *fixture, size_t child);

/* Returns a contender that holds a key, and the key; CHILDREN_MAX: none does before the timeout. */
size_t contender_inside(struct contenders *all, int64_t timeout_ms, size_t *out_key);

/* Number of entries so far. */
struct entries {
    uint64_t of_key[CHECKER_KEYS], of_child[CONTENDERS_MAX];
};

void entries_count(const struct contenders *all, struct entries *out);
/* Waits for an entry to this key, or, beyond the last key, to every key; false: timeout. */
bool entries_await_key(const struct contenders *all, size_t key, const struct entries *before,
                       int64_t timeout_ms);
/* Waits until every contender entered. */
bool entries_await_all(const struct contenders *all, const struct entries *before,
                       int64_t timeout_ms);

/* Reports the cases that hold for all stores. */
void contenders_report(const struct contenders *all, struct fixture *fixture);

#endif

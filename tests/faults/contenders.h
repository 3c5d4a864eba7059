/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share three keys through the library while something goes wrong, and what is seen
 * of them. Each wants one key after the other and asks until it has it. Nobody asks whether it
 * still holds before it writes: what is written to must tell by the token. So stale writes are
 * tried, and none may be taken.
 */
#ifndef LEASEHOLD_TESTS_CONTENDERS_H
#define LEASEHOLD_TESTS_CONTENDERS_H

#include "leasehold.h"
#include "fixture.h"
#include "overlap_checker.h"

enum { CONTENDERS_MAX = 8, CONTENDER_LIVES = 4096 };

/* How they ask. */
struct contender_options {
    int64_t ttl_ms, wait_ms, timeout_ms;
    int64_t stay_most_ms;
    unsigned long_stays; /* one of so many is longer than the TTL */
};

struct contender {
    uint64_t life, seed;
    _Atomic int inside;     /* number of the key, from 1; 0: outside */
    _Atomic unsigned stops; /* what it was in then may last longer */
    _Atomic uint64_t entries;
};

/* In memory that all share. */
struct contenders {
    struct contender_options contender_options;
    size_t first, end; /* their seats */
    uint64_t next_life;
    struct contender children[CONTENDERS_MAX];
    _Atomic uint64_t entries[CHECKER_KEYS]; /* of each key */
    _Atomic uint64_t outcomes[LH_FAILED + 1], calls, late_calls;
    _Atomic int64_t most_beyond_ms; /* a call's own time */
    _Atomic int64_t longest_want_ms;
    struct overlap_checker overlap_checker;
    struct life lives[CONTENDER_LIVES];
};

void contenders_init(struct contenders *all, const struct contender_options *contender_options,
                     size_t first, size_t end);
/* Starts one in its seat, as a new life; `work` calls contender_play(). */
void contender_start(struct contenders *all, struct fixture *fixture, size_t child,
                     fixture_work *work);
/* Never comes back. */
void contender_play(struct contenders *all, const struct fixture *fixture, size_t child);
/* Kills it, and says so before. */
void contender_kill(struct contenders *all, struct fixture *fixture, size_t child);
/* As fixture_stop(); fixture_continue() lets it go on. */
bool contender_stop(struct contenders *all, struct fixture *fixture, size_t child);

/* Somebody who is inside, and where; CHILDREN_MAX: nobody is, for long. */
size_t contender_inside(struct contenders *all, int64_t timeout_ms, size_t *out_key);

/* Who had come in how often. */
struct entries {
    uint64_t of_key[CHECKER_KEYS], of_child[CONTENDERS_MAX];
};

void entries_count(const struct contenders *all, struct entries *out);
/* Until somebody came in, of this key or, beyond the last, of every one; false: nobody did. */
bool entries_await_key(const struct contenders *all, size_t key, const struct entries *before,
                       int64_t timeout_ms);
/* Until every one of them came in. */
bool entries_await_all(const struct contenders *all, const struct entries *before,
                       int64_t timeout_ms);

/* What holds for all stores, as cases. */
void contenders_report(const struct contenders *all, struct fixture *fixture);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees who is inside, and fences what they write, without asking the store: words in memory that
 * all processes share. It outlives any of them, at any moment. Lives are numbered: a process that
 * was started again is another one.
 *
 * It judges on one clock only what is certain: somebody enters while another, who has not been
 * killed, may still count on its lease; or before an unbound lease has run out.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_OVERLAP_CHECKER_H
#define LEASEHOLD_TESTS_FAULTS_OVERLAP_CHECKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKER_KEYS = 3 };

/* What others must know of a life that is inside. */
struct life {
    _Atomic bool killed; /* set before it is killed */
    _Atomic int64_t killed_at_ms;
    _Atomic bool bound;
    _Atomic int64_t deadline_ms; /* until then it may count on its lease */
    _Atomic int64_t ends_ms;     /* before then the store may not grant an unbound one anew */
};

/* A resource that takes no write with a token below the highest it has seen. */
struct fenced {
    pthread_mutex_t mutex; /* robust: its owner may be killed */
    uint64_t token, value;
};

struct watched_key {
    _Atomic uint64_t owner; /* number of the life inside; 0: nobody */
    _Atomic uint64_t token; /* highest that came in */
    struct fenced fenced;
};

struct checker_counts {
    _Atomic uint64_t entries, overlaps, early, old_tokens;
    _Atomic uint64_t late; /* whose own deadline had passed when somebody came: it was told */
    _Atomic uint64_t after_death_bound, after_death_unbound; /* taken over from a killed one */
    _Atomic int64_t longest_bound_ms;                        /* since the kill */
    _Atomic int64_t longest_unbound_ms;                      /* since the lease's end */
    _Atomic int64_t earliest_ms;                             /* before it */
    _Atomic uint64_t writes, stale_refused, updates_lost;
};

struct overlap_checker {
    struct watched_key keys[CHECKER_KEYS];
    struct checker_counts counts;
    struct life *lives; /* from 1; in shared memory too */
};

void checker_init(struct overlap_checker *overlap_checker, struct life *lives);
void checker_enter(struct overlap_checker *overlap_checker, uint64_t life, size_t key,
                   uint64_t token);
void checker_leave(struct overlap_checker *overlap_checker, uint64_t life, size_t key);

/* False: refused, the token is old. */
bool fenced_read(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                 uint64_t *out_value);
/* Writes one more than was read. */
bool fenced_write(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                  uint64_t read);

void keep_longest(_Atomic int64_t *longest, int64_t length);

#endif

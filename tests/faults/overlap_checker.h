/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes which process is inside, and fences its writes, without querying the store: words in
 * shared memory, which outlive any process at any moment. Lives are numbered: a process that was
 * restarted is a new life.
 *
 * Only certain violations count, on one clock: a process enters while another, which has not been
 * killed, may still rely on its lease; or before an unbound lease expired.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_OVERLAP_CHECKER_H
#define LEASEHOLD_TESTS_FAULTS_OVERLAP_CHECKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKER_KEYS = 3 };

/* The public state of a life that is inside. */
struct life {
    _Atomic bool killed; /* set before it is killed */
    _Atomic int64_t killed_at_ms;
    _Atomic bool bound;
    _Atomic int64_t deadline_ms; /* until then it may rely on its lease */
    _Atomic int64_t ends_ms;     /* before then the store may not grant an unbound lease again */
};

/* A resource that rejects writes with a token below the highest one seen. */
struct fenced {
    pthread_mutex_t mutex; /* robust: its owner may be killed */
    uint64_t token, value;
};

struct watched_key {
    _Atomic uint64_t owner; /* number of the life inside; 0: none */
    _Atomic uint64_t token; /* highest token that entered */
    struct fenced fenced;
};

struct checker_counts {
    _Atomic uint64_t entries, overlaps, early, old_tokens;
    _Atomic uint64_t late; /* its own deadline had passed on the next entry: it was notified */
    _Atomic uint64_t after_death_bound, after_death_unbound; /* taken over from a killed process */
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

/* False: rejected, the token is stale. */
bool fenced_read(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                 uint64_t *out_value);
/* Writes the value that was read plus one. */
bool fenced_write(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                  uint64_t read);

void keep_longest(_Atomic int64_t *longest, int64_t length);

#endif

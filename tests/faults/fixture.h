/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all programs of this folder share: options, a folder of their own, child processes in
 * numbered seats, cases in TAP. Everything ends with fixture_close(): each child by its own pid,
 * then the folder. A child also ends when its parent does.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_FIXTURE_H
#define LEASEHOLD_TESTS_FAULTS_FIXTURE_H

#include "live.h"

#include <sys/types.h>

enum { CHILDREN_MAX = 128 };

struct fixture {
    uint64_t rounds, seed;
    struct random random;
    const struct store_driver *driver;
    char folder[128], url[512];
    bool given;               /* the store is not in the folder: it was there before */
    void *shared;             /* the program's own, seen by all children */
    int64_t end_at_ms;        /* whoever is not done by then has failed */
    pid_t pids[CHILDREN_MAX]; /* 0: nobody sits there */
    unsigned cases, failed;
};

typedef void fixture_work(struct fixture *fixture, size_t child);

/*
 * The URL of a store that is there already, which LEASEHOLD_TEST_STORE may also say, --rounds N,
 * --seed N, --store SCHEME: (the store itself is made in the folder). Exits with words when that
 * makes no sense. `limit_s` and `round_ms` bound the whole run.
 */
void fixture_open(struct fixture *fixture, int argc, char **argv, uint64_t rounds, int64_t limit_s,
                  int64_t round_ms, size_t shared_size);
/* From now on another store of this name in the folder; one that is there already stays. */
void fixture_name_store(struct fixture *fixture, const char *name);
/* Does the store know who lives? Otherwise a dead one is only noticed by its silence. */
bool fixture_knows_dead(const struct fixture *fixture);
/* The exit status. */
int fixture_close(struct fixture *fixture);

/* One case: ok, or not. The words are printf's. */
void fixture_case(struct fixture *fixture, bool ok, const char *text, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of figures. */
void fixture_print(const char *text, ...) __attribute__((format(printf, 1, 2)));
bool fixture_late(const struct fixture *fixture);
/* How many files are in the folder. */
size_t fixture_files(const struct fixture *fixture);

/* Forks; the child runs `work` and ends with 0 when that returns. */
void fixture_start(struct fixture *fixture, size_t child, fixture_work *work);
/* Kills and collects it; false when it had ended before, by itself. */
bool fixture_kill(struct fixture *fixture, size_t child);
/* Has it not ended by itself? */
bool fixture_lives(const struct fixture *fixture, size_t child);
/* Stops it, and comes back when it stands still; false when it has ended. */
bool fixture_stop(struct fixture *fixture, size_t child);
void fixture_continue(const struct fixture *fixture, size_t child);
/* Waits for its end, as long as the run may last; true when that was a clean one. */
bool fixture_join(struct fixture *fixture, size_t child);

/* For children: opens the store, as soon as it can be, or ends the process with words. */
struct live *fixture_live(const struct fixture *fixture, uint64_t session, int64_t timeout_ms);
/* A session nobody else has. */
uint64_t fixture_session(struct fixture *fixture);
void fixture_pause_us(int64_t length_us);
void fixture_spin_us(int64_t length_us); /* where a sleep is too coarse */
int64_t fixture_now_us(void);
/* So long the process's first thread, or with 0 the caller's own, was ready to run in all its life
 * while the processors did other things: what comes late by no more than that is not late. 0 when
 * it is gone, and where the kernel does not count it. */
int64_t fixture_unscheduled_us(pid_t pid);

#endif

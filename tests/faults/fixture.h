/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all programs of this folder: options, a temporary folder, numbered child processes,
 * cases in TAP. fixture_close() cleans up: each child by its own pid, then the folder. A child also
 * ends when its parent does.
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
    const char *server;       /* the program that runs the server; NULL: none (server_program.h) */
    bool given;               /* the store existed before and is not in the folder */
    void *shared;             /* shared with all children */
    int64_t end_at_ms;        /* the run fails if it is not done by then */
    pid_t pids[CHILDREN_MAX]; /* 0: not running */
    unsigned cases, failed;
};

typedef void fixture_work(struct fixture *fixture, size_t child);

/*
 * Options: the URL of an existing store (or LEASEHOLD_TEST_STORE), --rounds N, --seed N, --store
 * SCHEME: (the store is made in the folder), --server PROGRAM (starts a server of the test's own;
 * see server_program.h). Exits with a message on a usage error. `limit_s` and `round_ms` bound the
 * whole run.
 */
void fixture_open(struct fixture *fixture, int argc, char **argv, uint64_t rounds, int64_t limit_s,
                  int64_t round_ms, size_t shared_size);
/* Switches to another store of this name in the folder; a given store stays. */
void fixture_name_store(struct fixture *fixture, const char *name);
/* True if the store detects dead processes. Otherwise only a timeout reveals them. */
bool fixture_knows_dead(const struct fixture *fixture);
/* Returns the exit status. */
int fixture_close(struct fixture *fixture);

/* Reports one case, passed or failed, with a printf text. */
void fixture_case(struct fixture *fixture, bool ok, const char *text, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a line of figures. */
void fixture_print(const char *text, ...) __attribute__((format(printf, 1, 2)));
bool fixture_late(const struct fixture *fixture);
/* Number of files in the folder. */
size_t fixture_files(const struct fixture *fixture);

/* Forks; the child runs `work` and exits with 0 when that returns. */
void fixture_start(struct fixture *fixture, size_t child, fixture_work *work);
/* Kills and reaps the child; false when it had exited before. */
bool fixture_kill(struct fixture *fixture, size_t child);
/* True unless it has exited. */
bool fixture_lives(const struct fixture *fixture, size_t child);
/* Stops it, and returns when it is stopped; false when it has exited. */
bool fixture_stop(struct fixture *fixture, size_t child);
void fixture_continue(const struct fixture *fixture, size_t child);
/* Waits for its exit, as long as the run may last; true when its status is 0. */
bool fixture_join(struct fixture *fixture, size_t child);

/* For children: opens the store as soon as possible, or exits with a message. */
struct live *fixture_live(const struct fixture *fixture, uint64_t session, int64_t timeout_ms);
/* A unique session. */
uint64_t fixture_session(struct fixture *fixture);
void fixture_pause_us(int64_t length_us);
void fixture_spin_us(int64_t length_us); /* where a sleep is too coarse */
int64_t fixture_now_us(void);
/* Time that the process's first thread, or with 0 the calling thread, was runnable without a
 * processor since its start. Lateness up to that duration is not counted. 0 when the process is
 * gone, and where the kernel does not count it. */
int64_t fixture_unscheduled_us(pid_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all programs of this folder share: options, a folder of their own, child processes in
 * numbered seats, cases in TAP. Everything ends with rig_close(): each child by its own pid, then
 * the folder. A child also ends when its parent does.
 */
#ifndef LEASEHOLD_TESTS_RIG_H
#define LEASEHOLD_TESTS_RIG_H

#include "live.h"

#include <sys/types.h>

enum { SEATS_MAX = 128 };

struct rig {
    uint64_t rounds, seed;
    struct random random;
    const struct store_driver *driver;
    char folder[128], url[512];
    bool given;            /* the store is not in the folder: it was there before */
    void *shared;          /* the program's own, seen by all children */
    int64_t end_at_ms;     /* whoever is not done by then has failed */
    pid_t pids[SEATS_MAX]; /* 0: nobody sits there */
    unsigned cases, failed;
};

typedef void rig_work(struct rig *rig, size_t seat);

/*
 * The URL of a store that is there already, which LEASEHOLD_TEST_STORE may also say, --rounds N,
 * --seed N, --store SCHEME: (the store itself is made in the folder). Exits with words when that
 * makes no sense. `limit_s` and `round_ms` bound the whole run.
 */
void rig_open(struct rig *rig, int argc, char **argv, uint64_t rounds, int64_t limit_s,
              int64_t round_ms, size_t shared_size);
/* From now on another store of this name in the folder; one that is there already stays. */
void rig_name_store(struct rig *rig, const char *name);
/* Does the store know who lives? Otherwise a dead one is only noticed by its silence. */
bool rig_knows_dead(const struct rig *rig);
/* The exit status. */
int rig_close(struct rig *rig);

/* One case: ok, or not. The words are printf's. */
void rig_case(struct rig *rig, bool ok, const char *words, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of figures. */
void rig_say(const char *words, ...) __attribute__((format(printf, 1, 2)));
bool rig_late(const struct rig *rig);
/* How many files are in the folder. */
size_t rig_files(const struct rig *rig);

/* Forks; the child runs `work` and ends with 0 when that returns. */
void rig_start(struct rig *rig, size_t seat, rig_work *work);
/* Kills and collects it; false when it had ended before, by itself. */
bool rig_kill(struct rig *rig, size_t seat);
/* Has it not ended by itself? */
bool rig_lives(const struct rig *rig, size_t seat);
/* Stops it, and comes back when it stands still; false when it has ended. */
bool rig_stop(struct rig *rig, size_t seat);
void rig_continue(const struct rig *rig, size_t seat);
/* Waits for its end, as long as the run may last; true when that was a clean one. */
bool rig_join(struct rig *rig, size_t seat);

/* For children: opens the store, as soon as it can be, or ends the process with words. */
struct live *rig_live(const struct rig *rig, uint64_t session, int64_t patience_ms);
/* A session nobody else has. */
uint64_t rig_session(struct rig *rig);
void rig_pause_us(int64_t length_us);
void rig_spin_us(int64_t length_us); /* where a sleep is too coarse */
int64_t rig_now_us(void);
/* So long the process's first thread, or with 0 the caller's own, was ready to run in all its life
 * while the processors did other things: what comes late by no more than that is not late. 0 when
 * it is gone, and where the kernel does not count it. */
int64_t rig_unscheduled_us(pid_t pid);

#endif

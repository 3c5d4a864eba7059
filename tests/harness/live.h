/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in real time: one process, one open store of any driver, one lease after the other, no
 * thread. It carries the core's decisions to the store and the replies back, as the runtime does,
 * and blocks its caller meanwhile. Decides nothing; world.h is the same in virtual time.
 */
#ifndef LEASEHOLD_TESTS_LIVE_H
#define LEASEHOLD_TESTS_LIVE_H

#include "store/translate.h"

struct live;

struct live_counts {
    uint64_t requests; /* sent to the store */
    uint64_t conflicts;
    uint64_t troubles;
    uint64_t notices; /* writes of other processes named this one … */
    uint64_t idle;    /* … while no lease of it used the key */
    uint64_t wakes;   /* poll() returned with no request in flight */
    uint64_t looks;   /* polls of a waiter without a notification */
};

/* The terms of a lease; 0 means the default. */
struct live_request {
    const char *key;
    int64_t ttl_ms;      /* 30 s */
    int64_t wait_ms;     /* no wait */
    int64_t cooldown_ms; /* none */
    int64_t poll_ms;     /* 5 s */
    bool bound;
};

/* One step of the core, for tests that record them. */
struct live_step {
    const struct lease *before, *after;
    const struct event *event;
    const struct lease_output *output;
    const struct record *record;     /* after the step */
    const struct store_reply *heard; /* the last reply for the key, or NULL */
};

typedef void live_watcher(void *owner, const struct live_step *step);

/* NULL, with the reason, if it does not open. `timeout_ms` is the driver's and the lease's. */
struct live *live_open(const struct store_driver *driver, const char *url, uint64_t session,
                       int64_t timeout_ms, struct text *why);
void live_close(struct live **live);
void live_watch(struct live *live, live_watcher *watcher, void *owner);

/* OUTCOME_OK: held, and renewed as long as the caller stays in live_work(). */
enum outcome live_acquire(struct live *live, const struct live_request *wanted);
/* Works for that duration; false if the lease was lost before or meanwhile. */
bool live_work(struct live *live, int64_t length_ms);
enum outcome live_release(struct live *live);
/* Ends without a request, as a command does that leaves an unbound grant behind. */
void live_forget(struct live *live);
/* A single operation: renew, release, query, break at once. Requires that no lease is in use. */
enum outcome live_verb(struct live *live, enum verb verb, const char *key, uint64_t token,
                       int64_t ttl_ms);

/* A descriptor that keeps the session alive, for a command to inherit; −1: none. */
int live_liveness(const struct live *live);
const struct lease *live_lease(const struct live *live);
const struct live_counts *live_counts(const struct live *live);
/* The text of the store's last failure, or an empty one. */
const char *live_trouble(const struct live *live);
/* The clock of the leases, and of stores that share it. */
int64_t live_now_ms(void);

#endif

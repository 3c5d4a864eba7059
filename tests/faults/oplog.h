/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation log of one real process: requests and replies with call and return time, for the
 * linearizability checker. It is in memory that outlives the process, so a killed process leaves a
 * complete log. The operation in flight at the kill stays unknown. history.h is the equivalent of
 * the simulated world, which observes more.
 *
 * Times and durations are in microseconds; the checker does not depend on the unit.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_OPLOG_H
#define LEASEHOLD_TESTS_FAULTS_OPLOG_H

#include "linear.h"
#include "live.h"

#include <stdatomic.h>

enum { OPLOG_MAX = 96 };

struct oplog {
    const char *key; /* of the next operation; must stay valid as long as the log */
    int client;
    _Atomic int open, renewing; /* the operation in flight, or −1 */
    _Atomic bool spoiled;       /* an event happened that the checker cannot express … */
    _Atomic bool leaving;       /* … or will have, if it is killed now */
    bool unsure;                /* gave up while a request was in flight */
    _Atomic size_t count;
    struct linear_op ops[OPLOG_MAX];
};

void oplog_init(struct oplog *oplog, int client);
/* A live_watcher; its owner is the log. */
void oplog_write(void *owner, const struct live_step *step);

#endif

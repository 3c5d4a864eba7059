/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one real process asked and was answered, with call and return time, for the linearizability
 * checker: in memory that outlives it, so that a killed process leaves all that it had asked and
 * heard. The operation it was killed in stays unknown. The same as history.h, which sees more,
 * for it is the simulated world's own.
 *
 * Times and lengths are in microseconds; the checker does not mind.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_OPLOG_H
#define LEASEHOLD_TESTS_FAULTS_OPLOG_H

#include "linear.h"
#include "live.h"

#include <stdatomic.h>

enum { OPLOG_MAX = 96 };

struct oplog {
    const char *key; /* of the operation that comes next; must stay for as long as the diary */
    int client;
    _Atomic int open, renewing; /* the operation on its way, or −1 */
    _Atomic bool spoiled;       /* something happened that the checker has no word for … */
    _Atomic bool leaving;       /* … or will have, if it is killed now */
    bool unsure;                /* gave up while a request of its was on its way */
    _Atomic size_t count;
    struct linear_op ops[OPLOG_MAX];
};

void oplog_init(struct oplog *oplog, int client);
/* A live_watcher; its owner is the diary. */
void oplog_write(void *owner, const struct live_step *step);

#endif

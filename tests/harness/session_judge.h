/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a store that judges by sessions, such as etcd: it has a clock, but its
 * replies carry no time. They name the leases, the cooldown and the lock-delay that have ended. The
 * in-memory driver behind it keeps the records. For the simulation and for session_driver.h.
 */
#ifndef LEASEHOLD_TESTS_HARNESS_SESSION_JUDGE_H
#define LEASEHOLD_TESTS_HARNESS_SESSION_JUDGE_H

#include "store/store.h"

struct session_write {
    uint64_t order; /* stamp_order() */
    int64_t time_ms;
};

struct session_judge {
    int64_t late_ms;              /* the server notices an end this long after it */
    struct session_write *writes; /* all of them, in order: records carry no times */
    size_t count, size;
    uint64_t ended[GRANTS_MAX]; /* of the last reply */
    struct record record;
    char bytes[RECORD_MAX + 1];
};

/* A write took effect: keeps its time. */
void session_judge_note(struct session_judge *judge, const struct store_reply *reply);
/* Fills in the times that the record lacks, for oracles. */
void session_judge_restore(const struct session_judge *judge, struct record *record);
/* Names what has ended by the time of the reply, then removes all times. */
void session_judge_reply(struct session_judge *judge, struct store_reply *reply);
/*
 * Tests the token of the condition against the current record, as its read at `current` says, and
 * leaves a condition that the in-memory driver can test without a time.
 */
void session_judge_request(struct session_judge *judge, const struct store_reply *current,
                           struct store_request *request);

#endif

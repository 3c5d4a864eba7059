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

/* An unbroken series of heartbeats: none came later than a TTL after the one before. */
struct session_life {
    int64_t since_ms, last_ms;
};

struct session_judge {
    int64_t late_ms; /* the server notices an end this long after it */
    /* With heartbeats, by session; its bound grants live as long as it does. NULL: without. Then
     * replies carry the times of writes, too. */
    struct session_life *sessions;
    int64_t session_ttl_ms;
    struct session_write *writes; /* all of them, in order: records carry no times */
    size_t count, size;
    uint64_t ended[GRANTS_MAX]; /* of the last reply */
    struct record record;
    char bytes[RECORD_MAX + 1];
};

/* A heartbeat of the session arrived. */
void session_judge_beat(struct session_judge *judge, uint64_t session, int64_t now_ms);
/* When the grant ends, unless its session has another heartbeat before. */
int64_t session_judge_end(const struct session_judge *judge, const struct grant *grant);
/* A write took effect: keeps its time. */
void session_judge_note(struct session_judge *judge, const struct store_reply *reply);
/* Fills in the times that the record lacks, for oracles. */
void session_judge_restore(const struct session_judge *judge, struct record *record);
/* Names what has ended by the time of the reply, then removes the times that clients do not see. */
void session_judge_reply(struct session_judge *judge, struct store_reply *reply);
/*
 * Tests the token of the condition against the current record, as its read at `current` says, and
 * leaves a condition that the in-memory driver can test without a time.
 */
void session_judge_request(struct session_judge *judge, const struct store_reply *current,
                           struct store_request *request);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in real time: the shipped core on one side, the driver behind a client on the other, and
 * between them only the duties of a runtime. All parties of a case run in turns.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_PARTIES_H
#define LEASEHOLD_TESTS_CONFORMANCE_PARTIES_H

#include "suite.h"

struct party {
    struct party *next;
    unsigned client;
    struct lease lease;
    struct lease_options options;
    struct store_facts facts;
    struct observations observations;
    char holder[16], request[32];
    const struct store_reply *last_reply; /* the latest for its key, or NULL */
    int64_t wake_at_ms;
    bool started, gone;
    bool woken;
    unsigned held, lost; /* numbers of notifications */
    uint64_t token;      /* of its last grant */
    bool ended;
    enum outcome outcome;
};

/* Requests the key exclusively and without a wait, unless the options are changed. */
struct party *party_new(unsigned client, const char *key);
struct party *party_waiting(unsigned client, const char *key);
/* A single operation instead of a lease. */
struct party *party_operation(unsigned client, const char *key, enum verb verb, uint64_t token);
void party_start(struct party *party);
void party_release(struct party *party);
/* Stops, as after a crash. */
void party_vanish(struct party *party);
void parties_forget(void);

/* Runs all parties until this one is in the state; fails if that takes too long. */
void expect_state(struct party *party, enum lease_state state);
/* Starts the party if necessary; fails unless it ends with this outcome. */
void expect_outcome(struct party *party, enum outcome outcome);
void expect_held(struct party *party);
void parties_run(int64_t ms);
/* True if the machine paused for longer in this case than the leases allow. A failure is then not
 * the store's, and the case is tried with longer leases. */
bool parties_stalled(int64_t ms);

/* A request with the defaults of the parties. */
struct request request_by(unsigned client, const char *key, const char *who, enum verb verb);
/* Reads the record, calls decide() and, if the verdict is a write, writes the result. */
struct verdict act(unsigned client, struct request request);

#endif

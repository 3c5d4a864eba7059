/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in real time: the shipped core on one side, the driver behind a seat on the other, and
 * between them no more than a runtime has to do. All parties of a case run together, in turns.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_PARTIES_H
#define LEASEHOLD_TESTS_CONFORMANCE_PARTIES_H

#include "suite.h"

struct party {
    struct party *next;
    unsigned client;
    struct lease lease;
    struct lease_options options;
    struct observations observations;
    char holder[16], request[32];
    const struct store_reply *last_reply; /* last, of its key; NULL: nothing yet */
    int64_t wake_at_ms;
    bool started, gone;
    bool woken;
    unsigned held, lost; /* how often it was told so */
    uint64_t token;      /* of its last grant */
    bool ended;
    enum outcome outcome;
};

/* Asks for the key, exclusively and without waiting, until the options are changed. */
struct party *party_new(unsigned client, const char *key);
struct party *party_waiting(unsigned client, const char *key);
/* A single verb instead of a lease. */
struct party *party_operation(unsigned client, const char *key, enum verb verb, uint64_t token);
void party_start(struct party *party);
void party_release(struct party *party);
/* Does nothing any more, as after a crash. */
void party_vanish(struct party *party);
void parties_forget(void);

/* Lets all parties live on until this one is in the state; it must be, soon. */
void expect_state(struct party *party, enum lease_state state);
/* Started when it was not; it must come to this end. */
void expect_outcome(struct party *party, enum outcome outcome);
void expect_held(struct party *party);
void parties_run(int64_t ms);
/* Did the machine, in this case, stop for longer than the parties could bear? Then they are not to
 * blame, and longer leases have to be tried. */
bool parties_stalled(int64_t ms);

/* A request's terms, as the parties have them. */
struct request request_by(unsigned client, const char *key, const char *who, enum verb verb);
/* Reads, decides and, when that is the verdict, writes what decide() made of the record. */
struct verdict act(unsigned client, struct request request);

#endif

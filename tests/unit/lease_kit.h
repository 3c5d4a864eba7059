/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single lease, for the cases of lease_*_test.c: events by name, the shipped in-memory store
 * behind it, neighbours that change the key meanwhile, and every reply delivered, lost or delayed
 * by the case. Decisions are compared as the lines that the lease traces.
 *
 * The lease is of "a" on the key "k", unless the options say otherwise, for 9 s: deadline after 6
 * s, kill 1.5 s later.
 */
#ifndef LEASEHOLD_TESTS_LEASE_KIT_H
#define LEASEHOLD_TESTS_LEASE_KIT_H

#include "store/translate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

extern struct lease lease;
extern struct lease_options options; /* to be changed before begin() … */
extern struct store_facts facts;     /* … and so are these */
extern struct lease_output out;
extern struct record record; /* the lease's scratch */
extern int64_t now_ms;       /* the store reads the same clock, 500 ms behind */

enum { START_MS = 10000, CLOCK_APART_MS = 500 };

int open_lease(void **state);
int close_lease(void **state);
#define LEASE_TEST(name) cmocka_unit_test_setup_teardown(name, open_lease, close_lease)

/* Makes the lease a single operation. */
void use_verb(enum verb verb, uint64_t token);

void begin(void);
void begin_knowing(void);
/* Without, and with, the current record of the store. */
void happens(enum event_kind kind);
void happens_knowing(enum event_kind kind);
/* Advances to the time that the lease requested; it must be between these two. */
void wake_between(int64_t least_ms, int64_t most_ms);
void wake(void);

/* The request in flight reaches the store, and its reply the lease. */
void carry_out(void);
/* It reaches the store; the reply is kept, to be delivered later or never. */
void carry_out_unanswered(void);
void deliver_kept(void);
/* It does not reach the store. */
void reply(enum reply_status result);
/* It was never sent, and is not to be retried before that time. */
void answer_refused(int64_t retry_at_ms);

/* Another client changes the key: requests and waits, releases, leaves, breaks … */
struct verdict neighbour(enum verb verb, const char *who);
struct verdict neighbour_does(struct request request);
struct request neighbours_request(enum verb verb, const char *who);
uint64_t token_in_store(const char *who);

void assert_line(const char *expected);
void assert_ended(enum outcome outcome, const char *why);
void assert_wakes(const char *letters); /* sessions, each the first letter of a name */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key in a store of one record, for the cases of rules_*_test.c: requests by name, a manual
 * clock, and the record shown as a line. Every decision passes through act(), which writes the
 * result, resolves its marks, and checks the invariants.
 */
#ifndef LEASEHOLD_TESTS_RULES_KIT_H
#define LEASEHOLD_TESTS_RULES_KIT_H

#include "core/rules.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TTL_MS         ((int64_t)10000)
#define OFFER_GRACE_MS ((int64_t)1000)

extern struct record record; /* the current record */
extern struct view view;     /* observations of the next requester */
extern struct store_facts facts;

/* As a set-up: an absent record of the key "k", in a store with a clock. */
int fresh(void **state);
/* The store's clock, the observer's own and the age of the offers it observes advance together. */
void pass(int64_t ms);
/* The requester has observed every grant and span unchanged for that long, on its own clock. */
void seen_for(int64_t ms);

/* An exclusive request with a wait; name, request and (its first letter) session are `who`. */
struct request asking(const char *who);
struct request asking_shared(const char *who);
struct request asking_slot(const char *who, uint32_t limit);
/* Renew, release, leave, break … of the entry of `who`. */
struct request doing(enum verb verb, const char *who);

/* Decides, and writes the result. */
struct verdict act(struct request request);
struct verdict ask(const char *who);
struct verdict release(const char *who);
void assert_granted(struct verdict verdict);
void assert_kind(struct verdict verdict, enum verdict_kind kind, bool write);

/* "a+b | c! d": holders, waiters; ! is offered, ~ is broken; then "cooling", "delayed". */
const char *standing(void);
void assert_standing(const char *line);
struct grant *grant_of(const char *who);
struct waiter *waiter_of(const char *who);
uint64_t token_of_holder(const char *who);

#endif

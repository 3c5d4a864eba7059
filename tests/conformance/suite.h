/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a case of the suite is written with. A case asks seats and expects; the first expectation
 * that is not met ends it. No case knows which store it runs on, only its capability bits. Keys
 * belong to one case of one run, so that a store may be used again.
 */
#ifndef LEASEHOLD_TESTS_SUITE_H
#define LEASEHOLD_TESTS_SUITE_H

#include "suite_clock.h"
#include "client.h"

struct test_case {
    const char *name;
    void (*run)(void);
    unsigned needs;       /* capability bits */
    bool needs_processes; /* somebody is killed */
};

struct test_group {
    const struct test_case *test_cases;
    size_t count;
};

extern const struct test_group record_tests, model_tests, grant_tests, key_tests, batch_tests,
    watch_tests, durability_tests, session_tests, lease_tests, once_tests, rules_tests;

#define EXPECT(condition)                                  \
    do {                                                   \
        if (!(condition))                                  \
            suite_fail_at(#condition, __FILE__, __LINE__); \
    } while (0)

/* End the case. */
_Noreturn void suite_fail(const char *what);
_Noreturn void suite_fail_at(const char *what, const char *file, int line);
/* End it too, where the store cannot do what no bit speaks of: "store has no …". */
_Noreturn void suite_skip(const char *what);
/* Memory until the end of the case; a copy of the bytes, or zeros. */
void *suite_keep(const void *bytes, size_t length);
void suite_forget(void); /* all of it */

unsigned suite_bits(void);
struct store_facts suite_facts(void);
/* A lease that shall run out, as short as the store can tell; and how long to wait for that. */
int64_t suite_short_ms(void);
void suite_outlive(int64_t ttl_ms);

/* Within this time what has to happen happens. */
int64_t suite_soon_ms(void);

/* Keys: of this case, or only of this run. */
const char *key_named(const char *name);
const char *run_prefix(void);

/* Values are records, as some stores look inside: one grant for an hour, to this holder. */
struct value {
    const char *bytes;
    size_t length;
};
struct value value_of(const char *key, const char *holder);
/* Of exactly so many bytes: many wait. */
struct value value_of_size(const char *key, size_t size);
struct value value_encode(const struct record *record);
/* A grant of which the caller may change everything before it is encoded. */
struct record *value_record(const char *key, const char *holder);

static const struct condition if_absent = {.kind = IF_ABSENT};
struct condition if_revision(uint64_t revision);
struct condition if_grant(uint64_t token);

struct store_request reading(const char *key);
struct store_request swapping(const char *key, struct condition condition, struct value value);
struct store_request deleting(const char *key, struct condition condition);
struct store_request renewing(const char *key, uint64_t token, int64_t ttl_ms);

/* One request of one seat, and its only answer. */
const struct store_reply *ask(unsigned client, struct store_request request);
/* A write that has to succeed: its revision. */
uint64_t put(unsigned client, const char *key, struct condition condition, struct value value);
/* All keys under the prefix, the end of the list looked at and left out. */
struct client_replies list_keys(unsigned client, const char *prefix);

/* The record of an answer, its marks resolved, what the store said beside it filled in. */
struct record *record_in(const struct store_reply *reply, const char *key);
uint64_t token_in(const struct store_reply *reply, const char *key);
bool has_value(const struct store_reply *reply, struct value value);
void expect_conflict(const struct store_reply *reply, struct value standing, uint64_t revision);
/* Read by every seat. */
void expect_stands(const char *key, struct value value, uint64_t revision);
void expect_absent(const char *key);

#endif

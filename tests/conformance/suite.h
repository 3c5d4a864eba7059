/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that cases are written with. A case sends requests through clients and checks the
 * replies; the first failed expectation ends it. A case must not depend on the store's name, only
 * on its capability bits. Keys belong to one case of one run, so that a store can be used again.
 */
#ifndef LEASEHOLD_TESTS_SUITE_H
#define LEASEHOLD_TESTS_SUITE_H

#include "suite_clock.h"
#include "client.h"

struct test_case {
    const char *name;
    void (*run)(void);
    unsigned needs;       /* capability bits */
    bool needs_processes; /* a client is killed */
};

struct test_group {
    const struct test_case *test_cases;
    size_t count;
};

extern const struct test_group record_tests, model_tests, grant_tests, key_tests, batch_tests,
    watch_tests, durability_tests, session_tests, judge_tests, lease_tests, once_tests, rules_tests,
    epoch_tests;

#define EXPECT(condition)                                  \
    do {                                                   \
        if (!(condition))                                  \
            suite_fail_at(#condition, __FILE__, __LINE__); \
    } while (0)

/* Both fail and end the case. */
_Noreturn void suite_fail(const char *what);
_Noreturn void suite_fail_at(const char *what, const char *file, int line);
/* Skips the rest of the case if the store lacks a feature without a bit: "store has no …". */
_Noreturn void suite_skip(const char *what);
/* Memory until the end of the case: a copy of the bytes, or zeros. */
void *suite_keep(const void *bytes, size_t length);
void suite_forget(void); /* all of it */

unsigned suite_bits(void);
struct store_facts suite_facts(void);
/* The driver's epoch(), with its default timeout. */
struct epoch_state;
enum reply_status suite_epoch(uint16_t least, struct epoch_state *out);
/* A TTL as short as the store's clock allows, for a lease that expires; and the wait for that. */
int64_t suite_short_ms(void);
void suite_outlive(int64_t ttl_ms);

/* The limit for events that must happen. */
int64_t suite_soon_ms(void);

/* Keys of this case, and the prefix of this run. */
const char *key_named(const char *name);
const char *run_prefix(void);

/* Values are records, since some stores parse them: one grant for an hour, to this holder. */
struct value {
    const char *bytes;
    size_t length;
};
struct value value_of(const char *key, const char *holder);
/* Exactly `size` bytes, filled with waiters. */
struct value value_of_size(const char *key, size_t size);
struct value value_encode(const struct record *record);
/* A grant that the caller may change before it is encoded. */
struct record *value_record(const char *key, const char *holder);

static const struct condition if_absent = {.kind = IF_ABSENT};
/* In the highest epoch that a reply had; and for a write of any epoch. */
struct condition if_revision(uint64_t revision);
struct condition if_write(const struct stamp *written);
struct condition if_grant(uint64_t token);

struct store_request reading(const char *key);
struct store_request swapping(const char *key, struct condition condition, struct value value);
struct store_request deleting(const char *key, struct condition condition);
struct store_request renewing(const char *key, uint64_t token, int64_t ttl_ms);

/* One request of one client, and its only reply. */
const struct store_reply *ask(unsigned client, struct store_request request);
/* A write that must succeed; returns its revision. */
uint64_t put(unsigned client, const char *key, struct condition condition, struct value value);
/* All keys under the prefix; checks and drops the end of the list. */
struct client_replies list_keys(unsigned client, const char *prefix);

/* The record of a reply with its marks resolved, and with the store's facts about it. */
struct record *record_in(const struct store_reply *reply, const char *key);
uint64_t token_in(const struct store_reply *reply, const char *key);
bool has_value(const struct store_reply *reply, struct value value);
void expect_conflict(const struct store_reply *reply, struct value standing, uint64_t revision);
/* Both read the key through every client. */
void expect_stands(const char *key, struct value value, uint64_t revision);
void expect_absent(const char *key);

#endif

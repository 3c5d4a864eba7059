/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the library's tests: stores in a temporary folder, and a way to stop them. The tests
 * use the shared library through its public headers only.
 */
#ifndef LEASEHOLD_TESTS_LIB_KIT_H
#define LEASEHOLD_TESTS_LIB_KIT_H

#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* KIT_WITHIN_MS: the limit of every wait, also on a busy machine. */
enum { KIT_URL_SIZE = 96, KIT_WITHIN_MS = 30000 };

/* The store that the next tests use: "memory:", or a file in a new folder. */
int kit_on_memory(void **state);
int kit_on_file(void **state);
int kit_done(void **state);
const char *kit_url(void);

/* Entries of a test table, on each store. */
#define ON_MEMORY(test)                                         \
    {                                                           \
#test " on memory", test, kit_on_memory, kit_done, NULL \
    }
#define ON_FILE(test)                                       \
    {                                                       \
#test " on file", test, kit_on_file, kit_done, NULL \
    }

/* Fails the test with the report's text unless the store opens. */
struct lh_client *kit_open(const struct lh_open_options *options);
struct lh_lease *kit_acquire(struct lh_client *client, const char *key,
                             const struct lh_acquire_options *options);
/* Fails the test unless it was started; frees it when the test program ends, after its clients. */
void kit_started(struct lh_request *request);
void kit_release(struct lh_lease **lease, enum lh_outcome expected);
enum lh_state kit_state(struct lh_client *client, const char *key);

/* Holds the file store's own lock, so that it does not reply, until kit_resume(). */
int kit_stop_store(void);
void kit_resume(int stopped);

int64_t kit_now_ms(void);
void kit_sleep_ms(int64_t length_ms);

#define ASSERT_OUTCOME(call, expected, report)                                          \
    do {                                                                                \
        enum lh_outcome got_ = (call);                                                  \
        if (got_ != (expected))                                                         \
            print_message("%s: %s\n", lh_outcome_name(got_), (report)->text);           \
        assert_string_equal(lh_outcome_name(got_), lh_outcome_name(expected));          \
        assert_string_equal(lh_outcome_name((report)->outcome), lh_outcome_name(got_)); \
    } while (0)

#endif

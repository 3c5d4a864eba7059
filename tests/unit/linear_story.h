/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Macros for a lock history, one operation per line, for the checker's own tests: client,
 * operation, reply, and the window from call to return. They do not judge: they only call the
 * checker and fail the running test.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_STORY_H
#define LEASEHOLD_TESTS_LINEAR_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../harness/linear.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* All on one key; every lease is 100 ms long. */
#define OP(who, what, reply, from, to)                                             \
    .key = "db", .client = (who), .kind = LINEAR_##what, .result = LINEAR_##reply, \
    .call_ms = (from), .return_ms = (to), .ttl_ms = 100
#define GRANTED(who, number, from, to)                    \
    {                                                     \
        OP(who, ACQUIRE, OK, from, to), .token = (number) \
    }
#define READER(who, number, from, to)                                            \
    {                                                                            \
        OP(who, ACQUIRE, OK, from, to), .token = (number), .mode = LINEAR_SHARED \
    }
#define SLOT_OF_2(who, number, from, to)                                                        \
    {                                                                                           \
        OP(who, ACQUIRE, OK, from, to), .token = (number), .mode = LINEAR_SEMAPHORE, .limit = 2 \
    }
#define TRIED(who, reply, from, to)       \
    {                                     \
        OP(who, ACQUIRE, reply, from, to) \
    }
#define WAITED(who, reply, number, from, to)                                \
    {                                                                       \
        OP(who, ACQUIRE, reply, from, to), .token = (number), .waits = true \
    }
#define RENEW(who, number, reply, from, to)                \
    {                                                      \
        OP(who, RENEW, reply, from, to), .token = (number) \
    }
#define RELEASE(who, number, reply, from, to)                \
    {                                                        \
        OP(who, RELEASE, reply, from, to), .token = (number) \
    }
#define COOL_50(who, number, reply, from, to)                                   \
    {                                                                           \
        OP(who, RELEASE, reply, from, to), .token = (number), .cooldown_ms = 50 \
    }
#define LOOK(who, reply, from, to)       \
    {                                    \
        OP(who, STATUS, reply, from, to) \
    }
#define BREAK(who, from, to)             \
    {                                    \
        OP(who, BREAK_NOW, OK, from, to) \
    }
#define SEEN(who, number, from, to)                        \
    {                                                      \
        OP(who, STATUS, HELD, from, to), .token = (number) \
    }

static inline enum linear_verdict judge(const struct linear_op *ops, size_t count,
                                        const struct linear_options *options,
                                        struct linear_report *report)
{
    enum linear_verdict verdict = linear_check(ops, count, options, report);
    if (verdict == LINEAR_ACCEPTED) {
        assert_null(report->key);
    } else {
        assert_true(strlen(report->text) > 0);
    }
    return verdict;
}

static inline void accept_with(const struct linear_op *ops, size_t count,
                               const struct linear_options *options)
{
    struct linear_report report;
    if (judge(ops, count, options, &report) != LINEAR_ACCEPTED) {
        fail_msg("%s", report.text);
    }
}

static inline void refuse_with(const struct linear_op *ops, size_t count,
                               const struct linear_options *options, const char *words)
{
    struct linear_report report;
    assert_int_equal(judge(ops, count, options, &report), LINEAR_REFUSED);
    if (strstr(report.text, words) == NULL) {
        fail_msg("expected \"%s\" in: %s", words, report.text);
    }
}

#define ACCEPT(ops)        accept_with(ops, COUNT(ops), NULL)
#define REFUSE(ops, words) refuse_with(ops, COUNT(ops), NULL, words)

#endif

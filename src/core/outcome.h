/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes: results that every caller branches on, distinguished everywhere: here, in the library,
 * in exit statuses, JSON and HTTP. They are not errors; busy and cooling are normal results.
 */
#ifndef LEASEHOLD_CORE_OUTCOME_H
#define LEASEHOLD_CORE_OUTCOME_H

#include <stdbool.h>

/* name, word, exit status, worth retrying */
#define OUTCOME_LIST(X)                     \
    X(OK, "ok", 0, false)                   \
    X(BUSY, "busy", 75, true)               \
    X(COOLING, "cooling", 73, true)         \
    X(LOST, "lost", 76, false)              \
    X(STALE, "stale", 78, false)            \
    X(UNAVAILABLE, "unavailable", 69, true) \
    X(DENIED, "denied", 77, false)          \
    X(MISMATCH, "mismatch", 65, false)      \
    X(USAGE, "usage", 64, false)

enum outcome {
#define OUTCOME_NAME(name, word, code, again) OUTCOME_##name,
    OUTCOME_LIST(OUTCOME_NAME)
#undef OUTCOME_NAME
};

const char *outcome_name(enum outcome outcome);

#endif

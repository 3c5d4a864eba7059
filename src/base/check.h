/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions for programming errors, kept in release builds. They never validate input: malformed
 * bytes and failed calls return error codes. The condition must have no side effect.
 */
#ifndef LEASEHOLD_BASE_CHECK_H
#define LEASEHOLD_BASE_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *what);

#define ASSERT(condition)                                 \
    do {                                                  \
        if (!(condition))                                 \
            check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* A branch that no caller can reach; prints `why` if it is reached anyway. */
#define UNREACHABLE(why) check_failed(__FILE__, __LINE__, "unreachable: " why)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asserts for our own mistakes, kept in release builds. They never guard against the outside
 * world: bad bytes and failed calls get error codes. The condition must have no side effect.
 */
#ifndef LEASEHOLD_BASE_CHECK_H
#define LEASEHOLD_BASE_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *what);

#define ASSERT(condition)                                 \
    do {                                                  \
        if (!(condition))                                 \
            check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* A branch that no caller can reach; `why` is printed should it ever be. */
#define UNREACHABLE(why) check_failed(__FILE__, __LINE__, "unreachable: " why)

#endif

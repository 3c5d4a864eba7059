/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included by the compiler before the sources of the log (-include): every store to shared memory
 * becomes a step at which a process can be stopped (fake_process.h). Changes nothing else.
 */
#ifndef LEASEHOLD_TESTS_HARNESS_CRASH_POINTS_H
#define LEASEHOLD_TESTS_HARNESS_CRASH_POINTS_H

#include <stdatomic.h>

void crash_point(void);

#undef atomic_store
#undef atomic_fetch_add
#undef atomic_compare_exchange_weak
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_store(object, value) \
    (crash_point(), atomic_store_explicit(object, value, memory_order_seq_cst))
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_fetch_add(object, value) \
    (crash_point(), atomic_fetch_add_explicit(object, value, memory_order_seq_cst))
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_compare_exchange_weak(object, expected, value) \
    (crash_point(), atomic_compare_exchange_weak_explicit(    \
                        object, expected, value, memory_order_seq_cst, memory_order_seq_cst))

#endif

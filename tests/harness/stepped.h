/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Given to the compiler before the sources of the log (-include): every store to shared memory is a
 * step at which a process can be stopped (mortal.h). Changes nothing else.
 */
#ifndef LEASEHOLD_TESTS_STEPPED_H
#define LEASEHOLD_TESTS_STEPPED_H

#include <stdatomic.h>

void mortal_step(void);

#undef atomic_store
#undef atomic_fetch_add
#undef atomic_compare_exchange_weak
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_store(object, value) \
    (mortal_step(), atomic_store_explicit(object, value, memory_order_seq_cst))
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_fetch_add(object, value) \
    (mortal_step(), atomic_fetch_add_explicit(object, value, memory_order_seq_cst))
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define atomic_compare_exchange_weak(object, expected, value) \
    (mortal_step(), atomic_compare_exchange_weak_explicit(    \
                        object, expected, value, memory_order_seq_cst, memory_order_seq_cst))

#endif

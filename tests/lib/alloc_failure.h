/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation failures for a whole process: the allocator functions of this program replace those of
 * the C library and the sanitizer, also for shared libraries, in all threads.
 */
#ifndef LEASEHOLD_TESTS_LIB_ALLOC_FAILURE_H
#define LEASEHOLD_TESTS_LIB_ALLOC_FAILURE_H

#include <stdbool.h>

/* Whether allocations of the calling thread count; threads that it creates inherit this. Initially
 * false. */
void alloc_failure_here(bool counts);
/* Starts counting; refuses the n-th allocation, or all from the n-th on. 0: none. */
void alloc_failure_begin(unsigned long nth, bool from_then_on);
/* Ends refusals. Returns the number of allocations, and of refused ones. */
unsigned long alloc_failure_end(unsigned long *out_refused);

#endif

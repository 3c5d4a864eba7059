/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that can be refused, for a whole process: the allocator's calls of this program stand in
 * front of the C library's and the sanitizer's, for the shared library and the thread library
 * alike, and for all threads.
 */
#ifndef LEASEHOLD_TESTS_LIB_ALLOC_FAILURE_H
#define LEASEHOLD_TESTS_LIB_ALLOC_FAILURE_H

#include <stdbool.h>

/* Does the calling thread count? Threads that it makes do as it does. At first: no. */
void alloc_failure_here(bool counts);
/* From now on allocations count; the n-th is refused, or from the n-th on all. 0: none. */
void alloc_failure_begin(unsigned long nth, bool from_then_on);
/* Nothing is refused any more. How many were asked for, and how many of them refused. */
unsigned long alloc_failure_end(unsigned long *out_refused);

#endif

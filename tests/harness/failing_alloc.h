/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included by the compiler before the sources of the log (-include): memory comes from the test,
 * which can refuse it.
 */
#ifndef LEASEHOLD_TESTS_HARNESS_FAILING_ALLOC_H
#define LEASEHOLD_TESTS_HARNESS_FAILING_ALLOC_H

#include <stdlib.h>

void *failing_malloc(size_t size);
void *failing_calloc(size_t count, size_t size);
void *failing_realloc(void *before, size_t size);

/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define malloc failing_malloc
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define calloc failing_calloc
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define realloc failing_realloc

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Given to the compiler before the sources of the log (-include): memory comes from a test, which
 * can refuse it.
 */
#ifndef LEASEHOLD_TESTS_SCARCE_H
#define LEASEHOLD_TESTS_SCARCE_H

#include <stdlib.h>

void *scarce_malloc(size_t size);
void *scarce_calloc(size_t count, size_t size);
void *scarce_realloc(void *before, size_t size);

/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define malloc scarce_malloc
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define calloc scarce_calloc
/* NOLINTNEXTLINE(readability-identifier-naming): the name of what it stands for */
#define realloc scarce_realloc

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The only function in base/ that ends the process: an assertion failed. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "leasehold: assertion failed at %s:%d: %s\n", file, line, what);
    abort();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Between conformance.c, which runs the cases, and suite.c, of which they are made. */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_H
#define LEASEHOLD_TESTS_CONFORMANCE_H

#include "suite.h"

/* What all keys of this case begin with, whichever run it is. */
const char *case_prefix(void);
/* Remembered, to be shown should the case fail. */
void suite_note(unsigned client, const struct store_reply *reply);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by conformance.c, which runs the cases, and suite.c, which has their functions. */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_H
#define LEASEHOLD_TESTS_CONFORMANCE_H

#include "suite.h"

/* The prefix of all keys of this case, in any run. */
const char *case_prefix(void);
/* Notes a reply, to be printed if the case fails. */
void suite_note(unsigned client, const struct store_reply *reply);
/* The highest epoch of a noted reply. */
uint16_t suite_epoch_seen(void);

#endif

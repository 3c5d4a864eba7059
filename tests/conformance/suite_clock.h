/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite's parts of the host: its own clock, which also serves stores without one and runs
 * during suspend; and numbers that are unique to this run.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_SUITE_CLOCK_H
#define LEASEHOLD_TESTS_CONFORMANCE_SUITE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t suite_now_ms(void);
/* Starts the clock at "zero", at the "largest" time of a store less 30 days, or at "today", the
 * wall clock's, instead of at boot. False if the name is unknown. Call before the first use. */
bool suite_set_clock(const char *position);
void suite_sleep(int64_t ms);
uint64_t suite_random(void);

#endif

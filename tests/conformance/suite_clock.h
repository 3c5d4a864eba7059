/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the suite takes from the host: the clock, its own and that of stores that have none, which
 * also runs in suspend; and numbers that no other run has.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_SUITE_CLOCK_H
#define LEASEHOLD_TESTS_CONFORMANCE_SUITE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t suite_now_ms(void);
/* Lets the clock run from "zero", from the "largest" time of a store less 30 days, or from "today",
 * the wall clock's, instead of from boot; false: no position is called so. Before the first use. */
bool suite_set_clock(const char *position);
void suite_sleep(int64_t ms);
uint64_t suite_random(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the whole suite and of the stores that have none: the host's, also in suspend. */
#ifndef LEASEHOLD_TESTS_CLOCK_H
#define LEASEHOLD_TESTS_CLOCK_H

#include <stdint.h>

int64_t suite_now_ms(void);
void suite_sleep(int64_t ms);

#endif

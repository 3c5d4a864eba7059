/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the end of an input that another process keeps open, and discards its data. A thread
 * reads, so that the descriptor, which may be shared with other processes, need not be made
 * non-blocking.
 */
#ifndef LEASEHOLD_RUN_INPUT_END_H
#define LEASEHOLD_RUN_INPUT_END_H

#include <stdbool.h>

/* Starts to read. A descriptor above 0 that is readable once the input has ended, or −errno. */
int input_end_watch(int input);
/* True for /dev/null, where the input ends at once. */
bool input_is_null(int input);

#endif

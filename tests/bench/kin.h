/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a benchmark, and the memory that they share. What goes wrong ends the program. */
#ifndef LEASEHOLD_TESTS_KIN_H
#define LEASEHOLD_TESTS_KIN_H

#include <stddef.h>
#include <sys/types.h>

/* Zeros that children see and change, too. */
void *kin_share(size_t size);
void kin_unshare(void *shared, size_t size);
/* A child that ends with us: 0 in it. */
pid_t kin_fork(void);
void kin_await(pid_t child);
void kin_sleep_us(long us);

#endif

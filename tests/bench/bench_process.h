/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a benchmark, and the memory that they share. Errors end the program. */
#ifndef LEASEHOLD_TESTS_BENCH_BENCH_PROCESS_H
#define LEASEHOLD_TESTS_BENCH_BENCH_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* Zeroed memory, shared with children. */
void *bench_share(size_t size);
void bench_unshare(void *shared, size_t size);
/* Forks a child that ends with this process; returns 0 in it. */
pid_t bench_fork(void);
void bench_wait(pid_t child);
void bench_sleep_us(long us);

#endif

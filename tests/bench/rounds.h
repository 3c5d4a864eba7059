/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a benchmark counts and speaks: two things are measured by turns, in rounds; each gets its
 * median with the smallest and the largest round, and each ratio is taken within a round, so that
 * whatever else the machine does weighs on both sides. A missed aim is said, never an error.
 */
#ifndef LEASEHOLD_TESTS_ROUNDS_H
#define LEASEHOLD_TESTS_ROUNDS_H

#include <stddef.h>

enum { ROUNDS = 9 };

enum aim { AT_MOST, AT_LEAST };

double rounds_seconds(void);
double rounds_busy_seconds(void); /* of the processor, by our thread */
/* The value below which this share of all is, 0 to 1; sorts them. */
double rounds_share(double *values, size_t count, double share);
/* A line with the median, the smallest and the largest of ROUNDS values. */
void rounds_say(const char *what, const double *values, const char *unit);
/* A line with `over` divided by `under`, round by round, against the aim. */
void rounds_aim(const double *over, const double *under, enum aim aim, double wanted);
/* The same for what nobody has promised. */
void rounds_ratio(const double *over, const double *under);
/* Zeros, for the caller to free. */
void *rounds_memory(size_t size);
/* For what must not go wrong in a benchmark: says it and ends the program. */
_Noreturn void rounds_fail(const char *what, const char *why);

#endif

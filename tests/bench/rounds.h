/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics and output of a benchmark: two things are measured alternately, in rounds; each gets
 * its median with the smallest and the largest round, and each ratio is taken within a round, so
 * that other load on the machine affects both sides. A missed aim is reported, never an error.
 */
#ifndef LEASEHOLD_TESTS_ROUNDS_H
#define LEASEHOLD_TESTS_ROUNDS_H

#include <stddef.h>

enum { ROUNDS = 9 };

enum aim { AT_MOST, AT_LEAST };

double rounds_seconds(void);
double rounds_busy_seconds(void); /* processor time of our thread */
/* The quantile for this share, 0 to 1; sorts the values. */
double rounds_share(double *values, size_t count, double share);
/* Prints the median, the smallest and the largest of ROUNDS values. */
void rounds_say(const char *what, const double *values, const char *unit);
/* Prints `over` divided by `under`, round by round, against the aim. */
void rounds_aim(const double *over, const double *under, enum aim aim, double wanted);
/* The same without an aim. */
void rounds_ratio(const double *over, const double *under);
/* Zeroed memory, for the caller to free. */
void *rounds_memory(size_t size);
/* Prints the text and ends the program. */
_Noreturn void rounds_fail(const char *what, const char *why);

#endif

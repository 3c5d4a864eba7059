/* SPDX-License-Identifier: Apache-2.0 */
/* See rounds.h. */
#include "rounds.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double rounds_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double rounds_busy_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

double rounds_share(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)((double)(count - 1) * share)];
}

/* Rounds to two to four significant digits. */
static int places_of(double value)
{
    return value < 10 ? 2 : value < 100 ? 1 : 0;
}

static double middle(const double *values, double *out_least, double *out_most)
{
    double sorted[ROUNDS];
    memcpy(sorted, values, sizeof sorted);
    double median = rounds_share(sorted, ROUNDS, 0.5);
    *out_least = sorted[0];
    *out_most = sorted[ROUNDS - 1];
    return median;
}

void rounds_say(const char *what, const double *values, const char *unit)
{
    double least, most, median = middle(values, &least, &most);
    int places = places_of(median);
    (void)printf("  %-46s %9.*f %s (%.*f-%.*f)\n", what, places, median, unit, places, least,
                 places, most);
    (void)fflush(stdout);
}

/* Prints the ratio's part of a line; returns its median. */
static double say_ratio(const double *over, const double *under)
{
    double ratios[ROUNDS], least, most;
    for (size_t i = 0; i < ROUNDS; i++)
        ratios[i] = over[i] / under[i];
    double median = middle(ratios, &least, &most);
    int places = places_of(median);
    (void)printf("measured %.*fx (%.*f-%.*f)", places, median, places, least, places, most);
    return median;
}

void rounds_aim(const double *over, const double *under, enum aim aim, double wanted)
{
    (void)printf("  aim %gx or %s, ", wanted, aim == AT_MOST ? "less" : "more");
    double median = say_ratio(over, under);
    bool reached = aim == AT_MOST ? median <= wanted : median >= wanted;
    (void)printf(": %s\n", reached ? "reached" : "missed");
    (void)fflush(stdout);
}

void rounds_ratio(const double *over, const double *under)
{
    (void)printf("  no aim, ");
    (void)say_ratio(over, under);
    (void)printf("\n");
    (void)fflush(stdout);
}

void *rounds_memory(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        rounds_fail("benchmark", "out of memory");
    return memory;
}

_Noreturn void rounds_fail(const char *what, const char *why)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

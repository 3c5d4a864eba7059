/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations as people write them: "500ms", "1.5s", "30s", "5m", "24h", "4m19s"; a bare number is
 * seconds, as in flock -w. Pure. Callers check their own upper limits.
 */
#ifndef LEASEHOLD_WIRE_DURATION_H
#define LEASEHOLD_WIRE_DURATION_H

#include <stddef.h>
#include <stdint.h>

enum { DURATION_SHOWN = 24 };

enum duration_result {
    DURATION_OK,
    DURATION_BROKEN,   /* not a duration */
    DURATION_NEGATIVE, /* a duration below 0 */
    DURATION_TOO_LONG  /* above DURATION_MAX_MS */
};

#define DURATION_MAX_MS ((int64_t)1000 * 366 * 24 * 3600 * 1000) /* a thousand years */

/* Rounds up to whole milliseconds: a positive duration stays positive. */
enum duration_result duration_read(const char *string, size_t length, int64_t *out_ms);

/* "12s", "4m19s", "3h20m", in whole seconds, rounded up. Returns `out`. */
const char *duration_show(int64_t length_ms, char out[DURATION_SHOWN]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a client and their text in the Prometheus exposition format. One table has the
 * families, label values and buckets; writing, reading and adding follow it. No label ever contains
 * a key, a holder or an error text.
 *
 * metrics_read() accepts what metrics_write() writes, possibly without families, label values and
 * buckets that a later release added, and nothing else: a file of another program is refused.
 */
#ifndef LEASEHOLD_WIRE_METRICS_H
#define LEASEHOLD_WIRE_METRICS_H

#include "base/text.h"

#define METRIC_MOST ((uint64_t)1 << 53) /* Prometheus reads numbers as doubles */

enum {
    METRICS_PREFIX_MAX = 64,
    METRICS_TEXT_MAX = 65536, /* enough for every prefix and every value */
    METRIC_BUCKETS = 16,      /* the last one has no upper bound … */
    METRIC_SUM = METRIC_BUCKETS,
    METRIC_HISTOGRAM = METRIC_BUCKETS + 1 /* … and the sum in microseconds follows */
};

/* Label values, in the order of the text. */
enum metric_failure {
    FAILURE_CONTENTION,
    FAILURE_COOLING,
    FAILURE_TIMEOUT,
    FAILURE_API_ERROR,
    FAILURE_DUPLICATE,
    FAILURE_MISMATCH,
    FAILURE_INTERNAL_ERROR,
    METRIC_FAILURES
};
enum metric_verb {
    METRIC_READ,
    METRIC_SWAP,
    METRIC_DELETE,
    METRIC_LIST,
    METRIC_HISTORY,
    METRIC_VERBS
};
enum metric_error { METRIC_UNAVAILABLE, METRIC_DENIED, METRIC_ERRORS };
enum metric_claim { CLAIM_NEW, CLAIM_RUNNING, CLAIM_DONE, CLAIM_ERROR, METRIC_CLAIMS };

/* Where each value is. A family with a label has one slot, or one histogram, for each label value;
 * a histogram has the counts of its buckets, not cumulated, and its sum. */
enum metric_slot {
    SLOT_ATTEMPTS,
    SLOT_SUCCESSES,
    SLOT_FAILURES,
    SLOT_ACQUISITION = SLOT_FAILURES + METRIC_FAILURES,
    SLOT_HOLD = SLOT_ACQUISITION + METRIC_HISTOGRAM,
    SLOT_WAIT = SLOT_HOLD + METRIC_HISTOGRAM,
    SLOT_RELEASES = SLOT_WAIT + METRIC_HISTOGRAM,
    SLOT_LOST,
    SLOT_RETRIES,
    SLOT_TAKEOVERS,
    SLOT_REQUEST,
    SLOT_STORE_ERRORS = SLOT_REQUEST + METRIC_VERBS * METRIC_HISTOGRAM,
    SLOT_ONCE_CLAIMS = SLOT_STORE_ERRORS + METRIC_ERRORS,
    SLOT_HELD = SLOT_ONCE_CLAIMS + METRIC_CLAIMS, /* gauges from here on */
    SLOT_WAITERS,
    SLOT_BREAKER_OPEN,
    METRIC_SLOTS
};

struct metrics {
    uint64_t values[METRIC_SLOTS];
};

/* The bucket of a duration in the histogram that begins at `slot`. */
size_t metrics_bucket(enum metric_slot slot, int64_t us);
/* Counts `times` occurrences of a duration; a negative one is 0. */
void metrics_observe(struct metrics *metrics, enum metric_slot histogram, int64_t us,
                     uint64_t times);
/* Adds counters and histograms, up to METRIC_MOST; gauges of `to` stay. */
void metrics_add(struct metrics *to, const struct metrics *from);
/* True if all counters and histograms are 0. */
bool metrics_are_zero(const struct metrics *metrics);

/* True for 1 to 64 letters, digits and underscores that do not begin with a digit. */
bool metrics_is_prefix(const char *prefix);
/* `out` has METRICS_TEXT_MAX bytes. Values above METRIC_MOST are written as METRIC_MOST. */
void metrics_write(const struct metrics *metrics, const char *prefix, bool gauges,
                   struct text *out);
/* False, with the reason and the line in `why`, which may be NULL, if the text has another form.
 * Empty text is refused too. */
bool metrics_read(const char *bytes, size_t length, const char *prefix, struct metrics *out,
                  struct text *why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The families of metrics.h, for the files that write and read them. */
#ifndef LEASEHOLD_WIRE_METRICS_TABLE_H
#define LEASEHOLD_WIRE_METRICS_TABLE_H

#include "wire/metrics.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_TIMES };

struct metric_bound {
    const char *le; /* in seconds */
    int64_t us;
};

struct metric_family {
    const char *name; /* without the prefix */
    const char *help;
    enum metric_type type;
    enum metric_slot slot;
    const char *label;                 /* NULL: none … */
    const char *const *label_values;   /* … otherwise its values, */
    size_t count;                      /* of which there are so many; without a label 1 */
    const struct metric_bound *bounds; /* of METRIC_TIMES: METRIC_BUCKETS - 1 */
};

enum { METRIC_FAMILIES = 16, METRIC_NAME_MAX = 256 /* a whole series: prefix, name, labels */ };
extern const struct metric_family metric_families[METRIC_FAMILIES];

/* Adds PREFIX_NAME and the suffix, with labels; `le` may be NULL. */
void metrics_add_series(struct text *out, const char *prefix, const struct metric_family *family,
                        size_t value, const char *suffix, const char *le);
/* "counter", "gauge" or "histogram". */
const char *metrics_type_name(enum metric_type type);

#endif

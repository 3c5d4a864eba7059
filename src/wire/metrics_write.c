/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h: the text in the Prometheus exposition format. */
#include "base/check.h"
#include "wire/metrics_table.h"

#define US_PER_SECOND ((uint64_t)1000000)

static uint64_t capped(uint64_t value)
{
    return value < METRIC_MOST ? value : METRIC_MOST;
}

static void write_number(struct text *out, uint64_t value)
{
    text_add(out, " ");
    text_add_u64(out, capped(value));
    text_add(out, "\n");
}

/* Six digits after the point, so that the text can be read back exactly. */
static void write_seconds(struct text *out, uint64_t us)
{
    char digits[] = "000000";
    uint64_t value = capped(us), rest = value % US_PER_SECOND;
    for (size_t i = sizeof digits - 1; i > 0; i--, rest /= 10)
        digits[i - 1] = (char)('0' + rest % 10);
    text_add(out, " ");
    text_add_u64(out, value / US_PER_SECOND);
    text_add(out, ".");
    text_add(out, digits);
    text_add(out, "\n");
}

static void write_histogram(struct text *out, const char *prefix,
                            const struct metric_family *family, size_t value,
                            const uint64_t *counts)
{
    uint64_t so_far = 0;
    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        so_far = capped(so_far + capped(counts[i]));
        metrics_add_series(out, prefix, family, value, "_bucket",
                           i < METRIC_BUCKETS - 1 ? family->bounds[i].le : "+Inf");
        write_number(out, so_far);
    }
    metrics_add_series(out, prefix, family, value, "_sum", NULL);
    write_seconds(out, counts[METRIC_SUM]);
    metrics_add_series(out, prefix, family, value, "_count", NULL);
    write_number(out, so_far);
}

static void write_comments(struct text *out, const char *prefix, const struct metric_family *family)
{
    text_add(out, "# HELP ");
    text_add(out, prefix);
    text_add(out, "_");
    text_add(out, family->name);
    text_add(out, " ");
    text_add(out, family->help);
    text_add(out, "\n# TYPE ");
    text_add(out, prefix);
    text_add(out, "_");
    text_add(out, family->name);
    text_add(out, " ");
    text_add(out, metrics_type_name(family->type));
    text_add(out, "\n");
}

void metrics_write(const struct metrics *metrics, const char *prefix, bool gauges, struct text *out)
{
    for (size_t i = 0; i < METRIC_FAMILIES; i++) {
        const struct metric_family *family = &metric_families[i];
        const uint64_t *values = &metrics->values[family->slot];
        if (family->type == METRIC_GAUGE && !gauges)
            continue;
        write_comments(out, prefix, family);
        for (size_t j = 0; j < family->count; j++) {
            if (family->type == METRIC_TIMES) {
                write_histogram(out, prefix, family, j, values + j * METRIC_HISTOGRAM);
            } else {
                metrics_add_series(out, prefix, family, j, "", NULL);
                write_number(out, values[j]);
            }
        }
    }
    text_add(out, "# EOF\n");
    ASSERT(!out->cut);
}

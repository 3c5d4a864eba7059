/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /metrics: the counters of the library under their names (docs/metrics.md), with what
 * only the daemon knows about grants that it does not hold itself, then families of the daemon and
 * of the process. No label contains a key, a holder or an error text. Waits for nothing.
 */
#include "face/daemon/daemon_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "process/usage.h"

#include <stdlib.h>

#define US_PER_SECOND ((uint64_t)1000000)
#define US_PER_MS     ((uint64_t)1000)

enum {
    FILES_COUNTED_MAX = 1000, /* connections, up to which descriptors are counted one by one */
    LIBRARY_END = 6           /* the length of "# EOF\n" */
};

enum metric_unit { UNIT_NUMBER, UNIT_SECONDS };

/* One series, or one of a family: then it has a label, and only the first has the help. */
struct daemon_series {
    const char *name;
    const char *type; /* NULL: as the series before */
    const char *help;
    const char *labels; /* "" or in braces */
    enum metric_unit unit;
    uint64_t value; /* UNIT_SECONDS: microseconds */
};

static void metrics_write_value(struct text *out, enum metric_unit unit, uint64_t value)
{
    text_add_u64(out, unit == UNIT_SECONDS ? value / US_PER_SECOND : value);
    if (unit == UNIT_SECONDS) {
        char digits[] = ".000000";
        for (uint64_t rest = value % US_PER_SECOND, i = 6; i > 0; i--, rest /= 10)
            digits[i] = (char)('0' + rest % 10);
        text_add(out, digits);
    }
    text_add(out, "\n");
}

/* `prefix` ends with an underscore, or is empty. */
static void metrics_write_series(struct text *out, const char *prefix,
                                 const struct daemon_series *series, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct daemon_series *one = &series[i];
        if (one->type != NULL)
            TEXT_JOIN(out, "# HELP ", prefix, one->name, " ", one->help, "\n# TYPE ", prefix,
                      one->name, " ", one->type, "\n");
        TEXT_JOIN(out, prefix, one->name, one->labels, " ");
        metrics_write_value(out, one->unit, one->value);
    }
}

/* ---- the library ---- */

/* The library leaves each grant at once, after a hold of nothing. */
static void metrics_set_holds(const struct daemon *daemon, struct metrics *metrics)
{
    metrics->values[SLOT_HELD] = holds_count(daemon);
    metrics->values[SLOT_LOST] += daemon->holds.lost;
    for (size_t i = 0; i < METRIC_HISTOGRAM; i++)
        metrics->values[SLOT_HOLD + i] = daemon->holds.times[i];
}

/* False when out of memory. */
static bool metrics_write_library(const struct daemon *daemon, const char *prefix, struct text *out)
{
    struct metrics metrics;
    size_t length = 0;
    bool read = lh_metrics(daemon->client, prefix, out->bytes, out->size, &length, NULL) == LH_OK &&
                metrics_read(out->bytes, length, prefix, &metrics, NULL);
    text_clear(out);
    if (!read)
        return false;
    metrics_set_holds(daemon, &metrics);
    metrics_write(&metrics, prefix, /* gauges= */ true, out);
    out->length -= LIBRARY_END; /* it is written again at the end of all */
    return true;
}

/* ---- the daemon ---- */

static uint64_t metrics_oldest_wait_us(const struct daemon *daemon)
{
    const struct acquisition *oldest =
        LIST_ENTRY(daemon->waiting.first, struct acquisition, in_waiting);
    int64_t ms = oldest != NULL ? host_boot_ms() - oldest->began_ms : 0;
    return ms > 0 ? (uint64_t)ms * US_PER_MS : 0;
}

static void metrics_write_build(struct text *out, const char *prefix)
{
    char labels[128];
    struct text text;
    text_init(&text, labels, sizeof labels);
    TEXT_JOIN(&text, "{version=\"", lh_version(), "\",api=\"");
    text_add_u64(&text, API_VERSION);
    text_add(&text, "\"}");
    metrics_write_series(out, prefix,
                         &(struct daemon_series){"build_info", "gauge",
                                                 "1, with the version of the daemon.", labels,
                                                 UNIT_NUMBER, 1},
                         1);
}

static void metrics_write_refusals(const struct daemon *daemon, const char *prefix,
                                   struct text *out)
{
    struct daemon_series one = {"refusals_total",
                                "counter",
                                "Connections and commands that the daemon refused or cut.",
                                NULL,
                                UNIT_NUMBER,
                                0};
    for (enum daemon_refusal_class class = 0; class < REFUSAL_CLASSES; class ++) {
        char labels[64];
        struct text text;
        text_init(&text, labels, sizeof labels);
        TEXT_JOIN(&text, "{class=\"", refusal_class_name(class), "\"}");
        one.labels = labels;
        one.value = daemon->refusals[class].count;
        metrics_write_series(out, prefix, &one, 1);
        one.type = NULL;
    }
}

static void metrics_write_daemon(const struct daemon *daemon, const char *prefix, struct text *out)
{
    const struct daemon_counters *counted = &daemon->counters;
    const struct daemon_series series[] = {
        {"connections", "gauge", "Open connections of clients.", "{protocol=\"resp\"}", UNIT_NUMBER,
         daemon->connection_count - daemon->web_count},
        {"connections", NULL, NULL, "{protocol=\"http\"}", UNIT_NUMBER, daemon->web_count},
        {"connections_max", "gauge", "Connections beyond which further ones are refused.", "",
         UNIT_NUMBER, daemon->options->connections_max},
        {"connections_total", "counter", "Connections that were accepted.", "{protocol=\"resp\"}",
         UNIT_NUMBER, counted->connections - counted->web_connections},
        {"connections_total", NULL, NULL, "{protocol=\"http\"}", UNIT_NUMBER,
         counted->web_connections},
        {"connections_refused_total", "counter", "Connections beyond the maximum.", "", UNIT_NUMBER,
         daemon->refusals[REFUSED_CONNECTION].count},
        {"connections_cut_total", "counter",
         "Connections that broke, or that the daemon ended because of slow or bad clients.", "",
         UNIT_NUMBER, counted->cut},
        {"commands_total", "counter", "Commands that were started.", "", UNIT_NUMBER,
         counted->commands},
        {"watches", "gauge", "Watches of clients.", "", UNIT_NUMBER, daemon->watches},
        {"buffered_bytes", "gauge", "Unread and unsent bytes of all connections.", "", UNIT_NUMBER,
         daemon->buffered},
        {"request_ids", "gauge", "Request ids that are remembered.", "", UNIT_NUMBER,
         daemon->request_ids.count},
        {"bindings", "gauge", "Grants that the daemon renews for their connections.", "",
         UNIT_NUMBER, daemon->bindings.count},
        {"queue_oldest_wait_seconds", "gauge", "Time since the oldest waiting acquisition began.",
         "", UNIT_SECONDS, metrics_oldest_wait_us(daemon)},
        {"store_up", "gauge", "0 if the last probe of the store failed.", "", UNIT_NUMBER,
         daemon->probe.down ? 0 : 1},
        {"draining", "gauge", "1 while the daemon is stopping.", "", UNIT_NUMBER,
         daemon->draining ? 1 : 0},
    };
    metrics_write_build(out, prefix);
    metrics_write_refusals(daemon, prefix, out);
    metrics_write_series(out, prefix, series, sizeof series / sizeof series[0]);
}

/* ---- the process ---- */

/* Counting takes time with each descriptor: with many connections the others are remembered. */
static uint64_t metrics_count_files(struct daemon *daemon)
{
    if (daemon->connection_count <= FILES_COUNTED_MAX) {
        size_t files = usage_count_files();
        daemon->other_files =
            files > daemon->connection_count ? files - daemon->connection_count : 0;
    }
    return daemon->connection_count + daemon->other_files;
}

static void metrics_write_process(struct daemon *daemon, struct text *out)
{
    struct usage usage;
    usage_read(&usage);
    const struct daemon_series series[] = {
        {"process_cpu_seconds_total", "counter", "Time of the processors, user and system.", "",
         UNIT_SECONDS, usage.cpu_us},
        {"process_resident_memory_bytes", "gauge", "Memory that is resident.", "", UNIT_NUMBER,
         usage.resident_bytes},
        {"process_virtual_memory_bytes", "gauge", "Memory that is mapped.", "", UNIT_NUMBER,
         usage.virtual_bytes},
        {"process_open_fds", "gauge", "Open descriptors.", "", UNIT_NUMBER,
         metrics_count_files(daemon)},
        {"process_max_fds", "gauge", "The limit of open descriptors.", "", UNIT_NUMBER,
         usage.files_max},
        {"process_start_time_seconds", "gauge", "Start of the process, since 1970.", "",
         UNIT_SECONDS, usage.started_us},
    };
    metrics_write_series(out, "", series, sizeof series / sizeof series[0]);
}

bool daemon_metrics_write(struct daemon *daemon, struct text *out)
{
    char own[METRICS_PREFIX_MAX + 2];
    struct text text;
    const char *prefix = daemon->options->metrics_prefix;
    if (prefix == NULL)
        prefix = DAEMON_METRICS_PREFIX;
    ASSERT(out->size >= DAEMON_METRICS_SIZE);
    text_clear(out);
    probe_refresh(daemon);
    if (!metrics_write_library(daemon, prefix, out))
        return false;
    text_init(&text, own, sizeof own);
    TEXT_JOIN(&text, prefix, "_");
    metrics_write_daemon(daemon, own, out);
    metrics_write_process(daemon, out);
    text_add(out, "# EOF\n");
    ASSERT(!out->cut);
    return true;
}

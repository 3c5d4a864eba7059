/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h: the table, and arithmetic on the values. docs/metrics.md has the same names. */
#include "wire/metrics.h"

#include "base/check.h"
#include "wire/metrics_table.h"

#define SECOND ((int64_t)1000000)
#define HOUR   (3600 * SECOND)

/* Waiting and holding: from a lock inside the process to a job of a day. */
static const struct metric_bound lock_bounds[METRIC_BUCKETS - 1] = {
    {"0.001", 1000},     {"0.005", 5000},     {"0.02", 20000},       {"0.025", 25000},
    {"0.1", 100000},     {"0.5", 500000},     {"1", SECOND},         {"5", 5 * SECOND},
    {"15", 15 * SECOND}, {"60", 60 * SECOND}, {"300", 300 * SECOND}, {"900", 900 * SECOND},
    {"3600", HOUR},      {"14400", 4 * HOUR}, {"86400", 24 * HOUR},
};
/* One reply of a store: from memory to the default store timeout. */
static const struct metric_bound request_bounds[METRIC_BUCKETS - 1] = {
    {"0.0001", 100},  {"0.00025", 250}, {"0.0005", 500},  {"0.001", 1000},  {"0.0025", 2500},
    {"0.005", 5000},  {"0.01", 10000},  {"0.025", 25000}, {"0.05", 50000},  {"0.1", 100000},
    {"0.25", 250000}, {"0.5", 500000},  {"1", SECOND},    {"2.5", 2500000}, {"10", 10 * SECOND},
};

static const char *const failure_names[METRIC_FAILURES] = {
    [FAILURE_CONTENTION] = "contention",
    [FAILURE_COOLING] = "cooling",
    [FAILURE_TIMEOUT] = "timeout",
    [FAILURE_API_ERROR] = "api_error",
    [FAILURE_DUPLICATE] = "duplicate",
    [FAILURE_MISMATCH] = "mismatch",
    [FAILURE_INTERNAL_ERROR] = "internal_error",
};
static const char *const verb_names[METRIC_VERBS] = {
    [METRIC_READ] = "read", [METRIC_SWAP] = "swap",       [METRIC_DELETE] = "delete",
    [METRIC_LIST] = "list", [METRIC_HISTORY] = "history",
};
static const char *const error_names[METRIC_ERRORS] = {
    [METRIC_UNAVAILABLE] = "unavailable",
    [METRIC_DENIED] = "denied",
};
static const char *const claim_names[METRIC_CLAIMS] = {
    [CLAIM_NEW] = "new",
    [CLAIM_RUNNING] = "running",
    [CLAIM_DONE] = "done",
    [CLAIM_ERROR] = "error",
};

#define COUNTER(at, text, what)                                                          \
    {                                                                                    \
        .name = (text), .help = (what), .type = METRIC_COUNTER, .slot = (at), .count = 1 \
    }
#define GAUGE(at, text, what)                                                          \
    {                                                                                  \
        .name = (text), .help = (what), .type = METRIC_GAUGE, .slot = (at), .count = 1 \
    }
#define TIMES(at, text, what)                                                           \
    {                                                                                   \
        .name = (text), .help = (what), .type = METRIC_TIMES, .slot = (at), .count = 1, \
        .bounds = lock_bounds                                                           \
    }
#define LABELED(at, text, what, by, names, number)                                           \
    {                                                                                        \
        .name = (text), .help = (what), .type = METRIC_COUNTER, .slot = (at), .label = (by), \
        .label_values = (names), .count = (number)                                           \
    }

const struct metric_family metric_families[METRIC_FAMILIES] = {
    COUNTER(SLOT_ATTEMPTS, "lock_acquisition_attempts_total",
            "Acquisitions of locks and claims of ids that were started."),
    COUNTER(SLOT_SUCCESSES, "lock_acquisition_successes_total", "Acquisitions that were granted."),
    LABELED(SLOT_FAILURES, "lock_acquisition_failures_total", "Acquisitions that were refused.",
            "reason", failure_names, METRIC_FAILURES),
    TIMES(SLOT_ACQUISITION, "lock_acquisition_duration_seconds",
          "Time from the start of an acquisition until it was granted or refused."),
    TIMES(SLOT_HOLD, "lock_hold_duration_seconds",
          "Time from the grant until the lock was released, lost or left to its TTL."),
    TIMES(SLOT_WAIT, "lock_wait_duration_seconds", "Time in the queue of a key."),
    COUNTER(SLOT_RELEASES, "lock_releases_total", "Locks that were released."),
    COUNTER(SLOT_LOST, "lock_lost_total", "Locks that were lost while they were held."),
    COUNTER(SLOT_RETRIES, "lock_retries_total",
            "Store requests that failed or met a conflict and were repeated."),
    COUNTER(SLOT_TAKEOVERS, "lock_takeovers_total",
            "Grants that replaced a dead or expired holder."),
    {.name = "store_request_duration_seconds",
     .help = "Time until the store replied to a request.",
     .type = METRIC_TIMES,
     .slot = SLOT_REQUEST,
     .label = "verb",
     .label_values = verb_names,
     .count = METRIC_VERBS,
     .bounds = request_bounds},
    LABELED(SLOT_STORE_ERRORS, "store_errors_total", "Store requests that failed.", "kind",
            error_names, METRIC_ERRORS),
    LABELED(SLOT_ONCE_CLAIMS, "once_claims_total", "Claims and marks of ids.", "outcome",
            claim_names, METRIC_CLAIMS),
    GAUGE(SLOT_HELD, "locks_held", "Locks that this client holds."),
    GAUGE(SLOT_WAITERS, "lock_waiters", "Acquisitions of this client that wait in a queue."),
    GAUGE(SLOT_BREAKER_OPEN, "breaker_open",
          "1 while the circuit breaker is open, after repeated failures of the store."),
};

static const struct metric_bound *bounds_of(enum metric_slot slot)
{
    bool request = slot >= SLOT_REQUEST && slot < SLOT_STORE_ERRORS;
    return request ? request_bounds : lock_bounds;
}

size_t metrics_bucket(enum metric_slot slot, int64_t us)
{
    const struct metric_bound *bounds = bounds_of(slot);
    size_t bucket = 0;
    while (bucket < METRIC_BUCKETS - 1 && us > bounds[bucket].us)
        bucket++;
    return bucket;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a >= METRIC_MOST || b >= METRIC_MOST - a ? METRIC_MOST : a + b;
}

void metrics_observe(struct metrics *metrics, enum metric_slot histogram, int64_t us,
                     uint64_t times)
{
    metrics->values[histogram + metrics_bucket(histogram, us)] += times;
    metrics->values[histogram + METRIC_SUM] += us > 0 ? (uint64_t)us * times : 0;
}

void metrics_add(struct metrics *to, const struct metrics *from)
{
    for (size_t i = 0; i < SLOT_HELD; i++)
        to->values[i] = add_up(to->values[i], from->values[i]);
}

bool metrics_are_zero(const struct metrics *metrics)
{
    size_t i = 0;
    while (i < SLOT_HELD && metrics->values[i] == 0)
        i++;
    return i == SLOT_HELD;
}

bool metrics_is_prefix(const char *prefix)
{
    size_t length = strnlen(prefix, METRICS_PREFIX_MAX + 1);
    for (size_t i = 0; i < length; i++) {
        char c = prefix[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return length > 0 && length <= METRICS_PREFIX_MAX;
}

const char *metrics_type_name(enum metric_type type)
{
    static const char *const names[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_TIMES] = "histogram"};
    return names[type];
}

void metrics_add_series(struct text *out, const char *prefix, const struct metric_family *family,
                        size_t value, const char *suffix, const char *le)
{
    text_add(out, prefix);
    text_add(out, "_");
    text_add(out, family->name);
    text_add(out, suffix);
    if (family->label == NULL && le == NULL)
        return;
    text_add(out, "{");
    if (family->label != NULL) {
        text_add(out, family->label);
        text_add(out, "=\"");
        text_add(out, family->label_values[value]);
        text_add(out, le != NULL ? "\"," : "\"");
    }
    if (le != NULL) {
        text_add(out, "le=\"");
        text_add(out, le);
        text_add(out, "\"");
    }
    text_add(out, "}");
}

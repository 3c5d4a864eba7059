/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a client: counted from its events (events.c) and its store's replies, in the loop.
 * The fast path emits no events; its share is derived from its table when the text is written, so
 * that a plain pair inside the process need not count anything. docs/metrics.md lists the metrics.
 *
 * Only the thread of the loop writes the values, so a relaxed load and a relaxed store are enough;
 * any thread may read them.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counting, in the loop ---- */

static void count(struct lh_client *client, size_t slot, uint64_t number)
{
    uint64_t value = atomic_load_explicit(&client->metrics[slot], memory_order_relaxed);
    atomic_store_explicit(&client->metrics[slot], value + number, memory_order_relaxed);
}

static void count_time(struct lh_client *client, enum metric_slot histogram, int64_t us)
{
    count(client, histogram + metrics_bucket(histogram, us), 1);
    count(client, histogram + METRIC_SUM, us > 0 ? (uint64_t)us : 0);
}

static enum metric_failure failure_of(enum lh_outcome outcome, bool waited)
{
    switch (outcome) {
    case LH_BUSY:
        return waited ? FAILURE_TIMEOUT : FAILURE_CONTENTION;
    case LH_COOLING:
        return FAILURE_COOLING;
    case LH_DONE:
        return FAILURE_DUPLICATE;
    case LH_UNAVAILABLE:
    case LH_DENIED:
        return FAILURE_API_ERROR;
    case LH_MISMATCH:
        return FAILURE_MISMATCH;
    default:
        return FAILURE_INTERNAL_ERROR;
    }
}

static void count_claim(struct lh_client *client, enum lh_outcome outcome)
{
    enum metric_claim claim = outcome == LH_OK     ? CLAIM_NEW
                              : outcome == LH_BUSY ? CLAIM_RUNNING
                              : outcome == LH_DONE ? CLAIM_DONE
                                                   : CLAIM_ERROR;
    count(client, SLOT_ONCE_CLAIMS + claim, 1);
}

static void count_acquisition(struct lh_client *client, const struct lh_event *event)
{
    bool granted = event->kind == LH_EVENT_GRANTED;
    count(client,
          granted ? SLOT_SUCCESSES : SLOT_FAILURES + failure_of(event->outcome, event->waited), 1);
    count(client, SLOT_HELD, granted ? 1 : 0);
    count_time(client, SLOT_ACQUISITION, event->after_us);
    if (event->key_kind == LH_ONCE)
        count_claim(client, event->outcome);
}

/* Without a duration: not ours, or counted before. */
static void count_end(struct lh_client *client, const struct lh_event *event)
{
    if (event->after_us < 0)
        return;
    count(client, SLOT_HELD, (uint64_t)-1);
    count_time(client, SLOT_HOLD, event->after_us);
}

void client_count_event(struct lh_client *client, const struct lh_event *event)
{
    switch (event->kind) {
    case LH_EVENT_ATTEMPT:
        count(client, SLOT_ATTEMPTS, 1);
        break;
    case LH_EVENT_WAITING:
        count(client, SLOT_WAITERS, 1);
        break;
    case LH_EVENT_WAITED:
        count(client, SLOT_WAITERS, (uint64_t)-1);
        count_time(client, SLOT_WAIT, event->after_us);
        break;
    case LH_EVENT_GRANTED:
    case LH_EVENT_REFUSED:
        count_acquisition(client, event);
        break;
    case LH_EVENT_TAKEOVER:
        count(client, SLOT_TAKEOVERS, 1);
        break;
    case LH_EVENT_LOST:
        count(client, SLOT_LOST, 1);
        count_end(client, event);
        break;
    case LH_EVENT_RELEASED:
        count(client, SLOT_RELEASES, event->outcome == LH_OK ? 1 : 0);
        count_end(client, event);
        break;
    case LH_EVENT_LEFT:
        count_end(client, event);
        break;
    case LH_EVENT_MARK:
        count_claim(client, event->outcome);
        break;
    case LH_EVENT_RETRY:
        count(client, SLOT_RETRIES, 1);
        break;
    case LH_EVENT_BREAKER:
        atomic_store_explicit(&client->metrics[SLOT_BREAKER_OPEN],
                              event->outcome == LH_UNAVAILABLE ? 1 : 0, memory_order_relaxed);
        break;
    case LH_EVENT_RENEWED:
    case LH_EVENT_RENEW_FAILED:
    case LH_EVENT_WATERMARK:
    case LH_EVENT_STORE: /* client_count_reply() */
        break;
    }
}

void client_count_reply(struct lh_client *client, enum store_verb verb, enum reply_status result,
                        int64_t us)
{
    static const enum metric_verb verbs[] = {[VERB_STORE_READ] = METRIC_READ,
                                             [VERB_STORE_SWAP] = METRIC_SWAP,
                                             [VERB_STORE_DELETE] = METRIC_DELETE,
                                             [VERB_STORE_LIST] = METRIC_LIST,
                                             [VERB_STORE_HISTORY] = METRIC_HISTORY};
    ASSERT(verb != VERB_STORE_WATCH);
    count_time(client, SLOT_REQUEST + verbs[verb] * METRIC_HISTOGRAM, us);
    if (result == REPLY_TROUBLE || result == REPLY_FULL)
        count(client, SLOT_STORE_ERRORS + METRIC_UNAVAILABLE, 1);
    else if (result == REPLY_DENIED)
        count(client, SLOT_STORE_ERRORS + METRIC_DENIED, 1);
}

void metrics_count_workload(struct metrics *metrics, enum lh_outcome outcome,
                            const struct workload_times *times)
{
    metrics->values[SLOT_ATTEMPTS]++;
    metrics_observe(metrics, SLOT_ACQUISITION, times->acquisition_us, 1);
    if (!times->granted) {
        metrics->values[SLOT_FAILURES + failure_of(outcome, /* waited= */ false)]++;
        return;
    }
    metrics->values[SLOT_SUCCESSES]++;
    if (times->left && outcome == LH_OK)
        return;
    metrics_observe(metrics, SLOT_HOLD, times->hold_us, 1);
    if (outcome == LH_OK)
        metrics->values[SLOT_RELEASES]++;
    else if (outcome == LH_LOST)
        metrics->values[SLOT_LOST]++;
}

/* ---- the text, in any thread ---- */

/* An acquisition of the fast path takes less than the smallest bucket, so its time is 0. */
static void add_fast_path(struct lh_client *client, struct metrics *metrics)
{
    struct fast_path_counts counts;
    uint64_t refused = atomic_load_explicit(&client->fast_refusals, memory_order_relaxed);
    fast_path_count(client->fast_path, &counts);
    metrics->values[SLOT_ATTEMPTS] += counts.acquired + refused;
    metrics->values[SLOT_SUCCESSES] += counts.acquired;
    metrics->values[SLOT_FAILURES + FAILURE_CONTENTION] += refused;
    metrics->values[SLOT_ACQUISITION] += counts.acquired + refused;
    metrics->values[SLOT_RELEASES] += counts.released;
    metrics->values[SLOT_HELD] += counts.acquired - counts.released;
    for (size_t i = 0; i < METRIC_HISTOGRAM; i++)
        metrics->values[SLOT_HOLD + i] += counts.hold_times[i];
}

static void client_read_metrics(struct lh_client *client, struct metrics *out)
{
    for (size_t i = 0; i < METRIC_SLOTS; i++)
        out->values[i] = atomic_load_explicit(&client->metrics[i], memory_order_relaxed);
    if (client->fast_path != NULL)
        add_fast_path(client, out);
    for (size_t i = SLOT_HELD; i < METRIC_SLOTS; i++)
        if (out->values[i] > INT64_MAX) /* read between two steps of one event */
            out->values[i] = 0;
}

enum lh_outcome metrics_output(const struct metrics *metrics, const char *prefix, bool gauges,
                               char *out, size_t size, size_t *out_length, struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    if (prefix == NULL || !metrics_is_prefix(prefix) || out == NULL || out_length == NULL)
        return report_set(report, LH_USAGE,
                          "usage: give a buffer, a pointer for the length, and a prefix of 1 to 64 "
                          "letters, digits and underscores that does not begin with a digit");
    char *bytes = malloc(METRICS_TEXT_MAX);
    if (bytes == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    text_init(&text, bytes, METRICS_TEXT_MAX);
    metrics_write(metrics, prefix, gauges, &text);
    *out_length = text.length;
    bool fits = text.length < size;
    if (fits)
        memcpy(out, bytes, text.length + 1);
    free(bytes);
    if (fits)
        return report_set(report, LH_OK, "");
    (void)snprintf(message, sizeof message,
                   "usage: the metrics do not fit into %zu bytes; give %zu, or LH_METRICS_SIZE",
                   size, text.length + 1);
    return report_set(report, LH_USAGE, message);
}

enum lh_outcome lh_metrics(struct lh_client *client, const char *prefix, char *out, size_t size,
                           size_t *out_length, struct lh_report *report)
{
    struct metrics metrics;
    _Static_assert((int)LH_METRICS_SIZE >= (int)METRICS_TEXT_MAX, "the promised size is enough");
    enum lh_outcome outcome = client_admits(client, /* blocks= */ false, report);
    if (outcome != LH_OK)
        return outcome;
    client_read_metrics(client, &metrics);
    return metrics_output(&metrics, prefix, /* gauges= */ true, out, size, out_length, report);
}

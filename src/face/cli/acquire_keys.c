/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquires keys as --wait and --on-conflict specify: waits in the queue, retries with backoff, or
 * fails. A signal leaves the queue. The core, not this file, decides about the queue order.
 */
#include "face/cli/cli.h"

#include "face/cli/metrics_file.h"
#include "face/cli/signals.h"
#include "face/cli/waiting.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- one attempt ---- */

struct acquire_attempt {
    struct context *context;
    struct signals signals;
    struct waiting waiting;
    struct lh_request *(*start)(struct acquire_attempt *attempt);
    const char *const *keys; /* for a claim: the id */
    size_t count;
    struct lh_acquire_options options;
    const struct lh_once_options *claim;
    struct lh_once *once;
    struct lh_lease *lease;
    struct lh_report report;
    bool over;
    int stopped_by; /* a signal, or 0 */
    bool cancelled; /* by context->cancel_fd */
};

static void attempt_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct acquire_attempt *attempt = user;
    attempt->lease = lease;
    attempt->report = *report;
    attempt->report.size = sizeof attempt->report;
    attempt->over = true;
}

static struct lh_request *start_keys(struct acquire_attempt *attempt)
{
    return lh_acquire_all_start(attempt->context->client, attempt->keys, attempt->count,
                                &attempt->options, attempt_on_done, attempt, &attempt->report);
}

static struct lh_request *start_claim(struct acquire_attempt *attempt)
{
    return lh_once_claim_start(attempt->context->client, attempt->keys[0], attempt->claim,
                               attempt->once, attempt_on_done, attempt, &attempt->report);
}

static int64_t acquire_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The key whose queue we are in; the first key until LH_EVENT_WAITING reports it. */
static const char *attempt_key(const struct acquire_attempt *attempt)
{
    const struct context *context = attempt->context;
    return context->awaited_key[0] != '\0' ? context->awaited_key : attempt->keys[0];
}

/* Sleeps; true if context->cancel_fd became readable. A request that need not wait ignores it: a
 * free key is granted first. */
static bool attempt_sleep(struct acquire_attempt *attempt, struct lh_client *client, bool waits,
                          int64_t length_ms)
{
    int cancel_fd = attempt->context->cancel_fd;
    bool heeds = cancel_fd > 0 && waits && !attempt->cancelled;
    if (!signals_wait_also(&attempt->signals, client, heeds ? cancel_fd : -1, length_ms))
        return false;
    attempt->cancelled = true;
    return true;
}

/* The first signal cancels the request; a second one exits without waiting for the store. */
static void attempt_once(struct acquire_attempt *attempt)
{
    struct lh_client *client = attempt->context->client;
    int stopped_by = 0;
    attempt->over = false;
    struct lh_request *request = attempt->start(attempt);
    while (request != NULL && !attempt->over) {
        int64_t pause_ms = waiting_pause_ms(&attempt->waiting), began_ms = acquire_now_ms();
        bool queued = attempt->context->awaited_key[0] != '\0';
        bool cancelled = attempt_sleep(attempt, client, queued, pause_ms);
        int number = signals_consume();
        if (number != 0 && stopped_by != 0)
            _exit(EXIT_SIGNAL + stopped_by);
        if (number != 0 || cancelled)
            lh_cancel(request);
        stopped_by = number != 0 ? number : stopped_by;
        (void)lh_step(client);
        if (!attempt->over && pause_ms >= 0 && acquire_now_ms() - began_ms >= pause_ms)
            waiting_show(&attempt->waiting, attempt_key(attempt), acquire_now_ms());
    }
    lh_request_free(request);
    waiting_end(&attempt->waiting);
    attempt->stopped_by = stopped_by;
}

/* ---- retries ---- */

/* Takes off up to a quarter, so that clients that collided once do not collide again. The pause
 * itself is the most that the user has allowed. */
static int64_t with_jitter(int64_t pause_ms)
{
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint32_t)getpid() << 16;
    return pause_ms - (int64_t)((uint64_t)pause_ms * (random >> 16) >> 18);
}

static void attempt_pause(struct acquire_attempt *attempt, int64_t length_ms)
{
    int64_t end_ms = acquire_now_ms() + length_ms;
    for (int64_t left_ms = length_ms;
         left_ms > 0 && attempt->stopped_by == 0 && !attempt->cancelled;
         left_ms = end_ms - acquire_now_ms()) {
        (void)attempt_sleep(attempt, NULL, /* waits= */ true, left_ms);
        attempt->stopped_by = signals_consume();
    }
}

static void attempt_retry(struct acquire_attempt *attempt)
{
    const struct settings *settings = &attempt->context->settings;
    int64_t limit_ms = settings->wait_ms, pause_ms = settings->backoff_first_ms;
    int64_t began_ms = acquire_now_ms();
    for (int64_t left = settings->retries; left > 0; left--) {
        int64_t jittered_ms = with_jitter(pause_ms);
        if (attempt->report.outcome != LH_BUSY || attempt->stopped_by != 0 ||
            (limit_ms >= 0 && acquire_now_ms() - began_ms + jittered_ms > limit_ms))
            return;
        output_detail(attempt->context, "%s; retrying in %lld ms", attempt->report.text,
                      (long long)jittered_ms);
        attempt_pause(attempt, jittered_ms);
        if (attempt->stopped_by != 0 || attempt->cancelled)
            return;
        attempt_once(attempt);
        pause_ms =
            pause_ms * 2 < settings->backoff_max_ms ? pause_ms * 2 : settings->backoff_max_ms;
    }
}

/* ---- entry points ---- */

void acquire_fill_options(const struct context *context, struct lh_acquire_options *out)
{
    static const struct lh_acquire_options default_value = LH_ACQUIRE_OPTIONS_INIT;
    const struct settings *settings = &context->settings;
    *out = default_value;
    out->ttl_ms = settings->ttl_ms;
    out->wait_ms = settings->on_conflict == CONFLICT_WAIT ? settings->wait_ms : 0;
    out->cooldown_ms = settings->cooldown_ms;
    out->lock_delay_ms = settings->lock_delay_ms;
    out->priority = (int32_t)settings->priority;
    out->limit = (uint32_t)settings->limit;
    out->shared = settings->shared;
    out->request_id = settings->request_id;
    out->meta = settings->meta;
    out->meta_count = settings->meta_count;
}

int check_keys(const struct context *context, const char *const *keys, size_t count)
{
    if (count > LH_KEYS_MAX)
        return usage_error(context, "at most %d keys can be acquired together", LH_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(keys[i]);
        if (length == 0)
            return usage_error(context, "a key must not be empty");
        if (length >= LH_KEY_SIZE)
            return usage_error(context, "the key '%.32s...' has %zu bytes; the maximum is 512",
                               keys[i], length);
        if (!text_is_clean(keys[i], length))
            return usage_error(context, "key %zu is not UTF-8 or has control characters", i + 1);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(keys[i], keys[j]) == 0)
                return usage_error(context, "the key '%.64s' is named twice", keys[i]);
        }
    }
    return EXIT_DONE;
}

/* With --verbose. */
static void attempt_output_grant(const struct acquire_attempt *attempt, int64_t began_ms)
{
    static char keys[LH_KEYS_MAX * LH_KEY_SIZE], tokens[LH_KEYS_MAX * 21];
    struct text key_list, token_list;
    text_init(&key_list, keys, sizeof keys);
    text_init(&token_list, tokens, sizeof tokens);
    for (size_t i = 0; lh_key_at(attempt->lease, i) != NULL; i++) {
        text_add(&key_list, i > 0 ? " " : "");
        text_add(&key_list, lh_key_at(attempt->lease, i));
        text_add(&token_list, " ");
        text_add_u64(&token_list, lh_token_at(attempt->lease, i));
    }
    output_detail(attempt->context, "acquired %s after %lld ms, token%s", keys,
                  (long long)(acquire_now_ms() - began_ms), tokens);
}

/* EXIT_DONE, or the status of a signal, which leaves no lease. */
static int attempt_run(struct acquire_attempt *attempt)
{
    int64_t began_ms = acquire_now_ms();
    waiting_begin(&attempt->waiting, attempt->context);
    signals_begin(&attempt->signals);
    attempt_once(attempt);
    if (attempt->context->settings.on_conflict == CONFLICT_RETRY)
        attempt_retry(attempt);
    signals_end(&attempt->signals);
    if (attempt->lease != NULL && attempt->stopped_by == 0)
        attempt_output_grant(attempt, began_ms);
    if (attempt->stopped_by == 0)
        return EXIT_DONE;
    if (attempt->lease != NULL)
        (void)lh_abandon(&attempt->lease, NULL);
    return EXIT_SIGNAL + attempt->stopped_by;
}

int acquire_claim(struct context *context, const char *id, const struct lh_once_options *options,
                  struct lh_lease **out_lease, struct lh_once *out_once,
                  struct lh_report *out_report)
{
    struct acquire_attempt attempt = {.context = context,
                                      .start = start_claim,
                                      .keys = &id,
                                      .count = 1,
                                      .claim = options,
                                      .once = out_once,
                                      .report = LH_REPORT_INIT};
    int status = attempt_run(&attempt);
    *out_lease = attempt.lease;
    *out_report = attempt.report;
    return status;
}

/* "busy: KEY is held by HOLDER; stdin was closed" */
static void attempt_explain_cancel(struct acquire_attempt *attempt)
{
    struct lh_report *report = &attempt->report;
    const char *cause = attempt->context->cancel_cause;
    if (!attempt->cancelled || report->outcome != LH_BUSY)
        return;
    if (report->key[0] == '\0')
        (void)snprintf(report->key, sizeof report->key, "%s", attempt_key(attempt));
    if (report->holder[0] != '\0')
        (void)snprintf(report->text, sizeof report->text, "busy: %.64s is held by %.64s; %s",
                       report->key, report->holder, cause);
    else
        (void)snprintf(report->text, sizeof report->text, "busy: %.64s was not granted; %s",
                       report->key, cause);
    text_clean(report->text, strlen(report->text)); /* a name may be cut within a character */
}

int acquire_keys(struct context *context, const char *const *keys, size_t count,
                 const struct lh_acquire_options *options, struct lh_lease **out_lease)
{
    struct acquire_attempt attempt = {.context = context,
                                      .start = start_keys,
                                      .keys = keys,
                                      .count = count,
                                      .options = *options,
                                      .report = LH_REPORT_INIT};
    int status = check_keys(context, keys, count);
    if (status == EXIT_DONE)
        status = attempt_run(&attempt);
    if (status != EXIT_DONE)
        return status;
    attempt_explain_cancel(&attempt);
    if (attempt.lease == NULL) {
        metrics_file_update(context); /* before the report */
        return output_report(context, count == 1 ? keys[0] : NULL, &attempt.report);
    }
    *out_lease = attempt.lease;
    return EXIT_DONE;
}

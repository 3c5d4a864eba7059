/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls of leasehold_workload.h. Checks the arguments and fills reports; the work is
 * done by workload/workload.h.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "leasehold_workload.h"
#include "workload/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { HANDLE_MAGIC = 0x301d5, REQUEST_MOST = WORKLOAD_FIELD_MAX, TARGET_SHOWN = 64 };

#define COOLDOWN_DEFAULT_MS ((int64_t)5 * 60 * 1000)

struct lh_workloads {
    uint32_t magic;
    pid_t process; /* a forked child shares its connection with the parent */
    struct workloads *internal;
    struct metrics metrics;
};

/* ---- results ---- */

static void fill_workload(const struct workload_result *result, struct lh_workload *out)
{
    const struct workload_view *view = &result->view;
    struct lh_workload workload = LH_WORKLOAD_INIT;
    workload.cached = result->cached;
    workload.status = view->status;
    text_copy(workload.name, sizeof workload.name, result->name);
    text_copy(workload.uid, sizeof workload.uid, view->uid);
    if (view->uid[0] != '\0')
        workload.state = view->state == END_DONE     ? LH_WORKLOAD_DONE
                         : view->state == END_FAILED ? LH_WORKLOAD_FAILED
                                                     : LH_WORKLOAD_RUNS;
    sized_write(out, &workload, sizeof workload);
}

/* `runs`: of a run, whose text begins with "failed" if the object failed. */
static enum lh_outcome report_workload(const char *target, const struct workload_result *result,
                                       bool runs, struct lh_report *report)
{
    enum lh_outcome outcome = result->usage ? LH_USAGE : (enum lh_outcome)result->outcome;
    char message[LH_TEXT_SIZE];
    struct text text;
    bool others = outcome == LH_BUSY || outcome == LH_COOLING;
    bool failed = runs && outcome == LH_OK && result->view.state == END_FAILED;
    text_init(&text, message, sizeof message);
    text_add(&text, failed ? "failed" : lh_outcome_name(outcome));
    text_add(&text, ": ");
    if (target != NULL) {
        text_add_brief(&text, target, TARGET_SHOWN);
        text_add(&text, ": ");
    }
    text_add_brief(&text, result->text, sizeof message);
    struct lh_report full = LH_REPORT_INIT;
    (void)report_set(&full, outcome, message);
    full.refusal = lh_refusal_word(LH_VERB_WORKLOAD, outcome);
    (void)snprintf(full.key, sizeof full.key, "%s", target != NULL ? target : "");
    if (others)
        (void)snprintf(full.holder, sizeof full.holder, "%s", result->view.holder);
    text_clean(full.holder, strlen(full.holder));
    full.since_ms = result->since_ms;
    full.ends_in_ms = others ? result->ends_in_ms : -1;
    report_copy(report, &full);
    return outcome;
}

struct progress_callback {
    lh_workload_progress_fn *fn;
    void *user;
};

static void forward_progress(void *user, const struct workload_result *result)
{
    const struct progress_callback *callback = user;
    struct lh_workload workload = LH_WORKLOAD_INIT;
    fill_workload(result, &workload);
    callback->fn(callback->user, &workload, result->since_ms, result->ends_in_ms);
}

/* ---- checks ---- */

static enum lh_outcome workload_check_call(const struct lh_workloads *handle, const char *target,
                                           const struct lh_workload *out, struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (!sized_is_valid(out))
        return report_set(report, LH_USAGE, "usage: initialise the result with LH_WORKLOAD_INIT");
    if (handle == NULL || handle->magic != HANDLE_MAGIC)
        return report_set(report, LH_USAGE, "usage: open the workloads first");
    if (handle->process != getpid())
        return report_set(report, LH_LOST, "lost: the workloads were opened before a fork");
    if (target == NULL || *target == '\0' || strlen(target) > KEY_MAX ||
        !text_is_clean(target, strlen(target)))
        return report_set(report, LH_USAGE,
                          "usage: the target must be 1 to 512 bytes of UTF-8 without control "
                          "characters");
    return LH_OK;
}

static bool is_request_id(const char *id)
{
    return id == NULL ||
           (*id != '\0' && strlen(id) <= REQUEST_MOST && text_is_clean(id, strlen(id)));
}

static const char *workload_options_error(const struct lh_workload_options *options)
{
    if (!is_request_id(options->request_id))
        return "usage: a request id must be 1 to 128 bytes of UTF-8 without control characters";
    if (options->cooldown_ms < 0 || options->cooldown_ms > SPAN_MAX_MS ||
        options->time_limit_ms < 0 || options->time_limit_ms > SPAN_MAX_MS)
        return "usage: cooldown and time limit must be 0 to 366 days";
    if ((int)options->until < 0 || options->until > LH_UNTIL_CREATED)
        return "usage: until must be one of enum lh_until";
    return NULL;
}

/* ---- calls ---- */

enum lh_outcome lh_workloads_open(const char *url, const char *manifest,
                                  const struct lh_workloads_options *options,
                                  struct lh_workloads **out, struct lh_report *report)
{
    struct lh_workloads_options known = LH_WORKLOADS_OPTIONS_INIT;
    const struct lh_workloads_options *asked = &known;
    char holder[HOLDER_MAX + 1];
    struct workload_result result;
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (url == NULL || manifest == NULL || out == NULL ||
        (options != NULL && !sized_read(&known, sizeof known, options)))
        return report_set(report, LH_USAGE,
                          "usage: give a URL, a manifest, a pointer for the handle, and options "
                          "that LH_WORKLOADS_OPTIONS_INIT initialised");
    struct lh_workloads *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    struct workloads_options internal = {.holder = asked->holder,
                                         .holder_label = asked->holder_label,
                                         .rules = {.done_when = asked->done_when,
                                                   .failed_when = asked->failed_when,
                                                   .ended_at = asked->ended_at},
                                         .timeout_ms = asked->timeout_ms,
                                         .watch = asked->watch,
                                         .warn = asked->warn,
                                         .user = asked->user};
    if (internal.holder == NULL)
        internal.holder = client_default_holder(holder, sizeof holder);
    if (!client_is_holder(internal.holder)) {
        free(handle);
        return report_set(report, LH_USAGE,
                          "usage: the holder must be 1 to 128 bytes of UTF-8 without control "
                          "characters");
    }
    if (!workloads_open(url, manifest, &internal, &handle->internal, &result)) {
        free(handle);
        return report_workload(NULL, &result, /* runs= */ false, report);
    }
    handle->magic = HANDLE_MAGIC;
    handle->process = getpid();
    *out = handle;
    return report_set(report, LH_OK, "ok");
}

void lh_workloads_close(struct lh_workloads **workloads)
{
    struct lh_workloads *handle = workloads != NULL ? *workloads : NULL;
    if (handle == NULL || handle->magic != HANDLE_MAGIC)
        return;
    if (handle->process == getpid()) /* otherwise connections and plugin are the parent's */
        workloads_close(&handle->internal);
    handle->magic = 0;
    free(handle);
    *workloads = NULL;
}

static void workload_count(struct lh_workloads *workloads, const struct workload_result *result,
                           bool left, int64_t began_us)
{
    int64_t now_us = host_boot_us();
    struct workload_times times = {.granted = result->acquired_us != 0, .left = left};
    int64_t acquired_us = times.granted ? result->acquired_us : now_us;
    times.acquisition_us = acquired_us - began_us;
    times.hold_us = now_us - acquired_us;
    if (!result->usage)
        metrics_count_workload(&workloads->metrics, (enum lh_outcome)result->outcome, &times);
}

enum lh_outcome lh_workloads_metrics(struct lh_workloads *workloads, const char *prefix, char *out,
                                     size_t size, size_t *out_length, struct lh_report *report)
{
    enum lh_outcome outcome = workload_check_call(workloads, "-", /* out= */ NULL, report);
    if (outcome != LH_OK)
        return outcome;
    return metrics_output(&workloads->metrics, prefix, /* gauges= */ false, out, size, out_length,
                          report);
}

enum lh_outcome lh_workload_run(struct lh_workloads *workloads, const char *target,
                                const struct lh_workload_options *options, struct lh_workload *out,
                                struct lh_report *report)
{
    struct lh_workload_options known = LH_WORKLOAD_OPTIONS_INIT;
    struct workload_result result;
    char own[40];
    uint64_t random[2] = {0};
    const struct lh_workload_options *asked = &known;
    enum lh_outcome outcome = workload_check_call(workloads, target, out, report);
    if (outcome != LH_OK)
        return outcome;
    const char *wrong = options != NULL && !sized_read(&known, sizeof known, options)
                            ? "usage: the options have a wrong size, or a member that this "
                              "library does not know; begin with LH_WORKLOAD_OPTIONS_INIT"
                            : workload_options_error(asked);
    if (wrong != NULL)
        return report_set(report, LH_USAGE, wrong);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return report_set(report, LH_FAILED, "failed: getrandom() failed");
    (void)snprintf(own, sizeof own, "%016llx%016llx", (unsigned long long)random[0],
                   (unsigned long long)random[1]);
    struct workload_run run = {.target = target,
                               .request = asked->request_id != NULL ? asked->request_id : own,
                               .manifest = asked->manifest,
                               .cooldown_ms = asked->cooldown_ms,
                               .limit_ms = asked->time_limit_ms,
                               .finalizer = asked->finalizer,
                               .until = asked->until == LH_UNTIL_REMOVED ? UNTIL_REMOVED
                                        : asked->until == LH_UNTIL_ENDED ? UNTIL_ENDED
                                                                         : UNTIL_CREATED};
    struct progress_callback callback = {.fn = asked->progress, .user = asked->user};
    if (asked->progress != NULL) {
        run.progress = forward_progress;
        run.user = &callback;
    }
    int64_t began_us = host_boot_us();
    workloads_run(workloads->internal, &run, &result);
    workload_count(workloads, &result, run.until != UNTIL_REMOVED, began_us);
    fill_workload(&result, out);
    return report_workload(target, &result, /* runs= */ true, report);
}

enum lh_outcome lh_workload_look(struct lh_workloads *workloads, const char *target,
                                 struct lh_workload *out, struct lh_report *report)
{
    struct workload_result result;
    enum lh_outcome outcome = workload_check_call(workloads, target, out, report);
    if (outcome != LH_OK)
        return outcome;
    workloads_query(workloads->internal, target, COOLDOWN_DEFAULT_MS, &result);
    fill_workload(&result, out);
    return report_workload(target, &result, /* runs= */ false, report);
}

enum lh_outcome lh_workload_remove(struct lh_workloads *workloads, const char *target,
                                   const char *request_id, struct lh_workload *out,
                                   struct lh_report *report)
{
    struct workload_result result;
    enum lh_outcome outcome = workload_check_call(workloads, target, out, report);
    if (outcome != LH_OK)
        return outcome;
    if (!is_request_id(request_id))
        return report_set(report, LH_USAGE,
                          "usage: a request id must be 1 to 128 bytes of UTF-8 without control "
                          "characters");
    workloads_remove(workloads->internal, target, request_id, &result);
    fill_workload(&result, out);
    return report_workload(target, &result, /* runs= */ false, report);
}

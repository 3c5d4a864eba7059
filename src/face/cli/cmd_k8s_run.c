/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold k8s-run: creates a Kubernetes object that is the lock, follows it to its end, keeps it
 * for its cooldown and removes it. It installs no signal handlers: all state is in the object, and
 * the next call resumes from it.
 */
#include "face/cli/cli.h"
#include "face/cli/metrics_file.h"
#include "face/cli/waiting.h"

#include "leasehold_workload.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANIFEST_MAX = 1 << 20 };

static const char *const workload_state_names[] = {
    [LH_WORKLOAD_NONE] = "none",
    [LH_WORKLOAD_RUNS] = "runs",
    [LH_WORKLOAD_DONE] = "done",
    [LH_WORKLOAD_FAILED] = "failed",
};

/* ---- the manifest ---- */

static int manifest_error(const struct context *context, const char *what)
{
    return usage_error(context, "%s: %s", context->settings.file, what);
}

/* Reads the file, or stdin for "-". The caller frees *out. */
static int k8s_run_read_manifest(const struct context *context, char **out)
{
    const char *path = context->settings.file;
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    char *text = malloc(MANIFEST_MAX + 1);
    int status = EXIT_DONE;
    size_t length = 0;
    if (file == NULL) {
        status = manifest_error(context, strerror(errno));
        goto out;
    }
    if (text == NULL) {
        status = output_error(context, LH_FAILED, "out of memory");
        goto out;
    }
    length = fread(text, 1, MANIFEST_MAX + 1, file);
    if (ferror(file))
        status = manifest_error(context, "read error");
    else if (length > MANIFEST_MAX)
        status = manifest_error(context, "the manifest is longer than 1 MiB");
    else if (memchr(text, '\0', length) != NULL)
        status = manifest_error(context, "the manifest contains a NUL byte");
    else
        text[length] = '\0';
out:
    if (file != NULL && !is_stdin)
        (void)fclose(file);
    if (status != EXIT_DONE) {
        free(text);
        return status;
    }
    *out = text;
    return EXIT_DONE;
}

/* ---- output ---- */

static void k8s_run_to_json(const struct context *context, const struct lh_workload *workload,
                            const struct lh_report *report, char line[LINE_SIZE])
{
    struct text text;
    text_init(&text, line, LINE_SIZE);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(report->outcome));
    json_add_string(&text, "key", context->settings.target);
    json_add_string(&text, "name", workload->name);
    json_add_string(&text, "uid", workload->uid[0] != '\0' ? workload->uid : NULL);
    json_add_string(&text, "state", workload_state_names[workload->state]);
    if (workload->state == LH_WORKLOAD_FAILED)
        json_add_number(&text, "status", workload->status);
    json_add_length(&text, "ended_ago_ms", report->since_ms);
    json_add_string(&text, "text", report->text);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    text_add(&text, "\n");
}

static int k8s_run_output(const struct context *context, const struct lh_workload *workload,
                          const struct lh_report *report)
{
    char line[LINE_SIZE];
    if (report->outcome != LH_OK)
        return output_report(context, context->settings.target, report);
    k8s_run_to_json(context, workload, report, line);
    int status = write_status_file(context, line);
    if (status != EXIT_DONE)
        return status;
    bool failed = !context->settings.remove && workload->state == LH_WORKLOAD_FAILED;
    if (context->settings.json)
        (void)fputs(line, stdout);
    else if (failed)
        fprintf(stderr, "%s\n", report->text);
    else if (!context->settings.quiet)
        puts(report->text);
    return failed ? workload->status : EXIT_DONE;
}

/* ---- progress ---- */

struct progress {
    const struct context *context;
    bool wanted, visible; /* on a terminal; its line is not empty */
};

static void progress_clear(struct progress *progress)
{
    if (progress->visible)
        waiting_write_line("");
    progress->visible = false;
}

/* Prints a warning of the API server about a manifest that it accepted. */
static void progress_warn(void *user, const char *text)
{
    struct progress *progress = user;
    char line[LINE_SIZE];
    struct text out;
    progress_clear(progress);
    if (progress->context->settings.quiet)
        return;
    text_init(&out, line, sizeof line);
    if (progress->context->settings.json) {
        json_begin(&out);
        json_add_string(&out, "warning", text);
        json_end(&out);
    } else {
        text_add(&out, "warning: ");
        text_add(&out, text);
    }
    fprintf(stderr, "%s\n", line);
}

static void progress_show(void *user, const struct lh_workload *workload, int64_t since_ms,
                          int64_t ends_in_ms)
{
    struct progress *progress = user;
    char line[256], duration[DURATION_SHOWN];
    struct text out;
    bool runs = workload->state == LH_WORKLOAD_RUNS;
    text_init(&out, line, sizeof line);
    text_add(&out, workload->name);
    text_add(&out, runs ? " runs" : workload->state == LH_WORKLOAD_DONE ? " is done" : " failed");
    if (since_ms >= 0) {
        text_add(&out, runs ? " for " : " since ");
        text_add(&out, duration_show(since_ms, duration));
    }
    if (ends_in_ms >= 0) {
        text_add(&out, runs ? "; removed at the latest in " : "; cools down for ");
        text_add(&out, duration_show(ends_in_ms, duration));
    }
    waiting_write_line(line);
    progress->visible = true;
}

/* ---- the command ---- */

static int open_workloads(struct context *context, const char *manifest, struct progress *progress,
                          struct lh_workloads **out)
{
    const struct settings *settings = &context->settings;
    struct lh_workloads_options options = LH_WORKLOADS_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    options.holder = context_holder(context);
    options.timeout_ms = settings->store_timeout_ms;
    options.holder_label = settings->holder_label;
    options.done_when = settings->done_when;
    options.failed_when = settings->failed_when;
    options.ended_at = settings->ended_at;
    options.warn = progress_warn;
    options.user = progress;
    if (lh_workloads_open(context->url, manifest, &options, out, &report) == LH_OK)
        return EXIT_DONE;
    return output_report(context, settings->target, &report);
}

static int k8s_run_execute(struct context *context, struct progress *progress,
                           struct lh_workloads *workloads)
{
    const struct settings *settings = &context->settings;
    struct lh_workload_options options = LH_WORKLOAD_OPTIONS_INIT;
    struct lh_workload workload = LH_WORKLOAD_INIT;
    struct lh_report report = LH_REPORT_INIT;
    options.request_id = settings->request_id;
    options.cooldown_ms = settings->cooldown_ms;
    options.time_limit_ms = settings->time_limit_ms;
    options.finalizer = settings->finalizer;
    options.until = (enum lh_until)settings->until_step;
    options.progress = progress->wanted ? progress_show : NULL;
    options.user = progress;
    if (settings->remove)
        (void)lh_workload_remove(workloads, settings->target, settings->request_id, &workload,
                                 &report);
    else
        (void)lh_workload_run(workloads, settings->target, &options, &workload, &report);
    progress_clear(progress);
    return k8s_run_output(context, &workload, &report);
}

static int cmd_k8s_run(struct context *context)
{
    const struct settings *settings = &context->settings;
    struct lh_workloads *workloads = NULL;
    char *manifest = NULL;
    struct progress progress = {
        .context = context,
        .wanted = !settings->quiet && !settings->json && isatty(STDERR_FILENO) == 1,
    };
    if (settings->target == NULL || settings->file == NULL)
        return usage_error(context,
                           "--target and -f are required; usage: leasehold k8s-run --target KEY "
                           "-f object.yaml");
    int status = check_keys(context, &settings->target, 1);
    if (status == EXIT_DONE)
        status = context_find_store(context);
    if (status == EXIT_DONE && strncmp(context->url, "k8s:", 4) != 0)
        status =
            usage_error(context, "k8s-run needs a Kubernetes store: give --store k8s://NAMESPACE");
    if (status == EXIT_DONE)
        status = k8s_run_read_manifest(context, &manifest);
    if (status == EXIT_DONE)
        status = open_workloads(context, manifest, &progress, &workloads);
    if (status == EXIT_DONE)
        status = k8s_run_execute(context, &progress, workloads);
    if (workloads != NULL)
        metrics_file_add_workloads(workloads);
    lh_workloads_close(&workloads);
    free(manifest);
    return status;
}

static const struct option option_target = {.name = "target",
                                            .kind = VALUE_TEXT,
                                            .at = offsetof(struct settings, target),
                                            .value = "KEY",
                                            .flag_only = true,
                                            .help = "key of the lock, which names the object"};
static const struct option option_file = {.name = "file",
                                          .letter = 'f',
                                          .kind = VALUE_TEXT,
                                          .at = offsetof(struct settings, file),
                                          .value = "FILE",
                                          .flag_only = true,
                                          .help = "the manifest, in YAML or JSON; - is stdin"};
static const struct option option_kept = {.name = "cooldown",
                                          .kind = VALUE_DURATION,
                                          .at = offsetof(struct settings, cooldown_ms),
                                          .value = "DUR",
                                          .max = (int64_t)366 * 24 * 3600 * 1000,
                                          .word = "default",
                                          .word_value = (int64_t)5 * 60 * 1000,
                                          .default_value = "5m",
                                          .help = "keep the object for this time after its end"};
static const struct option option_time_limit = {
    .name = "time-limit",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, time_limit_ms),
    .value = "DUR",
    .max = (int64_t)366 * 24 * 3600 * 1000,
    .help = "remove the object if it runs longer; no limit otherwise"};
static const char *const until_names[] = {"removed", "ended", "created", NULL};
static const struct option option_until_step = {
    .name = "until",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, until_step),
    .value = "STEP",
    .choices = until_names,
    .default_value = "removed",
    .flag_only = true,
    .help = "follow the object until it is removed, ended or created"};
static const struct option option_remove = {
    .name = "remove",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, remove),
    .flag_only = true,
    .help = "remove the object at once, running or cooling, instead of creating one"};
static const struct option option_finalizer = {
    .name = "finalizer",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, finalizer),
    .help = "keep the lock for its cooldown even if the object is deleted by hand"};
const struct option option_done_when = {
    .name = "done-when",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, done_when),
    .value = "COND",
    .help = "condition of success, as in condition=Complete,.status.phase=Done"};
const struct option option_failed_when = {.name = "failed-when",
                                          .kind = VALUE_TEXT,
                                          .at = offsetof(struct settings, failed_when),
                                          .value = "COND",
                                          .help = "condition of failure, which is checked first"};
const struct option option_ended_at = {
    .name = "ended-at",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, ended_at),
    .value = "PATH",
    .help = "member that has the end time, as in .status.completionTime"};
static const struct option option_holder_label = {
    .name = "holder-label",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, holder_label),
    .value = "NAME",
    .help = "label that also contains the holder, for other programs"};

static const struct option *const k8s_run_options[] = {&option_target,
                                                       &option_file,
                                                       &option_kept,
                                                       &option_time_limit,
                                                       &option_until_step,
                                                       &option_request_id,
                                                       &option_holder,
                                                       &option_holder_label,
                                                       &option_finalizer,
                                                       &option_done_when,
                                                       &option_failed_when,
                                                       &option_ended_at,
                                                       &option_remove,
                                                       &option_conflict_status,
                                                       &option_status_file,
                                                       &option_metrics_file,
                                                       NULL};

const struct command command_k8s_run = {
    .name = "k8s-run",
    .args = "--target KEY -f FILE",
    .summary = "create a Kubernetes object that is the lock, and follow it",
    .about =
        "Creates the object in FILE, of any kind, under the name that KEY has in the store "
        "(k8s://NAMESPACE; with ?names=hash it is wfe- and 16 hex digits). The object is the lock: "
        "of any number of callers one creates it; the others get 'ResourceBusy (held by ...)' and "
        "status 75. k8s-run follows the object to its end, keeps it for the cooldown and removes "
        "it. In the cooldown callers get 'RecentlyRemediated (by ..., ... ago)' and status 73.\n\n"
        "All state is in the object. If k8s-run is killed or stopped, the object remains, and the "
        "same call with the same --request-id resumes. Otherwise the next caller for KEY removes "
        "an object that has ended or has exceeded its --time-limit.\n\n"
        "Status 0: the object succeeded. Status 1, or that of the command of a Pod: it failed or "
        "exceeded its time limit. Status 76: it was deleted before its end was observed.\n\n"
        "k8s-run recognizes the end of Jobs, Pods, Tekton runs and most custom resources. For "
        "other kinds, --done-when and --failed-when take condition=NAME[=STATUS] or "
        ".path.to.member[=VALUE], separated by commas.",
    .example = "  leasehold --store 'k8s://workflows?names=hash' k8s-run \\\n"
               "      --target production/deployment/payment-api -f restart-job.yaml\n"
               "  leasehold --store k8s://workflows k8s-run --target db-migration -f job.yaml \\\n"
               "      --remove",
    .options = k8s_run_options,
    .run = cmd_k8s_run,
};

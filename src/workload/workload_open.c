/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h: opening and closing. Sends no request to the API server. */
#include "http/yaml_json.h"
#include "workload/workload_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_DEFAULT_MS = 10000, WATCH_S = 60 };

/* The members become part of a path. */
static bool is_path_safe(const json_t *manifest, const char *name)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-/";
    const char *text = json_string_value(json_object_get(manifest, name));
    return text != NULL && *text != '\0' && strlen(text) < PATH_SIZE / 4 &&
           text[strspn(text, fine)] == '\0' && strstr(text, "..") == NULL;
}

json_t *workloads_parse_manifest(const char *manifest, struct workload_result *result)
{
    struct text why;
    text_init(&why, result->text, sizeof result->text);
    text_add(&why, "the manifest: ");
    json_t *json = yaml_to_json(manifest, strlen(manifest), YAML_TYPED, &why);
    result->usage = json == NULL;
    return json;
}

/* False when out of memory. */
static bool workloads_copy_text(const char *text, char **out)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

static bool copy_options(struct workloads *workloads, const struct workloads_options *options)
{
    bool good = workloads_copy_text(options->holder, &workloads->holder) &&
                workloads_copy_text(options->holder_label, &workloads->holder_label) &&
                workloads_copy_text(options->rules.done_when, &workloads->done_when) &&
                workloads_copy_text(options->rules.failed_when, &workloads->failed_when) &&
                workloads_copy_text(options->rules.ended_at, &workloads->ended_at);
    workloads->rules = (struct end_rules){.done_when = workloads->done_when,
                                          .failed_when = workloads->failed_when,
                                          .ended_at = workloads->ended_at};
    workloads->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_DEFAULT_MS;
    workloads->watch = options->watch;
    workloads->warn = options->warn;
    workloads->warn_user = options->user;
    workloads->watch_s = WATCH_S;
    return good;
}

static bool set_up(struct workloads *workloads, const char *url, const char *manifest,
                   const struct workloads_options *options, struct workload_result *result)
{
    struct text why;
    const char *wrong = end_rules_broken(&options->rules);
    if (wrong != NULL)
        return workloads_usage(result, wrong);
    text_init(&why, result->text, sizeof result->text);
    if (!k8s_url_parse(url, &workloads->url, &why)) {
        result->usage = true;
        return false;
    }
    workloads->manifest = workloads_parse_manifest(manifest, result);
    if (workloads->manifest == NULL)
        return false;
    if (!json_is_object(workloads->manifest) || !is_path_safe(workloads->manifest, "apiVersion") ||
        !is_path_safe(workloads->manifest, "kind"))
        return workloads_usage(result, "the manifest has no apiVersion, or no kind");
    text_init(&why, result->text, sizeof result->text);
    result->outcome = OUTCOME_UNAVAILABLE;
    if (!copy_options(workloads, options)) {
        text_add(&why, "out of memory");
        return false;
    }
    if (!kube_api_open(&workloads->kube, &workloads->url, workloads->timeout_ms,
                       workloads_on_warning, workloads, &why))
        return false;
    result->outcome = OUTCOME_OK;
    return true;
}

bool workloads_open(const char *url, const char *manifest, const struct workloads_options *options,
                    struct workloads **out, struct workload_result *result)
{
    struct workloads *workloads = calloc(1, sizeof *workloads);
    *result = (struct workload_result){.since_ms = -1, .ends_in_ms = -1};
    if (workloads == NULL) {
        result->outcome = OUTCOME_UNAVAILABLE;
        (void)snprintf(result->text, sizeof result->text, "out of memory");
        return false;
    }
    workloads->magic = WORKLOADS_MAGIC;
    if (!set_up(workloads, url, manifest, options, result)) {
        workloads_close(&workloads);
        return false;
    }
    if (options->watch)
        workload_cache_watch(workloads, WORKLOAD_SELECTOR);
    *out = workloads;
    return true;
}

void workloads_close(struct workloads **workloads_pointer)
{
    struct workloads *workloads = *workloads_pointer;
    if (workloads == NULL)
        return;
    workload_cache_done(workloads);
    kube_api_close(&workloads->kube);
    json_decref(workloads->manifest);
    free(workloads->holder);
    free(workloads->holder_label);
    free(workloads->done_when);
    free(workloads->failed_when);
    free(workloads->ended_at);
    workloads->magic = 0;
    free(workloads);
    *workloads_pointer = NULL;
}

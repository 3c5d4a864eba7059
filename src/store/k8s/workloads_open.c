/* SPDX-License-Identifier: Apache-2.0 */
/* See workloads.h: opening and closing. Nothing is asked of the API server yet. */
#include "io/yaml_json.h"
#include "store/k8s/workloads_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 10000, WATCH_S = 60 };

static bool refuse(struct workloads_answer *answer, const char *words)
{
    answer->usage = true;
    (void)snprintf(answer->text, sizeof answer->text, "%s", words);
    return false;
}

/* They become part of a path. */
static bool is_plain(const json_t *manifest, const char *name)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-/";
    const char *words = json_string_value(json_object_get(manifest, name));
    return words != NULL && *words != '\0' && strlen(words) < PATH_SIZE / 4 &&
           words[strspn(words, fine)] == '\0' && strstr(words, "..") == NULL;
}

static bool read_manifest(struct workloads *workloads, const char *manifest,
                          struct workloads_answer *answer)
{
    struct text why;
    text_init(&why, answer->text, sizeof answer->text);
    text_add(&why, "the manifest: ");
    workloads->manifest = yaml_to_json(manifest, strlen(manifest), YAML_TYPED, &why);
    if (workloads->manifest == NULL) {
        answer->usage = true;
        return false;
    }
    if (!json_is_object(workloads->manifest) || !is_plain(workloads->manifest, "apiVersion") ||
        !is_plain(workloads->manifest, "kind"))
        return refuse(answer, "the manifest has no apiVersion, or no kind");
    return true;
}

/* False when memory is short. */
static bool copy_words(const char *words, char **out)
{
    *out = words != NULL ? strdup(words) : NULL;
    return words == NULL || *out != NULL;
}

static bool copy_options(struct workloads *workloads, const struct workloads_options *options)
{
    bool good = copy_words(options->holder, &workloads->holder) &&
                copy_words(options->holder_label, &workloads->holder_label) &&
                copy_words(options->rules.done_when, &workloads->done_when) &&
                copy_words(options->rules.failed_when, &workloads->failed_when) &&
                copy_words(options->rules.ended_at, &workloads->ended_at);
    workloads->rules = (struct end_rules){.done_when = workloads->done_when,
                                          .failed_when = workloads->failed_when,
                                          .ended_at = workloads->ended_at};
    workloads->patience_ms = options->patience_ms > 0 ? options->patience_ms : PATIENCE_MS;
    workloads->watch = options->watch;
    workloads->warn = options->warn;
    workloads->warn_user = options->user;
    workloads->watch_s = WATCH_S;
    return good;
}

static void on_login(void *owner)
{
    (void)owner; /* whoever waits for it looks by itself */
}

static bool set_up(struct workloads *workloads, const char *url, const char *manifest,
                   const struct workloads_options *options, struct workloads_answer *answer)
{
    struct text why;
    const char *wrong = end_rules_broken(&options->rules);
    if (wrong != NULL)
        return refuse(answer, wrong);
    text_init(&why, answer->text, sizeof answer->text);
    if (!k8s_url_parse(url, &workloads->url, &why)) {
        answer->usage = true;
        return false;
    }
    if (!read_manifest(workloads, manifest, answer))
        return false;
    text_init(&why, answer->text, sizeof answer->text);
    answer->outcome = OUTCOME_UNAVAILABLE;
    if (!kube_config_load(&workloads->config, &workloads->url, &why))
        return false;
    workloads->net = net_new();
    if (workloads->net != NULL) {
        workloads->http = http_new(workloads->net);
        workloads->login = kube_login_new(workloads->net, &workloads->config, on_login, workloads);
    }
    if (workloads->http == NULL || workloads->login == NULL || !copy_options(workloads, options)) {
        text_add(&why, "memory or descriptors are short");
        return false;
    }
    answer->outcome = OUTCOME_OK;
    return true;
}

bool workloads_open(const char *url, const char *manifest, const struct workloads_options *options,
                    struct workloads **out, struct workloads_answer *answer)
{
    struct workloads *workloads = calloc(1, sizeof *workloads);
    *answer = (struct workloads_answer){.since_ms = -1, .ends_in_ms = -1};
    if (workloads == NULL) {
        answer->outcome = OUTCOME_UNAVAILABLE;
        (void)snprintf(answer->text, sizeof answer->text, "memory is short");
        return false;
    }
    workloads->magic = WORKLOADS_MAGIC;
    for (size_t i = 0; i < sizeof workloads->config.held / sizeof workloads->config.held[0]; i++)
        workloads->config.held[i] = -1;
    if (!set_up(workloads, url, manifest, options, answer)) {
        workloads_close(&workloads);
        return false;
    }
    if (options->watch)
        sights_watch(workloads,
                     "labelSelector=app.kubernetes.io%2Fmanaged-by%3D" WORKLOAD_LABEL_VALUE);
    *out = workloads;
    return true;
}

void workloads_close(struct workloads **workloads_pointer)
{
    struct workloads *workloads = *workloads_pointer;
    if (workloads == NULL)
        return;
    sights_done(workloads);
    if (workloads->net != NULL)
        net_call_at(workloads->net, &workloads->alarm, NET_NEVER);
    http_free(&workloads->http);
    kube_login_free(&workloads->login);
    net_free(&workloads->net);
    kube_config_done(&workloads->config);
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

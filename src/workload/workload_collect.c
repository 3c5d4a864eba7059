/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See workload_collect.h: finds objects of k8s-run that are no longer in use by their label, and
 * judges them as workloads_run() does. Each is removed under the uid and resourceVersion that were
 * judged, after our finalizer. Blocks.
 */
#include "workload/workload_collect.h"

#include "core/record.h"
#include "workload/workload_object.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    PATH_SIZE = 512,
    COOLDOWN_DEFAULT_MS = 5 * 60 * 1000, /* of an object without one */
};

#define SECOND_NS 1000000000L
#define MINUTE_NS (60 * SECOND_NS)

struct collect_round {
    struct kube_api *kube;
    const struct end_rules *rules;
    unsigned rate;
    char path[PATH_SIZE]; /* of the kind's objects */
    struct text names;
    struct collection *out;
};

static bool collect_fail(struct collect_round *round, const char *text)
{
    (void)snprintf(round->out->why, sizeof round->out->why, "%s", text);
    return false;
}

/* An unknown kind is a usage error; otherwise the reply has the reason. */
static bool collect_fail_kind(struct collect_round *round, const char *kind,
                              const struct json_result *reply)
{
    round->out->usage = reply->status == 200 || reply->status == 404;
    if (!round->out->usage)
        return collect_fail(round, reply->why);
    (void)snprintf(round->out->why, sizeof round->out->why,
                   "the API server has no kind %.200s; name it as in jobs.batch", kind);
    return false;
}

/* ---- discovery ---- */

/* A resource or a group, as kubectl names them: they become part of a path. */
static bool is_resource_name(const char *text, size_t length)
{
    return length > 0 && length < PATH_SIZE / 4 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= length;
}

/* "/apis/batch/v1" of a group, in the server's preferred version; "/api/v1" without one. */
static bool collect_find_group(struct collect_round *round, const char *kind, const char *group,
                               char out[PATH_SIZE])
{
    struct json_result reply;
    char path[PATH_SIZE];
    if (*group == '\0') {
        (void)snprintf(out, PATH_SIZE, "/api/v1");
        return true;
    }
    (void)snprintf(path, sizeof path, "/apis/%s", group);
    kube_call(round->kube, "GET", path, NULL, &reply);
    const char *version = kube_string(json_object_get(reply.json, "preferredVersion"), "version");
    bool found = reply.status == 200 && is_resource_name(version, strlen(version));
    (void)snprintf(out, PATH_SIZE, "/apis/%.120s/%.120s", group, version);
    if (!found)
        (void)collect_fail_kind(round, kind, &reply);
    json_result_done(&reply);
    return found;
}

static bool collect_find_kind(struct collect_round *round, const char *kind)
{
    struct json_result reply;
    char base[PATH_SIZE], name[PATH_SIZE / 4];
    size_t length = strcspn(kind, "."), index;
    const char *group = kind[length] == '.' ? kind + length + 1 : "";
    const json_t *entry, *found = NULL;
    if (!is_resource_name(kind, length) ||
        (*group != '\0' && !is_resource_name(group, strlen(group))))
        return collect_fail_kind(round, kind, &(struct json_result){.status = 404});
    (void)snprintf(name, sizeof name, "%.*s", (int)length, kind);
    if (!collect_find_group(round, kind, group, base))
        return false;
    kube_call(round->kube, "GET", base, NULL, &reply);
    json_array_foreach(json_object_get(reply.json, "resources"), index, entry)
    {
        found = strcmp(kube_string(entry, "name"), name) == 0 ? entry : found;
    }
    bool spaced = json_is_true(json_object_get(found, "namespaced"));
    (void)snprintf(round->path, sizeof round->path, "%.260s%s%s/%s", base,
                   spaced ? "/namespaces/" : "", spaced ? round->kube->config.namespace : "", name);
    if (found == NULL)
        (void)collect_fail_kind(round, kind, &reply);
    json_result_done(&reply);
    return round->out->why[0] == '\0';
}

/* ---- one object ---- */

/* Stores the new revision in `view`; false: the object has changed, or is gone. */
static bool collect_drop_finalizer(struct collect_round *round, const char *path,
                                   const json_t *object, struct workload_view *view)
{
    struct json_result reply;
    struct workload_view left;
    kube_call(round->kube, "PATCH", path, workload_finalizer_patch(object), &reply);
    bool good = reply.status == 200;
    if (good && workload_read(reply.json, round->rules, NULL, NULL, &left))
        text_copy(view->revision, sizeof view->revision, left.revision);
    if (!good && reply.status != 409 && reply.status != 404)
        (void)collect_fail(round, reply.why);
    json_result_done(&reply);
    return good;
}

static bool collect_remove_object(struct collect_round *round, const char *name,
                                  const json_t *object, struct workload_view *view)
{
    char path[PATH_SIZE * 2];
    struct json_result reply;
    (void)snprintf(path, sizeof path, "%s/%s", round->path, name);
    if (view->finalizer && !collect_drop_finalizer(round, path, object, view))
        return false;
    if (view->terminating)
        return true; /* removed with the finalizer, or kept by another one */
    kube_call(round->kube, "DELETE", path, workload_delete_options(view), &reply);
    bool good = reply.status == 200 || reply.status == 202 || reply.status == 404;
    if (!good && reply.status != 409)
        (void)collect_fail(round, reply.why);
    json_result_done(&reply);
    return good;
}

/* A terminating object without our finalizer is left to other controllers. */
static bool collect_is_leftover(const struct collect_round *round, const json_t *object,
                                int64_t now_ms, struct workload_view *view)
{
    int64_t left_ms;
    if (!workload_read(object, round->rules, NULL, NULL, view) || !view->ours ||
        (view->terminating && !view->finalizer))
        return false;
    enum workload_verdict verdict = workload_judge(view, COOLDOWN_DEFAULT_MS, now_ms, &left_ms);
    return verdict == WORKLOAD_OVER || verdict == WORKLOAD_OVERDUE;
}

static void collect_object(struct collect_round *round, const json_t *object, int64_t now_ms)
{
    struct workload_view view;
    struct collection *out = round->out;
    const char *name = kube_string(json_object_get(object, "metadata"), "name");
    if (!is_resource_name(name, strlen(name)) || !collect_is_leftover(round, object, now_ms, &view))
        return;
    TEXT_JOIN(&round->names, out->left > 0 ? ", " : "", name);
    out->left++;
    if (round->rate == 0)
        return;
    if (collect_remove_object(round, name, object, &view))
        out->removed++;
    else if (out->why[0] == '\0')
        out->taken++;
    long pause_ns = MINUTE_NS / (long)round->rate;
    struct timespec pause = {.tv_sec = pause_ns / SECOND_NS, .tv_nsec = pause_ns % SECOND_NS};
    (void)nanosleep(&pause, NULL);
}

/* ---- pages ---- */

/* False after the last page, or on error. */
static bool collect_page(struct collect_round *round, struct json_pages *pages)
{
    char path[KUBE_PATH_MAX];
    struct json_result reply;
    const char *wrong;
    kube_page_path(path, round->path, WORKLOAD_SELECTOR, pages);
    kube_call(round->kube, "GET", path, NULL, &reply);
    const json_t *items = kube_page_items(pages, reply.json, /* length= */ 0, &wrong);
    if (reply.status != 200)
        (void)collect_fail(round, reply.why);
    else if (wrong != NULL || reply.now_ms == TIME_UNKNOWN)
        (void)collect_fail(round, wrong != NULL ? wrong : "the API server's reply has no Date");
    for (size_t i = 0; i < json_array_size(items) && round->out->why[0] == '\0'; i++)
        collect_object(round, json_array_get(items, i), reply.now_ms);
    json_result_done(&reply);
    return pages->next != NULL && round->out->why[0] == '\0';
}

void workload_collect(struct kube_api *kube, const char *kind, const struct end_rules *rules,
                      unsigned rate, struct collection *out)
{
    struct collect_round round = {.kube = kube, .rules = rules, .rate = rate, .out = out};
    struct json_pages pages = {0};
    *out = (struct collection){0};
    text_init(&round.names, out->names, sizeof out->names);
    if (!collect_find_kind(&round, kind))
        return;
    while (collect_page(&round, &pages))
        ;
    json_pages_done(&pages);
}

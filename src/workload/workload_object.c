/* SPDX-License-Identifier: Apache-2.0 */
/* See workload_object.h. */
#include "workload/workload_object.h"

#include "http/kube_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANNOTATION_KEY      "leasehold/key"
#define ANNOTATION_HOLDER   "leasehold/holder"
#define ANNOTATION_REQUEST  "leasehold/request"
#define ANNOTATION_COOLDOWN "leasehold/cooldown-ms"
#define ANNOTATION_LIMIT    "leasehold/time-limit-ms"

#define FOR_EVER_MS ((int64_t)1 << 52) /* can be added to any time without overflow */

enum { ROUNDING_MS = 1000 };

static json_t *manifest_fail(struct text *why, const char *text, const char *more)
{
    TEXT_JOIN(why, text, more);
    return NULL;
}

/* ---- writing ---- */

/* Independent of the locale. */
static bool is_alphanumeric(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

/* A valid label value, for selectors; the full name is in an annotation. */
static void make_label(const char *text, char out[WORKLOAD_LABEL_MAX + 1])
{
    size_t length = 0;
    for (; *text != '\0' && length < WORKLOAD_LABEL_MAX; text++) {
        char shown = '_';
        if (is_alphanumeric(*text) || strchr("-_.", *text) != NULL)
            shown = *text;
        if (length > 0 || is_alphanumeric(*text))
            out[length++] = shown;
    }
    while (length > 0 && !is_alphanumeric(out[length - 1]))
        length--;
    out[length] = '\0';
}

static bool annotate_duration(json_t *json, const char *name, int64_t length_ms)
{
    return json_object_set_new(json, name, json_sprintf("%lld", (long long)length_ms)) == 0;
}

static bool add_labels(json_t *metadata, const struct workload_spec *spec)
{
    char holder[WORKLOAD_LABEL_MAX + 1];
    json_t *labels = kube_child(metadata, "labels");
    make_label(spec->holder, holder);
    return kube_set_string(labels, WORKLOAD_LABEL, WORKLOAD_LABEL_VALUE) &&
           kube_set_string(labels, WORKLOAD_HOLDER_LABEL, holder) &&
           (spec->holder_label == NULL || kube_set_string(labels, spec->holder_label, holder));
}

static bool add_annotations(json_t *metadata, const struct workload_spec *spec)
{
    json_t *annotations = kube_child(metadata, "annotations");
    return kube_set_string(annotations, ANNOTATION_KEY, spec->target) &&
           kube_set_string(annotations, ANNOTATION_HOLDER, spec->holder) &&
           kube_set_string(annotations, ANNOTATION_REQUEST, spec->request) &&
           annotate_duration(annotations, ANNOTATION_COOLDOWN, spec->cooldown_ms) &&
           (spec->limit_ms == 0 ||
            annotate_duration(annotations, ANNOTATION_LIMIT, spec->limit_ms));
}

static bool add_finalizer(json_t *metadata)
{
    json_t *list = json_object_get(metadata, "finalizers");
    if (!json_is_array(list) && json_object_set_new(metadata, "finalizers", json_array()) == 0)
        list = json_object_get(metadata, "finalizers");
    return json_array_append_new(list, json_string(WORKLOAD_FINALIZER)) == 0;
}

json_t *workload_make(const json_t *manifest, const struct workload_spec *spec, struct text *why)
{
    const char *space = kube_string(json_object_get(manifest, "metadata"), "namespace");
    if (kube_string(manifest, "kind")[0] == '\0' || kube_string(manifest, "apiVersion")[0] == '\0')
        return manifest_fail(why, "the manifest has no apiVersion, or no kind", "");
    if (*space != '\0' && (spec->namespace == NULL || strcmp(space, spec->namespace) != 0))
        return manifest_fail(why, "the manifest is for another namespace than the store: ", space);
    json_t *object = json_deep_copy(manifest);
    json_t *metadata = kube_child(object, "metadata");
    (void)json_object_del(metadata, "generateName");
    (void)json_object_del(object, "status");
    if (metadata == NULL || !kube_set_string(metadata, "name", spec->name) ||
        (spec->namespace != NULL && !kube_set_string(metadata, "namespace", spec->namespace)) ||
        !add_labels(metadata, spec) || !add_annotations(metadata, spec) ||
        (spec->finalizer && !add_finalizer(metadata))) {
        json_decref(object);
        return manifest_fail(why, "out of memory", "");
    }
    return object;
}

json_t *workload_finalizer_patch(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    json_t *rest = json_array();
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(metadata, "finalizers"), index, entry)
    {
        const char *text = json_string_value(entry);
        if (text != NULL && strcmp(text, WORKLOAD_FINALIZER) != 0)
            (void)json_array_append(rest, entry);
    }
    return json_pack("{s:{s:o, s:s}}", "metadata", "finalizers", rest, "resourceVersion",
                     kube_string(metadata, "resourceVersion"));
}

json_t *workload_delete_options(const struct workload_view *view)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s}", "apiVersion", "v1", "kind", "DeleteOptions",
                     "preconditions", "uid", view->uid, "resourceVersion", view->revision,
                     "propagationPolicy", "Background");
}

/* ---- reading ---- */

static int64_t duration_at(const json_t *annotations, const char *name, int64_t otherwise)
{
    const char *text = kube_string(annotations, name);
    char *end = NULL;
    long long length = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0')
        return otherwise;
    return length < FOR_EVER_MS ? length : FOR_EVER_MS;
}

static bool has_finalizer(const json_t *metadata)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(metadata, "finalizers"), index, entry)
    {
        const char *text = json_string_value(entry);
        if (text != NULL && strcmp(text, WORKLOAD_FINALIZER) == 0)
            return true;
    }
    return false;
}

static void read_object_holder(const json_t *metadata, const char *holder_label, char *out,
                               size_t size)
{
    const json_t *labels = json_object_get(metadata, "labels");
    const char *text = kube_string(json_object_get(metadata, "annotations"), ANNOTATION_HOLDER);
    if (*text == '\0' && holder_label != NULL)
        text = kube_string(labels, holder_label);
    if (*text == '\0')
        text = kube_string(labels, WORKLOAD_HOLDER_LABEL);
    (void)snprintf(out, size, "%s", *text != '\0' ? text : "somebody");
}

/* The deletion of a running object ends it; its finalizer keeps the lock through the cooldown. */
static void read_end(const json_t *object, const struct end_rules *rules,
                     struct workload_view *view)
{
    const char *deleted = kube_string(json_object_get(object, "metadata"), "deletionTimestamp");
    view->state = end_state_of(rules, object);
    view->terminating = *deleted != '\0';
    if (view->state == END_RUNS && view->terminating && view->finalizer) {
        view->state = END_FAILED;
        view->ended_at_ms = kube_time_ms(deleted);
    } else if (view->state != END_RUNS) {
        view->ended_at_ms = end_time_of(rules, object);
    }
    view->status = view->state == END_FAILED ? end_status_of(object) : 0;
}

bool workload_read(const json_t *object, const struct end_rules *rules, const char *target,
                   const char *holder_label, struct workload_view *out)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    struct workload_view view = {.ended_at_ms = -1};
    const char *uid = kube_string(metadata, "uid"), *key = kube_string(annotations, ANNOTATION_KEY);
    const char *revision = kube_string(metadata, "resourceVersion");
    if (*uid == '\0' || strlen(uid) >= sizeof view.uid || strlen(revision) >= sizeof view.revision)
        return false;
    text_copy(view.uid, sizeof view.uid, uid);
    text_copy(view.revision, sizeof view.revision, revision);
    read_object_holder(metadata, holder_label, view.holder, sizeof view.holder);
    (void)snprintf(view.request, sizeof view.request, "%s",
                   kube_string(annotations, ANNOTATION_REQUEST));
    view.ours = *key != '\0' && (target == NULL || strcmp(key, target) == 0);
    view.collides = *key != '\0' && !view.ours;
    view.finalizer = has_finalizer(metadata);
    view.created_at_ms = kube_time_ms(kube_string(metadata, "creationTimestamp"));
    view.cooldown_ms = duration_at(annotations, ANNOTATION_COOLDOWN, -1);
    view.limit_ms = duration_at(annotations, ANNOTATION_LIMIT, 0);
    read_end(object, rules, &view);
    *out = view;
    return true;
}

enum workload_verdict workload_judge(const struct workload_view *view, int64_t cooldown_ms,
                                     int64_t now_ms, int64_t *out_left_ms)
{
    *out_left_ms = -1;
    if (view->state == END_RUNS) {
        int64_t left_ms = view->created_at_ms + view->limit_ms + ROUNDING_MS - now_ms;
        if (view->limit_ms == 0 || !view->ours)
            return WORKLOAD_BUSY;
        *out_left_ms = left_ms > 0 ? left_ms : 0;
        return left_ms > 0 ? WORKLOAD_BUSY : WORKLOAD_OVERDUE;
    }
    int64_t length_ms = view->cooldown_ms >= 0 ? view->cooldown_ms : cooldown_ms;
    int64_t left_ms = view->ended_at_ms + length_ms - now_ms;
    left_ms = (left_ms < length_ms ? left_ms : length_ms) + ROUNDING_MS;
    if (length_ms > 0 && left_ms > 0) {
        *out_left_ms = left_ms;
        return WORKLOAD_COOLING;
    }
    return view->ours ? WORKLOAD_OVER : WORKLOAD_BUSY;
}

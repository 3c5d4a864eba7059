/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_k8s.h: the good API server. It stores created objects with uid, resourceVersion and
 * managedFields, refuses what a real one refuses (409 for another revision or an existing name,
 * 404), and marks every Pod as succeeded when it is read a second time.
 */
#include "hostile_k8s.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char leases[] = "/apis/coordination.k8s.io/v1/namespaces/blue/leases";
static const char pods[] = "/api/v1/namespaces/blue/pods";
static const char events[] = "/api/v1/namespaces/blue/events";

static struct {
    json_t *objects; /* by collection, then by name */
    uint64_t revision, count;
    api_changed *changed;
} api;

/* ---- objects ---- */

static json_t *collection_of(const char *name)
{
    json_t *found = json_object_get(api.objects, name);
    if (found != NULL)
        return found;
    (void)json_object_set_new(api.objects, name, json_object());
    return json_object_get(api.objects, name);
}

void api_init(api_changed *changed)
{
    api.changed = changed;
    api.revision = 1000;
    api_set(NULL);
}

json_t *api_copy(void)
{
    return json_deep_copy(api.objects);
}

void api_set(const json_t *objects)
{
    json_decref(api.objects);
    api.objects = objects != NULL ? json_deep_copy(objects) : json_object();
}

void api_each(const char *collection, api_changed *each)
{
    const char *name;
    json_t *object;
    json_object_foreach(collection_of(collection), name, object)
    {
        each(collection, "MODIFIED", object);
    }
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* ---- replies ---- */

static void refuse(struct api_answer *out, int status, const char *reason, const char *kind)
{
    out->status = status;
    out->json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:i}", "kind", "Status", "apiVersion",
                          "v1", "status", "Failure", "message", "it is not so", "reason", reason,
                          "details", "kind", kind, "code", status);
}

static void accept(struct api_answer *out, int status, json_t *json)
{
    out->status = status;
    out->json = json;
}

static void now_text(char out[32])
{
    time_t now = time(NULL);
    struct tm parts;
    (void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
}

/* Sets what a server sets: a new revision, the time of the write, the manager. */
static void stamp(json_t *object, const char *manager)
{
    char moment[32], revision[24];
    json_t *metadata = json_object_get(object, "metadata");
    now_text(moment);
    (void)snprintf(revision, sizeof revision, "%" PRIu64, ++api.revision);
    (void)json_object_set_new(metadata, "resourceVersion", json_string(revision));
    (void)json_object_set_new(
        metadata, "managedFields",
        json_pack("[{s:s, s:s, s:s}]", "manager", manager, "operation", "Update", "time", moment));
}

static void name_new(json_t *object, const char *manager)
{
    char moment[32], uid[40], name[128];
    json_t *metadata = json_object_get(object, "metadata");
    now_text(moment);
    api.count++;
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012" PRIx64, api.count);
    (void)snprintf(name, sizeof name, "%.60s%05" PRIu64, text_of(metadata, "generateName"),
                   api.count);
    if (text_of(metadata, "name")[0] == '\0')
        (void)json_object_set_new(metadata, "name", json_string(name));
    (void)json_object_set_new(metadata, "uid", json_string(uid));
    (void)json_object_set_new(metadata, "namespace", json_string("blue"));
    (void)json_object_set_new(metadata, "creationTimestamp", json_string(moment));
    stamp(object, manager);
}

/* ---- verbs ---- */

static void create(const char *collection, const char *kind, const json_t *body,
                   const char *manager, bool dry, struct api_answer *out)
{
    json_t *object = body != NULL ? json_deep_copy(body) : NULL;
    if (!json_is_object(json_object_get(object, "metadata"))) {
        json_decref(object);
        refuse(out, 400, "BadRequest", kind);
        return;
    }
    const char *given = text_of(json_object_get(object, "metadata"), "name");
    if (given[0] != '\0' && json_object_get(collection_of(collection), given) != NULL) {
        json_decref(object);
        refuse(out, 409, "AlreadyExists", kind);
        return;
    }
    name_new(object, manager);
    if (strcmp(collection, pods) == 0)
        (void)json_object_set_new(object, "status", json_pack("{s:s}", "phase", "Running"));
    if (!dry) {
        const char *name = text_of(json_object_get(object, "metadata"), "name");
        (void)json_object_set(collection_of(collection), name, object);
        api.changed(collection, "ADDED", object);
    }
    accept(out, 201, object);
}

static bool is_current(const json_t *object, const char *uid, const char *revision)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return (uid[0] == '\0' || strcmp(uid, text_of(metadata, "uid")) == 0) &&
           (revision[0] == '\0' || strcmp(revision, text_of(metadata, "resourceVersion")) == 0);
}

static void replace(const char *collection, const char *kind, const char *name, const json_t *body,
                    const char *manager, struct api_answer *out)
{
    const json_t *known = json_object_get(collection_of(collection), name);
    const json_t *metadata = json_object_get(body, "metadata");
    if (known == NULL) {
        refuse(out, 404, "NotFound", kind);
    } else if (!is_current(known, text_of(metadata, "uid"), text_of(metadata, "resourceVersion"))) {
        refuse(out, 409, "Conflict", kind);
    } else {
        json_t *object = json_deep_copy(body);
        stamp(object, manager);
        (void)json_object_set(collection_of(collection), name, object);
        api.changed(collection, "MODIFIED", object);
        accept(out, 200, object);
    }
}

static void delete (const char *collection, const char *kind, const char *name, const json_t *body,
                    struct api_answer *out)
{
    json_t *known = json_object_get(collection_of(collection), name);
    const json_t *wanted = json_object_get(body, "preconditions");
    if (known == NULL) {
        refuse(out, 404, "NotFound", kind);
    } else if (!is_current(known, text_of(wanted, "uid"), text_of(wanted, "resourceVersion"))) {
        refuse(out, 409, "Conflict", kind);
    } else {
        json_t *object = json_incref(known);
        stamp(object, "gone");
        (void)json_object_del(collection_of(collection), name);
        api.changed(collection, "DELETED", object);
        accept(out, 200, object);
    }
}

/* Time passes: every Pod has succeeded. */
static void let_pods_succeed(void)
{
    const char *name;
    json_t *object;
    char moment[32];
    now_text(moment);
    json_object_foreach(collection_of(pods), name, object)
    {
        if (strcmp(text_of(json_object_get(object, "status"), "phase"), "Running") != 0)
            continue;
        json_t *ended =
            json_pack("{s:{s:i, s:s}}", "terminated", "exitCode", 0, "finishedAt", moment);
        (void)json_object_set_new(object, "status",
                                  json_pack("{s:s, s:[{s:s, s:o}]}", "phase", "Succeeded",
                                            "containerStatuses", "name", "c", "state", ended));
        stamp(object, "kubelet");
    }
}

static void list(const char *collection, struct api_answer *out)
{
    const char *name;
    json_t *object, *items = json_array();
    char revision[24];
    if (strcmp(collection, pods) == 0)
        let_pods_succeed();
    json_object_foreach(collection_of(collection), name, object)
    {
        (void)json_array_append(items, object);
    }
    (void)snprintf(revision, sizeof revision, "%" PRIu64, api.revision);
    accept(out, 200,
           json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", "List", "apiVersion", "v1", "metadata",
                     "resourceVersion", revision, "items", items));
}

static void read(const char *collection, const char *kind, const char *name, struct api_answer *out)
{
    json_t *known = json_object_get(collection_of(collection), name);
    if (known == NULL)
        refuse(out, 404, "NotFound", kind);
    else
        accept(out, 200, json_deep_copy(known));
}

/* ---- paths ---- */

static bool begins(const char *path, const char *with)
{
    size_t length = strlen(with);
    return strncmp(path, with, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void manager_of(const char *query, char out[64])
{
    const char *at = query != NULL ? strstr(query, "fieldManager=") : NULL;
    (void)snprintf(out, 64, "%.*s", at != NULL ? (int)strcspn(at + 13, "&") : 4,
                   at != NULL ? at + 13 : "curl");
}

static void answer_in(const char *collection, const char *kind, const char *method,
                      const char *path, const char *query, const json_t *body,
                      struct api_answer *out)
{
    const char *name = path + strlen(collection);
    char manager[64];
    manager_of(query, manager);
    name += *name == '/' ? 1 : 0;
    bool watches = query != NULL && strstr(query, "watch=true") != NULL;
    if (strcmp(method, "POST") == 0) {
        create(collection, kind, body, manager, query != NULL && strstr(query, "dryRun") != NULL,
               out);
    } else if (strcmp(method, "PUT") == 0) {
        replace(collection, kind, name, body, manager, out);
    } else if (strcmp(method, "DELETE") == 0) {
        delete (collection, kind, name, body, out);
    } else if (*name != '\0') {
        read(collection, kind, name, out);
    } else if (watches) {
        out->status = 200;
        (void)snprintf(out->watched, sizeof out->watched, "%s", collection);
        if (strcmp(collection, pods) == 0)
            let_pods_succeed();
    } else {
        list(collection, out);
    }
}

void api_answer(const char *method, const char *target, const json_t *body, struct api_answer *out)
{
    static const struct {
        const char *collection, *kind;
    } all[] = {{leases, "leases"}, {pods, "pods"}, {events, "events"}};
    char path[1024];
    const char *query = strchr(target, '?');
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(target, "?"), target);
    *out = (struct api_answer){0};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (begins(path, all[i].collection)) {
            answer_in(all[i].collection, all[i].kind, method, path, query, body, out);
            return;
        }
    }
    if (strcmp(path, "/version") == 0)
        accept(out, 200,
               json_pack("{s:s, s:s, s:s}", "major", "1", "minor", "30", "gitVersion", "v1.30.0"));
    else if (strcmp(path, "/api/v1") == 0)
        accept(out, 200,
               json_pack("{s:s, s:[{s:s, s:s, s:b}]}", "kind", "APIResourceList", "resources",
                         "name", "pods", "kind", "Pod", "namespaced", 1));
    else if (strstr(path, "selfsubjectaccessreviews") != NULL)
        accept(
            out, 201,
            json_pack("{s:s, s:{s:b}}", "kind", "SelfSubjectAccessReview", "status", "allowed", 1));
    else
        refuse(out, 404, "NotFound", "paths");
}

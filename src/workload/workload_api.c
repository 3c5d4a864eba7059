/* SPDX-License-Identifier: Apache-2.0 */
/* See workload_internal.h: requests to the API server, and the wait for replies. */
#include "base/hash.h"
#include "process/host.h"
#include "workload/workload_internal.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- waiting ---- */

static void on_alarm(void *owner)
{
    (void)owner; /* only wakes up the poller */
}

void workloads_wait(struct workloads *workloads, int64_t until_ms)
{
    struct pollfd file = {.fd = poller_fd(workloads->kube.poller), .events = POLLIN};
    workloads->alarm.due = on_alarm;
    poller_call_at(workloads->kube.poller, &workloads->alarm, until_ms);
    (void)poll(&file, 1, /* timeout= */ -1);
    poller_step(workloads->kube.poller);
    poller_call_at(workloads->kube.poller, &workloads->alarm, POLLER_NEVER);
}

int64_t workloads_now_ms(const struct workloads *workloads)
{
    return workloads->date_ms + (host_boot_ms() - workloads->date_at_ms);
}

/* Date has whole seconds: a reply within the second of our estimate does not set the clock. */
static void workloads_set_clock(struct workloads *workloads, int64_t date_ms)
{
    int64_t known_ms = workloads_now_ms(workloads);
    if (date_ms == TIME_UNKNOWN ||
        (workloads->date_ms != 0 && date_ms <= known_ms && date_ms + 1000 > known_ms))
        return;
    workloads->date_ms = date_ms;
    workloads->date_at_ms = host_boot_ms();
}

/* ---- requests ---- */

/* A warning about a deprecated kind comes with every reply. */
void workloads_on_warning(void *user, const char *text)
{
    struct workloads *workloads = user;
    uint64_t hash = hash_string(text);
    for (size_t i = 0; i < workloads->warned_count; i++) {
        if (workloads->warned[i] == hash)
            return;
    }
    if (workloads->warn == NULL || workloads->warned_count == WARNINGS_MAX)
        return;
    workloads->warned[workloads->warned_count++] = hash;
    workloads->warn(workloads->warn_user, text);
}

void workloads_call(struct workloads *workloads, const struct json_call *call,
                    struct json_result *reply)
{
    struct json_call timed = *call;
    timed.most = OBJECT_REPLY_MAX;
    timed.give_up_at_ms = host_boot_ms() + workloads->timeout_ms;
    timed.repeatable = true;
    timed.forbidden_later = workloads->path[0] != '\0'; /* everybody may discover */
    json_api_call(workloads->kube.json, &timed, reply);
    workloads_set_clock(workloads, reply->now_ms);
}

bool workloads_usage(struct workload_result *result, const char *message)
{
    result->usage = true;
    (void)snprintf(result->text, sizeof result->text, "%s", message);
    return false;
}

void workloads_fail(const struct json_result *reply, struct workload_result *result)
{
    bool denied = reply->status == 401 || reply->status == 403;
    bool wrong = reply->status >= 400 && reply->status < 500 && reply->status != 429 && !denied;
    result->outcome = denied ? OUTCOME_DENIED : OUTCOME_UNAVAILABLE;
    result->usage = wrong;
    struct text text;
    text_init(&text, result->text, sizeof result->text);
    text_add_brief(&text, reply->why, sizeof result->text);
    if (reply->why[0] != '\0')
        return;
    text_add(&text, "the API server answers ");
    text_add_i64(&text, reply->status);
    text_add(&text, reply->json != NULL
                        ? ": the body is not an object with a uid and a revision"
                        : ": the body is not JSON; check whether a proxy is in between");
}

/* ---- discovery ---- */

/* The resource of a kind in the API server's discovery document; NULL: none. */
static const json_t *resource_of(const json_t *list, const char *kind)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(list, "resources"), index, entry)
    {
        const char *name = kube_string(entry, "name");
        /* A subresource has a slash; other characters are not safe in a path. */
        if (strcmp(kube_string(entry, "kind"), kind) == 0 && *name != '\0' &&
            name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0')
            return entry;
    }
    return NULL;
}

static bool workloads_set_path(struct workloads *workloads, const char *base,
                               const json_t *resource)
{
    const char *name = kube_string(resource, "name");
    int length;
    workloads->namespaced = json_is_true(json_object_get(resource, "namespaced"));
    if (workloads->namespaced)
        length = snprintf(workloads->path, PATH_SIZE, "%s/namespaces/%s/%s", base,
                          workloads->kube.config.namespace, name);
    else
        length = snprintf(workloads->path, PATH_SIZE, "%s/%s", base, name);
    return length < PATH_SIZE;
}

bool workloads_discover(struct workloads *workloads, struct workload_result *result)
{
    const char *version = kube_string(workloads->manifest, "apiVersion");
    const char *kind = kube_string(workloads->manifest, "kind");
    char base[PATH_SIZE];
    struct json_result reply;
    if (workloads->path[0] != '\0')
        return true;
    (void)snprintf(base, sizeof base, "/%s/%s", strchr(version, '/') != NULL ? "apis" : "api",
                   version);
    struct json_call call = {.method = "GET", .path = base};
    workloads_call(workloads, &call, &reply);
    const json_t *resource = reply.status == 200 ? resource_of(reply.json, kind) : NULL;
    bool found = resource != NULL && workloads_set_path(workloads, base, resource);
    if (!found && reply.status != 200 && reply.status != 404) {
        workloads_fail(&reply, result);
    } else if (!found) {
        workloads->path[0] = '\0';
        result->usage = true;
        (void)snprintf(result->text, sizeof result->text,
                       "the API server has no kind %.60s of %.60s", kind, version);
    }
    json_result_done(&reply);
    return found;
}

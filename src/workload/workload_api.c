/* SPDX-License-Identifier: Apache-2.0 */
/* See workload_internal.h: requests to the API server, and the wait for replies. */
#include "base/hash.h"
#include "process/host.h"
#include "workload/workload_internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 2000 };

/* ---- waiting ---- */

static void on_alarm(void *owner)
{
    (void)owner; /* only wakes up the poller */
}

void workloads_wait(struct workloads *workloads, int64_t until_ms)
{
    struct pollfd file = {.fd = poller_fd(workloads->poller), .events = POLLIN};
    workloads->alarm.due = on_alarm;
    poller_call_at(workloads->poller, &workloads->alarm, until_ms);
    (void)poll(&file, 1, /* timeout= */ -1);
    poller_step(workloads->poller);
    poller_call_at(workloads->poller, &workloads->alarm, POLLER_NEVER);
}

int64_t workloads_now_ms(const struct workloads *workloads)
{
    return workloads->date_ms + (host_boot_ms() - workloads->date_at_ms);
}

/* Date has whole seconds: a reply within the second of our estimate does not set the clock. */
static void workloads_set_clock(struct workloads *workloads, int64_t date_s)
{
    if (date_s < 0 || (workloads->date_ms != 0 && date_s * 1000 <= workloads_now_ms(workloads) &&
                       date_s * 1000 + 1000 > workloads_now_ms(workloads)))
        return;
    workloads->date_ms = date_s * 1000;
    workloads->date_at_ms = host_boot_ms();
}

/* ---- requests ---- */

static void workloads_on_reply(void *owner, const struct http_response *response)
{
    struct api_reply *reply = owner;
    reply->over = true;
    reply->status = response->status;
    reply->retry_after_ms = response->retry_after_ms;
    reply->json = kube_parse(response->body, response->body_length);
    reply->warnings = *response->warnings != '\0' ? strdup(response->warnings) : NULL;
    struct text why;
    text_init(&why, reply->why, sizeof reply->why);
    text_add_brief(&why,
                   response->status == 0 ? response->why : kube_string(reply->json, "message"),
                   sizeof reply->why);
    reply->date_s = response->date_s;
}

static void warn_once(struct workloads *workloads, const char *text)
{
    uint64_t hash = hash_string(text);
    for (size_t i = 0; i < workloads->warned_count; i++) {
        if (workloads->warned[i] == hash)
            return;
    }
    if (workloads->warned_count == WARNINGS_MAX)
        return;
    workloads->warned[workloads->warned_count++] = hash;
    workloads->warn(workloads->warn_user, text);
}

/* A warning about a deprecated kind comes with every reply. */
static void workloads_report_warnings(struct workloads *workloads, struct api_reply *reply)
{
    char *rest = NULL;
    if (workloads->warn == NULL || reply->warnings == NULL)
        return;
    for (char *line = strtok_r(reply->warnings, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        warn_once(workloads, line);
}

static void workloads_call_once(struct workloads *workloads, const struct kube_call *call,
                                int64_t give_up_at_ms, struct api_reply *reply)
{
    struct http_callbacks callbacks = {.done = workloads_on_reply, .owner = reply};
    *reply = (struct api_reply){.retry_after_ms = -1, .date_s = -1};
    /* A credential plugin may have to run first. */
    while (!kube_login_ready(workloads->login) && host_boot_ms() < give_up_at_ms)
        workloads_wait(workloads, give_up_at_ms);
    struct kube_call timed = *call;
    struct text why;
    int64_t left_ms = give_up_at_ms - host_boot_ms();
    timed.most = OBJECT_REPLY_MAX;
    timed.timeout_ms = left_ms > 0 ? left_ms : 1;
    text_init(&why, reply->why, sizeof reply->why);
    if (kube_call(workloads->login, workloads->http, &timed, &callbacks, &why) == NULL)
        return;
    poller_step(workloads->poller);
    while (!reply->over)
        workloads_wait(workloads, POLLER_NEVER); /* http.h ends it at the timeout */
    workloads_set_clock(workloads, reply->date_s);
    workloads_report_warnings(workloads, reply);
}

void workloads_call(struct workloads *workloads, const struct kube_call *call,
                    struct api_reply *reply)
{
    int64_t began_ms = host_boot_ms(), give_up_at_ms = began_ms + workloads->timeout_ms;
    struct backoff backoff;
    bool refused = false;
    backoff_init(&backoff, (uint64_t)began_ms, PAUSE_FIRST_MS, PAUSE_MAX_MS);
    for (;;) {
        workloads_call_once(workloads, call, give_up_at_ms, reply);
        bool again = reply->status == 0 || reply->status == 429 || reply->status >= 500 ||
                     (reply->status == 403 && workloads->permitted);
        if (reply->status == 200 || reply->status == 201)
            workloads->permitted = workloads->path[0] != '\0'; /* discovery does not count */
        if (reply->status == 401 && !refused) {
            kube_login_refused(workloads->login);
            again = refused = true;
        }
        int64_t pause_ms = backoff_pause_ms(&backoff), now_ms = host_boot_ms();
        if (reply->retry_after_ms > pause_ms)
            pause_ms = reply->retry_after_ms;
        if (!again || now_ms + pause_ms >= give_up_at_ms)
            return;
        api_reply_done(reply);
        for (int64_t until_ms = now_ms + pause_ms; host_boot_ms() < until_ms;)
            workloads_wait(workloads, until_ms);
    }
}

void api_reply_done(struct api_reply *reply)
{
    json_decref(reply->json);
    free(reply->warnings);
    reply->json = NULL;
    reply->warnings = NULL;
}

bool workloads_usage(struct workload_result *result, const char *message)
{
    result->usage = true;
    (void)snprintf(result->text, sizeof result->text, "%s", message);
    return false;
}

/* The message of the API server, or what is wrong with a reply without one. */
static const char *reply_why(const struct api_reply *reply)
{
    if (reply->why[0] != '\0')
        return reply->why;
    if (reply->json == NULL)
        return "the body is not JSON; check whether a proxy is in between";
    return reply->status < 300 ? "the body is not an object with a uid and a revision"
                               : "it gives no reason";
}

void workloads_fail(const struct api_reply *reply, struct workload_result *result)
{
    bool denied = reply->status == 401 || reply->status == 403;
    bool wrong = reply->status >= 400 && reply->status < 500 && reply->status != 429 && !denied;
    result->outcome = denied ? OUTCOME_DENIED : OUTCOME_UNAVAILABLE;
    result->usage = wrong;
    struct text text;
    text_init(&text, result->text, sizeof result->text);
    if (reply->status != 0) {
        text_add(&text, "the API server answers ");
        text_add_i64(&text, reply->status);
        text_add(&text, ": ");
    }
    text_add_brief(&text, reply_why(reply), sizeof result->text);
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
                          workloads->config.namespace, name);
    else
        length = snprintf(workloads->path, PATH_SIZE, "%s/%s", base, name);
    return length < PATH_SIZE;
}

bool workloads_discover(struct workloads *workloads, struct workload_result *result)
{
    const char *version = kube_string(workloads->manifest, "apiVersion");
    const char *kind = kube_string(workloads->manifest, "kind");
    char base[PATH_SIZE];
    struct api_reply reply;
    if (workloads->path[0] != '\0')
        return true;
    (void)snprintf(base, sizeof base, "/%s/%s", strchr(version, '/') != NULL ? "apis" : "api",
                   version);
    struct kube_call call = {.method = "GET", .path = base};
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
    api_reply_done(&reply);
    return found;
}

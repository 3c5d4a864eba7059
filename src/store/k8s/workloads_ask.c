/* SPDX-License-Identifier: Apache-2.0 */
/* See workloads_inside.h: asking the API server, and waiting for its answers. */
#include "io/host.h"
#include "store/k8s/workloads_inside.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 100, PAUSE_MOST_MS = 2000 };

/* ---- waiting ---- */

static void on_alarm(void *owner)
{
    (void)owner; /* that the step returns is all */
}

void workloads_wait(struct workloads *workloads, int64_t until_ms)
{
    struct pollfd file = {.fd = net_fd(workloads->net), .events = POLLIN};
    workloads->alarm.due = on_alarm;
    net_call_at(workloads->net, &workloads->alarm, until_ms);
    (void)poll(&file, 1, /* timeout= */ -1);
    net_step(workloads->net);
    net_call_at(workloads->net, &workloads->alarm, NET_NEVER);
}

int64_t workloads_now_ms(const struct workloads *workloads)
{
    return workloads->date_ms + (host_boot_ms() - workloads->date_at_ms);
}

/* Of two answers the one that says the later time counts: seconds are cut off, not rounded. */
void workloads_set_clock(struct workloads *workloads, int64_t date_s)
{
    if (date_s < 0 || (workloads->date_ms != 0 && date_s * 1000 <= workloads_now_ms(workloads) &&
                       date_s * 1000 + 1000 > workloads_now_ms(workloads)))
        return;
    workloads->date_ms = date_s * 1000;
    workloads->date_at_ms = host_boot_ms();
}

/* ---- asking ---- */

static void on_reply(void *owner, const struct http_answer *answer)
{
    struct reply *reply = owner;
    reply->over = true;
    reply->status = answer->status;
    reply->retry_after_ms = answer->retry_after_ms;
    reply->json = kube_parse(answer->body, answer->body_length);
    reply->warnings = *answer->warnings != '\0' ? strdup(answer->warnings) : NULL;
    struct text why;
    text_init(&why, reply->why, sizeof reply->why);
    text_add_brief(&why, answer->status == 0 ? answer->why : kube_words(reply->json, "message"),
                   sizeof reply->why);
    reply->date_s = answer->date_s;
}

static void warn_once(struct workloads *workloads, const char *text)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (const char *at = text; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
    for (size_t i = 0; i < workloads->warned_count; i++) {
        if (workloads->warned[i] == hash)
            return;
    }
    if (workloads->warned_count == WARNINGS_MAX)
        return;
    workloads->warned[workloads->warned_count++] = hash;
    workloads->warn(workloads->warn_user, text);
}

/* Those about deprecated kinds come with every answer. */
static void tell_warnings(struct workloads *workloads, struct reply *reply)
{
    char *rest = NULL;
    if (workloads->warn == NULL || reply->warnings == NULL)
        return;
    for (char *line = strtok_r(reply->warnings, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        warn_once(workloads, line);
}

/* A credential plugin may have to be asked first. */
static void wait_for_login(struct workloads *workloads, int64_t give_up_at_ms)
{
    while (!kube_login_ready(workloads->login) && host_boot_ms() < give_up_at_ms)
        workloads_wait(workloads, give_up_at_ms);
}

static void ask_once(struct workloads *workloads, const struct kube_ask *ask, int64_t give_up_at_ms,
                     struct reply *reply)
{
    struct http_site site = {.done = on_reply, .owner = reply};
    *reply = (struct reply){.retry_after_ms = -1, .date_s = -1};
    wait_for_login(workloads, give_up_at_ms);
    struct kube_ask patient = *ask;
    struct text why;
    int64_t left_ms = give_up_at_ms - host_boot_ms();
    patient.most = ANSWER_MAX;
    patient.patience_ms = left_ms > 0 ? left_ms : 1;
    text_init(&why, reply->why, sizeof reply->why);
    if (kube_ask(workloads->login, workloads->http, &patient, &site, &why) == NULL)
        return;
    net_step(workloads->net);
    while (!reply->over)
        workloads_wait(workloads, NET_NEVER); /* http.h ends it when its patience is over */
    workloads_set_clock(workloads, reply->date_s);
    tell_warnings(workloads, reply);
}

static bool is_trouble(int status)
{
    return status == 0 || status == 429 || status >= 500;
}

void workloads_ask(struct workloads *workloads, const struct kube_ask *ask, struct reply *reply)
{
    int64_t began_ms = host_boot_ms(), give_up_at_ms = began_ms + workloads->patience_ms;
    struct backoff backoff;
    bool refused = false;
    backoff_init(&backoff, (uint64_t)began_ms, PAUSE_FIRST_MS, PAUSE_MOST_MS);
    for (;;) {
        ask_once(workloads, ask, give_up_at_ms, reply);
        bool again = is_trouble(reply->status) || (reply->status == 403 && workloads->permitted);
        if (reply->status == 200 || reply->status == 201)
            workloads->permitted = workloads->path[0] != '\0'; /* else it was the discovery */
        if (reply->status == 401 && !refused) {
            kube_login_refused(workloads->login);
            again = refused = true;
        }
        int64_t pause_ms = backoff_pause_ms(&backoff), now_ms = host_boot_ms();
        if (reply->retry_after_ms > pause_ms)
            pause_ms = reply->retry_after_ms;
        if (!again || now_ms + pause_ms >= give_up_at_ms)
            return;
        reply_done(reply);
        for (int64_t until_ms = now_ms + pause_ms; host_boot_ms() < until_ms;)
            workloads_wait(workloads, until_ms);
    }
}

void reply_done(struct reply *reply)
{
    json_decref(reply->json);
    free(reply->warnings);
    reply->json = NULL;
    reply->warnings = NULL;
}

void workloads_refuse(const struct reply *reply, struct workloads_answer *answer)
{
    bool denied = reply->status == 401 || reply->status == 403;
    bool wrong = reply->status >= 400 && reply->status < 500 && reply->status != 429 && !denied;
    answer->outcome = denied ? OUTCOME_DENIED : OUTCOME_UNAVAILABLE;
    answer->usage = wrong;
    struct text text;
    text_init(&text, answer->text, sizeof answer->text);
    if (reply->status != 0) {
        text_add(&text, "the API server answers ");
        text_add_i64(&text, reply->status);
        text_add(&text, ": ");
    }
    text_add_brief(&text, reply->why, sizeof answer->text);
}

/* ---- discovery ---- */

/* The resource of a kind, in what the API server says about its group; NULL: it has none. */
static const json_t *resource_of(const json_t *list, const char *kind)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(list, "resources"), index, entry)
    {
        const char *name = kube_words(entry, "name");
        /* A subresource has a slash; whatever else is none is not for a path. */
        if (strcmp(kube_words(entry, "kind"), kind) == 0 && *name != '\0' &&
            name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0')
            return entry;
    }
    return NULL;
}

static bool note_path(struct workloads *workloads, const char *base, const json_t *resource)
{
    const char *name = kube_words(resource, "name");
    int length;
    workloads->namespaced = json_is_true(json_object_get(resource, "namespaced"));
    if (workloads->namespaced)
        length = snprintf(workloads->path, PATH_SIZE, "%s/namespaces/%s/%s", base,
                          workloads->config.namespace, name);
    else
        length = snprintf(workloads->path, PATH_SIZE, "%s/%s", base, name);
    return length < PATH_SIZE;
}

bool workloads_discover(struct workloads *workloads, struct workloads_answer *answer)
{
    const char *version = kube_words(workloads->manifest, "apiVersion");
    const char *kind = kube_words(workloads->manifest, "kind");
    char base[PATH_SIZE];
    struct reply reply;
    if (workloads->path[0] != '\0')
        return true;
    (void)snprintf(base, sizeof base, "/%s/%s", strchr(version, '/') != NULL ? "apis" : "api",
                   version);
    struct kube_ask ask = {.method = "GET", .path = base};
    workloads_ask(workloads, &ask, &reply);
    const json_t *resource = reply.status == 200 ? resource_of(reply.json, kind) : NULL;
    bool found = resource != NULL && note_path(workloads, base, resource);
    if (!found && reply.status != 200 && reply.status != 404) {
        workloads_refuse(&reply, answer);
    } else if (!found) {
        workloads->path[0] = '\0';
        answer->usage = true;
        (void)snprintf(answer->text, sizeof answer->text,
                       "the API server knows no kind %.60s of %.60s", kind, version);
    }
    reply_done(&reply);
    return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports lock events as Events of the Lease, for `kubectl describe lease` and event collectors;
 * only with ?events=on. Each is sent once and never retried; only k8s_events_drain() waits for
 * them. No rule depends on an Event.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EVENT_REPLY_MAX = 64 * 1024, DRAIN_MS = 1000 };

static void k8s_event_on_reply(void *owner, const struct json_reply *reply)
{
    (void)owner;
    (void)reply; /* no recovery is possible */
}

/* kubectl shows Events by the uid of the Lease; for a removed Lease this is its last uid. */
static const char *k8s_event_uid(struct k8s *k8s, const char *name)
{
    const struct cached_lease *cached = lease_cache_find(k8s, name);
    if (cached != NULL)
        return kube_string(json_object_get(cached->json, "metadata"), "uid");
    return strcmp(k8s->last_removed.name, name) == 0 ? k8s->last_removed.uid : "";
}

static json_t *k8s_event_make(struct k8s *k8s, const struct store_event *event, const char *name)
{
    char now_text[32];
    time_t now = (time_t)(host_wall_ms() / 1000);
    struct tm parts;
    const char *space = k8s->kube.config.namespace;
    (void)strftime(now_text, sizeof now_text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    bool more = event->more[0] != '\0';
    json_t *message =
        json_sprintf("%s by %s%s%s", event->key, event->holder, more ? ": " : "", event->more);
    const char *uid = k8s_event_uid(k8s, name);
    return json_pack("{s:s, s:s, s:{s:s+, s:s}, s:{s:s, s:s, s:s, s:s, s:s*}, s:s, s:o, s:s,"
                     " s:{s:s}, s:s, s:s, s:i}",
                     "apiVersion", "v1", "kind", "Event", "metadata", "generateName", name, ".",
                     "namespace", space, "involvedObject", "apiVersion", "coordination.k8s.io/v1",
                     "kind", "Lease", "namespace", space, "name", name, "uid",
                     *uid != '\0' ? uid : NULL, "reason", event->reason, "message", message, "type",
                     event->warns ? "Warning" : "Normal", "source", "component", "leasehold",
                     "firstTimestamp", now_text, "lastTimestamp", now_text, "count", 1);
}

static struct json_request *k8s_event_find(struct k8s *k8s, bool idle)
{
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        if ((k8s->events[i].api == NULL) == idle)
            return &k8s->events[i];
    }
    return NULL;
}

void k8s_event_send(void *state, const struct store_event *event)
{
    struct k8s *k8s = state;
    char name[K8S_NAME_MAX + 1], path[K8S_NAME_MAX + 64];
    struct json_callbacks callbacks = {.done = k8s_event_on_reply, .owner = k8s};
    struct json_request *idle = k8s_event_find(k8s, /* idle= */ true);
    if (!k8s->url.events || idle == NULL || !k8s_name_of(&k8s->url, event->key, name))
        return;
    (void)snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", k8s->kube.config.namespace);
    json_t *body = k8s_event_make(k8s, event, name);
    struct json_call call = {.method = "POST",
                             .path = path,
                             .body = body,
                             .most = EVENT_REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + k8s->callbacks.timeout_ms};
    json_request_start(idle, k8s->kube.json, &call, &callbacks);
    json_decref(body);
}

void k8s_events_drain(struct k8s *k8s)
{
    int64_t give_up_at_ms = host_boot_ms() + DRAIN_MS;
    while (k8s_event_find(k8s, /* idle= */ false) != NULL) {
        int64_t left_ms = give_up_at_ms - host_boot_ms();
        struct pollfd file = {.fd = poller_fd(k8s->kube.poller), .events = POLLIN};
        if (left_ms <= 0 || poll(&file, 1, (int)left_ms) < 0)
            return;
        poller_step(k8s->kube.poller);
    }
}

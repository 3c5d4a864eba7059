/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a lock, as Events of its Lease, for `kubectl describe lease` and whoever collects
 * Events: with ?events=on only. Told once, never repeated, never waited for but at the very end; no
 * rule depends on one.
 */
#include "io/host.h"
#include "store/k8s/k8s_inside.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REMARKS_MAX = 16, REMARK_ANSWER = 64 * 1024, DRAIN_MS = 1000 };

static void on_told(void *owner, const struct http_answer *answer)
{
    struct k8s *k8s = owner;
    (void)answer; /* nobody could do anything about it */
    k8s->remarks--;
}

/* kubectl shows the Events whose uid is the Lease's; of one that is gone its last. */
static const char *uid_of(struct k8s *k8s, const char *name)
{
    const struct memo *memo = memo_of(k8s, name);
    if (memo != NULL)
        return kube_words(json_object_get(memo->json, "metadata"), "uid");
    return strcmp(k8s->forgotten.name, name) == 0 ? k8s->forgotten.uid : "";
}

static json_t *event_of(struct k8s *k8s, const struct store_remark *remark, const char *name)
{
    char moment[32];
    time_t now = (time_t)(host_wall_ms() / 1000);
    struct tm parts;
    const char *space = k8s->config.namespace;
    (void)strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    bool more = remark->more[0] != '\0';
    json_t *words =
        json_sprintf("%s by %s%s%s", remark->key, remark->holder, more ? ": " : "", remark->more);
    const char *uid = uid_of(k8s, name);
    return json_pack("{s:s, s:s, s:{s:s+, s:s}, s:{s:s, s:s, s:s, s:s, s:s*}, s:s, s:o, s:s,"
                     " s:{s:s}, s:s, s:s, s:i}",
                     "apiVersion", "v1", "kind", "Event", "metadata", "generateName", name, ".",
                     "namespace", space, "involvedObject", "apiVersion", "coordination.k8s.io/v1",
                     "kind", "Lease", "namespace", space, "name", name, "uid",
                     *uid != '\0' ? uid : NULL, "reason", remark->word, "message", words, "type",
                     remark->warns ? "Warning" : "Normal", "source", "component", "leasehold",
                     "firstTimestamp", moment, "lastTimestamp", moment, "count", 1);
}

void k8s_remark(void *state, const struct store_remark *remark)
{
    struct k8s *k8s = state;
    char name[K8S_NAME_MAX + 1], place[K8S_NAME_MAX + 64];
    struct http_site site = {.done = on_told, .owner = k8s};
    if (!k8s->url.events || k8s->remarks >= REMARKS_MAX || !kube_login_ready(k8s->login) ||
        !k8s_name_of(&k8s->url, remark->key, name))
        return;
    (void)snprintf(place, sizeof place, "/api/v1/namespaces/%s/events", k8s->config.namespace);
    json_t *event = event_of(k8s, remark, name);
    if (event != NULL && k8s_ask_at(k8s, "POST", place, event, REMARK_ANSWER,
                                    host_boot_ms() + k8s->site.patience_ms, &site) != NULL)
        k8s->remarks++;
    json_decref(event);
}

void remarks_drain(struct k8s *k8s)
{
    int64_t give_up_at_ms = host_boot_ms() + DRAIN_MS;
    while (k8s->remarks > 0) {
        int64_t left_ms = give_up_at_ms - host_boot_ms();
        struct pollfd file = {.fd = net_fd(k8s->net), .events = POLLIN};
        if (left_ms <= 0 || poll(&file, 1, (int)left_ms) < 0)
            return;
        net_step(k8s->net);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store: records are Leases of one namespace, revisions are etcd's, the clock is the
 * API server's, in whole seconds. Nothing here decides; nothing blocks. This file has the driver
 * interface; k8s_request.c executes requests, k8s_watch.c runs the watch, k8s_collect.c removes
 * expired Leases.
 */
#include "base/check.h"
#include "store/k8s/k8s_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- replies ---- */

struct store_reply k8s_lease_reply(struct k8s *k8s, const struct k8s_lease *lease, const char *key)
{
    struct store_reply reply = {
        .result = REPLY_OK, .key = key, .written = lease->written, .now_ms = TIME_UNKNOWN};
    if (lease->state == K8S_LEASE_OURS) {
        reply.bytes = lease->record;
        reply.length = strlen(lease->record);
    } else if (lease->state == K8S_LEASE_FOREIGN) {
        const struct cached_lease *cached = lease_cache_find(k8s, lease->name);
        reply.bytes = k8s->encoded;
        reply.length =
            k8s_lease_foreign_record(lease, key, cached != NULL ? cached->local_record : NULL,
                                     &k8s->scratch, k8s->encoded, sizeof k8s->encoded);
    }
    reply.present = reply.length > 0;
    if (!reply.present)
        reply.written = (struct stamp){0};
    return reply;
}

/* The annotation may come from another client. */
static bool is_key(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= KEY_MAX && text_is_clean(text, length);
}

const char *k8s_key_of(const struct k8s *k8s, const struct k8s_lease *lease)
{
    char name[K8S_NAME_MAX + 1];
    size_t prefix = strlen(k8s->url.prefix);
    const char *key = lease->key;
    /* Other programs use keys as names of Leases; a name without our prefix is not a key. */
    if (key == NULL && strncmp(lease->name, k8s->url.prefix, prefix) == 0)
        key = lease->name + prefix;
    bool named = key != NULL && is_key(key) && k8s_name_of(&k8s->url, key, name);
    return named && strcmp(name, lease->name) == 0 ? key : NULL;
}

bool k8s_is_any_of_ours(const struct k8s_lease *lease, struct k8s_url *scheme)
{
    return lease->key != NULL && is_key(lease->key) &&
           k8s_scheme_of(lease->name, lease->key, scheme);
}

/* ---- driver interface ---- */

static bool k8s_open(void *state, const char *url, const struct store_callbacks *callbacks,
                     struct text *why)
{
    struct k8s *k8s = state;
    memset(k8s, 0, offsetof(struct k8s, scratch));
    k8s->callbacks = *callbacks;
    if (k8s->callbacks.timeout_ms <= 0)
        k8s->callbacks.timeout_ms = TIMEOUT_DEFAULT_MS;
    text_add(why, "usage: ");
    if (!k8s_url_parse(url, &k8s->url, why))
        return false;
    text_clear(why);
    if (!kube_api_open(&k8s->kube, &k8s->url, k8s->callbacks.timeout_ms, /* warning= */ NULL,
                       /* user= */ NULL, why))
        return false;
    k8s->magic = K8S_MAGIC;
    k8s_requests_init(k8s);
    (void)snprintf(k8s->leases, sizeof k8s->leases,
                   "/apis/coordination.k8s.io/v1/namespaces/%s/leases", k8s->kube.config.namespace);
    k8s_watch_init(k8s, callbacks->session);
    k8s_collect_init(k8s, callbacks->session);
    return true;
}

static void k8s_close(void *state)
{
    struct k8s *k8s = state;
    ASSERT(k8s->magic == K8S_MAGIC);
    pending_done(&k8s->pending);
    k8s_watch_done(k8s);
    k8s_collect_done(k8s);
    k8s_events_drain(k8s);
    poller_call_at(k8s->kube.poller, &k8s->wake_timer, POLLER_NEVER);
    kube_api_close(&k8s->kube);
    lease_cache_clear(k8s);
    k8s->magic = 0;
}

static void k8s_step(void *state)
{
    struct k8s *k8s = state;
    ASSERT(k8s->magic == K8S_MAGIC);
    k8s_requests_start(k8s);
    poller_step(k8s->kube.poller);
}

static int k8s_fd(void *state)
{
    const struct k8s *k8s = state;
    return poller_fd(k8s->kube.poller);
}

static void k8s_facts_at(const char *url, struct store_facts *facts)
{
    struct k8s_url parsed;
    if (k8s_url_parse(url, &parsed, NULL))
        facts->margin_ms += parsed.skew_ms;
}

static bool k8s_lease_name(const char *url, const char *key, struct text *out, struct text *why)
{
    struct k8s_url parsed;
    char name[K8S_NAME_MAX + 1];
    if (!k8s_url_parse(url, &parsed, why))
        return false;
    if (!k8s_name_of(&parsed, key, name)) {
        text_add(why, "the key is not a valid Lease name, or reserved; ?names=auto hashes it");
        return false;
    }
    text_add(out, name);
    return true;
}

const struct store_driver k8s_driver = {
    .scheme = "k8s",
    .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_DELETES |
                    STORE_TOKENS_RESTART | STORE_TOKENS_FAILOVER | STORE_EPOCH,
    .state_size = sizeof(struct k8s),
    .descriptors = 5,
    .facts = {STORE_USUAL_FACTS(WAITERS_MAX - OFFERS_MAX), .answer_ms = 200, .takeover_ms = 750,
              .ttl_least_ms = 1000, .margin_ms = MARGIN_MS},
    .facts_at = k8s_facts_at,
    .open = k8s_open,
    .close = k8s_close,
    .submit = k8s_request_add,
    .step = k8s_step,
    .fd = k8s_fd,
    .name = k8s_lease_name,
    .event = k8s_event_send,
    .diagnose = k8s_diagnose,
    .collect = k8s_collect,
    .epoch = k8s_epoch,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store: records are Leases of one namespace, revisions are etcd's, the clock is the
 * API server's, in whole seconds. Nothing here decides; nothing blocks. The seam's face is here,
 * and how the API server is asked; errand.c carries requests out, watch.c listens, collect.c
 * tidies up.
 */
#include "base/check.h"
#include "io/host.h"
#include "store/k8s/k8s_inside.h"
#include "wire/url_shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_SHOWN = 300 }; /* of a message of the API server */

/* ---- asking ---- */

struct http_request *k8s_ask_at(struct k8s *k8s, const char *method, const char *place,
                                const json_t *body, size_t most, int64_t give_up_at_ms,
                                const struct http_site *site)
{
    struct kube_ask ask = {.method = method,
                           .path = place,
                           .body = body,
                           .patch = strcmp(method, "PATCH") == 0,
                           .most = most,
                           .patience_ms = give_up_at_ms - host_boot_ms()};
    struct text why;
    text_init(&why, k8s->why, sizeof k8s->why);
    if (ask.patience_ms > 0)
        return kube_ask(k8s->login, k8s->http, &ask, site, &why);
    text_add(&why, "the API server was asked too late");
    return NULL;
}

struct http_request *k8s_ask(struct k8s *k8s, const char *method, const char *path,
                             const json_t *body, size_t most, int64_t give_up_at_ms,
                             const struct http_site *site)
{
    char place[PAGE_PATH + 256];
    (void)snprintf(place, sizeof place, "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s",
                   k8s->config.namespace, path);
    return k8s_ask_at(k8s, method, place, body, most, give_up_at_ms, site);
}

void k8s_page_path(char out[PAGE_PATH], const char *next)
{
    (void)snprintf(out, PAGE_PATH,
                   "?limit=%d&labelSelector=app.kubernetes.io%%2Fmanaged-by%%3Dleasehold%s%s", PAGE,
                   next != NULL ? "&continue=" : "", next != NULL ? next : "");
}

/* ---- answers ---- */

const char *k8s_explain(struct k8s *k8s, const struct http_answer *answer)
{
    if (answer->status == 0)
        return answer->why;
    json_t *json = kube_parse(answer->body, answer->body_length);
    struct text why;
    text_init(&why, k8s->why, sizeof k8s->why);
    text_add(&why, "the API server answers ");
    text_add_i64(&why, answer->status);
    text_add(&why, ": ");
    text_add_brief(&why, kube_words(json, "message"), WORDS_SHOWN);
    json_decref(json);
    return k8s->why;
}

struct store_answer k8s_answer(struct k8s *k8s, const struct object *object, const char *key)
{
    struct store_answer answer = {
        .result = ANSWER_OK, .key = key, .written = object->written, .now_ms = TIME_UNKNOWN};
    if (object->state == OBJECT_OURS) {
        answer.bytes = object->record;
        answer.length = strlen(object->record);
    } else if (object->state == OBJECT_FOREIGN) {
        const struct memo *memo = memo_of(k8s, object->name);
        answer.bytes = k8s->encoded;
        answer.length = object_foreign_record(object, key, memo != NULL ? memo->beside : NULL,
                                              &k8s->scratch, k8s->encoded, sizeof k8s->encoded);
    }
    answer.present = answer.length > 0;
    if (!answer.present)
        answer.written = (struct stamp){0};
    return answer;
}

/* Somebody else may have annotated it. */
static bool is_key(const char *words)
{
    size_t length = strlen(words);
    return length > 0 && length <= KEY_MAX && text_is_clean(words, length);
}

const char *k8s_key_of(const struct k8s *k8s, const struct object *object)
{
    char name[K8S_NAME_MAX + 1];
    size_t prefix = strlen(k8s->url.prefix);
    const char *key = object->key;
    /* Others give Leases names that are keys; what begins otherwise is none of our business. */
    if (key == NULL && strncmp(object->name, k8s->url.prefix, prefix) == 0)
        key = object->name + prefix;
    bool named = key != NULL && is_key(key) && k8s_name_of(&k8s->url, key, name);
    return named && strcmp(name, object->name) == 0 ? key : NULL;
}

bool k8s_is_any_of_ours(const struct object *object, struct k8s_url *scheme)
{
    return object->key != NULL && is_key(object->key) &&
           k8s_scheme_of(object->name, object->key, scheme);
}

/* ---- the seam ---- */

static void on_later(void *owner)
{
    errands_advance(owner);
}

static bool open_k8s(void *state, const char *url, const struct store_site *site, struct text *why)
{
    struct k8s *k8s = state;
    memset(k8s, 0, offsetof(struct k8s, scratch));
    if (!k8s_url_parse(url, &k8s->url, why) || !kube_config_load(&k8s->config, &k8s->url, why))
        return false;
    k8s->magic = K8S_MAGIC;
    k8s->site = *site;
    if (k8s->site.patience_ms <= 0)
        k8s->site.patience_ms = PATIENCE_MS;
    k8s->later.due = on_later;
    k8s->later.owner = k8s;
    k8s->net = net_new();
    if (k8s->net != NULL) {
        k8s->http = http_new(k8s->net);
        k8s->login = kube_login_new(k8s->net, &k8s->config, on_later, k8s);
    }
    if (k8s->http == NULL || k8s->login == NULL) {
        http_free(&k8s->http);
        kube_login_free(&k8s->login);
        net_free(&k8s->net);
        kube_config_done(&k8s->config);
        text_add(why, "memory or descriptors are short");
        return false;
    }
    watch_init(k8s, site->session);
    collector_init(k8s, site->session);
    return true;
}

static void close_k8s(void *state)
{
    struct k8s *k8s = state;
    ASSERT(k8s->magic == K8S_MAGIC);
    errand_drop_all(k8s);
    watch_done(k8s);
    collector_done(k8s);
    remarks_drain(k8s);
    net_call_at(k8s->net, &k8s->later, NET_NEVER);
    http_free(&k8s->http);
    kube_login_free(&k8s->login);
    net_free(&k8s->net);
    kube_config_done(&k8s->config);
    memo_forget_all(k8s);
    k8s->magic = 0;
}

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    errand_add(state, request, done, caller);
}

static void step(void *state)
{
    struct k8s *k8s = state;
    ASSERT(k8s->magic == K8S_MAGIC);
    errands_advance(k8s);
    net_step(k8s->net);
}

static int fd(void *state)
{
    const struct k8s *k8s = state;
    return net_fd(k8s->net);
}

static int64_t margin_of(const char *url)
{
    struct k8s_url parsed;
    return k8s_url_parse(url, &parsed, NULL) ? MARGIN_MS + parsed.skew_ms : MARGIN_MS;
}

static bool name_of(const char *url, const char *key, struct text *out, struct text *why)
{
    struct k8s_url parsed;
    char name[K8S_NAME_MAX + 1];
    if (!k8s_url_parse(url, &parsed, why))
        return false;
    if (!k8s_name_of(&parsed, key, name)) {
        text_add(why, "the key is no name of a Lease; names=auto would hash it");
        return false;
    }
    text_add(out, name);
    return true;
}

const struct store_driver k8s_driver = {
    .scheme = "k8s",
    .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_DELETES |
                    STORE_TOKENS_RESTART | STORE_TOKENS_FAILOVER,
    .state_size = sizeof(struct k8s),
    .descriptors = 5,
    .ttl_least_ms = 1000,
    .open = open_k8s,
    .close = close_k8s,
    .submit = submit,
    .step = step,
    .fd = fd,
    .margin_ms = margin_of,
    .name = name_of,
    .remark = k8s_remark,
};

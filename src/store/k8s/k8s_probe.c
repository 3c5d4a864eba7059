/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_probe.h. Opens the driver and sends its own requests next to those of the driver. */
#include "store/k8s/k8s_probe.h"

#include "process/host.h"
#include "store/k8s/k8s_internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_REPLY_MAX = 1 << 20, TOKEN_PART = 4096, LOGIN_POLL_MS = 50 };

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

struct k8s_probe *k8s_probe_new(const char *url, int64_t timeout_ms, struct text *why)
{
    struct k8s_probe *probe = calloc(1, sizeof *probe);
    struct store_callbacks callbacks = {.clock = {.now_ms = no_time},
                                        .session = (uint64_t)host_boot_ms(),
                                        .timeout_ms = timeout_ms};
    if (probe == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    if (k8s_driver.open(&probe->k8s, url, &callbacks, why))
        return probe;
    free(probe);
    return NULL;
}

void k8s_probe_free(struct k8s_probe **probe)
{
    if (*probe == NULL)
        return;
    k8s_driver.close(&(*probe)->k8s);
    free(*probe);
    *probe = NULL;
}

int64_t k8s_probe_token_ends_s(struct k8s_probe *probe)
{
    struct k8s *k8s = &probe->k8s;
    const char *bearer = NULL;
    char text[WHY_SIZE], claims[TOKEN_PART];
    struct text why;
    text_init(&why, text, sizeof text);
    if (k8s->config.plugin != NULL || !kube_login_ready(k8s->login) ||
        !kube_login_bearer(k8s->login, &bearer, &why) || bearer == NULL)
        return -1;
    /* "header.claims.signature", or a token of another kind. */
    const char *at = strchr(bearer, '.');
    size_t length = at != NULL && strlen(at) < sizeof claims ? kube_decode64(at + 1, claims) : 0;
    json_t *json = json_loadb(claims, length, JSON_ALLOW_NUL, NULL);
    const json_t *end = json_object_get(json, "exp");
    int64_t end_s = json_is_integer(end) ? json_integer_value(end) : -1;
    json_decref(json);
    explicit_bzero(claims, sizeof claims);
    return end_s;
}

const char *k8s_probe_namespace(const struct k8s_probe *probe)
{
    return probe->k8s.config.namespace;
}

/* ---- requests ---- */

/* Waits for one event, at most `most_ms`. */
static void k8s_probe_poll(struct k8s_probe *probe, int64_t most_ms)
{
    struct pollfd news = {.fd = poller_fd(probe->k8s.poller), .events = POLLIN};
    (void)poll(&news, 1, (int)most_ms);
    poller_step(probe->k8s.poller);
}

static void k8s_probe_on_reply(void *owner, const struct http_response *response)
{
    struct k8s_probe *probe = owner;
    struct k8s_reply *reply = probe->reply;
    probe->over = true;
    reply->status = response->status;
    reply->date_s = response->date_s;
    reply->json = kube_parse(response->body, response->body_length);
    if (response->status < 200 || response->status > 299)
        (void)snprintf(reply->why, sizeof reply->why, "%s", k8s_explain(&probe->k8s, response));
}

void k8s_probe_call(struct k8s_probe *probe, const char *method, const char *path, json_t *body,
                    struct k8s_reply *out)
{
    struct k8s *k8s = &probe->k8s;
    struct http_callbacks callbacks = {.done = k8s_probe_on_reply, .owner = probe};
    int64_t began_ms = host_boot_ms(), until_ms = began_ms + k8s->callbacks.timeout_ms;
    *out = (struct k8s_reply){.date_s = -1};
    probe->reply = out;
    probe->over = false;
    while (!kube_login_ready(k8s->login) && host_boot_ms() < until_ms)
        k8s_probe_poll(probe, LOGIN_POLL_MS);
    began_ms = host_boot_ms();
    if (k8s_call(k8s, method, path, body, PROBE_REPLY_MAX, until_ms, &callbacks) == NULL) {
        (void)snprintf(out->why, sizeof out->why, "%s", k8s->why);
        probe->over = true;
    }
    json_decref(body);
    while (!probe->over)
        k8s_probe_poll(probe, /* most_ms= */ 1000);
    out->took_ms = host_boot_ms() - began_ms;
}

void k8s_reply_done(struct k8s_reply *reply)
{
    json_decref(reply->json);
    reply->json = NULL;
}

/* ---- leftovers ---- */

static void k8s_probe_on_collected(void *owner, const struct collection *tally)
{
    struct k8s_probe *probe = owner;
    probe->over = true;
    *probe->collection = *tally;
}

void k8s_probe_collect(struct k8s_probe *probe, unsigned rate, struct collection *out)
{
    probe->collection = out;
    probe->over = false;
    collector_begin(&probe->k8s, rate, k8s_probe_on_collected, probe);
    while (!probe->over)
        k8s_probe_poll(probe, /* most_ms= */ 1000);
}

/* Leases first, then the objects of a kind. */
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why)
{
    struct k8s_probe *probe = k8s_probe_new(url, options->timeout_ms, why);
    if (probe == NULL)
        return false;
    k8s_probe_collect(probe, options->rate, out);
    if (options->kind != NULL && out->why[0] == '\0') {
        unsigned left = out->left, removed = out->removed, taken = out->taken;
        options->collect_objects(probe, options, out);
        out->left += left;
        out->removed += removed;
        out->taken += taken;
    }
    k8s_probe_free(&probe);
    return true;
}

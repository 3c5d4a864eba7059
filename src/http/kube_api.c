/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_api.h. */
#include "http/kube_api.h"

#include "process/host.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE = 50 /* objects */, REPLY_MAX = 8 << 20 };

const char *const kube_merge_patch[] = {"Content-Type: application/merge-patch+json", NULL};

/* ---- start and end ---- */

static bool kube_api_ready(void *owner)
{
    return kube_login_ready(((struct kube_api *)owner)->login);
}

static bool kube_api_credential(void *owner, const char **out, struct text *why)
{
    return kube_login_bearer(((struct kube_api *)owner)->login, out, why);
}

static void kube_api_refused(void *owner)
{
    kube_login_refused(((struct kube_api *)owner)->login);
}

static void kube_api_on_login(void *owner)
{
    json_api_wake(((struct kube_api *)owner)->json);
}

bool kube_api_open(struct kube_api *kube, const struct k8s_url *url, int64_t timeout_ms,
                   void (*warning)(void *user, const char *text), void *user, struct text *why)
{
    *kube = (struct kube_api){.timeout_ms = timeout_ms};
    if (!kube_config_load(&kube->config, url, why))
        return false;
    struct json_api_options options = {.name = "the API server",
                                       .server = kube->config.server,
                                       .tls = &kube->config.tls,
                                       .proxy = kube->config.proxy,
                                       .scheme = "Bearer",
                                       .login = {.ready = kube_api_ready,
                                                 .credential = kube_api_credential,
                                                 .refused = kube_api_refused,
                                                 .owner = kube},
                                       .pause_max_ms = timeout_ms,
                                       .warning = warning,
                                       .user = user};
    kube->poller = poller_new();
    if (kube->poller != NULL) {
        kube->json = json_api_new(kube->poller, &options);
        kube->login = kube_login_new(kube->poller, &kube->config, kube_api_on_login, kube);
    }
    if (kube->json != NULL && kube->login != NULL)
        return true;
    kube_api_close(kube);
    text_add(why, "out of memory or file descriptors");
    return false;
}

void kube_api_close(struct kube_api *kube)
{
    if (kube->config.server == NULL)
        return;
    json_api_free(&kube->json);
    kube_login_free(&kube->login);
    poller_free(&kube->poller);
    kube_config_done(&kube->config);
}

void kube_call(struct kube_api *kube, const char *method, const char *path, json_t *body,
               struct json_result *out)
{
    struct json_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .headers = strcmp(method, "PATCH") == 0 ? kube_merge_patch : NULL,
                             .most = REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + kube->timeout_ms};
    json_api_call(kube->json, &call, out);
    json_decref(body);
}

/* ---- lists ---- */

void kube_page_path(char out[KUBE_PATH_MAX], const char *objects, const char *selector,
                    const struct json_pages *pages)
{
    bool first = pages->next == NULL;
    (void)snprintf(out, KUBE_PATH_MAX, "%s?limit=%d&%s%s%s", objects, PAGE, selector,
                   first ? "" : "&continue=", first ? "" : pages->next);
}

const json_t *kube_page_items(struct json_pages *pages, const json_t *page, size_t length,
                              const char **wrong)
{
    const json_t *items = json_object_get(page, "items");
    *wrong =
        json_pages_turn(pages, kube_string(json_object_get(page, "metadata"), "continue"), length);
    if (!json_is_array(items) && !json_is_null(items)) /* null: Go's empty slice */
        *wrong = "the reply is not a list";
    return items;
}

/* ---- objects ---- */

const char *kube_string(const json_t *object, const char *name)
{
    const char *string = json_string_value(json_object_get(object, name));
    return string != NULL ? string : "";
}

bool kube_set_string(json_t *object, const char *name, const char *string)
{
    return json_object_set_new(object, name, json_string(string)) == 0;
}

json_t *kube_child(json_t *object, const char *name)
{
    json_t *child = json_object_get(object, name);
    if (json_is_object(child))
        return child;
    return json_object_set_new(object, name, json_object()) == 0 ? json_object_get(object, name)
                                                                 : NULL;
}

int64_t kube_time_ms(const char *string)
{
    struct tm tm = {0};
    const char *end = strptime(string, "%Y-%m-%dT%H:%M:%S", &tm);
    time_t at = end != NULL && (*end == 'Z' || *end == '.') ? timegm(&tm) : -1;
    return at >= 0 ? (int64_t)at * 1000 : -1;
}

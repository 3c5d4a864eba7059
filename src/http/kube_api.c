/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_api.h. */
#include "http/kube_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIGITS_EXACT = 15 }; /* keeps 0.1 as written: 0.10000000000000001 is 101m of a CPU */

struct http_request *kube_call(struct kube_login *login, struct http *http,
                               const struct kube_call *call, const struct http_callbacks *callbacks,
                               struct text *why)
{
    const char *headers[] = {call->patch ? "Content-Type: application/merge-patch+json"
                                         : "Content-Type: application/json",
                             "Accept: application/json", "User-Agent: leasehold", NULL};
    const struct kube_config *config = kube_login_config(login);
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(DIGITS_EXACT);
    char *url = NULL, *body = call->body != NULL ? json_dumps(call->body, flags) : NULL;
    struct http_request *request = NULL;
    const char *bearer = NULL;
    if (!kube_login_bearer(login, &bearer, why))
        goto out;
    if (asprintf(&url, "%s%s", config->server, call->path) < 0)
        url = NULL;
    struct http_options http_options = {.method = call->method,
                                        .url = url,
                                        .headers = headers,
                                        .body = body,
                                        .body_length = body != NULL ? strlen(body) : 0,
                                        .bearer = bearer,
                                        .tls = config->tls,
                                        .proxy = config->proxy,
                                        .timeout_ms = call->timeout_ms,
                                        .most = call->most};
    /* A change needs its body, which is NULL when out of memory. */
    if (url != NULL && (body != NULL || strcmp(call->method, "GET") == 0))
        request = http_start(http, &http_options, callbacks);
    if (request == NULL)
        text_add(why, "out of memory");
out:
    free(url);
    free(body);
    return request;
}

/* ---- objects ---- */

/* An array of empty objects takes a hundred times as much memory as its text. */
size_t kube_parsed_size(const char *bytes, size_t length)
{
    enum { CONTAINER = 320, MEMBER = 96 };
    size_t size = length;
    bool in_text = false;
    for (size_t i = 0; i < length; i++) {
        if (in_text && bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            in_text = !in_text;
        else if (!in_text && (bytes[i] == '{' || bytes[i] == '['))
            size += CONTAINER;
        else if (!in_text && bytes[i] == ',')
            size += MEMBER;
    }
    return size;
}

json_t *kube_parse(const char *bytes, size_t length)
{
    enum { PARSED_MAX = 32 << 20 };
    return kube_parsed_size(bytes, length) <= PARSED_MAX
               ? json_loadb(bytes, length, JSON_ALLOW_NUL, NULL)
               : NULL;
}

/* The token becomes part of a URL. */
static bool is_continue_token(const char *string)
{
    static const char fine[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.";
    size_t length = strspn(string, fine);
    return length <= KUBE_TOKEN_MAX && string[length] == '\0';
}

char *kube_list_next(const json_t *page, const char *before, const char **wrong)
{
    const char *next = kube_string(json_object_get(page, "metadata"), "continue");
    if (*next == '\0')
        return NULL;
    if (!is_continue_token(next) || (before != NULL && strcmp(next, before) == 0)) {
        *wrong = "the API server's list has an invalid or repeated continue token";
        return NULL;
    }
    char *copy = strdup(next);
    if (copy == NULL)
        *wrong = "out of memory";
    return copy;
}

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

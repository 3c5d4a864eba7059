/* SPDX-License-Identifier: Apache-2.0 */
/* See json_api.h. No request waits beyond its deadline, neither for a credential nor for a pause.
 */
#include "http/json_api.h"

#include "base/check.h"
#include "core/record.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    API_MAGIC = 0x350a,
    CALL_HEADERS_MAX = 8,
    PAUSE_FIRST_MS = 100,
    PAUSE_MAX_MS = 2000,
    TOO_EARLY_MS = 500, /* after a 429 without Retry-After */
    MESSAGE_SHOWN = 300,
    DIGITS_EXACT = 15, /* keeps 0.1 as written: 0.10000000000000001 is 101m of a CPU */
    TOKEN_MAX = 2047,
    LIST_MAX = 256 << 20, /* bytes of all pages */
};

struct json_api {
    uint32_t magic;
    struct json_api_options options;
    struct poller *poller;
    struct http *http;
    struct list requests;     /* in order of their start */
    struct poller_timer wake; /* for those that are not sent yet */
    int64_t paused_until_ms;
    bool permitted;     /* a call with `forbidden_later` has succeeded */
    char why[JSON_WHY]; /* of the last json_request_try() */
};

static void json_request_on_done(void *owner, const struct http_response *response);
static size_t json_request_on_piece(void *owner, const char *bytes, size_t length);

/* ---- sending ---- */

static void json_api_wake_at(struct json_api *api, int64_t at_ms)
{
    if (api->wake.poller == NULL || at_ms < api->wake.at_ms)
        poller_call_at(api->poller, &api->wake, at_ms);
}

void json_api_wake(struct json_api *api)
{
    json_api_wake_at(api, host_boot_ms());
}

static int64_t json_request_send_by_ms(const struct json_request *request)
{
    int64_t give_up_at_ms = request->call.give_up_at_ms, send_by_ms = request->call.send_by_ms;
    return send_by_ms > 0 && send_by_ms < give_up_at_ms ? send_by_ms : give_up_at_ms;
}

static bool json_request_post(struct json_api *api, struct json_request *request,
                              const char *credential, int64_t timeout_ms)
{
    const struct json_api_options *options = &api->options;
    const char *headers[CALL_HEADERS_MAX + 4] = {
        options->accept != NULL ? options->accept : "Accept: application/json",
        "User-Agent: leasehold"};
    const char *const *more = request->call.headers;
    for (size_t i = 0; more != NULL && more[i] != NULL && i < CALL_HEADERS_MAX; i++)
        headers[2 + i] = more[i];
    if (more == NULL && request->body != NULL)
        headers[2] = "Content-Type: application/json";
    struct http_options http_options = {.method = request->call.method,
                                        .url = request->url,
                                        .headers = headers,
                                        .body = request->body,
                                        .body_length =
                                            request->body != NULL ? strlen(request->body) : 0,
                                        .credential = credential,
                                        .scheme = options->scheme,
                                        .tls = *options->tls,
                                        .proxy = options->proxy,
                                        .timeout_ms = timeout_ms,
                                        .send_by_ms = request->call.send_by_ms,
                                        .most = request->call.most};
    struct http_callbacks callbacks = {
        .piece = request->callbacks.line != NULL ? json_request_on_piece : NULL,
        .done = json_request_on_done,
        .owner = request};
    request->http = http_start(api->http, &http_options, &callbacks);
    return request->http != NULL;
}

/* NULL: it is sent, or waits for its time or the credential. Otherwise the reason why not. */
static const char *json_request_try(struct json_api *api, struct json_request *request)
{
    const struct json_login *login = &api->options.login;
    int64_t now_ms = host_boot_ms(), send_by_ms = json_request_send_by_ms(request);
    int64_t at_ms = api->paused_until_ms > request->not_before_ms ? api->paused_until_ms
                                                                  : request->not_before_ms;
    const char *credential = NULL;
    struct text why;
    text_init(&why, api->why, sizeof api->why);
    /* A change needs its body: without one, a deletion would be unconditional. */
    if (request->url == NULL || (request->body == NULL && strcmp(request->call.method, "GET") != 0))
        return "out of memory";
    if (at_ms > now_ms && at_ms >= send_by_ms) {
        TEXT_JOIN(&why, api->options.name, " asks for a pause of ");
        text_add_i64(&why, (at_ms - now_ms + 999) / 1000);
        text_add(&why, " s, which is longer than the request may take; try again then");
        return api->why;
    }
    bool waits = at_ms > now_ms || (!login->ready(login->owner) && now_ms < send_by_ms);
    if (waits) {
        json_api_wake_at(api, at_ms > now_ms ? at_ms : send_by_ms);
        return NULL;
    }
    if (!login->credential(login->owner, &credential, &why))
        return api->why;
    if (now_ms >= send_by_ms)
        return "the deadline passed before the request was sent";
    return json_request_post(api, request, credential, request->call.give_up_at_ms - now_ms)
               ? NULL
               : "out of memory";
}

/* ---- the end of a request ---- */

static void json_request_drop(struct json_request *request)
{
    ASSERT(request->api != NULL);
    if (request->http != NULL)
        http_cancel(request->http);
    list_remove(&request->api->requests, &request->node);
    free(request->url);
    if (request->body != NULL)
        explicit_bzero(request->body, strlen(request->body));
    free(request->body);
    *request = (struct json_request){0};
}

void json_request_cancel(struct json_request *request)
{
    if (request->api != NULL)
        json_request_drop(request);
}

static void json_request_finish(struct json_request *request, const struct json_reply *reply)
{
    struct json_callbacks callbacks = request->callbacks;
    json_request_drop(request);
    callbacks.done(callbacks.owner, reply);
}

/* Callbacks may start and cancel requests, so the scan restarts after each. */
static void json_api_on_wake(void *owner)
{
    struct json_api *api = owner;
    struct list_node *node = api->requests.first;
    while (node != NULL) {
        struct json_request *request = LIST_ENTRY(node, struct json_request, node);
        const char *error = request->http == NULL ? json_request_try(api, request) : NULL;
        node = node->next;
        if (error == NULL)
            continue;
        char why[JSON_WHY]; /* a callback may start requests, which overwrite the error */
        (void)snprintf(why, sizeof why, "%s", error);
        struct json_reply reply = {.now_ms = TIME_UNKNOWN, .why = why};
        json_request_finish(request, &reply);
        node = api->requests.first;
    }
}

/* ---- replies ---- */

/* The error, in the words of the API if it has any. */
static void json_api_explain(const struct json_api *api, const struct http_response *response,
                             const json_t *json, char out[JSON_WHY])
{
    int status = response->status;
    const char *message = json_string_value(json_object_get(json, "message"));
    struct text why;
    text_init(&why, out, JSON_WHY);
    if (status == 0)
        text_add(&why, response->why);
    if (status == 0 || (status >= 200 && status < 300) || status == 304)
        return;
    text_add(&why, api->options.name);
    text_add(&why, " answers ");
    text_add_i64(&why, status);
    text_add(&why, ": ");
    if (message != NULL && *message != '\0')
        text_add_brief(&why, message, MESSAGE_SHOWN);
    else if (status >= 300 && status < 400)
        text_add(&why, "it redirects, which is not followed; name the final address");
    else
        text_add(&why, json != NULL ? "it gives no reason"
                                    : "the body is not JSON; check whether a proxy is in between");
    text_clean(why.bytes, why.length);
}

/* Parses `299 - "text"`. Its bytes are untrusted. */
static void json_api_warn(struct json_api *api, const char *value)
{
    char warning[HTTP_HEADER_MAX + 1];
    struct text text;
    const char *at = strchr(value, '"');
    text_init(&text, warning, sizeof warning);
    for (at = at != NULL ? at + 1 : ""; *at != '\0' && *at != '"'; at++) {
        at += at[0] == '\\' && at[1] != '\0' ? 1 : 0;
        text_add_bytes(&text, at, 1);
    }
    text_clean(text.bytes, text.length);
    if (text.length > 0)
        api->options.warning(api->options.user, warning);
}

/* True if the request will be sent again. */
static bool json_request_retry(struct json_request *request, const struct http_response *response)
{
    struct json_api *api = request->api;
    const struct json_call *call = &request->call;
    int status = response->status;
    int64_t now_ms = host_boot_ms(), asked_ms = response->retry_after_ms;
    bool too_early = status == 429 || status == 503;
    if (status == 401 && !request->refused) {
        request->refused = true;
        api->options.login.refused(api->options.login.owner);
        json_api_wake(api);
        return true;
    }
    if (api->options.own_pauses)
        return false;
    bool again = status == 429 || (status == 503 && request->body == NULL && asked_ms >= 0) ||
                 (status == 403 && call->forbidden_later && api->permitted) ||
                 (call->repeatable && (status == 0 || status >= 500));
    if (asked_ms < 0 && status == 429)
        asked_ms = TOO_EARLY_MS;
    if (too_early && asked_ms >= 0) {
        int64_t most_ms = api->options.pause_max_ms;
        int64_t until_ms = now_ms + (asked_ms < most_ms ? asked_ms : most_ms);
        if (api->paused_until_ms < until_ms)
            api->paused_until_ms = until_ms;
    }
    int64_t pause_ms = backoff_pause_ms(&request->backoff);
    request->not_before_ms = now_ms + (asked_ms > pause_ms ? asked_ms : pause_ms);
    if (!again || request->not_before_ms >= json_request_send_by_ms(request))
        return false;
    json_api_wake_at(api, request->not_before_ms);
    return true;
}

static void json_request_on_done(void *owner, const struct http_response *response)
{
    struct json_request *request = owner;
    struct json_api *api = request->api;
    const char *warning;
    char why[JSON_WHY];
    request->http = NULL;
    for (size_t i = 0;
         api->options.warning != NULL && (warning = http_header(response, "Warning", i)) != NULL;
         i++)
        json_api_warn(api, warning);
    if (json_request_retry(request, response))
        return;
    if (request->call.forbidden_later && (response->status == 200 || response->status == 201))
        api->permitted = true;
    struct json_reply reply = {.status = response->status,
                               .refused = response->refused,
                               .length = response->body_length,
                               .now_ms =
                                   response->date_s >= 0 ? response->date_s * 1000 : TIME_UNKNOWN,
                               .response = response};
    json_t *json = json_parse(response->body, response->body_length, &reply.size);
    reply.json = json;
    reply.why = why;
    json_api_explain(api, response, json, why);
    json_request_finish(request, &reply);
    json_decref(json);
}

static size_t json_request_on_piece(void *owner, const char *bytes, size_t length)
{
    struct json_request *request = owner;
    struct json_callbacks callbacks = request->callbacks;
    return json_lines_read(bytes, length, callbacks.line, callbacks.owner);
}

/* ---- interface ---- */

struct json_api *json_api_new(struct poller *poller, const struct json_api_options *options)
{
    struct json_api *api = calloc(1, sizeof *api);
    if (api == NULL)
        return NULL;
    api->magic = API_MAGIC;
    api->options = *options;
    api->poller = poller;
    api->wake.due = json_api_on_wake;
    api->wake.owner = api;
    api->http = http_new(poller);
    if (api->http != NULL)
        return api;
    free(api);
    return NULL;
}

void json_api_free(struct json_api **api_pointer)
{
    struct json_api *api = *api_pointer;
    if (api == NULL)
        return;
    ASSERT(api->magic == API_MAGIC);
    while (api->requests.first != NULL)
        json_request_drop(LIST_ENTRY(api->requests.first, struct json_request, node));
    poller_call_at(api->poller, &api->wake, POLLER_NEVER);
    http_free(&api->http);
    free(api);
    *api_pointer = NULL;
}

void json_request_start(struct json_request *request, struct json_api *api,
                        const struct json_call *call, const struct json_callbacks *callbacks)
{
    ASSERT(api->magic == API_MAGIC && request->api == NULL);
    int64_t now_ms = host_boot_ms();
    *request = (struct json_request){.api = api, .call = *call, .callbacks = *callbacks};
    if (asprintf(&request->url, "%s%s", api->options.server, call->path) < 0)
        request->url = NULL;
    if (call->body != NULL)
        request->body = json_dumps(call->body, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS_EXACT));
    request->call.path = NULL; /* not ours */
    request->call.body = NULL;
    backoff_init(&request->backoff, (uint64_t)now_ms, PAUSE_FIRST_MS, PAUSE_MAX_MS);
    list_append(&api->requests, &request->node);
    if (json_request_try(api, request) != NULL)
        json_api_wake(api); /* which reports it */
}

struct json_blocking {
    struct json_result *result;
    bool over;
};

static void json_blocking_on_done(void *owner, const struct json_reply *reply)
{
    struct json_blocking *blocking = owner;
    *blocking->result = (struct json_result){
        .status = reply->status, .json = json_incref(reply->json), .now_ms = reply->now_ms};
    (void)snprintf(blocking->result->why, sizeof blocking->result->why, "%s", reply->why);
    blocking->over = true;
}

void json_api_call(struct json_api *api, const struct json_call *call, struct json_result *out)
{
    struct json_request request = {0};
    struct json_blocking blocking = {.result = out};
    struct json_callbacks callbacks = {.done = json_blocking_on_done, .owner = &blocking};
    json_request_start(&request, api, call, &callbacks);
    for (poller_step(api->poller); !blocking.over; poller_step(api->poller))
        poller_wait(api->poller, /* most_ms= */ -1);
}

void json_result_done(struct json_result *result)
{
    json_decref(result->json);
    result->json = NULL;
}

/* ---- pages ---- */

/* The token becomes part of a URL. */
static bool is_page_token(const char *token)
{
    static const char fine[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.";
    size_t length = strspn(token, fine);
    return length <= TOKEN_MAX && token[length] == '\0';
}

const char *json_pages_turn(struct json_pages *pages, const char *next, size_t length)
{
    bool more = next != NULL && *next != '\0';
    if (more && (!is_page_token(next) || (pages->next != NULL && strcmp(next, pages->next) == 0)))
        return "the list has an invalid or repeated continue token";
    pages->bytes += length;
    if (more && (++pages->count >= JSON_PAGES_MAX || pages->bytes > LIST_MAX))
        return "the list is too long";
    char *copy = more ? strdup(next) : NULL;
    free(pages->next);
    pages->next = copy;
    return more && copy == NULL ? "out of memory" : NULL;
}

void json_pages_done(struct json_pages *pages)
{
    free(pages->next);
    *pages = (struct json_pages){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See github_api.h. A timer sends what may be sent, so that the order of calls does not matter. */
#include "http/github_api.h"

#include "base/check.h"
#include "core/record.h"
#include "http/github_limit.h"
#include "http/github_login.h"
#include "process/host.h"
#include "wire/duration.h"
#include "wire/store_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GITHUB_MAGIC = 0x6168,
    SERVER_MAX = 511,
    READS_MAX = 8, /* at the same time */
    REPLY_MAX = 16 << 20,
};

static const char limit_reached[] = "GitHub's limit is reached";

struct github_api {
    uint32_t magic;
    char server[SERVER_MAX + 1], place[GITHUB_OWNER_MAX + GITHUB_REPO_MAX + 16];
    struct stream_tls tls;
    struct poller *poller;
    struct json_api *json;
    struct github_login *login;
    struct github_limit *limit;
    struct github_share share;
    int64_t timeout_ms;
    struct list waiting[GITHUB_KINDS], sent;
    unsigned reads; /* of `sent` */
    struct poller_timer wake;
};

/* ---- the end of a request ---- */

static void github_api_wake_at(struct github_api *api, int64_t at_ms)
{
    if (api->wake.poller == NULL || at_ms < api->wake.at_ms)
        poller_call_at(api->poller, &api->wake, at_ms);
}

static struct list *github_request_list(const struct github_request *request)
{
    return request->sent ? &request->api->sent : &request->api->waiting[request->kind];
}

/* Moves it back to the requests that wait. */
static void github_request_unsend(struct github_request *request)
{
    struct github_api *api = request->api;
    list_remove(&api->sent, &request->node);
    list_prepend(&api->waiting[request->kind], &request->node);
    request->sent = false;
    api->reads -= request->write ? 0 : 1;
    github_api_wake_at(api, host_boot_ms());
}

static void github_request_drop(struct github_request *request)
{
    int64_t at_ms;
    if (request->sent) {
        json_request_cancel(&request->http);
        (void)github_limit_end(request->api->limit, request->write, /* reply= */ NULL, &at_ms);
        github_request_unsend(request);
    }
    list_remove(github_request_list(request), &request->node);
    free(request->path);
    free(request->if_none_match);
    json_decref(request->body);
    *request = (struct github_request){0};
}

void github_request_cancel(struct github_request *request)
{
    if (request->api != NULL)
        github_request_drop(request);
}

static void github_request_finish(struct github_request *request, const struct github_reply *reply)
{
    struct github_request ended = *request;
    github_request_drop(request);
    ended.done(ended.owner, reply);
}

static void github_add_return(struct text *out, int64_t left_ms)
{
    char clock[16], shown[DURATION_SHOWN];
    time_t at = (time_t)((host_wall_ms() + left_ms + 999) / 1000);
    struct tm tm = {0};
    (void)gmtime_r(&at, &tm);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    TEXT_JOIN(out, "; requests are possible again at ", clock, " UTC, in ",
              duration_show(left_ms > 0 ? left_ms : 0, shown));
}

/* It had no effect. `until_ms`: a limit ends then; 0: there is none; POLLER_NEVER: without end. */
static void github_request_give_up(struct github_request *request, const char *reason,
                                   int64_t until_ms)
{
    char why[JSON_WHY];
    struct text text;
    text_init(&text, why, sizeof why);
    text_add(&text, reason);
    if (until_ms == POLLER_NEVER)
        until_ms = 0;
    if (until_ms > 0)
        github_add_return(&text, until_ms - host_boot_ms());
    struct github_reply reply = {
        .refused = true, .now_ms = TIME_UNKNOWN, .why = why, .retry_at_ms = until_ms};
    github_request_finish(request, &reply);
}

/* ---- replies ---- */

/* The URL in `<URL>; rel="next"`, as a path below the server's address; NULL if it has none. */
static const char *github_next_path(const struct github_api *api, const char *link, char *out,
                                    size_t size)
{
    size_t server = strlen(api->server);
    while (link != NULL && (link = strchr(link, '<')) != NULL) {
        const char *url = link + 1, *end = strchr(url, '>');
        if (end == NULL)
            return NULL;
        const char *rest = strchr(end, '<');
        const char *rel = strstr(end, "rel=\"next\"");
        bool next = rel != NULL && (rest == NULL || rel < rest);
        size_t length = (size_t)(end - url);
        if (next && length > server && length - server < size && url[server] == '/' &&
            strncasecmp(url, api->server, server) == 0) {
            (void)snprintf(out, size, "%.*s", (int)(length - server), url + server);
            return out;
        }
        link = rest;
    }
    return NULL;
}

static void github_request_on_done(void *owner, const struct json_reply *reply)
{
    struct github_request *request = owner;
    struct github_api *api = request->api;
    char why[JSON_WHY], next[HTTP_HEADER_MAX + 1];
    int64_t until_ms;
    bool refused = github_limit_end(api->limit, request->write, reply, &until_ms);
    github_request_unsend(request);
    if (refused && until_ms >= request->give_up_at_ms)
        github_request_give_up(request, limit_reached, until_ms);
    if (refused)
        return;
    (void)snprintf(why, sizeof why, "%s", reply->why);
    github_login_hide(api->login, why);
    const struct http_response *response = reply->status != 0 ? reply->response : NULL;
    const char *link = response != NULL ? http_header(response, "Link", /* index= */ 0) : NULL;
    struct github_reply out = {
        .status = reply->status,
        .refused = reply->refused || reply->response == NULL,
        .json = reply->json,
        .now_ms = reply->now_ms,
        .sent_ms = request->sent_ms,
        .etag = response != NULL ? http_header(response, "ETag", /* index= */ 0) : NULL,
        .next = github_next_path(api, link, next, sizeof next),
        .why = why};
    github_request_finish(request, &out);
}

/* ---- sending ---- */

static void github_request_send(struct github_request *request, int64_t now_ms)
{
    struct github_api *api = request->api;
    int64_t by_ms = now_ms + api->timeout_ms;
    struct json_call call = {.method = request->method,
                             .path = request->path,
                             .body = request->body,
                             .headers = request->headers,
                             .most = REPLY_MAX,
                             .give_up_at_ms =
                                 by_ms < request->give_up_at_ms ? by_ms : request->give_up_at_ms};
    struct json_callbacks callbacks = {.done = github_request_on_done, .owner = request};
    list_remove(&api->waiting[request->kind], &request->node);
    list_append(&api->sent, &request->node);
    request->sent = true;
    request->sent_ms = now_ms;
    api->reads += request->write ? 0 : 1;
    json_request_start(&request->http, api->json, &call, &callbacks);
}

/* Sends it, or sets the time of the next try. False if it has ended instead: its callback may have
 * changed everything. */
static bool github_request_try(struct github_request *request, int64_t *out_at_ms)
{
    struct github_api *api = request->api;
    int64_t now_ms = host_boot_ms(), at_ms = 0, until_ms = 0;
    enum github_verdict verdict = GITHUB_WAIT;
    const char *over = NULL;
    if (request->path == NULL) {
        over = "out of memory";
    } else if (now_ms >= request->give_up_at_ms) {
        until_ms = request->short_until_ms;
        over = until_ms > 0 ? "this process has used up its requests of an hour"
                            : "the deadline passed before the request was sent";
    } else if (request->write || api->reads < READS_MAX) {
        verdict =
            github_limit_begin(api->limit, api, &api->share, request->kind, request->write, &at_ms);
    }
    if (verdict == GITHUB_PAUSED && at_ms >= request->give_up_at_ms) {
        until_ms = at_ms;
        over = limit_reached;
    }
    if (over != NULL) {
        github_request_give_up(request, over, until_ms);
        return false;
    }
    request->short_until_ms = verdict == GITHUB_SHORT ? at_ms : 0;
    if (verdict == GITHUB_SEND)
        github_request_send(request, now_ms);
    bool sooner = at_ms > 0 && at_ms < request->give_up_at_ms;
    *out_at_ms = sooner ? at_ms : request->give_up_at_ms;
    return true;
}

static void github_api_on_wake(void *owner)
{
    struct github_api *api = owner;
    for (size_t kind = 0; kind < GITHUB_KINDS; kind++) {
        for (struct list_node *node = api->waiting[kind].first, *next; node != NULL; node = next) {
            int64_t at_ms;
            next = node->next;
            if (!github_request_try(LIST_ENTRY(node, struct github_request, node), &at_ms)) {
                github_api_wake_at(api, host_boot_ms());
                return;
            }
            github_api_wake_at(api, at_ms);
        }
    }
}

static bool github_request_copy(struct github_request *request, const struct github_call *call)
{
    bool below = call->path[0] == '/';
    const char *place = below ? "" : request->api->place;
    if (asprintf(&request->path, "%s%s%s", place, below || call->path[0] == '\0' ? "" : "/",
                 call->path) < 0)
        request->path = NULL;
    if (call->etag != NULL &&
        asprintf(&request->if_none_match, "If-None-Match: %s", call->etag) < 0)
        request->if_none_match = NULL;
    request->headers[0] = GITHUB_VERSION;
    request->headers[1] =
        request->write ? "Content-Type: application/json" : request->if_none_match;
    return request->path != NULL && (request->body != NULL || !request->write) &&
           (request->if_none_match != NULL || call->etag == NULL);
}

void github_request_start(struct github_request *request, struct github_api *api,
                          const struct github_call *call,
                          void (*done)(void *owner, const struct github_reply *reply), void *owner)
{
    ASSERT(api->magic == GITHUB_MAGIC && request->api == NULL && call->kind < GITHUB_KINDS);
    int64_t now_ms = host_boot_ms();
    *request = (struct github_request){
        .api = api,
        .kind = call->kind,
        .write = strcmp(call->method, "GET") != 0,
        .method = call->method,
        .body = call->body,
        .give_up_at_ms = call->give_up_at_ms > 0 ? call->give_up_at_ms : now_ms + api->timeout_ms,
        .done = done,
        .owner = owner};
    if (request->write && request->body == NULL)
        request->body = json_object();
    if (!github_request_copy(request, call)) {
        free(request->path); /* this fails later */
        request->path = NULL;
    }
    list_append(&api->waiting[request->kind], &request->node);
    github_api_wake_at(api, now_ms);
}

/* ---- results ---- */

void github_result_fill(struct github_result *out, const struct github_reply *reply)
{
    *out = (struct github_result){.over = true};
    out->status = reply->status;
    out->json = json_deep_copy(reply->json);
    out->now_ms = reply->now_ms;
    out->next = reply->next != NULL ? strdup(reply->next) : NULL;
    out->retry_in_ms = reply->retry_at_ms > 0 ? reply->retry_at_ms - host_boot_ms() : 0;
    if (reply->etag != NULL && strlen(reply->etag) <= GITHUB_ETAG_MAX)
        text_copy(out->etag, sizeof out->etag, reply->etag);
    (void)snprintf(out->why, sizeof out->why, "%s", reply->why);
}

static void github_result_on_reply(void *owner, const struct github_reply *reply)
{
    github_result_fill(owner, reply);
}

void github_request_start_result(struct github_request *request, struct github_api *api,
                                 const struct github_call *call, struct github_result *out)
{
    *out = (struct github_result){.status = 0};
    github_request_start(request, api, call, github_result_on_reply, out);
}

void github_api_call(struct github_api *api, const struct github_call *call,
                     struct github_result *out)
{
    struct github_request request = {0};
    github_request_start_result(&request, api, call, out);
    for (poller_step(api->poller); !out->over; poller_step(api->poller))
        poller_wait(api->poller, /* most_ms= */ -1);
}

void github_result_done(struct github_result *result)
{
    json_decref(result->json);
    free(result->next);
    *result = (struct github_result){0};
}

/* ---- start and end ---- */

static const char *github_api_address(void)
{
    const char *address = getenv("GITHUB_API_URL");
    return address != NULL && address[0] != '\0' ? address : "https://api.github.com";
}

static bool github_host_is_loopback(struct url_part host)
{
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (host.length == strlen(names[i]) && strncasecmp(host.at, names[i], host.length) == 0)
            return true;
    return host.length > 4 && strncmp(host.at, "127.", 4) == 0 &&
           strspn(host.at, "0123456789.") == host.length;
}

/* False if it is no address; the path of its parts may have a slash at its end. */
static bool github_split_address(const char *address, bool *out_tls, struct url_part *out_host,
                                 struct url_parts *out)
{
    struct url_part port;
    *out_tls = strncmp(address, "https://", 8) == 0;
    if (!*out_tls && strncmp(address, "http://", 7) != 0)
        return false;
    url_split(address + (*out_tls ? 8 : 7), /* users= */ true, out);
    struct url_part hosts = out->hosts;
    return url_next_host(&hosts, out_host, &port) && out_host->length > 0;
}

bool github_api_is_loopback(void)
{
    struct url_part host;
    struct url_parts parts;
    bool tls;
    return github_split_address(github_api_address(), &tls, &host, &parts) &&
           github_host_is_loopback(host);
}

static bool github_api_find_server(struct github_api *api, struct text *why)
{
    const char *address = github_api_address();
    size_t length = strlen(address);
    struct url_part host;
    struct url_parts parts;
    while (length > 0 && address[length - 1] == '/')
        length--;
    if (!github_split_address(address, &api->tls.on, &host, &parts) || length > SERVER_MAX ||
        parts.user.at != NULL || parts.query.at != NULL || !text_is_plain(address, length))
        return url_refuse(why, "GITHUB_API_URL is no address, as in https://github.example/api/v3");
    if (!api->tls.on && !github_host_is_loopback(host))
        return url_refuse(why, "GITHUB_API_URL must begin with https://: the token would be sent "
                               "in the clear");
    (void)snprintf(api->server, sizeof api->server, "%.*s", (int)length, address);
    return true;
}

static void github_api_on_login(void *owner)
{
    json_api_wake(((struct github_api *)owner)->json);
}

static bool github_api_connect(struct github_api *api, const struct github_url *url,
                               struct text *why)
{
    api->poller = poller_new();
    if (api->poller == NULL)
        return url_refuse(why, "out of memory or file descriptors");
    api->login =
        github_login_new(api->poller, url, api->server, &api->tls, github_api_on_login, api, why);
    if (api->login == NULL)
        return false;
    struct json_api_options options = {.name = "GitHub",
                                       .server = api->server,
                                       .tls = &api->tls,
                                       .scheme = "Bearer",
                                       .accept = GITHUB_ACCEPT,
                                       .login = github_login_source(api->login),
                                       .own_pauses = true};
    api->json = json_api_new(api->poller, &options);
    api->limit = github_limit_get(github_login_account(api->login));
    return (api->json != NULL && api->limit != NULL) || url_refuse(why, "out of memory");
}

bool github_api_open(struct github_api **out, const struct github_url *url, int64_t timeout_ms,
                     struct text *why)
{
    struct github_api *api = calloc(1, sizeof *api);
    if (api == NULL)
        return url_refuse(why, "out of memory");
    api->magic = GITHUB_MAGIC;
    api->timeout_ms = timeout_ms;
    api->share = (struct github_share){
        .pace_ms = url->pace_ms, .budget = url->budget, .writes = url->writes};
    api->wake =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = github_api_on_wake, .owner = api};
    (void)snprintf(api->place, sizeof api->place, "/repos/%s/%s", url->owner, url->repo);
    if (github_api_find_server(api, why) && github_api_connect(api, url, why)) {
        *out = api;
        return true;
    }
    github_api_close(&api);
    return false;
}

static void github_api_drop_all(struct list *list)
{
    while (list->first != NULL)
        github_request_drop(LIST_ENTRY(list->first, struct github_request, node));
}

void github_api_close(struct github_api **api_pointer)
{
    struct github_api *api = *api_pointer;
    if (api == NULL)
        return;
    ASSERT(api->magic == GITHUB_MAGIC);
    github_api_drop_all(&api->sent);
    for (size_t kind = 0; kind < GITHUB_KINDS; kind++)
        github_api_drop_all(&api->waiting[kind]);
    if (api->poller != NULL)
        poller_call_at(api->poller, &api->wake, POLLER_NEVER);
    json_api_free(&api->json);
    github_login_free(&api->login);
    github_limit_put(&api->limit);
    poller_free(&api->poller);
    api->magic = 0;
    free(api);
    *api_pointer = NULL;
}

struct poller *github_api_poller(struct github_api *api)
{
    return api->poller;
}

void github_api_limit_writes(struct github_api *api, unsigned per_hour)
{
    api->share.writes = per_hour;
    github_api_wake_at(api, host_boot_ms());
}

void github_api_usage(struct github_api *api, struct github_usage *out)
{
    github_limit_usage(api->limit, out);
}

/* ---- values ---- */

const char *github_string(const json_t *object, const char *name)
{
    const char *string = json_string_value(json_object_get(object, name));
    return string != NULL ? string : "";
}

int64_t github_time_ms(const char *string)
{
    struct tm tm = {0};
    const char *end = strptime(string, "%Y-%m-%dT%H:%M:%S", &tm);
    time_t at = end != NULL && (*end == 'Z' || *end == '.') ? timegm(&tm) : -1;
    return at >= 0 ? (int64_t)at * 1000 : -1;
}

const char *github_sha(const json_t *object)
{
    const char *sha = github_string(object, "sha");
    bool valid = strlen(sha) == GITHUB_SHA && strspn(sha, "0123456789abcdef") == GITHUB_SHA;
    return valid ? sha : "";
}

int64_t github_commit_time_ms(const json_t *commit)
{
    return github_time_ms(github_string(json_object_get(commit, "committer"), "date"));
}

bool github_ref_is_at(const struct github_reply *reply, const char *sha)
{
    return (reply->status == 200 || reply->status == 201) &&
           strcmp(github_sha(json_object_get(reply->json, "object")), sha) == 0;
}

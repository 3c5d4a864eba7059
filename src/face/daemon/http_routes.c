/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of paths. A route with a verb becomes a command, which dispatch.c starts as it starts
 * one of RESP, after may() allowed it; so no path of HTTP can forget a permission.
 */
#include "face/daemon/http_face.h"

#include "base/text.h"

#include <string.h>

static const struct http_route routes[] = {
    {"POST", "/v1/locks/{}/acquire", "LOCK.ACQUIRE", "holder ttl_ms", NULL, NULL, "Take a lock"},
    {"POST", "/v1/acquire", "LOCK.ACQUIRE_ALL", "keys holder ttl_ms", NULL, NULL,
     "Take several locks, all or none"},
    {"POST", "/v1/locks/{}/renew", "LOCK.RENEW", "token|ttl_ms", NULL, NULL, "Renew a grant"},
    {"POST", "/v1/locks/{}/release", "LOCK.RELEASE", "token", NULL, NULL, "Give a lock back"},
    {"GET", "/v1/locks/{}", "LOCK.STATUS", "", NULL, NULL, "The state of a key"},
    {"GET", "/v1/locks", "LOCK.LIST", "|prefix", NULL, NULL, "The keys with a prefix, in pages"},
    {"GET", "/v1/locks/{}/history", "LOCK.HISTORY", "", NULL, NULL, "The changes of a key"},
    {"POST", "/v1/locks/{}/break", "LOCK.BREAK", "reason", NULL, NULL,
     "Ask the holder to stop, or free the key at once"},
    {"DELETE", "/v1/locks/{}", "LOCK.BREAK", "reason", NULL, NULL, "As POST …/break"},
    {"POST", "/v1/locks/{}/clear", "LOCK.CLEAR", "", NULL, NULL, "End a cooldown"},
    {"GET", "/v1/watch", NULL, "|prefix", NULL, http_watch, "Changes, as server-sent events"},
    {"POST", "/v1/once/{}/begin", "ONCE.BEGIN", "holder ttl_ms", NULL, NULL, "Claim an id"},
    {"POST", "/v1/once/{}/renew", "ONCE.RENEW", "token|ttl_ms", NULL, NULL, "Renew a claim"},
    {"POST", "/v1/once/{}/finish", "ONCE.FINISH", "token", NULL, NULL, "Finish a claim"},
    {"POST", "/v1/once/{}/abandon", "ONCE.ABANDON", "token", NULL, NULL, "Give a claim up"},
    {"POST", "/v1/once/{}/mark", "ONCE.MARK", "", NULL, NULL, "Mark an id as done"},
    {"GET", "/v1/once/{}", "ONCE.STATUS", "", NULL, NULL, "The state of an id"},
    {"GET", "/v1/watermarks/{}", "WATERMARK.GET", "", NULL, NULL, "A stored position"},
    {"POST", "/v1/watermarks/{}/begin", "WATERMARK.BEGIN", "", NULL, NULL,
     "A stored position, and where to read from"},
    {"PUT", "/v1/watermarks/{}", "WATERMARK.SET", "value reason", "reason", NULL,
     "Set a position by hand"},
    {"PUT", "/v1/watermarks/{}", "WATERMARK.ADVANCE", "expected value", NULL, NULL,
     "Move a position, or with a reason set it"},
    {"GET", "/metrics", NULL, "", NULL, http_metrics, "Metrics, in the format of Prometheus"},
    {"GET", "/healthz", NULL, "", NULL, http_healthz, "The daemon runs"},
    {"GET", "/readyz", NULL, "", NULL, http_readyz, "The store replies, and nothing drains"},
    {"GET", "/openapi.json", NULL, "", NULL, http_openapi, "This interface as an OpenAPI document"},
    {"GET", "/", NULL, "", NULL, http_index, "What is served here"},
};

enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

const struct http_route *http_route_at(size_t index)
{
    return index < ROUTE_COUNT ? &routes[index] : NULL;
}

/* True if the path has the segments of the route; the text for {} is in `out_key`, undecoded. */
static bool route_matches(const struct http_route *route, struct httpd_slice path,
                          struct httpd_slice *out_key)
{
    struct httpd_slice pattern = {.bytes = route->path, .length = strlen(route->path)};
    struct httpd_slice wanted, given;
    while (httpd_next_part(&pattern, '/', &wanted)) {
        if (!httpd_next_part(&path, '/', &given))
            return false;
        if (httpd_is(wanted, "{}"))
            *out_key = given;
        else if (wanted.length != given.length ||
                 memcmp(wanted.bytes, given.bytes, wanted.length) != 0)
            return false;
    }
    return !httpd_next_part(&path, '/', &given);
}

static bool route_has_method(const struct http_route *route, struct httpd_slice method)
{
    return httpd_is(method, route->method) ||
           (httpd_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

/* By a member of the body; null is as if it were not given. */
static bool route_is_chosen(const struct http_route *route, const struct http_face *face)
{
    if (route->when == NULL)
        return true;
    const struct json_member *member = http_member(face, route->when);
    return member != NULL && member->kind != JSON_NULL;
}

static void route_refuse_method(struct daemon_connection *connection, struct httpd_slice path)
{
    char allow[128];
    struct text text;
    struct httpd_slice key;
    const char *last = "";
    text_init(&text, allow, sizeof allow);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!route_matches(&routes[i], path, &key) || strcmp(last, routes[i].method) == 0)
            continue;
        last = routes[i].method;
        TEXT_JOIN(&text, text.length > 0 ? ", " : "Allow: ", last,
                  strcmp(last, "GET") == 0 ? ", HEAD" : "");
    }
    bool exists = text.length > 0;
    text_add(&text, "\r\n");
    if (exists)
        http_refuse(connection, 405, "this path has other methods; see Allow", allow);
    else
        http_refuse(connection, 404, "no such path; GET /openapi.json lists them", NULL);
}

static void route_run_verb(struct daemon_connection *connection, const struct http_route *route,
                           const char *key)
{
    struct http_face *face = connection->daemon->http;
    struct daemon_args *args = &connection->daemon->args;
    char message[512];
    struct text why;
    text_init(&why, message, sizeof message);
    if (!http_build_args(face, route, key, args, &why))
        http_refuse(connection, 400, message, NULL);
    else
        (void)dispatch_args(connection, args); /* no earlier request is in flight */
}

void http_route(struct daemon_connection *connection, const struct httpd_request *request)
{
    struct http_face *face = connection->daemon->http;
    const struct http_route *route = NULL;
    struct httpd_slice key = {.bytes = NULL};
    char message[512];
    struct text why;
    int status = 400;
    bool members_read = false;
    text_init(&why, message, sizeof message);
    for (size_t i = 0; i < ROUTE_COUNT && route == NULL; i++) {
        if (!route_matches(&routes[i], request->path, &key) ||
            !route_has_method(&routes[i], request->method))
            continue;
        if (!members_read && !http_read_members(face, request, &status, &why)) {
            http_refuse(connection, status, message, NULL);
            return;
        }
        members_read = true;
        if (route_is_chosen(&routes[i], face))
            route = &routes[i];
    }
    if (route == NULL)
        route_refuse_method(connection, request->path);
    else if (key.bytes != NULL && !httpd_decode_path(key, face->segment, sizeof face->segment))
        http_refuse(connection, 400, "the key in the path is too long, or wrongly encoded", NULL);
    else if (!http_fields_are_known(face, route, &why))
        http_refuse(connection, 400, message, NULL);
    else if (route->verb == NULL)
        route->answer(connection, request);
    else
        route_run_verb(connection, route, key.bytes != NULL ? face->segment : NULL);
}

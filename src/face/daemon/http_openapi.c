/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /openapi.json: the table of routes and the words of the verbs as an OpenAPI 3.0 document. It
 * is made from the tables that serve the requests, so that it cannot differ from them.
 */
#include "face/daemon/http_face.h"

#include "base/check.h"
#include "base/text.h"
#include "wire/json_text.h"

#include <stdlib.h>
#include <string.h>

enum { OPENAPI_MAX = 128 * 1024 };

static const char *openapi_type(enum json_kind kind)
{
    switch (kind) {
    case JSON_NUMBER:
        return "integer";
    case JSON_BOOL:
        return "boolean";
    case JSON_OBJECT:
        return "object";
    case JSON_LIST:
        return "array";
    case JSON_STRING:
    case JSON_NULL:
        break;
    }
    return "string";
}

static void openapi_schema(struct text *out, const char *name, enum json_kind kind, bool nullable)
{
    json_add_object(out, name);
    json_add_string(out, "type", openapi_type(kind));
    if (nullable)
        json_add_bool(out, "nullable", true);
    if (kind == JSON_LIST) {
        json_add_object(out, "items");
        json_add_string(out, "type", "string");
        json_end(out);
    } else if (kind == JSON_OBJECT) {
        json_add_object(out, "additionalProperties");
        json_add_string(out, "type", "string");
        json_end(out);
    }
    json_end(out);
}

static void openapi_parameter(struct text *out, const char *name, const char *in, bool required,
                              enum json_kind kind)
{
    json_item_object(out);
    json_add_string(out, "name", name);
    json_add_string(out, "in", in);
    json_add_bool(out, "required", required);
    openapi_schema(out, "schema", kind, /* nullable= */ false);
    json_end(out);
}

static bool route_is_read(const struct http_route *route)
{
    return strcmp(route->method, "GET") == 0 || strcmp(route->method, "DELETE") == 0;
}

/* Calls for every field of the route: positional ones, then words. */
static void openapi_fields(const struct http_route *route, struct text *out,
                           void (*add)(struct text *out, const char *name, bool required,
                                       enum json_kind kind))
{
    const struct daemon_verb *verb = route->verb != NULL ? verb_find(route->verb) : NULL;
    const char *at = route->fields;
    char name[32];
    bool required = true;
    struct word_field field;
    while (http_next_field(&at, name, &required))
        add(out, name, required, http_field_kind(name));
    for (size_t i = 0; verb != NULL && words_field_at(i, &field); i++) {
        if ((field.bit & verb->words) != 0 && field.name != NULL)
            add(out, field.name, /* required= */ false, field.kind);
    }
}

static void openapi_add_query(struct text *out, const char *name, bool required,
                              enum json_kind kind)
{
    openapi_parameter(out, name, "query", required, kind);
}

static void openapi_add_property(struct text *out, const char *name, bool required,
                                 enum json_kind kind)
{
    (void)required;
    openapi_schema(out, name, kind, /* nullable= */ false);
}

static void openapi_add_required(struct text *out, const char *name, bool required,
                                 enum json_kind kind)
{
    (void)kind;
    if (required)
        json_item_string(out, name);
}

/* The members of the open object: its type, properties and what is required. */
static void openapi_fields_schema(struct text *out, const struct http_route *route)
{
    json_add_string(out, "type", "object");
    json_add_object(out, "properties");
    openapi_fields(route, out, openapi_add_property);
    json_end(out);
    size_t before = out->length;
    json_add_list(out, "required");
    size_t opened = out->length;
    openapi_fields(route, out, openapi_add_required);
    if (out->length == opened) { /* an empty list is not allowed */
        out->length = before;
        out->bytes[before] = '\0';
    } else {
        json_end_list(out);
    }
    json_add_bool(out, "additionalProperties", false);
}

/* The route with the same path and method that a member chooses; NULL: none. */
static const struct http_route *openapi_other(const struct http_route *route)
{
    const struct http_route *other;
    for (size_t i = 0; (other = http_route_at(i)) != NULL; i++) {
        if (other->when != NULL && strcmp(other->path, route->path) == 0 &&
            strcmp(other->method, route->method) == 0)
            return other;
    }
    return NULL;
}

static void openapi_body(struct text *out, const struct http_route *route)
{
    const struct http_route *other = openapi_other(route);
    json_add_object(out, "requestBody");
    json_add_bool(out, "required", true);
    json_add_object(out, "content");
    json_add_object(out, "application/json");
    json_add_object(out, "schema");
    if (other != NULL) {
        json_add_list(out, "oneOf");
        json_item_object(out);
        openapi_fields_schema(out, route);
        json_end(out);
        json_item_object(out);
        openapi_fields_schema(out, other);
        json_end(out);
        json_end_list(out);
    } else {
        openapi_fields_schema(out, route);
    }
    json_end(out);
    json_end(out);
    json_end(out);
    json_end(out);
}

/* `schema`: of the components; NULL: text, or an object of any kind. */
static void openapi_response(struct text *out, const char *status, const char *description,
                             const char *type, const char *schema)
{
    json_add_object(out, status);
    json_add_string(out, "description", description);
    json_add_object(out, "content");
    json_add_object(out, type);
    json_add_object(out, "schema");
    if (schema != NULL)
        json_add_string(out, "$ref", schema);
    else
        json_add_string(out, "type", strcmp(type, "application/json") == 0 ? "object" : "string");
    json_end(out);
    json_end(out);
    json_end(out);
    json_end(out);
}

static bool route_has_body(const struct http_route *route)
{
    return strcmp(route->method, "GET") != 0;
}

static bool route_has_verb(const struct http_route *route)
{
    return route->verb != NULL;
}

static bool route_is_watch(const struct http_route *route)
{
    return route->answer == http_watch;
}

static void openapi_refusals(struct text *out, const struct http_route *route)
{
    static const struct {
        const char *status, *description;
        bool (*applies)(const struct http_route *route); /* NULL: to all */
    } refusals[] = {
        {"400", "usage: the request is wrong; the text names the field", NULL},
        {"401", "denied: no valid credential", NULL},
        {"403", "denied: the credential may not do this, the store refused, or another site asks",
         NULL},
        {"408", "usage: the request did not arrive within 10 s", NULL},
        {"409", "busy: held elsewhere, or not granted within wait_ms", route_has_verb},
        {"412", "stale: the token is not that of the current grant; nothing changed",
         route_has_verb},
        {"413", "usage: the body is longer than 64 KiB", route_has_body},
        {"415", "usage: the body is not application/json", route_has_body},
        {"421", "usage: the name in Host is not served here", NULL},
        {"422", "mismatch: the id was used for something else", route_has_verb},
        {"423", "cooling: done recently", route_has_verb},
        {"429", "unavailable: too many watches", route_is_watch},
        {"431", "usage: the head is longer than 16 KiB", NULL},
        {"500", "failed: out of memory or descriptors", NULL},
        {"503", "unavailable: the store failed or did not reply; Retry-After says when to repeat",
         NULL},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].applies == NULL || refusals[i].applies(route))
            openapi_response(out, refusals[i].status, refusals[i].description, "application/json",
                             "#/components/schemas/Reply");
    }
}

static void openapi_responses(struct text *out, const struct http_route *route)
{
    const char *type = "application/json";
    if (route_is_watch(route))
        type = "text/event-stream";
    else if (route->answer == http_metrics || route->answer == http_index)
        type = "text/plain";
    bool replies = strcmp(type, "application/json") == 0 && route->answer != http_openapi;
    json_add_object(out, "responses");
    openapi_response(out, "200", "ok, or for an id done", type,
                     replies ? "#/components/schemas/Reply" : NULL);
    openapi_refusals(out, route);
    json_end(out);
}

/* "POST /v1/locks/{}/acquire" → "post_v1_locks_key_acquire". */
static void openapi_operation_id(struct text *out, const struct http_route *route)
{
    char id[96];
    struct text text;
    text_init(&text, id, sizeof id);
    for (const char *at = route->method; *at != '\0'; at++)
        text_add_bytes(&text, (const char[]){(char)(*at - 'A' + 'a')}, 1);
    for (const char *at = route->path; *at != '\0'; at++) {
        if (*at == '{')
            text_add(&text, "key");
        else if (*at != '}')
            text_add_bytes(&text, *at == '/' || *at == '.' ? "_" : at, 1);
    }
    json_add_string(out, "operationId", id);
}

static void openapi_operation(struct text *out, const struct http_route *route)
{
    char method[8];
    size_t length = strlen(route->method);
    for (size_t i = 0; i <= length; i++)
        method[i] = (char)(route->method[i] == '\0' ? '\0' : route->method[i] - 'A' + 'a');
    json_add_object(out, method);
    openapi_operation_id(out, route);
    json_add_string(out, "summary", route->summary);
    if (strchr(route->path, '{') != NULL || route_is_read(route)) {
        json_add_list(out, "parameters");
        if (strchr(route->path, '{') != NULL)
            openapi_parameter(out, "key", "path", /* required= */ true, JSON_STRING);
        if (route_is_read(route))
            openapi_fields(route, out, openapi_add_query);
        if (route_is_watch(route))
            openapi_parameter(out, "Last-Event-ID", "header", /* required= */ false, JSON_STRING);
        json_end_list(out);
    }
    if (!route_is_read(route))
        openapi_body(out, route);
    if (strcmp(route->path, "/healthz") == 0 || strcmp(route->path, "/readyz") == 0) {
        json_add_list(out, "security");
        json_end_list(out);
    }
    openapi_responses(out, route);
    json_end(out);
}

/* Routes of one path stand together in the document. */
static void openapi_paths(struct text *out)
{
    const struct http_route *route, *other;
    json_add_object(out, "paths");
    for (size_t i = 0; (route = http_route_at(i)) != NULL; i++) {
        char path[96];
        struct text text;
        size_t first = 0;
        while (strcmp(http_route_at(first)->path, route->path) != 0)
            first++;
        if (first != i)
            continue;
        text_init(&text, path, sizeof path);
        for (const char *at = route->path; *at != '\0'; at++)
            TEXT_JOIN(&text, (const char[]){*at, '\0'}, *at == '{' ? "key" : "");
        json_add_object(out, path);
        for (size_t j = i; (other = http_route_at(j)) != NULL; j++) {
            if (strcmp(other->path, route->path) == 0 && other->when == NULL)
                openapi_operation(out, other);
        }
        json_end(out);
    }
    json_end(out);
}

static void openapi_info(struct text *out)
{
    json_add_string(out, "openapi", "3.0.3");
    json_add_object(out, "info");
    json_add_string(out, "title", "leasehold");
    json_add_string(out, "version", lh_version());
    json_add_string(out, "description",
                    "Locks, ids that are done once, and stored positions. Keys in paths are "
                    "percent-encoded, / as %2F. Tokens are strings: they exceed 53 bits.");
    json_add_object(out, "license");
    json_add_string(out, "name", "Apache-2.0");
    json_add_string(out, "url", "https://www.apache.org/licenses/LICENSE-2.0");
    json_end(out);
    json_end(out);
    json_add_list(out, "servers");
    json_item_object(out);
    json_add_string(out, "url", "/");
    json_end(out);
    json_end_list(out);
    json_add_list(out, "security");
    json_item_object(out);
    json_end(out); /* without credentials, on loopback */
    json_item_object(out);
    json_add_list(out, "bearer");
    json_end_list(out);
    json_end(out);
    json_end_list(out);
}

/* Of a reply, or of one of its `keys` or `changes`. */
static void openapi_properties(struct text *out, bool of_view)
{
    enum { REPLY = 1, VIEW = 2 };
    static const struct {
        const char *name;
        enum json_kind kind;
        int of;
    } members[] = {
        {"outcome", JSON_STRING, REPLY},
        {"token", JSON_STRING, REPLY | VIEW},
        {"holder", JSON_STRING, REPLY | VIEW},
        {"since_ms", JSON_NUMBER, REPLY | VIEW},
        {"ends_in_ms", JSON_NUMBER, REPLY | VIEW},
        {"text", JSON_STRING, REPLY},
        {"refusal", JSON_STRING, REPLY},
        {"retry_after_ms", JSON_NUMBER, REPLY},
        {"cached_ms", JSON_NUMBER, REPLY},
        {"tokens", JSON_OBJECT, REPLY},
        {"status", JSON_NUMBER, REPLY},
        {"value", JSON_STRING, REPLY},
        {"start_ms", JSON_NUMBER, REPLY},
        {"next", JSON_STRING, REPLY},
        {"key", JSON_STRING, REPLY | VIEW},
        {"kind", JSON_STRING, REPLY | VIEW},
        {"state", JSON_STRING, REPLY | VIEW},
        {"takeover_in_ms", JSON_NUMBER, REPLY | VIEW},
        {"renewed_ago_ms", JSON_NUMBER, REPLY | VIEW},
        {"written_ago_ms", JSON_NUMBER, REPLY | VIEW},
        {"holders", JSON_NUMBER, REPLY | VIEW},
        {"waiters", JSON_NUMBER, REPLY | VIEW},
        {"limit", JSON_NUMBER, REPLY | VIEW},
        {"shared", JSON_BOOL, REPLY | VIEW},
        {"broken", JSON_BOOL, REPLY | VIEW},
        {"result", JSON_STRING, REPLY | VIEW},
        {"meta", JSON_OBJECT, REPLY | VIEW},
        {"record", JSON_STRING, REPLY | VIEW},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if ((members[i].of & (of_view ? VIEW : REPLY)) != 0)
            openapi_schema(out, members[i].name, members[i].kind, /* nullable= */ i > 0);
    }
}

static void openapi_add_views(struct text *out, const char *name)
{
    json_add_object(out, name);
    json_add_string(out, "type", "array");
    json_add_object(out, "items");
    json_add_string(out, "$ref", "#/components/schemas/View");
    json_end(out);
    json_end(out);
}

static void openapi_schemas(struct text *out)
{
    json_add_object(out, "schemas");
    json_add_object(out, "Reply");
    json_add_string(out, "type", "object");
    json_add_list(out, "required");
    json_item_string(out, "outcome");
    json_end_list(out);
    json_add_object(out, "properties");
    openapi_properties(out, /* of_view= */ false);
    openapi_add_views(out, "keys");
    openapi_add_views(out, "changes");
    json_end(out);
    json_end(out);
    json_add_object(out, "View");
    json_add_string(out, "type", "object");
    json_add_object(out, "properties");
    openapi_properties(out, /* of_view= */ true);
    json_end(out);
    json_end(out);
    json_end(out);
}

static void openapi_components(struct text *out)
{
    json_add_object(out, "components");
    json_add_object(out, "securitySchemes");
    json_add_object(out, "bearer");
    json_add_string(out, "type", "http");
    json_add_string(out, "scheme", "bearer");
    json_end(out);
    json_end(out);
    openapi_schemas(out);
    json_end(out);
}

void http_openapi(struct daemon_connection *connection, const struct httpd_request *request)
{
    char *bytes = malloc(OPENAPI_MAX);
    struct text text;
    (void)request;
    if (bytes == NULL) {
        http_refuse(connection, 500, "out of memory", NULL);
        return;
    }
    text_init(&text, bytes, OPENAPI_MAX);
    json_begin(&text);
    openapi_info(&text);
    openapi_paths(&text);
    openapi_components(&text);
    json_end(&text);
    ASSERT(!text.cut);
    http_respond(connection, 200, "application/json", bytes, text.length, NULL);
    free(bytes);
}

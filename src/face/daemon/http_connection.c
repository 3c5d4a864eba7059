/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of HTTP: bytes in, requests out, responses in their order. A request waits in the
 * buffer until the response to the one before it was written, and the client has read most of it. A
 * request that does not arrive within 10 s is refused, a client that reads nothing for 10 s is
 * cut, and an idle connection ends after 75 s.
 */
#include "face/daemon/http_face.h"

#include "base/text.h"
#include "process/host.h"
#include "wire/httpd_response.h"
#include "wire/json_text.h"
#include "wire/resp_json.h"

#include <stdlib.h>
#include <string.h>

static const struct httpd_limits http_limits = {.head_max = HTTP_HEAD_MAX,
                                                .body_max = HTTP_BODY_MAX};

#define FULL_BODY \
    "{\"outcome\":\"unavailable\",\"text\":\"unavailable: max number of connections reached\"}"
_Static_assert(sizeof FULL_BODY - 1 == 81, "see Content-Length");

/* With its length: a reset behind it must not look like a part of it. */
const char http_full[] =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "Content-Length: 81\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" FULL_BODY;

/* ---- life ---- */

struct http_face *http_face_new(struct daemon *daemon)
{
    (void)daemon;
    return calloc(1, sizeof(struct http_face));
}

void http_face_free(struct daemon *daemon)
{
    if (daemon->http == NULL)
        return;
    http_events_free(daemon);
    free(daemon->http);
    daemon->http = NULL;
}

static void http_call_in(struct http_connection *http, int64_t after_ms)
{
    poller_call_at(http->connection->daemon->poller, &http->timer,
                   after_ms >= 0 ? host_boot_ms() + after_ms : POLLER_NEVER);
}

bool http_has_room(struct daemon_connection *connection)
{
    struct http_connection *http = connection->http;
    if (stream_unsent(connection->stream) > HTTP_UNSENT_MOST)
        stream_flush(connection->stream);
    if (stream_unsent(connection->stream) <= HTTP_UNSENT_MOST) {
        http->full_since_ms = 0;
        return true;
    }
    if (http->full_since_ms == 0)
        http->full_since_ms = host_boot_ms();
    http_call_in(http, HTTP_ROOM_MS);
    return false;
}

/* The client may have read something. */
static void http_go_on(struct http_connection *http)
{
    struct daemon_connection *connection = http->connection;
    if (host_boot_ms() - http->full_since_ms >= HTTP_READ_MS) {
        connection_refused(connection, REFUSED_SLOW_CLIENT, "it does not read its responses");
        connection_end(connection, CONNECTION_CUT);
    } else if (http->streams) {
        http_events_go_on(connection);
    } else if (http_has_room(connection)) {
        http_call_in(http, HTTP_IDLE_MS);
        connection_resume(connection);
    }
}

/* The request does not arrive, no further one comes, or there was no room for a response. */
static void http_on_timeout(void *owner)
{
    struct http_connection *http = owner;
    if (http->full_since_ms != 0) {
        http_go_on(http);
        return;
    }
    http->keep_alive = http->head_only = false;
    if (http->reading)
        http_refuse(http->connection, 408, "the request did not arrive within 10 s", NULL);
    else
        connection_end_after_replies(http->connection);
}

bool http_connection_new(struct daemon_connection *connection)
{
    struct http_connection *http = calloc(1, sizeof *http);
    if (http == NULL)
        return false;
    connection->http = http;
    connection->daemon->web_count++;
    connection->daemon->counters.web_connections++;
    http->connection = connection;
    http->timer =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = http_on_timeout, .owner = http};
    http->reading = true;
    http_call_in(http, HTTP_READ_MS);
    return true;
}

void http_connection_free(struct daemon_connection *connection)
{
    struct http_connection *http = connection->http;
    if (http == NULL)
        return;
    http_events_leave(connection);
    http_readyz_leave(connection);
    http_call_in(http, -1);
    free(http->prefix);
    free(http);
    connection->http = NULL;
    connection->daemon->web_count--;
}

/* ---- responses ---- */

/* The first row of a status is its outcome. */
static const struct {
    const char *outcome;
    int status;
} http_outcomes[] = {
    {"ok", 200},          {"done", 200},   {"usage", 400},       {"denied", 403},  {"busy", 409},
    {"lost", 410},        {"stale", 412},  {"mismatch", 422},    {"cooling", 423}, {"failed", 500},
    {"unavailable", 503}, {"denied", 401}, {"unavailable", 429},
};

static const char *http_outcome_of(int status)
{
    for (size_t i = 0; i < sizeof http_outcomes / sizeof http_outcomes[0]; i++) {
        if (http_outcomes[i].status == status)
            return http_outcomes[i].outcome;
    }
    return "usage";
}

static int http_status_of(const struct resp_json_summary *summary)
{
    if (strcmp(summary->error, "NOAUTH") == 0 || strcmp(summary->error, "WRONGPASS") == 0)
        return 401;
    for (size_t i = 0; i < sizeof http_outcomes / sizeof http_outcomes[0]; i++) {
        if (strcmp(http_outcomes[i].outcome, summary->outcome) == 0)
            return http_outcomes[i].status;
    }
    return 200;
}

void http_respond(struct daemon_connection *connection, int status, const char *type,
                  const char *body, size_t length, const char *fields)
{
    struct http_connection *http = connection->http;
    char head[1024];
    struct text text;
    text_init(&text, head, sizeof head);
    httpd_response_start(&text, status);
    httpd_response_field(&text, "Content-Type", type);
    httpd_response_number(&text, "Content-Length", length);
    httpd_response_field(&text, "Cache-Control", "no-store");
    httpd_response_field(&text, "X-Content-Type-Options", "nosniff");
    httpd_response_field(&text, "Connection", http->keep_alive ? "keep-alive" : "close");
    text_add(&text, fields != NULL ? fields : "");
    httpd_response_end(&text);
    connection_write(connection, head, text.length);
    bool has_body = !http->head_only;
#ifdef LH_FUZZ_PLANT /* planted bug for the fuzzer: HEAD of an unknown path gets a body */
    has_body = has_body || status == 404;
#endif
    if (has_body)
        connection_write(connection, body, length);
    if (!http->keep_alive) {
        http_call_in(http, -1);
        connection_end_after_replies(connection);
        return;
    }
    http->reading = false;
    http_call_in(http, HTTP_IDLE_MS);
}

static enum daemon_refusal_class http_refusal_class(int status)
{
    switch (status) {
    case 401:
        return REFUSED_NOT_AUTHENTICATED;
    case 403:
        return REFUSED_NOT_PERMITTED;
    case 408:
        return REFUSED_SLOW_CLIENT;
    case 429:
        return REFUSED_LIMIT;
    default:
        return REFUSED_HTTP;
    }
}

void http_refuse(struct daemon_connection *connection, int status, const char *text,
                 const char *fields)
{
    char body[1024];
    struct text out;
    const char *outcome = http_outcome_of(status);
    text_init(&out, body, sizeof body);
    TEXT_JOIN(&out, "{\"outcome\":\"", outcome, "\",\"text\":\"", outcome, ": ");
    json_escape(&out, text, strlen(text));
    text_add(&out, "\"}");
    connection_refused(connection, http_refusal_class(status), httpd_response_phrase(status));
    http_respond(connection, status, "application/json", body, out.length, fields);
}

/* Seconds, rounded up; at least one. */
static void http_retry_after(int64_t after_ms, struct text *out)
{
    int64_t seconds = after_ms > 0 ? (after_ms + 999) / 1000 : 1;
    httpd_response_number(out, "Retry-After", (uint64_t)seconds);
}

void http_reply(struct daemon_connection *connection, const char *bytes, size_t length)
{
    struct resp_json_summary summary;
    struct text json, fields;
    char field[64];
    if (connection->http->streams) {
        http_events_begin(connection);
        return;
    }
    size_t size = 2 * length + 1024;
    char *body = NULL;
    do { /* escapes can make it up to six times as long */
        size *= 3;
        free(body);
        body = malloc(size);
        if (body == NULL) {
            connection->http->keep_alive = false;
            http_refuse(connection, 500, "out of memory", NULL);
            return;
        }
        text_init(&json, body, size);
        (void)resp_json(bytes, length, &json, &summary);
    } while (json.cut && size < 12 * length + 65536);
    int status = http_status_of(&summary);
    text_init(&fields, field, sizeof field);
    if (status == 503)
        http_retry_after(summary.retry_after_ms, &fields);
    http_respond(connection, status, "application/json", body, json.length, field);
    free(body);
}

/* ---- requests ---- */

static void http_handle(struct daemon_connection *connection, const struct httpd_request *request)
{
    struct http_connection *http = connection->http;
    http->scan = (struct httpd_scan){0};
    http->keep_alive = request->keep_alive;
    http->head_only = httpd_is(request->method, "HEAD");
    http_call_in(http, -1);
    if (http_is_allowed(connection, request))
        http_route(connection, request);
}

/* A client that sends no further request gets the responses to those before. But one that asks for
 * a lock, or reads events, is taken for one that has gone: the wait ends, and a late grant is
 * released. */
bool http_is_half_open(void *owner)
{
    const struct daemon_connection *connection = owner;
    return connection->acquisitions.first == NULL && !connection->http->streams;
}

size_t http_on_bytes(void *owner, const char *bytes, size_t length)
{
    struct daemon_connection *connection = owner;
    struct http_connection *http = connection->http;
    size_t used = 0;
    if (!connection_account(connection) || http->streams)
        return length;
    while (used < length && !connection->ending && connection->slot_count == 0 && !http->streams &&
           http_has_room(connection)) {
        struct httpd_request request;
        enum httpd_result result =
            httpd_request_feed(&http->scan, bytes + used, length - used, &http_limits, &request);
        if (result == HTTPD_MORE) {
            if (request.wants_continue)
                connection_write(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25);
            if (!http->reading)
                http_call_in(http, HTTP_READ_MS);
            http->reading = true;
            return used;
        }
        if (result == HTTPD_BROKEN) {
            http->keep_alive = http->head_only = false;
            http_refuse(connection, request.status, request.why, NULL);
            return length;
        }
        used += request.size;
        http_handle(connection, &request);
    }
    if (connection->ending || http->streams)
        return length;
    if (used < length)
        connection_pause(connection);
    return used;
}

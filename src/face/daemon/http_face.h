/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 as a second protocol of the daemon. A request becomes the arguments of a RESP command,
 * and the RESP reply becomes JSON with a status: both protocols run the same verbs, and dispatch.c
 * asks may() for both. A connection has one request at a time.
 */
#ifndef LEASEHOLD_FACE_DAEMON_HTTP_FACE_H
#define LEASEHOLD_FACE_DAEMON_HTTP_FACE_H

#include "face/daemon/daemon_internal.h"
#include "wire/httpd_request.h"

enum {
    HTTP_HEAD_MAX = 16 * 1024,
    HTTP_BODY_MAX = 64 * 1024,
    HTTP_READ_MS = 10000,                      /* for a whole request, from its first byte */
    HTTP_IDLE_MS = 75000,                      /* between requests */
    HTTP_UNSENT_MOST = CONNECTION_OUT_MAX / 4, /* with more, no further response is written … */
    HTTP_ROOM_MS = 20,                         /* … until the client has read some of it */
    HTTP_WAIT_MOST_MS = 60000,
    HTTP_MEMBERS_MAX = 64, /* of a body or a query */
    HTTP_SEGMENT_SIZE = 2048,
};

struct http_connection {
    struct daemon_connection *connection;
    struct httpd_scan scan; /* of the request that arrives */
    struct poller_timer timer;
    bool reading; /* a request has begun to arrive, or none has come yet */
    bool keep_alive, head_only;
    int64_t full_since_ms;       /* 0: not full; see http_has_room() */
    struct daemon_slot *probing; /* of /readyz; NULL: none */
    struct probe_waiter probe;
    /* http_events.c */
    bool streams;
    struct list_node subscriber;
    bool missed;          /* the client has not seen all events before the newest one */
    bool replays;         /* it gets those of the ring … */
    uint64_t last_number; /* … behind this one, before it gets new ones */
    char *prefix;
};

/* Shared by all connections. */
struct http_face {
    struct http_events *events;
    char body[HTTP_BODY_MAX + 1], memory[2 * HTTP_BODY_MAX], segment[HTTP_SEGMENT_SIZE];
    struct json_member members[HTTP_MEMBERS_MAX]; /* of the request that is being started */
    size_t member_count;
    bool members_are_query; /* texts of any kind */
};

/* A path of the service. A route has either a verb or a function of its own. */
struct http_route {
    const char *method;
    const char *path; /* {} is a segment of any text: the key */
    const char *verb;
    /* The positional arguments behind the key, as members of the body or the query: "holder
     * ttl_ms"; those behind "|" may be missing. */
    const char *fields;
    const char *when; /* only if this member is given */
    void (*answer)(struct daemon_connection *connection, const struct httpd_request *request);
    const char *summary;
};

/* ---- http_connection.c ---- */
extern const char http_full[]; /* for a connection beyond the limit */
struct http_face *http_face_new(struct daemon *daemon);
void http_face_free(struct daemon *daemon);
/* False when out of memory. */
bool http_connection_new(struct daemon_connection *connection);
void http_connection_free(struct daemon_connection *connection);
/* A stream_callbacks.bytes. */
size_t http_on_bytes(void *owner, const char *bytes, size_t length);
/* A stream_callbacks.half_open. */
bool http_is_half_open(void *owner);
/* The RESP3 reply of the request. */
void http_reply(struct daemon_connection *connection, const char *bytes, size_t length);
/* `fields`: further ones, each with its line end; may be NULL. */
void http_respond(struct daemon_connection *connection, int status, const char *type,
                  const char *body, size_t length, const char *fields);
/* An object with the outcome of the status and this text. */
void http_refuse(struct daemon_connection *connection, int status, const char *text,
                 const char *fields);

/* True if so few bytes are unsent that more can be written. Otherwise the timer of the connection
 * goes on with it in a moment. */
bool http_has_room(struct daemon_connection *connection);

/* ---- http_guard.c ---- */
/* False: refused with 401, 403 or 421, and answered. */
bool http_is_allowed(struct daemon_connection *connection, const struct httpd_request *request);

/* ---- http_routes.c ---- */
void http_route(struct daemon_connection *connection, const struct httpd_request *request);
const struct http_route *http_route_at(size_t index); /* NULL behind the last */

/* ---- http_fields.c ---- */
/* Reads the body or the query into face->members. False with a status and a reason. */
bool http_read_members(struct http_face *face, const struct httpd_request *request, int *out_status,
                       struct text *why);
/* False, with the nearest one as the reason, if a member is no field of the route; null is as if it
 * were not given. */
bool http_fields_are_known(const struct http_face *face, const struct http_route *route,
                           struct text *why);
/* The arguments of the route's verb from the members. False with a reason. */
bool http_build_args(struct http_face *face, const struct http_route *route, const char *key,
                     struct daemon_args *out, struct text *why);
const struct json_member *http_member(const struct http_face *face, const char *name);
/* JSON_STRING, JSON_NUMBER or JSON_LIST, of a positional argument. */
enum json_kind http_field_kind(const char *name);
/* The next of "holder ttl_ms|…"; false behind the last. */
bool http_next_field(const char **at, char out[32], bool *out_required);

/* ---- http_events.c ---- */
void http_watch(struct daemon_connection *connection, const struct httpd_request *request);
void http_events_begin(struct daemon_connection *connection);
/* There may be room for more of the changes that the client has missed. */
void http_events_go_on(struct daemon_connection *connection);
void http_events_leave(struct daemon_connection *connection);
void http_events_free(struct daemon *daemon);

/* ---- http_pages.c ---- */
void http_index(struct daemon_connection *connection, const struct httpd_request *request);
void http_healthz(struct daemon_connection *connection, const struct httpd_request *request);
void http_readyz(struct daemon_connection *connection, const struct httpd_request *request);
void http_readyz_leave(struct daemon_connection *connection);
void http_metrics(struct daemon_connection *connection, const struct httpd_request *request);

/* ---- http_openapi.c ---- */
void http_openapi(struct daemon_connection *connection, const struct httpd_request *request);

#endif

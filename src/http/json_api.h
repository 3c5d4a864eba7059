/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one JSON API over HTTP. It adds the base address and the credential, and retries what
 * had no effect: a refused credential (401) once with a fresh one, and a request that came too
 * early (429, or a 503 to a read). A pause that the server requests with Retry-After applies to all
 * requests. A request without a reply is not sent again, unless the caller says that it may be.
 */
#ifndef LEASEHOLD_HTTP_JSON_API_H
#define LEASEHOLD_HTTP_JSON_API_H

#include "base/text.h"
#include "http/http.h"
#include "http/json_lines.h"
#include "net/backoff.h"

enum { JSON_WHY = 512, JSON_PAGES_MAX = 2000 };

struct json_api;

/* The source of the credential, called before each request. */
struct json_login {
    bool (*ready)(void *owner); /* false while it is obtained; json_api_wake() follows */
    /* NULL in `out`: none is needed. False with a reason: it is missing. */
    bool (*credential)(void *owner, const char **out, struct text *why);
    void (*refused)(void *owner); /* obtain another one */
    void *owner;
};

/* All strings and `tls` must stay valid; the login may change the files of `tls`. */
struct json_api_options {
    const char *name;   /* in errors: "the API server" */
    const char *server; /* https://host:port, and the path before that of each call */
    const struct stream_tls *tls;
    const char *proxy;  /* as in http.h */
    const char *scheme; /* the word before the credential: "Bearer"; NULL: none */
    const char *accept; /* the header; NULL: "Accept: application/json" */
    struct json_login login;
    int64_t pause_max_ms; /* a longer Retry-After pauses the other requests for this long only */
    bool own_pauses;      /* the caller pauses: only a refused credential is retried here */
    /* A Warning header of any reply, without controls; NULL: they are ignored. */
    void (*warning)(void *user, const char *text);
    void *user;
};

struct json_call {
    const char *method;
    const char *path;   /* follows the server's address; copied */
    const json_t *body; /* NULL is allowed only with GET; not kept */
    /* As in http.h, constant, at most 8: "If-None-Match: …". With a body, they replace
     * "Content-Type: application/json". NULL: none. */
    const char *const *headers;
    size_t most;           /* as in http.h */
    int64_t give_up_at_ms; /* by host_boot_ms(); of a stream: until its first header */
    int64_t send_by_ms;    /* it is not sent from then on, not even again; 0: no limit */
    bool repeatable;       /* it may be sent again if there is no reply, or a 5xx */
    /* A server that has just started may forbid everything: 403 is retried if it has permitted such
     * a call before. */
    bool forbidden_later;
};

/* All fields are valid until the callback returns. */
struct json_reply {
    int status;                           /* 0: none */
    bool refused;                         /* status 0: as in http.h */
    json_t *json;                         /* NULL: none, not JSON, or too large */
    size_t size;                          /* its approximate memory */
    size_t length;                        /* of the body, in bytes */
    int64_t now_ms;                       /* of the Date header, or TIME_UNKNOWN */
    const char *why;                      /* the error; "" if the status is 2xx or 304 */
    const struct http_response *response; /* for http_header(); NULL if nothing was sent */
};

struct json_callbacks {
    /* A stream: each line of a reply with status 200; false drops the request. NULL: no stream. */
    json_line *line;
    void (*done)(void *owner, const struct json_reply *reply);
    void *owner;
};

/* In the caller's memory, zero before the first use; idle again when `done` is called. */
struct json_request {
    struct json_api *api; /* NULL: idle */
    struct list_node node;
    struct json_call call;
    struct json_callbacks callbacks;
    char *url, *body;
    struct http_request *http; /* NULL: not sent yet */
    int64_t not_before_ms;
    struct backoff backoff;
    bool refused; /* a credential was refused */
};

/* NULL when out of memory. */
struct json_api *json_api_new(struct poller *poller, const struct json_api_options *options);
void json_api_free(struct json_api **api); /* requests in flight end without a callback */
/* The credential is ready, or has failed. */
void json_api_wake(struct json_api *api);

/* Calls `done` later, never before it returns, also if the request cannot be sent. */
void json_request_start(struct json_request *request, struct json_api *api,
                        const struct json_call *call, const struct json_callbacks *callbacks);
void json_request_cancel(struct json_request *request); /* no callback follows; may be idle */

/* The result of a call that blocks. */
struct json_result {
    int status;
    json_t *json; /* belongs to the caller; NULL as above */
    int64_t now_ms;
    char why[JSON_WHY];
};

/* Runs the poller until the reply. */
void json_api_call(struct json_api *api, const struct json_call *call, struct json_result *out);
void json_result_done(struct json_result *result);

/* ---- pages ---- */

/* The position in a list of many pages; zero before the first. */
struct json_pages {
    char *next; /* the server's token of the next page; NULL: the first, or none is left */
    unsigned count;
    size_t bytes;
};

/* After a page of that length: `next` is the token in it; NULL or "": it was the last page. Returns
 * NULL, or why the list cannot go on: a faulty server may repeat a page, or send them endlessly. */
const char *json_pages_turn(struct json_pages *pages, const char *next, size_t length);
void json_pages_done(struct json_pages *pages); /* back to the first page */

#endif

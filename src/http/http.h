/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests on a poller: libcurl sends them, many over few connections. A response is delivered
 * complete, or piece by piece if it is endless (a watch). Must not depend on an API or retry.
 */
#ifndef LEASEHOLD_HTTP_HTTP_H
#define LEASEHOLD_HTTP_HTTP_H

#include "net/stream.h"

struct http;         /* connections to any number of servers */
struct http_request; /* freed once `done` returns */

enum { HTTP_HEADER_MAX = 4096 };

struct http_options {
    const char *method, *url;
    const char *const *headers; /* "Name: value", NULL-terminated; copied */
    const char *body;           /* copied; NULL: none */
    size_t body_length;
    /* A secret, sent as Authorization after `scheme` (NULL: alone), never shown; copied; NULL:
     * none. Redirects are not followed, so no other server receives it. */
    const char *credential, *scheme;
    struct stream_tls tls;
    const char *proxy;  /* copied; NULL: from https_proxy and similar variables */
    int64_t timeout_ms; /* for the whole request; with `piece`, until the first header */
    int64_t send_by_ms; /* by host_boot_ms(): no body is sent from then on; 0: no limit */
    size_t most;        /* limit of a response in bytes, or of unconsumed bytes */
};

struct http_response {
    int status;       /* 0: no response */
    bool refused;     /* status 0: no server listens at any of its addresses */
    const char *body; /* valid until the callback returns; NUL-terminated */
    size_t body_length;
    int64_t date_s;         /* of the Date header, seconds since 1970; −1: none */
    int64_t retry_after_ms; /* −1: none */
    const char *why;        /* status 0: the error */
    const struct http_request *request;
};

struct http_callbacks {
    /* As `bytes` in stream.h; NULL: the response is delivered complete. Only for status 200. */
    size_t (*piece)(void *owner, const char *bytes, size_t length);
    void (*done)(void *owner, const struct http_response *response);
    void *owner;
};

struct http *http_new(struct poller *poller);
void http_free(struct http **http); /* requests in flight end without a callback */
/* NULL when out of memory. */
struct http_request *http_start(struct http *http, const struct http_options *options,
                                const struct http_callbacks *callbacks);
/* The value of the header of that name, or of the index-th of several, as the server sent it; NULL:
 * there is none, or it is longer than HTTP_HEADER_MAX. Valid until the callback returns. */
const char *http_header(const struct http_response *response, const char *name, size_t index);
/* No callback follows. */
void http_cancel(struct http_request *request);

#endif

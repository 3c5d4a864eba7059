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

struct http_options {
    const char *method, *url;
    const char *const *headers; /* "Name: value", NULL-terminated; copied */
    const char *body;           /* copied; NULL: none */
    size_t body_length;
    const char *bearer; /* a secret, sent as Authorization, never shown; copied; NULL: none */
    struct stream_tls tls;
    const char *proxy;  /* copied; NULL: from https_proxy and similar variables */
    int64_t timeout_ms; /* for the whole request; with `piece`, until the first header */
    size_t most;        /* limit of a response in bytes, or of unconsumed bytes */
};

struct http_response {
    int status;       /* 0: no response */
    bool refused;     /* status 0: no server listens at any of its addresses */
    const char *body; /* valid until the callback returns; NUL-terminated */
    size_t body_length;
    int64_t date_s;         /* of the Date header, seconds since 1970; −1: none */
    int64_t retry_after_ms; /* −1: none */
    const char *warnings;   /* the texts of Warning headers, a line each, without controls; "" */
    const char *why;        /* status 0: the error */
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
/* No callback follows. */
void http_cancel(struct http_request *request);

#endif

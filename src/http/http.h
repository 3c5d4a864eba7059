/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests on a net: libcurl carries them, many over few connections. Answers come whole, or
 * piece by piece for those that never end (watches). Knows no API; retries nothing.
 */
#ifndef LEASEHOLD_HTTP_HTTP_H
#define LEASEHOLD_HTTP_HTTP_H

#include "net/stream.h"

struct http;         /* connections to any number of servers */
struct http_request; /* gone once `done` returns */

struct http_options {
    const char *method, *url;
    const char *const *headers; /* "Name: value", NULL behind the last; copied */
    const char *body;           /* copied; NULL: none */
    size_t body_length;
    const char *bearer; /* a secret, sent as Authorization, never shown; copied; NULL: none */
    struct stream_tls tls;
    const char *proxy;  /* copied; NULL: what https_proxy and its kin say */
    int64_t timeout_ms; /* for the whole; with `piece` until the first byte of the answer */
    size_t most;        /* bytes of an answer, or of a piece that was not used up */
};

struct http_response {
    int status;       /* 0: none came */
    bool sent;        /* status 0: it may have reached the server; its outcome is unknown */
    bool untrusted;   /* status 0: a certificate was refused, theirs or ours */
    bool refused;     /* status 0: nobody listens there, at any of its addresses */
    const char *body; /* until the callback returns; ends with a NUL beyond its length */
    size_t body_length;
    int64_t date_s;         /* of the Date header, seconds since 1970; −1: none */
    int64_t retry_after_ms; /* −1: none was said */
    const char *warnings;   /* the texts of Warning headers, a line each, without controls; "" */
    const char *why;        /* status 0: what happened */
};

struct http_callbacks {
    /* As in stream.h; NULL: the answer comes whole. Only for answers with a status of 200. */
    size_t (*piece)(void *owner, const char *bytes, size_t length);
    void (*done)(void *owner, const struct http_response *response);
    void *owner;
};

struct http *http_new(struct poller *poller);
void http_free(struct http **http); /* what is on its way ends without a word */
/* NULL when out of memory. */
struct http_request *http_start(struct http *http, const struct http_options *options,
                                const struct http_callbacks *callbacks);
/* Says nothing more. */
void http_cancel(struct http_request *request);

#endif

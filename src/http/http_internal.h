/* SPDX-License-Identifier: Apache-2.0 */
/* What http.c and http_setup.c share; nobody else includes it. */
#ifndef LEASEHOLD_HTTP_HTTP_INTERNAL_H
#define LEASEHOLD_HTTP_HTTP_INTERNAL_H

#include "http/curl.h"
#include "http/http.h"

struct socket;

struct http {
    uint32_t magic;
    struct poller *poller;
    const struct curl_calls *curl; /* NULL: there is none */
    CURLM *multi;
    struct poller_timer timer;
    struct socket *sockets;
    struct http_request *requests;
    struct http_request *delivering; /* whose callback runs; NULL once it was cancelled in it */
};

struct http_request {
    struct http_request *next, *before;
    struct http *http;
    CURL *easy;
    struct http_callbacks callbacks;
    struct poller_timer timeout;
    int64_t timeout_ms;
    struct curl_slist *headers, *connect_to;
    char *url, *body;
    size_t body_length, body_read;
    size_t most;
    char *bytes; /* of the answer, as far as they were not used up */
    size_t length, room;
    int64_t date_s, retry_after_ms;
    char *warnings; /* HTTP_WARNINGS bytes; NULL: none came */
    bool fresh;     /* bytes that a piece was not told of */
    bool too_long;  /* for `most` */
    bool refused;
    char host_port[128];
    char message[CURL_ERROR_SIZE];
};

enum { HTTP_WARNINGS = 4096 };

/* Tells libcurl what is wanted and hands it over; false when out of memory. */
bool http_set_up(struct http_request *request, const struct http_options *options);

/* libcurl calls these. */
size_t http_on_body(char *bytes, size_t size, size_t count, void *owner);
size_t http_on_header(char *bytes, size_t size, size_t count, void *owner);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by http.c and http_setup.c; no other file may include it. */
#ifndef LEASEHOLD_HTTP_HTTP_INTERNAL_H
#define LEASEHOLD_HTTP_HTTP_INTERNAL_H

#include "base/list.h"
#include "http/curl.h"
#include "http/http.h"

struct http {
    uint32_t magic;
    struct poller *poller;
    const struct curl_calls *curl; /* NULL: it cannot be loaded, … */
    const char *curl_error;        /* … for this reason */
    CURLM *multi;
    struct poller_timer timer;
    struct list sockets, requests;
    struct http_request *delivering; /* its callback runs; NULL once that has cancelled it */
};

struct http_request {
    struct list_node node;
    struct http *http;
    CURL *easy;
    struct http_callbacks callbacks;
    struct poller_timer timeout;
    int64_t timeout_ms, send_by_ms;
    struct curl_slist *headers, *connect_to;
    char *url, *body;
    size_t body_length, body_read;
    size_t most;
    char *bytes; /* of the response, not consumed yet */
    size_t length, room;
    size_t header_bytes;
    bool fresh;    /* bytes not passed to `piece` yet */
    bool too_long; /* exceeds `most`, or its headers HTTP_HEADERS_MAX */
    bool too_late; /* its body may not be sent any more */
    bool refused;
    char host_port[128];
    char message[CURL_ERROR_SIZE];
};

enum { HTTP_HEADERS_MAX = 64 * 1024 };

/* Configures the request and passes it to libcurl; false when out of memory. */
bool http_set_up(struct http_request *request, const struct http_options *options);

/* libcurl calls these. */
size_t http_on_body(char *bytes, size_t size, size_t count, void *owner);
size_t http_on_header(char *bytes, size_t size, size_t count, void *owner);

#endif

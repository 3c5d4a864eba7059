/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http.h. A libcurl callback must not call our caller, which may start and cancel requests:
 * results are stored, and delivered once libcurl has returned. HTTP/1.1 over a few persistent
 * connections. A body can be read only once, so libcurl, which repeats a request when a connection
 * breaks, cannot send a change twice.
 */
#include "http/http_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_MAGIC = 0x4177,
    CONNECTIONS_MAX = 32, /* to one server; further requests wait */
    BURST = 2 << 20,      /* bytes that one call of libcurl can add to the unconsumed ones */
    PIECE_FIRST = 4096,
};

/* A socket of libcurl. */
struct socket {
    struct list_node node;
    struct poller_watch watch;
    struct http *http;
};

/* ---- sockets and timer of libcurl ---- */

static void http_deliver_all(struct http *http);

static void http_socket_action(struct http *http, curl_socket_t file, int what)
{
    int running = 0;
    (void)http->curl->multi_socket_action(http->multi, file, what, &running);
    http_deliver_all(http);
}

static void http_on_socket(void *owner, unsigned what)
{
    struct socket *socket = owner;
    http_socket_action(socket->http, socket->watch.file,
                       ((what & POLLER_READ) != 0 ? CURL_CSELECT_IN : 0) |
                           ((what & POLLER_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static void http_on_timer(void *owner)
{
    http_socket_action(owner, CURL_SOCKET_TIMEOUT, 0);
}

static int http_on_curl_timer(CURLM *multi, long after_ms, void *owner)
{
    struct http *http = owner;
    (void)multi;
    poller_call_at(http->poller, &http->timer,
                   after_ms < 0 ? POLLER_NEVER : host_boot_ms() + after_ms);
    return 0;
}

static void drop_socket(struct socket *socket)
{
    (void)poller_watch(socket->http->poller, &socket->watch, 0);
    list_remove(&socket->http->sockets, &socket->node);
    free(socket);
}

static struct socket *add_socket(struct http *http, curl_socket_t file)
{
    struct socket *socket = calloc(1, sizeof *socket);
    if (socket == NULL)
        return NULL;
    socket->http = http;
    socket->watch.file = file;
    socket->watch.ready = http_on_socket;
    socket->watch.owner = socket;
    list_prepend(&http->sockets, &socket->node);
    (void)http->curl->multi_assign(http->multi, file, socket);
    return socket;
}

/* If the socket cannot be watched, the timeout ends the request. */
static int http_on_curl_socket(CURL *easy, curl_socket_t file, int what, void *owner, void *known)
{
    struct http *http = owner;
    struct socket *socket = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL)
            drop_socket(socket);
        return 0;
    }
    if (socket == NULL && (socket = add_socket(http, file)) == NULL)
        return -1;
    unsigned wants = ((what & CURL_POLL_IN) != 0 ? POLLER_READ : 0U) |
                     ((what & CURL_POLL_OUT) != 0 ? POLLER_WRITE : 0U);
    return poller_watch(http->poller, &socket->watch, wants) ? 0 : -1;
}

/* ---- response ---- */

static size_t most_of(const struct http_request *request)
{
    return request->most + (request->callbacks.piece != NULL ? (size_t)BURST : 0);
}

static bool request_reserve(struct http_request *request, size_t more)
{
    size_t room = request->room > 0 ? request->room : PIECE_FIRST;
    size_t most = most_of(request) + 1;
    while (room < request->length + more + 1)
        room *= 2;
    room = room < most ? room : most;
    if (room == request->room)
        return true;
    char *bytes = realloc(request->bytes, room);
    if (bytes == NULL)
        return false;
    request->bytes = bytes;
    request->room = room;
    return true;
}

/* A return value other than the length ends the request. */
size_t http_on_body(char *bytes, size_t size, size_t count, void *owner)
{
    struct http_request *request = owner;
    size_t length = size * count;
    request->too_long = request->length + length > most_of(request);
    if (request->too_long || !request_reserve(request, length))
        return 0;
    memcpy(request->bytes + request->length, bytes, length);
    request->length += length;
    request->bytes[request->length] = '\0';
    request->fresh = true;
    return length;
}

static bool is_good(const struct http_request *request)
{
    long status = 0;
    (void)request->http->curl->easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 200;
}

/* libcurl keeps the headers; their number is limited here. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
size_t http_on_header(char *bytes, size_t size, size_t count, void *owner)
{
    struct http_request *request = owner;
    (void)bytes;
    if (request->callbacks.piece != NULL && is_good(request)) /* it has begun */
        poller_call_at(request->http->poller, &request->timeout, POLLER_NEVER);
    request->header_bytes += size * count;
    request->too_long = request->header_bytes > HTTP_HEADERS_MAX;
    return request->too_long ? 0 : size * count;
}

static const char *request_header(const struct http_request *request, const char *name,
                                  size_t index)
{
    struct curl_header *header = NULL;
    bool found = request->http->curl->easy_header(request->easy, name, index, CURLH_HEADER, -1,
                                                  &header) == CURLHE_OK;
    const char *value = found ? header->value + strspn(header->value, " \t\r\n") : NULL;
    return found && strlen(value) <= HTTP_HEADER_MAX ? value
                                                     : NULL; /* an empty one may be "\r\n" */
}

const char *http_header(const struct http_response *response, const char *name, size_t index)
{
    return response->status != 0 ? request_header(response->request, name, index) : NULL;
}

static int64_t request_date_s(const struct http_request *request, const char *name)
{
    const char *value = request_header(request, name, /* index= */ 0);
    time_t at = value != NULL ? request->http->curl->getdate(value, NULL) : -1;
    return at >= 0 ? (int64_t)at : -1;
}

/* Seconds, or a date of the server's clock. */
static int64_t request_retry_ms(const struct http_request *request, int64_t date_s)
{
    enum { MOST_S = 24 * 3600 };
    const char *value = request_header(request, "Retry-After", /* index= */ 0);
    char *end = NULL;
    if (value == NULL)
        return -1;
    long long seconds = strtoll(value, &end, 10);
    if (end == value) {
        int64_t at_s = request_date_s(request, "Retry-After");
        if (at_s < 0 || date_s < 0)
            return -1;
        seconds = at_s - date_s;
    }
    if (seconds < 0)
        seconds = 0;
    return 1000 * (seconds < MOST_S ? seconds : MOST_S);
}

/* ---- delivery ---- */

static void request_drop(struct http_request *request)
{
    struct http *http = request->http;
    const struct curl_calls *curl = http->curl;
    list_remove(&http->requests, &request->node);
    if (http->delivering == request)
        http->delivering = NULL;
    poller_call_at(http->poller, &request->timeout, POLLER_NEVER);
    if (curl != NULL) {
        (void)curl->multi_remove_handle(http->multi, request->easy);
        curl->easy_cleanup(request->easy);
        for (struct curl_slist *header = request->headers; header != NULL; header = header->next)
            explicit_bzero(header->data, strlen(header->data)); /* one has the credential */
        curl->slist_free_all(request->headers);
        curl->slist_free_all(request->connect_to);
    }
    if (request->body != NULL)
        explicit_bzero(request->body, request->body_length);
    if (request->bytes != NULL)
        explicit_bzero(request->bytes, request->room); /* it may contain a token */
    free(request->bytes);
    free(request->body);
    free(request->url);
    free(request);
}

/* Calls `done` and frees the request. */
static void request_finish(struct http_request *request, const struct http_response *response)
{
    struct http_callbacks callbacks = request->callbacks;
    request->http->delivering = request;
    callbacks.done(callbacks.owner, response);
    /* The callback may have cancelled, and so freed, the request. */
    if (request->http->delivering == request)
        request_drop(request);
}

static void request_fail(struct http_request *request, const char *what)
{
    char message[sizeof request->host_port + sizeof request->message + 8];
    (void)snprintf(message, sizeof message, "%s: %s", request->host_port, what);
    struct http_response response = {.refused = request->refused,
                                     .body = "",
                                     .date_s = -1,
                                     .retry_after_ms = -1,
                                     .why = message};
    request_finish(request, &response);
}

static void request_report(struct http_request *request, CURLcode code)
{
    const struct curl_calls *curl = request->http->curl;
    long status = 0;
    (void)curl->easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    const char *message =
        request->message[0] != '\0' ? request->message : curl->easy_strerror(code);
    if (request->too_long || request->too_late)
        message = request->too_long ? "the answer is too long" : "it connected too late to send";
    long error = 0;
    (void)curl->easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &error);
    request->refused = code == CURLE_COULDNT_CONNECT && error == ECONNREFUSED;
    if (code != CURLE_OK || status == 0) {
        request_fail(request, message);
        return;
    }
    int64_t date_s = request_date_s(request, "Date");
    struct http_response response = {.status = (int)status,
                                     .body = request->bytes != NULL ? request->bytes : "",
                                     .body_length = request->length,
                                     .date_s = date_s,
                                     .retry_after_ms = request_retry_ms(request, date_s),
                                     .request = request};
    request_finish(request, &response);
}

/* False if the request was freed: cancelled by its callback, or too long. */
static bool request_deliver(struct http_request *request)
{
    struct http *http = request->http;
    request->fresh = false;
    http->delivering = request;
    size_t used =
        request->callbacks.piece(request->callbacks.owner, request->bytes, request->length);
    if (http->delivering != request)
        return false;
    ASSERT(used <= request->length);
    http->delivering = NULL;
    request->length -= used;
    memmove(request->bytes, request->bytes + used, request->length + 1);
    if (request->length < request->most)
        return true;
    request_fail(request, "a part of the answer is too long");
    return false;
}

/* Callbacks may start and cancel requests, so the scan restarts after each. */
static void http_deliver_pieces(struct http *http)
{
    struct list_node *node = http->requests.first;
    while (node != NULL) {
        struct http_request *request = LIST_ENTRY(node, struct http_request, node);
        bool pending = request->callbacks.piece != NULL && request->fresh && is_good(request);
        if (pending)
            (void)request_deliver(request);
        node = pending ? http->requests.first : node->next;
    }
}

static void http_deliver_all(struct http *http)
{
    struct CURLMsg *message;
    int left = 0;
    http_deliver_pieces(http);
    while ((message = http->curl->multi_info_read(http->multi, &left)) != NULL) {
        char *owner = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result; /* freed with the handle */
        (void)http->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        request_report((struct http_request *)(void *)owner, code);
    }
}

static void request_on_timeout(void *owner)
{
    struct http_request *request = owner;
    char message[64];
    (void)snprintf(message, sizeof message, "no answer within %lld ms",
                   (long long)request->timeout_ms);
    request_fail(request, request->http->curl != NULL ? message : request->http->curl_error);
}

/* ---- start and cancel ---- */

struct http_request *http_start(struct http *http, const struct http_options *options,
                                const struct http_callbacks *callbacks)
{
    ASSERT(http->magic == HTTP_MAGIC && callbacks->done != NULL && options->timeout_ms > 0);
    struct http_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return NULL;
    request->http = http;
    list_prepend(&http->requests, &request->node);
    request->callbacks = *callbacks;
    request->most = options->most;
    request->timeout_ms = http->curl != NULL ? options->timeout_ms : 0;
    request->send_by_ms = options->send_by_ms;
    request->timeout.due = request_on_timeout;
    request->timeout.owner = request;
    request->url = strdup(options->url);
    request->body_length = options->body != NULL ? options->body_length : 0;
    request->body = malloc(request->body_length + 1);
    bool fits = request->url != NULL && request->body != NULL;
    if (fits && request->body_length > 0)
        memcpy(request->body, options->body, request->body_length);
    poller_call_at(http->poller, &request->timeout, host_boot_ms() + request->timeout_ms);
    if (!fits || (http->curl != NULL && !http_set_up(request, options))) {
        request_drop(request);
        return NULL;
    }
    return request;
}

void http_cancel(struct http_request *request)
{
    ASSERT(request->http->magic == HTTP_MAGIC);
    request_drop(request);
}

/* ---- setup ---- */

struct http *http_new(struct poller *poller)
{
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return NULL;
    http->magic = HTTP_MAGIC;
    http->poller = poller;
    http->curl = curl_load(&http->curl_error);
    http->timer.due = http_on_timer;
    http->timer.owner = http;
    if (http->curl == NULL)
        return http; /* each request reports it */
    http->multi = http->curl->multi_init();
    if (http->multi == NULL) {
        free(http);
        return NULL;
    }
    (void)http->curl->multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, http_on_curl_socket);
    (void)http->curl->multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    (void)http->curl->multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, http_on_curl_timer);
    (void)http->curl->multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    (void)http->curl->multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                                   (long)CONNECTIONS_MAX);
    return http;
}

void http_free(struct http **http_pointer)
{
    struct http *http = *http_pointer;
    if (http == NULL)
        return;
    ASSERT(http->magic == HTTP_MAGIC);
    for (struct list_node *node = http->requests.first, *next; node != NULL; node = next) {
        next = node->next;
        request_drop(LIST_ENTRY(node, struct http_request, node));
    }
    if (http->curl != NULL)
        (void)http->curl->multi_cleanup(http->multi);
    for (struct list_node *node = http->sockets.first, *next; node != NULL; node = next) {
        next = node->next;
        drop_socket(LIST_ENTRY(node, struct socket, node));
    }
    poller_call_at(http->poller, &http->timer, POLLER_NEVER);
    http->magic = 0;
    free(http);
    *http_pointer = NULL;
}

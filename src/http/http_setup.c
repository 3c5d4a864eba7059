/* SPDX-License-Identifier: Apache-2.0 */
/* Configures a request in libcurl; see http.h. */
#include "http/http_internal.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Programs that we start must not inherit connections. */
static curl_socket_t open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)owner;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Called when the connection is established, which may have taken long. */
static size_t read_body(char *out, size_t size, size_t count, void *owner)
{
    struct http_request *request = owner;
    size_t length = request->body_length - request->body_read;
    request->too_late = request->send_by_ms > 0 && host_boot_ms() >= request->send_by_ms;
    if (request->too_late)
        return CURL_READFUNC_ABORT;
    if (length > size * count)
        length = size * count;
    memcpy(out, request->body + request->body_read, length);
    request->body_read += length;
    return length;
}

/* Host and port, for error texts: a user name and password before an @ must not be shown. */
static void set_host_port(struct http_request *request, const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    size_t length = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', length);
    if (at != NULL) {
        length -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    (void)snprintf(request->host_port, sizeof request->host_port, "%.*s", (int)length, host);
}

static bool add_header(struct http_request *request, const char *line)
{
    struct curl_slist *longer = request->http->curl->slist_append(request->headers, line);
    if (longer != NULL)
        request->headers = longer;
    return longer != NULL;
}

static bool set_headers(struct http_request *request, const struct http_options *options)
{
    bool fits = add_header(request, "Expect:"); /* no 100-continue before the body */
    for (size_t i = 0; fits && options->headers != NULL && options->headers[i] != NULL; i++)
        fits = add_header(request, options->headers[i]);
    if (!fits || options->credential == NULL)
        return fits;
    char *line = NULL;
    int length =
        asprintf(&line, "Authorization: %s%s%s", options->scheme != NULL ? options->scheme : "",
                 options->scheme != NULL ? " " : "", options->credential);
    if (length < 0)
        return false;
    fits = add_header(request, line);
    explicit_bzero(line, (size_t)length);
    free(line);
    return fits;
}

/*
 * For a certificate with a name other than the host: the URL gets that name, and CONNECT_TO leads
 * the connection to the host.
 */
static bool rename_server(struct http_request *request, const char *name)
{
    const struct curl_calls *curl = request->http->curl;
    char *host = NULL, *port = NULL, *url = NULL;
    CURLU *parts = curl->url();
    bool good = parts != NULL &&
                curl->url_set(parts, CURLUPART_URL, request->url, 0) == CURLUE_OK &&
                curl->url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl->url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl->url_set(parts, CURLUPART_HOST, name, 0) == CURLUE_OK &&
                curl->url_get(parts, CURLUPART_URL, &url, 0) == CURLUE_OK;
    if (good) {
        char line[512];
        (void)snprintf(line, sizeof line, "::%s:%s", host, port);
        request->connect_to = curl->slist_append(NULL, line);
        (void)curl->easy_setopt(request->easy, CURLOPT_URL, url);
        (void)curl->easy_setopt(request->easy, CURLOPT_CONNECT_TO, request->connect_to);
        (void)snprintf(line, sizeof line, "Host: %s:%s", host, port);
        good = request->connect_to != NULL && add_header(request, line);
    }
    curl->free(host);
    curl->free(port);
    curl->free(url);
    curl->url_cleanup(parts);
    return good;
}

static void set_tls(struct http_request *request, const struct stream_tls *tls)
{
    const struct curl_calls *curl = request->http->curl;
    CURL *easy = request->easy;
    (void)curl->easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* use a new file at once */
    if (tls->ca_file != NULL) {
        (void)curl->easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
        (void)curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (tls->cert_file != NULL) {
        (void)curl->easy_setopt(easy, CURLOPT_SSLCERT, tls->cert_file);
        (void)curl->easy_setopt(easy, CURLOPT_SSLKEY,
                                tls->key_file != NULL ? tls->key_file : tls->cert_file);
    }
}

static void set_body(struct http_request *request, const struct http_options *options)
{
    const struct curl_calls *curl = request->http->curl;
    CURL *easy = request->easy;
    if (options->body != NULL) {
        (void)curl->easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                (curl_off_t)options->body_length);
        (void)curl->easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
        (void)curl->easy_setopt(easy, CURLOPT_READDATA, request);
    }
    (void)curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
}

bool http_set_up(struct http_request *request, const struct http_options *options)
{
    const struct curl_calls *curl = request->http->curl;
    CURL *easy = request->easy = curl->easy_init();
    if (easy == NULL)
        return false;
    set_host_port(request, options->url);
    (void)curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, options->tls.on ? "https" : "http");
    (void)curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* A cancelled request must not wait for the resolver thread: that would delay deadlines. */
    (void)curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
    (void)curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, request->message);
    (void)curl->easy_setopt(easy, CURLOPT_PRIVATE, request);
    (void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_on_body);
    (void)curl->easy_setopt(easy, CURLOPT_WRITEDATA, request);
    (void)curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_on_header);
    (void)curl->easy_setopt(easy, CURLOPT_HEADERDATA, request);
    bool fits = curl->easy_setopt(easy, CURLOPT_URL, options->url) == CURLE_OK &&
                set_headers(request, options) &&
                (options->tls.name == NULL || rename_server(request, options->tls.name));
    if (options->proxy != NULL) {
        (void)curl->easy_setopt(easy, CURLOPT_PROXY, options->proxy);
        (void)curl->easy_setopt(easy, CURLOPT_NOPROXY, "");
    }
    /* The Date header must be the server's, not a proxy's. */
    (void)curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set_body(request, options);
    set_tls(request, &options->tls);
    (void)curl->easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    return fits && curl->multi_add_handle(request->http->multi, easy) == CURLM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as pipelined HTTP requests. The oracle: the same result byte by byte, in two pieces and
 * at once; a complete request is read again here, in the simplest way, with the same body and end.
 * Built with LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "wire/httpd_request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MOST = 400, BODY_MOST = 300 };

static const struct httpd_limits limits = {.head_max = HEAD_MOST, .body_max = BODY_MOST};

static bool is_within(struct httpd_slice slice, const char *bytes, size_t length)
{
    return slice.bytes == NULL
               ? slice.length == 0
               : slice.bytes >= bytes && slice.length <= length - (size_t)(slice.bytes - bytes);
}

static bool is_equal(struct httpd_slice one, struct httpd_slice other)
{
    return one.bytes == other.bytes && one.length == other.length;
}

/* Feeds the first `cut` bytes, then `step` more each time. */
static enum httpd_result feed_pieces(const char *bytes, size_t length, size_t cut, size_t step,
                                     struct httpd_request *out)
{
    struct httpd_scan scan = {0};
    size_t continues = 0;
    enum httpd_result result = httpd_request_feed(&scan, bytes, cut, &limits, out);
    while (result == HTTPD_MORE && cut < length) {
        continues += out->wants_continue;
        cut = length - cut < step ? length : cut + step;
        result = httpd_request_feed(&scan, bytes, cut, &limits, out);
    }
    ASSERT(continues <= 1 && (result != HTTPD_MORE || length < httpd_request_max(&limits)));
    return result;
}

static void check_pieces(const char *bytes, size_t length, enum httpd_result result,
                         const struct httpd_request *request)
{
    struct httpd_request other;
    for (size_t step = 1; step <= length; step += 1 + step / 4) {
        ASSERT(feed_pieces(bytes, length, step, step, &other) == result);
        ASSERT(other.status == request->status && other.why == request->why);
        ASSERT(other.size == request->size && other.body_length == request->body_length);
        ASSERT(other.chunked == request->chunked && other.keep_alive == request->keep_alive);
        ASSERT(is_equal(other.method, request->method) && is_equal(other.path, request->path));
        ASSERT(is_equal(other.query, request->query) && is_equal(other.host, request->host));
        ASSERT(is_equal(other.authorization, request->authorization));
        ASSERT(is_equal(other.origin, request->origin) && is_equal(other.body, request->body));
    }
}

/* The line at `at`: its length without the line end, which no other CR or LF precedes. */
static size_t line_length(const char *at, const char *end)
{
    size_t length = 0;
    while (at + length < end && at[length] != '\r' && at[length] != '\n')
        length++;
    ASSERT(end - at >= (ptrdiff_t)length + 2 && memcmp(at + length, "\r\n", 2) == 0);
    return length;
}

/* The lines up to the empty one; returns what is behind it. */
static const char *check_lines(const char *at, const char *end)
{
    size_t length;
    do {
        length = line_length(at, end);
        ASSERT(memchr(at, '\0', length) == NULL);
        at += length + 2;
    } while (length > 0);
    return at;
}

/* The number of lines from `at` to the empty one that begin so, in any case; the last value. */
static size_t count_fields(const char *at, const char *end, const char *name,
                           const char **out_value)
{
    size_t count = 0;
    for (size_t length; (length = line_length(at, end)) > 0; at += length + 2)
        if (length >= strlen(name) && strncasecmp(at, name, strlen(name)) == 0) {
            count++;
            *out_value = at + strlen(name);
        }
    return count;
}

/* The head alone decides how long the body is. */
static void check_framing(const char *head, const char *end, const struct httpd_request *request)
{
    const char *value = NULL, *coding = NULL;
    size_t lengths = count_fields(head, end, "content-length:", &value);
    size_t codings = count_fields(head, end, "transfer-encoding:", &coding);
    ASSERT(lengths + codings <= 1 && request->chunked == (codings == 1));
    if (lengths == 1)
        ASSERT(strtoul(value, NULL, 10) == request->body_length);
    ASSERT(lengths + codings == 1 || request->body_length == 0);
    ASSERT(count_fields(head, end, "host:", &value) == (request->host.bytes != NULL));
    ASSERT(count_fields(head, end, "authorization:", &value) ==
           (request->authorization.bytes != NULL));
}

/* The chunks once more; `body` is the body as the reader copied it. */
static const char *check_chunks(const char *at, const char *end, const char *body, size_t left)
{
    for (;;) {
        size_t length = line_length(at, end);
        char *behind = NULL;
        size_t size = strtoul(at, &behind, 16); /* stops at the line end */
        ASSERT(behind > at && (*behind == ';' || behind == at + length) && size <= left);
        at += length + 2;
        if (size == 0)
            break;
        ASSERT(memcmp(at, body, size) == 0 && memcmp(at + size, "\r\n", 2) == 0);
        at += size + 2;
        body += size;
        left -= size;
    }
    ASSERT(left == 0);
    return check_lines(at, end);
}

static void check_complete(const char *bytes, size_t length, const struct httpd_request *request)
{
    const char *end = bytes + request->size, *head = bytes;
    char body[BODY_MOST], text[HEAD_MOST];
    ASSERT(request->size <= length && request->size <= httpd_request_max(&limits));
    ASSERT(request->body_length <= BODY_MOST && request->status == 0 && !request->wants_continue);
    ASSERT(httpd_request_body(request, body) == request->body_length);
    ASSERT(is_within(request->method, bytes, request->size) && request->method.length > 0);
    ASSERT(is_within(request->path, bytes, request->size) && request->path.bytes[0] == '/');
    ASSERT(is_within(request->query, bytes, request->size));
    ASSERT(is_within(request->host, bytes, request->size));
    ASSERT(is_within(request->authorization, bytes, request->size));
    (void)httpd_decode_path(request->path, text, sizeof text);
    (void)httpd_decode_query(request->query, text, sizeof text);
    if (head[0] == '\r')
        head += line_length(head, end) + 2;
    ASSERT(request->method.bytes == head);
    check_framing(head, end, request);
    head = check_lines(head, end);
    ASSERT(head == request->body.bytes && head + request->body.length == end);
    if (request->chunked)
        ASSERT(check_chunks(head, end, body, request->body_length) == end);
    else
        ASSERT(head + request->body_length == end && memcmp(head, body, request->body_length) == 0);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct httpd_request request;
    while (size > 0) {
        enum httpd_result result = feed_pieces(bytes, size, size, 1, &request);
        check_pieces(bytes, size, result, &request);
        ASSERT((result == HTTPD_BROKEN) == (request.why != NULL && request.status >= 400));
        if (result != HTTPD_COMPLETE)
            return 0;
        check_complete(bytes, size, &request);
        bytes += request.size;
        size -= request.size;
    }
    return 0;
}

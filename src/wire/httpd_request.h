/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of HTTP/1.0 and HTTP/1.1 clients, as a server reads them (RFC 9112). Pure: no
 * allocation, no copies. The bytes of a request stay in the connection's buffer until it is
 * complete. A request that two readers could understand differently is refused.
 */
#ifndef LEASEHOLD_WIRE_HTTPD_REQUEST_H
#define LEASEHOLD_WIRE_HTTPD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct httpd_limits {
    size_t head_max; /* bytes of the head; also of the framing of a chunked body, with trailers */
    size_t body_max; /* bytes of the body, without framing */
};

/* No request is longer: with as many bytes, httpd_request_feed() does not ask for more. */
static inline size_t httpd_request_max(const struct httpd_limits *limits)
{
    return 2 * limits->head_max + limits->body_max;
}

/* Points into the input; not NUL-terminated. */
struct httpd_slice {
    const char *bytes;
    size_t length;
};

/* A slice relative to the start of the request: the buffer may move while the request arrives. */
struct httpd_span {
    uint32_t at, length;
};

/* Fields that a request has at most once. */
enum httpd_field {
    HTTPD_HOST,
    HTTPD_ORIGIN,
    HTTPD_AUTHORIZATION,
    HTTPD_CONTENT_TYPE,
    HTTPD_LAST_EVENT_ID,
    HTTPD_CONTENT_LENGTH,
    HTTPD_TRANSFER_ENCODING,
    HTTPD_EXPECT,
    HTTPD_FIELDS, /* the number of them */
};

enum httpd_phase {
    HTTPD_REQUEST_LINE,
    HTTPD_HEAD, /* fields */
    HTTPD_DATA, /* bytes of a body or a chunk */
    HTTPD_CHUNK_SIZE,
    HTTPD_CHUNK_END,
    HTTPD_TRAILERS,
    HTTPD_END,
    HTTPD_REFUSED,
};

/* How far a request was scanned; all 0 before each request. No byte is scanned twice. */
struct httpd_scan {
    enum httpd_phase phase; /* from HTTPD_DATA on the head is complete */
    size_t at, line;        /* the next byte; the start of its line */
    size_t head_length, body_length;
    size_t left;    /* missing bytes of the body or the chunk */
    size_t framing; /* bytes of a chunked body that are not data */
    struct httpd_span method, path, query, fields[HTTPD_FIELDS];
    unsigned minor; /* of the version: HTTP/1.0 or HTTP/1.1 */
    bool close, keep_alive, chunked, expects_continue;
    int status;
    const char *why;
};

enum httpd_result { HTTPD_MORE, HTTPD_COMPLETE, HTTPD_BROKEN };

struct httpd_request {
    struct httpd_slice method, path, query; /* as sent; the query without "?" */
    /* Values without the white space around them: printable ASCII and tabs. Absent: bytes is NULL,
     * as of an absent query. */
    struct httpd_slice host, origin, authorization, content_type, last_event_id;
    bool keep_alive; /* by version and Connection */
    bool chunked;
    size_t body_length;      /* without chunk framing, which `body` has */
    struct httpd_slice body; /* see httpd_request_body() */
    size_t size;             /* bytes of the request: the next one begins behind them */
    /* Only with HTTPD_MORE, and once: the client waits for "100 Continue" before it sends the
     * body. */
    bool wants_continue;
    /* Only with HTTPD_BROKEN: the status of the response, and a sentence for the client. */
    int status;
    const char *why;
};

/*
 * `bytes` begins with the same request as in the last call, perhaps with more data. HTTPD_BROKEN:
 * nothing behind it can be read; respond and close. The result does not depend on the pieces in
 * which the bytes arrived. All other members of `out` are 0 unless complete.
 */
enum httpd_result httpd_request_feed(struct httpd_scan *scan, const char *bytes, size_t length,
                                     const struct httpd_limits *limits, struct httpd_request *out);

/* The body of a complete request without chunk framing, into memory of body_length bytes. Returns
 * body_length. */
size_t httpd_request_body(const struct httpd_request *request, char *out);

/* True if the slice is exactly this text. */
bool httpd_is(struct httpd_slice slice, const char *text);

/*
 * Takes the part up to the separator off the front of `rest`, and the separator. False after the
 * last part: "a//" has the parts "a", "" and "", and an empty text one empty part. For segments of
 * a path, pairs of a query, and the name of a pair.
 */
bool httpd_next_part(struct httpd_slice *rest, char separator, struct httpd_slice *out);

/*
 * Decodes %41 and the like in a segment of a path or a value of a query, where "+" is a space.
 * False if it is malformed, contains NUL or does not fit with a NUL behind it; `out` is undefined
 * then.
 */
bool httpd_decode_path(struct httpd_slice segment, char *out, size_t size);
bool httpd_decode_query(struct httpd_slice value, char *out, size_t size);

#endif

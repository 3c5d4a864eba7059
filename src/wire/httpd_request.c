/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See httpd_request.h. A request is lines and data. A line is checked byte by byte as it arrives
 * and read when it is whole; data is skipped. The first byte that decides is the same for every
 * chunking.
 */
#include "wire/httpd_request.h"

#include "base/check.h"
#include "wire/httpd_internal.h"

#include <string.h>

/* ---- lines ---- */

/* The end of the longest line that is allowed here. The line of a size leaves room for the line end
 * that follows, of its chunk or of the body. */
static size_t request_line_limit(const struct httpd_scan *scan, const struct httpd_limits *limits)
{
    enum { LINE_END = 2 };
    if (scan->phase <= HTTPD_HEAD)
        return limits->head_max;
    size_t room = limits->head_max - scan->framing;
    if (scan->phase == HTTPD_CHUNK_SIZE)
        room = room > LINE_END ? room - LINE_END : 0;
    if (scan->phase == HTTPD_CHUNK_END)
        room = LINE_END;
    return scan->line + room;
}

static enum httpd_result request_refuse_long_line(struct httpd_scan *scan)
{
    switch (scan->phase) {
    case HTTPD_REQUEST_LINE:
        return httpd_refuse(scan, 414, "The request line is too long.");
    case HTTPD_HEAD:
        return httpd_refuse(scan, 431, "The head of the request is too long.");
    case HTTPD_CHUNK_END:
        return httpd_refuse(scan, 400, "A chunk is not followed by a line end.");
    default:
        return httpd_refuse(scan, 400,
                            "The chunks have too many bytes of sizes, extensions and "
                            "trailers.");
    }
}

static enum httpd_result request_read_line(struct httpd_scan *scan, const char *bytes,
                                           size_t length, const struct httpd_limits *limits,
                                           struct httpd_span *out)
{
    size_t limit = request_line_limit(scan, limits);
    bool after_cr = scan->at > scan->line && bytes[scan->at - 1] == '\r';
    for (;;) {
        if (scan->at >= limit)
            return request_refuse_long_line(scan);
        if (scan->at >= length)
            return HTTPD_MORE;
        unsigned char byte = (unsigned char)bytes[scan->at++];
#ifdef LH_FUZZ_PLANT /* planted bug for the fuzzer: any byte ends a line after CR */
        if (after_cr)
            byte = '\n';
#endif
        if (after_cr && byte != '\n')
            return httpd_refuse(scan, 400, "A line has a CR that no LF follows.");
        if (after_cr)
            break;
        if (byte == '\n')
            return httpd_refuse(scan, 400, "A line ends in LF without CR.");
        after_cr = byte == '\r';
        if ((byte < ' ' && byte != '\t' && !after_cr) || byte == 0x7f)
            return httpd_refuse(scan, 400, "A line has a control character.");
    }
    *out = (struct httpd_span){.at = (uint32_t)scan->line,
                               .length = (uint32_t)(scan->at - scan->line - 2)};
    if (scan->phase > HTTPD_HEAD)
        scan->framing += scan->at - scan->line;
    scan->line = scan->at;
    return HTTPD_COMPLETE;
}

/* ---- body ---- */

static enum httpd_result request_end_head(struct httpd_scan *scan, const char *bytes,
                                          const struct httpd_limits *limits)
{
    enum httpd_result result = httpd_head_finish(scan, bytes, limits);
    if (result != HTTPD_COMPLETE)
        return result;
    scan->head_length = scan->at;
    scan->body_length = scan->left;
    scan->phase = scan->chunked ? HTTPD_CHUNK_SIZE : HTTPD_DATA;
    return HTTPD_COMPLETE;
}

/* "1a" or "1a;extension". Extensions are ignored. */
static enum httpd_result request_read_size(struct httpd_scan *scan, const char *bytes,
                                           struct httpd_span line,
                                           const struct httpd_limits *limits)
{
    const char *at = bytes + line.at, *end = at + line.length;
    size_t size = 0, room = limits->body_max - scan->body_length;
    if (at == end || httpd_hex(*at) < 0)
        return httpd_refuse(scan, 400, "A chunk does not begin with its size.");
    for (; at < end && httpd_hex(*at) >= 0; at++) {
        size = size * 16 + (size_t)httpd_hex(*at); /* cannot overflow: body_max is far below */
        if (size > room)
            return httpd_refuse(scan, 413, "The body is too long.");
    }
    if (at < end && *at != ';')
        return httpd_refuse(scan, 400, "The size of a chunk is not a hexadecimal number.");
    scan->left = size;
    scan->body_length += size;
    scan->phase = size > 0 ? HTTPD_DATA : HTTPD_TRAILERS;
    return HTTPD_COMPLETE;
}

static enum httpd_result request_skip_data(struct httpd_scan *scan, size_t length)
{
    size_t there = length - scan->at, step = there < scan->left ? there : scan->left;
    scan->at += step;
    scan->left -= step;
    scan->line = scan->at;
    if (scan->left > 0)
        return HTTPD_MORE;
    scan->phase = scan->chunked ? HTTPD_CHUNK_END : HTTPD_END;
    return HTTPD_COMPLETE;
}

/* ---- request ---- */

static enum httpd_result request_use_line(struct httpd_scan *scan, const char *bytes,
                                          struct httpd_span line, const struct httpd_limits *limits)
{
    switch (scan->phase) {
    case HTTPD_REQUEST_LINE:
        if (line.length == 0 && line.at == 0)
            return HTTPD_COMPLETE; /* an empty line after the body of the last request */
        return httpd_head_request_line(scan, bytes, line);
    case HTTPD_HEAD:
        return line.length > 0 ? httpd_head_field(scan, bytes, line)
                               : request_end_head(scan, bytes, limits);
    case HTTPD_CHUNK_SIZE:
        return request_read_size(scan, bytes, line, limits);
    case HTTPD_CHUNK_END: /* the line is empty: no other fits */
        scan->phase = HTTPD_CHUNK_SIZE;
        return HTTPD_COMPLETE;
    case HTTPD_TRAILERS:
        if (line.length > 0)
            return httpd_head_trailer(scan, bytes, line);
        scan->phase = HTTPD_END;
        return HTTPD_COMPLETE;
    case HTTPD_DATA:
    case HTTPD_END:
    case HTTPD_REFUSED:
        break;
    }
    UNREACHABLE("a line outside of the phases that have lines");
}

static struct httpd_slice request_slice(const char *bytes, struct httpd_span span)
{
    struct httpd_slice slice = {.length = span.length};
    if (span.at > 0) /* no field is at the first byte; the method may be */
        slice.bytes = bytes + span.at;
    return slice;
}

static void request_fill(const struct httpd_scan *scan, const char *bytes,
                         struct httpd_request *out)
{
    out->method = (struct httpd_slice){bytes + scan->method.at, scan->method.length};
    out->path = request_slice(bytes, scan->path);
    out->query = request_slice(bytes, scan->query);
    out->host = request_slice(bytes, scan->fields[HTTPD_HOST]);
    out->origin = request_slice(bytes, scan->fields[HTTPD_ORIGIN]);
    out->authorization = request_slice(bytes, scan->fields[HTTPD_AUTHORIZATION]);
    out->content_type = request_slice(bytes, scan->fields[HTTPD_CONTENT_TYPE]);
    out->last_event_id = request_slice(bytes, scan->fields[HTTPD_LAST_EVENT_ID]);
    out->keep_alive = !scan->close && (scan->minor > 0 || scan->keep_alive);
    out->chunked = scan->chunked;
    out->body_length = scan->body_length;
    out->body = (struct httpd_slice){bytes + scan->head_length, scan->at - scan->head_length};
    out->size = scan->at;
}

enum httpd_result httpd_request_feed(struct httpd_scan *scan, const char *bytes, size_t length,
                                     const struct httpd_limits *limits, struct httpd_request *out)
{
    enum httpd_result result = scan->phase == HTTPD_REFUSED ? HTTPD_BROKEN : HTTPD_COMPLETE;
    ASSERT(limits->head_max <= INT32_MAX / 4 && limits->body_max <= INT32_MAX / 4);
    ASSERT(scan->at <= length);
    *out = (struct httpd_request){0};
    while (result == HTTPD_COMPLETE && scan->phase != HTTPD_END) {
        struct httpd_span line;
        if (scan->phase == HTTPD_DATA) {
            result = request_skip_data(scan, length);
            continue;
        }
        result = request_read_line(scan, bytes, length, limits, &line);
        if (result == HTTPD_COMPLETE)
            result = request_use_line(scan, bytes, line, limits);
    }
    if (result == HTTPD_BROKEN) {
        out->status = scan->status;
        out->why = scan->why;
    } else if (result == HTTPD_COMPLETE) {
        request_fill(scan, bytes, out);
    } else if (scan->phase >= HTTPD_DATA) {
        out->wants_continue = scan->expects_continue;
        scan->expects_continue = false;
    }
    return result;
}

size_t httpd_request_body(const struct httpd_request *request, char *out)
{
    const char *at = request->body.bytes, *end = at + request->body.length;
    size_t done = 0;
    if (!request->chunked && request->body_length > 0)
        memcpy(out, at, request->body_length);
    while (request->chunked && done < request->body_length) {
        size_t size = 0;
        for (; httpd_hex(*at) >= 0; at++)
            size = size * 16 + (size_t)httpd_hex(*at);
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        memcpy(out + done, at, size);
        done += size;
        at += size + 2;
    }
    return request->body_length;
}

/* ---- slices ---- */

bool httpd_is(struct httpd_slice slice, const char *text)
{
    size_t length = strlen(text);
    return slice.length == length && (length == 0 || memcmp(slice.bytes, text, length) == 0);
}

bool httpd_next_part(struct httpd_slice *rest, char separator, struct httpd_slice *out)
{
    if (rest->bytes == NULL)
        return false;
    const char *end = rest->bytes + rest->length;
    const char *found = rest->length > 0 ? memchr(rest->bytes, separator, rest->length) : NULL;
    if (found == NULL) {
        *out = *rest;
        *rest = (struct httpd_slice){0};
        return true;
    }
    *out = (struct httpd_slice){rest->bytes, (size_t)(found - rest->bytes)};
    *rest = (struct httpd_slice){found + 1, (size_t)(end - found - 1)};
    return true;
}

static bool request_decode(struct httpd_slice slice, char space, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < slice.length; i++) {
        char byte = slice.bytes[i];
        if (byte == space)
            byte = ' ';
        if (byte == '%') {
            int high = i + 2 < slice.length ? httpd_hex(slice.bytes[i + 1]) : -1;
            int low = high >= 0 ? httpd_hex(slice.bytes[i + 2]) : -1;
            if (low < 0)
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        if (byte == '\0' || at + 1 >= size)
            return false;
        out[at++] = byte;
    }
    if (at >= size)
        return false;
    out[at] = '\0';
    return true;
}

bool httpd_decode_path(struct httpd_slice segment, char *out, size_t size)
{
    return request_decode(segment, /* space= */ ' ', out, size);
}

bool httpd_decode_query(struct httpd_slice value, char *out, size_t size)
{
    return request_decode(value, /* space= */ '+', out, size);
}

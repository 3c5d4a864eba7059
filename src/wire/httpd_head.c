/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP request: the request line, fields, and what they say about the body; see
 * httpd_request.h. Rules about several fields are checked after the last one, so that their order
 * does not matter.
 */
#include "wire/httpd_internal.h"

#include <string.h>

enum { METHOD_MAX = 16 };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

#define TOKEN_BYTES LETTERS DIGITS "!#$%&'*+-.^_`|~"
/* RFC 3986: of a path and a query. */
#define TARGET_BYTES LETTERS DIGITS "-._~!$&'()*+,;=:@/?%"
/* Without delimiters, which no name of a host needs, and which a list would have. */
#define HOST_BYTES LETTERS DIGITS "-._~:[]%"

static bool head_is_one_of(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte) != NULL;
}

/* True if it is not empty and has no other bytes. */
static bool head_consists_of(const char *at, size_t length, const char *bytes)
{
    for (size_t i = 0; i < length; i++)
        if (!head_is_one_of(at[i], bytes))
            return false;
    return length > 0;
}

/* Compares ASCII without case; `word` is in lower case. */
static bool head_is_word(const char *at, size_t length, const char *word)
{
    if (strlen(word) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool upper = at[i] >= 'A' && at[i] <= 'Z';
        if ((upper ? at[i] | 0x20 : at[i]) != word[i])
            return false;
    }
    return true;
}

/* Removes spaces and tabs at both ends. */
static struct httpd_span head_trim(const char *bytes, struct httpd_span span)
{
    while (span.length > 0 && head_is_one_of(bytes[span.at], " \t")) {
        span.at++;
        span.length--;
    }
    while (span.length > 0 && head_is_one_of(bytes[span.at + span.length - 1], " \t"))
        span.length--;
    return span;
}

/* The part of the span behind its first `skip` bytes. */
static struct httpd_span head_behind(struct httpd_span span, size_t skip)
{
    return (struct httpd_span){span.at + (uint32_t)skip, span.length - (uint32_t)skip};
}

/* The part up to the byte, or all of it. */
static struct httpd_span head_before(const char *bytes, struct httpd_span span, char byte)
{
    const char *at = bytes + span.at;
    const char *found = span.length > 0 ? memchr(at, byte, span.length) : NULL;
    if (found != NULL)
        span.length = (uint32_t)(found - at);
    return span;
}

/* ---- request line ---- */

static enum httpd_result head_read_version(struct httpd_scan *scan, const char *at, size_t length)
{
    if (length != 8 || memcmp(at, "HTTP/", 5) != 0 || !head_is_one_of(at[5], DIGITS) ||
        at[6] != '.' || !head_is_one_of(at[7], DIGITS))
        return httpd_refuse(scan, 400, "The request line does not end in a version of HTTP.");
    if (at[5] != '1' || at[7] > '1')
        return httpd_refuse(scan, 505, "The version must be HTTP/1.1 or HTTP/1.0.");
    scan->minor = (unsigned)(at[7] - '0');
    return HTTPD_COMPLETE;
}

/* True for "." and "..", also escaped: clients and proxies remove them from a path, together with
 * the segment before. Every "%" has its digits. */
static bool head_is_dots(const char *at, const char *end)
{
    size_t dots = 0;
    for (; at < end; dots++) {
        bool escaped = at[0] == '%' && at[1] == '2' && (at[2] | 0x20) == 'e';
        if (!escaped && at[0] != '.')
            return false;
        at += escaped ? 3 : 1;
    }
    return dots == 1 || dots == 2;
}

static enum httpd_result head_check_path(struct httpd_scan *scan, const char *at, const char *end)
{
    while (at < end) { /* at a slash */
        const char *next = memchr(at + 1, '/', (size_t)(end - at - 1));
        if (next == NULL)
            next = end;
        if (head_is_dots(at + 1, next))
            return httpd_refuse(scan, 400, "The path has a segment \".\" or \"..\".");
        at = next;
    }
    return HTTPD_COMPLETE;
}

static enum httpd_result head_read_target(struct httpd_scan *scan, const char *bytes,
                                          struct httpd_span target)
{
    const char *at = bytes + target.at, *end = at + target.length;
    if (target.length == 0 || *at != '/')
        return httpd_refuse(scan, 400, "The target must be a path that begins with \"/\".");
    for (const char *byte = at; byte < end; byte++) {
        if (!head_is_one_of(*byte, TARGET_BYTES))
            return httpd_refuse(scan, 400, "The target has a byte that must be percent-encoded.");
        if (*byte == '%' && (end - byte < 3 || httpd_hex(byte[1]) < 0 || httpd_hex(byte[2]) < 0))
            return httpd_refuse(scan, 400,
                                "The target has a \"%\" without two hexadecimal "
                                "digits.");
    }
    scan->path = head_before(bytes, target, '?');
    if (scan->path.length < target.length)
        scan->query = head_behind(target, scan->path.length + 1);
    return head_check_path(scan, at, at + scan->path.length);
}

enum httpd_result httpd_head_request_line(struct httpd_scan *scan, const char *bytes,
                                          struct httpd_span line)
{
    struct httpd_span method = head_before(bytes, line, ' ');
    if (method.length == line.length)
        return httpd_refuse(scan, 400, "The request line is not a method, a target and a version.");
    struct httpd_span rest = head_behind(line, method.length + 1);
    struct httpd_span target = head_before(bytes, rest, ' ');
    if (target.length == rest.length)
        return httpd_refuse(scan, 400, "The request line is not a method, a target and a version.");
    rest = head_behind(rest, target.length + 1);
    if (!head_consists_of(bytes + method.at, method.length, TOKEN_BYTES))
        return httpd_refuse(scan, 400, "The method is not a token.");
    if (head_read_version(scan, bytes + rest.at, rest.length) != HTTPD_COMPLETE)
        return HTTPD_BROKEN;
    if (method.length > METHOD_MAX)
        return httpd_refuse(scan, 501, "The method is unknown.");
    scan->method = method;
    scan->phase = HTTPD_HEAD;
    return head_read_target(scan, bytes, target);
}

/* ---- fields ---- */

static const char *const head_names[HTTPD_FIELDS] = {
    [HTTPD_HOST] = "host",
    [HTTPD_ORIGIN] = "origin",
    [HTTPD_AUTHORIZATION] = "authorization",
    [HTTPD_CONTENT_TYPE] = "content-type",
    [HTTPD_LAST_EVENT_ID] = "last-event-id",
    [HTTPD_CONTENT_LENGTH] = "content-length",
    [HTTPD_TRANSFER_ENCODING] = "transfer-encoding",
    [HTTPD_EXPECT] = "expect",
};

/* HTTPD_FIELDS: another one. */
static enum httpd_field head_find(const char *bytes, struct httpd_span name)
{
    int field = 0;
    while (field < HTTPD_FIELDS && !head_is_word(bytes + name.at, name.length, head_names[field]))
        field++;
    return (enum httpd_field)field;
}

static enum httpd_result head_split(struct httpd_scan *scan, const char *bytes,
                                    struct httpd_span line, struct httpd_span *out_name,
                                    struct httpd_span *out_value)
{
    struct httpd_span name = head_before(bytes, line, ':');
    if (head_is_one_of(bytes[line.at], " \t"))
        return httpd_refuse(scan, 400, "A line of the head begins with white space.");
    if (name.length == line.length)
        return httpd_refuse(scan, 400, "A line of the head has no colon.");
    if (!head_consists_of(bytes + name.at, name.length, TOKEN_BYTES))
        return httpd_refuse(scan, 400, "The name of a field is not a token.");
    *out_name = name;
    *out_value = head_trim(bytes, head_behind(line, name.length + 1));
    return HTTPD_COMPLETE;
}

/* A list of tokens. The field may be repeated; "close" wins. */
static enum httpd_result head_read_connection(struct httpd_scan *scan, const char *bytes,
                                              struct httpd_span rest)
{
    while (rest.length > 0) {
        struct httpd_span part = head_before(bytes, rest, ',');
        size_t step = part.length < rest.length ? part.length + 1 : part.length;
        rest = head_behind(rest, step);
        part = head_trim(bytes, part);
        const char *at = bytes + part.at;
        if (part.length > 0 && !head_consists_of(at, part.length, TOKEN_BYTES))
            return httpd_refuse(scan, 400, "The field Connection is not a list of tokens.");
        if (head_is_word(at, part.length, "close"))
            scan->close = true;
        else if (head_is_word(at, part.length, "keep-alive"))
            scan->keep_alive = true;
    }
    return HTTPD_COMPLETE;
}

enum httpd_result httpd_head_field(struct httpd_scan *scan, const char *bytes,
                                   struct httpd_span line)
{
    struct httpd_span name, value;
    if (head_split(scan, bytes, line, &name, &value) != HTTPD_COMPLETE)
        return HTTPD_BROKEN;
    if (head_is_word(bytes + name.at, name.length, "connection"))
        return head_read_connection(scan, bytes, value);
    enum httpd_field field = head_find(bytes, name);
    if (field == HTTPD_FIELDS)
        return HTTPD_COMPLETE;
    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)bytes[value.at + i] >= 0x80)
            return httpd_refuse(scan, 400, "The value of a field is not ASCII.");
    if (scan->fields[field].at > 0)
        return httpd_refuse(scan, 400, "A field that may only be sent once is sent twice.");
    scan->fields[field] = value;
    return HTTPD_COMPLETE;
}

/* Trailers are ignored, but none may look like a field of the head. */
enum httpd_result httpd_head_trailer(struct httpd_scan *scan, const char *bytes,
                                     struct httpd_span line)
{
    struct httpd_span name, value;
    if (head_split(scan, bytes, line, &name, &value) != HTTPD_COMPLETE)
        return HTTPD_BROKEN;
    if (head_find(bytes, name) != HTTPD_FIELDS ||
        head_is_word(bytes + name.at, name.length, "connection"))
        return httpd_refuse(scan, 400, "A trailer has the name of a field of the head.");
    return HTTPD_COMPLETE;
}

/* ---- rules about several fields ---- */

static bool head_has(const struct httpd_scan *scan, enum httpd_field field)
{
    return scan->fields[field].at > 0;
}

static bool head_value_is(const struct httpd_scan *scan, const char *bytes, enum httpd_field field,
                          const char *word)
{
    return head_is_word(bytes + scan->fields[field].at, scan->fields[field].length, word);
}

static enum httpd_result head_check_host(struct httpd_scan *scan, const char *bytes)
{
    struct httpd_span host = scan->fields[HTTPD_HOST];
    if (!head_has(scan, HTTPD_HOST) && scan->minor > 0)
        return httpd_refuse(scan, 400, "The field Host is missing.");
    if (host.length > 0 && !head_consists_of(bytes + host.at, host.length, HOST_BYTES))
        return httpd_refuse(scan, 400, "The field Host is not a host and a port.");
    return HTTPD_COMPLETE;
}

static enum httpd_result head_read_length(struct httpd_scan *scan, const char *bytes,
                                          size_t body_max)
{
    struct httpd_span value = scan->fields[HTTPD_CONTENT_LENGTH];
    const char *at = bytes + value.at;
    size_t length = 0;
    if (!head_consists_of(at, value.length, DIGITS) || (at[0] == '0' && value.length > 1))
        return httpd_refuse(scan, 400, "The field Content-Length is not a number.");
    for (size_t i = 0; i < value.length; i++) {
        length = length * 10 + (size_t)(at[i] - '0'); /* cannot overflow: body_max is far below */
        if (length > body_max)
            return httpd_refuse(scan, 413, "The body is too long.");
    }
    scan->left = length;
    return HTTPD_COMPLETE;
}

static enum httpd_result head_check_encoding(struct httpd_scan *scan, const char *bytes)
{
    if (scan->minor == 0)
        return httpd_refuse(scan, 400, "HTTP/1.0 has no field Transfer-Encoding.");
    if (head_has(scan, HTTPD_CONTENT_LENGTH))
        return httpd_refuse(scan, 400,
                            "The fields Content-Length and Transfer-Encoding exclude "
                            "each other.");
    if (!head_value_is(scan, bytes, HTTPD_TRANSFER_ENCODING, "chunked"))
        return httpd_refuse(scan, 501, "The only transfer encoding is \"chunked\".");
    scan->chunked = true;
    return HTTPD_COMPLETE;
}

enum httpd_result httpd_head_finish(struct httpd_scan *scan, const char *bytes,
                                    const struct httpd_limits *limits)
{
    if (head_check_host(scan, bytes) != HTTPD_COMPLETE)
        return HTTPD_BROKEN;
    if (head_has(scan, HTTPD_TRANSFER_ENCODING) &&
        head_check_encoding(scan, bytes) != HTTPD_COMPLETE)
        return HTTPD_BROKEN;
    if (head_has(scan, HTTPD_EXPECT)) {
        if (!head_value_is(scan, bytes, HTTPD_EXPECT, "100-continue"))
            return httpd_refuse(scan, 417, "The only expectation is \"100-continue\".");
        scan->expects_continue = scan->minor > 0;
    }
    if (head_has(scan, HTTPD_CONTENT_LENGTH))
        return head_read_length(scan, bytes, limits->body_max);
    return HTTPD_COMPLETE;
}

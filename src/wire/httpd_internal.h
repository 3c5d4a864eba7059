/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by httpd_request.c and httpd_head.c. */
#ifndef LEASEHOLD_WIRE_HTTPD_INTERNAL_H
#define LEASEHOLD_WIRE_HTTPD_INTERNAL_H

#include "wire/httpd_request.h"

/* Notes the reason; returns HTTPD_BROKEN. */
static inline enum httpd_result httpd_refuse(struct httpd_scan *scan, int status, const char *why)
{
    scan->phase = HTTPD_REFUSED;
    scan->status = status;
    scan->why = why;
    return HTTPD_BROKEN;
}

/* The value of a hexadecimal digit, or -1. */
static inline int httpd_hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/*
 * These read a whole line, without its line end and without control characters other than tabs.
 * They return HTTPD_COMPLETE or HTTPD_BROKEN. `bytes` is the start of the request.
 */
enum httpd_result httpd_head_request_line(struct httpd_scan *scan, const char *bytes,
                                          struct httpd_span line);
enum httpd_result httpd_head_field(struct httpd_scan *scan, const char *bytes,
                                   struct httpd_span line);
enum httpd_result httpd_head_trailer(struct httpd_scan *scan, const char *bytes,
                                     struct httpd_span line);

/* After the last field: the framing of the body, and rules about several fields. Sets `left` to the
 * length of the body, or `chunked`. */
enum httpd_result httpd_head_finish(struct httpd_scan *scan, const char *bytes,
                                    const struct httpd_limits *limits);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP clients, well-formed and not; see httpd_request_test.c. */
#ifndef LEASEHOLD_TESTS_UNIT_HTTPD_CASES_H
#define LEASEHOLD_TESTS_UNIT_HTTPD_CASES_H

#include <stddef.h>

/* The limits for which the cases are written. */
enum { CASE_HEAD_MAX = 200, CASE_BODY_MAX = 40 };

struct httpd_accepted {
    const char *bytes;
    size_t length;
    const char *summary;
    size_t continues; /* "100 Continue" is sent so often if the bytes arrive one by one */
};

struct httpd_refused {
    const char *bytes;
    size_t length;
    int status;
    const char *why; /* a part of it */
};

extern const struct httpd_accepted httpd_accepted[];
extern const struct httpd_refused httpd_refused[];
extern const size_t httpd_accepted_count, httpd_refused_count;

#endif

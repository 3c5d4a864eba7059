/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes heads of HTTP/1.1 responses: httpd_response_start(), fields, httpd_response_end(). Pure.
 * No value can end its line. If `out->cut` is set at the end, the head did not fit and must not be
 * sent.
 */
#ifndef LEASEHOLD_WIRE_HTTPD_RESPONSE_H
#define LEASEHOLD_WIRE_HTTPD_RESPONSE_H

#include "base/text.h"

/* The phrase of a status of the daemon, as in "Not Found"; asserts that it is one. */
const char *httpd_response_phrase(int status);

/* The status line. */
void httpd_response_start(struct text *out, int status);

/* Line ends and tabs of the value become spaces, other control characters question marks. The name
 * is a literal. */
void httpd_response_field(struct text *out, const char *name, const char *value);
void httpd_response_number(struct text *out, const char *name, uint64_t number);

/* The empty line. */
void httpd_response_end(struct text *out);

#endif

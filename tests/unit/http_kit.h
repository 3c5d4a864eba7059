/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small real HTTP server beside the test, with a thread for each connection. It understands whole
 * requests; what is said to them, and how badly, is the test's affair.
 */
#ifndef LEASEHOLD_TESTS_HTTP_KIT_H
#define LEASEHOLD_TESTS_HTTP_KIT_H

#include <stdbool.h>
#include <stdint.h>

enum { HTTP_REQUEST_SIZE = 8192 };

/* One request, with its body; several at once from several connections. False: it is closed. */
typedef bool http_kit_answer(int file, const char *request);

/* On a free port of the loopback; 0: it did not start. */
uint16_t http_kit_start(http_kit_answer *reply);
void http_kit_stop(void);
/* Connections since it started. */
unsigned http_kit_connections(void);

/* For answers: these bytes; silence until the client gives up. */
void http_kit_say(int file, const char *text);
void http_kit_be_silent(int file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small real HTTP server beside the test, with a thread for each connection. It parses whole
 * requests; the test provides the replies, good or bad.
 */
#ifndef LEASEHOLD_TESTS_HTTP_KIT_H
#define LEASEHOLD_TESTS_HTTP_KIT_H

#include <stdbool.h>
#include <stdint.h>

enum { HTTP_REQUEST_SIZE = 8192 };

/* One request, with its body; concurrent for several connections. False: closes it. */
typedef bool http_kit_answer(int file, const char *request);

/* Starts it on a free port of the loopback; 0: it did not start. */
uint16_t http_kit_start(http_kit_answer *reply);
void http_kit_stop(void);
/* Connections since it started. */
unsigned http_kit_connections(void);

/* For replies: these bytes; silence until the client gives up. */
void http_kit_say(int file, const char *text);
void http_kit_be_silent(int file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of JSON APIs with the server of answers_kit.h, a credential that can be refused or
 * missing, and requests that record their callbacks. A test program that includes this names
 * json_kit_begin() and json_kit_end() for each of its cases.
 */
#ifndef LEASEHOLD_TESTS_JSON_API_KIT_H
#define LEASEHOLD_TESTS_JSON_API_KIT_H

#include "answers_kit.h"

#include "http/json_api.h"

#define STORY(name) cmocka_unit_test_setup_teardown(name, json_kit_begin, json_kit_end)

enum { JSON_KIT_TIMEOUT_MS = 3000, ASKER_HEADERS = 4 };

/* The result of a request; zeros before. `most_lines`: it is a stream, dropped after so many. */
struct asker {
    struct json_request request;
    unsigned done, lines, bad_lines, most_lines;
    int status;
    bool has_json, found[ASKER_HEADERS]; /* ETag, Link, X-RateLimit-Remaining, Twice */
    int64_t now_ms;
    char why[JSON_WHY], text[64], last[64], value[ASKER_HEADERS][HTTP_HEADER_MAX + 1];
    struct asker *next; /* started from the callback; with `stops`, cancelled there */
    bool stops;
};

extern struct json_api *json_kit_api;
extern bool json_kit_ready, json_kit_missing; /* the credential */
extern unsigned json_kit_warnings;
extern char json_kit_warning[256]; /* the last one */

int json_kit_begin(void **state);
int json_kit_end(void **state);
/* With the base address /base and the credential "s3cret-0", then "s3cret-1" … */
void json_kit_open(const char *scheme, const char *const *answers);

struct json_call json_kit_call(const char *method, const char *path);
void asker_start_call(struct asker *asker, const struct json_call *call);
void asker_start(struct asker *asker, const char *method, const char *path);
void asker_ask(struct asker *asker, const char *method, const char *path); /* until the reply */

#endif

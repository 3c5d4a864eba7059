/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of GitHub with the server of answers_kit.h, the token "s3cret", and requests that record
 * their replies. A test program names github_kit_begin() and github_kit_end() for each case.
 */
#ifndef LEASEHOLD_TESTS_GITHUB_KIT_H
#define LEASEHOLD_TESTS_GITHUB_KIT_H

#include "answers_kit.h"

#include "http/github_api.h"

#define STORY(name) cmocka_unit_test_setup_teardown(name, github_kit_begin, github_kit_end)

enum { GITHUB_KIT_TIMEOUT_MS = 3000 };

/* The result of a request; zeros before. */
struct caller {
    struct github_request request;
    unsigned done, order; /* order: of the replies */
    int status;
    bool refused, has_etag;
    int64_t now_ms, sent_ms, done_ms, retry_at_ms;
    char why[JSON_WHY], text[64], etag[64], next[256];
};

extern struct github_api *github_kit_api;
extern struct github_url github_kit_url; /* of the next github_kit_open(); pace 0 */
extern char github_kit_why[512];         /* of the last one */

int github_kit_begin(void **state);
int github_kit_end(void **state);
bool github_kit_try_open(struct github_api **out); /* false with github_kit_why */
void github_kit_open(const char *const *answers);

struct github_call github_kit_call(const char *method, const char *path, enum github_kind kind);
void caller_start(struct caller *caller, const char *method, const char *path,
                  enum github_kind kind);
void caller_start_call(struct caller *caller, struct github_api *api,
                       const struct github_call *call);
void caller_finish(struct caller *caller); /* runs the poller until the reply */
void caller_call(struct caller *caller, const char *method, const char *path,
                 enum github_kind kind);
void github_kit_run(struct github_api *api, int64_t ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the API server with our credentials, and helpers to read and write its objects.
 * Independent of the kind of object; retries nothing.
 */
#ifndef LEASEHOLD_HTTP_KUBE_API_H
#define LEASEHOLD_HTTP_KUBE_API_H

#include "http/http.h"
#include "http/kube_login.h"

struct kube_call {
    const char *method;
    const char *path;   /* follows the server's address */
    const json_t *body; /* NULL is allowed only with GET */
    bool patch;         /* the body is a merge patch */
    size_t most;
    int64_t timeout_ms;
};

/* NULL with a reason. The login must be ready. */
struct http_request *kube_call(struct kube_login *login, struct http *http,
                               const struct kube_call *call, const struct http_callbacks *callbacks,
                               struct text *why);

/* ---- objects ---- */

/* A reply of the API server as JSON; NULL if it is not JSON, or would take too much memory. */
json_t *kube_parse(const char *bytes, size_t length);
/* The approximate memory of the parsed JSON, in bytes. */
size_t kube_parsed_size(const char *bytes, size_t length);

enum { KUBE_TOKEN_MAX = 2047 };
/*
 * The continue token behind this page, to be freed; NULL if it is the last page. `before` is the
 * token of this page; NULL: it is the first. If `wrong` is set, the list cannot go on.
 */
char *kube_list_next(const json_t *page, const char *before, const char **wrong);

/* The value of a string member, or "". */
const char *kube_string(const json_t *object, const char *name);
/* False when out of memory, or if it is not an object. */
bool kube_set_string(json_t *object, const char *name, const char *string);
/* The member that is an object, made if it does not exist; NULL as above. */
json_t *kube_child(json_t *object, const char *name);
/* "2026-01-31T23:59:59Z", in milliseconds since 1970; −1 if it is not a time. */
int64_t kube_time_ms(const char *string);

#endif

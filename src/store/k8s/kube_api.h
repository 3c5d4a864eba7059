/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the API server, as who we are there; and the few things that all who read or write
 * its objects need. Knows no kind of object; retries nothing.
 */
#ifndef LEASEHOLD_STORE_K8S_KUBE_API_H
#define LEASEHOLD_STORE_K8S_KUBE_API_H

#include "http/http.h"
#include "store/k8s/kube_login.h"

struct kube_call {
    const char *method;
    const char *path;   /* from the server on */
    const json_t *body; /* NULL only with GET */
    bool patch;         /* the body is a merge patch */
    size_t most;
    int64_t timeout_ms;
};

/* NULL with words. The login must be ready. */
struct http_request *kube_call(struct kube_login *login, struct http *http,
                               const struct kube_call *call, const struct http_callbacks *callbacks,
                               struct text *why);

/* ---- objects ---- */

/* An answer of the API server as JSON; NULL when it is none, or would take too much memory. */
json_t *kube_parse(const char *bytes, size_t length);
/* The bytes that it takes then, about. */
size_t kube_parsed_size(const char *bytes, size_t length);

enum { KUBE_TOKEN_MAX = 2047 };
/*
 * Where a list goes on behind this page, to be freed; NULL when it is the last one. `before` led to
 * this page; NULL: nothing did. With `wrong` set it does not go on anywhere.
 */
char *kube_list_next(const json_t *page, const char *before, const char **wrong);

/* The text of a member, or "". */
const char *kube_string(const json_t *object, const char *name);
/* False when out of memory, or it is no object. */
bool kube_set_string(json_t *object, const char *name, const char *string);
/* The member that is an object, made when there is none; NULL as above. */
json_t *kube_child(json_t *object, const char *name);
/* "2026-01-31T23:59:59Z", in milliseconds since 1970; −1 when it is none. */
int64_t kube_time_ms(const char *string);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kubernetes cluster as configured for this user: its API with our credentials, lists page by
 * page, and helpers to read and write its objects. Independent of the kind of object.
 */
#ifndef LEASEHOLD_HTTP_KUBE_API_H
#define LEASEHOLD_HTTP_KUBE_API_H

#include "http/json_api.h"
#include "http/kube_login.h"

enum { KUBE_PATH_MAX = 4096 };

struct kube_api {
    struct kube_config config;
    struct poller *poller;
    struct kube_login *login;
    struct json_api *json;
    int64_t timeout_ms; /* of kube_call() */
};

/* False with a reason; then there is nothing to close. Sends
 * nothing yet. */
bool kube_api_open(struct kube_api *kube, const struct k8s_url *url, int64_t timeout_ms,
                   void (*warning)(void *user, const char *text), void *user, struct text *why);
void kube_api_close(struct kube_api *kube); /* also if it was never opened, but zero */

extern const char *const kube_merge_patch[]; /* headers of a call */

/* Blocks until the reply. Takes ownership of `body`; that of a PATCH is a merge patch. */
void kube_call(struct kube_api *kube, const char *method, const char *path, json_t *body,
               struct json_result *out);

/* ---- lists ---- */

/* The path of a page of these objects; `selector` is URL-encoded. */
void kube_page_path(char out[KUBE_PATH_MAX], const char *objects, const char *selector,
                    const struct json_pages *pages);
/* The objects of this page, and the token of the next one in `pages`. If `wrong` is set, the list
 * cannot go on. */
const json_t *kube_page_items(struct json_pages *pages, const json_t *page, size_t length,
                              const char **wrong);

/* ---- objects ---- */

/* The value of a string member, or "". */
const char *kube_string(const json_t *object, const char *name);
/* False when out of memory, or if it is not an object. */
bool kube_set_string(json_t *object, const char *name, const char *string);
/* The member that is an object, made if it does not exist; NULL as above. */
json_t *kube_child(json_t *object, const char *name);
/* "2026-01-31T23:59:59Z", in milliseconds since 1970; −1 if it is not a time. */
int64_t kube_time_ms(const char *string);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries an API server about itself and about our Leases, for `leasehold doctor` and `leasehold
 * collect`. Blocks until each reply. Only a collection changes anything.
 */
#ifndef LEASEHOLD_STORE_K8S_K8S_PROBE_H
#define LEASEHOLD_STORE_K8S_K8S_PROBE_H

#include "base/text.h"
#include "store/admin.h"

#include <jansson.h>

struct k8s_probe;

struct k8s_reply {
    int status;   /* 0: no reply */
    json_t *json; /* NULL: none */
    int64_t date_s, took_ms;
    char why[512];
};

/* NULL with a reason if no configuration is found. Sends nothing yet. */
struct k8s_probe *k8s_probe_new(const char *url, int64_t timeout_ms, struct text *why);
void k8s_probe_free(struct k8s_probe **probe); /* NULL is allowed */
const char *k8s_probe_namespace(const struct k8s_probe *probe);
/* The expiry of a token that contains one, in seconds since 1970; −1: unknown. */
int64_t k8s_probe_token_ends_s(struct k8s_probe *probe);
/* `path` follows the server's address. Takes ownership of `body`; NULL: none. */
void k8s_probe_call(struct k8s_probe *probe, const char *method, const char *path, json_t *body,
                    struct k8s_reply *out);
void k8s_reply_done(struct k8s_reply *reply);

/* Leases that are no longer needed, by the server's clock. `rate`: removals in a minute; 0: count
 * only. */
void k8s_probe_collect(struct k8s_probe *probe, unsigned rate, struct collection *out);

#endif

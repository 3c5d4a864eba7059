/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an API server about itself and about our Leases, for `leasehold doctor` and `leasehold
 * collect`: waits for each answer. Only a collection changes anything.
 */
#ifndef LEASEHOLD_STORE_K8S_K8S_PROBE_H
#define LEASEHOLD_STORE_K8S_K8S_PROBE_H

#include "base/text.h"

#include <jansson.h>

struct k8s_probe;

/* Who we are there; the words are the survey's. */
struct k8s_identity {
    const char *server, *namespace;
    bool token_file, token, plugin, certificate;
    int64_t token_ends_s; /* of a token that tells when it ends, seconds since 1970; −1: unknown */
    bool events;          /* the URL wants them to be written */
};

struct k8s_reply {
    int status;   /* 0: none came */
    json_t *json; /* NULL: none */
    int64_t date_s, took_ms;
    char why[512];
};

/* NULL, with words, when there is no configuration to begin with. Nothing is asked yet. */
struct k8s_probe *k8s_probe_new(const char *url, int64_t timeout_ms, struct text *why);
void k8s_probe_free(struct k8s_probe **probe); /* NULL is fine */
void k8s_probe_identity(struct k8s_probe *probe, struct k8s_identity *out);
/* `place` is what follows the server's address; `body` is taken over, NULL is none. */
void k8s_probe_call(struct k8s_probe *probe, const char *method, const char *path, json_t *body,
                    struct k8s_reply *out);
void k8s_reply_done(struct k8s_reply *reply);

/* Leases that nobody needs any more, by the server's clock. */
struct k8s_collection {
    unsigned left, removed, taken; /* taken: somebody wanted it again before it was removed */
    char names[256];               /* of objects: the first of them, separated by commas */
    char why[512];                 /* it ended too early; empty: it did not … */
    bool usage;                    /* … because the call is wrong */
};

/* `rate`: removed in a minute at most; 0: they are counted only. */
void k8s_probe_collect(struct k8s_probe *probe, unsigned rate, struct k8s_collection *out);

#endif

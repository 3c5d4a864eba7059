/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an API server about itself and about our Leases, for `leasehold doctor` and `leasehold
 * collect`: waits for each answer. Only a collection changes anything.
 */
#ifndef LEASEHOLD_STORE_K8S_SURVEY_H
#define LEASEHOLD_STORE_K8S_SURVEY_H

#include "base/text.h"
#include "store/k8s/workload_end.h"

#include <jansson.h>

struct k8s_survey;

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
struct k8s_survey *k8s_survey_new(const char *url, int64_t patience_ms, struct text *why);
void k8s_survey_free(struct k8s_survey **survey); /* NULL is fine */
void k8s_survey_identity(struct k8s_survey *survey, struct k8s_identity *out);
/* `place` is what follows the server's address; `body` is taken over, NULL is none. */
void k8s_survey_ask(struct k8s_survey *survey, const char *method, const char *place, json_t *body,
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
void k8s_survey_collect(struct k8s_survey *survey, unsigned rate, struct k8s_collection *out);
/* The same for objects of k8s-run, of a kind as kubectl names it ("jobs.batch"): past their
 * cooldown or time limit, or deleted and kept by nothing but our finalizer. */
void k8s_survey_collect_kind(struct k8s_survey *survey, const char *kind,
                             const struct end_rules *rules, unsigned rate,
                             struct k8s_collection *out);

#endif

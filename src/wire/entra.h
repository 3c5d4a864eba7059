/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of Microsoft Entra ID and what it answers, for a token that Redis takes as a
 * password: the two ways that need no secret of ours. A managed identity asks the machine it runs
 * on; a workload identity shows the token that Kubernetes gave it. Pure.
 */
#ifndef LEASEHOLD_WIRE_ENTRA_H
#define LEASEHOLD_WIRE_ENTRA_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENTRA_TOKEN_MAX = 8 * 1024, ENTRA_ID_MAX = 63, ENTRA_ASKED_MAX = 512 };

/* Where from and as whom; empty or NULL is "not said". */
struct entra_identity {
    const char *client_id;             /* with a managed identity: which one of the machine's */
    const char *tenant_id, *assertion; /* both: a workload identity */
    const char *endpoint;              /* scheme and host, without a path */
};

/* Of a managed identity. */
void entra_managed_url(const struct entra_identity *identity, struct text *out);
/* Of a workload identity: where to, and the form that is sent there. */
void entra_workload_url(const struct entra_identity *identity, struct text *out);
void entra_workload_form(const struct entra_identity *identity, struct text *out);

struct entra_token {
    char token[ENTRA_TOKEN_MAX + 1];
    char object_id[ENTRA_ID_MAX + 1]; /* whose it is: the user's name at Redis; "" if not said */
    int64_t lives_s;
};

/* False when it is no such answer. */
bool entra_read_token(const char *body, size_t length, struct entra_token *out);
/* Why it was refused, in the answer's own words, for people; nothing when it says none. */
void entra_read_error(const char *body, size_t length, struct text *out);

#endif

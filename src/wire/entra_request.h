/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to Microsoft Entra ID and their answers, for a token that Redis takes as a password. A
 * managed identity asks the machine it runs on, in App Service and Functions the platform; all
 * others send a form with a secret, or with an assertion: the token that Kubernetes gave them, or
 * one that their certificate signs. Pure.
 */
#ifndef LEASEHOLD_WIRE_ENTRA_REQUEST_H
#define LEASEHOLD_WIRE_ENTRA_REQUEST_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENTRA_TOKEN_MAX = 8 * 1024, ENTRA_ID_MAX = 63, ENTRA_ASKED_MAX = 512 };

/* Where from and as whom; empty or NULL is "not said". */
struct entra_identity {
    const char *client_id; /* with a managed identity: which one of the machine's */
    const char *tenant_id;
    const char *assertion, *secret; /* one of both, with a form */
    const char *endpoint;           /* scheme and host, without a path; of App Service with it */
};

/* Of a managed identity. */
void entra_managed_url(const struct entra_identity *identity, struct text *out);
/* Of a managed identity in App Service or Functions. */
void entra_app_url(const struct entra_identity *identity, struct text *out);
/* Of all others: where to, and the form that is sent there. */
void entra_workload_url(const struct entra_identity *identity, struct text *out);
void entra_workload_form(const struct entra_identity *identity, struct text *out);

struct entra_token {
    char token[ENTRA_TOKEN_MAX + 1];
    char object_id[ENTRA_ID_MAX + 1]; /* whose it is: the user's name at Redis; "" if not said */
    int64_t lives_s;
};

/* False when it is no such answer. Some say when the token ends: that needs `now_s`, Unix time. */
bool entra_read_token(const char *body, size_t length, int64_t now_s, struct entra_token *out);
/* Why it was refused, in the answer's own words, for people; nothing when it says none. */
void entra_read_error(const char *body, size_t length, struct text *out);

/*
 * A JWT that says we are the client, but for its signature, which is added behind another dot.
 * `thumbprint` is the SHA-256 of the certificate, `id` makes it one of its kind.
 */
struct entra_claims {
    const char *audience, *client_id, *id;
    int64_t now_s;
    const unsigned char *thumbprint;
};

enum { ENTRA_THUMBPRINT = 32 };

void entra_add_claims(const struct entra_claims *claims, struct text *out);
void entra_add_base64url(const unsigned char *bytes, size_t length, struct text *out);
/* Is it made of letters, digits, dots and hyphens, as ids of clients and tenants are? */
bool entra_is_id(const char *string);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to Microsoft Entra ID and their replies, for a token that Redis accepts as a password. A
 * managed identity queries its machine, in App Service and Functions the platform. Others send a
 * form with a secret or an assertion: a Kubernetes token, or one that their certificate signs.
 * Pure.
 */
#ifndef LEASEHOLD_WIRE_ENTRA_REQUEST_H
#define LEASEHOLD_WIRE_ENTRA_REQUEST_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENTRA_TOKEN_MAX = 8 * 1024, ENTRA_ID_MAX = 63, ENTRA_ASKED_MAX = 512 };

/* The endpoint and the identity; empty or NULL: not given. */
struct entra_identity {
    const char *client_id; /* with a managed identity: which one of the machine's */
    const char *tenant_id;
    const char *assertion, *secret; /* a form has one of both */
    const char *endpoint;           /* scheme and host, no path; App Service: with its path */
};

/* Of a managed identity. */
void entra_managed_url(const struct entra_identity *identity, struct text *out);
/* Of a managed identity in App Service or Functions. */
void entra_app_url(const struct entra_identity *identity, struct text *out);
/* Of all others: the URL, and the form to send. */
void entra_workload_url(const struct entra_identity *identity, struct text *out);
void entra_workload_form(const struct entra_identity *identity, struct text *out);

struct entra_token {
    char token[ENTRA_TOKEN_MAX + 1];
    char object_id[ENTRA_ID_MAX + 1]; /* the token's owner: user name for Redis; "" if not given */
    int64_t lives_s;
};

/* False if the body has no valid token. A reply with an absolute expiry needs `now_s` (Unix). */
bool entra_read_token(const char *body, size_t length, int64_t now_s, struct entra_token *out);
/* The error text of the reply, for people; nothing if it has none. */
void entra_read_error(const char *body, size_t length, struct text *out);

/*
 * A JWT that asserts the client's identity, without its signature, which follows after another dot.
 * `thumbprint` is the SHA-256 of the certificate; `id` must be unique.
 */
struct entra_claims {
    const char *audience, *client_id, *id;
    int64_t now_s;
    const unsigned char *thumbprint;
};

enum { ENTRA_THUMBPRINT = 32 };

void entra_add_claims(const struct entra_claims *claims, struct text *out);
/* True if it consists of letters, digits, dots and hyphens, as ids of clients and tenants do. */
bool entra_is_id(const char *string);

#endif

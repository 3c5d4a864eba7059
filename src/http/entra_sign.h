/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs an assertion for Microsoft Entra ID with the private key of a client certificate. Reads the
 * file for every assertion, so that a replaced certificate takes effect.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_SIGN_H
#define LEASEHOLD_HTTP_ENTRA_SIGN_H

#include "wire/entra_request.h"

struct entra_certificate {
    const char *path;     /* PEM: the certificate and its RSA key */
    const char *password; /* of the key; NULL: none */
};

/* Generates the claims, other than `audience` and `client_id`. False, with the reason. */
bool entra_sign(const struct entra_certificate *certificate, const char *audience,
                const char *client_id, struct text *out, struct text *why);

#endif

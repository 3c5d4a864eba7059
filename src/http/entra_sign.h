/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assertion for Microsoft Entra ID, signed with the private key of a client certificate. The
 * file is read for every assertion, so that a certificate that was replaced is used.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_SIGN_H
#define LEASEHOLD_HTTP_ENTRA_SIGN_H

#include "wire/entra_request.h"

struct entra_certificate {
    const char *path;     /* PEM: the certificate and its RSA key */
    const char *password; /* of the key; NULL: none */
};

/* Who says it to whom; the rest of the claims is made here. False, with the reason. */
bool entra_sign(const struct entra_certificate *certificate, const char *audience,
                const char *client_id, struct text *out, struct text *why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Signs JSON Web Tokens with an RSA key. */
#ifndef LEASEHOLD_HTTP_JWT_SIGN_H
#define LEASEHOLD_HTTP_JWT_SIGN_H

#include "base/text.h"

#include <openssl/types.h>

enum jwt_algorithm {
    JWT_RS256, /* PKCS #1 1.5 */
    JWT_PS256, /* PSS padding, and a salt as long as the digest */
};

/* Adds a dot and the signature to the header and the claims in `jwt`. False if the key cannot sign,
 * or if it does not fit. */
bool jwt_sign(EVP_PKEY *key, enum jwt_algorithm algorithm, struct text *jwt);

#endif

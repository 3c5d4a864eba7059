/* SPDX-License-Identifier: Apache-2.0 */
/* See jwt_sign.h. */
#include "http/jwt_sign.h"

#include "wire/base64url.h"

#include <openssl/evp.h>
#include <openssl/rsa.h>

enum { SIGNATURE_MAX = 1024 };

static bool jwt_set_padding(EVP_PKEY_CTX *how, enum jwt_algorithm algorithm)
{
    if (algorithm == JWT_RS256)
        return EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PADDING) == 1;
    return EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST) == 1;
}

bool jwt_sign(EVP_PKEY *key, enum jwt_algorithm algorithm, struct text *jwt)
{
    unsigned char signature[SIGNATURE_MAX];
    size_t length = sizeof signature;
    EVP_PKEY_CTX *how = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool signed_it = context != NULL &&
                     EVP_DigestSignInit(context, &how, EVP_sha256(), NULL, key) == 1 &&
                     jwt_set_padding(how, algorithm) &&
                     EVP_DigestSign(context, signature, &length, (const unsigned char *)jwt->bytes,
                                    jwt->length) == 1;
    EVP_MD_CTX_free(context);
    if (!signed_it)
        return false;
    text_add(jwt, ".");
    base64url_add(signature, length, jwt);
    return !jwt->cut;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See entra_sign.h. */
#include "http/entra_sign.h"

#include "http/jwt_sign.h"
#include "process/host.h"
#include "wire/base64url.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 256 * 1024 };

struct pair {
    X509 *certificate;
    EVP_PKEY *key;
};

/* Returns NULL, or the reason of the failure. */
static const char *read_pair(const struct entra_certificate *from, struct pair *out)
{
    struct stat status;
    char password[256] = "";
    if (stat(from->path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        return "it is no file that can be read";
    if (from->password != NULL && strlen(from->password) >= sizeof password)
        return "the password of its key is too long";
    if (from->password != NULL)
        text_copy(password, sizeof password, from->password);
    BIO *file = BIO_new_file(from->path, "r");
    if (file == NULL)
        return "it cannot be read";
    out->certificate = PEM_read_bio_X509(file, NULL, NULL, NULL);
    /* An empty password, not NULL: with NULL, OpenSSL would prompt at the terminal. */
    if (BIO_seek(file, 0) == 0)
        out->key = PEM_read_bio_PrivateKey(file, NULL, NULL, password);
    (void)BIO_free(file);
    explicit_bzero(password, sizeof password);
    if (out->certificate == NULL)
        return "it contains no PEM certificate";
    if (out->key == NULL)
        return "its private key cannot be read; is AZURE_CLIENT_CERTIFICATE_PASSWORD right?";
    if (X509_check_private_key(out->certificate, out->key) != 1)
        return "its key is not the one of its certificate";
    return EVP_PKEY_is_a(out->key, "RSA") == 1 ? NULL : "its key must be an RSA key";
}

bool entra_sign(const struct entra_certificate *certificate, const char *audience,
                const char *client_id, struct text *out, struct text *why)
{
    unsigned char thumbprint[EVP_MAX_MD_SIZE], random[16];
    char id[64];
    struct pair pair = {0};
    struct text text;
    unsigned length = 0;
    const char *wrong = read_pair(certificate, &pair);
    text_init(&text, id, sizeof id);
    if (wrong == NULL && (X509_digest(pair.certificate, EVP_sha256(), thumbprint, &length) != 1 ||
                          RAND_bytes(random, sizeof random) != 1))
        wrong = "it cannot be used";
    if (wrong == NULL) {
        base64url_add(random, sizeof random, &text);
        struct entra_claims claims = {.audience = audience,
                                      .client_id = client_id,
                                      .id = id,
                                      .now_s = host_wall_ms() / 1000,
                                      .thumbprint = thumbprint};
        entra_add_claims(&claims, out);
        wrong = jwt_sign(pair.key, JWT_PS256, out) ? NULL : "it cannot sign";
    }
    X509_free(pair.certificate);
    EVP_PKEY_free(pair.key);
    ERR_clear_error(); /* TLS connections read the same error queue */
    if (wrong == NULL)
        return true;
    TEXT_JOIN(why, "the client certificate in ", certificate->path, ": ", wrong);
    return false;
}

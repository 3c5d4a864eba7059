/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_kit.h. */
#include "tls_kit.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY_S 86400L

static void extend(X509 *certificate, int what, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void save(const struct test_cert *test_cert)
{
    FILE *file = fopen(test_cert->path, "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), S_IRUSR | S_IWUSR), 0);
    assert_int_equal(PEM_write_X509(file, test_cert->certificate), 1);
    assert_int_equal(PEM_write_PrivateKey(file, test_cert->key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
}

void test_cert_make(struct test_cert *test_cert, const char *folder, const char *file,
                    const char *names, enum test_cert_kind kind, const struct test_cert *issuer)
{
    static long serial = 1;
    X509 *certificate = test_cert->certificate = X509_new();
    test_cert->key = EVP_EC_gen("P-256");
    (void)snprintf(test_cert->path, sizeof test_cert->path, "%s/%s", folder, file);
    assert_non_null(certificate);
    assert_non_null(test_cert->key);
    (void)X509_set_version(certificate, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * DAY_S);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate),
                          kind == CERT_EXPIRED ? -DAY_S : 2 * DAY_S);
    (void)X509_set_pubkey(certificate, test_cert->key);
    X509_NAME *subject = X509_get_subject_name(certificate);
    (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)file, -1,
                                     -1, 0);
    const struct test_cert *by = issuer != NULL ? issuer : test_cert;
    (void)X509_set_issuer_name(certificate, X509_get_subject_name(by->certificate));
    extend(certificate, NID_basic_constraints,
           kind == CERT_CA ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (names != NULL)
        extend(certificate, NID_subject_alt_name, names);
    assert_true(X509_sign(certificate, by->key, EVP_sha256()) > 0);
    save(test_cert);
}

void test_cert_rename(struct test_cert *test_cert, const struct test_name *names, size_t count,
                      const struct test_cert *issuer)
{
    X509_NAME *subject = X509_NAME_new();
    for (size_t i = 0; i < count; i++)
        assert_int_equal(X509_NAME_add_entry_by_NID(subject, NID_commonName, V_ASN1_UTF8STRING,
                                                    (const unsigned char *)names[i].bytes,
                                                    names[i].length, -1, 0),
                         1);
    assert_int_equal(X509_set_subject_name(test_cert->certificate, subject), 1);
    X509_NAME_free(subject);
    assert_true(X509_sign(test_cert->certificate, issuer->key, EVP_sha256()) > 0);
    save(test_cert);
}

void test_cert_done(struct test_cert *test_cert)
{
    X509_free(test_cert->certificate);
    EVP_PKEY_free(test_cert->key);
    (void)unlink(test_cert->path);
}

static int note_name(SSL *ssl, int *alert, void *owner)
{
    struct tls_echo *server = owner;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    *alert = SSL_AD_UNRECOGNIZED_NAME; /* counts only when we refuse */
    (void)snprintf(server->server_name, sizeof server->server_name, "%s", name != NULL ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

void tls_echo_begin(struct tls_echo *server, int file)
{
    SSL_CTX *context = server->context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    assert_int_equal(SSL_CTX_use_certificate(context, server->test_cert->certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, server->test_cert->key), 1);
    if (server->most_version != 0)
        (void)SSL_CTX_set_max_proto_version(context, server->most_version);
    (void)SSL_CTX_set_min_proto_version(context, 0);
    SSL_CTX_set_security_level(context, 0); /* for the old versions that must be refused */
    (void)SSL_CTX_set_tlsext_servername_callback(context, note_name);
    (void)SSL_CTX_set_tlsext_servername_arg(context, server);
    if (server->client_ca != NULL) {
        (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(context), server->client_ca->certificate);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    (void)fcntl(file, F_SETFL, O_NONBLOCK);
    server->file = file;
    server->ssl = SSL_new(context);
    assert_int_equal(SSL_set_fd(server->ssl, file), 1);
    SSL_set_accept_state(server->ssl);
}

void tls_echo_turn(struct tls_echo *server)
{
    char bytes[20000];
    if (server->ssl == NULL)
        return;
    if (!server->open) {
        server->open = SSL_do_handshake(server->ssl) == 1;
        return;
    }
    int length = SSL_read(server->ssl, bytes, sizeof bytes);
    if (length > 0)
        (void)SSL_write(server->ssl, bytes, length);
}

void tls_echo_end(struct tls_echo *server, bool goodbye)
{
    if (server->ssl == NULL)
        return;
    if (goodbye)
        (void)SSL_shutdown(server->ssl);
    SSL_free(server->ssl);
    SSL_CTX_free(server->context);
    (void)close(server->file);
    server->ssl = NULL;
}

void test_allow_old_tls(const char *conf_file)
{
    static const char words[] = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                                "system_default = lax\n[lax]\nMinProtocol = TLSv1\n"
                                "CipherString = DEFAULT:@SECLEVEL=0\n";
    FILE *file = fopen(conf_file, "w");
    if (file == NULL || fputs(words, file) < 0 || fclose(file) != 0)
        abort();
    (void)setenv("OPENSSL_CONF", conf_file, /* overwrite= */ 1);
}

void tls_client_begin(struct tls_client *client, int file)
{
    SSL_CTX *context = client->context = SSL_CTX_new(TLS_client_method());
    assert_non_null(context);
    (void)SSL_CTX_set_min_proto_version(context, client->version);
    (void)SSL_CTX_set_max_proto_version(context, client->version);
    SSL_CTX_set_security_level(context, 0);
    if (client->ca != NULL) {
        (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(context), client->ca->certificate);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    if (client->test_cert != NULL) {
        assert_int_equal(SSL_CTX_use_certificate(context, client->test_cert->certificate), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(context, client->test_cert->key), 1);
    }
    (void)fcntl(file, F_SETFL, O_NONBLOCK);
    client->file = file;
    client->ssl = SSL_new(context);
    assert_int_equal(SSL_set_fd(client->ssl, file), 1);
    SSL_set_connect_state(client->ssl);
}

void tls_client_turn(struct tls_client *client)
{
    if (client->ssl == NULL || client->open != 0 || client->error != 0)
        return;
    int result = SSL_do_handshake(client->ssl);
    client->open = result == 1;
    int error = result == 1 ? 0 : SSL_get_error(client->ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        client->error = error;
}

void tls_client_end(struct tls_client *client, bool goodbye)
{
    if (client->ssl == NULL)
        return;
    if (goodbye)
        (void)SSL_shutdown(client->ssl);
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    (void)close(client->file);
    client->ssl = NULL;
}

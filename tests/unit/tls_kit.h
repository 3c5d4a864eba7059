/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made at run time, and a TLS server that echoes, driven by the test's own thread. */
#ifndef LEASEHOLD_TESTS_TLS_KIT_H
#define LEASEHOLD_TESTS_TLS_KIT_H

#include <openssl/ssl.h>
#include <stdbool.h>

/* A certificate with its key, and the PEM file of both. */
struct test_cert {
    X509 *certificate;
    EVP_PKEY *key;
    char path[128];
};

enum test_cert_kind { CERT_CA, CERT_FINE, CERT_EXPIRED };

/* `names` as OpenSSL writes them ("DNS:a,IP:127.0.0.1"); NULL for a CA. */
void test_cert_make(struct test_cert *test_cert, const char *folder, const char *file,
                    const char *names, enum test_cert_kind kind, const struct test_cert *issuer);
void test_cert_done(struct test_cert *test_cert);

struct tls_server {
    const struct test_cert *test_cert;
    const struct test_cert *client_ca; /* NULL: requests no certificate */
    int most_version;                  /* 0: any */
    SSL_CTX *context;
    SSL *ssl;
    int file;
    bool open;
    char server_name[64]; /* requested by the client */
};

/* Takes the accepted socket. */
void tls_server_begin(struct tls_server *server, int file);
/* One round: the handshake, then an echo of the bytes received. */
void tls_server_turn(struct tls_server *server);
void tls_server_end(struct tls_server *server, bool goodbye);

#endif

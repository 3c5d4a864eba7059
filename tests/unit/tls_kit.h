/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates made at run time, a TLS server that echoes, and a TLS client, both driven by the
 * test's own thread.
 */
#ifndef LEASEHOLD_TESTS_TLS_KIT_H
#define LEASEHOLD_TESTS_TLS_KIT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

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
struct test_name {
    const char *bytes;
    int length;
};
/* Replaces the subject by common names, and signs it again. */
void test_cert_rename(struct test_cert *test_cert, const struct test_name *names, size_t count,
                      const struct test_cert *issuer);
void test_cert_done(struct test_cert *test_cert);
/* Lets this process use old versions and weak keys: remaining refusals are our own. Writes a file,
 * and must come before OpenSSL is used. */
void test_allow_old_tls(const char *conf_file);

struct tls_echo {
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
void tls_echo_begin(struct tls_echo *server, int file);
/* One round: the handshake, then an echo of the bytes received. */
void tls_echo_turn(struct tls_echo *server);
void tls_echo_end(struct tls_echo *server, bool goodbye);

struct tls_client {
    const struct test_cert *ca;        /* NULL: trusts everything */
    const struct test_cert *test_cert; /* NULL: none */
    int version;                       /* the only one that it speaks; 0: any */
    SSL_CTX *context;
    SSL *ssl;
    int file;
    unsigned open; /* the handshake is done */
    int error;     /* of the handshake: SSL_get_error(); 0: none */
};

/* Takes the connected socket, which becomes non-blocking. */
void tls_client_begin(struct tls_client *client, int file);
/* One round of the handshake. */
void tls_client_turn(struct tls_client *client);
void tls_client_end(struct tls_client *client, bool goodbye);

#endif

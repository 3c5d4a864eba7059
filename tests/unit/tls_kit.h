/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made on the spot, and a TLS server that echoes, turned by the test's own thread. */
#ifndef LEASEHOLD_TESTS_TLS_KIT_H
#define LEASEHOLD_TESTS_TLS_KIT_H

#include <openssl/ssl.h>
#include <stdbool.h>

/* A certificate with its key, and where both stand in one PEM file. */
struct paper {
    X509 *certificate;
    EVP_PKEY *key;
    char path[128];
};

enum paper_kind { PAPER_CA, PAPER_FINE, PAPER_EXPIRED };

/* `names` as OpenSSL writes them ("DNS:a,IP:127.0.0.1"); NULL for a CA. */
void paper_make(struct paper *paper, const char *folder, const char *file, const char *names,
                enum paper_kind kind, const struct paper *issuer);
void paper_done(struct paper *paper);

struct tls_server {
    const struct paper *paper;
    const struct paper *client_ca; /* NULL: asks nobody for a certificate */
    int most_version;              /* 0: whatever there is */
    SSL_CTX *context;
    SSL *ssl;
    int file;
    bool open;
    char server_name[64]; /* that the client asked for */
};

/* Takes the accepted socket. */
void tls_server_begin(struct tls_server *server, int file);
/* One round: the handshake, then whatever came goes back. */
void tls_server_turn(struct tls_server *server);
void tls_server_end(struct tls_server *server, bool goodbye);

#endif

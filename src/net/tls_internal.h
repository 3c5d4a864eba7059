/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tls.c, which transfers bytes and is the client, and tls_server.c, which accepts. No
 * other file may include it.
 */
#ifndef LEASEHOLD_NET_TLS_INTERNAL_H
#define LEASEHOLD_NET_TLS_INTERNAL_H

#include "net/tls.h"

#include <openssl/ssl.h>

enum {
    TLS_MAGIC = 0x715,
    TLS_ERROR_MAX = 256,
    /* The headers of a record and of the message in it: type, length and version are known. */
    TLS_HEAD_SIZE = 9,
};

struct tls {
    uint32_t magic;
    int file;
    struct tls_server *server; /* NULL: we are the client, … */
    SSL_CTX *context;          /* … with a context … */
    BIO_METHOD *method;        /* … and a method of our own */
    SSL *ssl;                  /* of a server: NULL until the first message begins */
    bool has_certificate;      /* a client certificate is configured */
    bool cert_requested;       /* by the server, but we have none */
    bool open;                 /* the handshake is done */
    bool received;             /* any bytes since then */
    bool broken;               /* no bytes may be sent */
    int error;                 /* errno of the socket; 0: it was closed */
    unsigned wants;
    enum stream_end end;
    char *peer_name;     /* in the certificate of a client; NULL: none */
    uint8_t head_length; /* of the first bytes of a client, … */
    uint8_t head_used;   /* … of which OpenSSL has received so many */
    char head[TLS_HEAD_SIZE];
    char why[TLS_ERROR_MAX];
};

/* tls.c */
const char *tls_openssl_reason(unsigned long error);
/* False, with the reason of OpenSSL. `file` may be NULL. */
bool tls_fail_setup(struct text *why, const char *what, const char *file);
/* As an end of the connection; −1. `detail` may be NULL. */
ssize_t tls_fail(struct tls *tls, enum stream_end end, const char *what, const char *detail);
bool tls_is_cert_alert(int alert); /* about our certificate */
/* For SSL_CTX_set_default_passwd_cb(): an encrypted key is an error, not a question. */
int tls_no_passphrase(char *buffer, int size, int writing, void *owner);
/* Settings of both sides. False if OpenSSL fails. */
bool tls_set_common_options(SSL_CTX *context);
BIO_METHOD *tls_method_new(void); /* NULL when out of memory */
/* Lets tls->ssl use the socket; false when out of memory. */
bool tls_attach_socket(struct tls *tls, const BIO_METHOD *method);

/* tls_server.c */
/* Reads the first bytes, then makes tls->ssl. Returns as tls_handshake(). */
ssize_t tls_begin_accept(struct tls *tls);
/* The handshake is done: takes the name of the client. −1: its certificate is unusable. */
ssize_t tls_finish_accept(struct tls *tls);
/* The handshake failed with that error of OpenSSL; −1. */
ssize_t tls_fail_accept(struct tls *tls, unsigned long error);
void tls_server_unref(struct tls_server *server);

#endif

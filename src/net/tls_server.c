/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tls_server.h. A peer has not proved anything before the handshake is done: it gets memory of
 * OpenSSL only for a first message of plausible size. Must not show text from a key file.
 */
#include "net/tls_server.h"

#include "base/check.h"
#include "net/tls_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TLS_SERVER_MAGIC = 0x715e,
    HELLO_MAX = 16 * 1024, /* OpenSSL reserves memory for what the header declares: up to 128 KiB */
    CHAIN_MAX = 32 * 1024, /* certificates of a client */
    NAME_MAX_BYTES = 255,  /* of a client */
    RECORD_HANDSHAKE = 22,
    MESSAGE_CLIENT_HELLO = 1,
};

struct tls_server {
    uint32_t magic;
    unsigned refs; /* of the owner and of each connection */
    SSL_CTX *context;
    BIO_METHOD *method;
    char warning[TLS_ERROR_MAX]; /* "": none */
};

/* ---- files ---- */

/* OpenSSL would wait for the writer of a FIFO. */
static bool tls_server_check_file(const char *path, bool secret, struct text *why)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *wrong = NULL;
    if (file < 0 || fstat(file, &status) != 0)
        wrong = strerror(errno);
    else if (!S_ISREG(status.st_mode))
        wrong = "it is no regular file";
    else if (secret && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        wrong = "other users have access to the key; chmod 600";
    if (file >= 0)
        (void)close(file);
    if (wrong != NULL)
        TEXT_JOIN(why, "cannot use ", path, ": ", wrong);
    return wrong == NULL;
}

static bool tls_server_load_key(SSL_CTX *context, const char *cert_file, const char *key_file,
                                struct text *why)
{
    const char *key = key_file != NULL ? key_file : cert_file;
    if (!tls_server_check_file(cert_file, /* secret= */ key_file == NULL, why) ||
        !tls_server_check_file(key, /* secret= */ true, why))
        return false;
    if (SSL_CTX_use_certificate_chain_file(context, cert_file) != 1)
        return tls_fail_setup(why, "cannot use the certificate in", cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return tls_fail_setup(why, "cannot use the key in", key);
    return true;
}

static bool tls_server_load_ca(SSL_CTX *context, const char *file, struct text *why)
{
    if (!tls_server_check_file(file, /* secret= */ false, why))
        return false;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(file);
    if (names == NULL || SSL_CTX_load_verify_locations(context, file, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return tls_fail_setup(why, "cannot use the certificates in", file);
    }
    SSL_CTX_set_client_CA_list(context, names); /* takes ownership */
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_max_cert_list(context, CHAIN_MAX);
    return true;
}

static void tls_server_check_times(struct tls_server *server, const char *cert_file)
{
    const X509 *certificate = SSL_CTX_get0_certificate(server->context);
    struct text text;
    text_init(&text, server->warning, sizeof server->warning);
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        TEXT_JOIN(&text, "the certificate in ", cert_file, " has expired: clients refuse it");
    else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        TEXT_JOIN(&text, "the certificate in ", cert_file, " is not valid yet: clients refuse it");
}

/* ---- the server ---- */

/* Sessions are not resumed: the handshake of each connection verifies the client again. */
static bool tls_server_set_options(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return tls_set_common_options(context) && SSL_CTX_set_num_tickets(context, 0) == 1 &&
           SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static bool tls_server_build(struct tls_server *server, const char *cert_file, const char *key_file,
                             const char *client_ca_file, struct text *why)
{
    server->context = SSL_CTX_new(TLS_server_method());
    server->method = tls_method_new();
    if (server->context == NULL || server->method == NULL ||
        !tls_server_set_options(server->context))
        return tls_fail_setup(why, "cannot set up TLS", NULL);
    if (!tls_server_load_key(server->context, cert_file, key_file, why) ||
        (client_ca_file != NULL && !tls_server_load_ca(server->context, client_ca_file, why)))
        return false;
    tls_server_check_times(server, cert_file);
    return true;
}

struct tls_server *tls_server_new(const char *cert_file, const char *key_file,
                                  const char *client_ca_file, struct text *why)
{
    /* As in tls_new(). */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    struct tls_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    server->magic = TLS_SERVER_MAGIC;
    server->refs = 1;
    ERR_clear_error();
    if (!tls_server_build(server, cert_file, key_file, client_ca_file, why))
        tls_server_free(&server);
    ERR_clear_error();
    return server;
}

void tls_server_unref(struct tls_server *server)
{
    if (server == NULL)
        return;
    ASSERT(server->magic == TLS_SERVER_MAGIC && server->refs > 0);
    if (--server->refs > 0)
        return;
    SSL_CTX_free(server->context);
    BIO_meth_free(server->method);
    server->magic = 0;
    free(server);
}

void tls_server_free(struct tls_server **server)
{
    tls_server_unref(*server);
    *server = NULL;
}

const char *tls_server_warning(const struct tls_server *server)
{
    return server->warning[0] != '\0' ? server->warning : NULL;
}

/* ---- the first message ---- */

struct tls *tls_accept(struct tls_server *server, int file)
{
    struct tls *tls = calloc(1, sizeof *tls);
    ASSERT(server->magic == TLS_SERVER_MAGIC);
    if (tls == NULL)
        return NULL;
    tls->magic = TLS_MAGIC;
    tls->file = file;
    tls->broken = true; /* until it is open */
    tls->server = server;
    server->refs++;
    return tls;
}

/* Returns NULL, or what is wrong with the bytes received so far. */
static const char *tls_check_head(const struct tls *tls)
{
    const unsigned char *head = (const unsigned char *)tls->head;
    if (head[0] != RECORD_HANDSHAKE)
        return "the peer does not speak TLS";
    if (tls->head_length < TLS_HEAD_SIZE)
        return NULL;
    size_t record = (size_t)head[3] << 8 | head[4];
    size_t message = (size_t)head[6] << 16 | (size_t)head[7] << 8 | head[8];
    if (record < TLS_HEAD_SIZE - 5 || head[5] != MESSAGE_CLIENT_HELLO || message > HELLO_MAX)
        return "the peer's first message is no ClientHello";
    return NULL;
}

/* As tls_handshake(). */
static ssize_t tls_read_head(struct tls *tls)
{
    while (tls->head_length < TLS_HEAD_SIZE) {
        ssize_t got = recv(tls->file, tls->head + tls->head_length,
                           (size_t)TLS_HEAD_SIZE - tls->head_length, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            tls->wants = POLLER_READ;
            return 0;
        }
        if (got < 0)
            return tls_fail(tls, STREAM_CUT, "the connection broke", strerror(errno));
        if (got == 0)
            return tls_fail(tls, tls->head_length == 0 ? STREAM_CLOSED : STREAM_CUT,
                            "the peer closed the connection", "before the TLS handshake");
        tls->head_length = (uint8_t)(tls->head_length + got);
        const char *wrong = tls_check_head(tls);
        if (wrong != NULL)
            return tls_fail(tls, STREAM_CUT, wrong, NULL);
    }
    return 1;
}

ssize_t tls_begin_accept(struct tls *tls)
{
    ssize_t begun = tls_read_head(tls);
    if (begun <= 0)
        return begun;
    tls->ssl = SSL_new(tls->server->context);
    if (tls->ssl == NULL || !tls_attach_socket(tls, tls->server->method))
        return tls_fail(tls, STREAM_CUT, "out of memory", NULL);
    SSL_set_accept_state(tls->ssl);
    return 1;
}

ssize_t tls_fail_accept(struct tls *tls, unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tls_fail(tls, STREAM_UNTRUSTED, "the client's certificate is refused",
                        X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl)));
    if (tls_is_cert_alert(reason - SSL_AD_REASON_OFFSET))
        return tls_fail(tls, STREAM_UNTRUSTED, "the client refuses our certificate",
                        tls_openssl_reason(error));
    return tls_fail(tls, STREAM_CUT, tls->open ? "TLS failed" : "the TLS handshake failed",
                    tls_openssl_reason(error));
}

/* ---- the name of the client ---- */

/* Texts and lists show it, and permissions compare it: no control characters, also no NUL. */
static bool tls_is_name(const unsigned char *bytes, int length)
{
    if (length < 1 || length > NAME_MAX_BYTES)
        return false;
    for (int i = 0; i < length; i++) {
        bool second = i > 0 && bytes[i - 1] == 0xc2 && bytes[i] < 0xa0; /* U+0080 to U+009F */
        if (bytes[i] < 0x20 || bytes[i] == 0x7f || second)
            return false;
    }
    return true;
}

/* False if the name is unusable, or when out of memory. */
static bool tls_take_name(struct tls *tls, const ASN1_STRING *name)
{
    unsigned char *utf8 = NULL;
    int length = ASN1_STRING_to_UTF8(&utf8, name);
    if (length >= 0 && tls_is_name(utf8, length))
        tls->peer_name = strndup((const char *)utf8, (size_t)length);
    OPENSSL_free(utf8);
    return tls->peer_name != NULL;
}

/* The first DNS name, if there is one. */
static bool tls_take_dns_name(struct tls *tls, const X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool good = true;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int kind = 0;
        const ASN1_STRING *name = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);
        if (kind == GEN_DNS) {
            good = tls_take_name(tls, name);
            break;
        }
    }
    GENERAL_NAMES_free(names);
    return good;
}

/* The common name, which must be the only one, or a DNS name. */
static bool tls_take_peer_name(struct tls *tls, const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, /* lastpos= */ -1);
    if (at < 0)
        return tls_take_dns_name(tls, certificate);
    return X509_NAME_get_index_by_NID(subject, NID_commonName, at) < 0 &&
           tls_take_name(tls, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

ssize_t tls_finish_accept(struct tls *tls)
{
    const X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    if (certificate == NULL)
        return 1;
    if (SSL_get_verify_result(tls->ssl) != X509_V_OK || !tls_take_peer_name(tls, certificate))
        return tls_fail(tls, STREAM_UNTRUSTED, "the client's certificate is refused",
                        "its name is unusable");
    return 1;
}

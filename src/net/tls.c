/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tls.h. OpenSSL reads and writes the socket through our own BIO, because OpenSSL's would raise
 * SIGPIPE. Must not prompt for a passphrase, and must not show text from a key file.
 */
#include "net/tls_internal.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- the socket ---- */

static int bio_result(BIO *bio, ssize_t carried, int again_flag)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (carried < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_flags(bio, again_flag | BIO_FLAGS_SHOULD_RETRY);
    else if (carried <= 0)
        tls->error = carried < 0 ? errno : 0;
    return (int)carried;
}

static int bio_read(BIO *bio, char *bytes, int length)
{
    struct tls *tls = BIO_get_data(bio);
    if (tls->head_used < tls->head_length) {
        int left = tls->head_length - tls->head_used, count = length < left ? length : left;
        memcpy(bytes, tls->head + tls->head_used, (size_t)count);
        tls->head_used = (uint8_t)(tls->head_used + count);
        return count;
    }
    return bio_result(bio, recv(tls->file, bytes, (size_t)length, MSG_DONTWAIT), BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *bytes, int length)
{
    struct tls *tls = BIO_get_data(bio);
    return bio_result(bio, send(tls->file, bytes, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT),
                      BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *tls_method_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "leasehold");
    if (method != NULL && BIO_meth_set_read(method, bio_read) == 1 &&
        BIO_meth_set_write(method, bio_write) == 1 && BIO_meth_set_ctrl(method, bio_control) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

bool tls_attach_socket(struct tls *tls, const BIO_METHOD *method)
{
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio); /* takes ownership */
    return true;
}

/* ---- trust ---- */

const char *tls_openssl_reason(unsigned long error)
{
    if (ERR_SYSTEM_ERROR(error))
        return strerror(ERR_GET_REASON(error));
    const char *reason = ERR_reason_error_string(error);
    return reason != NULL ? reason : "no reason given";
}

bool tls_fail_setup(struct text *why, const char *what, const char *file)
{
    text_add(why, what);
    if (file != NULL)
        TEXT_JOIN(why, " ", file);
    TEXT_JOIN(why, " (", tls_openssl_reason(ERR_peek_error()), ")");
    return false;
}

int tls_no_passphrase(char *buffer, int size, int writing, void *owner)
{
    (void)writing;
    (void)owner;
    if (size > 0)
        buffer[0] = '\0';
    return -1;
}

/* The server requests a client certificate, and we have none. */
static int on_cert_request(SSL *ssl, X509 **out_certificate, EVP_PKEY **out_key)
{
    struct tls *tls = SSL_get_app_data(ssl);
    (void)out_certificate;
    (void)out_key;
    tls->cert_requested = true;
    return 0;
}

static bool load_files(struct tls *tls, const struct stream_tls *settings, struct text *why)
{
    const char *key = settings->key_file != NULL ? settings->key_file : settings->cert_file;
    SSL_CTX *context = tls->context;
    if (settings->ca_file == NULL) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            return tls_fail_setup(why, "cannot load the system's certificates", NULL);
    } else if (SSL_CTX_load_verify_locations(context, settings->ca_file, NULL) != 1) {
        return tls_fail_setup(why, "cannot use the certificates in", settings->ca_file);
    }
    if (settings->cert_file == NULL)
        return true;
    tls->has_certificate = true;
    if (SSL_CTX_use_certificate_chain_file(context, settings->cert_file) != 1)
        return tls_fail_setup(why, "cannot use our certificate in", settings->cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return tls_fail_setup(why, "cannot use our key in", key);
    return true;
}

static bool expect_name(SSL *ssl, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *expected = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(expected, name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    char *copy = strdup(name); /* SSL_set_tlsext_host_name() takes no const */
    bool fine =
        copy != NULL && SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, copy) == 1;
    free(copy);
    return fine;
}

bool tls_set_common_options(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(context, tls_no_passphrase);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

static bool tls_build(struct tls *tls, const struct stream_tls *settings, const char *host,
                      struct text *why)
{
    const char *name = settings->name != NULL ? settings->name : host;
    if (name == NULL) {
        text_add(why, "cannot check the certificate: a unix socket has no host name; set name=");
        return false;
    }
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL || !tls_set_common_options(tls->context))
        return tls_fail_setup(why, "cannot set up TLS", NULL);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_client_cert_cb(tls->context, on_cert_request);
    if (!load_files(tls, settings, why))
        return false;
    tls->ssl = SSL_new(tls->context);
    tls->method = tls_method_new();
    if (tls->ssl == NULL || !tls_attach_socket(tls, tls->method) || !expect_name(tls->ssl, name))
        return tls_fail_setup(why, "cannot set up TLS", NULL);
    SSL_set_app_data(tls->ssl, tls);
    SSL_set_connect_state(tls->ssl);
    return true;
}

struct tls *tls_new(const struct stream_tls *settings, const char *host, int file, struct text *why)
{
    /* OpenSSL's exit handler would free state that running threads still use. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    tls->magic = TLS_MAGIC;
    tls->file = file;
    tls->broken = true; /* until it is open */
    ERR_clear_error();
    if (!tls_build(tls, settings, host, why))
        tls_free(&tls);
    ERR_clear_error();
    return tls;
}

void tls_free(struct tls **tls_pointer)
{
    struct tls *tls = *tls_pointer;
    if (tls == NULL)
        return;
    ASSERT(tls->magic == TLS_MAGIC);
    if (!tls->broken)
        (void)SSL_shutdown(tls->ssl);
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    tls_server_unref(tls->server);
    ERR_clear_error();
    free(tls->peer_name);
    tls->magic = 0;
    free(tls);
    *tls_pointer = NULL;
}

/* ---- errors ---- */

ssize_t tls_fail(struct tls *tls, enum stream_end end, const char *what, const char *detail)
{
    struct text text;
    text_init(&text, tls->why, sizeof tls->why);
    text_add(&text, what);
    if (detail != NULL)
        TEXT_JOIN(&text, " (", detail, ")");
    tls->end = end;
    tls->broken = true;
    return -1;
}

bool tls_is_cert_alert(int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

static ssize_t tls_fail_protocol(struct tls *tls)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    if (tls->server != NULL)
        return tls_fail_accept(tls, error);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tls_fail(tls, STREAM_UNTRUSTED, "the server's certificate is refused",
                        X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl)));
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return tls_fail(tls, STREAM_CUT, "the connection was cut", NULL);
    int alert = reason - SSL_AD_REASON_OFFSET;
    if (tls_is_cert_alert(alert) || (alert == SSL_AD_HANDSHAKE_FAILURE && tls->cert_requested))
        return tls_fail(tls, STREAM_UNTRUSTED,
                        tls->has_certificate ? "the server refuses our certificate"
                                             : "the server requires a client certificate",
                        tls_openssl_reason(error));
    return tls_fail(tls, STREAM_CUT, "no TLS with this server; is it the right port?",
                    tls_openssl_reason(error));
}

/* A socket error, or its end without close_notify. */
static ssize_t tls_fail_socket(struct tls *tls)
{
    const char *detail = tls->error != 0 ? strerror(tls->error) : NULL;
    /* In TLS 1.3 the client finishes first. The server's alert about a missing certificate is lost
     * if the server closes the connection when our first bytes arrive. */
    if (tls->cert_requested && !tls->has_certificate && !tls->received)
        return tls_fail(tls, STREAM_UNTRUSTED, "the server requires a client certificate", detail);
    if (detail == NULL)
        return tls_fail(tls, STREAM_CUT, "the connection was cut", "no close_notify");
    return tls_fail(tls, STREAM_CUT, "the connection broke", detail);
}

/* 0: retry when ready; −1: it ended. */
static ssize_t tls_check_result(struct tls *tls, int result, unsigned *out_wants)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        *out_wants = POLLER_READ;
        return 0;
    case SSL_ERROR_WANT_WRITE:
        *out_wants = POLLER_WRITE;
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        (void)tls_fail(tls, STREAM_CLOSED,
                       tls->server != NULL ? "the peer closed the connection"
                                           : "the server closed the connection",
                       NULL);
        tls->broken = !tls->open || (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) != 0;
        return -1;
    case SSL_ERROR_SSL:
        return tls_fail_protocol(tls);
    default:
        return tls_fail_socket(tls);
    }
}

/* ---- transfer ---- */

ssize_t tls_handshake(struct tls *tls)
{
    ERR_clear_error();
    tls->wants = 0;
    if (tls->ssl == NULL) {
        ssize_t begun = tls_begin_accept(tls);
        if (begun <= 0)
            return begun;
    }
    int result = SSL_do_handshake(tls->ssl);
    if (result != 1)
        return tls_check_result(tls, result, &tls->wants);
    tls->open = true;
    tls->broken = false;
    return tls->server != NULL ? tls_finish_accept(tls) : 1;
}

static int shorten(size_t length)
{
    return length < INT_MAX ? (int)length : INT_MAX;
}

ssize_t tls_read(struct tls *tls, char *bytes, size_t length)
{
    ERR_clear_error();
    tls->wants = 0;
    int result = SSL_read(tls->ssl, bytes, shorten(length));
    tls->received = tls->received || result > 0;
    return result > 0 ? result : tls_check_result(tls, result, &tls->wants);
}

ssize_t tls_write(struct tls *tls, const char *bytes, size_t length)
{
    unsigned wants; /* without renegotiation only POLLER_WRITE */
    ERR_clear_error();
    int result = SSL_write(tls->ssl, bytes, shorten(length));
    return result > 0 ? result : tls_check_result(tls, result, &wants);
}

ssize_t tls_close(struct tls *tls)
{
    unsigned wants;
    if (tls->broken)
        return -1;
    ERR_clear_error();
    int result = SSL_shutdown(tls->ssl);
    if (result < 0)
        return tls_check_result(tls, result, &wants);
    tls->broken = true;
    return 1;
}

unsigned tls_wants(const struct tls *tls)
{
    return tls->wants;
}

bool tls_has_more(const struct tls *tls)
{
    return SSL_pending(tls->ssl) > 0;
}

enum stream_end tls_end(const struct tls *tls)
{
    return tls->end;
}

const char *tls_why(const struct tls *tls)
{
    return tls->why;
}

const char *tls_peer_name(const struct tls *tls)
{
    return tls->peer_name;
}

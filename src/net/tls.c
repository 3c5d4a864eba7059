/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tls.h. OpenSSL reads and writes the socket through our own BIO, because OpenSSL's would raise
 * SIGPIPE. Must not prompt for a passphrase, and must not show text from a key file.
 */
#include "net/tls.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { TLS_MAGIC = 0x715, ERROR_MAX = 256 };

struct tls {
    uint32_t magic;
    int file;
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    bool has_certificate; /* a client certificate is configured */
    bool cert_requested;  /* by the server, but we have none */
    bool received;        /* any bytes since the handshake */
    bool broken;          /* no bytes may be sent */
    int error;            /* errno of the socket; 0: it was closed */
    unsigned wants;
    enum stream_end end;
    char why[ERROR_MAX];
};

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
    return bio_result(bio, recv(tls->file, bytes, (size_t)length, 0), BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *bytes, int length)
{
    struct tls *tls = BIO_get_data(bio);
    return bio_result(bio, send(tls->file, bytes, (size_t)length, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static bool attach_socket(struct tls *tls)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "leasehold");
    if (tls->method == NULL || BIO_meth_set_read(tls->method, bio_read) != 1 ||
        BIO_meth_set_write(tls->method, bio_write) != 1 ||
        BIO_meth_set_ctrl(tls->method, bio_control) != 1)
        return false;
    BIO *bio = BIO_new(tls->method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio); /* takes ownership */
    return true;
}

/* ---- trust ---- */

static const char *openssl_reason(unsigned long error)
{
    if (ERR_SYSTEM_ERROR(error))
        return strerror(ERR_GET_REASON(error));
    const char *reason = ERR_reason_error_string(error);
    return reason != NULL ? reason : "no reason given";
}

static bool tls_fail_setup(struct text *why, const char *what, const char *file)
{
    text_add(why, what);
    if (file != NULL)
        TEXT_JOIN(why, " ", file);
    TEXT_JOIN(why, " (", openssl_reason(ERR_peek_error()), ")");
    return false;
}

/* An encrypted key is an error: OpenSSL must not prompt for its passphrase. */
static int no_passphrase(char *buffer, int size, int writing, void *owner)
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
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
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

static bool tls_build(struct tls *tls, const struct stream_tls *settings, const char *host,
                      struct text *why)
{
    const char *name = settings->name != NULL ? settings->name : host;
    if (name == NULL) {
        text_add(why, "cannot check the certificate: a unix socket has no host name; set name=");
        return false;
    }
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1)
        return tls_fail_setup(why, "cannot set up TLS", NULL);
    SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_client_cert_cb(tls->context, on_cert_request);
    if (!load_files(tls, settings, why))
        return false;
    tls->ssl = SSL_new(tls->context);
    if (tls->ssl == NULL || !attach_socket(tls) || !expect_name(tls->ssl, name))
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
    if (tls->method != NULL)
        BIO_meth_free(tls->method);
    ERR_clear_error();
    tls->magic = 0;
    free(tls);
    *tls_pointer = NULL;
}

/* ---- errors ---- */

static ssize_t tls_fail(struct tls *tls, enum stream_end end, const char *what, const char *detail)
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

/* True for an alert about our certificate, or a failed handshake if a requested one is missing. */
static bool is_client_cert_alert(const struct tls *tls, int alert)
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
    case SSL_AD_HANDSHAKE_FAILURE:
        return tls->cert_requested;
    default:
        return false;
    }
}

static ssize_t tls_fail_protocol(struct tls *tls)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tls_fail(tls, STREAM_UNTRUSTED, "the server's certificate is refused",
                        X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl)));
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return tls_fail(tls, STREAM_CUT, "the connection was cut", NULL);
    if (is_client_cert_alert(tls, reason - SSL_AD_REASON_OFFSET))
        return tls_fail(tls, STREAM_UNTRUSTED,
                        tls->has_certificate ? "the server refuses our certificate"
                                             : "the server requires a client certificate",
                        openssl_reason(error));
    return tls_fail(tls, STREAM_CUT, "no TLS with this server; is it the right port?",
                    openssl_reason(error));
}

/* 0: retry when ready; −1: it ended. */
static ssize_t tls_check_result(struct tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        tls->wants = POLLER_READ;
        return 0;
    case SSL_ERROR_WANT_WRITE:
        tls->wants = POLLER_WRITE;
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return tls_fail(tls, STREAM_CLOSED, "the server closed the connection", NULL);
    case SSL_ERROR_SSL:
        return tls_fail_protocol(tls);
    default:
        /* In TLS 1.3 the client finishes first. The server's alert about a missing certificate is
         * lost if the server closes the connection when our first bytes arrive. */
        if (tls->cert_requested && !tls->has_certificate && !tls->received)
            return tls_fail(tls, STREAM_UNTRUSTED, "the server requires a client certificate",
                            tls->error != 0 ? strerror(tls->error) : NULL);
        return tls_fail(tls, STREAM_CUT, "the connection broke",
                        tls->error != 0 ? strerror(tls->error) : NULL);
    }
}

/* ---- transfer ---- */

ssize_t tls_handshake(struct tls *tls)
{
    ERR_clear_error();
    tls->wants = 0;
    int result = SSL_do_handshake(tls->ssl);
    if (result != 1)
        return tls_check_result(tls, result);
    tls->broken = false;
    return 1;
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
    return result > 0 ? result : tls_check_result(tls, result);
}

ssize_t tls_write(struct tls *tls, const char *bytes, size_t length)
{
    ERR_clear_error();
    tls->wants = 0;
    int result = SSL_write(tls->ssl, bytes, shorten(length));
    return result > 0 ? result : tls_check_result(tls, result);
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

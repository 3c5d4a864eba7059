/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS servers: which files they accept, which versions and clients, and the names of clients. The
 * transfer of bytes is tested with the stream.
 */
#include "tls_link.h"

#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[128];

static const char *in_folder(const char *file)
{
    (void)snprintf(path, sizeof path, "%s/%s", link_folder, file);
    return path;
}

/* The link in both versions: the stream opens, or ends with that. */
static void expect_accepted(int version)
{
    link_client.version = version;
    link_open();
    link_put("x", 1);
    assert_true(link_until(&link_party.calls));
}

static void expect_refused(int version, enum stream_end end, const char *why)
{
    link_client.version = version;
    link_connect();
    assert_true(link_until(&link_party.ended));
    if (strstr(link_party.why, why) == NULL)
        print_message("%s\n", link_party.why);
    assert_non_null(strstr(link_party.why, why));
    assert_int_equal(link_party.end, end);
    assert_int_equal(link_party.opened + link_party.calls, 0);
    link_disconnect();
}

/* ---- versions ---- */

static void old_versions_are_refused(void **state)
{
    (void)state;
    link_client.ca = NULL;
    expect_refused(TLS1_1_VERSION, STREAM_CUT, "the TLS handshake failed (unsupported protocol)");
    expect_refused(TLS1_VERSION, STREAM_CUT, "the TLS handshake failed (unsupported protocol)");
}

static void a_client_cannot_renegotiate(void **state)
{
    (void)state;
    expect_accepted(TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(link_client.ssl), 1);
    int error = SSL_ERROR_WANT_READ;
    for (int i = 0; i < 100 && error == SSL_ERROR_WANT_READ; i++) {
        error = SSL_get_error(link_client.ssl, SSL_do_handshake(link_client.ssl));
        link_turn(/* ms= */ 5);
    }
    assert_int_equal(error, SSL_ERROR_SSL);
}

/* A resumed session would keep the certificate of a client after its end. */
static void sessions_are_not_resumed(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        expect_accepted(versions[i]);
        stream_write(link_party.stream, "y", 1);
        link_expect("y", 1); /* with TLS 1.3 tickets would come before it */
        SSL_SESSION *session = SSL_get1_session(link_client.ssl);
        assert_int_equal(SSL_SESSION_has_ticket(session), 0);
        tls_client_end(&link_client, /* goodbye= */ true); /* a session that was cut has no use */
        assert_true(link_until(&link_party.ended));
        link_disconnect();
        link_connect();
        (void)SSL_set_session(link_client.ssl, session);
        assert_true(link_until(&link_party.opened));
        assert_true(link_until(&link_client.open));
        assert_int_equal(SSL_session_reused(link_client.ssl), 0);
        SSL_SESSION_free(session);
        link_disconnect();
    }
}

static void a_client_that_refuses_us_is_reported(void **state)
{
    (void)state;
    link_client.ca = &link_certs.other_ca;
    expect_refused(TLS1_2_VERSION, STREAM_UNTRUSTED, "the client refuses our certificate (");
    expect_refused(TLS1_3_VERSION, STREAM_UNTRUSTED, "the client refuses our certificate (");
    link_client.ca = &link_certs.ca;
    assert_null(tls_server_warning(link_server));
    link_serve(&link_certs.expired, NULL);
    assert_non_null(strstr(tls_server_warning(link_server), "/expired has expired: clients"));
    expect_refused(TLS1_3_VERSION, STREAM_UNTRUSTED, "certificate expired");
}

/* ---- clients ---- */

static void a_client_has_the_name_of_its_certificate(void **state)
{
    (void)state;
    link_serve(&link_certs.fine, &link_certs.ca);
    link_client.test_cert = &link_certs.client;
    expect_accepted(TLS1_2_VERSION);
    assert_string_equal(stream_peer_name(link_party.stream), "worker-1");
    link_disconnect();
    expect_accepted(TLS1_3_VERSION);
    assert_string_equal(stream_peer_name(link_party.stream), "worker-1");
}

static void a_client_needs_no_certificate(void **state)
{
    (void)state;
    link_serve(&link_certs.fine, &link_certs.ca);
    expect_accepted(TLS1_2_VERSION);
    assert_null(stream_peer_name(link_party.stream));
    link_disconnect();
    expect_accepted(TLS1_3_VERSION);
    assert_null(stream_peer_name(link_party.stream));
}

static void a_certificate_is_ignored_without_a_ca(void **state)
{
    (void)state;
    link_client.test_cert = &link_certs.client;
    expect_accepted(TLS1_3_VERSION);
    assert_null(stream_peer_name(link_party.stream));
}

static void a_bad_certificate_of_a_client_is_refused(void **state)
{
    static const char refused[] = "the client's certificate is refused (";
    (void)state;
    link_serve(&link_certs.fine, &link_certs.ca);
    link_client.test_cert = &link_certs.foreign_client;
    expect_refused(TLS1_2_VERSION, STREAM_UNTRUSTED, refused);
    expect_refused(TLS1_3_VERSION, STREAM_UNTRUSTED, refused);
    link_client.test_cert = &link_certs.expired_client;
    expect_refused(TLS1_2_VERSION, STREAM_UNTRUSTED, "(certificate has expired)");
    expect_refused(TLS1_3_VERSION, STREAM_UNTRUSTED, "(certificate has expired)");
}

static void names_that_are_no_text_are_refused(void **state)
{
    static char long_name[256];
    const struct {
        struct test_name names[2];
        size_t count;
        const char *name; /* NULL: refused */
    } cases[] = {
        {{{"b\xc3\xbc\x63her", 7}}, 1, "b\xc3\xbc\x63her"},
        {{{"a b", 3}}, 1, "a b"},
        {{{NULL, 0}}, 0, "first.example"},
        {{{"admin\0x", 7}}, 1, NULL},
        {{{"admin\n", 6}}, 1, NULL},
        {{{"\x1b[2J", 4}}, 1, NULL},
        {{{"a\x7f", 2}}, 1, NULL},
        {{{"a\xc2\x85", 3}}, 1, NULL}, /* U+0085, the next line */
        {{{"", 0}}, 1, NULL},
        {{{"worker", 6}, {"admin", 5}}, 2, NULL},
        {{{long_name, sizeof long_name}}, 1, NULL},
    };
    struct test_cert named;
    (void)state;
    memset(long_name, 'n', sizeof long_name);
    link_serve(&link_certs.fine, &link_certs.ca);
    link_client.test_cert = &named;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_cert_make(&named, link_folder, "named",
                       "IP:127.0.0.1,DNS:first.example,DNS:second.example", CERT_FINE,
                       &link_certs.ca);
        test_cert_rename(&named, cases[i].names, cases[i].count, &link_certs.ca);
        if (cases[i].name != NULL) {
            expect_accepted(TLS1_3_VERSION);
            assert_string_equal(stream_peer_name(link_party.stream), cases[i].name);
            link_disconnect();
        } else {
            expect_refused(TLS1_3_VERSION, STREAM_UNTRUSTED, "(its name is unusable)");
        }
        test_cert_done(&named);
    }
}

static void a_certificate_may_have_no_name(void **state)
{
    struct test_cert named;
    (void)state;
    link_serve(&link_certs.fine, &link_certs.ca);
    test_cert_make(&named, link_folder, "named", "IP:127.0.0.1", CERT_FINE, &link_certs.ca);
    test_cert_rename(&named, NULL, 0, &link_certs.ca);
    link_client.test_cert = &named;
    expect_accepted(TLS1_3_VERSION);
    assert_null(stream_peer_name(link_party.stream));
    link_disconnect();
    test_cert_done(&named);
}

/* ---- files ---- */

static void a_replaced_server_serves_its_connections(void **state)
{
    struct test_cert renewed;
    (void)state;
    link_open();
    test_cert_make(&renewed, link_folder, "renewed", "IP:127.0.0.1", CERT_FINE, &link_certs.ca);
    link_serve(&renewed, NULL);
    link_put("x", 1);
    assert_true(link_until(&link_party.calls));
    stream_write(link_party.stream, "y", 1);
    link_expect("y", 1);
    link_disconnect();
    link_open();
    const X509 *shown = SSL_get0_peer_certificate(link_client.ssl);
    assert_int_equal(X509_cmp(shown, renewed.certificate), 0);
    test_cert_done(&renewed);
}

static void refuse_files(const char *certificate, const char *key, const char *ca,
                         const char *expected)
{
    char message[512];
    struct text why;
    text_init(&why, message, sizeof message);
    assert_null(tls_server_new(certificate, key, ca, &why));
    if (strstr(message, expected) == NULL)
        print_message("%s\n", message);
    assert_non_null(strstr(message, expected));
    assert_null(strstr(message, "PRIVATE KEY"));
}

static void files_that_are_no_good_are_named(void **state)
{
    const struct link_certs *certs = &link_certs;
    const char *fine = certs->fine.path;
    (void)state;
    refuse_files("/nonexistent/a.pem", NULL, NULL, "/nonexistent/a.pem: No such file");
    refuse_files(fine, "/nonexistent/b.pem", NULL, "/nonexistent/b.pem: No such file");
    refuse_files(fine, NULL, "/nonexistent/c.pem", "/nonexistent/c.pem: No such file");
    refuse_files(fine, certs->ca.path, NULL, certs->ca.path); /* the key of another */
    refuse_files("/dev/null", fine, NULL, "/dev/null: it is no regular file");
    refuse_files(fine, NULL, link_folder, "it is no regular file");
    assert_int_equal(mkfifo(in_folder("fifo"), S_IRUSR | S_IWUSR), 0);
    refuse_files(path, NULL, NULL, "it is no regular file");
    refuse_files(fine, path, NULL, "it is no regular file");
    refuse_files(fine, NULL, path, "it is no regular file");
    (void)unlink(path);
    FILE *file = fopen(in_folder("text"), "w");
    assert_non_null(file);
    assert_true(fputs("no PEM\n", file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, S_IRUSR), 0);
    refuse_files(path, fine, NULL, "cannot use the certificate in");
    refuse_files(fine, path, NULL, "cannot use the key in");
    refuse_files(fine, NULL, path, "cannot use the certificates in");
    (void)unlink(path);
}

static void a_key_that_others_can_read_is_refused(void **state)
{
    const char *fine = link_certs.fine.path;
    (void)state;
    static const mode_t modes[] = {S_IRGRP, S_IWGRP, S_IROTH, S_IXOTH};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(fine, S_IRUSR | modes[i]), 0);
        refuse_files(fine, NULL, NULL, "fine: other users have access to the key; chmod 600");
        refuse_files(link_certs.expired.path, fine, NULL, "fine: other users have access");
        assert_int_equal(chmod(link_certs.ca.path, S_IRUSR | modes[i]), 0); /* no secret */
        assert_int_equal(chmod(fine, S_IRUSR | S_IWUSR), 0);
        link_serve(&link_certs.fine, &link_certs.ca);
    }
}

/* OpenSSL would ask on the terminal. */
static void an_encrypted_key_is_refused(void **state)
{
    (void)state;
    FILE *file = fopen(in_folder("encrypted"), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, link_certs.fine.key, EVP_aes_128_cbc(),
                                          (const unsigned char *)"secret", 6, NULL, NULL),
                     1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, S_IRUSR), 0);
    refuse_files(link_certs.fine.path, path, NULL, "encrypted (");
    (void)unlink(path);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, link_begin, link_finish)
    const struct CMUnitTest tests[] = {
        CASE(old_versions_are_refused),
        CASE(a_client_cannot_renegotiate),
        CASE(sessions_are_not_resumed),
        CASE(a_client_that_refuses_us_is_reported),
        CASE(a_client_has_the_name_of_its_certificate),
        CASE(a_client_needs_no_certificate),
        CASE(a_certificate_is_ignored_without_a_ca),
        CASE(a_bad_certificate_of_a_client_is_refused),
        CASE(names_that_are_no_text_are_refused),
        CASE(a_certificate_may_have_no_name),
        CASE(a_replaced_server_serves_its_connections),
        CASE(files_that_are_no_good_are_named),
        CASE(a_key_that_others_can_read_is_refused),
        CASE(an_encrypted_key_is_refused),
    };
#undef CASE
    return cmocka_run_group_tests_name("tls_server", tests, link_make_certs, link_remove_certs);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* TLS: verification of the peer and of ourselves; everything else is as with a plain stream. */
#include "stream_kit.h"
#include "tls_kit.h"

#include "process/host.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], lax[96];
static struct test_cert ca, other_ca, fine, expired, elsewhere, of_other_ca, client, foreign_client;
static struct party party;
static struct tls_echo server;
static int listening = -1;
static uint16_t port;

static int make_certs(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-tls-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(lax, sizeof lax, "%s/lax.cnf", folder);
    test_allow_old_tls(lax);
    test_cert_make(&ca, folder, "ca", NULL, CERT_CA, NULL);
    test_cert_make(&other_ca, folder, "other-ca", NULL, CERT_CA, NULL);
    test_cert_make(&fine, folder, "fine", "DNS:store.example,DNS:localhost,IP:127.0.0.1", CERT_FINE,
                   &ca);
    test_cert_make(&expired, folder, "expired", "IP:127.0.0.1", CERT_EXPIRED, &ca);
    test_cert_make(&elsewhere, folder, "elsewhere", "DNS:elsewhere.example,IP:127.0.0.2", CERT_FINE,
                   &ca);
    test_cert_make(&of_other_ca, folder, "of-other-ca", "IP:127.0.0.1", CERT_FINE, &other_ca);
    test_cert_make(&client, folder, "client", "DNS:client", CERT_FINE, &ca);
    test_cert_make(&foreign_client, folder, "foreign-client", "DNS:client", CERT_FINE, &other_ca);
    return 0;
}

static int remove_certs(void **state)
{
    struct test_cert *papers[] = {&ca,        &other_ca,    &fine,   &expired,
                                  &elsewhere, &of_other_ca, &client, &foreign_client};
    (void)state;
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++)
        test_cert_done(papers[i]);
    (void)unlink(lax);
    return rmdir(folder);
}

static int begin(void **state)
{
    memset(&party, 0, sizeof party);
    memset(&server, 0, sizeof server);
    server.test_cert = &fine;
    listening = kit_listen(AF_INET, &port);
    return kit_open(state);
}

static int finish(void **state)
{
    stream_free(&party.stream);
    tls_echo_end(&server, /* goodbye= */ false);
    (void)close(listening);
    return kit_close(state);
}

static struct stream_target trusting(void)
{
    struct stream_target target = kit_target(port);
    target.tls.on = true;
    target.tls.ca_file = ca.path;
    return target;
}

static bool until(const unsigned *flag)
{
    int64_t ends_ms = host_boot_ms() + 5000;
    while (*flag == 0 && host_boot_ms() < ends_ms) {
        tls_echo_turn(&server);
        kit_turn(/* ms= */ 1);
    }
    return *flag != 0;
}

static void open_with(const struct stream_target *target)
{
    party_open(&party, target);
    tls_echo_begin(&server, kit_accept(listening));
}

static void assert_refused(const struct stream_target *target, const char *words)
{
    open_with(target);
    assert_true(until(&party.ended));
    assert_int_equal(party.end, STREAM_UNTRUSTED);
    if (strstr(party.why, words) == NULL)
        print_message("%s\n", party.why);
    assert_non_null(strstr(party.why, words));
    assert_int_equal(party.opened, 0);
}

static void bytes_go_both_ways(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    open_with(&target);
    stream_write(party.stream, "hello", 5);
    assert_true(until(&party.calls));
    assert_int_equal(party.opened, 1);
    assert_int_equal(party.got_length, 5);
    assert_memory_equal(party.got, "hello", 5);
    assert_string_equal(server.server_name, ""); /* an address is no name to request */
    tls_echo_end(&server, /* goodbye= */ true);
    assert_true(until(&party.ended));
    assert_int_equal(party.end, STREAM_CLOSED);
}

static void a_cut_is_no_goodbye(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    open_with(&target);
    assert_true(until(&party.opened));
    tls_echo_end(&server, /* goodbye= */ false);
    assert_true(until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
}

static void much_is_carried_whole(void **state)
{
    static char sent[150 * 1024];
    struct stream_target target = trusting();
    (void)state;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 13 + i / 255);
    open_with(&target);
    stream_write(party.stream, sent, sizeof sent);
    int64_t ends_ms = host_boot_ms() + 10000;
    while (party.got_length < sizeof sent && host_boot_ms() < ends_ms) {
        tls_echo_turn(&server);
        kit_turn(/* ms= */ 1);
    }
    assert_int_equal(party.got_length, sizeof sent);
    assert_memory_equal(party.got, sent, sizeof sent);
}

/* The rest of a record exists only in OpenSSL: no descriptor reports it. */
static void a_record_larger_than_all_reads_of_a_step_is_read(void **state)
{
    static const char record[16384];
    struct stream_target target = trusting();
    (void)state;
    party.in_max = 1000;
    open_with(&target);
    assert_true(until(&party.opened));
    stream_write(party.stream, record, sizeof record);
    int64_t ends_ms = host_boot_ms() + 5000;
    while (party.got_length < sizeof record && host_boot_ms() < ends_ms) {
        tls_echo_turn(&server);
        kit_turn(/* ms= */ 1);
    }
    assert_int_equal(party.got_length, sizeof record);
}

static void a_name_is_asked_for_and_checked(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.tls.name = "store.example";
    open_with(&target);
    assert_true(until(&party.opened));
    assert_string_equal(server.server_name, "store.example");
}

static void a_host_name_is_checked_as_it_was_written(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.host = "localhost";
    party_open(&party, &target);
    kit_turn(/* ms= */ 50);
    tls_echo_begin(&server, kit_accept(listening));
    assert_true(until(&party.opened));
    assert_string_equal(server.server_name, "localhost");
}

static void a_wrong_name_is_refused(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.tls.name = "wrong.example";
    assert_refused(&target, "hostname mismatch");
}

static void a_wrong_address_is_refused(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    server.test_cert = &elsewhere;
    assert_refused(&target, "IP address mismatch");
}

static void a_foreign_ca_is_refused(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    server.test_cert = &of_other_ca;
    assert_refused(&target, "certificate");
}

static void the_systems_cas_do_not_know_ours(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.tls.ca_file = NULL;
    assert_refused(&target, "certificate");
}

static void an_expired_certificate_is_refused(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    server.test_cert = &expired;
    assert_refused(&target, "expired");
}

static void our_certificate_is_shown_when_asked_for(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    server.client_ca = &ca;
    target.tls.cert_file = client.path; /* with its key in the same file */
    open_with(&target);
    stream_write(party.stream, "x", 1);
    assert_true(until(&party.calls));
    assert_int_equal(party.ended, 0);
}

/* With TLS 1.3 the server verifies after we are done, so the stream may have been open before. */
static void assert_not_let_in(int version, const char *certificate, const char *words)
{
    struct stream_target target = trusting();
    server.client_ca = &ca;
    server.most_version = version;
    target.tls.cert_file = certificate;
    open_with(&target);
    assert_true(until(&party.ended));
    assert_int_equal(party.end, STREAM_UNTRUSTED);
    if (strstr(party.why, words) == NULL)
        print_message("%s\n", party.why);
    assert_non_null(strstr(party.why, words));
}

static void without_a_certificate_we_are_told(void **state)
{
    (void)state;
    assert_not_let_in(TLS1_3_VERSION, NULL, "requires a client certificate");
}

static void without_a_certificate_we_are_told_by_old_tls(void **state)
{
    (void)state;
    assert_not_let_in(TLS1_2_VERSION, NULL, "requires a client certificate");
}

static void a_foreign_certificate_of_ours_is_told(void **state)
{
    (void)state;
    assert_not_let_in(TLS1_3_VERSION, foreign_client.path, "refuses our certificate");
}

static void files_that_are_no_good_are_named(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.tls.ca_file = "/nonexistent/ca.pem";
    assert_refused(&target, "/nonexistent/ca.pem");
    stream_free(&party.stream);
    tls_echo_end(&server, /* goodbye= */ false);
    memset(&party, 0, sizeof party);
    target = trusting();
    target.tls.cert_file = client.path;
    target.tls.key_file = fine.path; /* of another certificate */
    assert_refused(&target, fine.path);
}

static void old_versions_are_not_spoken(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    server.most_version = TLS1_1_VERSION;
    open_with(&target);
    assert_true(until(&party.ended));
    assert_int_equal(party.opened, 0);
}

static void a_server_without_tls_is_no_trust_matter(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    party_open(&party, &target);
    int plain = kit_accept(listening);
    assert_int_equal(send(plain, "-ERR what\r\n", 11, MSG_NOSIGNAL), 11);
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, "right port"));
    (void)close(plain);
}

static void a_silent_server_is_given_up_in_time(void **state)
{
    struct stream_target target = trusting();
    (void)state;
    target.timeout_ms = 150;
    int64_t began_ms = host_boot_ms();
    party_open(&party, &target);
    int silent = kit_accept(listening);
    assert_true(kit_until(&party.ended));
    assert_true(host_boot_ms() - began_ms >= 150);
    assert_int_equal(party.end, STREAM_CUT);
    (void)close(silent);
}

static void a_broken_connection_raises_no_signal(void **state)
{
    struct sigaction before, deadly = {.sa_handler = SIG_DFL};
    struct stream_target target = trusting();
    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &deadly, &before), 0);
    open_with(&target);
    stream_write(party.stream, "x", 1);
    assert_true(until(&party.calls)); /* the server has read everything: it closes in order */
    tls_echo_end(&server, /* goodbye= */ false);
    for (int i = 0; i < 3; i++) {
        stream_write(party.stream, "x", 1);
        stream_flush(party.stream);
        (void)poll(NULL, 0, /* timeout= */ 10);
    }
    assert_true(until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        CASE(bytes_go_both_ways),
        CASE(a_cut_is_no_goodbye),
        CASE(much_is_carried_whole),
        CASE(a_record_larger_than_all_reads_of_a_step_is_read),
        CASE(a_name_is_asked_for_and_checked),
        CASE(a_host_name_is_checked_as_it_was_written),
        CASE(a_wrong_name_is_refused),
        CASE(a_wrong_address_is_refused),
        CASE(a_foreign_ca_is_refused),
        CASE(the_systems_cas_do_not_know_ours),
        CASE(an_expired_certificate_is_refused),
        CASE(our_certificate_is_shown_when_asked_for),
        CASE(without_a_certificate_we_are_told),
        CASE(without_a_certificate_we_are_told_by_old_tls),
        CASE(a_foreign_certificate_of_ours_is_told),
        CASE(files_that_are_no_good_are_named),
        CASE(old_versions_are_not_spoken),
        CASE(a_server_without_tls_is_no_trust_matter),
        CASE(a_silent_server_is_given_up_in_time),
        CASE(a_broken_connection_raises_no_signal),
    };
#undef CASE
    return cmocka_run_group_tests_name("stream_tls", tests, make_certs, remove_certs);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_link.h. */
#include "tls_link.h"

#include "process/host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINK_MOST_MS = 5000 };

char link_folder[64];
struct link_certs link_certs;
struct tls_server *link_server;
int link_buffer;
struct party link_party;
struct tls_client link_client;
static char lax[96];

int link_make_certs(void **state)
{
    struct link_certs *certs = &link_certs;
    (void)state;
    (void)snprintf(link_folder, sizeof link_folder, "/tmp/leasehold-link-XXXXXX");
    if (mkdtemp(link_folder) == NULL)
        return -1;
    (void)signal(SIGPIPE, SIG_IGN); /* of the client */
    (void)snprintf(lax, sizeof lax, "%s/lax.cnf", link_folder);
    test_allow_old_tls(lax);
    const char *folder = link_folder;
    test_cert_make(&certs->ca, folder, "ca", NULL, CERT_CA, NULL);
    test_cert_make(&certs->other_ca, folder, "other-ca", NULL, CERT_CA, NULL);
    test_cert_make(&certs->fine, folder, "fine", "IP:127.0.0.1", CERT_FINE, &certs->ca);
    test_cert_make(&certs->expired, folder, "expired", "IP:127.0.0.1", CERT_EXPIRED, &certs->ca);
    test_cert_make(&certs->client, folder, "worker-1", "DNS:other", CERT_FINE, &certs->ca);
    test_cert_make(&certs->expired_client, folder, "old", "DNS:old", CERT_EXPIRED, &certs->ca);
    test_cert_make(&certs->foreign_client, folder, "foreign", NULL, CERT_FINE, &certs->other_ca);
    return 0;
}

int link_remove_certs(void **state)
{
    struct test_cert *certs = &link_certs.ca;
    (void)state;
    for (size_t i = 0; i < sizeof link_certs / sizeof *certs; i++)
        test_cert_done(&certs[i]);
    (void)unlink(lax);
    return rmdir(link_folder);
}

int link_begin(void **state)
{
    memset(&link_party, 0, sizeof link_party);
    memset(&link_client, 0, sizeof link_client);
    link_client.ca = &link_certs.ca;
    link_buffer = 0;
    link_serve(&link_certs.fine, NULL);
    return kit_open(state);
}

void link_disconnect(void)
{
    stream_free(&link_party.stream);
    tls_client_end(&link_client, /* goodbye= */ false);
    memset(&link_party, 0, sizeof link_party);
    link_client.open = 0;
    link_client.error = 0;
}

int link_finish(void **state)
{
    link_disconnect();
    tls_server_free(&link_server);
    return kit_close(state);
}

void link_serve(const struct test_cert *test_cert, const struct test_cert *client_ca)
{
    char message[256];
    struct text why;
    text_init(&why, message, sizeof message);
    tls_server_free(&link_server);
    link_server = tls_server_new(test_cert->path, /* key_file= */ NULL,
                                 client_ca != NULL ? client_ca->path : NULL, &why);
    if (link_server == NULL)
        fail_msg("%s", message);
}

int link_connect_plain(int64_t timeout_ms)
{
    uint16_t port = 0;
    int listening = kit_listen(AF_INET, &port);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), at_once = 1;
    (void)setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (link_buffer > 0)
        (void)setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &link_buffer, sizeof link_buffer);
    assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
    int file = kit_accept(listening);
    if (link_buffer > 0)
        (void)setsockopt(file, SOL_SOCKET, SO_SNDBUF, &link_buffer, sizeof link_buffer);
    party_adopt_tls(&link_party, file, link_server, timeout_ms);
    (void)close(listening);
    return peer;
}

void link_connect(void)
{
    tls_client_begin(&link_client, link_connect_plain(LINK_MOST_MS));
}

void link_open(void)
{
    link_connect();
    assert_true(link_until(&link_party.opened));
    assert_true(link_until(&link_client.open));
    assert_int_equal(link_party.opened, 1);
    assert_int_equal(link_party.calls + link_party.ended, 0);
}

bool link_until(const unsigned *flag)
{
    int64_t ends_ms = host_boot_ms() + LINK_MOST_MS;
    while (*flag == 0 && host_boot_ms() < ends_ms) {
        tls_client_turn(&link_client);
        poller_step(kit_net); /* sends what the test wrote */
        kit_turn(/* ms= */ 1);
    }
    return *flag != 0;
}

void link_turn(int64_t ms)
{
    int64_t ends_ms = host_boot_ms() + ms;
    while (host_boot_ms() < ends_ms) {
        tls_client_turn(&link_client);
        poller_step(kit_net); /* sends what the test wrote */
        kit_turn(/* ms= */ 1);
    }
}

void link_put(const char *bytes, size_t length)
{
    int64_t ends_ms = host_boot_ms() + LINK_MOST_MS;
    while (length > 0) {
        int sent = SSL_write(link_client.ssl, bytes, (int)length);
        if (sent <= 0) {
            assert_true(host_boot_ms() < ends_ms);
            kit_turn(/* ms= */ 1);
            continue;
        }
        bytes += sent;
        length -= (size_t)sent;
    }
}

void link_expect(const char *bytes, size_t length)
{
    static char got[1024 * 1024];
    size_t count = 0;
    int64_t ends_ms = host_boot_ms() + LINK_MOST_MS;
    assert_true(length <= sizeof got);
    while (count < length && host_boot_ms() < ends_ms) {
        int now = SSL_read(link_client.ssl, got + count, (int)(length - count));
        count += now > 0 ? (size_t)now : 0;
        poller_step(kit_net);
        if (now <= 0)
            kit_turn(/* ms= */ 1);
    }
    assert_int_equal(count, length);
    assert_memory_equal(got, bytes, length);
}

void link_expect_end(enum stream_end end, const char *why)
{
    assert_true(link_until(&link_party.ended));
    assert_string_equal(link_party.why, why);
    assert_int_equal(link_party.end, end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_kit.h. */
#include "stream_kit.h"

#include "process/host.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TIMEOUT_MS = 5000, KEEPS = 64 * 1024, OWES = 1024 * 1024 };

struct poller *kit_net;

int kit_open(void **state)
{
    (void)state;
    kit_net = poller_new();
    return kit_net != NULL ? 0 : -1;
}

int kit_close(void **state)
{
    (void)state;
    poller_free(&kit_net);
    return 0;
}

static void turn_once(int64_t most_ms)
{
    struct pollfd wait = {.fd = poller_fd(kit_net), .events = POLLIN};
    if (poll(&wait, 1, (int)most_ms) > 0)
        poller_step(kit_net);
}

bool kit_until(const unsigned *flag)
{
    int64_t ends_ms = host_boot_ms() + (int64_t)6 * TIMEOUT_MS;
    while (*flag == 0 && host_boot_ms() < ends_ms)
        turn_once(/* most_ms= */ 100);
    return *flag != 0;
}

void kit_turn(int64_t ms)
{
    int64_t ends_ms = host_boot_ms() + ms;
    for (int64_t now_ms = host_boot_ms(); now_ms < ends_ms; now_ms = host_boot_ms())
        turn_once(ends_ms - now_ms);
}

void kit_settle(void)
{
    for (int i = 0; i < 8; i++)
        poller_step(kit_net);
}

static void on_opened(void *owner)
{
    struct party *party = owner;
    party->opened++;
    if (party->frees_on_open)
        stream_free(&party->stream);
}

static size_t on_bytes(void *owner, const char *bytes, size_t length)
{
    struct party *party = owner;
    party->calls++;
    size_t used = length > party->spares ? length - party->spares : 0;
    assert_true(party->got_length + used <= sizeof party->got);
    memcpy(party->got + party->got_length, bytes, used);
    party->got_length += used;
    if (party->frees_on_bytes)
        stream_free(&party->stream);
    if (party->pauses_on_bytes)
        stream_set_paused(party->stream, true);
    return used;
}

static void on_ended(void *owner, enum stream_end end, const char *why)
{
    struct party *party = owner;
    party->ended++;
    party->end = end;
    if (party->frees_on_end)
        stream_free(&party->stream);
    (void)snprintf(party->why, sizeof party->why, "%s", why);
}

static struct stream_callbacks party_callbacks(struct party *party)
{
    return (struct stream_callbacks){.opened = on_opened,
                                     .bytes = on_bytes,
                                     .ended = on_ended,
                                     .owner = party,
                                     .in_max = party->in_max > 0 ? party->in_max : KEEPS,
                                     .out_max = OWES};
}

void party_open(struct party *party, const struct stream_target *target)
{
    struct stream_callbacks callbacks = party_callbacks(party);
    party->stream = stream_new(kit_net, target, &callbacks);
    assert_non_null(party->stream);
    assert_int_equal(party->opened + party->ended, 0); /* only from a step */
}

void party_adopt(struct party *party, int in, int out)
{
    struct stream_callbacks callbacks = party_callbacks(party);
    party->stream = stream_adopt(kit_net, in, out, "127.0.0.1", &callbacks);
    assert_non_null(party->stream);
    assert_int_equal(party->opened + party->ended + party->calls, 0);
}

void party_adopt_tls(struct party *party, int file, struct tls_server *server, int64_t timeout_ms)
{
    struct stream_callbacks callbacks = party_callbacks(party);
    party->stream = stream_adopt_tls(kit_net, file, "127.0.0.1", server, timeout_ms, &callbacks);
    assert_non_null(party->stream);
    assert_int_equal(party->opened + party->ended + party->calls, 0);
}

struct stream_target kit_target(uint16_t port)
{
    return (struct stream_target){.host = "127.0.0.1", .port = port, .timeout_ms = TIMEOUT_MS};
}

int kit_listen(int family, uint16_t *out_port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = family == AF_INET ? sizeof four : sizeof six;
    struct sockaddr *address =
        family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(file >= 0);
    assert_int_equal(bind(file, address, length), 0);
    assert_int_equal(listen(file, 16), 0);
    assert_int_equal(getsockname(file, address, &length), 0);
    *out_port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    return file;
}

int kit_accept(int listening)
{
    int file = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(file >= 0);
    return file;
}

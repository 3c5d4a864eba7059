/* SPDX-License-Identifier: Apache-2.0 */
/* The fault proxy executes its commands: each fault is observed on real sockets on both sides. */
#include "proxy_kit.h"
#include "stream_kit.h"

#include "process/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { AWAIT_MS = 5000, SILENT_MS = 100 };

static struct proxy_run run;
static int listening = -1, client = -1, server = -1;
static uint16_t port;
static char folder[64], control[96];

static void connect_client(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(run.port)};
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    server = kit_accept(listening);
}

static void hang_up(void)
{
    if (client >= 0)
        (void)close(client);
    if (server >= 0)
        (void)close(server);
    client = server = -1;
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-proxy-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(control, sizeof control, "%s/control", folder);
    listening = kit_listen(AF_INET, &port);
    if (!proxy_start(&run, port, /* seed= */ 7, control))
        return -1;
    connect_client();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    hang_up();
    (void)close(listening);
    bool fine = proxy_stop(&run);
    return rmdir(folder) == 0 && fine ? 0 : -1; /* the socket is gone with the proxy */
}

static bool is_readable(int file, int timeout_ms)
{
    struct pollfd wait = {.fd = file, .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

static void say(int file, const char *words)
{
    assert_int_equal(send(file, words, strlen(words), MSG_NOSIGNAL), strlen(words));
}

static void assert_hears(int file, const char *words)
{
    char bytes[64] = "";
    size_t length = 0;
    while (length < strlen(words)) {
        assert_true(is_readable(file, AWAIT_MS));
        ssize_t got = recv(file, bytes + length, sizeof bytes - length, 0);
        assert_true(got > 0);
        length += (size_t)got;
    }
    assert_int_equal(length, strlen(words));
    assert_memory_equal(bytes, words, length);
}

static void assert_cut(int file)
{
    char byte;
    assert_true(is_readable(file, AWAIT_MS));
    assert_int_equal(recv(file, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

static void it_passes_both_ways_and_passes_on_the_end(void **state)
{
    char byte;
    (void)state;
    say(client, "ping");
    assert_hears(server, "ping");
    say(server, "pong!");
    assert_hears(client, "pong!");
    assert_int_equal(proxy_count(&run, "up"), 4);
    assert_int_equal(proxy_count(&run, "down"), 5);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_true(is_readable(server, AWAIT_MS));
    assert_int_equal(recv(server, &byte, 1, 0), 0);
    say(server, "bye"); /* half a connection is left */
    assert_hears(client, "bye");
}

static void it_cuts_at_the_byte(void **state)
{
    (void)state;
    say(client, "before");
    assert_hears(server, "before");
    for (unsigned at = 0; at < 3; at++) {
        char command[32], heard[4] = "";
        memcpy(heard, "abc", at);
        (void)snprintf(command, sizeof command, "cut %s %u", at % 2 == 0 ? "up" : "down", at);
        assert_true(proxy_say(&run, command));
        say(at % 2 == 0 ? client : server, "abc");
        assert_hears(at % 2 == 0 ? server : client, heard);
        assert_cut(server);
        assert_cut(client);
        assert_int_equal(proxy_count(&run, "cuts"), at + 1);
        assert_int_equal(run.did_cut, at + 1);
        hang_up();
        connect_client(); /* the next one is not cut */
        say(client, "x");
        assert_hears(server, "x");
    }
    assert_true(proxy_say(&run, "cut"));
    assert_cut(client);
    assert_cut(server);
    assert_int_equal(proxy_count(&run, "open"), 0);
}

static void it_holds_back_until_told(void **state)
{
    (void)state;
    assert_true(proxy_say(&run, "hold down"));
    say(client, "ask");
    assert_hears(server, "ask");
    say(server, "answer");
    assert_false(is_readable(client, SILENT_MS));
    assert_int_equal(proxy_count(&run, "held_down"), 6);
    assert_true(proxy_say(&run, "pass"));
    assert_hears(client, "answer");
    assert_int_equal(proxy_count(&run, "held_down"), 0);
}

static void it_swallows_one_way(void **state)
{
    (void)state;
    assert_true(proxy_say(&run, "drop up"));
    say(client, "lost");
    assert_false(is_readable(server, SILENT_MS));
    say(server, "found");
    assert_hears(client, "found");
    assert_int_equal(proxy_count(&run, "dropped_up"), 4);
    assert_true(proxy_say(&run, "pass"));
    say(client, "again");
    assert_hears(server, "again"); /* and none of the lost bytes */
}

static void it_delays_in_order(void **state)
{
    (void)state;
    assert_true(proxy_say(&run, "delay 100 150"));
    int64_t began_ms = host_boot_ms();
    say(client, "one");
    assert_hears(server, "one");
    assert_true(host_boot_ms() - began_ms >= 100);
    say(client, "two");
    (void)poll(NULL, 0, /* timeout= */ 20);
    say(client, "three");
    assert_hears(server, "twothree");
    assert_int_equal(proxy_count(&run, "delayed"), 3);
}

static void it_refuses_newcomers(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(run.port)};
    (void)state;
    assert_true(proxy_say(&run, "refuse"));
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof address), 0);
    assert_cut(other);
    (void)close(other);
    assert_int_equal(proxy_count(&run, "refused"), 1);
    say(client, "still");
    assert_hears(server, "still");
    assert_true(proxy_say(&run, "accept"));
    hang_up();
    connect_client();
    say(client, "x");
    assert_hears(server, "x");
}

static void anybody_may_command_it(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", control);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof address), 0);
    say(other, "drop do");
    say(other, "wn\nnonsense\n");
    assert_hears(other, "ok drop down\nwhat? nonsense\n");
    (void)close(other);
    say(server, "lost");
    assert_false(is_readable(client, SILENT_MS));
    assert_false(proxy_say(&run, "hold sideways"));
    assert_false(proxy_say(&run, "delay 5 3"));
    assert_false(proxy_say(&run, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_passes_both_ways_and_passes_on_the_end, begin, finish),
        cmocka_unit_test_setup_teardown(it_cuts_at_the_byte, begin, finish),
        cmocka_unit_test_setup_teardown(it_holds_back_until_told, begin, finish),
        cmocka_unit_test_setup_teardown(it_swallows_one_way, begin, finish),
        cmocka_unit_test_setup_teardown(it_delays_in_order, begin, finish),
        cmocka_unit_test_setup_teardown(it_refuses_newcomers, begin, finish),
        cmocka_unit_test_setup_teardown(anybody_may_command_it, begin, finish),
    };
    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}

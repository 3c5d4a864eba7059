/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over TCP and unix sockets: opening, bytes both ways, limits, and every way to end. */
#include "stream_kit.h"

#include "process/host.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct party party;
static int listening = -1, server = -1;
static uint16_t port;

static int begin(void **state)
{
    memset(&party, 0, sizeof party);
    listening = kit_listen(AF_INET, &port);
    return kit_open(state);
}

static int finish(void **state)
{
    stream_free(&party.stream);
    stream_free(&party.stream); /* NULL is allowed */
    if (server >= 0)
        (void)close(server);
    if (listening >= 0)
        (void)close(listening);
    server = listening = -1;
    return kit_close(state);
}

static void open_both(void)
{
    struct stream_target target = kit_target(port);
    party_open(&party, &target);
    server = kit_accept(listening);
    assert_true(kit_until(&party.opened));
}

static void bytes_go_both_ways(void **state)
{
    char words[16] = "";
    (void)state;
    struct stream_target target = kit_target(port);
    party_open(&party, &target);
    stream_write(party.stream, "be", 2); /* before it is open */
    server = kit_accept(listening);
    assert_true(kit_until(&party.opened));
    assert_int_equal(recv(server, words, sizeof words, 0), 2);
    assert_memory_equal(words, "be", 2);
    assert_int_equal(send(server, "answer", 6, MSG_NOSIGNAL), 6);
    assert_true(kit_until(&party.calls));
    assert_int_equal(party.got_length, 6);
    assert_memory_equal(party.got, "answer", 6);
    assert_int_equal(party.ended, 0);
}

static void writes_of_one_step_are_sent_together(void **state)
{
    char words[16] = "";
    (void)state;
    open_both();
    stream_write(party.stream, "one", 3);
    stream_write(party.stream, "two", 3);
    assert_int_equal(recv(server, words, sizeof words, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    poller_step(kit_net);
    assert_int_equal(recv(server, words, sizeof words, 0), 6);
    assert_memory_equal(words, "onetwo", 6);
    stream_write(party.stream, "three", 5);
    stream_flush(party.stream);
    assert_int_equal(recv(server, words, sizeof words, MSG_DONTWAIT), 5);
}

static void unused_bytes_come_again(void **state)
{
    (void)state;
    open_both();
    party.spares = 2;
    assert_int_equal(send(server, "abc", 3, MSG_NOSIGNAL), 3);
    assert_true(kit_until(&party.calls));
    assert_int_equal(party.got_length, 1);
    party.calls = 0;
    assert_int_equal(send(server, "de", 2, MSG_NOSIGNAL), 2);
    assert_true(kit_until(&party.calls));
    assert_int_equal(party.got_length, 3);
    assert_memory_equal(party.got, "abc", 3);
}

static void a_peer_that_sends_too_much_is_cut(void **state)
{
    static const char flood[128 * 1024];
    (void)state;
    open_both();
    party.spares = sizeof flood;
    for (size_t sent = 0; sent < sizeof flood && party.ended == 0;) {
        ssize_t length = send(server, flood, sizeof flood - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += length > 0 ? (size_t)length : 0;
        kit_turn(/* ms= */ 1);
    }
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, "more at once than we take"));
}

static void a_reader_that_does_not_read_costs_no_more_than_owed(void **state)
{
    static const char block[64 * 1024];
    (void)state;
    open_both();
    for (int i = 0; i < 1000 && party.ended == 0; i++) {
        stream_write(party.stream, block, sizeof block);
        poller_step(kit_net);
    }
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_OVERFLOWED);
    assert_int_equal(party.ended, 1);
}

static void a_large_answer_and_a_large_request_arrive_whole(void **state)
{
    static char sent[200 * 1024], got[200 * 1024];
    size_t got_length = 0;
    (void)state;
    open_both();
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7 + i / 251);
    stream_write(party.stream, sent, sizeof sent);
    poller_step(kit_net);
    for (int i = 0; i < 10000 && (got_length < sizeof got || party.got_length < sizeof sent); i++) {
        ssize_t length = recv(server, got + got_length, sizeof got - got_length, MSG_DONTWAIT);
        if (length > 0) {
            assert_int_equal(send(server, got + got_length, (size_t)length, MSG_NOSIGNAL), length);
            got_length += (size_t)length;
        }
        kit_turn(/* ms= */ 1);
    }
    assert_int_equal(got_length, sizeof sent);
    assert_int_equal(party.got_length, sizeof sent);
    assert_memory_equal(party.got, sent, sizeof sent);
}

static void a_close_and_a_reset_are_told_apart(void **state)
{
    (void)state;
    open_both();
    (void)close(server);
    server = -1;
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CLOSED);
    assert_non_null(strstr(party.why, "127.0.0.1:"));
    stream_write(party.stream, "x", 1); /* no peer reads it */
    kit_turn(/* ms= */ 10);
    assert_int_equal(party.ended, 1);
    stream_free(&party.stream);

    memset(&party, 0, sizeof party);
    open_both();
    struct linger linger = {.l_onoff = 1};
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    (void)close(server);
    server = -1;
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, strerror(ECONNRESET)));
}

static void a_broken_pipe_raises_no_signal(void **state)
{
    struct sigaction before, deadly = {.sa_handler = SIG_DFL};
    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &deadly, &before), 0);
    open_both();
    (void)close(server);
    server = -1;
    for (int i = 0; i < 3; i++) { /* the first one is answered by a reset, the next is a pipe */
        stream_write(party.stream, "x", 1);
        stream_flush(party.stream);
        (void)poll(NULL, 0, /* timeout= */ 10);
    }
    assert_int_equal(party.ended, 0); /* only from a step */
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
}

static void a_refused_connection_names_the_address(void **state)
{
    char words[32];
    (void)state;
    (void)close(listening);
    listening = -1;
    struct stream_target target = kit_target(port);
    party_open(&party, &target);
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_REFUSED);
    (void)snprintf(words, sizeof words, "127.0.0.1:%u: ", (unsigned)port);
    assert_int_equal(strncmp(party.why, words, strlen(words)), 0);
    assert_non_null(strstr(party.why, strerror(ECONNREFUSED)));
    assert_int_equal(party.opened, 0);
}

static void a_silent_peer_is_given_up_in_time(void **state)
{
    (void)state;
    /* A full backlog drops connections: no refusal, no reply. */
    assert_int_equal(listen(listening, 0), 0);
    struct party guests[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct stream_target target = kit_target(port);
        party_open(&guests[i], &target);
        kit_turn(/* ms= */ 20);
    }
    struct stream_target target = kit_target(port);
    target.timeout_ms = 150;
    int64_t began_ms = host_boot_ms();
    party_open(&party, &target);
    assert_true(kit_until(&party.ended));
    int64_t took_ms = host_boot_ms() - began_ms;
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, "150 ms"));
    assert_true(took_ms >= 150);
    for (size_t i = 0; i < 2; i++)
        stream_free(&guests[i].stream);
}

static void unix_sockets_are_streams_too(void **state)
{
    char folder[] = "/tmp/leasehold-stream-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    struct stream_target target = {.path = address.sun_path, .timeout_ms = 5000};

    party_open(&party, &target); /* no listener */
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_REFUSED);
    assert_int_equal(strncmp(party.why, address.sun_path, strlen(address.sun_path)), 0);
    stream_free(&party.stream);

    memset(&party, 0, sizeof party);
    int here = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(here, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(here, 4), 0);
    party_open(&party, &target);
    server = kit_accept(here);
    assert_true(kit_until(&party.opened));
    assert_int_equal(send(server, "x", 1, MSG_NOSIGNAL), 1);
    assert_true(kit_until(&party.calls));
    (void)close(here);
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
}

static void a_forked_child_does_not_keep_it_open(void **state)
{
    char byte;
    (void)state;
    open_both();
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    stream_free(&party.stream);
    struct pollfd wait = {.fd = server, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, /* timeout= */ 5000), 1);
    assert_int_equal(recv(server, &byte, 1, 0), 0);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_stream_may_be_freed_in_every_callback(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        memset(&party, 0, sizeof party);
        party.frees_on_open = where == 0;
        party.frees_on_bytes = where == 1;
        party.frees_on_end = where == 2;
        open_both();
        if (where == 1) {
            assert_int_equal(send(server, "x", 1, MSG_NOSIGNAL), 1);
            assert_true(kit_until(&party.calls));
        }
        (void)close(server);
        server = -1;
        kit_turn(/* ms= */ 50);
        assert_int_equal(party.ended, where == 2 ? 1 : 0);
        assert_null(party.stream);
    }
}

static void a_stream_may_be_freed_while_it_opens(void **state)
{
    (void)state;
    struct stream_target target = kit_target(port);
    party_open(&party, &target);
    stream_free(&party.stream);
    target.host = "localhost";
    party_open(&party, &target);
    stream_free(&party.stream);
    kit_turn(/* ms= */ 50);
    assert_int_equal(party.opened + party.ended, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_go_both_ways, begin, finish),
        cmocka_unit_test_setup_teardown(writes_of_one_step_are_sent_together, begin, finish),
        cmocka_unit_test_setup_teardown(unused_bytes_come_again, begin, finish),
        cmocka_unit_test_setup_teardown(a_peer_that_sends_too_much_is_cut, begin, finish),
        cmocka_unit_test_setup_teardown(a_reader_that_does_not_read_costs_no_more_than_owed, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_large_answer_and_a_large_request_arrive_whole, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_close_and_a_reset_are_told_apart, begin, finish),
        cmocka_unit_test_setup_teardown(a_broken_pipe_raises_no_signal, begin, finish),
        cmocka_unit_test_setup_teardown(a_refused_connection_names_the_address, begin, finish),
        cmocka_unit_test_setup_teardown(a_silent_peer_is_given_up_in_time, begin, finish),
        cmocka_unit_test_setup_teardown(unix_sockets_are_streams_too, begin, finish),
        cmocka_unit_test_setup_teardown(a_forked_child_does_not_keep_it_open, begin, finish),
        cmocka_unit_test_setup_teardown(a_stream_may_be_freed_in_every_callback, begin, finish),
        cmocka_unit_test_setup_teardown(a_stream_may_be_freed_while_it_opens, begin, finish),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}

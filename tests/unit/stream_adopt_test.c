/* SPDX-License-Identifier: Apache-2.0 */
/* Adopted streams: sockets, pipes and files, pauses, limits, the last reply, every way to end. */
#include "stream_kit.h"

#include "process/host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct party party;
static int peer = -1;                        /* the other side of a socket … */
static int to_stream = -1, from_stream = -1; /* … or of two pipes */

static int begin(void **state)
{
    memset(&party, 0, sizeof party);
    return kit_open(state);
}

static void shut(int *file)
{
    if (*file >= 0)
        (void)close(*file);
    *file = -1;
}

static int finish(void **state)
{
    stream_free(&party.stream);
    shut(&peer);
    shut(&to_stream);
    shut(&from_stream);
    return kit_close(state);
}

static void adopt_unix(void)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    party_adopt(&party, pair[0], pair[0]);
    peer = pair[1];
}

static void adopt_tcp(void)
{
    uint16_t port = 0;
    int listening = kit_listen(AF_INET, &port);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
    int file = kit_accept(listening);
    party_adopt(&party, file, file);
    (void)close(listening);
}

static void adopt_pipes(void)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    party_adopt(&party, in[0], out[1]);
    to_stream = in[1];
    from_stream = out[0];
}

static void put(int file, const char *text)
{
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
}

static void expect(int file, const char *text)
{
    char got[256] = "";
    assert_int_equal(read(file, got, sizeof got - 1), strlen(text));
    assert_string_equal(got, text);
}

static void expect_end(enum stream_end end, const char *why)
{
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, end);
    assert_string_equal(party.why, why);
}

static void reset_peer(void)
{
    const struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    shut(&peer);
}

static void an_adopted_stream_carries_bytes(void **state)
{
    (void)state;
    adopt_tcp();
    put(peer, "ping");
    assert_true(kit_until(&party.calls));
    assert_memory_equal(party.got, "ping", 4);
    stream_write(party.stream, "po", 2);
    stream_write(party.stream, "ng", 2);
    assert_int_equal(stream_unsent(party.stream), 4);
    poller_step(kit_net);
    expect(peer, "pong");
    assert_int_equal(party.opened + party.ended, 0);
}

static void an_idle_stream_keeps_no_memory(void **state)
{
    (void)state;
    adopt_unix();
    assert_int_equal(stream_buffered(party.stream), 0);
    put(peer, "request");
    assert_true(kit_until(&party.calls));
    stream_write(party.stream, "reply", 5);
    assert_true(stream_buffered(party.stream) > 0);
    poller_step(kit_net);
    assert_int_equal(stream_buffered(party.stream), 0);
    party.spares = 3;
    party.calls = 0;
    put(peer, "and a rest");
    assert_true(kit_until(&party.calls));
    assert_true(stream_buffered(party.stream) > 0);
    party.spares = 0;
    party.calls = 0;
    put(peer, "!");
    assert_true(kit_until(&party.calls));
    assert_int_equal(stream_buffered(party.stream), 0);
    assert_memory_equal(party.got, "requestand a rest!", 18);
}

/* Rests of every size are joined with what follows them. */
static void rests_are_kept_in_order(void **state)
{
    enum { TOTAL = 200 * 1024, CHUNK = 7001 };
    static char sent[TOTAL];
    static const size_t spares[] = {1, 100, 5000, 33000, 50000};
    (void)state;
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (char)('a' + i % 23);
    adopt_unix();
    for (size_t at = 0, step = 0; at < TOTAL; step++) {
        size_t length = TOTAL - at < CHUNK ? TOTAL - at : CHUNK;
        assert_int_equal(write(peer, sent + at, length), length);
        at += length;
        party.spares = at < TOTAL ? spares[step / 3 % 5] : 0;
        party.calls = 0;
        assert_true(kit_until(&party.calls));
        assert_int_equal(party.ended, 0);
    }
    assert_int_equal(party.got_length, TOTAL);
    assert_memory_equal(party.got, sent, TOTAL);
    assert_int_equal(stream_buffered(party.stream), 0);
}

static void an_orderly_close_is_not_a_reset(void **state)
{
    (void)state;
    adopt_tcp();
    shut(&peer);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
}

static void a_reset_cuts(void **state)
{
    (void)state;
    adopt_tcp();
    reset_peer();
    expect_end(STREAM_CUT, "127.0.0.1: the connection broke (Connection reset by peer)");
}

static void bytes_before_the_close_are_delivered(void **state)
{
    (void)state;
    adopt_unix();
    put(peer, "last words");
    shut(&peer);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_int_equal(party.got_length, 10);
}

static void a_write_to_a_closed_peer_is_a_close(void **state)
{
    (void)state;
    adopt_unix();
    shut(&peer);
    stream_write(party.stream, "late", 4);
    stream_flush(party.stream);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
}

static void the_limits_cut(void **state)
{
    static const char block[1024];
    (void)state;
    party.in_max = 8;
    party.spares = 100;
    adopt_unix();
    put(peer, "12345678");
    expect_end(STREAM_CUT, "127.0.0.1: the peer sent more at once than we take");
    stream_free(&party.stream);
    shut(&peer);
    memset(&party, 0, sizeof party);
    adopt_unix();
    for (int i = 0; i < 1025; i++)
        stream_write(party.stream, block, sizeof block);
    expect_end(STREAM_OVERFLOWED, "127.0.0.1: the peer does not take what we send");
}

static void a_paused_stream_reads_nothing(void **state)
{
    (void)state;
    adopt_unix();
    stream_set_paused(party.stream, true);
    put(peer, "later");
    kit_settle();
    assert_int_equal(party.calls, 0);
    stream_set_paused(party.stream, false);
    assert_int_equal(party.calls, 0); /* only from a step */
    assert_true(kit_until(&party.calls));
    assert_memory_equal(party.got, "later", 5);
}

static void bytes_left_at_a_pause_are_delivered_again(void **state)
{
    (void)state;
    party.in_max = 8;
    party.spares = 100;
    party.pauses_on_bytes = true;
    adopt_unix();
    put(peer, "12345678more");
    assert_true(kit_until(&party.calls));
    kit_settle();
    assert_int_equal(party.calls, 1);
    assert_int_equal(party.ended, 0); /* a paused stream may be full */
    party.spares = 0;
    party.pauses_on_bytes = false;
    stream_set_paused(party.stream, false);
    party.calls = 0;
    assert_true(kit_until(&party.calls));
    kit_settle();
    assert_int_equal(party.got_length, 12);
    assert_memory_equal(party.got, "12345678more", 12);
}

static void a_paused_stream_reports_a_close(void **state)
{
    (void)state;
    adopt_tcp();
    stream_set_paused(party.stream, true);
    put(peer, "unread");
    kit_settle();
    shut(&peer);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_int_equal(party.calls, 0);
    stream_free(&party.stream);
    memset(&party, 0, sizeof party);
    adopt_tcp();
    stream_set_paused(party.stream, true);
    reset_peer();
    expect_end(STREAM_CUT, "127.0.0.1: the connection broke (Connection reset by peer)");
}

static void a_paused_stream_sleeps(void **state)
{
    (void)state;
    adopt_unix();
    stream_set_paused(party.stream, true);
    put(peer, "unread");
    kit_settle();
    assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 20));
    stream_free(&party.stream);
    memset(&party, 0, sizeof party);
    adopt_pipes();
    stream_set_paused(party.stream, true);
    put(to_stream, "unread");
    shut(&to_stream);
    kit_settle();
    assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 20));
    assert_int_equal(party.ended, 0); /* the bytes before the end count */
    stream_set_paused(party.stream, false);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_memory_equal(party.got, "unread", 6);
}

static void pipes_work_like_a_socket(void **state)
{
    (void)state;
    adopt_pipes();
    put(to_stream, "ping");
    assert_true(kit_until(&party.calls));
    assert_memory_equal(party.got, "ping", 4);
    stream_write(party.stream, "pong", 4);
    poller_step(kit_net);
    expect(from_stream, "pong");
    shut(&to_stream);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
}

static void a_pipe_without_a_reader_is_a_close(void **state)
{
    (void)state;
    adopt_pipes();
    shut(&from_stream);
    stream_write(party.stream, "lost", 4);
    poller_step(kit_net);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
}

static void a_full_pipe_delays_the_end(void **state)
{
    static char block[300 * 1024], got[sizeof block];
    size_t length = 0;
    (void)state;
    memset(block, 'x', sizeof block);
    adopt_pipes();
    stream_write(party.stream, block, sizeof block);
    poller_step(kit_net);
    assert_true(stream_unsent(party.stream) > 0);
    shut(&to_stream);
    kit_settle();
    assert_int_equal(party.ended, 0);
    assert_int_equal(fcntl(from_stream, F_SETFL, O_NONBLOCK), 0);
    while (party.ended == 0) {
        ssize_t now = read(from_stream, got + length, sizeof got - length);
        length += now > 0 ? (size_t)now : 0;
        kit_turn(1);
    }
    ssize_t now = read(from_stream, got + length, sizeof got - length);
    length += now > 0 ? (size_t)now : 0;
    assert_int_equal(length, sizeof block);
    assert_int_equal(party.end, STREAM_CLOSED);
}

static void a_regular_file_is_read_to_its_end(void **state)
{
    enum { SIZE = 200 * 1024 };
    static char text[SIZE];
    char name[] = "/tmp/stream_adopt_XXXXXX";
    int out[2], file = mkstemp(name);
    (void)state;
    assert_true(file >= 0);
    (void)unlink(name);
    memset(text, 'y', sizeof text);
    assert_int_equal(write(file, text, sizeof text), sizeof text);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    from_stream = out[0];
    party.pauses_on_bytes = true;
    party_adopt(&party, file, out[1]);
    assert_true(kit_until(&party.calls));
    kit_settle();
    assert_int_equal(party.calls, 1);
    party.pauses_on_bytes = false;
    stream_set_paused(party.stream, false);
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_int_equal(party.got_length, SIZE);
}

static void flags_of_shared_files_are_restored(void **state)
{
    int in[2], out[2];
    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    int copy = fcntl(out[1], F_DUPFD_CLOEXEC, 3);
    party_adopt(&party, in[0], out[1]);
    to_stream = in[1];
    from_stream = out[0];
    assert_true((fcntl(copy, F_GETFL) & O_NONBLOCK) != 0);
    stream_free(&party.stream);
    assert_true((fcntl(copy, F_GETFL) & O_NONBLOCK) == 0);
    (void)close(copy);
}

/* Another process may use the same stdin and stdout. */
static void stdin_and_stdout_are_not_shut_down(void **state)
{
    int pair[2], status = -1;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    peer = pair[1];
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool moved = dup2(pair[0], STDIN_FILENO) == 0 && dup2(pair[0], STDOUT_FILENO) == 1;
        poller_free(&kit_net);
        kit_net = poller_new(); /* the parent's is shared */
        party_adopt(&party, STDIN_FILENO, STDOUT_FILENO);
        stream_write(party.stream, "hello", 5);
        poller_step(kit_net);
        stream_free(&party.stream);
        _exit(moved && fcntl(STDOUT_FILENO, F_GETFD) == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect(peer, "hello");
    assert_int_equal(send(pair[0], "still open", 10, MSG_NOSIGNAL), 10);
    expect(peer, "still open");
    (void)close(pair[0]);
}

/* The peer sends more than we read; the reply still arrives, and the end follows the peer's. */
static void the_last_reply_arrives(void **state)
{
    static const char junk[64 * 1024];
    (void)state;
    adopt_tcp();
    stream_write(party.stream, "-ERR bye", 8);
    stream_end_after_flush(party.stream);
    stream_write(party.stream, "more", 4); /* has no effect */
    assert_int_equal(party.ended, 0);
    poller_step(kit_net);
    assert_int_equal(send(peer, junk, sizeof junk, MSG_NOSIGNAL), sizeof junk);
    kit_settle();
    expect(peer, "-ERR bye");
    expect(peer, ""); /* the end */
    assert_int_equal(party.ended + party.calls, 0);
    shut(&peer);
    int64_t before_ms = host_boot_ms();
    expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_true(host_boot_ms() - before_ms < 500);
}

static void a_peer_that_stays_is_left(void **state)
{
    (void)state;
    adopt_unix();
    int64_t before_ms = host_boot_ms();
    stream_end_after_flush(party.stream);
    kit_turn(1);
    poller_step(kit_net);
    expect_end(STREAM_CLOSED, "127.0.0.1: closed after the last reply");
    int64_t took_ms = host_boot_ms() - before_ms;
    assert_true(took_ms >= 900 && took_ms < 4500);
}

static void a_peer_that_reads_nothing_is_left(void **state)
{
    static char block[900 * 1024];
    (void)state;
    adopt_unix();
    int64_t before_ms = host_boot_ms();
    stream_write(party.stream, block, sizeof block);
    stream_end_after_flush(party.stream);
    poller_step(kit_net);
    assert_true(stream_unsent(party.stream) > 0);
    assert_int_equal(shutdown(peer, SHUT_WR), 0); /* must not make it spin, nor end it */
    kit_settle();
    assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 20));
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CLOSED);
    int64_t took_ms = host_boot_ms() - before_ms;
    assert_true(took_ms >= 4900 && took_ms < 15000);
}

static void pipes_end_after_the_flush(void **state)
{
    (void)state;
    adopt_pipes();
    stream_write(party.stream, "bye", 3);
    stream_end_after_flush(party.stream);
    poller_step(kit_net);
    expect_end(STREAM_CLOSED, "127.0.0.1: closed after the last reply");
    expect(from_stream, "bye");
    expect(from_stream, "");
}

static void callbacks_may_free(void **state)
{
    (void)state;
    party.frees_on_bytes = true;
    adopt_unix();
    put(peer, "x");
    assert_true(kit_until(&party.calls));
    assert_null(party.stream);
    shut(&peer);
    memset(&party, 0, sizeof party);
    party.frees_on_end = true;
    adopt_unix();
    shut(&peer);
    assert_true(kit_until(&party.ended));
    assert_null(party.stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_adopted_stream_carries_bytes, begin, finish),
        cmocka_unit_test_setup_teardown(an_idle_stream_keeps_no_memory, begin, finish),
        cmocka_unit_test_setup_teardown(rests_are_kept_in_order, begin, finish),
        cmocka_unit_test_setup_teardown(an_orderly_close_is_not_a_reset, begin, finish),
        cmocka_unit_test_setup_teardown(a_reset_cuts, begin, finish),
        cmocka_unit_test_setup_teardown(bytes_before_the_close_are_delivered, begin, finish),
        cmocka_unit_test_setup_teardown(a_write_to_a_closed_peer_is_a_close, begin, finish),
        cmocka_unit_test_setup_teardown(the_limits_cut, begin, finish),
        cmocka_unit_test_setup_teardown(a_paused_stream_reads_nothing, begin, finish),
        cmocka_unit_test_setup_teardown(bytes_left_at_a_pause_are_delivered_again, begin, finish),
        cmocka_unit_test_setup_teardown(a_paused_stream_reports_a_close, begin, finish),
        cmocka_unit_test_setup_teardown(a_paused_stream_sleeps, begin, finish),
        cmocka_unit_test_setup_teardown(pipes_work_like_a_socket, begin, finish),
        cmocka_unit_test_setup_teardown(a_pipe_without_a_reader_is_a_close, begin, finish),
        cmocka_unit_test_setup_teardown(a_full_pipe_delays_the_end, begin, finish),
        cmocka_unit_test_setup_teardown(a_regular_file_is_read_to_its_end, begin, finish),
        cmocka_unit_test_setup_teardown(flags_of_shared_files_are_restored, begin, finish),
        cmocka_unit_test_setup_teardown(stdin_and_stdout_are_not_shut_down, begin, finish),
        cmocka_unit_test_setup_teardown(the_last_reply_arrives, begin, finish),
        cmocka_unit_test_setup_teardown(a_peer_that_stays_is_left, begin, finish),
        cmocka_unit_test_setup_teardown(a_peer_that_reads_nothing_is_left, begin, finish),
        cmocka_unit_test_setup_teardown(pipes_end_after_the_flush, begin, finish),
        cmocka_unit_test_setup_teardown(callbacks_may_free, begin, finish),
    };
    return cmocka_run_group_tests_name("stream_adopt", tests, NULL, NULL);
}

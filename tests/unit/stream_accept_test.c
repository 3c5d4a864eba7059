/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopted streams with TLS: the handshake and its deadline, pauses, limits, the last reply, and
 * which end is a close and which one a cut.
 */
#include "tls_link.h"

#include "process/host.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORD = 16384 };

static void fill(char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 13 + i / 255);
}

/* The client has received close_notify. */
static void expect_close_notify(void)
{
    char byte;
    int error = SSL_ERROR_WANT_READ;
    int64_t ends_ms = host_boot_ms() + 3000;
    while (error == SSL_ERROR_WANT_READ && host_boot_ms() < ends_ms) {
        error = SSL_get_error(link_client.ssl, SSL_read(link_client.ssl, &byte, 1));
        kit_turn(/* ms= */ 1);
    }
    assert_int_equal(error, SSL_ERROR_ZERO_RETURN);
}

static void reset_client(void)
{
    const struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(link_client.file, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
                     0);
    tls_client_end(&link_client, /* goodbye= */ false);
}

static void bytes_go_both_ways(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        link_client.version = versions[i];
        link_open();
        assert_int_equal(SSL_version(link_client.ssl), versions[i]);
        assert_null(stream_peer_name(link_party.stream));
        link_put("ping", 4);
        assert_true(link_until(&link_party.calls));
        assert_int_equal(link_party.got_length, 4);
        assert_memory_equal(link_party.got, "ping", 4);
        stream_write(link_party.stream, "po", 2);
        stream_write(link_party.stream, "ng", 2);
        poller_step(kit_net);
        link_expect("pong", 4);
        assert_int_equal(stream_buffered(link_party.stream), 0);
        link_disconnect();
    }
}

static void much_is_carried_whole(void **state)
{
    static char sent[250 * 1024];
    (void)state;
    fill(sent, sizeof sent);
    link_open();
    link_put(sent, sizeof sent);
    int64_t ends_ms = host_boot_ms() + 5000;
    while (link_party.got_length < sizeof sent && host_boot_ms() < ends_ms)
        kit_turn(/* ms= */ 1);
    assert_int_equal(link_party.got_length, sizeof sent);
    assert_memory_equal(link_party.got, sent, sizeof sent);
    stream_write(link_party.stream, sent, sizeof sent);
    poller_step(kit_net);
    link_expect(sent, sizeof sent);
}

static void writes_wait_for_the_handshake(void **state)
{
    (void)state;
    link_connect();
    stream_write(link_party.stream, "hello", 5);
    stream_flush(link_party.stream);
    assert_int_equal(stream_unsent(link_party.stream), 5);
    assert_true(link_until(&link_party.opened));
    assert_true(link_until(&link_client.open));
    link_expect("hello", 5);
}

/* ---- ends ---- */

static void a_close_notify_closes(void **state)
{
    (void)state;
    link_open();
    link_put("last words", 10);
    tls_client_end(&link_client, /* goodbye= */ true);
    link_expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_int_equal(link_party.got_length, 10);
}

/* It may be the peer, or anyone between the two. */
static void an_end_without_close_notify_cuts(void **state)
{
    (void)state;
    link_open();
    tls_client_end(&link_client, /* goodbye= */ false);
    link_expect_end(STREAM_CUT, "127.0.0.1: the connection was cut (no close_notify)");
}

static void a_reset_cuts(void **state)
{
    (void)state;
    link_open();
    reset_client();
    link_expect_end(STREAM_CUT, "127.0.0.1: the connection broke (Connection reset by peer)");
}

/* The client may keep its socket open until it has received ours. */
static void a_close_notify_is_answered(void **state)
{
    (void)state;
    link_open();
    assert_int_equal(SSL_shutdown(link_client.ssl), 0);
    link_expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    assert_int_equal(SSL_shutdown(link_client.ssl), 1);
}

static void a_write_after_a_close_is_a_close(void **state)
{
    (void)state;
    link_open();
    tls_client_end(&link_client, /* goodbye= */ true);
    for (int i = 0; i < 3; i++) { /* the first one causes a reset, which a later one finds */
        stream_write(link_party.stream, "late", 4);
        stream_flush(link_party.stream);
        (void)poll(NULL, 0, /* timeout= */ 10);
    }
    link_expect_end(STREAM_CLOSED, "127.0.0.1: the peer closed the connection");
    link_disconnect();
    link_open();
    tls_client_end(&link_client, /* goodbye= */ false);
    for (int i = 0; i < 3; i++) {
        stream_write(link_party.stream, "late", 4);
        stream_flush(link_party.stream);
        (void)poll(NULL, 0, /* timeout= */ 10);
    }
    assert_true(link_until(&link_party.ended));
    assert_int_equal(link_party.end, STREAM_CUT);
}

static void bytes_that_are_no_record_cut(void **state)
{
    (void)state;
    link_open();
    assert_int_equal(send(link_client.file, "*1\r\n$4\r\nPING\r\n", 14, MSG_NOSIGNAL), 14);
    assert_true(link_until(&link_party.ended));
    assert_int_equal(link_party.end, STREAM_CUT);
    assert_non_null(strstr(link_party.why, "127.0.0.1: TLS failed ("));
    assert_int_equal(link_party.calls, 0);
}

/* ---- pauses and limits ---- */

static void a_paused_stream_reads_nothing(void **state)
{
    (void)state;
    link_open();
    stream_set_paused(link_party.stream, true);
    link_put("later", 5);
    kit_settle();
    assert_int_equal(link_party.calls, 0);
    assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 20));
    stream_set_paused(link_party.stream, false);
    assert_int_equal(link_party.calls, 0); /* only from a step */
    assert_true(link_until(&link_party.calls));
    assert_memory_equal(link_party.got, "later", 5);
}

static void a_pause_begins_before_the_handshake(void **state)
{
    (void)state;
    link_connect();
    stream_set_paused(link_party.stream, true);
    assert_true(link_until(&link_party.opened));
    assert_true(link_until(&link_client.open));
    link_put("later", 5);
    kit_settle();
    assert_int_equal(link_party.calls, 0);
    stream_set_paused(link_party.stream, false);
    assert_true(link_until(&link_party.calls));
}

static void a_paused_stream_knows_a_close_from_a_cut(void **state)
{
    static char unread[100 * 1024];
    (void)state;
    for (int goodbye = 0; goodbye < 2; goodbye++) {
        link_open();
        stream_set_paused(link_party.stream, true);
        link_put(unread, sizeof unread);
        kit_settle();
        tls_client_end(&link_client, goodbye != 0);
        link_expect_end(goodbye != 0 ? STREAM_CLOSED : STREAM_CUT,
                        goodbye != 0 ? "127.0.0.1: the peer closed the connection"
                                     : "127.0.0.1: the connection was cut (no close_notify)");
        assert_int_equal(link_party.calls, 0);
        link_disconnect();
    }
    link_open();
    stream_set_paused(link_party.stream, true);
    reset_client();
    link_expect_end(STREAM_CUT, "127.0.0.1: the connection broke (Connection reset by peer)");
}

/* The rest of a record exists only in OpenSSL: no descriptor reports it. */
static void a_record_larger_than_all_reads_of_a_step_is_read(void **state)
{
    static char record[RECORD];
    (void)state;
    fill(record, sizeof record);
    link_party.in_max = 1000;
    link_open();
    link_put(record, sizeof record);
    int64_t ends_ms = host_boot_ms() + 5000;
    while (link_party.got_length < sizeof record && host_boot_ms() < ends_ms)
        kit_turn(/* ms= */ 1);
    assert_int_equal(link_party.got_length, sizeof record);
    assert_memory_equal(link_party.got, record, sizeof record);
}

static void the_rest_of_a_record_is_read_after_a_pause(void **state)
{
    static char record[RECORD];
    (void)state;
    fill(record, sizeof record);
    link_party.in_max = 1000;
    link_party.pauses_on_bytes = true;
    link_open();
    link_put(record, sizeof record);
    for (int i = 0; i < 17; i++) {
        link_party.calls = 0;
        stream_set_paused(link_party.stream, false);
        assert_true(link_until(&link_party.calls));
        kit_settle();
        assert_int_equal(link_party.calls, 1);
        assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 5));
    }
    assert_int_equal(link_party.got_length, sizeof record);
    assert_memory_equal(link_party.got, record, sizeof record);
}

static void the_limits_cut(void **state)
{
    static const char block[1024];
    (void)state;
    link_party.in_max = 8;
    link_party.spares = 100;
    link_open();
    link_put("12345678", 8);
    link_expect_end(STREAM_CUT, "127.0.0.1: the peer sent more at once than we take");
    link_disconnect();
    link_open();
    for (int i = 0; i < 1025; i++)
        stream_write(link_party.stream, block, sizeof block);
    link_expect_end(STREAM_OVERFLOWED, "127.0.0.1: the peer does not take what we send");
}

/* A peer that requests new keys makes a read write. If it does not read, that must not wake us
 * while there is no room, and the stream goes on when there is. */
static void a_read_that_has_to_write_sleeps(void **state)
{
    (void)state;
    link_client.version = TLS1_3_VERSION;
    link_buffer = 4096;
    link_open();
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(SSL_key_update(link_client.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        if (SSL_do_handshake(link_client.ssl) != 1)
            break; /* it fills our buffer too: we do not read */
        poller_step(kit_net);
    }
    kit_settle();
    assert_int_equal(link_party.ended, 0);
    assert_false(poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 20));
    stream_write(link_party.stream, "still here", 10);
    link_expect("still here", 10);
    link_put("x", 1);
    for (int64_t ends_ms = host_boot_ms() + 5000;
         host_boot_ms() < ends_ms && link_party.calls == 0;) {
        char byte;
        assert_true(SSL_read(link_client.ssl, &byte, 1) < 0); /* takes the new keys */
        kit_turn(/* ms= */ 1);
    }
    assert_int_equal(link_party.calls, 1);
}

/* ---- the last reply ---- */

static void the_last_reply_arrives(void **state)
{
    static const char junk[64 * 1024];
    (void)state;
    link_open();
    stream_write(link_party.stream, "-ERR bye", 8);
    stream_end_after_flush(link_party.stream);
    stream_write(link_party.stream, "more", 4); /* has no effect */
    poller_step(kit_net);
    link_put(junk, sizeof junk);
    kit_settle();
    link_expect("-ERR bye", 8);
    expect_close_notify();
    assert_int_equal(link_party.ended + link_party.calls, 0);
    int64_t before_ms = host_boot_ms();
    tls_client_end(&link_client, /* goodbye= */ true);
    assert_true(link_until(&link_party.ended));
    assert_int_equal(link_party.end, STREAM_CLOSED);
    assert_true(host_boot_ms() - before_ms < 500);
}

/* The close_notify behind a full kernel buffer is sent too. */
static void the_last_reply_may_be_long(void **state)
{
    static char block[900 * 1024];
    (void)state;
    fill(block, sizeof block);
    link_buffer = 8192;
    link_open();
    stream_write(link_party.stream, block, sizeof block);
    stream_end_after_flush(link_party.stream);
    kit_settle();
    assert_int_equal(link_party.ended, 0);
    link_expect(block, sizeof block);
    expect_close_notify();
    tls_client_end(&link_client, /* goodbye= */ false);
    assert_true(link_until(&link_party.ended));
    assert_int_equal(link_party.end, STREAM_CLOSED);
}

static void a_peer_that_stays_is_left(void **state)
{
    (void)state;
    link_open();
    int64_t before_ms = host_boot_ms();
    stream_end_after_flush(link_party.stream);
    link_expect_end(STREAM_CLOSED, "127.0.0.1: closed after the last reply");
    int64_t took_ms = host_boot_ms() - before_ms;
    assert_true(took_ms >= 900 && took_ms < 4500);
}

static void an_end_before_the_handshake_is_at_once(void **state)
{
    (void)state;
    link_connect();
    stream_write(link_party.stream, "never sent", 10);
    stream_end_after_flush(link_party.stream);
    assert_int_equal(link_party.ended, 0); /* only from a step */
    link_expect_end(STREAM_CLOSED, "127.0.0.1: closed after the last reply");
    assert_int_equal(link_party.opened, 0);
}

static void callbacks_may_free(void **state)
{
    (void)state;
    link_party.frees_on_open = true;
    link_connect();
    assert_true(link_until(&link_party.opened));
    assert_null(link_party.stream);
    link_disconnect();
    link_party.frees_on_bytes = true;
    link_open();
    link_put("x", 1);
    assert_true(link_until(&link_party.calls));
    assert_null(link_party.stream);
    link_disconnect();
    link_party.frees_on_end = true;
    link_open();
    tls_client_end(&link_client, /* goodbye= */ true);
    assert_true(link_until(&link_party.ended));
    assert_null(link_party.stream);
}

/* ---- no handshake ---- */

/* Sends the bytes one by one, and then nothing. Returns how many it could send. */
static size_t expect_timeout(const char *bytes, size_t length)
{
    int64_t began_ms = host_boot_ms();
    int peer = link_connect_plain(/* timeout_ms= */ 200);
    size_t sent = 0;
    for (; sent < length && link_party.ended == 0; sent++) {
        assert_int_equal(send(peer, bytes + sent, 1, MSG_NOSIGNAL), 1);
        kit_turn(/* ms= */ 10);
    }
    link_expect_end(STREAM_CUT, "127.0.0.1: the TLS handshake is not done in time");
    assert_true(host_boot_ms() - began_ms >= 200);
    assert_int_equal(link_party.opened + link_party.calls, 0);
    (void)close(peer);
    link_disconnect();
    return sent;
}

static void a_peer_without_a_handshake_is_cut_in_time(void **state)
{
    static const char hello[100] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    (void)state;
    (void)expect_timeout("", 0);
    (void)expect_timeout("\x16", 1);
    (void)expect_timeout(hello, 9);
    size_t sent = expect_timeout(hello, sizeof hello); /* bytes do not move the deadline */
    assert_true(sent > 1 && sent < sizeof hello);
}

static void refuse_first_bytes(const char *bytes, size_t length, const char *why)
{
    int64_t began_ms = host_boot_ms();
    int peer = link_connect_plain(/* timeout_ms= */ 5000);
    assert_int_equal(send(peer, bytes, length, MSG_NOSIGNAL), length);
    link_expect_end(STREAM_CUT, why);
    assert_true(host_boot_ms() - began_ms < 4000);
    assert_int_equal(link_party.opened + link_party.calls, 0);
    (void)close(peer);
    link_disconnect();
}

static void bytes_that_are_no_hello_are_refused_at_once(void **state)
{
    static const char no_tls[] = "127.0.0.1: the peer does not speak TLS";
    static const char no_hello[] = "127.0.0.1: the peer's first message is no ClientHello";
    (void)state;
    refuse_first_bytes("*1\r\n$4\r\nPING\r\n", 14, no_tls);
    refuse_first_bytes("GET / HTTP/1.1\r\n\r\n", 18, no_tls);
    refuse_first_bytes("\x80\x2e\x01", 3, no_tls); /* SSL 2 */
    refuse_first_bytes("\0", 1, no_tls);
    refuse_first_bytes("\x16\x03\x01\x02\x00\x02\x00\x01\xfc", 9, no_hello);
    refuse_first_bytes("\x16\x03\x01\x00\x01\x01\x00\x01\xfc", 9, no_hello);
    refuse_first_bytes("\x16\x03\x01\x40\x00\x01\x00\x40\x01", 9, no_hello); /* 16 KiB + 1 */
    refuse_first_bytes("\x16\x03\x01\x40\x00\x01\xff\xff\xff", 9, no_hello);
}

static void a_connection_without_bytes_is_no_failure(void **state)
{
    (void)state;
    (void)close(link_connect_plain(/* timeout_ms= */ 5000));
    link_expect_end(STREAM_CLOSED,
                    "127.0.0.1: the peer closed the connection (before the TLS handshake)");
    link_disconnect();
    int peer = link_connect_plain(/* timeout_ms= */ 5000);
    assert_int_equal(send(peer, "\x16\x03", 2, MSG_NOSIGNAL), 2);
    (void)close(peer);
    link_expect_end(STREAM_CUT,
                    "127.0.0.1: the peer closed the connection (before the TLS handshake)");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, link_begin, link_finish)
    const struct CMUnitTest tests[] = {
        CASE(bytes_go_both_ways),
        CASE(much_is_carried_whole),
        CASE(writes_wait_for_the_handshake),
        CASE(a_close_notify_closes),
        CASE(an_end_without_close_notify_cuts),
        CASE(a_reset_cuts),
        CASE(a_close_notify_is_answered),
        CASE(a_write_after_a_close_is_a_close),
        CASE(bytes_that_are_no_record_cut),
        CASE(a_paused_stream_reads_nothing),
        CASE(a_pause_begins_before_the_handshake),
        CASE(a_paused_stream_knows_a_close_from_a_cut),
        CASE(a_record_larger_than_all_reads_of_a_step_is_read),
        CASE(the_rest_of_a_record_is_read_after_a_pause),
        CASE(the_limits_cut),
        CASE(a_read_that_has_to_write_sleeps),
        CASE(the_last_reply_arrives),
        CASE(the_last_reply_may_be_long),
        CASE(a_peer_that_stays_is_left),
        CASE(an_end_before_the_handshake_is_at_once),
        CASE(callbacks_may_free),
        CASE(a_peer_without_a_handshake_is_cut_in_time),
        CASE(bytes_that_are_no_hello_are_refused_at_once),
        CASE(a_connection_without_bytes_is_no_failure),
    };
#undef CASE
    return cmocka_run_group_tests_name("stream_accept", tests, link_make_certs, link_remove_certs);
}

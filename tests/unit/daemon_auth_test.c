/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a peer: AUTH, unix peers, certificates; and what is possible before AUTH.
 * The clock is the test's own, so that nothing waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "auth_kit.h"
#include "base/text.h"
#include "process/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t clock_ahead_ms;

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __real_host_boot_ms(void);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void)
{
    return __real_host_boot_ms() + clock_ahead_ms;
}

static int begin(void **state)
{
    clock_ahead_ms = 0;
    return auth_kit_begin(state);
}

/* ---- AUTH ---- */

static void nothing_is_answered_before_auth(void **state)
{
    static const char *const more[] = {"UNKNOWN", "LOCK.ACQUIRE a:1", "LOCK.STATUS a:1 x", "GET k"};
    const struct daemon_verb *verb = NULL;
    (void)state;
    serve(ONE);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        bool open = strcmp(verb->name, "HELLO") == 0 || strcmp(verb->name, "AUTH") == 0 ||
                    strcmp(verb->name, "QUIT") == 0 || strcmp(verb->name, "RESET") == 0;
        struct peer *peer = connect_remote();
        if (open)
            assert_string_not_equal(peer_ask(peer, verb->name), NO_AUTH);
        else
            assert_string_equal(peer_ask(peer, verb->name), NO_AUTH);
        peer_free(peer);
    }
    struct peer *peer = connect_remote();
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        assert_string_equal(peer_ask(peer, more[i]), NO_AUTH);
    expect(peer, "HELLO 3", "{server leasehold");
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH);
    expect(peer, "AUTH alpha", "OK");
    expect(peer, "PING", "PONG");
    peer_free(peer);
}

static void the_forms_of_auth(void **state)
{
    static const char *const good[] = {
        "AUTH alpha",     "AUTH ann alpha",         "AUTH default alpha",
        "auth ann alpha", "HELLO 3 AUTH ann alpha", "HELLO 2 SETNAME x AUTH default alpha"};
    static const char *const bad[] = {
        "AUTH ann beta", "AUTH bob alpha", "AUTH nobody alpha",     "AUTH nobody nothing",
        "AUTH x",        "AUTH ",          "HELLO 3 AUTH bob alpha"};
    (void)state;
    serve(BOTH);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct peer *peer = connect_remote();
        assert_true(peer_ask(peer, good[i])[0] != '-');
        assert_string_equal(peer->connection->who->name, "ann");
        expect_outcome(peer, "LOCK.STATUS a:1 RAW", "ok");
        expect(peer, "LOCK.STATUS b:1", "-NOPERM ann may not use this key with LOCK.STATUS");
        peer_free(peer);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct peer *peer = connect_remote();
        assert_string_equal(peer_ask(peer, bad[i]), WRONG_PASS);
        assert_string_equal(peer_ask(peer, "LOCK.STATUS a:1"), NO_AUTH);
        assert_int_equal(peer->connection->protocol, 2);
        peer_free(peer);
    }
    assert_non_null(strstr(kit_logged, "1 wrong_credential: wrong name or secret\n"));
    assert_null(strstr(kit_logged, "alpha"));
    struct peer *peer = connect_remote();
    expect(peer, "AUTH", "-ERR wrong number of arguments");
    expect(peer, "AUTH a b c", "-ERR wrong number of arguments");
    expect(peer, "HELLO 3 AUTH ann", "-ERR syntax error");
    expect(peer, "HELLO 4 AUTH ann alpha", "-NOPROTO");
    expect(peer, "HELLO 3 AUTH ann alpha SETNAME a~b", "-ERR a name has at most 64 bytes");
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH); /* nothing has changed */
    peer_free(peer);
}

static void a_connection_has_five_tries(void **state)
{
    (void)state;
    serve(ONE);
    struct peer *peer = connect_remote();
    for (int i = 0; i < 4; i++)
        assert_string_equal(peer_ask(peer, i % 2 == 0 ? "AUTH x" : "HELLO 3 AUTH a b"), WRONG_PASS);
    (void)peer_ask(peer, "RESET");
    peer_send(peer, "AUTH y");
    peer_send(peer, "AUTH alpha"); /* too late */
    assert_string_equal(peer_message(peer), WRONG_PASS);
    expect_end(peer);
    peer_free(peer);
}

static bool contains(const char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

static void a_secret_is_wiped(void **state)
{
    (void)state;
    serve(ONE);
    struct peer *peer = connect_remote();
    expect(peer, "HELLO 3 AUTH ann wrong-secret SETNAME tail", "-WRONGPASS");
    assert_true(contains(kit_daemon->arguments, sizeof kit_daemon->arguments, "tail"));
    assert_false(contains(kit_daemon->arguments, sizeof kit_daemon->arguments, "wrong-secret"));
    expect(peer, "AUTH alpha", "OK");
    assert_false(contains(kit_daemon->arguments, sizeof kit_daemon->arguments, "alpha"));
    peer_free(peer);
}

static void add(struct resp_reply *out, const char *bytes)
{
    resp_reply_raw(out, bytes, strlen(bytes));
}

static void commands_in_one_write(void **state)
{
    char bytes[16 * 1024];
    struct resp_reply out;
    (void)state;
    serve(BOTH);
    struct peer *peer = connect_remote();
    resp_reply_init(&out, bytes, sizeof bytes, 2);
    add(&out, "*1\r\n$4\r\nPING\r\n");
    add(&out, "*2\r\n$4\r\nAUTH\r\n$5\r\nalpha\r\n");
    add(&out, "*2\r\n$4\r\nECHO\r\n$8000\r\n"); /* after AUTH it may be long */
    for (int i = 0; i < 8000; i++)
        add(&out, "e");
    add(&out, "\r\n*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$4\r\nbeta\r\n");
    add(&out, "*2\r\n$11\r\nLOCK.STATUS\r\n$1\r\nz\r\n");
    assert_false(out.overflow);
    peer_send_bytes(peer, bytes, out.length);
    assert_string_equal(peer_message(peer), NO_AUTH);
    assert_string_equal(peer_message(peer), "OK");
    assert_int_equal(strlen(peer_message(peer)), 8000);
    assert_string_equal(peer_message(peer), "OK");
    assert_non_null(strstr(peer_message(peer), "outcome ok"));
    peer_free(peer);
}

static void another_name_needs_an_idle_connection(void **state)
{
    static const char *const busy = "-ERR AUTH with another name is not possible";
    (void)state;
    serve(ONE "ann " BETA " read a:\nbob uid:77 all *\n"
              "eve cert all a:\n");
    struct peer *peer = connect_as("AUTH alpha");
    struct peer *holder = connect_as("AUTH alpha");
    expect_outcome(holder, "LOCK.ACQUIRE a:1 h 60000", "ok");
    expect(peer, "HELLO 3", "{server");
    expect_outcome(peer, "LOCK.ACQUIRE a:1 w 60000 WAIT -1 ASYNC ID x", "waiting");
    auth_use(peer->connection, credentials_by_certificate(kit_daemon->credentials, "eve"));
    expect(peer, "AUTH alpha", busy);
    expect(peer, "HELLO 3 AUTH ann alpha", busy);
    auth_use(peer->connection, credentials_by_secret(kit_daemon->credentials, NULL, "alpha"));
    expect(peer, "AUTH alpha", "OK"); /* the same name: also its next secret */
    expect(peer, "AUTH beta", "OK");
    expect(peer, "LOCK.BREAK a:1 x", "-NOPERM");
    expect_outcome(peer, "LOCK.CANCEL x", "ok");
    (void)peer_message(peer); /* its result */
    expect_outcome(peer, "LOCK.WATCH a:", "ok");
    auth_use(peer->connection, credentials_by_certificate(kit_daemon->credentials, "eve"));
    expect(peer, "AUTH alpha", busy);
    expect_outcome(peer, "LOCK.UNWATCH", "ok");
    expect_outcome(peer, "LOCK.ACQUIRE a:2 h 60000 BIND", "ok");
    expect(peer, "AUTH alpha", busy);
    expect(peer, "RESET", "RESET");
    expect(peer, "AUTH alpha", "OK");
    peer_free(peer);
    peer_free(holder);
}

static void reset_forgets_the_peer(void **state)
{
    (void)state;
    serve(ONE);
    struct peer *peer = connect_as("AUTH alpha");
    assert_int_equal(kit_daemon->before_auth.count, 0);
    expect(peer, "RESET", "RESET");
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH);
    assert_int_equal(kit_daemon->before_auth.count, 1);
    expect(peer, "RESET", "RESET");
    expect(peer, "AUTH alpha", "OK");
    assert_int_equal(kit_daemon->before_auth.count, 0);
    peer_free(peer);
}

static void without_credentials_there_is_no_auth(void **state)
{
    (void)state;
    kit_settings.tokens = NULL;
    serve("");
    struct peer *peer = connect_remote();
    expect(peer, "AUTH alpha", "-ERR AUTH is not needed: this daemon has no credentials");
    expect(peer, "HELLO 3 AUTH a b", "-ERR AUTH is not needed");
    expect_outcome(peer, "LOCK.ACQUIRE any w 60000", "ok");
    expect(peer, "RESET", "RESET");
    expect_outcome(peer, "LOCK.STATUS any", "ok");
    auth_reload(kit_daemon); /* nothing to read */
    expect_outcome(peer, "LOCK.STATUS any", "ok");
    peer_free(peer);
}

/* ---- peers that need no AUTH ---- */

static void unix_peers_are_known_by_their_user(void **state)
{
    unsigned own = geteuid(), other = own + 4711;
    struct listener_peer of_root = unix_peer(0), of_own = unix_peer(own),
                         of_other = unix_peer(other), of_known = unix_peer(12345),
                         unknown = unix_peer((unsigned)-1);
    (void)state;
    serve(ONE "deploy uid:12345 take d:\n");
    struct peer *peer = peer_from(kit_daemon, &of_root);
    expect_outcome(peer, "LOCK.ACQUIRE any w 60000", "ok");
    assert_string_equal(peer->connection->who->name, "default");
    expect(peer, "AUTH alpha", "OK"); /* somebody with fewer rights */
    expect(peer, "LOCK.STATUS any", "-NOPERM");
    expect(peer, "RESET", "RESET");
    expect_outcome(peer, "LOCK.STATUS any", "ok");
    peer_free(peer);
    peer = peer_from(kit_daemon, &of_own);
    expect_outcome(peer, "LOCK.STATUS any", "ok");
    peer_free(peer);
    peer = peer_from(kit_daemon, &of_known);
    expect_outcome(peer, "LOCK.ACQUIRE d:1 w 60000", "ok");
    expect(peer, "LOCK.STATUS d:1", "-NOPERM deploy may not");
    expect(peer, "RESET", "RESET");
    expect(peer, "LOCK.STATUS d:1", "-NOPERM deploy may not");
    peer_free(peer);
    peer = peer_from(kit_daemon, &of_other);
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH);
    expect(peer, "AUTH ann alpha", "OK");
    peer_free(peer);
    peer = peer_from(kit_daemon, &unknown);
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH);
    peer_free(peer);
    assert_null(auth_refusal(kit_daemon, &of_other));
    reload(ONE "me uid:0 read r:\n"); /* also root, if it has a line */
    peer = peer_from(kit_daemon, &of_root);
    expect(peer, "LOCK.STATUS any", "-NOPERM me may not");
    peer_free(peer);
    daemon_free(kit_daemon);
    kit_settings.tokens = NULL;
    serve("");
    assert_null(auth_refusal(kit_daemon, &of_root));
    assert_null(auth_refusal(kit_daemon, &of_own));
    assert_null(auth_refusal(kit_daemon, &kit_remote));
    assert_non_null(strstr(auth_refusal(kit_daemon, &of_other), "-NOAUTH only root and the user"));
    assert_non_null(auth_refusal(kit_daemon, &unknown));
}

static void a_certificate_needs_no_auth(void **state)
{
    (void)state;
    serve(ONE "host-1.example cert take,renew h:\n");
    struct peer *peer = connect_remote();
    auth_on_certificate(peer->connection, "host-2.example");
    assert_string_equal(peer_ask(peer, "PING"), NO_AUTH);
    peer_free(peer);
    peer = connect_remote();
    auth_on_certificate(peer->connection, "host-1.example");
    expect_outcome(peer, "LOCK.ACQUIRE h:1 w 60000", "ok");
    expect(peer, "LOCK.STATUS h:1", "-NOPERM host-1.example may not");
    expect(peer, "AUTH alpha", "OK");
    expect(peer, "LOCK.ACQUIRE h:1 w 60000", "-NOPERM ann may not");
    expect(peer, "RESET", "RESET");
    expect_outcome(peer, "LOCK.ACQUIRE h:1 w 60000", "busy");
    assert_int_equal(kit_daemon->before_auth.count, 0);
    reload(ONE);
    expect_end(peer);
    peer_free(peer);
}

/* ---- limits before AUTH ---- */

static void a_command_before_auth_is_short(void **state)
{
    char bytes[BEFORE_AUTH_BYTES + 64];
    (void)state;
    serve(ONE);
    struct peer *peer = connect_remote();
    memset(bytes, 's', sizeof bytes);
    int head = snprintf(bytes, sizeof bytes, "*2\r\n$4\r\nAUTH\r\n$%d\r\n", 4000);
    bytes[head] = 's';
    bytes[head + 4000] = '\r';
    bytes[head + 4001] = '\n';
    peer_send_bytes(peer, bytes, (size_t)head + 4002);
    assert_string_equal(peer_message(peer), WRONG_PASS); /* just short enough */
    peer_send_bytes(peer, "*2\r\n$4\r\nAUTH\r\n$4090\r\n", 22);
    assert_string_equal(peer_message(peer), "-ERR Protocol error: the command is too long");
    expect_end(peer);
    peer_free(peer);
    peer = connect_remote();
    peer_send_bytes(peer, "*2\r\n$4\r\nECHO\r\n$8000\r\n", 21);
    assert_string_equal(peer_message(peer), "-ERR Protocol error: an argument is too long");
    expect_end(peer);
    peer_free(peer);
}

/* A peer that sends commands and reads no reply. */
static void replies_before_auth_are_few(void **state)
{
    static char bytes[14 * 5000];
    size_t replies = 0;
    (void)state;
    serve(ONE);
    struct peer *peer = connect_remote();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = "*1\r\n$4\r\nPING\r\n"[i % 14];
    peer_send_bytes(peer, bytes, sizeof bytes);
    while (peer_message(peer) != NULL)
        replies++;
    assert_true(peer->ended);
    assert_in_range(replies, 50, 200);
    peer_free(peer);
}

static void an_address_has_few_connections_before_auth(void **state)
{
    static const struct listener_peer other = {.address = "192.0.2.2"},
                                      six = {.address = "2001:db8:1:2::1"},
                                      beside = {.address = "2001:db8:1:2:ffff::2"},
                                      apart = {.address = "2001:db8:1:3::1"};
    struct peer *peers[BEFORE_AUTH_CONNECTIONS];
    struct listener_peer of_own = unix_peer(geteuid()), of_other = unix_peer(geteuid() + 4711),
                         of_third = unix_peer(geteuid() + 4712);
    (void)state;
    serve(ONE);
    for (int i = 0; i < BEFORE_AUTH_CONNECTIONS; i++) {
        assert_null(auth_refusal(kit_daemon, &kit_remote));
        peers[i] = connect_remote();
    }
    assert_string_equal(auth_refusal(kit_daemon, &kit_remote),
                        "-ERR too many connections of this address before AUTH\r\n");
    assert_null(auth_refusal(kit_daemon, &other));
    assert_null(auth_refusal(kit_daemon, &of_own));
    expect(peers[0], "AUTH alpha", "OK"); /* those that are known do not count */
    assert_null(auth_refusal(kit_daemon, &kit_remote));
    expect(peers[0], "RESET", "RESET");
    assert_non_null(auth_refusal(kit_daemon, &kit_remote));
    peer_free(peers[0]);
    assert_null(auth_refusal(kit_daemon, &kit_remote));
    for (int i = 1; i < BEFORE_AUTH_CONNECTIONS; i++)
        peer_free(peers[i]);
    assert_int_equal(kit_daemon->before_auth.count, 0);
    for (int i = 0; i < BEFORE_AUTH_CONNECTIONS; i++) /* a network of 64 bits counts as one */
        peers[i] = peer_from(kit_daemon, i % 2 == 0 ? &six : &beside);
    assert_non_null(auth_refusal(kit_daemon, &six));
    assert_non_null(auth_refusal(kit_daemon, &beside));
    assert_null(auth_refusal(kit_daemon, &apart));
    for (int i = 0; i < BEFORE_AUTH_CONNECTIONS; i++)
        peer_free(peers[i]);
    for (int i = 0; i < BEFORE_AUTH_CONNECTIONS; i++)
        peers[i] = peer_from(kit_daemon, &of_other);
    assert_non_null(auth_refusal(kit_daemon, &of_other));
    assert_null(auth_refusal(kit_daemon, &of_third));
    for (int i = 0; i < BEFORE_AUTH_CONNECTIONS; i++)
        peer_free(peers[i]);
    assert_int_equal(kit_daemon->before_auth.count, 0);
}

static void who_does_not_send_auth_is_cut(void **state)
{
    (void)state;
    serve(ONE);
    struct peer *late = connect_remote(), *known = connect_remote(), *again = connect_remote();
    expect(known, "AUTH alpha", "OK");
    clock_ahead_ms = BEFORE_AUTH_MS - 1000;
    expect(again, "RESET", "RESET"); /* starts no new time */
    expect(late, "HELLO", "[server leasehold");
    clock_ahead_ms = BEFORE_AUTH_MS + 1000;
    assert_string_equal(peer_message(late), "-NOAUTH Authentication required within 10 s.");
    expect_end(late);
    assert_string_equal(peer_message(again), "-NOAUTH Authentication required within 10 s.");
    expect_end(again);
    clock_ahead_ms = 100 * (int64_t)BEFORE_AUTH_MS;
    expect(known, "PING", "PONG");
    peer_free(late);
    peer_free(again);
    assert_int_equal(kit_daemon->before_auth.count, 0);
    expect(known, "RESET", "RESET"); /* a new time */
    clock_ahead_ms += BEFORE_AUTH_MS - 1000;
    expect(known, "AUTH alpha", "OK");
    peer_free(known);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, auth_kit_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_answered_before_auth),
        CASE(the_forms_of_auth),
        CASE(a_connection_has_five_tries),
        CASE(a_secret_is_wiped),
        CASE(commands_in_one_write),
        CASE(another_name_needs_an_idle_connection),
        CASE(reset_forgets_the_peer),
        CASE(without_credentials_there_is_no_auth),
        CASE(unix_peers_are_known_by_their_user),
        CASE(a_certificate_needs_no_auth),
        CASE(a_command_before_auth_is_short),
        CASE(replies_before_auth_are_few),
        CASE(an_address_has_few_connections_before_auth),
        CASE(who_does_not_send_auth_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

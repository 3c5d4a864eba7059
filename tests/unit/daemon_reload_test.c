/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by a reload of the credentials, what the peers of others must not see or end, and where
 * the daemon may listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "auth_kit.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reload ---- */

static void a_reload_changes_rights(void **state)
{
    (void)state;
    serve(BOTH);
    struct peer *ann = connect_as("AUTH alpha"), *bob = connect_as("AUTH beta");
    struct peer *watcher = connect_as("AUTH alpha"), *none = connect_remote();
    expect(watcher, "HELLO 3", "{server");
    expect_outcome(watcher, "LOCK.WATCH", "ok");
    expect_outcome(bob, "LOCK.ACQUIRE a:1 b 60000", "ok");
    assert_non_null(strstr(peer_message(watcher), "key a:1"));
    expect_outcome(ann, "LOCK.STATUS a:1", "ok");
    expect(ann, "LOCK.STATUS n:1", "-NOPERM");
    reload("ann " ALPHA " read n:\nbob " BETA " all *\n");
    expect(ann, "LOCK.STATUS a:1", "-NOPERM");
    expect_outcome(ann, "LOCK.STATUS n:1", "ok");
    expect_outcome(bob, "LOCK.BREAK a:1 reason NOW", "ok");
    expect_outcome(bob, "LOCK.ACQUIRE n:1 b 60000", "ok");
    const char *event = peer_message(watcher); /* none of a: */
    assert_non_null(strstr(event, "key n:1"));
    assert_string_equal(peer_ask(none, "PING"), NO_AUTH);
    assert_non_null(strstr(kit_logged, "0 reloaded: /tmp/"));
    assert_non_null(strstr(kit_logged, ": 2 credentials; connections cut: 0\n"));
    peer_free(ann);
    peer_free(bob);
    peer_free(watcher);
    peer_free(none);
}

static void a_removed_credential_is_cut(void **state)
{
    (void)state;
    serve(BOTH);
    struct peer *ann = connect_as("AUTH alpha"), *bob = connect_as("AUTH beta");
    struct peer *waiter = connect_as("AUTH alpha"), *next = connect_as("AUTH beta");
    expect_outcome(ann, "LOCK.ACQUIRE a:bound x 60000 BIND", "ok");
    expect_outcome(bob, "LOCK.ACQUIRE a:held b 60000", "ok");
    const char *token = peer_ask(bob, "LOCK.STATUS a:held");
    char release[128];
    (void)snprintf(release, sizeof release, "LOCK.RELEASE a:held %s", reply_value(token, "token"));
    peer_send(waiter, "LOCK.ACQUIRE a:held w 60000 WAIT -1");
    while (kit_daemon->waiters < 1)
        kit_daemon_turn(kit_daemon, 20);
    peer_send(next, "LOCK.ACQUIRE a:held n 60000 WAIT -1");
    while (kit_daemon->waiters < 2)
        kit_daemon_turn(kit_daemon, 20);
    reload("bob " BETA " read,take,renew *\n");
    expect_end(ann);
    expect_end(waiter);
    expect_outcome(bob, release, "ok");
    assert_non_null(strstr(peer_message(next), "outcome ok")); /* the other wait has ended */
    const char *view = peer_ask(bob, "LOCK.STATUS a:bound");
    assert_string_equal(reply_value(view, "state"), "held"); /* D1: left to its TTL */
    assert_non_null(strstr(kit_logged, ": 1 credentials; connections cut: 2\n"));
    struct peer *again = connect_remote();
    assert_string_equal(peer_ask(again, "AUTH alpha"), WRONG_PASS);
    peer_free(again);
    peer_free(ann);
    peer_free(bob);
    peer_free(waiter);
    peer_free(next);
}

static void a_secret_is_rotated(void **state)
{
    (void)state;
    serve("ann " ALPHA " all a:\n");
    struct peer *before = connect_as("AUTH alpha");
    reload("ann " ALPHA " all a:\nann " BETA " all a:\n");
    struct peer *after = connect_as("AUTH beta");
    expect(before, "PING", "PONG");
    expect(before, "AUTH beta", "OK"); /* on the same connection */
    struct peer *old = connect_as("AUTH alpha");
    reload("ann " BETA " all a:\n");
    expect(before, "PING", "PONG");
    expect(after, "PING", "PONG");
    expect_end(old);
    peer_free(old);
    reload("eve " BETA " all a:\n"); /* somebody else */
    expect_end(before);
    expect_end(after);
    peer_free(before);
    peer_free(after);
}

static void a_bad_file_changes_nothing(void **state)
{
    (void)state;
    serve(BOTH);
    struct peer *ann = connect_as("AUTH alpha");
    reload("ann " ALPHA " all a:\nbob beta all *\n");
    expect(ann, "LOCK.STATUS a:1", "[outcome ok");
    assert_non_null(strstr(kit_logged, "2 reload_failed: /tmp/"));
    assert_non_null(strstr(kit_logged, "/tokens:2: the secret must be sha256:"));
    assert_non_null(strstr(kit_logged, "; the previous credentials stay\n"));
    assert_null(strstr(kit_logged, "beta"));
    reload("");
    expect(ann, "PING", "PONG");
    assert_int_equal(unlink(kit_tokens), 0);
    auth_reload(kit_daemon);
    expect(ann, "PING", "PONG");
    put_tokens(ONE);
    assert_int_equal(chmod(kit_tokens, 0644), 0);
    auth_reload(kit_daemon);
    struct peer *bob = connect_as("AUTH beta"); /* still from the first file */
    peer_free(bob);
    peer_free(ann);
}

/* A peer of the daemon's own user gets a line of its own. */
static void a_reload_takes_no_everything_over(void **state)
{
    struct listener_peer of_own = unix_peer(geteuid());
    char line[128];
    (void)state;
    serve(ONE);
    struct peer *own = peer_from(kit_daemon, &of_own), *inside = peer_new(kit_daemon);
    expect_outcome(own, "LOCK.STATUS any", "ok");
    (void)snprintf(line, sizeof line, "me uid:%u read m:\n", geteuid());
    reload(line);
    expect_end(own);
    expect_outcome(inside, "LOCK.STATUS any", "ok"); /* as of --stdio */
    peer_free(own);
    own = peer_from(kit_daemon, &of_own);
    expect(own, "LOCK.STATUS any", "-NOPERM me may not");
    peer_free(own);
    peer_free(inside);
}

static void bound_grants_need_the_right_to_renew(void **state)
{
    (void)state;
    serve("ann " ALPHA " take a:\nann " ALPHA " renew a:1 a:2\n");
    struct peer *ann = connect_as("AUTH alpha");
    expect(ann, "HELLO 3", "{server");
    expect_outcome(ann, "LOCK.ACQUIRE a:1 x 60000 BIND", "ok");
    expect_outcome(ann, "LOCK.ACQUIRE a:2 x 60000 BIND", "ok");
    expect_outcome(ann, "LOCK.ACQUIRE a:3 x 60000", "ok");
    expect(ann, "LOCK.ACQUIRE a:4 x 60000 BIND", "-NOPERM");
    expect(ann, "LOCK.ACQUIRE_ALL 2 a:1 a:4 x 60000 BIND", "-NOPERM");
    reload("ann " ALPHA " take a:\nann " ALPHA " renew a:2\n");
    const char *lost = peer_message(ann);
    assert_non_null(strstr(lost, ">[lock.lost"));
    assert_string_equal(reply_value(lost, "key"), "a:1");
    assert_int_equal(kit_daemon->bindings.count, 1);
    expect(ann, "PING", "PONG");
    peer_free(ann);
}

/* ---- what others must not see or end ---- */

static void request_ids_belong_to_their_name(void **state)
{
    (void)state;
    serve(BOTH);
    struct peer *ann = connect_as("AUTH alpha"), *bob = connect_as("AUTH beta");
    struct peer *also_ann = connect_as("AUTH alpha");
    expect_outcome(bob, "LOCK.ACQUIRE a:1 b 60000", "ok");
    peer_send(ann, "LOCK.ACQUIRE a:1 a 60000 WAIT -1 ID job-1");
    while (kit_daemon->waiters < 1)
        kit_daemon_turn(kit_daemon, 20);
    expect_outcome(bob, "LOCK.CANCEL job-1", "stale");
    expect_outcome(bob, "LOCK.ACQUIRE a:9 a 60000 ID job-1", "ok"); /* its own id */
    assert_int_equal(kit_daemon->waiters, 1);
    expect_outcome(also_ann, "LOCK.CANCEL job-1", "ok");
    assert_non_null(strstr(peer_message(ann), "outcome busy"));
    peer_free(ann);
    peer_free(bob);
    peer_free(also_ann);
}

static void info_is_short_for_most(void **state)
{
    (void)state;
    serve(BOTH);
    struct peer *ann = connect_as("AUTH alpha"), *bob = connect_as("AUTH beta");
    const char *info = peer_ask(ann, "INFO");
    assert_non_null(strstr(info, "version:"));
    assert_null(strstr(info, "memory:"));
    assert_null(strstr(info, "clients"));
    assert_null(strstr(info, "process_id"));
    info = peer_ask(bob, "INFO"); /* it may read every key */
    assert_non_null(strstr(info, "store:memory:"));
    assert_non_null(strstr(info, "connected_clients:2"));
    peer_free(ann);
    peer_free(bob);
}

/* ---- where it listens ---- */

static void ignore_accepted(void *owner, int file, const struct listener_peer *peer)
{
    (void)owner;
    (void)peer;
    (void)close(file);
}

/* NULL if it may listen there; otherwise why not. */
static const char *listen_at(const char *address, const char *tokens, const char *cert,
                             bool insecure)
{
    static const struct listener_callbacks callbacks = {.accepted = ignore_accepted};
    static char reason[512];
    struct text why;
    text_init(&why, reason, sizeof reason);
    auth_kit_forget_log();
    kit_settings.tokens = tokens;
    kit_settings.tls_cert = cert;
    kit_settings.insecure = insecure;
    struct listener *listener = listener_open_tcp(kit_daemon->poller, address, &callbacks, &why);
    if (listener == NULL)
        fail_msg("%s", reason);
    bool allowed = auth_check_listener(kit_daemon, listener, &why);
    listener_free(&listener);
    return allowed ? NULL : reason;
}

static void beyond_loopback_needs_tls_and_credentials(void **state)
{
    static const char *const loopback[] = {"0", "127.0.0.1:0", "127.1.2.3:0", "localhost:0"};
    static const char *const wide[] = {":0", "0.0.0.0:0"};
    (void)state;
    serve(ONE);
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++) {
        assert_null(listen_at(loopback[i], NULL, NULL, false));
        assert_null(listen_at(loopback[i], "tokens", NULL, false));
        assert_string_equal(kit_logged, "");
    }
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        const char *why = listen_at(wide[i], NULL, NULL, false);
        assert_non_null(why);
        assert_int_equal(strncmp(why, "usage: ", 7), 0);
        assert_non_null(strstr(why, "--tls-cert and --tokens"));
        assert_non_null(strstr(why, "--insecure"));
        assert_non_null(listen_at(wide[i], "tokens", NULL, false));
        assert_non_null(listen_at(wide[i], NULL, "cert.pem", false));
        assert_null(listen_at(wide[i], "tokens", "cert.pem", false));
        assert_string_equal(kit_logged, "");
        assert_null(listen_at(wide[i], "tokens", "cert.pem", true));
        assert_string_equal(kit_logged, "");
        assert_null(listen_at(wide[i], NULL, NULL, true));
        assert_non_null(strstr(kit_logged, "1 insecure: "));
        assert_non_null(strstr(kit_logged, "whoever connects may do everything"));
        assert_null(listen_at(wide[i], "tokens", NULL, true));
        assert_non_null(strstr(kit_logged, "secrets are sent without encryption"));
    }
    kit_settings.tokens = kit_tokens;
}

static void a_bad_file_at_the_start_is_refused(void **state)
{
    char bytes[512];
    struct text why;
    (void)state;
    put_tokens("ann hunter2 all *\n");
    kit_daemon = kit_daemon_with(&kit_settings);
    text_init(&why, bytes, sizeof bytes);
    assert_false(auth_load(kit_daemon, &why));
    assert_int_equal(strncmp(bytes, "usage: /tmp/", 12), 0);
    assert_non_null(strstr(bytes, "/tokens:1: the secret must be"));
    assert_null(strstr(bytes, "hunter2"));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, auth_kit_begin, auth_kit_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_reload_changes_rights),
        CASE(a_removed_credential_is_cut),
        CASE(a_secret_is_rotated),
        CASE(a_bad_file_changes_nothing),
        CASE(a_reload_takes_no_everything_over),
        CASE(bound_grants_need_the_right_to_renew),
        CASE(request_ids_belong_to_their_name),
        CASE(info_is_short_for_most),
        CASE(beyond_loopback_needs_tls_and_credentials),
        CASE(a_bad_file_at_the_start_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

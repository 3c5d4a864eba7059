/* SPDX-License-Identifier: Apache-2.0 */
/* The orderly end of a daemon: what its peers see, and which grants remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOPPING "text unavailable: the daemon is stopping; try another one"

static struct daemon *served;
static struct peer *ann, *bob, *eve;
static bool cancel_is_late; /* the grant was decided before: lh_cancel() has no effect */

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __real_lh_cancel(struct lh_request *request);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_cancel(struct lh_request *request);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_cancel(struct lh_request *request)
{
    if (!cancel_is_late)
        __real_lh_cancel(request);
}

static int open_all(void **state)
{
    (void)state;
    cancel_is_late = false;
    served = kit_daemon_new();
    ann = peer_new(served);
    bob = peer_new(served);
    eve = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    peer_leave(&ann);
    peer_leave(&bob);
    peer_leave(&eve);
    daemon_free(served);
    return 0;
}

static void expect(struct peer *peer, const char *command, const char *part)
{
    const char *reply = peer_ask(peer, command);
    if (strstr(reply, part) == NULL)
        fail_msg("%s\n  says %.600s\n  not  %s", command, reply, part);
}

static void expect_next(struct peer *peer, const char *part)
{
    const char *message = peer_message(peer);
    if (message == NULL || strstr(message, part) == NULL)
        fail_msg("says %.600s\n  not %s", message != NULL ? message : "nothing", part);
}

static void expect_end(struct peer *peer)
{
    const char *message = peer_message(peer);
    if (message != NULL)
        fail_msg("says %.600s", message);
    assert_true(peer->ended);
}

/* By a connection that the drain has not seen yet. */
static void expect_key(const char *command, const char *part)
{
    struct peer *fresh = peer_new(served);
    expect(fresh, command, part);
    peer_free(fresh);
}

static void turns(int64_t length_ms)
{
    for (int64_t until_ms = host_boot_ms() + length_ms; host_boot_ms() < until_ms;)
        kit_daemon_turn(served, 5);
}

static void until_stopping(int64_t most_ms)
{
    int64_t until_ms = host_boot_ms() + most_ms;
    while (!served->stopping && host_boot_ms() < until_ms)
        kit_daemon_turn(served, 5);
    assert_true(served->stopping);
}

/* The token of a grant that the peer gets. */
static const char *token_of(struct peer *peer, const char *command)
{
    static char token[32];
    const char *reply = peer_ask(peer, command);
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    text_copy(token, sizeof token, reply_value(reply, "token"));
    return token;
}

/* ---- waiters ---- */

static void waiters_are_refused_and_connections_end(void **state)
{
    (void)state;
    (void)peer_ask(bob, "HELLO 3");
    expect(ann, "LOCK.ACQUIRE k ann 60000", "outcome ok");
    expect(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1 ASYNC ID x", "outcome waiting");
    peer_send(eve, "LOCK.ACQUIRE k eve 60000 WAIT -1");
    turns(20);
    assert_int_equal(served->waiters, 2);
    drain_begin(served);
    assert_true(served->draining);
    expect_next(bob, ">[lock.result x {outcome unavailable");
    const char *reply = peer_message(eve);
    assert_string_equal(reply_value(reply, "outcome"), "unavailable");
    assert_non_null(strstr(reply, STOPPING));
    assert_string_equal(reply_value(reply, "refusal"), "api_error");
    assert_string_equal(reply_value(reply, "retry_after_ms"), "1000");
    expect_end(ann);
    expect_end(bob);
    expect_end(eve);
    assert_int_equal(served->waiters, 0);
    until_stopping(2000);
    expect_key("LOCK.STATUS k", "holder ann"); /* D1 */
}

static void commands_behind_a_wait_get_their_replies(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE k ann 60000", "outcome ok");
    peer_send(eve, "LOCK.ACQUIRE k eve 60000 WAIT -1");
    peer_send(eve, "LOCK.ACQUIRE other eve 60000");
    peer_send(eve, "LOCK.STATUS k");
    drain_begin(served);
    expect_next(eve, STOPPING);
    expect_next(eve, STOPPING);
    expect_next(eve, "holder ann");
    expect_end(eve);
    expect_key("LOCK.STATUS other", "state free");
}

static void a_kept_place_ends(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE k ann 60000", "outcome ok");
    peer_send(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1 ID x");
    turns(20);
    peer_leave(&bob);
    assert_int_equal(served->waiters, 1);
    drain_begin(served);
    turns(20);
    assert_int_equal(served->waiters, 0);
}

/* The result of a wait whose grant is decided before its cancel has an effect. */
static void grant_during_cancel(const char *wait, char out_outcome[32])
{
    const char *token = token_of(ann, "LOCK.ACQUIRE k ann 60000");
    peer_send(bob, wait);
    turns(20);
    assert_int_equal(served->waiters, 1);
    cancel_is_late = true;
    drain_begin(served);
    turns(20);
    daemon_release(served, "k", strtoull(token, NULL, 10));
    text_copy(out_outcome, 32, reply_value(peer_message(bob), "outcome"));
    turns(20);
    assert_int_equal(served->waiters, 0);
}

static void a_late_grant_is_released(void **state)
{
    char outcome[32];
    (void)state;
    grant_during_cancel("LOCK.ACQUIRE k bob 60000 WAIT -1", outcome);
    assert_string_equal(outcome, "unavailable");
    expect_key("LOCK.STATUS k", "state free");
}

/* Its client was not told yet, so it gets it. */
static void a_late_grant_with_an_id_counts(void **state)
{
    char outcome[32];
    (void)state;
    grant_during_cancel("LOCK.ACQUIRE k bob 60000 WAIT -1 ID x", outcome);
    assert_string_equal(outcome, "ok");
    expect_key("LOCK.STATUS k", "holder bob");
}

/* ---- bound grants ---- */

static void bound_grants_are_renewed_until_the_peer_ends(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE k ann 2000 BIND", "outcome ok");
    expect(bob, "LOCK.ACQUIRE unbound bob 2000", "outcome ok");
    drain_begin(served);
    expect_end(bob);
    turns(2600);
    assert_false(served->stopping);
    expect_key("LOCK.STATUS k", "holder ann");
    expect_key("LOCK.STATUS unbound", "state free");
    peer_leave(&ann);
    until_stopping(2000);
    expect_key("LOCK.STATUS k", "state free");
}

static void new_grants_are_refused(void **state)
{
    static const char *const refused[] = {
        "LOCK.ACQUIRE new ann 1000",      "LOCK.ACQUIRE new ann 1000 WAIT 5000",
        "LOCK.ACQUIRE new ann 10 CACHED", "LOCK.ACQUIRE_ALL 2 new more ann 1000",
        "ONCE.BEGIN new ann 1000",        "ONCE.MARK new",
        "LOCK.ACQUIRE new ann 10 ID x",   "LOCK.WATCH",
    };
    char command[128], once[32];
    (void)state;
    (void)peer_ask(ann, "HELLO 3");
    text_copy(once, sizeof once, token_of(ann, "ONCE.BEGIN job ann 60000"));
    const char *token = token_of(ann, "LOCK.ACQUIRE k ann 60000 BIND");
    drain_begin(served);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect(ann, refused[i], STOPPING);
    expect(ann, "SUBSCRIBE x", "-ERR unavailable: the daemon is stopping");
    expect(ann, "LOCK.STATUS new", "state free");
    expect(ann, "LOCK.LIST", "next nil");
    expect(ann, "WATERMARK.ADVANCE w  1", "outcome ok");
    expect(ann, "PING", "PONG");
    (void)snprintf(command, sizeof command, "ONCE.FINISH job %s", once);
    expect(ann, command, "outcome ok");
    (void)snprintf(command, sizeof command, "LOCK.RENEW k %s 60000 BIND", token);
    expect(ann, command, "outcome ok");
    assert_false(served->stopping);
    (void)snprintf(command, sizeof command, "LOCK.RELEASE k %s", token);
    expect(ann, command, "outcome ok");
    expect_end(ann); /* nothing is bound any longer */
    peer_leave(&bob);
    peer_leave(&eve);
    until_stopping(2000);
}

static void after_the_limit_grants_are_left_to_their_ttl(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE k ann 60000 BIND", "outcome ok");
    drain_begin(served);
    turns(600);
    assert_false(served->stopping);
    int64_t left_ms = served->drain_until_ms - host_boot_ms();
    assert_true(left_ms > 9000 && left_ms < 10000);
    served->drain_until_ms = host_boot_ms();
    until_stopping(200);
    expect_key("LOCK.STATUS k", "holder ann");
    assert_false(ann->ended);
}

/* ---- others ---- */

static void watches_end(void **state)
{
    (void)state;
    (void)peer_ask(ann, "HELLO 3");
    expect(ann, "LOCK.WATCH p/", "outcome ok");
    expect(bob, "LOCK.WATCH p/", "subscribe p/ 1");
    drain_begin(served);
    expect_next(ann, ">[lock.watch_ended p/ {outcome unavailable");
    expect_next(bob, "[unsubscribe p/ 0]");
    expect_end(ann);
    expect_end(bob);
    assert_int_equal(served->watches, 0);
}

static void peers_that_do_not_close_are_not_awaited(void **state)
{
    int64_t began_ms = host_boot_ms();
    (void)state;
    drain_begin(served);
    until_stopping(900);
    assert_true(host_boot_ms() - began_ms >= 200); /* as long as they could */
}

static void an_idle_daemon_ends_at_once(void **state)
{
    (void)state;
    peer_leave(&ann);
    peer_leave(&bob);
    peer_leave(&eve);
    drain_begin(served);
    until_stopping(200);
}

#define DRAIN(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRAIN(waiters_are_refused_and_connections_end),
        DRAIN(commands_behind_a_wait_get_their_replies),
        DRAIN(a_kept_place_ends),
        DRAIN(a_late_grant_is_released),
        DRAIN(a_late_grant_with_an_id_counts),
        DRAIN(bound_grants_are_renewed_until_the_peer_ends),
        DRAIN(new_grants_are_refused),
        DRAIN(after_the_limit_grants_are_left_to_their_ttl),
        DRAIN(watches_end),
        DRAIN(peers_that_do_not_close_are_not_awaited),
        DRAIN(an_idle_daemon_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

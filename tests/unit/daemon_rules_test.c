/* SPDX-License-Identifier: Apache-2.0 */
/* The rules D1, D3 and D4 of a remote grant, through connections of a daemon. */
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

static struct daemon *served;
static struct peer *ann, *bob, *eve; /* eve only asks */

static int open_all(void **state)
{
    (void)state;
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

static void expect_nothing(struct peer *peer)
{
    for (int i = 0; i < 20; i++)
        kit_daemon_turn(served, 1);
    if (peer_has_message(peer))
        fail_msg("says %.600s", peer_message(peer));
}

/* Until the key is in this state, for up to 20 s. */
static void until_state(const char *key, const char *wanted)
{
    char command[64];
    int64_t until_ms = host_boot_ms() + 20000;
    (void)snprintf(command, sizeof command, "LOCK.STATUS %s", key);
    while (strcmp(reply_value(peer_ask(eve, command), "state"), wanted) != 0) {
        if (host_boot_ms() >= until_ms)
            fail_msg("%s does not become %s", key, wanted);
        kit_daemon_turn(served, 10);
    }
}

/* Acquires and returns the command that releases. */
static const char *acquire(struct peer *peer, const char *command, const char *key)
{
    static char release[128];
    char token[32];
    const char *reply = peer_ask(peer, command);
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    (void)snprintf(token, sizeof token, "%s", reply_value(reply, "token"));
    (void)snprintf(release, sizeof release, "LOCK.RELEASE %s %s", key, token);
    return release;
}

/* ---- D1 ---- */

static void the_end_of_the_peer_releases_bound_grants_only(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE bound ann 60000 BIND", "outcome ok");
    expect(ann, "LOCK.ACQUIRE unbound ann 60000", "outcome ok");
    expect(ann, "LOCK.ACQUIRE_ALL 2 x y ann 60000 BIND", "outcome ok");
    expect(bob, "LOCK.ACQUIRE quit bob 60000 BIND", "outcome ok");
    peer_leave(&ann);
    until_state("bound", "free");
    until_state("x", "free");
    until_state("y", "free");
    until_state("unbound", "held");
    expect(bob, "QUIT", "OK");
    until_state("quit", "free");
}

static void a_cut_connection_leaves_its_grants(void **state)
{
    (void)state;
    expect(ann, "LOCK.ACQUIRE bound ann 60000 BIND", "outcome ok");
    connection_end(ann->connection, CONNECTION_CUT);
    expect_nothing(bob);
    until_state("bound", "held");
    assert_int_equal(served->bindings.count, 0);
}

static void a_renewal_binds_again_elsewhere(void **state)
{
    char renew[128];
    (void)state;
    const char *release = acquire(ann, "LOCK.ACQUIRE k ann 60000 BIND", "k");
    (void)snprintf(renew, sizeof renew, "LOCK.RENEW%s BIND", release + strlen("LOCK.RELEASE"));
    expect(bob, renew, "outcome ok");
    peer_leave(&ann);
    expect_nothing(bob);
    until_state("k", "held");
    peer_leave(&bob);
    until_state("k", "free");
}

static void bound_grants_are_renewed_and_losses_are_pushed(void **state)
{
    (void)state;
    (void)peer_ask(ann, "HELLO 3");
    expect(ann, "LOCK.ACQUIRE k ann 3000 BIND", "outcome ok");
    expect(bob, "LOCK.ACQUIRE unbound bob 3000", "outcome ok");
    until_state("unbound", "free"); /* its TTL has passed */
    until_state("k", "held");
    expect(bob, "LOCK.BREAK k reason NOW", "outcome ok");
    expect_next(ann, ">[lock.lost {outcome lost key k");
    assert_int_equal(served->bindings.count, 0);
}

/* ---- D3 ---- */

static void each_grant_has_its_own_token(void **state)
{
    char first[32], release[128];
    (void)state;
    (void)snprintf(release, sizeof release, "%s", acquire(ann, "LOCK.ACQUIRE k ann 60000", "k"));
    (void)snprintf(first, sizeof first, "%s", strrchr(release, ' ') + 1);
    peer_send(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1");
    expect_nothing(bob);
    expect(ann, release, "outcome ok");
    const char *reply = peer_message(bob);
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    assert_true(strtoull(reply_value(reply, "token"), NULL, 10) > strtoull(first, NULL, 10));
    expect(ann, release, "outcome stale"); /* gone, and bob's is not touched */
    until_state("k", "held");
}

/* ---- D4 ---- */

static void a_repeated_id_is_the_same_grant(void **state)
{
    char token[64];
    (void)state;
    const char *reply = peer_ask(ann, "LOCK.ACQUIRE k ann 60000 ID x");
    (void)snprintf(token, sizeof token, "token %s", reply_value(reply, "token"));
    expect(ann, "LOCK.ACQUIRE k ann 60000 ID x", token);
    expect(bob, "LOCK.ACQUIRE k ann 60000 ID x", token);
    expect(bob, "LOCK.ACQUIRE k ann 60000 ID y", "outcome busy");
    expect(bob, "LOCK.ACQUIRE other ann 60000 ID x", "outcome mismatch");
    expect(bob, "LOCK.ACQUIRE k bob 60000 ID x", "outcome mismatch");
    expect(bob, "LOCK.ACQUIRE_ALL 2 k l ann 60000 ID x", "outcome mismatch");
    until_state("other", "free");
}

static void a_waiter_with_an_id_keeps_its_place(void **state)
{
    char release[128];
    (void)state;
    (void)snprintf(release, sizeof release, "%s", acquire(eve, "LOCK.ACQUIRE k eve 60000", "k"));
    peer_send(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1 ID x");
    expect_nothing(ann);
    peer_send(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1");
    expect_nothing(bob);
    peer_leave(&ann);
    ann = peer_new(served);
    peer_send(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1 ID x");
    expect_nothing(ann);
    expect(eve, release, "outcome ok");
    expect_next(ann, "outcome ok");
    expect_nothing(bob);
}

static void a_kept_place_is_passed_over(void **state)
{
    char release[128];
    (void)state;
    (void)snprintf(release, sizeof release, "%s", acquire(eve, "LOCK.ACQUIRE k eve 60000", "k"));
    peer_send(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1 ID x");
    expect_nothing(ann);
    peer_send(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1");
    expect_nothing(bob);
    peer_leave(&ann);
    expect(eve, release, "outcome ok");
    expect_next(bob, "holder bob");
}

static void a_late_grant_is_released(void **state)
{
    char release[128];
    (void)state;
    (void)snprintf(release, sizeof release, "%s", acquire(eve, "LOCK.ACQUIRE k eve 60000", "k"));
    peer_send(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1");
    expect_nothing(ann);
    peer_leave(&ann);
    expect(eve, release, "outcome ok");
    until_state("k", "free");
    assert_int_equal(served->waiters, 0);
}

static void results_of_asynchronous_waits_are_pushed(void **state)
{
    char release[128];
    (void)state;
    (void)peer_ask(ann, "HELLO 3");
    (void)peer_ask(bob, "HELLO 3");
    (void)snprintf(release, sizeof release, "%s", acquire(eve, "LOCK.ACQUIRE k eve 60000", "k"));
    expect(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1 ASYNC ID x", "{outcome waiting");
    expect(ann, "LOCK.ACQUIRE k ann 60000 WAIT -1 ASYNC ID y", "{outcome waiting");
    expect(ann, "HELLO 2", "-ERR");
    expect(ann, "LOCK.CANCEL y", "outcome ok");
    expect_next(ann, ">[lock.result y {outcome busy");
    expect(ann, "LOCK.CANCEL y", "outcome stale");
    /* another connection takes x over: the first one learns that */
    expect(bob, "LOCK.ACQUIRE k ann 60000 WAIT -1 ASYNC ID x", "{outcome waiting");
    expect_next(ann, ">[lock.result x {outcome busy");
    expect(eve, release, "outcome ok");
    expect_next(bob, ">[lock.result x {outcome ok");
    expect_nothing(ann);
}

#define RULE(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(the_end_of_the_peer_releases_bound_grants_only),
        RULE(a_cut_connection_leaves_its_grants),
        RULE(a_renewal_binds_again_elsewhere),
        RULE(bound_grants_are_renewed_and_losses_are_pushed),
        RULE(each_grant_has_its_own_token),
        RULE(a_repeated_id_is_the_same_grant),
        RULE(a_waiter_with_an_id_keeps_its_place),
        RULE(a_kept_place_is_passed_over),
        RULE(a_late_grant_is_released),
        RULE(results_of_asynchronous_waits_are_pushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

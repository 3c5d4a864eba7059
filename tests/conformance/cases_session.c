/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: the store reports which processes of a record have ended, and no others. A write that
 * names a process notifies it once, and notifies no other.
 */
#include "parties.h"

#include <string.h>

enum { QUIET_MS = 60 };

static bool is_dead(const struct store_reply *reply, uint64_t session)
{
    for (size_t i = 0; i < reply->dead_count; i++)
        if (reply->dead_sessions[i] == session)
            return true;
    return false;
}

/* Reads until the client sees the end of the session, which the store may report late. */
static const struct store_reply *expect_dead(unsigned client, const char *key, uint64_t session)
{
    int64_t until_ms = suite_now_ms() + suite_soon_ms();
    const struct store_reply *reply = ask(client, reading(key));
    while (!is_dead(reply, session) && suite_now_ms() < until_ms) {
        suite_sleep(5);
        reply = ask(client, reading(key));
    }
    EXPECT(is_dead(reply, session));
    return reply;
}

/* A grant of one client, and a waiter of another behind it. */
static const struct store_reply *write_both(const char *key, unsigned holder, unsigned waiting,
                                            bool bound)
{
    struct record *record = value_record(key, "holder");
    record->grants[0].session = client_session(holder);
    record->grants[0].bound = bound;
    struct waiter *waiter = record_add_waiter(record);
    (void)strcpy(waiter->holder, "waiter");
    (void)strcpy(waiter->request, "waiting");
    waiter->session = client_session(waiting);
    waiter->ttl_ms = record->grants[0].ttl_ms;
    const struct store_reply *reply = ask(holder, swapping(key, if_absent, value_encode(record)));
    EXPECT(reply->result == REPLY_OK);
    return reply;
}

/* Where sessions are kept alive by heartbeats, only those with bound grants have any. */
static bool only_holders_are_known(void)
{
    return (suite_bits() & STORE_RENEWS_SESSION) != 0;
}

static void the_living_are_not_called_dead(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    for (unsigned client = 0; client < clients_count(); client++) {
        const struct store_reply *reply = ask(client, reading(key));
        EXPECT(!is_dead(reply, client_session(1)) && !is_dead(reply, client_session(2)));
        reply = ask(client, swapping(key, if_absent, value_of(key, "x")));
        EXPECT(reply->result == REPLY_CONFLICT);
        EXPECT(!is_dead(reply, client_session(1)) && !is_dead(reply, client_session(2)));
    }
}

static void a_killed_process_is_reported_dead(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = client_session(1), waiting = client_session(2);
    client_kill(1);
    EXPECT(!is_dead(expect_dead(0, key, holder), waiting));
    client_kill(2);
    if (!only_holders_are_known())
        EXPECT(is_dead(expect_dead(0, key, waiting), holder));
    client_replace(1);
    client_replace(2);
    for (unsigned client = 0; client < clients_count(); client++) {
        bool holders = only_holders_are_known();
        const struct store_reply *reply = expect_dead(client, key, holders ? holder : waiting);
        const struct record *record = record_in(reply, key);
        EXPECT(record->grants[0].dead && record->waiters[0].dead == !holders);
    }
}

static void a_conflict_names_the_dead_too(void)
{
    const char *key = key_named("k");
    const struct store_reply *reply = write_both(key, 1, 2, /* bound= */ true);
    struct value standing = {.bytes = reply->bytes, .length = reply->length};
    uint64_t holder = client_session(1), revision = reply->written.revision;
    client_kill(1);
    client_replace(1);
    (void)expect_dead(0, key, holder);
    reply = ask(0, swapping(key, if_absent, value_of(key, "x")));
    expect_conflict(reply, standing, revision);
    EXPECT(is_dead(reply, holder));
}

static void a_closed_store_ends_its_session(void)
{
    const char *key = key_named("k");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = client_session(1), waiting = client_session(2);
    client_close(1);
    EXPECT(!is_dead(expect_dead(0, key, holder), waiting));
    client_open(1);
    EXPECT(is_dead(ask(1, reading(key)), holder));
    EXPECT(!is_dead(ask(0, reading(key)), client_session(1)));
}

/* The killed holder's command still runs, so no other client may be granted the key. */
static void a_command_keeps_the_session_that_it_inherited(void)
{
    const char *key = key_named("k");
    if (!clients_have_inheritors())
        suite_skip("liveness that a command can inherit");
    (void)write_both(key, 1, 2, /* bound= */ true);
    uint64_t holder = client_session(1);
    pid_t inheritor = client_inheritor(1);
    client_kill(1);
    client_replace(1);
    for (unsigned client = 0; client < clients_count(); client++)
        EXPECT(!is_dead(ask(client, reading(key)), holder));
    suite_sleep(QUIET_MS);
    EXPECT(!is_dead(ask(0, reading(key)), holder));
    inheritor_kill(inheritor);
    (void)expect_dead(0, key, holder);
}

/* Rule 11: only bound grants end with their process. */
static void only_the_bound_ends_with_its_process(void)
{
    const char *keys[2] = {key_named("unbound"), key_named("bound")};
    for (unsigned bound = 0; bound < 2; bound++)
        (void)write_both(keys[bound], 1, 2, bound == 1);
    uint64_t holder = client_session(1);
    client_kill(1);
    client_replace(1);
    for (unsigned bound = 0; bound < 2; bound++) {
        if (bound == 1 || !only_holders_are_known())
            (void)expect_dead(0, keys[bound], holder);
        struct request request = request_by(3, keys[bound], "next", VERB_ACQUIRE);
        struct verdict verdict = act(0, request);
        EXPECT(verdict.expired == bound);
        EXPECT(verdict.kind == VERDICT_WAITING); /* as the holder, or behind the first waiter */
    }
}

/* Notifications. */

/* A swap, or a delete, that names these sessions. */
static const struct store_reply *wake(unsigned client, struct store_request request,
                                      const uint64_t *sessions, size_t count)
{
    request.wake = sessions;
    request.wake_count = count;
    return ask(client, request);
}

/* A named process has queued before. */
static void queue_parties(void)
{
    const char *key = key_named("places");
    uint64_t revision = put(0, key, if_absent, value_of(key, "nobody"));
    for (unsigned client = 0; client < clients_count(); client++) {
        struct record *record = value_record(key, "nobody");
        struct waiter *waiter = record_add_waiter(record);
        (void)strcpy(waiter->holder, "one more");
        (void)strcpy(waiter->request, "queued");
        waiter->session = client_session(client);
        waiter->ttl_ms = 1000;
        revision = put(client, key, if_revision(revision), value_encode(record));
    }
}

static void forget_notices(void)
{
    queue_parties();
    for (unsigned client = 0; client < clients_count(); client++)
        (void)client_notices(client, /* wanted= */ 1, QUIET_MS);
}

static void expect_woken(unsigned client, const char *key)
{
    struct client_replies client_replies = client_notices(client, /* wanted= */ 1, suite_soon_ms());
    EXPECT(client_replies.count == 1);
    EXPECT(strcmp(client_replies.list[0].reply.key, key) == 0);
    EXPECT(client_notices(client, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void expect_asleep(unsigned client)
{
    EXPECT(client_notices(client, /* wanted= */ 1, QUIET_MS).count == 0);
}

static void a_named_session_is_woken_once(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {client_session(1)};
    forget_notices();
    const struct store_reply *reply =
        wake(0, swapping(key, if_absent, value_of(key, "one")), sessions, 1);
    EXPECT(reply->result == REPLY_OK);
    expect_woken(1, key);
    for (unsigned client = 0; client < clients_count(); client++)
        if (client != 1)
            expect_asleep(client);
    struct condition condition = if_revision(reply->written.revision);
    reply = wake(2, deleting(key, condition), sessions, 1);
    EXPECT(reply->result == REPLY_OK);
    expect_woken(1, key);
    expect_asleep(3);
}

static void several_are_named_and_woken(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {client_session(1), client_session(3)};
    forget_notices();
    EXPECT(wake(0, swapping(key, if_absent, value_of(key, "one")), sessions, 2)->result ==
           REPLY_OK);
    expect_woken(1, key);
    expect_woken(3, key);
    expect_asleep(2);
}

static void a_refused_write_wakes_nobody(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {client_session(1)};
    struct value one = value_of(key, "one");
    (void)put(0, key, if_absent, one);
    forget_notices();
    EXPECT(wake(0, swapping(key, if_absent, one), sessions, 1)->result == REPLY_CONFLICT);
    expect_asleep(1);
}

/* A write that names an ended session succeeds and notifies the others. */
static void an_ended_session_cannot_be_woken(void)
{
    const char *key = key_named("k");
    uint64_t sessions[] = {client_session(1), client_session(2)};
    forget_notices();
    client_kill(1);
    EXPECT(wake(0, swapping(key, if_absent, value_of(key, "one")), sessions, 2)->result ==
           REPLY_OK);
    expect_woken(2, key);
    client_replace(1);
    expect_asleep(1);
}

/* The notification carries the record as written; after a delete, none. */
static void a_named_session_receives_the_record(void)
{
    const char *key = key_named("k");
    struct value one = value_of(key, "one");
    uint64_t sessions[] = {client_session(1)};
    forget_notices();
    struct stamp written = wake(0, swapping(key, if_absent, one), sessions, 1)->written;
    struct client_replies client_replies = client_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(client_replies.count == 1);
    const struct store_reply *notify = &client_replies.list[0].reply;
    EXPECT(strcmp(notify->key, key) == 0);
    EXPECT(notify->result == REPLY_OK && has_value(notify, one));
    EXPECT(notify->written.revision == written.revision && notify->written.epoch == written.epoch);
    EXPECT(notify->written.time_ms == written.time_ms && notify->now_ms == written.time_ms);
    (void)wake(0, deleting(key, if_revision(written.revision)), sessions, 1);
    client_replies = client_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(client_replies.count == 1 && !client_replies.list[0].reply.present);
}

/* The notification may omit the record, but must not carry a part of it. */
static void a_long_record_wakes_too(void)
{
    const char *key = key_named("k");
    struct value most = value_of_size(key, RECORD_MAX);
    uint64_t sessions[] = {client_session(1)};
    forget_notices();
    EXPECT(wake(0, swapping(key, if_absent, most), sessions, 1)->result == REPLY_OK);
    struct client_replies client_replies = client_notices(1, /* wanted= */ 1, suite_soon_ms());
    EXPECT(client_replies.count == 1 && strcmp(client_replies.list[0].reply.key, key) == 0);
    EXPECT(!client_replies.list[0].reply.present ||
           client_replies.list[0].reply.length == most.length);
}

static const struct test_case test_cases[] = {
    {"session: the living are not called dead", the_living_are_not_called_dead, STORE_SESSIONS,
     false},
    {"session: it ends when its store is closed", a_closed_store_ends_its_session, STORE_SESSIONS,
     false},
    {"session: that of a killed process is reported dead", a_killed_process_is_reported_dead,
     STORE_SESSIONS, true},
    {"session: a conflict names the dead too", a_conflict_names_the_dead_too, STORE_SESSIONS, true},
    {"session: a command keeps the one that it inherited",
     a_command_keeps_the_session_that_it_inherited, STORE_SESSIONS, true},
    {"session: only the bound ends with its process (rule 11)",
     only_the_bound_ends_with_its_process, STORE_SESSIONS, true},
    {"wake: a named session is woken once", a_named_session_is_woken_once,
     STORE_SESSIONS | STORE_WATCHES | STORE_DELETES, false},
    {"wake: several are named and woken", several_are_named_and_woken,
     STORE_SESSIONS | STORE_WATCHES, false},
    {"wake: a refused write wakes nobody", a_refused_write_wakes_nobody,
     STORE_SESSIONS | STORE_WATCHES, false},
    {"wake: an ended session cannot be woken", an_ended_session_cannot_be_woken,
     STORE_SESSIONS | STORE_WATCHES, true},
    {"wake: a named session receives the record", a_named_session_receives_the_record,
     STORE_TELLS | STORE_DELETES, false},
    {"wake: a long record wakes too", a_long_record_wakes_too, STORE_TELLS, false},
};

const struct test_group session_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};

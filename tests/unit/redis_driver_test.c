/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis driver against a scripted server, including behaviour that no real one shows on demand.
 * All in one thread: the test runs driver and server in turn until the expected event.
 */
#include "redis_kit.h"

#include "wire/record_codec.h"

#include <stdio.h>
#include <string.h>

/* ---- commands ---- */

static const char *unknown_with_words(size_t connection, const char *command)
{
    (void)connection, (void)command;
    return "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' "
           "'the-password'\r\n";
}

static void a_refusal_shows_no_password(void **state)
{
    (void)state;
    server.reply = unknown_with_words;
    open_store("?protocol=3");
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "unknown command 'HELLO'"));
    assert_null(strstr(heard.why, "the-p"));
}

static const char *script_says;

static const char *as_if_written(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "SCAN"))
        return "*2\r\n$1\r\n0\r\n*1\r\n$23\r\nleasehold:{@AML}:lock:k\r\n";
    return begins(command, "EVALSHA") ? script_says : usual(command);
}

static void only_what_the_script_says_is_believed(void **state)
{
    static const char *const wrong[] = {"$2\r\n5 \r\n", "$3\r\n5 6\r\n", "$5\r\n5 6 7\r\n"};
    unsigned count = 0;
    (void)state;
    server.reply = as_if_written;
    open_store("");
    for (; count < sizeof wrong / sizeof wrong[0]; count++) {
        script_says = wrong[count];
        submit(VERB_STORE_DELETE, "k", 5, NULL);
        until_heard(count + 1);
        assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    }
    script_says = "$16\r\n5 1700000000000 \r\n"; /* a write's reply to a read */
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(count + 1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    submit(VERB_STORE_LIST, "", 0, NULL);
    until_heard(count + 2);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
}

static const char *nearly_over(size_t connection, const char *command)
{
    (void)connection;
    return begins(command, "EVALSHA") ? "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n"
                                        "$3\r\nhim\r\n:0\r\n:9\r\n"
                                      : usual(command);
}

static void a_stranger_of_the_last_millisecond_is_not_shown_for_ever(void **state)
{
    struct codec_error error;
    (void)state;
    server.reply = nearly_over;
    open_store("");
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_OK);
    assert_int_equal(record_decode(heard.bytes, heard.reply.length, &record, &error), DECODE_OK);
    assert_int_equal(record.grant_count, 1);
    assert_int_equal(record.grants[0].ttl_ms, 1);
}

/* Ours is at revision 9, the first of that write, and a foreign value has replaced it. */
static const char *overwritten(size_t connection, const char *command)
{
    static char words[2 * RECORD_MAX], bytes[RECORD_MAX];
    (void)connection;
    if (!begins(command, "EVALSHA"))
        return usual(command);
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    (void)snprintf(grant->holder, sizeof grant->holder, "me");
    (void)snprintf(grant->request, sizeof grant->request, "r");
    grant->session = 7;
    grant->ttl_ms = 1000;
    bytes[record_encode(&record, bytes, sizeof bytes)] = '\0';
    (void)snprintf(words, sizeof words,
                   "*6\r\n:%d\r\n:1700000000000\r\n$%zu\r\n9 1700000000000 %s\r\n"
                   "$3\r\nhim\r\n:500\r\n:9\r\n",
                   strstr(command, " read") != NULL, strlen("9 1700000000000 ") + strlen(bytes),
                   bytes);
    return words;
}

static void nobody_renews_a_stranger(void **state)
{
    static char bytes[RECORD_MAX + 1];
    struct codec_error error;
    const struct stamp ours = {.revision = 9};
    (void)state;
    server.reply = overwritten;
    open_store("");
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(record_decode(heard.bytes, heard.reply.length, &record, &error), DECODE_OK);
    assert_string_equal(record.grants[0].holder, "him");
    assert_null(record_grant_by_token(&record, token_of(&ours, /* n= */ 0)));
    record.grants[0].session = 7; /* as a renewal by a token receives it */
    bytes[record_encode(&record, bytes, sizeof bytes)] = '\0';
    submit(VERB_STORE_SWAP, "k", 9, bytes);
    until_heard(2);
    assert_int_equal(heard.reply.result, REPLY_DENIED);
}

/* ---- pubsub ---- */

static bool mute;

/* RESP2: pubsub is the second connection. */
static const char *old_server(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "HELLO"))
        return "-ERR unknown command\r\n";
    if (begins(command, "AUTH"))
        return "+OK\r\n";
    if (begins(command, "SUBSCRIBE"))
        return mute ? NULL : "*3\r\n$9\r\nsubscribe\r\n$1\r\nw\r\n:1\r\n";
    return "$16\r\n5 1700000000000 \r\n";
}

static void a_lost_ear_comes_back_by_itself(void **state)
{
    (void)state;
    mute = false;
    server.reply = old_server;
    open_store("");
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    until_heard(1);
    assert_int_equal(times_said("SUBSCRIBE"), 1);
    hang_up(1);
    turn_for(300);
    assert_int_equal(times_said("SUBSCRIBE"), 2);
}

static void an_ear_that_hangs_is_given_up(void **state)
{
    (void)state;
    mute = true;
    server.reply = old_server;
    open_store("");
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    mute = false;
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    until_heard(2);
    assert_int_equal(heard.reply.result, REPLY_OK);
}

static int revision_seen;

static const char *with_changes(size_t connection, const char *command)
{
    static char words[200];
    (void)connection;
    if (!begins(command, "EVALSHA"))
        return usual(command);
    (void)snprintf(words, sizeof words,
                   "*6\r\n:1\r\n:1700000000000\r\n$7\r\n%03d 1 x\r\n_\r\n:-1\r\n:0\r\n",
                   revision_seen);
    return words;
}

static void tell_change(size_t connection)
{
    char words[200], message[100];
    (void)snprintf(message, sizeof message, "%d leasehold:{@AML}:lock:k", revision_seen);
    (void)snprintf(words, sizeof words,
                   ">3\r\n$7\r\nmessage\r\n$19\r\nleasehold:0:changed\r\n$%zu\r\n%s\r\n",
                   strlen(message), message);
    send_to(connection, words);
}

/* A server that came back without its last writes has a lower counter. */
static void a_message_before_a_loss_hides_nothing_after_it(void **state)
{
    (void)state;
    server.reply = with_changes;
    open_store("");
    submit(VERB_STORE_WATCH, "", 0, NULL);
    until_heard(1);
    revision_seen = 100;
    tell_change(0);
    until_heard(2);
    assert_int_equal(heard.reply.written.revision, 100);
    hang_up(0);
    until_heard(3);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    submit(VERB_STORE_WATCH, "", 0, NULL);
    until_heard(4);
    revision_seen = 90;
    tell_change(server.connection_count - 1);
    until_heard(5);
    assert_int_equal(heard.reply.written.revision, 90);
}

/* ---- clusters ---- */

static const char *clustered(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "HELLO"))
        return "%1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n";
    if (begins(command, "CLUSTER"))
        return "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n";
    if (begins(command, "SCAN"))
        return "*2\r\n$1\r\n0\r\n*0\r\n";
    return begins(command, "SUBSCRIBE") && mute ? NULL : as_if_written(connection, command);
}

static void half_a_cluster_is_not_listed_as_all(void **state)
{
    (void)state;
    server.reply = clustered;
    open_store("");
    submit(VERB_STORE_LIST, "", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_DENIED);
}

static void in_a_cluster_it_listens_before_it_waits(void **state)
{
    (void)state;
    mute = true;
    server.reply = clustered;
    open_store("");
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    assert_true(until_said("SUBSCRIBE"));
    turn_for(100);
    assert_int_equal(times_said("EVALSHA"), 0);
    send_to(0, ">3\r\n$9\r\nsubscribe\r\n$1\r\nw\r\n:1\r\n");
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_OK);
}

/* Each would grant the same lock. */
static void two_servers_that_know_nothing_of_each_other_are_refused(void **state)
{
    (void)state;
    server.reply = as_if_written;
    open_store(",localhost");
    submit(VERB_STORE_DELETE, "k", 4, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_DENIED);
    assert_non_null(strstr(heard.why, "cluster"));
    assert_int_equal(times_said("EVALSHA"), 0);
}

static const char *demoted(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "SET"))
        return "-READONLY You can't write against a read only replica.\r\n";
    if (begins(command, "GET"))
        return "_\r\n";
    if (begins(command, "TIME"))
        return "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
    if (begins(command, "EXEC"))
        return "*0\r\n";
    return begins(command, "HELLO") ? usual(command) : ":5\r\n";
}

static void a_replica_is_left_also_without_scripts(void **state)
{
    (void)state;
    server.reply = demoted;
    open_store("?scripts=no");
    submit(VERB_STORE_DELETE, "k", 4, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    assert_int_equal(redis->main.conn.state, CONN_IDLE);
}

/* ---- deadlines ---- */

static const char *in_silence(size_t connection, const char *command)
{
    (void)connection;
    return usual(command);
}

static void a_list_has_time_for_each_of_its_steps(void **state)
{
    (void)state;
    server.reply = in_silence;
    open_store("");
    submit(VERB_STORE_LIST, "", 0, NULL);
    assert_true(until_said("SCAN"));
    turn_for(TIMEOUT * 3 / 5);
    send_to(0, "*2\r\n$1\r\n0\r\n*1\r\n$23\r\nleasehold:{@AML}:lock:k\r\n");
    assert_true(until_said("EVALSHA"));
    turn_for(TIMEOUT * 3 / 5);
    send_to(0, "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n_\r\n:-1\r\n:0\r\n");
    for (unsigned pattern = 2; pattern <= 3; pattern++) { /* the plain names of both families */
        turn_for(TIMEOUT * 3 / 5);
        assert_int_equal(times_said("SCAN"), pattern);
        send_to(0, "*2\r\n$1\r\n0\r\n*0\r\n");
    }
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_OK);
}

static const char *sentinel(size_t connection, const char *command)
{
    (void)connection;
    return begins(command, "SENTINEL") ? "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n" : usual(command);
}

/* The request for the master was cancelled while the Sentinel was still connecting. */
static void a_late_sentinel_is_no_surprise(void **state)
{
    (void)state;
    server.reply = sentinel;
    open_store("?sentinel=m");
    submit(VERB_STORE_READ, "k", 0, NULL);
    redis_flush(redis);
    assert_int_equal(redis->sentinel.state, CONN_OPENING);
    assert_null(redis->sentinel.calls.first);
    conn_abort(&redis->main.conn, REPLY_TROUBLE, "as its deadline would");
    assert_int_equal(heard.count, 1);
    turn_for(200);
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)
    const struct CMUnitTest tests[] = {
        CASE(a_refusal_shows_no_password),
        CASE(only_what_the_script_says_is_believed),
        CASE(a_stranger_of_the_last_millisecond_is_not_shown_for_ever),
        CASE(nobody_renews_a_stranger),
        CASE(a_lost_ear_comes_back_by_itself),
        CASE(an_ear_that_hangs_is_given_up),
        CASE(a_message_before_a_loss_hides_nothing_after_it),
        CASE(half_a_cluster_is_not_listed_as_all),
        CASE(in_a_cluster_it_listens_before_it_waits),
        CASE(two_servers_that_know_nothing_of_each_other_are_refused),
        CASE(a_replica_is_left_also_without_scripts),
        CASE(a_list_has_time_for_each_of_its_steps),
        CASE(a_late_sentinel_is_no_surprise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

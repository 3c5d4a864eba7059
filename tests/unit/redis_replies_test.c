/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies that no real Redis gives: numbers out of bounds, values of the wrong type, messages
 * without a subscription. Each ends in a reply of the driver, never in an assert or a NULL pointer.
 */
#include "redis_kit.h"

#include "store/translate.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One command gets this reply; all others get a plausible one. */
static struct {
    const char *command, *reply;
} odd;

static bool old_server; /* without HELLO, so RESP2 */

static const char *record_reply(void)
{
    static char words[RECORD_MAX + 64];
    char bytes[RECORD_MAX + 1];
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    (void)snprintf(grant->holder, sizeof grant->holder, "me");
    (void)snprintf(grant->request, sizeof grant->request, "r");
    grant->session = 7;
    grant->ttl_ms = 1000;
    bytes[record_encode(&record, bytes, sizeof bytes)] = '\0';
    (void)snprintf(words, sizeof words, "$%zu\r\n9 1700000000000 %s\r\n",
                   strlen("9 1700000000000 ") + strlen(bytes), bytes);
    return words;
}

static const char *plausible(const char *command)
{
    static const struct {
        const char *command, *reply;
    } replies[] = {
        {"TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"},
        {"GET lock", "_\r\n"},
        {"PTTL", ":-2\r\n"},
        {"INCR", ":10\r\n"},
        {"SCAN", "*2\r\n$1\r\n0\r\n*1\r\n$23\r\nleasehold:{@AML}:lock:k\r\n"},
        {"EVALSHA", "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n_\r\n:-1\r\n:0\r\n"},
        {"CLUSTER", "-ERR This instance has cluster support disabled\r\n"},
    };
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++)
        if (begins(command, replies[i].command))
            return replies[i].reply;
    if (begins(command, "GET"))
        return record_reply();
    if (begins(command, "EXEC"))
        return "*0\r\n";
    return usual(command) != NULL ? usual(command) : "+OK\r\n";
}

static const char *reply_oddly(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, odd.command))
        return odd.reply;
    if (old_server && begins(command, "HELLO"))
        return "-ERR unknown command\r\n";
    if (old_server && begins(command, "SUBSCRIBE"))
        return "*3\r\n$9\r\nsubscribe\r\n$1\r\nw\r\n:1\r\n";
    return plausible(command);
}

/* The core's reading of the last reply. */
static enum reply_status judged(void)
{
    const char *why = "";
    struct event event = {0};
    struct store_reply reply = heard.reply;
    if (reply.present)
        reply.bytes = heard.bytes;
    translate_reply(&reply, "k", &record, &event, &why);
    return event.reply;
}

static void ask(enum store_verb verb)
{
    struct store_request request = {.verb = verb, .key = "k", .session = 7};
    if (verb == VERB_STORE_LIST || verb == VERB_STORE_WATCH)
        request.key = "";
    request.condition = (struct condition){.kind = IF_GRANT, .token = (9 << 10)};
    if (verb == VERB_STORE_SWAP) {
        request.condition = (struct condition){.kind = IF_REVISION, .revision = 9};
        request.bytes = "{}";
        request.length = 2;
    }
    submit_request(&request);
}

/* ---- foreign locks ---- */

static const char *with_foreign_lock(size_t connection, const char *command)
{
    (void)connection;
    return begins(command, "EVALSHA") ? odd.reply : usual(command);
}

static void a_foreign_lock_beside_a_wrong_count_is_trouble(void **state)
{
    static const char *const counts[] = {
        "0", "-5", "35184372088832", "9007199254740992", "-9223372036854775808",
    };
    static const char *const times[] = {"-1", "9223372036854775807", "-9223372036854775808"};
    char reply[256];
    unsigned count = 0;
    (void)state;
    server.reply = with_foreign_lock;
    odd.reply = reply;
    open_store("");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        (void)snprintf(reply, sizeof reply,
                       "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n$1\r\nx\r\n:600000\r\n:%s\r\n",
                       counts[i]);
        submit(VERB_STORE_READ, "k", 0, NULL);
        until_heard(++count);
        assert_int_equal(judged(), REPLY_TROUBLE);
        assert_non_null(strstr(heard.why, "leasehold:{@AML}"));
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        (void)snprintf(reply, sizeof reply,
                       "*6\r\n:1\r\n:%s\r\n$0\r\n\r\n$1\r\nx\r\n:600000\r\n:9\r\n", times[i]);
        submit(VERB_STORE_READ, "k", 0, NULL);
        until_heard(++count);
        assert_int_equal(judged(), REPLY_TROUBLE);
    }
}

/* A foreign lock that ends and reappears between our read and our write is a conflict. Only a write
 * that would remove a known foreign lock is denied. */
static void a_foreign_lock_that_comes_again_is_a_conflict(void **state)
{
    static const char foreign[] =
        "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n$1\r\nx\r\n:600000\r\n:9\r\n";
    static const char gone[] = "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n_\r\n:-2\r\n:9\r\n";
    static const char refused[] =
        "*6\r\n:0\r\n:1700000000000\r\n$0\r\n\r\n$1\r\nx\r\n:600000\r\n:9\r\n";
    (void)state;
    server.reply = with_foreign_lock;
    open_store("");
    odd.reply = foreign;
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.written.revision, 9);
    odd.reply = refused;
    submit(VERB_STORE_DELETE, "k", 9, NULL);
    until_heard(2);
    assert_int_equal(heard.reply.result, REPLY_DENIED);
    odd.reply = foreign;
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(3);
    odd.reply = gone;
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(4);
    odd.reply = refused;
    submit(VERB_STORE_DELETE, "k", 9, NULL);
    until_heard(5);
    assert_int_equal(heard.reply.result, REPLY_CONFLICT);
}

static void a_foreign_lock_beside_a_record_out_of_bounds_is_trouble(void **state)
{
    static const char *const stamps[] = {"0 1", "9007199254740993 1", "9 999999999999999"};
    char reply[RECORD_MAX + 256], bytes[RECORD_MAX + 1];
    unsigned count = 0;
    (void)state;
    record_init(&record, "k");
    bytes[record_encode(&record, bytes, sizeof bytes)] = '\0';
    server.reply = with_foreign_lock;
    odd.reply = reply;
    open_store("");
    for (size_t i = 0; i < sizeof stamps / sizeof stamps[0]; i++) {
        (void)snprintf(reply, sizeof reply,
                       "*6\r\n:1\r\n:1700000000000\r\n$%zu\r\n%s %s\r\n$1\r\nx\r\n:600000\r\n"
                       ":9\r\n",
                       strlen(stamps[i]) + 1 + strlen(bytes), stamps[i], bytes);
        submit(VERB_STORE_READ, "k", 0, NULL);
        until_heard(++count);
        if (strcmp(stamps[i], "9 999999999999999") != 0) /* that is a time */
            assert_int_equal(judged(), REPLY_TROUBLE);
    }
}

/* ---- without scripts ---- */

static void an_unasked_subscription_is_trouble(void **state)
{
    static const char *const commands[] = {"TIME", "GET", "INCR", "MULTI", "EXEC", "HELLO"};
    static const enum store_verb verbs[] = {VERB_STORE_READ, VERB_STORE_DELETE};
    (void)state;
    server.reply = reply_oddly;
    odd.reply = ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        for (size_t j = 0; j < sizeof verbs / sizeof verbs[0]; j++) {
            bool used = verbs[j] != VERB_STORE_READ || commands[i][0] != 'I';
            odd.command = commands[i];
            heard.count = 0;
            open_store("?scripts=no");
            ask(verbs[j]);
            until_heard(1);
            if (used)
                assert_int_equal(heard.reply.result, REPLY_TROUBLE);
            close_store();
        }
    open_store("");
}

/* Each of these is not a reply of that command. */
static void numbers_out_of_bounds_are_trouble_without_scripts(void **state)
{
    static const struct {
        const char *command, *reply;
    } cases[] = {
        {"TIME", "*2\r\n:1700000000\r\n:0\r\n"},
        {"TIME", "*2\r\n$20\r\n99999999999999999999\r\n$1\r\n0\r\n"},
        {"TIME", "*2\r\n$-1\r\n$-1\r\n"},
        {"TIME", "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n"},
        {"TIME", "*0\r\n"},
        {"TIME", "_\r\n"},
        {"TIME", "+1700000000\r\n"},
        {"INCR", ":0\r\n"},
        {"INCR", ":-5\r\n"},
        {"INCR", ":9007199254740992\r\n"},
        {"INCR", "+10\r\n"},
        {"GET leasehold", "*0\r\n"},
        {"GET leasehold", ":5\r\n"},
        {"GET leasehold", "$0\r\n\r\n"},
        {"GET leasehold", "$20\r\n9007199254740993 1 {\r\n"},
        {"PTTL", "+x\r\n"},
        {"EXEC", ":1\r\n"},
        {"EXEC", "+OK\r\n"},
    };
    (void)state;
    server.reply = reply_oddly;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        odd.command = cases[i].command;
        odd.reply = cases[i].reply;
        heard.count = 0;
        open_store("?scripts=no");
        ask(VERB_STORE_DELETE);
        until_heard(1);
        if (heard.reply.result != REPLY_TROUBLE)
            print_error("%s: %s", odd.command, odd.reply);
        assert_int_equal(heard.reply.result, REPLY_TROUBLE);
        close_store();
    }
    open_store("");
}

/* ---- the script ---- */

/* A write whose reply shows another record would be taken for a grant of ours. */
static void a_write_is_not_answered_with_what_somebody_else_wrote(void **state)
{
    (void)state;
    server.reply = with_foreign_lock;
    odd.reply = "*6\r\n:1\r\n:1700000000000\r\n$0\r\n\r\n_\r\n:-1\r\n:0\r\n";
    open_store("");
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    submit(VERB_STORE_DELETE, "k", 4, NULL);
    until_heard(2);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    odd.reply = "*6\r\n:0\r\n:1700000000000\r\n$0\r\n\r\n_\r\n:-1\r\n:0\r\n";
    submit(VERB_STORE_READ, "k", 0, NULL); /* which has no condition */
    until_heard(3);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    odd.reply = "$16\r\n5 1700000000000 \r\n";
    submit(VERB_STORE_READ, "k", 0, NULL); /* which writes nothing */
    until_heard(4);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
}

static void an_error_is_shown_without_control_characters(void **state)
{
    (void)state;
    server.reply = with_foreign_lock;
    odd.reply = "-ERR red \033[31m and \xff\r\n";
    open_store("");
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "ERR red ?[31m and ?"));
}

/* ---- revisions ---- */

static const char *has_a_foreign_lock(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "GET lock:k"))
        return "$1\r\nx\r\n";
    if (begins(command, "GET leasehold:{@AML}:lock:k"))
        return "_\r\n";
    if (begins(command, "GET leasehold:{@AML}"))
        return "$14\r\n35184372088932\r\n"; /* 2^45 + 100 */
    return plausible(command);
}

static void a_foreign_lock_has_the_revision_of_the_counter(void **state)
{
    (void)state;
    server.reply = has_a_foreign_lock;
    open_store("?scripts=no");
    submit(VERB_STORE_READ, "k", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_OK);
    assert_int_equal(heard.reply.written.epoch, 1);
    assert_int_equal(heard.reply.written.revision, 100);
}

/* ---- lists ---- */

static const char *scans_without_end(size_t connection, const char *command)
{
    static char words[64];
    static unsigned cursor;
    (void)connection;
    if (!begins(command, "SCAN"))
        return plausible(command);
    (void)snprintf(words, sizeof words, "*2\r\n$8\r\n%08u\r\n*0\r\n", ++cursor);
    return words;
}

static void a_list_without_end_is_trouble(void **state)
{
    (void)state;
    timeout_ms = 100;
    server.reply = scans_without_end;
    open_store("");
    submit(VERB_STORE_LIST, "", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "SCAN"));
    assert_true(until_said("COUNT 16000"));
}

static const char *scans_other_names_without_end(size_t connection, const char *command)
{
    static char words[96];
    static unsigned cursor;
    (void)connection;
    if (!begins(command, "SCAN"))
        return plausible(command);
    cursor++;
    (void)snprintf(words, sizeof words, "*2\r\n$8\r\n%08u\r\n*1\r\n$13\r\nlock:%08u\r\n", cursor,
                   cursor);
    return words;
}

/* The names of other programs do not extend the time, nor count as reported keys. */
static void a_list_of_other_names_without_end_is_trouble(void **state)
{
    (void)state;
    timeout_ms = 100;
    server.reply = scans_other_names_without_end;
    open_store("");
    submit(VERB_STORE_LIST, "", 0, NULL);
    until_heard(1);
    assert_int_equal(heard.reply.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "SCAN continues"));
}

/* ---- two connections ---- */

static unsigned hellos;

/* RESP2 at first, RESP3 from then on. */
static const char *renewed_server(size_t connection, const char *command)
{
    (void)connection;
    if (begins(command, "HELLO") && hellos++ == 0)
        return "-ERR unknown command\r\n";
    if (begins(command, "SUBSCRIBE"))
        return NULL;
    return begins(command, "EVALSHA") ? "$16\r\n5 1700000000000 \r\n" : plausible(command);
}

/* A subscription in flight on one connection is not sent on another: a call is in one queue. */
static void a_server_that_becomes_newer_is_heard_on_one_connection(void **state)
{
    (void)state;
    hellos = 0;
    server.reply = renewed_server;
    open_store("");
    submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
    assert_true(until_said("SUBSCRIBE"));
    for (size_t i = 0; i < 3; i++) { /* each time the newest connection but the first pubsub one */
        size_t newest = server.connection_count - 1;
        hang_up(i == 0 ? 0 : newest);
        heard.count = 0;
        submit(VERB_STORE_SWAP, "k", 4, with_a_waiter());
        until_heard(1);
        turn_for(100);
    }
    assert_ptr_equal(redis->pubsub.calls.first, NULL);
    assert_int_equal(redis->pubsub.state, CONN_IDLE);
}

/* ---- everything ---- */

static const char *const odd_replies[] = {
    "+\r\n",
    "+OK\r\n",
    "-\r\n",
    "-ERR\r\n",
    "-MOVED\r\n",
    "-MOVED 99999 x:1\r\n",
    "-MOVED 1 :\r\n",
    "-MOVED 1 x:99999\r\n",
    "-ASK 1 \r\n",
    "-NOSCRIPT\r\n",
    "-WRONGTYPE \033[31m\r\n",
    ":0\r\n",
    ":-9223372036854775808\r\n",
    ":9223372036854775807\r\n",
    "_\r\n",
    "#t\r\n",
    ",nan\r\n",
    "(99999999999999999999999\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "$16\r\n0 1700000000000 \r\n",
    "$24\r\n999999999999999 9999999 \r\n",
    "=4\r\ntxt:\r\n",
    "!0\r\n\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n_\r\n",
    "*2\r\n_\r\n_\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*2\r\n*0\r\n*0\r\n",
    "*2\r\n$1\r\n0\r\n$1\r\n0\r\n",
    "*2\r\n$1\r\n5\r\n*1\r\n:7\r\n",
    "*4\r\n_\r\n_\r\n_\r\n_\r\n",
    "*4\r\n-ERR\r\n-ERR\r\n-ERR\r\n-ERR\r\n",
    "*6\r\n:1\r\n:1\r\n_\r\n_\r\n_\r\n_\r\n",
    "*6\r\n:1\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n:-1\r\n",
    "*6\r\n:1\r\n:1\r\n$3\r\n1 1\r\n_\r\n:1\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n_\r\n:1\r\n",
    "*1\r\n*3\r\n:-5\r\n:99999\r\n*2\r\n_\r\n:1\r\n",
    "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$3\r\n\033[3\r\n:99999\r\n",
    "%0\r\n",
    "%1\r\n*0\r\n_\r\n",
    "~0\r\n",
    ">0\r\n",
    ">1\r\n_\r\n",
    ">3\r\n$9\r\nsubscribe\r\n_\r\n_\r\n",
    ">3\r\n$7\r\nmessage\r\n_\r\n_\r\n",
    ">3\r\n$7\r\nmessage\r\n$19\r\nleasehold:0:changed\r\n$0\r\n\r\n",
    ">1\r\n$10\r\ninvalidate\r\n",
    "|0\r\n+OK\r\n",
    "|1\r\n_\r\n_\r\n+OK\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n_\r\n",
    "$99999999999\r\n",
    "*99999999\r\n",
    "x\r\n",
    "\r\n",
    "+OK\r\n+OK\r\n+OK\r\n",
};

static void try_all(const char *options, const char *const *commands, size_t count)
{
    static const enum store_verb all[] = {VERB_STORE_SWAP, VERB_STORE_READ, VERB_STORE_LIST,
                                          VERB_STORE_DELETE};
    size_t verbs = options[0] != '\0' ? 1 : sizeof all / sizeof all[0];
    server.reply = reply_oddly;
    timeout_ms = 20;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof odd_replies / sizeof odd_replies[0]; j++)
            for (size_t k = 0; k < verbs; k++) {
                odd.command = commands[i];
                odd.reply = odd_replies[j];
                heard.count = 0;
                open_store(options);
                ask(all[k]);
                until_heard(1);
                (void)judged();
                close_store();
            }
}

static void every_odd_reply_ends_in_an_answer(void **state)
{
    static const char *const with_script[] = {"HELLO", "EVALSHA", "SCAN"};
    (void)state;
    try_all("", with_script, sizeof with_script / sizeof with_script[0]);
    open_store("");
}

static void every_odd_reply_ends_in_an_answer_without_scripts(void **state)
{
    static const char *const commands[] = {"TIME", "GET leasehold", "GET lock", "PTTL",
                                           "INCR", "SET",           "MULTI",    "EXEC"};
    (void)state;
    try_all("?scripts=no", commands, sizeof commands / sizeof commands[0]);
    open_store("");
}

static void every_odd_reply_ends_in_an_answer_on_an_old_server(void **state)
{
    static const char *const commands[] = {"AUTH", "CLUSTER"};
    (void)state;
    old_server = true;
    try_all("", commands, sizeof commands / sizeof commands[0]);
    old_server = false;
    open_store("");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)
    const struct CMUnitTest tests[] = {
        CASE(a_foreign_lock_beside_a_wrong_count_is_trouble),
        CASE(a_foreign_lock_that_comes_again_is_a_conflict),
        CASE(a_foreign_lock_beside_a_record_out_of_bounds_is_trouble),
        CASE(an_unasked_subscription_is_trouble),
        CASE(numbers_out_of_bounds_are_trouble_without_scripts),
        CASE(a_write_is_not_answered_with_what_somebody_else_wrote),
        CASE(an_error_is_shown_without_control_characters),
        CASE(a_foreign_lock_has_the_revision_of_the_counter),
        CASE(a_list_without_end_is_trouble),
        CASE(a_list_of_other_names_without_end_is_trouble),
        CASE(a_server_that_becomes_newer_is_heard_on_one_connection),
        CASE(every_odd_reply_ends_in_an_answer),
        CASE(every_odd_reply_ends_in_an_answer_without_scripts),
        CASE(every_odd_reply_ends_in_an_answer_on_an_old_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

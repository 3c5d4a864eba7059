/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a daemon: pages, watches, order of replies, and their ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MOST = 256 * 1024 };

static struct daemon *served;
static struct peer *peer;

static int open_all(void **state)
{
    (void)state;
    served = kit_daemon_new();
    peer = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    if (peer != NULL)
        peer_free(peer);
    daemon_free(served);
    return 0;
}

static void expect(const char *command, const char *part)
{
    const char *reply = peer_ask(peer, command);
    if (strstr(reply, part) == NULL)
        fail_msg("%s\n  says %.600s\n  not  %s", command, reply, part);
}

/* ---- pages ---- */

/* Acquires that many keys, in an order that is not that of their names. */
static void fill(int count, const char *meta)
{
    char command[2048];
    for (int i = 0; i < count; i++) {
        (void)snprintf(command, sizeof command, "LOCK.ACQUIRE key-%04d ann 60000 META %s",
                       i * 7 % count, meta);
        expect(command, "outcome ok");
    }
}

/* Reads all pages; each key must come once, in order. Returns their number. */
static int read_pages(const char *words, int count, size_t bytes_most)
{
    char command[1024], cursor[600] = "";
    int pages = 0, seen = 0;
    do {
        (void)snprintf(command, sizeof command, "LOCK.LIST key-%s%s %s",
                       cursor[0] != '\0' ? " AFTER " : "", cursor, words);
        if (words[0] == '\0')
            command[strlen(command) - 1] = '\0';
        const char *page = peer_ask(peer, command);
        assert_true(strlen(page) <= bytes_most);
        assert_string_equal(reply_value(page, "outcome"), "ok");
        for (const char *at = page; (at = strstr(at, "{key key-")) != NULL; at++)
            assert_int_equal(strtol(at + 9, NULL, 10), seen++);
        (void)snprintf(cursor, sizeof cursor, "%s", reply_value(page, "next"));
        assert_true(++pages <= count + 1);
    } while (strcmp(cursor, "nil") != 0);
    assert_int_equal(seen, count);
    return pages;
}

static void pages_have_each_key_once(void **state)
{
    (void)state;
    (void)peer_ask(peer, "HELLO 3");
    fill(230, "{}");
    assert_int_equal(read_pages("", 230, 1 << 20), 3);
    assert_int_equal(read_pages("COUNT 230", 230, 1 << 20), 1);
    assert_int_equal(read_pages("COUNT 229", 230, 1 << 20), 2);
    assert_int_equal(read_pages("COUNT 1", 230, 1 << 20), 230);
    assert_int_equal(read_pages("COUNT 50 RAW", 230, 1 << 20), 5);
    expect("LOCK.LIST key- AFTER key-0229", "next nil keys []");
    expect("LOCK.LIST none", "next nil keys []");
    expect("LOCK.LIST COUNT 1001", "-ERR");
}

static void pages_have_a_limit_in_bytes(void **state)
{
    char meta[1100];
    (void)state;
    (void)peer_ask(peer, "HELLO 3");
    (void)snprintf(meta, sizeof meta, "{\"a\":\"%0900d\"}", 0);
    fill(400, meta);
    assert_true(read_pages("COUNT 1000", 400, PAGE_MOST) > 1);
    assert_true(read_pages("COUNT 1000 RAW", 400, PAGE_MOST) > 2);
}

/* The largest record that the library accepts fits into every reply. */
static void the_largest_record_fits(void **state)
{
    char key[513], holder[129], command[4096], meta[1400];
    struct text text;
    (void)state;
    memset(key, '"', sizeof key - 1);
    memset(holder, '\\', sizeof holder - 1);
    key[512] = holder[128] = '\0';
    text_init(&text, meta, sizeof meta);
    for (int i = 0; i < 16; i++) {
        TEXT_JOIN(&text, i == 0 ? "{" : ",", "\"");
        text_add_i64(&text, i + 10);
        text_add(&text, "\":\"");
        for (int j = 0; j < 60; j++)
            text_add(&text, "m");
        text_add(&text, "\"");
    }
    text_add(&text, "}");
    (void)peer_ask(peer, "HELLO 3");
    expect("LOCK.WATCH", "outcome ok");
    (void)snprintf(command, sizeof command, "LOCK.ACQUIRE %s %s 60000 META %s", key, holder, meta);
    peer_send(peer, command);
    const char *message = peer_message(peer); /* the reply and the event, in either order */
    bool pushed = strncmp(message, ">[lock.event", 12) == 0;
    assert_true(pushed || strstr(message, "outcome ok") != NULL);
    message = peer_message(peer);
    assert_true((strncmp(message, ">[lock.event", 12) == 0) != pushed);
    (void)snprintf(command, sizeof command, "LOCK.STATUS %s RAW", key);
    expect(command, "mmmm}");
    expect("LOCK.LIST RAW", "mmmm}");
    expect("LOCK.LIST", "mmmm}");
    (void)snprintf(command, sizeof command, "LOCK.STATUS %s\"", key);
    expect(command, "-ERR a key must be at most 512 bytes");
    assert_null(peer_message(peer));
    assert_true(peer->ended);
}

static void a_history_needs_a_store_that_has_one(void **state)
{
    (void)state;
    expect("LOCK.HISTORY k", "-ERR this store keeps no history");
    expect("LOCK.HISTORY k AFTER x", "-ERR the cursor is not one of ours");
    expect("LOCK.HISTORY k COUNT 0", "-ERR COUNT needs a number from 1 to 1000");
}

/* ---- watches ---- */

static void each_command_of_a_watcher_has_one_reply(void **state)
{
    (void)state;
    (void)peer_ask(peer, "HELLO 3");
    expect("LOCK.WATCH a", "{outcome ok");
    expect("LOCK.WATCH a", "{outcome ok"); /* the same again: a reply, not a push */
    expect("LOCK.WATCH b", "{outcome ok");
    expect("HELLO 2", "-ERR"); /* events would look like replies */
    expect("LOCK.UNWATCH", "{outcome ok");
    expect("HELLO 2", "proto 2");
    expect("SUBSCRIBE a", "[subscribe a 1]");
    expect("SUBSCRIBE a", "[subscribe a 1]");
    expect("LOCK.STATUS k", "-ERR LOCK.STATUS is not possible");
    expect("LOCK.UNWATCH a", "[unsubscribe a 0]");
    expect("UNSUBSCRIBE", "[unsubscribe nil 0]");
    peer_send(peer, "SUBSCRIBE x y z");
    assert_string_equal(peer_message(peer), "[subscribe x 1]");
    assert_string_equal(peer_message(peer), "[subscribe y 2]");
    assert_string_equal(peer_message(peer), "[subscribe z 3]");
    peer_send(peer, "UNSUBSCRIBE x y");
    assert_string_equal(peer_message(peer), "[unsubscribe x 2]");
    assert_string_equal(peer_message(peer), "[unsubscribe y 1]");
    expect("UNSUBSCRIBE", "[unsubscribe z 0]");
    expect("PING", "PONG");
}

static void watches_are_limited(void **state)
{
    char command[64];
    (void)state;
    (void)peer_ask(peer, "HELLO 3");
    for (int i = 0; i < WATCHES_LIMIT; i++) {
        (void)snprintf(command, sizeof command, "LOCK.WATCH %d", i);
        expect(command, "{outcome ok");
    }
    expect("LOCK.WATCH more", "-ERR too many watches");
    expect("LOCK.UNWATCH 5", "{outcome ok");
    expect("LOCK.WATCH more", "{outcome ok");
    expect("RESET", "RESET");
    assert_int_equal(served->watches, 0);
}

static void every_channel_is_a_valid_key(void **state)
{
    char command[1024] = "SUBSCRIBE fine ";
    (void)state;
    memset(command + 15, 'x', 513);
    expect(command, "-ERR a key must be at most 512 bytes");
    assert_null(peer_message(peer));
    assert_int_equal(served->watches, 0);
}

/* ---- order and ends ---- */

static void replies_come_in_order(void **state)
{
    char command[128];
    (void)state;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(command, sizeof command, "LOCK.ACQUIRE k%d ann 60000", i % 50);
        peer_send(peer, command);
        (void)snprintf(command, sizeof command, "ECHO %d", i);
        peer_send(peer, command);
    }
    for (int i = 0; i < 300; i++) {
        assert_string_equal(reply_value(peer_message(peer), "outcome"), i < 50 ? "ok" : "busy");
        assert_int_equal(strtol(peer_message(peer), NULL, 10), i);
    }
}

static void a_wait_holds_back_what_follows(void **state)
{
    (void)state;
    struct peer *other = peer_new(served);
    const char *reply = peer_ask(other, "LOCK.ACQUIRE k ann 60000");
    char command[128];
    (void)snprintf(command, sizeof command, "LOCK.RELEASE k %s", reply_value(reply, "token"));
    peer_send(peer, "LOCK.ACQUIRE k bob 60000 WAIT -1");
    peer_send(peer, "PING");
    for (int i = 0; i < 20; i++)
        kit_daemon_turn(served, 1);
    assert_false(peer_has_message(peer));
    assert_string_equal(reply_value(peer_ask(other, command), "outcome"), "ok");
    assert_string_equal(reply_value(peer_message(peer), "holder"), "bob");
    assert_string_equal(peer_message(peer), "PONG");
    peer_free(other);
}

static void the_daemon_ends_with_calls_in_flight(void **state)
{
    (void)state;
    struct peer *other = peer_new(served);
    (void)peer_ask(other, "HELLO 3");
    expect("LOCK.ACQUIRE k ann 60000 BIND", "outcome ok");
    expect("LOCK.ACQUIRE l ann 60000", "outcome ok");
    peer_send(other, "LOCK.ACQUIRE k bob 60000 WAIT -1 ASYNC ID x");
    peer_send(other, "LOCK.WATCH");
    peer_send(other, "LOCK.ACQUIRE l bob 60000 WAIT -1");
    static const char *const commands[] = {"LOCK.STATUS k",          "LOCK.RENEW k 2048 BIND",
                                           "ONCE.BEGIN a ann 60000", "WATERMARK.GET w",
                                           "WATERMARK.BEGIN w",      "LOCK.LIST"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        peer_send(peer, commands[i]);
    /* not turned until their replies: close_all() ends the daemon */
    free(other);
    free(peer);
    peer = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_have_each_key_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(pages_have_a_limit_in_bytes, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_largest_record_fits, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_history_needs_a_store_that_has_one, open_all, close_all),
        cmocka_unit_test_setup_teardown(each_command_of_a_watcher_has_one_reply, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(watches_are_limited, open_all, close_all),
        cmocka_unit_test_setup_teardown(every_channel_is_a_valid_key, open_all, close_all),
        cmocka_unit_test_setup_teardown(replies_come_in_order, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_wait_holds_back_what_follows, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_daemon_ends_with_calls_in_flight, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

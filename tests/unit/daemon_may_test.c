/* SPDX-License-Identifier: Apache-2.0 */
/*
 * D5: every verb, in every key position, on every path, through real connections of a daemon. The
 * program sees each call of may(). Planted, may() allows everything, as if the path under test had
 * forgotten to ask: the same checks must then fail, for every verb.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"

#include <stdio.h>
#include <string.h>

enum { ALL_RIGHTS = MAY_READ | MAY_TAKE | MAY_RENEW | MAY_OPERATE };

static bool planted;
static unsigned asked; /* calls of may() for a key; "" is every key, which INFO asks for */

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __real_may(const struct may_identity *who, enum may_verb verb, const char *key);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_may(const struct may_identity *who, enum may_verb verb, const char *key);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_may(const struct may_identity *who, enum may_verb verb, const char *key)
{
    asked += key[0] != '\0' ? 1 : 0;
    return planted || __real_may(who, verb, key);
}

/* A command of each verb that has keys; KEY stands for the key, KEYS for three of them. */
static const struct {
    const char *verb, *arguments;
} samples[] = {
    {"LOCK.ACQUIRE", "KEY ann 60000"},
    {"LOCK.ACQUIRE_ALL", "3 KEYS ann 60000"},
    {"LOCK.CLAIM", "todo ann 60000"},
    {"LOCK.RENEW", "KEY 2048"},
    {"LOCK.RELEASE", "KEY 2048"},
    {"LOCK.STATUS", "KEY"},
    {"LOCK.LIST", ""},
    {"LOCK.HISTORY", "KEY"},
    {"LOCK.BREAK", "KEY reason NOW"},
    {"LOCK.CLEAR", "KEY"},
    {"LOCK.WATCH", ""},
    {"ONCE.BEGIN", "KEY ann 60000"},
    {"ONCE.RENEW", "KEY 2048"},
    {"ONCE.FINISH", "KEY 2048"},
    {"ONCE.ABANDON", "KEY 2048"},
    {"ONCE.STATUS", "KEY"},
    {"ONCE.MARK", "KEY"},
    {"WATERMARK.GET", "KEY"},
    {"WATERMARK.BEGIN", "KEY"},
    {"WATERMARK.ADVANCE", "KEY 10 20"},
    {"WATERMARK.SET", "KEY 10 reason"},
    {"SUBSCRIBE", "all mine"},
};

static const char *sample_of(const struct daemon_verb *verb)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (strcmp(samples[i].verb, verb->name) == 0)
            return samples[i].arguments;
    }
    return NULL;
}

/* The command with its keys; `foreign` is the position, from 0, of the key of somebody else. */
static void sample_write(const struct daemon_verb *verb, int foreign, char *out, size_t size)
{
    const char *sample = sample_of(verb), *at = strstr(sample, "KEY");
    bool counted = verb->keys == KEYS_COUNTED;
    struct text text;
    text_init(&text, out, size);
    TEXT_JOIN(&text, verb->name, sample[0] != '\0' ? " " : "");
    if (at == NULL) {
        text_add(&text, sample);
        return;
    }
    text_add_bytes(&text, sample, (size_t)(at - sample));
    for (int i = 0; i < (counted ? 3 : 1); i++) {
        TEXT_JOIN(&text, i > 0 ? " " : "", i == foreign ? "theirs:" : "mine:");
        text_add_i64(&text, i);
    }
    text_add(&text, at + (counted ? 4 : 3));
}

static bool is_denied(const char *reply)
{
    return strncmp(reply, "-NOPERM ", 8) == 0;
}

/* ---- commands that name their keys ---- */

/* True if the command was denied to that identity. */
static bool denied_to(struct daemon *daemon, const struct may_identity *who, const char *command)
{
    struct peer *peer = peer_new(daemon);
    peer->connection->who = who;
    bool denied = is_denied(peer_ask(peer, command));
    peer_free(peer);
    return denied;
}

/* The number of violations: calls that should have been denied and were not, or the reverse. */
static int count_violations(struct daemon *daemon, const struct daemon_verb *verb)
{
    char command[512], inside[64];
    int wrong = 0, positions = verb->keys == KEYS_COUNTED ? 3 : 1;
    (void)snprintf(inside, sizeof inside, "%smine:", verb->prefix != NULL ? verb->prefix : "");
    struct may_right own = {.verbs = ALL_RIGHTS, .prefix = inside};
    struct may_right bare = {.verbs = ALL_RIGHTS, .prefix = "mine:"};
    struct may_right lacks = {.verbs = ALL_RIGHTS & ~(unsigned)verb->may, .prefix = ""};
    struct may_right just = {.verbs = (unsigned)verb->may, .prefix = inside};
    const struct may_identity of_own = {"own", &own, 1}, of_bare = {"bare", &bare, 1},
                              of_lacks = {"lacks", &lacks, 1}, of_just = {"just", &just, 1},
                              of_none = {"none", NULL, 0};
    for (int position = 0; position < positions; position++) {
        sample_write(verb, position, command, sizeof command);
        wrong += denied_to(daemon, &of_own, command) ? 0 : 1;
    }
    sample_write(verb, /* foreign= */ -1, command, sizeof command);
    wrong += denied_to(daemon, &of_lacks, command) ? 0 : 1;
    wrong += denied_to(daemon, &of_none, command) ? 0 : 1;
    if (verb->prefix != NULL) /* the right is for a lock of that name */
        wrong += denied_to(daemon, &of_bare, command) ? 0 : 1;
    wrong += denied_to(daemon, &of_just, command) ? 1 : 0;
    return wrong;
}

static void every_verb_asks_for_every_key(void **state)
{
    struct daemon *daemon = kit_daemon_new();
    const struct daemon_verb *verb = NULL;
    (void)state;
    planted = false;
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb->keys == KEYS_NONE || verb->keys == KEYS_PREFIX || verb->keys == KEYS_CHOSEN)
            continue; /* daemon_claim_test.c tries the last */
        if (sample_of(verb) == NULL)
            fail_msg("%s has no sample", verb->name);
        if (count_violations(daemon, verb) != 0)
            fail_msg("%s does not ask may() for each key", verb->name);
        planted = true;
        int found = count_violations(daemon, verb);
        planted = false;
        if (found == 0)
            fail_msg("%s: a forgotten may() is not found", verb->name);
    }
    daemon_free(daemon);
}

/* ---- what shows keys ---- */

static const char *const shown_keys[] = {"mine:a", "theirs:a", "once:theirs", "watermark:theirs"};

static void write_keys(struct peer *peer, const char *suffix)
{
    char command[128];
    (void)snprintf(command, sizeof command, "LOCK.ACQUIRE mine:a%s ann 60000", suffix);
    assert_non_null(strstr(peer_ask(peer, command), "outcome ok"));
    (void)snprintf(command, sizeof command, "LOCK.ACQUIRE theirs:a%s bob 60000", suffix);
    assert_non_null(strstr(peer_ask(peer, command), "outcome ok"));
    (void)snprintf(command, sizeof command, "ONCE.MARK theirs%s", suffix);
    assert_non_null(strstr(peer_ask(peer, command), "outcome ok"));
    (void)snprintf(command, sizeof command, "WATERMARK.SET theirs%s 10 reason", suffix);
    assert_non_null(strstr(peer_ask(peer, command), "outcome ok"));
}

/* Counts foreign keys in the text; own keys must be there. */
static int count_shown(const char *text)
{
    int wrong = strstr(text, shown_keys[0]) != NULL ? 0 : 1;
    for (size_t i = 1; i < sizeof shown_keys / sizeof shown_keys[0]; i++)
        wrong += strstr(text, shown_keys[i]) != NULL ? 1 : 0;
    return wrong;
}

static int list_violations(struct daemon *daemon, const struct may_identity *who)
{
    struct peer *reader = peer_new(daemon);
    reader->connection->who = who;
    int wrong =
        count_shown(peer_ask(reader, "LOCK.LIST")) + count_shown(peer_ask(reader, "LOCK.LIST RAW"));
    const char *page = peer_ask(reader, "LOCK.LIST COUNT 1"); /* a cursor shows no key either */
    wrong += strstr(reply_value(page, "next"), "theirs") != NULL ? 1 : 0;
    peer_free(reader);
    return wrong;
}

/* `how`: what is sent first; replies to it are skipped. */
static int watch_violations(struct daemon *daemon, const struct may_identity *who,
                            const char *const *how, const char *suffix)
{
    static char seen[64 * 1024];
    struct text text;
    struct peer *reader = peer_new(daemon), *writer = peer_new(daemon);
    text_init(&text, seen, sizeof seen);
    reader->connection->who = who;
    for (; *how != NULL; how++)
        (void)peer_ask(reader, *how);
    write_keys(writer, suffix);
    peer_send(reader, "PING end-of-changes");
    for (const char *message = ""; strstr(message, "end-of-changes") == NULL;) {
        message = peer_message(reader);
        assert_non_null(message);
        TEXT_JOIN(&text, message, "\n");
    }
    peer_free(writer);
    peer_free(reader);
    return count_shown(seen);
}

static void lists_and_watches_hide_other_keys(void **state)
{
    static const char *const by_push[] = {"HELLO 3", "LOCK.WATCH", NULL},
                             *const by_message[] = {"SUBSCRIBE ", NULL},
                             *const by_both[] = {"HELLO 3", "SUBSCRIBE ", NULL},
                             *const watched_2[] = {"LOCK.WATCH", NULL};
    static const char *const *const all[] = {by_push, by_message, by_both, watched_2};
    const struct may_right right = {.verbs = ALL_RIGHTS, .prefix = "mine:"};
    const struct may_identity who = {"own", &right, 1};
    char suffix[8];
    int step = 0;
    (void)state;
    struct daemon *daemon = kit_daemon_new();
    struct peer *writer = peer_new(daemon);
    write_keys(writer, "");
    assert_int_equal(list_violations(daemon, &who), 0);
    planted = true;
    assert_true(list_violations(daemon, &who) > 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int plant = 0; plant < 2; plant++) {
            planted = plant == 1;
            (void)snprintf(suffix, sizeof suffix, "-%d", ++step);
            int found = watch_violations(daemon, &who, all[i], suffix);
            if ((found > 0) != planted)
                fail_msg("watch %zu, planted %d: %d violations", i, plant, found);
        }
    }
    planted = false;
    peer_free(writer);
    daemon_free(daemon);
}

/* ---- the table ---- */

static void rows_without_keys_need_no_right(void **state)
{
    const struct daemon_verb *verb = NULL;
    (void)state;
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if ((verb->keys == KEYS_NONE) != (verb->may == MAY_ALWAYS))
            fail_msg("%s: keys and right do not match", verb->name);
        if (verb->keys != KEYS_NONE && sample_of(verb) == NULL)
            fail_msg("%s is not tried here", verb->name);
        if (strncmp(verb->name, "ONCE.", 5) == 0)
            assert_string_equal(verb->prefix, "once:");
        if (strncmp(verb->name, "WATERMARK.", 10) == 0)
            assert_string_equal(verb->prefix, "watermark:");
    }
}

static void rights_are_bits_and_prefixes(void **state)
{
    const struct may_right rights[] = {{.verbs = MAY_READ, .prefix = ""},
                                       {.verbs = MAY_TAKE | MAY_RENEW, .prefix = "a/"}};
    const struct may_identity who = {"who", rights, 2}, none = {"none", NULL, 0};
    (void)state;
    assert_true(may(&who, MAY_READ, ""));
    assert_true(may(&who, MAY_TAKE, "a/"));
    assert_true(may(&who, MAY_RENEW, "a/b"));
    assert_false(may(&who, MAY_TAKE, "a"));
    assert_false(may(&who, MAY_TAKE, "A/b"));
    assert_false(may(&who, MAY_OPERATE, "a/b"));
    assert_true(may(&none, MAY_ALWAYS, "a"));
    assert_false(may(&none, MAY_READ, ""));
    for (unsigned bit = MAY_READ; bit <= MAY_OPERATE; bit *= 2)
        assert_true(may(&may_everything, (enum may_verb)bit, "any"));
}

/* A connection without any right can still say hello, and learns nothing about keys. */
static void verbs_without_keys_ask_nothing(void **state)
{
    static const char *const commands[] = {
        "HELLO",          "PING",         "ECHO a",      "CLIENT ID", "COMMAND", "INFO",
        "LOCK.CANCEL id", "LOCK.UNWATCH", "UNSUBSCRIBE", "RESET",     "QUIT"};
    const struct may_identity none = {"none", NULL, 0};
    struct daemon *daemon = kit_daemon_new();
    struct peer *peer = peer_new(daemon);
    (void)state;
    peer->connection->who = &none;
    asked = 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        assert_false(is_denied(peer_ask(peer, commands[i])));
    assert_int_equal(asked, 0);
    peer_free(peer);
    daemon_free(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_are_bits_and_prefixes),
        cmocka_unit_test(rows_without_keys_need_no_right),
        cmocka_unit_test(every_verb_asks_for_every_key),
        cmocka_unit_test(lists_and_watches_hide_other_keys),
        cmocka_unit_test(verbs_without_keys_ask_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

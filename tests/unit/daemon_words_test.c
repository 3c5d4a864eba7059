/* SPDX-License-Identifier: Apache-2.0 */
/* Words of commands: each with its bounds, twice, without a value; and what a record shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"

#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(struct daemon_words, member)
#define TIME_MOST  "31622400000"

enum { WITHOUT_VALUE, WITH_NUMBER, WITH_TEXT };

static const struct {
    const char *name;
    unsigned bit;
    int value;
    size_t at;
    const char *least, *most, *below, *above;
} rows[] = {
    {"WAIT", WORD_WAIT, WITH_NUMBER, AT(wait_ms), "-1", TIME_MOST, "-2", "31622400001"},
    {"ASYNC", WORD_ASYNC, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"SHARED", WORD_SHARED, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"LIMIT", WORD_LIMIT, WITH_NUMBER, AT(limit), "1", "64", "0", "65"},
    {"PRIORITY", WORD_PRIORITY, WITH_NUMBER, AT(priority), "-100", "100", "-101", "101"},
    {"COOLDOWN", WORD_COOLDOWN, WITH_NUMBER, AT(cooldown_ms), "0", TIME_MOST, "-1", "31622400001"},
    {"LOCKDELAY", WORD_LOCKDELAY, WITH_NUMBER, AT(lock_delay_ms), "0", TIME_MOST, "-1",
     "31622400001"},
    {"META", WORD_META, WITH_TEXT, 0, "{}", "{\"a\":\"b\"}", "", "{\"a\":1}"},
    {"ID", WORD_ID, WITH_TEXT, AT(id), "", "x", NULL, NULL},
    {"BIND", WORD_BIND, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"CACHED", WORD_CACHED, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"RAW", WORD_RAW, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"AFTER", WORD_AFTER, WITH_TEXT, AT(after), "", "x", NULL, NULL},
    {"COUNT", WORD_COUNT, WITH_NUMBER, AT(count), "1", "1000", "0", "1001"},
    {"NOW", WORD_NOW, WITHOUT_VALUE, 0, NULL, NULL, NULL, NULL},
    {"PAYLOAD", WORD_PAYLOAD, WITH_TEXT, AT(payload), "", "x", NULL, NULL},
    {"KEEP", WORD_KEEP, WITH_NUMBER, AT(keep_ms), "1", TIME_MOST, "0", "31622400001"},
    {"STATUS", WORD_STATUS, WITH_NUMBER, AT(status), "0", "255", "-1", "256"},
    {"RESULT", WORD_RESULT, WITH_TEXT, AT(result), "", "x", NULL, NULL},
    {"OVERLAP", WORD_OVERLAP, WITH_NUMBER, AT(overlap_ms), "1", "86400000", "0", "86400001"},
    {"ORDER", WORD_ORDER, WITH_TEXT, AT(order), "", "x", NULL, NULL},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Parses up to four texts, NULL after the last. */
static bool parse_words(unsigned allowed, struct daemon_words *out, char *why, const char *a,
                        const char *b, const char *c, const char *d)
{
    struct daemon_args args = {.count = 1, .text = {"VERB"}};
    const char *const given[] = {a, b, c, d};
    struct text text;
    for (size_t i = 0; i < 4 && given[i] != NULL; i++)
        args.text[args.count++] = given[i];
    text_init(&text, why, 256);
    return words_parse(&args, 1, allowed, /* as_fields= */ false, out, &text);
}

static void every_bit_has_a_row(void **state)
{
    unsigned bits = 0;
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(words_find(rows[i].name), rows[i].bit);
        assert_int_equal(bits & rows[i].bit, 0);
        bits |= rows[i].bit;
    }
    assert_int_equal(bits, 2 * WORD_ORDER - 1);
    assert_int_equal(words_find("wait"), WORD_WAIT);
    assert_int_equal(words_find(""), 0);
    assert_int_equal(words_find("WAITS"), 0);
    const struct daemon_verb *verb = NULL; /* no verb has a word that does not exist */
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        assert_int_equal(verb->words & ~bits, 0);
}

static void words_have_bounds(void **state)
{
    struct daemon_words words;
    char why[256], lower[16];
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const char *name = rows[i].name;
        bool valued = rows[i].value != WITHOUT_VALUE;
        for (size_t at = 0; at <= strlen(name); at++)
            lower[at] = (char)(name[at] != '\0' ? name[at] | 0x20 : '\0');
        assert_true(parse_words(rows[i].bit, &words, why, lower, rows[i].least, NULL, NULL));
        assert_int_equal(words.given, rows[i].bit);
        assert_true(parse_words(rows[i].bit, &words, why, name, rows[i].most, NULL, NULL));
        if (rows[i].value == WITH_NUMBER) {
            char digits[24];
            (void)snprintf(digits, sizeof digits, "%lld",
                           (long long)*(const int64_t *)((const char *)&words + rows[i].at));
            assert_string_equal(digits, rows[i].most);
        }
        if (rows[i].below != NULL) {
            assert_false(parse_words(~0U, &words, why, name, rows[i].below, NULL, NULL));
            assert_non_null(strstr(why, name));
            assert_false(parse_words(~0U, &words, why, name, rows[i].above, NULL, NULL));
        }
        /* not allowed, twice, without its value, with a value that it has not */
        assert_false(parse_words(~rows[i].bit, &words, why, name, rows[i].least, NULL, NULL));
        assert_non_null(strstr(why, "unknown word"));
        assert_false(parse_words(~0U, &words, why, name, valued ? rows[i].least : name,
                                 valued ? name : NULL, valued ? rows[i].least : NULL));
        assert_non_null(strstr(why, "given twice"));
        if (valued) {
            assert_false(parse_words(~0U, &words, why, name, NULL, NULL, NULL));
            assert_non_null(strstr(why, "needs a value"));
        } else {
            assert_false(parse_words(~0U, &words, why, name, "1", NULL, NULL));
        }
    }
}

static void numbers_are_canonical(void **state)
{
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "01",
                                        "-01",
                                        "1.",
                                        "1e3",
                                        "0x1",
                                        "--1",
                                        "a",
                                        "9223372036854775808",
                                        "99999999999999999999"};
    static const char *const no_tokens[] = {"0", "-1", "", "01", "18446744073709551616"};
    int64_t number = 0;
    uint64_t token = 0;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(words_is_number(wrong[i], &number));
    for (size_t i = 0; i < sizeof no_tokens / sizeof no_tokens[0]; i++)
        assert_false(words_is_token(no_tokens[i], &token));
    assert_true(words_is_number("9223372036854775807", &number));
    assert_true(number == INT64_MAX);
    assert_true(words_is_number("-5", &number) && number == -5);
    assert_true(words_is_number("0", &number) && number == 0);
    assert_true(words_is_token("18446744073709551615", &token));
    assert_true(token == UINT64_MAX);
}

static void the_nearest_word_is_suggested(void **state)
{
    struct daemon_words words;
    char why[256], longer[400];
    (void)state;
    assert_false(parse_words(WORD_WAIT | WORD_BIND, &words, why, "wiat", "5", NULL, NULL));
    assert_string_equal(why, "unknown word 'wiat'; did you mean WAIT?");
    assert_false(parse_words(WORD_WAIT, &words, why, "BINT", NULL, NULL, NULL));
    assert_string_equal(why, "unknown word 'BINT'");
    memset(longer, 'w', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_false(parse_words(WORD_WAIT, &words, why, longer, NULL, NULL, NULL));
    assert_true(strlen(why) < 100);
    assert_true(parse_words(WORD_META | WORD_RAW, &words, why, "META", "{\"a\":\"b\",\"c\":\"\"}",
                            "RAW", NULL));
    assert_int_equal(words.meta_count, 2);
    assert_string_equal(words.meta[1].name, "c");
    assert_true(parse_words(0, &words, why, NULL, NULL, NULL, NULL));
    assert_int_equal(words.given | words.meta_count, 0);
}

/* ---- records as they are shown ---- */

static const char *stored;

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
size_t __wrap_lh_view_record(const struct lh_view *view, char *out, size_t size);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
size_t __wrap_lh_view_record(const struct lh_view *view, char *out, size_t size)
{
    size_t length = strlen(stored);
    (void)view;
    assert_true(length <= size);
    for (size_t i = 0; i < length; i++)
        out[i] = stored[i];
    return length;
}

static void request_ids_are_not_shown(void **state)
{
    static const struct {
        const char *record, *shown;
    } records[] = {
        {"", ""},
        {"{}", "{}"},
        {"{\"holder\":\"a\",\"request\":\"r\",\"x\":1}", "{\"holder\":\"a\",\"x\":1}"},
        {"{\"a\":1,\"request\":\"r\"}", "{\"a\":1}"},
        {"[{\"h\":\"a\",\"request\":\"r1\"},{\"h\":\"b\",\"request\":\"r2\"}]",
         "[{\"h\":\"a\"},{\"h\":\"b\"}]"},
        {"{\"h\":\"a\",\"request\":\"q\\\"q\\\\\",\"x\":1}", "{\"h\":\"a\",\"x\":1}"},
        {"{\"h\":\"a\\\"\",\"request\":\"r\"}", "{\"h\":\"a\\\"\"}"},
        {"{\"h\":\"a\\\\\",\"request\":\"r\"}", "{\"h\":\"a\\\\\"}"},
        {"{\"meta\":{\"a\":\",\\\"request\\\":\\\"kept\\\"\"},\"request\":\"r\"}",
         "{\"meta\":{\"a\":\",\\\"request\\\":\\\"kept\\\"\"}}"},
        {"{\"a\":\"x,\",\"request\":\"r\",\"request\":\"s\"}", "{\"a\":\"x,\"}"},
        {"{\"a\":1,\"requests\":\"kept\"}", "{\"a\":1,\"requests\":\"kept\"}"},
        /* damaged ones: no read beyond the end, and nothing of an id */
        {"{\"a\":1,\"request\":\"never ends", "{\"a\":1"},
        {"{\"a\":1,\"request\":\"ends so\\", "{\"a\":1"},
        {"{\"a\":\"\\", "{\"a\":\"\\"},
    };
    struct lh_view view = LH_VIEW_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        char *out = test_malloc(strlen(records[i].record) + 1);
        stored = records[i].record;
        size_t length = view_record_shown(&view, out, strlen(stored) + 1);
        out[length] = '\0';
        assert_string_equal(out, records[i].shown);
        test_free(out);
    }
}

/* META and RAW through a daemon, with the words of a record in a value. */
static void meta_survives_as_it_is(void **state)
{
    struct daemon *daemon = kit_daemon_new();
    struct peer *peer = peer_new(daemon);
    (void)state;
    (void)peer_ask(peer, "HELLO 3");
    stored = "{\"x\":1}";
    const char *reply = peer_ask(
        peer, "LOCK.ACQUIRE k ann 60000 META {\"a\":\",\\\"request\\\":\\\"kept\\\"\"} ID secret");
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    reply = peer_ask(peer, "LOCK.STATUS k RAW");
    assert_non_null(strstr(reply, "meta {a ,\"request\":\"kept\"}"));
    assert_non_null(strstr(reply, "record {\"x\":1}"));
    peer_free(peer);
    daemon_free(daemon);
}

/* ---- request ids ---- */

static void ids_are_names_of_identity_and_id(void **state)
{
    struct may_identity other = {"other", NULL, 0};
    char first[65], second[65], longest[REQUEST_ID_MAX + 1];
    struct daemon *daemon = kit_daemon_new();
    (void)state;
    request_id_name(&may_everything, "a", first);
    request_id_name(&may_everything, "a", second);
    assert_string_equal(first, second);
    request_id_name(&other, "a", second);
    assert_string_not_equal(first, second);
    request_id_name(&may_everything, "b", second);
    assert_string_not_equal(first, second);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    request_id_name(&may_everything, longest, first);
    longest[sizeof longest - 2] = 'y'; /* every byte counts */
    request_id_name(&may_everything, longest, second);
    assert_string_not_equal(first, second);
    assert_true(strlen(first) <= 64);

    struct request_id *id = request_id_new(daemon, first, "key", "ann");
    assert_ptr_equal(request_id_find(daemon, first), id);
    assert_null(request_id_find(daemon, second));
    request_id_expire(id, /* after_ms= */ 60000);
    request_id_keep(id);
    assert_ptr_equal(request_id_find(daemon, first), id);
    request_id_expire(id, /* after_ms= */ 1);
    for (int i = 0; i < 1000 && request_id_find(daemon, first) != NULL; i++)
        kit_daemon_turn(daemon, 10);
    assert_null(request_id_find(daemon, first));
    id = request_id_new(daemon, first, "key", "ann");
    request_id_expire(id, /* after_ms= */ 0);
    assert_null(request_id_find(daemon, first));
    assert_non_null(request_id_new(daemon, second, "key", "ann")); /* freed with the daemon */
    daemon_free(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_has_a_row),
        cmocka_unit_test(words_have_bounds),
        cmocka_unit_test(numbers_are_canonical),
        cmocka_unit_test(the_nearest_word_is_suggested),
        cmocka_unit_test(request_ids_are_not_shown),
        cmocka_unit_test(meta_survives_as_it_is),
        cmocka_unit_test(ids_are_names_of_identity_and_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

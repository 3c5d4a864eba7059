/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded text: what fits, what is cut, numbers at their limits, and which bytes are clean. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void words_are_joined_and_ended(void **state)
{
    (void)state;
    char bytes[16];
    struct text text;
    memset(bytes, 'x', sizeof bytes);
    text_init(&text, bytes, sizeof bytes);
    assert_string_equal(bytes, "");
    text_add(&text, "lease");
    text_add_bytes(&text, "holding", 4);
    assert_string_equal(bytes, "leasehold");
    assert_int_equal(text.length, 9);
    assert_false(text.cut);
    text_clear(&text);
    assert_string_equal(bytes, "");
    assert_int_equal(text.length, 0);
}

static void text_that_does_not_fit_is_cut_and_flagged(void **state)
{
    (void)state;
    char bytes[8] = {0};
    struct text text;
    text_init(&text, bytes, /* size= */ 5);
    memset(bytes + 5, 'x', 3);
    text_add(&text, "lock");
    assert_false(text.cut);
    text_add(&text, "");
    assert_false(text.cut);
    text_add(&text, "s");
    assert_true(text.cut);
    assert_string_equal(bytes, "lock");
    assert_memory_equal(bytes + 5, "xxx", 3);
    text_clear(&text);
    assert_false(text.cut);
    text_add(&text, "unlocked");
    assert_true(text.cut);
    assert_string_equal(bytes, "unlo");
}

/* An item of a message that has no text. */
static void no_bytes_may_be_nowhere(void **state)
{
    (void)state;
    char bytes[8];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    text_add_bytes(&text, NULL, 0);
    assert_string_equal(bytes, "");
    assert_false(text.cut);
}

static void terminal_controls_are_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"", ""},
        {"plain \xc3\xa9", "plain \xc3\xa9"},
        {"a\033[31mb\x7f", "a?[31mb?"},
        {"a\tb\r\nc", "a b  c"},
        {"\xc2\x9b"
         "31m",
         "??31m"},
        {"half \xe2\x82", "half ??"},
        {"\xff\xc0\xaf", "???"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[32] = "";
        struct text text;
        text_init(&text, bytes, sizeof bytes);
        text_add_clean(&text, cases[i].from, strlen(cases[i].from));
        assert_string_equal(bytes, cases[i].to);
    }
    text_add_clean(NULL, "x", 1);
}

static void a_text_of_one_byte_holds_nothing(void **state)
{
    (void)state;
    char byte = 'x';
    struct text text;
    text_init(&text, &byte, sizeof byte);
    assert_int_equal(byte, '\0');
    text_add_u64(&text, 7);
    assert_true(text.cut);
    assert_int_equal(byte, '\0');
}

static void no_text_swallows_everything(void **state)
{
    (void)state;
    text_add(NULL, "words");
    text_add_u64(NULL, 1);
    text_add_i64(NULL, -1);
    text_add_hex(NULL, 255);
}

static void numbers_reach_their_ends(void **state)
{
    (void)state;
    char bytes[256];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    text_add_u64(&text, 0);
    text_add(&text, " ");
    text_add_u64(&text, UINT64_MAX);
    text_add(&text, " ");
    text_add_i64(&text, INT64_MIN);
    text_add(&text, " ");
    text_add_i64(&text, INT64_MAX);
    text_add(&text, " ");
    text_add_i64(&text, -1);
    text_add(&text, " ");
    text_add_hex(&text, UINT64_MAX);
    text_add(&text, " ");
    text_add_hex(&text, 0xa0);
    assert_string_equal(bytes, "0 18446744073709551615 -9223372036854775808 9223372036854775807 -1 "
                               "ffffffffffffffff a0");
}

static void a_copy_may_fill_its_room(void **state)
{
    (void)state;
    char bytes[5];
    memset(bytes, 'x', sizeof bytes);
    text_copy(bytes, sizeof bytes, "lock");
    assert_string_equal(bytes, "lock");
    text_copy(bytes, sizeof bytes, "");
    assert_string_equal(bytes, "");
}

static void clean_is_every_well_formed_character(void **state)
{
    (void)state;
    static const char *const clean[] = {
        "",
        " ",
        "~",
        "jobs/nightly",
        "\xc2\xa0",         /* U+00A0, the first behind the control characters */
        "\xdf\xbf",         /* U+07FF */
        "\xe0\xa0\x80",     /* U+0800 */
        "\xed\x9f\xbf",     /* U+D7FF, the last before the surrogates */
        "\xee\x80\x80",     /* U+E000, the first behind them */
        "\xef\xbf\xbf",     /* U+FFFF */
        "\xf0\x90\x80\x80", /* U+10000 */
        "\xf3\xbf\xbf\xbf",
        "\xf4\x8f\xbf\xbf", /* U+10FFFF, the last */
    };
    for (size_t i = 0; i < sizeof clean / sizeof clean[0]; i++)
        assert_true(text_is_clean(clean[i], strlen(clean[i])));
}

static void unclean_is_everything_else(void **state)
{
    (void)state;
    static const char *const unclean[] = {
        "\x1f",
        "a\n",
        "\x7f",
        "\xc2\x80", /* U+0080 */
        "\xc2\x9f", /* U+009F */
        "\x80",     /* a continuation without a start */
        "\xbf",
        "\xc0\xaf",         /* overlong */
        "\xc1\xbf",         /* overlong */
        "\xc3",             /* cut */
        "\xc3(",            /* not continued */
        "\xe0\x9f\xbf",     /* overlong */
        "\xe2\x82",         /* cut */
        "\xe2\x82(",        /* not continued */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xf0\x9f\x98",     /* cut */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff\xff\xff\xff",
    };
    for (size_t i = 0; i < sizeof unclean / sizeof unclean[0]; i++) {
        if (text_is_clean(unclean[i], strlen(unclean[i])))
            fail_msg("unclean[%zu] passes", i);
    }
    assert_false(text_is_clean("a\0b", 3));
    assert_false(text_is_clean("ok\xc3", 3));
    assert_true(text_is_clean("ok\xc3", 2));
}

/* Eight bytes are checked together: a bad one is found at every position, and valid words are not
 * refused because of the bytes before them. */
static void a_bad_byte_is_seen_at_every_place(void **state)
{
    enum { LONGEST = 27 };
    (void)state;
    for (size_t length = 1; length <= LONGEST; length++) {
        for (size_t at = 0; at < length; at++) {
            char words[LONGEST + 1];
            memset(words, 'a', length);
            assert_true(text_is_clean(words, length));
            words[at] = '\n';
            assert_false(text_is_clean(words, length));
            words[at] = '\x80';
            assert_false(text_is_clean(words, length));
            words[at] = '\xc3';
            assert_false(text_is_clean(words, length));
            if (at + 1 < length) {
                words[at + 1] = '\xa9';
                assert_true(text_is_clean(words, length));
            }
        }
    }
}

/* Every byte at every position, compared with the definition. */
static void plain_is_printable_ascii_without_escapes(void **state)
{
    enum { LONGEST = 19 };
    (void)state;
    assert_true(text_is_plain("", 0));
    for (size_t length = 1; length <= LONGEST; length++) {
        for (size_t at = 0; at < length; at++) {
            char words[LONGEST];
            memset(words, 'a', sizeof words);
            assert_true(text_is_plain(words, length));
            for (int byte = 0; byte < 256; byte++) {
                bool plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
                words[at] = (char)byte;
                if (text_is_plain(words, length) != plain)
                    fail_msg("byte %d at %zu of %zu", byte, at, length);
            }
        }
    }
}

static void long_words_end_behind_a_word(void **state)
{
    static const struct {
        const char *words;
        size_t most;
        const char *shown;
    } rows[] = {
        {"all of it", 9, "all of it"},
        {"not all of it", 12, "not all…"},
        {"not all, of it", 13, "not all…"},
        {"not all of it", 10, "not all…"},
        {"not all of it", 9, "not…"},
        {"undivided", 8, "undiv…"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 6, "\xc3\xa9…"},
        {"abc", 2, "ab"},
        {"", 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[32];
        struct text text;
        text_init(&text, bytes, sizeof bytes);
        text_add_brief(&text, rows[i].words, rows[i].most);
        assert_string_equal(bytes, rows[i].shown);
        text_init(&text, bytes, rows[i].most + 1); /* the text's own buffer counts, too */
        text_add_brief(&text, rows[i].words, /* most= */ 1000);
        assert_string_equal(bytes, rows[i].shown);
        assert_false(text.cut);
    }
}

static void a_string_begins_with_its_prefixes(void **state)
{
    (void)state;
    assert_true(text_begins("once:id", "once:"));
    assert_true(text_begins("once:", "once:"));
    assert_true(text_begins("", ""));
    assert_false(text_begins("once", "once:"));
    assert_false(text_begins("", "once:"));
    assert_false(text_begins("onceid", "once:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_begins_with_its_prefixes),
        cmocka_unit_test(words_are_joined_and_ended),
        cmocka_unit_test(text_that_does_not_fit_is_cut_and_flagged),
        cmocka_unit_test(no_bytes_may_be_nowhere),
        cmocka_unit_test(terminal_controls_are_replaced),
        cmocka_unit_test(a_text_of_one_byte_holds_nothing),
        cmocka_unit_test(no_text_swallows_everything),
        cmocka_unit_test(numbers_reach_their_ends),
        cmocka_unit_test(a_copy_may_fill_its_room),
        cmocka_unit_test(clean_is_every_well_formed_character),
        cmocka_unit_test(unclean_is_everything_else),
        cmocka_unit_test(long_words_end_behind_a_word),
        cmocka_unit_test(a_bad_byte_is_seen_at_every_place),
        cmocka_unit_test(plain_is_printable_ascii_without_escapes),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

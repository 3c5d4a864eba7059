/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record codec's refusals: foreign values, newer versions, corrupt bytes. Each bad input is
 * given as a good prefix and the rest, so that the offset to be reported is the length of the
 * prefix; and whatever is accepted must encode to the same bytes again.
 */
#include "base/text.h"
#include "core/record.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct record decoded;
static char again[RECORD_MAX + 1], input[2 * RECORD_MAX];

/* The pieces of a record, each without its end. */
#define HEAD "{\"leasehold\":1,\"key\":\"k\""
#define WHO(request, session, mode)                                                              \
    "{\"holder\":\"h\",\"request\":\"" request "\",\"session\":\"" session "\",\"mode\":\"" mode \
    "\""
#define GRANT HEAD ",\"grants\":[" WHO("r", "1", "exclusive")
#define TIMED GRANT ",\"granted\":[0,7,1000]"
#define READER(request, n) \
    WHO(request, "1", "shared") ",\"n\":" n ",\"granted\":\"this\",\"ttl_ms\":1}"
#define PLACE     HEAD ",\"next\":5,\"places\":[" WHO("r", "1", "exclusive")
#define SPAN      HEAD ",\"cooling\":{\"since\":"
#define GRANT_END ",\"ttl_ms\":1}]}"

static void assert_refused(const char *bytes, size_t length, enum decode_result result,
                           size_t offset)
{
    struct codec_error error = {0};
    /* A copy of exactly this size lets the sanitizer detect every byte read too far. */
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    enum decode_result found = record_decode(copy, length, &decoded, &error);
    free(copy);
    if (found != result || error.offset != offset)
        print_error("in: %s\n", bytes);
    assert_int_equal(found, result);
    assert_int_equal(error.offset, offset);
    assert_true((error.expected == NULL) != (error.broken == NULL));
    assert_string_equal(decoded.key, "?");
    assert_false(record_needed(&decoded));
}

/* True when accepted; then it must be the canonical form. */
static bool accepted(const char *bytes, size_t length)
{
    struct codec_error error = {0};
    if (record_decode(bytes, length, &decoded, &error) != DECODE_OK) {
        assert_true(error.offset <= length);
        return false;
    }
    assert_int_equal(record_encode(&decoded, again, sizeof again), length);
    assert_memory_equal(bytes, again, length);
    return true;
}

static const char *join(const char *before, const char *middle, const char *after)
{
    struct text text;
    text_init(&text, input, sizeof input);
    text_add(&text, before);
    text_add(&text, middle);
    text_add(&text, after);
    assert_false(text.cut);
    return input;
}

static void refuse_broken(const char *good, const char *bad)
{
    const char *all = join(good, bad, "");
    assert_refused(all, strlen(all), DECODE_BROKEN, strlen(good));
}

static void test_not_ours(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "",
        "{",
        "{}",
        "null",
        "3f1c6f9e0a",
        " {\"leasehold\":1",
        "{\"leasehold\"",
        "{\"lease\":1}",
        "{ \"leasehold\":1,\"key\":\"k\"}",
        "{\"key\":\"k\",\"leasehold\":1}",
        "\xef\xbb\xbf{",
    };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_refused(foreign[i], strlen(foreign[i]), DECODE_NOT_OURS, /* offset= */ 0);
    memset(input, 'x', sizeof input);
    assert_refused(input, sizeof input, DECODE_NOT_OURS, /* offset= */ 0);
}

static void test_newer_version(void **state)
{
    (void)state;
    static const char newer[] = "{\"leasehold\":12;no JSON any more";
    size_t offset = strlen("{\"leasehold\":");
    struct codec_error error;
    assert_int_equal(record_decode(newer, sizeof newer - 1, &decoded, &error),
                     DECODE_NEWER_VERSION);
    assert_int_equal(error.version, 12);
    assert_int_equal(RECORD_VERSION, 3);
    assert_refused(newer, strlen(newer), DECODE_NEWER_VERSION, offset);
    memset(input, ' ', sizeof input);
    memcpy(input, newer, sizeof newer - 1);
    assert_refused(input, sizeof input, DECODE_NEWER_VERSION, offset);
}

static const struct {
    const char *good, *bad;
} broken_cases[] = {
    /* the frame */
    {"{\"leasehold\":", ""},
    {"{\"leasehold\":", "0,\"key\":\"k\"}"},
    {"{\"leasehold\":", "01,\"key\":\"k\"}"},
    {"{\"leasehold\":", "\"1\",\"key\":\"k\"}"},
    {"{\"leasehold\":", "4294967296,\"key\":\"k\"}"},
    {"{\"leasehold\":1", "}"},
    {"{\"leasehold\":1", ".0,\"key\":\"k\"}"},
    {"{\"leasehold\":1", ", \"key\":\"k\"}"},
    {HEAD, ""},
    {HEAD, ",}"},
    {HEAD, " }"},
    {HEAD "}", "\n"},
    {HEAD "}", "}"},
    {HEAD, ",\"color\":\"red\"}"},
    {HEAD ",\"next\":5", ",\"limit\":3}"},
    {HEAD ",\"limit\":3", ",\"limit\":3}"},
    {HEAD ",\"next\":", "1}"},
    {HEAD ",\"limit\":", "-1}"},
    {HEAD ",\"limit\":1", "e3}"},
    /* texts */
    {"{\"leasehold\":1,\"key\":", "\"\"}"},
    {"{\"leasehold\":1,\"key\":", "k}"},
    {"{\"leasehold\":1,\"key\":", "\"k}"},
    {"{\"leasehold\":1,\"key\":", "\"k\\"},
    {"{\"leasehold\":1,\"key\":", "\"a\\/b\"}"},
    {"{\"leasehold\":1,\"key\":", "\"a\\u0041\"}"},
    {"{\"leasehold\":1,\"key\":", "\"a\\n\"}"},
    {"{\"leasehold\":1,\"key\":", "\"a\n\"}"},
    {"{\"leasehold\":1,\"key\":", "\"a\x7f\"}"},
    {"{\"leasehold\":1,\"key\":", "\"\xc2\x80\"}"},
    {"{\"leasehold\":1,\"key\":", "\"\xc3\"}"},
    {"{\"leasehold\":1,\"key\":", "\"\xc0\xaf\"}"},
    {"{\"leasehold\":1,\"key\":", "\"\xed\xa0\x80\"}"},
    {HEAD ",\"reason\":", "\"\"}"},
    /* grants */
    {HEAD ",\"grants\":[", "]}"},
    {HEAD ",\"grants\":[" READER("r", "1"), "}"},
    {HEAD ",\"grants\":[" READER("r", "1") ",", "]}"},
    {HEAD ",\"grants\":[{\"holder\":", "\"\",\"request\":\"r\""},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":", "\"\""},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":", "1"},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":", "\"\","},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":", "\"1F\","},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":", "\"01\","},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":",
     "\"10000000000000000\","},
    {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":\"r\",\"session\":\"1\",\"mode\":",
     "\"slots\","},
    {GRANT, ",\"bound\":false,\"granted\":\"this\"" GRANT_END},
    {GRANT ",\"n\":", "0,\"granted\":\"this\"" GRANT_END},
    {GRANT ",\"granted\":", "\"that\"" GRANT_END},
    {GRANT ",\"granted\":", "7" GRANT_END},
    {GRANT ",\"granted\":[0,7", "]" GRANT_END},
    {TIMED ",\"renewed\":", "[0,7,1000]" GRANT_END},
    {GRANT ",\"granted\":\"this\",\"renewed\":", "\"this\"" GRANT_END},
    {TIMED, "}]}"},
    {TIMED ",\"ttl_ms\":1", ",\"dead\":true}]}"},
    {TIMED ",\"ttl_ms\":1,\"meta\":{", "}}]}"},
    {TIMED ",\"ttl_ms\":1,\"meta\":{", "\"\":\"v\"}}]}"},
    {TIMED ",\"ttl_ms\":1,\"meta\":{\"m\":", "1}}]}"},
    {TIMED ",\"ttl_ms\":1,\"meta\":{\"m\":\"\",", "}}]}"},
    {TIMED ",\"ttl_ms\":1,\"meta\":{\"m\":\"\",", "\"m\":\"\"}}]}"},
    {HEAD ",\"grants\":[" READER("r", "1") ",", READER("r", "2") "]}"},
    /* waiters */
    {HEAD ",\"places\":[" WHO("r", "1", "shared") ",\"ticket\":", "1,\"ttl_ms\":1}]}"},
    {PLACE ",\"ticket\":", "0,\"ttl_ms\":1}]}"},
    {PLACE ",\"ticket\":", "5,\"ttl_ms\":1}]}"},
    {PLACE ",\"ticket\":2,\"ttl_ms\":1},", WHO("s", "1", "shared") ",\"ticket\":3"},
    {PLACE ",\"ticket\":2,\"ttl_ms\":1}," WHO("s", "2", "shared") ",\"ticket\":", "2,"},
    {PLACE ",\"ticket\":2,\"priority\":-", "0,\"ttl_ms\":1}]}"},
    {PLACE ",\"ticket\":2,\"priority\":", "0,\"ttl_ms\":1}]}"},
    {PLACE ",\"ticket\":2,\"offered\":", "false,\"ttl_ms\":1}]}"},
    /* spans */
    {SPAN, "{}"},
    {SPAN "\"this\"", "}}"},
    {SPAN "\"this\",\"length_ms\":", "0}}"},
    {SPAN "\"this\",\"length_ms\":9,\"by\":", "\"\"}}"},
    {SPAN "\"this\",\"length_ms\":9", ",\"over\":true}}"},
};

static void test_broken_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken_cases / sizeof broken_cases[0]; i++)
        refuse_broken(broken_cases[i].good, broken_cases[i].bad);
}

/* A record that parses but contradicts itself is refused with the invariant's own text. */
static void test_broken_invariants(void **state)
{
    (void)state;
    static const char *const cases[] = {
        HEAD ",\"limit\":2,\"grants\":[" READER("r", "1") "]}",
        HEAD ",\"grants\":[" READER("r", "1") "," READER("s", "1") "]}",
        GRANT ",\"granted\":\"this\",\"ttl_ms\":1}," READER("s", "1") "]}",
        PLACE ",\"ticket\":2,\"offered\":\"this\",\"ttl_ms\":1}],"
              "\"cooling\":{\"since\":\"this\",\"length_ms\":9}}",
        PLACE ",\"ticket\":2,\"offered\":\"this\",\"ttl_ms\":1}],"
              "\"delay\":{\"since\":\"this\",\"length_ms\":9}}",
        HEAD ",\"limit\":2,\"next\":2,\"places\":[" WHO("r", "1", "shared") ",\"ticket\":1,"
                                                                            "\"ttl_ms\":1}]}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct codec_error error;
        size_t length = strlen(cases[i]);
        assert_refused(cases[i], length, DECODE_BROKEN, /* offset= */ length);
        assert_int_equal(record_decode(cases[i], length, &decoded, &error), DECODE_BROKEN);
        assert_null(error.expected);
        assert_non_null(error.broken);
    }
}

static void test_lengths_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        size_t most;
    } cases[] = {
        {"{\"leasehold\":1,\"key\":", "}", KEY_MAX},
        {HEAD ",\"grants\":[{\"holder\":",
         ",\"request\":\"r\",\"session\":\"1\",\"mode\":\"shared\",\"granted\":\"this\"" GRANT_END,
         HOLDER_MAX},
        {HEAD ",\"grants\":[{\"holder\":\"h\",\"request\":",
         ",\"session\":\"1\",\"mode\":\"shared\",\"granted\":\"this\"" GRANT_END, REQUEST_MAX},
        {SPAN "\"this\",\"length_ms\":1,\"by\":", "}}", HOLDER_MAX},
        {HEAD ",\"reason\":", "}", REASON_MAX},
        {TIMED ",\"ttl_ms\":1,\"meta\":{\"m\":", "}}]}", META_MAX - 3},
    };
    char words[META_MAX + 4];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(words, 'w', sizeof words);
        words[0] = words[cases[i].most + 1] = '"';
        words[cases[i].most + 2] = '\0';
        const char *all = join(cases[i].before, words, cases[i].after);
        assert_true(accepted(all, strlen(all)));
        words[cases[i].most + 1] = 'w';
        words[cases[i].most + 2] = '"';
        words[cases[i].most + 3] = '\0';
        all = join(cases[i].before, words, cases[i].after);
        /* Meta is refused as a pair. */
        size_t pair = cases[i].most == META_MAX - 3 ? strlen("\"m\":") : 0;
        assert_refused(all, strlen(all), DECODE_BROKEN, strlen(cases[i].before) - pair);
    }
}

static void test_ranges_of_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *least, *most, *above;
    } cases[] = {
        {HEAD ",\"limit\":", "}", "1", "4294967295", "4294967296"},
        {HEAD ",\"next\":", "}", "2", "9007199254740991", "9007199254740992"},
        {GRANT ",\"n\":", ",\"granted\":\"this\"" GRANT_END, "1", "1023", "1024"},
        {GRANT ",\"granted\":[", ",7,0]" GRANT_END, "0", "255", "256"},
        {GRANT ",\"granted\":[0,", ",0]" GRANT_END, "1", "35184372088831", "35184372088832"},
        {GRANT ",\"granted\":[0,7,", "]" GRANT_END, "0", "9007199254740991", "9007199254740992"},
        {GRANT ",\"granted\":[0,7,", "]" GRANT_END, "null", "1", "-1"},
        {TIMED ",\"ttl_ms\":", "}]}", "1", "86400000", "86400001"},
        {TIMED ",\"ttl_ms\":1,\"lock_delay_ms\":", "}]}", "1", "86400000", "86400001"},
        {SPAN "\"this\",\"length_ms\":", "}}", "1", "31622400000", "31622400001"},
        {PLACE ",\"ticket\":", ",\"ttl_ms\":1}]}", "1", "4", "5"},
        {PLACE ",\"ticket\":1,\"priority\":", ",\"ttl_ms\":1}]}", "1", "100", "101"},
        {PLACE ",\"ticket\":1,\"priority\":-", ",\"ttl_ms\":1}]}", "1", "100", "101"},
        {PLACE ",\"ticket\":1,\"passed\":", ",\"ttl_ms\":1}]}", "1", "1000000", "1000001"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *all = join(cases[i].before, cases[i].least, cases[i].after);
        assert_true(accepted(all, strlen(all)));
        all = join(cases[i].before, cases[i].most, cases[i].after);
        assert_true(accepted(all, strlen(all)));
        all = join(cases[i].before, cases[i].above, cases[i].after);
        assert_refused(all, strlen(all), DECODE_BROKEN, strlen(cases[i].before));
    }
}

/* Writes `count` items, a comma between them; their number distinguishes them. */
static void add_items(struct text *text, size_t count, const char *before, const char *between,
                      const char *after)
{
    for (size_t i = 1; i <= count; i++) {
        text_add(text, i > 1 ? "," : "");
        text_add(text, before);
        text_add_u64(text, i);
        text_add(text, between);
        text_add_u64(text, i);
        text_add(text, after);
    }
}

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *open, *before, *between, *after, *close;
        size_t most;
    } cases[] = {
        {HEAD ",\"grants\":[", "{\"holder\":\"h\",\"request\":\"",
         "\",\"session\":\"1\",\"mode\":\"shared\",\"n\":", ",\"granted\":\"this\",\"ttl_ms\":1}",
         "]}", GRANTS_MAX},
        {HEAD ",\"next\":999,\"places\":[", "{\"holder\":\"h\",\"request\":\"r\",\"session\":\"",
         "\",\"mode\":\"shared\",\"ticket\":", ",\"ttl_ms\":1}", "]}", WAITERS_MAX},
        {TIMED ",\"ttl_ms\":1,\"meta\":{", "\"", "\":\"", "\"", "}}]}", META_PAIRS_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text text;
        for (size_t more = 0; more < 2; more++) {
            text_init(&text, input, sizeof input);
            text_add(&text, cases[i].open);
            add_items(&text, cases[i].most + more, cases[i].before, cases[i].between,
                      cases[i].after);
            text_add(&text, cases[i].close);
            assert_int_equal(accepted(input, text.length), more == 0);
        }
    }
}

/* Together they use every field; an offer and a blocked key cannot be in one record. */
static const char *const samples[] = {
    "{\"leasehold\":1,\"key\":\"db/\\\"é\",\"limit\":3,\"next\":9,\"grants\":["
    "{\"holder\":\"a\",\"request\":\"r1\",\"session\":\"1f\",\"mode\":\"slot\",\"bound\":true,"
    "\"broken\":true,\"n\":64,\"granted\":[1,41,1000],\"renewed\":[1,43,null],\"ttl_ms\":30000,"
    "\"lock_delay_ms\":500,\"meta\":{\"path\":\"C:\\\\x\",\"e\":\"\"}}],\"places\":["
    "{\"holder\":\"c\",\"request\":\"r3\",\"session\":\"2\",\"mode\":\"slot\",\"bound\":true,"
    "\"ticket\":7,\"priority\":-5,\"passed\":2,\"offered\":\"this\",\"ttl_ms\":30000}]}",
    "{\"leasehold\":1,\"key\":\"k\",\"cooling\":{\"since\":\"this\",\"length_ms\":9},"
    "\"delay\":{\"since\":[0,9,5],\"length_ms\":15000,\"by\":\"z\"},\"reason\":\"stuck\"}",
};

static void test_every_other_byte(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof samples / sizeof samples[0]; at++) {
        size_t length = strlen(samples[at]), survivors = 0;
        assert_true(accepted(samples[at], length));
        memcpy(input, samples[at], length);
        for (size_t i = 0; i < length; i++) {
            for (unsigned flip = 1; flip < 256; flip++) {
                input[i] = (char)((unsigned char)samples[at][i] ^ flip);
                survivors += accepted(input, length) ? 1 : 0;
            }
            input[i] = samples[at][i];
        }
        assert_true(survivors > 0 && survivors < length * 255 / 10);
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof samples / sizeof samples[0]; at++) {
        for (size_t length = 0; length < strlen(samples[at]); length++) {
            char *copy = malloc(length > 0 ? length : 1);
            assert_non_null(copy);
            memcpy(copy, samples[at], length);
            assert_false(accepted(copy, length));
            free(copy);
        }
    }
}

static const char *describe(const char *bytes)
{
    struct codec_error error;
    struct text text;
    enum decode_result result = record_decode(bytes, strlen(bytes), &decoded, &error);
    text_init(&text, again, sizeof again);
    decode_describe(result, &error, &text);
    return again;
}

static void test_descriptions(void **state)
{
    (void)state;
    assert_string_equal(describe(HEAD "}"), "a record");
    assert_string_equal(describe("unlocked"), "the value was not written by leasehold: at byte 0, "
                                              "expected {\"leasehold\":");
    assert_string_equal(describe("{\"leasehold\":4,"),
                        "the record was written by a newer leasehold: version 4, known up to 3");
    assert_string_equal(describe("{\"leasehold\":1,\"key\":7}"),
                        "the record is broken: at byte 21, expected a key");
    assert_string_equal(describe(HEAD ",\"grants\":[" READER("r", "1") "," READER("s", "1") "]}"),
                        "the record is broken: two grants share a token (rule 2)");
    assert_string_equal(decode_result_text(DECODE_TOO_LONG), "the record is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_ours),         cmocka_unit_test(test_newer_version),
        cmocka_unit_test(test_broken_bytes),     cmocka_unit_test(test_broken_invariants),
        cmocka_unit_test(test_lengths_of_words), cmocka_unit_test(test_ranges_of_numbers),
        cmocka_unit_test(test_counts),           cmocka_unit_test(test_every_other_byte),
        cmocka_unit_test(test_every_cut),        cmocka_unit_test(test_descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of ids and watermarks: round trip through the codec, in the version that has them; every
 * malformed one refused, every invariant violated; the weight of the longest of them.
 */
#include "base/text.h"
#include "core/rules.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct record record, copy;
static char bytes[RECORD_MAX + 1], again[RECORD_MAX + 1];

#define ONCE_HEAD "{\"leasehold\":2,\"key\":\"once:a\""
#define COOLING   ",\"cooling\":{\"since\":[0,7,1000],\"length_ms\":9,\"by\":\"b\"}"
#define GRANT(mode)                                                                       \
    ",\"grants\":[{\"holder\":\"b\",\"request\":\"r\",\"session\":\"1\",\"mode\":\"" mode \
    "\",\"granted\":\"this\",\"ttl_ms\":1}]"
#define PLACE(mode)                                                                           \
    ",\"next\":2,\"places\":[{\"holder\":\"b\",\"request\":\"r\",\"session\":\"1\",\"mode\":" \
    "\"" mode "\",\"ticket\":1,\"ttl_ms\":1}]"
#define MARK_HEAD "{\"leasehold\":2,\"key\":\"watermark:a\""
#define MOVE_HEAD "{\"leasehold\":3,\"key\":\"watermark:a\""

static enum decode_result decode(const char *words)
{
    struct codec_error error;
    return record_decode(words, strlen(words), &record, &error);
}

static void there_and_back(void **state)
{
    (void)state;
    static const char *const samples[] = {
        ONCE_HEAD GRANT("exclusive") ",\"once\":{\"payload\":\"\"}}",
        ONCE_HEAD PLACE("exclusive") COOLING ",\"once\":{\"payload\":\"\"}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"9f\",\"request\":\"r\",\"token\":\"1c00\","
                          "\"status\":255,\"result\":\"a \\\"b\\\"\",\"watermark\":\"watermark:w\","
                          "\"until\":\"17\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"17\",\"moved\":\"this\"}}",
        MARK_HEAD ",\"reason\":\"why\",\"watermark\":{\"order\":\"text\",\"value\":\"x\","
                  "\"moved\":[0,7,null],\"by\":\"b\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"time\",\"value\":\"2026-01-31T23:59:59.5Z\","
                  "\"moved\":[0,7,5],\"by\":\"b\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"17\",\"moved\":\"this\","
                  "\"by\":\"b\",\"request\":\"r\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"17\",\"moved\":[0,7,5],"
                  "\"by\":\"b\",\"request\":\"r\",\"from\":\"9\"}}",
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        assert_int_equal(decode(samples[i]), DECODE_OK);
        assert_true(strlen(samples[i]) <= record_size_bound(&record));
        record_copy(&copy, &record);
        size_t length = record_encode(&copy, again, sizeof again);
        assert_int_equal(length, strlen(samples[i]));
        assert_string_equal(again, samples[i]);
        for (size_t cut = 0; cut < length; cut++) {
            struct codec_error error;
            assert_int_not_equal(record_decode(again, cut, &copy, &error), DECODE_OK);
        }
    }
}

static void other_forms_are_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        /* locks are version 1, the rest is not */
        "{\"leasehold\":2,\"key\":\"k\"}",
        "{\"leasehold\":1,\"key\":\"k\",\"once\":{\"payload\":\"\"}}",
        ONCE_HEAD COOLING ",\"once\":{}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"request\":\"\"}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"token\":\"0\"}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"token\":7}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"status\":256}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"result\":7}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"watermark\":\"\"}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"watermark\":\"w\",\"until\":\"\"}}",
        ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\"},\"watermark\":{}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"\",\"value\":\"17\",\"moved\":\"this\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"\",\"moved\":\"this\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"moved\":\"this\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"17\"}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"17\",\"moved\":7}}",
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"\"}}",
        /* the mover is version 3, and only that */
        MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"b\",\"request\":\"r\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"b\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"b\",\"request\":\"\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"b\",\"from\":\"0\"}}",
        MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                  "\"by\":\"b\",\"request\":\"r\",\"from\":\"\"}}",
        "{\"leasehold\":3,\"key\":\"once:a\"" COOLING ",\"once\":{\"payload\":\"\"}}",
        "{\"leasehold\":3,\"key\":\"k\"}",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(decode(refused[i]), DECODE_BROKEN);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words, *why;
    } cases[] = {
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"request\":\"r\"}}", "without a retention"},
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"token\":\"1\"}}", "without a retention"},
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"status\":1}}", "without a retention"},
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"result\":\"r\"}}", "without a retention"},
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"watermark\":\"w\"}}", "without a retention"},
        {ONCE_HEAD ",\"once\":{\"payload\":\"\",\"until\":\"w\"}}", "without a position"},
        {ONCE_HEAD COOLING ",\"once\":{\"payload\":\"\",\"watermark\":\"w\"}}",
         "without a position"},
        {ONCE_HEAD ",\"limit\":2,\"once\":{\"payload\":\"\"}}", "a limit"},
        {ONCE_HEAD GRANT("shared") ",\"once\":{\"payload\":\"\"}}", "not exclusive"},
        {ONCE_HEAD PLACE("shared") ",\"once\":{\"payload\":\"\"}}", "not exclusive"},
        {MARK_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"x\",\"moved\":\"this\"}}",
         "not of its order"},
        {MOVE_HEAD ",\"watermark\":{\"order\":\"number\",\"value\":\"1\",\"moved\":\"this\","
                   "\"request\":\"r\",\"from\":\"x\"}}",
         "not of its order"},
        {MARK_HEAD GRANT("exclusive") ",\"watermark\":{\"order\":\"text\",\"value\":\"x\","
                                      "\"moved\":\"this\"}}",
         "held, awaited or blocked"},
        {MARK_HEAD PLACE("exclusive") ",\"watermark\":{\"order\":\"text\",\"value\":\"x\","
                                      "\"moved\":\"this\"}}",
         "held, awaited or blocked"},
        {MARK_HEAD ",\"limit\":2,\"watermark\":{\"order\":\"text\",\"value\":\"x\","
                   "\"moved\":\"this\"}}",
         "held, awaited or blocked"},
        {MARK_HEAD COOLING ",\"watermark\":{\"order\":\"text\",\"value\":\"x\","
                           "\"moved\":\"this\"}}",
         "held, awaited or blocked"},
        {MARK_HEAD ",\"delay\":{\"since\":\"this\",\"length_ms\":1},\"watermark\":{\"order\":"
                   "\"text\",\"value\":\"x\",\"moved\":\"this\"}}",
         "held, awaited or blocked"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct codec_error error = {0};
        assert_int_equal(record_decode(cases[i].words, strlen(cases[i].words), &record, &error),
                         DECODE_BROKEN);
        const char *broken = error.broken != NULL ? error.broken : error.expected;
        if (strstr(broken, cases[i].why) == NULL)
            fail_msg("%s: %s", cases[i].words, broken);
    }
}

static void a_watermark_without_a_value_is_broken(void **state)
{
    (void)state;
    record_init(&record, "watermark:a");
    record_set_kind(&record, KIND_WATERMARK);
    record.watermark.order = ORDER_TEXT;
    assert_non_null(strstr(record_broken(&record), "not of its order"));
}

/* As the previous version wrote it: decoded, and written unchanged until the next move. */
static void an_older_watermark_stays_readable(void **state)
{
    (void)state;
    static const char old[] = "{\"leasehold\":2,\"key\":\"watermark:orders\",\"watermark\":{"
                              "\"order\":\"number\",\"value\":\"41\",\"moved\":[0,7,5],"
                              "\"by\":\"host:1\"}}";
    const struct request request = {.verb = VERB_ADVANCE,
                                    .key = "watermark:orders",
                                    .holder = "host:2",
                                    .request = "r",
                                    .session = 1,
                                    .ttl_ms = 1000,
                                    .value = "42",
                                    .expected = "41"};
    static const struct store_facts facts = {.judge = JUDGE_STORE_TIME};
    const struct view view = {.at = {.revision = 7, .time_ms = 9}, .facts = &facts};
    assert_int_equal(decode(old), DECODE_OK);
    assert_string_equal(record.watermark.request, "");
    assert_int_equal(record_encode(&record, again, sizeof again), strlen(old));
    assert_string_equal(again, old);
    assert_int_equal(rules_decide(&record, &request, &view).kind, VERDICT_DONE);
    assert_true(record_encode(&record, again, sizeof again) > 0);
    /* A program of version 2 refuses this by its first number, and prints both versions. */
    assert_non_null(strstr(again, "{\"leasehold\":3,"));
    assert_non_null(strstr(again, ",\"request\":\"r\",\"from\":\"41\"}}"));
}

static void fill(char *words, size_t most)
{
    memset(words, '"', most); /* takes two bytes each */
    words[most] = '\0';
}

static void the_longest_stay_below_their_weight(void **state)
{
    (void)state;
    char key[KEY_MAX + 1];
    struct done *done = &record.once.done;
    fill(key, KEY_MAX);
    record_init(&record, key);
    record_set_kind(&record, KIND_ONCE);
    record.cooling = (struct span){
        .length_ms = SPAN_MAX_MS,
        .since = {.revision = REVISION_MAX, .time_ms = TIME_MAX_MS, .epoch = EPOCH_MAX}};
    fill(record.cooling.by, HOLDER_MAX);
    fill(record.once.payload, PAYLOAD_MAX);
    fill(done->request, REQUEST_MAX);
    fill(done->result, RESULT_MAX);
    fill(done->watermark, KEY_MAX);
    fill(done->until, POSITION_MAX);
    done->token = UINT64_MAX;
    done->status = STATUS_MAX;
    size_t length = record_encode(&record, bytes, sizeof bytes);
    assert_true(length > 0 && length <= record_size_bound(&record) && length < RECORD_MAX / 4);
    assert_int_equal(decode(bytes), DECODE_OK);

    record_init(&record, key);
    record_set_kind(&record, KIND_WATERMARK);
    fill(record.watermark.value, POSITION_MAX);
    fill(record.watermark.by, HOLDER_MAX);
    fill(record.watermark.request, REQUEST_MAX);
    fill(record.watermark.from, POSITION_MAX);
    record.watermark.order = ORDER_TEXT;
    record.watermark.moved =
        (struct stamp){.revision = REVISION_MAX, .time_ms = TIME_MAX_MS, .epoch = EPOCH_MAX};
    fill(record.reason, REASON_MAX);
    length = record_encode(&record, bytes, sizeof bytes);
    assert_true(length > 0 && length <= record_size_bound(&record));
    assert_int_equal(decode(bytes), DECODE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(a_watermark_without_a_value_is_broken),
        cmocka_unit_test(an_older_watermark_stays_readable),
        cmocka_unit_test(the_longest_stay_below_their_weight),
    };
    return cmocka_run_group_tests_name("record_kinds", tests, NULL, NULL);
}

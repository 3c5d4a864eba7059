/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exit statuses, and the output for programs: also for outcomes that no store at hand
 * can produce.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "face/cli/cli.h"

#include <stdio.h>
#include <string.h>

/* In place of the one in open_store.c, which needs the rest of the program. */
const char *context_store_hint(const struct context *context, const struct lh_report *report)
{
    (void)context;
    (void)report;
    return NULL;
}

static const struct {
    enum lh_outcome outcome;
    int status;
    const char *word;
} table[] = {
    {LH_OK, 0, "ok"},          {LH_BUSY, 75, "busy"},         {LH_COOLING, 73, "cooling"},
    {LH_LOST, 76, "lost"},     {LH_STALE, 78, "stale"},       {LH_UNAVAILABLE, 69, "unavailable"},
    {LH_DENIED, 77, "denied"}, {LH_MISMATCH, 65, "mismatch"}, {LH_USAGE, 64, "usage"},
    {LH_FAILED, 70, "failed"}, {LH_DONE, 73, "done"},
};
enum { OUTCOMES = sizeof table / sizeof table[0] };

static void every_outcome_has_its_status_and_its_object(void **state)
{
    (void)state;
    static struct context context = {.shown = "file:/x.log"};
    assert_int_equal(OUTCOMES, LH_DONE + 1);
    for (size_t i = 0; i < OUTCOMES; i++) {
        char bytes[LINE_SIZE], wanted[256];
        struct text text;
        struct lh_report report = {
            .outcome = table[i].outcome, .text = "why", .ends_in_ms = -1, .since_ms = -1};
        assert_int_equal(outcome_exit_status(table[i].outcome), table[i].status);
        text_init(&text, bytes, sizeof bytes);
        report_to_json(&context, "k", &report, &text);
        const char *refusal = lh_refusal_word(LH_VERB_ANY, table[i].outcome);
        const char *quote = refusal != NULL ? "\"" : "";
        (void)snprintf(wanted, sizeof wanted,
                       "{\"outcome\":\"%s\",\"refusal\":%s%s%s,\"key\":\"k\",\"text\":\"why\","
                       "\"retry_after_ms\":null,\"store\":\"file:/x.log\"}",
                       table[i].word, quote, refusal != NULL ? refusal : "null", quote);
        assert_string_equal(bytes, wanted);
    }
}

static void a_view_has_every_field_in_every_state(void **state)
{
    (void)state;
    static struct context context = {.shown = "memory:"};
    static const char *const words[] = {"free",    "held",    "offered",
                                        "cooling", "delayed", "unreadable"};
    for (int i = LH_FREE; i <= LH_UNREADABLE; i++) {
        char bytes[LINE_SIZE], wanted[128];
        struct text text;
        struct lh_view view = {.key = "k",
                               .state = (enum lh_state)i,
                               .since_ms = -1,
                               .ends_in_ms = 1500,
                               .takeover_in_ms = 8500,
                               .renewed_ago_ms = -1,
                               .written_ago_ms = -1,
                               .written_at_ms = -1};
        text_init(&text, bytes, sizeof bytes);
        view_to_json(&context, &view, NULL, /* past= */ false, &text);
        (void)snprintf(wanted, sizeof wanted, "{\"key\":\"k\",\"state\":\"%s\",", words[i]);
        assert_memory_equal(bytes, wanted, strlen(wanted));
        bool cools = i == LH_COOLING_DOWN || i == LH_DELAYED;
        assert_non_null(
            strstr(bytes, i == LH_HELD ? "\"expires_in_ms\":1500," : "\"expires_in_ms\":null,"));
        assert_non_null(
            strstr(bytes, i == LH_HELD ? "\"takeover_in_ms\":8500," : "\"takeover_in_ms\":null,"));
        assert_non_null(
            strstr(bytes, cools ? "\"cooling_for_ms\":1500," : "\"cooling_for_ms\":null,"));
        text_clear(&text);
        view_to_line(&view, &text);
        (void)snprintf(wanted, sizeof wanted, "%s: k", words[i]);
        assert_memory_equal(bytes, wanted, strlen(wanted));
    }
}

static void a_lease_ends_before_others_may_take_over(void **state)
{
    static const struct {
        int64_t ends_in_ms, takeover_in_ms;
        const char *line;
    } rows[] = {
        {20000, 20000, "held: k by a for 12s (lease ends in 20s), token 9"},
        {20000, 27000, "held: k by a for 12s (lease ends in 20s; free 7s later), token 9"},
        {0, 3000, "held: k by a for 12s (lease ended; free in 3s), token 9"},
        {-1, -1, "held: k by a for 12s, token 9"},
    };
    static struct context context;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[LINE_SIZE];
        struct text text;
        struct lh_view view = {.key = "k",
                               .state = LH_HELD,
                               .holder = "a",
                               .token = 9,
                               .since_ms = 12000,
                               .ends_in_ms = rows[i].ends_in_ms,
                               .takeover_in_ms = rows[i].takeover_in_ms};
        text_init(&text, bytes, sizeof bytes);
        view_to_line(&view, &text);
        assert_string_equal(bytes, rows[i].line);
        struct lh_report report = {.outcome = LH_BUSY,
                                   .ends_in_ms = rows[i].ends_in_ms,
                                   .takeover_in_ms = rows[i].takeover_in_ms};
        char wanted[64] = "\"retry_after_ms\":null";
        if (rows[i].takeover_in_ms >= 0)
            (void)snprintf(wanted, sizeof wanted, "\"retry_after_ms\":%d",
                           (int)rows[i].takeover_in_ms);
        text_clear(&text);
        report_to_json(&context, "k", &report, &text);
        assert_non_null(strstr(bytes, wanted));
    }
}

/* A store may know the time of each write, but not the current one. */
static void a_write_is_dated_without_a_current_time(void **state)
{
    (void)state;
    static struct context context;
    static char bytes[LINE_SIZE];
    struct lh_view view = {.key = "db",
                           .state = LH_HELD,
                           .since_ms = 60000,
                           .ends_in_ms = -1,
                           .renewed_ago_ms = -1,
                           .written_ago_ms = -1,
                           .written_at_ms = 1700000060000};
    struct text text;
    char when[32];
    assert_string_equal(format_written_time(&view, when), "2023-11-14T22:14:20.000Z");
    text_init(&text, bytes, sizeof bytes);
    view_to_json(&context, &view, NULL, /* past= */ true, &text);
    assert_non_null(strstr(bytes, "\"acquired_at\":\"2023-11-14T22:13:20.000Z\""));
    assert_non_null(strstr(bytes, "\"written_at\":\"2023-11-14T22:14:20.000Z\""));
    view.written_at_ms = -1;
    assert_string_equal(format_written_time(&view, when), "");
}

static void the_longest_words_fit_into_a_line(void **state)
{
    (void)state;
    static struct context context;
    static char key[LH_KEY_SIZE], note[1024], bytes[LINE_SIZE];
    struct lh_meta pair = {"n", note};
    struct lh_view view = {.state = LH_HELD, .meta = &pair, .meta_count = 1, .reason = key};
    struct text text;
    memset(key, '"', sizeof key - 1);
    memset(note, '"', sizeof note - 1);
    memcpy(view.key, key, sizeof key);
    memset(view.holder, '"', sizeof view.holder - 1);
    memset(context.shown, '"', sizeof context.shown - 1);
    text_init(&text, bytes, sizeof bytes);
    view_to_json(&context, &view, "ok", /* past= */ false, &text);
    assert_false(text.cut);
    view.kind = LH_WATERMARK;
    view.result = note;
    text_clear(&text);
    view_to_json(&context, &view, "ok", /* past= */ false, &text);
    assert_false(text.cut);
}

static const struct {
    struct lh_view view;
    const char *line, *json; /* last members of the object */
} kinds[] = {
    {{.key = "once:a",
      .kind = LH_ONCE,
      .state = LH_HELD,
      .holder = "wfe-7",
      .token = 9,
      .since_ms = 12000,
      .ends_in_ms = 18000,
      .renewed_ago_ms = -1,
      .written_ago_ms = -1,
      .written_at_ms = -1,
      .result = ""},
     "running: once:a by wfe-7 for 12s (claim ends in 18s), token 9",
     ",\"kind\":\"once\",\"once\":\"running\"}"},
    {{.key = "once:a",
      .kind = LH_ONCE,
      .state = LH_COOLING_DOWN,
      .holder = "wfe-7",
      .since_ms = 12000,
      .ends_in_ms = 18000,
      .renewed_ago_ms = -1,
      .written_ago_ms = -1,
      .written_at_ms = -1,
      .result = "fine"},
     "done: once:a was done by wfe-7 12s ago; kept for 18s: fine",
     ",\"kind\":\"once\",\"once\":\"done\",\"exit_status\":0,\"result\":\"fine\"}"},
    {{.key = "once:a",
      .kind = LH_ONCE,
      .state = LH_COOLING_DOWN,
      .status = 3,
      .holder = "wfe-7",
      .since_ms = 12000,
      .ends_in_ms = 18000,
      .renewed_ago_ms = -1,
      .written_ago_ms = -1,
      .written_at_ms = -1,
      .result = ""},
     "failed: once:a was done by wfe-7 12s ago with status 3; kept for 18s",
     ",\"kind\":\"once\",\"once\":\"failed\",\"exit_status\":3,\"result\":\"\"}"},
    {{.key = "watermark:w",
      .kind = LH_WATERMARK,
      .state = LH_FREE,
      .holder = "wfe-7",
      .since_ms = 12000,
      .ends_in_ms = -1,
      .renewed_ago_ms = -1,
      .written_ago_ms = -1,
      .written_at_ms = -1,
      .result = "42"},
     "watermark: watermark:w is at 42, moved by wfe-7 12s ago",
     ",\"kind\":\"watermark\",\"value\":\"42\",\"moved_by\":\"wfe-7\",\"moved_at\":\""},
};

static void ids_and_watermarks_say_what_they_are(void **state)
{
    (void)state;
    static struct context context = {.shown = "memory:"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char bytes[LINE_SIZE];
        struct text text;
        bool watermark = kinds[i].view.kind == LH_WATERMARK;
        text_init(&text, bytes, sizeof bytes);
        view_to_line(&kinds[i].view, &text);
        assert_string_equal(bytes, kinds[i].line);
        text_init(&text, bytes, sizeof bytes);
        view_to_json(&context, &kinds[i].view, NULL, /* past= */ false, &text);
        assert_non_null(strstr(bytes, kinds[i].json));
        assert_non_null(strstr(bytes, watermark ? "\"state\":\"free\",\"holder\":null"
                                                : "\"holder\":\"wfe-7\""));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_outcome_has_its_status_and_its_object),
        cmocka_unit_test(a_view_has_every_field_in_every_state),
        cmocka_unit_test(a_lease_ends_before_others_may_take_over),
        cmocka_unit_test(a_write_is_dated_without_a_current_time),
        cmocka_unit_test(the_longest_words_fit_into_a_line),
        cmocka_unit_test(ids_and_watermarks_say_what_they_are),
    };
    return cmocka_run_group_tests_name("say", tests, NULL, NULL);
}

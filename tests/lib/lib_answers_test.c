/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a report besides the outcome: effect, holder, and the word of a refusal. */
#include "lib_kit.h"

#include <stdio.h>
#include <string.h>

static const struct lh_acquire_options unbound = {
    .size = sizeof unbound, .ttl_ms = 60000, .unbound = true, .holder = "bob"};

static uint64_t take(struct lh_client *client, const char *key)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = kit_acquire(client, key, &unbound);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    return token;
}

static void a_break_says_whom_it_asked(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    uint64_t token = take(client, "k");
    ASSERT_OUTCOME(lh_break(client, "k", "fire", /* at_once= */ false, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_ASKED);
    assert_int_equal(report.state, LH_HELD);
    assert_string_equal(report.holder, "bob");
    assert_true(report.token == token);
    assert_in_range(report.ends_in_ms, 50000, 60000);
    assert_non_null(strstr(report.text, "asked bob to stop; held until it confirms or until "));
    assert_null(report.refusal);
    ASSERT_OUTCOME(lh_break(client, "k", "fire", /* at_once= */ true, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_FREED);
    assert_int_equal(report.state, LH_FREE);
    assert_string_equal(report.holder, "bob");
    assert_true(report.token == token);
    ASSERT_OUTCOME(lh_break(client, "k", "fire", /* at_once= */ true, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_NONE);
    assert_int_equal(report.state, LH_FREE);
    assert_string_equal(report.holder, "");
    assert_string_equal(report.text, "ok: k: nobody holds it");
    lh_close(&client);
}

static void a_break_counts_the_holders(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_acquire_options options = unbound;
    struct lh_client *client = kit_open(NULL);
    options.limit = 3;
    for (int i = 0; i < 3; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", &options);
        ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    }
    ASSERT_OUTCOME(lh_break(client, "k", "", /* at_once= */ false, &report), LH_OK, &report);
    assert_non_null(strstr(report.text, "asked bob and 2 others to stop"));
    lh_close(&client);
}

static void a_release_if_held_can_be_repeated(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_client *client = kit_open(NULL);
    uint64_t token = take(client, "k");
    ASSERT_OUTCOME(lh_release_token_if_held(client, "k", token, 0, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_RELEASED);
    ASSERT_OUTCOME(lh_release_token_if_held(client, "k", token, 60000, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_GONE);
    assert_int_equal(report.state, LH_FREE);
    assert_int_equal(kit_state(client, "k"), LH_FREE); /* no cooldown has begun */
    ASSERT_OUTCOME(lh_release_token(client, "k", token, 0, &report), LH_STALE, &report);
    assert_string_equal(report.refusal, "not_held");
    uint64_t next = take(client, "k");
    ASSERT_OUTCOME(lh_release_token_if_held(client, "k", token, 0, &report), LH_OK, &report);
    assert_int_equal(report.effect, LH_EFFECT_TAKEN);
    assert_int_equal(report.state, LH_HELD);
    assert_string_equal(report.holder, "bob");
    assert_true(report.token == next);
    ASSERT_OUTCOME(lh_status(client, "k", &view, &report), LH_OK, &report);
    assert_true(view.state == LH_HELD && view.token == next);
    ASSERT_OUTCOME(lh_release_token_if_held(client, "k", 0, 0, &report), LH_USAGE, &report);
    assert_string_equal(report.refusal, "usage");
    lh_close(&client);
}

static void a_refusal_has_one_word(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    uint64_t token = take(client, "k");
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_BUSY, &report);
    assert_string_equal(report.refusal, "contention");
    options.wait_ms = 50;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_BUSY, &report);
    assert_string_equal(report.refusal, "timeout");
    options = unbound;
    options.limit = 2;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_MISMATCH, &report);
    assert_string_equal(report.refusal, "mismatch");
    ASSERT_OUTCOME(lh_release_token(client, "k", token, 60000, &report), LH_OK, &report);
    assert_null(report.refusal);
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_COOLING, &report);
    assert_string_equal(report.refusal, "cooling");
    ASSERT_OUTCOME(lh_renew(client, "k", token, 0, &report), LH_STALE, &report);
    assert_string_equal(report.refusal, "not_held");
    ASSERT_OUTCOME(lh_once_begin(client, "i", NULL, &once, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_once_begin(client, "i", NULL, &once, &report), LH_BUSY, &report);
    assert_string_equal(report.refusal, "running");
    ASSERT_OUTCOME(lh_seen(client, "i", &report), LH_BUSY, &report);
    assert_string_equal(report.refusal, "running");
    ASSERT_OUTCOME(lh_mark(client, "m", NULL, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_mark(client, "m", NULL, &report), LH_DONE, &report);
    assert_string_equal(report.refusal, "duplicate");
    ASSERT_OUTCOME(lh_watermark_advance(client, "w", "7", "9", &report), LH_STALE, &report);
    assert_string_equal(report.refusal, "moved");
    lh_close(&client);
}

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    assert_null(lease);
    *(struct lh_report *)user = *report;
}

static void a_cancelled_waiter_is_notified(void **state)
{
    (void)state;
    struct lh_report report = {.size = sizeof report, .outcome = LH_OK};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_open_options own = LH_OPEN_OPTIONS_INIT;
    own.own_loop = true;
    options.wait_ms = LH_WAIT_FOREVER;
    struct lh_client *client = kit_open(&own);
    (void)take(client, "k");
    struct lh_request *request = lh_acquire_start(client, "k", &options, on_done, &report, NULL);
    kit_started(request);
    lh_cancel(request);
    for (int i = 0; i < 500 && report.outcome == LH_OK; i++) {
        (void)lh_step(client);
        kit_sleep_ms(10);
    }
    assert_int_equal(report.outcome, LH_BUSY);
    assert_string_equal(report.refusal, "cancelled");
    lh_close(&client);
}

/* docs/refusals.md has the same table. */
static void every_outcome_of_every_call_has_its_word(void **state)
{
    (void)state;
    for (int verb = LH_VERB_ANY; verb <= LH_VERB_WORKLOAD; verb++) {
        assert_null(lh_refusal_word((enum lh_verb)verb, LH_OK));
        for (int outcome = LH_BUSY; outcome <= LH_FAILED; outcome++)
            assert_non_null(lh_refusal_word((enum lh_verb)verb, (enum lh_outcome)outcome));
    }
    assert_string_equal(lh_refusal_word(LH_VERB_WORKLOAD, LH_BUSY), "ResourceBusy");
    assert_string_equal(lh_refusal_word(LH_VERB_WORKLOAD, LH_COOLING), "RecentlyRemediated");
    assert_string_equal(lh_refusal_word(LH_VERB_ACQUIRE, LH_UNAVAILABLE), "api_error");
    assert_string_equal(lh_refusal_word(LH_VERB_CHECK, LH_STALE), "stale_token");
    assert_string_equal(lh_refusal_word((enum lh_verb)99, LH_BUSY), "contention");
    assert_string_equal(lh_refusal_word(LH_VERB_ANY, (enum lh_outcome)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(a_break_says_whom_it_asked),
        ON_FILE(a_break_says_whom_it_asked),
        ON_MEMORY(a_break_counts_the_holders),
        ON_FILE(a_break_counts_the_holders),
        ON_MEMORY(a_release_if_held_can_be_repeated),
        ON_FILE(a_release_if_held_can_be_repeated),
        ON_MEMORY(a_refusal_has_one_word),
        ON_FILE(a_refusal_has_one_word),
        ON_FILE(a_cancelled_waiter_is_notified),
        cmocka_unit_test(every_outcome_of_every_call_has_its_word),
    };
    return cmocka_run_group_tests_name("lib_answers", tests, NULL, NULL);
}

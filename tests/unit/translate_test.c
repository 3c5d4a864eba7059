/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between lease and store: an action becomes a request, a reply an event. An invalid reply, and a
 * value that is no record of ours, is trouble: never free and never busy (rule 10).
 */
#include "store/translate.h"

#include "base/text.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char held[] =
    "{\"leasehold\":1,\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"request\":"
    "\"r\",\"session\":\"1\",\"mode\":\"exclusive\",\"granted\":\"this\","
    "\"ttl_ms\":9}]}";

static struct record record;
static char bytes[RECORD_MAX];
static struct event event;
static const char *why;

/* A reply as a store gives it for the record above. */
static struct store_reply answer_with(const char *text)
{
    return (struct store_reply){.result = REPLY_OK,
                                .present = true,
                                .written = {.revision = 7, .time_ms = 1000, .epoch = 2},
                                .now_ms = 1500,
                                .bytes = text,
                                .length = strlen(text)};
}

static void exchange(const struct store_reply *reply)
{
    memset(&event, 0xa5, sizeof event);
    event.known = true;
    record_init(&record, "before");
    why = NULL;
    translate_reply(reply, "k", &record, &event, &why);
}

static void assert_trouble(const struct store_reply *reply, const char *words)
{
    exchange(reply);
    assert_int_equal(event.reply, REPLY_TROUBLE);
    assert_false(event.known);
    assert_non_null(why);
    assert_non_null(strstr(why, words));
}

static void a_record_is_known_with_its_marks_resolved(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.alive_ms = 4711;
    exchange(&reply);
    assert_int_equal(event.reply, REPLY_OK);
    assert_true(event.known);
    assert_int_equal(event.alive_ms, 4711);
    assert_int_equal(event.at.revision, 7);
    assert_int_equal(event.at.time_ms, 1500);
    assert_int_equal(event.at.epoch, 2);
    assert_int_equal(record.grant_count, 1);
    assert_int_equal(record.grants[0].granted.time_ms, 1000);
    assert_true(grant_token(&record.grants[0]) == ((uint64_t)2 << 55) + (7 << 10));
    assert_null(why);
}

static void a_conflict_carries_what_stands(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.result = REPLY_CONFLICT;
    exchange(&reply);
    assert_int_equal(event.reply, REPLY_CONFLICT);
    assert_true(event.known);
    assert_int_equal(record.grant_count, 1);
}

static void nothing_there_is_an_absent_record(void **state)
{
    (void)state;
    struct store_reply reply = {.result = REPLY_OK, .now_ms = 1500};
    exchange(&reply);
    assert_true(event.known);
    assert_int_equal(event.reply, REPLY_OK);
    assert_int_equal(event.at.revision, 0);
    assert_int_equal(event.at.time_ms, 1500);
    assert_string_equal(record.key, "k");
    assert_false(record_needed(&record));
}

static void trouble_and_denial_say_nothing_about_the_record(void **state)
{
    (void)state;
    static const enum reply_status results[] = {REPLY_TROUBLE, REPLY_DENIED};
    for (size_t i = 0; i < 2; i++) {
        struct store_reply reply = answer_with(held);
        reply.result = results[i];
        exchange(&reply);
        assert_int_equal(event.reply, results[i]);
        assert_false(event.known);
        assert_string_equal(record.key, "before");
        assert_null(why);
    }
}

static void a_store_without_a_clock_is_heard(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.written.time_ms = reply.now_ms = TIME_UNKNOWN;
    exchange(&reply);
    assert_true(event.known);
    assert_true(event.at.time_ms == TIME_UNKNOWN);
    assert_true(record.grants[0].granted.time_ms == TIME_UNKNOWN);
}

static void the_largest_values_are_heard(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.written =
        (struct stamp){.revision = REVISION_MAX, .time_ms = TIME_MAX_MS, .epoch = EPOCH_MAX};
    reply.now_ms = TIME_MAX_MS;
    exchange(&reply);
    assert_true(event.known);
    reply.written = (struct stamp){.revision = 1};
    reply.now_ms = 0;
    exchange(&reply);
    assert_true(event.known);
}

static void an_impossible_revision_is_trouble(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.written.revision = 0;
    assert_trouble(&reply, "out of bounds");
    reply.written.revision = REVISION_MAX + 1;
    assert_trouble(&reply, "out of bounds");
    reply.written.revision = 7;
    reply.written.epoch = EPOCH_MAX + 1;
    assert_trouble(&reply, "out of bounds");
}

static void an_impossible_time_is_trouble(void **state)
{
    (void)state;
    struct store_reply reply = answer_with(held);
    reply.written.time_ms = -1;
    assert_trouble(&reply, "out of bounds");
    reply.written.time_ms = TIME_MAX_MS + 1;
    assert_trouble(&reply, "out of bounds");
}

/* Taken literally it would end every lease at once. */
static void an_impossible_present_is_trouble(void **state)
{
    (void)state;
    static const int64_t impossible[] = {-1, TIME_MAX_MS + 1, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct store_reply reply = answer_with(held);
        reply.now_ms = impossible[i];
        assert_trouble(&reply, "out of bounds");
        reply.present = false;
        assert_trouble(&reply, "out of bounds");
    }
}

static void bytes_that_are_no_record_are_trouble(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *words;
    } cases[] = {
        {"", "not written by leasehold"},
        {"3f1c6f9e-0a", "not written by leasehold"},
        {"{\"leasehold\":99}", "newer leasehold"},
        {"{\"leasehold\":1,\"key\":\"k\",\"grants\":[]}", "broken"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_reply reply = answer_with(cases[i].bytes);
        assert_trouble(&reply, cases[i].words);
        reply.result = REPLY_CONFLICT;
        assert_trouble(&reply, cases[i].words);
    }
}

/* Data of the store besides the record: of each grant, waiter and span, and of no other. */
/* With its mark resolved, the second grant has the token of the first. */
static void a_mark_that_becomes_the_token_of_another_is_trouble(void **state)
{
    (void)state;
    static const char twice[] =
        "{\"leasehold\":1,\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"request\":\"r\","
        "\"session\":"
        "\"1\",\"mode\":\"shared\",\"granted\":[2,7,1000],\"ttl_ms\":9},{\"holder\":\"h\","
        "\"request\":"
        "\"s\",\"session\":\"2\",\"mode\":\"shared\",\"granted\":\"this\",\"ttl_ms\":9}]}";
    struct store_reply reply = answer_with(twice);
    assert_trouble(&reply, "broken");
    reply.written.revision = 8;
    exchange(&reply);
    assert_true(event.known);
}

static void liveness_comes_with_the_answer(void **state)
{
    (void)state;
    static const char text[] =
        "{\"leasehold\":1,\"key\":\"k\",\"next\":3,\"grants\":["
        "{\"holder\":\"h\",\"request\":\"r\",\"session\":\"1\",\"mode\":\"shared\","
        "\"granted\":\"this\",\"ttl_ms\":9},"
        "{\"holder\":\"h\",\"request\":\"s\",\"session\":\"2\",\"mode\":\"shared\",\"n\":1,"
        "\"granted\":\"this\",\"ttl_ms\":9}],\"places\":["
        "{\"holder\":\"h\",\"request\":\"t\",\"session\":\"3\",\"mode\":\"shared\","
        "\"ticket\":1,\"ttl_ms\":9},"
        "{\"holder\":\"h\",\"request\":\"u\",\"session\":\"4\",\"mode\":\"shared\","
        "\"ticket\":2,\"ttl_ms\":9}]}";
    static const uint64_t dead[] = {4, 1};
    struct store_reply reply = answer_with(text);
    uint64_t ended[] = {77, token_of(&reply.written, 1)};
    exchange(&reply);
    assert_false(record.grants[0].dead || record.grants[1].over || record.waiters[1].dead);
    assert_false(record.cooling.over || record.delay.over);
    reply.dead_sessions = dead;
    reply.dead_count = 2;
    reply.ended_tokens = ended;
    reply.ended_count = 2;
    exchange(&reply);
    assert_true(record.grants[0].dead && !record.grants[1].dead);
    assert_true(!record.grants[0].over && record.grants[1].over);
    assert_true(!record.waiters[0].dead && record.waiters[1].dead);
    assert_false(record.cooling.over || record.delay.over);
    reply.cooling_over = true;
    exchange(&reply);
    assert_true(record.cooling.over && !record.delay.over);
    reply.cooling_over = false;
    reply.delay_over = true;
    exchange(&reply);
    assert_true(!record.cooling.over && record.delay.over);
}

/* From lease to store. */

static const struct lease_options options = {
    .request = {.key = "k", .session = 5, .ttl_ms = 3000, .bound = true}};
static const struct lease lease = {.options = &options};

static struct store_request request_for(enum action action, enum condition_kind kind)
{
    struct lease_output output = {.action = action,
                                  .condition = {.kind = kind, .revision = 7, .token = 99}};
    struct store_request request;
    record_init(&record, "k");
    record.cooling.length_ms = 5;
    translate_request(&lease, &output, &record, bytes, sizeof bytes, &request);
    assert_string_equal(request.key, "k");
    assert_int_equal(request.condition.kind, kind);
    assert_int_equal(request.condition.revision, 7);
    assert_int_equal(request.condition.token, 99);
    return request;
}

static void a_read_and_a_delete_carry_no_bytes(void **state)
{
    (void)state;
    struct store_request request = request_for(ACTION_READ, IF_ABSENT);
    assert_int_equal(request.verb, VERB_STORE_READ);
    assert_null(request.bytes);
    request = request_for(ACTION_DELETE, IF_REVISION);
    assert_int_equal(request.verb, VERB_STORE_DELETE);
    assert_null(request.bytes);
}

static void a_swap_carries_the_encoded_record(void **state)
{
    (void)state;
    struct store_request request = request_for(ACTION_SWAP, IF_REVISION);
    assert_int_equal(request.verb, VERB_STORE_SWAP);
    const char *encoded = "{\"leasehold\":1,\"key\":\"k\","
                          "\"cooling\":{\"since\":\"this\",\"length_ms\":5}}";
    assert_int_equal(request.length, strlen(encoded));
    assert_memory_equal(request.bytes, encoded, request.length);
}

static struct store_summary summary_of_record(void)
{
    struct store_summary summary;
    summarize_record(&record, /* session= */ 5, &summary);
    return summary;
}

static struct grant *add_grant(const char *holder, uint64_t granted, uint64_t renewed)
{
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, holder);
    text_copy(grant->request, sizeof grant->request, "r");
    grant->granted = (struct stamp){.revision = granted, .time_ms = 100};
    grant->renewed = (struct stamp){.revision = renewed, .time_ms = 200};
    grant->ttl_ms = 3000;
    return grant;
}

static void a_summary_names_the_first_holder(void **state)
{
    (void)state;
    record_init(&record, "k");
    struct grant *first = add_grant("first", /* granted= */ 4, /* renewed= */ 6);
    first->broken = true;
    first->lock_delay_ms = 500;
    (void)add_grant("second", /* granted= */ 4, THIS_WRITE);
    add_grant("third", THIS_WRITE, THIS_WRITE)->ttl_ms = 9000;
    struct store_summary summary = summary_of_record();
    assert_int_equal(summary.grants, 3);
    assert_int_equal(summary.new_grants, 1);
    assert_int_equal(summary.renewed_grants, 2);
    assert_string_equal(summary.holder, "first");
    assert_string_equal(summary.request, "r");
    assert_true(summary.token == grant_token(first) && summary.broken && !summary.renewed);
    assert_int_equal(summary.ttl_ms, 3000);
    assert_int_equal(summary.held_until_ms, 200 + 3000 + 500);
    assert_int_equal(summary.held_ms, 9000);
    assert_false(summary.queued || summary.permanent || summary.waiters > 0);
}

static void a_summary_counts_waiters_and_spans(void **state)
{
    (void)state;
    record_init(&record, "k");
    struct waiter *waiter = record_add_waiter(&record);
    waiter->session = 6;
    waiter->offered = true;
    record.delay = (struct span){.length_ms = 40, .by = "crashed"};
    record.cooling = (struct span){.length_ms = 70, .by = "done"};
    struct store_summary summary = summary_of_record();
    assert_int_equal(summary.waiters, 1);
    assert_int_equal(summary.offers, 1);
    assert_false(summary.queued);
    assert_int_equal(summary.held_ms, 40); /* a cooldown of a lock does not block other programs */
    assert_int_equal(summary.spans_ms, 110);
    assert_string_equal(summary.holder, "crashed");
    record_add_waiter(&record)->session = 5;
    assert_true(summary_of_record().queued);
    record_set_kind(&record, KIND_ONCE);
    assert_int_equal(summary_of_record().held_ms, 70);
    text_copy(record.once.done.watermark, sizeof record.once.done.watermark, "w");
    assert_true(summary_of_record().permanent);
    record_set_kind(&record, KIND_WATERMARK);
    assert_true(summary_of_record().permanent);
}

static void a_renewal_by_token_carries_only_its_terms(void **state)
{
    (void)state;
    struct store_request request = request_for(ACTION_SWAP, IF_GRANT);
    assert_null(request.bytes);
    assert_int_equal(request.length, 0);
    assert_int_equal(request.ttl_ms, 3000);
    assert_int_equal(request.session, 5);
    assert_true(request.bound);
}

static void a_request_names_whom_to_wake(void **state)
{
    (void)state;
    struct lease_output output = {.action = ACTION_DELETE,
                                  .wake_count = 2,
                                  .given_count = 1,
                                  .spare_count = 1,
                                  .wake = {8, 9}};
    struct store_request request;
    translate_request(&lease, &output, &record, bytes, sizeof bytes, &request);
    assert_int_equal(request.wake_count, 2);
    assert_int_equal(request.given_count, 1);
    assert_int_equal(request.spare_count, 1);
    assert_int_equal(request.wake[0], 8);
    assert_int_equal(request.wake[1], 9);
}

static void capabilities_become_facts(void **state)
{
    (void)state;
    struct store_driver driver = {.capabilities = 0};
    struct store_facts facts = store_facts_at(&driver, "");
    assert_int_equal(facts.judge, JUDGE_OBSERVED);
    assert_false(facts.one_clock || facts.tests_grant || facts.wakes_with_record);
    assert_int_equal(facts.margin_ms, 0);
    driver.capabilities = STORE_SESSIONS | STORE_TESTS_GRANT;
    facts = store_facts_at(&driver, "");
    assert_int_equal(facts.judge, JUDGE_SESSION);
    assert_true(facts.tests_grant && facts.renews_by_revision && !facts.one_clock);
    driver.capabilities |= STORE_RENEWS_GRANT;
    assert_false(store_facts_at(&driver, "").renews_by_revision);
    assert_false(facts.renews_by_session);
    driver.capabilities |= STORE_RENEWS_SESSION;
    assert_true(store_facts_at(&driver, "").renews_by_session);
    driver.capabilities = STORE_SESSIONS | STORE_TIME | STORE_ONE_CLOCK | STORE_TELLS;
    facts = store_facts_at(&driver, "");
    assert_int_equal(facts.judge, JUDGE_STORE_TIME);
    assert_true(facts.one_clock && !facts.tests_grant && facts.wakes_with_record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_known_with_its_marks_resolved),
        cmocka_unit_test(a_conflict_carries_what_stands),
        cmocka_unit_test(nothing_there_is_an_absent_record),
        cmocka_unit_test(trouble_and_denial_say_nothing_about_the_record),
        cmocka_unit_test(a_store_without_a_clock_is_heard),
        cmocka_unit_test(the_largest_values_are_heard),
        cmocka_unit_test(an_impossible_revision_is_trouble),
        cmocka_unit_test(an_impossible_time_is_trouble),
        cmocka_unit_test(an_impossible_present_is_trouble),
        cmocka_unit_test(bytes_that_are_no_record_are_trouble),
        cmocka_unit_test(a_mark_that_becomes_the_token_of_another_is_trouble),
        cmocka_unit_test(liveness_comes_with_the_answer),
        cmocka_unit_test(a_read_and_a_delete_carry_no_bytes),
        cmocka_unit_test(a_swap_carries_the_encoded_record),
        cmocka_unit_test(a_summary_names_the_first_holder),
        cmocka_unit_test(a_summary_counts_waiters_and_spans),
        cmocka_unit_test(a_renewal_by_token_carries_only_its_terms),
        cmocka_unit_test(a_request_names_whom_to_wake),
        cmocka_unit_test(capabilities_become_facts),
    };
    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}

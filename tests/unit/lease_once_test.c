/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims, marks and watermarks as leases and operations: how many requests they take, what is
 * reported, and that a lost reply never applies a request twice.
 */
#include "lease_kit.h"

#include <string.h>

static const struct completion completion = {.result = "created #17"};

static void carry_on(void)
{
    while (lease.in_flight)
        carry_out();
}

static void claim(void)
{
    options.request.key = "once:k";
    options.request.kind = KIND_ONCE;
    options.request.waits = false;
    options.cooldown_ms = 60000;
    options.request.completion = &completion;
}

static void mark(void)
{
    claim();
    use_verb(VERB_MARK, 0);
}

static struct request neighbours_claim(const char *who)
{
    struct request request = neighbours_request(VERB_ACQUIRE, who);
    request.kind = KIND_ONCE;
    return request;
}

static void neighbour_finishes(const char *who)
{
    struct request request = neighbours_request(VERB_RELEASE, who);
    request.cooldown_ms = 60000;
    (void)neighbour_does(request);
}

static void a_claim_is_finished_when_it_is_let_go(void **state)
{
    (void)state;
    claim();
    begin();
    assert_line("idle + start -> acquiring; verdict granted; swap if absent");
    carry_out();
    assert_int_equal(out.notify, NOTIFY_HELD);
    happens_knowing(EVENT_RELEASE);
    assert_line("held + let go -> releasing; verdict done; swap if revision 1");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    assert_int_equal(record.kind, KIND_ONCE);
    assert_string_equal(record.once.done.result, "created #17");
    assert_int_equal(record.once.done.token, 1024);
}

static void a_later_claimer_gets_cooling_and_the_result(void **state)
{
    (void)state;
    claim();
    (void)neighbour_does(neighbours_claim("b"));
    neighbour_finishes("b");
    begin();
    carry_on();
    assert_ended(OUTCOME_COOLING, NULL);
    assert_string_equal(record.once.done.request, "b");
}

static void a_lost_answer_to_a_finish_is_no_loss(void **state)
{
    (void)state;
    claim();
    begin();
    carry_out();
    happens_knowing(EVENT_RELEASE);
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_on();
    assert_ended(OUTCOME_OK, NULL);
}

/* It never arrived; another client claimed and finished meanwhile. Nothing is presumed. */
static void another_ones_finish_is_not_taken_for_ours(void **state)
{
    (void)state;
    claim();
    begin();
    carry_out();
    happens_knowing(EVENT_RELEASE);
    reply(REPLY_TROUBLE);
    now_ms += 9000;
    (void)neighbour_does(neighbours_claim("b"));
    neighbour_finishes("b");
    wake();
    carry_on();
    assert_ended(OUTCOME_LOST, "the grant is gone");
}

static void a_mark_takes_one_request(void **state)
{
    (void)state;
    mark();
    begin();
    assert_line("idle + start -> operation; verdict done; swap if absent");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_mark_of_what_is_done_hears_so(void **state)
{
    (void)state;
    mark();
    (void)neighbour_does(neighbours_claim("b"));
    begin();
    carry_on();
    assert_ended(OUTCOME_BUSY, NULL);
    close_lease(NULL);
    open_lease(NULL);
    mark();
    (void)neighbour_does(neighbours_claim("b"));
    neighbour_finishes("b");
    begin_knowing();
    assert_line("idle + start -> operation; verdict cooling; read");
    carry_on();
    assert_ended(OUTCOME_COOLING, NULL);
}

static void a_mark_whose_answer_was_lost_is_still_new(void **state)
{
    (void)state;
    mark();
    begin();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_on();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_mark_wakes_those_it_sends_home(void **state)
{
    (void)state;
    mark();
    (void)neighbour_does(neighbours_claim("b"));
    (void)neighbour_does(neighbours_claim("c"));
    (void)neighbour(VERB_RELEASE, "b");
    begin_knowing();
    assert_line("idle + start -> operation; verdict done; swap if revision 3, wakes 1");
    assert_wakes("c");
}

static void a_full_store_refuses_at_once(void **state)
{
    (void)state;
    mark();
    begin();
    reply(REPLY_FULL);
    assert_ended(OUTCOME_UNAVAILABLE, "the store is full");
}

/* A held claim has its room; should a store report none all the same, the holder retries. */
static void a_full_store_does_not_cost_a_holder_its_claim(void **state)
{
    (void)state;
    claim();
    begin();
    carry_out();
    wake();
    reply(REPLY_FULL);
    assert_true(lease_held(&lease, now_ms));
    wake();
    carry_on();
    assert_true(lease_held(&lease, now_ms));
}

static void a_watermark_is_looked_at_and_moved(void **state)
{
    (void)state;
    use_verb(VERB_ADVANCE, 0);
    options.request.key = "watermark:k";
    options.request.value = "17";
    options.request.expected = "";
    begin();
    assert_line("idle + start -> operation; read");
    carry_out();
    assert_line("operation + answer ok -> operation; verdict done; swap if absent");
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_on();
    assert_ended(OUTCOME_OK, "this request has moved it already");
}

static void a_watermark_that_moved_is_stale(void **state)
{
    (void)state;
    use_verb(VERB_ADVANCE, 0);
    options.request.key = "watermark:k";
    options.request.value = "17";
    options.request.expected = "";
    struct request request = neighbours_request(VERB_SET, "b");
    request.value = "20";
    (void)neighbour_does(request);
    begin();
    carry_on();
    assert_ended(OUTCOME_STALE, "the watermark is not what was expected");
    assert_string_equal(record.watermark.value, "20");
}

/* It was the first to set a value, so there was none to compare it with. */
static void a_first_set_that_is_repeated_undoes_nothing(void **state)
{
    (void)state;
    use_verb(VERB_SET, 0);
    options.request.key = "watermark:k";
    options.request.value = "17";
    options.request.reason = "begin here";
    begin();
    carry_out(); /* it queries */
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    struct request request = neighbours_request(VERB_ADVANCE, "b");
    request.expected = "17";
    request.value = "20";
    (void)neighbour_does(request);
    wake();
    carry_on();
    assert_ended(OUTCOME_OK, "it was moved meanwhile");
    assert_string_equal(record.watermark.value, "20");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_claim_is_finished_when_it_is_let_go),
        LEASE_TEST(a_later_claimer_gets_cooling_and_the_result),
        LEASE_TEST(a_lost_answer_to_a_finish_is_no_loss),
        LEASE_TEST(another_ones_finish_is_not_taken_for_ours),
        LEASE_TEST(a_mark_takes_one_request),
        LEASE_TEST(a_mark_of_what_is_done_hears_so),
        LEASE_TEST(a_mark_whose_answer_was_lost_is_still_new),
        LEASE_TEST(a_mark_wakes_those_it_sends_home),
        LEASE_TEST(a_full_store_refuses_at_once),
        LEASE_TEST(a_full_store_does_not_cost_a_holder_its_claim),
        LEASE_TEST(a_watermark_is_looked_at_and_moved),
        LEASE_TEST(a_watermark_that_moved_is_stale),
        LEASE_TEST(a_first_set_that_is_repeated_undoes_nothing),
    };
    return cmocka_run_group_tests_name("lease_once", tests, NULL, NULL);
}

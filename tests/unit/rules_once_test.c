/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are done once (rule 6): of all claims one is new; the others get running or done, with
 * the result; a dead claimer's claim can be taken again; payloads are compared; what is remembered,
 * for how long, and when a store may remove it.
 */
#include "rules_kit.h"

#define KEEP_MS ((int64_t)60000)

static struct request claiming(const char *who)
{
    struct request request = asking(who);
    request.kind = KIND_ONCE;
    request.waits = false;
    return request;
}

static struct verdict claim(const char *who)
{
    return act(claiming(who));
}

static struct request finishing(const char *who, const struct completion *completion)
{
    struct request request = doing(VERB_RELEASE, who);
    request.cooldown_ms = KEEP_MS;
    request.completion = completion;
    return request;
}

static struct request marking(const char *who)
{
    struct request request = doing(VERB_MARK, who);
    request.cooldown_ms = KEEP_MS;
    return request;
}

static void one_claim_is_new_the_others_hear_running(void **state)
{
    (void)state;
    assert_granted(claim("a"));
    assert_int_equal(record.kind, KIND_ONCE);
    assert_kind(claim("b"), VERDICT_BUSY, /* write= */ false);
    assert_standing("a | -");
}

static void a_done_id_is_reported_with_its_result(void **state)
{
    (void)state;
    struct completion completion = {.status = 3, .result = "created #17"};
    (void)claim("a");
    uint64_t token = token_of_holder("a");
    assert_kind(act(finishing("a", &completion)), VERDICT_DONE, /* write= */ true);
    assert_kind(claim("b"), VERDICT_COOLING, /* write= */ false);
    assert_string_equal(record.once.done.result, "created #17");
    assert_string_equal(record.once.done.request, "a");
    assert_int_equal(record.once.done.status, 3);
    assert_int_equal(record.once.done.token, token);
    struct key_info key_info = record_key_info(&record, &view);
    assert_int_equal(key_info.state, KEY_COOLING);
    assert_string_equal(key_info.holder, "a");
}

static void it_is_remembered_until_its_retention_ends(void **state)
{
    (void)state;
    (void)claim("a");
    (void)act(finishing("a", NULL));
    pass(KEEP_MS - 1);
    assert_kind(claim("b"), VERDICT_COOLING, /* write= */ false);
    pass(1);
    assert_granted(claim("b"));
    assert_string_equal(record.once.done.request, "");
    assert_standing("b | -");
}

static void an_abandoned_id_can_be_claimed_at_once(void **state)
{
    (void)state;
    (void)claim("a");
    assert_kind(release("a"), VERDICT_DONE, /* write= */ true);
    assert_false(record_needed(&record));
    assert_granted(claim("b"));
}

static void a_dead_claimers_claim_is_taken_again(void **state)
{
    (void)state;
    (void)claim("a");
    struct request late = finishing("a", NULL);
    pass(TTL_MS);
    assert_granted(claim("b"));
    assert_kind(act(late), VERDICT_STALE, /* write= */ false);
    (void)act(finishing("b", NULL));
    assert_kind(act(late), VERDICT_STALE, /* write= */ false);
    assert_string_equal(record.once.done.request, "b");
}

static void a_repeated_finish_is_the_same_finish(void **state)
{
    (void)state;
    (void)claim("a");
    struct request request = finishing("a", NULL);
    struct request abandon = doing(VERB_RELEASE, "a");
    (void)act(request);
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
    assert_kind(act(abandon), VERDICT_STALE, /* write= */ false);
}

static void a_finish_of_a_lock_is_a_release_with_a_cooldown(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = finishing("a", NULL);
    (void)act(request);
    assert_int_equal(record.kind, KIND_LOCK);
    assert_kind(act(request), VERDICT_STALE, /* write= */ false);
}

static void waiters_for_a_claim_end_when_it_is_done(void **state)
{
    (void)state;
    struct request waiting = claiming("b");
    waiting.waits = true;
    (void)claim("a");
    assert_kind(act(waiting), VERDICT_WAITING, /* write= */ true);
    (void)act(finishing("a", NULL));
    assert_standing("- | - cooling");
    assert_kind(act(waiting), VERDICT_COOLING, /* write= */ false);
}

static void another_payload_is_told_apart(void **state)
{
    (void)state;
    struct request first = claiming("a"), other = claiming("b"), silent = claiming("c");
    first.payload = "aa";
    other.payload = "bb";
    (void)act(first);
    assert_kind(act(other), VERDICT_MISMATCH, /* write= */ false);
    assert_kind(act(silent), VERDICT_BUSY, /* write= */ false);
    (void)act(finishing("a", NULL));
    assert_kind(act(other), VERDICT_MISMATCH, /* write= */ false);
    assert_kind(act(silent), VERDICT_COOLING, /* write= */ false);
    other.payload = "aa";
    assert_kind(act(other), VERDICT_COOLING, /* write= */ false);
    pass(KEEP_MS);
    other.payload = "bb";
    assert_granted(act(other));
    assert_string_equal(record.once.payload, "bb");
}

static void an_id_without_a_payload_takes_any(void **state)
{
    (void)state;
    struct request other = claiming("b");
    other.payload = "bb";
    (void)claim("a");
    assert_kind(act(other), VERDICT_BUSY, /* write= */ false);
    assert_string_equal(record.once.payload, "");
}

/* Waiting behind a claim without a payload, it must not be mistaken for another one later. */
static void a_waiter_carries_its_payload(void **state)
{
    (void)state;
    struct request waiting = claiming("b"), other = claiming("c");
    waiting.payload = "bb";
    waiting.waits = true;
    other.payload = "cc";
    (void)claim("a");
    assert_kind(act(waiting), VERDICT_WAITING, /* write= */ true);
    assert_kind(act(other), VERDICT_MISMATCH, /* write= */ false);
    pass(TTL_MS);
    assert_granted(act(waiting));
    (void)act(finishing("b", NULL));
    assert_kind(act(other), VERDICT_MISMATCH, /* write= */ false);
}

static void a_mark_carries_its_payload(void **state)
{
    (void)state;
    struct request silent = claiming("b"), mark = marking("c"), other = claiming("d");
    silent.waits = true;
    mark.payload = "cc";
    other.payload = "dd";
    (void)claim("a");
    (void)act(silent);
    (void)release("a");
    assert_kind(act(mark), VERDICT_DONE, /* write= */ true);
    assert_kind(act(other), VERDICT_MISMATCH, /* write= */ false);
}

static void a_lock_and_an_id_are_not_mixed(void **state)
{
    (void)state;
    (void)ask("a");
    assert_kind(claim("b"), VERDICT_MISMATCH, /* write= */ false);
    assert_kind(act(marking("b")), VERDICT_MISMATCH, /* write= */ false);
    (void)release("a");
    (void)claim("a");
    assert_kind(ask("b"), VERDICT_MISMATCH, /* write= */ false);
    pass(TTL_MS);
    assert_granted(ask("b"));
    assert_int_equal(record.kind, KIND_LOCK);
}

static void a_mark_is_done_in_one_write(void **state)
{
    (void)state;
    struct completion completion = {.result = "seen"};
    struct request request = marking("a");
    request.completion = &completion;
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    assert_standing("- | - cooling");
    assert_string_equal(record.cooling.by, "a");
    assert_string_equal(record.once.done.result, "seen");
    assert_kind(act(marking("b")), VERDICT_COOLING, /* write= */ false);
    struct request repeated = marking("b");
    repeated.request = "a";
    assert_kind(act(repeated), VERDICT_MISMATCH, /* write= */ false);
    repeated.any_holder = true; /* "host:pid" of another process */
    assert_kind(act(repeated), VERDICT_DONE, /* write= */ false);
    assert_kind(claim("b"), VERDICT_COOLING, /* write= */ false);
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
}

static void a_mark_does_not_disturb_who_is_at_it(void **state)
{
    (void)state;
    struct request request = claiming("a");
    request.lock_delay_ms = 500;
    (void)act(request);
    assert_kind(act(marking("b")), VERDICT_BUSY, /* write= */ false);
    pass(TTL_MS);
    assert_kind(act(marking("b")), VERDICT_BUSY, /* write= */ false);
    pass(500);
    assert_kind(act(marking("b")), VERDICT_DONE, /* write= */ true);
}

static void a_done_id_can_be_cleared(void **state)
{
    (void)state;
    (void)act(marking("a"));
    assert_kind(act(doing(VERB_CLEAR, "o")), VERDICT_DONE, /* write= */ true);
    assert_granted(claim("b"));
}

static void it_is_kept_until_a_watermark_has_passed(void **state)
{
    (void)state;
    struct completion completion = {.watermark = "watermark:w", .until = "100"};
    struct request request = marking("a");
    request.completion = &completion;
    (void)act(request);
    pass(2 * KEEP_MS);
    assert_kind(claim("b"), VERDICT_COOLING, /* write= */ false);
    assert_int_equal(record_key_info(&record, &view).state, KEY_COOLING);
    assert_int_equal(record_retention_ms(&record), KEEP_MS);
    assert_true(record_awaits_watermark(&record));
    assert_string_equal(record.once.done.until, "100");
}

static void a_store_knows_when_it_may_forget(void **state)
{
    (void)state;
    struct request request = claiming("a");
    assert_int_equal(record_retention_ms(&record), 0);
    request.lock_delay_ms = 500;
    (void)act(request);
    assert_int_equal(record_retention_ms(&record), TTL_MS + 500);
    request = claiming("b");
    request.waits = true;
    (void)act(request); /* a live waiter takes it over long before */
    assert_int_equal(record_retention_ms(&record), TTL_MS + 500 + TTL_MAX_MS);
    (void)act(finishing("a", NULL));
    assert_int_equal(record_retention_ms(&record), KEEP_MS);
    assert_false(record_awaits_watermark(&record));
}

static void a_held_lock_is_not_forgotten(void **state)
{
    (void)state;
    (void)ask("a");
    assert_int_equal(record_retention_ms(&record), 0);
    assert_int_equal(record_blocks_ms(&record), TTL_MS);
    struct request request = finishing("a", NULL);
    (void)act(request);
    assert_int_equal(record_retention_ms(&record), KEEP_MS);
    assert_false(record_awaits_watermark(&record));
}

#define CASE(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_claim_is_new_the_others_hear_running),
        CASE(a_done_id_is_reported_with_its_result),
        CASE(it_is_remembered_until_its_retention_ends),
        CASE(an_abandoned_id_can_be_claimed_at_once),
        CASE(a_dead_claimers_claim_is_taken_again),
        CASE(a_repeated_finish_is_the_same_finish),
        CASE(a_finish_of_a_lock_is_a_release_with_a_cooldown),
        CASE(waiters_for_a_claim_end_when_it_is_done),
        CASE(another_payload_is_told_apart),
        CASE(an_id_without_a_payload_takes_any),
        CASE(a_waiter_carries_its_payload),
        CASE(a_mark_carries_its_payload),
        CASE(a_lock_and_an_id_are_not_mixed),
        CASE(a_mark_is_done_in_one_write),
        CASE(a_mark_does_not_disturb_who_is_at_it),
        CASE(a_done_id_can_be_cleared),
        CASE(it_is_kept_until_a_watermark_has_passed),
        CASE(a_store_knows_when_it_may_forget),
        CASE(a_held_lock_is_not_forgotten),
    };
    return cmocka_run_group_tests_name("rules_once", tests, NULL, NULL);
}

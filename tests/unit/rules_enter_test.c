/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: granted, queued or refused. Exclusive, shared and slots (rule 1), mismatches, repeated
 * requests (rule 9), abandoned queue entries. Full queues and records: rules_room_test.c.
 */
#include "rules_kit.h"

#include "base/text.h"

#include <string.h>

static void a_free_key_is_granted_in_one_write(void **state)
{
    (void)state;
    struct meta meta = {0};
    assert_true(meta_add(&meta, "pid", "17"));
    struct request request = asking("a");
    request.bound = true;
    request.lock_delay_ms = 500;
    request.meta = &meta;
    struct verdict verdict = act(request);
    assert_granted(verdict);
    assert_int_equal(verdict.n, 0);
    assert_false(verdict.accepts);
    assert_null(verdict.why);
    assert_standing("a | -");
    const struct grant *grant = grant_of("a");
    assert_string_equal(grant->holder, "a");
    assert_int_equal(grant->session, 'a');
    assert_int_equal(grant->mode, MODE_EXCLUSIVE);
    assert_true(grant->bound);
    assert_int_equal(grant->ttl_ms, TTL_MS);
    assert_int_equal(grant->lock_delay_ms, 500);
    assert_int_equal(grant->granted.revision, 41);
    assert_int_equal(grant->granted.time_ms, 1000000);
    assert_memory_equal(&grant->granted, &grant->renewed, sizeof grant->granted);
    assert_int_equal(grant->meta.count, 1);
    assert_memory_equal(grant->meta.text, "pid\00017", 7);
}

static void a_held_key_is_busy_for_who_does_not_wait(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = asking("b");
    request.waits = false;
    struct verdict verdict = act(request);
    assert_kind(verdict, VERDICT_BUSY, /* write= */ false);
    assert_null(verdict.why);
    assert_standing("a | -");
}

static void a_held_key_gives_a_place_to_who_waits(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = asking_shared("b");
    request.priority = -3;
    request.bound = true;
    request.lock_delay_ms = 7;
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b");
    const struct waiter *waiter = waiter_of("b");
    assert_int_equal(waiter->session, 'b');
    assert_int_equal(waiter->mode, MODE_SHARED);
    assert_int_equal(waiter->priority, -3);
    assert_true(waiter->bound);
    assert_int_equal(waiter->ttl_ms, TTL_MS);
    assert_int_equal(waiter->lock_delay_ms, 7);
}

static void a_queued_waiter_need_not_write_again(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    assert_kind(ask("b"), VERDICT_WAITING, /* write= */ false);
    assert_standing("a | b");
}

static void the_same_name_is_not_the_same_holder(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = asking("b");
    request.holder = "a";
    request.session = 'a';
    request.waits = false;
    assert_kind(act(request), VERDICT_BUSY, /* write= */ false);
}

static void readers_enter_together(void **state)
{
    (void)state;
    assert_granted(act(asking_shared("a")));
    assert_granted(act(asking_shared("b")));
    assert_standing("a+b | -");
    assert_true(token_of_holder("b") > token_of_holder("a"));
}

static void a_reader_does_not_enter_beside_a_writer(void **state)
{
    (void)state;
    (void)ask("a");
    assert_kind(act(asking_shared("b")), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b");
}

static void a_writer_does_not_enter_beside_a_reader(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    assert_kind(ask("b"), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b");
}

static void a_reader_does_not_overtake_a_waiting_writer(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    (void)ask("b");
    assert_kind(act(asking_shared("c")), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b c");
}

static void readers_end_at_the_limit_of_grants(void **state)
{
    (void)state;
    char who[] = {'0', '\0'};
    for (size_t i = 0; i < GRANTS_MAX; i++, who[0]++)
        assert_granted(act(asking_shared(who)));
    assert_kind(act(asking_shared(who)), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(record.grant_count, GRANTS_MAX);
}

static void a_semaphore_gives_its_slots_and_no_more(void **state)
{
    (void)state;
    assert_granted(act(asking_slot("a", 2)));
    assert_granted(act(asking_slot("b", 2)));
    assert_kind(act(asking_slot("c", 2)), VERDICT_WAITING, /* write= */ true);
    assert_standing("a+b | c");
    assert_int_equal(record.limit, 2);
}

static void a_large_semaphore_ends_at_the_limit_of_grants(void **state)
{
    (void)state;
    char who[] = {'0', '\0'};
    for (size_t i = 0; i < GRANTS_MAX; i++, who[0]++)
        assert_granted(act(asking_slot(who, GRANTS_MAX + 1)));
    assert_kind(act(asking_slot(who, GRANTS_MAX + 1)), VERDICT_WAITING, /* write= */ true);
}

static void a_semaphore_of_one_excludes(void **state)
{
    (void)state;
    assert_granted(act(asking_slot("a", 1)));
    assert_kind(act(asking_slot("b", 1)), VERDICT_WAITING, /* write= */ true);
}

static void another_limit_is_a_mismatch(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    struct verdict verdict = act(asking_slot("b", 3));
    assert_kind(verdict, VERDICT_MISMATCH, /* write= */ false);
    assert_non_null(strstr(verdict.why, "limit"));
    assert_kind(ask("b"), VERDICT_MISMATCH, /* write= */ false);
    assert_standing("a | -");
    fresh(NULL);
    (void)ask("a");
    assert_kind(act(asking_slot("b", 1)), VERDICT_MISMATCH, /* write= */ false);
}

/* Its observations of dead processes are left to compatible requests. */
static void a_mismatch_writes_nothing(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    pass(9000);
    (void)act(asking_slot("b", 2));
    pass(1000);
    assert_kind(act(asking_slot("c", 3)), VERDICT_MISMATCH, /* write= */ false);
    assert_standing("a+b | -");
}

static void a_waiter_keeps_the_limit_too(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 1));
    (void)act(asking_slot("b", 1));
    (void)release("a");
    assert_standing("- | b!");
    assert_kind(act(asking_slot("c", 2)), VERDICT_MISMATCH, /* write= */ false);
}

static void a_key_that_nobody_uses_takes_another_limit(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    struct request request = doing(VERB_RELEASE, "a");
    request.cooldown_ms = 10;
    (void)act(request);
    assert_standing("- | - cooling");
    pass(10);
    assert_granted(ask("b"));
    assert_int_equal(record.limit, 0);
}

static void a_dead_holders_limit_is_gone_with_it(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    pass(TTL_MS);
    assert_granted(act(asking_slot("b", 5)));
    assert_standing("b | -");
    assert_int_equal(record.limit, 5);
}

static void another_key_of_the_same_name_is_a_mismatch(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = asking("b");
    request.key = "K";
    struct verdict verdict = act(request);
    assert_kind(verdict, VERDICT_MISMATCH, /* write= */ false);
    assert_non_null(strstr(verdict.why, "another key"));
    request = doing(VERB_RELEASE, "a");
    request.key = "K";
    assert_kind(act(request), VERDICT_MISMATCH, /* write= */ false);
    assert_standing("a | -");
}

static void an_offer_keeps_newcomers_out(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)release("a");
    assert_standing("- | b!");
    struct request request = asking("c");
    request.waits = false;
    assert_kind(act(request), VERDICT_BUSY, /* write= */ false);
    request = asking_shared("d");
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("- | b! d");
}

static void a_repeated_request_finds_its_grant(void **state)
{
    (void)state;
    assert_granted(ask("a"));
    uint64_t token = token_of_holder("a");
    pass(4000);
    struct verdict verdict = ask("a");
    assert_granted(verdict);
    assert_standing("a | -");
    assert_true(token_of_holder("a") == token);
    assert_int_equal(grant_of("a")->granted.time_ms, 1000000);
    assert_int_equal(grant_of("a")->renewed.time_ms, 1004000);
}

/* "host:pid" is another one in a process that repeats the request of one that died. */
static void a_default_holder_is_not_compared(void **state)
{
    (void)state;
    assert_granted(ask("a"));
    uint64_t token = token_of_holder("a");
    struct request request = asking("b");
    request.request = "a";
    assert_kind(act(request), VERDICT_MISMATCH, /* write= */ false);
    request.any_holder = true;
    assert_granted(act(request));
    assert_standing("a | -");
    assert_true(token_of_holder("a") == token);
}

static void a_repeated_request_keeps_its_n(void **state)
{
    (void)state;
    (void)ask("a");
    grant_of("a")->n = 3;
    assert_int_equal(ask("a").n, 3);
}

static void a_request_repeated_elsewhere_goes_on_there(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = asking("a");
    request.session = 99;
    assert_granted(act(request));
    assert_int_equal(grant_of("a")->session, 99);
}

static void a_repeated_request_hears_of_the_break(void **state)
{
    (void)state;
    (void)ask("a");
    grant_of("a")->broken = true;
    assert_kind(ask("a"), VERDICT_BROKEN, /* write= */ false);
}

static void a_repeated_request_after_its_lease_is_a_new_one(void **state)
{
    (void)state;
    (void)ask("a");
    uint64_t token = token_of_holder("a");
    pass(TTL_MS);
    struct verdict verdict = ask("a");
    assert_granted(verdict);
    assert_int_equal(verdict.expired, 1);
    assert_true(token_of_holder("a") > token);
}

static void a_place_left_behind_is_taken_up(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    uint64_t ticket = waiter_of("b")->ticket;
    struct request request = asking("b2");
    request.priority = 5;
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b2 c");
    assert_int_equal(waiter_of("b2")->ticket, ticket);
    assert_int_equal(waiter_of("b2")->priority, 5);
}

static void an_offer_left_behind_is_accepted(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)release("a");
    struct verdict verdict = ask("b2");
    assert_granted(verdict);
    assert_true(verdict.accepts);
    assert_standing("b2 | -");
}

/* … unless it was for another kind of entry. */
static void an_offer_does_not_change_its_mode(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    (void)ask("b");
    (void)act(asking_shared("c"));
    (void)act(doing(VERB_LEAVE, "b"));
    assert_standing("a | c!");
    assert_kind(ask("c2"), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | c2");
    assert_int_equal(waiter_of("c2")->mode, MODE_EXCLUSIVE);
}

static void a_request_from_another_process_takes_its_place_along(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    struct request request = asking("b");
    request.session = 'c';
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | b");
    assert_int_equal(waiter_of("b")->session, 'c');
    request.session = 'd';
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_int_equal(waiter_of("b")->session, 'd');
}

static void a_try_leaves_no_waiter_behind(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    struct request request = asking("b2"); /* another thread of b's process */
    request.waits = false;
    assert_kind(act(request), VERDICT_BUSY, /* write= */ false);
    assert_standing("a | b");
    request = asking("b"); /* the request that waits, repeated without waiting */
    request.waits = false;
    assert_kind(act(request), VERDICT_BUSY, /* write= */ true);
    assert_standing("a | -");
}

static void a_request_without_a_wait_leaves_the_queue(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    struct request request = asking("b");
    request.waits = false;
    assert_kind(act(request), VERDICT_BUSY, /* write= */ true);
    assert_standing("a | -");
}

static void leaving_gives_up_the_place(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    assert_kind(act(doing(VERB_LEAVE, "b")), VERDICT_DONE, /* write= */ true);
    assert_standing("a | c");
    assert_kind(act(doing(VERB_LEAVE, "b")), VERDICT_DONE, /* write= */ false);
}

static void leaving_passes_an_offer_on(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    (void)release("a");
    struct verdict verdict = act(doing(VERB_LEAVE, "b"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | c!");
}

static void leaving_clears_the_dead_away(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    pass(TTL_MS);
    struct verdict verdict = act(doing(VERB_LEAVE, "b"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.expired, 1);
    assert_standing("- | c!");
}

static void leaving_gives_an_unheard_grant_back(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    assert_kind(act(doing(VERB_LEAVE, "a")), VERDICT_DONE, /* write= */ true);
    assert_standing("- | b!");
}

/* Rule 9: a caller that chose the id may have repeated the request in another process. */
static void leaving_keeps_what_a_repeated_request_uses(void **state)
{
    (void)state;
    struct request request = doing(VERB_LEAVE, "a");
    request.repeatable = true;
    (void)ask("a");
    (void)act(doing(VERB_RENEW, "a"));
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
    assert_standing("a | -");
    (void)ask("b");
    request = doing(VERB_LEAVE, "b");
    request.repeatable = true;
    request.session = 99;
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
    assert_standing("a | b");
    request.session = 'b';
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    assert_standing("a | -");
}

static void leaving_gives_an_unused_grant_of_a_repeatable_request_back(void **state)
{
    (void)state;
    struct request request = doing(VERB_LEAVE, "a");
    request.repeatable = true;
    (void)ask("a");
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    assert_standing("- | -");
}

static void looking_changes_nothing(void **state)
{
    (void)state;
    (void)ask("a");
    pass(TTL_MS);
    assert_kind(act(doing(VERB_QUERY, "b")), VERDICT_DONE, /* write= */ false);
    assert_standing("a | -");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_free_key_is_granted_in_one_write, fresh),
        cmocka_unit_test_setup(a_held_key_is_busy_for_who_does_not_wait, fresh),
        cmocka_unit_test_setup(a_held_key_gives_a_place_to_who_waits, fresh),
        cmocka_unit_test_setup(a_queued_waiter_need_not_write_again, fresh),
        cmocka_unit_test_setup(the_same_name_is_not_the_same_holder, fresh),
        cmocka_unit_test_setup(readers_enter_together, fresh),
        cmocka_unit_test_setup(a_reader_does_not_enter_beside_a_writer, fresh),
        cmocka_unit_test_setup(a_writer_does_not_enter_beside_a_reader, fresh),
        cmocka_unit_test_setup(a_reader_does_not_overtake_a_waiting_writer, fresh),
        cmocka_unit_test_setup(readers_end_at_the_limit_of_grants, fresh),
        cmocka_unit_test_setup(a_semaphore_gives_its_slots_and_no_more, fresh),
        cmocka_unit_test_setup(a_large_semaphore_ends_at_the_limit_of_grants, fresh),
        cmocka_unit_test_setup(a_semaphore_of_one_excludes, fresh),
        cmocka_unit_test_setup(another_limit_is_a_mismatch, fresh),
        cmocka_unit_test_setup(a_mismatch_writes_nothing, fresh),
        cmocka_unit_test_setup(a_waiter_keeps_the_limit_too, fresh),
        cmocka_unit_test_setup(a_key_that_nobody_uses_takes_another_limit, fresh),
        cmocka_unit_test_setup(a_dead_holders_limit_is_gone_with_it, fresh),
        cmocka_unit_test_setup(another_key_of_the_same_name_is_a_mismatch, fresh),
        cmocka_unit_test_setup(an_offer_keeps_newcomers_out, fresh),
        cmocka_unit_test_setup(a_repeated_request_finds_its_grant, fresh),
        cmocka_unit_test_setup(a_default_holder_is_not_compared, fresh),
        cmocka_unit_test_setup(a_repeated_request_keeps_its_n, fresh),
        cmocka_unit_test_setup(a_request_repeated_elsewhere_goes_on_there, fresh),
        cmocka_unit_test_setup(a_repeated_request_hears_of_the_break, fresh),
        cmocka_unit_test_setup(a_repeated_request_after_its_lease_is_a_new_one, fresh),
        cmocka_unit_test_setup(a_place_left_behind_is_taken_up, fresh),
        cmocka_unit_test_setup(an_offer_left_behind_is_accepted, fresh),
        cmocka_unit_test_setup(an_offer_does_not_change_its_mode, fresh),
        cmocka_unit_test_setup(a_request_from_another_process_takes_its_place_along, fresh),
        cmocka_unit_test_setup(a_try_leaves_no_waiter_behind, fresh),
        cmocka_unit_test_setup(a_request_without_a_wait_leaves_the_queue, fresh),
        cmocka_unit_test_setup(leaving_gives_up_the_place, fresh),
        cmocka_unit_test_setup(leaving_passes_an_offer_on, fresh),
        cmocka_unit_test_setup(leaving_clears_the_dead_away, fresh),
        cmocka_unit_test_setup(leaving_gives_an_unheard_grant_back, fresh),
        cmocka_unit_test_setup(leaving_keeps_what_a_repeated_request_uses, fresh),
        cmocka_unit_test_setup(leaving_gives_an_unused_grant_of_a_repeatable_request_back, fresh),
        cmocka_unit_test_setup(looking_changes_nothing, fresh),
    };
    return cmocka_run_group_tests_name("rules_enter", tests, NULL, NULL);
}

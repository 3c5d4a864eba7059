/* SPDX-License-Identifier: Apache-2.0 */
/* An offer that is taken over before its grace has passed, and the return of a live waiter. */
#include "rules_kit.h"

/* "a" holds, and these wait: a letter each. */
static void queue_up(const char *letters)
{
    (void)ask("a");
    for (; *letters != '\0'; letters++)
        (void)ask((char[]){*letters, '\0'});
}

/* "B" is offered the key, and "C" takes it over. Returns B's request, with its ticket. */
static struct request pass_over(const char *letters)
{
    queue_up(letters);
    (void)release("a");
    struct request request = asking("B");
    request.ticket = waiter_of("B")->ticket;
    view.offer_revision = waiter_of("B")->offer.revision;
    view.offer_observed_ms = 150;
    assert_granted(ask("C"));
    return request;
}

/* The observer's own clock alone: the store's is too coarse for a few answer times. */
static void an_observed_offer_is_taken_over_early(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    queue_up("BC");
    (void)release("a");
    view.at.time_ms += 999;
    view.offer_revision = waiter_of("B")->offer.revision;
    view.offer_observed_ms = 149;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    view.offer_observed_ms = 150;
    struct verdict verdict = ask("C");
    assert_granted(verdict);
    assert_int_equal(verdict.passed_on, 1);
    assert_standing("C | -");
}

static void one_that_was_passed_over_returns_to_its_place(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    view.age_ms = 0;
    struct request request = pass_over("BCD");
    assert_standing("C | D");
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("C | B D");
    assert_int_equal(waiter_of("B")->ticket, request.ticket);
    assert_int_equal(waiter_of("B")->passed, 1);
}

static void one_that_was_passed_over_returns_to_a_full_queue(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    facts.waiters_max = 2;
    struct request request = pass_over("BC");
    (void)ask("D");
    (void)ask("E");
    assert_kind(ask("F"), VERDICT_BUSY, /* write= */ false);
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("C | B D E");
}

static void one_that_was_passed_over_has_the_whole_grace(void **state)
{
    (void)state;
    facts.takeover_ms = 150;
    queue_up("BC");
    waiter_of("B")->passed = 1;
    (void)release("a");
    view.offer_revision = waiter_of("B")->offer.revision;
    view.offer_observed_ms = OFFER_GRACE_MS - 1;
    assert_kind(ask("C"), VERDICT_WAITING, /* write= */ false);
    view.offer_observed_ms = OFFER_GRACE_MS;
    assert_granted(ask("C"));
}

static void a_ticket_that_another_waiter_has_is_replaced(void **state)
{
    (void)state;
    queue_up("B");
    struct request request = asking("C");
    request.ticket = waiter_of("B")->ticket;
    assert_kind(act(request), VERDICT_WAITING, /* write= */ true);
    assert_standing("a | B C");
    assert_int_equal(waiter_of("C")->passed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_observed_offer_is_taken_over_early, fresh),
        cmocka_unit_test_setup(one_that_was_passed_over_returns_to_its_place, fresh),
        cmocka_unit_test_setup(one_that_was_passed_over_returns_to_a_full_queue, fresh),
        cmocka_unit_test_setup(one_that_was_passed_over_has_the_whole_grace, fresh),
        cmocka_unit_test_setup(a_ticket_that_another_waiter_has_is_replaced, fresh),
    };
    return cmocka_run_group_tests_name("rules_takeover", tests, NULL, NULL);
}

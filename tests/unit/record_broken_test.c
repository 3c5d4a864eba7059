/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every invariant of a record, violated: a valid record, one thing changed, and the text that
 * record_broken() returns for it.
 */
#include "base/text.h"
#include "core/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct record record;

static struct grant *add_grant(enum mode mode, uint64_t revision, uint16_t n)
{
    struct grant *grant = record_add_grant(&record);
    grant->mode = mode;
    grant->n = n;
    grant->granted.revision = revision;
    return grant;
}

static struct waiter *add_waiter(enum mode mode, bool offered)
{
    struct waiter *waiter = record_add_waiter(&record);
    waiter->mode = mode;
    waiter->offered = offered;
    return waiter;
}

/* Two readers inside, a reader offered, a writer behind it. */
static int with_readers(void **state)
{
    (void)state;
    record_init(&record, "k");
    (void)add_grant(MODE_SHARED, 5, 0);
    (void)add_grant(MODE_SHARED, 5, GRANT_STEP);
    (void)add_waiter(MODE_SHARED, /* offered= */ true);
    (void)add_waiter(MODE_EXCLUSIVE, /* offered= */ false);
    assert_null(record_broken(&record));
    return 0;
}

/* Three slots: one held, one offered, one waiter. */
static int with_slots(void **state)
{
    (void)state;
    record_init(&record, "k");
    record.limit = 3;
    (void)add_grant(MODE_SLOT, 5, 0);
    (void)add_waiter(MODE_SLOT, /* offered= */ true);
    (void)add_waiter(MODE_SLOT, /* offered= */ false);
    assert_null(record_broken(&record));
    return 0;
}

static void assert_broken(const char *words)
{
    const char *what = record_broken(&record);
    assert_non_null(what);
    assert_non_null(strstr(what, words));
}

static void a_slot_needs_a_limit(void **state)
{
    (void)state;
    record.waiter_count = 0;
    record.limit = 0;
    assert_broken("a slot without a limit");
}

static void a_lock_has_no_limit(void **state)
{
    (void)state;
    record.waiter_count = 0;
    record.limit = 5;
    assert_broken("or a lock with one");
}

static void a_place_of_a_semaphore_needs_a_limit(void **state)
{
    (void)state;
    record.grant_count = 0;
    record.limit = 0;
    assert_broken("a waiter for a semaphore without a limit");
}

static void a_place_of_a_lock_has_no_limit(void **state)
{
    (void)state;
    record.grant_count = 0;
    record.limit = 5;
    assert_broken("or for a lock with one");
}

static void an_exclusive_grant_is_alone(void **state)
{
    (void)state;
    record.waiter_count = 0;
    record.grants[1].mode = MODE_EXCLUSIVE;
    assert_broken("rule 1");
    record.grant_count = 1;
    record.grants[0].mode = MODE_EXCLUSIVE;
    assert_null(record_broken(&record));
}

static void two_grants_never_share_a_token(void **state)
{
    (void)state;
    record.grants[1].n = record.grants[0].n;
    assert_broken("rule 2");
    record.grants[1].granted.revision++;
    assert_null(record_broken(&record));
    record.grants[1].granted.revision--;
    record.grants[1].granted.epoch++;
    assert_null(record_broken(&record));
}

static void slots_and_offers_keep_the_limit(void **state)
{
    (void)state;
    record.limit = 2;
    assert_null(record_broken(&record));
    record.waiters[1].offered = true;
    assert_broken("more slots given or offered");
    record.limit = 3;
    assert_null(record_broken(&record));
}

static void a_ticket_was_given_out(void **state)
{
    (void)state;
    record.next_ticket = 2;
    assert_broken("never issued");
}

static void tickets_are_in_order(void **state)
{
    (void)state;
    record.waiters[1].ticket = record.waiters[0].ticket;
    assert_broken("order of their tickets");
    record.waiters[0].ticket = 0;
    assert_null(record_broken(&record));
}

static void nobody_is_offered_a_key_that_a_writer_holds(void **state)
{
    (void)state;
    record.grant_count = 1;
    record.grants[0].mode = MODE_EXCLUSIVE;
    assert_broken("while a writer holds");
    record.waiters[0].offered = false;
    assert_null(record_broken(&record));
}

static void an_exclusive_offer_is_alone(void **state)
{
    (void)state;
    record.waiters[0].offered = false;
    record.waiters[1].offered = true;
    assert_broken("an exclusive offer is not alone");
    record.grant_count = 1;
    assert_broken("an exclusive offer is not alone");
    record.grant_count = 0;
    assert_null(record_broken(&record));
    record.waiters[0].offered = true;
    assert_broken("an exclusive offer is not alone");
}

static void offers_come_in_steps(void **state)
{
    (void)state;
    record.waiter_count = 0;
    for (size_t i = 0; i < OFFERS_MAX; i++)
        (void)add_waiter(MODE_SHARED, /* offered= */ true);
    assert_null(record_broken(&record));
    (void)add_waiter(MODE_SHARED, /* offered= */ true);
    assert_broken("too many offers");
}

static void nothing_is_offered_in_a_cooldown_or_delay(void **state)
{
    (void)state;
    record.cooling.length_ms = 1;
    assert_broken("rule 5");
    record.cooling.length_ms = 0;
    record.delay.length_ms = 1;
    assert_broken("rule 5");
    record.waiters[0].offered = false;
    assert_null(record_broken(&record));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_slot_needs_a_limit, with_slots),
        cmocka_unit_test_setup(a_lock_has_no_limit, with_readers),
        cmocka_unit_test_setup(a_place_of_a_semaphore_needs_a_limit, with_slots),
        cmocka_unit_test_setup(a_place_of_a_lock_has_no_limit, with_readers),
        cmocka_unit_test_setup(an_exclusive_grant_is_alone, with_readers),
        cmocka_unit_test_setup(two_grants_never_share_a_token, with_readers),
        cmocka_unit_test_setup(slots_and_offers_keep_the_limit, with_slots),
        cmocka_unit_test_setup(a_ticket_was_given_out, with_readers),
        cmocka_unit_test_setup(tickets_are_in_order, with_readers),
        cmocka_unit_test_setup(nobody_is_offered_a_key_that_a_writer_holds, with_readers),
        cmocka_unit_test_setup(an_exclusive_offer_is_alone, with_readers),
        cmocka_unit_test_setup(offers_come_in_steps, with_readers),
        cmocka_unit_test_setup(nothing_is_offered_in_a_cooldown_or_delay, with_readers),
    };
    return cmocka_run_group_tests_name("record_broken", tests, NULL, NULL);
}

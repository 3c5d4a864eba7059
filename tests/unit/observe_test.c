/* SPDX-License-Identifier: Apache-2.0 */
/* When a waiter polls again, on its own clock, where the store's clock is of no use. */
#include "core/lease_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct record record;
static struct observations observations;
static struct lease lease;
static const struct store_facts facts = {
    .waiters_max = WAITERS_MAX, .reply_timeout_ms = 250, .offer_grace_ms = 1000, .poll_ms = 60000};
static const struct lease_options options = {.request = {.verb = VERB_ACQUIRE,
                                                         .key = "k",
                                                         .holder = "h",
                                                         .request = "r",
                                                         .session = 9,
                                                         .ttl_ms = 1000,
                                                         .waits = true},
                                             .facts = &facts,
                                             .timeout_ms = 10000};

static int begin(void **state)
{
    (void)state;
    memset(&observations, 0, sizeof observations);
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    grant->granted = grant->renewed = (struct stamp){.revision = 3, .time_ms = 5000};
    grant->ttl_ms = 2000;
    lease_init(&lease, &options, &observations, /* seed= */ 1);
    lease.now_ms = 100;
    return 0;
}

static int64_t look_at(int64_t store_ms)
{
    struct stamp at = {.revision = 3, .time_ms = store_ms};
    struct view view = lease_observe(&lease, &record, &at, /* seen= */ true);
    return lease_next_poll(&lease, &record, &view);
}

static void the_stores_clock_tells_the_end(void **state)
{
    (void)state;
    assert_int_equal(look_at(5500), 100 + 1500);
}

/* Set back before the start of the grant: the own clock's observation counts, not the whole step.
 */
static void a_clock_that_was_set_back_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(look_at(1000), 100 + 2000);
    lease.now_ms = 600;
    assert_int_equal(look_at(1000), 100 + 2000);
    assert_int_equal(record.grants[0].observed_ms, 500);
}

static void a_time_that_is_not_told_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(look_at(TIME_UNKNOWN), 100 + 2000);
    struct view view = {.at = {.revision = 3, .time_ms = TIME_UNKNOWN}, .facts = &facts};
    record.grants[0].observed_ms = 1999;
    assert_false(grant_ended(&record.grants[0], &view));
    record.grants[0].observed_ms = 2000;
    assert_true(grant_ended(&record.grants[0], &view));
}

/* A holder that renews is no evidence about one that died. */
static void each_grant_is_seen_for_itself(void **state)
{
    (void)state;
    struct grant *other = record_add_grant(&record);
    other->granted = other->renewed = (struct stamp){.revision = 4, .time_ms = 5000};
    other->ttl_ms = 2000;
    (void)look_at(TIME_UNKNOWN);
    lease.now_ms = 1100;
    other->renewed.revision = 7;
    (void)look_at(TIME_UNKNOWN);
    assert_int_equal(record.grants[0].observed_ms, 1000);
    assert_int_equal(other->observed_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_stores_clock_tells_the_end, begin),
        cmocka_unit_test_setup(a_clock_that_was_set_back_is_not_waited_for, begin),
        cmocka_unit_test_setup(a_time_that_is_not_told_is_not_waited_for, begin),
        cmocka_unit_test_setup(each_grant_is_seen_for_itself, begin),
    };
    return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}

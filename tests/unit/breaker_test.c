/* SPDX-License-Identifier: Apache-2.0 */
/* When the breaker opens, which requests it lets through, and how long it stays open. */
#include "runtime/breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct breaker opened_at(int64_t now_ms)
{
    struct breaker breaker = {0};
    for (int i = 0; i < BREAKER_FAILURES; i++)
        breaker_failure(&breaker, now_ms);
    return breaker;
}

static void four_failures_are_not_enough(void **state)
{
    (void)state;
    struct breaker breaker = {0};
    for (int i = 0; i < BREAKER_FAILURES - 1; i++)
        breaker_failure(&breaker, i);
    assert_false(breaker_is_open(&breaker));
    assert_true(breaker_admits(&breaker, 10));
    breaker_success(&breaker);
    breaker_failure(&breaker, 11);
    assert_false(breaker_is_open(&breaker));
}

static void the_fifth_opens_it_for_a_second(void **state)
{
    (void)state;
    struct breaker breaker = opened_at(100);
    assert_true(breaker_is_open(&breaker));
    assert_false(breaker_admits(&breaker, 100));
    assert_false(breaker_admits(&breaker, 1099));
    assert_true(breaker_admits(&breaker, 1100));
}

static void after_the_pause_one_may_try(void **state)
{
    (void)state;
    struct breaker breaker = opened_at(0);
    assert_true(breaker_admits(&breaker, 1000));
    assert_false(breaker_admits(&breaker, 1000));
    assert_false(breaker_admits(&breaker, 1999));
    assert_true(breaker_admits(&breaker, 2000)); /* the first one got no reply */
    breaker_success(&breaker);
    assert_false(breaker_is_open(&breaker));
    assert_true(breaker_admits(&breaker, 2001));
    assert_true(breaker_admits(&breaker, 2001));
}

static void each_failed_try_doubles_the_pause_up_to_thirty_seconds(void **state)
{
    (void)state;
    static const int64_t pauses_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct breaker breaker = opened_at(0);
    int64_t now_ms = 0;
    for (size_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        assert_false(breaker_admits(&breaker, now_ms + pauses_ms[i] - 1));
        now_ms += pauses_ms[i];
        assert_true(breaker_admits(&breaker, now_ms));
        now_ms += 100;
        breaker_failure(&breaker, now_ms);
    }
    breaker_success(&breaker);
    breaker = opened_at(now_ms);
    assert_true(breaker_admits(&breaker, now_ms + 1000));
}

static void renewals_that_fail_within_the_pause_do_not_lengthen_it(void **state)
{
    (void)state;
    struct breaker breaker = opened_at(0);
    for (int64_t at_ms = 1; at_ms < 1000; at_ms += 100)
        breaker_failure(&breaker, at_ms);
    assert_true(breaker_admits(&breaker, 1000));
}

static void a_renewal_that_succeeds_closes_it(void **state)
{
    (void)state;
    struct breaker breaker = opened_at(0);
    breaker_success(&breaker);
    assert_true(breaker_admits(&breaker, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_failures_are_not_enough),
        cmocka_unit_test(the_fifth_opens_it_for_a_second),
        cmocka_unit_test(after_the_pause_one_may_try),
        cmocka_unit_test(each_failed_try_doubles_the_pause_up_to_thirty_seconds),
        cmocka_unit_test(renewals_that_fail_within_the_pause_do_not_lengthen_it),
        cmocka_unit_test(a_renewal_that_succeeds_closes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

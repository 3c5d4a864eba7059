/* SPDX-License-Identifier: Apache-2.0 */
/* How positions of a source compare: as numbers, as moments, or byte by byte. */
#include "core/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_value_tells_its_order(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum order order;
    } cases[] = {
        {"0", ORDER_NUMBER},
        {"18446744073709551616.25", ORDER_NUMBER},
        {"2026", ORDER_NUMBER},
        {"1.", ORDER_TEXT},
        {".5", ORDER_TEXT},
        {"1.5.2", ORDER_TEXT},
        {"-3", ORDER_TEXT},
        {"", ORDER_TEXT},
        {"cursor:AAE=", ORDER_TEXT},
        {"2026-01-31", ORDER_TEXT},
        {"2026-01-31T23:59:59Z", ORDER_TIME},
        {"2026-01-31T23:59:59.123456789Z", ORDER_TIME},
        {"2026-01-31T23:59:59.Z", ORDER_NONE},
        {"2026-01-31T23:59:59+00:00", ORDER_TIME},
        {"2026-01-31T23:59:59.5-00:00", ORDER_TIME},
        {"2026-01-31T23:59:59+01:00", ORDER_TIME},
        {"2026-01-31T23:59:59-23:59", ORDER_TIME},
        {"2026-01-31T23:59Z", ORDER_NONE},
        {"2026-01-31T23:59:59", ORDER_NONE},
        {"2026-01-31T23:59:59+01", ORDER_NONE},
        {"2026-01-31T23:59:59+0100", ORDER_NONE},
        {"2026-01-31T23:59:59+24:00", ORDER_NONE},
        {"2026-01-31T23:59:59+01:60", ORDER_NONE},
        {"2026-01-31T23:59:59+01:00Z", ORDER_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(order_of(cases[i].value), cases[i].order);
}

static void a_value_fits_or_not(void **state)
{
    (void)state;
    assert_true(order_fits(ORDER_TEXT, "12") && order_fits(ORDER_TEXT, "2026-01-31T23:59Z"));
    assert_true(order_fits(ORDER_NUMBER, "12"));
    assert_false(order_fits(ORDER_NUMBER, "12ab"));
    assert_true(order_fits(ORDER_TIME, "2026-01-31T23:59:59Z"));
    assert_false(order_fits(ORDER_TIME, "12"));
    assert_false(order_fits(ORDER_NONE, "12"));
}

/* The first is below the second. */
static void ordered(enum order order, const char *low, const char *high)
{
    assert_true(order_compare(order, low, high) < 0);
    assert_true(order_compare(order, high, low) > 0);
}

static void numbers_compare_as_numbers(void **state)
{
    (void)state;
    ordered(ORDER_NUMBER, "9", "10");
    ordered(ORDER_NUMBER, "0099", "100");
    ordered(ORDER_NUMBER, "18446744073709551615", "18446744073709551616");
    ordered(ORDER_NUMBER, "1.25", "1.3");
    ordered(ORDER_NUMBER, "1", "1.001");
    assert_int_equal(order_compare(ORDER_NUMBER, "007.50", "7.5"), 0);
    assert_int_equal(order_compare(ORDER_NUMBER, "0", "000"), 0);
}

static void moments_compare_as_moments(void **state)
{
    (void)state;
    ordered(ORDER_TIME, "2026-01-31T23:59:59Z", "2026-01-31T23:59:59.5Z");
    ordered(ORDER_TIME, "2026-01-31T23:59:59.09Z", "2026-01-31T23:59:59.1Z");
    ordered(ORDER_TIME, "2025-12-31T23:59:59.9Z", "2026-01-01T00:00:00Z");
    assert_int_equal(order_compare(ORDER_TIME, "2026-01-31T23:59:59.10Z", "2026-01-31T23:59:59.1Z"),
                     0);
}

static void same(const char *one, const char *other)
{
    assert_int_equal(order_compare(ORDER_TIME, one, other), 0);
    assert_int_equal(order_compare(ORDER_TIME, other, one), 0);
}

/* An offset is how far the local clock is ahead of UTC. */
static void offsets_are_converted_to_utc(void **state)
{
    (void)state;
    same("2026-11-15T10:00:00+00:00", "2026-11-15T10:00:00Z");
    assert_int_equal(order_compare(ORDER_TIME, "2026-11-15T10:00:00.", "2026-11-15T10:00:00."), 0);
    same("2026-11-15T10:00:00-00:00", "2026-11-15T10:00:00.000Z");
    same("2026-11-15T12:30:00.50+02:30", "2026-11-15T10:00:00.5Z");
    same("2026-11-15T04:00:00-06:00", "2026-11-15T10:00:00Z");
    same("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z");
    same("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z");
    same("2025-03-01T00:30:00+01:00", "2025-02-28T23:30:00Z");
    same("2100-03-01T00:30:00+01:00", "2100-02-28T23:30:00Z");
    same("2000-02-29T23:30:00-01:00", "2000-03-01T00:30:00Z");
    same("0000-01-01T00:00:00+01:00", "0000-01-01T01:00:00+02:00");
    ordered(ORDER_TIME, "2026-11-15T10:59:59.9+01:00", "2026-11-15T10:00:00Z");
    ordered(ORDER_TIME, "2026-11-15T10:00:00Z", "2026-11-15T09:00:00.1-01:00");
    ordered(ORDER_TIME, "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
    ordered(ORDER_TIME, "2017-01-01T00:59:59+01:00", "2016-12-31T23:59:60Z");
}

static void text_compares_byte_by_byte(void **state)
{
    (void)state;
    ordered(ORDER_TEXT, "10", "9");
    ordered(ORDER_TEXT, "a", "ab");
    assert_int_equal(order_compare(ORDER_TEXT, "a", "a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_tells_its_order),
        cmocka_unit_test(a_value_fits_or_not),
        cmocka_unit_test(numbers_compare_as_numbers),
        cmocka_unit_test(moments_compare_as_moments),
        cmocka_unit_test(offsets_are_converted_to_utc),
        cmocka_unit_test(text_compares_byte_by_byte),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}

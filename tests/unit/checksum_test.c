/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum detects every error within a word, and values written today can be read later. */
#include "base/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Logs on disks contain these. */
static void stays_the_same_for_ever(void **state)
{
    (void)state;
    assert_int_equal(checksum(0, "", 0), 0x500a955f3e2846daU);
    assert_int_equal(checksum(0, "leasehold", 9), 0x4b29900808ea37aaU);
    assert_int_equal(checksum(7, "0123456789abcdef", 16), 0xed08e2ae0076aed2U);
}

static void sees_every_change_of_one_byte(void **state)
{
    (void)state;
    unsigned char bytes[67];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    uint64_t whole = checksum(0, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        for (unsigned change = 1; change < 256; change++) {
            bytes[i] = (unsigned char)(bytes[i] ^ change);
            assert_int_not_equal(checksum(0, bytes, sizeof bytes), whole);
            bytes[i] = (unsigned char)(bytes[i] ^ change);
        }
    }
}

static void sees_zeros_added_and_taken_away(void **state)
{
    (void)state;
    unsigned char bytes[64] = {1, 2, 3};
    for (size_t i = 3; i < sizeof bytes; i++)
        assert_int_not_equal(checksum(0, bytes, i), checksum(0, bytes, i + 1));
}

static void depends_on_what_came_before(void **state)
{
    (void)state;
    assert_int_not_equal(checksum(1, "a", 1), checksum(2, "a", 1));
    assert_int_not_equal(checksum(checksum(0, "a", 1), "b", 1),
                         checksum(checksum(0, "b", 1), "a", 1));
}

/* Tables use the lowest bits as the index and the highest to compare. */
static void spreads_neighbours(void **state)
{
    (void)state;
    unsigned low[64] = {0}, high[64] = {0};
    for (unsigned i = 0; i < 6400; i++) {
        uint64_t sum = checksum(0, &i, sizeof i);
        low[sum % 64]++;
        high[sum >> 58]++;
    }
    for (size_t i = 0; i < 64; i++) {
        assert_in_range(low[i], 50, 160);
        assert_in_range(high[i], 50, 160);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_the_same_for_ever),
        cmocka_unit_test(sees_every_change_of_one_byte),
        cmocka_unit_test(sees_zeros_added_and_taken_away),
        cmocka_unit_test(depends_on_what_came_before),
        cmocka_unit_test(spreads_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

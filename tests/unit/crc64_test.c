/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum: its published check value, carried on in parts, every single flipped bit seen. */
#include "base/crc64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void the_published_value(void **state)
{
    (void)state;
    assert_true(crc64(0, "123456789", 9) == 0x995dc9bbdf1939faU);
    assert_true(crc64(0, "", 0) == 0);
}

static void carried_on_in_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 9; i++)
        assert_true(crc64(crc64(0, "123456789", i), &"123456789"[i], 9 - i) == 0x995dc9bbdf1939faU);
}

static void every_flipped_bit(void **state)
{
    (void)state;
    unsigned char bytes[64] = "a record of a lease, and what is behind it";
    uint64_t whole = crc64(0, bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_true(crc64(0, bytes, sizeof bytes) != whole);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_value),
        cmocka_unit_test(carried_on_in_parts),
        cmocka_unit_test(every_flipped_bit),
    };
    return cmocka_run_group_tests_name("crc64", tests, NULL, NULL);
}

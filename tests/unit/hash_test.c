/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of tables depends on every byte and on the length, and fills small tables evenly. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH_MAX = 40, KEYS = 64000, CHAINS = 64 };

static void depends_on_every_byte(void **state)
{
    (void)state;
    char bytes[LENGTH_MAX];
    for (size_t length = 1; length <= sizeof bytes; length++) {
        memset(bytes, 'k', sizeof bytes);
        uint64_t whole = hash_bytes(0, bytes, length);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = 'l';
            assert_int_not_equal(hash_bytes(0, bytes, length), whole);
            bytes[i] = 'k';
        }
    }
}

static void depends_on_length_and_seed(void **state)
{
    (void)state;
    char bytes[LENGTH_MAX] = {0};
    for (size_t length = 0; length < sizeof bytes; length++) {
        assert_int_not_equal(hash_bytes(0, bytes, length), hash_bytes(0, bytes, length + 1));
        assert_int_not_equal(hash_bytes(0, bytes, length), hash_bytes(1, bytes, length));
    }
    static const char *const similar[][2] = {{"1", "21"},  {"2", "12"},
                                             {"1", "311"}, {"20", "300"},
                                             {"a", "ba"},  {"aaaaaaaax", "baaaaaaaxx"}};
    for (size_t i = 0; i < sizeof similar / sizeof similar[0]; i++)
        assert_int_not_equal(hash_string(similar[i][0]), hash_string(similar[i][1]));
    assert_int_equal(hash_string("nightly"), hash_bytes(0, "nightly and more", 7));
}

/* Keys that differ only in their last digits, by the lowest bits and by the highest. */
static void fills_chains_evenly(void **state)
{
    (void)state;
    unsigned low[CHAINS] = {0}, high[CHAINS] = {0};
    for (unsigned i = 0; i < KEYS; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "workflow/%u", i);
        uint64_t hash = hash_string(key);
        low[hash % CHAINS]++;
        high[hash >> 58]++;
    }
    for (size_t i = 0; i < CHAINS; i++) {
        assert_in_range(low[i], KEYS / CHAINS * 3 / 4, KEYS / CHAINS * 5 / 4);
        assert_in_range(high[i], KEYS / CHAINS * 3 / 4, KEYS / CHAINS * 5 / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depends_on_every_byte),
        cmocka_unit_test(depends_on_length_and_seed),
        cmocka_unit_test(fills_chains_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

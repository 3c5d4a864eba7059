/* SPDX-License-Identifier: Apache-2.0 */
/* How a URL finds its driver, and what is said when it finds none. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_scheme_names_its_driver(void **state)
{
    (void)state;
    assert_ptr_equal(store_find("memory:"), &memory_driver);
    assert_ptr_equal(store_find("memory:whatever"), &memory_driver);
}

static void nothing_but_the_whole_scheme_does(void **state)
{
    (void)state;
    static const char *const urls[] = {"", ":", "memory", "memor:", "memoryx:", "Memory:", "x"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        assert_null(store_find(urls[i]));
}

static void whoever_finds_none_hears_which_there_are(void **state)
{
    (void)state;
    char words[128];
    struct text text;
    text_init(&text, words, sizeof words);
    store_describe_unknown("mermory://x", &text);
    assert_non_null(strstr(words, "\"mermory\""));
    assert_non_null(strstr(words, " memory:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheme_names_its_driver),
        cmocka_unit_test(nothing_but_the_whole_scheme_does),
        cmocka_unit_test(whoever_finds_none_hears_which_there_are),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}

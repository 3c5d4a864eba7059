/* SPDX-License-Identifier: Apache-2.0 */
/* How a URL selects its driver, and the error when there is none. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static void an_unknown_scheme_lists_the_known_ones(void **state)
{
    (void)state;
    char words[128];
    struct text text;
    text_init(&text, words, sizeof words);
    store_describe_unknown("mermory://x", &text);
    assert_non_null(strstr(words, "\"mermory\""));
    assert_non_null(strstr(words, " memory:"));
}

static void a_known_scheme_without_a_driver_is_told_apart(void **state)
{
    (void)state;
    char words[128];
    struct text text;
    text_init(&text, words, sizeof words);
    assert_true(store_is_planned("etcd://u:secret@h"));
    assert_true(store_is_planned("leasehold+unix:/run/x"));
    assert_false(store_is_planned("file:/x"));
    assert_false(store_is_planned("etcdx://"));
    store_describe_unknown("etcd://u:secret@h", &text);
    assert_non_null(strstr(words, "not built in: \"etcd\""));
    assert_null(strstr(words, "secret"));
    text_clear(&text);
    store_describe_unknown("no-scheme-but-a-secret", &text);
    assert_null(strstr(words, "secret"));
}

static void the_schemes_can_be_listed(void **state)
{
    (void)state;
    size_t count = 0;
    for (char url[32]; store_scheme(count) != NULL; count++) {
        (void)snprintf(url, sizeof url, "%s:", store_scheme(count));
        assert_non_null(store_find(url));
    }
    assert_true(count >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheme_names_its_driver),
        cmocka_unit_test(nothing_but_the_whole_scheme_does),
        cmocka_unit_test(an_unknown_scheme_lists_the_known_ones),
        cmocka_unit_test(a_known_scheme_without_a_driver_is_told_apart),
        cmocka_unit_test(the_schemes_can_be_listed),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}

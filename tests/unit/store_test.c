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

/* A waiter must have time to receive its offer and to accept it. */
static void assert_grace(const struct store_facts *facts, unsigned capabilities)
{
    bool notifies = (capabilities & (STORE_WATCHES | STORE_TELLS)) != 0;
    int64_t poll_ms = facts->poll_ms + facts->poll_ms / 50 + facts->poll_ms / 4;
    assert_true(facts->offer_grace_ms >= 4 * facts->answer_ms + (notifies ? 0 : poll_ms));
}

static void the_facts_of_each_driver_fit_together(void **state)
{
    (void)state;
    char url[32];
    for (size_t i = 0; store_scheme(i) != NULL; i++) {
        (void)snprintf(url, sizeof url, "%s:", store_scheme(i));
        const struct store_driver *driver = store_find(url);
        const struct store_facts facts = store_facts_at(driver, url);
        assert_in_range(facts.waiters_max, 1, WAITERS_MAX);
        assert_true(facts.answer_ms > 0 && facts.poll_ms > 0 && facts.renewal_window_ms > 0);
        assert_true(facts.reply_timeout_ms >= 4 * facts.answer_ms);
        assert_true(facts.ttl_least_ms > 0 && facts.ttl_ms >= facts.ttl_least_ms);
        assert_true(facts.ttl_ms >= 20 * facts.answer_ms && facts.ttl_ms <= TTL_MAX_MS);
        assert_grace(&facts, driver->capabilities);
    }
}

static void set_margin(const char *url, struct store_facts *facts)
{
    facts->margin_ms += (int64_t)strlen(url);
}

static void a_url_can_change_the_facts(void **state)
{
    (void)state;
    struct store_driver driver = memory_driver;
    driver.facts.margin_ms = 100;
    assert_int_equal(store_facts_at(&driver, "x:12").margin_ms, 100);
    driver.facts_at = set_margin;
    assert_int_equal(store_facts_at(&driver, "x:12").margin_ms, 104);
    const char *url = "k8s://team-a?skew=500ms";
    const struct store_driver *k8s = store_find(url);
    if (k8s != NULL) {
        assert_int_equal(store_facts_at(k8s, url).margin_ms, 2500);
        assert_int_equal(store_facts_at(k8s, "k8s://a?skew=2h").margin_ms, 2000); /* invalid */
    }
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
        cmocka_unit_test(the_facts_of_each_driver_fit_together),
        cmocka_unit_test(a_url_can_change_the_facts),
        cmocka_unit_test(the_schemes_can_be_listed),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of GitHub issues: priorities, equality, and their form in a URL. */
#include "wire/github_issue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void a_label_states_a_priority(void **state)
{
    static const struct {
        const char *label;
        int32_t priority;
    } rows[] = {
        {"priority:9", 9},
        {"priority:0", 0},
        {"Priority:-3", -3},
        {"priority:00012", 12},
        {"priority:999999999999999999999", GITHUB_PRIORITY_MAX},
        {"priority:-999999999999999999999", -GITHUB_PRIORITY_MAX},
        {"high", 3},
        {"Medium", 2},
        {"LOW", 1},
        {"priority:high", 3},
        {"priority:low", 1},
        {"priority:", GITHUB_NO_PRIORITY},
        {"priority:-", GITHUB_NO_PRIORITY},
        {"priority: 9", GITHUB_NO_PRIORITY},
        {"priority:9a", GITHUB_NO_PRIORITY},
        {"priority:highest", GITHUB_NO_PRIORITY},
        {"highlight", GITHUB_NO_PRIORITY},
        {"9", GITHUB_NO_PRIORITY},
        {"", GITHUB_NO_PRIORITY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(github_label_priority(rows[i].label), rows[i].priority);
}

static void labels_are_equal_whatever_their_case(void **state)
{
    (void)state;
    assert_true(github_label_equal("Agent-Ready", "agent-ready"));
    assert_true(github_label_equal("", ""));
    assert_false(github_label_equal("agent", "agent-ready"));
    assert_false(github_label_equal("agent-ready", "agent"));
    assert_false(github_label_equal("a[", "a{"));
}

static void a_label_is_escaped_in_a_url(void **state)
{
    char bytes[64];
    struct text text;
    (void)state;
    text_init(&text, bytes, sizeof bytes);
    github_add_escaped(&text, "needs work/now_1?&#%\xc3\xa9");
    assert_string_equal(bytes, "needs%20work%2Fnow_1%3F%26%23%25%C3%A9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_label_states_a_priority),
        cmocka_unit_test(labels_are_equal_whatever_their_case),
        cmocka_unit_test(a_label_is_escaped_in_a_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

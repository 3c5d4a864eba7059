/* SPDX-License-Identifier: Apache-2.0 */
/* The list keeps its order in both directions, for every node that is removed. */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 4 };

struct item {
    char name;
    struct list_node node;
};

static void expect_list(const struct list *list, const char *names)
{
    char forward[ITEMS + 1] = "", backward[ITEMS + 1] = "";
    size_t length = 0;
    for (struct list_node *at = list->first; at != NULL; at = at->next)
        forward[length++] = LIST_ENTRY(at, struct item, node)->name;
    assert_string_equal(forward, names);
    for (struct list_node *at = list->last; at != NULL; at = at->previous)
        backward[--length] = LIST_ENTRY(at, struct item, node)->name;
    assert_int_equal(length, 0);
    assert_string_equal(backward, names);
}

static void appends_and_prepends(void **state)
{
    (void)state;
    struct list list = {0};
    struct item items[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    expect_list(&list, "");
    assert_null(LIST_ENTRY(list.first, struct item, node));
    list_append(&list, &items[1].node);
    list_append(&list, &items[2].node);
    list_prepend(&list, &items[0].node);
    expect_list(&list, "abc");
}

/* Every choice of nodes to remove. */
static void removes_any_node(void **state)
{
    (void)state;
    for (unsigned chosen = 0; chosen < 1U << ITEMS; chosen++) {
        struct list list = {0};
        struct item items[ITEMS];
        char left[ITEMS + 1] = "";
        size_t length = 0;
        for (unsigned i = 0; i < ITEMS; i++) {
            items[i].name = (char)('a' + (int)i);
            list_append(&list, &items[i].node);
        }
        for (unsigned i = 0; i < ITEMS; i++) {
            if ((chosen & 1U << i) != 0)
                list_remove(&list, &items[i].node);
            else
                left[length++] = items[i].name;
        }
        expect_list(&list, left);
    }
}

static void pops_the_first_and_takes_all(void **state)
{
    (void)state;
    struct list list = {0};
    struct item items[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    for (size_t i = 0; i < 3; i++)
        list_append(&list, &items[i].node);
    assert_ptr_equal(list_pop(&list), &items[0].node);
    expect_list(&list, "bc");
    struct list taken = list_take_all(&list);
    expect_list(&list, "");
    expect_list(&taken, "bc");
    assert_non_null(list_pop(&taken));
    assert_non_null(list_pop(&taken));
    assert_null(list_pop(&taken));
    expect_list(&taken, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_prepends),
        cmocka_unit_test(removes_any_node),
        cmocka_unit_test(pops_the_first_and_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

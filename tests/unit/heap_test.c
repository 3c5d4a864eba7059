/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of deadlines against a plain search, with random insertions and moves. */
#include "base/heap.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { NODES = 200, STEPS = 50000, MANY = 200000 };

static void an_empty_heap_has_no_moment(void **state)
{
    (void)state;
    struct heap heap = {0};
    struct heap_node node;
    heap_node_init(&node);
    assert_true(heap_first(&heap) == HEAP_NEVER);
    heap_set(&heap, &node, HEAP_NEVER);
    assert_null(heap.top);
    heap_set(&heap, &node, 5);
    assert_ptr_equal(heap.top, &node);
    heap_set(&heap, &node, HEAP_NEVER);
    assert_null(heap.top);
}

static int64_t earliest(const struct heap_node *nodes)
{
    int64_t at = HEAP_NEVER;
    for (size_t i = 0; i < NODES; i++)
        at = nodes[i].at < at ? nodes[i].at : at;
    return at;
}

static void the_earliest_is_always_at_hand(void **state)
{
    (void)state;
    static struct heap_node nodes[NODES];
    struct heap heap = {0};
    struct random random = {.state = 1};
    for (size_t i = 0; i < NODES; i++)
        heap_node_init(&nodes[i]);
    for (int i = 0; i < STEPS; i++) {
        struct heap_node *node = &nodes[random_below(&random, NODES)];
        bool out = random_below(&random, 3) == 0;
        heap_set(&heap, node, out ? HEAP_NEVER : (int64_t)random_below(&random, 1000));
        assert_true(heap_first(&heap) == earliest(nodes));
        assert_true(heap.top == NULL || heap.top->at == heap_first(&heap));
    }
}

static void many_come_out_in_order(void **state)
{
    (void)state;
    static struct heap_node nodes[MANY];
    struct heap heap = {0};
    struct random random = {.state = 2};
    int64_t before = -1;
    size_t count = 0;
    for (size_t i = 0; i < MANY; i++) {
        heap_node_init(&nodes[i]);
        heap_set(&heap, &nodes[i], (int64_t)random_below(&random, MANY));
    }
    for (; heap.top != NULL; count++) {
        assert_true(heap.top->at >= before);
        before = heap.top->at;
        heap_set(&heap, heap.top, HEAP_NEVER);
    }
    assert_int_equal(count, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_moment),
        cmocka_unit_test(the_earliest_is_always_at_hand),
        cmocka_unit_test(many_come_out_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

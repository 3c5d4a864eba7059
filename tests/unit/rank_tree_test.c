/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of rank_tree.h against a walk over all waiters, and the nodes that it visits. */
#include "base/random.h"
#include "base/rank_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FEW = 200, MANY = 100000, VISITS_MAX = 200 /* about 10 log2(MANY) */ };

struct entry {
    struct rank_node node;
    bool in;
    int64_t rank; /* by the walk */
};

static struct entry entries[MANY];

static struct entry *entry_of(struct rank_node *node)
{
    return (struct entry *)(void *)node;
}

static struct entry *first_by_walk(size_t count)
{
    struct entry *first = NULL;
    for (size_t i = 0; i < count; i++)
        if (entries[i].in && (first == NULL || entries[i].rank > first->rank))
            first = &entries[i];
    return first;
}

static void raise_by_walk(const struct entry *chosen)
{
    for (struct entry *entry = entries; entry < chosen; entry++)
        entry->rank++; /* of those outside it is set when they return */
}

static void put(struct rank_tree *tree, struct entry *entry, int64_t rank)
{
    entry->rank = rank;
    entry->in = true;
    rank_tree_insert(tree, &entry->node, (uint64_t)(entry - entries) + 1, rank);
}

static void take(struct rank_tree *tree, struct entry *entry)
{
    rank_tree_remove(tree, &entry->node);
    entry->in = false;
}

static void the_order_is_that_of_a_walk(void **state)
{
    struct random random = {.state = 7};
    struct rank_tree tree = {0};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct entry *entry = &entries[random_below(&random, FEW)];
        struct entry *first = first_by_walk(FEW);
        assert_ptr_equal(entry_of(rank_tree_first(&tree)), first);
        if (entry->in)
            assert_int_equal(rank_tree_rank(&tree, &entry->node), entry->rank);
        if (random_below(&random, 3) == 0 && first != NULL) {
            rank_tree_raise_before(&tree, first->node.place);
            raise_by_walk(first);
            take(&tree, first);
        } else if (entry->in) {
            take(&tree, entry);
        } else {
            put(&tree, entry, (int64_t)random_below(&random, 9) - 4);
        }
    }
    for (size_t i = 0; i < FEW; i++)
        if (entries[i].in)
            take(&tree, &entries[i]);
    assert_null(tree.root);
}

static void an_operation_visits_few_nodes(void **state)
{
    struct random random = {.state = 11};
    struct rank_tree tree = {0};
    uint64_t most = 0;
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        uint64_t before = tree.visits;
        put(&tree, &entries[i], (int64_t)random_below(&random, 201) - 100);
        most = tree.visits - before > most ? tree.visits - before : most;
    }
    for (size_t i = 0; i < MANY / 2; i++) {
        struct entry *entry = &entries[random_below(&random, MANY)];
        uint64_t before = tree.visits;
        if (entry->in)
            take(&tree, entry);
        most = tree.visits - before > most ? tree.visits - before : most;
    }
    for (struct rank_node *first; (first = rank_tree_first(&tree)) != NULL;) {
        uint64_t before = tree.visits;
        rank_tree_raise_before(&tree, first->place);
        take(&tree, entry_of(first));
        (void)rank_tree_first(&tree);
        most = tree.visits - before > most ? tree.visits - before : most;
    }
    print_message("# at most %lu nodes per operation, of %d\n", (unsigned long)most, MANY);
    assert_true(most <= VISITS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_a_walk),
        cmocka_unit_test(an_operation_visits_few_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

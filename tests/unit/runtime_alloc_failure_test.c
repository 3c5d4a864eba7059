/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same short run repeated, each time with another allocation failing, once or from then on:
 * every caller gets a defined outcome, no key has two holders, nothing is left behind.
 */
#include "runtime_kit.h"
#include "failing_alloc.h"

#include <stdio.h>
#include <string.h>

#undef malloc
#undef calloc
#undef realloc

enum { CALLERS = 6, OPERATIONS = 2 };

static struct caller callers[CALLERS], operations[OPERATIONS];
static uint64_t top_token;
static unsigned long allocations, refuse_at;
static bool refuse_on;

static bool is_refused(void)
{
    allocations++;
    return refuse_at != 0 && (allocations == refuse_at || (refuse_on && allocations > refuse_at));
}

void *failing_malloc(size_t size)
{
    return is_refused() ? NULL : malloc(size);
}

void *failing_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : calloc(count, size);
}

void *failing_realloc(void *before, size_t size)
{
    return is_refused() ? NULL : realloc(before, size);
}

/* Only one caller may hold the key by its notifications, and tokens grow. */
static void come_in(struct caller *caller, const struct task_news *news)
{
    size_t inside = 0;
    (void)caller;
    if (news->notify != NOTIFY_HELD)
        return;
    for (size_t i = 0; i < CALLERS; i++) {
        const struct caller *each = &callers[i];
        if (each->claim != NULL && each->notify == NOTIFY_HELD && local_queue_holds(each->claim))
            inside++;
    }
    assert_int_equal(inside, 1);
    assert_true(news->token > top_token);
    top_token = news->token;
}

static void begin(struct caller *caller, struct process *process,
                  const struct lease_options *options)
{
    *caller = (struct caller){.then = come_in};
    if (!try_to_start(process, caller, "scarce", options))
        caller->outcome = OUTCOME_UNAVAILABLE;
}

/* Three callers of each process request the key; one leaves, the others enter and release. */
static void live(void)
{
    struct lease_options wish = options_for("k", /* waits= */ true);
    struct lease_options look = operation_options(VERB_QUERY, "k", /* token= */ 0);
    for (size_t i = 0; i < CALLERS; i++)
        begin(&callers[i], &processes[i % PROCESSES], &wish);
    begin(&operations[0], &processes[0], &look);
    run_until(now_ms + 4000);
    if (callers[3].claim != NULL)
        let_go(&callers[3]);
    begin(&operations[1], &processes[1], &look);
    for (int round = 0; round < 12; round++) {
        run_until(now_ms + 3000);
        for (size_t i = 0; i < CALLERS; i++)
            if (callers[i].claim != NULL &&
                (callers[i].notify == NOTIFY_HELD || callers[i].notify == NOTIFY_LOST))
                let_go(&callers[i]);
    }
    run_until(now_ms + 30000);
}

/* Every caller ended, or never began; a failed allocation is never busy, cooling or stale. */
static void look_at_ends(void)
{
    for (size_t i = 0; i < CALLERS; i++) {
        const struct caller *caller = &callers[i];
        bool expected = caller->outcome == OUTCOME_OK || caller->outcome == OUTCOME_UNAVAILABLE ||
                        caller->outcome == OUTCOME_LOST || i == 3;
        assert_null(caller->claim);
        assert_true(expected);
    }
    for (size_t i = 0; i < OPERATIONS; i++)
        assert_null(operations[i].task);
    for (size_t i = 0; i < PROCESSES; i++) {
        assert_int_equal(local_queue_counts(processes[i].queue).waiters, 0);
        assert_int_equal(local_queue_counts(processes[i].queue).keys, 0);
        assert_int_equal(executor_counts(processes[i].executor).tasks, 0);
    }
    if (refuse_on) /* a grant that could not be released expires */
        return;
    assert_true(token_in_store("k") == 0);
    assert_int_equal(waiters_in_store("k"), 0);
}

static unsigned long live_once(unsigned long at, bool from_then_on)
{
    allocations = 0;
    refuse_at = at;
    refuse_on = from_then_on;
    top_token = 0;
    if (open_local_queues(NULL) == 0) {
        live();
        refuse_at = 0; /* some day there is memory again */
        run_until(now_ms + 60000);
        look_at_ends();
    }
    assert_int_equal(close_processes(NULL), 0);
    return allocations;
}

static void each_allocation_is_refused_once(void **state)
{
    (void)state;
    unsigned long all = live_once(/* at= */ 0, /* from_then_on= */ false), refused = 0;
    assert_true(all > 50);
    for (unsigned long at = 1; at <= all; at++, refused++)
        (void)live_once(at, /* from_then_on= */ false);
    print_message("# %lu allocations refused in turn\n", refused);
}

static void from_some_moment_on_there_is_no_memory(void **state)
{
    (void)state;
    unsigned long all = live_once(/* at= */ 0, /* from_then_on= */ false);
    for (unsigned long at = 1; at <= all; at++)
        (void)live_once(at, /* from_then_on= */ true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_is_refused_once),
        cmocka_unit_test(from_some_moment_on_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

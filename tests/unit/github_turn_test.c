/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of writes between threads, without any server: for the race detector, too. */
#include "http/github_limit.h"
#include "process/host.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

enum { THREADS = 4, WRITES = 10, ACCOUNT = 42 };

static atomic_int writing, overlaps;

static enum github_verdict begin(struct github_limit *limit, const void *client,
                                 enum github_kind kind, int64_t pace_ms, int64_t *out_at_ms)
{
    const struct github_share share = {.pace_ms = pace_ms, .writes = 1000};
    return github_limit_begin(limit, client, &share, kind, /* write= */ true, out_at_ms);
}

static void wait_until(int64_t at_ms)
{
    int64_t left_ms = at_ms - host_boot_ms();
    if (left_ms > 0)
        (void)poll(NULL, 0, (int)left_ms);
}

static void *write_some(void *client)
{
    struct github_limit *limit = github_limit_get(ACCOUNT);
    int64_t at_ms;
    for (size_t i = 0; i < WRITES; i++) {
        while (begin(limit, client, GITHUB_GRANT, /* pace_ms= */ 0, &at_ms) != GITHUB_SEND)
            wait_until(at_ms);
        if (atomic_fetch_add(&writing, 1) != 0)
            atomic_fetch_add(&overlaps, 1);
        (void)poll(NULL, 0, /* timeout= */ 2);
        (void)atomic_fetch_sub(&writing, 1);
        (void)github_limit_end(limit, /* write= */ true, /* reply= */ NULL, &at_ms);
    }
    github_limit_put(&limit);
    return NULL;
}

static void writes_of_threads_do_not_overlap(void **state)
{
    pthread_t threads[THREADS];
    char clients[THREADS];
    struct github_usage usage;
    struct github_limit *limit = github_limit_get(ACCOUNT);
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_some, &clients[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&overlaps), 0);
    github_limit_usage(limit, &usage);
    assert_int_equal(usage.writes, THREADS * WRITES);
    github_limit_put(&limit);
}

static void the_next_turn_is_the_most_urgent_ones(void **state)
{
    char writer, grant, heartbeat;
    int64_t at_ms;
    struct github_limit *limit = github_limit_get(ACCOUNT + 1);
    (void)state;
    assert_int_equal(begin(limit, &writer, GITHUB_GRANT, 0, &at_ms), GITHUB_SEND);
    assert_int_equal(begin(limit, &grant, GITHUB_GRANT, 0, &at_ms), GITHUB_WAIT);
    assert_int_equal(begin(limit, &heartbeat, GITHUB_HEARTBEAT, 0, &at_ms), GITHUB_WAIT);
    assert_true(at_ms > host_boot_ms() && at_ms < host_boot_ms() + 100);
    (void)github_limit_end(limit, /* write= */ true, /* reply= */ NULL, &at_ms);
    assert_int_equal(begin(limit, &writer, GITHUB_GRANT, 0, &at_ms), GITHUB_WAIT);
    assert_int_equal(begin(limit, &grant, GITHUB_GRANT, 0, &at_ms), GITHUB_WAIT);
    assert_int_equal(begin(limit, &heartbeat, GITHUB_HEARTBEAT, 0, &at_ms), GITHUB_SEND);
    (void)github_limit_end(limit, /* write= */ true, /* reply= */ NULL, &at_ms);
    github_limit_put(&limit);
}

/* A client that ended, or whose request was cancelled, must not block the others. */
static void a_turn_that_nobody_takes_passes(void **state)
{
    char first, lost, other;
    int64_t at_ms, began_ms = host_boot_ms();
    struct github_limit *limit = github_limit_get(ACCOUNT + 2);
    (void)state;
    assert_int_equal(begin(limit, &first, GITHUB_GRANT, 0, &at_ms), GITHUB_SEND);
    assert_int_equal(begin(limit, &lost, GITHUB_RELEASE, 0, &at_ms), GITHUB_WAIT);
    (void)github_limit_end(limit, /* write= */ true, /* reply= */ NULL, &at_ms);
    while (begin(limit, &other, GITHUB_GRANT, 0, &at_ms) != GITHUB_SEND)
        wait_until(at_ms);
    assert_true(host_boot_ms() - began_ms < 1000);
    (void)github_limit_end(limit, /* write= */ true, /* reply= */ NULL, &at_ms);
    github_limit_put(&limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_of_threads_do_not_overlap),
        cmocka_unit_test(the_next_turn_is_the_most_urgent_ones),
        cmocka_unit_test(a_turn_that_nobody_takes_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifetime of a started request: the caller owns it until lh_request_free(), which is allowed
 * before, in and after its callback. lh_cancel() may be called from any thread at any time.
 */
#include "lib_kit.h"

#include <pthread.h>
#include <stdatomic.h>

struct started {
    _Atomic(struct lh_request *) request;
    struct lh_lease *lease;
    enum lh_outcome outcome;
    atomic_int done;
    bool frees; /* in the callback */
};

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct started *started = user;
    started->lease = lease;
    started->outcome = report->outcome;
    if (started->frees) { /* the call that started it may not have returned yet */
        struct lh_request *request;
        while ((request = atomic_load(&started->request)) == NULL)
            kit_sleep_ms(1);
        lh_request_free(request);
    }
    atomic_fetch_add(&started->done, 1);
}

static void start(struct lh_client *client, struct started *started, int64_t wait_ms)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = wait_ms;
    struct lh_request *request = lh_acquire_start(client, "k", &options, on_done, started, NULL);
    assert_non_null(request);
    atomic_store(&started->request, request);
}

static void await_done(struct started *started)
{
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (atomic_load(&started->done) == 0 && kit_now_ms() < until_ms)
        kit_sleep_ms(1);
    assert_int_equal(atomic_load(&started->done), 1);
}

static void a_request_can_be_freed_in_its_callback(void **state)
{
    struct started started = {.frees = true};
    struct lh_client *client = kit_open(NULL);
    (void)state;
    start(client, &started, /* wait_ms= */ 0);
    await_done(&started);
    assert_int_equal(started.outcome, LH_OK);
    kit_release(&started.lease, LH_OK);
    lh_close(&client);
}

static void a_request_can_be_cancelled_after_its_callback(void **state)
{
    struct started started = {.request = NULL};
    struct lh_client *client = kit_open(NULL);
    (void)state;
    start(client, &started, /* wait_ms= */ 0);
    await_done(&started);
    lh_cancel(started.request);
    lh_cancel(started.request);
    assert_true(lh_held(started.lease));
    kit_release(&started.lease, LH_OK);
    lh_close(&client);
    lh_cancel(started.request);
    lh_request_free(started.request);
    lh_request_free(NULL);
}

static void freeing_before_the_callback_cancels(void **state)
{
    struct started started = {.request = NULL};
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *held = kit_acquire(client, "k", NULL);
    (void)state;
    start(client, &started, LH_WAIT_FOREVER);
    lh_request_free(started.request);
    await_done(&started);
    assert_int_equal(started.outcome, LH_BUSY);
    assert_null(started.lease);
    kit_release(&held, LH_OK);
    lh_close(&client);
}

static void closing_leaves_a_request_to_its_caller(void **state)
{
    struct started started = {.request = NULL};
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *held = kit_acquire(client, "k", NULL);
    (void)state;
    start(client, &started, LH_WAIT_FOREVER);
    lh_close(&client);
    assert_int_equal(atomic_load(&started.done), 1);
    assert_int_equal(started.outcome, LH_BUSY);
    lh_request_free(started.request);
    assert_int_equal(lh_release(&held, NULL), LH_LOST);
}

static void *cancel_it(void *user)
{
    struct started *started = user;
    lh_cancel(atomic_load(&started->request));
    return NULL;
}

/* With either outcome the callback is called exactly once; the sanitizers check the memory. */
static void a_cancel_races_with_the_end(void **state)
{
    struct lh_client *client = kit_open(NULL);
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct started started = {.request = NULL};
        struct lh_lease *held = kit_acquire(client, "k", NULL);
        pthread_t thread;
        start(client, &started, LH_WAIT_FOREVER);
        assert_int_equal(pthread_create(&thread, NULL, cancel_it, &started), 0);
        kit_release(&held, LH_OK);
        if (i % 2 == 0)
            await_done(&started);
        assert_int_equal(pthread_join(thread, NULL), 0);
        lh_request_free(started.request);
        await_done(&started);
        assert_true(started.outcome == LH_OK || started.outcome == LH_BUSY);
        assert_true((started.lease != NULL) == (started.outcome == LH_OK));
        if (started.lease != NULL)
            kit_release(&started.lease, LH_OK);
    }
    lh_close(&client);
}

int main(void)
{
#define ON_BOTH(test)                                          \
    {#test " on memory", test, kit_on_memory, kit_done, NULL}, \
    {                                                          \
#test " on file", test, kit_on_file, kit_done, NULL    \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_request_can_be_freed_in_its_callback),
        ON_BOTH(a_request_can_be_cancelled_after_its_callback),
        ON_BOTH(freeing_before_the_callback_cancels),
        ON_BOTH(closing_leaves_a_request_to_its_caller),
        ON_BOTH(a_cancel_races_with_the_end),
    };
    return cmocka_run_group_tests_name("lib_request", tests, NULL, NULL);
}

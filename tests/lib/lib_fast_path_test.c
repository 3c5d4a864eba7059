/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of `memory:`. A lock is not in the store until another operation needs its key;
 * from then on it behaves like any other lock.
 */
#include "lib_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    atomic_int lost;
    struct lh_lease *handle;
} heard;

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user;
    assert_int_equal(report->outcome, LH_LOST);
    heard.handle = lease;
    atomic_fetch_add(&heard.lost, 1);
}

static void a_status_shows_the_holder(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    struct lh_view view = LH_VIEW_INIT;
    uint64_t token = lh_token(lease);
    kit_sleep_ms(20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lh_status(client, "k", &view, NULL), LH_OK);
        assert_int_equal(view.state, LH_HELD);
        assert_true(view.token == token);
        assert_true(view.since_ms >= 20 && view.since_ms < 10000);
        assert_true(view.ends_in_ms > 20000);
        assert_true(lh_held(lease) && lh_token(lease) == token && lh_remaining_ms(lease) > 0);
    }
    kit_release(&lease, LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lh_close(&client);
}

static void a_look_at_a_busy_key_says_who(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL), *other = NULL;
    struct lh_report report = LH_REPORT_INIT;
    for (int i = 0; i < 2; i++) { /* on the fast path, then promoted */
        ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &other, &report), LH_BUSY, &report);
        assert_true(report.token == lh_token(lease));
        assert_non_null(strstr(report.text, "busy: k is held by"));
        assert_true(report.holder[0] != '\0');
        assert_int_equal(kit_state(client, "k"), LH_HELD);
    }
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void tokens_grow_whoever_grants(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_acquire_options shared = LH_ACQUIRE_OPTIONS_INIT;
    uint64_t last = 0;
    shared.shared = true; /* not on the fast path */
    for (int i = 0; i < 200; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", i % 3 == 0 ? &shared : NULL);
        assert_true(lh_token(lease) > last);
        last = lh_token(lease);
        if (i % 5 == 0)
            assert_int_equal(kit_state(client, "k"), LH_HELD);
        kit_release(&lease, LH_OK);
    }
    lh_close(&client);
}

static void a_break_reaches_the_holder(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.on_lost = on_lost;
    options.ttl_ms = 1500;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    assert_int_equal(lh_break(client, "k", "maintenance", /* at_once= */ true, NULL), LH_OK);
    struct lh_lease *other = kit_acquire(client, "k", NULL);
    for (int i = 0; i < 300 && atomic_load(&heard.lost) == 0; i++)
        kit_sleep_ms(10);
    assert_int_equal(atomic_load(&heard.lost), 1);
    assert_ptr_equal(heard.handle, lease);
    assert_false(lh_held(lease));
    assert_true(lh_held(other) && lh_token(other) > lh_token(lease));
    kit_release(&lease, LH_LOST);
    kit_release(&other, LH_OK);
    lh_close(&client);
}

static void a_token_is_enough_to_give_it_back(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    assert_int_equal(lh_renew(client, "k", lh_token(lease) - 1, 0, NULL), LH_STALE);
    assert_int_equal(lh_renew(client, "k", lh_token(lease), 0, NULL), LH_OK);
    assert_true(lh_held(lease));
    assert_int_equal(lh_release_token(client, "k", lh_token(lease), 60000, NULL), LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_COOLING_DOWN);
    struct lh_lease *other = NULL;
    assert_int_equal(lh_acquire(client, "k", NULL, &other, NULL), LH_COOLING);
    assert_int_equal(lh_clear(client, "k", NULL), LH_OK);
    other = kit_acquire(client, "k", NULL);
    assert_true(lh_token(other) > lh_token(lease));
    kit_release(&other, LH_OK);
    (void)lh_release(&lease, NULL);
    lh_close(&client);
}

struct seen {
    int count;
    char keys[8][LH_KEY_SIZE];
    int held;
};

static bool see(void *user, const struct lh_view *view)
{
    struct seen *seen = user;
    (void)snprintf(seen->keys[seen->count++ % 8], LH_KEY_SIZE, "%s", view->key);
    seen->held += view->state == LH_HELD && view->token > 0 && view->holders == 1;
    return seen->count < 5;
}

static void a_list_shows_all(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *leases[3] = {kit_acquire(client, "a/light", NULL),
                                  kit_acquire(client, "a/known", NULL),
                                  kit_acquire(client, "b/light", NULL)};
    struct seen seen = {0};
    assert_int_equal(kit_state(client, "a/known"), LH_HELD);
    assert_int_equal(lh_list(client, "a/", see, &seen, NULL), LH_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.held, 2);
    assert_string_not_equal(seen.keys[0], seen.keys[1]);
    for (int i = 0; i < 3; i++)
        kit_release(&leases[i], LH_OK);
    seen = (struct seen){0};
    assert_int_equal(lh_list(client, "", see, &seen, NULL), LH_OK);
    assert_int_equal(seen.count, 0);
    lh_close(&client);
}

static atomic_int changes;

static void count_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    (void)user;
    (void)report;
    if (view != NULL)
        atomic_fetch_add(&changes, 1);
}

static void a_watch_misses_nothing(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *before = kit_acquire(client, "before", NULL);
    struct lh_watcher *watcher = NULL;
    atomic_store(&changes, 0);
    assert_int_equal(lh_watch(client, "", count_change, NULL, &watcher, NULL), LH_OK);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    assert_int_equal(atomic_load(&changes), 1);
    kit_release(&lease, LH_OK);
    assert_int_equal(atomic_load(&changes), 2);
    kit_release(&before, LH_OK); /* promoted first, so that the watch sees the release */
    assert_true(atomic_load(&changes) >= 3);
    assert_int_equal(lh_unwatch(&watcher, NULL), LH_OK);
    lh_close(&client);
}

static void a_closed_client_leaves_handles_to_free(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *light = kit_acquire(client, "light", NULL);
    struct lh_lease *known = kit_acquire(client, "known", NULL);
    assert_int_equal(kit_state(client, "known"), LH_HELD);
    lh_close(&client);
    assert_false(lh_held(light));
    assert_false(lh_held(known));
    kit_release(&light, LH_LOST);
    kit_release(&known, LH_LOST);
}

struct waiter {
    struct lh_client *client;
    int32_t priority;
    uint64_t token;
    int place;
};

static atomic_int places;

static void *wait_in_line(void *argument)
{
    struct waiter *waiter = argument;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = LH_WAIT_FOREVER;
    options.priority = waiter->priority;
    struct lh_lease *lease = kit_acquire(waiter->client, "k", &options);
    waiter->token = lh_token(lease);
    waiter->place = atomic_fetch_add(&places, 1);
    kit_release(&lease, LH_OK);
    return NULL;
}

static void waiters_come_in_by_their_priority(void **state)
{
    (void)state;
    pthread_t threads[3];
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    struct waiter waiters[3] = {{client, 0, 0, 0}, {client, 50, 0, 0}, {client, 10, 0, 0}};
    uint64_t token = lh_token(lease);
    atomic_store(&places, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_in_line, &waiters[i]), 0);
        kit_sleep_ms(50);
    }
    assert_true(lh_held(lease));
    kit_release(&lease, LH_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(waiters[1].place, 0);
    assert_int_equal(waiters[2].place, 1);
    assert_int_equal(waiters[0].place, 2);
    assert_true(waiters[1].token > token && waiters[2].token > waiters[1].token &&
                waiters[0].token > waiters[2].token);
    lh_close(&client);
}

static atomic_int done_calls;

static void count_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user;
    assert_null(lease);
    assert_int_equal(report->outcome, LH_OK);
    atomic_fetch_add(&done_calls, 1);
}

static void a_started_release_is_told(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *notify = kit_acquire(client, "told", NULL);
    struct lh_lease *untold = kit_acquire(client, "untold", NULL);
    atomic_store(&done_calls, 0);
    assert_int_equal(lh_release_start(&notify, count_done, NULL), LH_OK);
    assert_int_equal(lh_release_start(&untold, NULL, NULL), LH_OK);
    assert_true(notify == NULL && untold == NULL);
    for (int i = 0; i < 300 && atomic_load(&done_calls) == 0; i++)
        kit_sleep_ms(10);
    assert_int_equal(atomic_load(&done_calls), 1);
    assert_int_equal(kit_state(client, "told"), LH_FREE);
    assert_int_equal(kit_state(client, "untold"), LH_FREE);
    lh_close(&client);
}

static void several_keys_wait_for_a_light_one(void **state)
{
    (void)state;
    const char *keys[] = {"b", "a"};
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *light = kit_acquire(client, "b", NULL), *both = NULL;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_acquire_all(client, keys, 2, NULL, &both, &report), LH_BUSY, &report);
    assert_int_equal(kit_state(client, "a"), LH_FREE);
    kit_release(&light, LH_OK);
    ASSERT_OUTCOME(lh_acquire_all(client, keys, 2, NULL, &both, &report), LH_OK, &report);
    struct lh_lease *none = NULL;
    ASSERT_OUTCOME(lh_acquire(client, "a", NULL, &none, &report), LH_BUSY, &report);
    kit_release(&both, LH_OK);
    lh_close(&client);
}

/* ---- between promotion and adoption ---- */

static void keep_grant(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    assert_int_equal(report->outcome, LH_OK);
    *(struct lh_lease **)user = lease;
}

static void a_release_right_after_somebody_asked(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *second = NULL;
    open.own_loop = true;
    patient.wait_ms = LH_WAIT_FOREVER;
    struct lh_client *client = kit_open(&open);
    struct lh_lease *first = kit_acquire(client, "k", NULL);
    uint64_t token = lh_token(first);
    kit_started(lh_acquire_start(client, "k", &patient, keep_grant, &second, NULL));
    assert_int_equal(lh_step(client), LH_OK); /* the request has started, without a result */
    kit_release(&first, LH_OK);
    for (int i = 0; i < 300 && second == NULL; i++) {
        kit_sleep_ms(5);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_non_null(second);
    assert_true(lh_token(second) > token);
    kit_release(&second, LH_OK);
    lh_close(&client);
}

/* A started call precedes the next call of the same thread. */
static void a_started_release_is_not_overtaken(void **state)
{
    (void)state;
    struct lh_acquire_options shared = LH_ACQUIRE_OPTIONS_INIT;
    shared.shared = true; /* uses the local queue */
    for (int own = 0; own < 2; own++) {
        struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
        open.own_loop = own == 1;
        struct lh_client *client = kit_open(&open);
        for (int i = 0; i < 200; i++) {
            struct lh_lease *lease = kit_acquire(client, "k", &shared);
            assert_int_equal(lh_release_start(&lease, NULL, NULL), LH_OK);
            lease = kit_acquire(client, "k", NULL);
            kit_release(&lease, LH_OK);
        }
        lh_close(&client);
    }
}

static void nobody_guesses_its_request_id(void **state)
{
    (void)state;
    char id[64];
    struct lh_acquire_options same = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL), *other = NULL;
    struct lh_report report = LH_REPORT_INIT;
    (void)snprintf(id, sizeof id, "light-%llu", (unsigned long long)lh_token(lease));
    same.request_id = id;
    ASSERT_OUTCOME(lh_acquire(client, "k", &same, &other, &report), LH_BUSY, &report);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* ---- the whole table ---- */

struct returned {
    struct lh_lease *leases[2];
    int shown;
};

static bool give_both_back(void *user, const struct lh_view *view)
{
    struct returned *returned = user;
    (void)view;
    returned->shown++;
    for (int i = 0; i < 2; i++)
        if (returned->leases[i] != NULL)
            assert_int_equal(lh_release_start(&returned->leases[i], NULL, NULL), LH_OK);
    return true;
}

static void a_list_can_give_back_what_it_shows(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct returned returned = {
        .leases = {kit_acquire(client, "a", NULL), kit_acquire(client, "b", NULL)}};
    (void)alarm(60); /* it must not wait for itself */
    assert_int_equal(lh_list(client, "", give_both_back, &returned, NULL), LH_OK);
    (void)alarm(0);
    assert_in_range(returned.shown, 1, 2);
    assert_int_equal(kit_state(client, "a"), LH_FREE);
    assert_int_equal(kit_state(client, "b"), LH_FREE);
    lh_close(&client);
}

/* Measured in CPU time, which other processes do not affect. */
static void many_looks_do_not_slow_each_other(void **state)
{
    enum { KEYS = 20000, SECONDS_MAX = 15 };
    static struct lh_lease *leases[KEYS];
    (void)state;
    char key[32];
    struct lh_client *client = kit_open(NULL);
    clock_t began = clock();
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        leases[i] = kit_acquire(client, key, NULL);
        assert_int_equal(kit_state(client, key), LH_HELD);
    }
    for (int i = 0; i < KEYS; i++)
        kit_release(&leases[i], LH_OK);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    print_message("%d keys: %.2f s of work\n", KEYS, seconds);
    assert_true(seconds < SECONDS_MAX);
    lh_close(&client);
}

int main(void)
{
#define IN_MEMORY(test)                            \
    {                                              \
#test, test, kit_on_memory, kit_done, NULL \
    }
    const struct CMUnitTest tests[] = {
        IN_MEMORY(a_status_shows_the_holder),
        IN_MEMORY(a_look_at_a_busy_key_says_who),
        IN_MEMORY(tokens_grow_whoever_grants),
        IN_MEMORY(a_break_reaches_the_holder),
        IN_MEMORY(a_token_is_enough_to_give_it_back),
        IN_MEMORY(a_list_shows_all),
        IN_MEMORY(a_watch_misses_nothing),
        IN_MEMORY(a_closed_client_leaves_handles_to_free),
        IN_MEMORY(waiters_come_in_by_their_priority),
        IN_MEMORY(a_started_release_is_told),
        IN_MEMORY(several_keys_wait_for_a_light_one),
        IN_MEMORY(a_release_right_after_somebody_asked),
        IN_MEMORY(a_started_release_is_not_overtaken),
        IN_MEMORY(nobody_guesses_its_request_id),
        IN_MEMORY(a_list_can_give_back_what_it_shows),
        IN_MEMORY(many_looks_do_not_slow_each_other),
    };
#undef IN_MEMORY
    return cmocka_run_group_tests_name("lib_light", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Started calls: start, wait, cancel, with the client's thread and with own_loop. */
#include "lib_kit.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A started call and its result. */
struct pending {
    struct lh_lease *lease;
    struct lh_report report;
    atomic_int done;
    struct lh_client *client;
    enum lh_outcome within; /* of a blocking call within the callback */
};
#define PENDING_INIT             \
    {                            \
        .report = LH_REPORT_INIT \
    }

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pending *pending = user;
    struct lh_view status = LH_VIEW_INIT;
    struct lh_report ignored = LH_REPORT_INIT;
    pending->lease = lease;
    pending->report = *report;
    if (pending->client != NULL)
        pending->within = lh_status(pending->client, "k", &status, &ignored);
    atomic_fetch_add(&pending->done, 1);
}

static struct lh_client *open_own(void)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    open.own_loop = true;
    struct lh_client *client = kit_open(&open);
    assert_true(lh_fd(client) >= 0);
    return client;
}

/* As a program with its own poll loop does. */
static void turn_until(struct lh_client *client, struct pending *pending, int count)
{
    struct pollfd wait = {.fd = lh_fd(client), .events = POLLIN};
    for (int i = 0; i < 1000 && atomic_load(&pending->done) < count; i++) {
        (void)poll(&wait, 1, /* timeout= */ 20);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(atomic_load(&pending->done), count);
}

static void a_foreign_loop_carries_everything(void **state)
{
    (void)state;
    struct pending first = PENDING_INIT, second = PENDING_INIT, third = PENDING_INIT;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_own();
    patient.wait_ms = 20000;
    kit_started(lh_acquire_start(client, "k", NULL, on_done, &first, &first.report));
    assert_int_equal(atomic_load(&first.done), 0); /* never from within */
    turn_until(client, &first, 1);
    assert_int_equal(first.report.outcome, LH_OK);
    assert_true(lh_held(first.lease));
    kit_started(lh_acquire_start(client, "k", &patient, on_done, &second, NULL));
    for (int i = 0; i < 20; i++) {
        kit_sleep_ms(2);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(atomic_load(&second.done), 0);
    uint64_t token = lh_token(first.lease);
    assert_int_equal(lh_release_start(&first.lease, on_done, &third), LH_OK);
    assert_null(first.lease);
    turn_until(client, &third, 1);
    turn_until(client, &second, 1);
    assert_int_equal(second.report.outcome, LH_OK);
    assert_true(lh_token(second.lease) > token);
    kit_release(&second.lease, LH_OK); /* a blocking call runs the loop itself */
    lh_close(&client);
}

static void a_waiter_can_give_up(void **state)
{
    (void)state;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = LH_WAIT_FOREVER;
    for (int own = 0; own < 2; own++) {
        struct pending pending = PENDING_INIT;
        struct lh_client *client = own ? open_own() : kit_open(NULL);
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        struct lh_request *request =
            lh_acquire_start(client, "k", &patient, on_done, &pending, &pending.report);
        kit_started(request);
        for (int i = 0; i < 10; i++) {
            kit_sleep_ms(3);
            (void)lh_step(client);
        }
        assert_int_equal(atomic_load(&pending.done), 0);
        lh_cancel(request);
        for (int i = 0; i < 500 && atomic_load(&pending.done) == 0; i++) {
            kit_sleep_ms(5);
            (void)lh_step(client);
        }
        assert_int_equal(atomic_load(&pending.done), 1);
        assert_int_equal(pending.report.outcome, LH_BUSY);
        assert_null(pending.lease);
        assert_true(lh_held(lease));
        kit_release(&lease, LH_OK);
        assert_int_equal(kit_state(client, "k"), LH_FREE);
        lh_close(&client);
    }
}

static void a_wait_ends_when_it_said(void **state)
{
    (void)state;
    struct lh_acquire_options brief = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *second = NULL;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    brief.wait_ms = 300;
    int64_t began = kit_now_ms();
    ASSERT_OUTCOME(lh_acquire(client, "k", &brief, &second, &report), LH_BUSY, &report);
    int64_t took = kit_now_ms() - began;
    assert_true(took >= 290 && took < 3000);
    kit_release(&lease, LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lh_close(&client);
}

static void the_longest_wait_is_one(void **state)
{
    (void)state;
    const int64_t waits[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
        struct pending pending = PENDING_INIT;
        struct lh_client *client = open_own();
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        patient.wait_ms = waits[i];
        kit_started(lh_acquire_start(client, "k", &patient, on_done, &pending, NULL));
        for (int turn = 0; turn < 20; turn++) {
            kit_sleep_ms(2);
            assert_int_equal(lh_step(client), LH_OK);
        }
        assert_int_equal(atomic_load(&pending.done), 0);
        kit_release(&lease, LH_OK);
        turn_until(client, &pending, 1);
        assert_int_equal(pending.report.outcome, LH_OK);
        kit_release(&pending.lease, LH_OK);
        lh_close(&client);
    }
}

static void a_blocking_call_within_a_function_is_refused(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct pending pending = PENDING_INIT;
        pending.client = own ? open_own() : kit_open(NULL);
        kit_started(lh_acquire_start(pending.client, "k", NULL, on_done, &pending, NULL));
        for (int i = 0; i < 500 && atomic_load(&pending.done) == 0; i++) {
            kit_sleep_ms(2);
            (void)lh_step(pending.client);
        }
        assert_int_equal(pending.within, LH_USAGE);
        assert_int_equal(pending.report.outcome, LH_OK);
        kit_release(&pending.lease, LH_OK);
        lh_close(&pending.client);
    }
}

static void a_close_ends_what_is_on_its_way(void **state)
{
    (void)state;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = LH_WAIT_FOREVER;
    for (int own = 0; own < 2; own++) {
        struct pending wishes[3] = {PENDING_INIT, PENDING_INIT, PENDING_INIT};
        struct lh_client *client = own ? open_own() : kit_open(NULL);
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        for (int i = 0; i < 3; i++)
            kit_started(
                lh_acquire_start(client, "k", &patient, on_done, &wishes[i], &wishes[i].report));
        lh_close(&client);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(atomic_load(&wishes[i].done), 1);
            assert_int_equal(wishes[i].report.outcome, LH_BUSY);
        }
        assert_int_equal(lh_release(&lease, NULL), LH_LOST);
    }
}

static int views;
static enum lh_state last_state;

static bool count_view(void *user, const struct lh_view *view)
{
    (void)user;
    views++;
    last_state = view->state;
    return true;
}

/* Calls started in a callback of lh_close(): acquisitions are refused, releases are done. */
static void give_all_back(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pending *pending = user;
    struct lh_report refusal = LH_REPORT_INIT;
    assert_null(lease);
    assert_int_equal(report->outcome, LH_BUSY);
    assert_int_equal(lh_release_start(&pending->lease, on_done, pending), LH_OK);
    assert_null(lh_acquire_start(pending->client, "new", NULL, on_done, pending, &refusal));
    assert_int_equal(refusal.outcome, LH_BUSY);
    assert_int_equal(lh_clear_start(pending->client, "k", on_done, pending, NULL), LH_BUSY);
    assert_int_equal(lh_list_start(pending->client, "", count_view, on_done, pending, NULL),
                     LH_BUSY);
    pending->client = NULL;
}

static void a_close_lets_nothing_new_begin(void **state)
{
    (void)state;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = LH_WAIT_FOREVER;
    for (int own = 0; own < 2; own++) {
        struct pending pending = PENDING_INIT;
        struct lh_client *client = own ? open_own() : kit_open(NULL);
        pending.client = client;
        pending.lease = kit_acquire(client, "k", NULL);
        kit_started(lh_acquire_start(client, "k", &patient, give_all_back, &pending, NULL));
        lh_close(&client);
        assert_int_equal(atomic_load(&pending.done), 1);
        assert_null(pending.lease);
    }
}

/* Each starts the next in its callback. */
struct chain {
    struct lh_lease *leases[8];
    size_t at;
    int done;
};

static void give_next_back(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct chain *chain = user;
    assert_null(lease);
    assert_string_not_equal(report->text, "");
    chain->done++;
    if (chain->at < 8)
        assert_int_equal(lh_release_start(&chain->leases[chain->at++], give_next_back, chain),
                         LH_OK);
}

static void a_close_waits_for_a_chain_of_releases(void **state)
{
    (void)state;
    struct lh_acquire_options shared = LH_ACQUIRE_OPTIONS_INIT;
    shared.shared = true;
    for (int own = 0; own < 2; own++) {
        struct chain chain = {.at = 1};
        struct lh_client *client = own ? open_own() : kit_open(NULL);
        for (int i = 0; i < 8; i++) {
            char key[] = {(char)('a' + i), '\0'};
            chain.leases[i] = kit_acquire(client, key, i % 2 == 0 ? NULL : &shared);
        }
        assert_int_equal(lh_release_start(&chain.leases[0], give_next_back, &chain), LH_OK);
        lh_close(&client);
        assert_int_equal(chain.done, 8);
    }
}

static void try_again(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pending *pending = user;
    (void)report;
    assert_null(lease);
    atomic_fetch_sub(&pending->done, 1);
    struct lh_request *request =
        lh_acquire_start(pending->client, "k", NULL, try_again, pending, NULL);
    if (request != NULL) {
        atomic_fetch_add(&pending->done, 1);
        kit_started(request);
    }
}

static void a_close_ends_who_never_gives_up(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct pending pending = PENDING_INIT;
        pending.done = 1;
        struct lh_client *client = own ? open_own() : kit_open(NULL);
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        pending.client = client;
        kit_started(lh_acquire_start(client, "k", NULL, try_again, &pending, NULL));
        lh_close(&client);
        assert_int_equal(atomic_load(&pending.done), 0); /* every started call has ended */
        assert_int_equal(lh_release(&lease, NULL), LH_LOST);
    }
}

/* Every _start function, with own_loop. */
static void every_verb_can_be_started(void **state)
{
    (void)state;
    struct pending pending = PENDING_INIT;
    struct lh_acquire_options unbound = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_own();
    bool keeps_history = strncmp(kit_url(), "file:", 5) == 0;
    char key[] = "k"; /* overwritten before the loop runs */
    unbound.unbound = true;
    struct lh_lease *lease = kit_acquire(client, "k", &unbound);
    uint64_t token = lh_token(lease);
    assert_int_equal(lh_detach(&lease, NULL), LH_OK);
    views = 0;
    assert_int_equal(lh_status_details_start(client, key, count_view, on_done, &pending, NULL),
                     LH_OK);
    assert_int_equal(lh_list_start(client, key, count_view, on_done, &pending, NULL), LH_OK);
    assert_int_equal(lh_renew_start(client, key, token, 0, on_done, &pending, NULL), LH_OK);
    memset(key, '?', 1);
    assert_int_equal(atomic_load(&pending.done), 0); /* never from within */
    turn_until(client, &pending, 3);
    assert_int_equal(views, 2);
    assert_int_equal(last_state, LH_HELD);
    assert_int_equal(pending.report.outcome, LH_OK);
    memset(key, 'k', 1);
    assert_int_equal(lh_release_token_start(client, key, token, 60000, on_done, &pending, NULL),
                     LH_OK);
    turn_until(client, &pending, 4);
    assert_int_equal(kit_state(client, "k"), LH_COOLING_DOWN);
    assert_int_equal(lh_renew_start(client, key, token, 0, on_done, &pending, NULL), LH_OK);
    turn_until(client, &pending, 5);
    assert_int_equal(pending.report.outcome, LH_STALE);
    assert_int_equal(lh_clear_start(client, key, on_done, &pending, NULL), LH_OK);
    turn_until(client, &pending, 6);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lease = kit_acquire(client, "k", NULL);
    assert_int_equal(lh_break_start(client, key, "why", true, on_done, &pending, NULL), LH_OK);
    turn_until(client, &pending, 7);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    kit_release(&lease, LH_LOST);
    views = 0;
    assert_int_equal(lh_history_start(client, "k", count_view, on_done, &pending, NULL),
                     keeps_history ? LH_OK : LH_USAGE);
    if (keeps_history)
        turn_until(client, &pending, 8);
    assert_true(keeps_history ? views > 3 : views == 0);
    assert_int_equal(lh_clear_start(client, "k", NULL, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_list_start(client, "k", count_view, NULL, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_status_details_start(client, "", count_view, on_done, &pending, NULL),
                     LH_USAGE);
    lh_close(&client);
}

/* Until the client is being closed. */
static void start_more(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pending *pending = user;
    on_done(user, lease, report);
    enum lh_outcome first = lh_clear_start(pending->client, "k", start_more, pending, NULL);
    enum lh_outcome second = lh_list_start(pending->client, "", count_view, on_done, pending, NULL);
    assert_true(first == LH_OK || first == LH_BUSY);
    assert_int_equal(first, second);
}

static void a_close_waits_for_what_was_started(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
        struct pending pending = PENDING_INIT;
        open.own_loop = own == 1;
        struct lh_client *client = pending.client = kit_open(&open);
        assert_int_equal(lh_clear_start(client, "k", start_more, &pending, NULL), LH_OK);
        lh_close(&client);
        assert_true(atomic_load(&pending.done) >= 1);
        assert_int_equal(atomic_load(&pending.done) % 2,
                         1); /* each started two more, and all ended */
    }
}

static void a_wrong_start_calls_nobody(void **state)
{
    (void)state;
    struct pending pending = PENDING_INIT;
    struct lh_client *client = kit_open(NULL);
    assert_null(lh_acquire_start(client, "", NULL, on_done, &pending, &pending.report));
    assert_int_equal(pending.report.outcome, LH_USAGE);
    assert_null(lh_acquire_start(client, "k", NULL, NULL, &pending, &pending.report));
    lh_cancel(NULL);
    lh_close(&client);
    assert_int_equal(atomic_load(&pending.done), 0);
}

int main(void)
{
#define ON_BOTH(test)                                          \
    {#test " on memory", test, kit_on_memory, kit_done, NULL}, \
    {                                                          \
#test " on file", test, kit_on_file, kit_done, NULL    \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_foreign_loop_carries_everything),
        ON_BOTH(a_waiter_can_give_up),
        ON_BOTH(a_wait_ends_when_it_said),
        ON_BOTH(the_longest_wait_is_one),
        ON_BOTH(a_blocking_call_within_a_function_is_refused),
        ON_BOTH(a_close_ends_what_is_on_its_way),
        ON_BOTH(a_close_lets_nothing_new_begin),
        ON_BOTH(a_close_waits_for_a_chain_of_releases),
        ON_BOTH(a_close_ends_who_never_gives_up),
        ON_BOTH(every_verb_can_be_started),
        ON_BOTH(a_close_waits_for_what_was_started),
        ON_BOTH(a_wrong_start_calls_nobody),
    };
#undef ON_BOTH
    return cmocka_run_group_tests_name("lib_loop", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client whose store runs in the client's loop: stepped only there, with all requests of a turn
 * in one batch. A linker option makes the library find the store of the test.
 */
#include "stepped_store.h"

#include "leasehold.h"
#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { THREADS = 4, EACH = 50, STARTS = 64 };

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
const struct store_driver *__wrap_store_find(const char *url);

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
const struct store_driver *__wrap_store_find(const char *url)
{
    static struct store_driver together;
    together = stepped_driver;
    together.capabilities = STORE_SESSIONS | STORE_RENEWS_SESSION;
    together.facts.ttl_ms = 20000;
    together.facts.ttl_least_ms = 10000;
    if (strncmp(url, "together:", strlen("together:")) == 0)
        return &together;
    return strncmp(url, "stepped:", strlen("stepped:")) == 0 ? &stepped_driver : NULL;
}

static struct lh_client *client;
static atomic_uint notify, granted;
static struct lh_lease *leases[STARTS];

static void open_client_of(const char *url, bool own_loop, int64_t timeout_ms)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    options.own_loop = own_loop;
    options.timeout_ms = timeout_ms;
    stepped_forget();
    atomic_store(&notify, 0);
    atomic_store(&granted, 0);
    assert_int_equal(lh_open(url, &options, &client, &report), LH_OK);
}

static void open_client(bool own_loop, int64_t timeout_ms)
{
    open_client_of("stepped:", own_loop, timeout_ms);
}

static void assert_in_the_loop_only(void)
{
    assert_int_equal(atomic_load(&stepped_notes.other_threads), 0);
    assert_int_equal(atomic_load(&stepped_notes.collisions), 0);
    assert_true(atomic_load(&stepped_notes.requests) > 0);
}

static enum lh_outcome ttl_becomes(int64_t ttl_ms, bool unbound, int64_t *out_ttl_ms)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.ttl_ms = ttl_ms;
    options.unbound = unbound;
    enum lh_outcome outcome = lh_acquire(client, "k", &options, &lease, NULL);
    if (outcome != LH_OK)
        return outcome;
    *out_ttl_ms = lh_ttl_ms(lease);
    return lh_release(&lease, NULL);
}

/* Where the session keeps its bound grants alive together, they all have the store's TTL. */
static void bound_leases_have_the_stores_ttl(void **state)
{
    static const int64_t given_ms[] = {0, 50, 12000, 3600000};
    struct lh_once_options brief = LH_ONCE_OPTIONS_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_lease *claim = NULL;
    int64_t ttl_ms = 0;
    (void)state;
    open_client_of("together:", /* own_loop= */ false, /* timeout_ms= */ 0);
    for (size_t i = 0; i < sizeof given_ms / sizeof given_ms[0]; i++) {
        assert_int_equal(ttl_becomes(given_ms[i], /* unbound= */ false, &ttl_ms), LH_OK);
        assert_int_equal(ttl_ms, 20000);
    }
    assert_int_equal(ttl_becomes(-1, /* unbound= */ false, &ttl_ms), LH_USAGE);
    assert_int_equal(ttl_becomes(50, /* unbound= */ true, &ttl_ms), LH_USAGE);
    assert_int_equal(ttl_becomes(12000, /* unbound= */ true, &ttl_ms), LH_OK);
    assert_int_equal(ttl_ms, 12000);
    brief.ttl_ms = 50;
    assert_int_equal(lh_once_begin(client, "id", &brief, &once, NULL), LH_USAGE);
    assert_int_equal(lh_once_claim(client, "id", &brief, &claim, &once, NULL), LH_OK);
    assert_int_equal(lh_ttl_ms(claim), 20000);
    assert_int_equal(lh_release(&claim, NULL), LH_OK);
    lh_close(&client);
}

static void *contend(void *argument)
{
    unsigned *inside = argument;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    patient.wait_ms = 20000;
    for (int i = 0; i < EACH; i++) {
        struct lh_lease *lease = NULL;
        struct lh_report report = LH_REPORT_INIT;
        if (lh_acquire(client, "k", &patient, &lease, &report) != LH_OK) {
            print_message("%s\n", report.text);
            break;
        }
        (*inside)++; /* the sanitizer detects a race */
        (void)lh_release(&lease, &report);
    }
    return NULL;
}

static void threads_block_and_the_loop_steps(void **state)
{
    pthread_t threads[THREADS];
    unsigned inside = 0;
    (void)state;
    open_client(/* own_loop= */ false, /* timeout_ms= */ 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &inside), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(inside, THREADS * EACH);
    assert_in_the_loop_only();
    lh_close(&client);
}

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lh_lease **place = user;
    *place = lease;
    atomic_fetch_add(&granted, report->outcome == LH_OK ? 1 : 0);
    atomic_fetch_add(&notify, 1);
}

static void turn_until(unsigned count)
{
    struct pollfd wait = {.fd = lh_fd(client), .events = POLLIN};
    for (int i = 0; i < 1000 && atomic_load(&notify) < count; i++) {
        (void)poll(&wait, 1, /* timeout= */ 20);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(atomic_load(&notify), count);
}

static void requests_started_in_one_turn_are_sent_together(void **state)
{
    char key[16];
    struct lh_request *requests[STARTS];
    (void)state;
    open_client(/* own_loop= */ true, /* timeout_ms= */ 0);
    for (size_t i = 0; i < STARTS; i++) {
        (void)snprintf(key, sizeof key, "k%zu", i);
        requests[i] = lh_acquire_start(client, key, NULL, on_done, &leases[i], NULL);
        assert_non_null(requests[i]);
    }
    turn_until(STARTS);
    for (size_t i = 0; i < STARTS; i++)
        lh_request_free(requests[i]);
    assert_int_equal(atomic_load(&granted), STARTS);
    assert_int_equal(atomic_load(&stepped_notes.requests), STARTS);
    assert_int_equal(atomic_load(&stepped_notes.round_trips), 1);
    assert_int_equal(atomic_load(&stepped_notes.most_together), STARTS);
    for (size_t i = 0; i < STARTS; i++)
        assert_int_equal(lh_release(&leases[i], NULL), LH_OK); /* runs the loop itself */
    assert_in_the_loop_only();
    lh_close(&client);
}

static bool count_view(void *user, const struct lh_view *view)
{
    (void)view;
    ++*(unsigned *)user;
    return true;
}

static void lists_travel_without_a_lease(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    unsigned seen = 0;
    (void)state;
    open_client(/* own_loop= */ false, /* timeout_ms= */ 0);
    assert_int_equal(lh_list(client, "", count_view, &seen, &report), LH_OK);
    assert_int_equal(seen, 0);
    assert_int_equal(lh_acquire(client, "k", NULL, &lease, &report), LH_OK);
    assert_int_equal(lh_list(client, "", count_view, &seen, &report), LH_OK);
    assert_int_equal(seen, 1);
    assert_int_equal(lh_release(&lease, &report), LH_OK);
    assert_in_the_loop_only();
    lh_close(&client);
}

struct listed {
    unsigned held, unreadable, others;
    char key[LH_KEY_SIZE], text[LH_TEXT_SIZE];
};

static bool note_state(void *user, const struct lh_view *view)
{
    struct listed *listed = user;
    listed->held += view->state == LH_HELD ? 1 : 0;
    listed->unreadable += view->state == LH_UNREADABLE ? 1 : 0;
    listed->others += view->state != LH_HELD && view->state != LH_UNREADABLE ? 1 : 0;
    if (view->state == LH_UNREADABLE) {
        (void)snprintf(listed->key, sizeof listed->key, "%s", view->key);
        (void)snprintf(listed->text, sizeof listed->text, "%s", view->text);
    } else {
        assert_null(view->text);
    }
    return true;
}

static void note_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    assert_null(report);
    assert_non_null(view);
    (void)note_state(user, view);
}

static void an_unreadable_record_does_not_hide_the_others(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *first = NULL, *last = NULL;
    struct lh_view view = LH_VIEW_INIT;
    struct listed listed = {0};
    (void)state;
    open_client(/* own_loop= */ true, /* timeout_ms= */ 0);
    assert_int_equal(lh_acquire(client, "a", NULL, &first, &report), LH_OK);
    stepped_write("b", "{\"leasehold\":99,");
    stepped_write("c", "no record at all");
    assert_int_equal(lh_acquire(client, "d", NULL, &last, &report), LH_OK);
    assert_int_equal(lh_list(client, "", note_state, &listed, &report), LH_OK);
    assert_int_equal(listed.held, 2);
    assert_int_equal(listed.unreadable, 2);
    assert_int_equal(listed.others, 0);
    listed = (struct listed){0};
    assert_int_equal(lh_list(client, "b", note_state, &listed, &report), LH_OK);
    assert_string_equal(listed.key, "b");
    assert_string_equal(listed.text, "the record was written by a newer leasehold");
    assert_int_equal(lh_status(client, "c", &view, &report), LH_UNAVAILABLE);
    assert_int_equal(lh_release(&first, &report), LH_OK);
    assert_int_equal(lh_release(&last, &report), LH_OK);
    lh_close(&client);
}

static void a_watch_tells_of_an_unreadable_record_and_goes_on(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct lh_watcher *watcher = NULL;
    struct listed listed = {0};
    (void)state;
    open_client(/* own_loop= */ true, /* timeout_ms= */ 0);
    assert_int_equal(lh_watch(client, "", note_change, &listed, &watcher, &report), LH_OK);
    stepped_write("b", "no record at all");
    assert_int_equal(listed.unreadable, 1);
    assert_string_equal(listed.key, "b");
    assert_string_equal(listed.text, "the value was not written by leasehold");
    assert_int_equal(lh_acquire(client, "d", NULL, &lease, &report), LH_OK);
    assert_int_equal(listed.held, 1);
    assert_int_equal(lh_unwatch(&watcher, &report), LH_OK);
    assert_int_equal(lh_release(&lease, &report), LH_OK);
    lh_close(&client);
}

static void a_store_that_falls_silent_is_unavailable_in_time(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct timespec began, ended;
    (void)state;
    open_client(/* own_loop= */ false, /* timeout_ms= */ 300);
    atomic_store(&stepped_notes.silent, true);
    (void)clock_gettime(CLOCK_BOOTTIME, &began);
    assert_int_equal(lh_acquire(client, "k", NULL, &lease, &report), LH_UNAVAILABLE);
    (void)clock_gettime(CLOCK_BOOTTIME, &ended);
    assert_in_range(ended.tv_sec - began.tv_sec, 0, 5);
    assert_null(lease);
    atomic_store(&stepped_notes.silent, false);
    lh_close(&client);
}

static void ignore_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    (void)user;
    (void)view;
    (void)report;
}

/* Also the second one, which joins the request of the first. */
static void a_watch_of_a_silent_store_is_unavailable_in_time(void **state)
{
    struct lh_watcher *watch = NULL;
    (void)state;
    open_client(/* own_loop= */ true, /* timeout_ms= */ 300);
    atomic_store(&stepped_notes.silent, true);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(
            lh_watch_start(client, "", ignore_change, on_done, &leases[0], &watch, NULL), LH_OK);
        turn_until(i);
        assert_int_equal(atomic_load(&granted), 0);
        assert_int_equal(lh_unwatch_start(&watch, NULL), LH_OK);
    }
    atomic_store(&stepped_notes.silent, false);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_leases_have_the_stores_ttl),
        cmocka_unit_test(threads_block_and_the_loop_steps),
        cmocka_unit_test(requests_started_in_one_turn_are_sent_together),
        cmocka_unit_test(lists_travel_without_a_lease),
        cmocka_unit_test(an_unreadable_record_does_not_hide_the_others),
        cmocka_unit_test(a_watch_tells_of_an_unreadable_record_and_goes_on),
        cmocka_unit_test(a_store_that_falls_silent_is_unavailable_in_time),
        cmocka_unit_test(a_watch_of_a_silent_store_is_unavailable_in_time),
    };
    return cmocka_run_group_tests_name("lib_stepped", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A store that stops replying: no call returns free or busy, and losses are reported in time. */
#include "lib_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    atomic_int lost;
    atomic_bool held_then;
    _Atomic int64_t at_ms;
    char text[LH_TEXT_SIZE];
} heard;

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    assert_ptr_equal(user, &heard);
    atomic_store(&heard.held_then, lh_held(lease));
    atomic_store(&heard.at_ms, kit_now_ms());
    memcpy(heard.text, report->text, sizeof heard.text);
    if (report->outcome == LH_LOST)
        atomic_fetch_add(&heard.lost, 1);
}

static int on_file(void **state)
{
    memset(&heard, 0, sizeof heard);
    return kit_on_file(state);
}

static struct lh_client *open_impatient(int64_t timeout_ms)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    open.timeout_ms = timeout_ms;
    return kit_open(&open);
}

static void a_stopped_store_is_unavailable_in_time(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view status = LH_VIEW_INIT;
    struct lh_lease *lease = NULL;
    struct lh_client *client = open_impatient(500);
    int stopped = kit_stop_store();
    int64_t began = kit_now_ms();
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_UNAVAILABLE, &report);
    assert_non_null(strstr(report.text, "unavailable: k"));
    ASSERT_OUTCOME(lh_status(client, "k", &status, &report), LH_UNAVAILABLE, &report);
    int64_t took = kit_now_ms() - began;
    assert_true(took < 5000);
    kit_resume(stopped);
    kit_sleep_ms(1200); /* the breaker may be open */
    lease = kit_acquire(client, "k", NULL);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* Renewals fail: on_lost is called before another client can be granted the key. */
static void a_holder_knows_before_another_is_granted(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = open_impatient(500);
    struct lh_report report = LH_REPORT_INIT;
    options.ttl_ms = 3000;
    options.on_lost = on_lost;
    options.user = &heard;
    int64_t began = kit_now_ms();
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    uint64_t token = lh_token(lease);
    int stopped = kit_stop_store();
    while (lh_held(lease))
        kit_sleep_ms(1);
    int64_t freed_ms = kit_now_ms() - began;
    for (int i = 0; i < 200 && atomic_load(&heard.lost) == 0; i++)
        kit_sleep_ms(2);
    assert_int_equal(atomic_load(&heard.lost), 1);
    assert_false(atomic_load(&heard.held_then));
    assert_non_null(strstr(heard.text, "lost: k: not renewed in time; the store did not reply"));
    assert_true(freed_ms < 3000);
    assert_true(atomic_load(&heard.at_ms) - began < 3000);
    print_message("# not held %d ms before the lease could end\n", (int)(3000 - freed_ms));
    assert_true(lh_remaining_ms(lease) == 0);
    assert_true(lh_token(lease) == token);
    kit_resume(stopped);
    ASSERT_OUTCOME(lh_release(&lease, &report), LH_LOST, &report);
    lh_close(&client);
}

static void a_break_is_told_to_the_holder(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL), *breaker = kit_open(NULL);
    struct lh_report report = LH_REPORT_INIT;
    options.ttl_ms = 900;
    options.on_lost = on_lost;
    options.user = &heard;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    ASSERT_OUTCOME(lh_break(breaker, "k", "stuck", /* at_once= */ false, &report), LH_OK, &report);
    for (int i = 0; i < 1000 && atomic_load(&heard.lost) == 0; i++)
        kit_sleep_ms(2);
    assert_int_equal(atomic_load(&heard.lost), 1);
    assert_false(lh_held(lease));
    ASSERT_OUTCOME(lh_release(&lease, &report), LH_LOST, &report);
    assert_int_equal(kit_state(breaker, "k"), LH_FREE);
    lh_close(&breaker);
    lh_close(&client);
}

static void renewals_keep_it(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    options.ttl_ms = 3000;
    options.on_lost = on_lost;
    options.user = &heard;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    for (int i = 0; i < 100; i++) {
        kit_sleep_ms(30);
        assert_true(lh_held(lease));
    }
    assert_int_equal(atomic_load(&heard.lost), 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* As in a stopped or suspended process, the loop does not run until the lease has expired. */
static void a_holder_asleep_past_its_lease_is_told_how_long(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    open.own_loop = true;
    struct lh_client *client = kit_open(&open);
    options.ttl_ms = 1000;
    options.on_lost = on_lost;
    options.user = &heard;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    kit_sleep_ms(2200);
    for (int i = 0; i < 1000 && atomic_load(&heard.lost) == 0; i++) {
        assert_int_equal(lh_step(client), LH_OK);
        kit_sleep_ms(2);
    }
    assert_int_equal(atomic_load(&heard.lost), 1);
    assert_non_null(strstr(heard.text, "lost: k: the lease ended "));
    assert_null(strstr(heard.text, "ended 0s ago"));
    assert_non_null(strstr(heard.text, "another client may have held it since"));
    assert_non_null(strstr(heard.text, "refused only where tokens are checked"));
    ASSERT_OUTCOME(lh_release(&lease, &report), LH_LOST, &report);
    lh_close(&client);
}

/* A bound lease ends with its process, also with SIGKILL. */
static void a_killed_process_holds_nothing(void **state)
{
    (void)state;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lh_client *own = NULL;
        struct lh_lease *lease = NULL;
        bool fine = lh_open(kit_url(), NULL, &own, NULL) == LH_OK &&
                    lh_acquire(own, "k", NULL, &lease, NULL) == LH_OK;
        (void)!write(ready[1], fine ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    struct lh_client *client = kit_open(NULL);
    assert_int_equal(kit_state(client, "k"), LH_HELD);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    kit_release(&lease, LH_OK);
    lh_close(&client);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, on_file, kit_done)
    const struct CMUnitTest tests[] = {
        CASE(a_stopped_store_is_unavailable_in_time),
        CASE(a_holder_knows_before_another_is_granted),
        CASE(a_break_is_told_to_the_holder),
        CASE(renewals_keep_it),
        CASE(a_holder_asleep_past_its_lease_is_told_how_long),
        CASE(a_killed_process_holds_nothing),
    };
#undef CASE
    return cmocka_run_group_tests_name("lib_lost", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls of the library and each of their outcomes, on both stores. */
#include "lib_kit.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static void a_lock_is_taken_and_given_back(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    uint64_t last = 0;
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    for (int round = 0; round < 5; round++) {
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        assert_true(lh_token(lease) > last);
        assert_string_equal(lh_key_at(lease, 0), "k");
        assert_null(lh_key_at(lease, 1));
        assert_true(lh_remaining_ms(lease) > 15000 && lh_remaining_ms(lease) <= 20000);
        assert_int_equal(lh_ttl_ms(lease), 30000);
        last = lh_token(lease);
        assert_int_equal(kit_state(client, "k"), LH_HELD);
        kit_release(&lease, LH_OK);
        assert_int_equal(kit_state(client, "k"), LH_FREE);
    }
    lh_close(&client);
    assert_null(client);
    lh_close(&client);
}

static void a_busy_report_names_the_holder(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *second = NULL;
    struct lh_view status = LH_VIEW_INIT;
    open.holder = "wfe-7";
    struct lh_client *client = kit_open(&open);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &second, &report), LH_BUSY, &report);
    assert_null(second);
    assert_string_equal(report.holder, "wfe-7");
    assert_non_null(strstr(report.text, "k is held by wfe-7, in this process"));
    ASSERT_OUTCOME(lh_status(client, "k", &status, &report), LH_OK, &report);
    assert_string_equal(status.holder, "wfe-7");
    assert_true(status.token == lh_token(lease));
    assert_int_equal(status.holders, 1);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* To the store another client is another process. */
static void a_holder_elsewhere_is_shown_with_times(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *second = NULL;
    open.holder = "wfe-7";
    struct lh_client *client = kit_open(&open), *other = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    ASSERT_OUTCOME(lh_acquire(other, "k", NULL, &second, &report), LH_BUSY, &report);
    assert_non_null(strstr(report.text, "k is held by wfe-7 for "));
    assert_non_null(strstr(report.text, "(lease ends in "));
    assert_true(report.token == lh_token(lease));
    assert_true(report.ends_in_ms > 0 && report.ends_in_ms <= 30000);
    assert_true(report.since_ms >= 0 && report.since_ms < 10000);
    kit_release(&lease, LH_OK);
    lease = kit_acquire(other, "k", NULL);
    kit_release(&lease, LH_OK);
    lh_close(&other);
    lh_close(&client);
}

static void a_cooldown_is_not_busy_and_can_be_cleared(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct lh_client *client = kit_open(NULL);
    options.cooldown_ms = 60000;
    lease = kit_acquire(client, "k", &options);
    kit_release(&lease, LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_COOLING_DOWN);
    ASSERT_OUTCOME(lh_acquire(client, "k", NULL, &lease, &report), LH_COOLING, &report);
    assert_true(report.ends_in_ms > 0 && report.ends_in_ms <= 60000);
    assert_non_null(strstr(report.text, "free in"));
    ASSERT_OUTCOME(lh_clear(client, "k", &report), LH_OK, &report);
    lease = kit_acquire(client, "k", NULL);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void a_stale_token_changes_nothing(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_renew(client, "k", token + 1, 0, &report), LH_STALE, &report);
    ASSERT_OUTCOME(lh_release_token(client, "k", token - 1, 0, &report), LH_STALE, &report);
    assert_true(lh_held(lease));
    assert_int_equal(kit_state(client, "k"), LH_HELD);
    kit_release(&lease, LH_OK);
    ASSERT_OUTCOME(lh_renew(client, "k", token, 0, &report), LH_STALE, &report);
    lh_close(&client);
}

/* As `leasehold acquire` does: the grant outlives its handle, and its token suffices. */
static void an_unbound_lease_lives_on_without_its_handle(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_USAGE, &report);
    kit_release(&lease, LH_OK);
    options.unbound = true;
    lease = kit_acquire(client, "k", &options);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    assert_null(lease);
    assert_true(report.token == token);
    assert_int_equal(kit_state(client, "k"), LH_HELD);
    ASSERT_OUTCOME(lh_renew(client, "k", token, 5000, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_release_token(client, "k", token, 0, &report), LH_OK, &report);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lh_close(&client);
}

static void several_keys_are_all_or_nothing(void **state)
{
    (void)state;
    const char *keys[] = {"c", "a", "b"};
    const char *twice[] = {"a", "a"};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *all = NULL;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *one = kit_acquire(client, "c", NULL);
    ASSERT_OUTCOME(lh_acquire_all(client, keys, 3, NULL, &all, &report), LH_BUSY, &report);
    assert_null(all);
    assert_non_null(strstr(report.text, "c is held"));
    assert_int_equal(kit_state(client, "a"), LH_FREE);
    kit_release(&one, LH_OK);
    ASSERT_OUTCOME(lh_acquire_all(client, keys, 3, NULL, &all, &report), LH_OK, &report);
    for (size_t i = 0; i < 3; i++) {
        char expected[2] = {(char)('a' + (int)i), '\0'};
        assert_string_equal(lh_key_at(all, i), expected);
        assert_true(lh_token_at(all, i) > 0);
        assert_int_equal(kit_state(client, expected), LH_HELD);
    }
    assert_true(lh_token_at(all, 3) == 0);
    assert_true(lh_held(all));
    kit_release(&all, LH_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kit_state(client, keys[i]), LH_FREE);
    ASSERT_OUTCOME(lh_acquire_all(client, twice, 2, NULL, &all, &report), LH_USAGE, &report);
    lh_close(&client);
}

static void readers_share_and_semaphores_count(void **state)
{
    (void)state;
    struct lh_acquire_options shared = LH_ACQUIRE_OPTIONS_INIT, slot = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *refused = NULL, *slots[3];
    struct lh_client *client = kit_open(NULL);
    shared.shared = true;
    slot.limit = 3;
    struct lh_lease *first = kit_acquire(client, "r", &shared);
    struct lh_lease *second = kit_acquire(client, "r", &shared);
    assert_true(lh_token(first) != lh_token(second));
    ASSERT_OUTCOME(lh_acquire(client, "r", NULL, &refused, &report), LH_BUSY, &report);
    kit_release(&first, LH_OK);
    kit_release(&second, LH_OK);
    for (size_t i = 0; i < 3; i++)
        slots[i] = kit_acquire(client, "s", &slot);
    ASSERT_OUTCOME(lh_acquire(client, "s", &slot, &refused, &report), LH_BUSY, &report);
    slot.limit = 5;
    ASSERT_OUTCOME(lh_acquire(client, "s", &slot, &refused, &report), LH_MISMATCH, &report);
    for (size_t i = 0; i < 3; i++)
        kit_release(&slots[i], LH_OK);
    slot.shared = true;
    ASSERT_OUTCOME(lh_acquire(client, "s", &slot, &refused, &report), LH_USAGE, &report);
    lh_close(&client);
}

static void a_repeated_request_gets_the_same_grant(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    options.request_id = "order-17";
    options.unbound = true;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    lease = kit_acquire(client, "k", &options);
    assert_true(lh_token(lease) == token);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void a_break_frees_the_key(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    ASSERT_OUTCOME(lh_break(client, "k", "stuck", /* at_once= */ true, &report), LH_OK, &report);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    (void)lh_release(&lease, &report);
    assert_null(lease);
    lh_close(&client);
}

static void an_abandoned_lock_does_not_cool(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    options.cooldown_ms = 60000;
    for (int round = 0; round < 2; round++) {
        struct lh_lease *lease = kit_acquire(client, "k", &options);
        ASSERT_OUTCOME(lh_abandon(&lease, &report), LH_OK, &report);
        assert_null(lease);
        assert_int_equal(kit_state(client, "k"), LH_FREE);
    }
    struct lh_lease *lease = kit_acquire(client, "k", NULL); /* one that never had a cooldown */
    ASSERT_OUTCOME(lh_abandon(&lease, &report), LH_OK, &report);
    lease = kit_acquire(client, "k", &options);
    assert_int_equal(lh_abandon_start(&lease, NULL, NULL), LH_OK);
    assert_null(lease);
    options.wait_ms = 20000;
    lease = kit_acquire(client, "k", &options);
    kit_release(&lease, LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_COOLING_DOWN);
    lh_close(&client);
}

/* Both wait in one local queue: the second gets the first one's grant by hand-off, with its own
 * options. */
struct turn {
    sem_t came;
    struct lh_lease *lease;
};

static void take_turn(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct turn *turn = user;
    assert_int_equal(report->outcome, LH_OK);
    turn->lease = lease;
    (void)sem_post(&turn->came);
}

static void the_next_one_cools_though_another_abandoned(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct turn first = {0}, second = {0};
    struct lh_client *other = kit_open(NULL), *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(other, "k", NULL);
    (void)sem_init(&first.came, 0, 0);
    (void)sem_init(&second.came, 0, 0);
    options.cooldown_ms = 60000;
    options.wait_ms = 60000;
    kit_started(lh_acquire_start(client, "k", &options, take_turn, &second, &report));
    options.priority = 10;
    kit_started(lh_acquire_start(client, "k", &options, take_turn, &first, &report));
    kit_sleep_ms(200);
    kit_release(&lease, LH_OK);
    (void)sem_wait(&first.came);
    ASSERT_OUTCOME(lh_abandon(&first.lease, &report), LH_OK, &report);
    (void)sem_wait(&second.came);
    kit_release(&second.lease, LH_OK);
    assert_int_equal(kit_state(client, "k"), LH_COOLING_DOWN);
    lh_close(&client);
    lh_close(&other);
}

static void a_renewal_without_a_ttl_keeps_its_own(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_once_options claim = LH_ONCE_OPTIONS_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    options.ttl_ms = 12000;
    options.unbound = true;
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_renew(client, "k", token, 0, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_status(client, "k", &view, &report), LH_OK, &report);
    assert_true(view.ends_in_ms > 0 && view.ends_in_ms <= 12000);
    ASSERT_OUTCOME(lh_renew(client, "k", token, 60000, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_status(client, "k", &view, &report), LH_OK, &report);
    assert_true(view.ends_in_ms > 12000);
    claim.ttl_ms = 12000;
    ASSERT_OUTCOME(lh_once_begin(client, "id", &claim, &once, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_once_renew(client, "id", once.token, 0, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_status(client, "once:id", &view, &report), LH_OK, &report);
    assert_true(view.ends_in_ms > 0 && view.ends_in_ms <= 12000);
    lh_close(&client);
}

static void a_ttl_below_the_stores_minimum_is_named(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct lh_client *client = kit_open(NULL);
    bool memory = strcmp(kit_url(), "memory:") == 0;
    options.ttl_ms = memory ? 9 : 99;
    options.wait_ms = LH_WAIT_FOREVER;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_USAGE, &report);
    assert_non_null(strstr(report.text, memory ? "minimum of 10 ms" : "minimum of 100 ms"));
    options.ttl_ms++;
    lease = kit_acquire(client, "k", &options);
    (void)lh_release(&lease, NULL);
    lh_close(&client);
}

static void a_wrong_call_is_told_what_is_wrong(void **state)
{
    (void)state;
    char long_key[LH_KEY_SIZE + 1];
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct lh_client *client = kit_open(NULL), *none = NULL;
    memset(long_key, 'x', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    ASSERT_OUTCOME(lh_acquire(NULL, "k", NULL, &lease, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_acquire(client, NULL, NULL, &lease, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_acquire(client, "", NULL, &lease, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_acquire(client, long_key, NULL, &lease, &report), LH_USAGE, &report);
    assert_non_null(strstr(report.text, "512 bytes"));
    options.priority = 101;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_USAGE, &report);
    options.priority = 0;
    options.size = 0;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_release(&lease, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_renew(client, "k", 0, 0, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_open("etcd://x", NULL, &none, &report), LH_UNAVAILABLE, &report);
    ASSERT_OUTCOME(lh_open("radish://x", NULL, &none, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_open(NULL, NULL, &none, &report), LH_USAGE, &report);
    assert_null(none);
    assert_false(lh_held(NULL));
    assert_true(lh_token(NULL) == 0);
    assert_int_equal(lh_fd(client), -1);
    assert_int_equal(lh_step(client), LH_USAGE);
    lh_close(&client);
}

static void reports_are_optional_and_handles_outlive_the_client(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = NULL;
    assert_int_equal(lh_acquire(client, "k", NULL, &lease, NULL), LH_OK);
    lh_close(&client);
    assert_false(lh_held(lease));
    assert_int_equal(lh_release(&lease, NULL), LH_LOST);
    assert_null(lease);
    client = kit_open(NULL);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lh_close(&client);
}

static void a_store_that_cannot_be_is_unavailable(void **state)
{
    (void)state;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_open("file:/nowhere/at/all.log", NULL, &client, &report), LH_UNAVAILABLE,
                   &report);
    assert_null(client);
    assert_non_null(strstr(report.text, "/nowhere/at/all.log"));
}

static void names_are_told(void **state)
{
    (void)state;
    assert_string_equal(lh_outcome_name(LH_OK), "ok");
    assert_string_equal(lh_outcome_name(LH_MISMATCH), "mismatch");
    assert_string_equal(lh_outcome_name(LH_USAGE), "usage");
    assert_string_equal(lh_outcome_name(LH_FAILED), "failed");
    assert_string_equal(lh_outcome_name((enum lh_outcome)99), "unknown");
    assert_true(strlen(lh_version()) > 0);
}

int main(void)
{
#define ON_BOTH(test)                                          \
    {#test " on memory", test, kit_on_memory, kit_done, NULL}, \
    {                                                          \
#test " on file", test, kit_on_file, kit_done, NULL    \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_lock_is_taken_and_given_back),
        ON_BOTH(a_busy_report_names_the_holder),
        ON_BOTH(a_cooldown_is_not_busy_and_can_be_cleared),
        ON_BOTH(a_stale_token_changes_nothing),
        ON_BOTH(an_unbound_lease_lives_on_without_its_handle),
        ON_BOTH(several_keys_are_all_or_nothing),
        ON_BOTH(readers_share_and_semaphores_count),
        ON_BOTH(a_repeated_request_gets_the_same_grant),
        ON_BOTH(a_break_frees_the_key),
        ON_BOTH(an_abandoned_lock_does_not_cool),
        cmocka_unit_test_setup_teardown(the_next_one_cools_though_another_abandoned, kit_on_file,
                                        kit_done),
        ON_BOTH(a_renewal_without_a_ttl_keeps_its_own),
        ON_BOTH(a_ttl_below_the_stores_minimum_is_named),
        ON_BOTH(a_wrong_call_is_told_what_is_wrong),
        ON_BOTH(reports_are_optional_and_handles_outlive_the_client),
        cmocka_unit_test_setup_teardown(a_holder_elsewhere_is_shown_with_times, kit_on_file,
                                        kit_done),
        cmocka_unit_test(a_store_that_cannot_be_is_unavailable),
        cmocka_unit_test(names_are_told),
    };
#undef ON_BOTH
    return cmocka_run_group_tests_name("lib_lock", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants that are left to their TTL without blocking, request ids that several keys share, request
 * ids of claims, and the reports of calls by token. Everything that a daemon needs, which keeps no
 * handle of its clients' grants.
 */
#include "lib_kit.h"

#include <poll.h>
#include <string.h>

enum { TTL_MS = 20000, LONGER_MS = 40000, KEYS = 3 };

/* A started call, and what its callback saw. */
struct granted {
    struct lh_request *request;
    struct lh_report report;
    bool had_lease;
    int64_t ttl_ms;
    uint64_t tokens[KEYS];
    char keys[KEYS][8];
    unsigned done;
};
#define GRANTED_INIT             \
    {                            \
        .report = LH_REPORT_INIT \
    }

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct granted *granted = user;
    granted->report = *report;
    granted->had_lease = lease != NULL;
    granted->ttl_ms = lh_ttl_ms(lease);
    for (size_t i = 0; i < KEYS && lh_key_at(lease, i) != NULL; i++) {
        granted->tokens[i] = lh_token_at(lease, i);
        (void)strncpy(granted->keys[i], lh_key_at(lease, i), sizeof granted->keys[i] - 1);
    }
    lh_request_free(granted->request);
    granted->request = NULL;
    granted->done++;
}

static struct lh_client *open_own(void)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    open.own_loop = true;
    return kit_open(&open);
}

static void turn_until(struct lh_client *client, const struct granted *granted, unsigned count)
{
    struct pollfd wait = {.fd = lh_fd(client), .events = POLLIN};
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (granted->done < count && kit_now_ms() < until_ms) {
        (void)poll(&wait, 1, /* timeout= */ 20);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(granted->done, count);
}

static struct lh_acquire_options detached(const char *request_id)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.unbound = options.detach = true;
    options.request_id = request_id;
    return options;
}

/* Acquires all keys without a handle; the tokens are in `granted`. */
static void acquire_all(struct lh_client *client, const char *const *keys, size_t count,
                        const char *request_id, struct granted *granted)
{
    struct lh_acquire_options options = detached(request_id);
    unsigned before = granted->done;
    granted->request = lh_acquire_all_start(client, keys, count, &options, on_done, granted, NULL);
    assert_non_null(granted->request);
    turn_until(client, granted, before + 1);
}

static void a_detached_acquisition_is_left_to_its_ttl(void **state)
{
    static const char *const keys[] = {"b", "a"};
    struct lh_client *client = open_own();
    struct granted granted = GRANTED_INIT;
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    acquire_all(client, keys, 2, NULL, &granted);
    assert_int_equal(granted.report.outcome, LH_OK);
    assert_true(granted.had_lease);
    assert_int_equal(granted.ttl_ms, TTL_MS);
    assert_string_equal(granted.keys[0], "a");
    assert_string_equal(granted.keys[1], "b");
    assert_true(granted.tokens[0] != 0 && granted.tokens[1] != 0);
    assert_true(granted.report.token == granted.tokens[0]);
    assert_int_equal(kit_state(client, "a"), LH_HELD);
    ASSERT_OUTCOME(lh_release_token(client, "a", granted.tokens[0], 0, &report), LH_OK, &report);
    lh_close(&client);
}

static void a_closed_client_leaves_detached_grants(void **state)
{
    static const char *const key[] = {"k"};
    struct granted granted = GRANTED_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = open_own();
    (void)state;
    acquire_all(client, key, 1, NULL, &granted);
    lh_close(&client);
    client = open_own();
    ASSERT_OUTCOME(lh_renew(client, "k", granted.tokens[0], 0, &report), LH_OK, &report);
    lh_close(&client);
}

static void a_blocking_call_gets_the_token_alone(void **state)
{
    struct lh_acquire_options options = detached(NULL);
    struct lh_client *client = kit_open(NULL);
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    (void)state;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_OK, &report);
    assert_null(lease);
    assert_true(report.token != 0);
    uint64_t token = report.token;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_BUSY, &report);
    assert_true(report.token == token);
    ASSERT_OUTCOME(lh_release_token(client, "k", token, 0, &report), LH_OK, &report);
    lh_close(&client);
}

static void only_unbound_leases_are_detached(void **state)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    struct granted granted = GRANTED_INIT;
    (void)state;
    options.detach = true;
    ASSERT_OUTCOME(lh_acquire(client, "k", &options, &lease, &report), LH_USAGE, &report);
    assert_null(lh_acquire_start(client, "k", &options, on_done, &granted, &report));
    assert_int_equal(report.outcome, LH_USAGE);
    assert_int_equal(granted.done, 0);
    lh_close(&client);
}

/* A waiter that is granted the key of a released grant is detached, too. */
static void a_waiter_is_detached_when_its_turn_comes(void **state)
{
    static const char *const key[] = {"k"};
    struct granted first = GRANTED_INIT, second = GRANTED_INIT, end = GRANTED_INIT;
    struct lh_acquire_options options = detached(NULL);
    struct lh_client *client = open_own();
    (void)state;
    acquire_all(client, key, 1, NULL, &first);
    options.wait_ms = LH_WAIT_FOREVER;
    second.request = lh_acquire_start(client, "k", &options, on_done, &second, NULL);
    for (int i = 0; i < 20; i++) {
        kit_sleep_ms(1);
        assert_int_equal(lh_step(client), LH_OK);
    }
    assert_int_equal(second.done, 0);
    assert_int_equal(lh_release_token_start(client, "k", first.tokens[0], 0, on_done, &end, NULL),
                     LH_OK);
    turn_until(client, &second, 1);
    assert_int_equal(second.report.outcome, LH_OK);
    assert_true(second.tokens[0] > first.tokens[0]);
    lh_close(&client);
}

/* ---- request ids ---- */

static void a_repeated_call_gets_the_same_grants(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct granted first = GRANTED_INIT, again = GRANTED_INIT, other = GRANTED_INIT;
    struct lh_client *client = open_own();
    (void)state;
    acquire_all(client, keys, KEYS, "r1", &first);
    acquire_all(client, keys, KEYS, "r1", &again);
    assert_int_equal(again.report.outcome, LH_OK);
    assert_memory_equal(again.tokens, first.tokens, sizeof first.tokens);
    acquire_all(client, keys, KEYS, "r2", &other);
    assert_int_equal(other.report.outcome, LH_BUSY);
    acquire_all(client, keys, KEYS, "r1", &again); /* the refused call has released nothing */
    assert_memory_equal(again.tokens, first.tokens, sizeof first.tokens);
    lh_close(&client);
}

/* An attempt that was granted some keys and was then lost: a repeat continues with these. */
static void a_repeated_call_finds_partial_grants(void **state)
{
    static const char *const some[] = {"a", "b"}, *const all[] = {"a", "b", "c"};
    struct granted lost = GRANTED_INIT, again = GRANTED_INIT;
    struct lh_client *client = open_own();
    (void)state;
    acquire_all(client, some, 2, "r1", &lost);
    acquire_all(client, all, KEYS, "r1", &again);
    assert_int_equal(again.report.outcome, LH_OK);
    assert_true(again.tokens[0] == lost.tokens[0] && again.tokens[1] == lost.tokens[1]);
    assert_true(again.tokens[2] != 0);
    lh_close(&client);
}

/* All or nothing: a repeat that is refused a key releases the grants of the earlier attempt. */
static void a_refused_repeat_leaves_nothing(void **state)
{
    static const char *const some[] = {"a", "b"}, *const all[] = {"a", "b", "c"},
                             *const c[] = {"c"};
    struct granted lost = GRANTED_INIT, again = GRANTED_INIT, other = GRANTED_INIT;
    struct lh_client *client = open_own();
    (void)state;
    acquire_all(client, some, 2, "r1", &lost);
    acquire_all(client, c, 1, "r2", &other);
    acquire_all(client, all, KEYS, "r1", &again);
    assert_int_equal(again.report.outcome, LH_BUSY);
    assert_string_equal(again.report.key, "c");
    assert_int_equal(kit_state(client, "a"), LH_FREE);
    assert_int_equal(kit_state(client, "b"), LH_FREE);
    assert_int_equal(kit_state(client, "c"), LH_HELD);
    lh_close(&client);
}

/* The same at another client of the store. */
static void another_client_can_repeat_the_call(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct granted first = GRANTED_INIT, again = GRANTED_INIT;
    struct lh_client *one = open_own(), *two = open_own();
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    acquire_all(one, keys, KEYS, "r1", &first);
    acquire_all(two, keys, KEYS, "r1", &again);
    assert_int_equal(again.report.outcome, LH_OK);
    assert_memory_equal(again.tokens, first.tokens, sizeof first.tokens);
    ASSERT_OUTCOME(lh_release_token(two, "b", first.tokens[1], 0, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_release_token(one, "b", first.tokens[1], 0, &report), LH_STALE, &report);
    lh_close(&one);
    lh_close(&two);
}

static void a_repeated_claim_gets_the_same_token(void **state)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_once first = LH_ONCE_INIT, again = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    (void)state;
    options.holder = "worker 7";
    options.request_id = "r1";
    ASSERT_OUTCOME(lh_once_begin(client, "id", &options, &first, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_once_begin(client, "id", &options, &again, &report), LH_OK, &report);
    assert_true(first.token != 0 && first.token == again.token);
    options.request_id = "r2";
    ASSERT_OUTCOME(lh_once_begin(client, "id", &options, &again, &report), LH_BUSY, &report);
    assert_string_equal(report.holder, "worker 7");
    options.request_id = "";
    ASSERT_OUTCOME(lh_once_begin(client, "id", &options, &again, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_once_finish(client, "id", first.token, NULL, &report), LH_OK, &report);
    lh_close(&client);
}

/* ---- reports ---- */

static void reports_by_token_are_complete(void **state)
{
    static const char *const key[] = {"k"};
    struct granted granted = GRANTED_INIT, end = GRANTED_INIT;
    struct lh_client *client = open_own();
    const struct lh_report *report = &end.report;
    (void)state;
    acquire_all(client, key, 1, NULL, &granted);
    uint64_t token = granted.tokens[0];
    assert_int_equal(lh_renew_start(client, "k", token, LONGER_MS, on_done, &end, NULL), LH_OK);
    turn_until(client, &end, 1);
    assert_int_equal(report->outcome, LH_OK);
    assert_true(report->token == token && report->since_ms >= 0);
    assert_true(report->ends_in_ms > TTL_MS && report->ends_in_ms <= LONGER_MS);
    assert_string_not_equal(report->holder, "");
    assert_string_equal(report->key, "k");
    assert_int_equal(report->state, LH_HELD);
    assert_int_equal(lh_release_token_start(client, "k", token, 60000, on_done, &end, NULL), LH_OK);
    turn_until(client, &end, 2);
    assert_int_equal(report->outcome, LH_OK);
    assert_int_equal(report->effect, LH_EFFECT_RELEASED);
    assert_int_equal(report->state, LH_COOLING_DOWN);
    assert_true(report->token == token && report->ends_in_ms > 50000);
    assert_string_equal(report->key, "k");
    assert_int_equal(lh_release_token_start(client, "k", token, 0, on_done, &end, NULL), LH_OK);
    turn_until(client, &end, 3);
    assert_int_equal(report->outcome, LH_STALE);
    assert_string_equal(report->key, "k");
    assert_int_equal(lh_renew_start(client, "k", token, 0, on_done, &end, NULL), LH_OK);
    turn_until(client, &end, 4);
    assert_int_equal(report->outcome, LH_STALE);
    lh_close(&client);
}

int main(void)
{
#define ON_BOTH(test) ON_MEMORY(test), ON_FILE(test)
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_detached_acquisition_is_left_to_its_ttl),
        ON_FILE(a_closed_client_leaves_detached_grants),
        ON_BOTH(a_blocking_call_gets_the_token_alone),
        ON_BOTH(only_unbound_leases_are_detached),
        ON_BOTH(a_waiter_is_detached_when_its_turn_comes),
        ON_BOTH(a_repeated_call_gets_the_same_grants),
        ON_BOTH(a_repeated_call_finds_partial_grants),
        ON_BOTH(a_refused_repeat_leaves_nothing),
        ON_FILE(another_client_can_repeat_the_call),
        ON_BOTH(a_repeated_claim_gets_the_same_token),
        ON_BOTH(reports_by_token_are_complete),
    };
    return cmocka_run_group_tests_name("lib_detached", tests, NULL, NULL);
}

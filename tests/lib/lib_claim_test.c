/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims with a handle, and the calls about ids and watermarks that do not block: through the
 * public header, on memory and on a file.
 */
#include "lib_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A started call and its result. */
struct pending {
    struct lh_lease *lease;
    struct lh_report report;
    atomic_int done;
};
#define PENDING_INIT             \
    {                            \
        .report = LH_REPORT_INIT \
    }

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pending *pending = user;
    pending->lease = lease;
    pending->report = *report;
    atomic_fetch_add(&pending->done, 1);
}

static void await(struct pending *pending, enum lh_outcome expected)
{
    for (int i = 0; i < 20000 && atomic_load(&pending->done) == 0; i++)
        kit_sleep_ms(1);
    assert_int_equal(atomic_exchange(&pending->done, 0), 1);
    if (pending->report.outcome != expected)
        print_message("%s\n", pending->report.text);
    assert_string_equal(lh_outcome_name(pending->report.outcome), lh_outcome_name(expected));
}

static struct lh_lease *claim(struct lh_client *client, const char *id,
                              const struct lh_once_options *options)
{
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_once_claim(client, id, options, &lease, NULL, &report), LH_OK, &report);
    assert_true(lh_held(lease));
    return lease;
}

static void a_claim_renews_itself_until_it_is_done(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    options.ttl_ms = 900;
    struct lh_lease *lease = claim(client, "a", &options);
    assert_string_equal(lh_key_at(lease, 0), "once:a");
    kit_sleep_ms(2000);
    assert_true(lh_held(lease));
    assert_int_equal(lh_once_begin(client, "a", NULL, &once, NULL), LH_BUSY);
    assert_int_equal(lh_once_status(client, "a", &once, &report), LH_BUSY);
    done.status = 3;
    done.result = "created #17";
    ASSERT_OUTCOME(lh_finish(&lease, &done, &report), LH_OK, &report);
    assert_null(lease);
    ASSERT_OUTCOME(lh_once_claim(client, "a", NULL, &lease, &once, &report), LH_DONE, &report);
    assert_null(lease);
    assert_int_equal(once.status, 3);
    assert_string_equal(once.result, "created #17");
    lh_close(&client);
}

static void released_or_closed_it_is_new_again(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = claim(client, "a", NULL);
    uint64_t first = lh_token(lease);
    kit_release(&lease, LH_OK);
    lease = claim(client, "a", NULL);
    assert_true(lh_token(lease) > first);
    lh_close(&client);
    assert_int_equal(lh_finish(&lease, NULL, NULL), LH_LOST);
    assert_null(lease);
    client = kit_open(NULL);
    lease = claim(client, "a", NULL);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    assert_false(lh_held(lease));
    assert_int_equal(report->outcome, LH_LOST);
    atomic_fetch_add((atomic_int *)user, 1);
}

static void a_lost_claim_is_told_and_not_remembered(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    atomic_int losses = 0;
    options.ttl_ms = 900;
    options.on_lost = on_lost;
    options.user = &losses;
    struct lh_lease *lease = claim(client, "a", &options);
    assert_int_equal(lh_break(client, "once:a", "stuck", /* at_once= */ true, NULL), LH_OK);
    for (int i = 0; i < 20000 && atomic_load(&losses) == 0; i++)
        kit_sleep_ms(1);
    assert_int_equal(atomic_load(&losses), 1);
    ASSERT_OUTCOME(lh_finish(&lease, NULL, &report), LH_LOST, &report);
    assert_null(lease);
    assert_int_equal(lh_seen(client, "a", NULL), LH_OK);
    lh_close(&client);
}

static void a_finish_after_a_break_is_lost(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = claim(client, "a", NULL);
    assert_int_equal(lh_break(client, "once:a", "stuck", /* at_once= */ true, NULL), LH_OK);
    struct lh_lease *other = claim(client, "b", NULL);
    ASSERT_OUTCOME(lh_finish(&lease, NULL, &report), LH_LOST, &report);
    assert_int_equal(lh_seen(client, "a", NULL), LH_OK);
    assert_int_equal(lh_finish(&other, NULL, NULL), LH_OK);
    assert_int_equal(lh_seen(client, "b", NULL), LH_DONE);
    lh_close(&client);
}

/* The next waiter in the same process gets its own claim, not a hand-off. */
static void the_next_of_the_process_can_finish_it(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_once_options patient = LH_ONCE_OPTIONS_INIT;
    struct pending second = PENDING_INIT, third = PENDING_INIT;
    struct lh_once once = LH_ONCE_INIT;
    patient.wait_ms = 20000;
    struct lh_lease *lease = claim(client, "a", NULL);
    kit_started(lh_once_claim_start(client, "a", &patient, NULL, on_done, &second, NULL));
    kit_sleep_ms(20);
    kit_release(&lease, LH_OK);
    await(&second, LH_OK);
    kit_started(lh_once_claim_start(client, "a", &patient, &once, on_done, &third, NULL));
    kit_sleep_ms(20);
    struct lh_completion done = LH_COMPLETION_INIT;
    done.result = "by the second";
    assert_int_equal(lh_finish(&second.lease, &done, NULL), LH_OK);
    await(&third, LH_DONE);
    assert_null(third.lease);
    assert_string_equal(once.result, "by the second");
    lh_close(&client);
}

static void only_a_claim_is_finished(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL), *none = NULL;
    struct lh_completion done = LH_COMPLETION_INIT;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    assert_int_equal(lh_finish(&lease, NULL, NULL), LH_USAGE);
    assert_true(lh_held(lease));
    kit_release(&lease, LH_OK);
    assert_int_equal(lh_finish(&lease, NULL, NULL), LH_USAGE);
    lease = claim(client, "a", NULL);
    done.status = 256;
    assert_int_equal(lh_finish(&lease, &done, NULL), LH_USAGE);
    done.status = 0;
    done.result = "a\nb";
    assert_int_equal(lh_finish(&lease, &done, NULL), LH_USAGE);
    assert_int_equal(lh_finish_start(&lease, NULL, NULL, NULL, NULL), LH_USAGE);
    assert_int_equal(lh_detach(&lease, NULL), LH_USAGE);
    assert_true(lh_held(lease));
    assert_int_equal(lh_once_claim(client, "a", NULL, NULL, NULL, NULL), LH_USAGE);
    assert_int_equal(lh_once_claim(client, "", NULL, &none, NULL, NULL), LH_USAGE);
    options.payload = "";
    assert_int_equal(lh_once_claim(client, "b", &options, &none, NULL, NULL), LH_USAGE);
    options.payload = "9f";
    options.size = 1;
    assert_int_equal(lh_once_claim(client, "b", &options, &none, NULL, NULL), LH_USAGE);
    assert_int_equal(lh_finish(&lease, NULL, NULL), LH_OK);
    lh_close(&client);
}

static void every_call_about_ids_can_be_started(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct pending pending = PENDING_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    char result[] = "well done", id[] = "a"; /* strings are copied */
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    char payload[] = "9f";
    options.payload = payload;
    kit_started(lh_once_begin_start(client, id, &options, &once, on_done, &pending, NULL));
    memset(payload, '0', 2);
    memset(id, 'x', 1);
    await(&pending, LH_OK);
    assert_null(pending.lease);
    uint64_t token = once.token;
    assert_true(token > 0);
    options.payload = "1c";
    kit_started(lh_once_begin_start(client, "a", &options, &once, on_done, &pending, NULL));
    await(&pending, LH_MISMATCH);
    assert_int_equal(lh_once_renew_start(client, "a", token, 0, on_done, &pending, NULL), LH_OK);
    await(&pending, LH_OK);
    assert_int_equal(lh_once_status_start(client, "a", &once, on_done, &pending, NULL), LH_OK);
    await(&pending, LH_BUSY);
    assert_true(pending.report.holder[0] != '\0');
    done.result = result;
    done.watermark = result;
    done.until = result;
    assert_int_equal(lh_once_finish_start(client, "a", token, &done, on_done, &pending, NULL),
                     LH_OK);
    memset(result, 'x', sizeof result - 1);
    await(&pending, LH_OK);
    assert_int_equal(lh_once_status_start(client, "a", &once, on_done, &pending, NULL), LH_OK);
    await(&pending, LH_DONE);
    assert_string_equal(once.result, "well done");
    assert_int_equal(lh_seen_start(client, "a", on_done, &pending, NULL), LH_OK);
    await(&pending, LH_DONE);
    assert_int_equal(lh_mark_start(client, "a", NULL, on_done, &pending, NULL), LH_OK);
    await(&pending, LH_DONE);
    assert_int_equal(lh_mark_start(client, "b", NULL, on_done, &pending, NULL), LH_OK);
    await(&pending, LH_OK);
    assert_int_equal(lh_once_begin(client, "c", NULL, &once, NULL), LH_OK);
    assert_int_equal(lh_once_abandon_start(client, "c", once.token, on_done, &pending, NULL),
                     LH_OK);
    await(&pending, LH_OK);
    kit_started(lh_once_claim_start(client, "c", NULL, NULL, on_done, &pending, NULL));
    await(&pending, LH_OK);
    assert_true(lh_held(pending.lease));
    assert_int_equal(lh_finish_start(&pending.lease, NULL, on_done, &pending, NULL), LH_OK);
    assert_null(pending.lease);
    await(&pending, LH_OK);
    assert_int_equal(lh_seen(client, "c", NULL), LH_DONE);
    lh_close(&client);
}

static void every_call_about_watermarks_can_be_started(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct pending pending = PENDING_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    char from[] = "9", to[] = "10";
    assert_int_equal(lh_watermark_set_start(client, "w", "9", "begin", on_done, &pending, NULL),
                     LH_OK);
    await(&pending, LH_OK);
    assert_int_equal(lh_watermark_advance_start(client, "w", from, to, on_done, &pending, NULL),
                     LH_OK);
    memset(from, 'x', 1);
    memset(to, 'x', 2);
    await(&pending, LH_OK);
    assert_int_equal(lh_watermark_advance_start(client, "w", "9", "11", on_done, &pending, NULL),
                     LH_OK);
    await(&pending, LH_STALE);
    assert_int_equal(lh_watermark_begin_start(client, "w", 1000, &mark, on_done, &pending, NULL),
                     LH_OK);
    await(&pending, LH_OK);
    assert_string_equal(mark.value, "10");
    lh_close(&client);
}

static void a_wrong_start_calls_nobody(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    struct pending pending = PENDING_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    assert_null(lh_once_begin_start(client, "a", NULL, NULL, on_done, &pending, NULL));
    assert_null(lh_once_begin_start(client, "", NULL, &once, on_done, &pending, NULL));
    assert_null(lh_once_claim_start(client, "a", NULL, NULL, NULL, &pending, NULL));
    assert_int_equal(lh_once_renew_start(client, "a", 0, 0, on_done, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_once_finish_start(client, "a", 5, NULL, NULL, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_once_abandon_start(client, "a", 0, on_done, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_seen_start(client, "", on_done, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_mark_start(client, "a", NULL, NULL, &pending, NULL), LH_USAGE);
    assert_int_equal(lh_watermark_begin_start(client, "w", 0, &mark, on_done, &pending, NULL),
                     LH_USAGE);
    assert_int_equal(lh_watermark_set_start(client, "w", "", "", on_done, &pending, NULL),
                     LH_USAGE);
    kit_sleep_ms(20);
    assert_int_equal(atomic_load(&pending.done), 0);
    assert_int_equal(lh_seen(client, "a", NULL), LH_OK);
    lh_close(&client);
}

static void a_close_waits_for_a_started_finish(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL), *other = NULL;
    struct pending pending = PENDING_INIT;
    struct lh_lease *lease = claim(client, "a", NULL);
    assert_int_equal(lh_finish_start(&lease, NULL, on_done, &pending, NULL), LH_OK);
    lh_close(&client);
    await(&pending, LH_OK);
    other = kit_open(NULL);
    if (strcmp(kit_url(), "memory:") != 0)
        assert_int_equal(lh_seen(other, "a", NULL), LH_DONE);
    lh_close(&other);
}

/* The claim ends with its process, long before the lease. */
static void a_killed_claimers_id_is_new_at_once(void **state)
{
    (void)state;
    int pipes[2];
    uint64_t token = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lh_client *own = NULL;
        struct lh_lease *lease = NULL;
        if (lh_open(kit_url(), NULL, &own, NULL) == LH_OK &&
            lh_once_claim(own, "a", NULL, &lease, NULL, NULL) == LH_OK)
            token = lh_token(lease);
        (void)!write(pipes[1], &token, sizeof token);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(pipes[0], &token, sizeof token), sizeof token);
    assert_true(token > 0);
    struct lh_client *client = kit_open(NULL);
    struct lh_once once = LH_ONCE_INIT;
    assert_int_equal(lh_once_begin(client, "a", NULL, &once, NULL), LH_BUSY);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    struct lh_lease *lease = claim(client, "a", NULL);
    assert_true(lh_token(lease) > token);
    assert_int_equal(lh_once_finish(client, "a", token, NULL, NULL), LH_STALE);
    assert_int_equal(lh_finish(&lease, NULL, NULL), LH_OK);
    lh_close(&client);
}

#define ON_BOTH(name) cmocka_unit_test_setup_teardown(name, kit_on_memory, kit_done), ON_FILE(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_claim_renews_itself_until_it_is_done),
        ON_FILE(released_or_closed_it_is_new_again),
        ON_BOTH(a_lost_claim_is_told_and_not_remembered),
        ON_BOTH(a_finish_after_a_break_is_lost),
        ON_BOTH(the_next_of_the_process_can_finish_it),
        ON_BOTH(only_a_claim_is_finished),
        ON_BOTH(every_call_about_ids_can_be_started),
        ON_BOTH(every_call_about_watermarks_can_be_started),
        ON_BOTH(a_wrong_start_calls_nobody),
        ON_BOTH(a_close_waits_for_a_started_finish),
        ON_FILE(a_killed_claimers_id_is_new_at_once),
    };
    return cmocka_run_group_tests_name("lib_claim", tests, NULL, NULL);
}

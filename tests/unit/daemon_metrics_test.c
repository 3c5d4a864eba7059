/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a daemon: what each command moves, and that the text is complete and bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"
#include "process/host.h"
#include "process/usage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct daemon *served;
static struct peer *ann, *bob;
static char scraped[DAEMON_METRICS_SIZE];

static int open_all(void **state)
{
    (void)state;
    served = kit_daemon_new();
    ann = peer_new(served);
    bob = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    peer_free(ann);
    peer_free(bob);
    daemon_free(served);
    return 0;
}

static void scrape(void)
{
    struct text text;
    text_init(&text, scraped, sizeof scraped);
    assert_true(daemon_metrics_write(served, &text));
    assert_int_equal(text.length, strlen(scraped));
}

/* Of a series without the prefix "leasehold_", in a new text. */
static double value(const char *series)
{
    char line[256];
    scrape();
    (void)snprintf(line, sizeof line, "\nleasehold_%s ", series);
    const char *at = strstr(scraped, line);
    if (at == NULL)
        fail_msg("no %s", series);
    return at != NULL ? strtod(at + strlen(line), NULL) : -1;
}

static void expect_metric(const char *series, double wanted)
{
    double found = value(series);
    if (fabs(found - wanted) > 1e-9)
        fail_msg("%s is %f, not %f", series, found, wanted);
}

static void until_value(const char *series, double wanted)
{
    int64_t until_ms = host_boot_ms() + 20000;
    while (fabs(value(series) - wanted) > 1e-9) {
        if (host_boot_ms() >= until_ms)
            fail_msg("%s does not become %f", series, wanted);
        kit_daemon_turn(served, 10);
    }
}

static void turn_for(int64_t ms)
{
    for (int64_t end_ms = host_boot_ms() + ms; host_boot_ms() < end_ms;)
        kit_daemon_turn(served, 1);
}

static void expect(struct peer *peer, const char *command, const char *part)
{
    const char *reply = peer_ask(peer, command);
    if (strstr(reply, part) == NULL)
        fail_msg("%s\n  says %.600s\n  not  %s", command, reply, part);
}

/* Acquires, and formats "VERB KEY TOKEN" with what follows. */
static void acquire(struct peer *peer, const char *command, char token[32])
{
    const char *reply = peer_ask(peer, command);
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    (void)snprintf(token, 32, "%s", reply_value(reply, "token"));
}

static void expect_by_token(struct peer *peer, const char *verb, const char *key, const char *token,
                            const char *part)
{
    char command[128];
    (void)snprintf(command, sizeof command, "%s %s %s", verb, key, token);
    expect(peer, command, part);
}

/* ---- the library's names, through the daemon ---- */

static void a_pair_moves_attempts_successes_releases_and_holds(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 60000", token);
    expect_metric("lock_acquisition_attempts_total", 1);
    expect_metric("lock_acquisition_successes_total", 1);
    expect_metric("lock_acquisition_duration_seconds_count", 1);
    expect_metric("lock_hold_duration_seconds_count", 0);
    expect_metric("locks_held", 1);
    turn_for(30);
    expect_by_token(ann, "LOCK.RELEASE", "k", token, "outcome ok");
    expect_metric("locks_held", 0);
    expect_metric("lock_releases_total", 1);
    expect_metric("lock_hold_duration_seconds_count", 1);
    expect_metric("lock_hold_duration_seconds_bucket{le=\"0.025\"}", 0);
    assert_true(value("lock_hold_duration_seconds_sum") >= 0.03);
    expect_metric("lock_lost_total", 0);
    expect_by_token(ann, "LOCK.RELEASE", "k", token, "outcome stale"); /* a repeat is no loss */
    expect_metric("lock_lost_total", 0);
    expect_metric("lock_releases_total", 1);
}

static void refusals_move_their_reason(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 60000", token);
    expect(bob, "LOCK.ACQUIRE k bob 60000", "outcome busy");
    expect_metric("lock_acquisition_failures_total{reason=\"contention\"}", 1);
    expect(bob, "LOCK.ACQUIRE k bob 60000 WAIT 20", "outcome busy");
    expect_metric("lock_acquisition_failures_total{reason=\"timeout\"}", 1);
    expect_metric("lock_wait_duration_seconds_count", 1);
    expect(bob, "LOCK.ACQUIRE k bob 60000 LIMIT 3", "outcome mismatch");
    expect_metric("lock_acquisition_failures_total{reason=\"mismatch\"}", 1);
    char release[128];
    (void)snprintf(release, sizeof release, "LOCK.RELEASE k %s COOLDOWN 60000", token);
    expect(ann, release, "outcome ok");
    expect(bob, "LOCK.ACQUIRE k bob 60000", "outcome cooling");
    expect_metric("lock_acquisition_failures_total{reason=\"cooling\"}", 1);
    expect_metric("lock_acquisition_attempts_total", 5);
    expect_metric("lock_acquisition_successes_total", 1);
}

static void claims_of_ids_are_held_and_end(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "ONCE.BEGIN mail ann 60000", token);
    expect_metric("locks_held", 1);
    expect(bob, "ONCE.BEGIN mail bob 60000", "outcome busy");
    expect_by_token(ann, "ONCE.RENEW", "mail", token, "outcome ok");
    expect_by_token(ann, "ONCE.FINISH", "mail", token, "outcome ok");
    expect_metric("locks_held", 0);
    expect_metric("lock_hold_duration_seconds_count", 1);
    expect(bob, "ONCE.BEGIN mail bob 60000", "outcome done");
    expect_metric("once_claims_total{outcome=\"new\"}", 1);
    expect_metric("once_claims_total{outcome=\"running\"}", 1);
    expect_metric("once_claims_total{outcome=\"done\"}", 1);
    expect_metric("lock_acquisition_failures_total{reason=\"duplicate\"}", 1);
    acquire(ann, "ONCE.BEGIN other ann 60000", token);
    expect_by_token(ann, "ONCE.ABANDON", "other", token, "outcome ok");
    expect_metric("locks_held", 0);
    expect_metric("lock_hold_duration_seconds_count", 2);
}

static void waiters_and_the_age_of_the_oldest(void **state)
{
    char token[32];
    (void)state;
    expect_metric("queue_oldest_wait_seconds", 0);
    acquire(ann, "LOCK.ACQUIRE k ann 60000", token);
    peer_send(bob, "LOCK.ACQUIRE k bob 60000 WAIT -1");
    until_value("lock_waiters", 1);
    turn_for(20);
    assert_true(value("queue_oldest_wait_seconds") >= 0.02);
    expect_by_token(ann, "LOCK.RELEASE", "k", token, "outcome ok");
    assert_non_null(strstr(peer_message(bob), "outcome ok"));
    expect_metric("lock_waiters", 0);
    expect_metric("queue_oldest_wait_seconds", 0);
    expect_metric("lock_wait_duration_seconds_count", 1);
}

/* ---- held and lost ---- */

static void a_grant_is_held_until_its_ttl_is_over(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 1000", token);
    expect_metric("locks_held", 1);
    until_value("locks_held", 0);
    expect_metric("lock_lost_total", 0);
    acquire(bob, "LOCK.ACQUIRE k bob 60000", token);
    expect_metric("lock_takeovers_total", 1);
    expect_metric("locks_held", 1);
}

static void a_release_after_the_ttl_is_a_loss(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 30", token);
    turn_for(60);
    expect_by_token(ann, "LOCK.RELEASE", "k", token, "outcome stale");
    expect_metric("lock_lost_total", 1);
    expect_metric("lock_hold_duration_seconds_count", 1);
    expect_by_token(ann, "LOCK.RELEASE", "k", token, "outcome stale");
    expect_metric("lock_lost_total", 1);
}

static void a_stale_renewal_is_a_loss(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 60000", token);
    expect_by_token(ann, "LOCK.RENEW", "k", token, "outcome ok");
    expect_metric("lock_lost_total", 0);
    expect(bob, "LOCK.BREAK k test NOW", "outcome ok");
    expect_by_token(ann, "LOCK.RENEW", "k", token, "outcome stale");
    expect_metric("lock_lost_total", 1);
    expect_metric("locks_held", 0);
    expect_metric("lock_hold_duration_seconds_count", 1);
    acquire(ann, "ONCE.BEGIN mail ann 60000", token);
    expect(bob, "LOCK.BREAK once:mail test NOW", "outcome ok");
    expect_by_token(ann, "ONCE.RENEW", "mail", token, "outcome stale");
    expect_metric("lock_lost_total", 2);
}

static void a_bound_grant_that_cannot_be_renewed_is_a_loss(void **state)
{
    char token[32];
    (void)state;
    acquire(ann, "LOCK.ACQUIRE k ann 3000 BIND", token);
    expect_metric("bindings", 1);
    turn_for(3300);
    expect_metric("locks_held", 1); /* it was renewed */
    expect(bob, "LOCK.BREAK k test NOW", "outcome ok");
    until_value("lock_lost_total", 1);
    expect_metric("locks_held", 0);
    expect_metric("bindings", 0);
    acquire(ann, "LOCK.ACQUIRE k ann 60000 BIND", token);
    expect_metric("locks_held", 1);
    peer_free(ann);
    until_value("lock_releases_total", 1);
    expect_metric("locks_held", 0);
    ann = peer_new(served);
}

/* A daemon that did not grant it learns of it at its first renewal. */
static void a_renewed_grant_of_another_daemon_is_held(void **state)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    report.since_ms = 5000;
    report.ends_in_ms = 1000;
    hold_renewed(served, /* id= */ 7, &report, /* ttl_ms= */ 0);
    expect_metric("locks_held", 1);
    hold_released(served, /* id= */ 7, LH_OK);
    expect_metric("locks_held", 0);
    assert_true(value("lock_hold_duration_seconds_sum") >= 5.0);
}

static void nearly(const char *series, double wanted)
{
    double found = value(series);
    if (found < wanted * 0.95 || found > wanted * 1.05)
        fail_msg("%s is %f, not about %f", series, found, wanted);
}

static void many_grants_are_counted_by_a_sample(void **state)
{
    enum { GRANTS = 200000 };
    uint64_t key = hold_key(served, "", "k");
    (void)state;
    for (uint64_t i = 0; i < HOLDS_MAX; i++)
        hold_granted(served, hold_id(key, i), 600000);
    expect_metric("locks_held", HOLDS_MAX); /* so many are exact */
    for (uint64_t i = HOLDS_MAX; i < GRANTS; i++)
        hold_granted(served, hold_id(key, i), 600000);
    assert_true(served->holds.count <= HOLDS_MAX);
    nearly("locks_held", GRANTS);
    for (uint64_t i = 0; i < GRANTS; i += 2)
        hold_released(served, hold_id(key, i), LH_OK);
    nearly("locks_held", GRANTS / 2.0);
    nearly("lock_hold_duration_seconds_count", GRANTS / 2.0);
    for (uint64_t i = 1; i < GRANTS; i += 2)
        hold_released(served, hold_id(key, i), LH_OK);
    expect_metric("locks_held", 0);
    assert_int_equal(served->holds.count, 0);
    for (uint64_t i = 0; i < 100; i++) /* the sample shrinks again, and later ones are exact */
        hold_granted(served, hold_id(key, GRANTS + i), 1);
    turn_for(2);
    for (uint64_t i = 0; i < 1000; i++)
        hold_granted(served, hold_id(key, (uint64_t)2 * GRANTS + i), 600000);
    expect_metric("locks_held", 1000);
}

/* Expired grants leave the table before held ones do. */
static void expired_grants_make_room(void **state)
{
    uint64_t key = hold_key(served, "", "k");
    (void)state;
    for (uint64_t i = 0; i < HOLDS_MAX; i++)
        hold_granted(served, hold_id(key, i), i % 4 == 0 ? 600000 : 1);
    turn_for(2);
    for (uint64_t i = 0; i < 1000; i++)
        hold_granted(served, hold_id(key, HOLDS_MAX + i), 600000);
    expect_metric("locks_held", HOLDS_MAX / 4.0 + 1000);
}

/* ---- the daemon's own ---- */

static void connections_and_commands(void **state)
{
    (void)state;
    expect_metric("connections{protocol=\"resp\"}", 2);
    expect_metric("connections_total{protocol=\"resp\"}", 2);
    expect_metric("connections_max", 100);
    expect(ann, "PING", "PONG");
    expect_metric("commands_total", 1);
    expect(ann, "LOCK.AQUIRE", "unknown");
    expect_metric("refusals_total{class=\"bad_command\"}", 1);
    expect_metric("refusals_total{class=\"draining\"}", 0);
    expect(ann, "LOCK.ACQUIRE k ann 60000 ID x", "outcome ok");
    expect_metric("request_ids", 1);
    expect(bob, "LOCK.WATCH", "subscribe");
    expect_metric("watches", 1);
    connection_end(bob->connection, CONNECTION_CUT);
    expect_metric("watches", 0);
    expect_metric("connections{protocol=\"resp\"}", 1);
    expect_metric("connections_cut_total", 1);
    expect_metric("draining", 0);
    served->draining = true;
    expect_metric("draining", 1);
}

static double process_value(const char *name)
{
    char line[128];
    scrape();
    (void)snprintf(line, sizeof line, "\nprocess_%s ", name);
    const char *at = strstr(scraped, line);
    assert_non_null(at);
    return at != NULL ? strtod(at + strlen(line), NULL) : 0;
}

static void process_metrics_are_those_of_this_process(void **state)
{
    double now = (double)host_wall_ms() / 1000, files = process_value("open_fds");
    int file = dup(0);
    (void)state;
    assert_true(files >= 4);
    assert_true(fabs(process_value("open_fds") - files - 1) < 0.5);
    (void)close(file);
    assert_true(process_value("start_time_seconds") <= now + 1);
    assert_true(process_value("start_time_seconds") > now - 600);
    assert_true(process_value("resident_memory_bytes") > 1e6);
    assert_true(process_value("virtual_memory_bytes") > process_value("resident_memory_bytes"));
    assert_true(process_value("max_fds") > files);
    double before = process_value("cpu_seconds_total");
    int64_t until_ms = host_boot_ms() + 20000;
    while (process_value("cpu_seconds_total") <= before && host_boot_ms() < until_ms)
        turn_for(10);
    assert_true(process_value("cpu_seconds_total") > before);
}

/* ---- the text ---- */

/* The names and labels of all series, without values. */
static size_t series_of(const char *text, char *out)
{
    size_t length = 0;
    for (const char *at = text; *at != '\0';) {
        size_t line = strcspn(at, "\n");
        size_t name = *at == '#' ? line : strcspn(at, " ");
        memcpy(out + length, at, name);
        length += name;
        out[length++] = '\n';
        at += line + 1;
    }
    out[length] = '\0';
    return length;
}

static void all_series_are_there_from_the_start(void **state)
{
    static char before[DAEMON_METRICS_SIZE], after[DAEMON_METRICS_SIZE];
    char token[32];
    (void)state;
    scrape();
    (void)series_of(scraped, before);
    acquire(ann, "LOCK.ACQUIRE very-secret-key a-holder 60000 ID request-id META {\"a\":\"b\"}",
            token);
    expect(bob, "LOCK.ACQUIRE very-secret-key b-holder 60000", "outcome busy");
    expect(bob, "ONCE.MARK some-id", "outcome ok");
    expect(bob, "LOCK.NONE", "unknown");
    scrape();
    (void)series_of(scraped, after);
    assert_string_equal(before, after);
    assert_null(strstr(scraped, "secret"));
    assert_null(strstr(scraped, "holder\""));
    assert_null(strstr(scraped, "request-id"));
    assert_string_equal(scraped + strlen(scraped) - 6, "# EOF\n");
    assert_ptr_equal(strstr(scraped, "# EOF"), scraped + strlen(scraped) - 6);
}

static void the_longest_prefix_and_the_largest_values_fit(void **state)
{
    char prefix[METRICS_PREFIX_MAX + 1];
    struct daemon_options options = *served->options;
    const struct daemon_options *own = served->options;
    (void)state;
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    options.metrics_prefix = prefix;
    options.connections_max = SIZE_MAX;
    served->options = &options;
    memset(&served->counters, 0xff, sizeof served->counters);
    memset(served->holds.times, 0xff, sizeof served->holds.times);
    scrape();
    served->options = own;
    assert_null(strstr(scraped, "leasehold_"));
    assert_non_null(strstr(scraped, "x_build_info{version=\""));
    assert_true(strlen(scraped) < sizeof scraped - 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pair_moves_attempts_successes_releases_and_holds,
                                        open_all, close_all),
        cmocka_unit_test_setup_teardown(refusals_move_their_reason, open_all, close_all),
        cmocka_unit_test_setup_teardown(claims_of_ids_are_held_and_end, open_all, close_all),
        cmocka_unit_test_setup_teardown(waiters_and_the_age_of_the_oldest, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_grant_is_held_until_its_ttl_is_over, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_release_after_the_ttl_is_a_loss, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_stale_renewal_is_a_loss, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_bound_grant_that_cannot_be_renewed_is_a_loss, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_renewed_grant_of_another_daemon_is_held, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(many_grants_are_counted_by_a_sample, open_all, close_all),
        cmocka_unit_test_setup_teardown(expired_grants_make_room, open_all, close_all),
        cmocka_unit_test_setup_teardown(connections_and_commands, open_all, close_all),
        cmocka_unit_test_setup_teardown(process_metrics_are_those_of_this_process, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(all_series_are_there_from_the_start, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_longest_prefix_and_the_largest_values_fit, open_all,
                                        close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold_admin.h through the shared library: names, findings, collections, fencing, the
 * processes of a holder.
 */
#include "lib_kit.h"

#include "leasehold_admin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void schemes_end_with_null(void **state)
{
    (void)state;
    size_t count = 0;
    bool file = false;
    while (lh_store_scheme(count) != NULL)
        file |= strcmp(lh_store_scheme(count++), "file") == 0;
    assert_true(file);
    assert_null(lh_store_scheme(SIZE_MAX));
}

static void names_keys(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    char name[LH_NAME_SIZE] = "untouched";
    ASSERT_OUTCOME(lh_key_name("memory:", "a/b", name, sizeof name, &report), LH_OK, &report);
    assert_string_equal(name, "a/b");
    ASSERT_OUTCOME(lh_key_name("memory:", "a/b", name, 3, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_key_name("nothing:", "a", name, sizeof name, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_key_name("etcd:", "a", name, sizeof name, &report), LH_UNAVAILABLE, &report);
    ASSERT_OUTCOME(lh_key_name("memory:", "", name, sizeof name, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_key_name("memory:", "a\n", name, sizeof name, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_key_name(NULL, "a", name, sizeof name, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_key_name("memory:", "a", NULL, 0, &report), LH_USAGE, &report);
    assert_string_equal(name, "a/b");
    assert_int_equal(lh_key_name("memory:", "a", name, sizeof name, NULL), LH_OK);
}

struct findings {
    unsigned levels[LH_FINDING_PROBLEM + 1];
    char words[256]; /* their subjects, each followed by a space */
};

static void count_finding(void *user, const struct lh_finding *finding)
{
    struct findings *findings = user;
    size_t length = strlen(findings->words);
    findings->levels[finding->level]++;
    assert_true(strlen(finding->text) > 0);
    (void)snprintf(findings->words + length, sizeof findings->words - length, "%s ",
                   finding->about);
}

static void diagnoses_a_file_store(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct findings findings = {.words = ""};
    struct lh_client *client = kit_open(NULL); /* creates the log */
    lh_close(&client);
    ASSERT_OUTCOME(lh_diagnose(kit_url(), NULL, count_finding, &findings, &report), LH_OK, &report);
    assert_string_equal(findings.words, "clock file-system room rights log ");
    assert_int_equal(findings.levels[LH_FINDING_PROBLEM], 0);
    findings = (struct findings){.words = ""};
    assert_int_equal(lh_diagnose("file:/nowhere/at/all", NULL, count_finding, &findings, NULL),
                     LH_OK);
    assert_string_equal(findings.words, "clock folder ");
    assert_int_equal(findings.levels[LH_FINDING_PROBLEM], 1);
}

static void diagnoses_what_has_no_driver(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct findings findings = {.words = ""};
    struct lh_diagnose_options options = LH_DIAGNOSE_OPTIONS_INIT;
    ASSERT_OUTCOME(lh_diagnose("nothing:", &options, count_finding, &findings, &report), LH_USAGE,
                   &report);
    assert_string_equal(findings.words, "clock store ");
    options.events_only = true;
    findings = (struct findings){.words = ""};
    ASSERT_OUTCOME(lh_diagnose("memory:", &options, count_finding, &findings, &report), LH_OK,
                   &report);
    assert_string_equal(findings.words, "");
    ASSERT_OUTCOME(lh_diagnose("memory:", NULL, NULL, NULL, &report), LH_USAGE, &report);
    options.size = 1;
    ASSERT_OUTCOME(lh_diagnose("memory:", &options, count_finding, &findings, &report), LH_USAGE,
                   &report);
}

static void collects_nothing_of_a_file(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_collected collected = {
        .size = sizeof collected, .left = 1, .removed = 1, .taken = 1, .partial = true};
    struct lh_collect_options options = LH_COLLECT_OPTIONS_INIT;
    ASSERT_OUTCOME(lh_collect(kit_url(), NULL, &collected, &report), LH_OK, &report);
    assert_int_equal(collected.left + collected.removed + collected.taken, 0);
    assert_false(collected.partial);
    ASSERT_OUTCOME(lh_collect(kit_url(), NULL, NULL, &report), LH_USAGE, &report);
    options.rate = UINT32_MAX;
    ASSERT_OUTCOME(lh_collect(kit_url(), &options, &collected, &report), LH_USAGE, &report);
}

static void admits_the_highest_token(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    char path[KIT_URL_SIZE + 8];
    int held = -1, second = -1;
    (void)snprintf(path, sizeof path, "%s.guard", kit_url() + strlen("file:"));
    ASSERT_OUTCOME(lh_check(path, "a", 7, 0, &held, &report), LH_OK, &report);
    assert_true(held >= 0);
    /* A stale writer is refused at once, an equal one waits. */
    ASSERT_OUTCOME(lh_check(path, "a", 6, LH_WAIT_FOREVER, &second, &report), LH_STALE, &report);
    assert_int_equal(report.token, 7);
    assert_string_equal(report.refusal, "stale_token");
    ASSERT_OUTCOME(lh_check(path, "a", 7, 0, &second, &report), LH_BUSY, &report);
    assert_int_equal(second, -1);
    /* Keys do not wait for each other, and a copy of the descriptor counts. */
    ASSERT_OUTCOME(lh_check(path, "b", 1, 0, &second, &report), LH_OK, &report);
    assert_int_equal(close(second), 0);
    int copy = dup(held);
    assert_int_equal(close(held), 0);
    ASSERT_OUTCOME(lh_check(path, "a", 8, 0, &second, &report), LH_BUSY, &report);
    assert_int_equal(close(copy), 0);
    ASSERT_OUTCOME(lh_check(path, "a", 8, 0, &second, &report), LH_OK, &report);
    assert_int_equal(close(second), 0);
}

static void refuses_a_check_that_cannot_be(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    int held = -1;
    ASSERT_OUTCOME(lh_check(NULL, "a", 1, 0, &held, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_check("/nowhere/g", NULL, 1, 0, &held, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_check("/nowhere/g", "a", 0, 0, &held, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_check("/nowhere/g", "a", 1, -2, &held, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_check("/nowhere/g", "a", 1, 0, NULL, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_check("/nowhere/g", "a", 1, 0, &held, &report), LH_UNAVAILABLE, &report);
    assert_int_equal(held, -1);
}

/* ---- processes ---- */

struct processes {
    int count, pid;
};

static bool note_processes(void *user, const struct lh_view *view)
{
    struct processes *processes = user;
    int pids[4] = {0};
    processes->count = lh_view_processes(view, 0, pids, 4);
    processes->pid = pids[0];
    assert_int_equal(lh_view_processes(view, 1, pids, 4), -1);
    return true;
}

/* This process has the session; nobody has that of a lease which outlives its process. */
static void the_processes_of_a_holder_are_known(void **state)
{
    (void)state;
    struct processes bound = {0}, unbound = {0};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_view view = LH_VIEW_INIT;
    int pid = 0;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "bound", NULL);
    options.unbound = true;
    struct lh_lease *other = kit_acquire(client, "unbound", &options);
    assert_int_equal(lh_status_details(client, "bound", note_processes, &bound, NULL), LH_OK);
    assert_int_equal(bound.count, 1);
    assert_int_equal(bound.pid, getpid());
    assert_int_equal(lh_status_details(client, "unbound", note_processes, &unbound, NULL), LH_OK);
    assert_int_equal(unbound.count, -1);
    assert_int_equal(lh_status(client, "bound", &view, NULL), LH_OK);
    assert_int_equal(lh_view_processes(&view, 0, &pid, 1), -1);
    kit_release(&lease, LH_OK);
    kit_release(&other, LH_OK);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_end_with_null),
        cmocka_unit_test(names_keys),
        cmocka_unit_test_setup_teardown(diagnoses_a_file_store, kit_on_file, kit_done),
        cmocka_unit_test(diagnoses_what_has_no_driver),
        cmocka_unit_test_setup_teardown(collects_nothing_of_a_file, kit_on_file, kit_done),
        cmocka_unit_test_setup_teardown(admits_the_highest_token, kit_on_file, kit_done),
        cmocka_unit_test(refuses_a_check_that_cannot_be),
        cmocka_unit_test_setup_teardown(the_processes_of_a_holder_are_known, kit_on_file, kit_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

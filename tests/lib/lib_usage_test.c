/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong calls through the public headers: pointers with a count, numbers out of their limits,
 * enums, missing callbacks and results. Each is LH_USAGE with a text, and changes nothing; none may
 * abort the process.
 */
#include "lib_kit.h"

#include "leasehold_github.h"
#include "leasehold_workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct lh_meta pair = {"name", "value"};
static const struct lh_meta nameless = {NULL, "value"}, valueless = {"name", NULL};
static const struct lh_meta twice[2] = {{"name", "a"}, {"name", "b"}};
static struct lh_meta many[17];

enum { SIZE = sizeof(struct lh_acquire_options), DAY_MS = 24 * 3600 * 1000 };

/* Options that lh_acquire() and similar calls refuse. */
static const struct {
    const char *what;
    struct lh_acquire_options options;
} wrong_options[] = {
    {"no size", {.size = 0}},
    {"a size that no release has", {.size = SIZE_MAX}},
    {"meta is counted and missing", {.size = SIZE, .meta_count = 1}},
    {"much meta is counted and missing", {.size = SIZE, .meta_count = SIZE_MAX}},
    {"meta without a name", {.size = SIZE, .meta = &nameless, .meta_count = 1}},
    {"meta without a value", {.size = SIZE, .meta = &valueless, .meta_count = 1}},
    {"meta with one name twice", {.size = SIZE, .meta = twice, .meta_count = 2}},
    {"17 pairs of meta", {.size = SIZE, .meta = many, .meta_count = 17}},
    {"more meta than there is", {.size = SIZE, .meta = &pair, .meta_count = SIZE_MAX}},
    {"a TTL below 0", {.size = SIZE, .ttl_ms = -1}},
    {"a TTL of INT64_MIN", {.size = SIZE, .ttl_ms = INT64_MIN}},
    {"a TTL above a day", {.size = SIZE, .ttl_ms = DAY_MS + 1}},
    {"a TTL below the store's minimum", {.size = SIZE, .ttl_ms = 9}},
    {"a wait below forever", {.size = SIZE, .wait_ms = -2}},
    {"a wait of INT64_MIN", {.size = SIZE, .wait_ms = INT64_MIN}},
    {"a cooldown below 0", {.size = SIZE, .cooldown_ms = -1}},
    {"a cooldown of INT64_MAX", {.size = SIZE, .cooldown_ms = INT64_MAX}},
    {"a lock-delay below 0", {.size = SIZE, .lock_delay_ms = -1}},
    {"a lock-delay above a day", {.size = SIZE, .lock_delay_ms = DAY_MS + 1}},
    {"a priority of 101", {.size = SIZE, .priority = 101}},
    {"a priority of INT32_MIN", {.size = SIZE, .priority = INT32_MIN}},
    {"65 slots", {.size = SIZE, .limit = 65}},
    {"UINT32_MAX slots", {.size = SIZE, .limit = UINT32_MAX}},
    {"shared slots", {.size = SIZE, .limit = 2, .shared = true}},
    {"an empty holder", {.size = SIZE, .holder = ""}},
    {"a holder that is not clean", {.size = SIZE, .holder = "a\nb"}},
    {"an empty request id", {.size = SIZE, .request_id = ""}},
};

enum { WRONG_OPTIONS = sizeof wrong_options / sizeof wrong_options[0] };

static void expect(const char *call, enum lh_outcome outcome, const struct lh_report *report)
{
    if (outcome != LH_USAGE || strncmp(report->text, "usage: ", 7) != 0)
        fail_msg("%s: %s, \"%s\"", call, lh_outcome_name(outcome), report->text);
}

#define REFUSED(call)                              \
    do {                                           \
        report = (struct lh_report)LH_REPORT_INIT; \
        enum lh_outcome outcome_ = (call);         \
        expect(#call, outcome_, &report);          \
    } while (0)

/* A _start function returns NULL, and the report has the cause. */
#define NOT_STARTED(call)                          \
    do {                                           \
        report = (struct lh_report)LH_REPORT_INIT; \
        assert_null(call);                         \
        expect(#call, report.outcome, &report);    \
    } while (0)

static struct lh_report report = LH_REPORT_INIT;
static struct lh_client *client;

static int open_client(void **state)
{
    client = kit_open(NULL);
    (void)state;
    return 0;
}

static int on_memory(void **state)
{
    return kit_on_memory(state) != 0 || open_client(state) != 0;
}

static int on_file(void **state)
{
    return kit_on_file(state) != 0 || open_client(state) != 0;
}

static int close_client(void **state)
{
    lh_close(&client);
    return kit_done(state);
}

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *said)
{
    (void)user;
    (void)lease;
    (void)said;
    abort(); /* done is never called for a refused call */
}

static bool on_view(void *user, const struct lh_view *view)
{
    (void)user;
    (void)view;
    return true;
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    struct lh_lease *lease = NULL;
    const char *key = "k";
    for (size_t i = 0; i < WRONG_OPTIONS; i++) {
        const struct lh_acquire_options *options = &wrong_options[i].options;
        const char *what = wrong_options[i].what;
        expect(what, lh_acquire(client, key, options, &lease, &report), &report);
        expect(what, lh_acquire_all(client, &key, 1, options, &lease, &report), &report);
        assert_null(lh_acquire_start(client, key, options, on_done, NULL, &report));
        expect(what, report.outcome, &report);
        assert_null(lh_acquire_all_start(client, &key, 1, options, on_done, NULL, &report));
        expect(what, report.outcome, &report);
        assert_null(lease);
    }
    assert_int_equal(kit_state(client, key), LH_FREE);
}

static void keys_and_their_count_are_checked(void **state)
{
    (void)state;
    const char *keys[LH_KEYS_MAX + 1] = {"a", NULL}, *same[] = {"a", "a"}, *good[] = {"a", "b"};
    struct lh_lease *lease = NULL;
    REFUSED(lh_acquire_all(client, NULL, 1, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, NULL, 0, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, keys, 0, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, keys, 2, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, keys, LH_KEYS_MAX + 1, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, keys, SIZE_MAX, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, same, 2, NULL, &lease, &report));
    REFUSED(lh_acquire_all(client, good, 2, NULL, NULL, &report));
    NOT_STARTED(lh_acquire_all_start(client, NULL, 2, NULL, on_done, NULL, &report));
    NOT_STARTED(lh_acquire_all_start(client, keys, 2, NULL, on_done, NULL, &report));
    NOT_STARTED(lh_acquire_all_start(client, good, 2, NULL, NULL, NULL, &report));
    assert_null(lease);
}

static void required_arguments_are_checked(void **state)
{
    (void)state;
    struct lh_lease *lease = NULL;
    struct lh_watcher *watcher = NULL;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    REFUSED(lh_acquire(client, "k", NULL, NULL, &report));
    REFUSED(lh_release(NULL, &report));
    REFUSED(lh_release(&lease, &report));
    REFUSED(lh_abandon(&lease, &report));
    REFUSED(lh_detach(&lease, &report));
    REFUSED(lh_finish(&lease, NULL, &report));
    assert_int_equal(lh_release_start(&lease, NULL, NULL), LH_USAGE);
    assert_int_equal(lh_abandon_start(NULL, NULL, NULL), LH_USAGE);
    REFUSED(lh_status(client, "k", NULL, &report));
    REFUSED(lh_status(client, NULL, &view, &report));
    REFUSED(lh_status_details(client, "k", NULL, NULL, &report));
    REFUSED(lh_status_details_start(client, "k", on_view, NULL, NULL, &report));
    REFUSED(lh_peek(client, NULL, NULL, &report));
    REFUSED(lh_list(client, "a\nb", on_view, NULL, &report));
    REFUSED(lh_list(client, "", NULL, NULL, &report));
    REFUSED(lh_list_start(client, "", on_view, NULL, NULL, &report));
    REFUSED(lh_history(client, "k", NULL, NULL, &report));
    REFUSED(lh_watch(client, "", NULL, NULL, &watcher, &report));
    REFUSED(lh_unwatch(&watcher, &report));
    REFUSED(lh_unwatch(NULL, &report));
    REFUSED(lh_once_claim(client, "id", NULL, NULL, &once, &report));
    REFUSED(lh_once_begin(client, "id", NULL, NULL, &report));
    REFUSED(lh_once_begin(client, NULL, NULL, &once, &report));
    REFUSED(lh_mark(client, NULL, NULL, &report));
    REFUSED(lh_seen(client, "", &report));
    REFUSED(lh_watermark_begin(client, "w", 1, NULL, &report));
    REFUSED(lh_watermark_begin(client, NULL, 1, &mark, &report));
    REFUSED(lh_watermark_advance(client, "w", "", NULL, &report));
    REFUSED(lh_watermark_set(client, "w", NULL, "why", &report));
    REFUSED(lh_break(client, NULL, "why", false, &report));
    REFUSED(lh_clear(client, NULL, &report));
    REFUSED(lh_clear_start(client, "k", NULL, NULL, &report));
    assert_null(lh_key_at(NULL, 0));
    assert_true(lh_token_at(NULL, 0) == 0 && lh_remaining_ms(NULL) == 0);
    assert_true(lh_ttl_ms(NULL) == 0);
    lh_cancel(NULL);
}

static void numbers_have_limits(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    struct lh_client *none = NULL;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    open.timeout_ms = -1;
    REFUSED(lh_open("memory:", &open, &none, &report));
    open = (struct lh_open_options)LH_OPEN_OPTIONS_INIT;
    open.size = 1;
    REFUSED(lh_open("memory:", &open, &none, &report));
    REFUSED(lh_open("memory:", NULL, NULL, &report));
    REFUSED(lh_renew(client, "k", 0, 0, &report));
    REFUSED(lh_renew(client, "k", 5, -1, &report));
    REFUSED(lh_renew(client, "k", 5, INT64_MAX, &report));
    REFUSED(lh_renew(client, "k", 5, 1, &report));
    REFUSED(lh_release_token(client, "k", 0, 0, &report));
    REFUSED(lh_release_token(client, "k", 5, -1, &report));
    REFUSED(lh_once_renew(client, "id", 5, -1, &report));
    options.ttl_ms = -1;
    REFUSED(lh_once_begin(client, "id", &options, &once, &report));
    options.ttl_ms = 1;
    REFUSED(lh_once_begin(client, "id", &options, &once, &report));
    options.ttl_ms = 0;
    options.wait_ms = -2;
    REFUSED(lh_once_begin(client, "id", &options, &once, &report));
    done.status = -1;
    REFUSED(lh_mark(client, "id", &done, &report));
    done.status = 0;
    done.keep_ms = -1;
    REFUSED(lh_mark(client, "id", &done, &report));
    done.keep_ms = INT64_MAX;
    REFUSED(lh_once_finish(client, "id", 5, &done, &report));
    REFUSED(lh_watermark_begin(client, "w", -1, &mark, &report));
    assert_null(none);
}

enum { UNTOUCHED = 0xa5 };
static const size_t wrong_sizes[] = {0, 1, SIZE_MAX};

static bool is_report_untouched(void)
{
    const unsigned char *bytes = (const unsigned char *)&report;
    for (size_t i = sizeof report.size; i < sizeof report; i++)
        if (bytes[i] != UNTOUCHED)
            return false;
    return true;
}

/* The call returns LH_USAGE and writes nothing into a report whose size no release has. */
#define REPORT_REFUSED(call)                                                         \
    do {                                                                             \
        for (size_t i_ = 0; i_ < sizeof wrong_sizes / sizeof wrong_sizes[0]; i_++) { \
            memset(&report, UNTOUCHED, sizeof report);                               \
            report.size = wrong_sizes[i_];                                           \
            if ((call) != LH_USAGE || !is_report_untouched())                        \
                fail_msg("%s with a report of size %zu", #call, wrong_sizes[i_]);    \
        }                                                                            \
    } while (0)

static void sizes_of_reports_are_checked(void **state)
{
    (void)state;
    struct lh_client *none = NULL;
    struct lh_lease *lease = NULL;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    REPORT_REFUSED(lh_open(kit_url(), NULL, &none, &report));
    REPORT_REFUSED(lh_acquire(client, "k", NULL, &lease, &report));
    REPORT_REFUSED(lh_status(client, "k", &view, &report));
    REPORT_REFUSED(lh_peek(client, "k", NULL, &report));
    REPORT_REFUSED(lh_renew(client, "k", 1, 0, &report));
    REPORT_REFUSED(lh_release_token(client, "k", 1, 0, &report));
    REPORT_REFUSED(lh_list(client, "", on_view, NULL, &report));
    REPORT_REFUSED(lh_break(client, "k", "why", false, &report));
    REPORT_REFUSED(lh_clear(client, "k", &report));
    REPORT_REFUSED(lh_once_begin(client, "id", NULL, &once, &report));
    REPORT_REFUSED(lh_mark(client, "id", NULL, &report));
    REPORT_REFUSED(lh_watermark_begin(client, "w", 1, &mark, &report));
    assert_true(none == NULL && lease == NULL);
    assert_int_equal(kit_state(client, "k"), LH_FREE);
    lease = kit_acquire(client, "k", NULL);
    REPORT_REFUSED(lh_release(&lease, &report));
    REPORT_REFUSED(lh_abandon(&lease, &report));
    REPORT_REFUSED(lh_detach(&lease, &report));
    assert_true(lh_held(lease));
    lh_close(&client);
    REPORT_REFUSED(lh_release(&lease, &report));
    assert_non_null(lease);
    assert_int_equal(lh_release(&lease, NULL), LH_LOST);
}

static void sizes_of_results_are_checked(void **state)
{
    (void)state;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_once once = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    struct lh_collected collected = LH_COLLECTED_INIT;
    struct lh_lease *claim = NULL;
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof wrong_sizes[0]; i++) {
        view.size = once.size = mark.size = collected.size = wrong_sizes[i];
        REFUSED(lh_status(client, "k", &view, &report));
        REFUSED(lh_once_claim(client, "id", NULL, &claim, &once, &report));
        REFUSED(lh_once_begin(client, "id", NULL, &once, &report));
        REFUSED(lh_once_status(client, "id", &once, &report));
        REFUSED(lh_watermark_begin(client, "w", 1, &mark, &report));
        REFUSED(lh_collect(kit_url(), NULL, &collected, &report));
    }
    assert_null(claim);
    assert_int_equal(kit_state(client, "once:id"), LH_FREE);
}

static void on_finding(void *user, const struct lh_finding *finding)
{
    (void)user;
    (void)finding;
    abort(); /* there is none of a refused call */
}

static void sizes_are_checked_without_a_client(void **state)
{
    (void)state;
    char name[LH_NAME_SIZE] = "untouched";
    int held = -1;
    struct lh_collected collected = LH_COLLECTED_INIT;
    struct lh_diagnose_options diagnose = LH_DIAGNOSE_OPTIONS_INIT;
    struct lh_collect_options collect = LH_COLLECT_OPTIONS_INIT;
    REPORT_REFUSED(lh_key_name(kit_url(), "k", name, sizeof name, &report));
    REPORT_REFUSED(lh_collect(kit_url(), NULL, &collected, &report));
    REPORT_REFUSED(lh_check("/nowhere/g", "k", 1, 0, &held, &report));
    REPORT_REFUSED(lh_diagnose(kit_url(), NULL, on_finding, NULL, &report));
    assert_true(strcmp(name, "untouched") == 0 && held == -1);
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof wrong_sizes[0]; i++) {
        diagnose.size = collect.size = wrong_sizes[i];
        REFUSED(lh_diagnose(kit_url(), &diagnose, on_finding, NULL, &report));
        REFUSED(lh_collect(kit_url(), &collect, &collected, &report));
    }
}

/* Values that the header does not define. */
static void enums_are_checked(void **state)
{
    (void)state;
    static const int others[] = {-1, LH_DONE + 1, 99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_string_equal(lh_outcome_name((enum lh_outcome)others[i]), "unknown");
}

static const char config[] = "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                             "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                             "users: [{name: c, user: {token: t}}]\n"
                             "contexts: [{name: c, context: {cluster: c, user: c}}]\n";

static void workloads_are_checked(void **state)
{
    (void)state;
    static const char manifest[] = "apiVersion: batch/v1\nkind: Job\n";
    static const int others[] = {-1, LH_UNTIL_CREATED + 1, INT32_MAX, INT32_MIN};
    char path[] = "/tmp/lib-usage-XXXXXX";
    struct lh_workloads *workloads = NULL, *other = NULL;
    struct lh_workload workload = LH_WORKLOAD_INIT;
    struct lh_workloads_options opened = LH_WORKLOADS_OPTIONS_INIT;
    struct lh_workload_options options = LH_WORKLOAD_OPTIONS_INIT;
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, config, sizeof config - 1) == (ssize_t)sizeof config - 1);
    (void)close(file);
    (void)setenv("KUBECONFIG", path, 1);
    REFUSED(lh_workloads_open(NULL, manifest, NULL, &workloads, &report));
    REFUSED(lh_workloads_open("k8s://n", NULL, NULL, &workloads, &report));
    REFUSED(lh_workloads_open("k8s://n", manifest, NULL, NULL, &report));
    REFUSED(lh_workload_run(NULL, "t", NULL, &workload, &report));
    ASSERT_OUTCOME(lh_workloads_open("k8s://n", manifest, NULL, &workloads, &report), LH_OK,
                   &report);
    (void)unlink(path);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        options.until = (enum lh_until)others[i];
        REFUSED(lh_workload_run(workloads, "t", &options, &workload, &report));
    }
    options.until = LH_UNTIL_ENDED;
    options.cooldown_ms = -1;
    REFUSED(lh_workload_run(workloads, "t", &options, &workload, &report));
    options.cooldown_ms = 0;
    options.time_limit_ms = -1;
    REFUSED(lh_workload_run(workloads, "t", &options, &workload, &report));
    REFUSED(lh_workload_run(workloads, NULL, NULL, &workload, &report));
    REFUSED(lh_workload_look(workloads, "", &workload, &report));
    REFUSED(lh_workload_remove(workloads, "t", "", &workload, &report));
    REPORT_REFUSED(lh_workloads_open("k8s://n", manifest, NULL, &other, &report));
    REPORT_REFUSED(lh_workload_run(workloads, "t", NULL, &workload, &report));
    REPORT_REFUSED(lh_workload_look(workloads, "t", &workload, &report));
    REPORT_REFUSED(lh_workload_remove(workloads, "t", NULL, &workload, &report));
    assert_null(other);
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof wrong_sizes[0]; i++) {
        workload.size = opened.size = options.size = wrong_sizes[i];
        REFUSED(lh_workloads_open("k8s://n", manifest, &opened, &other, &report));
        REFUSED(lh_workload_run(workloads, "t", NULL, &workload, &report));
        REFUSED(lh_workload_run(workloads, "t", &options, NULL, &report));
        REFUSED(lh_workload_look(workloads, "t", &workload, &report));
        REFUSED(lh_workload_remove(workloads, "t", NULL, &workload, &report));
    }
    lh_workloads_close(&workloads);
    lh_workloads_close(&workloads);
    lh_workloads_close(NULL);
}

static void claims_are_checked(void **state)
{
    (void)state;
    static const char *const labels[] = {NULL, "", "a,b", "a\nb"};
    struct lh_client *other = NULL;
    struct lh_claims *claims = NULL, *none = NULL;
    struct lh_lease *lease = NULL;
    struct lh_open_options opened = LH_OPEN_OPTIONS_INIT;
    struct lh_claims_options options = LH_CLAIMS_OPTIONS_INIT;
    struct lh_claim_options asked = LH_CLAIM_OPTIONS_INIT;
    struct lh_claim claim = LH_CLAIM_INIT;
    (void)setenv("GITHUB_TOKEN", "t", 1);
    (void)setenv("GITHUB_API_URL", "http://127.0.0.1:1", 1);
    opened.timeout_ms = 200;
    ASSERT_OUTCOME(lh_open("github://a/b", &opened, &other, &report), LH_OK, &report);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        options.label = labels[i];
        REFUSED(lh_claims_open(other, &options, &none, &report));
    }
    options.label = "todo";
    options.order = (enum lh_claim_order)9;
    REFUSED(lh_claims_open(other, &options, &none, &report));
    options.order = LH_CLAIM_BY_PRIORITY;
    REFUSED(lh_claims_open(client, &options, &none, &report)); /* not its store */
    REFUSED(lh_claims_open(NULL, &options, &none, &report));
    REFUSED(lh_claims_open(other, NULL, &none, &report));
    REFUSED(lh_claims_open(other, &options, NULL, &report));
    REPORT_REFUSED(lh_claims_open(other, &options, &none, &report));
    REFUSED(lh_claim_next(NULL, NULL, &lease, &claim, &report));
    ASSERT_OUTCOME(lh_claims_open(other, &options, &claims, &report), LH_OK, &report);
    REFUSED(lh_claim_next(claims, NULL, NULL, &claim, &report));
    REFUSED(lh_claim_finish(claims, NULL, true, NULL, NULL, &report));
    REFUSED(lh_claim_finish(claims, &lease, true, NULL, NULL, &report));
    asked.wait_ms = -2;
    REFUSED(lh_claim_next(claims, &asked, &lease, &claim, &report));
    ASSERT_OUTCOME(lh_claim_next(claims, NULL, &lease, &claim, &report), LH_UNAVAILABLE, &report);
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof wrong_sizes[0]; i++) {
        claim.size = options.size = asked.size = wrong_sizes[i];
        REFUSED(lh_claims_open(other, &options, &none, &report));
        REFUSED(lh_claim_next(claims, NULL, &lease, &claim, &report));
        REFUSED(lh_claim_next(claims, &asked, &lease, NULL, &report));
    }
    assert_null(none);
    assert_null(lease);
    lh_claims_close(&claims);
    lh_claims_close(&claims);
    lh_claims_close(NULL);
    lh_close(&other);
}

int main(void)
{
    char names[17][8];
    for (size_t i = 0; i < 17; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        many[i] = (struct lh_meta){names[i], "v"};
    }
#define ON_BOTH(test)                                          \
    {#test " on memory", test, on_memory, close_client, NULL}, \
    {                                                          \
#test " on file", test, on_file, close_client, NULL    \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(wrong_options_are_refused),          ON_BOTH(keys_and_their_count_are_checked),
        ON_BOTH(required_arguments_are_checked),     ON_BOTH(numbers_have_limits),
        ON_BOTH(sizes_of_reports_are_checked),       ON_BOTH(sizes_of_results_are_checked),
        ON_BOTH(sizes_are_checked_without_a_client), cmocka_unit_test(enums_are_checked),
        cmocka_unit_test(workloads_are_checked),     cmocka_unit_test(claims_are_checked),
    };
#undef ON_BOTH
    return cmocka_run_group_tests_name("lib_usage", tests, NULL, NULL);
}

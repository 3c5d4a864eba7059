/* SPDX-License-Identifier: Apache-2.0 */
/* How the end of an object is detected: Jobs, Pods, Tekton's runs, custom resources, settings. */
#include "workload/workload_end.h"

#include "http/kube_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct end_rules usual = {0};

static json_t *read(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (json == NULL)
        fail_msg("%s: %s", text, error.text);
    return json;
}

static enum end_state state_of(const struct end_rules *rules, const char *text)
{
    json_t *json = read(text);
    enum end_state state = end_state_of(rules, json);
    json_decref(json);
    return state;
}

static int64_t time_of(const struct end_rules *rules, const char *text)
{
    json_t *json = read(text);
    int64_t at_ms = end_time_of(rules, json);
    json_decref(json);
    return at_ms;
}

static void nothing_said_is_running(void **state)
{
    (void)state;
    assert_int_equal(state_of(&usual, "{}"), END_RUNS);
    assert_int_equal(state_of(&usual, "{\"status\":{\"phase\":\"Running\"}}"), END_RUNS);
    assert_int_equal(state_of(&usual, "{\"status\":{\"completionTime\":null}}"), END_RUNS);
    assert_int_equal(state_of(&usual, "{\"status\":{\"conditions\":\"none\"}}"), END_RUNS);
    assert_int_equal(state_of(&usual, "[]"), END_RUNS);
}

static void jobs_tell_it_by_conditions(void **state)
{
    (void)state;
    assert_int_equal(
        state_of(&usual,
                 "{\"status\":{\"conditions\":[{\"type\":\"Suspended\",\"status\":\"True\"},"
                 "{\"type\":\"Complete\",\"status\":\"True\"}]}}"),
        END_DONE);
    assert_int_equal(
        state_of(&usual,
                 "{\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":\"False\"}]}}"),
        END_RUNS);
    assert_int_equal(
        state_of(&usual,
                 "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}"),
        END_FAILED);
}

static void pods_tell_it_by_their_phase(void **state)
{
    (void)state;
    assert_int_equal(state_of(&usual, "{\"status\":{\"phase\":\"Succeeded\"}}"), END_DONE);
    assert_int_equal(state_of(&usual, "{\"status\":{\"phase\":\"Failed\"}}"), END_FAILED);
}

static void tekton_tells_it_by_succeeded(void **state)
{
    static const char text[] = "{\"status\":{%s\"conditions\":[{\"type\":\"Succeeded\","
                               "\"status\":\"%s\"}]}}";
    char words[256];
    (void)state;
    (void)snprintf(words, sizeof words, text, "", "Unknown");
    assert_int_equal(state_of(&usual, words), END_RUNS);
    (void)snprintf(words, sizeof words, text, "\"completionTime\":\"2026-01-02T03:04:05Z\",",
                   "True");
    assert_int_equal(state_of(&usual, words), END_DONE);
    (void)snprintf(words, sizeof words, text, "\"completionTime\":\"2026-01-02T03:04:05Z\",",
                   "False");
    assert_int_equal(state_of(&usual, words), END_FAILED);
}

static void others_are_set(void **state)
{
    static const struct end_rules own = {.done_when = "condition=Shipped,.status.result=fine",
                                         .failed_when = ".status.broken=true,.spec.never"};
    (void)state;
    assert_null(end_rules_broken(&own));
    assert_int_equal(state_of(&own, "{\"status\":{\"phase\":\"Succeeded\"}}"), END_RUNS);
    assert_int_equal(state_of(&own, "{\"status\":{\"result\":\"fine\"}}"), END_DONE);
    assert_int_equal(state_of(&own, "{\"status\":{\"result\":\"finer\"}}"), END_RUNS);
    assert_int_equal(state_of(&own, "{\"status\":{\"broken\":true,\"result\":\"fine\"}}"),
                     END_FAILED);
    assert_int_equal(state_of(&own, "{\"spec\":{\"never\":\"\"}}"), END_RUNS);
    assert_int_equal(state_of(&own, "{\"spec\":{\"never\":0}}"), END_FAILED);
}

static void broken_settings_are_refused(void **state)
{
    static const char *const broken[] = {
        "", "Complete", "condition=", ".", ".a=", ".a,", ",", ".a,,.b", "condition=A="};
    (void)state;
    assert_null(end_rules_broken(&usual));
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct end_rules rules = {.done_when = broken[i]};
        if (end_rules_broken(&rules) == NULL)
            fail_msg("taken: '%s'", broken[i]);
        rules = (struct end_rules){.failed_when = broken[i]};
        assert_non_null(end_rules_broken(&rules));
    }
    struct end_rules by_condition = {.ended_at = "condition=Complete"};
    assert_non_null(end_rules_broken(&by_condition));
    struct end_rules by_path = {.ended_at = ".status.stoppedAt"};
    assert_null(end_rules_broken(&by_path));
}

static void the_time_of_the_end(void **state)
{
    static const struct end_rules own = {.ended_at = ".status.stoppedAt"};
    (void)state;
    assert_int_equal(time_of(&usual, "{\"status\":{\"completionTime\":\"1970-01-01T00:03:20Z\"}}"),
                     200000);
    assert_int_equal(time_of(&own, "{\"status\":{\"stoppedAt\":\"1970-01-01T00:03:20.75Z\"}}"),
                     200000);
    assert_int_equal(
        time_of(&usual, "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\","
                        "\"lastTransitionTime\":\"1970-01-01T00:05:00Z\"}]}}"),
        300000);
    assert_int_equal(
        time_of(&usual,
                "{\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":["
                "{\"state\":{\"terminated\":{\"finishedAt\":\"1970-01-01T00:06:40Z\"}}},"
                "{\"state\":{\"terminated\":{\"finishedAt\":\"1970-01-01T00:05:00Z\"}}}]}}"),
        400000);
    assert_int_equal(
        time_of(&usual, "{\"metadata\":{\"managedFields\":[{\"time\":\"1970-01-01T00:05:00Z\"},"
                        "{\"time\":\"1970-01-01T00:08:20Z\"}]},\"status\":{\"phase\":\"Done\"}}"),
        500000);
    /* A status clock that is behind cannot put the end before the beginning. */
    assert_int_equal(time_of(&usual,
                             "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:10:00Z\"},"
                             "\"status\":{\"completionTime\":\"1970-01-01T00:03:20Z\"}}"),
                     600000);
}

static void a_pod_tells_its_exit_status(void **state)
{
    (void)state;
    json_t *json = read("{\"status\":{\"containerStatuses\":["
                        "{\"state\":{\"terminated\":{\"exitCode\":0}}},"
                        "{\"state\":{\"terminated\":{\"exitCode\":42}}}]}}");
    assert_int_equal(end_status_of(json), 42);
    json_decref(json);
    json = read("{\"status\":{\"phase\":\"Failed\"}}");
    assert_int_equal(end_status_of(json), 1);
    json_decref(json);
}

static void moments(void **state)
{
    (void)state;
    assert_int_equal(kube_time_ms("1970-01-02T00:00:00Z"), 86400000);
    assert_int_equal(kube_time_ms("2026-11-15T17:00:00.123456Z"), 1794762000000);
    assert_int_equal(kube_time_ms(""), -1);
    assert_int_equal(kube_time_ms("yesterday"), -1);
    assert_int_equal(kube_time_ms("2026-11-15"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_is_running),
        cmocka_unit_test(jobs_tell_it_by_conditions),
        cmocka_unit_test(pods_tell_it_by_their_phase),
        cmocka_unit_test(tekton_tells_it_by_succeeded),
        cmocka_unit_test(others_are_set),
        cmocka_unit_test(broken_settings_are_refused),
        cmocka_unit_test(the_time_of_the_end),
        cmocka_unit_test(a_pod_tells_its_exit_status),
        cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

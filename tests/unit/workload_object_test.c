/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of an object that is a lock, its state, and the decision that follows. The names of
 * four tests are the rows of the test table in the request for the workload lock.
 */
#include "workload/workload_object.h"

#include "http/kube_api.h"
#include "wire/k8s_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct end_rules usual = {0};

static json_t *read(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    if (json == NULL)
        fail_msg("no JSON: %s", text);
    return json;
}

static const char *words(const json_t *json, const char *one, const char *two)
{
    const json_t *metadata = json_object_get(json, "metadata");
    const char *found =
        json_string_value(two != NULL ? json_object_get(json_object_get(metadata, one), two)
                                      : json_object_get(metadata, one));
    return found != NULL ? found : "";
}

static struct workload_view view_of(const char *text, const char *target)
{
    struct workload_view view;
    json_t *json = read(text);
    assert_true(workload_read(json, &usual, target, "team/owner", &view));
    json_decref(json);
    return view;
}

static const char *name_of(const char *target, char out[K8S_NAME_MAX + 1])
{
    struct k8s_url url;
    assert_true(k8s_url_parse("k8s://ns?names=hash", &url, NULL));
    assert_true(k8s_name_of(&url, target, out));
    return out;
}

/* pipelineRunName() determinism: the digits are those of sha256sum. */
static void the_name_of_a_target_is_always_the_same(void **state)
{
    char one[K8S_NAME_MAX + 1], two[K8S_NAME_MAX + 1];
    (void)state;
    assert_string_equal(name_of("production/deployment/payment-api", one), "wfe-fbb8266ac354e9c2");
    assert_string_equal(one, name_of("production/deployment/payment-api", two));
}

/* pipelineRunName() uniqueness */
static void different_targets_have_different_names(void **state)
{
    static const char *const targets[] = {"a/b",  "a-b",          "a.b",         "A/B",
                                          "a/b ", "production/x", "production/y"};
    char one[K8S_NAME_MAX + 1], two[K8S_NAME_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(name_of(targets[i], one), name_of(targets[k], two));
    }
}

#define OBJECT                                                                                 \
    "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"7\",\"name\":\"wfe-1\","              \
    "\"creationTimestamp\":\"1970-01-01T00:01:40Z\",\"annotations\":{\"leasehold/key\":\"t\"," \
    "\"leasehold/holder\":\"wfe-7\",\"leasehold/request\":\"r\","                              \
    "\"leasehold/cooldown-ms\":\"60000\"}},\"status\":{"
#define ENDED OBJECT "\"phase\":\"Completed\",\"completionTime\":\"1970-01-01T00:03:20Z\"}}"

/* checkResourceLock() finds Running */
static void a_running_object_is_busy(void **state)
{
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(OBJECT "\"phase\":\"Running\"}}", "t");
    assert_true(view.ours);
    assert_string_equal(view.holder, "wfe-7");
    assert_int_equal(workload_judge(&view, 0, 999999999, &left_ms), WORKLOAD_BUSY);
    assert_int_equal(left_ms, -1);
}

/* checkResourceLock() finds Cooldown */
static void an_ended_object_cools_for_its_own_cooldown(void **state)
{
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(ENDED, "t");
    assert_int_equal(view.ended_at_ms, 200000);
    assert_int_equal(workload_judge(&view, /* cooldown_ms= */ 5, 230000, &left_ms),
                     WORKLOAD_COOLING);
    assert_int_equal(left_ms, 31000); /* a second more: both clocks have whole seconds */
    assert_int_equal(workload_judge(&view, 5, 260999, &left_ms), WORKLOAD_COOLING);
    assert_int_equal(workload_judge(&view, 5, 261000, &left_ms), WORKLOAD_OVER);
    /* A status clock that was an hour ahead makes it no longer than it is. */
    assert_int_equal(workload_judge(&view, 5, 200000 - 3600000, &left_ms), WORKLOAD_COOLING);
    assert_int_equal(left_ms, 61000);
}

static void without_a_cooldown_the_end_is_the_end(void **state)
{
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(ENDED, "t");
    view.cooldown_ms = 0;
    assert_int_equal(workload_judge(&view, 60000, 200000, &left_ms), WORKLOAD_OVER);
    assert_int_equal(workload_judge(&view, 60000, 100000, &left_ms), WORKLOAD_OVER);
}

static void an_object_that_runs_too_long_is_overdue(void **state)
{
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(OBJECT "\"phase\":\"Running\"}}", "t");
    view.limit_ms = 10000;
    assert_int_equal(workload_judge(&view, 0, 110000, &left_ms), WORKLOAD_BUSY);
    assert_int_equal(left_ms, 1000);
    assert_int_equal(workload_judge(&view, 0, 111000, &left_ms), WORKLOAD_OVERDUE);
}

static void a_foreign_object_is_never_removed(void **state)
{
    static const char foreign[] =
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\",\"labels\":{\"team/owner\":\"x\"},"
        "\"creationTimestamp\":\"1970-01-01T00:01:40Z\"},\"status\":{\"phase\":\"Completed\","
        "\"completionTime\":\"1970-01-01T00:03:20Z\"}}";
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(foreign, "t");
    assert_false(view.ours || view.collides);
    assert_string_equal(view.holder, "x");
    assert_int_equal(workload_judge(&view, 60000, 230000, &left_ms), WORKLOAD_COOLING);
    assert_int_equal(workload_judge(&view, 60000, 999999, &left_ms), WORKLOAD_BUSY);
    view.state = END_RUNS;
    view.limit_ms = 1;
    assert_int_equal(workload_judge(&view, 60000, 999999, &left_ms), WORKLOAD_BUSY);
}

static void another_target_under_the_name_collides(void **state)
{
    (void)state;
    struct workload_view view = view_of(ENDED, "another");
    assert_true(view.collides);
    assert_false(view.ours);
}

static void deleted_by_hand_it_cools_while_the_finalizer_keeps_it(void **state)
{
    static const char text[] =
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\",\"finalizers\":[\"a/b\","
        "\"leasehold/cooldown\"],\"deletionTimestamp\":\"1970-01-01T00:05:00Z\",\"annotations\":"
        "{\"leasehold/key\":\"t\",\"leasehold/cooldown-ms\":\"60000\"}},\"status\":{}}";
    int64_t left_ms;
    (void)state;
    struct workload_view view = view_of(text, "t");
    assert_int_equal(view.state, END_FAILED);
    assert_int_equal(workload_judge(&view, 0, 310000, &left_ms), WORKLOAD_COOLING);
    assert_int_equal(workload_judge(&view, 0, 361000, &left_ms), WORKLOAD_OVER);
    json_t *json = read(text), *patch = workload_finalizer_patch(json);
    const json_t *rest = json_object_get(json_object_get(patch, "metadata"), "finalizers");
    assert_int_equal(json_array_size(rest), 1);
    assert_string_equal(json_string_value(json_array_get(rest, 0)), "a/b");
    assert_string_equal(words(patch, "resourceVersion", NULL), "1");
    json_decref(patch);
    json_decref(json);
}

static void the_object_says_all_that_is_known(void **state)
{
    struct workload_spec wish = {.name = "wfe-1",
                                 .namespace = "ns",
                                 .target = "a/b",
                                 .holder = "ns/pod:é 1-",
                                 .request = "r1",
                                 .holder_label = "team/owner",
                                 .cooldown_ms = 300000,
                                 .limit_ms = 7000,
                                 .finalizer = true};
    (void)state;
    json_t *manifest = read("{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{"
                            "\"generateName\":\"x-\",\"name\":\"mine\",\"labels\":{\"a\":\"b\"}},"
                            "\"spec\":{\"n\":1},\"status\":{\"phase\":\"Succeeded\"}}");
    json_t *object = workload_make(manifest, &wish, NULL);
    assert_non_null(object);
    assert_string_equal(words(object, "name", NULL), "wfe-1");
    assert_string_equal(words(object, "generateName", NULL), "");
    assert_string_equal(words(object, "namespace", NULL), "ns");
    assert_string_equal(words(object, "labels", "a"), "b");
    assert_string_equal(words(object, "labels", "team/owner"), "ns_pod____1");
    assert_string_equal(words(object, "annotations", "leasehold/holder"), "ns/pod:é 1-");
    assert_null(json_object_get(object, "status"));
    (void)json_object_set_new(json_object_get(object, "metadata"), "uid", json_string("u"));
    struct workload_view view;
    assert_true(workload_read(object, &usual, "a/b", NULL, &view));
    assert_true(view.ours && view.finalizer && !view.terminating);
    assert_string_equal(view.request, "r1");
    assert_int_equal(view.cooldown_ms, 300000);
    assert_int_equal(view.limit_ms, 7000);
    assert_string_equal(words(manifest, "name", NULL), "mine");
    json_decref(object);
    json_decref(manifest);
}

/* Added by hand, to keep it. */
static void lengths_beyond_all_time_end_nothing_early(void **state)
{
    static const char *const kept[] = {
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"creationTimestamp\":"
        "\"2026-01-01T00:00:00Z\",\"annotations\":{\"leasehold/key\":\"t\","
        "\"leasehold/time-limit-ms\":\"9223372036854775807\"}}}",
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{\"leasehold/key\":"
        "\"t\",\"leasehold/cooldown-ms\":\"99999999999999999999\"}},"
        "\"status\":{\"completionTime\":\"2026-01-01T00:00:00Z\",\"phase\":\"Done\"}}"};
    (void)state;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct workload_view view = view_of(kept[i], "t");
        int64_t left_ms = 0;
        enum workload_verdict verdict =
            workload_judge(&view, 0, kube_time_ms("2027-01-01T00:00:00Z"), &left_ms);
        assert_int_equal(verdict, i == 0 ? WORKLOAD_BUSY : WORKLOAD_COOLING);
        assert_true(left_ms > 0);
    }
}

static void only_what_was_judged_is_deleted(void **state)
{
    (void)state;
    struct workload_view view = view_of(ENDED, "t");
    json_t *body = workload_delete_options(&view);
    const json_t *only = json_object_get(body, "preconditions");
    assert_string_equal(json_string_value(json_object_get(only, "uid")), "u1");
    assert_string_equal(json_string_value(json_object_get(only, "resourceVersion")), "7");
    json_decref(body);
}

static void manifests_for_elsewhere_are_refused(void **state)
{
    static const char *const broken[] = {
        "{}", "{\"kind\":\"Job\"}", "{\"apiVersion\":\"v1\"}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"other\"}}"};
    struct workload_spec wish = {
        .name = "n", .namespace = "ns", .target = "t", .holder = "h", .request = "r"};
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char said[200];
        struct text why;
        text_init(&why, said, sizeof said);
        json_t *manifest = read(broken[i]);
        assert_null(workload_make(manifest, &wish, &why));
        assert_true(why.length > 0);
        json_decref(manifest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"pipelineRunName() determinism", the_name_of_a_target_is_always_the_same, NULL, NULL,
         NULL},
        {"pipelineRunName() uniqueness", different_targets_have_different_names, NULL, NULL, NULL},
        {"checkResourceLock() finds Running", a_running_object_is_busy, NULL, NULL, NULL},
        {"checkResourceLock() finds Cooldown", an_ended_object_cools_for_its_own_cooldown, NULL,
         NULL, NULL},
        cmocka_unit_test(without_a_cooldown_the_end_is_the_end),
        cmocka_unit_test(an_object_that_runs_too_long_is_overdue),
        cmocka_unit_test(a_foreign_object_is_never_removed),
        cmocka_unit_test(another_target_under_the_name_collides),
        cmocka_unit_test(deleted_by_hand_it_cools_while_the_finalizer_keeps_it),
        cmocka_unit_test(the_object_says_all_that_is_known),
        cmocka_unit_test(lengths_beyond_all_time_end_nothing_early),
        cmocka_unit_test(only_what_was_judged_is_deleted),
        cmocka_unit_test(manifests_for_elsewhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

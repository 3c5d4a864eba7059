/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as Leases: what other programs read in them, which program owns them, what stays
 * unchanged. tests/e2e/k8s.sh uses the real API server; here are cases that it does not produce.
 */
#include "store/k8s/k8s_lease.h"

#include "store/translate.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct record record, scratch;
static char bytes[RECORD_MAX + 1];

/* A Lease as the server would store it: a revision, a uid, the manager and the write time. */
static void store(json_t *json, unsigned revision, const char *manager, const char *time)
{
    json_t *metadata = json_object_get(json, "metadata");
    char words[16];
    (void)snprintf(words, sizeof words, "%u", revision);
    (void)json_object_set_new(metadata, "resourceVersion", json_string(words));
    (void)json_object_set_new(metadata, "uid", json_string("u-1"));
    (void)json_object_set_new(metadata, "managedFields",
                              json_pack("[{s:s, s:s}]", "manager", manager, "time", time));
}

static uint64_t writes;

static json_t *make(const json_t *before)
{
    struct store_summary summary;
    size_t length = record_encode(&record, bytes, sizeof bytes);
    assert_true(length > 0);
    summarize_record(&record, /* session= */ 7, &summary);
    json_t *json = k8s_lease_make(before, &(struct k8s_lease_write){.name = "k",
                                                                    .key = "K/1",
                                                                    .bytes = bytes,
                                                                    .length = length,
                                                                    .summary = &summary,
                                                                    .session = 7,
                                                                    .number = ++writes,
                                                                    .wall_ms = 1700000000123});
    assert_non_null(json);
    return json;
}

static struct grant *grant_to(const char *holder)
{
    record_init(&record, "K/1");
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, holder);
    text_copy(grant->request, sizeof grant->request, "r");
    grant->session = 7;
    grant->ttl_ms = 1500;
    grant->granted = grant->renewed = (struct stamp){.revision = THIS_WRITE, .time_ms = 0};
    return grant;
}

static const char *spec_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json_object_get(json, "spec"), name));
}

static json_int_t number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(json, "spec"), name));
}

static void a_grant_shows_in_the_spec(void **state)
{
    struct k8s_lease lease;
    (void)state;
    (void)grant_to("a");
    json_t *json = make(NULL);
    assert_string_equal(spec_of(json, "holderIdentity"), "a");
    assert_string_equal(spec_of(json, "acquireTime"), "2023-11-14T22:13:20.123000Z");
    assert_string_equal(spec_of(json, "renewTime"), "2023-11-14T22:13:20.123000Z");
    assert_int_equal(number_of(json, "leaseDurationSeconds"), 2);
    assert_int_equal(number_of(json, "leaseTransitions"), 0);
    store(json, 5, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    assert_null(k8s_lease_parse(json, &lease));
    assert_int_equal(lease.state, K8S_LEASE_OURS);
    assert_string_equal(lease.key, "K/1");
    assert_string_equal(lease.record, bytes);
    assert_true(lease.made_by_us);
    assert_int_equal(lease.written.revision, 5);
    assert_int_equal(lease.written.time_ms, 1767323045000);
    json_decref(json);
}

/* The same content again is another write; a label of another program is none. */
static void writes_are_told_apart(void **state)
{
    struct k8s_lease first, again, labelled;
    (void)state;
    (void)grant_to("a");
    json_t *one = make(NULL), *two = make(one);
    store(one, 5, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    store(two, 6, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    json_t *three = json_deep_copy(two);
    store(three, 7, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    assert_null(k8s_lease_parse(one, &first));
    assert_null(k8s_lease_parse(two, &again));
    assert_null(k8s_lease_parse(three, &labelled));
    assert_true(first.write_hash != 0 && first.write_hash != again.write_hash);
    assert_true(again.write_hash == labelled.write_hash);
    json_decref(one);
    json_decref(two);
    json_decref(three);
}

/* The set of annotations changes with each write: otherwise an old server keeps its time. */
static void each_write_has_another_beat(void **state)
{
    struct k8s_lease lease;
    (void)state;
    (void)grant_to("a");
    json_t *first = make(NULL), *second, *third;
    store(first, 5, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    struct grant *grant = grant_to("a");
    grant->granted = grant->renewed = (struct stamp){.revision = 5, .time_ms = 1000};
    second = make(first);
    third = make(second);
    const json_t *notes[3] = {json_object_get(json_object_get(first, "metadata"), "annotations"),
                              json_object_get(json_object_get(second, "metadata"), "annotations"),
                              json_object_get(json_object_get(third, "metadata"), "annotations")};
    for (size_t i = 0; i < 3; i++) {
        assert_true((json_object_get(notes[i], "leasehold/beat-a") != NULL) == (i != 1));
        assert_true((json_object_get(notes[i], "leasehold/beat-b") != NULL) == (i == 1));
    }
    /* The second renews nothing: its time is that of the other manager, which never wrote here. */
    store(second, 6, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    assert_null(k8s_lease_parse(second, &lease));
    assert_int_equal(lease.written.time_ms, TIME_UNKNOWN);
    store(second, 6, K8S_WAITER_MANAGER, "2026-01-02T03:04:06Z");
    assert_null(k8s_lease_parse(second, &lease));
    assert_int_equal(lease.written.time_ms, 1767323046000);
    json_decref(first);
    json_decref(second);
    json_decref(third);
}

static void a_change_of_holders_is_counted(void **state)
{
    (void)state;
    (void)grant_to("a");
    json_t *first = make(NULL);
    struct grant *grant = grant_to("a");
    grant->granted = (struct stamp){.revision = 5, .time_ms = 1000};
    json_t *renewed = make(first);
    assert_int_equal(number_of(renewed, "leaseTransitions"), 0);
    (void)grant_to("b");
    json_t *second = make(renewed);
    assert_int_equal(number_of(second, "leaseTransitions"), 1);
    record.grant_count = 0;
    record.cooling.length_ms = 1000;
    json_t *cooling = make(second);
    assert_null(spec_of(cooling, "holderIdentity"));
    assert_int_equal(number_of(cooling, "leaseTransitions"), 1);
    json_decref(first);
    json_decref(renewed);
    json_decref(second);
    json_decref(cooling);
}

static void foreign_fields_stay(void **state)
{
    json_error_t error;
    (void)state;
    json_t *theirs = json_loads(
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
        "\"k\",\"uid\":\"u\",\"resourceVersion\":\"9\",\"labels\":{\"team\":\"x\"},"
        "\"annotations\":{\"n\":\"1\"},\"finalizers\":[\"f\"]},\"spec\":{\"strategy\":\"s\"}}",
        0, &error);
    struct k8s_lease lease;
    assert_null(k8s_lease_parse(theirs, &lease));
    assert_int_equal(lease.state, K8S_LEASE_VACANT);
    assert_false(lease.made_by_us);
    (void)grant_to("a");
    json_t *ours = make(theirs), *after = k8s_lease_vacate(ours);
    const json_t *metadata = json_object_get(ours, "metadata");
    assert_string_equal(spec_of(ours, "strategy"), "s");
    assert_int_equal(json_array_size(json_object_get(metadata, "finalizers")), 1);
    assert_null(json_object_get(json_object_get(metadata, "labels"), K8S_LEASE_LABEL));
    (void)json_object_del(json_object_get(after, "spec"), "acquireTime");
    (void)json_object_del(json_object_get(after, "spec"), "renewTime");
    (void)json_object_del(json_object_get(after, "spec"), "leaseDurationSeconds");
    (void)json_object_del(json_object_get(after, "spec"), "leaseTransitions");
    assert_true(json_equal(after, theirs));
    json_decref(theirs);
    json_decref(ours);
    json_decref(after);
}

/* No holder, and the next waiter is named. */
static void offer_to(const char *holder)
{
    record_init(&record, "K/1");
    struct waiter *waiter = record_add_waiter(&record);
    text_copy(waiter->holder, sizeof waiter->holder, holder);
    text_copy(waiter->request, sizeof waiter->request, "r");
    waiter->session = 7;
    waiter->ttl_ms = 1500;
    waiter->offered = true;
}

/* A write over the Lease, as the driver makes it; the previous object is freed. */
static json_t *write_over(json_t *before, bool *gives_way)
{
    struct k8s_lease lease;
    struct store_summary summary;
    assert_null(k8s_lease_parse(before, &lease));
    summarize_record(&record, /* session= */ 7, &summary);
    *gives_way = k8s_lease_gives_way(&lease, &summary);
    if (*gives_way)
        k8s_lease_give_way(&record);
    summarize_record(&record, /* session= */ 7, &summary);
    size_t length = record_encode(&record, bytes, sizeof bytes);
    assert_true(length > 0);
    struct k8s_lease_write write = {.name = "k",
                                    .key = "K/1",
                                    .bytes = bytes,
                                    .length = length,
                                    .summary = &summary,
                                    .wall_ms = 1700000000123,
                                    .streak = k8s_lease_streak(&lease, &summary, *gives_way)};
    json_t *json = k8s_lease_make(before, &write);
    assert_non_null(json);
    json_decref(before);
    store(json, 6, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    return json;
}

static void our_offers_end_where_others_want_it_too(void **state)
{
    struct k8s_lease lease;
    bool gives_way;
    (void)state;
    json_t *json =
        json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "k", "spec", "holderIdentity", "them");
    store(json, 5, "them", "2026-01-02T03:04:05Z");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 4; i++) {
            (void)grant_to("a");
            json = write_over(json, &gives_way);
            assert_false(gives_way);
            assert_null(k8s_lease_parse(json, &lease));
            assert_true(lease.shared && lease.state == K8S_LEASE_OURS);
            grant_to("a")->granted = (struct stamp){.revision = 5, .time_ms = 1000};
            json = write_over(json, &gives_way); /* a renewal is no turn */
            offer_to("b");
            json = write_over(json, &gives_way);
            assert_true(gives_way == (i == 3));
        }
        assert_int_equal(record_offers(&record), 0);
        assert_int_equal(record.waiter_count, 1);
        assert_true(record.delay.length_ms > 2000);
        assert_null(spec_of(json, "holderIdentity"));
        assert_null(k8s_lease_parse(json, &lease));
        assert_int_equal(lease.state, K8S_LEASE_OURS);
    }
    json_decref(json);
}

static void nobody_else_wants_what_we_made(void **state)
{
    struct k8s_lease lease;
    bool gives_way;
    (void)state;
    (void)grant_to("a");
    json_t *json = make(NULL);
    store(json, 5, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    for (unsigned i = 0; i < 20; i++) {
        offer_to("b");
        json = write_over(json, &gives_way);
        assert_false(gives_way);
        (void)grant_to("b");
        json = write_over(json, &gives_way);
    }
    assert_null(k8s_lease_parse(json, &lease));
    assert_false(lease.shared);
    (void)json_object_set_new(json_object_get(json, "spec"), "holderIdentity", json_string("them"));
    (void)grant_to("a"); /* … until a process has held it */
    json = write_over(json, &gives_way);
    assert_null(k8s_lease_parse(json, &lease));
    assert_true(lease.shared && lease.made_by_us);
    json_decref(json);
}

/* Our record stays when another program takes the Lease: it is void then. */
static void another_holder_or_time_is_foreign(void **state)
{
    struct k8s_lease lease;
    (void)state;
    (void)grant_to("a");
    json_t *json = make(NULL), *spec = json_object_get(json, "spec");
    store(json, 5, K8S_HOLDER_MANAGER, "2026-01-02T03:04:05Z");
    (void)json_object_set_new(spec, "holderIdentity", json_string("them"));
    assert_null(k8s_lease_parse(json, &lease));
    assert_int_equal(lease.state, K8S_LEASE_FOREIGN);
    (void)json_object_set_new(spec, "holderIdentity", json_string("a"));
    (void)json_object_set_new(spec, "acquireTime", json_string("2026-01-02T03:04:05.000000Z"));
    assert_null(k8s_lease_parse(json, &lease));
    assert_int_equal(lease.state, K8S_LEASE_FOREIGN);
    (void)json_object_set_new(spec, "holderIdentity", json_string(""));
    assert_null(k8s_lease_parse(json, &lease));
    assert_int_equal(lease.state, K8S_LEASE_VACANT);
    json_decref(json);
}

static void a_foreign_holder_is_a_record_of_its_own(void **state)
{
    static char beside[RECORD_MAX + 1];
    struct k8s_lease lease = {.state = K8S_LEASE_FOREIGN,
                              .uid = "u-1",
                              .holder = "them",
                              .duration_ms = 15000,
                              .written = {.revision = 77, .time_ms = TIME_UNKNOWN}};
    struct codec_error error;
    (void)state;
    size_t length = k8s_lease_foreign_record(&lease, "k", NULL, &scratch, bytes, sizeof bytes);
    assert_int_equal(record_decode(bytes, length, &record, &error), DECODE_OK);
    assert_string_equal(record.grants[0].holder, "them");
    assert_int_equal(record.grants[0].ttl_ms, 15000);
    assert_int_equal(record.grants[0].renewed.revision, 77);
    assert_int_equal(record.grants[0].renewed.time_ms, TIME_UNKNOWN);
    assert_true(k8s_lease_is_foreign_grant(&lease, record.grants[0].request));
    assert_false(k8s_lease_is_foreign_grant(&lease, "r"));
    assert_true(is_foreign_grant(&record.grants[0]));
    record.grants[0].session = 7; /* of a process of ours that chose such a request id */
    assert_false(is_foreign_grant(&record.grants[0]));

    /* Waiters of the record are kept, with the current holder. */
    struct waiter *waiter = record_add_waiter(&record);
    text_copy(waiter->holder, sizeof waiter->holder, "we");
    text_copy(waiter->request, sizeof waiter->request, "r");
    waiter->session = 7;
    waiter->ttl_ms = 1000;
    assert_true(record_encode(&record, beside, sizeof beside) > 0);
    lease.written.revision = 78;
    length = k8s_lease_foreign_record(&lease, "k", beside, &scratch, bytes, sizeof bytes);
    assert_int_equal(record_decode(bytes, length, &record, &error), DECODE_OK);
    assert_int_equal(record.grants[0].renewed.revision, 78);
    assert_int_equal(record.waiter_count, 1);
    assert_string_equal(record.waiters[0].holder, "we");

    lease.holder = "line\nend";
    length = k8s_lease_foreign_record(&lease, "k", NULL, &scratch, bytes, sizeof bytes);
    assert_int_equal(record_decode(bytes, length, &record, &error), DECODE_OK);
    assert_string_equal(record.grants[0].holder, "another program");
}

static void a_foreign_lease_is_refused(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "[]",
        "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"abc\"}}",
        "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"0\"}}",
        "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"35184372088832\"}}",
        "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"-1\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct k8s_lease lease = {.duration_ms = 42};
        json_t *json = json_loads(wrong[i], 0, NULL);
        assert_non_null(k8s_lease_parse(json, &lease));
        assert_int_equal(lease.duration_ms, 42); /* untouched */
        json_decref(json);
    }
}

/* leaseTransitions is a 32-bit number to the API server; a reply can contain any other. */
static void a_count_of_changes_stays_one(void **state)
{
    static const json_int_t wrong[] = {INT64_MAX, INT32_MAX, -7, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)grant_to("a");
        json_t *json = make(NULL);
        (void)json_object_set_new(json_object_get(json, "spec"), "leaseTransitions",
                                  json_integer(wrong[i]));
        (void)grant_to("b");
        json_t *next = make(json);
        assert_int_equal(number_of(next, "leaseTransitions"), 0);
        json_decref(next);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_shows_in_the_spec),
        cmocka_unit_test(each_write_has_another_beat),
        cmocka_unit_test(writes_are_told_apart),
        cmocka_unit_test(a_change_of_holders_is_counted),
        cmocka_unit_test(foreign_fields_stay),
        cmocka_unit_test(our_offers_end_where_others_want_it_too),
        cmocka_unit_test(nobody_else_wants_what_we_made),
        cmocka_unit_test(another_holder_or_time_is_foreign),
        cmocka_unit_test(a_foreign_holder_is_a_record_of_its_own),
        cmocka_unit_test(a_foreign_lease_is_refused),
        cmocka_unit_test(a_count_of_changes_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

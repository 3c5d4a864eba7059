/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an object of Kubernetes, as a server or a person might write it. The oracle: a Lease
 * that can be read can be overwritten, and then has our record, and is vacant once we have left; a
 * foreign hold becomes a record that decodes; a workload that can be read can be judged. Built with
 * LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "http/yaml_json.h"
#include "store/k8s/k8s_lease.h"
#include "store/translate.h"
#include "workload/workload_object.h"
#include "wire/record_codec.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct record record, scratch;
static char bytes[RECORD_MAX + 1], again[RECORD_MAX + 1];

static void check_foreign(const struct k8s_lease *lease)
{
    struct codec_error error;
    size_t length = k8s_lease_foreign_record(lease, "k", NULL, &scratch, again, sizeof again);
    ASSERT(length > 0);
    ASSERT(record_decode(again, length, &scratch, &error) == DECODE_OK);
    ASSERT(k8s_lease_is_foreign_grant(lease, scratch.grants[0].request));
}

static void check_written(const json_t *before)
{
    struct k8s_lease lease;
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, "h");
    text_copy(grant->request, sizeof grant->request, "r");
    grant->session = 7;
    grant->ttl_ms = 1500;
    grant->granted = grant->renewed = (struct stamp){.revision = THIS_WRITE};
    size_t length = record_encode(&record, bytes, sizeof bytes);
    struct store_summary summary;
    summarize_record(&record, grant->session, &summary);
    struct k8s_lease_write write = {
        .name = "k", .key = "k", .bytes = bytes, .length = length, .summary = &summary};
    json_t *json = k8s_lease_make(before, &write);
    if (json == NULL)
        return; /* its annotations or its spec are invalid */
    ASSERT(k8s_lease_parse(json, &lease) == NULL && lease.state == K8S_LEASE_OURS);
    ASSERT(strcmp(lease.record, bytes) == 0 && lease.write_hash != 0);
    json_t *left = k8s_lease_vacate(json);
    ASSERT(k8s_lease_parse(left, &lease) == NULL && lease.state == K8S_LEASE_VACANT);
    json_decref(left);
    json_decref(json);
}

static void check_workload(const json_t *json)
{
    struct workload_view view;
    int64_t left_ms;
    const struct end_rules usual = {0};
    if (!workload_read(json, &usual, "k", "owner", &view))
        return;
    enum workload_verdict verdict = workload_judge(&view, 1000, 1700000000000, &left_ms);
    ASSERT(view.ours || verdict == WORKLOAD_BUSY || verdict == WORKLOAD_COOLING);
    ASSERT(left_ms >= -1);
    json_decref(workload_finalizer_patch(json));
    json_decref(workload_delete_options(&view));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k8s_lease lease;
    char text[160];
    struct text why;
    text_init(&why, text, sizeof text);
    json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (json == NULL)
        json = yaml_to_json((const char *)data, size, YAML_TYPED, &why);
    ASSERT(json != NULL || text[0] != '\0');
    if (json != NULL && k8s_lease_parse(json, &lease) == NULL) {
        ASSERT(lease.revision > 0 && lease.revision <= REVISION_MAX);
        if (lease.state == K8S_LEASE_FOREIGN)
            check_foreign(&lease);
        check_written(json);
    }
    check_workload(json);
    json_decref(json);
    return 0;
}

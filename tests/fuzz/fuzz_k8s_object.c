/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an object of Kubernetes, as a server or a person might write it. The oracle: a Lease
 * that can be read can be written over, and is then ours with that record, and vacant once we are
 * out of it; another's hold becomes a record that decodes; a workload that can be read can be
 * judged. Built with LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "io/yaml_json.h"
#include "store/k8s/object.h"
#include "store/k8s/workload_object.h"
#include "wire/record_codec.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct record record, scratch;
static char bytes[RECORD_MAX + 1], again[RECORD_MAX + 1];

static void check_foreign(const struct object *object)
{
    struct codec_error error;
    size_t length = object_foreign_record(object, "k", NULL, &scratch, again, sizeof again);
    ASSERT(length > 0);
    ASSERT(record_decode(again, length, &scratch, &error) == DECODE_OK);
    ASSERT(object_foreign_grant(object, &scratch) != NULL);
}

static void check_written(const json_t *before)
{
    struct object object;
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, "h");
    text_copy(grant->request, sizeof grant->request, "r");
    grant->session = 7;
    grant->ttl_ms = 1500;
    grant->granted = grant->renewed = (struct stamp){.revision = THIS_WRITE};
    size_t length = record_encode(&record, bytes, sizeof bytes);
    struct object_write write = {
        .name = "k", .key = "k", .bytes = bytes, .length = length, .record = &record};
    json_t *json = object_make(before, &write);
    if (json == NULL)
        return; /* its annotations, or its spec, are none */
    ASSERT(object_read(json, &object) == NULL && object.state == OBJECT_OURS);
    ASSERT(strcmp(object.record, bytes) == 0 && object.print != 0);
    json_t *left = object_vacate(json);
    ASSERT(object_read(left, &object) == NULL && object.state == OBJECT_VACANT);
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
    json_decref(workload_unfinalized(json));
    json_decref(workload_deletion(&view));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct object object;
    char words[160];
    struct text why;
    text_init(&why, words, sizeof words);
    json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (json == NULL)
        json = yaml_to_json((const char *)data, size, YAML_TYPED, &why);
    ASSERT(json != NULL || words[0] != '\0');
    if (json != NULL && object_read(json, &object) == NULL) {
        ASSERT(object.revision > 0 && object.revision <= REVISION_MAX);
        if (object.state == OBJECT_FOREIGN)
            check_foreign(&object);
        check_written(json);
    }
    check_workload(json);
    json_decref(json);
    return 0;
}

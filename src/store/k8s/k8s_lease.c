/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See k8s_lease.h. The time of a write is the API server's own, from managedFields. An old server
 * updates that time only if the set of fields changes. So each write alternates between two
 * annotation names; the value names the field manager of the write.
 */
#include "store/k8s/k8s_lease.h"

#include "base/hash.h"
#include "http/kube_api.h"
#include "store/translate.h"
#include "wire/k8s_url.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANNOTATION_KEY    "leasehold/key"
#define ANNOTATION_RECORD "leasehold/record"
#define ANNOTATION_SHOWN  "leasehold/shown" /* holder and acquireTime, as we wrote them */
#define ANNOTATION_ROW \
    "leasehold/row" /* of a Lease that other programs use: see k8s_lease_streak() */
#define ANNOTATION_WRITE  "leasehold/write" /* unique per write */
#define ANNOTATION_BEAT_A "leasehold/beat-a"
#define ANNOTATION_BEAT_B "leasehold/beat-b"
#define ANNOTATION_EPOCH  "leasehold/epoch" /* of the write; none in epoch 0 */

static const char *const own_annotations[] = {
    ANNOTATION_KEY,   ANNOTATION_RECORD, ANNOTATION_SHOWN,  ANNOTATION_ROW,
    ANNOTATION_WRITE, ANNOTATION_BEAT_A, ANNOTATION_BEAT_B, ANNOTATION_EPOCH};

enum { TIME_TEXT = 32, SHOWN = HOLDER_MAX + TIME_TEXT + 2 };
enum { STREAK_MAX = 3, YIELD_MS = 3000 }; /* client-go polls about every 2 s */

static const json_t *annotations_of(const json_t *json)
{
    return json_object_get(json_object_get(json, "metadata"), "annotations");
}

static void lease_format_shown(const char *holder, const char *acquired, char out[SHOWN])
{
    (void)snprintf(out, SHOWN, "%s %.*s", acquired, HOLDER_MAX, holder);
}

/* ---- times ---- */

static void lease_format_time(int64_t wall_ms, char out[TIME_TEXT])
{
    time_t seconds = wall_ms / 1000;
    struct tm tm;
    size_t length = strftime(out, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    (void)snprintf(out + length, TIME_TEXT - length, ".%03d000Z", (int)(wall_ms % 1000));
}

static int64_t written_ms(const json_t *metadata, const json_t *annotations)
{
    const char *beat = kube_string(annotations, ANNOTATION_BEAT_A);
    if (*beat == '\0')
        beat = kube_string(annotations, ANNOTATION_BEAT_B);
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(metadata, "managedFields"), index, entry)
    {
        if (*beat == '\0' || strcmp(kube_string(entry, "manager"), beat) != 0)
            continue;
        int64_t time_ms = kube_time_ms(kube_string(entry, "time"));
        return time_ms >= 0 ? time_ms : TIME_UNKNOWN;
    }
    return TIME_UNKNOWN;
}

/* ---- reading ---- */

static bool read_revision(const char *text, uint64_t *out)
{
    char *end = NULL;
#ifndef LH_FUZZ_PLANT /* planted bug for the fuzzer: accepts revision 0 */
    if (*text < '1' || *text > '9')
        return false;
#endif
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out <= REVISION_MAX;
}

bool k8s_epoch_parse(const char *text, uint16_t *out)
{
    char *end = NULL;
    unsigned long epoch = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    *out = (uint16_t)epoch;
    return *text == '\0' || (end != NULL && *end == '\0' && epoch <= EPOCH_MAX);
}

/* The hash covers the record: an edit by hand makes it another write. */
static uint64_t lease_write_hash(const json_t *annotations, const struct k8s_lease *lease)
{
    const char *const parts[] = {kube_string(annotations, ANNOTATION_WRITE), lease->uid,
                                 lease->record, kube_string(annotations, ANNOTATION_EPOCH)};
    uint64_t write_hash = 0;
    if (parts[0][0] == '\0')
        return 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        write_hash = hash_bytes(write_hash, parts[i], strlen(parts[i]));
    return write_hash;
}

const char *k8s_lease_parse(const json_t *json, struct k8s_lease *out)
{
    const json_t *metadata = json_object_get(json, "metadata"), *annotations = annotations_of(json);
    const json_t *spec = json_object_get(json, "spec");
    struct k8s_lease lease = {.name = kube_string(metadata, "name"),
                              .uid = kube_string(metadata, "uid"),
                              .holder = kube_string(spec, "holderIdentity"),
                              .record = kube_string(annotations, ANNOTATION_RECORD)};
    char shown[SHOWN];
    if (lease.name[0] == '\0' || lease.uid[0] == '\0' || strlen(lease.uid) > K8S_UID_MAX ||
        !text_is_clean(lease.uid, strlen(lease.uid)))
        return "the API server's reply is not a Lease";
    if (strlen(lease.name) > K8S_NAME_MAX)
        return "the Lease's name is too long";
    if (!read_revision(kube_string(metadata, "resourceVersion"), &lease.revision))
        return "the Lease's resourceVersion is not a number usable for tokens";
    json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    lease.duration_ms = seconds > 0 && seconds < TTL_MAX_MS / 1000 ? seconds * 1000 : TTL_MAX_MS;
    lease.key = json_string_value(json_object_get(annotations, ANNOTATION_KEY));
    lease.made_by_us = strcmp(kube_string(json_object_get(metadata, "labels"), K8S_LEASE_LABEL),
                              K8S_LEASE_LABEL_VALUE) == 0;
    lease_format_shown(lease.holder, kube_string(spec, "acquireTime"), shown);
    bool names_us =
        lease.key != NULL && lease.record[0] != '\0' &&
        (lease.holder[0] == '\0' ? kube_string(annotations, ANNOTATION_SHOWN)[0] == '\0'
                                 : strcmp(shown, kube_string(annotations, ANNOTATION_SHOWN)) == 0);
    lease.state = names_us                  ? K8S_LEASE_OURS
                  : lease.holder[0] != '\0' ? K8S_LEASE_FOREIGN
                                            : K8S_LEASE_VACANT;
    lease.written =
        (struct stamp){.revision = lease.revision,
                       .time_ms = names_us ? written_ms(metadata, annotations) : TIME_UNKNOWN};
    if (names_us &&
        !k8s_epoch_parse(kube_string(annotations, ANNOTATION_EPOCH), &lease.written.epoch))
        return "the Lease's epoch is not a number usable for tokens";
    lease.streak =
        names_us ? (unsigned)strtoul(kube_string(annotations, ANNOTATION_ROW), NULL, 10) : 0;
    lease.shared = !lease.made_by_us || !names_us || lease.streak > 0;
    lease.write_hash = names_us ? lease_write_hash(annotations, &lease) : 0;
    lease.terminating = kube_string(metadata, "deletionTimestamp")[0] != '\0';
    *out = lease;
    return NULL;
}

static void name_foreign(const struct k8s_lease *lease, char out[REQUEST_MAX + 1])
{
    (void)snprintf(out, REQUEST_MAX + 1, FOREIGN_LEASE "%s", lease->uid);
}

bool k8s_lease_is_foreign_grant(const struct k8s_lease *lease, const char *request)
{
    char foreign[REQUEST_MAX + 1];
    name_foreign(lease, foreign);
    return strcmp(request, foreign) == 0;
}

size_t k8s_lease_foreign_record(const struct k8s_lease *lease, const char *key,
                                const char *local_record, struct record *scratch, char *bytes,
                                size_t size)
{
    static const char nameless[] = "another program";
    struct codec_error error;
    size_t length = strlen(lease->holder);
    if (local_record == NULL ||
        record_decode(local_record, strlen(local_record), scratch, &error) != DECODE_OK)
        record_init(scratch, key);
    scratch->grant_count = 0;
    struct grant *grant = record_add_grant(scratch);
    /* The name is only displayed, never compared; our names have limits. */
    bool shows = length <= HOLDER_MAX && text_is_clean(lease->holder, length);
    text_copy(grant->holder, sizeof grant->holder, shows ? lease->holder : nameless);
    name_foreign(lease, grant->request);
    grant->session = FOREIGN_LEASE_SESSION;
    grant->ttl_ms = lease->duration_ms;
    /* Its clock is unknown: it expires once a waiter sees it unchanged for its whole duration. */
    grant->granted = grant->renewed =
        (struct stamp){.revision = lease->written.revision, .time_ms = TIME_UNKNOWN};
    return record_encode(scratch, bytes, size);
}

/* ---- writing ---- */

/*
 * Our waiters are notified of a release at once; other programs poll. Without a limit on our offers
 * they would never acquire the Lease. So the Lease stays free for some time, as after a crash.
 */
bool k8s_lease_gives_way(const struct k8s_lease *lease, const struct store_summary *summary)
{
    return lease->shared && lease->streak > 1 + STREAK_MAX && summary->grants == 0 &&
           summary->offers > 0;
}

void k8s_lease_give_way(struct record *record)
{
    static const struct span yielded = {.length_ms = YIELD_MS, .by = "other programs"};
    for (size_t i = 0; i < record->waiter_count; i++)
        record->waiters[i].offered = false;
    record->delay = yielded;
}

unsigned k8s_lease_streak(const struct k8s_lease *lease, const struct store_summary *summary,
                          bool gives_way)
{
    unsigned streak = lease->streak > 0 && !gives_way ? lease->streak : 1;
    if (!lease->shared)
        return 0;
    return streak + (summary->new_grants > 0 ? 1 : 0);
}

/* The fields that other programs read. Only a new holder changes leaseTransitions. */
static bool fill_spec(json_t *spec, json_t *annotations, const struct k8s_lease_write *write)
{
    char now[TIME_TEXT], shown[SHOWN];
    const struct store_summary *summary = write->summary;
    if (summary->grants == 0) {
        (void)json_object_del(spec, "holderIdentity");
        return kube_set_string(annotations, ANNOTATION_SHOWN, "");
    }
    const json_t *known = json_object_get(spec, "leaseTransitions");
    bool is_new =
        summary->token == 0 || strcmp(kube_string(spec, "holderIdentity"), summary->holder) != 0;
    bool good = true;
    lease_format_time(write->wall_ms, now);
    if (is_new) {
        json_int_t before = known != NULL ? json_integer_value(known) : -1;
        json_int_t changes = before >= 0 && before < INT32_MAX ? before + 1 : 0;
        good = kube_set_string(spec, "acquireTime", now) &&
               json_object_set_new(spec, "leaseTransitions", json_integer(changes)) == 0;
    }
    if (is_new || summary->renewed)
        good = good && kube_set_string(spec, "renewTime", now);
    lease_format_shown(summary->holder, kube_string(spec, "acquireTime"), shown);
    json_int_t seconds = (summary->ttl_ms + 999) / 1000;
    return good && kube_set_string(spec, "holderIdentity", summary->holder) &&
           json_object_set_new(spec, "leaseDurationSeconds",
                               json_integer(seconds > 0 ? seconds : 1)) == 0 &&
           kube_set_string(annotations, ANNOTATION_SHOWN, shown);
}

const char *k8s_lease_manager(const struct store_summary *summary)
{
    return summary->renewed_grants > 0 ? K8S_HOLDER_MANAGER : K8S_WAITER_MANAGER;
}

static bool fill_annotations(json_t *annotations, const struct k8s_lease_write *write)
{
    char number[48];
    bool was_a = json_object_get(annotations, ANNOTATION_BEAT_A) != NULL;
    const char *manager = k8s_lease_manager(write->summary);
    (void)json_object_del(annotations, was_a ? ANNOTATION_BEAT_A : ANNOTATION_BEAT_B);
    (void)snprintf(number, sizeof number, "%" PRIx64 "-%" PRIu64, write->session, write->number);
    return kube_set_string(annotations, ANNOTATION_KEY, write->key) &&
           kube_set_string(annotations, ANNOTATION_WRITE, number) &&
           json_object_set_new(annotations, ANNOTATION_RECORD,
                               json_stringn(write->bytes, write->length)) == 0 &&
           kube_set_string(annotations, was_a ? ANNOTATION_BEAT_B : ANNOTATION_BEAT_A, manager) &&
           (write->epoch == 0 || json_object_set_new(annotations, ANNOTATION_EPOCH,
                                                     json_sprintf("%u", write->epoch)) == 0) &&
           (write->streak == 0 || json_object_set_new(annotations, ANNOTATION_ROW,
                                                      json_sprintf("%u", write->streak)) == 0);
}

static json_t *new_lease(const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{}}", "apiVersion", "coordination.k8s.io/v1",
                     "kind", "Lease", "metadata", "name", name, "labels", K8S_LEASE_LABEL,
                     K8S_LEASE_LABEL_VALUE, "spec");
}

json_t *k8s_lease_make(const json_t *before, const struct k8s_lease_write *write)
{
    json_t *json = before != NULL ? json_deep_copy(before) : new_lease(write->name);
    json_t *metadata = kube_child(json, "metadata"), *spec = kube_child(json, "spec");
    json_t *annotations = kube_child(metadata, "annotations");
    (void)json_object_del(metadata, "managedFields"); /* the server maintains them */
    if (annotations == NULL || spec == NULL || !fill_annotations(annotations, write) ||
        !fill_spec(spec, annotations, write)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* ---- replies ---- */

/* An empty string equals a missing one. */
static bool is_same_member(const json_t *sent, const json_t *got)
{
    if (sent != NULL && got != NULL)
        return json_equal(sent, got) != 0;
    return json_string_length(sent) == 0 && json_string_length(got) == 0 &&
           (sent == NULL || json_is_string(sent)) && (got == NULL || json_is_string(got));
}

const char *k8s_lease_changed(const json_t *sent, const json_t *got)
{
    static const char *const shown[] = {"holderIdentity", "acquireTime", "leaseDurationSeconds"};
    const json_t *sent_spec = json_object_get(sent, "spec"), *spec = json_object_get(got, "spec");
    for (size_t i = 0; i < sizeof own_annotations / sizeof own_annotations[0]; i++) {
        const char *name = own_annotations[i];
        if (!is_same_member(json_object_get(annotations_of(sent), name),
                            json_object_get(annotations_of(got), name)))
            return name;
    }
    /* The times of a Lease without a holder have no meaning. */
    bool held = kube_string(sent_spec, "holderIdentity")[0] != '\0';
    for (size_t i = 0; i < (held ? sizeof shown / sizeof shown[0] : 1); i++) {
        if (!is_same_member(json_object_get(sent_spec, shown[i]), json_object_get(spec, shown[i])))
            return shown[i];
    }
    return NULL;
}

bool k8s_lease_is_only_grant(const struct store_summary *summary)
{
    return summary->grants > 0 && summary->new_grants == summary->grants && summary->waiters == 0 &&
           summary->kind == KIND_LOCK && summary->spans_ms == 0;
}

/* ---- deletion ---- */

json_t *k8s_lease_delete_options(const struct k8s_lease *lease)
{
    char revision[24];
    (void)snprintf(revision, sizeof revision, "%" PRIu64, lease->revision);
    return json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                     "preconditions", "uid", lease->uid, "resourceVersion", revision);
}

json_t *k8s_lease_vacate(const json_t *before)
{
    json_t *json = json_deep_copy(before);
    json_t *metadata = json_object_get(json, "metadata");
    for (size_t i = 0; i < sizeof own_annotations / sizeof own_annotations[0]; i++)
        (void)json_object_del(json_object_get(metadata, "annotations"), own_annotations[i]);
    (void)json_object_del(metadata, "managedFields");
    (void)json_object_del(json_object_get(json, "spec"), "holderIdentity");
    return json;
}

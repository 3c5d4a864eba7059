/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See object.h. The time of a write is the API server's own, from managedFields. An old server
 * renews that time only when the set of fields changes; so each write carries an annotation whose
 * name is not the one of the write before, and whose value says which field manager wrote.
 */
#include "store/k8s/object.h"

#include "io/kube_ask.h"
#include "wire/k8s_url.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOTE_KEY    "leasehold/key"
#define NOTE_RECORD "leasehold/record"
#define NOTE_SHOWN  "leasehold/shown" /* holder and acquireTime, as we wrote them */
#define NOTE_ROW    "leasehold/row"   /* of a Lease that others want, too: see object_row() */
#define NOTE_WRITE  "leasehold/write" /* never the same twice */
#define NOTE_BEAT_A "leasehold/beat-a"
#define NOTE_BEAT_B "leasehold/beat-b"

static const char *const notes_of_ours[] = {NOTE_KEY,   NOTE_RECORD, NOTE_SHOWN, NOTE_ROW,
                                            NOTE_WRITE, NOTE_BEAT_A, NOTE_BEAT_B};

enum { MOMENT = 32, SHOWN = HOLDER_MAX + MOMENT + 2 };
enum { OFFERS_IN_A_ROW = 3, WAY_MS = 3000 }; /* client-go looks every 2 s or so */

static const json_t *notes_of(const json_t *json)
{
    return json_object_get(json_object_get(json, "metadata"), "annotations");
}

static void show(const char *holder, const char *acquired, char out[SHOWN])
{
    (void)snprintf(out, SHOWN, "%s %.*s", acquired, HOLDER_MAX, holder);
}

/* ---- times ---- */

static void write_moment(int64_t wall_ms, char out[MOMENT])
{
    time_t seconds = wall_ms / 1000;
    struct tm tm;
    size_t length = strftime(out, MOMENT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    (void)snprintf(out + length, MOMENT - length, ".%03d000Z", (int)(wall_ms % 1000));
}

static int64_t written_ms(const json_t *metadata, const json_t *notes)
{
    const char *beat = kube_words(notes, NOTE_BEAT_A);
    if (*beat == '\0')
        beat = kube_words(notes, NOTE_BEAT_B);
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(metadata, "managedFields"), index, entry)
    {
        if (*beat == '\0' || strcmp(kube_words(entry, "manager"), beat) != 0)
            continue;
        int64_t time_ms = kube_moment_ms(kube_words(entry, "time"));
        return time_ms >= 0 ? time_ms : TIME_UNKNOWN;
    }
    return TIME_UNKNOWN;
}

/* ---- reading ---- */

static bool read_revision(const char *words, uint64_t *out)
{
    char *end = NULL;
#ifndef LH_FUZZ_PLANT /* shows that the fuzzer can find: a revision that stands for none */
    if (*words < '1' || *words > '9')
        return false;
#endif
    *out = strtoull(words, &end, 10);
    return *end == '\0' && *out <= REVISION_MAX;
}

/* A record that somebody changed by hand is not the one that was written. */
static uint64_t print_of(const json_t *notes, const struct object *object)
{
    const char *const parts[] = {kube_words(notes, NOTE_WRITE), object->uid, object->record};
    uint64_t print = 0xcbf29ce484222325U;
    if (parts[0][0] == '\0')
        return 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (const char *at = parts[i]; *at != '\0'; at++)
            print = (print ^ (unsigned char)*at) * 0x100000001b3U;
    }
    return print;
}

const char *object_read(const json_t *json, struct object *out)
{
    const json_t *metadata = json_object_get(json, "metadata"), *notes = notes_of(json);
    const json_t *spec = json_object_get(json, "spec");
    struct object object = {.name = kube_words(metadata, "name"),
                            .uid = kube_words(metadata, "uid"),
                            .holder = kube_words(spec, "holderIdentity"),
                            .record = kube_words(notes, NOTE_RECORD)};
    char shown[SHOWN];
    if (object.name[0] == '\0' || object.uid[0] == '\0' || strlen(object.uid) > OBJECT_UID_MAX ||
        !text_is_clean(object.uid, strlen(object.uid)))
        return "the API server's answer is no Lease";
    if (strlen(object.name) > K8S_NAME_MAX)
        return "the Lease's name is longer than ours are";
    if (!read_revision(kube_words(metadata, "resourceVersion"), &object.revision))
        return "the Lease's resourceVersion is no number that tokens can be made of";
    json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    object.duration_ms = seconds > 0 && seconds < TTL_MAX_MS / 1000 ? seconds * 1000 : TTL_MAX_MS;
    object.key = json_string_value(json_object_get(notes, NOTE_KEY));
    object.made_by_us = strcmp(kube_words(json_object_get(metadata, "labels"), OBJECT_LABEL),
                               OBJECT_LABEL_VALUE) == 0;
    show(object.holder, kube_words(spec, "acquireTime"), shown);
    bool names_us = object.key != NULL && object.record[0] != '\0' &&
                    (object.holder[0] == '\0' ? kube_words(notes, NOTE_SHOWN)[0] == '\0'
                                              : strcmp(shown, kube_words(notes, NOTE_SHOWN)) == 0);
    object.state = names_us                   ? OBJECT_OURS
                   : object.holder[0] != '\0' ? OBJECT_FOREIGN
                                              : OBJECT_VACANT;
    object.written =
        (struct stamp){.revision = object.revision,
                       .time_ms = names_us ? written_ms(metadata, notes) : TIME_UNKNOWN};
    object.row = names_us ? (unsigned)strtoul(kube_words(notes, NOTE_ROW), NULL, 10) : 0;
    object.shared = !object.made_by_us || !names_us || object.row > 0;
    object.print = names_us ? print_of(notes, &object) : 0;
    object.leaving = kube_words(metadata, "deletionTimestamp")[0] != '\0';
    *out = object;
    return NULL;
}

static void name_foreign(const struct object *object, char out[REQUEST_MAX + 1])
{
    (void)snprintf(out, REQUEST_MAX + 1, "lease-%s", object->uid);
}

const struct grant *object_foreign_grant(const struct object *object, struct record *record)
{
    char request[REQUEST_MAX + 1];
    name_foreign(object, request);
    return record_grant_by_request(record, request);
}

size_t object_foreign_record(const struct object *object, const char *key, const char *beside,
                             struct record *scratch, char *bytes, size_t size)
{
    static const char nameless[] = "another program";
    struct codec_error error;
    size_t length = strlen(object->holder);
    if (beside == NULL || record_decode(beside, strlen(beside), scratch, &error) != DECODE_OK)
        record_init(scratch, key);
    scratch->grant_count = 0;
    struct grant *grant = record_add_grant(scratch);
    /* Its name is shown, not compared; ours have limits. */
    bool shows = length <= HOLDER_MAX && text_is_clean(object->holder, length);
    text_copy(grant->holder, sizeof grant->holder, shows ? object->holder : nameless);
    name_foreign(object, grant->request);
    grant->session = 1; /* nobody's */
    grant->ttl_ms = object->duration_ms;
    /* Its clock is not ours to read: whoever sees it unchanged for its whole length may take it. */
    grant->granted = grant->renewed =
        (struct stamp){.revision = object->written.revision, .time_ms = TIME_UNKNOWN};
    return record_encode(scratch, bytes, size);
}

/* ---- writing ---- */

bool object_is_grant(const struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        if (record->grants[i].granted.revision == THIS_WRITE)
            return true;
    }
    return false;
}

bool object_is_renewal(const struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant->granted.revision == THIS_WRITE || grant->renewed.revision == THIS_WRITE)
            return true;
    }
    return false;
}

/*
 * Who waits for us hears of a release at once, other programs only when they look: without an end
 * of our offers they would never come in. So the Lease stands open for a while, as after a crash.
 */
bool object_gives_way(const struct object *object, struct record *record)
{
    static const struct span way = {.length_ms = WAY_MS, .by = "other programs"};
    if (!object->shared || object->row <= 1 + OFFERS_IN_A_ROW || record->grant_count > 0 ||
        record_offers(record) == 0)
        return false;
    for (size_t i = 0; i < record->place_count; i++)
        record->places[i].offered = false;
    record->delay = way;
    return true;
}

unsigned object_row(const struct object *object, const struct record *record, bool gives_way)
{
    unsigned row = object->row > 0 && !gives_way ? object->row : 1;
    if (!object->shared)
        return 0;
    return row + (object_is_grant(record) ? 1 : 0);
}

/* What others read. Somebody new at the head begins anew; the count of changes goes on. */
static bool fill_spec(json_t *spec, json_t *notes, const struct object_write *write)
{
    char now[MOMENT], shown[SHOWN];
    const struct record *record = write->record;
    if (record->grant_count == 0) {
        (void)json_object_del(spec, "holderIdentity");
        return kube_set_words(notes, NOTE_SHOWN, "");
    }
    const struct grant *grant = &record->grants[0];
    const json_t *known = json_object_get(spec, "leaseTransitions");
    bool is_new = grant->granted.revision == THIS_WRITE ||
                  strcmp(kube_words(spec, "holderIdentity"), grant->holder) != 0;
    bool good = true;
    write_moment(write->wall_ms, now);
    if (is_new) {
        json_int_t before = known != NULL ? json_integer_value(known) : -1;
        json_int_t changes = before >= 0 && before < INT32_MAX ? before + 1 : 0;
        good = kube_set_words(spec, "acquireTime", now) &&
               json_object_set_new(spec, "leaseTransitions", json_integer(changes)) == 0;
    }
    if (is_new || grant->renewed.revision == THIS_WRITE)
        good = good && kube_set_words(spec, "renewTime", now);
    show(grant->holder, kube_words(spec, "acquireTime"), shown);
    json_int_t seconds = (grant->ttl_ms + 999) / 1000;
    return good && kube_set_words(spec, "holderIdentity", grant->holder) &&
           json_object_set_new(spec, "leaseDurationSeconds",
                               json_integer(seconds > 0 ? seconds : 1)) == 0 &&
           kube_set_words(notes, NOTE_SHOWN, shown);
}

static bool fill_notes(json_t *notes, const struct object_write *write)
{
    char number[48];
    bool was_a = json_object_get(notes, NOTE_BEAT_A) != NULL;
    const char *manager =
        object_is_renewal(write->record) ? OBJECT_HOLDER_WRITE : OBJECT_WAITER_WRITE;
    (void)json_object_del(notes, was_a ? NOTE_BEAT_A : NOTE_BEAT_B);
    (void)snprintf(number, sizeof number, "%" PRIx64 "-%" PRIu64, write->session, write->number);
    return kube_set_words(notes, NOTE_KEY, write->key) &&
           kube_set_words(notes, NOTE_WRITE, number) &&
           json_object_set_new(notes, NOTE_RECORD, json_stringn(write->bytes, write->length)) ==
               0 &&
           kube_set_words(notes, was_a ? NOTE_BEAT_B : NOTE_BEAT_A, manager) &&
           (write->row == 0 ||
            json_object_set_new(notes, NOTE_ROW, json_sprintf("%u", write->row)) == 0);
}

static json_t *new_lease(const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{}}", "apiVersion", "coordination.k8s.io/v1",
                     "kind", "Lease", "metadata", "name", name, "labels", OBJECT_LABEL,
                     OBJECT_LABEL_VALUE, "spec");
}

json_t *object_make(const json_t *before, const struct object_write *write)
{
    json_t *json = before != NULL ? json_deep_copy(before) : new_lease(write->name);
    json_t *metadata = kube_child(json, "metadata"), *spec = kube_child(json, "spec");
    json_t *notes = kube_child(metadata, "annotations");
    (void)json_object_del(metadata, "managedFields"); /* the server keeps them */
    if (notes == NULL || spec == NULL || !fill_notes(notes, write) ||
        !fill_spec(spec, notes, write)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* ---- what came back ---- */

/* An empty text and none are the same. */
static bool is_same(const json_t *sent, const json_t *got)
{
    if (sent != NULL && got != NULL)
        return json_equal(sent, got) != 0;
    return json_string_length(sent) == 0 && json_string_length(got) == 0 &&
           (sent == NULL || json_is_string(sent)) && (got == NULL || json_is_string(got));
}

const char *object_changed(const json_t *sent, const json_t *got)
{
    static const char *const shown[] = {"holderIdentity", "acquireTime", "leaseDurationSeconds"};
    const json_t *sent_spec = json_object_get(sent, "spec"), *spec = json_object_get(got, "spec");
    for (size_t i = 0; i < sizeof notes_of_ours / sizeof notes_of_ours[0]; i++) {
        const char *name = notes_of_ours[i];
        if (!is_same(json_object_get(notes_of(sent), name), json_object_get(notes_of(got), name)))
            return name;
    }
    /* Of a Lease that nobody holds the times say nothing. */
    bool held = kube_words(sent_spec, "holderIdentity")[0] != '\0';
    for (size_t i = 0; i < (held ? sizeof shown / sizeof shown[0] : 1); i++) {
        if (!is_same(json_object_get(sent_spec, shown[i]), json_object_get(spec, shown[i])))
            return shown[i];
    }
    return NULL;
}

bool object_is_only_grant(const struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        if (record->grants[i].granted.revision != THIS_WRITE)
            return false;
    }
    return record->grant_count > 0 && record->place_count == 0 && record->kind == KIND_LOCK &&
           record->cooling.length_ms == 0 && record->delay.length_ms == 0;
}

/* ---- the end of it ---- */

json_t *object_deletion(const struct object *object)
{
    char revision[24];
    (void)snprintf(revision, sizeof revision, "%" PRIu64, object->revision);
    return json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                     "preconditions", "uid", object->uid, "resourceVersion", revision);
}

json_t *object_vacate(const json_t *before)
{
    json_t *json = json_deep_copy(before);
    json_t *metadata = json_object_get(json, "metadata");
    for (size_t i = 0; i < sizeof notes_of_ours / sizeof notes_of_ours[0]; i++)
        (void)json_object_del(json_object_get(metadata, "annotations"), notes_of_ours[i]);
    (void)json_object_del(metadata, "managedFields");
    (void)json_object_del(json_object_get(json, "spec"), "holderIdentity");
    return json;
}

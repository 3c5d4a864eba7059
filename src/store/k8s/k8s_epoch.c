/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoch of a Kubernetes store: an annotation of one Lease of the namespace, and of each
 * record's Lease, for the epoch of its last write. The API server cannot compare two objects in one
 * write. So a process sends a grant only with an epoch that it read at most EPOCH_FRESH_MS ago, and
 * a raise waits for longer than that before it reports success. A renewal needs no epoch and waits
 * for none.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The annotation is not that of a record, which a release removes. */
#define EPOCH_ANNOTATION "leasehold/store-epoch"

enum { RAISE_WAITS_MS = EPOCH_FRESH_MS + 1000, TRIES_MAX = 5 };

/* ---- for grants ---- */

bool k8s_epoch_is_due(const struct k8s *k8s)
{
    return k8s->epoch.read_ms == 0 || host_boot_ms() - k8s->epoch.read_ms >= EPOCH_REREAD_MS;
}

void k8s_epoch_path(const struct k8s *k8s, char out[LEASES_PATH + K8S_NAME_MAX + 2])
{
    (void)snprintf(out, LEASES_PATH + K8S_NAME_MAX + 2, "%s/" K8S_EPOCH_LEASE, k8s->leases);
}

static const char *epoch_in(const json_t *lease, uint16_t *out)
{
    const json_t *metadata = json_object_get(lease, "metadata");
    const char *text = kube_string(json_object_get(metadata, "annotations"), EPOCH_ANNOTATION);
    if (strcmp(kube_string(metadata, "name"), K8S_EPOCH_LEASE) != 0)
        return "the API server's reply is not the Lease " K8S_EPOCH_LEASE;
    return k8s_epoch_parse(text, out) ? NULL
                                      : "the epoch in the Lease " K8S_EPOCH_LEASE
                                        " is not a number from 1 to 255";
}

void k8s_epoch_observe(struct k8s *k8s, uint16_t epoch)
{
    if (epoch > k8s->epoch.value)
        k8s->epoch.value = epoch;
}

const char *k8s_epoch_take(struct k8s *k8s, const json_t *lease, int64_t sent_ms)
{
    uint16_t epoch = 0;
    const char *wrong = lease != NULL ? epoch_in(lease, &epoch) : NULL;
    if (wrong != NULL)
        return wrong;
    k8s_epoch_observe(k8s, epoch);
    k8s->epoch.read_ms = sent_ms;
    return NULL;
}

/* ---- for operators ---- */

static void epoch_call(struct k8s *k8s, const char *method, const char *path, json_t *body,
                       struct json_result *out)
{
    struct json_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .most = LEASE_REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + k8s->callbacks.timeout_ms};
    json_api_call(k8s->kube.json, &call, out);
    json_decref(body);
}

static enum reply_status k8s_epoch_refused(const struct json_result *result, struct text *why)
{
    text_add(why, result->why);
    return result->status == 401 || result->status == 403 ? REPLY_DENIED : REPLY_TROUBLE;
}

/* Without the label of our Leases: neither lists nor the collector have to do with it. */
static json_t *epoch_lease(const json_t *before, uint16_t epoch)
{
    json_t *json = before != NULL
                       ? json_deep_copy(before)
                       : json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "coordination.k8s.io/v1",
                                   "kind", "Lease", "metadata", "name", K8S_EPOCH_LEASE);
    json_t *annotations = kube_child(kube_child(json, "metadata"), "annotations");
    if (annotations == NULL ||
        json_object_set_new(annotations, EPOCH_ANNOTATION, json_sprintf("%u", epoch)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* A lock of a version that did not reserve the name: its release would delete the epoch. */
static bool epoch_is_lock(const json_t *lease)
{
    const json_t *labels = json_object_get(json_object_get(lease, "metadata"), "labels");
    return strcmp(kube_string(labels, K8S_LEASE_LABEL), K8S_LEASE_LABEL_VALUE) == 0;
}

/* Reads the Lease, and writes it if its epoch is too low. True: try again, it has changed. */
static bool epoch_try(struct k8s *k8s, uint16_t least, struct epoch_state *out,
                      enum reply_status *out_result, struct text *why)
{
    char path[LEASES_PATH + K8S_NAME_MAX + 2];
    struct json_result read = {0}, written = {0};
    k8s_epoch_path(k8s, path);
    epoch_call(k8s, "GET", path, NULL, &read);
    bool there = read.status == 200, again = false;
    const char *wrong = there ? epoch_in(read.json, &out->epoch) : NULL;
    bool missing =
        read.status == 404 &&
        strcmp(kube_string(json_object_get(read.json, "details"), "kind"), "leases") == 0;
    if (wrong == NULL && there && least > 0 && epoch_is_lock(read.json))
        wrong = "the Lease " K8S_EPOCH_LEASE
                " is a lock of an older version: delete it, then raise --above a token";
    out->now_ms = read.now_ms != TIME_UNKNOWN ? read.now_ms : -1;
    *out_result = REPLY_OK;
    if (wrong != NULL) {
        text_add(why, wrong);
        *out_result = REPLY_TROUBLE;
    } else if (!there && !missing) {
        *out_result = k8s_epoch_refused(&read, why);
    } else if (out->epoch < least) {
        json_t *body = epoch_lease(there ? read.json : NULL, least);
        epoch_call(k8s, there ? "PUT" : "POST", there ? path : k8s->leases, body, &written);
        again = written.status == 409;
        if (written.status == 200 || written.status == 201)
            out->epoch = least;
        else if (!again)
            *out_result = k8s_epoch_refused(&written, why);
    }
    json_result_done(&read);
    json_result_done(&written);
    return again;
}

/* Until no process has an older epoch that it may still use. */
static void epoch_wait(void)
{
    struct timespec rest = {.tv_sec = RAISE_WAITS_MS / 1000,
                            .tv_nsec = (long)(RAISE_WAITS_MS % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

/* The revision of the whole cluster; 0 if we may not list. */
static uint64_t epoch_revision(struct k8s *k8s)
{
    char path[LEASES_PATH + 16];
    struct json_result page = {0};
    (void)snprintf(path, sizeof path, "%s?limit=1", k8s->leases);
    epoch_call(k8s, "GET", path, NULL, &page);
    uint64_t revision =
        strtoull(kube_string(json_object_get(page.json, "metadata"), "resourceVersion"), NULL, 10);
    json_result_done(&page);
    return revision;
}

enum reply_status k8s_epoch(const char *url, const struct epoch_options *options,
                            struct epoch_state *out, struct text *why)
{
    struct epoch_state state = {0};
    struct k8s *k8s = k8s_admin_open(url, options->timeout_ms, why);
    enum reply_status result = REPLY_TROUBLE;
    unsigned tries = 0;
    if (k8s == NULL)
        return REPLY_TROUBLE;
    while (epoch_try(k8s, options->least, &state, &result, why) && ++tries < TRIES_MAX)
        state.epoch = 0;
    if (tries == TRIES_MAX) {
        text_add(why, "others write the Lease " K8S_EPOCH_LEASE ", too; try again");
        result = REPLY_TROUBLE;
    }
    if (result == REPLY_OK && options->least > 0)
        epoch_wait();
    if (result == REPLY_OK) {
        state.revision = epoch_revision(k8s);
        (void)snprintf(state.kept, sizeof state.kept,
                       "the Lease " K8S_EPOCH_LEASE " of the namespace %s of %s",
                       k8s->kube.config.namespace, k8s->kube.config.server);
        *out = state;
    }
    k8s_admin_close(k8s);
    return result;
}

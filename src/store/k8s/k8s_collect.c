/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists and removes Leases for the collector, and for `leasehold collect`, which blocks. A deletion
 * names the uid and the revision that were judged. Must not touch a Lease that is not ours by
 * label, name and record.
 */
#include "base/hash.h"
#include "process/host.h"
#include "store/k8s/k8s_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void k8s_collect_send(struct k8s *k8s, const char *method, const char *path, json_t *body,
                             void (*done)(void *owner, const struct json_reply *reply))
{
    struct json_callbacks callbacks = {.done = done, .owner = k8s};
    struct json_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .most = LIST_MAX,
                             .give_up_at_ms = host_boot_ms() + k8s->callbacks.timeout_ms};
    json_request_start(&k8s->collect.request, k8s->kube.json, &call, &callbacks);
    json_decref(body);
}

static void k8s_collect_send_lease(struct k8s *k8s, const char *method, const char *name,
                                   json_t *body,
                                   void (*done)(void *owner, const struct json_reply *reply))
{
    char path[LEASES_PATH + K8S_NAME_MAX + 2];
    (void)snprintf(path, sizeof path, "%s/%s", k8s->leases, name);
    k8s_collect_send(k8s, method, path, body, done);
}

/* ---- pages ---- */

/* If the token of the page has expired (410), the error has one that goes on with the current
 * state.
 */
static void k8s_collect_on_page(void *owner, const struct json_reply *reply)
{
    struct k8s *k8s = owner;
    struct json_pages *pages = &k8s->collect.pages;
    const char *wrong = NULL;
    const json_t *items = NULL;
    if (reply->status == 200)
        items = kube_page_items(pages, reply->json, reply->length, &wrong);
    else if (reply->status == 410)
        wrong = json_pages_turn(pages,
                                kube_string(json_object_get(reply->json, "metadata"), "continue"),
                                reply->length);
    bool outdated = reply->status == 410 && pages->next != NULL;
    if (reply->status != 200 && wrong == NULL && !outdated)
        wrong = reply->why;
    else if (reply->status == 200 && wrong == NULL && reply->now_ms == TIME_UNKNOWN)
        wrong = "the API server's reply has no Date";
    json_decref(k8s->collect.page);
    k8s->collect.page = json_incref(reply->json);
    k8s->collect.now_ms = reply->now_ms;
    if (wrong != NULL)
        collector_on_error(&k8s->collector, wrong);
    else
        collector_on_page(&k8s->collector, json_array_size(items), pages->next != NULL);
}

static void k8s_collect_list(void *owner, bool first)
{
    struct k8s *k8s = owner;
    char path[KUBE_PATH_MAX];
    if (first)
        json_pages_done(&k8s->collect.pages);
    kube_page_path(path, k8s->leases, K8S_LEASE_SELECTOR, &k8s->collect.pages);
    k8s_collect_send(k8s, "GET", path, /* body= */ NULL, k8s_collect_on_page);
}

/* ---- one Lease ---- */

static const json_t *k8s_collect_item(const struct k8s *k8s, size_t index)
{
    return json_array_get(json_object_get(k8s->collect.page, "items"), index);
}

/* A periodic round leaves Leases with another ?prefix= or ?names= to their own clients; a requested
 * round covers all. */
static bool k8s_collect_entry(void *owner, size_t index, struct collector_entry *out)
{
    struct k8s *k8s = owner;
    struct k8s_lease lease;
    struct k8s_url *scheme = &k8s->collect.scheme;
    if (k8s_lease_parse(k8s_collect_item(k8s, index), &lease) != NULL ||
        lease.state != K8S_LEASE_OURS || lease.shared || lease.terminating)
        return false;
    bool own = k8s_key_of(k8s, &lease) != NULL;
    *scheme = k8s->url;
    if (k8s->collector.ended != NULL ? !k8s_is_any_of_ours(&lease, scheme) : !own)
        return false;
    /* Clients of another scheme may allow a larger skew than ours. Unless the URL sets one, their
     * Leases are kept for an hour longer: no removal is urgent. */
    out->margin_ms =
        MARGIN_MS + (own || k8s->url.skew_given ? k8s->url.skew_ms : (int64_t)K8S_SKEW_MAX_MS);
    out->record = (struct stored_record){.bytes = lease.record,
                                         .length = strlen(lease.record),
                                         .written = lease.written,
                                         .now_ms = k8s->collect.now_ms};
    out->space = hash_bytes(scheme->names, scheme->prefix, strlen(scheme->prefix));
    return true;
}

static void k8s_collect_on_removal(void *owner, const struct json_reply *reply)
{
    struct k8s *k8s = owner;
    struct k8s_lease lease;
    const json_t *json = k8s_collect_item(k8s, k8s->collector.index);
    if (reply->status == 200 && k8s_lease_parse(json, &lease) == NULL)
        lease_cache_remove(k8s, lease.name);
    if (reply->status == 200)
        collector_on_removal(&k8s->collector, COLLECTOR_REMOVED);
    else if (reply->status == 409)
        collector_on_removal(&k8s->collector, COLLECTOR_IN_USE);
    else if (reply->status == 404)
        collector_on_removal(&k8s->collector, COLLECTOR_GONE);
    else
        collector_on_error(&k8s->collector, reply->why);
}

static void k8s_collect_remove(void *owner, size_t index)
{
    struct k8s *k8s = owner;
    struct k8s_lease lease;
    if (k8s_lease_parse(k8s_collect_item(k8s, index), &lease) == NULL)
        k8s_collect_send_lease(k8s, "DELETE", lease.name, k8s_lease_delete_options(&lease),
                               k8s_collect_on_removal);
}

static void k8s_collect_on_watermark(void *owner, const struct json_reply *reply)
{
    struct k8s *k8s = owner;
    struct k8s_lease lease;
    if (reply->status != 200 && reply->status != 404)
        collector_on_error(&k8s->collector, reply->why);
    else if (reply->status == 200 && k8s_lease_parse(reply->json, &lease) == NULL &&
             lease.state == K8S_LEASE_OURS && strcmp(lease.key, k8s->collector.wanted) == 0)
        collector_on_watermark(&k8s->collector, lease.record, strlen(lease.record));
    else
        collector_on_watermark(&k8s->collector, NULL, 0);
}

static void k8s_collect_read(void *owner, const char *key)
{
    struct k8s *k8s = owner;
    char name[K8S_NAME_MAX + 1];
    if (k8s_name_of(&k8s->collect.scheme, key, name))
        k8s_collect_send_lease(k8s, "GET", name, /* body= */ NULL, k8s_collect_on_watermark);
    else
        collector_on_watermark(&k8s->collector, NULL, 0); /* no such watermark can exist */
}

/* ---- start and end ---- */

void k8s_collect_init(struct k8s *k8s, uint64_t seed)
{
    static const struct collector_driver driver = {.list = k8s_collect_list,
                                                   .remove = k8s_collect_remove,
                                                   .read = k8s_collect_read,
                                                   .entry = k8s_collect_entry};
    collector_init(&k8s->collector, &driver, k8s, k8s->kube.poller, &k8s->scratch, seed,
                   k8s->url.collect);
}

void k8s_collect_done(struct k8s *k8s)
{
    collector_done(&k8s->collector);
    json_request_cancel(&k8s->collect.request);
    json_decref(k8s->collect.page);
    json_pages_done(&k8s->collect.pages);
}

/* ---- for operators ---- */

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

struct k8s *k8s_admin_open(const char *url, int64_t timeout_ms, struct text *why)
{
    struct k8s *k8s = calloc(1, sizeof *k8s);
    struct store_callbacks callbacks = {.clock = {.now_ms = no_time},
                                        .session = (uint64_t)host_boot_ms(),
                                        .timeout_ms = timeout_ms};
    if (k8s == NULL)
        text_add(why, "out of memory");
    else if (k8s_driver.open(k8s, url, &callbacks, why))
        return k8s;
    free(k8s);
    return NULL;
}

void k8s_admin_close(struct k8s *k8s)
{
    k8s_driver.close(k8s);
    free(k8s);
}

/* Leases first, then the objects of a kind. */
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why)
{
    struct k8s *k8s = k8s_admin_open(url, options->timeout_ms, why);
    if (k8s == NULL)
        return false;
    collector_run(&k8s->collector, options->rate, out);
    if (options->kind != NULL && out->why[0] == '\0') {
        unsigned left = out->left, removed = out->removed, taken = out->taken;
        options->collect_objects(&k8s->kube, options, out);
        out->left += left;
        out->removed += removed;
        out->taken += taken;
    }
    k8s_admin_close(k8s);
    return true;
}

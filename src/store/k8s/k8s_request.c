/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a store request as requests to the API server: one if the Lease is unchanged since we
 * last saw it, two or three otherwise. Requests for one key run in sequence, all others in
 * parallel. A conflict (409) had no effect and may be retried; a request without a reply may have
 * had an effect and is never sent again.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/k8s/k8s_internal.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECHECKS_MAX = 4 };

enum k8s_phase {
    PHASE_WAITING,  /* for earlier requests */
    PHASE_READING,  /* the object read is the reply */
    PHASE_CHECKING, /* the object read decides the next step */
    PHASE_WRITING,  /* create or replace */
    PHASE_DELETING,
    PHASE_UNDOING, /* removes an object that a webhook changed */
    PHASE_LISTING,
    PHASE_EPOCH, /* reads the epoch, before a grant */
};

/* A store request in flight. */
struct k8s_request {
    struct pending base; /* first */
    struct k8s *k8s;
    char name[K8S_NAME_MAX + 1];
    enum k8s_phase phase;
    struct json_request http;
    unsigned rechecks;
    int64_t asked_ms; /* when the epoch was asked for */
    /* Of a write: the object sent; the revision it replaces (0: it creates); whether other programs
     * use the Lease; whether the write may be undone; the member that the server changed. */
    json_t *sent;
    uint64_t replaced;
    bool shared, undoable;
    const char *changed;
    struct json_pages pages; /* of a list */
};

static void k8s_request_start(struct k8s_request *pending);
static void k8s_request_on_reply(void *owner, const struct json_reply *reply);

/* ---- the queue ---- */

static void k8s_request_wake_at(struct k8s *k8s, int64_t at_ms)
{
    if (k8s->wake_timer.poller == NULL || at_ms < k8s->wake_timer.at_ms)
        poller_call_at(k8s->kube.poller, &k8s->wake_timer, at_ms);
}

void k8s_request_add(void *state, const struct store_request *request, store_done *done,
                     void *caller)
{
    enum { WATCH_FIRST_MS = 500 }; /* short: it must not delay a renewal */
    struct k8s *k8s = state;
    struct k8s_request *pending = pending_add(&k8s->pending, request, done, caller);
    int64_t now_ms = host_boot_ms();
    if (pending == NULL) {
        pending_refuse(done, caller);
        return;
    }
    pending->k8s = k8s;
    if (request->verb == VERB_STORE_WATCH && !k8s->watch.known)
        k8s->watch.first_until_ms = now_ms + WATCH_FIRST_MS;
    k8s_request_wake_at(k8s, now_ms);
}

/* One request reads the epoch for all that grant. */
static bool k8s_request_awaits_epoch(const struct k8s_request *pending)
{
    return pending->base.request.summary.new_grants > 0 && pending->k8s->epoch.reader != NULL &&
           k8s_epoch_is_due(pending->k8s);
}

void k8s_requests_start(void *state)
{
    struct k8s *k8s = state;
    int64_t now_ms = host_boot_ms(), first_until_ms = k8s->watch.first_until_ms;
    for (struct list_node *node = k8s->pending.all.first, *next; node != NULL; node = next) {
        struct k8s_request *pending = (void *)LIST_ENTRY(node, struct pending, in_all);
        next = node->next; /* starting a request can end it, but none behind it */
        if (pending->phase != PHASE_WAITING || pending->base.behind != NULL ||
            k8s_request_awaits_epoch(pending))
            continue;
        if (pending->base.request.verb != VERB_STORE_WATCH && now_ms < first_until_ms)
            k8s_request_wake_at(k8s, first_until_ms);
        else
            k8s_request_start(pending);
    }
}

static void k8s_request_clear(struct pending *base)
{
    struct k8s_request *pending = (struct k8s_request *)base;
    if (pending->k8s != NULL && pending->k8s->epoch.reader == pending)
        pending->k8s->epoch.reader = NULL;
    json_request_cancel(&pending->http);
    json_decref(pending->sent);
    json_pages_done(&pending->pages);
}

/* A call to the API server ends at the deadline of its request. */
void k8s_requests_init(struct k8s *k8s)
{
    k8s->pending = (struct pending_set){.size = sizeof(struct k8s_request),
                                        .most = K8S_REQUESTS_MAX,
                                        .by_key = true,
                                        .timeout_ms = k8s->callbacks.timeout_ms,
                                        .clear = k8s_request_clear};
    k8s->wake_timer.due = k8s_requests_start;
    k8s->wake_timer.owner = k8s;
}

/* ---- replies to the caller ---- */

static void k8s_request_finish(struct k8s_request *pending, const struct store_reply *reply)
{
    k8s_request_wake_at(pending->k8s, host_boot_ms()); /* starts the request behind this one */
    pending_reply(&pending->base, reply);
}

static void k8s_request_fail(struct k8s_request *pending, enum reply_status result, const char *why)
{
    k8s_request_finish(pending,
                       &(struct store_reply){.result = result, .now_ms = TIME_UNKNOWN, .why = why});
}

static void k8s_request_finish_absent(struct k8s_request *pending, enum reply_status result,
                                      int64_t now_ms)
{
    k8s_request_finish(pending, &(struct store_reply){.result = result, .now_ms = now_ms});
}

/* Replies with the current Lease. One that belongs to another key is an error. */
static void k8s_request_finish_lease(struct k8s_request *pending, enum reply_status result,
                                     const struct k8s_lease *lease, int64_t now_ms)
{
    struct k8s *k8s = pending->k8s;
    const char *key = pending->base.request.key;
    if (lease->state == K8S_LEASE_OURS && strcmp(lease->key, key) != 0) {
        (void)snprintf(k8s->why, sizeof k8s->why,
                       "the Lease %s belongs to another key, %.200s: choose ?names= or ?prefix= "
                       "so that they differ",
                       lease->name, lease->key);
        k8s_request_fail(pending, REPLY_DENIED, k8s->why);
        return;
    }
    struct store_reply reply = k8s_lease_reply(k8s, lease, key);
    reply.result = result;
    reply.key = NULL;
    reply.now_ms = now_ms;
    k8s_request_finish(pending, &reply);
}

static void k8s_request_fail_changed(struct k8s_request *pending, bool removed)
{
    struct k8s *k8s = pending->k8s;
    (void)snprintf(k8s->why, sizeof k8s->why,
                   "the Lease came back changed in %s (by a webhook?); it was %s", pending->changed,
                   removed ? "removed" : "left there");
    k8s_request_fail(pending, REPLY_TROUBLE, k8s->why);
}

/* ---- requests to the API server ---- */

/* Takes ownership of `body`. The reply ends the request or moves it to its next phase. */
static void k8s_request_send(struct k8s_request *pending, enum k8s_phase phase, const char *method,
                             const char *path, json_t *body)
{
    struct k8s *k8s = pending->k8s;
    struct json_callbacks callbacks = {.done = k8s_request_on_reply, .owner = pending};
    bool grants = phase == PHASE_WRITING && pending->base.request.summary.new_grants > 0;
    struct json_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .most = phase == PHASE_LISTING ? LIST_MAX : LEASE_REPLY_MAX,
                             .give_up_at_ms = pending->base.deadline_ms,
                             .send_by_ms = grants ? k8s->epoch.read_ms + EPOCH_FRESH_MS : 0,
                             .forbidden_later = true};
    pending->phase = phase;
    json_request_start(&pending->http, k8s->kube.json, &call, &callbacks);
    json_decref(body);
}

/* To the Lease of the request, which POST creates. `manager`: the field manager; NULL: none. */
static void k8s_request_send_lease(struct k8s_request *pending, enum k8s_phase phase,
                                   const char *method, const char *manager, json_t *body)
{
    char path[LEASES_PATH + 2 * K8S_NAME_MAX];
    bool creates = strcmp(method, "POST") == 0;
    (void)snprintf(path, sizeof path, "%s%s%s%s%s", pending->k8s->leases, creates ? "" : "/",
                   creates ? "" : pending->name, manager != NULL ? "?fieldManager=" : "",
                   manager != NULL ? manager : "");
    k8s_request_send(pending, phase, method, path, body);
}

static void k8s_request_read(struct k8s_request *pending, enum k8s_phase phase)
{
    k8s_request_send_lease(pending, phase, "GET", /* manager= */ NULL, /* body= */ NULL);
}

/*
 * If another program's grant stays in the record to be written, we must not write it. Only this
 * process stores its waiters, and the watch reports when it may try.
 */
static bool k8s_request_wait_locally(struct k8s_request *pending, const struct k8s_lease *lease)
{
    struct k8s *k8s = pending->k8s;
    const struct store_request *request = &pending->base.request;
    const struct store_summary *summary = &request->summary;
    if (lease == NULL || lease->state != K8S_LEASE_FOREIGN || summary->grants == 0 ||
        !k8s_lease_is_foreign_grant(lease, summary->request))
        return false;
    struct store_reply reply = {.result = REPLY_OK,
                                .present = true,
                                .written = lease->written,
                                .now_ms = TIME_UNKNOWN,
                                .bytes = request->bytes,
                                .length = request->length};
    k8s_watch_require(k8s);
    if (summary->broken)
        k8s_request_fail(pending, REPLY_DENIED,
                         "another program holds this Lease and cannot be notified; "
                         "break --now removes its hold");
    else if (!lease_cache_set_local(k8s, pending->name, request->bytes, request->length))
        k8s_request_fail(pending, REPLY_TROUBLE, "out of memory");
    else
        k8s_request_finish(pending, &reply);
    return true;
}

/* Changes the record to be written, which must be decoded for that. False if it is unchanged. */
static bool k8s_request_give_way(struct k8s_request *pending, const struct k8s_lease *lease,
                                 struct k8s_lease_write *write, struct store_summary *summary)
{
    struct k8s *k8s = pending->k8s;
    struct codec_error error;
    if (!k8s_lease_gives_way(lease, summary) ||
        record_decode(write->bytes, write->length, &k8s->scratch, &error) != DECODE_OK)
        return false;
    k8s_lease_give_way(&k8s->scratch);
    summarize_record(&k8s->scratch, pending->base.request.session, summary);
    write->bytes = k8s->encoded;
    write->length = record_encode(&k8s->scratch, k8s->encoded, sizeof k8s->encoded);
    return true;
}

/* True if a grant must wait until the epoch was read. */
static bool k8s_request_read_epoch(struct k8s_request *pending)
{
    struct k8s *k8s = pending->k8s;
    char path[LEASES_PATH + K8S_NAME_MAX + 2];
    if (pending->base.request.summary.new_grants == 0 || !k8s_epoch_is_due(k8s))
        return false;
    k8s->epoch.reader = pending;
    pending->asked_ms = host_boot_ms();
    k8s_epoch_path(k8s, path);
    k8s_request_send(pending, PHASE_EPOCH, "GET", path, NULL);
    return true;
}

static uint16_t k8s_request_epoch(const struct k8s *k8s, const struct k8s_lease *lease)
{
    bool later = lease != NULL && lease->written.epoch > k8s->epoch.value;
    return later ? lease->written.epoch : k8s->epoch.value;
}

/* Replaces `before`, the current Lease as far as we know; NULL: creates it. Bytes that are no
 * record are stored too; other programs then see a Lease without a holder. */
static void k8s_request_write(struct k8s_request *pending, const json_t *before,
                              const struct k8s_lease *lease)
{
    struct k8s *k8s = pending->k8s;
    const struct store_request *request = &pending->base.request;
    struct store_summary summary = request->summary;
    if (k8s_request_wait_locally(pending, lease))
        return;
    if (lease != NULL && lease->terminating && summary.new_grants > 0) {
        k8s_request_fail(pending, REPLY_TROUBLE,
                         "the Lease is being deleted and waits for its finalizers: it "
                         "cannot be locked");
        return;
    }
    if (k8s_request_read_epoch(pending))
        return;
    json_decref(pending->sent); /* of an attempt that met a conflict */
    pending->sent = NULL;
    struct k8s_lease_write write = {.name = pending->name,
                                    .key = request->key,
                                    .bytes = request->bytes,
                                    .length = request->length,
                                    .summary = &summary,
                                    .wall_ms = host_wall_ms(),
                                    .session = k8s->callbacks.session,
                                    .number = ++k8s->writes,
                                    .epoch = k8s_request_epoch(k8s, lease)};
    if (lease != NULL) {
        bool gives_way = k8s_request_give_way(pending, lease, &write, &summary);
        write.streak = k8s_lease_streak(lease, &summary, gives_way);
    }
    json_t *body = k8s_lease_make(before, &write);
    if (summary.queued)
        k8s_watch_require(k8s);
    if (body == NULL) {
        k8s_request_fail(pending, REPLY_TROUBLE, "out of memory");
        return;
    }
    pending->sent = json_incref(body);
    pending->replaced = before != NULL ? lease->revision : 0;
    pending->shared = before != NULL && lease->shared;
    pending->undoable = before == NULL || k8s_lease_is_only_grant(&summary);
    k8s_request_send_lease(pending, PHASE_WRITING, before != NULL ? "PUT" : "POST",
                           k8s_lease_manager(&summary), body);
}

/* A Lease that other programs made is emptied, not deleted: they rely on it. */
static void k8s_request_remove(struct k8s_request *pending, enum k8s_phase phase,
                               const json_t *before, const struct k8s_lease *lease, bool shared)
{
    if (shared)
        k8s_request_send_lease(pending, phase, "PUT", K8S_WAITER_MANAGER, k8s_lease_vacate(before));
    else
        k8s_request_send_lease(pending, phase, "DELETE", /* manager= */ NULL,
                               k8s_lease_delete_options(lease));
}

/* ---- lists ---- */

static void k8s_list_page(struct k8s_request *pending)
{
    char path[KUBE_PATH_MAX];
    kube_page_path(path, pending->k8s->leases, K8S_LEASE_SELECTOR, &pending->pages);
    k8s_request_send(pending, PHASE_LISTING, "GET", path, NULL);
}

static void k8s_list_report_item(struct k8s_request *pending, const json_t *json, int64_t now_ms)
{
    struct k8s *k8s = pending->k8s;
    struct k8s_lease lease;
    if (lease_cache_parse(k8s, json, &lease) != NULL || lease.state != K8S_LEASE_OURS)
        return;
    const char *key = k8s_key_of(k8s, &lease);
    const char *prefix = pending->base.request.key;
    if (key == NULL || strncmp(key, prefix, strlen(prefix)) != 0)
        return;
    struct store_reply reply = k8s_lease_reply(k8s, &lease, key);
    reply.more = true;
    reply.now_ms = now_ms;
    pending_reply(&pending->base, &reply);
}

static void k8s_list_on_page(struct k8s_request *pending, const struct json_reply *reply)
{
    const char *wrong;
    const json_t *items = kube_page_items(&pending->pages, reply->json, reply->length, &wrong);
    for (size_t i = 0; i < json_array_size(items); i++)
        k8s_list_report_item(pending, json_array_get(items, i), reply->now_ms);
    pending_extend(&pending->base); /* each page has the whole timeout */
    if (wrong != NULL)
        k8s_request_fail(pending, REPLY_TROUBLE, wrong);
    else if (pending->pages.next != NULL)
        k8s_list_page(pending);
    else
        k8s_request_finish_absent(pending, REPLY_OK, reply->now_ms);
}

/* ---- conditions ---- */

static bool k8s_condition_holds(const struct store_request *request, const struct k8s_lease *lease)
{
    return request->condition.kind == IF_ABSENT
               ? lease->state == K8S_LEASE_VACANT
               : lease->state != K8S_LEASE_VACANT &&
                     stamp_order(&lease->written) == request->condition.revision;
}

static void k8s_request_execute(struct k8s_request *pending, const json_t *json,
                                const struct k8s_lease *lease)
{
    if (lease->state == K8S_LEASE_FOREIGN && pending->base.request.condition.token != 0)
        k8s_request_fail(pending, REPLY_DENIED,
                         "another program holds this Lease: only it can renew or release it");
    else if (pending->base.request.verb == VERB_STORE_DELETE)
        k8s_request_remove(pending, PHASE_DELETING, json, lease, lease->shared);
    else
        k8s_request_write(pending, json, lease);
}

/* Executes the request with the cached Lease, if the condition holds for it. */
static bool k8s_request_execute_cached(struct k8s_request *pending)
{
    struct k8s *k8s = pending->k8s;
    struct k8s_lease lease;
    const struct cached_lease *cached = lease_cache_find(k8s, pending->name);
    json_t *json = cached != NULL ? json_incref(cached->json) : NULL;
    bool known =
        json != NULL && lease_cache_parse(k8s, json, &lease) == NULL &&
        k8s_condition_holds(&pending->base.request, &lease) &&
        (lease.state != K8S_LEASE_OURS || strcmp(lease.key, pending->base.request.key) == 0);
    if (known)
        k8s_request_execute(pending, json, &lease);
    json_decref(json);
    return known;
}

static void k8s_request_start(struct k8s_request *pending)
{
    struct k8s *k8s = pending->k8s;
    const struct store_request *request = &pending->base.request;
    bool named = k8s_name_of(&k8s->url, request->key, pending->name);
    switch (request->verb) {
    case VERB_STORE_LIST:
        k8s_list_page(pending);
        return;
    case VERB_STORE_WATCH:
        k8s_watch_add(k8s, &pending->base);
        return;
    case VERB_STORE_HISTORY:
        k8s_request_fail(pending, REPLY_TROUBLE, "k8s: keeps no history");
        return;
    case VERB_STORE_READ:
    case VERB_STORE_SWAP:
    case VERB_STORE_DELETE:
        break;
    }
    if (!named)
        k8s_request_fail(pending, REPLY_DENIED,
                         "the key is not a valid Lease name, or reserved; ?names=auto hashes it");
    else if (request->verb == VERB_STORE_READ)
        k8s_request_read(pending, PHASE_READING);
    else if (request->condition.kind == IF_GRANT)
        k8s_request_fail(pending, REPLY_TROUBLE, "k8s: cannot test a grant at the write");
    else if (k8s_request_execute_cached(pending))
        return;
    else if (request->verb == VERB_STORE_SWAP && request->condition.kind == IF_ABSENT)
        k8s_request_write(pending, NULL, NULL);
    else
        k8s_request_read(pending, PHASE_CHECKING);
}

/* ---- replies of the API server ---- */

/* The current Lease decides whether to go on; after a conflict the condition usually fails. */
static void k8s_request_recheck(struct k8s_request *pending, const json_t *json,
                                const struct k8s_lease *lease, int64_t now_ms)
{
    if (k8s_condition_holds(&pending->base.request, lease) && ++pending->rechecks < RECHECKS_MAX)
        k8s_request_execute(pending, json, lease);
    else if (k8s_condition_holds(&pending->base.request, lease))
        k8s_request_fail(pending, REPLY_TROUBLE, "the API server refuses without a reason");
    else
        k8s_request_finish_lease(pending, REPLY_CONFLICT, lease, now_ms);
}

/*
 * The server stored another Lease than the one sent, so the request failed. The Lease is removed,
 * unless another client depends on it or has changed it since.
 */
static void k8s_request_undo(struct k8s_request *pending, const json_t *json,
                             const struct k8s_lease *lease, const char *changed)
{
    lease_cache_remove(pending->k8s, pending->name);
    pending->changed = changed;
    if (pending->undoable)
        k8s_request_remove(pending, PHASE_UNDOING, json, lease, pending->shared);
    else
        k8s_request_fail_changed(pending, /* removed= */ false);
}

static const char *k8s_request_parse_lease(const struct k8s_request *pending, const json_t *json,
                                           struct k8s_lease *out)
{
    const char *wrong = json != NULL ? lease_cache_parse(pending->k8s, json, out)
                                     : "the reply is not valid JSON, or too large";
    if (wrong == NULL && strcmp(out->name, pending->name) != 0)
        wrong = "the API server's reply is about another Lease";
    return wrong;
}

static void k8s_request_on_lease(struct k8s_request *pending, const struct json_reply *reply)
{
    struct k8s *k8s = pending->k8s;
    struct k8s_lease lease;
    json_t *json = reply->json;
    const char *changed = NULL, *wrong = k8s_request_parse_lease(pending, json, &lease);
    if (wrong == NULL && pending->phase == PHASE_WRITING) {
        changed = k8s_lease_changed(pending->sent, json);
        if (changed == NULL && lease.revision <= pending->replaced)
            changed = "resourceVersion";
    }
    if (wrong != NULL) {
        k8s_request_fail(pending, REPLY_TROUBLE, wrong);
    } else if (changed != NULL) {
        k8s_request_undo(pending, json, &lease, changed);
    } else {
        lease_cache_put(k8s, json, reply->size, &lease);
        if (pending->phase == PHASE_CHECKING)
            k8s_request_recheck(pending, json, &lease, reply->now_ms);
        else
            k8s_request_finish_lease(pending, REPLY_OK, &lease, reply->now_ms);
    }
}

/* True if the Lease does not exist; false if the namespace or the API server is missing. */
static bool is_lease_absent(const struct json_reply *reply)
{
    const char *kind = kube_string(json_object_get(reply->json, "details"), "kind");
    return reply->status == 404 && strcmp(kind, "leases") == 0;
}

static void k8s_request_on_error(struct k8s_request *pending, const struct json_reply *reply)
{
    struct k8s *k8s = pending->k8s;
    bool denied = reply->status == 401 || reply->status == 403;
    bool changes = pending->phase == PHASE_WRITING || pending->phase == PHASE_DELETING;
    if (reply->status == 409 && changes) {
        lease_cache_invalidate(k8s, pending->name);
        k8s_request_read(pending, PHASE_CHECKING);
    } else if (is_lease_absent(reply) && pending->phase != PHASE_LISTING) {
        lease_cache_remove(k8s, pending->name);
        k8s_request_finish_absent(
            pending, pending->phase == PHASE_READING ? REPLY_OK : REPLY_CONFLICT, reply->now_ms);
    } else {
        k8s_request_finish(pending,
                           &(struct store_reply){.result = denied ? REPLY_DENIED : REPLY_TROUBLE,
                                                 .now_ms = TIME_UNKNOWN,
                                                 .refused = reply->refused,
                                                 .why = reply->why});
    }
}

/* Then the request starts again: the cached Lease may have changed. */
static void k8s_request_on_epoch(struct k8s_request *pending, const struct json_reply *reply)
{
    struct k8s *k8s = pending->k8s;
    bool absent = is_lease_absent(reply);
    k8s->epoch.reader = NULL;
    k8s_request_wake_at(k8s, host_boot_ms());
    if (reply->status != 200 && !absent) {
        k8s_request_on_error(pending, reply);
        return;
    }
    const char *wrong = k8s_epoch_take(k8s, absent ? NULL : reply->json, pending->asked_ms);
    if (wrong != NULL)
        k8s_request_fail(pending, REPLY_TROUBLE, wrong);
    else
        k8s_request_start(pending);
}

static void k8s_request_on_reply(void *owner, const struct json_reply *reply)
{
    struct k8s_request *pending = owner;
    struct k8s *k8s = pending->k8s;
    if (pending->phase == PHASE_EPOCH) {
        k8s_request_on_epoch(pending, reply);
    } else if (pending->phase == PHASE_UNDOING) {
        k8s_request_fail_changed(pending, reply->status == 200);
    } else if (reply->status != 200 && reply->status != 201) {
        k8s_request_on_error(pending, reply);
    } else if (pending->phase == PHASE_LISTING) {
        k8s_list_on_page(pending, reply);
    } else if (pending->phase == PHASE_DELETING) {
        lease_cache_remove(k8s, pending->name);
        k8s_request_finish_absent(pending, REPLY_OK, reply->now_ms);
    } else {
        k8s_request_on_lease(pending, reply);
    }
}

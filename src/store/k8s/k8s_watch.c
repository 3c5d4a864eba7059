/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One watch of the namespace's Leases, shared by all watchers and by the waiters of this process.
 * It starts at a revision that the server names and resumes behind the last reported one, also
 * after a disconnect. If the server has compacted that revision (410), watchers are notified that
 * changes may be missing.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_OUTDATED "the API server no longer has the revision of the watch"

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 5000, WATCH_S = 120 };

/* ---- notifications ---- */

static void k8s_watch_notify(struct k8s *k8s, const struct k8s_lease *lease, const char *key,
                             bool deleted)
{
    for (struct watchers_walk walk = watchers_walk(&k8s->watch.watchers, key);
         watchers_next(&walk);) {
        struct store_reply reply = {.result = REPLY_OK, .now_ms = TIME_UNKNOWN};
        if (!deleted)
            reply = k8s_lease_reply(k8s, lease, key);
        watchers_deliver(&walk, &reply);
    }
}

/* The relevance of a record to this process. */
struct relevance {
    bool must_act; /* it must act: its turn, its lease is broken, or its place is gone … */
    bool holds;    /* … or it holds, and its next write needs the revision … */
    bool named;    /* … and the record is all that it needs */
};

/*
 * True if the waiter may have to take over an offer, or an offer was accepted: the watch reports
 * both at once, so that it need not poll.
 */
static bool is_spare(const struct record *record, const struct waiter *own)
{
    size_t ahead = 0;
    bool accepted = false;
    for (size_t i = 0; i < record->grant_count; i++)
        accepted = accepted || record->grants[i].granted.revision == THIS_WRITE;
    for (const struct waiter *waiter = record->waiters; waiter < own; waiter++)
        ahead += waiter->offered ? 0 : 1;
    return ahead < SPARES_MAX && (accepted || record_offers(record) > 0);
}

/* If a waiter of ours is gone from the record, another process removed it: it must act too. */
static struct relevance relevance_of(struct k8s *k8s, const struct k8s_lease *lease, bool awaited)
{
    struct codec_error error;
    struct record *record = &k8s->scratch;
    struct relevance relevance = {0};
    if (record_decode(lease->record, strlen(lease->record), record, &error) != DECODE_OK)
        return relevance;
    for (size_t i = 0; i < record->grant_count; i++) {
        bool own = record->grants[i].session == k8s->callbacks.session;
        relevance.holds = relevance.holds || own;
        relevance.must_act = relevance.must_act || (own && record->grants[i].broken);
    }
    const struct waiter *own = record_waiter_by_session(record, k8s->callbacks.session);
    bool open = record->grant_count == 0 && record_offers(record) == 0;
    relevance.named = relevance.holds || own != NULL;
    relevance.must_act = relevance.must_act ||
                         (own != NULL ? own->offered || open || is_spare(record, own) : awaited);
    return relevance;
}

/*
 * Another program's renewal is reported with its record: the waiters' clocks measure its TTL from
 * then on, without a query.
 */
static void notice(struct k8s *k8s, const struct k8s_lease *lease, const char *key, bool deleted)
{
    const struct cached_lease *cached = lease_cache_find(k8s, lease->name);
    bool awaited = cached != NULL && cached->awaited;
    struct relevance relevance = {0};
    if (k8s->callbacks.notice == NULL)
        return;
    if (deleted || lease->state == K8S_LEASE_VACANT) {
        relevance.must_act = awaited;
    } else if (lease->state == K8S_LEASE_OURS) {
        relevance = relevance_of(k8s, lease, awaited);
        relevance.must_act = relevance.must_act || (awaited && cached->state != K8S_LEASE_OURS);
    } else {
        relevance.must_act = relevance.named = awaited;
    }
    if (!relevance.must_act && !relevance.holds)
        return;
    struct store_reply known = k8s_lease_reply(k8s, lease, key);
    k8s->callbacks.notice(k8s->callbacks.owner, key, relevance.named ? &known : NULL);
}

/* Every known waiter polls once: the watch does not report earlier changes. */
static void k8s_watch_notice_all(struct k8s *k8s)
{
    for (size_t i = 0; i < LEASE_CACHE_SLOTS && k8s->callbacks.notice != NULL; i++) {
        struct k8s_lease lease;
        const struct cached_lease *cached = &k8s->lease_cache[i];
        bool awaited = cached->awaited && k8s_lease_parse(cached->json, &lease) == NULL;
        const char *key = awaited ? k8s_key_of(k8s, &lease) : NULL;
        if (key != NULL)
            k8s->callbacks.notice(k8s->callbacks.owner, key, /* current= */ NULL);
    }
}

/* 0: it has none. */
static uint64_t revision_of(const json_t *json)
{
    return strtoull(kube_string(json_object_get(json, "metadata"), "resourceVersion"), NULL, 10);
}

/* False if the watch must start again. */
static bool k8s_watch_on_change(struct k8s *k8s, const json_t *change, size_t size)
{
    struct k8s_lease lease;
    const char *type = kube_string(change, "type");
    json_t *json = json_object_get(change, "object");
    if (*type == '\0' || strcmp(type, "ERROR") == 0)
        return false;
    if (revision_of(json) != 0)
        k8s->watch.revision = revision_of(json);
    if (strcmp(type, "BOOKMARK") == 0 || lease_cache_parse(k8s, json, &lease) != NULL)
        return true;
    const char *key = k8s_key_of(k8s, &lease);
    bool deleted = strcmp(type, "DELETED") == 0;
    if (key == NULL)
        return true;
    notice(k8s, &lease, key, deleted);
    if (!deleted)
        lease_cache_put(k8s, json, size, &lease);
    else if (lease_cache_find(k8s, lease.name) != NULL &&
             lease_cache_find(k8s, lease.name)->revision <= lease.revision)
        lease_cache_remove(k8s, lease.name);
    k8s_watch_notify(k8s, &lease, key, deleted);
    return true;
}

static void k8s_watch_fail(struct k8s *k8s, const char *why)
{
    struct k8s_watch *watch = &k8s->watch;
    struct store_reply reply = {.result = REPLY_TROUBLE, .now_ms = TIME_UNKNOWN, .why = why};
    watch->known = false;
    watchers_end(&watch->watchers, &reply);
}

/* ---- stream ---- */

static void k8s_watch_pause(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    poller_call_at(k8s->kube.poller, &watch->timer,
                   host_boot_ms() + backoff_pause_ms(&watch->backoff));
}

/* Only a lasting error is reported: until then the watch may resume without a gap. */
static void k8s_watch_on_error(struct k8s *k8s, const char *why)
{
    struct k8s_watch *watch = &k8s->watch;
    int64_t now_ms = host_boot_ms();
    if (watch->trouble_since_ms == 0)
        watch->trouble_since_ms = now_ms;
    if (now_ms - watch->trouble_since_ms >= k8s->callbacks.timeout_ms)
        k8s_watch_fail(k8s, why);
    k8s_watch_pause(k8s);
}

static bool k8s_watch_on_line(void *owner, json_t *change, size_t size)
{
    struct k8s *k8s = owner;
    bool good = k8s_watch_on_change(k8s, change, size);
    k8s->watch.trouble_since_ms = 0;
    backoff_reset(&k8s->watch.backoff);
    if (!good) {
        k8s_watch_fail(k8s, WATCH_OUTDATED);
        json_request_cancel(&k8s->watch.http);
        k8s_watch_pause(k8s);
    }
    return good;
}

static void k8s_watch_on_end(void *owner, const struct json_reply *reply)
{
    struct k8s *k8s = owner;
    if (reply->status == 410)
        k8s_watch_fail(k8s, WATCH_OUTDATED);
    if (reply->status == 200)
        k8s_watch_pause(k8s); /* its time is over */
    else
        k8s_watch_on_error(k8s, reply->why);
}

static void k8s_watch_send(struct k8s *k8s, const char *query,
                           const struct json_callbacks *callbacks)
{
    char path[LEASES_PATH + 256];
    (void)snprintf(path, sizeof path, "%s?%s", k8s->leases, query);
    struct json_call call = {.method = "GET",
                             .path = path,
                             .most = LEASE_REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + k8s->callbacks.timeout_ms};
    json_request_start(&k8s->watch.http, k8s->kube.json, &call, callbacks);
}

static void k8s_watch_follow(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    char query[256];
    struct json_callbacks callbacks = {
        .line = k8s_watch_on_line, .done = k8s_watch_on_end, .owner = k8s};
    unsigned length_s =
        watch->length_s + (unsigned)random_below(&watch->backoff.random, watch->length_s);
    (void)snprintf(query, sizeof query,
                   "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%" PRIu64,
                   length_s, watch->revision);
    k8s_watch_send(k8s, query, &callbacks);
    poller_call_at(k8s->kube.poller, &watch->timer,
                   host_boot_ms() + k8s->callbacks.timeout_ms + (int64_t)length_s * 1000);
}

/* ---- start ---- */

/* The watch is established: watchers receive changes from now on. */
static void k8s_watch_confirm(struct k8s *k8s)
{
    watchers_confirm(&k8s->watch.watchers,
                     &(struct store_reply){.result = REPLY_OK, .now_ms = TIME_UNKNOWN});
}

/* The watch is established, or cannot be: the requests behind it start. */
static void k8s_watch_on_opened(struct k8s *k8s, const char *trouble)
{
    k8s->watch.first_until_ms = 0;
    if (trouble == NULL) {
        k8s_watch_follow(k8s);
        k8s_watch_confirm(k8s);
        k8s_watch_notice_all(k8s);
    } else {
        k8s_watch_on_error(k8s, trouble);
        k8s_watch_fail(k8s, trouble);
    }
    k8s_requests_start(k8s);
}

static void k8s_watch_on_revision(void *owner, const struct json_reply *reply)
{
    struct k8s *k8s = owner;
    struct k8s_watch *watch = &k8s->watch;
    watch->revision = reply->status == 200 ? revision_of(reply->json) : 0;
    watch->known = watch->revision != 0;
    k8s_watch_on_opened(k8s, watch->known           ? NULL
                             : reply->status == 200 ? "the list has no revision"
                                                    : reply->why);
}

static void k8s_watch_on_timer(void *owner)
{
    struct k8s *k8s = owner;
    struct json_callbacks callbacks = {.done = k8s_watch_on_revision, .owner = k8s};
    json_request_cancel(&k8s->watch.http); /* the server has not ended it in time */
    if (k8s->watch.known)
        k8s_watch_follow(k8s);
    else
        k8s_watch_send(k8s, "limit=1", &callbacks);
}

void k8s_watch_require(struct k8s *k8s)
{
    if (k8s->watch.wanted)
        return; /* it is open, being opened, or waiting to retry */
    k8s->watch.wanted = true;
    poller_call_at(k8s->kube.poller, &k8s->watch.timer, host_boot_ms());
}

void k8s_watch_add(struct k8s *k8s, struct pending *pending)
{
    (void)pending_watch(pending, &k8s->watch.watchers);
    if (k8s->watch.known)
        k8s_watch_confirm(k8s);
    else
        k8s_watch_require(k8s); /* the reply follows once it is established */
}

void k8s_watch_init(struct k8s *k8s, uint64_t seed)
{
    k8s->watch.timer.due = k8s_watch_on_timer;
    k8s->watch.timer.owner = k8s;
    k8s->watch.timer.at_ms = POLLER_NEVER;
    k8s->watch.length_s = WATCH_S;
    backoff_init(&k8s->watch.backoff, seed, PAUSE_FIRST_MS, PAUSE_MAX_MS);
}

void k8s_watch_done(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    json_request_cancel(&watch->http);
    poller_call_at(k8s->kube.poller, &watch->timer, POLLER_NEVER);
    watchers_done(&watch->watchers);
}

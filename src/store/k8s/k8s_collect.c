/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector removes Leases of ours that are no longer in use: the holder is dead, the cooldown
 * is over, or a done marker has expired. Kubernetes expires none of them itself. Long-lived
 * processes run a round rarely, at a random time, page by page, at a limited rate. A round ends
 * when it meets another collector. A deletion names the uid and the revision that were judged. The
 * collector must not touch a Lease that is not ours by label, name and record, or whose expiry the
 * server's clock does not prove.
 */
#include "process/host.h"
#include "store/expiry.h"
#include "store/k8s/k8s_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINUTE_MS = 60000,
    FIRST_STEPS = 60,  /* a step is the pause between two removals; the first round begins after 60
                          to 180 of them: programs that end sooner make no request for it */
    ROUND_STEPS = 600, /* between two rounds */
    DOUBLED_MAX = 3,   /* a round without removals doubles the next pause, at most this often */
    MARK_FRESH_MS = 10000,
    LOGIN_POLL_MS = 50, /* poll interval for a credential */
};

static void collector_schedule(struct k8s *k8s, int64_t pause_ms)
{
    poller_call_at(k8s->poller, &k8s->collector.due, host_boot_ms() + pause_ms);
}

/* Never below the step, so that no minute exceeds the rate. */
static void collector_schedule_step(struct k8s *k8s)
{
    struct collector *collector = &k8s->collector;
    uint64_t half_ms = (uint64_t)collector->step_ms / 2;
    collector_schedule(k8s,
                       collector->step_ms + (int64_t)random_below(&collector->random, half_ms + 1));
}

static void collector_drop_page(struct collector *collector)
{
    json_decref(collector->page);
    collector->page = NULL;
    collector->index = 0;
}

/* `why`: NULL if the round is complete, or met another collector. */
static void collector_end_round(struct k8s *k8s, const char *why)
{
    struct collector *collector = &k8s->collector;
    int64_t pause_ms = ROUND_STEPS * collector->step_ms;
    collector_drop_page(collector);
    free(collector->next);
    collector->next = NULL;
    collector->pages = 0;
    (void)snprintf(collector->tally.why, sizeof collector->tally.why, "%s", why != NULL ? why : "");
    if (collector->tally.removed > 0)
        collector->doubled = 0;
    else if (collector->doubled < DOUBLED_MAX)
        collector->doubled++;
    pause_ms <<= collector->doubled;
    collector_schedule(k8s, pause_ms / 2 +
                                (int64_t)random_below(&collector->random, (uint64_t)pause_ms));
    if (collector->ended != NULL)
        collector->ended(collector->owner, &collector->tally);
    collector->tally = (struct collection){0};
}

/* A pause that the server requests applies to all requests and ends the round. */
static void collector_on_error(struct k8s *k8s, const struct http_response *reply)
{
    int64_t until_ms = host_boot_ms() + reply->retry_after_ms;
    if (reply->status == 401)
        kube_login_refused(k8s->login);
    if (reply->status == 429 && k8s->paused_until_ms < until_ms)
        k8s->paused_until_ms = until_ms;
    collector_end_round(k8s, k8s_explain(k8s, reply));
}

static void collector_call(struct k8s *k8s, const char *method, const char *path, json_t *body,
                           size_t most,
                           void (*done)(void *owner, const struct http_response *reply))
{
    struct http_callbacks callbacks = {.done = done, .owner = k8s};
    k8s->collector.http = k8s_call_leases(k8s, method, path, body, most,
                                          host_boot_ms() + k8s->callbacks.timeout_ms, &callbacks);
    json_decref(body);
    if (k8s->collector.http == NULL)
        collector_end_round(k8s, k8s->why);
}

/* ---- expiry ---- */

/* The watermark that a record depends on, if it was read recently; otherwise sets `wanted`. */
static struct stored_record collector_find_watermark(void *owner, const char *key)
{
    struct k8s *k8s = owner;
    struct collector *collector = &k8s->collector;
    struct k8s_lease lease;
    char name[K8S_NAME_MAX + 1];
    if (!k8s_name_of(&collector->scheme, key, name))
        return (struct stored_record){0}; /* no such watermark can exist */
    if (strcmp(name, collector->mark_name) != 0 ||
        host_boot_ms() - collector->mark_at_ms > MARK_FRESH_MS) {
        text_copy(collector->wanted, sizeof collector->wanted, name);
        return (struct stored_record){0};
    }
    bool usable = collector->mark != NULL && k8s_lease_parse(collector->mark, &lease) == NULL &&
                  lease.state == K8S_LEASE_OURS && strcmp(lease.key, key) == 0;
    return usable ? (struct stored_record){.bytes = lease.record, .length = strlen(lease.record)}
                  : (struct stored_record){0};
}

/* A periodic round leaves Leases with another ?prefix= or ?names= to their own clients; a requested
 * round covers all. */
static bool collector_is_leftover(struct k8s *k8s, const json_t *json, struct k8s_lease *out)
{
    struct collector *collector = &k8s->collector;
    if (k8s_lease_parse(json, out) != NULL || out->state != K8S_LEASE_OURS || out->shared ||
        out->terminating)
        return false;
    collector->scheme = k8s->url;
    if (collector->ended != NULL ? !k8s_is_any_of_ours(out, &collector->scheme)
                                 : k8s_key_of(k8s, out) == NULL)
        return false;
    struct stored_record stored = {.bytes = out->record,
                                   .length = strlen(out->record),
                                   .written = out->written,
                                   .now_ms = k8s->collector.now_ms};
    /* Clients of another scheme may allow a larger skew than ours. Unless the URL sets one, their
     * Leases are kept for an hour longer: no removal is urgent. */
    bool own = k8s_key_of(k8s, out) != NULL;
    int64_t skew_ms = own || k8s->url.skew_given ? k8s->url.skew_ms : K8S_SKEW_MAX_MS;
    return expiry_is_leftover(&stored, MARGIN_MS + skew_ms, collector_find_watermark, k8s,
                              &k8s->scratch);
}

/* ---- requests ---- */

static void on_lease_removed(void *owner, const struct http_response *reply)
{
    struct k8s *k8s = owner;
    struct collector *collector = &k8s->collector;
    struct k8s_lease lease;
    const json_t *items = json_object_get(collector->page, "items");
    const json_t *json = json_array_get(items, collector->index++);
    collector->http = NULL;
    if (reply->status == 200) {
        collector->tally.removed++;
        if (k8s_lease_parse(json, &lease) == NULL)
            lease_cache_remove(k8s, lease.name);
        collector_schedule_step(k8s);
    } else if (reply->status == 409) { /* it is in use again */
        collector->tally.taken++;
        collector_schedule_step(k8s);
    } else if (reply->status == 404 && collector->ended == NULL) { /* another collector runs */
        collector_end_round(k8s, /* why= */ NULL);
    } else if (reply->status == 404) {
        collector_schedule_step(k8s);
    } else {
        collector_on_error(k8s, reply);
    }
}

static void on_watermark_read(void *owner, const struct http_response *reply)
{
    struct k8s *k8s = owner;
    struct collector *collector = &k8s->collector;
    collector->http = NULL;
    if (reply->status != 200 && reply->status != 404) {
        collector_on_error(k8s, reply);
        return;
    }
    json_decref(collector->mark);
    collector->mark = reply->status == 200 ? kube_parse(reply->body, reply->body_length) : NULL;
    collector->mark_at_ms = host_boot_ms();
    text_copy(collector->mark_name, sizeof collector->mark_name, collector->wanted);
    collector_schedule(k8s, /* pause_ms= */ 0);
}

static void on_collector_page(void *owner, const struct http_response *reply)
{
    struct k8s *k8s = owner;
    struct collector *collector = &k8s->collector;
    bool lists = reply->status == 200, outdated = reply->status == 410;
    json_t *json = lists || outdated ? kube_parse(reply->body, reply->body_length) : NULL;
    const char *wrong = NULL;
    char *next = kube_list_next(json, lists ? collector->next : NULL, &wrong);
    collector->http = NULL;
    free(collector->next);
    collector->next = next;
    if (next != NULL && ++collector->pages >= PAGES_MAX)
        wrong = "the list is too long";
    if (wrong != NULL) {
        json_decref(json);
        collector_end_round(k8s, wrong);
        return;
    }
    if (lists && reply->date_s >= 0 && json != NULL) {
        collector->now_ms = reply->date_s * 1000;
        collector->page = json;
        collector_schedule(k8s, /* pause_ms= */ 0);
        return;
    }
    json_decref(json);
    if (outdated && collector->next != NULL)
        collector_schedule_step(k8s); /* the token expired: resumes at the current state */
    else if (lists)
        collector_end_round(k8s, "the API server's reply has no Date, or is not a list");
    else
        collector_on_error(k8s, reply);
}

static void collector_read_page(struct k8s *k8s)
{
    char path[PAGE_PATH];
    k8s_page_path(path, k8s->collector.next);
    collector_call(k8s, "GET", path, /* body= */ NULL, LIST_MAX, on_collector_page);
}

/* Scans the page up to the next Lease that needs a request. */
static void collector_walk_page(struct k8s *k8s)
{
    struct collector *collector = &k8s->collector;
    struct k8s_lease lease;
    const json_t *items = json_object_get(collector->page, "items");
    char path[K8S_NAME_MAX + 2] = "/";
    for (; collector->index < json_array_size(items); collector->index++) {
        collector->wanted[0] = '\0';
        bool leftover = collector_is_leftover(k8s, json_array_get(items, collector->index), &lease);
        if (collector->wanted[0] != '\0') {
            text_copy(path + 1, sizeof path - 1, collector->wanted);
            collector_call(k8s, "GET", path, /* body= */ NULL, LEASE_REPLY_MAX, on_watermark_read);
            return;
        }
        collector->tally.left += leftover ? 1 : 0;
        if (leftover && !collector->count_only) {
            text_copy(path + 1, sizeof path - 1, lease.name);
            collector_call(k8s, "DELETE", path, k8s_lease_delete_options(&lease), LEASE_REPLY_MAX,
                           on_lease_removed);
            return;
        }
    }
    collector_drop_page(collector);
    if (collector->next != NULL)
        collector_schedule_step(k8s);
    else
        collector_end_round(k8s, /* why= */ NULL);
}

static void on_collector_due(void *owner)
{
    struct k8s *k8s = owner;
    struct collector *collector = &k8s->collector;
    if (collector->http != NULL)
        return;
    if (k8s->paused_until_ms > host_boot_ms() || !kube_login_ready(k8s->login))
        collector_schedule(k8s,
                           collector->step_ms > LOGIN_POLL_MS ? collector->step_ms : LOGIN_POLL_MS);
    else if (collector->page == NULL)
        collector_read_page(k8s);
    else
        collector_walk_page(k8s);
}

/* ---- start and end ---- */

static int64_t step_ms_of(unsigned rate)
{
    return rate > 0 ? (MINUTE_MS + (int64_t)rate - 1) / (int64_t)rate : 0;
}

void collector_init(struct k8s *k8s, uint64_t seed)
{
    struct collector *collector = &k8s->collector;
    collector->random.state = seed;
    collector->due.due = on_collector_due;
    collector->due.owner = k8s;
    collector->due.at_ms = POLLER_NEVER;
    if (k8s->url.collect == 0)
        return;
    collector->step_ms = step_ms_of(k8s->url.collect);
    uint64_t chance = random_below(&collector->random, 2 * FIRST_STEPS + 1);
    collector_schedule(k8s, (FIRST_STEPS + (int64_t)chance) * collector->step_ms);
}

void collector_begin(struct k8s *k8s, unsigned rate, collect_ended *ended, void *owner)
{
    struct collector *collector = &k8s->collector;
    collector->step_ms = step_ms_of(rate);
    collector->count_only = rate == 0;
    collector->ended = ended;
    collector->owner = owner;
    collector_schedule(k8s, /* pause_ms= */ 0);
}

void collector_done(struct k8s *k8s)
{
    struct collector *collector = &k8s->collector;
    if (collector->http != NULL)
        http_cancel(collector->http);
    poller_call_at(k8s->poller, &collector->due, POLLER_NEVER);
    collector_drop_page(collector);
    free(collector->next);
    json_decref(collector->mark);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches. All watches of a client share one watch of the store, and each change is compared with
 * the prefix of each of them. Watches enter and leave the list only in tasks of the inbox, and no
 * callback runs such a task: so a callback may start and end watches while others are notified.
 */
#include "face/lib/query_internal.h"

#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lh_watcher {
    struct inbox_item remove_task; /* first */
    struct lh_watcher *next;
    struct lh_client *client;
    size_t prefix_length;
    char prefix[KEY_MAX + 1];
    lh_watch_fn *fn;
    lh_done_fn *done; /* of a started watch */
    void *user;
    struct call *call; /* until the watch is confirmed */
    bool ended;
    atomic_bool removed; /* nothing is called any more */
};

/* ---- changes ---- */

void watches_end(struct lh_client *client, enum lh_outcome outcome, const char *why)
{
    struct lh_report report = LH_REPORT_INIT;
    char text[LH_TEXT_SIZE];
    watch_cache_clear(&client->watch_cache);
    (void)snprintf(text, sizeof text, "%s: the watch has ended: %.150s; start a new one",
                   lh_outcome_name(outcome), why);
    (void)report_set(&report, outcome, text);
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next) {
        if (watch->ended)
            continue;
        watch->ended = true;
        if (watch->call != NULL) {
            query_end_call(&watch->call, outcome, watch->prefix, why);
            continue;
        }
        if (atomic_load(&watch->removed))
            continue;
        client_enter_callback(client);
        watch->fn(watch->user, NULL, &report);
        client_leave_callback(client);
    }
}

static void watches_confirm(struct lh_client *client)
{
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next)
        query_end_call(&watch->call, LH_OK, watch->prefix, "watching");
}

static void watches_notify(struct query *query, const struct store_reply *reply)
{
    struct lh_client *client = query->client;
    struct lh_view_source source;
    struct lh_view status;
    if (client->watches == NULL) /* only lh_peek() needs the change */
        return;
    query_read_reply(query, reply, reply->key, &source, &status);
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next) {
        if (watch->ended || watch->call != NULL || atomic_load(&watch->removed) ||
            strncmp(reply->key, watch->prefix, watch->prefix_length) != 0)
            continue;
        client_enter_callback(client);
        watch->fn(watch->user, &status, NULL);
        client_leave_callback(client);
    }
}

static void on_store_change(void *caller, const struct store_reply *reply)
{
    struct query *query = caller;
    const char *why = reply->why != NULL ? reply->why : "the store failed";
    if (!reply->more) {
        query_unlink(query); /* a callback's new watch gets a new one */
        watches_end(query->client, query_outcome(reply->result), why);
        free(query);
        return;
    }
    query->give_up_at_ms = NEVER;
    if (reply->result != REPLY_OK && reply->key == NULL) { /* it goes on, but a change was missed */
        watches_end(query->client, query_outcome(reply->result), why);
    } else if (reply->key != NULL) {
        watch_cache_on_change(&query->client->watch_cache, reply, host_boot_ms());
        watches_notify(query, reply);
    }
    if (!query->confirmed)
        watches_confirm(query->client);
    query->confirmed = true;
}

/* ---- the watch of the store ---- */

static struct query *store_watch(const struct lh_client *client)
{
    struct query *query = client->queries;
    while (query != NULL && query->verb != VERB_STORE_WATCH)
        query = query->next;
    return query;
}

/* From now on every lock is written to the store, so that the watch sees it. */
bool watches_start_store(struct lh_client *client)
{
    struct query *query = store_watch(client);
    if (client->fast_path != NULL)
        fast_path_disable(client->fast_path);
    if (query != NULL) {
        if (!query->confirmed && query->give_up_at_ms == NEVER) { /* others gave up before */
            query->give_up_at_ms = host_boot_ms() + client->timeout_ms;
            client_arm_timer(client);
        }
        return query->confirmed;
    }
    query = query_new(client, VERB_STORE_WATCH, "");
    if (query == NULL) {
        watches_end(client, LH_FAILED, "out of memory");
        return false;
    }
    query_send(query, on_store_change);
    query = store_watch(client); /* NULL if the store has refused it at once */
    return query != NULL && query->confirmed;
}

void watches_free_all(struct lh_client *client)
{
    while (client->watches != NULL) {
        struct lh_watcher *watch = client->watches;
        client->watches = watch->next;
        free(watch);
    }
}

/* ---- start ---- */

struct watch_call {
    struct inbox_item task; /* first */
    struct call call;
    struct lh_watcher *watch;
};

/* All watches share the confirmation of the first. */
static void watch_add(struct inbox_item *task)
{
    struct watch_call *watch_call = (struct watch_call *)task;
    struct lh_watcher *watch = watch_call->watch;
    struct lh_client *client = watch->client;
    watch->next = client->watches;
    client->watches = watch;
    if (client->closing) {
        watch->ended = true;
        query_end_call(&watch->call, LH_BUSY, watch->prefix, "the client is being closed");
    } else if (watches_start_store(client)) {
        query_end_call(&watch->call, LH_OK, watch->prefix, "watching");
    }
}

/* NULL with a report on failure. */
static struct lh_watcher *watch_new(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                                    void *user, struct lh_watcher **out, struct lh_report *report)
{
    prefix = prefix != NULL ? prefix : "";
    if (fn == NULL || out == NULL || strlen(prefix) > KEY_MAX) {
        (void)report_set(report, LH_USAGE,
                         "usage: give a function, a pointer, and a prefix of at most 512 bytes");
        return NULL;
    }
    struct lh_watcher *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        (void)report_set(report, LH_FAILED, "failed: out of memory");
        return NULL;
    }
    watch->client = client;
    watch->fn = fn;
    watch->user = user;
    watch->prefix_length = strlen(prefix);
    memcpy(watch->prefix, prefix, watch->prefix_length + 1);
    return watch;
}

/* ---- end ---- */

/* Frees it. A call that waits for the confirmation ends without a callback. */
static void watch_drop(struct lh_watcher *watch)
{
    struct lh_watcher **at = &watch->client->watches;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    query_end_call(&watch->call, LH_BUSY, watch->prefix, "the watch was ended");
    free(watch);
}

static void watch_stop(struct inbox_item *task)
{
    struct watch_call *watch_call = (struct watch_call *)task;
    watch_drop(watch_call->watch);
    if (watch_call->call.report.text[0] == '\0')
        (void)report_set(&watch_call->call.report, LH_OK, "ok: the watch has ended");
    call_end(&watch_call->call);
}

static enum lh_outcome watch_remove(struct lh_watcher *watch, const struct lh_report *said,
                                    struct lh_report *report)
{
    struct watch_call watch_call = {.task = {.run = watch_stop}, .watch = watch};
    atomic_store(&watch->removed, true);
    call_begin(&watch_call.call, watch->client);
    if (said != NULL)
        watch_call.call.report = *said;
    return call_make(&watch_call.call, &watch_call.task, report);
}

/* ---- the public calls ---- */

enum lh_outcome lh_watch(struct lh_client *client, const char *prefix, lh_watch_fn *fn, void *user,
                         struct lh_watcher **out, struct lh_report *report)
{
    struct lh_report said = LH_REPORT_INIT;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    struct lh_watcher *watch = watch_new(client, prefix, fn, user, out, &said);
    if (watch == NULL) {
        report_copy(report, &said);
        return said.outcome;
    }
    struct watch_call watch_call = {.task = {.run = watch_add}, .watch = watch};
    watch->call = &watch_call.call;
    call_begin(&watch_call.call, client);
    outcome = call_make(&watch_call.call, &watch_call.task, &said);
    if (outcome != LH_OK)
        return watch_remove(watch, &said, report);
    report_copy(report, &said);
    *out = watch;
    return LH_OK;
}

static void on_watch_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lh_watcher *watch = user;
    if (!atomic_load(&watch->removed))
        watch->done(watch->user, lease, report);
}

enum lh_outcome lh_watch_start(struct lh_client *client, const char *prefix, lh_watch_fn *fn,
                               lh_done_fn *done, void *user, struct lh_watcher **out,
                               struct lh_report *report)
{
    struct lh_report own = LH_REPORT_INIT;
    enum lh_outcome outcome = client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    report = report != NULL ? report : &own;
    if (done == NULL)
        return report_set(report, LH_USAGE, "usage: give a function to call when done");
    struct lh_watcher *watch = watch_new(client, prefix, fn, user, out, report);
    if (watch == NULL)
        return report->outcome;
    struct watch_call *watch_call = calloc(1, sizeof *watch_call);
    if (watch_call == NULL) {
        free(watch);
        return report_set(report, LH_FAILED, "failed: out of memory");
    }
    watch_call->task.run = watch_add;
    watch_call->watch = watch;
    watch->done = done;
    watch->call = &watch_call->call;
    *out = watch; /* before done, which may need it */
    call_begin(&watch_call->call, client);
    return call_start(&watch_call->call, &watch_call->task, watch_call, on_watch_done, watch,
                      report);
}

enum lh_outcome lh_unwatch(struct lh_watcher **watch, struct lh_report *report)
{
    if (watch == NULL || *watch == NULL)
        return report_set(report, LH_USAGE, "usage: there is no watch");
    enum lh_outcome outcome = client_admits((*watch)->client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    outcome = watch_remove(*watch, NULL, report);
    *watch = NULL;
    return outcome;
}

static void watch_drop_task(struct inbox_item *task)
{
    watch_drop((struct lh_watcher *)task);
}

enum lh_outcome lh_unwatch_start(struct lh_watcher **watch, struct lh_report *report)
{
    if (watch == NULL || *watch == NULL)
        return report_set(report, LH_USAGE, "usage: there is no watch");
    enum lh_outcome outcome = client_admits((*watch)->client, /* blocks= */ false, report);
    if (outcome != LH_OK)
        return outcome;
    struct lh_watcher *ending = *watch;
    *watch = NULL;
    ending->remove_task.run = watch_drop_task;
    atomic_store(&ending->removed, true);
    executor_post(ending->client->executor, &ending->remove_task);
    return report_ok(report, "ok: the watch has ended");
}

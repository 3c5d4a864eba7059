/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists and histories, and the requests of all queries, of which the watch of the store is one
 * (lib_watch.c). They change nothing, so they bypass the core. A query without a reply within the
 * store timeout ends as unavailable; its memory is kept until the reply arrives.
 */
#include "face/lib/query_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "store/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- views ---- */

/* An unreadable record gets a view, too: it must not hide the others. */
void query_read_reply(const struct query *query, const struct store_reply *reply, const char *key,
                      struct lh_view_source *source, struct lh_view *out)
{
    struct lh_client *client = query->client;
    struct event event = {0};
    const char *why = reply->why != NULL ? reply->why : "the store gave no reason";
    translate_reply(reply, key, &client->scratch, &event, &why);
    if (!event.known) {
        status_fill_unreadable(key, why, out);
        return;
    }
    if (query->verb == VERB_STORE_HISTORY) /* as it was when it was written */
        event.at.time_ms = reply->written.time_ms;
    event.at.revision = reply->written.revision;
    status_fill(client, &client->scratch, &event.at, key, source, out);
    if (reply->written.revision == 0)
        return;
    out->written_ago_ms = age_of(reply->written.time_ms, reply->now_ms);
    if ((client->driver->capabilities & STORE_DURABLE) != 0 &&
        reply->written.time_ms != TIME_UNKNOWN)
        out->written_at_ms = reply->written.time_ms;
}

/* ---- in flight ---- */

int64_t query_next_ms(const struct lh_client *client)
{
    int64_t next_ms = NEVER;
    for (const struct query *query = client->queries; query != NULL; query = query->next) {
        if (query->give_up_at_ms < next_ms)
            next_ms = query->give_up_at_ms;
    }
    return next_ms;
}

void query_unlink(const struct query *query)
{
    struct query **at = &query->client->queries;
    while (*at != query)
        at = &(*at)->next;
    *at = query->next;
}

void query_end_call(struct call **call, enum lh_outcome outcome, const char *key, const char *why)
{
    char text[LH_TEXT_SIZE];
    struct call *ending = *call;
    *call = NULL;
    if (ending == NULL)
        return;
    (void)snprintf(text, sizeof text, "%s: %.64s%s%.150s", lh_outcome_name(outcome), key,
                   key[0] != '\0' ? ": " : "", why);
    (void)report_set(&ending->report, outcome, text);
    if (outcome == LH_UNAVAILABLE)
        ending->report.retry_after_ms = client_retry_after(ending->client);
    call_end(ending);
}

enum lh_outcome query_outcome(enum reply_status reply)
{
    return reply == REPLY_DENIED ? LH_DENIED : LH_UNAVAILABLE;
}

void query_on_timer(struct lh_client *client, int64_t now_ms)
{
    for (struct query *query = client->queries; query != NULL; query = query->next) {
        if (now_ms < query->give_up_at_ms)
            continue;
        query->give_up_at_ms = NEVER;
        query->fn = NULL;
        if (query->verb == VERB_STORE_WATCH)
            watches_end(client, LH_UNAVAILABLE, "the store does not answer");
        else
            query_end_call(&query->call, LH_UNAVAILABLE, query->key, "the store does not answer");
    }
}

void query_free_all(struct lh_client *client)
{
    while (client->queries != NULL) {
        struct query *query = client->queries;
        client->queries = query->next;
        free(query);
    }
    watches_free_all(client);
}

void query_send(struct query *query, store_done *done)
{
    struct store_request request = {.verb = query->verb, .key = query->key};
    query->next = query->client->queries;
    query->client->queries = query;
    query->give_up_at_ms = host_boot_ms() + query->client->timeout_ms;
    client_arm_timer(query->client);
    client_submit(query->client, &request, done, query);
}

struct query *query_new(struct lh_client *client, enum store_verb verb, const char *key)
{
    struct query *query = calloc(1, sizeof *query);
    if (query == NULL)
        return NULL;
    query->client = client;
    query->verb = verb;
    (void)snprintf(query->key, sizeof query->key, "%s", key);
    return query;
}

/* ---- lists and histories ---- */

static void query_show(struct query *query, const struct store_reply *reply)
{
    struct lh_view_source source;
    struct lh_view status;
    const char *key = reply->key != NULL ? reply->key : query->key;
    if (query->fn == NULL || query->call == NULL)
        return;
    query_read_reply(query, reply, key, &source, &status);
    client_enter_callback(query->client);
    if (!query->fn(query->user, &status))
        query->fn = NULL;
    client_leave_callback(query->client);
}

static void on_query_reply(void *caller, const struct store_reply *reply)
{
    struct query *query = caller;
    bool of_one_key = reply->more && reply->key != NULL; /* the list goes on */
    if (!of_one_key && (reply->result == REPLY_TROUBLE || reply->result == REPLY_DENIED))
        query_end_call(&query->call, query_outcome(reply->result), query->key,
                       reply->why != NULL ? reply->why : "the store failed; try again");
    if (reply->more) {
        if (query->call != NULL)
            query->give_up_at_ms = host_boot_ms() + query->client->timeout_ms;
        query_show(query, reply);
        return;
    }
    query_end_call(&query->call, LH_OK, query->key, "complete");
    query_unlink(query);
    free(query);
}

struct query_call {
    struct inbox_item task; /* first */
    struct call call;
    struct query *query;
};

static void query_start(struct inbox_item *task)
{
    struct query *query = ((struct query_call *)task)->query;
    struct lh_client *client = query->client;
    bool lists = query->verb == VERB_STORE_LIST, enough = false;
    if (client->closing)
        query_end_call(&query->call, LH_BUSY, query->key, "the client is being closed");
    else if (client_retry_after(client) >= 0)
        query_end_call(&query->call, LH_UNAVAILABLE, query->key,
                       "the store failed repeatedly; try later");
    else if (lists && !fast_lease_list(client, query->key, query->fn, query->user, &enough))
        query_end_call(&query->call, LH_FAILED, query->key, "out of memory");
    if (query->call == NULL) {
        free(query);
        return;
    }
    if (enough)
        query->fn = NULL;
    query_send(query, on_query_reply);
}

/* NULL with a report on failure. */
static struct query *query_prepare(struct lh_client *client, enum store_verb verb, const char *key,
                                   lh_view_fn *fn, void *user, struct lh_report *report)
{
    const char *wrong = NULL;
    if (key == NULL || fn == NULL || strlen(key) > KEY_MAX || !text_is_clean(key, strlen(key)))
        wrong = "usage: give a function, and at most 512 bytes of UTF-8";
    else if (verb == VERB_STORE_HISTORY && (client->driver->capabilities & STORE_HISTORY) == 0)
        wrong = "usage: this store keeps no history";
    struct query *query = wrong == NULL ? query_new(client, verb, key) : NULL;
    if (query == NULL) {
        (void)report_set(report, wrong != NULL ? LH_USAGE : LH_FAILED,
                         wrong != NULL ? wrong : "failed: out of memory");
        return NULL;
    }
    query->fn = fn;
    query->user = user;
    return query;
}

static enum lh_outcome query_run(struct lh_client *client, enum store_verb verb, const char *key,
                                 lh_view_fn *fn, void *user, struct lh_report *report)
{
    struct query_call query_call = {.task = {.run = query_start}};
    struct lh_report own = LH_REPORT_INIT;
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    query_call.query = query_prepare(client, verb, key, fn, user, report);
    if (query_call.query == NULL)
        return report->outcome;
    query_call.query->call = &query_call.call;
    call_begin(&query_call.call, client);
    return call_make(&query_call.call, &query_call.task, report);
}

static enum lh_outcome query_run_start(struct lh_client *client, enum store_verb verb,
                                       const char *key, lh_view_fn *fn, lh_done_fn *done,
                                       void *user, struct lh_report *report)
{
    struct lh_report own = LH_REPORT_INIT;
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    if (done == NULL)
        return report_set(report, LH_USAGE, "usage: give a function to call when done");
    struct query *query = query_prepare(client, verb, key, fn, user, report);
    struct query_call *query_call = query != NULL ? calloc(1, sizeof *query_call) : NULL;
    if (query_call == NULL) {
        free(query);
        return query != NULL ? report_set(report, LH_FAILED, "failed: out of memory")
                             : report->outcome;
    }
    query_call->task.run = query_start;
    query_call->query = query;
    query->call = &query_call->call;
    call_begin(&query_call->call, client);
    return call_start(&query_call->call, &query_call->task, query_call, done, user, report);
}

enum lh_outcome lh_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                        struct lh_report *report)
{
    return query_run(client, VERB_STORE_LIST, prefix != NULL ? prefix : "", fn, user, report);
}

enum lh_outcome lh_history(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                           struct lh_report *report)
{
    return query_run(client, VERB_STORE_HISTORY, key, fn, user, report);
}

enum lh_outcome lh_list_start(struct lh_client *client, const char *prefix, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report)
{
    return query_run_start(client, VERB_STORE_LIST, prefix != NULL ? prefix : "", fn, done, user,
                           report);
}

enum lh_outcome lh_history_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                 lh_done_fn *done, void *user, struct lh_report *report)
{
    return query_run_start(client, VERB_STORE_HISTORY, key, fn, done, user, report);
}

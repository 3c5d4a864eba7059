/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on one key: renew and release by token, break, clear, and a query. Each is a task of
 * the executor, limited by the store timeout. The core decides.
 */
#include "face/lib/lib_internal.h"

#include "process/host.h"
#include "runtime/lease_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operation {
    struct inbox_item task; /* first */
    struct call call;
    struct lease_options options;
    struct lh_view *status; /* the result of a query … */
    lh_view_fn *fn;         /* … or the callback that gets it */
    void *user;
    struct operation_hooks hooks;
    bool if_held; /* release: a token that does not hold the key is no error */
    struct broken broken;
    struct fast_path_mark *mark;
    int64_t began_us;
    _Alignas(max_align_t) char storage[]; /* strings of a started operation */
};

static void operation_show(struct operation *op, const struct task_news *news, const char *key)
{
    struct lh_client *client = op->call.client;
    struct lh_view_source source;
    struct lh_view view;
    if (op->status != NULL) {
        status_fill(client, news->record, &news->at, key, NULL, &view);
        sized_write(op->status, &view, sizeof view);
    }
    if (op->fn == NULL)
        return;
    status_fill(client, news->record, &news->at, key, &source, &view);
    client_enter_callback(client);
    (void)op->fn(op->user, &view);
    client_leave_callback(client);
}

/* For renewals and releases by token, marks and watermarks. */
static void operation_emit_event(struct operation *op)
{
    enum lh_outcome outcome = op->call.report.outcome;
    struct lh_event event = {.outcome = outcome,
                             .key = op->options.request.key,
                             .token = op->options.request.token,
                             .after_us = -1};
    switch (op->options.request.verb) {
    case VERB_RENEW:
        event.kind = outcome == LH_OK ? LH_EVENT_RENEWED : LH_EVENT_RENEW_FAILED;
        break;
    case VERB_RELEASE:
        if (outcome == LH_OK && op->call.report.effect != LH_EFFECT_RELEASED)
            return; /* nothing was released */
        event.kind = LH_EVENT_RELEASED;
        break;
    case VERB_MARK:
        event.kind = LH_EVENT_MARK;
        event.after_us = host_boot_us() - op->began_us;
        break;
    case VERB_ADVANCE:
    case VERB_SET:
        event.kind = LH_EVENT_WATERMARK;
        event.after_us = host_boot_us() - op->began_us;
        break;
    default:
        return;
    }
    client_emit(op->call.client, &event);
}

static void operation_end(struct operation *op)
{
    fast_lease_unmark_key(op->call.client, &op->mark);
    if (op->hooks.ends != NULL)
        lease_free_ended(op->hooks.ends, op->call.report.outcome);
    else
        operation_emit_event(op);
    call_end(&op->call);
}

static enum lh_verb operation_verb(const struct request *request)
{
    bool id = strncmp(request->key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) == 0;
    switch (request->verb) {
    case VERB_RENEW:
        return id ? LH_VERB_FINISH : LH_VERB_RENEW;
    case VERB_RELEASE:
        return id ? LH_VERB_FINISH : LH_VERB_RELEASE;
    case VERB_ADVANCE:
    case VERB_SET:
        return LH_VERB_WATERMARK;
    default:
        return id ? LH_VERB_ONCE : LH_VERB_ANY;
    }
}

/* Adds effect, key and refusal. */
static void operation_report_details(const struct operation *op, const struct task_news *news,
                                     struct lh_report *report)
{
    const struct request *request = &op->options.request;
    bool stale = news->outcome == OUTCOME_STALE;
    if (news->outcome == OUTCOME_OK && request->verb == VERB_BREAK)
        report_break(request->key, request->now, &op->broken, news, report);
    else if (news->outcome == OUTCOME_OK && request->verb == VERB_RELEASE)
        report_released(request->token, news, report);
    else if (news->outcome == OUTCOME_OK && request->verb == VERB_RENEW)
        report_renewed(op->call.client, request->token, news, report);
    else if (stale && op->if_held)
        report_not_held(request->key, request->token, news, report);
    if (report->key[0] == '\0')
        (void)snprintf(report->key, sizeof report->key, "%s", request->key);
    report->refusal = lh_refusal_word(operation_verb(request), report->outcome);
}

static void on_operation_event(void *owner, struct task *task, const struct task_news *news)
{
    struct operation *op = owner;
    struct lh_client *client = op->call.client;
    const char *key = op->options.request.key;
    (void)task;
    if (news->notify != NOTIFY_ENDED)
        return;
    report_news(client, key, news, news->outcome, &op->call.report);
    if (op->hooks.on_done != NULL)
        op->hooks.on_done(client, &op->hooks, news, &op->call.report);
    operation_report_details(op, news, &op->call.report);
    if (news->outcome == OUTCOME_OK && news->record != NULL)
        operation_show(op, news, key);
    if (news->outcome == OUTCOME_OK && op->options.request.verb == VERB_BREAK)
        client_store_event(client, key, "Broken", op->options.request.reason, /* warns= */ true);
    operation_end(op);
}

static void operation_start(struct inbox_item *task)
{
    struct operation *op = (struct operation *)task;
    struct lh_client *client = op->call.client;
    struct executor_caller caller = {.notify = on_operation_event, .owner = op};
    op->began_us = host_boot_us();
    op->options.request.broken = &op->broken; /* the struct does not move any more */
    bool entered = fast_lease_mark_key(client, op->options.request.key, &op->mark);
    if (op->hooks.ends != NULL)
        lease_forget(op->hooks.ends);
    if (op->mark != NULL) /* adopts a promoted lease before the operation starts */
        executor_tick(client->executor);
    if (entered && !client->closing &&
        executor_start(client->executor, &op->options, &caller) != NULL)
        return;
    if (client->closing)
        (void)report_set(&op->call.report, LH_BUSY, CLOSING_TEXT);
    else
        (void)report_set(&op->call.report, LH_UNAVAILABLE,
                         "unavailable: out of memory, or too many requests in flight; try again");
    operation_end(op);
}

/* NULL, or the error. */
static const char *operation_fill_options(const struct lh_client *client,
                                          const struct request *request, struct lease_options *out)
{
    *out = (struct lease_options){.request = *request,
                                  .cooldown_ms = request->cooldown_ms,
                                  .timeout_ms = client->timeout_ms,
                                  .kill_grace_ms = KILL_GRACE_MS};
    out->request.holder = client->holder;
    out->request.any_holder = true;
    out->request.session = 1; /* valid; the executor sets its own */
    if (request->ttl_ms == 0 && request->verb != VERB_RENEW)
        out->request.ttl_ms = client->facts.ttl_ms;
    bool made = request->request == NULL;
    if (made)
        out->request.request = "-"; /* valid; the executor makes one */
    const char *wrong = request_broken(&out->request);
    if (made)
        out->request.request = NULL;
    if (wrong == NULL && request->verb == VERB_MARK && request->cooldown_ms == 0)
        wrong = "a mark needs a keep time above 0";
    if (wrong == NULL && (request->cooldown_ms < 0 || request->cooldown_ms > SPAN_MAX_MS))
        wrong = "the cooldown must be from 0 to 366 days";
    return wrong;
}

/* With the strings of the request, which the caller may free. */
static struct operation *operation_copy(const struct operation *op)
{
    const char *key = op->options.request.key;
    size_t key_size = strlen(key) + 1, storage_size = lease_options_size(&op->options);
    struct operation *kept = malloc(sizeof *kept + storage_size + key_size);
    if (kept == NULL)
        return NULL;
    memcpy(kept, op, sizeof *kept);
    lease_options_copy(&kept->options, &op->options,
                       memcpy(kept->storage + storage_size, key, key_size), kept->storage);
    return kept;
}

/* Blocks, unless there is a listener. */
static enum lh_outcome operation_submit(struct lh_client *client, const struct request *request,
                                        struct operation *op, const struct listener *listener,
                                        struct lh_report *report)
{
    enum lh_outcome outcome = listener == NULL ? client_admits(client, /* blocks= */ true, report)
                                               : client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    if (listener != NULL && listener->done == NULL)
        return report_set(report, LH_USAGE, "usage: give a function to call when done");
    const char *wrong = operation_fill_options(client, request, &op->options);
    if (wrong != NULL) {
        char storage[LH_TEXT_SIZE];
        (void)snprintf(storage, sizeof storage, "usage: %s", wrong);
        return report_set(report, LH_USAGE, storage);
    }
    if (request->ttl_ms != 0 && !client_admits_ttl(client, request->ttl_ms, report))
        return LH_USAGE;
    op->task.run = operation_start;
    call_begin(&op->call, client);
    if (listener == NULL)
        return call_make(&op->call, &op->task, report);
    struct operation *kept = operation_copy(op);
    if (kept == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    return call_start(&kept->call, &kept->task, kept, listener->done, listener->user, report);
}

enum lh_outcome operation_run(struct lh_client *client, const struct request *request,
                              const struct operation_hooks *hooks, const struct listener *listener,
                              struct lh_report *report)
{
    struct operation op = {0};
    if (hooks != NULL)
        op.hooks = *hooks;
    return operation_submit(client, request, &op, listener, report);
}

/* ---- by token ---- */

enum lh_outcome lh_renew(struct lh_client *client, const char *key, uint64_t token, int64_t ttl_ms,
                         struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .key = key, .token = token, .ttl_ms = ttl_ms};
    return operation_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_renew_start(struct lh_client *client, const char *key, uint64_t token,
                               int64_t ttl_ms, lh_done_fn *done, void *user,
                               struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .key = key, .token = token, .ttl_ms = ttl_ms};
    return operation_run(client, &request, NULL, &(struct listener){done, user}, report);
}

enum lh_outcome lh_release_token(struct lh_client *client, const char *key, uint64_t token,
                                 int64_t cooldown_ms, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    return operation_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_release_token_start(struct lh_client *client, const char *key, uint64_t token,
                                       int64_t cooldown_ms, lh_done_fn *done, void *user,
                                       struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    return operation_run(client, &request, NULL, &(struct listener){done, user}, report);
}

static enum lh_outcome release_token_if_held(struct lh_client *client, const char *key,
                                             uint64_t token, int64_t cooldown_ms,
                                             const struct listener *listener,
                                             struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    struct operation op = {.if_held = true};
    return operation_submit(client, &request, &op, listener, report);
}

enum lh_outcome lh_release_token_if_held(struct lh_client *client, const char *key, uint64_t token,
                                         int64_t cooldown_ms, struct lh_report *report)
{
    return release_token_if_held(client, key, token, cooldown_ms, NULL, report);
}

enum lh_outcome lh_release_token_if_held_start(struct lh_client *client, const char *key,
                                               uint64_t token, int64_t cooldown_ms,
                                               lh_done_fn *done, void *user,
                                               struct lh_report *report)
{
    return release_token_if_held(client, key, token, cooldown_ms, &(struct listener){done, user},
                                 report);
}

/* ---- operators ---- */

enum lh_outcome lh_break(struct lh_client *client, const char *key, const char *reason,
                         bool at_once, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_BREAK, .key = key, .reason = reason != NULL ? reason : "", .now = at_once};
    return operation_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_break_start(struct lh_client *client, const char *key, const char *reason,
                               bool at_once, lh_done_fn *done, void *user, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_BREAK, .key = key, .reason = reason != NULL ? reason : "", .now = at_once};
    return operation_run(client, &request, NULL, &(struct listener){done, user}, report);
}

enum lh_outcome lh_clear(struct lh_client *client, const char *key, struct lh_report *report)
{
    struct request request = {.verb = VERB_CLEAR, .key = key};
    return operation_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_clear_start(struct lh_client *client, const char *key, lh_done_fn *done,
                               void *user, struct lh_report *report)
{
    struct request request = {.verb = VERB_CLEAR, .key = key};
    return operation_run(client, &request, NULL, &(struct listener){done, user}, report);
}

/* ---- status ---- */

enum lh_outcome lh_status(struct lh_client *client, const char *key, struct lh_view *out,
                          struct lh_report *report)
{
    struct request request = {.verb = VERB_QUERY, .key = key};
    struct operation op = {.status = out};
    if (out == NULL || !sized_is_valid(out))
        return report_set(report, LH_USAGE, "usage: give a result that LH_VIEW_INIT initialised");
    return operation_submit(client, &request, &op, NULL, report);
}

static enum lh_outcome operation_query(struct lh_client *client, const char *key, lh_view_fn *fn,
                                       void *user, const struct listener *listener,
                                       struct lh_report *report)
{
    struct request request = {.verb = VERB_QUERY, .key = key};
    struct operation op = {.fn = fn, .user = user};
    if (fn == NULL)
        return report_set(report, LH_USAGE, "usage: give a function for the view");
    return operation_submit(client, &request, &op, listener, report);
}

enum lh_outcome lh_status_details(struct lh_client *client, const char *key, lh_view_fn *fn,
                                  void *user, struct lh_report *report)
{
    return operation_query(client, key, fn, user, NULL, report);
}

enum lh_outcome lh_status_details_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                        lh_done_fn *done, void *user, struct lh_report *report)
{
    return operation_query(client, key, fn, user, &(struct listener){done, user}, report);
}

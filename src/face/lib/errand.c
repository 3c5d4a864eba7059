/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single verbs: renew and give back by token, break, clear, and a look at one key. Each is an
 * errand of the executor; the core decides, and the store's patience bounds them all.
 */
#include "face/lib/lib_inside.h"

#include "base/check.h"

#include <stdio.h>

struct errand {
    struct loop_task task; /* first */
    struct call call;
    struct lease_options options;
    struct lh_view *status; /* of a look … */
    lh_view_fn *fn;         /* … or whom to show it */
    void *user;
    struct light_mark *mark;
};

static void show(struct errand *errand, const struct task_news *news, const char *key)
{
    struct lh_client *client = errand->call.client;
    struct lh_meta pairs[META_PAIRS_MAX];
    struct lh_view view;
    if (errand->status != NULL)
        status_fill(client, news->record, &news->at, key, NULL, errand->status);
    if (errand->fn == NULL)
        return;
    status_fill(client, news->record, &news->at, key, pairs, &view);
    client_enter(client);
    (void)errand->fn(errand->user, &view);
    client_leave(client);
}

static void told(void *owner, struct task *task, const struct task_news *news)
{
    struct errand *errand = owner;
    struct lh_client *client = errand->call.client;
    const char *key = errand->options.request.key;
    (void)task;
    if (news->event != TASK_ENDED)
        return;
    report_news(client, key, news, news->outcome, &errand->call.report);
    if (news->outcome == OUTCOME_OK && news->record != NULL)
        show(errand, news, key);
    light_leave_key(client, &errand->mark);
    call_end(&errand->call);
}

static void start(struct loop_task *task)
{
    struct errand *errand = (struct errand *)task;
    struct lh_client *client = errand->call.client;
    struct executor_caller caller = {.told = told, .owner = errand};
    bool entered = light_enter_key(client, errand->options.request.key, &errand->mark);
    if (errand->mark != NULL) /* a holder that was light is adopted before this is about it */
        front_desk_tick(client->desk);
    if (entered &&
        executor_start(front_desk_executor(client->desk), &errand->options, &caller) != NULL)
        return;
    light_leave_key(client, &errand->mark);
    (void)report_say(&errand->call.report, LH_UNAVAILABLE,
                     "unavailable: memory is short, or too much is on its way; try again");
    call_end(&errand->call);
}

static enum lh_outcome run_looking(struct lh_client *client, const struct request *request,
                                   struct errand *errand, struct lh_report *report)
{
    errand->task.run = start;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    errand->options = (struct lease_options){.request = *request,
                                             .cooldown_ms = request->cooldown_ms,
                                             .patience_ms = client->patience_ms,
                                             .kill_grace_ms = KILL_GRACE_MS,
                                             .look_ms = LOOK_MS};
    errand->options.request.holder = client->holder;
    errand->options.request.session = 1; /* the executor puts its own here */
    if (request->ttl_ms == 0)
        errand->options.request.ttl_ms = TTL_USUAL_MS;
    const char *wrong = request_broken(&errand->options.request);
    if (wrong == NULL && (request->cooldown_ms < 0 || request->cooldown_ms > SPAN_MAX_MS))
        wrong = "the cooldown must be from 0 to 366 days";
    if (wrong != NULL) {
        char words[LH_TEXT_SIZE];
        (void)snprintf(words, sizeof words, "usage: %s", wrong);
        return report_say(report, LH_USAGE, words);
    }
    call_begin(&errand->call, client);
    return call_make(&errand->call, &errand->task, report);
}

static enum lh_outcome run_errand(struct lh_client *client, const struct request *request,
                                  struct lh_report *report)
{
    struct errand errand = {0};
    return run_looking(client, request, &errand, report);
}

enum lh_outcome lh_renew(struct lh_client *client, const char *key, uint64_t token, int64_t ttl_ms,
                         struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .key = key, .token = token, .ttl_ms = ttl_ms};
    return run_errand(client, &request, report);
}

enum lh_outcome lh_give_back(struct lh_client *client, const char *key, uint64_t token,
                             int64_t cooldown_ms, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    return run_errand(client, &request, report);
}

enum lh_outcome lh_break(struct lh_client *client, const char *key, const char *reason,
                         bool at_once, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_BREAK, .key = key, .reason = reason != NULL ? reason : "", .now = at_once};
    return run_errand(client, &request, report);
}

enum lh_outcome lh_clear(struct lh_client *client, const char *key, struct lh_report *report)
{
    struct request request = {.verb = VERB_CLEAR, .key = key};
    return run_errand(client, &request, report);
}

enum lh_outcome lh_status(struct lh_client *client, const char *key, struct lh_view *out,
                          struct lh_report *report)
{
    struct request request = {.verb = VERB_LOOK, .key = key};
    struct errand errand = {.status = out};
    if (out == NULL)
        return report_say(report, LH_USAGE, "usage: there is no place for the status");
    return run_looking(client, &request, &errand, report);
}

enum lh_outcome lh_look(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                        struct lh_report *report)
{
    struct request request = {.verb = VERB_LOOK, .key = key};
    struct errand errand = {.fn = fn, .user = user};
    if (fn == NULL)
        return report_say(report, LH_USAGE, "usage: there is no function to show it to");
    return run_looking(client, &request, &errand, report);
}
